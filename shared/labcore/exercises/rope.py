"""Exercises on RoPE."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..identities import FAULTS, recorded
from ..ops.rope import rope, rope_frequencies, rope_rotation
from . import exercise


@exercise(
    "rope/score",
    hint="The offset is j - i, and R turns (0, 1) to (-sin, cos) of its angle.",
    because="The score is minus the sine of (j - i) omega, and the offset is negative.",
    omega=1,
    q=[1, 0],
    i=3,
    k=[0, 1],
    j=1,
)
def _(omega: float, q: Any, i: int, k: Any, j: int) -> float:
    return float((rope_rotation(i * omega) @ q) @ (rope_rotation(j * omega) @ k))


@exercise(
    "rope/full_turn",
    hint="The slowest plane has i = d/2 - 1, and a full turn is 2 pi.",
    because="2 pi times the base to the power (d - 2) / d.",
    d=128,
    base=10000,
)
def _(d: int, base: float) -> float:
    return float(2 * np.pi / rope_frequencies(d, base)[-1])


@exercise(
    "rope/order",
    hint="An entry of the new list and that half a list further were neighbours.",
    because="The even entries first, then the odd ones.",
    entries=8,
)
def _(entries: int) -> list[int]:
    alone = np.eye(entries)  # turn each entry alone: where it goes tells its plane
    neighbours = rope(alone, np.ones(entries))
    halves = rope(alone, np.ones(entries), layout="half")
    return [
        next(
            old
            for old in range(entries)
            if np.isclose(neighbours[old, old], halves[new, new])
            and np.isclose(neighbours[old].sum(), halves[new].sum())
        )
        for new in range(entries)
    ]


@exercise(
    "rope/relative",
    hint="Run lab.try_it on each fault of rope, and look at its red list.",
    because="Each of them keeps the offsets, or errs where this check does not look.",
)
def _() -> set[str]:
    return {
        id
        for id, row in recorded()["faults"].items()
        if row["operation"] == "rope"
        and FAULTS[id].chapter == "rope"
        and "rope_relative_scores" in row["green"]
    }
