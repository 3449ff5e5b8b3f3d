"""Whatever stands where an argument should: an answer, or a refusal that names it."""

from __future__ import annotations

import inspect
import re
from typing import Any

import labcore
import numpy as np
import pytest
from labcore.ops import _op

from tests.data.calls import CALLS, Draw

WILD: list[Any] = [None, "no", b"a", 2.5, -1, True, float("nan"), 1j, object()]
WILD += [[], {}, {1}, (1.0, 2.0), np.array(["a"]), np.array([None], dtype=object)]
WILD += [np.datetime64("2020-01-01")]
SAID_AS = {  # the name under which a refusal speaks of an argument
    "layer": "weights",
    "norm_eps": "eps",
    "score_chunks": "scores",
    "value_chunks": "values",
}
NOT_AT_FAULT = {  # the wild argument is a right one, and another does not fit to it
    ("forbid_tokens", "logits"),
    ("layer_norm", "x"),
    ("pair_results", "calls"),
    ("paged_positions", "block_table"),
    ("rms_norm", "x"),
    ("three_way_merge", "base"),
}
WITH_FILES = {"atomic_replace", "record_receipt", "replace_if_unchanged", "transfer"}


def call_of(operation: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return CALLS[operation](Draw(np.random.default_rng(0)))


@pytest.mark.parametrize("operation", sorted(CALLS.keys() - WITH_FILES))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_wild_argument_is_answered_or_refused_by_name(operation):
    door, signature = getattr(labcore, operation), inspect.signature(_op.OPS[operation])
    args, options = call_of(operation)
    for name in signature.parameters:
        if (operation, name) in NOT_AT_FAULT:
            continue
        said = rf"(?<![a-z_])({name}|{SAID_AS.get(name, name)})(?![a-z_])"
        for wild in WILD:
            call = signature.bind(*args, **options)
            call.arguments[name] = wild
            try:
                door(*call.args, **call.kwargs)
            except ValueError as refusal:
                assert re.search(said, str(refusal)), (name, wild, str(refusal))


@pytest.mark.parametrize("dtype", ["no", 2.5, object(), (1.0, 2.0), [], int, bool])
def test_a_wild_dtype_is_refused(dtype):
    with pytest.raises(ValueError, match="dtype must be a float or complex type"):
        labcore.softmax([1.0], dtype=dtype)


@pytest.mark.parametrize("flag", ["no", "", 0, 1, None, [], np.array(True)])
def test_a_flag_is_true_or_false(flag):
    one = np.ones((1, 1))
    for call in (
        lambda: labcore.kernel_attention(one, one, one, causal=flag),
        lambda: labcore.blockwise_attention(one, one, one, block=1, causal=flag),
    ):
        with pytest.raises(ValueError, match="causal must be True or False, got"):
            call()
    both = labcore.kernel_attention(one, one, one, causal=np.bool_(True))
    assert both.tolist() == [[1.0]]


@pytest.mark.parametrize("axis", [None, "x", 0.0, True, [0]])
def test_an_axis_is_an_integer(axis):
    for operation in (labcore.softmax, labcore.log_softmax, labcore.logsumexp):
        with pytest.raises(ValueError, match="axis must be an integer, got"):
            operation([[1.0]], axis)
        assert operation([[1.0]], np.int64(0)).shape in ((1, 1), (1,))


@pytest.mark.parametrize("number", ["big", None, [1.0], np.ones(2), 1j])
def test_an_option_that_is_one_number_is_not_something_else(number):
    with pytest.raises(ValueError, match="base must be one number, got"):
        labcore.rope([1.0, 0.0], 1, base=number)


def test_a_record_is_not_a_plain_tuple():
    one = np.ones((1, 1))
    for name, kind, call in (
        ("cache", "KVCache", lambda: labcore.kv_append((one, one), one, one)),
        ("cache", "KVCache", lambda: labcore.attention_from_cache(one, (one, one))),
        (
            "initial",
            "KernelState",
            lambda: labcore.kernel_attention_recurrent(
                one, one, one, initial=(one, one[0])
            ),
        ),
        ("a", "SoftmaxSummary", lambda: labcore.merge((0.0, 1.0, one[0]), None)),
    ):
        with pytest.raises(ValueError, match=f"{name} must be a {kind}, got"):
            call()


def test_an_argument_too_few_or_too_many_is_still_a_type_error():
    with pytest.raises(TypeError, match=r"attention: missing a required argument: 'v'"):
        labcore.attention([[1.0]], [[1.0]])
    with pytest.raises(TypeError, match="unexpected keyword argument 'axes'"):
        labcore.softmax([1.0], axes=0)


def test_an_error_inside_a_function_that_was_passed_in_is_its_own():
    def broken(x):
        raise TypeError("of the caller's own making")

    with pytest.raises(TypeError, match="of the caller's own making"):
        labcore.finite_difference(broken, [1.0])
