"""Exercises with answers that are computed, not stored.

``check("writes/overshoot", answer)`` says whether an answer is right. An answer of
``...`` means that it is still to be written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import numpy as np

from ..identities import compare
from ..notebook import dressed
from ..report import number, plain

ENOUGH = 5e-4  # relative: three figures by hand are enough


@dataclass(frozen=True)
class Exercise:
    """A question whose answer an operation computes from its givens.

    A page names the givens through the role ``given``, so they are these. The hint and
    the reason name a number as ``{name}``: it is a given, the answer, or computed from
    the givens by tells.
    """

    id: str
    hint: str
    because: str
    compute: Callable[..., Any]
    givens: Mapping[str, Any] = field(default_factory=dict)
    tells: Callable[..., Mapping[str, Any]] | None = None

    def answer(self) -> Any:
        """The right answer."""
        return self.compute(**self.givens)

    def told(self, words: str) -> str:
        """The hint or the reason, with its numbers filled in."""
        values = dict(self.givens)
        if self.tells:
            values |= self.tells(**self.givens)
        if "{answer}" in words:
            values["answer"] = self.answer()
        return words.format_map({name: _written(x) for name, x in values.items()})


@dataclass(frozen=True)
class Reply:
    """What the checker says about an answer."""

    right: bool | None
    words: str

    def __repr__(self) -> str:
        return self.words

    def _repr_html_(self) -> str:
        word = {None: "", True: "holds", False: "broken"}[self.right]
        return dressed(f'<p class="say"><span class="{word}">{self.words}</span></p>')


EXERCISES: dict[str, Exercise] = {}  # filled by the modules of this package


def exercise(
    id: str,
    *,
    hint: str,
    because: str,
    tells: Callable[..., Mapping[str, Any]] | None = None,
    **givens: Any,
) -> Callable[[Callable[..., Any]], Any]:
    """Register the decorated function of the givens as the way to an answer."""

    def register(compute: Callable[..., Any]) -> Callable[..., Any]:
        EXERCISES[id] = Exercise(id, hint, because, compute, givens, tells)
        return compute

    return register


def check(id: str, answer: Any) -> Reply:
    """Whether an answer (a number, a list of numbers, a word, a set) is right.

    Three significant figures are enough; shapes are not stretched to fit.

    >>> check("writes/overshoot", ...)
    Not answered yet. Put your answer where the dots are.
    """
    if id not in EXERCISES:
        near = get_close_matches(id, EXERCISES, 3)
        raise ValueError(f"no exercise {id!r}; did you mean {', '.join(near) or '?'}")
    task = EXERCISES[id]
    if answer is ...:
        return Reply(None, "Not answered yet. Put your answer where the dots are.")
    wanted = task.answer()
    if isinstance(wanted, str):
        right = isinstance(answer, str) and answer.strip().lower() == wanted
    elif isinstance(wanted, (set, frozenset)):
        given = _members(answer)
        if given is None:
            words = f"you wrote {_written(answer)}, and the answer is a set of names."
            return Reply(False, f"Not yet: {words}")
        right = given == set(wanted)
    else:
        error, _, _ = compare(_numbers(answer), np.asarray(wanted, float))
        right = bool(error < ENOUGH)
    if right:
        return Reply(True, f"Right. {task.told(task.because)}")
    hint = task.told(task.hint)
    return Reply(False, f"Not yet: you wrote {_written(answer)}. {hint}")


def _numbers(answer: Any) -> Any:
    try:
        return np.asarray(answer, float)
    except (TypeError, ValueError):
        return np.array(np.nan)


def _members(answer: Any) -> set[Any] | None:
    """What a set, list or tuple holds; None for what holds no names."""
    try:
        return None if isinstance(answer, str) else set(answer)
    except TypeError:
        return None


def _written(answer: Any) -> str:
    if isinstance(answer, (int, float, np.number)):
        return number(answer)
    return str(plain(answer))


def _load() -> None:
    for module in iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")


_load()
