"""The workbooks hold labcore's own source, and nothing is broken before an edit."""

import ast
import inspect
import json
import re
import textwrap
from pathlib import Path

import labcore
import nbformat
import pytest
from labcore import contents, lab
from labcore.ops import _op

from tests.notebooks import workbook

PARTS = pytest.mark.parametrize("part", workbook.PARTS)
TITLES = dict(zip(workbook.PARTS, contents.PARTS, strict=True))
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

    def visit_ClassDef(self, node):
        return self.visit_FunctionDef(node)


def trees(source: str, kind: type) -> list[str]:
    """The definitions of a source, without decorators, documentation and types."""
    definitions = [
        node
        for node in ast.parse(textwrap.dedent(source)).body
        if isinstance(node, kind)
    ]
    return [ast.dump(WithoutTypes().visit(node)) for node in definitions]


def tree(source: str) -> str:
    """The one function of a source."""
    [function] = trees(source, ast.FunctionDef)
    return function


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
    assert len(wanted) >= {"part-1": 55, "part-2": 5, "part-3": 70}[part]
    assert list(code_of(part, "mine")) == list(code_of(part, "try")) == wanted
    asked = [cell for cell in notebook(part).cells if cell.id.startswith("ask-")]
    assert all("Who notices?" in cell.source for cell in asked)
    assert len(asked) == len(wanted)


def test_part_2_holds_every_operation_of_laplacian_attention():
    operations = [n for n in labcore.OPERATIONS["laplacian"] if hasattr(labcore, n)]
    assert set(code_of("part-2", "mine")) == set(operations) & set(_op.OPS)


def test_the_chapters_are_those_of_the_book_in_its_order():
    for part, title in TITLES.items():
        chapters = list(workbook.PARTS[part][2])
        assert chapters == [s for s in contents.PARTS[title] if s in chapters]
    assert tuple(workbook.PART_3) == contents.PARTS[TITLES["part-3"]]


def test_no_operation_is_in_two_workbooks_or_in_none_without_being_told():
    held = [name for part in workbook.PARTS for name in code_of(part, "mine")]
    assert len(held) == len(set(held))
    assert set(code_of("part-3", "mine")) >= workbook.NOT_HERE
    told = next(cell.source for cell in notebook("part-3").cells)
    left = workbook.left_out()
    assert set(held) | set(left) == set(_op.OPS)
    assert left == [n for n in re.findall(r"`(\w+)`", told) if n in _op.OPS]


def test_what_a_chapter_of_part_3_names_is_in_a_workbook():
    named = set()
    for slug in contents.PARTS[TITLES["part-3"]]:
        page = workbook.ROOT / "book" / f"{contents.page(slug)}.ipynb"
        for cell in json.loads(page.read_text(encoding="utf-8"))["cells"]:
            text = "".join(cell["source"])
            code = text if cell["cell_type"] == "code" else ""
            spans = re.findall(r"`(?:labcore\.)?(\w+)`", text)
            named |= {*spans, *re.findall(r"\w+", code)}
    assert named & set(workbook.left_out()) == set()


@pytest.mark.parametrize(
    "name, source",
    [pair for part in workbook.PARTS for pair in code_of(part, "mine").items()],
)
def test_a_cell_to_edit_is_the_reference(name, source):
    getattr(labcore, name)
    assert tree(source) == tree(inspect.getsource(_op.OPS[name])), ADVICE
    assert "@lab.mine" in source


def test_the_classes_that_do_the_work_are_there_to_edit():
    there = {}
    for name, source in code_of("part-3", "mine").items():
        classes = [
            node.name
            for node in ast.parse(source).body
            if isinstance(node, ast.ClassDef)
        ]
        ours = "\n".join(inspect.getsource(getattr(labcore, c)) for c in classes)
        assert trees(source, ast.ClassDef) == trees(ours, ast.ClassDef), ADVICE
        there |= {name: classes} if classes else {}
    assert there == {
        "sse_decode": ["SSEDecoder"],
        "idempotent_executor": ["IdempotentExecutor"],
    }


def asked() -> list[tuple[str, str]]:
    """Each operation, and the chapter in whose cells it is edited."""
    return [
        (name, chapter)
        for _, _, chapters in workbook.PARTS.values()
        for chapter, modules in chapters.items()
        for name in workbook.operations(modules)
    ]


@pytest.mark.parametrize("name, chapter", asked())
def test_the_mistake_that_is_asked_for_is_noticed_in_its_chapter(name, chapter):
    fault = workbook.faults_of(name)[0]
    outcome = lab.try_it(**{name: fault.by}, chapter=chapter)
    assert outcome.red, outcome.sentence()
    assert fault.title in workbook.question(name, chapter)
    named = re.findall(r"`(\w+)`", workbook.question(name, chapter))
    assert {*named} & {*outcome.red}


def test_another_body_would_be_noticed():
    source = code_of("part-1", "mine")["gated_write"]
    assert tree(source) != tree(source.replace("*", "+"))
