"""Softmax in pieces: summaries of chunks that can be merged in any order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from . import _validate as must
from ._op import Array, op
from .attention import _queries_keys_values, causal_mask


class SoftmaxSummary(NamedTuple):
    r"""What a chunk of keys leaves behind.

    maximum $m$: (...); mass $\ell = \sum_j e^{s_j - m}$: (...);
    weighted $w = \sum_j e^{s_j - m} v_j$: (..., d_v).
    The empty summary is (-inf, 0, 0).
    """

    maximum: Array
    mass: Array
    weighted: Array

    @property
    def lse(self) -> Array:
        r"""The log of the whole mass, $m + \log \ell$; -inf when empty."""
        with np.errstate(divide="ignore"):
            return self.maximum + np.log(self.mass)


def _chunk(scores: Array, values: Array) -> None:
    must.axes(1, scores=scores)
    must.scores("scores", scores)
    must.axes(2, values=values)
    must.finite(values=values)
    must.same("number of keys", scores=scores.shape[-1], values=values.shape[-2])
    must.batch(scores=scores.shape[:-1], values=values.shape[:-2])


def _chunks(score_chunks: Sequence[Array], value_chunks: Sequence[Array]) -> None:
    must.same(
        "number of chunks",
        score_chunks=len(score_chunks),
        value_chunks=len(value_chunks),
    )
    if not score_chunks:
        raise ValueError("score_chunks is empty: there is nothing to read")
    for scores, values in zip(score_chunks, value_chunks, strict=True):
        _chunk(scores, values)


def _summary(**summaries: SoftmaxSummary) -> None:
    for name, summary in summaries.items():
        maximum, mass, weighted = map(np.shape, summary)
        if maximum != mass or not weighted or not must.fits_into(mass, weighted[:-1]):
            raise ValueError(
                f"{name} must have a maximum (...), a mass (...) and a weighted sum "
                f"(..., d_v), got {maximum}, {mass} and {weighted}"
            )
        must.scores(f"{name}.maximum", summary.maximum)
        must.within(0.0, np.inf, **{f"{name}.mass": summary.mass})
        must.finite(
            **{f"{name}.mass": summary.mass, f"{name}.weighted": summary.weighted}
        )


def _two_summaries(a: SoftmaxSummary, b: SoftmaxSummary) -> None:
    _summary(a=a, b=b)
    must.same("d_v", a=np.shape(a.weighted)[-1], b=np.shape(b.weighted)[-1])
    must.batch(a=np.shape(a.weighted)[:-1], b=np.shape(b.weighted)[:-1])


def _has_mass(summary: SoftmaxSummary) -> None:
    _summary(summary=summary)
    if np.any(np.asarray(summary.mass) == 0):
        raise ValueError("summary has no mass: the row has no allowed key")


def _blocks(
    q: Array,
    k: Array,
    v: Array,
    *,
    block: int,
    causal: bool = False,
    offset: int | None = None,
    allowed: Array | None = None,
    scale: float | None = None,
) -> None:
    must.count(1, block=block)
    _queries_keys_values(q, k, v, allowed=allowed, scale=scale)
    if not causal and offset is not None:
        raise ValueError(f"offset belongs to causal=True, got {offset}")


@op(_chunk, floats="scores values")
def summarize(scores: Array, values: Array) -> SoftmaxSummary:
    r"""The summary $(m, \ell, w)$ of one chunk of keys.

    scores: (..., n), -inf = masked; values: (..., n, d_v). A chunk of nothing, or one
    that is masked throughout, gives the empty summary.
    Raises ValueError for NaN or +inf scores: they are never skipped.

    >>> maximum, mass, weighted = summarize([5.0, 5.0], [[1.0], [3.0]])
    >>> float(maximum), float(mass), weighted.tolist()
    (5.0, 2.0, [4.0])
    """
    maximum = scores.max(axis=-1, initial=-np.inf)
    shift = np.where(np.isfinite(maximum), maximum, 0.0)  # a chunk masked throughout
    with np.errstate(over="ignore", under="ignore"):
        weights = np.exp(scores - shift[..., None])
    weighted = (weights[..., None, :] @ values)[..., 0, :]
    return SoftmaxSummary(maximum, weights.sum(axis=-1), weighted)


@op(_two_summaries, floats="a b")
def merge(a: SoftmaxSummary, b: SoftmaxSummary) -> SoftmaxSummary:
    r"""The summary of two chunks, from their summaries alone.

    $$m = \max(m_a, m_b), \quad \ell = e^{m_a - m} \ell_a + e^{m_b - m} \ell_b,
    \quad w = e^{m_a - m} w_a + e^{m_b - m} w_b$$

    Associative, order-free, and the empty summary is neutral: a commutative monoid.
    Source: Milakov and Gimelshein 2018; Dao et al. 2022.

    >>> one = summarize([0.0], [[1.0]])
    >>> float(merge(one, one).mass)
    2.0
    """
    maximum = np.maximum(a.maximum, b.maximum)
    shift = np.where(np.isfinite(maximum), maximum, 0.0)  # both are empty
    with np.errstate(over="ignore", under="ignore"):
        fa, fb = np.exp(a.maximum - shift), np.exp(b.maximum - shift)
    return SoftmaxSummary(
        maximum,
        fa * a.mass + fb * b.mass,
        fa[..., None] * a.weighted + fb[..., None] * b.weighted,
    )


@op(_has_mass, floats="summary")
def finish(summary: SoftmaxSummary) -> Array:
    r"""The output of attention, $w / \ell$.

    Returns (..., d_v). Raises ValueError where the mass is zero: no key was allowed.

    >>> finish(summarize([0.0, 0.0], [[1.0], [3.0]])).tolist()
    [2.0]
    """
    return summary.weighted / summary.mass[..., None]


@op(_chunks, floats="score_chunks* value_chunks*")
def online_trace(
    score_chunks: Sequence[Array], value_chunks: Sequence[Array]
) -> list[SoftmaxSummary]:
    """The running summary after each chunk: how the maximum and the mass grow.

    score_chunks: arrays (..., n_c); value_chunks: arrays (..., n_c, d_v).

    >>> [float(s.mass) for s in online_trace([[0.0], [0.0]], [[[1.0]], [[3.0]]])]
    [1.0, 2.0]
    """
    trace: list[SoftmaxSummary] = []
    for scores, values in zip(score_chunks, value_chunks, strict=True):
        chunk = summarize(scores, values)
        trace.append(merge(trace[-1], chunk) if trace else chunk)
    return trace


@op(_chunks, floats="score_chunks* value_chunks*")
def online_softmax(
    score_chunks: Sequence[Array], value_chunks: Sequence[Array]
) -> Array:
    """Softmax-weighted mean of all values, one chunk in sight at a time.

    Equals ``softmax(concatenated scores) @ concatenated values``. Shapes as
    :func:`online_trace`. Returns (..., d_v).
    Raises ValueError for NaN or +inf scores, and when no key at all is allowed.

    >>> online_softmax([[1000.0, 1001.0], [999.0]], [[[2.0], [4.0]], [[8.0]]]).round(4)
    array([3.8707])
    """
    return finish(online_trace(score_chunks, value_chunks)[-1])


@op(_blocks, floats="q k v scale")
def blockwise_attention(
    q: Array,
    k: Array,
    v: Array,
    *,
    block: int,
    causal: bool = False,
    offset: int | None = None,
    allowed: Array | None = None,
    scale: float | None = None,
) -> Array:
    """Attention that sees ``block`` keys at a time and never a whole row of scores.

    Shapes and errors as :func:`labcore.attention`; ``causal`` and ``offset`` as
    :func:`labcore.causal_mask`, in addition to ``allowed``.
    Source: Dao et al. 2022 (FlashAttention); Liu et al. 2023 (Ring Attention).

    >>> blockwise_attention([[1.0]], [[0.0], [0.0]], [[1.0], [3.0]], block=1).tolist()
    [[2.0]]
    """
    n_q, n_k = q.shape[-2], k.shape[-2]
    scale = 1.0 / float(np.sqrt(q.shape[-1])) if scale is None else scale
    mask = causal_mask(n_q, n_k, offset=offset) if causal else np.ones((n_q, n_k), bool)
    mask = mask if allowed is None else mask & allowed
    read: SoftmaxSummary | None = None
    for start in range(0, n_k, block):
        keys = slice(start, start + block)
        scores = scale * (q @ np.swapaxes(k[..., keys, :], -1, -2))
        scores = np.where(mask[..., keys], scores, -np.inf)
        chunk = summarize(scores, v[..., None, keys, :])
        read = chunk if read is None else merge(read, chunk)
    return finish(read)
