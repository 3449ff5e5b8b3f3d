"""What every operation refuses, in one wording.

Each function raises ``ValueError`` naming the argument, what it got and what it wants.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._op import Array


def finite(**arrays: Any) -> None:
    """Every entry is a finite number."""
    for name, x in arrays.items():
        good = np.isfinite(x)
        if not good.all():
            raise ValueError(f"{name} must be finite, got {_first(x, ~good)}")


def scores(name: str, x: Any) -> None:
    """Scores may be -inf (masked); NaN and +inf are errors."""
    if np.isfinite(x).all():  # the usual case
        return
    bad = np.isnan(x) | (np.real(x) == np.inf)
    if bad.any():
        raise ValueError(
            f"{name} must be finite or -inf (a mask), got {_first(x, bad)}"
        )


def some_key(name: str, x: Array, axis: int) -> None:
    """No row is empty or masked throughout."""
    axis_of(name, x, axis)
    if x.shape[axis] == 0:
        raise ValueError(f"{name} is empty along axis {axis}: shape {x.shape}")
    if (np.real(x) == -np.inf).all(axis=axis).any():
        raise ValueError(f"{name} has a row with no allowed key: every score is -inf")


def axis_of(name: str, x: Any, axis: int) -> None:
    """The axis is one, and exists."""
    if not isinstance(axis, (int, np.integer)) or isinstance(axis, bool):
        raise ValueError(f"axis must be an integer, got {axis!r}")
    if not -np.ndim(x) <= axis < np.ndim(x):
        raise ValueError(f"{name} has no axis {axis}: shape {np.shape(x)}")


def axes(at_least: int, **arrays: Any) -> None:
    """Each array has that many axes or more."""
    for name, x in arrays.items():
        if np.ndim(x) < at_least:
            raise ValueError(
                f"{name} needs at least {at_least} axes, got shape {np.shape(x)}"
            )


def same(what: str, **sizes: int) -> None:
    """All these sizes agree: ``same("d_k", q=3, k=4)`` raises."""
    if len(set(sizes.values())) > 1:
        got = ", ".join(f"{name}: {size}" for name, size in sizes.items())
        raise ValueError(f"{what} must be one size, got {got}")


def batch(**shapes: tuple[int, ...] | None) -> None:
    """The axes in front broadcast; None stands for an argument that is not there."""
    given = {name: shape for name, shape in shapes.items() if shape is not None}
    if len(set(given.values())) < 2:  # the usual case
        return
    try:
        np.broadcast_shapes(*given.values())
    except ValueError:
        got = ", ".join(f"{name}: {shape}" for name, shape in given.items())
        raise ValueError(f"axes in front do not broadcast: {got}") from None


def fits_into(shape: tuple[int, ...], whole: tuple[int, ...]) -> bool:
    """Does an array of this shape broadcast to that one, and not beyond it?"""
    try:
        return np.broadcast_shapes(shape, whole) == whole
    except ValueError:
        return False


def mask(allowed: Any, n_queries: int, n_keys: int) -> tuple[int, ...] | None:
    """Boolean, (..., n_queries, n_keys), no row without a key; its axes in front."""
    if allowed is None:
        return None
    allowed = np.asarray(allowed)
    wanted = (n_queries, n_keys)
    if allowed.dtype != bool:
        raise ValueError(f"allowed must be boolean, got {allowed.dtype}")
    if allowed.shape[-2:] != wanted:
        raise ValueError(
            f"allowed must be (n_queries, n_keys) = {wanted}, got {allowed.shape}"
        )
    if not allowed.any(axis=-1).all():
        raise ValueError("allowed has a row with no allowed key")
    return allowed.shape[:-2]


def within(low: float, high: float, **arrays: Any) -> None:
    """Every entry lies in [low, high]; NaN does not."""
    for name, x in arrays.items():
        if type(x) is float and low <= x <= high:  # the usual case
            continue
        bad = np.logical_not((np.real(x) >= low) & (np.real(x) <= high))
        if bad.any():
            raise ValueError(
                f"{name} must lie in [{low:g}, {high:g}], got {_first(x, bad)}"
            )


def positive(**numbers: Any) -> None:
    """Every number is finite and greater than zero."""
    for name, x in numbers.items():
        if type(x) is float and 0 < x < np.inf:  # the usual case
            continue
        bad = np.logical_not((np.real(x) > 0) & np.isfinite(x))
        if bad.any():
            raise ValueError(
                f"{name} must be finite and positive, got {_first(x, bad)}"
            )


def one_number(**numbers: Any) -> None:
    """Each is a number, not an array of them."""
    for name, x in numbers.items():
        if np.ndim(x):
            raise ValueError(f"{name} must be one number, got shape {np.shape(x)}")


def count(at_least: int, **numbers: Any) -> None:
    """Each is an integer, and not too small."""
    for name, n in numbers.items():
        whole = isinstance(n, (int, np.integer)) and not isinstance(n, bool)
        if not whole or n < at_least:
            raise ValueError(f"{name} must be an integer >= {at_least}, got {n!r}")


def probabilities(**arrays: Any) -> None:
    """Non-negative along the last axis, and summing to one there.

    The sum may miss one by 1.5e-8 in double precision and by 5e-3 below it (a bfloat16
    distribution is off by up to 4e-3): what was computed passes, what nobody
    normalised does not.
    """
    for name, p in arrays.items():
        axes(1, **{name: p})
        if p.shape[-1] == 0:
            raise ValueError(f"{name} is empty: shape {p.shape}")
        finite(**{name: p})
        if (np.real(p) < 0).any():
            raise ValueError(
                f"{name} must not be negative, got {_first(p, np.real(p) < 0)}"
            )
        total = p.sum(axis=-1)
        bad = np.abs(total - 1) > (1.5e-8 if np.finfo(p.dtype).eps < 1e-12 else 5e-3)
        if bad.any():
            raise ValueError(f"{name} must sum to 1, got {_first(total, bad)}")


def _first(x: Any, bad: Any) -> str:
    return f"{np.asarray(x)[np.asarray(bad)].flat[0]}"
