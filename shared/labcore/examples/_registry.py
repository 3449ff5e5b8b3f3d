"""How a worked example is written down, and where to find it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Example:
    """One worked example: givens in, computed outputs out.

    The output is computed from the givens by operations of labcore; nothing in it is
    typed in. same_as names the example whose calculation this one tells again.
    """

    id: str
    title: str
    title_zh: str  # of our own wording; empty where the source shows none
    chapter: str
    givens: Mapping[str, Any]
    units: str
    compute: Callable[..., Any]
    same_as: str | None = None

    def output(self) -> Any:
        """The example, run on its own givens."""
        return self.compute(**self.givens)


EXAMPLES: dict[str, Example] = {}


def example(
    id: str,
    title: str,
    *,
    chapter: str,
    givens: Mapping[str, Any],
    units: str,
    title_zh: str = "",
    same_as: str | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the decorated function of the givens as a worked example."""

    def register(compute: Callable[..., Any]) -> Callable[..., Any]:
        if id in EXAMPLES:
            raise ValueError(f"two examples are called {id!r}")
        EXAMPLES[id] = Example(
            id, title, title_zh, chapter, givens, units, compute, same_as
        )
        return compute

    return register
