"""Rules that all operations keep: types of numbers, pure arguments, batch axes."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import Any

import labcore
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.data.calls import (
    CALLS,
    IN_DOUBLE,
    ON_COUNTS,
    ON_SCALARS,
    Draw,
    DrawIntegers,
    operations,
)

ON_NUMBERS = sorted(CALLS.keys() - ON_COUNTS)
ON_ARRAYS = sorted(CALLS.keys() - ON_COUNTS - ON_SCALARS - IN_DOUBLE)
IN_CODES = {"speculative_decode", "quantize_symmetric"}  # the result is integers
WIDE = [np.dtype(t) for t in (np.float32, np.float64, np.complex128)]
HALF = [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]
FLOATS = [*HALF, *WIDE[:2]]
few = settings(max_examples=5)
seeds = st.integers(0, 2**32 - 1)


def draw_call(name: str, seed: int, draw: type[Draw] = Draw) -> Any:
    return CALLS[name](draw(np.random.default_rng(seed)))


def arrays(x: Any) -> list[np.ndarray]:
    if isinstance(x, (np.ndarray, np.generic)):
        return [np.asarray(x)]
    if isinstance(x, dict):
        x = list(x.values())
    if isinstance(x, (tuple, list)):
        return [a for part in x for a in arrays(part)]
    return []


def each_array(change: Callable[[Any], Any], x: Any) -> Any:
    """The same structure, every array of numbers changed; masks and indices not."""
    if isinstance(x, (np.ndarray, np.generic)):
        return change(x) if x.dtype.kind in "fcV" else x
    if isinstance(x, dict):
        return {key: each_array(change, part) for key, part in x.items()}
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*(each_array(change, part) for part in x))
    if isinstance(x, (tuple, list)):
        return type(x)(each_array(change, part) for part in x)
    return x


def in_type(call: Any, dtype: np.dtype) -> Any:
    return each_array(lambda a: a.astype(dtype), call)


def run(name: str, call: Any, **options: Any) -> Any:
    args, kwargs = call
    return getattr(labcore, name)(*args, **kwargs, **options)


def number_types(x: Any) -> set[np.dtype]:
    return {a.dtype for a in arrays(x) if a.dtype.kind in "fcV"}


def bytewise(x: Any) -> list[Any]:
    return [(a.dtype, a.shape, a.tobytes()) for a in arrays(x)]


def test_every_operation_of_a_complete_topic_has_a_call():
    assert operations() - set(CALLS) == set(), "write its calls into CALLS"
    assert set(CALLS) <= set(labcore.ops._op.OPS)


# ---- Types of numbers ---------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", ON_ARRAYS)
@given(seed=seeds)
@few
def test_the_result_has_the_type_of_the_input(name, dtype, seed):
    assert number_types(run(name, in_type(draw_call(name, seed), dtype))) <= {dtype}


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", sorted(set(ON_ARRAYS) - IN_CODES))
@given(seed=seeds)
@few
def test_dtype_computes_and_returns_in_that_type(name, dtype, seed):
    call = draw_call(name, seed)
    got = run(name, call, dtype=dtype)
    assert number_types(got) == {dtype}
    if dtype in WIDE:
        assert bytewise(got) == bytewise(run(name, in_type(call, dtype)))


@pytest.mark.parametrize("dtype", HALF, ids=str)
@pytest.mark.parametrize("name", ON_ARRAYS)
@given(seed=seeds)
@few
def test_half_precision_is_computed_in_float32_and_rounded_once(name, dtype, seed):
    narrow = in_type(draw_call(name, seed), dtype)
    wide = run(name, in_type(narrow, np.dtype(np.float32)))
    assert bytewise(run(name, narrow)) == bytewise(in_type(wide, dtype))


@pytest.mark.parametrize("name", ON_ARRAYS)
@given(seed=seeds)
@few
def test_integers_are_computed_in_float64(name, seed):
    whole = draw_call(name, seed, DrawIntegers)
    got, want = run(name, whole), run(name, draw_floats_of(whole))
    assert number_types(got) <= {np.dtype(np.float64)}
    assert bytewise(got) == bytewise(want)


def draw_floats_of(call: Any) -> Any:
    """The integers of a call as floats; positions and tables are left integers."""
    args, kwargs = call
    return tuple(as_floats(part) for part in args), as_floats(kwargs)


def as_floats(x: Any) -> Any:
    if isinstance(x, dict):
        return {key: as_floats(part) for key, part in x.items()}
    if isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind == "i":
        return x.astype(float)
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*(as_floats(part) for part in x))
    if isinstance(x, list) and not isinstance(x[0], (int, float)):
        return [as_floats(part) for part in x]
    return x


@pytest.mark.parametrize("name", ON_ARRAYS)
@given(seed=seeds)
@few
def test_lists_are_taken_for_arrays(name, seed):
    call = draw_call(name, seed)
    as_lists = each_array(lambda a: a.tolist(), call)
    assert bytewise(run(name, as_lists)) == bytewise(run(name, call))


@pytest.mark.parametrize("name", ON_NUMBERS)
def test_a_type_that_is_no_float_is_refused(name):
    with pytest.raises(ValueError, match="dtype must be a float or complex type"):
        run(name, draw_call(name, 0), dtype=np.int64)


@pytest.mark.parametrize("name", ON_ARRAYS)
def test_complex_numbers_stay_complex(name):
    call = in_type(draw_call(name, 0), np.dtype(np.complex128))
    got, real = run(name, call), run(name, draw_call(name, 0))
    if not name.startswith("laplacian"):  # a distance is real, and so is its weight
        assert number_types(got) <= {np.dtype(np.complex128)}
    for g, w in zip(arrays(got), arrays(real), strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("name", ON_ARRAYS)
def test_complex_numbers_are_not_made_real(name):
    call = in_type(draw_call(name, 0), np.dtype(np.complex128))
    with pytest.raises(ValueError, match="cannot hold the complex numbers"):
        run(name, call, dtype=np.float64)


def test_a_scalar_does_not_decide_the_type():
    x = np.ones((2, 3), np.float32)
    assert labcore.temperature_softmax(x, np.float64(2.0)).dtype == np.float32
    assert labcore.attention(x, x, x, scale=np.float64(0.5)).dtype == np.float32
    S, k = np.ones((3, 3), np.float32), np.ones(3, np.float32)
    assert labcore.gated_write(S, k, k, np.float64(1), 0.5).dtype == np.float32


def test_float16_scores_beyond_its_range_are_computed():
    q = np.array([[256.0]], np.float16)  # 256 * 256 is above 65504
    weights = labcore.attention_weights(q, np.array([[256.0], [255.0]], np.float16))
    assert weights.dtype == np.float16
    assert weights.tolist() == [[1.0, 0.0]]


# ---- Pure arguments -----------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(CALLS))
@given(seed=seeds)
@few
def test_arguments_are_never_changed(name, seed):
    call = draw_call(name, seed)
    before = copy.deepcopy(call)
    run(name, call)
    assert bytewise(call) == bytewise(before)
    assert repr(call) == repr(before)


@pytest.mark.parametrize("name", sorted(CALLS))
@given(seed=seeds)
@few
def test_read_only_arguments_are_enough(name, seed):
    call = draw_call(name, seed)
    want = bytewise(run(name, call))
    for a in arrays(call):
        a.setflags(write=False)
    assert bytewise(run(name, call)) == want


@pytest.mark.parametrize("name", sorted(CALLS))
@given(seed=seeds)
@few
def test_the_same_call_has_the_same_answer(name, seed):
    first, second = (run(name, draw_call(name, seed)) for _ in range(2))
    assert bytewise(first) == bytewise(second)
    assert repr(first) == repr(second)


# ---- Batch axes ---------------------------------------------------------------------

UNBATCHED = {  # a single round; weights, which have no batch; sums over the batch
    "speculative_decode",
    "speculative_block_law",
    "layer_norm",
    "rms_norm",
    "laplacian_gradients",
    "median_sigma",
    "linear",
    "token_losses",
    "cross_entropy",
    "cross_entropy_gradient",
    *(name for name in CALLS if name.startswith("decoder")),
}


def stacked(calls: list[Any]) -> Any:
    """One call on arrays that have the calls' arrays along a new first axis."""
    first = calls[0]
    if isinstance(first, (np.ndarray, np.generic)):
        return np.stack(calls) if first.dtype.kind == "f" else first
    if isinstance(first, dict):
        return {key: stacked([call[key] for call in calls]) for key in first}
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(
            *(stacked(list(parts)) for parts in zip(*calls, strict=True))
        )
    if isinstance(first, (tuple, list)):
        return type(first)(stacked(list(parts)) for parts in zip(*calls, strict=True))
    return first


@pytest.mark.parametrize("name", sorted(set(ON_ARRAYS) - UNBATCHED))
@given(seed=seeds)
@few
def test_a_batch_is_a_loop(name, seed):
    calls = [draw_call(name, (seed + i) % 2**32) for i in range(3)]
    batch = arrays(run(name, stacked(calls)))
    one_by_one = [arrays(run(name, call)) for call in calls]
    for i, alone in enumerate(one_by_one):
        for together, want in zip(batch, alone, strict=True):
            assert together.shape == (3, *want.shape)
            np.testing.assert_allclose(together[i], want, rtol=1e-12, atol=1e-14)


def test_every_option_of_an_operation_has_a_name():
    """Options come after the star, so that no call depends on their order."""
    positional = {
        (name, p.name)
        for name in CALLS
        for p in inspect.signature(getattr(labcore, name)).parameters.values()
        if p.default is not p.empty and p.kind is not p.KEYWORD_ONLY
    }
    assert {name for _, name in positional} == {"axis", "base", "cache"}
