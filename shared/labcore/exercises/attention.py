"""Exercises on attention and caching."""

from __future__ import annotations

import numpy as np

from ..identities import recorded
from ..ops.attention import attention, causal_mask, kv_head_of
from . import exercise


@exercise(
    "attention/two_keys",
    hint=(
        "Each score is the product of query and key, divided by the root of four. The "
        "weight of the first key is the logistic of the difference."
    ),
    because="The scores are 1 and 0, and 1 / (1 + 1/e) is the first weight.",
)
def _() -> float:
    q = np.array([[2.0, 0.0, 0.0, 0.0]])
    k = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
    return float(attention(q, k, np.array([[1.0], [0.0]]))[0, 0])


@exercise(
    "attention/decode_scores",
    hint="Step t reads the 1000 keys of the prompt and t new ones, its own included.",
    because="100 times 1000, and the sum of 1 to 100.",
)
def _() -> int:
    return sum(int(causal_mask(1, 1000 + t).sum()) for t in range(1, 101))


@exercise(
    "attention/kv_head",
    hint="Thirty-two heads on eight are groups of four neighbours.",
    because="13 divided by 4, rounded down. Dealt out in turn it would be another.",
)
def _() -> int:
    return int(kv_head_of(32, 8)[13])


@exercise(
    "attention/blind",
    hint=(
        "Put each fault of causal_mask in place with lab.try_it and look for "
        "future_perturbation among the checks that hold."
    ),
    because=(
        "The check has as many queries as keys and no window, and it changes keys and "
        "values only."
    ),
)
def _() -> set[str]:
    return {
        id
        for id, row in recorded()["faults"].items()
        if row["operation"] == "causal_mask" and "future_perturbation" not in row["red"]
    }
