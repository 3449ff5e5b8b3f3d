"""The programs of the course, by their names.

    python labs worked_examples --test               where the project or its zip is
    python transformer-math-lab.pyz worked_examples --test

Without a name it lists them. What stands after the name goes to the program.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

PROGRAMS = (
    "transformer_math_lab",
    "laplacian_attention_lab",
    "worked_examples",
    "run_all",
)
HERE = Path(__file__).resolve().parent  # the folder, or the .pyz
if not HERE.is_dir():
    import labcore  # noqa: F401  # the one inside, before a program finds another


def main(argv: Sequence[str] | None = None) -> int:
    """Run a program, or list them; the exit status."""
    name, *rest = (sys.argv[1:] if argv is None else argv) or ["--help"]
    if name in PROGRAMS:
        return int(import_module(name).main(rest))
    if name not in ("-h", "--help"):
        known = ", ".join(PROGRAMS)
        print(f"no program named {name!a}; there are {known}", file=sys.stderr)
        return 2
    for program in PROGRAMS:
        words = (import_module(program).__doc__ or "").splitlines()[0]
        print(f"{program}\n    {words}")
    print(f"\npython {HERE.name} PROGRAM --help shows the options of one.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
