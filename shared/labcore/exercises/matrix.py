"""Exercises on checks that can fail."""

from __future__ import annotations

import math

from ..identities import recorded
from ..matrix import ROOM
from . import exercise


@exercise(
    "break/tolerance",
    hint="{room} times the floor, then up to the next power of ten.",
    because="It is the power of ten above {room} floors.",
    tells=lambda floor: {"room": ROOM},
    floor=3.2e-14,
)
def _(floor: float) -> float:
    return 10.0 ** math.ceil(math.log10(ROOM * floor))


@exercise(
    "break/smallest_gap",
    hint="A mistake must open at least {room} times what is allowed.",
    because="The answer before this one is allowed, and {room} times that is open.",
    tells=lambda floor: {"room": ROOM},
    floor=3.2e-14,
)
def _(floor: float) -> float:
    return ROOM * 10.0 ** math.ceil(math.log10(ROOM * floor))


@exercise(
    "break/blind_to_the_mask",
    hint="Loop over lab.FAULTS, put each fault of causal_mask in place, run the check.",
    because="None of them lets a token read a later one, so the future stays hidden.",
)
def _() -> set[str]:
    return {
        id
        for id, row in recorded()["faults"].items()
        if row["operation"] == "causal_mask" and "future_perturbation" not in row["red"]
    }
