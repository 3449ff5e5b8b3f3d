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
from importlib.util import resolve_name
from pathlib import Path

import labcore
import nbformat
from labcore import lab
from labcore.identities import CHAPTERS, CHECKS, FAULTS, Fault, recorded
from labcore.ops import _op
from nbformat import v4

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "labs" / "workbooks"
CONFIG = ROOT / "tests" / "notebooks" / "lessons.toml"
MOST_NAMED = 8  # checks that are named under a question
NUMBERS = "no one two three four five six seven eight nine ten eleven twelve".split()

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
PART_3: Part = {
    "tokens-shapes-decoder": (
        "embedding",
        "linear",
        "patchify",
        "decoder_trace",
        "bpe_encode",
        "bpe_train",
        "bpe_decode",
    ),
    "sampling-and-search": ("sampling",),
    "losses-gradients-optimizers": (
        "cross_entropy",
        "squared_error",
        "finite_difference",
        "cross_entropy_gradient",
        "contrastive_gradient",
        "optim",
    ),
    "preferences": (
        "kl",
        "sequence_logprob",
        "dpo_margin",
        "dpo_loss",
        "ppo_clip",
        "contrastive_loss",
        "dpo_gradient",
        "ppo_clip_gradient",
    ),
    "retrieval": (
        "bm25_idf",
        "bm25_term",
        "bm25",
        "rrf",
        "precision",
        "recall",
        "maxsim",
        "nearest",
        "greedy_graph_search",
    ),
    "memory-quantization-serving": (
        "kv_cache_bytes",
        "quantize_symmetric",
        "dequantize",
        "critical_path",
        "service_capacity",
        "queue_backlog",
        "littles_law",
        "queue_trace",
        "mm1",
        "error_budget",
    ),
    "streams-and-state": (
        "streams",
        "bitemporal_lookup",
        "bitemporal_record",
        "compare_and_swap",
        "idempotent_executor",
        "replay_events",
        "compact_log",
        "acl_filter",
        "files",
        "database",
    ),
    "evaluation": (
        "pass_at_k",
        "pass_at_k_iid",
        "pass_all_k",
        "all_wrong_rate",
        "paired_table",
        "mcnemar_exact",
        "simpson_table",
        "brier",
        "calibration_table",
    ),
}
PARTS = {
    "part-1": ("Part I", "the identities", PART_1),
    "part-2": ("Part II", "Laplacian attention", PART_2),
    "part-3": ("Part III", "worked examples", PART_3),
}
NOT_HERE = {"embedding", "linear", "patchify"}  # of a module of Part I, and in Part III

START = """\
# {part}: {title}, to break

Every operation {which} stands here as it runs, in a cell with a dashed edge. \
Change one thing in such a cell, write down which checks you expect to turn red, and \
run both cells. Nothing can be damaged: the reference is back after every run, \
whatever you wrote.

1. Run the first cell of a chapter.
2. Change one thing in an operation: an operator, an axis, a sign, an order.
3. Put the ids of those checks into `predict=[...]`, up to {most} of them.
4. Run the two cells. Each broken check comes with the smallest input that shows it.

As long as you change nothing, every check holds.
"""

ALL = "of {part}"
NAMED = "that a chapter of {part} names"
OTHERS = """

Left out, because no chapter names them: {others}. A function of your own with such a \
name, and `@lab.mine` above it, is tried in the same way.
"""


# ---- The cells ----------------------------------------------------------------------


def operations(modules: tuple[str, ...]) -> Iterator[str]:
    for module in modules:
        for name in labcore.OPERATIONS.get(module, (module,)):
            getattr(labcore, name)
            if name in _op.OPS and (name == module or name not in NOT_HERE):
                yield name


def left_out() -> list[str]:
    """The operations that no workbook holds, in the order of labcore."""
    chapters = [modules for *_, part in PARTS.values() for modules in part.values()]
    held = {name for modules in chapters for name in operations(modules)}
    names = [name for module in labcore.OPERATIONS for name in operations((module,))]
    return [name for name in names if name not in held | NOT_HERE]


