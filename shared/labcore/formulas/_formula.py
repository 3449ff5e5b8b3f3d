"""A displayed formula: an expression that prints as TeX and computes as NumPy.

An expression is Python: ``sum(w[i, j] * v[j] for j in range(len(v)))``. It is read
once as a syntax tree. :func:`tex` prints the tree, :func:`value` runs it, so that what
a reader sees is what a test compares with the function that the formula names.
"""

from __future__ import annotations

import ast
import inspect
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeGuard

import numpy as np

Inputs = dict[str, Any]

GREEK = (
    "alpha beta gamma delta epsilon theta lambda mu pi rho sigma tau phi omega ell"
).split()
# The colours of the course: a query, a key, a value, a state.
COLOURED = {
    "eye": "I",
    "q": r"\query{q}",
    "Q": r"\query{Q}",
    "k": r"\key{k}",
    "K": r"\key{K}",
    "v": r"\value{v}",
    "V": r"\value{V}",
    "S": r"\state{S}",
}

# name of a function -> how its call is written; #1, #2 stand for the arguments
WRITTEN = {
    "sqrt": r"\sqrt{#1}",
    "abs": r"\left|#1\right|",
    "norm": r"\left\|#1\right\|",
    "floor": r"\left\lfloor #1 \right\rfloor",
    "ceil": r"\left\lceil #1 \right\rceil",
    "plus": r"\left[#1\right]_+",
    "diag": r"\mathrm{Diag}(#1)",
    "sign": r"\mathrm{sign}(#1)",
    "softmax": r"\mathrm{softmax}(#1)",
    "tril": r"\mathrm{tril}(#1)",
    "mean": r"\mathrm{mean}(#1)",
    "binom": r"\binom{#1}{#2}",
    "log": r"\log #1",
    "log10": r"\log_{10} #1",
    "cos": r"\cos #1",
    "sin": r"\sin #1",
    "tanh": r"\tanh #1",
}
WORDS = {"log", "log10", "cos", "sin", "tanh"}  # brackets only around more than an atom

COMPUTED: dict[str, Any] = {
    "exp": np.exp,
    "sqrt": np.sqrt,
    "abs": np.abs,
    "norm": np.linalg.norm,
    "floor": np.floor,
    "ceil": np.ceil,
    "plus": lambda x: np.maximum(x, 0.0),
    "diag": lambda x: np.diag(np.ravel(x)),
    "sign": np.sign,
    "softmax": lambda x: np.exp(x) / np.sum(np.exp(x)),
    "tril": np.tril,
    "mean": np.mean,
    "log": np.log,
    "log10": np.log10,
    "cos": np.cos,
    "sin": np.sin,
    "tanh": np.tanh,
    "sum": sum,
    "prod": math.prod,
    "max": max,
    "min": min,
    "argmax": lambda xs: int(np.argmax(list(xs))),
    "argmin": lambda xs: int(np.argmin(list(xs))),
    "range": range,
    "len": len,
    "matrix": np.array,
    "binom": math.comb,
}
OVER = {
    "sum": r"\sum",
    "prod": r"\prod",
    "max": r"\max",
    "min": r"\min",
    "argmax": r"\arg\max",
    "argmin": r"\arg\min",
}
RELATIONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "=",
    ast.NotEq: r"\ne",
    ast.Lt: "<",
    ast.LtE: r"\le",
    ast.Gt: ">",
    ast.GtE: r"\ge",
}
ADD, TIMES, POWER, ATOM = 1, 2, 3, 4


@dataclass(frozen=True)
class Formula:
    """One displayed formula.

    sides are expressions that agree on everything that draw gives; function is what
    labcore returns there. One of the two, or draw, runs each operation that is named.
    defines is printed in front and not computed: the name of what the sides are.
    """

    id: str
    chapter: str
    sides: tuple[str, ...]
    draw: Callable[[np.random.Generator], Inputs]
    operations: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()  # in place of both, for a rule of labcore itself
    function: Callable[..., Any] | None = None
    defines: str = ""
    relation: str = "="
    where: str = ""  # a condition, as TeX, that is printed behind
    symbols: Mapping[str, str] = field(default_factory=dict)
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)

    @property
    def tex(self) -> str:
        """The formula as it is displayed."""
        printed = [
            tex(side, self.symbols) for side in (self.defines, *self.sides) if side
        ]
        return f" {self.relation} ".join(printed) + self.where

    def value(self, side: str, inputs: Inputs) -> Any:
        """One side, computed."""
        return value(side, {**inputs, **self.functions})

    def values(self, inputs: Inputs) -> list[Any]:
        """All that must agree: what the function returns, and each side."""
        sides = [self.value(side, inputs) for side in self.sides]
        if self.function is None:
            return sides
        wanted = inspect.signature(self.function).parameters
        returned = self.function(**{name: inputs[name] for name in wanted})
        return [returned, *sides]


