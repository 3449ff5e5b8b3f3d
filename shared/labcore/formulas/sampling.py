"""The formulas of sampling and search."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ops.sampling import beam_search, greedy, top_k, top_p
from ..ops.softmax import temperature_softmax
from ._formula import Inputs, formula

CHAPTER = "sampling-and-search"
TEXTS = {
    "K": "K",  # what is kept, not a key
    "kept": r"i \in K",
    "after": "p'_i",
    "whole": r"\log p(y)",
    "p()": r"p(#1 \mid #2)",
}


def two_scores(rng: np.random.Generator) -> Inputs:
    """Scores, two of the tokens, and a temperature that is not one."""
    x, (i, j) = rng.normal(size=5), rng.permutation(5)[:2]
    return {
        "x": x,
        "i": i,
        "j": j,
        "t": rng.uniform(0.3, 0.8),
        "p_i": lambda t: temperature_softmax(x, t)[i],
        "p_j": lambda t: temperature_softmax(x, t)[j],
    }


def a_nucleus(rng: np.random.Generator) -> Inputs:
    """A law in falling order, and the order in which top_p gets its tokens.

    Token i crosses the mass m, or is the first that is cut.
    """
    p = np.sort(rng.dirichlet(np.full(6, 2.0)))[::-1]
    crosses = int(rng.integers(1, 4))
    m = p[:crosses].sum() + rng.uniform(0.2, 0.8) * p[crosses]
    order = rng.permutation(6)
    left = np.empty(6)
    left[order] = top_p(p[order], m)
    return {
        "p": p,
        "m": m,
        "i": crosses + int(rng.integers(2)),
        "left": left,
        "K": np.flatnonzero(left),
    }


def a_kept_token(rng: np.random.Generator) -> Inputs:
    """The same, for a token that is kept."""
    drawn = a_nucleus(rng)
    return {**drawn, "i": len(drawn["K"]) - 1}


def a_found_text(rng: np.random.Generator) -> Inputs:
    """A law of texts whose every step depends on all before, and what greedy finds."""
    laws: dict[tuple[int, ...], Any] = {}

    def law(so_far: tuple[int, ...]) -> Any:
        if so_far not in laws:
            laws[so_far] = rng.dirichlet(np.full(4, 0.8))
        return np.log(laws[so_far])

    y = greedy(law, length=3).tokens
    return {"law": law, "y": y, "p": lambda token, before: laws[tuple(before)][token]}


formula(
    "temperature_of_a_ratio",
    "log(p_i(t) / p_j(t))",
    "(x[i] - x[j]) / t",
    chapter=CHAPTER,
    draw=two_scores,
    operations=("temperature_softmax",),
    checks=("temperature_log_odds", "temperature_one_is_softmax"),
)
formula(
    "nucleus",
    "sum(p[j] for j in range(i)) < m",
    defines="kept",
    relation=r"\iff",
    symbols=TEXTS,
    chapter=CHAPTER,
    draw=a_nucleus,
    function=lambda left, i: left[i] > 0,
    operations=("top_p",),
    checks=("top_p_keeps_the_crossing_token", "top_p_is_the_fewest"),
)
formula(
    "what_is_left_is_shared",
    "p[i] / sum(p[j] for j in K)",
    defines="after",
    where=r" \quad (i \in K)",
    symbols=TEXTS,
    chapter=CHAPTER,
    draw=a_kept_token,
    function=lambda p, K, i: top_k(p, len(K))[i],
    operations=("top_p", "top_k"),
    checks=("top_p_is_the_fewest", "top_k_has_the_most_mass"),
)
formula(
    "probability_of_a_text",
    "sum(log(p(y[i], y[:i])) for i in range(len(y)))",
    defines="whole",
    symbols=TEXTS,
    chapter=CHAPTER,
    draw=a_found_text,
    function=lambda law, y: beam_search(law, length=len(y), beam=1)[0].logprob,
    operations=("greedy", "beam_search"),
    checks=(
        "beam_finds_what_greedy_misses",
        "beam_of_one_is_greedy",
        "beam_wide_enough_is_exhaustive",
    ),
)
