"""At the edges: no tokens at all, numbers too small, shapes that do not fit."""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Callable
from typing import Any

import labcore
import numpy as np
import pytest
from labcore import KernelState, KVCache, SoftmaxSummary
from labcore.ops import _op

from tests.data.calls import CALLS, Draw

INF = float("inf")
PARTS_1_AND_2 = (
    "softmax",
    "attention",
    "online",
    "kernel",
    "delta",
    "rope",
    "mla",
    "speculative",
    "laplacian",
)
NAMES = [
    name
    for topic in PARTS_1_AND_2
    for name in labcore.OPERATIONS[topic]
    if not isinstance(getattr(labcore, name), type)
]


def call_of(operation: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return CALLS[operation](Draw(np.random.default_rng(0)))


# ---- No tokens ----------------------------------------------------------------------

BATCHES = [(), (4,), (2, 3)]
STATE = np.arange(6.0).reshape(3, 2)
NORMALISER = np.arange(1.0, 4.0)


def no_tokens(batch: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    """Queries, keys, values and betas of a sequence without a token."""
    shapes = (0, 3), (0, 3), (0, 2), (0,)
    return tuple(np.zeros((*batch, *shape)) for shape in shapes)


KERNEL_FORMS: dict[str, Callable[..., Any]] = {
    "recurrent": labcore.kernel_attention_recurrent,
    "chunked": lambda *x, **o: labcore.kernel_attention_chunked(*x, chunk=2, **o),
}
DELTA_FORMS: dict[str, Callable[..., Any]] = {
    "recurrent": labcore.delta_attention,
    "chunked": lambda *x, **o: labcore.delta_attention_chunked(*x, chunk=2, **o),
}


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("form", KERNEL_FORMS)
def test_kernel_attention_of_no_token_reads_nothing_and_keeps_the_state(form, batch):
    q, k, v, _ = no_tokens(batch)
    output, (S, z) = KERNEL_FORMS[form](q, k, v)
    assert output.shape == labcore.kernel_attention(q, k, v).shape == (*batch, 0, 2)
    assert S.shape == (*batch, 3, 2) and not S.any()
    assert z.shape == (*batch, 3) and not z.any()
    output, (S, z) = KERNEL_FORMS[form](q, k, v, initial=KernelState(STATE, NORMALISER))
    assert output.shape == (*batch, 0, 2)
    assert np.array_equal(S, STATE) and np.array_equal(z, NORMALISER)


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("gates", [None, (0,), (0, 3)])
@pytest.mark.parametrize("form", DELTA_FORMS)
def test_writes_of_no_token_read_nothing_and_keep_the_state(form, gates, batch):
    q, k, v, beta = no_tokens(batch)
    retention = None if gates is None else np.zeros((*batch, *gates))
    output, S = DELTA_FORMS[form](q, k, v, beta, retention=retention)
    assert output.shape == (*batch, 0, 2)
    assert S.shape == (*batch, 3, 2) and not S.any()
    output, S = DELTA_FORMS[form](q, k, v, beta, retention=retention, initial=STATE)
    assert output.shape == (*batch, 0, 2)
    assert np.array_equal(S, STATE)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("form", DELTA_FORMS)
def test_no_token_has_a_type(form, dtype):
    output, S = DELTA_FORMS[form](*(x.astype(dtype) for x in no_tokens(())))
    assert output.dtype == S.dtype == dtype


@pytest.mark.parametrize("batch", BATCHES)
def test_softmax_attention_of_no_key_is_refused_in_every_form(batch):
    q, k, v, _ = no_tokens(batch)
    for read in (
        lambda: labcore.attention(q, k, v),
        lambda: labcore.causal_attention(q, k, v),
        lambda: labcore.causal_attention_cached(q, k, v),
        lambda: labcore.attention_from_cache(q, KVCache(k, v)),
        lambda: labcore.blockwise_attention(q, k, v, block=1, causal=True),
    ):
        with pytest.raises(ValueError, match="k has no keys"):
            read()


@pytest.mark.parametrize("batch", BATCHES)
def test_no_query_reads_nothing_of_many_keys_in_every_form(batch):
    q = no_tokens(batch)[0]
    k, v = np.ones((*batch, 5, 3)), np.ones((*batch, 5, 2))
    for read in (
        labcore.attention(q, k, v),
        labcore.attention_from_cache(q, KVCache(k, v)),
        labcore.blockwise_attention(q, k, v, block=2),
        labcore.blockwise_attention(q, k, v, block=2, causal=True),
    ):
        assert read.shape == (*batch, 0, 2)


# ---- Too small for the type ---------------------------------------------------------

FAR = np.array([0.0, -745.5, -1000.0, -INF, -1e300])
FAR_32 = np.array([0.0, -103.5, -1000.0, -INF, -1e38], np.float32)
VALUES = np.arange(10.0).reshape(5, 2)
TINY = np.full((3, 1), 1e-200)
NEAR = labcore.summarize([0.0], [[1e-300]])
LOW = labcore.summarize([-700.0], [[1e-300]])
HIGHEST = labcore.summarize([1e308], [[1.0]])
LOWEST = labcore.summarize([-1e308], [[1.0]])
EMPTY = labcore.summarize([-INF], [[1.0]])
APART = np.array([[30.0], [40.0]]), np.array([[-30.0], [30.0]])
FAINT = np.array([[1e-308], [1.0]])

SMALL: dict[str, Callable[[], Any]] = {
    "softmax": lambda: labcore.softmax(FAR),
    "softmax in float32": lambda: labcore.softmax(FAR_32),
    "softmax to float16": lambda: labcore.softmax([0.0, -20.0], dtype=np.float16),
    "softmax, wide": lambda: labcore.softmax([1.7e308, -1.7e308]),
    "logsumexp": lambda: labcore.logsumexp(FAR),
    "logsumexp of nothing": lambda: labcore.logsumexp([]),
    "logsumexp, masked": lambda: labcore.logsumexp([-INF, -INF]),
    "logsumexp, wide": lambda: labcore.logsumexp([1.7e308, -1.7e308]),
    "log_softmax": lambda: labcore.log_softmax(FAR),
    "log_softmax, wide": lambda: labcore.log_softmax([1.7e308, -1.7e308]),
    "temperature, cold": lambda: labcore.temperature_softmax(FAR, 1e-306),
    "temperature, hot": lambda: labcore.temperature_softmax(FAR, 1e306),
    "entropy": lambda: labcore.entropy([1.0, 1e-310, 0.0]),
    "attention": lambda: labcore.attention(*APART, FAINT),
    "attention, one key": lambda: labcore.attention(
        *APART, FAINT, allowed=[[True, False], [True, True]]
    ),
    "causal_attention": lambda: labcore.causal_attention(*APART, FAINT),
    "causal_attention_cached": lambda: labcore.causal_attention_cached(*APART, FAINT),
    "blockwise": lambda: labcore.blockwise_attention(*APART, FAINT, block=1),
    "blockwise, causal": lambda: labcore.blockwise_attention(
        *APART, FAINT, block=1, causal=True
    ),
    "grouped": lambda: labcore.grouped_query_attention(
        *(x[None] for x in APART), [FAINT]
    ),
    "summarize": lambda: labcore.summarize(FAR, VALUES * 1e-300),
    "summarize, masked": lambda: labcore.summarize([-INF, -INF], VALUES[:2]),
    "summarize of nothing": lambda: labcore.summarize([], VALUES[:0]),
    "merge": lambda: labcore.merge(NEAR, LOW),
    "merge, wide": lambda: labcore.merge(HIGHEST, LOWEST),
    "merge, empty": lambda: labcore.merge(EMPTY, labcore.merge(EMPTY, EMPTY)),
    "lse": lambda: labcore.merge(EMPTY, EMPTY).lse,
    "finish": lambda: labcore.finish(
        SoftmaxSummary(np.array(0.0), np.array(1e300), np.array([1e-300]))
    ),
    "online": lambda: labcore.online_softmax(
        [[-INF], [1e3], [-1e3, -INF]], [[[7.0]], [[1.0]], [[2.0], [3.0]]]
    ),
    "elu_plus_one": lambda: labcore.elu_plus_one(FAR[[0, 1, 2, 4]]),
    "kernel": lambda: labcore.kernel_attention([[1e-150]], [[1e-150]], [[1e-200]]),
    "kernel, recurrent": lambda: labcore.kernel_attention_recurrent(
        [[1e-150]], [[1e-150]], [[1e-200]]
    ),
    "kernel, chunked": lambda: labcore.kernel_attention_chunked(
        [[1e-150]], [[1e-150]], [[1e-200]], chunk=1
    ),
    "gated_write": lambda: labcore.gated_write(
        [[1e-200]], [1e-200], [1e-200], 0.5, 1e-200
    ),
    "delta": lambda: labcore.delta_attention(
        TINY, TINY, TINY, np.full(3, 0.5), retention=TINY
    ),
    "delta, chunked": lambda: labcore.delta_attention_chunked(
        TINY, TINY, TINY, np.full(3, 0.5), retention=TINY, chunk=2
    ),
    "rope": lambda: labcore.rope([1e-308, 1e-310, 1.0, 0.0], 1e-300),
    "rope, many planes": lambda: labcore.rope(np.ones(64), 3, base=1e300),
    "rope_frequencies": lambda: labcore.rope_frequencies(64, 1e308),
    "laplacian": lambda: labcore.laplacian_attention(
        [[0.0]], [[1000.0], [1e300]], FAINT, 1.0
    ),
    "laplacian, cold": lambda: labcore.laplacian_attention(
        [[0.0]], [[1000.0], [1e-310]], FAINT, 1e-305
    ),
    "laplacian_gradients": lambda: labcore.laplacian_gradients(
        [[0.0]], [[1000.0], [1e-310]], FAINT, 1.0, [[1.0]]
    ),
    "mla": lambda: labcore.mla_absorbed(
        [[30.0]], [[30.0]], APART[1], APART[1], [[1.0]], [[1e-308]]
    ),
    "speculative": lambda: labcore.speculative_distribution(
        [1.0, 1e-310], [1e-310, 1.0]
    ),
    "expected_tokens": lambda: labcore.expected_tokens(1e-310, 3),
}


@pytest.mark.parametrize("what", SMALL)
def test_what_is_too_small_becomes_zero_even_where_every_flag_is_an_error(what):
    with np.errstate(all="raise"):
        strict = SMALL[what]()
    with np.errstate(all="ignore"):
        assert repr(strict) == repr(SMALL[what]())


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("operation", NAMES)
def test_no_right_call_raises_a_flag(operation, dtype):
    args, options = call_of(operation)
    narrow = [
        x.astype(dtype) if isinstance(x, np.ndarray) and x.dtype.kind == "f" else x
        for x in args
    ]
    with np.errstate(all="raise"):
        getattr(labcore, operation)(*narrow, **options)


# ---- Axes in front ------------------------------------------------------------------


def in_front(x: Any, n: int) -> Any:
    """The argument with one more axis of n in front; what has none is left alone."""
    if isinstance(x, np.ndarray) and x.ndim:
        return np.stack([x] * n)
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*(in_front(part, n) for part in x))
    if isinstance(x, list) and isinstance(x[0], np.ndarray):
        return [in_front(part, n) for part in x]
    return x


CLASHES = [
    (operation, *pair)
    for operation in NAMES
    for pair in itertools.permutations(
        [
            name
            for name, x in inspect.signature(_op.OPS[operation])
            .bind(*call_of(operation)[0], **call_of(operation)[1])
            .arguments.items()
            if in_front(x, 2) is not x
        ],
        2,
    )
]
SHORT = {"score_chunks": "scores", "value_chunks": "values"}


@pytest.mark.parametrize("operation, two, three", CLASHES)
def test_batches_of_two_and_of_three_are_refused_by_name(operation, two, three):
    args, options = call_of(operation)
    call = inspect.signature(_op.OPS[operation]).bind(*args, **options)
    call.arguments[two] = in_front(call.arguments[two], 2)
    call.arguments[three] = in_front(call.arguments[three], 3)
    with pytest.raises(ValueError) as refusal:
        getattr(labcore, operation)(*call.args, **call.kwargs)
    said = str(refusal.value)
    assert re.search(rf"\b({two}|{three}|{SHORT.get(two)}|{SHORT.get(three)})\b", said)
    assert len(re.findall(r"\([\d, ]*\)|\[[\d, ]*\]", said)) >= (
        2 if "axes" in said else 1
    )
    assert "operands" not in said


def test_there_are_many_ways_to_clash():
    assert len(CLASHES) > 150


@pytest.mark.parametrize(
    "maximum, mass, weighted",
    [((), (), ()), ((2,), (), (2, 3)), ((), (2,), (2, 3)), ((2,), (2,), (3,))]
    + [((2,), (2,), (3, 3)), ((2, 1), (2, 1), (1, 3)), ((1,), (), (1, 3))],
)
def test_a_summary_whose_parts_do_not_belong_together_is_refused(
    maximum, mass, weighted
):
    odd = SoftmaxSummary(np.zeros(maximum), np.ones(mass), np.ones(weighted))
    right = labcore.summarize([0.0], [[1.0, 2.0, 3.0]])
    for call in (
        lambda: labcore.finish(odd),
        lambda: labcore.merge(odd, right),
        lambda: labcore.merge(right, odd),
    ):
        with pytest.raises(ValueError, match=r"must have a maximum \(...\), a mass"):
            call()


def test_values_with_more_axes_in_front_than_their_scores_make_a_summary():
    scores, values = np.zeros(3), np.arange(24.0).reshape(4, 3, 2)
    summary = labcore.summarize(scores, values)
    assert summary.mass.shape == () and summary.weighted.shape == (4, 2)
    both = labcore.merge(summary, summary)
    np.testing.assert_allclose(labcore.finish(both), values.mean(axis=1))
