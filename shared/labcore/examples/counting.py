"""Operations that count their multiplications while they run.

The code of an operation runs as it stands, on numbers that count what is done to them,
so that a formula for a cost can be compared with what it is a formula of.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ops import _op
from ..ops._op import Array


class Counted:
    """A number that counts how often one of its kind is multiplied."""

    times = 0

    def __init__(self, x: Any) -> None:
        self.x: Any = x.x if isinstance(x, Counted) else x

    def __mul__(self, other: Any) -> Counted:
        Counted.times += 1
        return Counted(self.x * Counted(other).x)

    def __add__(self, other: Any) -> Counted:
        return Counted(self.x + Counted(other).x)

    def __truediv__(self, other: Any) -> Counted:
        return Counted(self.x / Counted(other).x)

    __rmul__, __radd__ = __mul__, __add__


def multiplications(operation: str, *arrays: Array, **options: Any) -> int:
    """How many multiplications an operation carries out on these arrays.

    Raises AssertionError if the operation gives other numbers when it is counted.

    >>> multiplications("linear", np.ones((2, 3)), np.ones((3, 5)))
    30
    """
    import labcore

    plain = getattr(labcore, operation)(*arrays, **options)
    counting = [np.vectorize(Counted, otypes=[object])(a) for a in arrays]
    Counted.times = 0
    counted = _op.OPS[operation](*counting, **options)
    times = Counted.times
    if isinstance(plain, tuple):
        plain, counted = plain[0], counted[0]
    values = np.vectorize(lambda c: c.x, otypes=[float])(counted)
    if not np.allclose(values, plain):
        raise AssertionError(f"{operation} gives other numbers when it is counted")
    return times
