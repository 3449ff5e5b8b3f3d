"""Run everything that must hold, stage by stage, and show the time of each.

What a failed stage said last is said again at the end.

python tests/run_all.py              all stages
python tests/run_all.py STAGE ...    only these
"""

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from tests.notebooks.outputs import changes, differences, not_green  # noqa: E402

PYTEST = ["-m", "pytest", "-q"]
TWO = ["-n2", "--dist=loadfile"]  # what a file sets up once is set up once
PAGES = ["-n2", "--dist=loadgroup"]  # and a page is opened once


def python(*arguments: str, env: dict[str, str] | None = None) -> bool:
    run = subprocess.run([sys.executable, *arguments], cwd=ROOT, env=env)
    return run.returncode == 0


SCRIPTS = [
    path.relative_to(ROOT).as_posix()
    for pattern in ("book/_static/*.js", "book/_ext/*.mjs", "tests/browser/*.js")
    for path in sorted(ROOT.glob(pattern))
]


def scripts(program: str, *options: str) -> bool:
    """Try our browser scripts with a program that lies beside Python."""
    found = shutil.which(program, path=Path(sys.executable).parent)
    if found is None:
        print(f"{program} is not here: pip install -r requirements.txt")
        return False
    return subprocess.run([found, *options, *SCRIPTS], cwd=ROOT).returncode == 0


def notebooks() -> list[str]:
    found = [*ROOT.glob("book/**/*.ipynb"), *ROOT.glob("labs/**/*.ipynb")]
    ours = [path.relative_to(ROOT) for path in found]
    return sorted(str(p) for p in ours if not any(q.startswith(".") for q in p.parts))


def source_files() -> dict[str, str]:
    """Hash of each file that is not in a folder of builds, caches or environments."""
    hashes = {}
    for folder, subfolders, names in os.walk(ROOT):
        subfolders[:] = [
            name
            for name in subfolders
            if not name.startswith(".")
            and not name.endswith(".egg-info")
            and name not in {"_build", "__pycache__", "node_modules", "my"}
        ]
        for name in names:
            path = Path(folder, name)
            hashes[str(path.relative_to(ROOT))] = hashlib.sha256(
                path.read_bytes()
            ).hexdigest()
    return hashes


# Another processor, another BLAS kernel, another order of sets: the second run of the
# chapters must print what the build printed.
ELSEWHERE = {
    "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR",
    "OPENBLAS_CORETYPE": "Nehalem",
    "PYTHONHASHSEED": "184",
}


def run_notebooks() -> bool:
    """Run copies of all notebooks, and compare what they print with the build's run."""
    second = ROOT / ".second_run"  # nbmake leaves _build out
    shutil.rmtree(second, ignore_errors=True)
    for name in notebooks():
        (second / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, second / name)
    before = source_files()
    environment = os.environ | (ELSEWHERE if platform.machine() == "x86_64" else {})
    command = [*PYTEST, "-n2", "--nbmake", "--overwrite", "--nbmake-timeout=120"]
    good = python(*command, str(second), env=environment)
    after = source_files()
    changed = sorted(
        name
        for name in before.keys() | after.keys()
        if before.get(name) != after.get(name)
    )
    if changed:
        print("The notebooks changed these files:", *changed, sep="\n  ")
    differ = differences(ROOT / "_build" / "jupyter_execute" / "book", second / "book")
    if differ:
        print("The second run printed something else:", *differ, sep="\n  ")
    recorded = json.loads((ROOT / "tests/data/outputs.json").read_text("utf-8"))
    moved = changes(recorded, second / "book")
    if moved:
        print("Not as recorded (make record, and review the difference):", *moved[:40])
    broken = not_green(second / "labs" / "workbooks")
    if broken:
        print("The workbooks, unedited:", *broken, sep="\n  ")
    return good and not (changed or differ or moved or broken)


STAGES: dict[str, Callable[[], bool]] = {
    "format": lambda: (
        python("-m", "ruff", "format", "--check") & scripts("oxfmt", "--check")
    ),
    "style": lambda: (
        python("-m", "ruff", "check") & scripts("oxlint", "--deny-warnings")
    ),
    "types": lambda: python("-m", "mypy"),
    "tests": lambda: python(
        *PYTEST, *TWO, "tests", "--ignore=tests/site", "--ignore=tests/browser"
    ),
    "doctests": lambda: python(*PYTEST, "--doctest-modules", "shared/labcore"),
    "mutants": lambda: python("tests/mutate.py"),
    "book": lambda: python("book/build.py", "--fresh"),
    "notebooks": run_notebooks,  # compares with what the book printed
    "site": lambda: python(*PYTEST, *TWO, "tests/site"),
    "tamper": lambda: python("tests/tamper.py", "--short"),
    "browser": lambda: python(*PYTEST, *PAGES, "tests/browser"),
}


def run_stage(name: str) -> tuple[bool, list[str]]:
    """Run one stage in a process of its own: did it hold, and its last lines."""
    command = [sys.executable, "-u", __file__, name]
    last: deque[str] = deque(maxlen=20)
    with subprocess.Popen(
        command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            last.append(line.rstrip())
    return process.returncode == 0, list(last)


def main(names: list[str]) -> int:
    if unknown := [name for name in names if name not in STAGES]:
        print(f"no such stage: {', '.join(unknown)}; there are: {', '.join(STAGES)}")
        return 2
    if len(names) == 1:
        return 0 if STAGES[names[0]]() else 1
    lines, failed = [], {}
    for name in names or STAGES:
        print(f"\n===== {name} =====", flush=True)
        start = time.perf_counter()
        good, last = run_stage(name)
        seconds = time.perf_counter() - start
        lines.append(f"{name:<12}{seconds:8.1f} s   {'held' if good else 'FAILED'}")
        failed |= {} if good else {name: last}
    print("\n===== time by stage =====", *lines, sep="\n")
    for name, last in failed.items():
        print(f"\n===== FAILED: {name}; its last lines =====", *last, sep="\n")
        print(f"To run it again: {Path(sys.executable).name} tests/run_all.py {name}")
    if not failed:
        print("Everything holds.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
