"""The workbooks hold labcore's own source, and nothing is broken before an edit."""

import ast
import inspect
import textwrap
from pathlib import Path

import labcore
import nbformat
import pytest
from labcore.ops import _op
from nbclient import NotebookClient

from tests.notebooks import workbook

PARTS = pytest.mark.parametrize("part", workbook.PARTS)
ADVICE = "Run `make workbook` (or: python tests/notebooks/workbook.py)."


def file(part: str) -> Path:
    return workbook.FOLDER / f"{part}.ipynb"


def notebook(part: str) -> nbformat.NotebookNode:
    return nbformat.read(file(part), as_version=4)


def code_of(part: str, kind: str) -> dict[str, str]:
    """operation -> the source of its cell."""
    return {
        cell.id.removeprefix(f"{kind}-").replace("-", "_"): cell.source
        for cell in notebook(part).cells
        if cell.id.startswith(f"{kind}-")
    }


class WithoutTypes(ast.NodeTransformer):
    def visit_arg(self, node):
        node.annotation = None
        return node

    def visit_AnnAssign(self, node):
        return ast.Assign([node.target], node.value)

    def visit_FunctionDef(self, node):
        node.decorator_list, node.returns = [], None
        if ast.get_docstring(node) is not None:
            node.body = node.body[1:]
        return self.generic_visit(node)


def tree(source: str) -> str:
    """The one definition of a source, without decorator, documentation and types."""
    definitions = [
        node
        for node in ast.parse(textwrap.dedent(source)).body
        if isinstance(node, ast.FunctionDef)
    ]
    assert len(definitions) == 1
    return ast.dump(WithoutTypes().visit(definitions[0]))


def test_no_workbook_is_missing_or_left_over():
    found = {path.stem for path in workbook.FOLDER.glob("*.ipynb")}
    assert found == set(workbook.PARTS)


@PARTS
def test_it_is_what_the_generator_writes(part):
    assert file(part).read_text(encoding="utf-8") == workbook.workbook(part), ADVICE


@PARTS
def test_every_operation_of_the_part_is_in_it(part):
    _, _, chapters = workbook.PARTS[part]
    wanted = [n for modules in chapters.values() for n in workbook.operations(modules)]
    assert len(wanted) >= {"part-1": 55, "part-2": 5}[part]
    assert list(code_of(part, "mine")) == list(code_of(part, "try")) == wanted
    asked = [cell for cell in notebook(part).cells if cell.id.startswith("ask-")]
    assert all("Who notices?" in cell.source for cell in asked)
    assert len(asked) == len(wanted)


def test_part_2_holds_every_operation_of_laplacian_attention():
    operations = [n for n in labcore.OPERATIONS["laplacian"] if hasattr(labcore, n)]
    assert set(code_of("part-2", "mine")) == set(operations) & set(_op.OPS)


@pytest.mark.parametrize(
    "name, source",
    [pair for part in workbook.PARTS for pair in code_of(part, "mine").items()],
)
def test_a_cell_to_edit_is_the_reference(name, source):
    getattr(labcore, name)
    assert tree(source) == tree(inspect.getsource(_op.OPS[name])), ADVICE
    assert "@lab.mine" in source


def test_another_body_would_be_noticed():
    source = code_of("part-1", "mine")["gated_write"]
    assert tree(source) != tree(source.replace("*", "+"))


@PARTS
def test_as_it_stands_every_check_holds(part):
    ran = NotebookClient(notebook(part), timeout=300, kernel_name="python3").execute()
    said = {
        cell.id: output.data["text/plain"]
        for cell in ran.cells
        if cell.cell_type == "code"
        for output in cell.outputs
    }
    assert set(said) == {cell.id for cell in ran.cells if cell.id.startswith("try-")}
    broken = {id: text for id, text in said.items() if "Every check holds." not in text}
    assert broken == {}
