"""The source's 17 results, under its names."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from labcore.identities import CHECKS, SEEDS, SIZES, run

FILE = Path(__file__).parents[1] / "data" / "reference.json"
SOURCE = json.loads(FILE.read_text(encoding="utf-8"))["checks"]
ERRORS = [
    name
    for name, result in SOURCE.items()
    if isinstance(result, dict) and "tolerance" in result
]
KINDS = {
    "online_worked_output": "value",
    "gated_decay_then_correct": "value",
    "kda_noncommuting_counterexample": "differs",
}


def verdicts(name):
    return [run(CHECKS[name], seed, size) for seed in SEEDS for size in SIZES]


def test_the_source_has_seventeen_results():
    assert len(SOURCE) == 17
    assert len(ERRORS) == 15


@pytest.mark.parametrize("name", SOURCE)
def test_a_result_is_a_check_of_the_kind_that_the_source_gives_it(name):
    assert CHECKS[name].kind == KINDS.get(name, "equal")


@pytest.mark.parametrize("name", SOURCE)
def test_a_result_has_the_verdict_of_the_source(name):
    assert all(verdict.held for verdict in verdicts(name))


@pytest.mark.parametrize("name", ERRORS)
def test_a_result_holds_within_the_tolerance_of_the_source(name):
    assert all(v.absolute < SOURCE[name]["tolerance"] for v in verdicts(name))


@pytest.mark.parametrize("name", ERRORS)
def test_our_tolerance_is_no_wider_than_that_of_the_source(name):
    assert CHECKS[name].tolerance <= SOURCE[name]["tolerance"]


def test_the_worked_output_is_the_number_of_the_source():
    rounding = 4.5e-16 * 3.870665350571926
    for form in run(CHECKS["online_worked_output"]).got:
        assert abs(float(form) - 3.870665350571926) <= rounding
    assert SOURCE["online_worked_output"] == 3.870665350571926


def test_decay_and_projection_are_a_quarter_apart():
    gap = run(CHECKS["kda_noncommuting_counterexample"]).absolute
    source = SOURCE["kda_noncommuting_counterexample"]["max_difference"]
    assert gap == pytest.approx(0.25, rel=0, abs=1e-15)
    assert gap == pytest.approx(source, rel=0, abs=1e-15)


def test_the_scalar_example_stays_at_four():
    assert np.array_equal(run(CHECKS["gated_decay_then_correct"]).got, [[4.0]])
