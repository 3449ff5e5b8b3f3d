"""Exercises on attention and caching."""

from __future__ import annotations

from typing import Any

from ..identities import recorded
from ..ops.attention import attention_weights, causal_mask, kv_head_of
from . import exercise


@exercise(
    "attention/two_keys",
    hint=(
        "Each score is the product of query and key, divided by the root of the key "
        "width. The weight of the first key is the logistic of the difference."
    ),
    because="The scores are 1 and 0, and 1 / (1 + 1/e) is the first weight.",
    q=[2, 0, 0, 0],
    k=[[1, 0, 0, 0], [0, 1, 0, 0]],
)
def _(q: Any, k: Any) -> float:
    return float(attention_weights([q], k)[0, 0])


@exercise(
    "attention/decode_scores",
    hint="Step t reads the keys of the prompt and t new ones, its own included.",
    because="decoded times cached, and the sum of 1 to decoded.",
    cached=1000,
    decoded=100,
)
def _(cached: int, decoded: int) -> int:
    return sum(int(causal_mask(1, cached + t + 1).sum()) for t in range(decoded))


@exercise(
    "attention/kv_head",
    hint="Each group holds H_q / H_kv neighbours.",
    because="h_q over the size of a group, rounded down. Dealt out in turn: another.",
    H_q=32,
    H_kv=8,
    h_q=13,
)
def _(H_q: int, H_kv: int, h_q: int) -> int:
    return int(kv_head_of(H_q, H_kv)[h_q])


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
