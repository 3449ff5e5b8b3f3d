"""Exercises on speculative decoding."""

from __future__ import annotations

from typing import Any

from ..identities import recorded
from ..ops.speculative import expected_tokens, speculative_residual
from . import exercise


@exercise(
    "speculative/residual",
    hint="Where does the target want more than the draft gives? Make that sum to one.",
    because="It is the surplus of the target, divided by the sum of that surplus.",
    p=[0.4, 0.3, 0.2, 0.1],
    q=[0.1, 0.2, 0.3, 0.4],
)
def _(p: list[float], q: list[float]) -> Any:
    return speculative_residual(p, q)


@exercise(
    "speculative/drafts",
    hint="Add the powers of alpha until the sum is enough. The first needs no draft.",
    because="The powers from 0 to that number make the first sum that is enough.",
    alpha=0.7,
    wanted=3,
)
def _(alpha: float, wanted: float) -> int:
    gamma = 0
    while expected_tokens(alpha, gamma) < wanted:
        gamma += 1
    return gamma


@exercise(
    "speculative/greedy",
    hint="Put each one in place with lab.broken, and run the check inside the block.",
    because=(
        "A certain target leaves one token to accept and one to redraw, so that most "
        "rules agree on it."
    ),
)
def _() -> set[str]:
    return {
        id
        for id, row in recorded()["faults"].items()
        if row["operation"] == "speculative_decode"
        and "speculative_greedy_target" in row["green"]
    }
