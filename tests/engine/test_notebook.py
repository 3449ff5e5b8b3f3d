"""The same in a real kernel: a notebook with nasty students in its cells."""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

EXT = Path(__file__).parents[2] / "book" / "_ext"

START = """
import labcore
from labcore import lab
import numpy as np

def told(outcome):
    print(outcome.all_held, len(outcome.red), "|", outcome.sentence())
"""

# A cell, and what its output begins with and contains.
CELLS: dict[str, tuple[str, str, str]] = {
    "a right function": (
        """
@lab.mine
def gated_write(S, k, v, beta, retention):
    rows = np.asarray(retention)
    S = S * (rows[..., :, None] if rows.ndim else rows)
    return labcore.delta_write(S, k, v, beta)
told(lab.try_it(gated_write))
""",
        "True 0",
        "Every check holds.",
    ),
    "an endless loop": (
        """
@lab.mine
def gated_write(S, k, v, beta, retention):
    while True:
        pass
told(lab.try_it(gated_write, seconds=0.2))
""",
        "False",
        "The run was stopped: no answer after 0.2 s.",
    ),
    "an endless loop with a bare except": (
        """
@lab.mine
def gated_write(S, k, v, beta, retention):
    caught = 0
    while True:
        try:
            while True:
                pass
        except:
            caught += 1
            if caught == 3:
                raise
told(lab.try_it(gated_write, seconds=0.2))
""",
        "False",
        "The run was stopped: no answer after 0.2 s.",
    ),
    "an exit": (
        """
@lab.mine
def gated_write(S, k, v, beta, retention):
    raise SystemExit
told(lab.try_it(gated_write))
""",
        "False",
        "checks broke.",
    ),
    "nothing returned": (
        """
@lab.mine
def gated_write(S, k, v, beta, retention):
    S + beta * np.outer(k, v)
told(lab.try_it(gated_write))
""",
        "False",
        "checks broke.",
    ),
    "a misspelt name": (
        """
def gated_writ(S, k, v, beta, retention):
    return S
try:
    lab.try_it(gated_writ)
except ValueError as error:
    print(error)
""",
        "no operation named 'gated_writ'",
        "did you mean gated_write",
    ),
    "the reference afterwards": (
        "print(labcore.gated_write([[4.0]], [1.0], [10.0], 0.25, 0.5).tolist())",
        "[[4.0]]",
        "",
    ),
}


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """The text that each cell printed; the notebook runs from an empty folder."""
    sys.path.insert(0, str(EXT))
    try:
        import kernels

        kernels.use_unix_sockets()
    finally:
        sys.path.remove(str(EXT))
    sources = [START, *(source for source, _, _ in CELLS.values())]
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in sources]
    )
    folder = str(tmp_path_factory.mktemp("notebook"))
    NotebookClient(
        notebook,
        timeout=60,
        kernel_name="python3",
        coalesce_streams=True,  # text may come in pieces
        resources={"metadata": {"path": folder}},
    ).execute()
    printed = [cell.outputs for cell in notebook.cells[1:]]
    return dict(zip(CELLS, printed, strict=True))


@pytest.mark.parametrize("what", CELLS)
def test_a_cell_says_what_happened_and_nothing_else(outputs, what):
    _, begins, contains = CELLS[what]
    [output] = outputs[what]  # one stream, and no traceback
    assert output["name"] == "stdout"
    assert output["text"].startswith(begins)
    assert contains in output["text"]
