"""Tokens and patches as rows; matrices; norms and activations between them."""

from __future__ import annotations

import numpy as np

from . import _validate as must
from ._op import Array, op


def _numbers(x: Array) -> None:
    must.finite(x=x)


def _gated(gate: Array, up: Array) -> None:
    must.finite(gate=gate, up=up)
    must.batch(gate=np.shape(gate), up=np.shape(up))


def _normed(
    x: Array,
    *,
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 0.0,
) -> None:
    must.axes(1, x=x)
    must.finite(x=x)
    must.within(0.0, np.inf, eps=eps)
    must.finite(eps=eps)
    if x.shape[-1] == 0:
        raise ValueError(f"x has no features: shape {x.shape}")
    for name, per_feature in (("weight", weight), ("bias", bias)):
        if per_feature is not None:
            must.finite(**{name: per_feature})
            if np.shape(per_feature) != x.shape[-1:]:
                raise ValueError(
                    f"{name} must be one number a feature, shape {x.shape[-1:]}, "
                    f"got {np.shape(per_feature)}"
                )


def _centred(
    x: Array,
    *,
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-5,
) -> None:
    _normed(x, weight=weight, bias=bias, eps=eps)
    if eps == 0 and np.any(np.ptp(x, axis=-1) == 0):
        raise ValueError("x has a row of equal entries: no variance, and eps is 0")


def _rooted(x: Array, *, weight: Array | None = None, eps: float = 1e-6) -> None:
    _normed(x, weight=weight, eps=eps)
    if eps == 0 and np.any(np.all(x == 0, axis=-1)):
        raise ValueError("x has a row of zeros, and eps is 0")


def _affine(x: Array, W: Array, *, bias: Array | None = None) -> None:
    must.axes(1, x=x)
    must.finite(x=x, W=W)
    if W.ndim != 2:
        raise ValueError(f"W must be a matrix, got shape {W.shape}")
    must.same("the number of inputs", x=x.shape[-1], W=W.shape[0])
    if bias is not None:
        must.finite(bias=bias)
        if np.shape(bias) != W.shape[1:]:
            raise ValueError(
                f"bias must be one number an output, shape {W.shape[1:]}, "
                f"got {np.shape(bias)}"
            )


def _looked_up(table: Array, ids: Array) -> None:
    must.axes(2, table=table)
    must.finite(table=table)
    a = np.asarray(ids)
    if a.dtype.kind not in "iu":
        raise ValueError(f"ids must be integers, got {a.dtype}")
    bad = (a < 0) | (a >= table.shape[-2])
    if np.any(bad):
        raise ValueError(
            f"ids must lie in [0, {table.shape[-2]}), the rows of table, "
            f"got {a[bad].flat[0]}"
        )


def _image(image: Array, *, patch: int) -> None:
    must.axes(3, image=image)
    must.finite(image=image)
    must.count(1, patch=patch)
    for name, n in zip(("height", "width"), image.shape[-2:], strict=True):
        if n == 0 or n % patch:
            raise ValueError(
                f"image must have a {name} that is a multiple of patch = {patch}, "
                f"got {n}"
            )


@op(_looked_up, floats="table")
def embedding(table: Array, ids: Array) -> Array:
    r"""The rows of a table, one for each token.

    $$X_t = E_{y_t}$$

    table: (..., V, d); ids: integers of any shape, each in [0, V). Returns
    (..., *shape of ids, d). The same token has the same row wherever it stands; the
    row of padding is a row like any other.
    Raises ValueError for a negative id, which an array would take for the end.

    >>> embedding([[0.0, 0.0], [1.0, 2.0]], [[1, 0]]).tolist()
    [[[1.0, 2.0], [0.0, 0.0]]]
    """
    return np.take(table, np.asarray(ids), axis=-2)


@op(_affine, floats="x W bias")
def linear(x: Array, W: Array, *, bias: Array | None = None) -> Array:
    r"""A matrix after a row: every output is a sum over all inputs.

    $$y = x W + b$$

    x: (..., d_in); W: (d_in, d_out), the transpose of what some libraries store;
    bias: (d_out,), or None. Returns (..., d_out).

    >>> linear([1.0, 2.0], [[3.0, 4.0], [5.0, 6.0]]).tolist()
    [13.0, 16.0]
    """
    y = x @ W
    return y if bias is None else y + bias


