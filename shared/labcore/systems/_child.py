"""Another process, stepped by pipes: it says where it is, and waits to be let on.

``python -m labcore.systems._child ROLE ARGUMENTS`` plays one of the roles below.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ALONE = (sys.executable, "-m", "labcore.systems._child")
HOME = str(Path(__file__).resolve().parents[2])  # a folder, or the archive that runs


class Child:
    """A process in a role. Leaving the block ends it, whatever it was doing."""

    def __init__(self, role: str, *arguments: str, command: Sequence[str] = ALONE):
        path = os.environ.get("PYTHONPATH")
        self._process = subprocess.Popen(
            [*command, role, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env={
                **os.environ,
                "OPENBLAS_NUM_THREADS": "1",  # starts sooner
                # The labcore of this process, installed or not.
                "PYTHONPATH": os.pathsep.join([HOME, *filter(None, [path])]),
            },
        )

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: Any) -> None:
        self.kill()

    def says(self) -> str:
        """The next line; waits for it."""
        line = self._process.stdout.readline()  # type: ignore[union-attr]
        if not line:
            self._process.wait()
            why = self._process.stderr.read()  # type: ignore[union-attr]
            raise RuntimeError(f"the other process ended: {why.strip()[-500:]}")
        return line.rstrip("\n")

    def go_on(self) -> None:
        """Let it take its next step."""
        stdin = self._process.stdin
        stdin.write("\n")  # type: ignore[union-attr]
        stdin.flush()  # type: ignore[union-attr]

    def kill(self) -> None:
        """End it at once: nothing of it runs any more, no handler, no cleaning up."""
        self._process.kill()
        self._process.communicate()


def step(word: str) -> None:
    """In the other process: say where it is, and wait to be let on."""
    print(word, flush=True)
    sys.stdin.readline()


def main(arguments: Sequence[str]) -> None:
    """Play the role."""
    from . import database, files

    roles: dict[str, Callable[..., None]] = {
        "write": files.write_in_steps,
        "replace": files.replace_in_steps,
        "transfer": database.transfer_in_steps,
    }
    role, *rest = arguments
    roles[role](*rest)


if __name__ == "__main__":
    main(sys.argv[1:])
