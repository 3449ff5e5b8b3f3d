"""A page that was written for a failure does not show a success, nor the reverse."""

from __future__ import annotations

from dataclasses import replace

import labcore
import pytest
from labcore import lab, present
from labcore.identities import CHECKS, FAULTS
from labcore.ops import _op

FAULT = "gated_error_before_decay"
RED = "gated_decay_then_correct"


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(present, "display", lambda shown: None)


@pytest.fixture
def mended(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault is the right version now."""
    right = replace(FAULTS[FAULT], by=_op.OPS["gated_write"])
    monkeypatch.setitem(FAULTS, FAULT, right)


def test_a_fault_shows_as_it_was_recorded(quiet: None):
    present.show_checks(RED, caption="", fault=FAULT)
    present.show_checks(RED, caption="")


def test_a_planned_failure_that_stopped_failing_is_an_error(quiet: None, mended: None):
    with pytest.raises(AssertionError, match=f"with {FAULT}, not as recorded: {RED}"):
        present.show_checks(RED, caption="", fault=FAULT)


def test_a_fault_that_nothing_notices_is_an_error(mended: None):
    with pytest.raises(AssertionError, match=f"nothing notices {FAULT}"):
        lab.try_it(FAULT)


def test_a_broken_check_in_a_chapter_is_an_error(
    quiet: None, monkeypatch: pytest.MonkeyPatch
):
    wrong = replace(CHECKS[RED], sides=lambda **inputs: (1.0, 2.0))
    monkeypatch.setitem(CHECKS, RED, wrong)
    with pytest.raises(AssertionError, match=f"right version, not as recorded: {RED}"):
        present.show_chapter("writes-and-decay")


def test_a_sentence_takes_exactly_the_values_that_it_names():
    with pytest.raises(ValueError, match="does not use"):
        present.say("Nothing.", x=1)
    with pytest.raises(KeyError):
        present.say("{x} and {y}", x=1)


@pytest.mark.parametrize("value", [None, "", float("nan"), []])
def test_a_sentence_does_not_take_an_empty_value(value: object):
    with pytest.raises(ValueError, match="x has no value"):
        present.say("It is {x}.", x=value)


def test_every_operation_that_is_shown_has_a_source():
    for name in labcore.__all__:
        if name in _op.OPS:
            assert present._source(name).startswith(f"def {name}(")
