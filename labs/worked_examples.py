"""Compute the 71 worked examples of the course and print one JSON document.

    {"python": ..., "numpy": ..., "examples": {"F05": {"title", "chapter", "output"}}}

Each output is computed from the givens of its example by operations of labcore; an
infinity is written as a string. An example that fails says so in place of its output,
and on standard error.

With --test the 108 checks that the examples came with run under their names, each once
and then for every recorded seed and size of what it stands for now; the last line
counts them.

Exit status: 0 all is well, 1 an example or a check fails, 2 the options are wrong.

    python worked_examples.py --only F05 Q012
    python worked_examples.py --test
    python worked_examples.py --test --break adamw_counts_from_zero
"""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

SHARED = Path(__file__).resolve().parent.parent / "shared"
if (SHARED / "labcore" / "__init__.py").is_file():
    sys.path.insert(0, str(SHARED))  # the labcore beside this file, not another one
try:
    import numpy as np
    from labcore import identities as known
    from labcore import lab, report
    from labcore.examples import EXAMPLES, NAMED_CHECKS
    from labcore.identities import CHECKS, FAULTS, Fault, Verdict
    from labcore.program import Once, Parser, say, unknown
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

SUITES = ("engine", "additional_checks", "chain_and_operators")


def main(argv: Sequence[str] | None = None) -> int:
    """Do what the options say; the exit status."""
    try:
        asked = options(argv)
    except SystemExit as left:
        return int(left.code or 0)
    if asked.list:
        say("\n".join(listed(asked)), sys.stdout)
        return 0
    if asked.faults:
        say("\n\n".join(described(fault) for fault in faults()), sys.stdout)
        return 0
    with lab.broken(asked.fault) if asked.fault else nullcontext():
        failed = test() if asked.test else document(asked.only)
    if asked.fault and not failed:
        what = "check" if asked.test else "example"
        say(f"note: no {what} fails under {asked.fault}", sys.stderr)
    return 1 if failed else 0


# ---- The document -----------------------------------------------------------------


def document(ids: Iterable[str]) -> int:
    """Print the outputs of these examples; how many failed."""
    examples = {id: entry(id) for id in EXAMPLES if id in ids}
    versions = {"python": platform.python_version(), "numpy": np.__version__}
    say(report.as_json({**versions, "examples": examples}), sys.stdout)
    failed = {id: found["error"] for id, found in examples.items() if "error" in found}
    for id, words in failed.items():
        say(f"{id}: {words}", sys.stderr)
    return len(failed)


def entry(id: str) -> dict[str, Any]:
    """Title, chapter and output of one example, or the words of its error."""
    example = EXAMPLES[id]
    about = {"title": example.title, "chapter": example.chapter}
    try:
        return {**about, "output": example.output()}
    except Exception as error:
        return {**about, "error": f"{type(error).__name__}: {error}"}


# ---- The checks by their names ----------------------------------------------------


def test() -> int:
    """Run the named checks, a line each; how many failed."""
    failed = 0
    for suite, name in names():
        broken = [v for id in NAMED_CHECKS[suite, name] if not (v := worst(id)).held]
        failed += bool(broken)
        say(f"{'failed' if broken else 'passed'}  {suite}  {name}", sys.stdout)
        for verdict in broken:
            say(complaint(name, verdict), sys.stderr)
    say(f"{len(NAMED_CHECKS) - failed} passed, {failed} failed", sys.stdout)
    return failed


def names() -> list[tuple[str, str]]:
    """The 108 names, suite by suite."""
    return [pair for suite in SUITES for pair in NAMED_CHECKS if pair[0] == suite]


def worst(id: str) -> Verdict:
    """The check at every recorded seed and size; the first that is broken, if any."""
    check = CHECKS[id]
    verdict = known.run(check)
    if not verdict.held or not check.inputs(0, known.SIZES[0]):
        return verdict  # a worked example draws nothing: once is all
    runs = (known.run(check, s, n) for s in known.SEEDS for n in known.SIZES)
    return next((v for v in runs if not v.held), verdict)


def complaint(name: str, v: Verdict) -> str:
    """One line: the name, the check, what was measured and what is allowed."""
    found = f"measured {report.measured(v)}, allowed {report.allowed(v.check)}"
    return " ".join(f"{name}: {v.check.id}: {found}".split())


# ---- Lists ------------------------------------------------------------------------


def listed(asked: argparse.Namespace) -> list[str]:
    """A line for each check, or for each example with the one it tells again."""
    if asked.test:
        return [
            f"{s}  {name}: {', '.join(NAMED_CHECKS[s, name])}" for s, name in names()
        ]
    return [
        f"{id}: {e.title} [{e.chapter}]"
        + (f" (same as {e.same_as})" if e.same_as else "")
        for id, e in EXAMPLES.items()
        if id in asked.only
    ]


def faults() -> list[Fault]:
    """Every fault that breaks one of the named checks."""
    return [f for f in FAULTS.values() if broken_by(f)]


def broken_by(fault: Fault) -> list[str]:
    """The names that a fault is recorded to break."""
    red = known.recorded()["faults"].get(fault.id, {}).get("red", {})
    return [
        name
        for (_, name), ids in NAMED_CHECKS.items()
        if not red.keys().isdisjoint(ids)
    ]


def described(fault: Fault) -> str:
    """A fault, its story, and which names notice it."""
    return f"{report.fault_text(fault)}\n    breaks: {', '.join(broken_by(fault))}"


# ---- Options ----------------------------------------------------------------------


def options(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options, checked; SystemExit with status 2 if they are wrong."""
    parser = Parser(
        prog="worked_examples.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add: Callable[..., Any] = parser.add_argument
    add("--test", action="store_true", help="run the 108 checks by their names")
    one = parser.add_mutually_exclusive_group()
    one.add_argument(
        "--list", action="store_true", help="list the examples (or the checks) and end"
    )
    one.add_argument("--faults", action="store_true", help="list the faults and end")
    one.add_argument(
        "--only", nargs="+", action="extend", metavar="ID", help="only these examples"
    )
    fault: dict[str, Any] = {"dest": "fault", "action": Once, "metavar": "FAULT"}
    add("--break", **fault, help="run with this fault in place")
    asked = parser.parse_args(argv)
    for id in asked.only or ():
        if id not in EXAMPLES:
            parser.error(unknown("example", id, EXAMPLES, "--list"))
    if asked.only and asked.test:
        parser.error("--only chooses examples, --test runs all checks: not both")
    if asked.fault is not None and asked.fault not in FAULTS:
        parser.error(unknown("fault", asked.fault, FAULTS, "--faults"))
    asked.only = set(EXAMPLES if asked.only is None else asked.only)
    return asked


if __name__ == "__main__":
    sys.exit(main())
