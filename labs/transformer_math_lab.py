"""Run the 17 identity checks of the course and print one JSON document.

Each check computes the same thing in two ways and compares: attention with and without
a cache, softmax in one go and in pieces, a recurrence and its sum over all pairs. For
every seed it draws small, middle and larger inputs, and the worst is reported:

    {"max_absolute_error": ..., "tolerance": 1e-11}   two sides that must be equal
    {"max_difference": ...}                           two sides that must differ
    3.87...                                           the result of a worked example

A check fails when its error is not below that tolerance, or when labcore calls it
broken: there the error is divided by the largest number wanted, and what is allowed
was computed from the rounding of this very check. Checks that fail are named on
standard error, one a line, with what was measured and what is allowed.

Exit status: 0 every check holds, 1 a check fails, 2 the options are wrong.

    python transformer_math_lab.py --seeds 100
    python transformer_math_lab.py --faults
    python transformer_math_lab.py --break gated_decay_after_write
"""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Iterable, Sequence
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
    from labcore.identities import CHECKS, FAULTS, SIZES, Check, Fault, Verdict
    from labcore.program import Once, Parser, say, unknown, whole
except ModuleNotFoundError as missing:
    what = (missing.name or "").partition(".")[0]
    if what == "numpy":
        print("NumPy is missing: python -m pip install numpy", file=sys.stderr)
    elif what == "labcore":
        print(
            "labcore is missing: run this file where it stands in the project, with "
            "the folder shared beside its own, or install that folder with pip.",
            file=sys.stderr,
        )
    else:
        raise
    sys.exit(2)

TOLERANCE = 1e-11
NAMES = (
    "causal_prefix_reads",
    "future_perturbation",
    "chunk_mask_offset",
    "online_softmax",
    "online_worked_output",
    "normalized_kernel_recurrence",
    "delta_unit_key_overwrite",
    "delta_orthogonal_read",
    "gated_decay_then_correct",
    "gated_no_decay_limit",
    "gated_no_write_limit",
    "kda_affine_form",
    "kda_noncommuting_counterexample",
    "rope_relative_identity",
    "rope_joint_shift",
    "mla_joint_score_and_projection",
    "speculative_distribution",
)


def main(argv: Sequence[str] | None = None) -> int:
    """Do what the options say; the exit status."""
    try:
        asked = options(argv)
    except SystemExit as left:
        return int(left.code or 0)
    names = [name for name in NAMES if name in asked.only]
    if asked.list:
        say("\n".join(f"{name}: {CHECKS[name].claim}" for name in names), sys.stdout)
        return 0
    if asked.faults:
        say("\n\n".join(described(fault) for fault in faults_of(names)), sys.stdout)
        return 0
    seeds = [asked.seed] if asked.seeds is None else range(asked.seeds)
    with lab.broken(asked.fault) if asked.fault else nullcontext():
        verdicts = {name: measure(CHECKS[name], seeds) for name in names}
    document = {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "seed": seeds[0],
        **({"seeds": asked.seeds} if asked.seeds else {}),
        "dtype": "float64",
        **({"fault": asked.fault} if asked.fault else {}),
        "checks": {name: entry(found) for name, found in verdicts.items()},
    }
    say(report.as_json(document), sys.stdout)
    failures = [v for v in map(worst, verdicts.values()) if failed(v)]
    for verdict in failures:
        say(complaint(verdict), sys.stderr)
    if asked.fault and not failures:
        say(f"note: no check that was run notices {asked.fault}", sys.stderr)
    return 1 if failures else 0


# ---- Measuring --------------------------------------------------------------------


def measure(check: Check, seeds: Iterable[int]) -> list[Verdict]:
    """The check at every seed and size; once, if it is a worked example."""
    if not check.inputs(0, SIZES[0]):
        return [known.run(check)]
    return [known.run(check, seed, size) for seed in seeds for size in SIZES]


