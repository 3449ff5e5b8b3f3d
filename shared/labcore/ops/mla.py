"""Multi-head latent attention: explicit keys and values, or absorbed projections."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from . import _validate as must
from ._op import Array, op
from .softmax import softmax


class MLARead(NamedTuple):
    """output (..., n_q, d_v); weights and unscaled scores (..., n_q, n)."""

    output: Array
    weights: Array
    scores: Array


class MLACost(NamedTuple):
    """Multiplications of one read by each path."""

    cached: int
    projected: int
    absorbed: int


def _latent(
    q_nope: Array,
    q_rope: Array,
    c_kv: Array,
    k_rope: Array,
    w_uk: Array,
    w_uv: Array,
    *,
    allowed: Array | None = None,
) -> None:
    named = dict(
        q_nope=q_nope, q_rope=q_rope, c_kv=c_kv, k_rope=k_rope, w_uk=w_uk, w_uv=w_uv
    )
    must.axes(2, **named)
    must.finite(**named)
    must.same("d_nope", q_nope=q_nope.shape[-1], w_uk=w_uk.shape[-2])
    must.same("d_rope", q_rope=q_rope.shape[-1], k_rope=k_rope.shape[-1])
    must.same("rank", c_kv=c_kv.shape[-1], w_uk=w_uk.shape[-1], w_uv=w_uv.shape[-1])
    must.same("n_queries", q_nope=q_nope.shape[-2], q_rope=q_rope.shape[-2])
    must.same("n_keys", c_kv=c_kv.shape[-2], k_rope=k_rope.shape[-2])
    if c_kv.shape[-2] == 0:
        raise ValueError(f"c_kv has no keys: shape {c_kv.shape}")
    masked = must.mask(allowed, q_nope.shape[-2], c_kv.shape[-2])
    must.batch(**{name: x.shape[:-2] for name, x in named.items()}, allowed=masked)


def _cache(kv_rank: int, d_rope: int, *, layers: int = 1) -> None:
    must.count(1, kv_rank=kv_rank, layers=layers)
    must.count(0, d_rope=d_rope)


def _explicit_cache(
    n_heads: int, d_nope: int, d_rope: int, d_v: int, *, layers: int = 1
) -> None:
    must.count(1, n_heads=n_heads, d_nope=d_nope, d_v=d_v, layers=layers)
    must.count(0, d_rope=d_rope)


def _read_sizes(
    n_keys: int,
    n_heads: int,
    d_nope: int,
    d_rope: int,
    d_v: int,
    kv_rank: int,
    *,
    n_queries: int = 1,
) -> None:
    must.count(1, n_keys=n_keys, kv_rank=kv_rank, n_queries=n_queries)
    _explicit_cache(n_heads, d_nope, d_rope, d_v)
    if n_queries > n_keys:
        raise ValueError(
            f"n_queries must be at most n_keys = {n_keys}, since a query sees its own "
            f"key, got {n_queries}"
        )


@op(_latent, floats="q_nope q_rope c_kv k_rope w_uk w_uv")
def mla_explicit(
    q_nope: Array,
    q_rope: Array,
    c_kv: Array,
    k_rope: Array,
    w_uk: Array,
    w_uv: Array,
    *,
    allowed: Array | None = None,
) -> MLARead:
    r"""Attention over keys and values that are projected up from the latent.

    $$K = C W_{UK}^\top, \quad V = C W_{UV}^\top, \quad
    o = \mathrm{softmax}\left(\frac{q K^\top + q^R {K^R}^\top}
    {\sqrt{d_\mathrm{nope} + d_\mathrm{rope}}}\right) V$$

    q_nope: (..., n_q, d_nope); q_rope: (..., n_q, d_rope), rotated already;
    c_kv: (..., n, rank); k_rope: (..., n, d_rope), rotated, shared by all heads;
    w_uk: (..., d_nope, rank); w_uv: (..., d_v, rank). A head axis goes in front.
    One softmax over the sum of both score terms. Source: DeepSeek-AI 2024 (V2).

    >>> one = [[1.0]]
    >>> mla_explicit(one, one, [[1.0], [1.0]], [[0.0], [0.0]], one, one).output.tolist()
    [[1.0]]
    """
    k = c_kv @ np.swapaxes(w_uk, -1, -2)
    v = c_kv @ np.swapaxes(w_uv, -1, -2)
    content = q_nope @ np.swapaxes(k, -1, -2)
    rotary = q_rope @ np.swapaxes(k_rope, -1, -2)
    scores = content + rotary
    width = q_nope.shape[-1] + q_rope.shape[-1]
    scaled = scores / float(np.sqrt(width))
    if allowed is not None:
        scaled = np.where(allowed, scaled, -np.inf)
    weights = softmax(scaled)
    return MLARead(weights @ v, weights, scores)


@op(_latent, floats="q_nope q_rope c_kv k_rope w_uk w_uv")
def mla_absorbed(
    q_nope: Array,
    q_rope: Array,
    c_kv: Array,
    k_rope: Array,
    w_uk: Array,
    w_uv: Array,
    *,
    allowed: Array | None = None,
) -> MLARead:
    r"""The same read without ever forming keys and values.

    $$\mathrm{scores} = (q W_{UK}) C^\top + q^R {K^R}^\top, \qquad
    o = (\mathrm{weights} \cdot C)\, W_{UV}^\top$$

    Only the latent and one rotary key a token are cached. The scale stays
    $1/\sqrt{d_\mathrm{nope} + d_\mathrm{rope}}$: absorbing changes the order of the
    products, not the model. Arguments and result as :func:`mla_explicit`.

    >>> one = [[1.0]]
    >>> mla_absorbed(one, one, [[1.0], [1.0]], [[0.0], [0.0]], one, one).output.tolist()
    [[1.0]]
    """
    content = (q_nope @ w_uk) @ np.swapaxes(c_kv, -1, -2)
    rotary = q_rope @ np.swapaxes(k_rope, -1, -2)
    scores = content + rotary
    width = q_nope.shape[-1] + q_rope.shape[-1]
    scaled = scores / float(np.sqrt(width))
    if allowed is not None:
        scaled = np.where(allowed, scaled, -np.inf)
    weights = softmax(scaled)
    output = (weights @ c_kv) @ np.swapaxes(w_uv, -1, -2)
    return MLARead(output, weights, scores)


@op(_cache)
def mla_cache_elements(kv_rank: int, d_rope: int, *, layers: int = 1) -> int:
    r"""Numbers cached a token: the latent and one shared rotary key in every layer.

    $$(\mathrm{rank} + d_\mathrm{rope}) \cdot \mathrm{layers}$$

    No factor 2 (keys and values share the latent), no factor of heads.

    >>> mla_cache_elements(512, 64, layers=60)
    34560
    """
    return (kv_rank + d_rope) * layers


@op(_explicit_cache)
def mla_explicit_cache_elements(
    n_heads: int, d_nope: int, d_rope: int, d_v: int, *, layers: int = 1
) -> int:
    r"""Numbers cached a token when keys and values are kept head by head.

    $$(\mathrm{heads} \cdot (d_\mathrm{nope} + d_v) + d_\mathrm{rope})
    \cdot \mathrm{layers}$$

    The rotary key is one for all heads here too; kept head by head it would be
    d_rope times heads.

    >>> mla_explicit_cache_elements(128, 128, 64, 128, layers=60)
    1969920
    """
    return (n_heads * (d_nope + d_v) + d_rope) * layers


@op(_read_sizes)
def mla_multiplications(
    n_keys: int,
    n_heads: int,
    d_nope: int,
    d_rope: int,
    d_v: int,
    kv_rank: int,
    *,
    n_queries: int = 1,
) -> MLACost:
    r"""Multiplications of one read: cached, projected and absorbed.

    cached: the keys and values of old tokens are in the cache, those of the new
    tokens (the queries) are projected. projected: all are projected from the latent.
    absorbed: none is. Counted: every product of two numbers between q, the latent and
    the output of the heads, hidden pairs of a mask too. Not counted: the projections
    that make q and the latent, the softmax, the output projection.

    >>> mla_multiplications(4096, 128, 128, 64, 128, 512)
    MLACost(cached=184549376, projected=68887248896, absorbed=587202560)
    """
    project = kv_rank * (d_nope + d_v)
    read = n_keys * (d_nope + d_rope + d_v)
    read_latent = n_keys * (2 * kv_rank + d_rope)
    return MLACost(
        cached=n_heads * n_queries * (project + read),
        projected=n_heads * (n_keys * project + n_queries * read),
        absorbed=n_heads * n_queries * (project + read_latent),
    )
