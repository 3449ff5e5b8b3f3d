"""The door in front of every operation.

``@op`` turns a plain function into a door of the same name. The door converts and
checks the arguments, then looks up who answers: the plain function or, for the length
of one lesson, a stand-in. Callers hold the door, whichever way they came by it (an
import, a default argument, a table, another thread), so a stand-in reaches all of them
and none can be left behind.

What the door does about numbers, so that the body is mathematics only:

* lists become arrays; integers and booleans become float64;
* float16 and bfloat16 are computed in float32 and returned in their own type, every
  other float or complex type is computed and returned as it is;
* a scalar never decides the type: it enters as a Python number;
* ``dtype=`` computes and returns in that type.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

Array = NDArray[Any]
R = TypeVar("R")

FLOAT64 = np.dtype(np.float64)
HALF = ("float16", "bfloat16")


class StandIn(NamedTuple):
    """Who answers instead of the plain function; unguarded: arguments unchecked."""

    function: Callable[..., Any]
    unguarded: bool = False


class Numeric(NamedTuple):
    """A parameter that the door converts: where it stands, and what it may be."""

    place: int
    name: str
    many: bool  # a sequence of arrays
    optional: bool  # None is its default, or one of its kinds


OPS: dict[str, Callable[..., Any]] = {}  # name -> plain function, filled at import
EFFECTS: set[str] = set()  # those of them that do more than return
_stand_ins: dict[str, StandIn] = {}  # empty except inside replaced()
_one_at_a_time = threading.Lock()
_running = threading.local()  # names whose stand-in is running in this thread
_reached: set[str] | None = None  # a set while reached() listens


def op(
    validate: Callable[..., None] | None = None,
    *,
    floats: str = "",
    effects: bool = False,
) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Make a plain function an operation of the course.

    ``validate`` takes the same arguments and raises ``ValueError``. ``floats`` names
    the parameters that hold numbers to compute with; a trailing ``*`` marks a sequence
    of arrays, a trailing ``?`` one that may be None. A dictionary of arrays (weights,
    its ``layers`` a list of the same) is taken entry by entry. Parameters not named
    (axes, counts, masks, positions) pass untouched. ``effects`` marks an operation that
    does something (writes a file) beside what it returns: nobody runs it to compare.
    """

    def decorate(plain: Callable[..., R]) -> Callable[..., R]:
        name = plain.__name__
        if name in OPS:
            raise ValueError(f"two operations are called {name!r}")
        OPS[name] = plain
        if effects:
            EFFECTS.add(name)
        signature = inspect.signature(plain)
        order = list(signature.parameters)
        numeric = [
            Numeric(
                order.index(p.rstrip("*?")),
                p.rstrip("*?"),
                many=p.endswith("*"),
                optional=p.endswith("?")
                or signature.parameters[p.rstrip("*?")].default is None,
            )
            for p in floats.split()
        ]

        @functools.wraps(plain)
        def door(*args: Any, **kwargs: Any) -> R:
            if _reached is not None:
                _reached.add(name)
            stand_in = _stand_ins.get(name)
            if stand_in is not None and name in _busy():
                stand_in = None  # inside a stand-in its own name is the reference
            result_type = None
            if numeric:
                args, kwargs, result_type = _admit(numeric, args, kwargs)
            if validate is not None and not (stand_in and stand_in.unguarded):
                try:
                    validate(*args, **kwargs)
                except TypeError:
                    _bind(name, signature, args, kwargs)  # says it in our own words
                    raise
            if stand_in is None:
                answer = plain(*args, **kwargs)
            else:
                _busy().add(name)
                try:
                    answer = stand_in.function(*args, **kwargs)
                finally:
                    _busy().discard(name)
            return answer if result_type is None else _as_type(answer, result_type)

        if numeric:
            dtype = inspect.Parameter(
                "dtype", inspect.Parameter.KEYWORD_ONLY, default=None
            )
            signature = signature.replace(
                parameters=[*signature.parameters.values(), dtype]
            )
        door.__signature__ = signature  # type: ignore[attr-defined]
        return door

    return decorate


@contextmanager
def replaced(stand_ins: Mapping[str, StandIn]) -> Iterator[None]:
    """Let others answer for the named operations; one such block at a time."""
    if not _one_at_a_time.acquire(blocking=False):
        busy = ", ".join(sorted(_stand_ins)) or "another operation"
        raise RuntimeError(
            f"{busy} is replaced already: one fault at a time, or nobody can tell "
            "which one a check noticed"
        )
    try:
        _stand_ins.update(stand_ins)
        yield
    finally:
        _stand_ins.clear()
        _one_at_a_time.release()


