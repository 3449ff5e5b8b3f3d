"""The laws of the course, over shapes, seeds and magnitudes: one law a test."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import labcore
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from labcore import SoftmaxSummary

many = settings(max_examples=40)

rngs = st.integers(0, 2**32 - 1).map(np.random.default_rng)
sizes = st.integers(1, 7)
magnitudes = st.sampled_from([1e-8, 1e-3, 1.0, 30.0, 1e3])
shifts = st.floats(-1e4, 1e4)
EPS = float(np.finfo(float).eps)


def close(got: Any, want: Any, rounding: float = 1e3) -> bool:
    """Equal shapes, and numbers within so many roundings of the largest one wanted."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape
    scale = float(np.max(np.abs(want), initial=1e-300))
    return bool(np.all(np.abs(got - want) <= rounding * EPS * scale))


def all_close(got: Any, want: Any, rounding: float = 1e3) -> bool:
    return all(close(g, w, rounding) for g, w in zip(got, want, strict=True))


def cuts(rng: np.random.Generator, n: int) -> list[slice]:
    """n places cut anywhere, into pieces of which some may be empty."""
    inside = np.sort(rng.integers(0, n + 1, size=rng.integers(0, n + 2)))
    return [slice(a, b) for a, b in pairwise([0, *inside.tolist(), n])]


def a_mask(rng: np.random.Generator, n_q: int, n_k: int) -> np.ndarray:
    """Any mask that leaves every query a key."""
    allowed = rng.random((n_q, n_k)) < rng.uniform(0.1, 0.9)
    allowed[np.arange(n_q), rng.integers(0, n_k, size=n_q)] = True
    return allowed


