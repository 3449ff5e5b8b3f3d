"""A program of the course and all that it needs of labcore, as one readable file.

The file is made of the statements that the program reaches, as they stand in their
modules, comments included: first the operations, then the checks and the faults, then
the program. What was an import becomes a plain name. Two names that would be one are
told apart by the name of their module.

Checks and faults are registered and not called by name. The checks of the program are
taken, and of the faults of their chapters those that break at least one of them, each
with the operation that it replaces. So every fault in the file turns something red
there. Left out are the faults that only other checks of the course notice: with most of
them the program would not even call the operation that is wrong.
"""

from __future__ import annotations

import ast
import builtins
import json
import re
import symtable
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

PACKAGE = "labcore"
CHECK = f"{PACKAGE}.identities._check"
# In one file the names of this module would be those of arguments: finite(), scores().
PREFIX = {f"{PACKAGE}.ops._validate": "must_"}
# What reads a file of the package reads the end of the one file.
SUBSTITUTES = {
    (CHECK, "recorded"): '''\
def recorded() -> dict[str, Any]:
    """What was recorded of these checks and faults; it stands at the end."""
    return RECORDED
'''
}
ANYONE = {*dir(builtins), "RECORDED", "__doc__", "__name__"}
NO_NUMPY = """\
except ModuleNotFoundError:
    print("NumPy is missing: python -m pip install numpy", file=sys.stderr)
    sys.exit(2)"""
RULE = "# " + "=" * 86
WIDTH = 88


class CannotBeOneFile(Exception):
    """Something in the sources that this module cannot move."""


class Thing(NamedTuple):
    """A global name of one of our modules."""

    module: str
    name: str


class Outside(NamedTuple):
    """A module of another package (name is empty), or a name of it."""

    module: str
    name: str


@dataclass(eq=False)
class Statement:
    """A definition, with the comments right above it."""

    module: Module
    original: ast.stmt
    text: str
    above: str = ""
    section: str = ""  # the comment that begins the section it stands in
    defines: tuple[str, ...] = ()

    @cached_property
    def node(self) -> ast.stmt:
        """The statement, its lines counted from its own first one."""
        [node] = ast.parse(self.text).body
        return node

    @cached_property
    def names(self) -> set[str]:
        """The global names that it refers to."""
        return {
            symbol.get_name()
            for table in self._scopes
            for symbol in table.get_symbols()
            if symbol.is_global() or table.get_type() == "module"
        } - {"_"}

    @cached_property
    def local(self) -> set[str]:
        """Names of its arguments and of what it assigns inside."""
        return {
            symbol.get_name()
            for table in self._scopes
            for symbol in table.get_symbols()
            if not symbol.is_global() and table.get_type() != "module"
        }

    @cached_property
    def _scopes(self) -> list[symtable.SymbolTable]:
        return list(_tables(symtable.symtable(self.text, "statement", "exec")))

    def registrations(self) -> Iterator[tuple[str, str, ast.Call]]:
        """(check or fault, id, the call) for each decorator of that kind."""
        for call in _decorators(self.original):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
                if call.func.attr in ("check", "fault"):
                    [id] = [a.value for a in call.args[:1]]  # type: ignore[attr-defined]
                    yield call.func.attr, id, call


