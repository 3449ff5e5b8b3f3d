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
* ``dtype=`` computes and returns in that type;
* what is too small for the type is rounded to zero, whatever ``np.errstate`` says.

What a parameter may be, the door reads from its annotation: one number, an array, True
or False, a record such as a cache. Anything else is a ``ValueError`` that names it.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from numbers import Complex
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ._kinds import HALF, UNREADABLE, misfit, named_in, one_number, what

Array = NDArray[Any]
R = TypeVar("R")

FLOAT64 = np.dtype(np.float64)


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
    kind: Any  # "float", "float | Array", "Array", "Weights", or the class of a record


class Option(NamedTuple):
    """A parameter that the door passes on untouched, if it is what it should be."""

    place: int
    name: str
    kind: str  # "float" or "bool"
    optional: bool


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
        numeric, options = _parameters(plain, signature, floats)

        @functools.wraps(plain)
        def door(*args: Any, **kwargs: Any) -> R:
            if _reached is not None:
                _reached.add(name)
            stand_in = _stand_ins.get(name)
            if stand_in is not None and name in _busy():
                stand_in = None  # inside a stand-in its own name is the reference
            if not numeric:
                return answer(stand_in, args, kwargs)
            with np.errstate(under="ignore"):
                args, kwargs, result_type = _admit(numeric, args, kwargs)
                found = answer(stand_in, args, kwargs)
                return found if result_type is None else _as_type(found, result_type)

        def answer(stand_in: StandIn | None, args: Any, kwargs: dict[str, Any]) -> R:
            try:
                if not (stand_in and stand_in.unguarded):
                    _allow(options, args, kwargs)
                    if validate is not None:
                        validate(*args, **kwargs)
                if stand_in is None:
                    return plain(*args, **kwargs)
            except UNREADABLE as error:
                _bind(name, signature, args, kwargs)
                _explain(error, plain, args, kwargs)
                raise
            _busy().add(name)
            try:
                return stand_in.function(*args, **kwargs)
            finally:
                _busy().discard(name)

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


def _explain(
    error: Exception, plain: Callable[..., Any], args: Any, kwargs: dict[str, Any]
) -> None:
    """ValueError for the argument that could not be read; nothing if all could."""
    said = isinstance(error, ValueError)
    if said and named_in(str(error), inspect.signature(plain).parameters):
        return
    if words := misfit(plain, args, kwargs, scalars=said):
        raise ValueError(words) from error


def _parameters(
    plain: Callable[..., Any], signature: inspect.Signature, floats: str
) -> tuple[list[Numeric], list[Option]]:
    """What the door converts, and what it only looks at."""
    marks = {p.rstrip("*?"): p for p in floats.split()}
    numeric: list[Numeric] = []
    options: list[Option] = []
    for place, (name, parameter) in enumerate(signature.parameters.items()):
        kind = str(parameter.annotation)
        optional = parameter.default is None or kind.endswith(" | None")
        kind = kind.removesuffix(" | None")
        if name in marks:
            many = marks[name].endswith("*")
            kind = kind.removeprefix("Sequence[").removesuffix("]") if many else kind
            record = plain.__globals__.get(kind)
            known = record if isinstance(record, type) else kind
            numeric.append(Numeric(place, name, many, optional, known))
        elif kind in ("float", "bool"):
            options.append(Option(place, name, kind, optional))
    return numeric, options


