"""What a number of successes is worth: estimators, paired tests, calibration."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from . import _validate as must
from ._op import Array, op

Strata = Mapping[Any, tuple[int, int]]  # name -> (successes, trials)


class PairedTable(NamedTuple):
    """How two systems did on the same tasks."""

    both: int
    only_a: int
    only_b: int
    neither: int

    @property
    def discordant(self) -> int:
        """Tasks on which they differ: all that a paired test looks at."""
        return self.only_a + self.only_b


class SimpsonTable(NamedTuple):
    """Rates of A and B by stratum and in total; reversal: the total contradicts."""

    a: dict[Any, float]
    b: dict[Any, float]
    total_a: float
    total_b: float
    reversal: bool


class SelectiveAccuracy(NamedTuple):
    """Accuracy on what was answered, the share answered, the number right."""

    accuracy: float
    coverage: float
    correct: int


class ErrorRates(NamedTuple):
    """The two ways to be wrong, each with a denominator of its own."""

    false_positive: float
    false_negative: float


class CalibrationBin(NamedTuple):
    """Forecasts of one range: how many, their mean, how often the event came."""

    size: int
    mean_forecast: float
    frequency: float


# ---- Samples and repeated trials ----------------------------------------------------


def _samples(n: int, c: int, k: int) -> None:
    must.count(1, n=n, k=k)
    must.count(0, c=c)
    if c > n:
        raise ValueError(f"c must be at most n = {n} samples, got {c}")
    if k > n:
        raise ValueError(f"k must be at most n = {n} samples, got {k}")


def _trials(p: Array, k: int) -> None:
    must.within(0.0, 1.0, p=p)
    must.count(1, k=k)


@op(_samples)
def pass_at_k(n: int, c: int, k: int) -> float:
    r"""Of n samples c are right: the chance that k of them, drawn, hold a right one.

    $$\widehat{\text{pass@}k} = 1 - \binom{n-c}{k} \Big/ \binom{n}{k}$$

    Drawn without putting back, which makes it unbiased for 1 - (1 - p)^k: the plug-in
    1 - (1 - c/n)^k is not. Whole numbers throughout, rounded once.
    Raises ValueError for k > n: there is no unbiased estimate of it.
    Source: Chen et al. 2021 (Codex).

    >>> pass_at_k(10, 3, 5)
    0.9166666666666666
    """
    ways = math.comb(n, k)
    return (ways - math.comb(n - c, k)) / ways


@op(_trials, floats="p")
def pass_at_k_iid(p: Array, k: int) -> Array:
    r"""The chance that at least one of k independent trials succeeds.

    $$1 - (1 - p)^k$$

    p: chance of one trial, a number or an array of them. For a small p it keeps its
    digits, as it is computed from the logarithm of 1 - p.

    >>> round(float(pass_at_k_iid(0.8, 3)), 6)
    0.992
    """
    with np.errstate(divide="ignore"):
        return -np.expm1(k * np.log1p(-np.asarray(p)))


@op(_trials, floats="p")
def pass_all_k(p: Array, k: int) -> Array:
    """The chance that all of k independent trials succeed: p^k.

    The same p and k as in :func:`pass_at_k_iid`, the opposite question: what a user
    sees who needs it to work every time.

    >>> round(float(pass_all_k(0.8, 3)), 6)
    0.512
    """
    return np.asarray(p) ** k


def _outcomes(**outcomes: Any) -> None:
    for name, x in outcomes.items():
        x = np.asarray(x)
        if x.dtype.kind not in "biuf" or not np.isin(x, (0, 1)).all():
            raise ValueError(f"{name} must be outcomes, 0 or 1, got {x!r:.60}")
        if x.size == 0:
            raise ValueError(f"{name} is empty: shape {x.shape}")


def _voters(correct: Any) -> None:
    _outcomes(correct=correct)
    if np.ndim(correct) != 2:
        raise ValueError(
            f"correct must be (tasks, voters), got shape {np.shape(correct)}"
        )


@op(_voters)
def all_wrong_rate(correct: Any) -> float:
    """The share of tasks that every voter gets wrong: no vote can save them.

    correct: (tasks, voters) outcomes. Voters that fail together fail as often as one
    of them; that the rates multiply is true of independent voters only.

    >>> all_wrong_rate([[1, 1], [0, 0], [1, 0], [1, 1]])
    0.25
    """
    return float(np.mean(~np.asarray(correct, bool).any(axis=1)))


# ---- Two systems on the same tasks --------------------------------------------------


def _pairs(a: Any, b: Any) -> None:
    _outcomes(a=a, b=b)
    must.same("tasks", a=np.size(a), b=np.size(b))


def _discordant(b: int, c: int) -> None:
    must.count(0, b=b, c=c)


@op(_pairs)
def paired_table(a: Any, b: Any) -> PairedTable:
    """How often two systems were right on the same task, both, one or none.

    a, b: (tasks,) outcomes in the same order. The totals of each alone do not tell the
    four cells.

    >>> paired_table([1, 1, 0], [1, 0, 1])
    PairedTable(both=1, only_a=1, only_b=1, neither=0)
    """
    right_a, right_b = np.asarray(a, bool), np.asarray(b, bool)
    return PairedTable(
        int(np.sum(right_a & right_b)),
        int(np.sum(right_a & ~right_b)),
        int(np.sum(~right_a & right_b)),
        int(np.sum(~right_a & ~right_b)),
    )


@op(_discordant)
def mcnemar_exact(b: int, c: int) -> float:
    r"""Two-sided p-value for two systems that differ on b + c tasks.

    $$\min\left(1,\ 2 \sum_{i=0}^{\min(b, c)} \binom{b+c}{i} 2^{-(b+c)}\right)$$

    b, c: tasks that only the first, only the second got right. If they are equally
    good, each such task is a fair coin; tasks on which they agree say nothing. The
    doubled tail counts the middle twice where b = c, hence the cap. Without a
    discordant task it is 1. Source: McNemar 1947, in its exact form.

    >>> mcnemar_exact(2, 6), mcnemar_exact(5, 5)
    (0.2890625, 1.0)
    """
    n = b + c
    tail = sum(math.comb(n, i) for i in range(min(b, c) + 1))
    return min(1.0, 2 * tail / 2**n)


def _strata(a: Strata, b: Strata) -> None:
    if not a or list(a) != list(b) and set(a) != set(b):
        raise ValueError(f"a and b need the same strata, got {list(a)} and {list(b)}")
    for name, strata in (("a", a), ("b", b)):
        for stratum, (successes, trials) in strata.items():
            must.count(1, **{f"trials of {name} in {stratum!r}": trials})
            must.count(0, **{f"successes of {name} in {stratum!r}": successes})
            if successes > trials:
                raise ValueError(
                    f"{name} has more successes than trials in {stratum!r}: "
                    f"{successes} of {trials}"
                )


@op(_strata)
def simpson_table(a: Strata, b: Strata) -> SimpsonTable:
    """Rates by stratum and in total, and whether the total turns the order around.

    a, b: stratum -> (successes, trials). The total divides all successes by all
    trials: it is not the mean of the rates, and weighs the strata as each side happened
    to have them. reversal: one side is strictly ahead in every stratum and strictly
    behind in total. Sources: Simpson 1951; Charig et al. 1986 for the kidney stones.

    >>> simpson_table({"easy": (9, 10), "hard": (20, 100)},
    ...               {"easy": (80, 100), "hard": (1, 10)}).reversal
    True
    """
    rates_a = {name: successes / trials for name, (successes, trials) in a.items()}
    rates_b = {name: successes / trials for name, (successes, trials) in b.items()}
    total_a, total_b = _total(a), _total(b)
    ahead = [rates_a[name] - rates_b[name] for name in a]
    in_total = total_a - total_b
    reversal = (all(x > 0 for x in ahead) and in_total < 0) or (
        all(x < 0 for x in ahead) and in_total > 0
    )
    return SimpsonTable(rates_a, rates_b, total_a, total_b, reversal)


def _total(strata: Strata) -> float:
    successes = sum(won for won, _ in strata.values())
    return successes / sum(trials for _, trials in strata.values())


# ---- Forecasts, abstaining, two kinds of error --------------------------------------


def _forecasts(p: Array, y: Array) -> None:
    must.axes(1, p=np.asarray(p), y=np.asarray(y))
    must.same("forecasts", p=p.shape[-1], y=y.shape[-1])
    must.batch(p=p.shape[:-1], y=y.shape[:-1])
    if p.shape[-1] == 0:
        raise ValueError("p is empty: there is no forecast")
    must.within(0.0, 1.0, p=p)
    _outcomes(y=np.real(y))


def _binned(p: Array, y: Array, *, bins: int = 10) -> None:
    _forecasts(np.asarray(p, float), np.asarray(y, float))
    must.count(1, bins=bins)


@op(_forecasts, floats="p y")
def brier(p: Array, y: Array) -> Array:
    r"""Mean square distance of forecasts from what happened.

    $$\frac1n \sum_i (p_i - y_i)^2$$

    p: (..., n) forecast chances; y: (..., n) outcomes, 0 or 1. Returns (...), from 0
    to 1; the forecast that always says one half has 0.25. Brier's own score sums over
    both classes and is twice this. Source: Brier 1950.

    >>> round(float(brier([0.8, 0.8, 0.8, 0.8], [1, 1, 0, 0])), 6)
    0.34
    """
    return np.mean((p - y) ** 2, axis=-1)


@op(_binned)
def calibration_table(p: Array, y: Array, *, bins: int = 10) -> list[CalibrationBin]:
    """What a reliability diagram draws: forecasts beside frequencies, by range.

    p, y: (n,) as :func:`brier`. Ranges of equal width; a forecast on the border
    belongs to the upper one, and 1 to the last. Empty ranges are left out.
    Source: Guo et al. 2017.

    >>> calibration_table([0.8, 0.8, 0.1], [1, 0, 0], bins=2)[1]
    CalibrationBin(size=2, mean_forecast=0.8, frequency=0.5)
    """
    forecasts, events = np.asarray(p, float), np.asarray(y, float)
    place = np.minimum((forecasts * bins).astype(int), bins - 1)
    table = []
    for i in np.unique(place):
        here = place == i
        table.append(
            CalibrationBin(
                int(here.sum()),
                float(forecasts[here].mean()),
                float(events[here].mean()),
            )
        )
    return table


def _abstaining(correct: Any, answered: Any) -> None:
    _outcomes(correct=correct, answered=answered)
    must.same("tasks", correct=np.size(correct), answered=np.size(answered))
    if not np.any(answered):
        raise ValueError("answered holds no task: accuracy is undefined without one")


@op(_abstaining)
def selective_accuracy(correct: Any, answered: Any) -> SelectiveAccuracy:
    """Accuracy of a system that may decline, with what it declined.

    correct: (tasks,) whether its answer is right, or would be; answered: (tasks,)
    whether it gave it. Accuracy is of the answered tasks, coverage of all: either
    alone can be raised at will. Raises ValueError where nothing was answered.

    >>> selective_accuracy([1, 1, 0, 1], [1, 1, 0, 0])
    SelectiveAccuracy(accuracy=1.0, coverage=0.5, correct=2)
    """
    given = np.asarray(answered, bool)
    right = int(np.sum(np.asarray(correct, bool) & given))
    answers = int(given.sum())
    return SelectiveAccuracy(right / answers, answers / given.size, right)


def _classified(predicted: Any, actual: Any) -> None:
    _outcomes(predicted=predicted, actual=actual)
    must.same("cases", predicted=np.size(predicted), actual=np.size(actual))
    for wanted in (0, 1):
        if not np.any(np.asarray(actual) == wanted):
            raise ValueError(f"actual has no {wanted}: that rate has no denominator")


@op(_classified)
def error_rates(predicted: Any, actual: Any) -> ErrorRates:
    """False positives among the negative, false negatives among the positive.

    predicted, actual: (cases,) 0 or 1. Each rate divides by the cases of its own class,
    so that neither moves with the mix. Raises ValueError where a class is missing.

    >>> error_rates([1, 0, 0, 0], [0, 0, 1, 1])
    ErrorRates(false_positive=0.5, false_negative=1.0)
    """
    said, true = np.asarray(predicted, bool), np.asarray(actual, bool)
    return ErrorRates(float(said[~true].mean()), float((~said[true]).mean()))
