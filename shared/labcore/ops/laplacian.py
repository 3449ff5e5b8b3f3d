"""Laplacian attention: weights that fall with the L1 distance of query and key."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from . import _validate as must
from ._op import Array, op
from .softmax import softmax


class LaplacianRead(NamedTuple):
    """output (..., n, d_v); weights and distances (..., n, m)."""

    output: Array
    weights: Array
    distances: Array


class LaplacianGradients(NamedTuple):
    """Of the loss with respect to each argument, in its shape; sigma's is a number."""

    q: Array
    k: Array
    v: Array
    sigma: Array


class OperationCounts(NamedTuple):
    """What the scores of all pairs cost, for two kinds of attention."""

    dot_multiplications: int
    dot_additions: int
    laplacian_multiplications: int
    laplacian_subtractions: int
    laplacian_absolute_values: int
    laplacian_additions: int


def _pairs(q: Array, k: Array) -> None:
    must.axes(2, q=q, k=k)
    must.finite(q=q, k=k)
    must.same("the number of channels", q=q.shape[-1], k=k.shape[-1])
    must.batch(q=q.shape[:-2], k=k.shape[:-2])
    for name, x in (("q", q), ("k", k)):
        if 0 in x.shape:
            raise ValueError(f"{name} is empty: shape {x.shape}")


def _read(q: Array, k: Array, v: Array, sigma: float) -> None:
    _pairs(q, k)
    must.axes(2, v=v)
    must.finite(v=v)
    must.same("the number of keys and values", k=k.shape[-2], v=v.shape[-2])
    must.batch(q=q.shape[:-2], k=k.shape[:-2], v=v.shape[:-2])
    if np.ndim(sigma):
        raise ValueError(f"sigma must be one number, got shape {np.shape(sigma)}")
    must.positive(sigma=sigma)


def _with_loss(q: Array, k: Array, v: Array, sigma: float, grad: Array) -> None:
    _read(q, k, v, sigma)
    must.finite(grad=grad)
    if grad.shape[-2:] != (q.shape[-2], v.shape[-1]):
        raise ValueError(
            f"grad must have the shape of the output, (..., {q.shape[-2]}, "
            f"{v.shape[-1]}), got {grad.shape}"
        )
    if not q.shape[:-2] == k.shape[:-2] == v.shape[:-2] == grad.shape[:-2]:
        raise ValueError(
            f"q, k, v and grad must have the same axes in front, got {q.shape[:-2]}, "
            f"{k.shape[:-2]}, {v.shape[:-2]} and {grad.shape[:-2]}"
        )


def _sizes(n_queries: int, n_keys: int, channels: int, *, batch: int = 1) -> None:
    must.count(1, n_queries=n_queries, n_keys=n_keys, channels=channels, batch=batch)


@op(_pairs, floats="q k")
def laplacian_distances(q: Array, k: Array) -> Array:
    r"""The L1 distance of every query from every key.

    $$d_{ij} = \sum_c |q_{ic} - k_{jc}|$$

    q: (..., n, c); k: (..., m, c). Returns (..., n, m). One channel at a time: memory
    grows as n m, not as n m c.

    >>> laplacian_distances([[0.0, 0.0]], [[1.0, 0.0], [1.0, -2.0]]).tolist()
    [[1.0, 3.0]]
    """
    distances = np.abs(q[..., :, None, 0] - k[..., None, :, 0])
    for c in range(1, q.shape[-1]):
        one = np.abs(q[..., :, None, c] - k[..., None, :, c])
        distances = distances + one
    return distances


