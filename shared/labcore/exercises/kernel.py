"""Exercises on kernel attention."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..counting import multiplications
from ..identities import FAULTS, recorded
from ..ops.kernel import kernel_attention
from . import exercise


@exercise(
    "kernel/second_read",
    hint="Weigh each value by the product of its key with the query, and divide.",
    because="Each value is weighed by its product, and the weights are divided out.",
    fq=[2, 1],
    fk=[[1, 0], [0, 3]],
    v=[6, 1],
)
def _(fq: list[float], fk: Any, v: list[float]) -> float:
    one_channel = np.array(v)[:, None]
    return float(kernel_attention([fq] * len(v), fk, one_channel, causal=False)[0, 0])


@exercise(
    "kernel/crossover",
    hint=(
        "For n tokens, pairwise costs n n (d_k + d_v), the recurrence "
        "n (2 d_k d_v + d_k)."
    ),
    because="n (d_k + d_v) must exceed 2 d_k d_v + d_k, and n is a whole number.",
    d_k=16,
    d_v=16,
)
def _(d_k: int, d_v: int) -> int:
    n = 0
    while True:
        n += 1
        fq, fk, v = np.ones((n, d_k)), np.ones((n, d_k)), np.ones((n, d_v))
        pairwise = multiplications("kernel_attention", fq, fk, v)
        if multiplications("kernel_attention_recurrent", fq, fk, v) < pairwise:
            return n


@exercise(
    "kernel/constant",
    hint="Run lab.try_it on each fault of kernel_attention, and look at its red list.",
    because=(
        "Whatever the weights are, they sum to one: which weights they are, values "
        "that are all the same cannot tell."
    ),
)
def _() -> set[str]:
    return {
        id
        for id, row in recorded()["faults"].items()
        if row["operation"] == "kernel_attention"
        and FAULTS[id].chapter == "kernel-attention"
        and "kernel_constant_values" in row["green"]
    }