class Module:
    """A source: its imports, and what it defines, in order."""

    def __init__(self, name: str, path: Path, package: str) -> None:
        self.name, self.package = name, package
        source = path.read_text(encoding="utf-8")
        tree = ast.parse(source)
        self.doc = ast.get_docstring(tree) or ""
        self.imports: dict[str, tuple[str, str]] = {}
        self.statements: list[Statement] = []
        self.start: Statement | None = None  # if __name__ == "__main__"
        self.odd: list[str] = []  # what cannot be moved
        lines = source.splitlines()
        before, section = 0, ""
        for node in tree.body:
            first = min([node.lineno, *(d.lineno for d in _decorators(node))]) - 1
            above: list[str] = []
            for line in lines[before:first]:
                if line.startswith("# ---"):
                    section, above = line, []
                else:
                    above = [*above, line] if line.startswith("#") else []
            before = node.end_lineno or 0
            text = "\n".join(lines[first:before])
            self._take(node, text, "\n".join(above), section)
        self.defined = {name: s for s in self.statements for name in s.defines}

    def _take(self, node: ast.stmt, text: str, above: str, section: str) -> None:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            self._import(node)
        elif isinstance(node, ast.Try):
            for inner in node.body:
                self._take(inner, "", "", "")
        elif isinstance(node, ast.If):  # a search for labcore is of no use in one file
            if "__main__" in text:
                self.start = Statement(self, node, text, above)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            text = SUBSTITUTES.get((self.name, node.name), text)
            found = Statement(self, node, text, above, section, (node.name,))
            self.statements.append(found)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = tuple(t.id for t in targets if isinstance(t, ast.Name))
            if len(names) != len(targets):
                self.odd.append(text)
            self.statements.append(Statement(self, node, text, above, section, names))
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            self.odd.append(text)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                self.imports[alias.asname or alias.name] = (alias.name, "")
            return
        base = node.module or ""
        if node.level:
            parts = self.package.split(".")
            parts = parts[: len(parts) - node.level + 1]
            base = ".".join([*parts, *([base] if base else [])])
        for alias in node.names:
            self.imports[alias.asname or alias.name] = (base, alias.name)


class Sources:
    """The program, the package that it imports, and who is meant by a name."""

    def __init__(self, program: Path, shared: Path) -> None:
        self.shared = shared
        self.program = Module("__main__", program, "")
        self._modules = {"__main__": self.program}
        self._references: dict[Statement, list[tuple[ast.expr, Thing | Outside]]] = {}

    def module(self, name: str) -> Module:
        if name not in self._modules:
            path = self._path(name)
            if path is None:
                raise CannotBeOneFile(f"there is no module {name}")
            inside = path.name == "__init__.py"
            package = name if inside else name.rpartition(".")[0]
            self._modules[name] = Module(name, path, package)
        return self._modules[name]

    def _path(self, name: str) -> Path | None:
        path = self.shared.joinpath(*name.split("."))
        for found in (path.with_suffix(".py"), path / "__init__.py"):
            if found.is_file():
                return found
        return None

    def all_of(self, package: str) -> list[Module]:
        folder = self.shared.joinpath(*package.split("."))
        stems = sorted(path.stem for path in folder.glob("[!_]*.py"))
        return [self.module(f"{package}.{stem}") for stem in stems]

    def meant(self, module: str, name: str) -> Thing | Outside | Module | None:
        """Who is meant by a name in a module; None for a builtin."""
        here = self.module(module)
        if name in here.defined:
            return Thing(module, name)
        if name not in here.imports:
            return None
        base, attribute = here.imports[name]
        if base.partition(".")[0] != PACKAGE:
            return Outside(base, attribute)
        inner = f"{base}.{attribute}" if attribute else base
        return self.meant(base, attribute) or self.module(inner)

    def references(
        self, statement: Statement
    ) -> list[tuple[ast.expr, Thing | Outside]]:
        """Each place where a statement names a thing, as a name or as alias.name."""
        if statement not in self._references:
            self._references[statement] = list(self._found(statement))
        return self._references[statement]

    def _found(
        self, statement: Statement
    ) -> Iterator[tuple[ast.expr, Thing | Outside]]:
        home = statement.module.name
        nodes = list(ast.walk(statement.node))
        for node in nodes:
            if isinstance(node, ast.Import | ast.ImportFrom | ast.Global):
                raise CannotBeOneFile(f"{home}: {ast.unparse(node)} in a function")
        taken: set[ast.expr] = set()
        for node in nodes:
            if not (
                isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
            ):
                continue
            whose = self.meant(home, node.value.id)
            if node.value.id in statement.names and isinstance(whose, Module):
                thing = self.meant(whose.name, node.attr)
                if thing is None or isinstance(thing, Module):
                    raise CannotBeOneFile(f"{home}: {ast.unparse(node)}")
                taken.add(node.value)
                yield node, thing
        for node in nodes:
            if not isinstance(node, ast.Name) or node in taken:
                continue
            if node.id in statement.names:
                meant = self.meant(home, node.id)
                if isinstance(meant, Thing | Outside):
                    yield node, meant
                elif meant is not None or node.id not in ANYONE | statement.local:
                    raise CannotBeOneFile(f"{home}: what is {node.id} here?")


