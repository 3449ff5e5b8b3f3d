"""What the chapters call to show things. Needs IPython.

Sentences that carry results are printed by :func:`say`, so that they change when the
run does; source, checks and predictions come from labcore itself.
"""

from __future__ import annotations

import ast
import html
import inspect
import re
import textwrap
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
from IPython.display import HTML, Markdown, display

from . import report
from .identities import CHECKS, FAULTS, recorded, run
from .lab import broken
from .ops import _op


def say(template: str, **values: Any) -> None:
    """Print a sentence whose results are filled in by the run.

    ``{name}`` is replaced by a formatted number, ``{name!b}`` by its upper bound as a
    power of ten (for rounding errors). ``$...$`` is mathematics, a backtick is code.
    """
    display(HTML(f'<p class="say">{_sentence(template, values)}</p>'))


def _sentence(template: str, values: dict[str, Any]) -> str:
    used = set()

    def fill(match: re.Match[str]) -> str:
        name, as_bound = match[1], match[2]
        used.add(name)
        value = values[name]
        text = report.bound(value) if as_bound else _written(value)
        return f"<data>{html.escape(text)}</data>"

    pieces = re.split(r"(\$[^$]+\$|`[^`]+`)", template)
    out = []
    for piece in pieces:
        if piece.startswith("$"):
            tex = html.escape(piece[1:-1])
            out.append(f'<span class="math notranslate nohighlight">\\({tex}\\)</span>')
        elif piece.startswith("`"):
            out.append(f"<code>{html.escape(piece[1:-1])}</code>")
        else:
            out.append(re.sub(r"\{(\w+)(!b)?\}", fill, html.escape(piece)))
    unused = set(values) - used
    if unused:
        raise ValueError(f"say was given values it does not use: {sorted(unused)}")
    return "".join(out)


def _written(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)) or np.ndim(value):
        parts = ", ".join(_written(part) for part in report.plain(value))
        return f"({parts})"
    return report.number(0.0 if abs(value) < 1e-12 else value)


def show_json(document: Any) -> None:
    """Print a document as the programs do, its numbers as they are read."""
    print(report.as_json(report.rounded(document)))


def show_source(*operations: Callable[..., Any] | str) -> None:
    """The source of operations as they run, without docstring and decorator."""
    parts = [_source(o if isinstance(o, str) else o.__name__) for o in operations]
    display(Markdown("```python\n" + "\n\n".join(parts) + "\n```"))


def _source(name: str) -> str:
    """The lines that run, under a signature without annotations."""
    text = textwrap.dedent(inspect.getsource(_op.OPS[name]))
    function = ast.parse(text).body[0]
    assert isinstance(function, ast.FunctionDef)
    body = function.body[1:] if ast.get_docstring(function) else function.body
    for argument in ast.walk(function.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    signature = f"def {name}({ast.unparse(function.args)}):"
    if len(signature) > 72:
        signature = signature.replace(", *, ", ",\n        *, ", 1)
    lines = text.splitlines()[body[0].lineno - 1 :]
    return "\n".join([signature, *lines])


def facts(chapter: str, *, minutes: int, before: str) -> None:
    """The line under the question: how much is checked, how long it takes."""
    checks = [c for c in CHECKS.values() if c.chapter == chapter]
    faults = [f for f in FAULTS.values() if f.chapter == chapter]
    spans = (
        f"<data>{len(checks)}</data> checks",
        f"<data>{len(faults)}</data> faults",
        f"{minutes} minutes",
        f"before this: {before}",
    )
    body = " ".join(f"<span>{span}</span>" for span in spans)
    display(HTML(f'<p class="facts">{body}</p>'))


def show_checks(
    *ids: str, caption: str, fault: str | None = None, seed: int = 184
) -> None:
    """Run these checks, with a fault in place if one is named, and show them."""
    with broken(fault) if fault else nullcontext():
        verdicts = [run(CHECKS[id], seed) for id in ids]
    display(HTML(report.checks_html(verdicts, caption)))


def show_chapter(chapter: str, caption: str) -> None:
    """Run every check of a chapter and show them in one table."""
    show_checks(
        *(c.id for c in CHECKS.values() if c.chapter == chapter), caption=caption
    )


def quiz(chapter: str) -> None:
    """The faults of a chapter and what each breaks, behind a disclosure."""
    display(
        HTML(
            '<details class="quiz-table"><summary>What each fault breaks, and an '
            "obvious check that stays green</summary>"
            f"{report.faults_html(chapter)}</details>"
        )
    )


def stays_green(fault: str) -> str:
    """The obvious check that a fault leaves green."""
    return FAULTS[fault].stays_green


def breaks(fault: str) -> list[str]:
    """The checks that a fault is recorded to break."""
    return list(recorded()["faults"][fault]["red"])
