"""Worked examples of evaluation: what a number of successes is worth."""

from __future__ import annotations

from typing import Any

from ..ops.evaluation import (
    brier,
    error_rates,
    mcnemar_exact,
    paired_table,
    pass_all_k,
    pass_at_k,
    pass_at_k_iid,
    selective_accuracy,
    simpson_table,
)
from ..ops.retrieval import precision_recall
from ._plain import whole
from ._registry import example

CHAPTER = "evaluation"

TRIALS = {"p": 0.8, "k": 3, "n": 10, "c": 6}
PAIRS = {"both": 10, "only_a": 2, "only_b": 6, "neither": 2}
FORECASTS = {"probabilities": (0.8, 0.8, 0.8, 0.8), "labels": (1, 1, 0, 0)}


def outcomes(**times: int) -> tuple[list[int], list[int]]:
    """The paired outcomes that make a table: (A's, B's)."""
    cells = {"both": (1, 1), "only_a": (1, 0), "only_b": (0, 1), "neither": (0, 0)}
    pairs = [cells[name] for name, n in times.items() for _ in range(n)]
    return [a for a, _ in pairs], [b for _, b in pairs]


@example(
    "Q090",
    "At least one of three, or all three: the same 80 percent, two questions",
    chapter=CHAPTER,
    givens=TRIALS,
    units="probabilities",
    title_zh="三次里成功一次，还是三次都成功",
)
def three_trials(p: float, k: int, n: int, c: int) -> dict[str, float]:
    """One trial, any of k, all of k, and the estimate from n samples."""
    return {
        "pass1": float(pass_at_k_iid(p, 1)),
        f"pass_at{k}": float(pass_at_k_iid(p, k)),
        f"pass_all{k}": float(pass_all_k(p, k)),
        f"finite_pass{k}": pass_at_k(n, c, k),
    }


@example(
    "F35",
    "One set of results, four denominators",
    chapter=CHAPTER,
    givens={
        "retrieved": ("A", "X", "Y"),
        "relevant": ("A", "B"),
        **TRIALS,
        **FORECASTS,
        **PAIRS,
    },
    units="shares and probabilities",
    title_zh="一份评测结果里的四种分母",
)
def four_denominators(
    retrieved: Any,
    relevant: Any,
    p: float,
    k: int,
    n: int,
    c: int,
    probabilities: Any,
    labels: Any,
    **pairs: int,
) -> dict[str, Any]:
    """Precision and recall, repeated trials, a Brier score, a paired test."""
    found = precision_recall(retrieved, relevant)
    table = paired_table(*outcomes(**pairs))
    return {
        "precision_recall": {"precision": found.precision, "recall": found.recall},
        **three_trials(p, k, n, c),
        "brier": float(brier(list(probabilities), list(labels))),
        "mcnemar_p": mcnemar_exact(table.only_a, table.only_b),
    }


@example(
    "Q091",
    "Twenty points better on twenty tasks: is that evidence?",
    chapter=CHAPTER,
    givens=PAIRS,
    units="tasks; a probability",
    title_zh="二十道题多对四道，差距可能只是运气",
)
def paired_test(**pairs: int) -> dict[str, Any]:
    """What each got right, on how many they differ, and the exact test of that."""
    a, b = outcomes(**pairs)
    table = paired_table(a, b)
    right_a, right_b = table.both + table.only_a, table.both + table.only_b
    return {
        "A_successes": right_a,
        "B_successes": right_b,
        "tasks": len(a),
        "A_rate": right_a / len(a),
        "B_rate": right_b / len(b),
        "discordant": table.discordant,
        "two_sided_exact_p": mcnemar_exact(table.only_a, table.only_b),
    }


@example(
    "Q105",
    "Four forecasts of 80 percent, two of them right",
    chapter=CHAPTER,
    givens=FORECASTS,
    units="squared probability",
    title_zh="每次都说八成把握，结果只中了一半",
)
def overconfident(probabilities: Any, labels: Any) -> dict[str, Any]:
    """The Brier score of forecasts that are surer than they should be."""
    return {
        "probabilities": list(probabilities),
        "labels": list(labels),
        "Brier": float(brier(list(probabilities), list(labels))),
    }


@example(
    "R13-07",
    "A filter has two error rates, and each has its own denominator",
    chapter=CHAPTER,
    givens={
        "harmless": {"cases": 100, "blocked": 5},
        "harmful": {"cases": 10, "blocked": 9},
    },
    units="shares",
)
def filter_errors(harmless: Any, harmful: Any) -> dict[str, float]:
    """Harmless cases that are blocked, harmful ones that pass."""
    blocked, actual = [], []
    for kind, harm in ((harmless, 0), (harmful, 1)):
        passed = kind["cases"] - kind["blocked"]
        blocked += [1] * kind["blocked"] + [0] * passed
        actual += [harm] * kind["cases"]
    rates = error_rates(blocked, actual)
    return {
        "false_block_rate": rates.false_positive,
        "false_allow_rate": rates.false_negative,
    }


@example(
    "S19",
    "Better on the easy and on the hard, worse in total",
    chapter=CHAPTER,
    givens={
        "A": {"easy": (9, 10), "hard": (20, 100)},
        "B": {"easy": (80, 100), "hard": (1, 10)},
    },
    units="success rates",
)
def reversal(A: Any, B: Any) -> dict[str, float]:
    """Rates by difficulty and in total."""
    table = simpson_table(A, B)
    rates = {
        f"{name}_{stratum}": rate
        for stratum in A
        for name, rate in (("A", table.a[stratum]), ("B", table.b[stratum]))
    }
    return {**rates, "A_total": table.total_a, "B_total": table.total_b}


@example(
    "S25",
    "Answering half the questions: more accurate, and less help",
    chapter=CHAPTER,
    givens={
        "questions": 100,
        "A": {"answered": 100, "correct": 80},
        "B": {"answered": 50, "correct": 45},
    },
    units="shares; questions",
)
def declining(questions: int, A: Any, B: Any) -> dict[str, Any]:
    """Accuracy beside coverage, and what is left in numbers of right answers."""

    def measured(system: Any) -> Any:
        answered = [int(i < system["answered"]) for i in range(questions)]
        correct = [int(i < system["correct"]) for i in range(questions)]
        return selective_accuracy(correct, answered)

    a, b = measured(A), measured(B)
    return {
        "A_accuracy": a.accuracy,
        "B_selective_accuracy": b.accuracy,
        "A_coverage": whole(a.coverage),
        "B_coverage": whole(b.coverage),
        "correct_counts": [a.correct, b.correct],
    }


# The source's tests by program and name, each with the checks that stand for it.
NAMED_CHECKS: dict[tuple[str, str], tuple[str, ...]] = {
    ("engine", "test_paired_exact"): ("mcnemar_worked", "mcnemar_by_patterns"),
    ("additional_checks", "test_calibration_brier"): ("brier_worked",),
    ("additional_checks", "test_correlated_vote_counterexample"): (
        "voters_that_err_together",
    ),
    ("additional_checks", "test_paired_table_marginals"): ("paired_marginals",),
    ("additional_checks", "test_pass_events_differ"): ("pass_events",),
    ("additional_checks", "test_selective_accuracy_vs_coverage"): ("selective_worked",),
    ("additional_checks", "test_simpson_construction"): (
        "simpson_worked",
        "simpson_rates",
    ),
}
