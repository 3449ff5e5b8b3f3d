"""Exercises on evaluation."""

from __future__ import annotations

from itertools import count
from math import comb

import numpy as np

from ..identities import recorded
from ..ops.evaluation import mcnemar_exact, pass_at_k, pass_at_k_iid
from . import exercise


@exercise(
    "evaluation/drawn",
    hint="How many pairs of samples are there, and how many hold no right one?",
    because="{missing} of the {draws} pairs miss. The plug-in says {plug_in}.",
    tells=lambda n, c, k: {
        "missing": comb(n - c, k),
        "draws": comb(n, k),
        "plug_in": pass_at_k_iid(c / n, k),
    },
    n=5,
    c=2,
    k=2,
)
def _(n: int, c: int, k: int) -> float:
    return pass_at_k(n, c, k)


@exercise(
    "evaluation/against_one",
    hint="With one loss among n tasks p is 2 (1 + n)/2^n. Raise n until it is small.",
    because="It is {p} with that many wins, and still {before} with one fewer.",
    tells=lambda level: {
        "p": mcnemar_exact(1, least_wins(level)),
        "before": mcnemar_exact(1, least_wins(level) - 1),
    },
    level=0.05,
)
def _(level: float) -> int:
    return least_wins(level)


def least_wins(level: float) -> int:
    """How many wins against one loss bring the p-value below a level."""
    return next(wins for wins in count(1) if mcnemar_exact(1, wins) < level)


@exercise(
    "evaluation/two_kinds",
    hint="Ask each kind of task by itself: more trials help neither of them.",
    because="1 on one half, 0 on the other. The formula at the mean gives {at_mean}.",
    tells=lambda trials: {"at_mean": pass_at_k_iid(0.5, trials)},
    trials=3,
)
def _(trials: int) -> float:
    return float(np.mean(pass_at_k_iid(np.array([1.0, 0.0]), trials)))


@exercise(
    "evaluation/blind",
    hint="Which wrong versions still return {p} for two against six?",
    tells=lambda: {"p": mcnemar_exact(2, 6)},
    because="The smaller count comes first in it, and twice its tail is below 1.",
)
def _() -> set[str]:
    return {
        id
        for id, row in recorded()["faults"].items()
        if row["operation"] == "mcnemar_exact" and "mcnemar_worked" in row["green"]
    }
