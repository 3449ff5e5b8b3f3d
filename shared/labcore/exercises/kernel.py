"""Exercises on kernel attention."""

from __future__ import annotations

import numpy as np

from ..identities import FAULTS, recorded
from ..ops.kernel import kernel_attention
from . import exercise


@exercise(
    "kernel/second_read",
    hint="Weigh each value by the product of its key with the query, and divide.",
    because="The products are 2 and 3, so the read is (2 * 6 + 3 * 1) / 5.",
)
def _() -> float:
    fq, fk = np.array([[1.0, 1.0], [2.0, 1.0]]), np.array([[1.0, 0.0], [0.0, 3.0]])
    return float(kernel_attention(fq, fk, np.array([[6.0], [1.0]]))[1, 0])


@exercise(
    "kernel/crossover",
    hint=(
        "For n tokens, pairwise costs n n (d_k + d_v), the recurrence "
        "n (2 d_k d_v + d_k)."
    ),
    because="32 n must exceed 2 * 256 + 16 = 528, and 528 / 32 is 16.5.",
)
def _() -> int:
    from ..figures.kernel import multiplications  # needs matplotlib: only when asked

    n = 0
    while True:
        n += 1
        fq, fk, v = np.ones((3, n, 16))
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
