"""Exercises on evaluation."""

from __future__ import annotations

from itertools import count

import numpy as np

from ..identities import recorded
from ..ops.evaluation import mcnemar_exact, pass_at_k, pass_at_k_iid
from . import exercise


@exercise(
    "evaluation/drawn",
    hint="How many pairs of samples are there, and how many hold no right one?",
    because="3 of the 10 pairs miss. The plug-in says 1 - 0.6^2 = 0.64.",
    n=5,
    c=2,
    k=2,
)
def _(n: int, c: int, k: int) -> float:
    return pass_at_k(n, c, k)


@exercise(
    "evaluation/against_one",
    hint="With one loss among n tasks p is 2 (1 + n)/2^n. Raise n until it is small.",
    because="p = 2 (1 + 9)/2^9 = 0.039; with seven wins it is still 0.0703.",
    level=0.05,
)
def _(level: float) -> int:
    return next(wins for wins in count(1) if mcnemar_exact(1, wins) < level)


@exercise(
    "evaluation/two_kinds",
    hint="Ask each kind of task by itself: more trials help neither of them.",
    because="1 on one half, 0 on the other. The formula at the mean gives 0.875.",
    trials=3,
)
def _(trials: int) -> float:
    return float(np.mean(pass_at_k_iid(np.array([1.0, 0.0]), trials)))


@exercise(
    "evaluation/blind",
    hint="Which wrong versions still return 37/128 for two against six?",
    because="The smaller count comes first in it, and twice its tail is below 1.",
)
def _() -> set[str]:
    return {
        id
        for id, row in recorded()["faults"].items()
        if row["operation"] == "mcnemar_exact" and "mcnemar_worked" in row["green"]
    }
