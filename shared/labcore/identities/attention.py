"""Attention and caching: what must hold, and how it breaks."""

from __future__ import annotations

import numpy as np

from ..ops.attention import (
    KVCache,
    attention,
    attention_from_cache,
    attention_weights,
    causal_attention,
    causal_attention_cached,
    causal_mask,
    grouped_query_attention,
    kv_append,
    kv_head_of,
    paged_positions,
)
from ..ops.delta import (
    delta_attention,
    delta_attention_chunked,
    delta_write,
    gated_write,
)
from ..ops.kernel import (
    kernel_attention,
    kernel_attention_chunked,
    kernel_attention_recurrent,
)
from ..ops.mla import mla_absorbed, mla_explicit
from ..ops.online import blockwise_attention, finish, merge, summarize
from ..ops.rope import rope
from ..ops.softmax import log_softmax, logsumexp, softmax
from ..ops.speculative import speculative_distribution
from ._check import Chapter, Inputs, Rng, _arrays, nothing

chapter = Chapter("attention-and-caching", "Attention and caching", "The identities")


# ---- What is drawn ----------------------------------------------------------------


def a_sequence(rng: Rng, size: int) -> Inputs:
    """A batch of two sequences of size + 4 tokens; d_k and d_v differ."""
    n = size + 4
    return {
        "q": rng.normal(size=(2, n, size + 1)),
        "k": rng.normal(size=(2, n, size + 1)),
        "v": rng.normal(size=(2, n, size + 2)),
    }


def grouped_heads(rng: Rng, size: int) -> Inputs:
    """Six query heads on three key-value heads."""
    n, m = size + 1, size + 3
    return {
        "q": rng.normal(size=(6, n, size + 1)),
        "k": rng.normal(size=(3, m, size + 1)),
        "v": rng.normal(size=(3, m, size + 2)),
    }


