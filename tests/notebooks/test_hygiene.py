"""What every committed notebook must look like."""

import json
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.validator import iter_validate

from tests.notebooks.strip import ROOT, all_notebooks, is_readable, stripped

LONGEST_LINE = 79
FORBIDDEN_TAGS = {"skip-execution", "raises-exception"}
ADVICE = (
    "Run `make strip` (or: python tests/notebooks/strip.py), then look at the diff."
)


def complaints(text: str) -> list[str]:
    """What is wrong with a notebook, in words."""
    notebook = json.loads(text)
    found = []
    for error in iter_validate(nbformat.from_dict(notebook)):
        found.append(f"not a valid notebook: {str(error).splitlines()[0]}")

    metadata = notebook["metadata"]
    kernel = metadata.get("kernelspec", {}).get("name")
    if kernel != "python3":
        found.append(f"kernelspec is {kernel!r}, must be 'python3'")
    if metadata.get("language_info") != {"name": "python"}:
        found.append("language_info must be the name 'python', without a version")
    if "execution" in metadata:
        found.append("its metadata change how it runs (timeout, allow_errors)")

    ids = [cell.get("id", "") for cell in notebook["cells"]]
    found += [
        f"two cells have the id {i!r}" for i in sorted(set(ids)) if ids.count(i) > 1
    ]
    for cell in notebook["cells"]:
        name = cell.get("id", "")
        if not is_readable(name):
            found.append(
                f"cell id {name!r} is made up by an editor, or not a-z, 0-9, -"
            )
        if tags := FORBIDDEN_TAGS & set(cell["metadata"].get("tags", [])):
            found.append(f"cell {name} has the tag {', '.join(sorted(tags))}")
        if cell["cell_type"] != "code":
            continue
        if cell["outputs"]:
            found.append(f"cell {name} has outputs")
        if cell["execution_count"] is not None:
            found.append(f"cell {name} has an execution count")
        for line in "".join(cell["source"]).splitlines():
            if len(line) > LONGEST_LINE:
                found.append(
                    f"cell {name} has a line of {len(line)} characters: {line}"
                )

    if not found and stripped(text) != text:
        found.append("it has traces of an editor, or another layout")
    return found


@pytest.mark.parametrize(
    "path", all_notebooks(), ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_notebook_is_clean(path: Path):
    found = complaints(path.read_text(encoding="utf-8"))
    assert not found, "\n".join([f"{path.relative_to(ROOT)}:", *found, ADVICE])


UNRUN = (
    '<p class="only-notebook"><em>Sentences that carry results are printed by the '
    "cells. In a notebook that has not been run yet they are missing.</em></p>"
)


def test_each_chapter_says_what_it_lacks_before_it_was_run():
    """The site, where the cells have been run, does not show this sentence."""
    chapters = sorted(ROOT.glob("book/part-*/*.ipynb"))
    lacking = []
    for path in chapters:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        if not any(UNRUN in "".join(cell["source"]) for cell in cells):
            lacking.append(path.name)
    assert chapters and lacking == []


@pytest.mark.parametrize("task", ["format --check", "check"])
def test_lesson_code_passes_ruff(task: str):
    folders = [name for name in ("book", "labs") if (ROOT / name).is_dir()]
    config = ["--config", "tests/notebooks/lessons.toml"]
    command = [sys.executable, "-m", "ruff", *task.split(), *config, *folders]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, f"{run.stdout}{run.stderr}\nRun `make format`."


def a_clean_notebook() -> dict:
    return {
        "cells": [
            {
                "cell_type": "code",
                "execution_count": None,
                "id": "first-sum",
                "metadata": {},
                "outputs": [],
                "source": ["1 + 1"],
            }
        ],
        "metadata": {
            "kernelspec": {
                "display_name": "Python 3",
                "language": "python",
                "name": "python3",
            },
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def as_file(notebook: dict) -> str:
    return json.dumps(notebook, indent=1, sort_keys=True) + "\n"


OUTPUT = {"name": "stdout", "output_type": "stream", "text": ["2\n"]}
SPOILED = {
    "has outputs": lambda nb: nb["cells"][0].update(outputs=[OUTPUT]),
    "execution count": lambda nb: nb["cells"][0].update(execution_count=1),
    "kernelspec is 'conda'": lambda nb: nb["metadata"]["kernelspec"].update(
        name="conda"
    ),
    "without a version": lambda nb: nb["metadata"]["language_info"].update(version="3"),
    "cell id '4f1c09ab'": lambda nb: nb["cells"][0].update(id="4f1c09ab"),
    "cell id '1'": lambda nb: nb["cells"][0].update(id="1"),
    "two cells have the id": lambda nb: nb["cells"].append(dict(nb["cells"][0])),
    "tag raises-exception": lambda nb: nb["cells"][0].update(
        metadata={"tags": ["raises-exception"]}
    ),
    "change how it runs": lambda nb: nb["metadata"].update(
        execution={"allow_errors": True}
    ),
    "a line of 80 characters": lambda nb: nb["cells"][0].update(source=["x" * 80]),
    "traces of an editor": lambda nb: nb["cells"][0].update(
        metadata={"collapsed": True}
    ),
}


def test_a_clean_notebook_has_no_complaints():
    assert complaints(as_file(a_clean_notebook())) == []


@pytest.mark.parametrize("words", SPOILED)
def test_a_spoiled_notebook_is_noticed(words: str):
    notebook = a_clean_notebook()
    SPOILED[words](notebook)
    assert any(words in complaint for complaint in complaints(as_file(notebook)))


MENDED = [
    words
    for words in SPOILED
    if not any(w in words for w in ("tag", "80 characters"))  # those are the author's
]


@pytest.mark.parametrize("words", MENDED)
def test_strip_mends_it(words: str):
    notebook = a_clean_notebook()
    SPOILED[words](notebook)
    mended = stripped(as_file(notebook))
    assert complaints(mended) == []
    assert stripped(mended) == mended
