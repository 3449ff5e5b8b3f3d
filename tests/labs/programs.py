"""How the tests run a program: in this process, or as one of its own."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def load(program: Path) -> ModuleType:
    """The program as a module; its main() can be called."""
    spec = importlib.util.spec_from_file_location(program.stem, program)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def start(
    *arguments: str | Path, python: tuple[str, ...] = (), **more: Any
) -> subprocess.CompletedProcess[bytes]:
    """A program as its own process: bytes, so that the encoding shows."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    environment |= more.pop("env", {})
    command = [sys.executable, *python, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, env=environment, **more)


def strict_json(text: str | bytes) -> Any:
    """The document, which must not hold NaN or Infinity."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


class Ran:
    """A program's main(), run in this process: its status and what it wrote."""

    def __init__(
        self, program: ModuleType, capsys: pytest.CaptureFixture[str], *argv: str
    ) -> None:
        self.status = program.main(argv)
        self.out, self.err = capsys.readouterr()

    @property
    def document(self) -> Any:
        return strict_json(self.out)

    @property
    def named(self) -> list[str]:
        """What stands before the colon of each line on standard error."""
        return [line.partition(":")[0] for line in self.err.splitlines()]
