"""Change every operation in every small way, and see that the checks notice.

python tests/mutate.py                  all operations
python tests/mutate.py OPERATION ...    only these

Each mutant is the plain function with one thing changed: an operator swapped, an
operand dropped, a comparison shifted, a constant raised by one, a minus dropped, a
condition inverted, an option dropped or None, a bound of a slice moved, two arguments
exchanged. It stands in behind the operation's door while the checks that reach the
operation run; it is caught when one of them is broken, raises or does not end. Helpers
that an operation calls are changed with it.

Three things are left as they are, because checks are about mathematics: what is refused
(tests/unit/test_bad_input.py), types of numbers (tests/property/test_rules.py), and
which warnings NumPy keeps to itself (every warning fails a test).

A mutant that no check can catch is explained in tests/data/mutants_explained.json.
The last line says how many were caught; it fails below the floors in this file.
"""

from __future__ import annotations

import ast
import copy
import inspect
import json
import multiprocessing
import os
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import labcore
from labcore import lab
from labcore.identities import CHECKS, FAULTS, Check, recorded, run
from labcore.matrix import reach
from labcore.ops import _op

EXPLAINED = Path(__file__).parent / "data" / "mutants_explained.json"
LEAST_MUTANTS = 2650
LEAST_CAUGHT = 2610
SHARE = 0.95  # of all mutants, explained ones counted as not caught

SEEDS, SIZES = (0, 1), (2, 1, 4)
SECONDS = 2.0

SWAPPED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mod,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
SHIFTED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
COMMUTATIVE = {"maximum", "minimum", "broadcast_shapes", "result_type"}
TYPES = {"dtype", "strict"}  # options that change no number


class Mutant(NamedTuple):
    operation: str
    before: str  # the line as it stands
    after: str  # the line as it was changed
    make: Callable[[], Callable[..., Any]]

    @property
    def key(self) -> str:
        return f"{self.operation}: {self.after}"


class Report(NamedTuple):
    operation: str
    mutants: int
    survivors: list[tuple[str, str]]  # key, line as it stands


# ---- Making mutants -----------------------------------------------------------------


def changes(node: ast.AST) -> Iterator[ast.AST]:
    """Every small change of one node; its parts are changed on their own turn."""
    if isinstance(node, ast.BinOp):
        if type(node.op) in SWAPPED:
            yield with_(node, op=SWAPPED[type(node.op)]())
        if isinstance(node.op, ast.MatMult):
            yield with_(node, left=node.right, right=node.left)
        yield node.left
        yield node.right
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in SHIFTED:
        yield with_(node, ops=[SHIFTED[type(node.ops[0])](), *node.ops[1:]])
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield ast.Constant(not node.value)
        elif isinstance(node.value, (int, float)):
            yield ast.Constant(node.value + 1)
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, (ast.IfExp, ast.If, ast.While)):
        yield with_(node, test=ast.UnaryOp(ast.Not(), node.test))
    elif isinstance(node, ast.BoolOp):
        yield from node.values
    elif isinstance(node, ast.Slice):
        for bound in ("lower", "upper"):
            value = getattr(node, bound)
            if value is not None:
                one_on = ast.BinOp(value, ast.Add(), ast.Constant(1))
                yield with_(node, **{bound: one_on})
                yield with_(node, **{bound: None})
    elif isinstance(node, ast.Call) and ast.unparse(node.func) != "np.errstate":
        for i, option in enumerate(node.keywords):
            if option.arg is None or option.arg in TYPES:
                continue
            others = [k for j, k in enumerate(node.keywords) if j != i]
            yield with_(node, keywords=others)
            if ast.unparse(option.value) != "None":
                none = ast.keyword(option.arg, ast.Constant(None))
                yield with_(node, keywords=[*others, none])
        if len(node.args) == 2 and order_matters(node.func):
            yield with_(node, args=node.args[::-1])
    elif isinstance(node, ast.AugAssign) and type(node.op) in SWAPPED:
        yield with_(node, op=SWAPPED[type(node.op)]())


