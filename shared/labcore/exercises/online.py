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
        "Rescale the first chunk by exp(0 - log 3) = 1/3. Then add masses, add "
        "weighted sums, and divide once, at the end."
    ),
    because="The second chunk weighs three times as much as the first.",
)
def _() -> float:
    first = summarize(np.array([0.0]), np.array([[1.0]]))
    second = summarize(np.array([np.log(3.0)]), np.array([[5.0]]))
    return float(finish(merge(first, second))[0])


@exercise(
    "softmax/temperature_for_odds",
    hint="The log of the odds is the difference of the scores over the temperature.",
    because="2 / log 3: a temperature divides every difference.",
)
def _() -> float:
    low, high = 0.1, 10.0
    while high - low > 1e-12:
        middle = (low + high) / 2
        p = temperature_softmax(np.array([2.0, 0.0]), middle)
        low, high = (middle, high) if p[0] > 3 * p[1] else (low, middle)
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
