"""What is written cannot drift from what runs. Sphinx extension for the role given.

Before a page is read, every page, caption, alt text, hint and reason is searched for

- a number typed into a sentence (see prose.py);
- a given that differs from what holds it: ``{given}`sigma=0.7` `` in a sentence must
  agree with the assignment in a code cell with the tag ``givens``, or with the givens
  of an exercise that the page asks;
- a displayed formula that is not the one that ``labcore.formulas`` prints, and a box
  that names other functions and checks than the formula in it.

Each of them fails the build before it runs anything.
"""

import ast
import contextlib
import difflib
import functools
import html
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import strict
from docutils import nodes
from prose import typed_numbers

GIVEN = re.compile(r"\{given\}`([^`=]+)=([^`]+)`")
DISPLAY = re.compile(r"\$\$(.+?)\$\$", flags=re.S)
BOX = re.compile(
    r"^:::+\{admonition\}.*?^:class: identity.*?^:::+\s*$", flags=re.S | re.M
)
SPEAKING = ("exercises", "figures")  # parts of labcore that print sentences
# Calls that print sentences, and the arguments that hold them (0: the first one).
SENTENCES = {
    "say": (0,),
    "scrubber": ("caption",),
    "show_checks": ("caption",),
    "show_chapter": (1, "caption"),
    "finish": ("alt", "finding", "caption"),
    "exercise": ("hint", "because"),
}
FORMULAS = {"exercise"}  # a hint holds formulas in plain letters


@dataclass(frozen=True)
class Problem:
    """Something written that no run stands behind."""

    file: str
    cell: str
    message: str

    def __str__(self) -> str:
        return f"{self.file}, {self.cell}: {self.message}"


@dataclass(frozen=True)
class Cell:
    """A piece of a page: prose or code."""

    id: str
    kind: str
    source: str
    tags: tuple[str, ...] = ()


