"""Two runs that differ are told apart, by cell and place."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError

from tests.notebooks.outputs import changes, differences, digests, not_green


def write(folder: Path, *outputs: dict[str, Any]) -> None:
    folder.mkdir(exist_ok=True)
    cell = {"cell_type": "code", "id": "run", "outputs": list(outputs)}
    (folder / "page.ipynb").write_text(json.dumps({"cells": [cell]}))


def stream(text: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": "stdout", "text": text}


def html(text: str) -> dict[str, Any]:
    return {"output_type": "display_data", "data": {"text/html": [text]}}


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ([stream("0.25")], [stream("0.24999999999999994")], "0.24999"),
        ([html("<p>1</p>")], [html("<p>2</p>")], "<p>2"),
        ([html("a"), html("b")], [html("b"), html("a")], "'...text/html: a'"),
        ([html("a")], [], "1 outputs, then 0"),
        ([stream("a")], [html("a")], "stdout"),
    ],
)
def test_another_output_is_noticed(first, second, words: str, tmp_path: Path):
    write(tmp_path / "one", *first)
    write(tmp_path / "two", *second)
    [line] = differences(tmp_path / "one", tmp_path / "two")
    assert line.startswith("page.ipynb, cell run: ")
    assert words.strip("'.") in line


def test_the_same_outputs_are_the_same(tmp_path: Path):
    write(tmp_path / "one", stream("1"), html("a"))
    write(tmp_path / "two", stream("1"), html("a"))
    assert differences(tmp_path / "one", tmp_path / "two") == []


def test_a_stream_in_two_pieces_is_one_stream(tmp_path: Path):
    write(tmp_path / "one", stream("a\n"), stream("b\n"), html("c"))
    write(tmp_path / "two", stream("a\nb\n"), html("c"))
    assert differences(tmp_path / "one", tmp_path / "two") == []
    assert digests(tmp_path / "one") == digests(tmp_path / "two")


def test_a_notebook_that_ran_only_once_is_noticed(tmp_path: Path):
    write(tmp_path / "two", stream("1"))
    (tmp_path / "one").mkdir()
    assert "was not run" in differences(tmp_path / "one", tmp_path / "two")[0]


def test_a_cell_that_prints_something_else_than_was_recorded_is_noticed(tmp_path: Path):
    write(tmp_path / "one", stream("1"), html("a"))
    recorded = digests(tmp_path / "one")
    assert changes(recorded, tmp_path / "one") == []
    write(tmp_path / "one", stream("1"), html("b"))
    line = "page.ipynb, cell run: not what was recorded"
    assert changes(recorded, tmp_path / "one") == [line]
    assert changes({}, tmp_path / "one") == [line]
    assert changes(recorded, tmp_path / "two") == [line]


def test_a_workbook_that_is_not_all_green_is_noticed(tmp_path: Path):
    def workbook(text: str) -> list[str]:
        cell = {"cell_type": "code", "id": "try-rope", "outputs": [stream(text)]}
        (tmp_path / "part.ipynb").write_text(json.dumps({"cells": [cell]}))
        return not_green(tmp_path)

    assert workbook("Every check holds. Elsewhere too.") == []
    assert workbook("1 of 9 checks broke.") == [
        "part.ipynb, cell try-rope: not every check holds: stdout: 1 of 9 checks broke."
    ]
    (tmp_path / "part.ipynb").write_text(json.dumps({"cells": []}))
    assert not_green(tmp_path) == ["part.ipynb: nothing was tried"]


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch):
    """The module that changes how notebooks run, with its change."""
    monkeypatch.syspath_prepend(Path(__file__).resolve().parents[2] / "book" / "_ext")
    import kernels

    kernels.use_unix_sockets()
    monkeypatch.setattr(NotebookClient, "__init__", NotebookClient.__init__)
    kernels.lose_no_output()
    return kernels


def run(code: str) -> list[dict[str, Any]]:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
    return notebook.cells[0].outputs


def test_an_output_that_does_not_come_is_a_failure(
    patient, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(patient.WHOLE, "iopub_timeout", 1)

    async def never(*_: object) -> None:
        await asyncio.sleep(60)

    monkeypatch.setattr(NotebookClient, "_async_poll_output_msg", never)
    with pytest.raises(CellTimeoutError):
        run("1 + 1")


IN_PIECES = """
import time
for piece in ("{", "'a'", ": 1}", "\\n"):
    print(piece, end="", flush=True)
    time.sleep(0.4)
"""


def test_text_that_comes_in_pieces_is_one_text(patient):
    [output] = run(IN_PIECES)
    assert output["text"] == "{'a': 1}\n"
