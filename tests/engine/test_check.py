"""What counts as the same, and how one check is run."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import labcore
import ml_dtypes
import numpy as np
import pytest
from labcore import lab
from labcore.identities import CHECKS, SEEDS, SIZES, Check, compare, run
from labcore.identities._check import Chapter, _arrays

ONE = np.array([1.0, 2.0])


# ---- The comparer -------------------------------------------------------------------


class AlwaysEqual(np.ndarray):
    def __array_ufunc__(self, *args, **kwargs):
        return np.zeros(1)

    def __eq__(self, other):
        return np.ones(np.shape(other), bool)


@pytest.mark.parametrize(
    "got, want",
    [
        (ONE, ONE),
        (np.float64(1.0), 1.0),
        (np.float32(1.0), np.float64(1.0)),
        (ml_dtypes.bfloat16(1.0), np.float64(1.0)),
        (np.array([np.inf, -np.inf]), np.array([np.inf, -np.inf])),
        ((ONE, 2.0), [ONE, 2.0]),
        ((), ()),
        (np.array(3), 3),
        (np.zeros((0, 2)), np.zeros((0, 2))),
    ],
)
def test_the_same_has_no_error(got, want):
    assert compare(got, want) == (0.0, 0.0, "")


@pytest.mark.parametrize(
    "got, want, words",
    [
        (ONE[None], ONE, "shape (1, 2), wanted (2,)"),
        (np.float64(1.0), np.ones(2), "shape (), wanted (2,)"),
        (np.ones(1), np.ones(2), "shape (1,), wanted (2,)"),
        (np.zeros((0, 2)), np.zeros((2, 0)), "shape (0, 2), wanted (2, 0)"),
        (np.array([1, 2]), ONE, "int64, wanted float64"),
        (ONE, np.array([1, 2]), "float64, wanted int64"),
        (ONE + 0j, ONE, "complex128, wanted float64"),
        (np.array([True, False]), np.array([1.0, 0.0]), "bool, wanted float64"),
        (np.array([True, False]), np.array([1, 0]), "bool, wanted int64"),
        (np.array([np.nan, 2.0]), ONE, "NaN"),
        (ONE, np.array([np.nan, 2.0]), "NaN"),
        (np.array([np.nan]), np.array([np.nan]), "NaN"),
        (np.array([np.inf, 2.0]), ONE, "infinite where it should not be"),
        (ONE, np.array([np.inf, 2.0]), "infinite where it should not be"),
        (np.array([-np.inf]), np.array([np.inf]), "infinite where it should not be"),
        (None, ONE, "NoneType, wanted ndarray"),
        ("1.0", np.float64(1.0), "str, wanted float64"),
        (ONE.astype(object), ONE, "ndarray, wanted ndarray"),
        (ONE, (ONE, ONE), "ndarray, wanted 2 values"),
        ((ONE,), (ONE, ONE), "1 values, wanted 2 values"),
        ((ONE, ONE, ONE), (ONE, ONE), "3 values, wanted 2 values"),
        ([[1.0], [1.0, 2.0]], ONE, "2 values, wanted ndarray"),
    ],
)
def test_what_cannot_be_compared_is_infinitely_wrong(got, want, words):
    assert compare(got, want) == (np.inf, np.inf, words)


def test_the_error_is_scaled_by_the_largest_number_wanted():
    scaled, absolute, words = compare(np.array([1.0, 100.5]), np.array([1.0, 100.0]))
    assert (scaled, absolute, words) == (0.005, 0.5, "")


def test_an_error_where_nothing_is_wanted_is_not_scaled():
    assert compare(np.array([0.25]), np.array([0.0])) == (0.25, 0.25, "")


def test_the_worst_of_several_values_counts():
    got = (np.array([1.5]), np.array([100.0]))
    assert compare(got, (np.array([1.0]), np.array([100.0]))) == (0.5, 0.5, "")
    assert compare((ONE, ONE[None]), (ONE, ONE))[2] == "shape (1, 2), wanted (2,)"


def test_an_infinity_does_not_hide_an_error_beside_it():
    got, want = np.array([-np.inf, 3.0]), np.array([-np.inf, 2.0])
    assert compare(got, want) == (0.5, 1.0, "")


def test_complex_numbers_are_compared_in_both_parts():
    assert compare(np.array([1 + 1j]), np.array([1 + 0j])) == (1.0, 1.0, "")


def test_a_subclass_cannot_say_that_it_is_equal():
    liar = np.zeros(2).view(AlwaysEqual)
    assert compare(liar, ONE) == (1.0, 2.0, "")


def test_the_comparer_goes_through_no_operation():
    with labcore.ops._op.reached() as names:
        compare(ONE, ONE)
    assert names == set()


# ---- The six kinds ------------------------------------------------------------------


def check_of(kind: str, got: Any, want: Any) -> Check:
    return Check(
        "a_test", "A claim.", "nowhere", kind, lambda rng, size: {}, lambda: (got, want)
    )


def refuse(message: str):
    def call():
        raise ValueError(message)

    return call


def fail():
    raise TypeError("x")


HOLDS = [
    ("equal", ONE * (1 + 1e-13), ONE),
    ("value", ONE, ONE),
    ("exact", (1, "a", [2]), (1, "a", [2])),
    ("exact", np.array([1, 2]), np.array([1, 2])),
    ("exact", {"a": 1}, {"a": 1}),
    ("order", ONE + 1, ONE),
    ("differs", ONE + 1, ONE),
    ("refuses", refuse("x must be positive"), "x"),
]
BREAKS = [
    ("equal", ONE * (1 + 1e-9), ONE),
    ("equal", np.array([np.nan, 1.0]), ONE),
    ("value", ONE[None], ONE),
    ("exact", (1, "a", [2]), (1, "a", [3])),
    ("exact", (1, "a"), (1, "b")),
    ("exact", (1, 2), (1,)),
    ("exact", 1, True),
    ("exact", 1.0, 1),
    ("exact", "1", 1),
    ("exact", np.array([1, 2]), np.array([[1, 2]])),
    ("exact", np.array([1.0]), np.array([1.0 + 2e-16])),
    ("exact", np.array([np.nan]), np.array([np.nan])),
    ("order", ONE, ONE),
    ("order", np.array([2.0, 1.0]), ONE),
    ("order", np.array([np.nan, 9.0]), ONE),
    ("order", np.array([np.inf, np.inf]), ONE),
    ("order", np.float64(9.0), ONE),
    ("differs", ONE, ONE),
    ("differs", np.array([np.nan, 1.0]), ONE),
    ("differs", ONE[None], ONE),
    ("differs", np.array([np.inf, 1.0]), ONE),
    ("refuses", refuse("y must be positive"), "x"),
    ("refuses", fail, "x"),
    ("refuses", lambda: 3.0, "x"),
]


@pytest.mark.parametrize("kind, got, want", HOLDS)
def test_a_check_holds(kind, got, want):
    verdict = run(check_of(kind, got, want))
    assert verdict.held, verdict.message


@pytest.mark.parametrize("kind, got, want", BREAKS)
def test_a_check_breaks(kind, got, want):
    assert not run(check_of(kind, got, want)).held


@pytest.mark.parametrize("kind", ["equal", "value", "exact", "order", "differs"])
def test_an_exception_breaks_a_check_of_any_kind(kind):
    broken = replace(check_of(kind, 0, 0), sides=fail)
    verdict = run(broken)
    assert not verdict.held
    assert verdict.message == "TypeError: x"


def test_what_a_refusal_lacks_is_told():
    assert "does not name x" in run(check_of("refuses", refuse("y!"), "x")).message
    assert "took it without a word" in run(check_of("refuses", int, "x")).message


def test_the_warnings_of_numpy_are_not_shown():
    overflows = replace(
        check_of("equal", 0, 0), sides=lambda: (np.exp(ONE * 1e3), ONE / 0.0)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run(overflows).held  # both are infinite


# ---- Inputs -------------------------------------------------------------------------


@pytest.mark.parametrize("check", CHECKS.values(), ids=lambda c: c.id)
def test_a_check_draws_the_same_inputs_whatever_ran_before(check):
    def written(inputs):
        return [(a.dtype, a.shape, a.tobytes()) for a in _arrays(inputs)]

    first = check.inputs(3, 2)
    np.random.default_rng(0).normal(size=100)
    for other in list(CHECKS.values())[:3]:
        other.inputs(3, 2)
    again = check.inputs(3, 2)
    assert written(first) == written(again)
    assert repr(first) == repr(again)


@pytest.mark.parametrize("check", CHECKS.values(), ids=lambda c: c.id)
def test_a_check_holds_at_a_seed_and_size_that_are_not_recorded(check):
    assert 7 not in SEEDS and 3 not in SIZES
    verdict = run(check, seed=7, size=3)
    assert verdict.held, verdict


@pytest.mark.parametrize("check", CHECKS.values(), ids=lambda c: c.id)
def test_inputs_are_read_only_and_no_two_seeds_are_the_same(check):
    inputs = check.inputs(0, 2)
    assert all(not a.flags.writeable for a in _arrays(inputs))
    if any(a.dtype.kind == "f" for a in _arrays(inputs)):
        assert repr(inputs) != repr(check.inputs(1, 2))


@pytest.mark.parametrize("check", CHECKS.values(), ids=lambda c: c.id)
def test_a_claim_is_a_sentence_of_a_known_chapter(check):
    assert len(check.claim) > 10 and check.claim.endswith(".")
    assert check.chapter in labcore.identities._check.CHAPTERS


def test_a_check_is_given_what_it_drew_and_may_not_change_it():
    def change(x):
        x[0] = 7.0
        return x, x

    drawn = Check(
        "a_test",
        "A claim.",
        "nowhere",
        "equal",
        lambda rng, size: {"x": rng.normal(size=size)},
        change,
    )
    verdict = run(drawn)
    assert not verdict.held
    assert "read-only" in verdict.message


def test_the_smallest_counterexample_is_the_first_red_size_then_seed():
    ran = []

    def sides(x):
        ran.append(len(x))
        return x * (1.0 + (len(x) >= 2)), x

    red_from_two = Check(
        "a_test",
        "A claim.",
        "nowhere",
        "equal",
        lambda rng, size: {"x": rng.uniform(1, 2, size=size)},
        sides,
    )
    verdict = lab.smallest_failure(red_from_two)
    assert (verdict.size, verdict.seed, verdict.held) == (2, 0, False)
    assert ran == [1, 1, 1, 2]


def test_no_two_checks_and_no_two_faults_share_a_name():
    chapter = Chapter("kernel-attention", "Kernel attention as a recurrence", "")
    with pytest.raises(ValueError, match="two checks are called 'kv_head_map'"):
        chapter.check("kv_head_map", "A claim.", draw=lambda rng, size: {})(fail)
    story = {"story": "", "made_for": "", "stays_green": ""}
    with pytest.raises(ValueError, match="two faults are called 'kv_heads_tiled'"):
        chapter.fault("kv_heads_tiled", "", operation="kv_head_of", **story)(fail)
    with pytest.raises(ValueError, match="no operation named 'nothing'"):
        chapter.fault("a_fault", "", operation="nothing", **story)(fail)
