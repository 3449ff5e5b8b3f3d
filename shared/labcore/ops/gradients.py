"""Gradients: by formula, and by finite differences to compare them with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import _validate as must
from ._op import Array, op


def _difference(f: Callable[[Array], Any], x: Array, *, h: float = 1e-5) -> None:
    if not callable(f):
        raise ValueError(f"f must be a function, got {type(f).__name__}")
    must.finite(x=x)
    must.positive(h=h)


@op(_difference, floats="x")
def finite_difference(f: Callable[[Array], Any], x: Array, *, h: float = 1e-5) -> Array:
    r"""The gradient of a number that depends on an array, by central differences.

    $$\frac{\partial f}{\partial x_i} \approx
    \frac{f(x + h e_i) - f(x - h e_i)}{2h}$$

    f: array -> number; x: any shape. Returns the shape of x. The error is of order
    h squared from the curvature, and eps/h from rounding: about 1e-10 at best.

    >>> finite_difference(lambda x: (x**2).sum(), [1.0, 2.0]).round(6).tolist()
    [2.0, 4.0]
    """
    x = np.asarray(x, dtype=np.float64)
    gradient = np.empty_like(x)
    for i in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[i], down[i] = up[i] + h, down[i] - h
        gradient[i] = (float(f(up)) - float(f(down))) / (up[i] - down[i])
    return gradient
