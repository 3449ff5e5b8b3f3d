"""Run everything that must hold, stage by stage, and show the time of each.

python tests/run_all.py              all stages
python tests/run_all.py STAGE ...    only these
"""

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTEST = ["-m", "pytest", "-q"]


def python(*arguments: str) -> bool:
    return subprocess.run([sys.executable, *arguments], cwd=ROOT).returncode == 0


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


def run_notebooks() -> bool:
    """Run each notebook, and see that the run changed no file of the project."""
    before = source_files()
    good = python(*PYTEST, "--nbmake", "--nbmake-timeout=120", *notebooks())
    after = source_files()
    changed = sorted(
        name
        for name in before.keys() | after.keys()
        if before.get(name) != after.get(name)
    )
    if changed:
        print("The notebooks changed these files:", *changed, sep="\n  ")
    return good and not changed


STAGES: dict[str, Callable[[], bool]] = {
    "format": lambda: python("-m", "ruff", "format", "--check"),
    "style": lambda: python("-m", "ruff", "check"),
    "types": lambda: python("-m", "mypy"),
    "tests": lambda: python(
        *PYTEST, "tests", "--ignore=tests/site", "--ignore=tests/browser"
    ),
    "doctests": lambda: python(*PYTEST, "--doctest-modules", "shared/labcore"),
    "mutants": lambda: python("tests/mutate.py"),
    "notebooks": run_notebooks,
    "book": lambda: python("book/build.py", "--fresh"),
    "site": lambda: python(*PYTEST, "tests/site"),
    "browser": lambda: python(*PYTEST, "tests/browser"),
}


def main(names: list[str]) -> int:
    if unknown := [name for name in names if name not in STAGES]:
        print(f"no such stage: {', '.join(unknown)}; there are: {', '.join(STAGES)}")
        return 2
    lines, failed = [], []
    for name in names or STAGES:
        print(f"\n===== {name} =====", flush=True)
        start = time.perf_counter()
        good = STAGES[name]()
        seconds = time.perf_counter() - start
        lines.append(f"{name:<12}{seconds:8.1f} s   {'held' if good else 'FAILED'}")
        failed += [] if good else [name]
    print("\n===== time by stage =====", *lines, sep="\n")
    if failed:
        print(f"FAILED: {', '.join(failed)}. To run one stage again:")
        print(f"  {Path(sys.executable).name} tests/run_all.py {failed[0]}")
        return 1
    print("Everything holds.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
