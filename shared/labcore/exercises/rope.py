"""Exercises on RoPE."""

from __future__ import annotations

import numpy as np

from ..identities import FAULTS, recorded
from ..ops.rope import rope, rope_frequencies
from . import exercise


@exercise(
    "rope/score",
    hint="The offset is 1 - 3 = -2, and R turns (0, 1) to (-sin, cos) of its angle.",
    because="The score is -sin(-2), that is sin(2).",
)
def _() -> float:
    return float(rope([1.0, 0.0], 3) @ rope([0.0, 1.0], 1))


@exercise(
    "rope/full_turn",
    hint="The slowest plane has i = d/2 - 1, and a full turn is 2 pi.",
    because="2 pi times 10000 to the power 126/128.",
)
def _() -> float:
    return float(2 * np.pi / rope_frequencies(128, 10000.0)[-1])


@exercise(
    "rope/order",
    hint="Entry i and entry i + 4 of the new list must have been neighbours.",
    because="The even entries first, then the odd ones.",
)
def _() -> list[int]:
    entries = np.eye(8)  # turn each entry alone: where it goes tells its plane
    neighbours = rope(entries, np.ones(8))
    halves = rope(entries, np.ones(8), layout="half")
    return [
        next(
            old
            for old in range(8)
            if np.isclose(neighbours[old, old], halves[new, new])
            and np.isclose(neighbours[old].sum(), halves[new].sum())
        )
        for new in range(8)
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
