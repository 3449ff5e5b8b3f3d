"""What an argument is, as the annotation of its parameter says.

The door refuses what a parameter cannot be before any mathematics sees it, and where
the checks of an operation could not even read an argument, says which one it was.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from numbers import Real
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

HALF = ("float16", "bfloat16")
UNREADABLE = (TypeError, AttributeError, LookupError, ValueError)


def one_number(x: Any, of: Any = Real) -> bool:
    """A number, or an array without axes that holds one."""
    if type(x) is float:  # the usual case
        return True
    if isinstance(x, np.ndarray):
        return x.ndim == 0 and one_number(x[()], of)
    return isinstance(x, (of, np.bool_)) or type(x).__name__ in HALF


def what(x: Any) -> str:
    """An argument in few words."""
    return f"an array of {x.dtype}" if isinstance(x, np.ndarray) else repr(x)[:60]


def named_in(message: str, names: Collection[str]) -> bool:
    """Does a message name one of the parameters?"""
    return any(re.search(rf"\b{re.escape(name)}\b", message) for name in names)


def misfit(
    plain: Callable[..., Any], args: Any, kwargs: dict[str, Any], *, scalars: bool
) -> str:
    """Which argument is not what its annotation says, in words; empty if all are.

    scalars: whether a bare number may stand where an array is wanted.
    """
    hints = get_type_hints(plain)
    signature = inspect.signature(plain)
    for name, value in signature.bind(*args, **kwargs).arguments.items():
        hint = hints.get(name, Any)
        bare = not scalars and _wants_axes(hint) and np.ndim(value) == 0
        if bare and value is not None or not _fits(value, hint):
            wanted = signature.parameters[name].annotation
            return f"{name} must be of type {wanted}, got {what(value)}"
    return ""


def _wants_axes(hint: Any) -> bool:
    """An array, where no number may stand instead."""
    parts = [get_origin(part) or part for part in (hint, *get_args(hint))]
    return np.ndarray in parts and float not in parts


def _fits(x: Any, hint: Any) -> bool:
    kind, inner = get_origin(hint) or hint, get_args(hint)
    if kind is Any:
        return True
    if kind in (Union, UnionType):
        return any(_fits(x, part) for part in inner)
    if kind is np.ndarray:
        return _is_array(x)
    if kind is float:
        return one_number(x)
    if kind is int:
        return isinstance(x, (int, np.integer)) and not isinstance(x, bool)
    if kind in (Sequence, Collection):
        many = isinstance(x, (kind, np.ndarray)) and not isinstance(x, (str, bytes))
        if not many or isinstance(x, np.ndarray) and x.ndim == 0:
            return False
        return all(_fits(part, inner[0]) for part in x)
    if kind is tuple and inner:
        if not _fits(x, Sequence[Any]) or len(x) != len(inner):
            return False
        return all(map(_fits, x, inner))
    if kind is Mapping:
        return isinstance(x, Mapping) and all(_fits(v, inner[1]) for v in x.values())
    if kind is Literal:
        return isinstance(x, str) and x in inner
    if kind is Callable:
        return callable(x)
    return isinstance(x, kind) if isinstance(kind, type) else True


def _is_array(x: Any) -> bool:
    try:
        a = np.asarray(x)
    except ValueError:
        return False
    return a.dtype.kind in "biufc" or a.dtype.name in HALF