def a_pool(rng: Rng, size: int) -> Inputs:
    """A sequence whose cache lies in blocks of three, scattered over a pool."""
    n, block_size = 3 * size + 4, 3
    blocks = -(-n // block_size)
    table = rng.permutation(blocks + 2)[:blocks]
    if np.all(np.diff(table) > 0):  # a sorted table would hide how it is read
        table = table[::-1]
    return {
        **{name: rng.normal(size=(n, size + 1)) for name in "qk"},
        "v": rng.normal(size=(n, size + 2)),
        "table": table,
        "block_size": block_size,
        "pool": rng.normal(size=((blocks + 2) * block_size, 2 * size + 3)),
    }


def in_float32(rng: Rng, size: int) -> Inputs:
    """float32 numbers that all main operations of Part I can be run on."""
    n, d, d_v = size + 3, 2 * size + 2, size + 1
    drawn = {
        "q": rng.normal(size=(n, d)),
        "k": rng.normal(size=(n, d)) / np.sqrt(d),
        "v": rng.normal(size=(n, d_v)),
        "S": rng.normal(size=(d, d_v)),
        "W": rng.normal(size=(d, d)),
        "beta": rng.uniform(0.3, 0.9, size=n),
        "retention": rng.uniform(0.4, 0.9, size=(n, d)),
    }
    return {name: x.astype(np.float32) for name, x in drawn.items()}


# ---- What must hold ---------------------------------------------------------------


@chapter.check(
    "causal_prefix_reads",
    "One query at a time, on its own prefix, reads what dense attention reads.",
    draw=a_sequence,
)
def _(q, k, v):
    one_by_one = [
        attention(q[:, t : t + 1], k[:, : t + 1], v[:, : t + 1])
        for t in range(q.shape[1])
    ]
    return np.concatenate(one_by_one, axis=1), causal_attention(q, k, v)


@chapter.check(
    "future_perturbation",
    "Changing later keys and values leaves earlier outputs alone.",
    draw=a_sequence,
)
def _(q, k, v):
    t = q.shape[1] // 2
    changed_k, changed_v = k.copy(), v.copy()
    changed_k[:, t:] += 100
    changed_v[:, t:] -= 200
    return (
        causal_attention(q, changed_k, changed_v)[:, :t],
        causal_attention(q, k, v)[:, :t],
    )


@chapter.check(
    "chunk_mask_offset",
    "A chunk of queries behind a prefix reads its rows of the whole.",
    draw=a_sequence,
)
def _(q, k, v):
    prefix, end = 2, 4
    allowed = causal_mask(end - prefix, end)
    chunk = attention(q[:, prefix:end], k[:, :end], v[:, :end], allowed=allowed)
    return chunk, causal_attention(q, k, v)[:, prefix:end]


@chapter.check(
    "prefill_then_decode",
    "Prefill and decode through a cache equal the whole, for every split and chunk.",
    draw=a_sequence,
)
def _(q, k, v):
    n = 5
    q, k, v = q[:, :n], k[:, :n], v[:, :n]
    whole = causal_attention(q, k, v)
    fed = [causal_attention_cached(q, k, v, chunk=chunk) for chunk in range(1, n + 1)]
    for split in range(1, n):
        cache = kv_append(None, k[:, :split], v[:, :split])
        first = attention_from_cache(q[:, :split], cache)
        cache = kv_append(cache, k[:, split:], v[:, split:])
        second = attention_from_cache(q[:, split:], cache)
        fed.append(np.concatenate([first, second], axis=1))
    return fed, [whole] * len(fed)


@chapter.check(
    "decode_one_by_one",
    "Decode, one token a step from the very first, equals the whole.",
    draw=a_sequence,
)
def _(q, k, v):
    return causal_attention_cached(q, k, v), causal_attention(q, k, v)


@chapter.check(
    "paged_cache",
    "A cache scattered over blocks of a pool reads as one in a row, block after block.",
    draw=a_pool,
)
def _(q, k, v, table, block_size, pool):
    n, d = k.shape
    slots = paged_positions(table, n, block_size=block_size)
    pool = pool.copy()
    for t in range(n):  # where token t lies, said in another way
        block, inside = divmod(t, block_size)
        pool[table[block] * block_size + inside] = np.concatenate([k[t], v[t]])
    at_once = attention_from_cache(q, KVCache(pool[slots, :d], pool[slots, d:]))
    steps = []
    for t in range(n):  # as it grows, across the edges of the blocks
        so_far = paged_positions(table, t + 1, block_size=block_size)
        cache = KVCache(pool[so_far, :d], pool[so_far, d:])
        steps.append(attention_from_cache(q[t : t + 1], cache))
    whole = causal_attention(q, k, v)
    return (at_once, np.concatenate(steps)), (whole, whole)


@chapter.check(
    "attention_two_keys",
    "Two keys share the weight as the logistic of their score difference.",
    draw=a_sequence,
)
def _(q, k, v):
    q, k, v = q[:, :1], k[:, :2], v[:, :2]
    difference = np.sum(q * (k[:, :1] - k[:, 1:]), axis=-1, keepdims=True)
    first = 1 / (1 + np.exp(-difference / np.sqrt(q.shape[-1])))
    return attention(q, k, v), first * v[:, :1] + (1 - first) * v[:, 1:]


@chapter.check(
    "attention_rows_sum_to_one",
    "Every row of weights sums to one.",
    draw=a_sequence,
)
def _(q, k, v):
    n = q.shape[1]
    weights = attention_weights(q, k, allowed=causal_mask(n, n))
    return weights.sum(axis=-1), np.ones(weights.shape[:-1])


@chapter.check(
    "attention_first_row",
    "The first token can only read its own value.",
    draw=a_sequence,
)
def _(q, k, v):
    return causal_attention(q, k, v)[:, 0], v[:, 0]


@chapter.check(
    "masked_key_has_no_weight",
    "A masked key weighs nothing, however low the allowed scores are.",
    draw=a_sequence,
)
def _(q, k, v):
    low = attention_weights(
        np.array([[1e5, 1e5]]),
        np.array([[-1e5, -1e5], [1e5, 1e5]]),
        allowed=np.array([[True, False]]),
    )
    return low, np.array([[1.0, 0.0]])


@chapter.check(
    "padding_reads_as_absent",
    "A key that no query may read might as well not be there.",
    draw=a_sequence,
)
def _(q, k, v):
    n = k.shape[1] - 2  # the last two are padding
    real = np.broadcast_to(np.arange(k.shape[1]) < n, (q.shape[1], k.shape[1]))
    return attention(q, k, v, allowed=real), attention(q, k[:, :n], v[:, :n])


@chapter.check(
    "given_scale_is_used",
    "A scale given by hand is the scale of longer queries, in every form.",
    draw=a_sequence,
)
def _(q, k, v):
    scale, n = 0.3, q.shape[1]
    longer = scale * np.sqrt(q.shape[-1]) * q
    causal = causal_mask(n, n)
    got = (
        attention(q, k, v, allowed=causal, scale=scale),
        causal_attention(q, k, v, scale=scale),
        attention_from_cache(q, KVCache(k, v), scale=scale),
        causal_attention_cached(q, k, v, chunk=2, scale=scale),
        grouped_query_attention(q, k, v, allowed=causal, scale=scale),
    )
    return got, (attention(longer, k, v, allowed=causal),) * len(got)


@chapter.check(
    "window_over_the_length",
    (
        "A window as long as the sequence is no window; shorter, it is the mean of the"
        " last."
    ),
    draw=a_sequence,
)
def _(q, k, v):
    n = q.shape[1]
    wide = attention(q, k, v, allowed=causal_mask(n, n, window=n))
    flat = attention(0 * q, k, v, allowed=causal_mask(n, n, window=2))
    pairs = np.concatenate([v[:, :1], (v[:, 1:] + v[:, :-1]) / 2], axis=1)
    return (wide, flat), (causal_attention(q, k, v), pairs)


@chapter.check(
    "grouped_heads_equal_repeated_heads",
    "Grouped heads equal full heads on repeated keys and values.",
    draw=grouped_heads,
)
def _(q, k, v):
    want = [attention(q[h], k[h // 2], v[h // 2]) for h in range(6)]
    return grouped_query_attention(q, k, v), np.stack(want)


@chapter.check(
    "grouped_heads_keep_the_mask",
    "The mask reaches every head of every group.",
    draw=grouped_heads,
)
def _(q, k, v):
    allowed = causal_mask(q.shape[1], k.shape[1])
    want = [attention(q[h], k[h // 2], v[h // 2], allowed=allowed) for h in range(6)]
    return grouped_query_attention(q, k, v, allowed=allowed), np.stack(want)


@chapter.check(
    "grouped_heads_of_one_kind",
    "As many groups as heads is multi-head, one group is multi-query.",
    draw=grouped_heads,
)
def _(q, k, v):
    multi_head = grouped_query_attention(q[:3], k, v)
    multi_query = grouped_query_attention(q, k[:1], v[:1])
    return (multi_head, multi_query), (
        np.stack([attention(q[h], k[h], v[h]) for h in range(3)]),
        np.stack([attention(q[h], k[0], v[0]) for h in range(6)]),
    )


@chapter.check(
    "kv_head_map",
    "Six query heads on three: neighbours share.",
    draw=nothing,
    kind="exact",
)
def _():
    return kv_head_of(6, 3), np.array([0, 0, 1, 1, 2, 2])


@chapter.check(
    "attention_refuses_nan",
    "A NaN score is refused, never masked.",
    draw=nothing,
    kind="refuses",
)
def _():
    return lambda: attention_weights([[1.0]], [[np.nan], [1.0]]), "k"


@chapter.check(
    "attention_refuses_no_key",
    "A query that may read nothing has no weights.",
    draw=nothing,
    kind="refuses",
)
def _():
    allowed = np.array([[True, False], [False, False]])
    call = attention_weights
    return lambda: call(np.eye(2), np.eye(2), allowed=allowed), "allowed has a row"


@chapter.check(
    "mask_refuses_wrong_offset",
    "An offset that contradicts the number of keys is refused.",
    draw=nothing,
    kind="refuses",
)
def _():
    return lambda: causal_mask(2, 5, offset=0), "offset must be"


@chapter.check(
    "float32_stays_float32",
    "What comes in as float32 is computed in float32 and comes out as float32.",
    draw=in_float32,
    kind="exact",
)
def _(**numbers):
    narrow = _main_operations(**numbers)
    wide = _main_operations(**{name: x.astype(float) for name, x in numbers.items()})
    got = [f"{name} in {_precision(narrow[name], wide[name])}" for name in narrow]
    return got, [f"{name} in float32" for name in narrow]


def _main_operations(q, k, v, S, W, beta, retention):
    scores, fq, fk = q @ k.T, np.exp(q), np.exp(k)
    pieces = summarize(scores[:, :2], v[:2]), summarize(scores[:, 2:], v[2:])
    one, gates = (S, k[0], v[0], float(beta[0])), {"retention": retention, "initial": S}
    latent = q, q[:, :2], k, k[:, :2], W, S.T
    return {
        "softmax": softmax(q),
        "log_softmax": log_softmax(q),
        "logsumexp": logsumexp(q),
        "attention": attention(q, k, v),
        "causal_attention_cached": causal_attention_cached(q, k, v, chunk=2),
        "merge": finish(merge(*pieces)),
        "blockwise_attention": blockwise_attention(q, k, v, block=2),
        "kernel_attention": kernel_attention(fq, fk, v),
        "kernel_attention_recurrent": kernel_attention_recurrent(fq, fk, v),
        "kernel_attention_chunked": kernel_attention_chunked(fq, fk, v, chunk=2),
        "delta_write": delta_write(*one),
        "gated_write": gated_write(*one, retention[0]),
        "delta_attention": delta_attention(q, k, v, beta, **gates),
        "delta_attention_chunked": delta_attention_chunked(
            q, k, v, beta, chunk=2, **gates
        ),
        "rope": rope(q, np.arange(len(q))),
        "mla_explicit": mla_explicit(*latent),
        "mla_absorbed": mla_absorbed(*latent),
        "speculative_distribution": speculative_distribution(
            *(f / f.sum(axis=-1, keepdims=True) for f in (fq, fk))
        ),
    }


def _precision(narrow, wide):
    """The type of a result, and whether it has the digits that the type can hold."""
    parts = list(zip(_arrays(narrow), _arrays(wide), strict=True))
    types = " and ".join(sorted({str(a.dtype) for a, _ in parts}))
    lost = any(np.abs(a - w).max() > 1e-5 * np.abs(w).max() for a, w in parts)
    return types + ", without its digits" * lost


# ---- How it breaks ----------------------------------------------------------------


@chapter.fault(
    "mask_wrong_triangle",
    "the mask lets each query read itself and the future",
    operation="causal_mask",
    story="Upper for lower triangle; the source article names it first.",
    made_for="future_perturbation",
    stays_green="attention_rows_sum_to_one",
)
def _(n_queries, n_keys, *, offset=None, window=None):
    return causal_mask(n_queries, n_keys, window=window)[::-1, ::-1]


@chapter.fault(
    "mask_top_left",
    "the mask ignores the prefix in the cache",
    operation="causal_mask",
    story=(
        "PyTorch's is_causal=True aligns the triangle top left when there are more "
        "keys than queries; a square test cannot see it."
    ),
    made_for="chunk_mask_offset",
    stays_green="future_perturbation",
)
def _(n_queries, n_keys, *, offset=None, window=None):
    age = np.arange(n_queries)[:, None] - np.arange(n_keys)
    return (age >= 0) & (age < (n_keys if window is None else window))


@chapter.fault(
    "mask_without_diagonal",
    "a token cannot read itself",
    operation="causal_mask",
    story=(
        "A strict inequality; the first row is then empty, which only a strict softmax"
        " refuses."
    ),
    made_for="attention_first_row",
    stays_green="kv_head_map",
)
def _(n_queries, n_keys, *, offset=None, window=None):
    strict = np.roll(causal_mask(n_queries, n_keys, window=window), -1, axis=1)
    strict[:, -1] = False
    return strict


@chapter.fault(
    "mask_believes_offset",
    "any offset is taken as it is given",
    operation="causal_mask",
    story=(
        "A position counter that a cache forgot to advance: the mask is that of "
        "another prefix, and nothing crashes."
    ),
    made_for="mask_refuses_wrong_offset",
    stays_green="chunk_mask_offset",
    unguarded=True,
)
def _(n_queries, n_keys, *, offset=None, window=None):
    offset = n_keys - n_queries if offset is None else offset
    age = np.arange(n_queries)[:, None] + offset - np.arange(n_keys)
    return (age >= 0) & (age < (n_keys if window is None else window))


@chapter.fault(
    "window_one_too_long",
    "the window sees one key too many",
    operation="causal_mask",
    story="Whether a window counts the query itself differs between libraries.",
    made_for="window_over_the_length",
    stays_green="chunk_mask_offset",
)
def _(n_queries, n_keys, *, offset=None, window=None):
    wider = None if window is None else window + 1
    return causal_mask(n_queries, n_keys, window=wider)


@chapter.fault(
    "scale_missing",
    "the scores are not divided by the root of d_k",
    operation="attention_weights",
    story="Every check that compares two forms of the same attention agrees with it.",
    made_for="attention_two_keys",
    stays_green="causal_prefix_reads",
)
def _(q, k, *, allowed=None, scale=None):
    return attention_weights(
        q, k, allowed=allowed, scale=1.0 if scale is None else scale
    )


@chapter.fault(
    "scale_given_is_ignored",
    "a scale that was given is replaced by the usual one",
    operation="attention_weights",
    story="A default written over an argument; right for every caller who gives none.",
    made_for="given_scale_is_used",
    stays_green="attention_two_keys",
)
def _(q, k, *, allowed=None, scale=None):
    return attention_weights(q, k, allowed=allowed)


@chapter.fault(
    "weights_over_queries",
    "the softmax runs over the queries, not over the keys",
    operation="attention_weights",
    story=(
        "The wrong axis of a square matrix. Later queries then change earlier rows, "
        "and a test that perturbs keys and values alone does not see it."
    ),
    made_for="attention_rows_sum_to_one",
    stays_green="future_perturbation",
)
def _(q, k, *, allowed=None, scale=None):
    scale = 1.0 / float(np.sqrt(q.shape[-1])) if scale is None else scale
    scores = scale * (q @ np.swapaxes(k, -1, -2))
    if allowed is not None:
        scores = np.where(allowed, scores, -np.inf)
    top = scores.max(axis=-2, keepdims=True)
    weights = np.exp(scores - np.where(np.isfinite(top), top, 0.0))
    mass = weights.sum(axis=-2, keepdims=True)
    return weights / np.where(mass == 0, 1.0, mass)


@chapter.fault(
    "mask_true_means_forbidden",
    "True in the mask is read as forbidden",
    operation="attention_weights",
    story=(
        "PyTorch has both readings: True takes part in scaled_dot_product_attention, "
        "and is left out in nn.MultiheadAttention."
    ),
    made_for="padding_reads_as_absent",
    stays_green="attention_two_keys",
)
def _(q, k, *, allowed=None, scale=None):
    forbidden = allowed
    allowed = None if forbidden is None else ~np.asarray(forbidden)
    return attention_weights(q, k, allowed=allowed, scale=scale)


@chapter.fault(
    "no_key_reads_the_mean",
    "a row with no allowed key gets equal weights",
    operation="attention_weights",
    story=(
        "What a finite fill does to a row that is masked throughout: equal scores, and "
        "so the mean of everything that it may not read."
    ),
    made_for="attention_refuses_no_key",
    stays_green="padding_reads_as_absent",
    unguarded=True,
)
def _(q, k, *, allowed=None, scale=None):
    q, k = np.asarray(q), np.asarray(k)
    if allowed is None or np.all(np.any(allowed, axis=-1)):
        return attention_weights(q, k, allowed=allowed, scale=scale)
    some = np.any(allowed, axis=-1, keepdims=True)
    weights = attention_weights(q, k, allowed=allowed | ~some, scale=scale)
    return np.where(some, weights, 1.0 / k.shape[-2])


@chapter.fault(
    "mask_by_finite_fill",
    "masked scores are set to -1e9 instead of -inf",
    operation="attention_weights",
    story=(
        "A long-lived habit from half precision; scores below the fill give the masked"
        " key all the weight."
    ),
    made_for="masked_key_has_no_weight",
    stays_green="future_perturbation",
)
def _(q, k, *, allowed=None, scale=None):
    scale = 1.0 / float(np.sqrt(q.shape[-1])) if scale is None else scale
    scores = scale * (q @ np.swapaxes(k, -1, -2))
    if allowed is not None:
        scores = np.where(allowed, scores, -1e9)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


@chapter.fault(
    "mask_after_softmax",
    "masked weights are set to zero and the row is not renormalised",
    operation="attention_weights",
    story="Looks right in a picture; every row loses the mass of its future.",
    made_for="attention_rows_sum_to_one",
    stays_green="attention_two_keys",
)
def _(q, k, *, allowed=None, scale=None):
    weights = attention_weights(q, k, scale=scale)
    return weights if allowed is None else np.where(allowed, weights, 0.0)


@chapter.fault(
    "nan_scores_become_zero",
    "NaN scores are replaced by zero",
    operation="attention_weights",
    story="numpy.nan_to_num in a training loop: the run goes on, and so does the bug.",
    made_for="attention_refuses_nan",
    stays_green="attention_two_keys",
    unguarded=True,
)
def _(q, k, *, allowed=None, scale=None):
    return attention_weights(
        np.nan_to_num(q), np.nan_to_num(k), allowed=allowed, scale=scale
    )


@chapter.fault(
    "attention_reads_keys",
    "the weighted mean is taken of the keys",
    operation="attention",
    story="k for v: the shapes agree in every model whose heads have one width.",
    made_for="attention_two_keys",
    stays_green="future_perturbation",
)
def _(q, k, v, *, allowed=None, scale=None):
    fitted = k[..., np.arange(v.shape[-1]) % k.shape[-1]]  # as many columns as v
    return attention_weights(q, k, allowed=allowed, scale=scale) @ fitted


@chapter.fault(
    "causal_attention_not_causal",
    "no mask at all",
    operation="causal_attention",
    story="is_causal is False unless somebody says otherwise.",
    made_for="causal_prefix_reads",
    stays_green="attention_rows_sum_to_one",
)
def _(q, k, v, *, scale=None):
    return attention(q, k, v, scale=scale)


@chapter.fault(
    "cache_read_without_mask",
    "queries read the whole cache",
    operation="attention_from_cache",
    story=(
        "One new token needs no mask. Several at once do: a prompt in chunks, or the "
        "drafted tokens of speculative decoding."
    ),
    made_for="prefill_then_decode",
    stays_green="decode_one_by_one",
)
def _(q, cache, *, scale=None):
    return attention(q, cache.k, cache.v, scale=scale)


@chapter.fault(
    "decode_reads_before_append",
    "the cache is read before the new keys are in it",
    operation="causal_attention_cached",
    story="Two lines in the wrong order: a token then cannot read itself.",
    made_for="decode_one_by_one",
    stays_green="paged_cache",
)
def _(q, k, v, *, chunk=1, scale=None):
    cache, reads = None, []
    for start in range(0, q.shape[-2], chunk):
        new = slice(start, start + chunk)
        before = cache
        cache = kv_append(cache, k[..., new, :], v[..., new, :])
        seen = cache if before is None else before
        reads.append(attention(q[..., new, :], seen.k, seen.v, scale=scale))
    return np.concatenate(reads, axis=-2)


@chapter.fault(
    "cache_appends_in_front",
    "new keys go in front of the old ones",
    operation="kv_append",
    story=(
        "The order of a concatenation; without positions, decoding one token at a "
        "time cannot see it."
    ),
    made_for="prefill_then_decode",
    stays_green="decode_one_by_one",
)
def _(cache, k, v):
    if cache is None:
        return KVCache(k, v)
    return KVCache(
        np.concatenate([k, cache.k], axis=-2), np.concatenate([v, cache.v], axis=-2)
    )


@chapter.fault(
    "cache_keeps_old_values",
    "the values of new tokens are not appended in step with their keys",
    operation="kv_append",
    story="Keys and values kept by two pieces of code, one of them shifted by a step.",
    made_for="prefill_then_decode",
    stays_green="paged_cache",
)
def _(cache, k, v):
    fresh = kv_append(cache, k, v)
    return fresh if cache is None else KVCache(fresh.k, np.roll(fresh.v, 1, axis=-2))


@chapter.fault(
    "grouped_mask_dropped",
    "the mask is not handed on to the heads",
    operation="grouped_query_attention",
    story="An argument lost in a wrapper: right wherever nothing is masked.",
    made_for="grouped_heads_keep_the_mask",
    stays_green="grouped_heads_equal_repeated_heads",
)
def _(q, k, v, *, allowed=None, scale=None):
    return grouped_query_attention(q, k, v, scale=scale)


@chapter.fault(
    "kv_heads_tiled",
    "key-value heads are dealt out in turn instead of to neighbours",
    operation="kv_head_of",
    story="tile for repeat; right with one group and with as many groups as heads.",
    made_for="grouped_heads_equal_repeated_heads",
    stays_green="grouped_heads_of_one_kind",
)
def _(n_query_heads, n_kv_heads):
    return np.arange(n_query_heads) % n_kv_heads


@chapter.fault(
    "kv_heads_by_group_count",
    "the query head is divided by the number of groups, not by their size",
    operation="kv_head_of",
    story="Agrees whenever the number of groups is the square root of the heads.",
    made_for="kv_head_map",
    stays_green="attention_two_keys",
)
def _(n_query_heads, n_kv_heads):
    return np.minimum(np.arange(n_query_heads) // n_kv_heads, n_kv_heads - 1)


@chapter.fault(
    "pages_in_pool_order",
    "blocks are read in the order of the pool, not of the table",
    operation="paged_positions",
    story="A block table that happens to be sorted hides it.",
    made_for="paged_cache",
    stays_green="prefill_then_decode",
)
def _(block_table, n_tokens, *, block_size):
    return paged_positions(np.sort(block_table), n_tokens, block_size=block_size)


@chapter.fault(
    "scale_widens",
    "the scale is a float64 of NumPy, and what it multiplies becomes one",
    operation="attention_weights",
    story=(
        "Since NumPy 2 the square root of a number has a type that wins over float32 "
        "(NEP 50): the digits are right, in twice the memory."
    ),
    made_for="float32_stays_float32",
    stays_green="attention_two_keys",
)
def _(q, k, *, allowed=None, scale=None):
    scale = 1.0 / np.sqrt(q.shape[-1]) if scale is None else np.float64(scale)
    return attention_weights(q * scale, k, allowed=allowed, scale=1.0)