def cells_of(path: Path) -> list[Cell]:
    """The cells of a notebook; a page in Markdown is one cell of prose."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        return [Cell("page", "markdown", text)]
    return [
        Cell(
            f"cell {cell['id']}",
            cell["cell_type"],
            "".join(cell["source"]),
            tuple(cell["metadata"].get("tags", ())),
        )
        for cell in json.loads(text)["cells"]
    ]


def problems(root: Path, pages: list[Path]) -> list[Problem]:
    """Everything that is wrong with these pages, and with what labcore says in them."""
    found = []
    for page in pages:
        name, cells = page.relative_to(root).as_posix(), cells_of(page)
        for check in (numbers, givens, formulas):
            found += [Problem(name, cell, what) for cell, what in check(cells)]
    labcore = root / "shared" / "labcore"
    for module in sorted(
        path for part in SPEAKING for path in (labcore / part).glob("*.py")
    ):
        name = module.relative_to(root).as_posix()
        code = Cell("code", "code", module.read_text(encoding="utf-8"))
        found += [Problem(name, cell, what) for cell, what in numbers([code])]
    return found


# --- numbers ---------------------------------------------------------------------


def numbers(cells: list[Cell]) -> Iterator[tuple[str, str]]:
    """Numbers typed into prose, or into the sentences that code prints."""
    for cell in cells:
        if cell.kind == "markdown":
            texts = [(cell.id, cell.source, False)]
        elif cell.kind == "code":
            texts = [
                (f"{cell.id}, line {line}", text, name in FORMULAS)
                for line, name, text in printed(cell.source)
            ]
        else:
            texts = []
        for where, text, has_formulas in texts:
            for number, sentence in typed_numbers(text, has_formulas):
                yield where, f"a typed number, {number!r}, in: {sentence}"


def printed(source: str) -> list[tuple[int, str, str]]:
    """(line, call, text) of every sentence that a piece of code prints."""
    try:
        tree = ast.parse(source)
    except SyntaxError:  # a cell with IPython's own syntax prints no sentence of ours
        return []
    found = []
    for call in ast.walk(tree):
        if isinstance(call, ast.Call):
            name = getattr(call.func, "id", getattr(call.func, "attr", ""))
            for place in SENTENCES.get(name, ()):
                texts = typed(argument(call, place))
                found += [(call.lineno, name, text) for text in texts]
    return found


def argument(call: ast.Call, place: int | str) -> ast.expr | None:
    if isinstance(place, int):
        return call.args[place] if place < len(call.args) else None
    return next((k.value for k in call.keywords if k.arg == place), None)


def typed(node: ast.expr | None) -> list[str]:
    """The constant text of an expression; a computed part counts as a word."""
    if node is None:
        return []
    if isinstance(node, ast.Constant):
        return [filled(node.value)] if isinstance(node.value, str) else []
    if isinstance(node, ast.JoinedStr):
        parts = [p.value if isinstance(p, ast.Constant) else " x " for p in node.values]
        inner = [p.value for p in node.values if isinstance(p, ast.FormattedValue)]
        return ["".join(map(str, parts)), *(t for p in inner for t in typed(p))]
    if isinstance(node, ast.BinOp):
        left, right = typed(node.left) or [" x "], typed(node.right) or [" x "]
        return [left[0] + right[0], *left[1:], *right[1:]]
    if isinstance(node, ast.Call):  # " ".join(...), and what is joined
        held = [*node.args, *(k.value for k in node.keywords)]
        return [t for part in held for t in typed(part)]
    if isinstance(
        node, (ast.IfExp, ast.GeneratorExp, ast.ListComp, ast.Tuple, ast.List)
    ):
        held = [n for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr)]
        return [t for part in held for t in typed(part)]
    return []


def filled(template: str) -> str:
    """A template of say with its places filled by a word."""
    return re.sub(r"\{\w+(?:!b)?\}", " x ", template)


# --- givens ----------------------------------------------------------------------


def givens(cells: list[Cell]) -> Iterator[tuple[str, str]]:
    """Givens named in prose that are not what the run is given."""
    page: dict[str, list[object]] = {}
    for cell in cells:
        for name, value in assigned(cell):
            page.setdefault(name, []).append(value)
    for place, cell in enumerate(cells):
        if cell.kind != "markdown":
            continue
        # A question stands right before the cell that checks its answer.
        after = cells[place + 1] if place + 1 < len(cells) else cell
        question = {name: [value] for name, value in asked(after.source)}
        held = {**page, **question}
        for name, text in GIVEN.findall(cell.source):
            try:
                value = ast.literal_eval(text)
            except (ValueError, SyntaxError):
                yield cell.id, f"no value: {{given}}`{name}={text}`"
                continue
            if name not in held:
                yield cell.id, f"nothing gives {name!r}, which is {text} here"
            elif plain(value) not in map(plain, held[name]):
                given = " or ".join(map(str, held[name]))
                yield cell.id, f"{name} is {given} where it is given, {text} here"


def assigned(cell: Cell) -> Iterator[tuple[str, object]]:
    """What a cell of givens holds: a = 1; a, b = 1, 2; x = np.array([1])."""
    if cell.kind != "code" or "givens" not in cell.tags:
        return
    for node in ast.parse(cell.source).body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
            pairs = [(target, value)]
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                pairs = list(zip(target.elts, value.elts, strict=True))
            for left, right in pairs:
                if isinstance(right, ast.Call) and len(right.args) == 1:
                    right = right.args[0]
                if isinstance(left, ast.Name):
                    with contextlib.suppress(ValueError):
                        yield left.id, ast.literal_eval(right)


def asked(source: str) -> Iterator[tuple[str, object]]:
    """The givens of the exercises that a cell checks."""
    from labcore.exercises import EXERCISES

    for id in re.findall(r"""exercises\.check\(\s*["']([\w/-]+)""", source):
        if id in EXERCISES:
            yield from EXERCISES[id].givens.items()


def plain(value: object) -> object:
    """Lists and tuples alike."""
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    return value


def given_role(name, rawtext, text, lineno, inliner, options=None, content=None):
    """``{given}`sigma=0.7` `` shows as: sigma = 0.7"""
    left, _, right = text.partition("=")
    shown = f"<code>{html.escape(left)} = <data>{html.escape(right)}</data></code>"
    return [nodes.raw("", shown, format="html")], []


# --- formulas --------------------------------------------------------------------


@functools.cache
def registered() -> dict[str, object]:
    """TeX -> the formula that prints it."""
    from labcore.formulas import FORMULAS, UNCHECKED

    return {f.tex: f for f in (*FORMULAS.values(), *UNCHECKED.values())}


def formulas(cells: list[Cell]) -> Iterator[tuple[str, str]]:
    """Displays that no expression prints, and boxes that name the wrong things."""
    known = registered()
    for cell in cells:
        if cell.kind != "markdown":
            continue
        for display in DISPLAY.findall(cell.source):
            tex = " ".join(display.split())
            if tex not in known:
                near = difflib.get_close_matches(tex, known, 1, 0.5)
                hint = f"; the nearest prints {near[0]}" if near else ""
                yield cell.id, f"no registered formula prints {tex}{hint}"
        for box in BOX.findall(cell.source):
            yield from ((cell.id, what) for what in box_problems(box))


def box_problems(box: str) -> Iterator[str]:
    """A box names the functions and the checks of the formulas in it, and no others."""
    known = registered()
    inside = [known.get(" ".join(tex.split())) for tex in DISPLAY.findall(box)]
    if not inside:
        yield "a box without a formula"
    wanted_functions, wanted_checks = set(), set()
    for formula in inside:
        wanted_functions |= set(getattr(formula, "operations", ()))
        wanted_functions |= set(getattr(formula, "tools", ()))
        wanted_checks |= set(getattr(formula, "checks", ()))
    last = DISPLAY.sub("", box)
    functions = set(re.findall(r"`labcore\.([\w.]+)`", last))
    checks = set(re.findall(r"`(\w+)`", last))  # a check may be called as a function
    for what, named, wanted in [
        ("functions", functions, wanted_functions),
        ("checks", checks, wanted_checks),
    ]:
        if named != wanted:
            yield (
                f"a box names the {what} {sorted(named)}, "
                f"its formulas are registered with {sorted(wanted)}"
            )


# --- the build -------------------------------------------------------------------


def prose_problems(root: Path) -> list[str]:
    """What is wrong with the pages, the workbooks, the figures and the exercises."""
    names = [root / page for page in strict.listed(root)]
    pages = [p.with_suffix(end) for p in names for end in (".ipynb", ".md")]
    pages += sorted((root / "labs/workbooks").glob("*.ipynb"))
    return [str(p) for p in problems(root, [page for page in pages if page.is_file()])]


def setup(app):
    app.add_role("given", given_role)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
