"""Rotary positions: rotate queries and keys so that scores see relative offsets."""

from __future__ import annotations

from typing import Literal

import numpy as np

from . import _validate as must
from ._op import Array, op
from .attention import _queries_keys_values, attention

Layout = Literal["interleaved", "half"]


def _angle(angle: float) -> None:
    must.finite(angle=angle)


def _frequencies(d: int, base: float = 10000.0) -> None:
    must.count(2, d=d)
    if d % 2:
        raise ValueError(f"d must be even, a plane takes two entries, got {d}")
    must.positive(base=base)


def _rotated(
    x: Array,
    positions: Array,
    *,
    base: float = 10000.0,
    layout: Layout = "interleaved",
) -> None:
    must.axes(1, x=x)
    must.finite(x=x)
    if x.shape[-1] % 2 or x.shape[-1] == 0:
        raise ValueError(f"x must have an even last axis, got shape {x.shape}")
    must.positive(base=base)
    p = np.asarray(positions)
    if p.dtype.kind not in "iuf":
        raise ValueError(f"positions must be numbers, got {p.dtype}")
    must.finite(positions=p)
    if not must.fits_into(p.shape, x.shape[:-1]):
        raise ValueError(
            f"positions must be one number or one a row of x with shape {x.shape}, "
            f"got shape {p.shape}"
        )
    if layout not in ("interleaved", "half"):
        raise ValueError(f"layout must be 'interleaved' or 'half', got {layout!r}")


def _rotated_attention(
    q: Array,
    k: Array,
    v: Array,
    positions: Array,
    *,
    base: float = 10000.0,
    layout: Layout = "interleaved",
    allowed: Array | None = None,
) -> None:
    _queries_keys_values(q, k, v, allowed=allowed)
    must.same("the number of queries and keys", q=q.shape[-2], k=k.shape[-2])
    _rotated(q, positions, base=base, layout=layout)
    _rotated(k, positions, base=base, layout=layout)


@op(_angle, floats="angle")
def rope_rotation(angle: float) -> Array:
    r"""Counter-clockwise rotation of a column vector in one plane.

    $$R_\theta = \begin{pmatrix} \cos\theta & -\sin\theta \\
    \sin\theta & \cos\theta \end{pmatrix}$$

    angle in radians. Returns (2, 2); a row vector x is rotated as x @ R.T.

    >>> rope_rotation(np.pi / 2).round(12).tolist()
    [[0.0, -1.0], [1.0, 0.0]]
    """
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s], [s, c]])


@op(_frequencies)
def rope_frequencies(d: int, base: float = 10000.0) -> Array:
    r"""Radians that each plane turns from one position to the next.

    $$\omega_i = \mathrm{base}^{-2i/d}, \qquad i = 0, \dots, d/2 - 1$$

    d: the head dimension, even. Returns (d/2,). Source: Su et al. 2021 (RoFormer).

    >>> rope_frequencies(8).round(12).tolist()
    [1.0, 0.1, 0.01, 0.001]
    """
    return float(base) ** (-np.arange(0, d, 2) / d)


@op(_rotated, floats="x")
def rope(
    x: Array,
    positions: Array,
    *,
    base: float = 10000.0,
    layout: Layout = "interleaved",
) -> Array:
    r"""Each plane of x, turned by its position times its frequency.

    $$\begin{pmatrix} a' \\ b' \end{pmatrix} = R_{p\,\omega_i}
    \begin{pmatrix} a \\ b \end{pmatrix}$$

    x: (..., n, d) with positions (n,), or (d,) with one number. The pair (a, b) of
    plane i is (x[2i], x[2i+1]) when interleaved, (x[i], x[i + d/2]) when half.
    Angles are computed in float64 whatever x is. Returns the shape of x.

    >>> rope([1.0, 0.0], 1).round(4).tolist()
    [0.5403, 0.8415]
    """
    d = x.shape[-1]
    angle = np.asarray(positions, float)[..., None] * rope_frequencies(d, base)
    c, s = np.cos(angle).astype(x.dtype), np.sin(angle).astype(x.dtype)
    interleaved = layout == "interleaved"
    first = slice(0, d, 2) if interleaved else slice(0, d // 2)
    second = slice(1, d, 2) if interleaved else slice(d // 2, d)
    a, b = x[..., first], x[..., second]
    rotated = np.empty_like(x)
    rotated[..., first], rotated[..., second] = c * a - s * b, s * a + c * b
    return rotated


@op(_rotated_attention, floats="q k v")
def rope_attention(
    q: Array,
    k: Array,
    v: Array,
    positions: Array,
    *,
    base: float = 10000.0,
    layout: Layout = "interleaved",
    allowed: Array | None = None,
) -> Array:
    """Attention whose queries and keys are rotated; the values are not.

    q, k: (..., n, d_k); v: (..., n, d_v); positions: (n,). Returns (..., n, d_v).

    >>> rope_attention([[1.0, 0.0]], [[0.0, 1.0]], [[5.0]], [9]).tolist()
    [[5.0]]
    """
    q = rope(q, positions, base=base, layout=layout)
    k = rope(k, positions, base=base, layout=layout)
    return attention(q, k, v, allowed=allowed)
