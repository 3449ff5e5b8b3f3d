"""A displayed formula is the expression that is computed here."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from labcore.formulas import FORMULAS, UNCHECKED, Formula, tex
from labcore.identities import CHECKS
from labcore.ops import _op

SEEDS = range(3)
# Formulas whose operands say nothing about these changes, each with the reason.
EQUIVALENT: dict[str, str] = {}


def worst(formula: Formula, seeds: Any = SEEDS) -> float:
    """The largest difference between what must agree, in parts of the scale."""
    errors = []
    for seed in seeds:
        inputs = formula.draw(np.random.default_rng([seed, len(formula.id)]))
        first, *others = [np.squeeze(x) for x in formula.values(inputs)]
        for other in others:
            if np.shape(first) != np.shape(other):
                return np.inf
            scale = max(1.0, np.max(np.abs(np.asarray(first, float)), initial=0.0))
            gap = np.asarray(first, float) - np.asarray(other, float)
            errors.append(np.max(np.abs(gap), initial=0.0) / scale)
    return float(max(errors))


@pytest.mark.parametrize("id", FORMULAS)
def test_the_sides_and_the_function_agree(id: str):
    formula = FORMULAS[id]
    assert len(formula.sides) + (formula.function is not None) >= 2
    assert worst(formula) < 1e-9


@pytest.mark.parametrize("id", FORMULAS)
def test_it_runs_the_operations_that_it_names(id: str):
    formula = FORMULAS[id]
    for tool in formula.tools:  # it states no identity but a rule of labcore itself
        module, _, name = tool.partition(".")
        assert callable(getattr(import_module(f"labcore.{module}"), name))
    if formula.tools:
        return
    with _op.reached() as names:
        formula.values(formula.draw(np.random.default_rng(0)))
    assert formula.operations and set(formula.operations) <= set(names)


@pytest.mark.parametrize("id", [*FORMULAS])
def test_it_names_checks_that_reach_its_operations(id: str):
    from labcore.identities import recorded

    formula = FORMULAS[id]
    assert formula.checks or formula.tools
    for check in formula.checks:
        assert check in CHECKS, check
        reaches = {op for op, ids in recorded()["reach"].items() if check in ids}
        assert reaches & set(formula.operations), (check, reaches)


# ---- A changed expression is noticed ------------------------------------------------


def changed(expression: str) -> Iterator[str]:
    """The expression with one sign, exponent, constant, relation or range changed."""
    tree = ast.parse(expression, mode="eval")
    for place, node in enumerate(ast.walk(tree)):
        for wrong in changes(node):
            other = copy.deepcopy(tree)
            target = list(ast.walk(other))[place]
            target.__dict__.update(wrong)
            yield ast.unparse(ast.fix_missing_locations(other))


def changes(node: ast.AST) -> list[dict[str, Any]]:
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Add):
            return [{"op": ast.Sub()}]
        if isinstance(node.op, ast.Sub):
            return [{"op": ast.Add()}]
        if isinstance(node.op, ast.Pow):
            one = ast.Constant(1)
            return [{"right": ast.BinOp(node.right, ast.Add(), one)}]
    if isinstance(node, ast.Compare):
        turned = {ast.Lt: ast.Gt, ast.LtE: ast.Gt, ast.Gt: ast.Lt, ast.GtE: ast.Lt}
        op = type(node.ops[0])
        return [{"ops": [turned[op](), *node.ops[1:]]}] if op in turned else []
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "range":
        *low, high = node.args
        if not ast.unparse(high).startswith("len("):
            less = ast.BinOp(high, ast.Sub(), ast.Constant(1))
            return [{"args": [*low, less]}]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return [{"op": ast.UAdd()}]
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return [{"value": node.value + 1}]
    return []


MUTANTS = [
    pytest.param(id, place, wrong, id=f"{id}-{place}-{n}")
    for id, formula in FORMULAS.items()
    for place, side in enumerate(formula.sides)
    for n, wrong in enumerate(changed(side))
]


@pytest.mark.parametrize(("id", "place", "wrong"), MUTANTS)
def test_a_changed_sign_exponent_or_constant_is_noticed(
    id: str, place: int, wrong: str
):
    formula = FORMULAS[id]
    sides = [*formula.sides]
    sides[place] = wrong
    other = Formula(**{**vars(formula), "sides": tuple(sides)})
    try:
        error = worst(other)
    except (ValueError, IndexError, ZeroDivisionError, KeyError, TypeError):
        return  # it cannot even be computed
    assert not error < 1e-6, f"{wrong} passes for {formula.sides[place]}"
    assert tex(wrong, formula.symbols) != tex(formula.sides[place], formula.symbols)


def test_the_changes_are_many():
    assert len(MUTANTS) >= 3


# ---- Writing ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "written"),
    [
        ("a - (b - c)", "a - (b - c)"),
        ("a - b - c", "a - b - c"),
        ("(a + b) * c", r"(a + b)\, c"),
        ("a * b / c", r"\frac{a\, b}{c}"),
        ("-(a - b) / c", r"-\frac{a - b}{c}"),
        ("exp(-(a - b) / c)", "e^{-(a - b) / c}"),
        ("(-a) ** 2", "(-a)^2"),
        ("alpha ** (gamma + 1)", r"\alpha^{\gamma + 1}"),
        ("q[i].T @ k[j]", r"\query{q_i}^\top\, \key{k_j}"),
        ("w[i, j]", "w_{ij}"),
        ("S[t - 1]", r"\state{S_{t - 1}}"),
        ("V[:t]", r"\value{V_{<t}}"),
        ("x[: t + 1]", r"x_{\le t}"),
        ("d_k", "d_k"),
        ("n_max", "n_{max}"),
        (
            "(1 - sum(a[y] for y in range(len(a)))) * r",
            r"\left(1 - \sum_y a_y\right)\, r",
        ),
        ("sum(a[j] for j in range(len(a))) * b", r"\left(\sum_j a_j\right)\, b"),
        ("max(s[j] for j in range(len(s)))", r"\max_j s_j"),
        ("max(a, b)", r"\max(a,\, b)"),
        ("sum(a[j] for j in range(i))", r"\sum_{j < i} a_j"),
        ("sum(a[j] for j in range(i + 1))", r"\sum_{j \le i} a_j"),
        ("sum(a[j] for j in range(i, len(a)))", r"\sum_{j \ge i} a_j"),
        ("sum(a[j] for j in range(i + 1, len(a)))", r"\sum_{j > i} a_j"),
        ("a[i](x[i])", "a_i(x_i)"),
        ("sum(a[j] for j in range(1, i + 1))", r"\sum_{1 \le j \le i} a_j"),
        ("log(p / q)", r"\log \frac{p}{\query{q}}"),
        ("log(1 + exp(x))", r"\log (1 + e^x)"),
        (
            "x + 1 if x >= 0 else exp(x)",
            r"\begin{cases} x + 1 & x \ge 0 \\ e^x & \text{else} \end{cases}",
        ),
        ("matrix([[a, -b], [b, a]])", r"\begin{pmatrix} a & -b \\ b & a \end{pmatrix}"),
        ("q.T @ (W @ c)", r"\query{q}^\top\, (W\, c)"),
        ("q.T @ W @ c", r"\query{q}^\top\, W\, c"),
        ("k[:t]", r"\key{k_{<t}}"),
        ("k[: t + 1]", r"\key{k_{\le t}}"),
        ("x[2 * i + 1] ** (-(2 * i) / d)", "x_{2 i + 1}^{-2 i / d}"),
        ("2 * x", r"2\, x"),
        ("x * 2", r"x \cdot 2"),
    ],
)
def test_how_an_expression_is_written(expression: str, written: str):
    assert tex(expression) == written


@pytest.mark.parametrize(
    "expression",
    [
        "not x",
        "x.real",
        "x if y",
        "f'{x}'",
        "x // y",
        "x[1:]",
        "sum(x for x in y if x > 0)",
    ],
)
def test_what_cannot_be_written_is_refused(expression: str):
    with pytest.raises((ValueError, SyntaxError)):
        tex(expression)


def test_no_two_formulas_print_the_same():
    printed = [f.tex for f in (*FORMULAS.values(), *UNCHECKED.values())]
    assert len(set(printed)) == len(printed)
