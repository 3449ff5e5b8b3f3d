"""Exercises on speculative decoding."""

from __future__ import annotations

from typing import Any

from ..identities import recorded
from ..ops.speculative import expected_tokens, speculative_residual
from . import exercise


@exercise(
    "speculative/residual",
    hint="Where does the target want more than the draft gives? Make that sum to one.",
    because="The surplus is (.3, .1, 0, 0), and it is divided by its sum .4.",
)
def _() -> Any:
    return speculative_residual([0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4])


@exercise(
    "speculative/drafts",
    hint="Add 1 + .7 + .49 and so on until the sum is 3. The 1 needs no draft.",
    because="The sum of .7 to the powers 0 to 6 is the first above 3.",
)
def _() -> int:
    gamma = 0
    while expected_tokens(0.7, gamma) < 3:
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