def plain(thing: Callable) -> str:
    """The source of a function or a class without decorators, documentation, types."""
    text = textwrap.dedent(inspect.getsource(thing))
    lines: list[str | None] = [*text.splitlines()]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            first, last = node.lineno - 1, (node.annotation.end_lineno or 0) - 1
            before, after = lines[first] or "", lines[last] or ""
            lines[first : last + 1] = [None] * (last + 1 - first)
            start = before[: node.target.end_col_offset]
            lines[last] = start + after[node.annotation.end_col_offset :]
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            first = min(n.lineno for n in [node, *node.decorator_list]) - 1
            body = node.body[ast.get_docstring(node) is not None :]
            head = lines[node.lineno - 1] or ""
            if isinstance(node, ast.FunctionDef):
                for argument in ast.walk(node.args):
                    if isinstance(argument, ast.arg):
                        argument.annotation = None
                indent = head[: node.col_offset]
                head = f"{indent}def {node.name}({ast.unparse(node.args)}):"
            for i in range(first, body[0].lineno - 1):
                lines[i] = None
            lines[first] = head
    return "\n".join(line for line in lines if line is not None)


def as_written(function: Callable) -> str:
    """A plain operation, to be edited."""
    return f"@lab.mine\n{plain(function)}"


def names_in(thing: Callable) -> set[str]:
    """The names of its module that the body of a function or a class uses."""
    written = ast.parse(plain(thing))
    used = {node.id for node in ast.walk(written) if isinstance(node, ast.Name)}
    return used & vars(inspect.getmodule(thing)).keys()


def classes_of(function: Callable) -> list[type]:
    """The classes in which an operation does its work: to be edited with it."""
    used = [vars(inspect.getmodule(function))[name] for name in names_in(function)]
    return [
        thing
        for thing in used
        if isinstance(thing, type) and not issubclass(thing, tuple | BaseException)
        if thing.__module__ == function.__module__
    ]


def names_needed(function: Callable) -> set[str]:
    """The names that the cell of an operation takes from elsewhere."""
    classes = classes_of(function)
    used = set().union(*(names_in(thing) for thing in [function, *classes]))
    return used - {thing.__name__ for thing in classes}


def imports(names: set[str], first: bool) -> str:
    public = ["lab", *names & set(labcore.__all__)]
    noqa = "# ruff: noqa: F811\n" if first else ""
    return f"{noqa}import numpy as np\n\nfrom labcore import {', '.join(public)}"


def helpers(function: Callable) -> str:
    """The imports of what labcore does not hand out, where it is needed."""
    private = names_needed(function) - set(labcore.__all__) - {"np"}
    module = inspect.getmodule(function)
    lines = []
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            ours = [a for a in node.names if (a.asname or a.name) in private]
            private -= {a.asname or a.name for a in ours}
            if ours and isinstance(node, ast.ImportFrom) and node.level:
                there = "." * node.level + (node.module or "")
                node.module = resolve_name(there, module.__package__)
                node.level = 0
            node.names = ours
            lines += [ast.unparse(node)] if ours else []
    if private:
        lines.append(f"from {module.__name__} import {', '.join(sorted(private))}")
    return "".join(f"{line}\n" for line in lines) + "\n\n" * bool(lines)


def faults_of(name: str) -> list[Fault]:
    """The named mistakes that can be made in a cell: its door checks the arguments."""
    made = [fault for fault in FAULTS.values() if fault.operation == name]
    return [fault for fault in made if not fault.unguarded]


def question(name: str, chapter: str) -> str:
    """What the operation does, a mistake to make, and the checks that may notice."""
    function = _op.OPS[name]
    said = (inspect.getdoc(function) or "").splitlines()[0]
    said = said.replace(":class:", "").replace(":func:", "")
    known = faults_of(name)
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
    rest = ", ".join(f"`{name}`" for name in left_out()) if part == "part-3" else ""
    start = START.strip() + (OTHERS.rstrip().replace("{others}", rest) if rest else "")
    start = start.replace("{which}", NAMED if rest else ALL)
    start = start.replace("{part}", number).replace("{title}", title)
    start = start.replace("{most}", NUMBERS[lab.MOST_PREDICTED])
    yield v4.new_markdown_cell(start, id="how-to")
    for i, (chapter, modules) in enumerate(chapters.items()):
        names = list(operations(modules))
        used = set().union(*(names_needed(_op.OPS[name]) for name in names))
        yield v4.new_markdown_cell(f"## {CHAPTERS[chapter].title}", id=chapter)
        yield v4.new_code_cell(imports(used, i == 0), id=f"start-{chapter}")
        for name in names:
            slug = name.replace("_", "-")
            function = _op.OPS[name]
            classes = "".join(f"{plain(c)}\n\n\n" for c in classes_of(function))
            mine = helpers(function) + classes + as_written(function)
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
