"""The build fails on whatever is wrong, names it, and fails again the next time.

A book of two pages is built with the project's own configuration and extensions,
once clean and once with each fault.
"""

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# What a page holds -> what the last lines of the build must name.
FAULTS = {
    "a failing cell": (
        "wanted = 1\nassert wanted == 2, 'one is not two'",
        ["AssertionError", "one is not two", "assert wanted == 2", "planted-cell"],
    ),
    "a dead kernel": ("import os\n\nos._exit(1)", ["DeadKernelError", "planted-cell"]),
    "a time-out": (
        "import time\n\ntime.sleep(60)",
        ["CellTimeoutError", "time.sleep(60)", "planted-cell"],
    ),
    "a line on stderr": (
        "import sys\n\nprint('mind', file=sys.stderr)",
        ["book/second", "stderr was found"],
    ),
}


def notebook(title: str, code: str) -> str:
    text = {"cell_type": "markdown", "id": "title", "metadata": {}, "source": title}
    cell = {
        "cell_type": "code",
        "execution_count": None,
        "id": "planted-cell",
        "metadata": {},
        "outputs": [],
        "source": code,
    }
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return json.dumps(
        {
            "cells": [text, cell],
            "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
            "nbformat": 4,
            "nbformat_minor": 5,
        }
    )


def make_book(folder: Path, code: str) -> Path:
    """A book with the project's own build, one clean page and one page to spoil."""
    book = folder / "book"
    left_out = shutil.ignore_patterns("__pycache__", "node_modules", "math_store.json")
    shutil.copytree(ROOT / "book" / "_ext", book / "_ext", ignore=left_out)
    shutil.copytree(ROOT / "book" / "_static", book / "_static")
    (book / "site_extra").mkdir()
    for name in ("build.py", "references.bib"):
        shutil.copy(ROOT / "book" / name, book)
    config = (ROOT / "_config.yml").read_text(encoding="utf-8")
    assert "timeout: 120" in config
    config = config.replace("timeout: 120", "timeout: 2")
    (folder / "_config.yml").write_text(config, encoding="utf-8")
    contents = "format: jb-book\nroot: book/first\nchapters:\n- file: book/second\n"
    (folder / "_toc.yml").write_text(contents, encoding="utf-8")
    (book / "first.ipynb").write_text(notebook("# First", "1 + 1"), encoding="utf-8")
    (book / "second.ipynb").write_text(notebook("# Second", code), encoding="utf-8")
    return folder


def build(folder: Path) -> tuple[int, str]:
    """Exit status, and the last lines of what the build said."""
    run = subprocess.run(
        [sys.executable, "book/build.py"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        env=os.environ | {"PYTHONIOENCODING": "utf-8"},
    )
    return run.returncode, "\n".join(run.stdout.splitlines()[-40:])


@pytest.fixture(scope="module")
def builds(tmp_path_factory) -> dict[str, list[tuple[int, str]]]:
    """Each book, built twice; the books two at a time."""
    sources = {"nothing": "1 + 2"} | {name: code for name, (code, _) in FAULTS.items()}

    def twice(name: str) -> list[tuple[int, str]]:
        folder = make_book(tmp_path_factory.mktemp("book"), sources[name])
        return [build(folder), build(folder)]

    with ThreadPoolExecutor(2) as pool:
        return dict(zip(sources, pool.map(twice, sources), strict=True))


def test_a_clean_book_is_built(builds):
    for status, said in builds["nothing"]:
        assert status == 0, said
        assert said.splitlines()[-1].endswith("index.html")


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("attempt", [0, 1], ids=["first", "again"])
def test_a_fault_fails_the_build(builds, fault: str, attempt: int):
    status, said = builds[fault][attempt]
    assert status != 0, said
    reason = said[said.index("The book was not built") :]
    for words in FAULTS[fault][1]:
        assert words in reason
