"""Another process with the same stand-in in place, told by name or by source.

``python -m labcore._told fault MODULE NAME ROLE ARGUMENTS`` loads one module of
``labcore.identities`` and puts one of its faults in place; ``… source OPERATION TEXT
ROLE ARGUMENTS`` puts a function of the given source in place. Both then play a role of
``labcore.systems._child``.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import labcore

from .ops import _op
from .systems import _child

PACKAGE = "labcore.identities"


def by_name(module: str, name: str) -> tuple[str, _op.StandIn]:
    """The operation of a fault, and its stand-in; no other topic is loaded."""
    alone = ModuleType(PACKAGE)  # a package that is there already is not run
    spec = find_spec(PACKAGE)
    assert spec is not None
    alone.__path__ = list(spec.submodule_search_locations or ())
    sys.modules[PACKAGE] = alone
    import_module(f"{PACKAGE}.{module}")
    fault = import_module(f"{PACKAGE}._check").FAULTS[name]
    return fault.operation, _op.StandIn(fault.by, fault.unguarded)


def by_source(operation: str, source: str) -> tuple[str, _op.StandIn]:
    """The operation, and the first function of the source."""
    getattr(labcore, operation)
    tree = ast.parse(source)
    written = next(n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef))
    written.decorator_list = []
    names: dict[str, Any] = {**_op.OPS[operation].__globals__, "labcore": labcore}
    alone = ast.Module([written], [])
    exec(compile(alone, f"<your {operation}>", "exec"), names)
    function: Callable[..., Any] = names[written.name]
    return operation, _op.StandIn(function)


def main(arguments: Sequence[str]) -> None:
    """Put the stand-in in place, and play the role."""
    how, first, second, *role = arguments
    name, stand_in = {"fault": by_name, "source": by_source}[how](first, second)
    with _op.replaced({name: stand_in}):
        _child.main(role)


if __name__ == "__main__":
    main(sys.argv[1:])
