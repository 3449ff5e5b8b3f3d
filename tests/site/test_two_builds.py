"""Two builds of the same source are the same, byte for byte.

The second one is made of a copy in another folder, by one process, with another order
of sets. The chapters' outputs come from the first build's cache: that a second run of
the chapters prints the same is compared by the stage ``notebooks``.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.labs.programs import ROOT, load

LEFT_OUT = shutil.ignore_patterns(
    "_build", ".second_run", ".git", ".venv", "node_modules", "__pycache__", ".*_cache"
)


def files(site: Path) -> dict[str, str]:
    return {
        path.relative_to(site).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(site.rglob("*"))
        if path.is_file()
    }


def test_two_builds_are_the_same(tmp_path: Path):
    project = tmp_path / "another folder"
    shutil.copytree(ROOT, project, ignore=LEFT_OUT)
    caches = "_build/.jupyter_cache"
    shutil.copytree(ROOT / caches, project / caches)
    environment = os.environ | {
        "SOURCE_DATE_EPOCH": load(ROOT / "book" / "build.py").date_of_source(),
        "PYTHONHASHSEED": "7",
        "BOOK_JOBS": "1",
    }
    run = subprocess.run(
        [sys.executable, "book/build.py", "--fresh"],
        cwd=project,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    )
    assert run.returncode == 0, run.stdout[-3000:]
    assert "Executed notebook in" not in run.stdout
    first, second = files(ROOT / "_build/html"), files(project / "_build/html")
    assert first.keys() == second.keys()
    assert [name for name in first if first[name] != second[name]] == []
    assert len(first) > 50


def test_the_site_names_no_path_of_a_machine():
    site = ROOT / "_build" / "html"
    names = [str(ROOT).encode(), os.fsencode(Path.home()) + b"/", b"/tmp/"]
    leaks = [
        path.relative_to(site).as_posix()
        for path in sorted(site.rglob("*"))
        if path.is_file() and any(name in path.read_bytes() for name in names)
    ]
    assert leaks == []
