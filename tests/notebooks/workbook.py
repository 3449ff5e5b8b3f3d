"""Write the workbooks: every operation of a part, to edit, with its checks behind it.

    python tests/notebooks/workbook.py

The cells to edit are labcore's own source, without documentation and types. A test
compares both, so that a workbook cannot fall behind.
"""

import ast
import inspect
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import labcore
import nbformat
from labcore import lab
from labcore.identities import CHAPTERS, CHECKS, FAULTS, recorded
from labcore.ops import _op
from nbformat import v4

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "labs" / "workbooks"
CONFIG = ROOT / "tests" / "notebooks" / "lessons.toml"
MOST_NAMED = 8  # checks that are named under a question

# Chapter -> the modules of labcore.ops whose operations it is about, or the operations.
Part = dict[str, tuple[str, ...]]
PART_1: Part = {
    "attention-and-caching": ("attention", "layers", "decoder"),
    "softmax-summaries": ("softmax", "online"),
    "kernel-attention": ("kernel",),
    "writes-and-decay": ("delta",),
    "rope": ("rope",),
    "absorbing-mla": ("mla",),
    "speculative-decoding": ("speculative",),
}
PART_2: Part = {
    "ratio-and-transition": ("laplacian_distances", "laplacian_gradients"),
    "sigma-and-entropy": ("laplacian_attention", "median_sigma"),
    "retrieval-and-cost": ("operation_counts",),
}
PARTS = {
    "part-1": ("Part I", "the identities", PART_1),
    "part-2": ("Part II", "Laplacian attention", PART_2),
}
NOT_HERE = {"embedding", "linear", "patchify"}  # of Part III

START = """\
# {part}: {title}, to break

Every operation of {part} stands here as it runs, in a cell with a dashed edge. \
Change one thing in such a cell, write down which checks you expect to turn red, and \
run both cells. Nothing can be damaged: the reference is back after every run, \
whatever you wrote.

1. Run the first cell of a chapter.
2. Change one thing in an operation: an operator, an axis, a sign, an order.
3. Put the ids of up to eight checks into `predict=[...]`.
4. Run the two cells. Each broken check comes with the smallest input that shows it.

As long as you change nothing, every check holds.
"""


# ---- The cells ----------------------------------------------------------------------


def operations(modules: tuple[str, ...]) -> Iterator[str]:
    for module in modules:
        for name in labcore.OPERATIONS.get(module, (module,)):
            getattr(labcore, name)
            if name in _op.OPS and name not in NOT_HERE:
                yield name


def as_written(function: Callable) -> str:
    """A plain operation without decorator, documentation and types."""
    text = textwrap.dedent(inspect.getsource(function))
    [definition] = ast.parse(text).body
    assert isinstance(definition, ast.FunctionDef)
    body = definition.body[1:] if ast.get_docstring(definition) else definition.body
    lines = text.splitlines()
    for node in ast.walk(definition):
        if isinstance(node, ast.arg):
            node.annotation = None
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            plain = ast.Assign([node.target], node.value, lineno=node.lineno)
            indent = lines[node.lineno - 1][: node.col_offset]
            lines[node.lineno - 1] = indent + ast.unparse(plain)
            for i in range(node.lineno, node.end_lineno or node.lineno):
                lines[i] = ""
    head = f"def {definition.name}({ast.unparse(definition.args)}):"
    return "\n".join(["@lab.mine", head, *lines[body[0].lineno - 1 :]])


def names_in(function: Callable) -> set[str]:
    """The global names that the body of a function uses."""
    written = ast.parse(as_written(function))
    used = {node.id for node in ast.walk(written) if isinstance(node, ast.Name)}
    return used & function.__globals__.keys()


def imports(names: set[str], first: bool) -> str:
    public = ["lab", *names & set(labcore.__all__)]
    noqa = "# ruff: noqa: F811\n" if first else ""
    return f"{noqa}import numpy as np\n\nfrom labcore import {', '.join(public)}"


def helpers(function: Callable) -> str:
    """The import of what labcore keeps to itself, where it is needed."""
    private = sorted(names_in(function) - set(labcore.__all__) - {"np"})
    if not private:
        return ""
    return f"from {function.__module__} import {', '.join(private)}\n\n\n"


def question(name: str, chapter: str) -> str:
    """What the operation does, a mistake to make, and the checks that may notice."""
    function = _op.OPS[name]
    said = (inspect.getdoc(function) or "").splitlines()[0]
    known = [fault for fault in FAULTS.values() if fault.operation == name]
    home = [c.id for c in CHECKS.values() if c.chapter == chapter]
    if known:
        row = recorded()["faults"].get(known[0].id, {"red": {}, "green": []})
        near = {*row["red"], *row["green"]}
        ask = f"Make this mistake: **{known[0].title}**. Who notices?"
    else:
        near = set()
        ask = "No mistake in it has a name here yet. Make one. Who notices?"
    named = [f"`{id}`" for id in home if id in near][:MOST_NAMED]
    ids = f"\n\nChecks to choose from: {', '.join(named)}." if named else ""
    return f"### {name}\n\n{said}\n\n{ask}{ids}"


def cells(part: str) -> Iterator[nbformat.NotebookNode]:
    number, title, chapters = PARTS[part]
    start = START.strip().replace("{part}", number).replace("{title}", title)
    yield v4.new_markdown_cell(start, id="how-to")
    for i, (chapter, modules) in enumerate(chapters.items()):
        names = list(operations(modules))
        used = set().union(*(names_in(_op.OPS[name]) for name in names))
        yield v4.new_markdown_cell(f"## {CHAPTERS[chapter].title}", id=chapter)
        yield v4.new_code_cell(imports(used, i == 0), id=f"start-{chapter}")
        for name in names:
            slug = name.replace("_", "-")
            function = _op.OPS[name]
            mine = helpers(function) + as_written(function)
            edit = {"tags": ["break-it"]}
            at_home = lab._chapter_of(name) == chapter
            where = "" if at_home else f'chapter="{chapter}", '
            yield v4.new_markdown_cell(question(name, chapter), id=f"ask-{slug}")
            yield v4.new_code_cell(mine, id=f"mine-{slug}", metadata=edit)
            yield v4.new_code_cell(
                f"lab.try_it({name}, {where}predict=[])",
                id=f"try-{slug}",
                metadata=edit,
            )


# ---- The files ----------------------------------------------------------------------


def workbook(part: str) -> str:
    """The notebook as a file, its code in the house format."""
    notebook = v4.new_notebook(cells=list(cells(part)))
    notebook.metadata = {
        "kernelspec": {
            "display_name": "Python 3",
            "language": "python",
            "name": "python3",
        },
        "language_info": {"name": "python"},
    }
    notebook.nbformat_minor = 5
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "workbook.ipynb")
        file.write_text(v4.writes(notebook).rstrip("\n") + "\n", encoding="utf-8")
        for task in (["check", "--fix", "--select=I"], ["format"]):
            ruff = [sys.executable, "-m", "ruff", *task, "--quiet"]
            subprocess.run([*ruff, "--config", CONFIG, file], check=True)
        return file.read_text(encoding="utf-8")


def main() -> int:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        file = FOLDER / f"{part}.ipynb"
        file.write_text(workbook(part), encoding="utf-8", newline="\n")
        print(file.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