@dataclass(frozen=True)
class Unchecked:
    """A displayed formula that is only TeX, with the reason."""

    id: str
    chapter: str
    tex: str
    why: str


FORMULAS: dict[str, Formula] = {}
UNCHECKED: dict[str, Unchecked] = {}


def formula(id: str, *sides: str, **more: Any) -> None:
    """Register a formula."""
    if id in FORMULAS or id in UNCHECKED:
        raise ValueError(f"two formulas are called {id!r}")
    FORMULAS[id] = Formula(id, sides=sides, **more)


def unchecked(id: str, tex: str, *, chapter: str, why: str) -> None:
    """Register a formula that cannot be built from an expression."""
    if id in FORMULAS or id in UNCHECKED:
        raise ValueError(f"two formulas are called {id!r}")
    UNCHECKED[id] = Unchecked(id, chapter, tex, why)


def value(expression: str, names: Inputs) -> Any:
    """The expression, computed with these names.

    >>> value("exp(x) / sum(exp(y) for y in (x, x))", {"x": 3.0})
    np.float64(0.5)
    """
    tree = ast.fix_missing_locations(_Cases().visit(ast.parse(expression, mode="eval")))
    code = compile(tree, "<formula>", "eval")
    return eval(code, {"__builtins__": {}, "_case": _case, **COMPUTED, **names})


class _Cases(ast.NodeTransformer):
    """Lets ``a if test else b`` choose entry by entry where the test is an array."""

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        self.generic_visit(node)
        nothing = ast.parse("lambda: 0", mode="eval").body
        assert isinstance(nothing, ast.Lambda)
        yes, no = (ast.Lambda(nothing.args, part) for part in (node.body, node.orelse))
        return ast.Call(ast.Name("_case", ast.Load()), [node.test, yes, no], [])