def order_matters(function: ast.expr) -> bool:
    """A function of NumPy that does not treat its two arguments alike."""
    module, _, name = ast.unparse(function).rpartition(".")
    return module == "np" and name not in COMMUTATIVE


def with_(node: ast.AST, **parts: Any) -> ast.AST:
    changed = copy.copy(node)
    for name, part in parts.items():
        setattr(changed, name, part)
    return changed


def body_of(function: Callable[..., Any]) -> ast.FunctionDef:
    """Its definition, without decorators, docstring and types."""
    [tree] = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(tree, ast.FunctionDef)
    tree.decorator_list, tree.returns = [], None
    if ast.get_docstring(tree) is not None:
        tree.body = tree.body[1:]
    for parameter in ast.walk(tree):
        if isinstance(parameter, ast.arg):
            parameter.annotation = None
    return tree


def places(tree: ast.FunctionDef) -> Iterator[tuple[ast.AST, str, int | None]]:
    """Each node of the body as (parent, field, index in a list)."""
    todo: list[ast.AST] = list(tree.body)
    for i in range(len(tree.body)):
        yield tree, "body", i
    while todo:
        node = todo.pop(0)
        for field, value in ast.iter_fields(node):
            if isinstance(node, ast.AnnAssign) and field == "annotation":
                continue
            if isinstance(value, ast.AST):
                yield node, field, None
                todo.append(value)
            elif isinstance(value, list):
                for i, part in enumerate(value):
                    if isinstance(part, ast.keyword) and part.arg in TYPES:
                        continue
                    if isinstance(part, ast.AST):
                        yield node, field, i
                        todo.append(part)


def statement_of(tree: ast.FunctionDef, line: int) -> ast.stmt:
    """The innermost statement that begins at or before a line."""
    inside = [n for n in ast.walk(tree) if isinstance(n, ast.stmt) and n is not tree]
    return max(
        (n for n in inside if n.lineno <= line <= (n.end_lineno or n.lineno)),
        key=lambda n: n.lineno,
    )


def line_of(statement: ast.stmt) -> str:
    return ast.unparse(statement).split("\n")[0]


def mutated(tree: ast.FunctionDef) -> Iterator[tuple[str, str, ast.FunctionDef]]:
    """(line as it stands, line as changed, whole definition), no two the same."""
    seen = {ast.unparse(tree)}
    for parent, field, index in places(tree):
        value = getattr(parent, field)
        node = value if index is None else value[index]
        statement = node if isinstance(node, ast.stmt) else None
        line = getattr(node, "lineno", getattr(parent, "lineno", tree.lineno))
        statement = statement_of(tree, line) if statement is None else statement
        before = line_of(statement)
        for changed in changes(node):
            put(parent, field, index, changed)
            whole = ast.unparse(tree)
            if whole not in seen:
                seen.add(whole)
                shown = changed if isinstance(changed, ast.stmt) else statement
                yield before, line_of(shown), ast.parse(whole).body[0]  # type: ignore[misc]
            put(parent, field, index, node)


def put(parent: ast.AST, field: str, index: int | None, node: ast.AST) -> None:
    if index is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[index] = node


def helpers_of(function: Callable[..., Any]) -> list[Callable[..., Any]]:
    """The private functions of its module that it calls, directly or through one."""
    found: list[Callable[..., Any]] = []
    todo = [function]
    while todo:
        for name in todo.pop().__code__.co_names:
            part = function.__globals__.get(name)
            own = inspect.isfunction(part) and part.__module__ == function.__module__
            if own and name not in _op.OPS and part not in found:
                found.append(part)
                todo.append(part)
    return found


def defined(tree: ast.FunctionDef, names: dict[str, Any]) -> Callable[..., Any]:
    module = ast.fix_missing_locations(ast.Module([tree], []))
    exec(compile(module, f"<mutant of {tree.name}>", "exec"), names)
    return names[tree.name]