# --- what is needed --------------------------------------------------------------


@dataclass
class Wanted:
    """The checks and faults to take, and what is recorded of them."""

    statements: list[Statement]
    tolerances: dict[str, float]
    red: dict[str, list[str]]  # fault -> the checks that it breaks


def wanted(sources: Sources, matrix: dict) -> Wanted:
    """The checks of the program, and the faults of their chapters that break one.

    The list of what a fault breaks stays whole: it names checks of the course, too.
    """
    names = sources.program.defined["NAMES"].node
    assert isinstance(names, ast.Assign)
    checks: tuple[str, ...] = ast.literal_eval(names.value)
    registered: dict[tuple[str, str], Statement] = {}
    chapter_of: dict[tuple[str, str], object] = {}
    for module in sources.all_of(f"{PACKAGE}.identities"):
        for statement in module.statements:
            for kind, id, call in statement.registrations():
                registered[kind, id] = statement
                chapter = ast.unparse(call.func).partition(".")[0]
                chapter_of[kind, id] = sources.meant(module.name, chapter)
    for id in checks:
        if ("check", id) not in registered:
            raise CannotBeOneFile(f"there is no check called {id}")
    chapters = {chapter_of["check", id] for id in checks}
    red = {id: list(row["red"]) for id, row in matrix["faults"].items()}
    faults = [
        id
        for kind, id in registered
        if kind == "fault"
        and chapter_of[kind, id] in chapters
        and not set(checks).isdisjoint(red.get(id, ()))
    ]
    return Wanted(
        [registered["check", id] for id in checks]
        + [registered["fault", id] for id in faults],
        {
            id: matrix["checks"][id]["tolerance"]
            for id in checks
            if id in matrix["checks"]
        },
        {id: red[id] for id in faults},
    )


def needed(sources: Sources, ids: Wanted) -> list[Statement]:
    """What the program and the wanted checks and faults reach."""
    assert sources.program.start
    doors = {
        name: statement
        for module in sources.all_of(f"{PACKAGE}.ops")
        for name, statement in module.defined.items()
        for decorator in _decorators(statement.original)
        if ast.unparse(decorator).startswith("op(")
    }
    waiting = [sources.program.start, *ids.statements]
    kept: dict[Statement, None] = {}
    while waiting:
        statement = waiting.pop(0)
        if statement in kept:
            continue
        kept[statement] = None
        for _, thing in sources.references(statement):
            if isinstance(thing, Thing):
                waiting.append(sources.module(thing.module).defined[thing.name])
        for kind, _, call in statement.registrations():
            if kind == "fault":
                [name] = [k.value for k in call.keywords if k.arg == "operation"]
                waiting.append(doors[ast.literal_eval(name)])
    return list(kept)


def in_reading_order(sources: Sources, kept: list[Statement]) -> list[Module]:
    """Each module after those that it uses; operations, checks, then the program."""
    uses: dict[Module, dict[Module, None]] = {}
    for statement in kept:
        for _, thing in sources.references(statement):
            if isinstance(thing, Thing):
                other = sources.module(thing.module)
                uses.setdefault(statement.module, {})[other] = None
        uses.setdefault(statement.module, {})
    done: list[Module] = []

    def visit(module: Module) -> None:
        if module not in done and module not in path:
            path.append(module)
            for other in uses[module]:
                visit(other)
            done.append(module)

    path: list[Module] = []
    for module in [m for m in uses if m is not sources.program]:
        visit(module)
    layers = (f"{PACKAGE}.ops.", f"{PACKAGE}.identities.", PACKAGE)

    def layer(module: Module) -> int:
        return next((i for i, x in enumerate(layers) if module.name.startswith(x)), 3)

    return sorted([*done, sources.program], key=layer)


# --- names -----------------------------------------------------------------------


