"""The keys of an input: their other names, and no key that nobody reads."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Mapping
from typing import Any

REMARKS = {"comment", "convention", "description", "note", "reference", "source"}


class Given(dict[str, Any]):
    """An input; to ask for a key that is not there says what lacks it."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what

    def but(self, **changes: Any) -> Given:
        """The same, with some things changed."""
        other = Given(self.what)
        other.update(self, **changes)
        return other

    def __missing__(self, key: str) -> Any:
        raise ValueError(f"{self.what} needs {key!r}")


Adapter = Callable[[Given], Any]
RUN: dict[str, Callable[[Mapping[str, Any]], Any]] = {}


def reads(keys: str, *also: str) -> Callable[[Adapter], Adapter]:
    """Register an adapter under its name, and the names in also, with its keys.

    ``keys`` lists what it reads; ``a|b`` is one thing under two names, of which the
    adapter sees the first. A key that is null is one that is not there.
    """

    def decorate(adapter: Adapter) -> Adapter:
        for name in (adapter.__name__, *also):

            @functools.wraps(adapter)
            def run(given: Mapping[str, Any], name: str = name) -> Any:
                return adapter(fields(given, keys, name))

            RUN[name] = run
        return adapter

    return decorate


def fields(given: Mapping[str, Any], keys: str, what: str) -> Given:
    """The input under the first names of its keys; ValueError for a strange one."""
    if not isinstance(given, Mapping):
        raise ValueError(f"{what} must be a dictionary, got {given!r}")
    first = {}
    for names in keys.split():
        one, *others = names.split("|")
        first |= dict.fromkeys([one, *others], one)
    found = Given(what)
    for key, value in given.items():
        if key in REMARKS:
            continue
        if key not in first:
            near = difflib.get_close_matches(str(key), first, n=1)
            hint = (
                f"did you mean {near[0]!r}?" if near else f"it has {', '.join(first)}"
            )
            raise ValueError(f"{what} has no input {key!r}: {hint}")
        if first[key] in found:
            raise ValueError(f"{what}: {key!r} is given twice, under two names")
        if value is not None:
            found[first[key]] = value
    return found


def one_of(what: str, value: Any, *allowed: Any) -> Any:
    """A choice that is there; ValueError otherwise."""
    if value not in allowed:
        names = ", ".join(map(repr, allowed))
        raise ValueError(f"{what} must be one of {names}, got {value!r}")
    return value
