"""The worked examples of the course by topic: givens in, computed outputs out.

NAMED_CHECKS: (program, test), a name of the 108 checks that the examples came with, to
the registered checks that hold it now.
"""

from importlib import import_module
from pkgutil import iter_modules

from ._registry import EXAMPLES, Example, example

__all__ = ["EXAMPLES", "NAMED_CHECKS", "Example", "example"]

NAMED_CHECKS: dict[tuple[str, str], tuple[str, ...]] = {}


def _load() -> None:
    for module in iter_modules(__path__):
        topic = import_module(f"{__name__}.{module.name}")
        NAMED_CHECKS.update(getattr(topic, "NAMED_CHECKS", {}))


_load()
