"""A door reaches whoever holds the operation, and is itself again afterwards."""

from __future__ import annotations

import doctest
import functools
import importlib
import inspect
import pickle
import sys
import threading
from collections.abc import Callable

import labcore
import labcore.ops.softmax
import numpy as np
import pytest
from labcore import OPERATIONS, lab, softmax
from labcore.ops import _op

from tests.data.calls import CALLS, ON_COUNTS

ROW = np.array([0.0, 0.0])
RIGHT = [0.5, 0.5]
WRONG = [7.0, 7.0]


def seven(x, axis=-1):
    return np.full(x.shape, 7.0)


# ---- Eleven ways to hold an operation -----------------------------------------------


def by_default_argument(x, act=softmax):
    return act(x)


def make_closure():
    held = labcore.softmax
    return lambda x: held(x)


def decorator(function):
    @functools.wraps(function)
    def wrapped(x):
        return function(x)

    return wrapped


class Layer:
    act = staticmethod(softmax)

    def __call__(self, x):
        return self.act(x)


def late_import(x):
    sys.modules.pop("tests.engine.late", None)
    return importlib.import_module("tests.engine.late").HELD(x)


def in_another_thread(x):
    answers = []
    thread = threading.Thread(target=lambda: answers.append(softmax(x)))
    thread.start()
    thread.join()
    return answers[0]


NOTEBOOK: dict = {}
exec("from labcore import softmax\ndef cell(x):\n    return softmax(x)", NOTEBOOK)

HOLDERS: dict[str, Callable] = {
    "import": softmax,
    "re-export": lambda x: labcore.softmax(x),
    "default argument": by_default_argument,
    "closure": make_closure(),
    "partial": functools.partial(softmax, axis=-1),
    "decorator": decorator(softmax),
    "class attribute": Layer(),
    "table": {"softmax": softmax}["softmax"],
    "late import": late_import,
    "notebook name": NOTEBOOK["cell"],
    "another thread": in_another_thread,
}


def test_there_are_eleven_ways():
    assert len(HOLDERS) == 11


@pytest.mark.parametrize("way", HOLDERS)
def test_a_replacement_reaches_the_holder_and_leaves_it(way):
    call = HOLDERS[way]
    assert call(ROW).tolist() == RIGHT
    with lab.broken(softmax=seven):
        assert call(ROW).tolist() == WRONG
    assert call(ROW).tolist() == RIGHT


def test_a_replacement_reaches_the_operations_that_call_the_operation():
    with lab.broken(softmax=seven):
        assert labcore.attention([[1.0]], [[1.0]], [[2.0]]).tolist() == [[14.0]]


# ---- What a door is -----------------------------------------------------------------

PUBLIC = [name for names in OPERATIONS.values() for name in names]
DOORS = [name for name in PUBLIC if not isinstance(getattr(labcore, name), type)]


def test_every_operation_is_public():
    assert sorted(DOORS) == sorted(_op.OPS)


@pytest.mark.parametrize("name", DOORS)
def test_a_door_shows_the_signature_of_its_operation_and_dtype(name):
    shown = inspect.signature(getattr(labcore, name)).parameters
    own = inspect.signature(_op.OPS[name]).parameters
    assert list(shown)[: len(own)] == list(own)
    assert [p for p in shown if p not in own] in ([], ["dtype"])


def test_operations_on_numbers_take_a_dtype_and_those_on_counts_do_not():
    without = [
        name
        for name in DOORS
        if "dtype" not in inspect.signature(getattr(labcore, name)).parameters
    ]
    assert set(without) & set(CALLS) == ON_COUNTS


@pytest.mark.parametrize("name", DOORS)
def test_the_source_behind_a_door_is_the_readable_one(name):
    source = inspect.getsource(getattr(labcore, name))
    assert f"\ndef {name}(" in source
    assert '"""' in source


@pytest.mark.parametrize("name", DOORS)
def test_a_door_survives_pickling_as_itself(name):
    door = getattr(labcore, name)
    assert pickle.loads(pickle.dumps(door)) is door


@pytest.mark.parametrize("name", DOORS)
def test_the_doctest_of_an_operation_is_found_through_its_door(name):
    [found] = doctest.DocTestFinder().find(getattr(labcore, name), name)
    assert found.examples


