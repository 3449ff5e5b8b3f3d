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
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
from IPython.display import HTML, Markdown, display

from . import contents, indexes, report
from .identities import CHECKS, FAULTS, recorded, run
from .lab import broken
from .notebook import dressed
from .ops import _op
from .quiz import map_html, quiz_html

LONGEST_UNBROKEN = 16  # characters of a number that stay in one line: no 1e- and 12


def _show(content: str) -> None:
    display(HTML(dressed(content)))


def say(template: str, **values: Any) -> None:
    """Print a sentence whose results are filled in by the run.

    ``{name}`` is replaced by a formatted number, ``{name!b}`` by its upper bound as a
    power of ten (for rounding errors). ``$...$`` is mathematics, a backtick is code.
    """
    _show(f'<p class="say">{_sentence(template, values)}</p>')


def _sentence(template: str, values: dict[str, Any]) -> str:
    used = set()

    def fill(match: re.Match[str]) -> str:
        name, as_bound = match[1], match[2]
        used.add(name)
        value = values[name]
        blank = isinstance(value, str) and not value
        if value is None or np.size(value) == 0 or blank or _is_nan(value):
            raise ValueError(f"{name} has no value: {value!r}")
        text = report.bound(value) if as_bound else _written(value)
        told = f"<data>{html.escape(text)}</data>"
        whole = len(text) <= LONGEST_UNBROKEN
        return f'<span class="nb">{told}</span>' if whole else told

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


def _is_nan(value: Any) -> bool:
    return isinstance(value, (float, np.floating)) and bool(np.isnan(value))


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


def facts(*chapters: str, minutes: int, before: str) -> None:
    """The line under the question: how much is checked, how long it takes."""
    checks = [c for c in CHECKS.values() if c.chapter in chapters]
    faults = [f for f in FAULTS.values() if f.chapter in chapters]
    spans = (
        f"<data>{len(checks)}</data> checks",
        f"<data>{len(faults)}</data> faults",
        f"{minutes} minutes",
        f"before this: {before}",
    )
    body = " ".join(f"<span>{span}</span>" for span in spans)
    _show(f'<p class="facts">{body}</p>')


def show_checks(
    *ids: str,
    caption: str,
    fault: str | None = None,
    red: Collection[str] = (),
    seed: int = 184,
) -> None:
    """Run these checks, with a fault in place if one is named, and show them.

    What should hold and is broken, or should be broken and holds, is an error: a page
    that was written for the one must not show the other. red: what a block around the
    call is meant to break.
    """
    with broken(fault) if fault else nullcontext():
        verdicts = [run(CHECKS[id], seed) for id in ids]
    _show(report.checks_html(verdicts, caption))
    red = recorded()["faults"][fault]["red"] if fault else red
    surprising = [v.check.id for v in verdicts if v.held == (v.check.id in red)]
    if surprising:
        what = f"with {fault}" if fault else "with the right version"
        raise AssertionError(f"{what}, not as recorded: {', '.join(surprising)}")


def show_chapter(chapter: str, *, seed: int = 184) -> None:
    """Run every check of a chapter and show them in one table."""
    ids = (c.id for c in CHECKS.values() if c.chapter == chapter)
    show_checks(*ids, caption=f"The right version, seed {seed}.", seed=seed)


def show_examples(chapter: str) -> None:
    """Run the worked examples of a chapter; each opens to its givens and output."""
    _show(report.examples_html(chapter))


def show_named(chapter: str) -> None:
    """Where each named check of the worked examples stands in this chapter."""
    _show(report.named_html(chapter))


def show_index(index: str, *which: str) -> None:
    """An index of the book: formulas, unchecked, checks of a chapter, examples."""
    _show(getattr(indexes, index)(*which))


