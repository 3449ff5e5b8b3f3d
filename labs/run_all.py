"""Run every program of this folder and print one JSON document.

    {"all_passed": true, "suites": [{"suite", "command", "status", "sha256"}, ...]}

sha256 is of what the program printed, null where that is not a whole document. A suite
that fails is named on standard error with the last line it wrote there; the others run
all the same. With --out DIR each document is written to DIR under the suite's name.

Exit status: 0 all passed, 1 a suite failed, 2 the options are wrong.

    python run_all.py --out results
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
if (HERE.parent / "shared" / "labcore" / "__init__.py").is_file():
    sys.path.insert(0, str(HERE.parent / "shared"))  # the labcore beside this file
try:
    from labcore.program import Once, Parser, say
except ModuleNotFoundError as missing:
    what = (missing.name or "").partition(".")[0]
    if what not in ("numpy", "labcore"):
        raise
    print(
        f"{what} is missing: install NumPy with pip, and run this file where it stands "
        "in the project, with the folder shared beside its own.",
        file=sys.stderr,
    )
    sys.exit(2)

SUITES: dict[str, tuple[str, ...]] = {
    "transformer_math_lab": ("transformer_math_lab.py",),
    "laplacian_attention_lab": ("laplacian_attention_lab.py",),
    "worked_examples": ("worked_examples.py",),
    "worked_examples_checks": ("worked_examples.py", "--test"),
}
SECONDS = 300  # the slowest suite takes about three


def main(argv: Sequence[str] | None = None) -> int:
    """Run all suites; the exit status."""
    try:
        out = options(argv).out
    except SystemExit as left:
        return int(left.code or 0)
    suites = [run(suite, out) for suite in SUITES]
    document = {"all_passed": all(s["status"] == 0 for s in suites), "suites": suites}
    say(json.dumps(document, indent=2), sys.stdout)
    return 0 if document["all_passed"] else 1


def run(suite: str, out: Path | None) -> dict[str, Any]:
    """Run one suite and keep what it printed; what there is to say about it."""
    program, *arguments = SUITES[suite]
    command = [sys.executable, *where(program), *arguments]
    try:
        ran = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)
        status, printed, complained = ran.returncode, ran.stdout, ran.stderr
    except subprocess.TimeoutExpired:
        words = f"no end after {SECONDS} seconds"
        status, printed, complained = -1, b"", words.encode()
    whole = "--test" in arguments or is_json(printed)
    if status or not whole:
        lines = complained.decode("utf-8", "backslashreplace").splitlines()
        why = lines[-1] if lines else "it printed no JSON document"
        say(f"{suite} failed: {why}", sys.stderr)
    if out and whole:
        suffix = "txt" if "--test" in arguments else "json"
        (out / f"{suite}.{suffix}").write_bytes(printed)
    return {
        "suite": suite,
        "command": " ".join(SUITES[suite]),
        "status": status or (0 if whole else 1),
        "sha256": hashlib.sha256(printed).hexdigest() if whole else None,
    }


def where(program: str) -> list[str]:
    """Its file; inside the .pyz there are no files, and the .pyz is told its name."""
    if HERE.is_dir():
        return [str(HERE / program)]
    return [str(HERE), program.removesuffix(".py")]


def is_json(printed: bytes) -> bool:
    """Whether it is one JSON document, without the words NaN and Infinity."""

    def refuse(word: str) -> None:
        raise ValueError(f"{word} is not JSON")

    try:
        json.loads(printed, parse_constant=refuse)
    except ValueError:
        return False
    return True


def options(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options, checked; SystemExit with status 2 if they are wrong."""
    parser = Parser(
        prog="run_all.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--out",
        type=Path,
        action=Once,
        metavar="DIR",
        help="write each document to this folder",
    )
    asked = parser.parse_args(argv)
    if asked.out is not None:
        try:
            asked.out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            parser.error(f"--out: {error}")
    return asked


if __name__ == "__main__":
    sys.exit(main())