def _case(test: Any, yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
    if isinstance(test, np.ndarray):
        return np.where(test, yes(), no())
    return yes() if test else no()


def tex(expression: str, symbols: Mapping[str, str] | None = None) -> str:
    r"""The expression, written.

    >>> tex("S + beta * k @ v.T")
    '\\state{S} + \\beta\\, \\key{k}\\, \\value{v}^\\top'
    >>> tex("sum(w[i, j] * v[j] for j in range(i + 1)) / sqrt(d_k)")
    '\\frac{\\sum_{j \\le i} w_{ij}\\, \\value{v_j}}{\\sqrt{d_k}}'
    """
    return _Writer({**COLOURED, **(symbols or {})}).write(
        ast.parse(expression, mode="eval").body
    )


class _Writer:
    """Writes a syntax tree as TeX."""

    def __init__(self, symbols: Mapping[str, str]) -> None:
        self.symbols = symbols
        self.inline = False  # inside an exponent or an index

    def write(self, node: ast.expr, binding: int = 0) -> str:
        """The node, in brackets if it binds less than what stands around it."""
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            raise ValueError(f"no way to write {ast.unparse(node)!r}")
        text, binds = method(node)
        return bracket(text) if binds < binding else text

    def small(self, node: ast.expr) -> str:
        """The node in an exponent or an index, where quotients are inline."""
        before, self.inline = self.inline, True
        text = self.write(node)
        self.inline = before
        return text

    def _name(self, node: ast.Name) -> tuple[str, int]:
        name = node.id
        if name in self.symbols:
            return self.symbols[name], ATOM
        stem, _, index = name.partition("_")
        letter = self.symbols.get(stem) or (rf"\{stem}" if stem in GREEK else stem)
        if not index:
            return letter, ATOM
        index = rf"\{index}" if index in GREEK else index
        return subscript(letter, index), ATOM

    def _constant(self, node: ast.Constant) -> tuple[str, int]:
        if not isinstance(node.value, (int, float)):
            raise ValueError(f"no way to write {node.value!r}")
        return f"{node.value:g}", ATOM

    def _subscript(self, node: ast.Subscript) -> tuple[str, int]:
        indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        written = [self.small(index) for index in indices]
        comma = any(len(re.sub(r"\\\w+", "x", index)) > 1 for index in written)
        separator = ", " if comma and len(written) > 1 else ""
        return subscript(self.write(node.value, ATOM), separator.join(written)), ATOM

    def _slice(self, node: ast.Slice) -> tuple[str, int]:
        """Everything before an end: x[:t] and, with the end itself, x[:t + 1]."""
        if node.lower or node.step or node.upper is None:
            raise ValueError(f"no way to write {ast.unparse(node)!r}")
        relation, end = self._end(node.upper)
        return rf"{relation} {end}" if relation == r"\le" else f"{relation}{end}", ADD

    def _end(self, high: ast.expr) -> tuple[str, str]:
        """The relation to an end and the end: < high, or <= where it ends in + 1."""
        closed = isinstance(high, ast.BinOp) and ast.unparse(high).endswith(" + 1")
        end = high.left if closed and isinstance(high, ast.BinOp) else high
        return r"\le" if closed else "<", self.small(end)

    def _attribute(self, node: ast.Attribute) -> tuple[str, int]:
        if node.attr != "T":
            raise ValueError(f"no way to write .{node.attr}")
        return self.write(node.value, ATOM) + r"^\top", ATOM

    def _unaryop(self, node: ast.UnaryOp) -> tuple[str, int]:
        sign = {ast.USub: "-", ast.UAdd: "+"}.get(type(node.op))
        if sign is None:
            raise ValueError(f"no way to write {ast.unparse(node)!r}")
        return sign + self.write(node.operand, TIMES), ADD

    def _binop(self, node: ast.BinOp) -> tuple[str, int]:
        op, left, right = node.op, node.left, node.right
        if isinstance(op, ast.Pow):
            return superscript(self.write(left, ATOM), self.small(right)), POWER
        if isinstance(op, ast.Add):
            return f"{self.write(left, ADD)} + {self.write(right, ADD)}", ADD
        if isinstance(op, ast.Sub):
            return f"{self.write(left, ADD)} - {self.write(right, TIMES)}", ADD
        if isinstance(op, (ast.Mult, ast.MatMult, ast.Div)) and is_minus(left):
            positive = ast.BinOp(left.operand, op, right)
            return f"-{self.write(positive, TIMES)}", ADD
        if isinstance(op, (ast.Mult, ast.MatMult)):
            # a * (b * c) keeps the brackets that somebody typed
            first = self.write(left, TIMES)
            second = self.write(right, POWER if is_product(right) else TIMES)
            if is_sum(left):
                first = bracket(first)
            dot = r" \cdot " if second[0].isdigit() else r"\, "
            if self.inline and first.isdigit() and not second[0].isdigit():
                dot = " "  # 2 i in an index or an exponent
            return f"{first}{dot}{second}", TIMES
        if isinstance(op, ast.Div):
            if self.inline:
                return f"{self.write(left, TIMES)} / {self.write(right, POWER)}", TIMES
            return rf"\frac{{{self.write(left)}}}{{{self.write(right)}}}", ATOM
        raise ValueError(f"no way to write {ast.unparse(node)!r}")

    def _compare(self, node: ast.Compare) -> tuple[str, int]:
        text = self.write(node.left)
        for op, right in zip(node.ops, node.comparators, strict=True):
            text += f" {RELATIONS[type(op)]} {self.write(right)}"
        return text, 0

    def _ifexp(self, node: ast.IfExp) -> tuple[str, int]:
        yes, when = self.write(node.body), self.write(node.test)
        no = self.write(node.orelse)
        rows = rf"{yes} & {when} \\ {no} & \text{{else}}"
        return rf"\begin{{cases}} {rows} \end{{cases}}", ATOM

    def _call(self, node: ast.Call) -> tuple[str, int]:
        if isinstance(node.func, ast.Subscript):  # a[i](x), one of several functions
            inside = r",\, ".join(self.write(argument) for argument in node.args)
            return f"{self.write(node.func)}({inside})", ATOM
        if not isinstance(node.func, ast.Name):
            raise ValueError(f"no way to write {ast.unparse(node)!r}")
        name, arguments = node.func.id, node.args
        if name in OVER and isinstance(arguments[0], ast.GeneratorExp):
            return self._over(OVER[name], arguments[0])
        if name == "exp":
            return superscript("e", self.small(arguments[0])), POWER
        if name == "matrix":
            return self._matrix(arguments[0]), ATOM
        form = self.symbols.get(f"{name}()", WRITTEN.get(name))
        if form is None:
            inside = r",\, ".join(self.write(argument) for argument in arguments)
            head = OVER.get(name) or self.symbols.get(name)
            head = head or (rf"\{name}" if name in GREEK else name)
            return f"{head}{bracket(inside)}", ATOM
        written = []
        for argument in arguments:
            atom = ATOM if name in WORDS else 0
            written.append(self.write(argument, atom))
        for place, text in enumerate(written, 1):
            form = form.replace(f"(#{place})", bracket(text))
            form = form.replace(f"#{place}", text)
        return form, POWER if name in WORDS else ATOM

    def _over(self, sign: str, generator: ast.GeneratorExp) -> tuple[str, int]:
        below = [self._range(part) for part in generator.generators]
        body = self.write(generator.elt, TIMES)
        return f"{subscript(sign, ', '.join(below))} {body}", TIMES

    def _range(self, part: ast.comprehension) -> str:
        """j over all, j < i, j <= i or a set: as the range says."""
        if part.ifs:
            raise ValueError(f"no way to write {ast.unparse(part)!r}")
        index = self.small(part.target)
        over = part.iter
        if not (isinstance(over, ast.Call) and ast.unparse(over.func) == "range"):
            return rf"{index} \in {self.small(over)}"
        *low, high = over.args
        if isinstance(high, ast.Call) and ast.unparse(high.func) == "len":
            if not low:
                return index
            relation, start = self._end(low[0])
            return rf"{index} {'>' if relation != '<' else RELATIONS[ast.GtE]} {start}"
        relation, end = self._end(high)
        start = rf"{self.small(low[0])} \le " if low else ""
        return f"{start}{index} {relation} {end}"

    def _matrix(self, rows: ast.expr) -> str:
        if not isinstance(rows, ast.List):
            raise ValueError("a matrix is a list of rows")
        lines = [
            " & ".join(self.write(entry) for entry in row.elts)
            for row in rows.elts
            if isinstance(row, ast.List)
        ]
        return r"\begin{pmatrix} " + r" \\ ".join(lines) + r" \end{pmatrix}"


def is_minus(node: ast.expr) -> TypeGuard[ast.UnaryOp]:
    """Whether it is the negative of something."""
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)


