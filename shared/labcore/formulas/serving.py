"""The formulas of memory, quantization and serving."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ops.compress import dequantize, quantize_symmetric
from ..ops.serving import (
    critical_path,
    kv_cache_bytes,
    littles_law,
    mm1,
    queue_trace,
)
from ._formula import Inputs, formula

CHAPTER = "memory-quantization-serving"
SYMBOLS = {
    "rate": r"\lambda",
    "code": "q",
    "back": r"\hat{x}",
    "lowest": r"q_{\min}",
    "highest": r"q_{\max}",
    "round()": r"\left\lfloor #1 \right\rceil",
    "clip()": r"\mathrm{clip}\left(#1,\, #2,\, #3\right)",
}


def a_shape(rng: np.random.Generator) -> Inputs:
    """Layers, sequences, tokens, heads, width and bytes, all of them different."""
    ell, m, n, h, d, b = (int(x) for x in rng.permutation(np.arange(2, 8)))
    return {"ell": ell, "m": m, "n": n, "h": h, "d": d, "b": b}


def a_busy_server(rng: np.random.Generator) -> Inputs:
    """Arrivals and services a second, below capacity."""
    mu = float(rng.uniform(2, 9))
    rate = mu * float(rng.uniform(0.3, 0.8))
    return {"rate": rate, "mu": mu, "rho": rate / mu}


def some_visits(rng: np.random.Generator) -> Inputs:
    """What was watched of a queue that begins and ends empty."""
    came = rng.uniform(0, 9, size=6)
    left = came + rng.uniform(1, 5, size=6)
    L, rate, W = queue_trace(came.tolist(), left.tolist(), horizon=15.0)
    return {"L": L, "rate": rate, "W": W}


def some_numbers(rng: np.random.Generator) -> Inputs:
    """Numbers inside and beyond a range that is not symmetric."""
    given: Inputs = {"s": 0.3, "lowest": -4, "highest": 6}
    x = np.concatenate([rng.uniform(-1, 1.5, size=6), [-3.0, 3.0]])
    code = quantize_symmetric(x, 0.3, qmin=-4, qmax=6)
    return {**given, "x": x, "code": code}


def a_plan(rng: np.random.Generator) -> Inputs:
    """Five tasks, the last of which waits for three."""
    t, P = rng.uniform(1, 5, size=5), [[], [], [0], [0, 1], [1, 2, 3]]
    f = critical_path(dict(enumerate(t)), dict(enumerate(P))).finish
    return {"t": t, "P": P, "f": f, "i": 4}


def _finish(t: Any, P: Any, i: int) -> float:
    return critical_path(dict(enumerate(t)), dict(enumerate(P))).finish[i]


formula(
    "cache_bytes",
    "2 * ell * m * n * h * d * b",
    defines="B",
    chapter=CHAPTER,
    draw=a_shape,
    function=lambda ell, m, n, h, d, b: kv_cache_bytes(
        layers=ell, batch=m, tokens=n, kv_heads=h, head_dim=d, bytes_per_element=b
    ),
    operations=("kv_cache_bytes",),
    checks=("kv_cache_units", "kv_cache_allocated"),
)
formula(
    "littles_law",
    "L",
    "rate * W",
    symbols=SYMBOLS,
    chapter=CHAPTER,
    draw=some_visits,
    function=lambda rate, W: littles_law(rate, W),
    operations=("littles_law",),
    checks=("littles_law_measured",),
)
formula(
    "server_load",
    "rate / mu",
    defines="rho",
    where=" < 1",
    symbols=SYMBOLS,
    chapter=CHAPTER,
    draw=a_busy_server,
    function=lambda rate, mu: mm1(rate, mu).rho,
    operations=("mm1",),
    checks=("mm1_refuses_overload",),
)
formula(
    "wait_in_line",
    "rho / (mu - rate)",
    defines="W_q",
    symbols={**SYMBOLS, "q": "q"},
    chapter=CHAPTER,
    draw=a_busy_server,
    function=lambda rate, mu: mm1(rate, mu).Wq,
    operations=("mm1",),
    checks=("mm1_balance",),
)
formula(
    "quantize",
    "clip(round(x / s), lowest, highest)",
    defines="code",
    symbols=SYMBOLS,
    functions={"clip": np.clip, "round": np.rint},
    chapter=CHAPTER,
    draw=some_numbers,
    function=lambda x, s, lowest, highest: quantize_symmetric(
        x, s, qmin=lowest, qmax=highest
    ),
    operations=("quantize_symmetric",),
    checks=("quantize_to_the_nearest", "quantize_clips"),
)
formula(
    "dequantize",
    "s * code",
    defines="back",
    symbols=SYMBOLS,
    chapter=CHAPTER,
    draw=some_numbers,
    function=lambda code, s: dequantize(code, s),
    operations=("dequantize",),
    checks=("quantize_within_half_a_step",),
)
formula(
    "earliest_finish",
    "t[i] + max(f[j] for j in P[i])",
    defines="f[i]",
    chapter=CHAPTER,
    draw=a_plan,
    function=_finish,
    operations=("critical_path",),
    checks=("critical_path_all_chains", "critical_path_slack"),
)
