"""The formulas of the chapters on practice: types, tests of gradients, and cost."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..counting import multiplications
from ..identities import compare
from ..ops.attention import attention
from ..ops.gradients import attention_gradients, finite_difference
from ..ops.serving import roofline
from ..ops.speculative import expected_tokens
from ._formula import Inputs, formula

TYPES = "from-float64-to-half"
GRADIENTS = "testing-gradients"
COST = "what-it-costs"


# ---- From float64 to the dtype you train in -----------------------------------------


def two_results(rng: np.random.Generator) -> Inputs:
    """What was got and what was wanted; the largest number wanted is negative."""
    w = rng.uniform(0.5, 2.0, size=5)
    w[rng.integers(5)] = -3.0
    return {"g": w + rng.normal(size=5), "w": w}


formula(
    "error_of_a_check",
    "max(abs(g[i] - w[i]) for i in range(len(g)))"
    " / max(abs(w[i]) for i in range(len(w)))",
    defines="e",
    chapter=TYPES,
    draw=two_results,
    function=lambda g, w: compare(g, w)[0],
    tools=("identities.compare",),
)


# ---- Testing gradients --------------------------------------------------------------


def a_cubic(rng: np.random.Generator) -> Inputs:
    """A cubic at a place, with its slope and third derivative there."""
    a, b, x = (float(z) for z in rng.uniform(0.5, 2.0, size=3))
    h = float(rng.uniform(0.2, 0.5))

    def f(t: Any) -> Any:
        return a * t**3 + b * t**2

    return {
        "f": f,
        "x": x,
        "h": h,
        "D": float(finite_difference(f, np.array(x), h=h)),
        "slope": 3 * a * x**2 + 2 * b * x,
        "third": 6 * a,
    }


SLOPES = {"slope": "f'(x)", "third": "f'''(x)", "u": "u"}

formula(
    "central_difference",
    "(f(x + h) - f(x - h)) / (2 * h)",
    defines="D",
    chapter=GRADIENTS,
    draw=a_cubic,
    function=lambda f, x, h: finite_difference(f, np.array(x), h=h),
    operations=("finite_difference",),
    checks=("central_difference_of_a_parabola",),
)
formula(
    "error_of_a_difference",
    "D - slope",
    "h ** 2 / 6 * third",
    relation=r"\approx",
    symbols=SLOPES,
    chapter=GRADIENTS,
    draw=a_cubic,
    operations=("finite_difference",),
    checks=("central_difference_of_a_parabola",),
)


def a_read(rng: np.random.Generator) -> Inputs:
    """A loss of attention as a function of one query, its gradient, a direction."""
    x, u = rng.normal(size=(2, 3))
    k, v, grad = (rng.normal(size=s) for s in ((4, 3), (4, 2), (1, 2)))

    def f(q: Any) -> Any:
        return (attention(q[None], k, v) * grad).sum()

    g = attention_gradients(x[None], k, v, grad).dq[0]
    return {"f": f, "x": x, "u": u, "g": g, "i": 1j, "h": 1e-30}


formula(
    "slope_along_a_direction",
    "g.T @ u",
    "imag(f(x + i * h * u)) / h",
    symbols={**SLOPES, "imag()": r"\mathrm{Im}\, #1"},
    functions={"imag": np.imag},
    chapter=GRADIENTS,
    draw=a_read,
    operations=("attention_gradients", "attention"),
    checks=("attention_slope_along_a_direction", "attention_gradient_worked"),
)


# ---- What it costs ------------------------------------------------------------------


def a_sequence(rng: np.random.Generator) -> Inputs:
    """Tokens with features of one width and values of another, in full chunks."""
    d_k, d_v = (int(x) for x in 2 + rng.permutation(3)[:2])
    C = int(rng.integers(2, 5))
    n = 3 * C
    return {
        "n": n,
        "d_k": d_k,
        "d_v": d_v,
        "C": C,
        "tokens": (
            rng.uniform(0.5, 1.0, size=(n, d_k)),
            rng.uniform(0.5, 1.0, size=(n, d_k)),
            rng.normal(size=(n, d_v)),
        ),
    }


def in_chunks(rng: np.random.Generator) -> Inputs:
    """The same, and what the recurrence takes for a token."""
    given = a_sequence(rng)
    times = multiplications("kernel_attention_recurrent", *given["tokens"])
    return {**given, "recurrent": times / given["n"]}


COUNTS = {
    "direct": r"M_{\text{direct}}",
    "recurrent": r"M_{\text{recurrent}}",
    "chunked": r"M_{\text{chunked}}",
}

formula(
    "multiplications_direct",
    "n * (d_k + d_v)",
    defines="direct",
    symbols=COUNTS,
    chapter=COST,
    draw=a_sequence,
    function=lambda tokens, n: multiplications("kernel_attention", *tokens) / n,
    operations=("kernel_attention",),
    checks=("normalized_kernel_recurrence",),
)
formula(
    "multiplications_recurrent",
    "2 * d_k * d_v + d_k",
    defines="recurrent",
    symbols=COUNTS,
    chapter=COST,
    draw=a_sequence,
    function=lambda tokens, n: (
        multiplications("kernel_attention_recurrent", *tokens) / n
    ),
    operations=("kernel_attention_recurrent",),
    checks=("normalized_kernel_recurrence",),
)
formula(
    "multiplications_in_chunks",
    "C * (d_k + d_v) + recurrent",
    defines="chunked",
    symbols=COUNTS,
    chapter=COST,
    draw=in_chunks,
    function=lambda tokens, n, C: (
        multiplications("kernel_attention_chunked", *tokens, chunk=C) / n
    ),
    operations=("kernel_attention_chunked",),
    checks=("kernel_chunked",),
)


def some_work(rng: np.random.Generator) -> Inputs:
    """Operations and bytes; either may bound the time."""
    F, N, P, W = (float(x) for x in rng.uniform(1.0, 9.0, size=4))
    return {"F": F, "N": N, "P": P, "W": W}


formula(
    "least_time",
    "max(F / P, N / W)",
    defines="t",
    relation=r"\ge",
    chapter=COST,
    draw=some_work,
    function=lambda F, N, P, W: (
        roofline(F, N, peak_flops=P, bandwidth=W).lower_bound_seconds
    ),
    operations=("roofline",),
    checks=("roofline_units", "roofline_two_sides"),
)


def a_draft(rng: np.random.Generator) -> Inputs:
    """A draft's rate of acceptance, its length, and its cost beside the target's."""
    return {
        "alpha": float(rng.uniform(0.5, 0.9)),
        "gamma": int(rng.integers(2, 6)),
        "c": float(rng.uniform(0.05, 0.2)),
    }


formula(
    "passes_for_a_token",
    "(1 + c * gamma) / sum(alpha ** i for i in range(gamma + 1))",
    defines="R",
    chapter=COST,
    draw=a_draft,
    function=lambda alpha, gamma, c: (1 + c * gamma) / expected_tokens(alpha, gamma),
    operations=("expected_tokens",),
    checks=("expected_tokens_enumerated", "block_law_mean_length"),
)