def named(sources: Sources, kept: list[Statement]) -> dict[Thing, str]:
    """What each thing is called in the one file."""
    outside = {
        _written(statement, place)
        for statement in kept
        for place, thing in sources.references(statement)
        if isinstance(thing, Outside)
    }
    names: dict[Thing, str] = {}
    taken = outside | ANYONE
    hidden: dict[Thing, set[str]] = {}
    for statement in kept:
        for place, thing in sources.references(statement):
            if isinstance(thing, Thing) and isinstance(place, ast.Attribute):
                hidden.setdefault(thing, set()).update(statement.local)
    for statement in kept:
        for name in statement.defines:
            thing = Thing(statement.module.name, name)
            topic = thing.module.rpartition(".")[2].strip("_")
            if name != "_":
                avoid = taken | hidden.get(thing, set())
                tried = [_prefixed(thing), f"{name}_{topic}", f"{topic}_{name}"]
                names[thing] = next(t for t in tried if t not in avoid)
                taken.add(names[thing])
    return names


def _prefixed(thing: Thing) -> str:
    prefix = PREFIX.get(thing.module, "")
    private = "_" if prefix and thing.name.startswith("_") else ""
    return f"{private}{prefix}{thing.name.removeprefix(private)}"


def _written(statement: Statement, place: ast.expr) -> str:
    """How a thing of another package is called where it is used."""
    if not isinstance(place, ast.Name):
        raise CannotBeOneFile(f"{statement.module.name}: {ast.unparse(place)}")
    return place.id


def rewritten(sources: Sources, statement: Statement, names: dict[Thing, str]) -> str:
    """The text of a statement, with the names of the one file."""
    text = statement.text
    edits: list[tuple[int, int, str]] = []
    strings = [n for n in ast.walk(statement.node) if isinstance(n, ast.JoinedStr)]
    inside = {node: s for s in reversed(strings) for node in ast.walk(s)}
    in_strings: dict[ast.JoinedStr, list[tuple[str, str]]] = {}
    for place, thing in sources.references(statement):
        old = ast.unparse(place)
        if not isinstance(thing, Thing) or names[thing] == old:
            continue
        new = names[thing]
        if not statement.local.isdisjoint({old, new}):
            raise CannotBeOneFile(f"{thing.module}: {old} is the name of a local, too")
        if string := inside.get(place):  # where Python 3.11 gives no true place
            in_strings.setdefault(string, []).append((old, new))
        else:
            edits.append((*_span(text, place), new))
    for string, pairs in in_strings.items():
        start, end = _span(text, string)
        part = text[start:end]
        for old, new in set(pairs):
            part, count = re.subn(rf"(?<![\w.]){re.escape(old)}\b", new, part)
            if count != pairs.count((old, new)):
                raise CannotBeOneFile(f"{old} is a name and a word in {part}")
        edits.append((start, end, part))
    if isinstance(statement.node, ast.FunctionDef | ast.ClassDef):
        thing = Thing(statement.module.name, statement.node.name)
        head = re.search(rf"^(?:def|class) ({thing.name})\b", text, flags=re.M)
        assert head
        edits.append((*head.span(1), names.get(thing, thing.name)))
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _span(text: str, node: ast.expr) -> tuple[int, int]:
    """Where a node stands in a text; Python counts lines, and bytes in them."""
    lines = text.splitlines(keepends=True)

    def at(line: int, column: int) -> int:
        shown = lines[line - 1].encode()[:column].decode()
        return sum(map(len, lines[: line - 1])) + len(shown)

    assert node.end_lineno is not None and node.end_col_offset is not None
    return at(node.lineno, node.col_offset), at(node.end_lineno, node.end_col_offset)


# --- the file --------------------------------------------------------------------


