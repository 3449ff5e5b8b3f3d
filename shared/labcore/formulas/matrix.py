"""The rule of the fault matrix. A floor is drawn where the rule turns."""

from __future__ import annotations

import numpy as np

from ..identities import CHECKS, Verdict
from ..matrix import _found, _tolerance
from ._formula import Inputs, formula

CHAPTER = "break-everything"


def a_floor(rng: np.random.Generator) -> Inputs:
    """A floor a little below a power of ten, and a tolerance."""
    return {
        "f": rng.uniform(0.992, 0.999) * 10.0 ** int(rng.integers(-2, 2)),
        "t": rng.uniform(0.5, 2.0),
    }


def smallest_gap(t: float) -> float:
    """The smallest error that counts as broken beyond doubt, by bisection."""
    check = next(check for check in CHECKS.values() if check.kind == "equal")
    low, high = 0.0, 1e6
    while high - low > 1e-11 * high:
        middle = (low + high) / 2
        broken = _found(check, Verdict(check, False, middle, middle, 0, 1), t)
        low, high = (low, middle) if broken == "broken" else (middle, high)
    return high


formula(
    "tolerance_of_a_check",
    "10 ** ceil(log10(100 * f))",
    defines="t",
    chapter=CHAPTER,
    draw=a_floor,
    function=lambda f: _tolerance("equal", f),
    tools=("matrix.measure",),
)
formula(
    "gap_of_a_check",
    "100 * t",
    defines="g",
    relation=r"\ge",
    chapter=CHAPTER,
    draw=a_floor,
    function=smallest_gap,
    tools=("matrix.measure",),
)
