"""The worked examples of the course by topic: givens in, computed outputs out."""

from importlib import import_module
from pkgutil import iter_modules

from ._registry import EXAMPLES, Example, example

__all__ = ["EXAMPLES", "Example", "example"]


def _load() -> None:
    for module in iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")


_load()
