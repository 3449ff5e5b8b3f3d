"""Exercises on sampling and search."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..identities import recorded
from ..ops.sampling import top_p
from ..ops.softmax import temperature_softmax
from . import exercise


@exercise(
    "sampling/order",
    hint="At temperature t probabilities are raised to the power 1/t and divided by "
    "their sum.",
    because="Sharpened, the first two have the mass. Cut first, the third had stayed.",
    p=[0.4, 0.3, 0.2, 0.1],
    t=0.5,
    mass=0.8,
)
def _(p: Sequence[float], t: float, mass: float) -> float:
    return float(top_p(temperature_softmax(np.log(p), t), mass)[0])


@exercise(
    "sampling/blind",
    hint="Its p is in falling order already, and its mass is between two of its sums.",
    because="Sorted, one row, nothing reached exactly, a mass that is neither 0 nor 1.",
)
def _() -> set[str]:
    return {
        id
        for id, row in recorded()["faults"].items()
        if row["operation"] == "top_p"
        and "top_p_keeps_the_crossing_token" in row["green"]
    }


@exercise(
    "sampling/twice",
    hint="After the first cut all that is left is divided by its sum, and so grows.",
    because="Grown by the division, the larger ones reach the mass alone.",
    p=[0.6, 0.25, 0.1, 0.05],
    mass=0.88,
)
def _(p: Sequence[float], mass: float) -> list[int]:
    once = top_p(p, mass)
    return [int(np.count_nonzero(left)) for left in (once, top_p(once, mass))]
