"""Exercises on writes and decay."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..identities import recorded
from ..ops.delta import delta_write, gated_write
from . import exercise


@exercise(
    "writes/overshoot",
    hint="Read with the key itself: k S' = (1 - beta k.k) k S + beta (k.k) v.",
    because="A key of length 3 multiplies what it read by 1 - 9 beta.",
    k=[3, 0],
    S=[[1], [0]],
    v=[0],
    beta=0.5,
)
def _(k: Any, S: Any, v: Any, beta: float) -> float:
    return float((k @ delta_write(S, k, v, beta))[0])


@exercise(
    "writes/half_life",
    hint="Nothing is written, so each step only multiplies: solve alpha^n = 1/2 for n.",
    because="log(1/2) / log(0.9), rounded up to whole steps.",
    retention=0.9,
    left=0.5,
)
def _(retention: float, left: float) -> int:
    S, steps = np.array([[1.0]]), 0
    while S[0, 0] >= left:
        S, steps = gated_write(S, [1.0], [9.0], 0.0, retention), steps + 1
    return steps


@exercise(
    "writes/blind",
    hint="Put each wrong version in place with lab.broken and run the scalar example.",
    because="With one key channel and one value channel there is nothing to mix up.",
)
def _() -> set[str]:
    return {
        id
        for id, row in recorded()["faults"].items()
        if row["operation"] == "gated_write"
        and "gated_decay_then_correct" in row["green"]
    }