# ---- Inside a replacement -----------------------------------------------------------


def test_inside_a_replacement_its_own_name_is_the_reference():
    with lab.broken(softmax=lambda x, axis=-1: 3.0 * labcore.softmax(x, axis)):
        assert labcore.softmax(ROW).tolist() == [1.5, 1.5]


def test_inside_a_replacement_other_names_are_still_replaced():
    with lab.broken(
        softmax=seven, logsumexp=lambda x, axis=-1: labcore.softmax(x, axis).sum(axis)
    ):
        assert labcore.logsumexp(ROW) == 14.0


def test_the_own_name_is_the_reference_through_other_operations_too():
    def through_attention(x, axis=-1):
        return labcore.attention_weights([[0.0]], [[0.0], [0.0]])[0]

    with lab.broken(softmax=through_attention):
        assert labcore.softmax(ROW).tolist() == RIGHT


def test_a_replacement_in_one_thread_does_not_hide_it_in_another():
    seen: list = []

    def first_call(x, axis=-1):
        if not seen:
            seen.append(1)
            seen.append(in_another_thread(x).tolist())
        return np.full(x.shape, 7.0)

    with lab.broken(softmax=first_call):
        assert labcore.softmax(ROW).tolist() == WRONG
    assert seen == [1, WRONG]


def test_a_replacement_gets_checked_arguments():
    called = []
    with lab.broken(softmax=lambda x, axis=-1: called.append(x)):
        with pytest.raises(ValueError, match="x must be finite"):
            labcore.softmax([np.nan])
    assert called == []


def test_an_unguarded_replacement_gets_whatever_comes():
    stand_in = _op.StandIn(lambda x, axis=-1: np.isnan(x), unguarded=True)
    with _op.replaced({"softmax": stand_in}):
        assert labcore.softmax([np.nan]).tolist() == [True]


def test_a_second_replacement_is_refused_with_the_reason():
    with lab.broken(softmax=seven):
        with pytest.raises(RuntimeError, match="softmax is replaced already"):
            with lab.broken(merge=lambda a, b: a):
                pytest.fail("the second block was entered")
        assert softmax(ROW).tolist() == WRONG  # the refusal leaves the first in place
    assert softmax(ROW).tolist() == RIGHT


@pytest.mark.parametrize("leaving", [ValueError, SystemExit, KeyboardInterrupt])
def test_the_reference_is_back_whatever_ends_the_block(leaving):
    with pytest.raises(leaving):
        with lab.broken(softmax=seven):
            raise leaving
    assert softmax(ROW).tolist() == RIGHT
    with lab.broken(softmax=seven):  # and the next block is let in
        assert softmax(ROW).tolist() == WRONG


@pytest.mark.parametrize("leaving", [ValueError, SystemExit, KeyboardInterrupt])
def test_a_replacement_that_raises_is_a_replacement_the_next_time(leaving):
    def raises_once(x, axis=-1):
        if not raised:
            raised.append(True)
            raise leaving
        return np.full(x.shape, 7.0)

    raised: list[bool] = []
    with lab.broken(softmax=raises_once):
        with pytest.raises(leaving):
            softmax(ROW)
        assert softmax(ROW).tolist() == WRONG


def test_unknown_names_are_refused_with_the_nearest_ones():
    with pytest.raises(ValueError, match="did you mean softmax"):
        with lab.broken(sofmax=seven):
            pytest.fail("the block was entered")
    with pytest.raises(ValueError, match="did you mean gated_decay_after_write"):
        with lab.broken("gated_decay_after_writ"):
            pytest.fail("the block was entered")
    assert softmax(ROW).tolist() == RIGHT


def test_two_operations_of_one_name_are_refused():
    with pytest.raises(ValueError, match="two operations are called 'softmax'"):

        @_op.op()
        def softmax(x):
            return x


def test_reached_collects_the_operations_that_are_called():
    with _op.reached() as outer:
        labcore.causal_mask(1, 1)
        with _op.reached() as inner:
            labcore.attention([[1.0]], [[1.0]], [[2.0]])
    assert inner == {"attention", "attention_weights", "softmax"}
    assert outer == {"causal_mask"}
