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
import os
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from .identities import CHECKS, FAULTS, SEEDS, SIZES, Check, Fault, Verdict, run
from .identities._check import FLOOR
from .ops import _op
from .ops._op import StandIn, reached, replaced

FILE = Path(__file__).parent / "identities" / "matrix.json"
# More than this is no rounding: a finite difference reaches 1e-9, a constant that was
# typed with a wrong digit is farther off than any sum of a few terms.
LARGEST_FLOOR = {"equal": 1e-7, "value": 1e-12}
ROOM = 100.0  # between floor and tolerance, and between tolerance and gap
NEAR = 4.0  # how far floors and gaps may differ between one processor and another


@cache
def reach(check: Check) -> set[str]:
    """The operations that a check calls, directly or through another."""
    constant = not check.inputs(SEEDS[0], SIZES[0])
    with reached() as names:
        for size in SIZES[:1] if constant else SIZES:
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


def measure(processes: int = 1) -> tuple[dict[str, Any], list[str]]:
    """The matrix, and in words what is wrong with it (nothing, one hopes)."""
    problems: list[str] = []
    checks = {check.id: _row(check, problems) for check in CHECKS.values()}
    reaches = {check.id: reach(check) for check in CHECKS.values()}
    column = partial(_column, checks=checks, reaches=reaches)
    if processes > 1:
        with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
            columns = list(pool.map(column, FAULTS, chunksize=4))
    else:
        columns = [column(id) for id in FAULTS]
    faults: dict[str, Any] = {}
    for fault, (red, green, unclear) in zip(FAULTS.values(), columns, strict=True):
        faults[fault.id] = {"operation": fault.operation, "red": red, "green": green}
        problems += unclear + _promises(fault, red, reaches)
    for id, row in checks.items():
        gaps = [f["red"][id] for f in faults.values() if id in f["red"]]
        if not gaps:
            problems.append(f"no fault breaks {id}: nobody has seen it fail")
        measured = [gap for gap in gaps if gap is not None]
        nearest = min if CHECKS[id].kind in ("equal", "value") else max
        row["gap"] = nearest(measured, default=None)
        row["faults"] = len(gaps)
    matrix = {
        "seeds": SEEDS,
        "sizes": SIZES,
        "checks": checks,
        "faults": faults,
        "reach": {
            name: [id for id in checks if name in reaches[id]]
            for name in sorted(_op.OPS)
        },
    }
    return json.loads(json.dumps(matrix)), problems


def _column(
    id: str, checks: dict[str, Any], reaches: dict[str, set[str]]
) -> tuple[dict[str, float | None], list[str], list[str]]:
    """What one fault does: red with their gaps, green, and what is neither."""
    fault = FAULTS[id]
    red: dict[str, float | None] = {}
    green: list[str] = []
    unclear: list[str] = []
    for check in CHECKS.values():
        if fault.operation not in reaches[check.id]:
            continue
        verdicts = under(fault, check)
        tolerance = checks[check.id]["tolerance"]
        found = [_found(check, v, tolerance) for v in verdicts]
        if set(found) == {"broken"}:
            red[check.id] = _gap(check, verdicts)
        elif set(found) == {"holds"}:
            green.append(check.id)
        else:
            unclear.append(
                f"{fault.id} breaks {check.id} at some seeds and sizes only: "
                + ", ".join(
                    f"seed {v.seed} size {v.size} {word} ({v.error:.1e})"
                    for v, word in zip(verdicts, found, strict=True)
                    if word != "broken"
                )
            )
    return red, green, unclear


