"""Exercises on writes and decay."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..identities import FAULTS
from ..lab import broken
from ..ops.delta import delta_write, gated_write
from . import exercise


@exercise(
    "writes/overshoot",
    hint="Read with the key itself: k S' = (1 - beta k.k) k S + beta (k.k) v.",
    because="A key of length {length} multiplies what it read by 1 - {square} beta.",
    tells=lambda k, **_: {"length": np.linalg.norm(k), "square": np.dot(k, k)},
    k=[3, 0],
    S=[[1], [0]],
    v=[0],
    beta=0.5,
)
def _(k: Any, S: Any, v: Any, beta: float) -> float:
    return float((k @ delta_write(S, k, v, beta))[0])


@exercise(
    "writes/half_life",
    hint="Nothing is written, so each step only multiplies: alpha^n = {left}.",
    because="log({left}) / log({retention}), rounded up to whole steps.",
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
    hint="What does the key read before the write? Put each wrong version in place.",
    because="The key reads the value already. Nothing is off, so the state is a "
    "fixed point: how much of the error is written, and where, does not show. Nor does "
    "a missing check of beta, where beta is in range.",
    S=[[1, 2], [0, 1]],
    k=[3, 4],
    v=[3, 10],
    beta=0.5,
)
def _(S: Any, k: Any, v: Any, beta: float) -> set[str]:
    right, blind = delta_write(S, k, v, beta), set()
    for fault in FAULTS.values():
        if fault.operation == "delta_write":
            with broken(fault.id):
                if np.allclose(delta_write(S, k, v, beta), right):
                    blind.add(fault.id)
    return blind
