"""A small book, built with the project's own configuration and extensions."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OUTPUTS = "_build/.jupyter_cache"  # what the cells of a book printed


def notebook(title: str, code: str, **metadata: object) -> str:
    text = {"cell_type": "markdown", "id": "title", "metadata": {}, "source": title}
    cell = {
        "cell_type": "code",
        "execution_count": None,
        "id": "planted-cell",
        "metadata": metadata,
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


Change = Callable[[Path], None]


def page(text: str) -> Change:
    """One more page."""

    def change(folder: Path) -> None:
        number = len(list((folder / "book").glob("page*")))
        name = f"page{number}.{'ipynb' if text.startswith('{') else 'md'}"
        (folder / "book" / name).write_text(text, encoding="utf-8")
        with (folder / "_toc.yml").open("a", encoding="utf-8") as contents:
            contents.write(f"- file: book/page{number}\n")

    return change


def cell(code: str, **metadata: object) -> Change:
    """A page with this cell."""
    return page(notebook("# A page", code, **metadata))


def prose(text: str) -> Change:
    """A page with this paragraph."""
    return page(notebook(f"# A page\n\n{text}", "1 + 2"))


def edit(name: str, old: str, new: str) -> Change:
    """One file, with one thing replaced."""

    def change(folder: Path) -> None:
        path = folder / name
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")

    return change


def make_book(folder: Path, changes: Sequence[Change] = ()) -> Path:
    """A book with the project's own build, one clean page and one page to spoil."""
    book = folder / "book"
    left_out = shutil.ignore_patterns("__pycache__", "node_modules", "math_store.json")
    shutil.copytree(ROOT / "book" / "_ext", book / "_ext", ignore=left_out)
    shutil.copytree(ROOT / "book" / "_static", book / "_static")
    shutil.copytree(ROOT / "book" / "site_extra", book / "site_extra")
    for name in ("build.py", "references.bib"):
        shutil.copy(ROOT / "book" / name, book)
    shutil.copy(ROOT / "_config.yml", folder)
    contents = "format: jb-book\nroot: book/first\nchapters:\n- file: book/second\n"
    (folder / "_toc.yml").write_text(contents, encoding="utf-8")
    (book / "first.ipynb").write_text(notebook("# First", "1 + 1"), encoding="utf-8")
    (book / "second.ipynb").write_text(notebook("# Second", "1 + 2"), encoding="utf-8")
    floors = dict.fromkeys(["pages", "cells", "checks", "faults", "formulas"], 1)
    (book / "floors.json").write_text(json.dumps(floors), encoding="utf-8")
    for change in changes:
        change(folder)
    return folder


def build(folder: Path, **environment: str) -> tuple[int, str]:
    """Exit status, and the last lines of what the build said."""
    run = subprocess.run(
        [sys.executable, "book/build.py"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        env=os.environ | {"PYTHONIOENCODING": "utf-8"} | environment,
    )
    return run.returncode, "\n".join(run.stdout.splitlines()[-90:])
