"""Checks and faults: what must hold, and how it is known to break.

A check draws inputs and returns two sides. A fault is a wrong version of one
operation. Both are registered under a chapter, by decorators.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import numpy as np

from ..ops import _op

Kind = Literal["equal", "value", "exact", "order", "differs", "refuses"]
Rng = np.random.Generator
Inputs = dict[str, Any]
Draw = Callable[[Rng, int], Inputs]

FLOOR = 4 * float(np.finfo(np.float64).eps)  # no error counts as smaller than this
SIZES = (1, 2, 4)
SEEDS = (0, 1, 2, 3, 184)


@dataclass(frozen=True)
class Check:
    """One claim that can be run.

    draw(rng, size) gives the inputs; sides(**inputs) gives (got, want):

    equal    got equals want, up to rounding
    value    as equal, and want is a constant derived beside it
    exact    the same discrete result
    order    got - want is positive everywhere
    differs  got is not want: a counterexample stays one
    refuses  got, called, raises a ValueError that names want
    """

    id: str
    claim: str
    chapter: str
    kind: Kind
    draw: Draw
    sides: Callable[..., tuple[Any, Any]]

    def inputs(self, seed: int, size: int) -> dict[str, Any]:
        """The same inputs whichever checks ran before; arrays are read-only."""
        rng = np.random.default_rng([seed, zlib.crc32(self.id.encode())])
        drawn = self.draw(rng, size)
        for array in _arrays(drawn):
            array.setflags(write=False)
        return drawn

    @property
    def tolerance(self) -> float:
        """The largest error allowed; for order and differs the bound to stay above."""
        row = recorded()["checks"].get(self.id)
        return float(row["tolerance"]) if row else 1e-11


@dataclass(frozen=True)
class Fault:
    """A wrong version of one operation.

    story says who made the mistake, or why it is an easy one; made_for is the check
    that was made to catch it; stays_green is an obvious check that cannot. unguarded:
    it replaces the argument checks of the operation too.
    """

    id: str
    title: str
    chapter: str
    operation: str
    by: Callable[..., Any]
    story: str
    made_for: str
    stays_green: str
    unguarded: bool = False


@dataclass(frozen=True)
class Verdict:
    """What one run of one check measured.

    error is scaled by the largest entry wanted; for order it is the margin, for
    differs the difference. absolute is the same without the scale. message says in
    words what went wrong, where a number does not.
    """

    check: Check
    held: bool
    error: float
    absolute: float
    seed: int
    size: int
    message: str = ""
    got: Any = None
    want: Any = None


@dataclass(frozen=True)
class Chapter:
    """A chapter of the book, and the decorators that register what belongs to it."""

    slug: str
    title: str
    part: str

    def __post_init__(self) -> None:
        CHAPTERS[self.slug] = self

    def check(
        self, id: str, claim: str, *, draw: Draw, kind: Kind = "equal"
    ) -> Callable[[Callable[..., tuple[Any, Any]]], Callable[..., tuple[Any, Any]]]:
        """Register the decorated sides as a check."""

        def register(
            sides: Callable[..., tuple[Any, Any]],
        ) -> Callable[..., tuple[Any, Any]]:
            if id in CHECKS:
                raise ValueError(f"two checks are called {id!r}")
            CHECKS[id] = Check(id, claim, self.slug, kind, draw, sides)
            return sides

        return register

    def fault(
        self,
        id: str,
        title: str,
        *,
        operation: str,
        story: str,
        made_for: str,
        stays_green: str,
        unguarded: bool = False,
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Register the decorated function as a wrong version of an operation."""

        def register(by: Callable[..., Any]) -> Callable[..., Any]:
            if id in FAULTS:
                raise ValueError(f"two faults are called {id!r}")
            if operation not in _op.OPS:
                raise ValueError(f"fault {id!r}: no operation named {operation!r}")
            FAULTS[id] = Fault(
                id,
                title,
                self.slug,
                operation,
                by,
                story,
                made_for,
                stays_green,
                unguarded,
            )
            return by

        return register


CHAPTERS: dict[str, Chapter] = {}
CHECKS: dict[str, Check] = {}
FAULTS: dict[str, Fault] = {}


def nothing(rng: Rng, size: int) -> Inputs:
    """The draw of a worked example, which has its numbers already."""
    return {}


@cache
def recorded() -> dict[str, Any]:
    """The committed fault matrix: tolerances, gaps, and which fault breaks what."""
    file = files(__package__) / "matrix.json"
    if not file.is_file():
        return {"checks": {}, "faults": {}}
    return json.loads(file.read_text(encoding="utf-8"))