def _allow(options: list[Option], args: Any, kwargs: dict[str, Any]) -> None:
    """One number where one is wanted; True or False where the choice is between two."""
    for place, name, kind, optional in options:
        if place >= len(args) and name not in kwargs:
            continue
        x = args[place] if place < len(args) else kwargs[name]
        if x is None and optional:
            continue
        if kind == "float" and not one_number(x):
            raise ValueError(f"{name} must be one number, got {what(x)}")
        if kind == "bool" and not isinstance(x, (bool, np.bool_)):
            raise ValueError(f"{name} must be True or False, got {what(x)}")


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
    for p in numeric:
        where: list[Any] | dict[str, Any] = given if p.place < len(given) else kwargs
        key: Any = p.place if where is given else p.name
        if (
            where is kwargs
            and p.name not in kwargs
            or where[key] is None
            and p.optional
        ):
            continue
        where[key] = _numbers(p, where[key], types)
        slots.append((where, key, p.name))
    if asked is None and all(found is FLOAT64 for found in types):  # the usual case
        return tuple(given), kwargs, None
    found = np.result_type(*types) if types else FLOAT64
    out = found if asked is None else _asked(asked)
    if found.kind == "c" and out.kind != "c":
        raise ValueError(f"dtype={out} cannot hold the complex numbers it was given")
    compute = np.dtype(np.float32) if out.name in HALF else out
    for where, key, _ in slots:
        where[key] = _as_type(where[key], compute)
    return tuple(given), kwargs, None if out == compute else out


def _asked(dtype: DTypeLike) -> np.dtype[Any]:
    try:
        out = np.dtype(dtype)
    except TypeError:
        out = None
    if out is None or out.kind not in "fc" and out.name not in HALF:
        raise ValueError(f"dtype must be a float or complex type, got {dtype!r}")
    return out


def _numbers(p: Numeric, x: Any, types: list[np.dtype[Any]]) -> Any:
    """Arrays of numbers; note their types, a bare scalar's excepted."""
    if p.kind == "Array" and type(x) is np.ndarray and x.dtype is FLOAT64 and x.ndim:
        types.append(FLOAT64)  # the usual case
        return x
    if type(x) is float and p.kind in ("float", "float | Array"):
        return x
    if p.many:
        if not isinstance(x, (list, tuple)) and np.ndim(x) == 0:
            raise ValueError(f"{p.name} must be a list of arrays, got {what(x)}")
        one = p._replace(many=False)
        return [_numbers(one, part, types) for part in x]
    if p.kind == "Weights":  # entry by entry, None stays None
        if not isinstance(x, Mapping):
            raise ValueError(f"{p.name} must be a dictionary of arrays, got {what(x)}")
        return {key: _entry(key, part, types) for key, part in x.items()}
    if isinstance(p.kind, type):  # a record: part by part
        if not isinstance(x, p.kind):
            raise ValueError(f"{p.name} must be a {p.kind.__name__}, got {what(x)}")
        parts = x._asdict().items()  # type: ignore[attr-defined]
        return p.kind(*(_array(f"{p.name}.{part}", y, types) for part, y in parts))
    if p.kind == "float" and not one_number(x, Complex):
        raise ValueError(f"{p.name} must be one number, got {what(x)}")
    a = _array(p.name, x, types)
    if a.ndim:
        return a
    number = a.item()
    return number if isinstance(number, complex) else float(number)


def _entry(name: Any, x: Any, types: list[np.dtype[Any]]) -> Any:
    """An entry of a dictionary of weights, or its list of such dictionaries."""
    if name == "layers":
        layers = Numeric(0, name, many=True, optional=False, kind="Weights")
        return _numbers(layers, x, types)
    return x if x is None else _array(str(name), x, types)


def _array(name: str, x: Any, types: list[np.dtype[Any]]) -> Array:
    """An array of numbers; note its type, unless it is one real number."""
    if type(x) is np.ndarray and x.dtype is FLOAT64 and x.ndim:  # the usual case
        types.append(FLOAT64)
        return x
    a = _number_array(name, x)
    if a.ndim or a.dtype.kind == "c":
        types.append(a.dtype)
    return a if a.ndim else a.astype(np.result_type(a, FLOAT64))


def _number_array(name: str, x: Any) -> Array:
    try:
        a = np.asarray(x)
    except ValueError as error:
        raise ValueError(f"{name} must be one array of numbers: {error}") from None
    if a.dtype.kind in "iub":
        a = a.astype(np.float64)
    if a.dtype.kind not in "fc" and a.dtype.name not in HALF:
        raise ValueError(f"{name} must hold numbers, got {what(x)}")
    return a


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