def is_product(node: ast.expr) -> bool:
    """Whether it is written as factors beside each other."""
    return isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.MatMult))


def is_sum(node: ast.expr) -> bool:
    """Whether what follows would be read as part of it."""
    return (
        isinstance(node, ast.Call)
        and bool(node.args)
        and isinstance(node.args[0], ast.GeneratorExp)
    )


def bracket(text: str) -> str:
    """Round brackets, tall where what they hold is."""
    if re.search(r"\\(frac|sum|prod|binom)", text):
        return rf"\left({text}\right)"
    return f"({text})"


def superscript(letter: str, exponent: str) -> str:
    """The exponent, in braces if it is more than one letter."""
    return f"{letter}^{exponent if len(exponent) == 1 else f'{{{exponent}}}'}"


def subscript(letter: str, index: str) -> str:
    r"""The index, inside the colour of its letter.

    >>> subscript(r"\query{q}", "ij"), subscript("w", "i")
    ('\\query{q_{ij}}', 'w_i')
    """
    index = index if len(index) == 1 else f"{{{index}}}"
    coloured = re.fullmatch(r"(\\(?:query|key|value|state))\{(.*)\}", letter)
    if coloured:
        return f"{coloured[1]}{{{coloured[2]}_{index}}}"
    return f"{letter}_{index}"
