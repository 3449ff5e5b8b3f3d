"""Numbers that count what is done with them.

The code of an operation runs on them as it stands, so that a formula for a cost can be
compared with what it is a formula of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from .ops import _op
from .ops._op import Array


class Counted:
    """A number that counts what is done with numbers of its kind."""

    tally: Counter[str] = Counter()

    def __init__(self, x: Any) -> None:
        self.x: Any = x.x if isinstance(x, Counted) else x

    def __mul__(self, other: Any) -> Counted:
        Counted.tally["multiplications"] += 1
        return Counted(self.x * Counted(other).x)

    def __truediv__(self, other: Any) -> Counted:
        Counted.tally["divisions"] += 1
        return Counted(self.x / Counted(other).x)

    def __add__(self, other: Any) -> Counted:
        Counted.tally["additions"] += 1
        return Counted(self.x + Counted(other).x)

    def __sub__(self, other: Any) -> Counted:
        Counted.tally["subtractions"] += 1
        return Counted(self.x - Counted(other).x)

    def __abs__(self) -> Counted:
        Counted.tally["absolute values"] += 1
        return Counted(abs(self.x))

    __rmul__, __radd__ = __mul__, __add__


def counted(work: Callable[..., Any], *arrays: Array, **options: Any) -> Counter[str]:
    """What a function does with the entries of its arguments.

    Raises AssertionError if it gives other numbers when it is counted.

    >>> tally = counted(np.matmul, np.ones((2, 3)), np.ones((3, 5)))
    >>> tally["multiplications"], tally["additions"]
    (30, 20)
    """
    return _tally(work, work(*arrays, **options), arrays, options)


def multiplications(operation: str, *arrays: Array, **options: Any) -> int:
    """How many multiplications the code of an operation carries out on these arrays.

    Raises AssertionError if a stand-in answers for the operation with other numbers.

    >>> multiplications("linear", np.ones((2, 3)), np.ones((3, 5)))
    30
    """
    import labcore

    plain = getattr(labcore, operation)(*arrays, **options)
    return _tally(_op.OPS[operation], plain, arrays, options)["multiplications"]


def _tally(
    work: Callable[..., Any],
    plain: Any,
    arrays: tuple[Array, ...],
    options: dict[str, Any],
) -> Counter[str]:
    """What the work takes on numbers that count; its result must be the plain one."""
    counting = [np.vectorize(Counted, otypes=[object])(a) for a in arrays]
    Counted.tally = Counter()
    found = work(*counting, **options)
    tally, Counted.tally = Counted.tally, Counter()
    if isinstance(plain, tuple):
        plain, found = plain[0], found[0]
    values = np.vectorize(lambda c: c.x, otypes=[float])(found)
    if not np.allclose(values, plain):
        raise AssertionError(f"{work.__name__} gives other numbers when it is counted")
    return tally
