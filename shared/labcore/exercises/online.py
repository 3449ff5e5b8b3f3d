"""Exercises on softmax summaries and temperature."""

from __future__ import annotations

import numpy as np

from ..identities import recorded
from ..ops.online import finish, merge, summarize
from ..ops.softmax import temperature_softmax
from . import exercise


@exercise(
    "softmax/merge_by_hand",
    hint=(
        "Rescale the first chunk by exp(s_a - log r). Then add masses, add weighted "
        "sums, and divide once, at the end."
    ),
    because="The second chunk weighs r times as much as the first.",
    s_a=0,
    v_a=1,
    r=3,
    v_b=5,
)
def _(s_a: float, v_a: float, r: float, v_b: float) -> float:
    first = summarize([s_a], [[v_a]])
    second = summarize([np.log(r)], [[v_b]])
    return float(finish(merge(first, second))[0])


@exercise(
    "softmax/temperature_for_odds",
    hint="The log of the odds is the difference of the scores over the temperature.",
    because="The difference over log r: a temperature divides every difference.",
    x=[2, 0],
    r=3,
)
def _(x: list[float], r: float) -> float:
    low, high = 0.1, 10.0
    while high - low > 1e-12:
        middle = (low + high) / 2
        p = temperature_softmax(x, middle)
        low, high = (middle, high) if p[0] > r * p[1] else (low, middle)
    return low


@exercise(
    "softmax/blind",
    hint=(
        "Put each fault of merge in place with lab.try_it and see whether "
        "merge_associative is among the broken ones."
    ),
    because="Associative is not the same as right: a wrong merge may be associative.",
)
def _() -> set[str]:
    return {
        id
        for id, row in recorded()["faults"].items()
        if row["operation"] == "merge" and "merge_associative" not in row["red"]
    }