def differences(recorded: dict[str, Any], measured: dict[str, Any]) -> list[str]:
    """In words, where two matrices differ by more than the processor's rounding.

    Which fault breaks which check must be the same, and each recorded tolerance must
    follow from its recorded floor. Floors and gaps may differ by a factor of NEAR.
    """
    found = []
    for part in ("seeds", "sizes", "reach"):
        if recorded[part] != measured[part]:
            found.append(f"{part}: {recorded[part]} recorded, {measured[part]} now")
    found += _unpaired("check", recorded["checks"], measured["checks"])
    found += _unpaired("fault", recorded["faults"], measured["faults"])
    for id in recorded["checks"].keys() & measured["checks"].keys():
        old, new = recorded["checks"][id], measured["checks"][id]
        if old["kind"] != new["kind"]:
            found.append(f"{id}: {old['kind']} recorded, {new['kind']} now")
            continue
        wanted = _tolerance(old["kind"], old["floor"])
        if old["tolerance"] != wanted:
            found.append(
                f"{id}: tolerance {old['tolerance']} recorded, its floor gives {wanted}"
            )
        if old["faults"] != new["faults"]:
            found.append(f"{id}: {old['faults']} faults recorded, {new['faults']} now")
        found += _apart(f"{id}: floor", old["floor"], new["floor"])
        found += _apart(f"{id}: gap", old["gap"], new["gap"], old["tolerance"])
    for id in recorded["faults"].keys() & measured["faults"].keys():
        old, new = recorded["faults"][id], measured["faults"][id]
        if old["operation"] != new["operation"]:
            found.append(f"{id}: {old['operation']} recorded, {new['operation']} now")
        for colour in ("red", "green"):
            for check in sorted({*old[colour]} ^ {*new[colour]}):
                when = "recorded" if check in old[colour] else "now"
                found.append(f"{id}: {check} {colour} only as {when}")
        for check in old["red"].keys() & new["red"].keys():
            gaps = old["red"][check], new["red"][check]
            tolerance = recorded["checks"].get(check, {}).get("tolerance", 0.0)
            found += _apart(f"{id}: gap of {check}", *gaps, tolerance)
    return sorted(found)


def _unpaired(what: str, old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    gone = [f"{what} {id} is recorded, and is not there" for id in old.keys() - new]
    return gone + [f"{what} {id} is not recorded" for id in new.keys() - old]


def _apart(
    what: str, old: float | None, new: float | None, tolerance: float = math.inf
) -> list[str]:
    """Words if two numbers are not NEAR; a gap below its bound is rounding noise."""
    if old == new:
        return []
    if old is not None and new is not None:
        if max(abs(old), abs(new)) <= tolerance / ROOM < math.inf:
            return []
        if old * new > 0 and 1 / NEAR <= new / old <= NEAR:
            return []
    return [f"{what} is {old} recorded, {new} now"]


def _row(check: Check, problems: list[str]) -> dict[str, Any]:
    verdicts = at_every_seed(check)
    discrete = check.kind in ("exact", "refuses")
    for v in verdicts:
        finite = bool(np.isfinite(v.error))
        if v.message or not finite or (discrete and not v.held):
            problems.append(
                f"{check.id} does not hold at {v.seed}/{v.size}: {v.message}"
            )
    errors = [v.error for v in verdicts]
    if not np.all(np.isfinite(errors)):
        floor = math.inf  # told above
    elif discrete:
        floor = 0.0
    elif check.kind in ("order", "differs"):
        floor = _two_digits(min(errors), math.floor)
        if floor <= 0:
            problems.append(f"{check.id} has no margin: {floor}")
    else:
        floor = _two_digits(max(FLOOR, *errors), math.ceil)
        if floor > LARGEST_FLOOR[check.kind]:
            problems.append(f"{check.id} does not hold: an error of {floor}")
    tolerance = _tolerance(check.kind, floor)
    return {"kind": check.kind, "floor": floor, "tolerance": tolerance}


def _tolerance(kind: str, floor: float) -> float:
    """The rule: a power of ten, with room to the floor."""
    if kind in ("exact", "refuses") or not 0 < floor < math.inf:
        return 0.0
    if kind in ("order", "differs"):
        return _power_of_ten(floor / 10, math.floor)
    return _power_of_ten(ROOM * floor, math.ceil)


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
    few = len(FAULTS) < 20  # then other processes are not worth their start
    matrix, problems = measure(1 if few else os.cpu_count() or 1)
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