def opening() -> None:
    """The picture of all checks, and how many there are."""
    from .figures import matrix

    picture = matrix.margins([c.slug for c in contents.chapters()], pitch=0.9)
    rows = recorded()["checks"].values()
    worst = max(row["floor"] for row in rows if row["kind"] in ("equal", "value"))
    told = {
        "checks hold": len(CHECKS),
        "faults caught": len(FAULTS),
        "largest error measured": report.number(worst),
    }
    tally = "".join(
        f"<div><dt>{what}</dt><dd><data>{value}</data></dd></div>"
        for what, value in told.items()
    )
    _show(
        f'<div class="opening">{picture._repr_html_()}'
        f'<dl class="tally">{tally}</dl></div>'
    )


def quiz(chapter: str, *only: str) -> None:
    """Pick a fault, predict what it breaks: a form, or without a script a table.

    only: ids of some of the chapter's faults; without them all are asked.
    """
    _show(quiz_html(chapter, *only))


def quiz_map(pages: Mapping[str, str] | None = None) -> None:
    """What has been predicted right so far; pages: chapter -> address of its page.

    Without pages: all chapters, seen from the opening page.
    """
    if pages is None:
        pages = {c.slug: f"{contents.page(c.slug)}.html" for c in contents.chapters()}
    _show(map_html(pages))


def scrubber(
    dial: str,
    frames: Sequence[tuple[str, dict[str, Any], Any]],
    *,
    caption: str,
    start: int = 0,
) -> None:
    """A dial over frames that are computed beforehand: it works without a script.

    frames: (the dial's value, the readout by name, a figure or HTML), about nine of
    them. A radio group drawn as a track: arrow keys move, and on paper every frame
    shows. The readouts and the figures' numbers follow as a table.
    """
    name = f"dial{zlib.crc32(repr([dial, [f[:2] for f in frames]]).encode()):08x}"
    parts, ticks = [], []
    for i, (value, readout, figure) in enumerate(frames):
        told = "".join(
            f"<span>{html.escape(key)} <data>{html.escape(_written(x))}</data></span>"
            for key, x in {dial: value, **readout}.items()
        )
        parts.append(
            f'<input type="radio" name="{name}" id="{name}-{i}"'
            f' aria-label="{html.escape(f"{dial} {value}")}"'
            f"{' checked' if i == start else ''}>"
            f'<div class="frame"><p class="read">{told}</p>{_frame(figure)}</div>'
        )
        ticks.append(f'<label for="{name}-{i}">{html.escape(value)}</label>')
    _show(
        f'<fieldset class="scrub"><legend>{html.escape(dial)}: choose a value, or '
        f"move with the arrow keys</legend>{''.join(parts)}"
        f'<div class="ticks" aria-hidden="true">{"".join(ticks)}</div></fieldset>'
        f'<p class="scrub-caption">{_sentence(caption, {})}</p>'
        "<details><summary>The numbers of every frame</summary>"
        f"{_numbers_of(dial, frames)}</details>"
    )


def _frame(figure: Any) -> str:
    """A figure without its table; HTML as it is."""
    if isinstance(figure, str):
        return figure
    return (
        f'<figure class="fig">{figure.svg}'
        f"<figcaption><b>{html.escape(figure.finding)}</b> "
        f"{html.escape(figure.caption)}</figcaption></figure>"
    )


def _numbers_of(dial: str, frames: Sequence[tuple[str, dict[str, Any], Any]]) -> str:
    first = frames[0]
    columns = [dial, *first[1], *getattr(first[2], "columns", ())]
    rows = [
        [value, *readout.values(), *numbers]
        for value, readout, figure in frames
        for numbers in getattr(figure, "rows", [()])
    ]
    head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(_written(x))}</td>" for x in row) + "</tr>"
        for row in rows
    )
    return (
        f'<table class="nums"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>"
    )


def stays_green(fault: str) -> str:
    """The obvious check that a fault leaves green."""
    return FAULTS[fault].stays_green


def breaks(fault: str) -> list[str]:
    """The checks that a fault is recorded to break."""
    return list(recorded()["faults"][fault]["red"])