def mutants(operation: str) -> Iterator[Mutant]:
    plain = _op.OPS[operation]
    own = body_of(plain)
    for before, after, tree in mutated(own):
        yield Mutant(
            operation,
            before,
            after,
            lambda tree=tree: defined(tree, dict(plain.__globals__)),
        )
    for helper in helpers_of(plain):
        for before, after, tree in mutated(body_of(helper)):

            def make(tree: ast.FunctionDef = tree) -> Callable[..., Any]:
                names = dict(plain.__globals__)
                for part in helpers_of(plain):  # so that they call the changed one
                    defined(body_of(part), names)
                defined(tree, names)
                return defined(body_of(plain), names)

            name = f"{helper.__name__}: "
            yield Mutant(operation, name + before, name + after, make)


# ---- Catching them ------------------------------------------------------------------


def caught(operation: str, stand_in: Callable[..., Any], checks: list[Check]) -> bool:
    with _op.replaced({operation: _op.StandIn(stand_in)}):
        for check in checks:
            for size in SIZES:
                for seed in SEEDS:
                    try:
                        with lab.time_limit(SECONDS):
                            if not run(check, seed, size).held:
                                return True
                    except (lab.TooSlow, SystemExit, KeyboardInterrupt):
                        return True
                    if not check.inputs(seed, size):
                        break  # a constant
    return False


def by_usefulness(operation: str) -> list[Check]:
    """The checks that reach an operation, those made for its faults first."""
    made = {f.made_for for f in FAULTS.values() if f.operation == operation}
    home = _op.OPS[operation].__module__.rpartition(".")[2]

    def rank(check: Check) -> tuple[bool, bool]:
        return check.id not in made, not check.sides.__module__.endswith(f".{home}")

    return sorted((c for c in CHECKS.values() if operation in reach(c)), key=rank)


def survey(operation: str) -> Report:
    checks = by_usefulness(operation)
    count, survivors = 0, []
    if not checks:
        return Report(operation, 0, [])
    for mutant in mutants(operation):
        count += 1
        if not caught(operation, mutant.make(), checks):
            survivors.append((mutant.key, mutant.before))
    return Report(operation, count, survivors)


def main(names: list[str]) -> int:
    public = [name for topic in labcore.OPERATIONS.values() for name in topic]
    for name in public:
        getattr(labcore, name)
    everything = [name for name in public if name in _op.OPS]
    if unknown := [name for name in names if name not in everything]:
        print(f"no such operation: {', '.join(unknown)}")
        return 2
    explained = json.loads(EXPLAINED.read_text(encoding="utf-8"))
    total = total_caught = 0
    left: list[tuple[str, str]] = []
    met: set[str] = set()
    with multiprocessing.Pool(os.cpu_count()) as pool:
        for report in pool.imap(survey, names or everything):
            unexplained = [s for s in report.survivors if s[0] not in explained]
            met |= {key for key, _ in report.survivors}
            total += report.mutants
            total_caught += report.mutants - len(report.survivors)
            left += unexplained
            if not report.mutants:
                reached = recorded()["reach"].get(report.operation)
                words = "nothing in it to change" if reached else "no check reaches it"
                print(f"{report.operation:<28}{words}")
                continue
            print(
                f"{report.operation:<28}{report.mutants:>4} mutants"
                f"{len(report.survivors) - len(unexplained):>4} explained"
                f"{len(unexplained):>4} left",
                flush=True,
            )
    for key, before in left:
        print(f"\nnobody notices {key}\n  instead of   {before}")
    stale = [
        key
        for key in explained
        if key not in met and (not names or key.partition(":")[0] in names)
    ]
    for key in stale:
        print(f"\nexplained, but caught or not made: {key}")
    print(f"\n{len(met & explained.keys())} explained, {len(left)} not")
    print(f"caught {total_caught} of {total}")
    if names:
        return int(bool(stale))
    enough = total_caught >= max(LEAST_CAUGHT, SHARE * total) and total >= LEAST_MUTANTS
    return int(bool(stale) or not enough)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