def run(check: Check, seed: int = 0, size: int = 2) -> Verdict:
    """Run one check once. An exception is a broken check, not a crash."""
    inputs = check.inputs(seed, size)
    with np.errstate(all="ignore"):
        try:
            got, want = check.sides(**inputs)
            if check.kind == "refuses":
                return _refusal(check, got, want, seed, size)
        except Exception as raised:
            words = f"{type(raised).__name__}: {_said(raised)}"
            return Verdict(check, False, np.inf, np.inf, seed, size, words)
        if check.kind == "order":
            error, absolute, message = _margin(got, want)
        elif check.kind == "exact":
            same, message = _same(got, want)
            error = absolute = 0.0 if same else np.inf
        else:
            error, absolute, message = compare(got, want)
    bound = check.tolerance
    if check.kind in ("order", "differs"):
        held = bool(np.isfinite(error) and error > bound)
    else:
        held = error == 0.0 if check.kind == "exact" else bool(error < bound)
    return Verdict(check, held, error, absolute, seed, size, message, got, want)


def compare(got: Any, want: Any) -> tuple[float, float, str]:
    """(scaled error, absolute error, message); numpy only, and nothing broadcast."""
    if isinstance(want, (tuple, list)):
        if not isinstance(got, (tuple, list)) or len(got) != len(want):
            return np.inf, np.inf, f"{_form(got)}, wanted {_form(want)}"
        parts = [compare(g, w) for g, w in zip(got, want, strict=True)]
        worst = max(parts, key=lambda part: part[0], default=(0.0, 0.0, ""))
        return worst[0], max((p[1] for p in parts), default=0.0), worst[2]
    problem = _unlike(got, want)
    if problem:
        return np.inf, np.inf, problem
    g, w = _plain(got), _plain(want)
    if np.any(np.isnan(g)) or np.any(np.isnan(w)):
        return np.inf, np.inf, "NaN"
    same = g == w  # equal infinities are equal
    finite = np.isfinite(g) & np.isfinite(w)
    if not np.all(same | finite):
        return np.inf, np.inf, "infinite where it should not be"
    with np.errstate(invalid="ignore"):  # infinity less infinity, which is not kept
        apart = np.abs(np.where(finite, g - w, 0.0))
    absolute = float(np.max(apart, initial=0.0))
    scale = float(np.max(np.abs(np.where(np.isfinite(w), w, 0.0)), initial=0.0))
    return absolute / (scale or 1.0), absolute, ""


def _margin(got: Any, want: Any) -> tuple[float, float, str]:
    problem = _unlike(got, want)
    if problem:
        return np.inf, np.inf, problem
    margin = float(np.min(_plain(got) - _plain(want)))
    return margin, margin, "NaN" if np.isnan(margin) else ""


def _same(got: Any, want: Any) -> tuple[bool, str]:
    if isinstance(want, (tuple, list)):
        if not isinstance(got, (tuple, list)) or len(got) != len(want):
            return False, f"{_form(got)}, wanted {_form(want)}"
        parts = [_same(g, w) for g, w in zip(got, want, strict=True)]
        return next((part for part in parts if not part[0]), (True, ""))
    if isinstance(want, (np.ndarray, np.generic, int, float, complex)):
        problem = _unlike(got, want)
        return not problem and bool(np.array_equal(_plain(got), _plain(want))), problem
    if type(got) is not type(want):
        return False, f"{_form(got)}, wanted {_form(want)}"
    return got == want, ""


def _unlike(got: Any, want: Any) -> str:
    """Why two things cannot be compared number by number; empty when they can."""
    g, w = _plain(got), _plain(want)
    if g.dtype.kind not in "iubfcV" or g.dtype.kind == "V" and g.dtype.names:
        return f"{_form(got)}, wanted {_form(want)}"
    if g.shape != w.shape:
        return f"shape {g.shape}, wanted {w.shape}"
    if _class(g) != _class(w):
        return f"{g.dtype}, wanted {w.dtype}"
    return ""


def _class(a: np.ndarray[Any, Any]) -> str:
    return {"b": "bool", "i": "integer", "u": "integer", "c": "complex"}.get(
        a.dtype.kind, "float"
    )


def _plain(x: Any) -> np.ndarray[Any, Any]:
    """The numbers themselves: a subclass loses whatever it does to ==."""
    try:
        return np.array(x, subok=False)
    except (ValueError, TypeError):
        return np.array(None)


def _said(raised: BaseException) -> str:
    try:
        return str(raised)
    except Exception:  # a message that cannot be made is none
        return "(no message)"


def _form(x: Any) -> str:
    if isinstance(x, (tuple, list)):
        return f"{len(x)} values"
    return type(x).__name__


def _refusal(check: Check, call: Any, name: str, seed: int, size: int) -> Verdict:
    try:
        got = call()
    except ValueError as error:
        held = name in str(error)
        words = "" if held else f"the message does not name {name}: {error}"
        return Verdict(
            check, held, 0.0 if held else np.inf, 0.0, seed, size, words, str(error)
        )
    words = f"took it without a word, wanted a ValueError that names {name}"
    return Verdict(check, False, np.inf, np.inf, seed, size, words, got)


def _arrays(x: Any) -> Iterator[np.ndarray[Any, Any]]:
    if isinstance(x, np.ndarray):
        yield x
    elif isinstance(x, Mapping):
        for part in x.values():
            yield from _arrays(part)
    elif isinstance(x, (tuple, list)):
        for part in x:
            yield from _arrays(part)
