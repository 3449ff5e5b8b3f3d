"""The formulas of evaluation."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ops.evaluation import (
    brier,
    calibration_table,
    mcnemar_exact,
    pass_all_k,
    pass_at_k,
    pass_at_k_iid,
    simpson_table,
)
from ._formula import Inputs, formula

CHAPTER = "evaluation"
EVENTS = {
    "k": "k",  # a number here, and no key
    "any_one": r"\text{any}",
    "every_one": r"\text{all}",
    "estimate": r"\widehat{\text{pass@}k}",
}


def repeated_trials(rng: np.random.Generator) -> Inputs:
    """The chance of one trial, and how many there are."""
    return {"p": rng.uniform(0.2, 0.8), "k": int(rng.integers(2, 6))}


formula(
    "any_of_k_trials",
    "1 - (1 - p) ** k",
    defines="any_one",
    symbols=EVENTS,
    chapter=CHAPTER,
    draw=repeated_trials,
    function=lambda p, k: pass_at_k_iid(p, k),
    operations=("pass_at_k_iid",),
    checks=("pass_iid_by_outcomes", "pass_events", "pass_iid_small_chance"),
)
formula(
    "all_of_k_trials",
    "p ** k",
    defines="every_one",
    symbols=EVENTS,
    chapter=CHAPTER,
    draw=repeated_trials,
    function=lambda p, k: pass_all_k(p, k),
    operations=("pass_all_k",),
    checks=("pass_iid_by_outcomes", "pass_events"),
)


def some_samples(rng: np.random.Generator) -> Inputs:
    """Of n samples c are right, and k of them are drawn; a draw may miss all c."""
    n, c = int(rng.integers(8, 12)), int(rng.integers(2, 5))
    return {"n": n, "c": c, "k": int(rng.integers(2, 5))}


formula(
    "pass_at_k_estimated",
    "1 - binom(n - c, k) / binom(n, k)",
    defines="estimate",
    symbols=EVENTS,
    chapter=CHAPTER,
    draw=some_samples,
    function=pass_at_k,
    operations=("pass_at_k",),
    checks=("pass_at_k_by_drawing", "pass_at_k_unbiased", "pass_at_n_is_certain"),
)


def differing_tasks(rng: np.random.Generator) -> Inputs:
    """Tasks that only one of two systems solves, now and then equally many."""
    b = int(rng.integers(2, 6))
    c = b + int(rng.choice([0, 3]))
    return {"b": b, "c": c, "n": b + c, "m": min(b, c)}


formula(
    "exact_paired_test",
    "min(1, 2 ** (1 - n) * sum(binom(n, i) for i in range(m + 1)))",
    defines="P",
    chapter=CHAPTER,
    draw=differing_tasks,
    function=mcnemar_exact,
    operations=("mcnemar_exact",),
    checks=(
        "mcnemar_by_patterns",
        "mcnemar_worked",
        "mcnemar_symmetric",
        "mcnemar_even_is_one",
    ),
)


def some_strata(rng: np.random.Generator) -> Inputs:
    """Successes and trials by stratum, of unequal sizes."""
    n = [int(size) for size in rng.permutation([4, 9, 25])]
    x = [int(rng.integers(1, size)) for size in n]
    return {"x": x, "n": n, "N": sum(n)}


formula(
    "total_is_a_weighted_mean",
    "sum(x[s] for s in range(len(x))) / sum(n[s] for s in range(len(n)))",
    "sum(n[s] / N * (x[s] / n[s]) for s in range(len(n)))",
    chapter=CHAPTER,
    draw=some_strata,
    function=lambda x, n: (
        simpson_table(
            dict(enumerate(zip(x, n, strict=True))), {s: (1, 1) for s in range(len(n))}
        ).total_a
    ),
    operations=("simpson_table",),
    checks=("simpson_weighted_mean", "simpson_worked", "simpson_reversal_told"),
)

SCORES = {
    "V": "V",  # and no value
    "rate": r"\bar y",  # of all forecasts, or with an index of a group
    "size": "n",
}


def some_forecasts(rng: np.random.Generator) -> Inputs:
    """Three forecasts, each made several times, and what came."""
    said = rng.choice([0.15, 0.45, 0.85], size=20)
    came = rng.integers(0, 2, size=20)
    said[:3], came[:4] = (0.15, 0.45, 0.85), (0, 1, 0, 1)
    table = calibration_table(said, came)
    frequency = {round(t.mean_forecast, 9): t.frequency for t in table}
    return {
        "said": said,
        "came": came,
        "by_group": np.array([frequency[p] for p in said]),
        "table": table,
        "n": len(said),
    }


def all_forecasts(rng: np.random.Generator) -> Inputs:
    given = some_forecasts(rng)
    said, came, table, n = (given[name] for name in ("said", "came", "table", "n"))
    rate = came.mean()
    return {
        "p": said,
        "y": came,
        "n": n,
        "R": sum(t.size / n * (t.mean_forecast - t.frequency) ** 2 for t in table),
        "V": sum(t.size / n * (t.frequency - rate) ** 2 for t in table),
        "rate": rate,
    }


def groups(rng: np.random.Generator) -> Inputs:
    given = some_forecasts(rng)
    size, p, rate = zip(*given["table"], strict=True)
    return {
        **given,
        "size": size,
        "p": p,
        "rate": rate,
        "overall": given["came"].mean(),
    }


def better_by(said: Any, by_group: Any, came: Any) -> Any:
    """What a score gains when the frequencies of the groups are forecast instead."""
    return brier(said, came) - brier(by_group, came)


formula(
    "brier_adds_up",
    "1 / n * sum((p[i] - y[i]) ** 2 for i in range(len(p)))",
    "R - V + rate * (1 - rate)",
    symbols=SCORES,
    chapter=CHAPTER,
    draw=all_forecasts,
    function=lambda p, y: brier(p, y),
    operations=("brier", "calibration_table"),
    checks=("brier_decomposition", "brier_worked", "brier_half"),
)
formula(
    "brier_reliability",
    "sum(size[g] / n * (p[g] - rate[g]) ** 2 for g in range(len(size)))",
    defines="R",
    symbols=SCORES,
    chapter=CHAPTER,
    draw=groups,
    function=better_by,
    operations=("brier", "calibration_table"),
    checks=("brier_decomposition",),
)
formula(
    "brier_resolution",
    "sum(size[g] / n * (rate[g] - overall) ** 2 for g in range(len(size)))",
    defines="V",
    symbols={**SCORES, "overall": r"\bar y"},
    chapter=CHAPTER,
    draw=groups,
    function=lambda said, by_group, came: better_by(
        np.full_like(said, came.mean()), by_group, came
    ),
    operations=("brier", "calibration_table"),
    checks=("brier_decomposition",),
)