@contextmanager
def reached() -> Iterator[set[str]]:
    """Collect the names of the operations that are called inside the block."""
    global _reached
    outer, _reached = _reached, set()
    try:
        yield _reached
    finally:
        _reached = outer


def _bind(
    name: str, signature: inspect.Signature, args: Any, kwargs: dict[str, Any]
) -> None:
    """TypeError, naming the operation, if the arguments do not fit its signature."""
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{name}: {error}; it is {name}{signature}") from None


def _busy() -> set[str]:
    if not hasattr(_running, "names"):
        _running.names = set()
    return _running.names


def _admit(
    numeric: list[Numeric],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> tuple[tuple[Any, ...], dict[str, Any], np.dtype[Any] | None]:
    """Arguments in the type to compute in, and the type to return if it differs."""
    given = list(args)
    kwargs = dict(kwargs)
    asked: DTypeLike | None = kwargs.pop("dtype", None)
    slots: list[tuple[list[Any] | dict[str, Any], Any, str]] = []
    types: list[np.dtype[Any]] = []
    for place, name, many, optional in numeric:
        where: list[Any] | dict[str, Any] = given if place < len(given) else kwargs
        key: Any = place if where is given else name
        if where is kwargs and name not in kwargs or where[key] is None and optional:
            continue
        where[key] = _numbers(name, where[key], many, types)
        slots.append((where, key, name))
    if asked is None and all(found is FLOAT64 for found in types):  # the usual case
        return tuple(given), kwargs, None
    found = np.result_type(*types) if types else FLOAT64
    out = found if asked is None else np.dtype(asked)
    if out.kind not in "fc" and out.name not in HALF:
        raise ValueError(f"dtype must be a float or complex type, got {out}")
    if found.kind == "c" and out.kind != "c":
        raise ValueError(f"dtype={out} cannot hold the complex numbers it was given")
    compute = np.dtype(np.float32) if out.name in HALF else out
    for where, key, _ in slots:
        where[key] = _as_type(where[key], compute)
    return tuple(given), kwargs, None if out == compute else out


def _numbers(name: str, x: Any, many: bool, types: list[np.dtype[Any]]) -> Any:
    """Arrays of numbers; note their types, a bare scalar's excepted."""
    if type(x) is np.ndarray and x.dtype is FLOAT64 and x.ndim:  # the usual case
        types.append(FLOAT64)
        return x
    if isinstance(x, Mapping):  # weights: entry by entry, None stays None
        return {
            key: part if part is None else _numbers(key, part, key == "layers", types)
            for key, part in x.items()
        }
    if many:
        if not isinstance(x, (list, tuple)):
            raise ValueError(f"{name} must be a list of arrays, got {_what(x)}")
        return [_numbers(name, part, False, types) for part in x]
    if isinstance(x, tuple) and hasattr(x, "_fields"):  # a summary: part by part
        return type(x)(*(_number_array(name, part, types) for part in x))
    scalar = isinstance(x, (int, float, complex, np.generic))
    if scalar or isinstance(x, np.ndarray) and x.ndim == 0:
        number = _number_array(name, x, []).item()
        return number if isinstance(number, complex) else float(number)
    return _number_array(name, x, types)


def _number_array(name: str, x: Any, types: list[np.dtype[Any]]) -> Array:
    try:
        a = np.asarray(x)
    except ValueError as error:
        raise ValueError(f"{name} must be one array of numbers: {error}") from None
    if a.dtype.kind in "iub":
        a = a.astype(np.float64)
    if a.dtype.kind not in "fc" and a.dtype.name not in HALF:
        raise ValueError(f"{name} must hold numbers, got {_what(x)}")
    types.append(a.dtype)
    return a


def _what(x: Any) -> str:
    return f"an array of {x.dtype}" if isinstance(x, np.ndarray) else repr(x)[:60]


def _as_type(x: Any, dtype: np.dtype[Any]) -> Any:
    if isinstance(x, (np.ndarray, np.generic)):
        if x.dtype.kind in "iub" or x.dtype == dtype:
            return x
        return x.astype(dtype)
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*(_as_type(part, dtype) for part in x))
    if isinstance(x, Mapping):
        return {key: _as_type(part, dtype) for key, part in x.items()}
    if isinstance(x, (tuple, list)):
        return type(x)(_as_type(part, dtype) for part in x)
    return x