def a_law(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Probabilities, some of them zero."""
    p = rng.random(shape) * (rng.random(shape) < 0.7)
    p[..., 0] += np.where(p.sum(axis=-1) == 0, 1.0, 0.0)
    return rng.permutation(p / p.sum(axis=-1, keepdims=True), axis=-1)


# ---- Softmax ------------------------------------------------------------------------


@given(rngs, sizes, magnitudes, shifts)
@many
def test_softmax_does_not_see_a_shift(rng, n, magnitude, shift):
    x = magnitude * rng.normal(size=(2, n))
    rounding = 10 * (1 + abs(shift) + np.abs(x).max())
    assert close(labcore.softmax(x + shift), labcore.softmax(x), rounding)


@given(rngs, sizes, magnitudes)
@many
def test_softmax_sums_to_one_and_is_not_negative(rng, n, magnitude):
    p = labcore.softmax(magnitude * rng.normal(size=(2, n)))
    assert close(p.sum(axis=-1), [1.0, 1.0], rounding=8)
    assert np.all(p >= 0)


@given(rngs, sizes, magnitudes)
@many
def test_softmax_of_permuted_scores_is_the_permuted_softmax(rng, n, magnitude):
    x, order = magnitude * rng.normal(size=n), rng.permutation(n)
    assert close(labcore.softmax(x[order]), labcore.softmax(x)[order], rounding=16)


@given(rngs, sizes, magnitudes)
@many
def test_softmax_keeps_the_order_of_the_scores(rng, n, magnitude):
    x = np.sort(magnitude * rng.normal(size=n))
    assert np.all(np.diff(labcore.softmax(x)) >= 0)


@given(rngs, sizes, magnitudes)
@many
def test_the_axis_of_softmax_is_the_axis_that_sums_to_one(rng, n, magnitude):
    x = magnitude * rng.normal(size=(n, n + 1, n + 2))
    for axis in range(-3, 3):
        moved = np.moveaxis(labcore.softmax(np.moveaxis(x, axis, -1)), -1, axis)
        assert close(labcore.softmax(x, axis), moved, rounding=16)


@given(rngs, sizes, magnitudes)
@many
def test_log_softmax_is_the_score_less_the_logsumexp(rng, n, magnitude):
    x = magnitude * rng.normal(size=(2, n))
    want = x - labcore.logsumexp(x)[:, None]
    assert np.all(np.abs(labcore.log_softmax(x) - want) <= 1e-14 * (10 + abs(x).max()))


@given(rngs, sizes, magnitudes, shifts)
@many
def test_logsumexp_moves_with_its_scores(rng, n, magnitude, shift):
    x = magnitude * rng.normal(size=n)
    apart = labcore.logsumexp(x + shift) - (labcore.logsumexp(x) + shift)
    assert abs(apart) <= 8 * EPS * (1 + abs(shift) + np.abs(x).max())


@given(rngs, sizes, magnitudes)
@many
def test_logsumexp_lies_between_the_maximum_and_log_n_above(rng, n, magnitude):
    x = magnitude * rng.normal(size=n)
    above = labcore.logsumexp(x) - x.max()
    assert -4 * EPS * abs(x).max() <= above <= np.log(n) + 4 * EPS * (1 + abs(x).max())


@given(rngs, sizes, magnitudes, st.floats(1e-2, 1e2))
@many
def test_temperature_divides_the_scores(rng, n, magnitude, t):
    x = magnitude * rng.normal(size=n)
    rounding = 16 * (1 + np.abs(x).max() / t)
    want = labcore.softmax(x / t)
    assert close(labcore.temperature_softmax(x, t), want, rounding)


@given(rngs, sizes)
@many
def test_entropy_lies_between_zero_and_log_n(rng, n):
    p = a_law(rng, n)
    assert 0.0 <= labcore.entropy(p) <= np.log(n) + 8 * EPS


# ---- Attention and caching ----------------------------------------------------------


def qkv(rng, n_q, n_k, d_k, d_v, magnitude=1.0):
    return (
        magnitude * rng.normal(size=(2, n_q, d_k)),
        rng.normal(size=(2, n_k, d_k)),
        rng.normal(size=(2, n_k, d_v)),
    )


@given(rngs, sizes, sizes, sizes, magnitudes)
@many
def test_attention_is_a_mean_of_values(rng, n, d_k, d_v, magnitude):
    q, k, v = qkv(rng, n, n + 2, d_k, d_v, magnitude)
    read = labcore.attention(q, k, v, allowed=a_mask(rng, n, n + 2))
    slack = 16 * EPS * np.abs(v).max()
    assert np.all(read <= v.max(axis=1, keepdims=True) + slack)
    assert np.all(read >= v.min(axis=1, keepdims=True) - slack)


@given(rngs, sizes, sizes, sizes)
@many
def test_attention_does_not_see_the_order_of_its_keys(rng, n, d_k, d_v):
    q, k, v = qkv(rng, n, n + 2, d_k, d_v)
    order = rng.permutation(n + 2)
    got = labcore.attention(q, k[:, order], v[:, order])
    assert close(got, labcore.attention(q, k, v))


@given(rngs, sizes, sizes, sizes)
@many
def test_a_masked_key_is_a_key_that_is_not_there(rng, n, d_k, d_v):
    q, k, v = qkv(rng, 1, n + 2, d_k, d_v)
    allowed = a_mask(rng, 1, n + 2)
    kept = allowed[0]
    want = labcore.attention(q, k[:, kept], v[:, kept])
    assert close(labcore.attention(q, k, v, allowed=allowed), want)


@given(rngs, sizes, sizes)
@many
def test_prefill_and_decode_equal_the_whole_for_any_split(rng, d_k, d_v):
    n = int(rng.integers(1, 9))
    q, k, v = qkv(rng, n, n, d_k, d_v)
    cache, reads = None, []
    for piece in cuts(rng, n):
        cache = labcore.kv_append(cache, k[:, piece], v[:, piece])
        if piece.stop > piece.start:
            reads.append(labcore.attention_from_cache(q[:, piece], cache))
    assert close(np.concatenate(reads, axis=1), labcore.causal_attention(q, k, v))


@given(rngs, sizes, sizes, sizes)
@many
def test_a_cache_fed_in_chunks_equals_the_whole_for_any_chunk(rng, chunk, d_k, d_v):
    q, k, v = qkv(rng, 6, 6, d_k, d_v)
    got = labcore.causal_attention_cached(q, k, v, chunk=chunk)
    assert close(got, labcore.causal_attention(q, k, v))


@given(sizes, sizes, sizes)
@many
def test_a_causal_query_sees_one_key_more_than_the_one_before(n_q, more, window):
    mask = labcore.causal_mask(n_q, n_q + more)
    assert mask.sum(axis=1).tolist() == [more + i + 1 for i in range(n_q)]
    seen = labcore.causal_mask(n_q, n_q + more, window=window).sum(axis=1)
    assert seen.tolist() == [min(window, more + i + 1) for i in range(n_q)]


@given(rngs, st.integers(1, 3), st.integers(1, 3), sizes, sizes)
@many
def test_grouped_heads_are_heads_on_repeated_keys(rng, groups, size, d_k, d_v):
    q = rng.normal(size=(groups * size, 3, d_k))
    k, v = rng.normal(size=(groups, 4, d_k)), rng.normal(size=(groups, 4, d_v))
    want = labcore.attention(q, np.repeat(k, size, 0), np.repeat(v, size, 0))
    assert close(labcore.grouped_query_attention(q, k, v), want)


@given(rngs, sizes, sizes)
@many
def test_no_two_tokens_share_a_slot(rng, blocks, block_size):
    table = rng.permutation(2 * blocks)[:blocks]
    slots = labcore.paged_positions(table, blocks * block_size, block_size=block_size)
    assert len(set(slots.tolist())) == blocks * block_size
    assert (slots // block_size).tolist() == np.repeat(table, block_size).tolist()


# ---- Summaries ----------------------------------------------------------------------


def a_summary(rng, d_v=2, magnitude=1.0):
    n = int(rng.integers(0, 4))
    scores = magnitude * rng.normal(size=n)
    scores[rng.random(n) < 0.3] = -np.inf
    return labcore.summarize(scores, rng.normal(size=(n, d_v)))


EMPTY = SoftmaxSummary(np.array(-np.inf), np.array(0.0), np.zeros(2))


@given(rngs, magnitudes)
@many
def test_merge_is_commutative_to_the_last_bit(rng, magnitude):
    a, b = (a_summary(rng, magnitude=magnitude) for _ in range(2))
    for left, right in zip(labcore.merge(a, b), labcore.merge(b, a), strict=True):
        assert np.array_equal(left, right)


@given(rngs, magnitudes)
@many
def test_the_empty_summary_is_neutral_to_the_last_bit(rng, magnitude):
    a = a_summary(rng, magnitude=magnitude)
    for merged in (labcore.merge(a, EMPTY), labcore.merge(EMPTY, a)):
        assert all(np.array_equal(x, y) for x, y in zip(merged, a, strict=True))


@given(rngs, magnitudes)
@many
def test_merge_is_associative(rng, magnitude):
    a, b, c = (a_summary(rng, magnitude=magnitude) for _ in range(3))
    left = labcore.merge(labcore.merge(a, b), c)
    right = labcore.merge(a, labcore.merge(b, c))
    assert np.array_equal(left.maximum, right.maximum)
    assert close(left.mass, right.mass)
    assert np.all(np.abs(left.weighted - right.weighted) <= 1e-12)


@given(rngs, sizes, magnitudes, shifts)
@many
def test_any_cut_of_a_row_gives_the_same_read(rng, n, magnitude, shift):
    scores = shift + magnitude * rng.normal(size=n)
    scores[1:][rng.random(n - 1) < 0.3] = -np.inf
    values = rng.normal(size=(n, 2))
    pieces = cuts(rng, n)
    got = labcore.online_softmax(
        [scores[p] for p in pieces], [values[p] for p in pieces]
    )
    assert np.all(np.abs(got - labcore.softmax(scores) @ values) <= 1e-13)


@given(rngs, sizes, magnitudes)
@many
def test_the_lse_of_a_trace_is_the_logsumexp_so_far(rng, n, magnitude):
    scores = magnitude * rng.normal(size=n)
    pieces = cuts(rng, n)
    values = [np.ones((piece.stop - piece.start, 1)) for piece in pieces]
    trace = labcore.online_trace([scores[p] for p in pieces], values)
    for piece, summary in zip(pieces, trace, strict=True):
        want = labcore.logsumexp(scores[: piece.stop])
        assert summary.lse == want or abs(summary.lse - want) <= 1e-14 * (
            1 + abs(scores).max()
        )


@given(rngs, sizes, sizes, st.integers(1, 9), magnitudes)
@many
def test_blockwise_attention_is_dense_for_any_block_and_mask(
    rng, d_k, d_v, block, magnitude
):
    n_q, n_k = rng.integers(1, 8, size=2).tolist()
    q, k, v = qkv(rng, n_q, n_k, d_k, d_v, magnitude)
    allowed = a_mask(rng, n_q, n_k)
    got = labcore.blockwise_attention(q, k, v, block=block, allowed=allowed)
    assert np.all(np.abs(got - labcore.attention(q, k, v, allowed=allowed)) <= 1e-11)


@given(rngs, sizes, sizes, st.integers(1, 9), st.integers(0, 3))
@many
def test_blockwise_causal_attention_is_dense_for_any_prefix(rng, d_k, n, block, prefix):
    q, k, v = qkv(rng, n, n + prefix, d_k, 2)
    allowed = labcore.causal_mask(n, n + prefix)
    want = labcore.attention(q, k, v, allowed=allowed)
    for offset in (None, prefix):
        got = labcore.blockwise_attention(
            q, k, v, block=block, causal=True, offset=offset
        )
        assert close(got, want)


# ---- Kernel attention ---------------------------------------------------------------


@given(rngs, sizes, sizes, sizes, st.integers(1, 9), st.sampled_from([1e-3, 1.0, 30.0]))
@many
def test_kernel_attention_is_one_map_in_three_forms(rng, n, d_k, d_v, chunk, magnitude):
    fq, fk = (
        labcore.elu_plus_one(magnitude * rng.normal(size=(2, n, d_k))) for _ in "qk"
    )
    v = rng.normal(size=(2, n, d_v))
    pairwise_read = labcore.kernel_attention(fq, fk, v)
    recurrent, state = labcore.kernel_attention_recurrent(fq, fk, v)
    chunked, end = labcore.kernel_attention_chunked(fq, fk, v, chunk=chunk)
    scale = np.abs(v).max()
    assert np.all(np.abs(recurrent - pairwise_read) <= 1e-13 * scale)
    assert np.all(np.abs(chunked - pairwise_read) <= 1e-13 * scale)
    assert all_close(end, state)


@given(rngs, sizes, sizes)
@many
def test_kernel_attention_does_not_see_the_length_of_a_query(rng, n, d_k):
    fq, fk = rng.uniform(0.1, 1.0, size=(2, n, d_k))
    v = rng.normal(size=(n, 2))
    longer = fq * rng.uniform(0.01, 100.0, size=(n, 1))
    got = labcore.kernel_attention(longer, fk, v)
    assert close(got, labcore.kernel_attention(fq, fk, v))


@given(rngs, sizes, st.integers(1, 9))
@many
def test_a_kernel_state_handed_over_at_any_cut_is_the_whole(rng, d_k, chunk):
    n = int(rng.integers(2, 9))
    fq, fk = rng.uniform(0.1, 1.0, size=(2, n, d_k))
    v = rng.normal(size=(n, 2))
    whole, end = labcore.kernel_attention_recurrent(fq, fk, v)
    state, reads = None, []
    for piece in cuts(rng, n):
        if piece.stop > piece.start:
            read, state = labcore.kernel_attention_chunked(
                fq[piece], fk[piece], v[piece], chunk=chunk, initial=state
            )
            reads.append(read)
    assert close(np.concatenate(reads), whole)
    assert all_close(state, end)


@given(rngs, sizes, magnitudes)
@many
def test_features_are_positive_and_rise_with_their_input(rng, n, magnitude):
    x = np.sort(magnitude * rng.normal(size=n))
    x = x[x > -700]
    features = labcore.elu_plus_one(x)
    assert np.all(features > 0)
    assert np.all(np.diff(features) >= 0)


# ---- Delta writes -------------------------------------------------------------------


def unit(k):
    return k / np.linalg.norm(k, axis=-1, keepdims=True)


def gates(rng, *shape):
    """Retentions, some of which keep all and some nothing."""
    drawn = rng.uniform(0.2, 1.0, size=shape)
    drawn[rng.random(shape) < 0.2] = 0.0
    drawn[rng.random(shape) < 0.2] = 1.0
    return drawn


@given(
    rngs, sizes, sizes, st.integers(1, 9), st.sampled_from("none step channel".split())
)
@many
def test_delta_writes_in_chunks_are_the_writes_one_by_one(rng, d_k, d_v, chunk, kind):
    n = int(rng.integers(1, 8))
    q, k = rng.normal(size=(2, 2, n, d_k))
    v, beta = rng.normal(size=(2, n, d_v)), rng.uniform(0, 2, size=(2, n))
    shape = {"step": (2, n), "channel": (2, n, d_k)}.get(kind)
    options = {
        "retention": None if shape is None else gates(rng, *shape),
        "initial": rng.normal(size=(2, d_k, d_v)),
    }
    want = labcore.delta_attention(q, unit(k), v, beta, **options)
    got = labcore.delta_attention_chunked(q, unit(k), v, beta, chunk=chunk, **options)
    assert all_close(got, want, rounding=1e4)


@given(rngs, sizes, sizes)
@many
def test_a_delta_state_handed_over_at_any_cut_is_the_whole(rng, d_k, d_v):
    n = int(rng.integers(1, 8))
    q, k = rng.normal(size=(2, n, d_k))
    k, v = unit(k), rng.normal(size=(n, d_v))
    beta, retention = rng.uniform(0, 1, size=n), gates(rng, n, d_k)
    whole, end = labcore.delta_attention(q, k, v, beta, retention=retention)
    S, reads = np.zeros((d_k, d_v)), []
    for p in cuts(rng, n):
        if p.stop > p.start:
            read, S = labcore.delta_attention(
                q[p], k[p], v[p], beta[p], retention=retention[p], initial=S
            )
            reads.append(read)
    assert close(np.concatenate(reads), whole)
    assert close(S, end)


def drawn_write(rng, d_k, d_v, magnitude):
    return {
        "k": rng.normal(size=d_k),
        "v": magnitude * rng.normal(size=d_v),
        "beta": float(rng.uniform(0, 2)),
        "retention": gates(rng, d_k),
    }


@given(rngs, sizes, sizes, magnitudes, st.floats(-2, 2))
@many
def test_a_gated_write_is_affine_in_the_state(rng, d_k, d_v, magnitude, a):
    one, two = magnitude * rng.normal(size=(2, d_k, d_v))
    write = drawn_write(rng, d_k, d_v, magnitude)
    mixed = labcore.gated_write(a * one + (1 - a) * two, **write)
    parts = labcore.gated_write(one, **write), labcore.gated_write(two, **write)
    scale = 1e3 * EPS * max(np.abs(parts[0]).max(), np.abs(parts[1]).max())
    assert np.all(np.abs(mixed - (a * parts[0] + (1 - a) * parts[1])) <= 4 * scale)


@given(rngs, sizes, sizes)
@many
def test_writes_superpose_states_and_values(rng, d_k, d_v):
    (S, T), (v, w) = rng.normal(size=(2, d_k, d_v)), rng.normal(size=(2, d_v))
    k, retention = rng.normal(size=d_k), gates(rng, d_k)
    both = labcore.gated_write(S + T, k, v + w, 0.7, retention)
    first = labcore.gated_write(S, k, v, 0.7, retention)
    second = labcore.gated_write(T, k, w, 0.7, retention)
    scale = 1e3 * EPS * max(np.abs(first).max(), np.abs(second).max())
    assert np.all(np.abs(both - (first + second)) <= scale)


@given(rngs, sizes, sizes, magnitudes)
@many
def test_a_unit_key_reads_what_was_written_with_it(rng, d_k, d_v, magnitude):
    S, k = rng.normal(size=(d_k, d_v)), unit(rng.normal(size=d_k))
    v = magnitude * rng.normal(size=d_v)
    read = k @ labcore.delta_write(S, k, v, 1.0)
    assert np.all(np.abs(read - v) <= 1e-13 * (1 + magnitude))


@given(rngs, sizes, sizes)
@many
def test_writing_the_same_twice_is_writing_it_once(rng, d_k, d_v):
    S, k = rng.normal(size=(d_k, d_v)), unit(rng.normal(size=d_k))
    v = rng.normal(size=d_v)
    once = labcore.delta_write(S, k, v, 1.0)
    assert close(labcore.delta_write(once, k, v, 1.0), once)


@given(rngs, sizes, sizes)
@many
def test_writes_with_orthogonal_keys_commute(rng, d_k, d_v):
    basis = np.linalg.qr(rng.normal(size=(d_k + 1, d_k + 1)))[0]
    S = rng.normal(size=(d_k + 1, d_v))
    first, second = (basis[0], rng.normal(size=d_v)), (basis[1], rng.normal(size=d_v))
    one = labcore.delta_write(labcore.delta_write(S, *first, 0.5), *second, 1.5)
    other = labcore.delta_write(labcore.delta_write(S, *second, 1.5), *first, 0.5)
    assert close(one, other)


# ---- RoPE ---------------------------------------------------------------------------

layouts = st.sampled_from(["interleaved", "half"])
bases = st.sampled_from([2.0, 500.0, 10000.0, 1e6])


@given(rngs, sizes, sizes, layouts, bases)
@many
def test_a_rotation_keeps_lengths(rng, n, planes, layout, base):
    x, positions = rng.normal(size=(n, 2 * planes)), rng.integers(0, 10**6, size=n)
    turned = labcore.rope(x, positions, layout=layout, base=base)
    assert close((turned**2).sum(axis=-1), (x**2).sum(axis=-1), rounding=16)


@given(rngs, sizes, layouts, bases, st.integers(-1000, 1000))
@many
def test_scores_of_rotated_vectors_depend_on_offsets_alone(
    rng, planes, layout, base, shift
):
    q, k = rng.normal(size=(2, 4, 2 * planes))
    positions = rng.integers(0, 1000, size=4)

    def scores(p):
        turn = {"layout": layout, "base": base}
        return labcore.rope(q, p, **turn) @ labcore.rope(k, p, **turn).T

    apart = np.abs(scores(positions) - scores(positions + shift))
    assert np.all(apart <= 1e-12 * planes * 10)


@given(rngs, sizes, sizes, layouts, bases)
@many
def test_turning_twice_is_turning_by_the_sum(rng, n, planes, layout, base):
    x, turn = rng.normal(size=(n, 2 * planes)), {"layout": layout, "base": base}
    a, b = rng.integers(-500, 500, size=(2, n))
    twice = labcore.rope(labcore.rope(x, a, **turn), b, **turn)
    assert close(twice, labcore.rope(x, a + b, **turn))


@given(rngs, sizes, sizes, bases)
@many
def test_the_two_layouts_are_one_map_up_to_order(rng, n, planes, base):
    x, positions = rng.normal(size=(n, 2 * planes)), rng.integers(0, 1000, size=n)
    order = np.arange(2 * planes).reshape(planes, 2).T.ravel()
    half = labcore.rope(x[:, order], positions, layout="half", base=base)
    assert np.array_equal(half, labcore.rope(x, positions, base=base)[:, order])


@given(rngs, sizes, sizes, layouts)
@many
def test_each_row_turns_by_its_own_position(rng, n, planes, layout):
    x, positions = rng.normal(size=(n, 2 * planes)), rng.integers(0, 1000, size=n)
    rows = [
        labcore.rope(row, int(p), layout=layout)
        for row, p in zip(x, positions, strict=True)
    ]
    assert np.array_equal(labcore.rope(x, positions, layout=layout), np.stack(rows))


@given(rngs, sizes, layouts)
@many
def test_rotated_attention_does_not_see_where_a_sequence_starts(rng, n, layout):
    q, k, v = rng.normal(size=(3, n, 4))
    positions, shift = np.arange(n), int(rng.integers(0, 1000))
    got = labcore.rope_attention(q, k, v, positions + shift, layout=layout)
    assert close(got, labcore.rope_attention(q, k, v, positions, layout=layout), 1e4)


# ---- MLA ----------------------------------------------------------------------------


@given(rngs, sizes, sizes, sizes, sizes, st.booleans())
@many
def test_absorbed_is_explicit_for_any_shapes(rng, d_nope, d_rope, rank, d_v, masked):
    n_q, n, heads = rng.integers(1, 6, size=3).tolist()
    read = {
        "q_nope": rng.normal(size=(heads, n_q, d_nope)),
        "q_rope": rng.normal(size=(heads, n_q, d_rope)),
        "c_kv": rng.normal(size=(n, rank)),
        "k_rope": rng.normal(size=(n, d_rope)),
        "w_uk": rng.normal(size=(heads, d_nope, rank)),
        "w_uv": rng.normal(size=(heads, d_v, rank)),
        "allowed": a_mask(rng, n_q, n) if masked else None,
    }
    assert all_close(labcore.mla_absorbed(**read), labcore.mla_explicit(**read))


@given(rngs, sizes, sizes)
@many
def test_without_rotary_part_and_projections_mla_is_attention(rng, n, d):
    q, c = rng.normal(size=(n, d)), rng.normal(size=(n + 1, d))
    nothing_q, nothing_k = np.zeros((n, 0)), np.zeros((n + 1, 0))
    one = np.eye(d)
    read = labcore.mla_absorbed(q, nothing_q, c, nothing_k, one, one)
    assert close(read.output, labcore.attention(q, c, c))


# ---- Speculative decoding -----------------------------------------------------------


@given(rngs, sizes, sizes)
@many
def test_the_law_that_is_emitted_is_the_target(rng, rows, n):
    p, q = a_law(rng, rows, n), a_law(rng, rows, n)
    q[0] = p[0]  # one row with nothing to reject
    assert close(labcore.speculative_distribution(p, q), p)


@given(rngs, sizes)
@many
def test_acceptance_is_symmetric_and_at_most_one(rng, n):
    p, q = a_law(rng, n), a_law(rng, n)
    rate = labcore.speculative_acceptance(p, q).sum()
    assert rate == labcore.speculative_acceptance(q, p).sum()
    assert 0 <= rate <= 1 + 8 * EPS


@given(rngs, sizes)
@many
def test_a_residual_is_a_law_where_the_target_exceeds_the_draft(rng, n):
    p, q = a_law(rng, n + 1), np.full(n + 1, 1 / (n + 1))
    if np.allclose(p, q):
        p = np.eye(n + 1)[0]
    residual = labcore.speculative_residual(p, q)
    assert close(residual.sum(), 1.0)
    assert np.array_equal(residual > 0, p > q)


@given(rngs, st.integers(2, 6), st.integers(0, 4))
@many
def test_a_round_emits_drafts_and_one_token_more_all_possible(rng, n, gamma):
    p, q = a_law(rng, gamma + 1, n), a_law(rng, gamma, n)
    drafts = [int(rng.choice(n, p=row)) for row in q]
    done = labcore.speculative_decode(p, q, drafts, rng.random(gamma + 1).tolist())
    assert len(done.tokens) == done.accepted + 1
    assert done.tokens[:-1] == drafts[: done.accepted]
    assert all(p[i, token] > 0 for i, token in enumerate(done.tokens))


@given(rngs, st.integers(2, 5))
@settings(max_examples=15)
def test_many_rounds_have_the_law_of_the_target(rng, n):
    p, q = a_law(rng, 2, n), a_law(rng, 1, n)
    grid = (np.arange(32) + 0.5) / 32
    law = np.zeros(n)
    for token in np.flatnonzero(q[0]).tolist():
        for u in grid:
            for w in grid[2::4]:
                done = labcore.speculative_decode(p, q, [token], [u, w])
                law[done.tokens[0]] += q[0, token] / 256
    # Midpoints of 32 and of 8 cells: off by half a cell at most, in every token.
    assert np.all(np.abs(law - p[0]) <= 1 / 64 + 1 / 16)


@given(st.floats(0.0, 0.99), st.integers(0, 40))
@many
def test_expected_tokens_is_the_geometric_sum(alpha, gamma):
    want = (1 - alpha ** (gamma + 1)) / (1 - alpha)
    assert np.isclose(labcore.expected_tokens(alpha, gamma), want, rtol=1e-12, atol=0)


@given(rngs, sizes)
@many
def test_top_k_keeps_the_k_largest_in_proportion(rng, n):
    p = unit(rng.random(n)) ** 2
    k = int(rng.integers(1, n + 1))
    kept = labcore.top_k(p, k)
    chosen = kept > 0
    assert chosen.sum() == k
    assert close(kept.sum(), 1.0)
    assert np.all(p[chosen].min() >= p[~chosen].max(initial=0.0))
    assert close(kept[chosen] / p[chosen], np.full(k, 1 / p[chosen].sum()))
