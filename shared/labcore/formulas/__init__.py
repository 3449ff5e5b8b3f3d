"""The displayed formulas of the course: expressions that print and that compute."""

from importlib import import_module
from pkgutil import iter_modules

from ._formula import FORMULAS, UNCHECKED, Formula, Unchecked, formula, tex, unchecked

__all__ = [
    "FORMULAS",
    "UNCHECKED",
    "Formula",
    "Unchecked",
    "formula",
    "tex",
    "unchecked",
]


def _load() -> None:
    for module in iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")


_load()
