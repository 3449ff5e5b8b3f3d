"""Attention, dense and cached; masks, grouped heads and paged caches."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from . import _validate as must
from ._op import Array, op
from .softmax import softmax


class KVCache(NamedTuple):
    """Keys (..., n, d_k) and values (..., n, d_v) of the tokens seen so far."""

    k: Array
    v: Array


def _mask_sizes(
    n_queries: int,
    n_keys: int,
    *,
    offset: int | None = None,
    window: int | None = None,
) -> None:
    must.count(0, n_queries=n_queries, n_keys=n_keys)
    if window is not None:
        must.count(1, window=window)
    if offset is None:
        must.count(0, offset=n_keys - n_queries)
        return
    must.count(0, offset=offset)
    if offset + n_queries != n_keys:
        raise ValueError(
            f"offset must be n_keys - n_queries = {n_keys - n_queries}, so that the "
            f"last query is the last key's own, got {offset}"
        )


def _queries_and_keys(
    q: Array, k: Array, *, allowed: Array | None = None, scale: float | None = None
) -> None:
    must.axes(2, q=q, k=k)
    must.finite(q=q, k=k)
    must.same("d_k, the last axis of q and k", q=q.shape[-1], k=k.shape[-1])
    if q.shape[-1] == 0:
        raise ValueError(f"q has no channels: shape {q.shape}")
    if scale is not None:
        must.one_number(scale=scale)
        must.positive(scale=scale)
    if k.shape[-2] == 0:
        raise ValueError(f"k has no keys: shape {k.shape}")
    masked = must.mask(allowed, q.shape[-2], k.shape[-2])
    must.batch(q=q.shape[:-2], k=k.shape[:-2], allowed=masked)


def _queries_keys_values(
    q: Array,
    k: Array,
    v: Array,
    *,
    allowed: Array | None = None,
    scale: float | None = None,
) -> None:
    _queries_and_keys(q, k, allowed=allowed, scale=scale)
    _values(k, v)
    masked = None if allowed is None else np.shape(allowed)[:-2]
    must.batch(q=q.shape[:-2], k=k.shape[:-2], v=v.shape[:-2], allowed=masked)


def _values(k: Array, v: Array) -> None:
    must.axes(2, v=v)
    must.finite(v=v)
    must.same("the number of keys and values", k=k.shape[-2], v=v.shape[-2])
    must.batch(k=k.shape[:-2], v=v.shape[:-2])


def _append(cache: KVCache | None, k: Array, v: Array) -> None:
    must.axes(2, k=k)
    must.finite(k=k)
    _values(k, v)
    if cache is not None:
        must.same("d_k", cache=cache.k.shape[-1], k=k.shape[-1])
        must.same("d_v", cache=cache.v.shape[-1], v=v.shape[-1])
        if cache.k.shape[:-2] != k.shape[:-2] or cache.v.shape[:-2] != v.shape[:-2]:
            raise ValueError(
                f"cache was made for batch axes {cache.k.shape[:-2]}, "
                f"got k with {k.shape[:-2]} and v with {v.shape[:-2]}"
            )


def _from_cache(q: Array, cache: KVCache, *, scale: float | None = None) -> None:
    _queries_keys_values(q, cache.k, cache.v, scale=scale)
    must.count(0, offset=cache.k.shape[-2] - q.shape[-2])


def _self_attention(
    q: Array, k: Array, v: Array, *, scale: float | None = None
) -> None:
    _queries_keys_values(q, k, v, scale=scale)
    must.same("the number of queries and keys", q=q.shape[-2], k=k.shape[-2])


def _chunked(
    q: Array, k: Array, v: Array, *, chunk: int = 1, scale: float | None = None
) -> None:
    _self_attention(q, k, v, scale=scale)
    must.count(1, chunk=chunk)


def _heads(n_query_heads: int, n_kv_heads: int) -> None:
    must.count(1, n_query_heads=n_query_heads, n_kv_heads=n_kv_heads)
    if n_query_heads % n_kv_heads:
        raise ValueError(
            f"n_query_heads must be a multiple of n_kv_heads: {n_query_heads} is not "
            f"a multiple of {n_kv_heads}"
        )


def _grouped(
    q: Array,
    k: Array,
    v: Array,
    *,
    allowed: Array | None = None,
    scale: float | None = None,
) -> None:
    must.axes(3, q=q, k=k, v=v)
    _heads(q.shape[-3], k.shape[-3])
    must.same("the number of kv heads", k=k.shape[-3], v=v.shape[-3])
    _queries_keys_values(
        q[..., :1, :, :], k[..., :1, :, :], v[..., :1, :, :], scale=scale
    )
    must.finite(q=q, k=k, v=v)
    masked = must.mask(allowed, q.shape[-2], k.shape[-2])
    must.batch(q=q.shape[:-2], allowed=masked)
    must.batch(q=q.shape[:-3], k=k.shape[:-3], v=v.shape[:-3])


def _pages(block_table: Array, n_tokens: int, *, block_size: int) -> None:
    must.count(1, block_size=block_size)
    must.count(0, n_tokens=n_tokens)
    table = np.asarray(block_table)
    if table.ndim != 1 or (table.size and table.dtype.kind not in "iu"):
        raise ValueError(f"block_table must be one row of integers, got {table!r}")
    if np.any(table < 0) or len(np.unique(table)) != table.size:
        raise ValueError(f"block_table must name distinct blocks, got {table}")
    if n_tokens > table.size * block_size:
        raise ValueError(
            f"n_tokens must fit in {table.size} blocks of {block_size}, got {n_tokens}"
        )


@op(_mask_sizes)
def causal_mask(
    n_queries: int,
    n_keys: int,
    *,
    offset: int | None = None,
    window: int | None = None,
) -> Array:
    r"""Which key each query may read: itself and those before it.

    $$\mathrm{allowed}_{ij} = [\, i + \mathrm{offset} - \mathrm{window} < j
    \le i + \mathrm{offset} \,]$$

    offset is the number of keys that were there before the first query. None means
    n_keys - n_queries: the last query sees every key. An offset that contradicts
    this is refused, since it is the commonest way to get a cache wrong.
    window is how many keys a query sees at most, itself included; None sees all.
    Returns (n_queries, n_keys), True where reading is allowed.

    >>> causal_mask(2, 4).astype(int).tolist()
    [[1, 1, 1, 0], [1, 1, 1, 1]]
    """
    offset = n_keys - n_queries if offset is None else offset
    age = np.arange(n_queries)[:, None] + offset - np.arange(n_keys)
    return (age >= 0) & (age < (n_keys if window is None else window))


@op(_queries_and_keys, floats="q k scale")
def attention_weights(
    q: Array, k: Array, *, allowed: Array | None = None, scale: float | None = None
) -> Array:
    r"""How much each query reads of each key.

    $$W = \mathrm{softmax}\left(\mathrm{scale} \cdot q k^\top\right),
    \qquad \mathrm{scale} = 1/\sqrt{d_k} \text{ unless given}$$

    q: (..., n_q, d_k); k: (..., n_k, d_k); allowed: (..., n_q, n_k), True = may read.
    Returns (..., n_q, n_k), rows sum to 1.
    Raises ValueError for numbers that are not finite, shapes that do not fit, a row
    with no allowed key. Source: Vaswani et al. 2017, equation 1.

    >>> attention_weights([[1.0, 0.0]], [[1.0, 0.0], [1.0, 5.0]]).tolist()
    [[0.5, 0.5]]
    """
    scale = 1.0 / float(np.sqrt(q.shape[-1])) if scale is None else scale
    scores = scale * (q @ np.swapaxes(k, -1, -2))
    if allowed is not None:
        scores = np.where(allowed, scores, -np.inf)
    return softmax(scores)


@op(_queries_keys_values, floats="q k v scale")
def attention(
    q: Array,
    k: Array,
    v: Array,
    *,
    allowed: Array | None = None,
    scale: float | None = None,
) -> Array:
    r"""Each query's weighted mean of the values.

    $$o = \mathrm{softmax}\left(\mathrm{scale} \cdot q k^\top\right) v$$

    q: (..., n_q, d_k); k: (..., n_k, d_k); v: (..., n_k, d_v). Returns (..., n_q, d_v).
    A NaN anywhere is refused, behind a mask too: zero times NaN is NaN, and a mask
    that hid it would hide a bug. Errors otherwise as :func:`attention_weights`.

    >>> attention([[1.0]], [[0.0], [0.0]], [[1.0], [3.0]]).tolist()
    [[2.0]]
    """
    return attention_weights(q, k, allowed=allowed, scale=scale) @ v


@op(_self_attention, floats="q k v scale")
def causal_attention(
    q: Array, k: Array, v: Array, *, scale: float | None = None
) -> Array:
    """Causal attention over a whole sequence at once (the prefill).

    q, k: (..., n, d_k); v: (..., n, d_v). Returns (..., n, d_v); row t reads the
    keys 0 to t. The form that a cache must reproduce.

    >>> causal_attention([[0.0], [0.0]], [[1.0], [2.0]], [[4.0], [8.0]]).tolist()
    [[4.0], [6.0]]
    """
    n = q.shape[-2]
    return attention(q, k, v, allowed=causal_mask(n, n), scale=scale)


@op(_append, floats="cache? k v")
def kv_append(cache: KVCache | None, k: Array, v: Array) -> KVCache:
    """The cache with the keys and values of new tokens behind the old ones.

    cache: :class:`KVCache`, or None for the first tokens; k: (..., n, d_k);
    v: (..., n, d_v). Returns a new cache; the old one is left as it was.

    >>> kv_append(kv_append(None, [[1.0]], [[2.0]]), [[3.0]], [[4.0]]).k.tolist()
    [[1.0], [3.0]]
    """
    if cache is None:
        return KVCache(k, v)
    return KVCache(
        np.concatenate([cache.k, k], axis=-2), np.concatenate([cache.v, v], axis=-2)
    )


@op(_from_cache, floats="q cache scale")
def attention_from_cache(
    q: Array, cache: KVCache, *, scale: float | None = None
) -> Array:
    """What the newest queries read from a cache that already holds their own keys.

    q: (..., n_q, d_k), the last n_q tokens in the cache. Returns (..., n_q, d_v).

    >>> cache = kv_append(None, [[1.0], [2.0]], [[4.0], [8.0]])
    >>> attention_from_cache([[0.0]], cache).tolist()
    [[6.0]]
    """
    allowed = causal_mask(q.shape[-2], cache.k.shape[-2])
    return attention(q, cache.k, cache.v, allowed=allowed, scale=scale)


@op(_chunked, floats="q k v scale")
def causal_attention_cached(
    q: Array, k: Array, v: Array, *, chunk: int = 1, scale: float | None = None
) -> Array:
    """Causal attention fed ``chunk`` tokens at a time through a cache (the decode).

    Shapes as :func:`causal_attention`, which it equals for every chunk.

    >>> causal_attention_cached([[0.0], [0.0]], [[1.0], [2.0]], [[4.0], [8.0]]).tolist()
    [[4.0], [6.0]]
    """
    cache, reads = None, []
    for start in range(0, q.shape[-2], chunk):
        new = slice(start, start + chunk)
        cache = kv_append(cache, k[..., new, :], v[..., new, :])
        reads.append(attention_from_cache(q[..., new, :], cache, scale=scale))
    return np.concatenate(reads, axis=-2)


@op(_heads)
def kv_head_of(n_query_heads: int, n_kv_heads: int) -> Array:
    r"""Which key-value head each query head reads: neighbours share one.

    $$h_{kv} = \lfloor h_q \cdot H_{kv} / H_q \rfloor$$

    Returns (n_query_heads,) integers. Raises ValueError unless H_kv divides H_q.
    Source: Ainslie et al. 2023 (GQA).

    >>> kv_head_of(6, 3).tolist()
    [0, 0, 1, 1, 2, 2]
    """
    return np.arange(n_query_heads) // (n_query_heads // n_kv_heads)


@op(_grouped, floats="q k v scale")
def grouped_query_attention(
    q: Array,
    k: Array,
    v: Array,
    *,
    allowed: Array | None = None,
    scale: float | None = None,
) -> Array:
    """Attention in which several query heads share one key-value head.

    q: (..., H_q, n_q, d_k); k: (..., H_kv, n_k, d_k); v: (..., H_kv, n_k, d_v).
    Returns (..., H_q, n_q, d_v). H_kv = H_q is multi-head, H_kv = 1 multi-query.

    >>> q, k = [[[0.0]], [[0.0]]], [[[1.0], [2.0]]]
    >>> grouped_query_attention(q, k, [[[4.0], [8.0]]]).tolist()
    [[[6.0]], [[6.0]]]
    """
    shared = kv_head_of(q.shape[-3], k.shape[-3])
    k, v = k[..., shared, :, :], v[..., shared, :, :]
    return attention(q, k, v, allowed=allowed, scale=scale)


@op(_pages)
def paged_positions(block_table: Array, n_tokens: int, *, block_size: int) -> Array:
    r"""Where in the pool of cache slots each token of one sequence lies.

    $$\mathrm{slot}(t) = \mathrm{table}[\lfloor t / B \rfloor] \cdot B + t \bmod B$$

    block_table: distinct block numbers, in the order of the sequence.
    Returns (n_tokens,) integers. Source: Kwon et al. 2023 (PagedAttention).

    >>> paged_positions([7, 2], 3, block_size=2).tolist()
    [14, 15, 4]
    """
    t = np.arange(n_tokens)
    table = np.asarray(block_table, dtype=np.int64)
    return table[t // block_size] * block_size + t % block_size