def one_file(program: Path, shared: Path, about: str, licence: str) -> str:
    """The text of the file. about ends its docstring, licence ends the file."""
    sources = Sources(program, shared)
    place = shared / PACKAGE / "identities" / "matrix.json"
    ids = wanted(sources, json.loads(place.read_text(encoding="utf-8")))
    kept = needed(sources, ids)
    names = named(sources, kept)
    modules = in_reading_order(sources, kept)
    assert sources.program.start
    if odd := [text for module in modules for text in module.odd]:
        raise CannotBeOneFile(f"neither a definition nor an import: {odd}")
    sections = [_section(sources, module, kept, names) for module in modules]
    sections += [
        _heading("What was recorded", "Tolerances, and which fault breaks which check.")
        + _data(ids)
        + "\n\n"
        + rewritten(sources, sources.program.start, names),
        _heading("The licence") + textwrap.indent(licence.strip(), "# ", _always),
    ]
    imports = "\n".join(_imports(sources, kept))
    doc = f'"""{sources.program.doc.strip()}\n\n{about.strip()}\n"""'
    head = f"from __future__ import annotations\n\n{imports}"
    text = _with_contents(f"{doc}\n\n", "\n\n\n".join([head, *sections]))
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def _section(
    sources: Sources, module: Module, kept: list[Statement], names: dict[Thing, str]
) -> str:
    """What is kept of a module, under its name."""
    doc = module.doc.split("\n\n")[0]
    main = module is sources.program
    text = _heading("The program" if main else module.name, "" if main else doc)
    section = ""
    before: Statement | None = None
    for statement in module.statements:
        if statement not in kept:
            continue
        if statement.section not in ("", section):
            section = statement.section
            text = f"{text.rstrip()}\n\n\n{section}\n\n\n" if before else text
        elif before:
            both = isinstance(before.node, VALUES) and isinstance(
                statement.node, VALUES
            )
            text += "\n" if both else "\n\n\n"
        above = f"{statement.above}\n" if statement.above else ""
        text += above + rewritten(sources, statement, names).rstrip("\n")
        before = statement
    return text


def _with_contents(doc: str, rest: str) -> str:
    """A list of the headings and their lines, between the docstring and the rest."""
    headings = re.compile(rf"^{RULE}\n# (\w.*)\n", flags=re.M)
    found = [(rest.count("\n", 0, m.end()), m[1]) for m in headings.finditer(rest)]
    above = doc.count("\n") + len(found) + 2  # the list has a first and an empty line
    rows = [f"#   {above + line:>5}  {title}" for line, title in found]
    return "\n".join([f"{doc}# What stands where, by line:", *rows, "", rest])


VALUES = (ast.Assign, ast.AnnAssign)


def _heading(title: str, words: str = "") -> str:
    lines = [title, *words.splitlines()]
    return "\n".join([RULE, *(f"# {line}" for line in lines), RULE, "", "", ""])


def _always(line: str) -> bool:
    return True


def _imports(sources: Sources, kept: Iterable[Statement]) -> Iterator[str]:
    """The imports of other packages, merged; NumPy's last, with a word if it lacks."""
    whole: set[str] = {"sys"}
    parts: dict[str, set[str]] = {}
    for statement in kept:
        for place, thing in sources.references(statement):
            if not isinstance(thing, Outside):
                continue
            name = _written(statement, place)
            if thing.name:
                shown = name if name == thing.name else f"{thing.name} as {name}"
                parts.setdefault(thing.module, set()).add(shown)
            else:
                same = name == thing.module
                whole.add(name if same else f"{thing.module} as {name}")
    lines = [f"import {name}" for name in sorted(whole)]
    lines += [_from(module, found) for module, found in sorted(parts.items())]
    yield from (line for line in lines if "numpy" not in line)
    yield "\ntry:"
    yield from (f"    {line}" for line in lines if "numpy" in line)
    yield NO_NUMPY


def _from(module: str, found: set[str]) -> str:
    line = f"from {module} import {', '.join(sorted(found))}"
    if len(line) <= WIDTH:
        return line
    lines = "".join(f"    {name},\n" for name in sorted(found))
    return f"from {module} import (\n{lines})"


def _data(ids: Wanted) -> str:
    """The recorded rows as a dictionary that is read line by line."""
    lines = ["RECORDED: dict[str, Any] = {", '    "checks": {']
    for id, tolerance in ids.tolerances.items():
        lines.append(f'        "{id}": {{"tolerance": {tolerance!r}}},')
    lines += ["    },", '    "faults": {']
    for id, red in ids.red.items():
        words = textwrap.wrap(", ".join(f'"{name}"' for name in red), WIDTH - 16)
        lines.append(f'        "{id}": {{')
        lines.append('            "red": [')
        lines += [f"                {line}" for line in words]
        lines += ["            ]", "        },"]
    return "\n".join([*lines, "    },", "}"])


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for child in table.get_children():
        yield from _tables(child)


def _decorators(node: ast.stmt) -> list[ast.expr]:
    return getattr(node, "decorator_list", [])
