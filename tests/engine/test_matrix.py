"""The committed fault matrix is the one that is measured, and it can turn red."""

from __future__ import annotations

import copy
import json
import os
from dataclasses import replace

import numpy as np
import pytest
from labcore import matrix
from labcore.identities import CHECKS, FAULTS, SEEDS, SIZES, _check

RECORDED = json.loads(matrix.FILE.read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def measured():
    """Every check with and without every fault that touches it: once a session."""
    return matrix.measure(processes=os.cpu_count() or 1)


# ---- What is committed --------------------------------------------------------------


def test_no_fault_escapes_and_no_check_lacks_a_fault(measured):
    _, problems = measured
    assert problems == []


def test_the_committed_matrix_is_the_measured_one(measured):
    again, _ = measured
    assert matrix.differences(RECORDED, again) == [], "run `make matrix`, and review"


def test_the_right_version_stays_below_every_committed_tolerance(measured):
    again, _ = measured
    for id, row in again["checks"].items():
        if row["kind"] in ("equal", "value"):
            assert 10 * row["floor"] <= RECORDED["checks"][id]["tolerance"], id


def test_every_fault_opens_a_hundred_tolerances(measured):
    again, _ = measured
    for id, fault in again["faults"].items():
        for check, gap in fault["red"].items():
            row = RECORDED["checks"][check]
            if gap is None:
                continue
            if row["kind"] in ("equal", "value"):
                assert gap >= 100 * row["tolerance"], (id, check)
            else:
                assert gap <= row["tolerance"] / 100, (id, check)


def test_checks_use_the_committed_tolerances():
    for id, row in RECORDED["checks"].items():
        assert CHECKS[id].tolerance == row["tolerance"]


def test_every_fault_stays_within_one_operation_and_says_who_made_it():
    for id, fault in FAULTS.items():
        assert RECORDED["faults"][id]["operation"] == fault.operation
        assert fault.made_for in RECORDED["faults"][id]["red"]
        assert fault.stays_green not in RECORDED["faults"][id]["red"]
        assert fault.story.endswith("."), id
        assert not fault.title.endswith("."), id


# ---- A changed file is seen ---------------------------------------------------------


def first(kind):
    return next(id for id, row in RECORDED["checks"].items() if row["kind"] == kind)


def drop_a_check(m):
    del m["checks"]["gated_worked_matrix"]


def drop_a_fault(m):
    del m["faults"]["gated_decay_after_write"]


def widen_a_tolerance(m):
    m["checks"]["delta_chunked"]["tolerance"] *= 10


def widen_a_tolerance_with_its_floor(m):
    m["checks"]["delta_chunked"]["tolerance"] *= 10
    m["checks"]["delta_chunked"]["floor"] *= 10


def narrow_a_margin(m):
    m["checks"][first("differs")]["tolerance"] /= 10


def change_a_kind(m):
    m["checks"]["delta_chunked"]["kind"] = "exact"


def lose_a_red(m):
    m["faults"]["gated_decay_after_write"]["red"].popitem()


def turn_a_red_green(m):
    fault = m["faults"]["gated_decay_after_write"]
    fault["green"].append(fault["red"].popitem()[0])


def forget_a_green(m):
    m["faults"]["gated_decay_after_write"]["green"].pop()


def change_a_gap(m):
    m["faults"]["gated_decay_after_write"]["red"]["gated_worked_matrix"] *= 5


def lose_a_gap(m):
    m["faults"]["gated_decay_after_write"]["red"]["gated_worked_matrix"] = None


def change_the_nearest_gap(m):
    m["checks"]["gated_worked_matrix"]["gap"] /= 5


def miscount_the_faults(m):
    m["checks"]["gated_worked_matrix"]["faults"] += 1


def change_an_operation(m):
    m["faults"]["gated_decay_after_write"]["operation"] = "delta_write"


def drop_a_seed(m):
    m["seeds"].pop()


def drop_a_size(m):
    m["sizes"].pop()


CHANGES = [
    drop_a_check,
    drop_a_fault,
    widen_a_tolerance,
    widen_a_tolerance_with_its_floor,
    narrow_a_margin,
    change_a_kind,
    lose_a_red,
    turn_a_red_green,
    forget_a_green,
    change_a_gap,
    lose_a_gap,
    change_the_nearest_gap,
    miscount_the_faults,
    change_an_operation,
    drop_a_seed,
    drop_a_size,
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda f: f.__name__)
def test_a_changed_file_differs(change):
    changed = copy.deepcopy(RECORDED)
    change(changed)
    assert matrix.differences(changed, RECORDED) != []


@pytest.mark.parametrize("change", [drop_a_check, drop_a_fault, lose_a_red])
def test_what_is_measured_and_not_recorded_differs(change):
    changed = copy.deepcopy(RECORDED)
    change(changed)
    assert matrix.differences(RECORDED, changed) != []


def test_the_rounding_of_another_processor_is_no_difference():
    other = copy.deepcopy(RECORDED)
    for row in other["checks"].values():
        row["floor"] *= 2
    assert matrix.differences(RECORDED, other) == []


# ---- A changed course is seen -------------------------------------------------------

FEW = ("kv_head_map", "grouped_heads_of_one_kind", "attention_two_keys")


def reversed_heads(n_query_heads, n_kv_heads):
    return np.arange(n_query_heads)[::-1] % n_kv_heads


def right_heads(n_query_heads, n_kv_heads):
    return np.arange(n_query_heads) // (n_query_heads // n_kv_heads)


@pytest.fixture
def course(monkeypatch):
    """A course of three checks and three faults, which a test may spoil."""
    tiled, scale = FAULTS["kv_heads_tiled"], FAULTS["scale_missing"]
    of_one_kind = "grouped_heads_of_one_kind"
    turned = {"by": reversed_heads, "made_for": of_one_kind, "stays_green": FEW[2]}
    made = {
        "kv_heads_tiled": replace(tiled, made_for="kv_head_map"),
        "scale_missing": replace(scale, stays_green="kv_head_map"),
        "heads_reversed": replace(tiled, id="heads_reversed", **turned),
    }
    checks = {id: CHECKS[id] for id in FEW}
    monkeypatch.setattr(matrix, "CHECKS", checks)
    monkeypatch.setattr(matrix, "FAULTS", made)
    return checks, made


def test_the_small_course_is_sound(course):
    assert matrix.measure()[1] == []


def test_a_check_without_a_fault_is_told(course):
    _, faults = course
    del faults["scale_missing"]
    problems = matrix.measure()[1]
    assert problems == ["no fault breaks attention_two_keys: nobody has seen it fail"]


def test_a_fault_that_escapes_is_told(course):
    _, faults = course
    harmless = replace(faults["kv_heads_tiled"], id="harmless", by=right_heads)
    faults["harmless"] = harmless
    assert matrix.measure()[1] == [
        "harmless escapes: no check notices it",
        "harmless does not break kv_head_map, made for it",
    ]


def test_a_dropped_check_is_told(course):
    checks, _ = course
    del checks["kv_head_map"]
    problems = matrix.measure()[1]
    assert "kv_heads_tiled names a check that is not there: kv_head_map" in problems
    assert "kv_heads_tiled escapes: no check notices it" in problems


def test_a_promise_to_stay_green_is_kept(course):
    _, faults = course
    faults["heads_reversed"] = replace(
        faults["heads_reversed"], stays_green="kv_head_map"
    )
    assert matrix.measure()[1] == [
        "heads_reversed breaks kv_head_map, said to stay green"
    ]


def test_a_check_that_does_not_hold_is_told(course):
    checks, _ = course
    wrong = replace(checks["kv_head_map"], sides=lambda: (np.array([1]), np.array([2])))
    checks["kv_head_map"] = wrong
    assert any("kv_head_map does not hold" in words for words in matrix.measure()[1])


def test_a_comparer_that_always_agrees_is_told(course, monkeypatch):
    monkeypatch.setattr(_check, "compare", lambda got, want: (0.0, 0.0, ""))
    problems = matrix.measure()[1]
    assert "scale_missing escapes: no check notices it" in problems
    assert any(
        words.startswith("no fault breaks attention_two_k") for words in problems
    )


def test_a_comparer_that_never_agrees_is_told(course, monkeypatch):
    monkeypatch.setattr(_check, "compare", lambda got, want: (np.inf, np.inf, "NaN"))
    problems = matrix.measure()[1]
    assert any("attention_two_keys does not hold" in words for words in problems)


def test_a_fault_that_is_red_on_some_seeds_only_is_told(course):
    _, faults = course

    def sometimes(q, k, *, allowed=None, scale=None):
        positive = q.flat[0] > 0
        factor = 0.5 if positive else 1.0 / np.sqrt(q.shape[-1])
        return FAULTS["scale_missing"].by(q, k, allowed=allowed, scale=factor)

    faults["sometimes"] = replace(faults["scale_missing"], id="sometimes", by=sometimes)
    assert any(
        words.startswith("sometimes breaks attention_two_keys at some seeds")
        for words in matrix.measure()[1]
    )


def test_an_unsound_matrix_is_not_written(course, monkeypatch, tmp_path, capsys):
    _, faults = course
    monkeypatch.setattr(matrix, "FILE", tmp_path / "matrix.json")
    del faults["scale_missing"]
    assert matrix.main() == 1
    assert not matrix.FILE.exists()
    assert "matrix not written: 1 problems" in capsys.readouterr().out


def test_a_sound_matrix_is_written_and_reads_back(course, monkeypatch, tmp_path):
    monkeypatch.setattr(matrix, "FILE", tmp_path / "matrix.json")
    assert matrix.main() == 0
    written = json.loads(matrix.FILE.read_text(encoding="utf-8"))
    assert matrix.differences(written, matrix.measure()[0]) == []
    assert written["seeds"] == list(SEEDS) and written["sizes"] == list(SIZES)
