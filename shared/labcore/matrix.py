"""The fault matrix: which fault breaks which check, measured, with its tolerances.

``python -m labcore.matrix`` writes ``identities/matrix.json``; a test measures again
and compares.

* floor: the largest error of the right version over all recorded seeds and sizes, and
  never less than 4 eps. For ``order`` and ``differs`` the smallest margin.
* tolerance: the power of ten at or above 100 floors. For ``order`` and ``differs`` the
  power of ten at or below a tenth of the smallest margin.
* gap: the smallest error with a fault in place; at least 100 tolerances. None where no
  number exists (an exception, NaN, a wrong shape).
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from .identities import CHECKS, FAULTS, SEEDS, SIZES, Check, Fault, Verdict, run
from .identities._check import FLOOR
from .ops._op import StandIn, reached, replaced

FILE = Path(__file__).parent / "identities" / "matrix.json"
LARGEST_FLOOR = 1e-7  # a finite difference reaches 1e-9; more is no rounding
ROOM = 100.0  # between floor and tolerance, and between tolerance and gap


def reach(check: Check) -> set[str]:
    """The operations that a check calls, directly or through another."""
    with reached() as names:
        for size in SIZES:
            run(check, SEEDS[0], size)
    return names


def under(fault: Fault, check: Check) -> list[Verdict]:
    """The check with the fault in place, at every recorded seed and size."""
    with replaced({fault.operation: StandIn(fault.by, fault.unguarded)}):
        return at_every_seed(check)


def at_every_seed(check: Check) -> list[Verdict]:
    """The check as it stands, at every recorded seed and size.

    A check that draws nothing is the same everywhere, and is run once.
    """
    constant = not check.inputs(SEEDS[0], SIZES[0])
    if constant:
        return [run(check)]
    return [run(check, seed, size) for seed in SEEDS for size in SIZES]


def measure() -> tuple[dict[str, Any], list[str]]:
    """The matrix, and in words what is wrong with it (nothing, one hopes)."""
    problems: list[str] = []
    checks = {check.id: _row(check, problems) for check in CHECKS.values()}
    reaches = {check.id: reach(check) for check in CHECKS.values()}
    faults: dict[str, Any] = {}
    for fault in FAULTS.values():
        red: dict[str, float | None] = {}
        green: list[str] = []
        for check in CHECKS.values():
            if fault.operation not in reaches[check.id]:
                continue
            row = checks[check.id]
            verdicts = under(fault, check)
            found = [_found(check, v, row["tolerance"]) for v in verdicts]
            if set(found) == {"broken"}:
                red[check.id] = _gap(check, verdicts)
            elif set(found) == {"holds"}:
                green.append(check.id)
            else:
                problems.append(
                    f"{fault.id} breaks {check.id} at some seeds and sizes only: "
                    + ", ".join(
                        f"seed {v.seed} size {v.size} {word} ({v.error:.1e})"
                        for v, word in zip(verdicts, found, strict=True)
                        if word != "broken"
                    )
                )
        faults[fault.id] = {"operation": fault.operation, "red": red, "green": green}
        problems += _promises(fault, red, reaches)
    for id, row in checks.items():
        gaps = [f["red"][id] for f in faults.values() if id in f["red"]]
        if not gaps:
            problems.append(f"no fault breaks {id}: nobody has seen it fail")
        measured = [gap for gap in gaps if gap is not None]
        nearest = min if CHECKS[id].kind in ("equal", "value") else max
        row["gap"] = nearest(measured, default=None)
        row["faults"] = len(gaps)
    matrix = {"seeds": SEEDS, "sizes": SIZES, "checks": checks, "faults": faults}
    return json.loads(json.dumps(matrix)), problems


def _row(check: Check, problems: list[str]) -> dict[str, Any]:
    verdicts = at_every_seed(check)
    for v in verdicts:
        if v.message or (check.kind in ("exact", "refuses") and not v.held):
            problems.append(
                f"{check.id} does not hold at {v.seed}/{v.size}: {v.message}"
            )
    errors = [v.error for v in verdicts]
    if check.kind in ("exact", "refuses"):
        floor, tolerance = 0.0, 0.0
    elif check.kind in ("order", "differs"):
        floor = _two_digits(min(errors), math.floor)
        tolerance = _power_of_ten(floor / 10, math.floor) if floor > 0 else 0.0
        if floor <= 0:
            problems.append(f"{check.id} has no margin: {floor}")
    else:
        floor = _two_digits(max(FLOOR, *errors), math.ceil)
        if floor > LARGEST_FLOOR:
            problems.append(f"{check.id} does not hold: an error of {floor}")
        tolerance = _power_of_ten(ROOM * floor, math.ceil)
    return {"kind": check.kind, "floor": floor, "tolerance": tolerance}


def _found(check: Check, v: Verdict, tolerance: float) -> str:
    """broken beyond doubt, holds, or unclear: an error too near the tolerance."""
    if v.message or not np.isfinite(v.error):
        return "broken"
    if check.kind in ("exact", "refuses"):
        return "holds" if v.held else "broken"
    if check.kind in ("order", "differs"):
        if v.error <= tolerance / ROOM:
            return "broken"
        return "holds" if v.error > tolerance else "unclear"
    if v.error >= tolerance * ROOM:
        return "broken"
    return "holds" if v.error < tolerance else "unclear"


def _gap(check: Check, verdicts: list[Verdict]) -> float | None:
    errors = [v.error for v in verdicts if np.isfinite(v.error) and not v.message]
    if not errors or check.kind in ("exact", "refuses"):
        return None
    if check.kind in ("order", "differs"):
        return _two_digits(max(errors), math.ceil)
    return _two_digits(min(errors), math.floor)


def _promises(
    fault: Fault, red: dict[str, float | None], reaches: dict[str, set[str]]
) -> list[str]:
    problems = [] if red else [f"{fault.id} escapes: no check notices it"]
    for id in (fault.made_for, fault.stays_green):
        if id not in CHECKS:
            problems.append(f"{fault.id} names a check that is not there: {id}")
            return problems
    if fault.made_for not in red:
        problems.append(f"{fault.id} does not break {fault.made_for}, made for it")
    if fault.stays_green in red:
        problems.append(f"{fault.id} breaks {fault.stays_green}, said to stay green")
    return problems


def _two_digits(x: float, rounding: Any) -> float:
    if x == 0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(abs(x))) - 1)
    return float(f"{rounding(x / unit) * unit:.1e}")


def _power_of_ten(x: float, rounding: Any) -> float:
    return float(f"1e{rounding(math.log10(x))}")


def main() -> int:
    """Measure and write the file; complain and write nothing if it is not sound."""
    matrix, problems = measure()
    for problem in problems:
        print(problem)
    if problems:
        print(f"matrix not written: {len(problems)} problems")
        return 1
    FILE.write_text(json.dumps(matrix, indent=1) + "\n", encoding="utf-8")
    pairs = sum(len(fault["red"]) for fault in matrix["faults"].values())
    print(f"{len(CHECKS)} checks, {len(FAULTS)} faults, {pairs} pairs: {FILE.name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
