"""The formulas of softmax summaries and of temperature."""

from __future__ import annotations

import numpy as np

from ..ops.online import SoftmaxSummary, finish, merge, summarize
from ..ops.softmax import entropy, logsumexp, softmax, temperature_softmax
from ._formula import Inputs, formula

CHAPTER = "softmax-summaries"
SUMMARY = {
    "m": r"\state{m}",
    "ell": r"\state{\ell}",
    "w": r"\state{w}",
}


def a_row(rng: np.random.Generator) -> Inputs:
    """Scores far from zero, and the largest of them."""
    x = 5 + 2 * rng.normal(size=6)
    return {"x": x, "m": x.max(), "i": np.arange(6)}


def a_chunk(rng: np.random.Generator) -> Inputs:
    """Scores with values, their summary and their weights."""
    s, v = 3 + 2 * rng.normal(size=5), rng.normal(size=(5, 2))
    m, ell, w = summarize(s, v)
    return {"s": s, "v": v, "m": m, "ell": ell, "w": w, "p": softmax(s)}


def two_chunks(rng: np.random.Generator) -> Inputs:
    """The parts of two summaries; the larger maximum may be either's."""
    a = summarize(rng.normal(size=3), rng.normal(size=(3, 2)))
    b = summarize(rng.normal(size=4) + rng.choice([-1, 1]), rng.normal(size=(4, 2)))
    m_a, ell_a, w_a = a
    m_b, ell_b, w_b = b
    return {
        "a": a,
        "b": b,
        "m": max(m_a, m_b),
        **{"m_a": m_a, "ell_a": ell_a, "w_a": w_a},
        **{"m_b": m_b, "ell_b": ell_b, "w_b": w_b},
    }


def tempered(rng: np.random.Generator) -> Inputs:
    """Scores, a temperature that is not one, and a pair of entries."""
    x, t = rng.normal(size=5), rng.uniform(1.5, 3.0)
    p = temperature_softmax(x, t)
    return {"x": x, "t": t, "p": p, "i": 1, "j": 3}


formula(
    "softmax_shift",
    "exp(x[i] - m) / sum(exp(x[j] - m) for j in range(len(x)))",
    defines="p[i]",
    chapter=CHAPTER,
    draw=a_row,
    function=lambda x: softmax(x),
    operations=("softmax",),
    checks=("softmax_near_1000", "softmax_log_odds"),
)
formula(
    "logsumexp_shift",
    "m + log(sum(exp(x[j] - m) for j in range(len(x))))",
    defines="lse(x)",
    symbols={"lse": r"\mathrm{lse}"},
    chapter=CHAPTER,
    draw=a_row,
    function=lambda x: logsumexp(x),
    operations=("logsumexp",),
    checks=("logsumexp_of_parts",),
)
formula(
    "summary_maximum",
    "max(s[j] for j in range(len(s)))",
    defines="m",
    symbols=SUMMARY,
    chapter=CHAPTER,
    draw=a_chunk,
    function=lambda s, v: summarize(s, v).maximum,
    operations=("summarize",),
    checks=("summary_of_a_chunk",),
)
formula(
    "summary_mass",
    "sum(exp(s[j] - m) for j in range(len(s)))",
    defines="ell",
    symbols=SUMMARY,
    chapter=CHAPTER,
    draw=a_chunk,
    function=lambda s, v: summarize(s, v).mass,
    operations=("summarize",),
    checks=("summary_lse",),
)
formula(
    "summary_weighted",
    "sum(exp(s[j] - m) * v[j] for j in range(len(s)))",
    defines="w",
    symbols=SUMMARY,
    chapter=CHAPTER,
    draw=a_chunk,
    function=lambda s, v: summarize(s, v).weighted,
    operations=("summarize",),
    checks=("summary_of_a_chunk",),
)
formula(
    "summary_output",
    "w / ell",
    "sum(p[j] * v[j] for j in range(len(v)))",
    symbols=SUMMARY,
    chapter=CHAPTER,
    draw=a_chunk,
    function=lambda m, ell, w: finish(SoftmaxSummary(m, ell, w)),
    operations=("finish",),
    checks=("one_chunk_is_the_row",),
)
formula(
    "merge_maximum",
    "max(m_a, m_b)",
    defines="m",
    symbols=SUMMARY,
    chapter=CHAPTER,
    draw=two_chunks,
    function=lambda a, b: merge(a, b).maximum,
    operations=("merge",),
    checks=("merge_empty_neutral", "merge_masked_neutral"),
)
formula(
    "merge_mass",
    "exp(m_a - m) * ell_a + exp(m_b - m) * ell_b",
    defines="ell",
    symbols=SUMMARY,
    chapter=CHAPTER,
    draw=two_chunks,
    function=lambda a, b: merge(a, b).mass,
    operations=("merge",),
    checks=("merge_associative", "merge_order_free"),
)
formula(
    "merge_weighted",
    "exp(m_a - m) * w_a + exp(m_b - m) * w_b",
    defines="w",
    symbols=SUMMARY,
    chapter=CHAPTER,
    draw=two_chunks,
    function=lambda a, b: merge(a, b).weighted,
    operations=("merge",),
    checks=("online_softmax", "merge_associative", "merge_order_free"),
)
formula(
    "temperature",
    "exp(x[i] / t) / sum(exp(x[j] / t) for j in range(len(x)))",
    defines="p[i]",
    chapter=CHAPTER,
    draw=tempered,
    function=lambda x, t, i: temperature_softmax(x, t)[i],
    operations=("temperature_softmax",),
    checks=("temperature_limits",),
)
formula(
    "temperature_log_odds",
    "log(p[i] / p[j])",
    "(x[i] - x[j]) / t",
    chapter=CHAPTER,
    draw=tempered,
    function=lambda x, t, i, j: np.log(
        temperature_softmax(x, t)[i] / temperature_softmax(x, t)[j]
    ),
    operations=("temperature_softmax",),
    checks=("temperature_log_odds",),
)
formula(
    "entropy_in_nats",
    "-sum(p[i] * log(p[i]) for i in range(len(p)))",
    defines="H(p)",
    chapter=CHAPTER,
    draw=tempered,
    function=lambda p: entropy(p),
    operations=("entropy",),
    checks=("entropy_rises_with_temperature",),
)