@op(_read, floats="q k v sigma")
def laplacian_attention(q: Array, k: Array, v: Array, sigma: float) -> LaplacianRead:
    r"""Softmax of minus the distance over sigma.

    $$w_{ij} = \frac{e^{-d_{ij}/\sigma}}{\sum_l e^{-d_{il}/\sigma}}, \qquad
    o_i = \sum_j w_{ij} v_j$$

    q: (..., n, c); k: (..., m, c); v: (..., m, d_v); sigma > 0, in the unit of the
    distances. Returns (output, weights, distances).
    Raises ValueError for sigma <= 0, numbers that are not finite, no keys, shapes that
    do not fit. Source: Kim et al. 2019 (attentive neural processes).

    >>> read = laplacian_attention([[0.0]], [[0.0], [1.0]], [[1.0], [0.0]], 1.0)
    >>> read.weights.round(4).tolist()
    [[0.7311, 0.2689]]
    """
    distances = laplacian_distances(q, k)
    nearest = distances.min(axis=-1, keepdims=True)
    with np.errstate(over="ignore"):  # sigma may be tiny
        weights = softmax((nearest - distances) / sigma)
    return LaplacianRead(weights @ v, weights, distances)


@op(_with_loss, floats="q k v sigma grad")
def laplacian_gradients(
    q: Array, k: Array, v: Array, sigma: float, grad: Array
) -> LaplacianGradients:
    r"""What a gradient at the output becomes at q, k, v and sigma.

    With $z = -d/\sigma$ and $P = w$,

    $$\mathrm{d}z = P \odot \left(G v^\top - \mathrm{rowsum}(P \odot G v^\top)\right),
    \quad \frac{\partial d_{ij}}{\partial q_{ic}} = \mathrm{sign}(q_{ic} - k_{jc}),
    \quad \mathrm{d}\sigma = \sum_{ij} \mathrm{d}z_{ij}\, d_{ij} / \sigma^2$$

    grad G: (..., n, d_v). At the kink, where an entry of q equals one of k, the sign
    is 0: the mean of the two one-sided slopes.

    >>> one = [[1.0]]
    >>> laplacian_gradients(one, [[0.0]], one, 1.0, one).v.tolist()
    [[1.0]]
    """
    read = laplacian_attention(q, k, v, sigma)
    p = read.weights
    dp = grad @ np.swapaxes(v, -1, -2)
    dz = p * (dp - (p * dp).sum(axis=-1, keepdims=True))
    dq, dk = np.empty_like(q), np.empty_like(k)
    for c in range(q.shape[-1]):
        sign = np.sign(q[..., :, None, c] - k[..., None, :, c])
        dq[..., c] = -(dz * sign).sum(axis=-1) / sigma
        dk[..., c] = (dz * sign).sum(axis=-2) / sigma
    dv = np.swapaxes(p, -1, -2) @ grad
    return LaplacianGradients(dq, dk, dv, (dz * read.distances).sum() / sigma**2)


@op(_pairs, floats="q k")
def median_sigma(q: Array, k: Array) -> Array:
    r"""The width at which a key at the median distance has affinity one half.

    $$\sigma = \mathrm{median}(d) / \log 2$$

    q: (..., n, c); k: (..., m, c); the median is over all pairs. At least 1e-4, for
    the case that most distances are zero.

    >>> round(float(median_sigma([[0.0]], [[1.0], [2.0], [5.0]])), 4)
    2.8854
    """
    sigma = np.median(laplacian_distances(q, k)) / np.log(2.0)
    return np.maximum(sigma, 1e-4).astype(q.dtype)


@op(_sizes)
def operation_counts(
    n_queries: int, n_keys: int, channels: int, *, batch: int = 1
) -> OperationCounts:
    r"""Scalar operations that the scores take, before any softmax.

    Both kinds visit $B \cdot n \cdot m \cdot c$ pairs of entries. The dot product
    multiplies there, the distance subtracts and takes an absolute value; both add
    $c - 1$ times a pair. Counted, not timed: hardware has no fast path for distances.

    >>> operation_counts(128, 128, 8).dot_multiplications
    131072
    """
    entries = batch * n_queries * n_keys * channels
    additions = batch * n_queries * n_keys * (channels - 1)
    product, distance = (entries, additions), (0, entries, entries, additions)
    return OperationCounts(*product, *distance)