def failed(v: Verdict) -> bool:
    """Broken by its own tolerance, or by the one that is printed."""
    return not v.held or (v.check.kind != "differs" and not v.absolute < TOLERANCE)


def worst(verdicts: Sequence[Verdict]) -> Verdict:
    """The largest error or smallest difference; one that fails before any other."""
    sign = -1 if verdicts[0].check.kind == "differs" else 1
    return max(verdicts, key=lambda v: (failed(v), sign * v.absolute))


def entry(verdicts: Sequence[Verdict]) -> Any:
    """What the document says of one check."""
    chosen = worst(verdicts)
    if chosen.check.kind == "differs":
        return {"max_difference": chosen.absolute}
    if chosen.check.id == "online_worked_output":
        direct = chosen.got[0] if isinstance(chosen.got, tuple) else np.nan
        return direct if np.ndim(direct) == 0 else np.nan
    error = max(v.absolute for v in verdicts)
    return {"max_absolute_error": error, "tolerance": TOLERANCE}


def complaint(v: Verdict) -> str:
    """One line: the check, what was measured, what is allowed, and where."""
    found, bound = report.measured(v), report.allowed(v.check)
    if v.held:  # only the printed tolerance was missed
        found, bound = f"{v.absolute:.1e}", f"< {TOLERANCE}"
    where = f" (seed {v.seed}, size {v.size})" if v.check.inputs(0, SIZES[0]) else ""
    line = f"{v.check.id}: measured {found}, allowed {bound}{where}"
    return " ".join(line.split())


# ---- Faults -----------------------------------------------------------------------


def faults_of(names: Iterable[str]) -> list[Fault]:
    """The faults of the chapters that these checks belong to, chapter by chapter."""
    chapters = {CHECKS[name].chapter for name in names}
    return [
        f for c in known.CHAPTERS for f in FAULTS.values() if f.chapter == c in chapters
    ]


def described(fault: Fault) -> str:
    """A fault, its story, and which checks notice it."""
    red = known.recorded()["faults"].get(fault.id, {}).get("red", {})
    here = [name for name in NAMES if name in red]
    rest = len(red) - len(here)
    ours = ", ".join(here) or "none of the checks of this program"
    more = f", and {rest} more in the chapters" if rest else ""
    return f"{report.fault_text(fault)}\n    breaks: {ours}{more}"


# ---- Options ----------------------------------------------------------------------


def options(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options, checked; SystemExit with status 2 if they are wrong."""
    parser = Parser(
        prog="transformer_math_lab.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    one = parser.add_mutually_exclusive_group()
    number: dict[str, Any] = {"type": whole, "action": Once, "metavar": "N"}
    one.add_argument("--seed", **number, help="draw with seed N (184)")
    one.add_argument("--seeds", **number, help="seeds 0 to N-1, the worst of each")
    one.add_argument("--list", action="store_true", help="list the checks and end")
    one.add_argument("--faults", action="store_true", help="list the faults and end")
    add = parser.add_argument
    add("--only", nargs="+", action="extend", metavar="ID", help="only these checks")
    fault: dict[str, Any] = {"dest": "fault", "action": Once, "metavar": "FAULT"}
    add("--break", **fault, help="run with this fault in place")
    asked = parser.parse_args(argv)
    for name in asked.only or ():
        if name not in NAMES:
            parser.error(unknown("check", name, NAMES, "--list"))
    if asked.fault is not None and (asked.list or asked.faults):
        parser.error("--break runs the checks, --list and --faults run nothing")
    if asked.fault is not None and asked.fault not in FAULTS:
        parser.error(unknown("fault", asked.fault, FAULTS, "--faults"))
    if asked.seeds == 0:
        parser.error("argument --seeds: wants 1 or more, got 0")
    asked.seed = 184 if asked.seed is None else asked.seed
    asked.only = asked.only or NAMES
    return asked


if __name__ == "__main__":
    sys.exit(main())
