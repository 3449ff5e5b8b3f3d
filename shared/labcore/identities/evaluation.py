"""Evaluation: what must hold, and how it breaks."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np

from ..ops.evaluation import (
    all_wrong_rate,
    brier,
    calibration_table,
    error_rates,
    mcnemar_exact,
    paired_table,
    pass_all_k,
    pass_at_k,
    pass_at_k_iid,
    selective_accuracy,
    simpson_table,
)
from ._check import Inputs, Rng, nothing
from .worked import evaluation as chapter

EASY_AND_HARD = (
    {"easy": (9, 10), "hard": (20, 100)},
    {"easy": (80, 100), "hard": (1, 10)},
)


# ---- What is drawn ----------------------------------------------------------------


def some_samples(rng: Rng, size: int) -> Inputs:
    """n samples of which some, and not all, are right; at least two are drawn."""
    n = size + 4
    c = int(rng.integers(1, n - 2))
    c -= 2 * c == n  # not one half
    return {"n": n, "c": c, "k": int(rng.integers(2, n - c + 1))}


def some_trials(rng: Rng, size: int) -> Inputs:
    """Chances of one trial, and the number of trials."""
    return {"p": rng.uniform(0.1, 0.9, size=2), "k": size + 1}


def some_votes(rng: Rng, size: int) -> Inputs:
    """Voters that err together: each task is easy or hard for all of them."""
    hard = np.arange(4 * size) % 4 == 0
    return {"hard": rng.permutation(hard), "voters": size + 2}


def some_discordant(rng: Rng, size: int) -> Inputs:
    """Two unequal counts whose tail is not all of the distribution."""
    b = int(rng.integers(0, size + 1))
    return {"b": b, "c": b + int(rng.integers(2, 5))}


def some_pairs(rng: Rng, size: int) -> Inputs:
    """Outcomes of two systems: all four cells are there, in unequal numbers."""
    cells = [(1, 1)] * (size + 3) + [(1, 0)] * size + [(0, 1)] * (size + 1)
    cells += [(0, 0)] * (size + 2)
    a, b = rng.permutation(cells).T
    return {"a": a, "b": b}


def some_strata(rng: Rng, size: int) -> Inputs:
    """Strata in which the sides had unequal numbers of trials."""
    trials_a, trials_b = rng.integers(10, 20, size=(2, size + 1))
    trials_a[0] += 100
    trials_b[-1] += 100
    return {
        "a": {f"s{i}": (int(n) // (i + 2), int(n)) for i, n in enumerate(trials_a)},
        "b": {f"s{i}": (int(n) // (i + 3), int(n)) for i, n in enumerate(trials_b)},
    }


def some_forecasts(rng: Rng, size: int) -> Inputs:
    """Forecasts of few different values, so that each can be told apart in a bin."""
    values = np.array([0.05, 0.32, 0.68, 0.85])
    p = rng.permutation(np.repeat(values, size + 1))
    y = (rng.uniform(size=p.shape) < p[::-1]).astype(float)
    y[:2] = 0.0, 1.0
    return {"p": p, "y": y}


def some_abstaining(rng: Rng, size: int) -> Inputs:
    """Some tasks are declined, and some of those would have been right."""
    n = 4 * size
    answered = np.arange(n) % 4 != 0
    correct = np.arange(n) % 4 != 1
    order = rng.permutation(n)
    return {"correct": correct[order], "answered": answered[order]}


def some_classified(rng: Rng, size: int) -> Inputs:
    """Cases of two classes in unequal numbers, each with errors of its own."""
    predicted = [1] * size + [0] * (3 * size + 1) + [1] * (size + 2) + [0]
    actual = [0] * (4 * size + 1) + [1] * (size + 3)
    order = rng.permutation(len(actual))
    return {
        "predicted": np.array(predicted)[order],
        "actual": np.array(actual)[order],
    }


# ---- Samples and trials: what must hold ---------------------------------------------


@chapter.check(
    "pass_at_k_by_drawing",
    "The estimate is the share of all draws of k that hold a right sample.",
    draw=some_samples,
)
def _(n, c, k):
    draws = list(combinations([1] * c + [0] * (n - c), k))
    return pass_at_k(n, c, k), sum(map(any, draws)) / len(draws)


@chapter.check(
    "pass_at_k_unbiased",
    "Its mean over all numbers of right samples is 1 - (1 - p)^k.",
    draw=some_trials,
)
def _(p, k):
    n = k + 3
    chance = [math.comb(n, c) * p**c * (1 - p) ** (n - c) for c in range(n + 1)]
    got = sum(chance[c] * pass_at_k(n, c, k) for c in range(n + 1))
    return got, pass_at_k_iid(p, k)


@chapter.check(
    "pass_at_n_is_certain",
    "All n samples drawn hold the right one, if there is one.",
    draw=some_samples,
    kind="exact",
)
def _(n, c, k):
    return [pass_at_k(n, c, n), pass_at_k(n, 0, n)], [1.0, 0.0]


@chapter.check(
    "pass_at_1_is_the_share",
    "One sample drawn is right as often as samples are.",
    draw=some_samples,
)
def _(n, c, k):
    return pass_at_k(n, c, 1), c / n


@chapter.check(
    "pass_events",
    "With 80 percent: any of three 0.992, all of three 0.512, from six in ten 29/30.",
    draw=nothing,
    kind="value",
)
def _():
    # 1 - (1/5)^3 = 124/125; (4/5)^3 = 64/125; 1 - C(4, 3) / C(10, 3) = 1 - 4/120.
    got = [float(pass_at_k_iid(0.8, 3)), float(pass_all_k(0.8, 3)), pass_at_k(10, 6, 3)]
    want = [Fraction(124, 125), Fraction(64, 125), Fraction(29, 30)]
    return np.array(got), np.array(want, float)


@chapter.check(
    "pass_iid_by_outcomes",
    "Any and all of k trials, summed over every pattern of outcomes.",
    draw=some_trials,
)
def _(p, k):
    anyone = everyone = 0.0
    for pattern in product((0, 1), repeat=k):
        chance = math.prod(p if hit else 1 - p for hit in pattern)
        anyone = anyone + chance * any(pattern)
        everyone = everyone + chance * all(pattern)
    got = np.array([pass_at_k_iid(p, k), pass_all_k(p, k)])
    return got, np.array([anyone, everyone])


@chapter.check(
    "pass_iid_small_chance",
    "A chance of 1e-17 in each of a thousand trials is 1e-14, not 0.",
    draw=nothing,
    kind="value",
)
def _():
    # 1 - (1 - p)^k = k p - k (k - 1)/2 p^2 + ...; the second term is 5e-29.
    return float(pass_at_k_iid(1e-17, 1000)) * 1e14, 1.0


@chapter.check(
    "pass_refuses_k_above_n",
    "No unbiased estimate of five draws exists for two samples.",
    draw=nothing,
    kind="refuses",
)
def _():
    return lambda: pass_at_k(2, 0, 5), "k must"


@chapter.check(
    "voters_that_err_together",
    "Three voters that err on the same fifth of the tasks all err on a fifth.",
    draw=nothing,
    kind="order",
)
def _():
    # 1 task of 5: 0.2. Independent voters would all err on 0.2^3 = 0.008.
    together = [[1, 1, 1]] * 4 + [[0, 0, 0]]
    return all_wrong_rate(together), float(pass_all_k(0.2, 3))


@chapter.check(
    "voters_independent",
    "Over every pattern of outcomes once, the rates multiply.",
    draw=some_votes,
)
def _(hard, voters):
    patterns = list(product((0, 1), repeat=voters))
    return all_wrong_rate(patterns), 0.5**voters


@chapter.check(
    "voters_by_counting",
    "One voter that is right saves the task.",
    draw=some_votes,
)
def _(hard, voters):
    votes = np.repeat(~hard[:, None], voters, axis=1)
    saved = votes.copy()
    saved[np.flatnonzero(hard)[0], -1] = True
    wrong = hard.sum()
    got = [all_wrong_rate(votes), all_wrong_rate(saved)]
    return np.array(got), np.array([wrong, wrong - 1]) / hard.size


# ---- Two systems: what must hold ----------------------------------------------------


@chapter.check(
    "mcnemar_worked",
    "Two against six: p = 37/128.",
    draw=nothing,
    kind="value",
)
def _():
    # Of 2^8 patterns 1 + 8 + 28 have at most two of one kind; doubled, 74/256.
    return mcnemar_exact(2, 6), 37 / 128


@chapter.check(
    "mcnemar_by_patterns",
    "The share of all coin patterns at least as uneven, on either side.",
    draw=some_discordant,
)
def _(b, c):
    patterns = list(product((0, 1), repeat=b + c))
    uneven = [abs(2 * sum(x) - b - c) >= abs(b - c) for x in patterns]
    return mcnemar_exact(b, c), sum(uneven) / len(patterns)


@chapter.check(
    "mcnemar_even_is_one",
    "Equal counts, and none at all, are no evidence: p = 1.",
    draw=some_discordant,
    kind="exact",
)
def _(b, c):
    return [mcnemar_exact(c, c), mcnemar_exact(0, 0)], [1.0, 1.0]


@chapter.check(
    "mcnemar_symmetric",
    "It does not matter which system is called the first.",
    draw=some_discordant,
    kind="exact",
)
def _(b, c):
    return mcnemar_exact(b, c), mcnemar_exact(c, b)


@chapter.check(
    "paired_marginals",
    "Twelve and sixteen of twenty: the totals of a table of 10, 2, 6 and 2.",
    draw=nothing,
    kind="exact",
)
def _():
    # A's outcomes: ten and two right, eight wrong; B's: ten right, two wrong, six
    # right, two wrong.
    a = [1] * 12 + [0] * 8
    b = [1] * 10 + [0] * 2 + [1] * 6 + [0] * 2
    table = paired_table(a, b)
    totals = table.both + table.only_a, table.both + table.only_b, sum(table)
    return (tuple(table), totals, table.discordant), ((10, 2, 6, 2), (12, 16, 20), 8)


@chapter.check(
    "paired_by_counting",
    "Each task falls into one of four cells.",
    draw=some_pairs,
    kind="exact",
)
def _(a, b):
    tasks = list(zip(a.tolist(), b.tolist(), strict=True))
    cells = [(1, 1), (1, 0), (0, 1), (0, 0)]
    return tuple(paired_table(a, b)), tuple(tasks.count(cell) for cell in cells)


@chapter.check(
    "pairing_matters",
    "The same totals in another pairing are other evidence.",
    draw=nothing,
    kind="differs",
)
def _():
    # A is right on 12 and B on 16 of 20. Nested: 0 against 4, p = 2/16. Spread: 4
    # against 8, p = 2 (1 + 12 + 66 + 220 + 495)/4096.
    a, nested = [1] * 12 + [0] * 8, [1] * 16 + [0] * 4
    spread = [0] * 4 + [1] * 16
    p = [
        mcnemar_exact(t.only_a, t.only_b)
        for t in (paired_table(a, nested), paired_table(a, spread))
    ]
    return p[0], p[1]


@chapter.check(
    "simpson_worked",
    "A is ahead on the easy and on the hard, and B in total.",
    draw=nothing,
    kind="order",
)
def _():
    t = simpson_table(*EASY_AND_HARD)
    ahead = [t.a["easy"], t.a["hard"], t.total_b]
    return np.array(ahead), np.array([t.b["easy"], t.b["hard"], t.total_a])


@chapter.check(
    "simpson_rates",
    "Rates 9/10, 1/5 and 29/110 against 4/5, 1/10 and 81/110.",
    draw=nothing,
    kind="value",
)
def _():
    t = simpson_table(*EASY_AND_HARD)
    got = [*t.a.values(), t.total_a, *t.b.values(), t.total_b]
    want = [9 / 10, 1 / 5, 29 / 110, 4 / 5, 1 / 10, 81 / 110]
    return np.array(got), np.array(want)


@chapter.check(
    "simpson_weighted_mean",
    "A total is the mean of the rates, weighted by the trials of its own side.",
    draw=some_strata,
)
def _(a, b):
    def weighted(rates, strata):
        trials = [n for _, n in strata.values()]
        return np.average(list(rates.values()), weights=trials)

    t = simpson_table(a, b)
    want = np.array([weighted(t.a, a), weighted(t.b, b)])
    return np.array([t.total_a, t.total_b]), want


@chapter.check(
    "simpson_reversal_told",
    "A reversal is told whichever side it favours, and not where nothing turns.",
    draw=nothing,
    kind="exact",
)
def _():
    a, b = EASY_AND_HARD
    one = {"s": (9, 10), "l": (5, 10)}, {"s": (8, 10), "l": (4, 10)}  # 14 to 12
    tied = {"s": (8, 10), "l": (20, 100)}, {"s": (80, 100), "l": (1, 10)}
    mixed = {"s": (9, 10), "l": (1, 10)}, {"s": (1, 10), "l": (8, 10)}  # 10 to 9
    level = {"s": (2, 2), "l": (1, 4)}, {"s": (3, 4), "l": (0, 2)}  # both 3 of 6
    pairs = [
        (a, b),
        (b, a),
        one,
        one[::-1],
        tied,
        tied[::-1],
        mixed,
        level,
        level[::-1],
    ]
    got = [simpson_table(*pair).reversal for pair in pairs]
    return got, [True, True, *[False] * 7]


@chapter.check(
    "simpson_strata_by_name",
    "The strata of the two sides go by name, not by place.",
    draw=some_strata,
    kind="exact",
)
def _(a, b):
    turned = dict(reversed(b.items()))
    return tuple(simpson_table(a, turned)), tuple(simpson_table(a, b))


# ---- Forecasts and errors: what must hold -------------------------------------------


@chapter.check(
    "brier_worked",
    "Four forecasts of 0.8, two of them right: 0.34.",
    draw=nothing,
    kind="value",
)
def _():
    # (2 * 0.2^2 + 2 * 0.8^2) / 4 = (0.08 + 1.28) / 4.
    return float(brier([0.8] * 4, [1, 1, 0, 0])), 17 / 50


@chapter.check(
    "brier_decomposition",
    "Brier is reliability less resolution plus the uncertainty of the outcomes.",
    draw=some_forecasts,
)
def _(p, y):
    # Forecasts of one bin are equal, so nothing is lost inside it (Murphy 1973).
    base, n = y.mean(), len(y)
    table = calibration_table(p, y, bins=4)
    reliability = sum(t.size * (t.mean_forecast - t.frequency) ** 2 for t in table) / n
    resolution = sum(t.size * (t.frequency - base) ** 2 for t in table) / n
    return brier(p, y), np.float64(reliability - resolution + base * (1 - base))


@chapter.check(
    "brier_half",
    "Always one half scores a quarter; the outcome itself scores 0, its opposite 1.",
    draw=some_forecasts,
)
def _(p, y):
    rows = np.stack([np.full_like(y, 0.5), y, 1 - y])
    return brier(rows, y), np.array([0.25, 0.0, 1.0])


@chapter.check(
    "calibration_counts_all",
    "Sizes add up, and means weighted by them are those of all forecasts.",
    draw=some_forecasts,
)
def _(p, y):
    table = calibration_table(p, y, bins=4)
    size = np.array([float(t.size) for t in table])
    sums = size @ np.array([[t.mean_forecast, t.frequency] for t in table])
    return (
        (size.sum(), sums),
        (np.float64(len(p)), np.array([p.sum(), y.sum()])),
    )


@chapter.check(
    "calibration_borders",
    "A forecast on a border counts with the upper range, and 1 with the last.",
    draw=nothing,
    kind="exact",
)
def _():
    table = calibration_table([0.0, 0.25, 0.5, 0.75, 1.0], [0, 0, 1, 1, 1], bins=4)
    return [t.size for t in table], [1, 1, 1, 2]


@chapter.check(
    "calibration_no_empty_range",
    "A range without a forecast has no dot.",
    draw=nothing,
    kind="exact",
)
def _():
    # Of four ranges the first and the last hold a forecast, the middle ones none.
    table = calibration_table([0.125, 0.875, 0.875], [0, 1, 0], bins=4)
    return [tuple(t) for t in table], [(1, 0.125, 0.0), (2, 0.875, 0.5)]


@chapter.check(
    "selective_worked",
    "Answering half: 90 percent right instead of 80, and 45 right answers, not 80.",
    draw=nothing,
    kind="order",
)
def _():
    all_of_it = selective_accuracy([1] * 80 + [0] * 20, [1] * 100)
    half = selective_accuracy([1] * 45 + [0] * 55, [1] * 50 + [0] * 50)
    return (
        np.array([half.accuracy, all_of_it.coverage, all_of_it.correct]),
        np.array([all_of_it.accuracy, half.coverage, half.correct]),
    )


@chapter.check(
    "selective_by_counting",
    "Right among the answered, answered among all.",
    draw=some_abstaining,
)
def _(correct, answered):
    tasks = list(zip(correct, answered, strict=True))
    right = [bool(c) for c, given in tasks if given]
    want = [sum(right) / len(right), len(right) / len(tasks), float(sum(right))]
    return np.array(selective_accuracy(correct, answered), float), np.array(want)


@chapter.check(
    "selective_refuses_silence",
    "A system that never answers has no accuracy.",
    draw=nothing,
    kind="refuses",
)
def _():
    return lambda: selective_accuracy([1, 1], [0, 0]), "answered"


@chapter.check(
    "error_rates_worked",
    "Five of 100 harmless cases blocked, one of ten harmful ones let through.",
    draw=nothing,
    kind="value",
)
def _():
    predicted = [1] * 5 + [0] * 95 + [1] * 9 + [0]
    got = error_rates(predicted, [0] * 100 + [1] * 10)
    return np.array(got), np.array([1 / 20, 1 / 10])


@chapter.check(
    "error_rates_ignore_mix",
    "More cases of one class, of the same kind, move neither rate.",
    draw=some_classified,
)
def _(predicted, actual):
    again = np.concatenate([predicted, np.repeat(predicted[actual == 0], 3)])
    mixed = np.concatenate([actual, np.zeros(len(again) - len(actual))])
    return np.array(error_rates(again, mixed)), np.array(error_rates(predicted, actual))


@chapter.check(
    "error_rates_mirror",
    "With the classes' names exchanged the two rates exchange theirs.",
    draw=some_classified,
)
def _(predicted, actual):
    mirrored = error_rates(1 - predicted, 1 - actual)
    return np.array(mirrored), np.array(error_rates(predicted, actual))[::-1]


# ---- How it breaks ------------------------------------------------------------------


@chapter.fault(
    "pass_plug_in",
    "one minus the share of failures to the power k",
    operation="pass_at_k",
    story=(
        "The estimate that looks right and is biased; the paper that introduced pass@k "
        "warns of it, and it is still found in evaluation scripts."
    ),
    made_for="pass_at_k_unbiased",
    stays_green="pass_at_1_is_the_share",
)
def _(n, c, k):
    return 1 - (1 - c / n) ** k


@chapter.fault(
    "pass_counts_all_k",
    "the chance that all k drawn are right",
    operation="pass_at_k",
    story="The other event under the same letters.",
    made_for="pass_at_k_by_drawing",
    stays_green="pass_at_1_is_the_share",
)
def _(n, c, k):
    return math.comb(c, k) / math.comb(n, k)


@chapter.fault(
    "pass_smoothed",
    "one right and one wrong sample are added",
    operation="pass_at_k",
    story="Laplace's rule, to avoid a score of 0: sensible for p, biased for pass@k.",
    made_for="pass_at_1_is_the_share",
    stays_green="pass_refuses_k_above_n",
)
def _(n, c, k):
    return pass_at_k(n + 2, c + 1, k)


@chapter.fault(
    "pass_takes_k_above_n",
    "more draws than samples succeed for certain",
    operation="pass_at_k",
    story="A public evaluation harness returns 1 for two failures and k = 5.",
    made_for="pass_refuses_k_above_n",
    stays_green="pass_at_k_by_drawing",
    unguarded=True,
)
def _(n, c, k):
    return 1.0 if n - c < k else pass_at_k(n, c, k)


@chapter.fault(
    "pass_iid_adds",
    "chances of k trials are added",
    operation="pass_at_k_iid",
    story="Right to first order, for chances that are small.",
    made_for="pass_iid_by_outcomes",
    stays_green="pass_iid_small_chance",
)
def _(p, k):
    return np.minimum(1.0, k * np.asarray(p))


@chapter.fault(
    "pass_iid_rounds_away",
    "the formula as it is written, in floating point",
    operation="pass_at_k_iid",
    story="1 - p is 1 for a small p: a rare event becomes impossible.",
    made_for="pass_iid_small_chance",
    stays_green="pass_iid_by_outcomes",
)
def _(p, k):
    return 1 - (1 - np.asarray(p)) ** k


@chapter.fault(
    "pass_any_for_all",
    "any of k where all of k are asked",
    operation="pass_all_k",
    story="A reliability reported as 0.992 that a user meets as 0.512.",
    made_for="pass_events",
    stays_green="pass_at_k_by_drawing",
)
def _(p, k):
    return 1 - (1 - np.asarray(p)) ** k


@chapter.fault(
    "voters_multiplied",
    "the voters' error rates are multiplied",
    operation="all_wrong_rate",
    story=(
        "Independence assumed: three samples of one model share its blind spots, and a "
        "vote over them is worth less than the product says."
    ),
    made_for="voters_that_err_together",
    stays_green="voters_independent",
)
def _(correct):
    return float(np.prod(1 - np.mean(correct, axis=0)))


@chapter.fault(
    "voters_any_wrong",
    "a task counts as soon as one voter is wrong",
    operation="all_wrong_rate",
    story="Any for all, once more.",
    made_for="voters_by_counting",
    stays_green="voters_that_err_together",
)
def _(correct):
    return float(np.mean(~np.asarray(correct, bool).all(axis=-1)))


@chapter.fault(
    "mcnemar_no_cap",
    "twice the tail, also where that is no probability",
    operation="mcnemar_exact",
    story="A p-value of 1.25 has been printed: the middle is counted twice.",
    made_for="mcnemar_even_is_one",
    stays_green="mcnemar_worked",
)
def _(b, c):
    n = b + c
    return 2 * sum(math.comb(n, i) for i in range(min(b, c) + 1)) / 2**n


@chapter.fault(
    "mcnemar_one_sided",
    "the smaller tail, not doubled",
    operation="mcnemar_exact",
    story="The direction is chosen after looking at the data; p is half of what it is.",
    made_for="mcnemar_worked",
    stays_green="mcnemar_symmetric",
)
def _(b, c):
    return min(
        1.0, sum(math.comb(b + c, i) for i in range(min(b, c) + 1)) / 2 ** (b + c)
    )


@chapter.fault(
    "mcnemar_first_tail",
    "the tail of the first count, whichever is smaller",
    operation="mcnemar_exact",
    story="Right while the first system is the worse one.",
    made_for="mcnemar_symmetric",
    stays_green="mcnemar_worked",
)
def _(b, c):
    n = b + c
    return min(1.0, 2 * sum(math.comb(n, i) for i in range(b + 1)) / 2**n)


@chapter.fault(
    "mcnemar_counts_middle_once",
    "the share strictly more uneven is added to the tail",
    operation="mcnemar_exact",
    story="At least as extreme, or more extreme: an off-by-one in the tail.",
    made_for="mcnemar_by_patterns",
    stays_green="mcnemar_symmetric",
)
def _(b, c):
    n = b + c
    return min(1.0, 2 * sum(math.comb(n, i) for i in range(min(b, c))) / 2**n)


@chapter.fault(
    "pairs_sorted",
    "outcomes are sorted before they are paired",
    operation="paired_table",
    story="Two result files in different orders, joined line by line.",
    made_for="paired_by_counting",
    stays_green="mcnemar_worked",
)
def _(a, b):
    return paired_table(np.sort(a), np.sort(b))


@chapter.fault(
    "pairs_only_totals",
    "the table is built from the totals, as if pairs were nested",
    operation="paired_table",
    story="Only the two accuracies were kept: the test that needs pairs guesses them.",
    made_for="pairing_matters",
    stays_green="mcnemar_by_patterns",
)
def _(a, b):
    n, right_a, right_b = len(a), int(np.sum(a)), int(np.sum(b))
    both = min(right_a, right_b)
    table = paired_table([1], [1])
    return type(table)(both, right_a - both, right_b - both, n - max(right_a, right_b))


@chapter.fault(
    "pairs_columns_exchanged",
    "only-A and only-B exchange their places",
    operation="paired_table",
    story="Rows for columns; the symmetric test does not notice.",
    made_for="paired_marginals",
    stays_green="pairing_matters",
)
def _(a, b):
    return paired_table(b, a)


@chapter.fault(
    "simpson_mean_of_rates",
    "the total is the plain mean of the strata's rates",
    operation="simpson_table",
    story="A macro average reported as the accuracy: the reversal is gone from it.",
    made_for="simpson_worked",
    stays_green="simpson_strata_by_name",
)
def _(a, b):
    t = simpson_table(a, b)
    mean_a, mean_b = (math.fsum(r.values()) / len(r) for r in (t.a, t.b))
    return t._replace(total_a=mean_a, total_b=mean_b, reversal=False)


@chapter.fault(
    "simpson_pooled_weights",
    "both sides are weighted by the trials of both",
    operation="simpson_table",
    story=(
        "Standardised rates: often the better question, and not the total that was "
        "asked for."
    ),
    made_for="simpson_weighted_mean",
    stays_green="simpson_strata_by_name",
)
def _(a, b):
    t = simpson_table(a, b)
    trials = {name: a[name][1] + b[name][1] for name in a}
    whole = sum(trials.values())
    totals = [sum(r[name] * trials[name] for name in a) / whole for r in (t.a, t.b)]
    return t._replace(total_a=totals[0], total_b=totals[1])


@chapter.fault(
    "simpson_one_direction",
    "a reversal is seen only where the first side leads the strata",
    operation="simpson_table",
    story="Half of the condition; a test with one table agrees.",
    made_for="simpson_reversal_told",
    stays_green="simpson_worked",
)
def _(a, b):
    t = simpson_table(a, b)
    return t._replace(reversal=t.reversal and t.total_a < t.total_b)


@chapter.fault(
    "simpson_by_place",
    "strata are paired by place",
    operation="simpson_table",
    story="Two dictionaries zipped: the order in which the data came decides.",
    made_for="simpson_strata_by_name",
    stays_green="simpson_worked",
)
def _(a, b):
    t = simpson_table(a, b)
    return t._replace(b=dict(zip(a, [won / n for won, n in b.values()], strict=True)))


@chapter.fault(
    "brier_absolute",
    "distance instead of its square",
    operation="brier",
    story="A mean error that rewards always saying 0 or 1: it is not a proper score.",
    made_for="brier_worked",
    stays_green="calibration_counts_all",
)
def _(p, y):
    return np.mean(np.abs(p - y), axis=-1)


@chapter.fault(
    "brier_two_classes",
    "both classes are summed",
    operation="brier",
    story="Brier's own definition of 1950, twice the one of most libraries.",
    made_for="brier_half",
    stays_green="calibration_counts_all",
)
def _(p, y):
    return 2 * brier(p, y)


@chapter.fault(
    "brier_root",
    "the root of the mean square",
    operation="brier",
    story="RMSE under another name; rankings of two models are the same.",
    made_for="brier_decomposition",
    stays_green="calibration_borders",
)
def _(p, y):
    return np.sqrt(brier(p, y))


@chapter.fault(
    "calibration_mid_of_range",
    "a range stands for its forecasts by its middle",
    operation="calibration_table",
    story="The diagram drawn at the centres of the bars: good forecasts look off.",
    made_for="calibration_counts_all",
    stays_green="calibration_borders",
)
def _(p, y, *, bins=10):
    table = calibration_table(p, y, bins=bins)
    return [
        t._replace(
            mean_forecast=(min(int(t.mean_forecast * bins), bins - 1) + 0.5) / bins
        )
        for t in table
    ]


@chapter.fault(
    "calibration_drops_one",
    "the forecast 1 falls out of the last range",
    operation="calibration_table",
    story="Half-open ranges to the end: the surest forecasts are not judged.",
    made_for="calibration_borders",
    stays_green="calibration_counts_all",
)
def _(p, y, *, bins=10):
    inside = np.asarray(p) < 1
    return calibration_table(np.asarray(p)[inside], np.asarray(y)[inside], bins=bins)


@chapter.fault(
    "calibration_rounds_to_range",
    "a forecast goes to the nearest border",
    operation="calibration_table",
    story="Rounding for cutting: the first and last ranges are half as wide.",
    made_for="calibration_borders",
    stays_green="calibration_counts_all",
)
def _(p, y, *, bins=10):
    p, y = np.asarray(p, float), np.asarray(y, float)
    kind = type(calibration_table([0.5], [1])[0])
    place = np.rint(p * bins)
    here = [place == i for i in np.unique(place)]
    return [kind(int(h.sum()), float(p[h].mean()), float(y[h].mean())) for h in here]


@chapter.fault(
    "calibration_empty_is_zero",
    "an empty range counts as a forecast that never came true",
    operation="calibration_table",
    story="0/0 taken for 0: dots on the floor of the diagram where nothing was said.",
    made_for="calibration_no_empty_range",
    stays_green="calibration_borders",
)
def _(p, y, *, bins=10):
    table = calibration_table(p, y, bins=bins)
    filled = {min(int(t.mean_forecast * bins), bins - 1): t for t in table}
    kind = type(table[0])
    return [filled.get(i, kind(0, (i + 0.5) / bins, 0.0)) for i in range(bins)]


@chapter.fault(
    "selective_over_all",
    "accuracy divides by all tasks",
    operation="selective_accuracy",
    story="Declining is counted as failing: another question, honestly asked.",
    made_for="selective_worked",
    stays_green="error_rates_worked",
)
def _(correct, answered):
    found = selective_accuracy(correct, answered)
    return found._replace(accuracy=found.accuracy * found.coverage)


@chapter.fault(
    "selective_counts_declined",
    "what it would have got right counts as right",
    operation="selective_accuracy",
    story="Answers graded whether they were given or not.",
    made_for="selective_by_counting",
    stays_green="selective_worked",
)
def _(correct, answered):
    found = selective_accuracy(correct, answered)
    right = int(np.sum(np.asarray(correct, bool)))
    return found._replace(accuracy=right / np.sum(answered), correct=right)


@chapter.fault(
    "selective_silence_is_perfect",
    "who never answers is never wrong",
    operation="selective_accuracy",
    story="0/0 taken for 1; the best model of a leaderboard answered nothing.",
    made_for="selective_refuses_silence",
    stays_green="selective_by_counting",
    unguarded=True,
)
def _(correct, answered):
    if np.any(answered):
        return selective_accuracy(correct, answered)
    return type(selective_accuracy([1], [1]))(1.0, 0.0, 0)


@chapter.fault(
    "error_rates_over_all",
    "both rates divide by all cases",
    operation="error_rates",
    story="An error rate falls when harmless traffic grows, and nothing got better.",
    made_for="error_rates_ignore_mix",
    stays_green="error_rates_mirror",
)
def _(predicted, actual):
    said, true = np.asarray(predicted, bool), np.asarray(actual, bool)
    kind = type(error_rates([0, 1], [0, 1]))
    return kind(float(np.mean(said & ~true)), float(np.mean(~said & true)))


@chapter.fault(
    "error_rates_of_the_said",
    "false negatives are a share of what was said to be negative",
    operation="error_rates",
    story="The false omission rate: a mirror of nothing, and it moves with the mix.",
    made_for="error_rates_mirror",
    stays_green="selective_worked",
)
def _(predicted, actual):
    said, true = np.asarray(predicted, bool), np.asarray(actual, bool)
    return error_rates(predicted, actual)._replace(
        false_negative=float(true[~said].mean())
    )


@chapter.fault(
    "error_rates_exchanged",
    "the two rates exchange their names",
    operation="error_rates",
    story="Blocked harmless and passed harmful, in the other order.",
    made_for="error_rates_worked",
    stays_green="error_rates_mirror",
)
def _(predicted, actual):
    found = error_rates(predicted, actual)
    return type(found)(found.false_negative, found.false_positive)