@op(_image, floats="image")
def patchify(image: Array, *, patch: int) -> Array:
    """An image as a row of patches, each patch as a row of numbers.

    image: (..., channels, height, width), both sides multiples of patch. Returns
    (..., patches, channels * patch * patch): patches from left to right, then from top
    to bottom; inside a patch first the channels, then rows, then columns, as the
    weights of a convolution whose stride is its size are laid out.
    Source: Dosovitskiy et al. 2021.

    >>> patchify([[[1, 2, 3, 4], [5, 6, 7, 8]]], patch=2).tolist()
    [[1.0, 2.0, 5.0, 6.0], [3.0, 4.0, 7.0, 8.0]]
    """
    *front, c, height, width = image.shape
    rows, columns = height // patch, width // patch
    grid = image.reshape(*front, c, rows, patch, columns, patch)
    patches = np.moveaxis(grid, (-4, -2), (-5, -4))
    return patches.reshape(*front, rows * columns, c * patch * patch)


@op(_centred, floats="x weight bias eps")
def layer_norm(
    x: Array,
    *,
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-5,
) -> Array:
    r"""Each row with mean zero and variance one, then stretched and moved.

    $$y = \frac{x - \bar{x}}{\sqrt{\mathrm{var}(x) + \epsilon}} \odot w + b$$

    x: (..., d); weight, bias: (d,), or None for 1 and 0. The variance divides by d,
    and is taken from x - mean: the mean of the squares less the square of the mean
    loses every digit far from zero. Source: Ba et al. 2016.
    Raises ValueError for a row without variance when eps is 0.

    >>> layer_norm([1.0, 3.0], eps=0.0).tolist()
    [-1.0, 1.0]
    """
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred**2).mean(axis=-1, keepdims=True)
    y = centred / np.sqrt(variance + eps)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


@op(_rooted, floats="x weight eps")
def rms_norm(x: Array, *, weight: Array | None = None, eps: float = 1e-6) -> Array:
    r"""Each row divided by the root of the mean of its squares.

    $$y = \frac{x}{\sqrt{\frac{1}{d} \sum_i x_i^2 + \epsilon}} \odot w$$

    x: (..., d); weight: (d,), or None for 1. No mean is taken away.
    Source: Zhang and Sennrich 2019.
    Raises ValueError for a row of zeros when eps is 0.

    >>> rms_norm([1.0, 7.0], eps=0.0).tolist()
    [0.2, 1.4]
    """
    mean_square = (x**2).mean(axis=-1, keepdims=True)
    y = x / np.sqrt(mean_square + eps)
    return y if weight is None else y * weight


@op(_numbers, floats="x")
def relu(x: Array) -> Array:
    r"""What is positive passes, the rest is zero.

    $$\mathrm{relu}(x) = \max(x, 0)$$

    >>> relu([-2.0, 3.0]).tolist()
    [0.0, 3.0]
    """
    return np.maximum(x, 0.0)


@op(_numbers, floats="x")
def silu(x: Array) -> Array:
    r"""Each number times its own logistic.

    $$\mathrm{silu}(x) = x\, \sigma(x) = \frac{x}{1 + e^{-x}}$$

    Far below zero the exponential overflows to infinity, and the quotient is zero as
    it should be. Source: Elfwing et al. 2017; also called swish.

    >>> silu([-1000.0, 0.0, 1.0]).round(4).tolist()
    [-0.0, 0.0, 0.7311]
    """
    with np.errstate(over="ignore"):
        return x / (1 + np.exp(-x))


@op(_gated, floats="gate up")
def swiglu(gate: Array, up: Array) -> Array:
    r"""A product of two branches, one of them through silu.

    $$\mathrm{swiglu}(g, u) = \mathrm{silu}(g) \odot u$$

    gate and up have one shape, or broadcast. Source: Shazeer 2020.

    >>> swiglu([0.0, 1000.0], [5.0, 2.0]).tolist()
    [0.0, 2000.0]
    """
    return silu(gate) * up
