"""Results as text, JSON and HTML, and the one way this course writes a number."""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from .examples import EXAMPLES, NAMED_CHECKS
from .identities import CHECKS, FAULTS, Check, Fault, Verdict, recorded

DIGITS = 6
NOISE = 1e-12  # below it the digits of an error differ between processors
RELATIVE = "Errors are relative to the largest number wanted."


def number(x: Any) -> str:
    """A number for reading: six significant digits, no trailing zeros.

    >>> number(3.870665350571926), number(0.25), number(1e-13), number(7), number(True)
    ('3.87067', '0.25', '1e-13', '7', 'True')
    >>> number(float("-inf")), number(-0.0)
    ('-inf', '0')
    """
    if isinstance(x, (bool, np.bool_, int, np.integer)):
        return str(x)
    value = float(x)
    if value == 0:
        return "0"
    text = f"{value:.{DIGITS}g}"
    mantissa, e, exponent = text.partition("e")
    return f"{mantissa}e{int(exponent)}" if e else text


def bound(error: float) -> str:
    """Rounding noise as an upper bound, a power of ten.

    The digits of a rounding error differ from one processor to the next, this does
    not: nothing below 1e-12 is told apart.

    >>> bound(2.2e-16), bound(0.0), bound(3e-9)
    ('below 1e-12', 'below 1e-12', 'below 1e-8')
    """
    if not math.isfinite(error):
        return "no number"
    exponent = math.floor(math.log10(error)) + 1 if error > 1e-12 else -12
    return f"below 1e{exponent}"


def plain(x: Any) -> Any:
    """Arrays, tuples and NumPy scalars as what JSON knows; infinities as strings.

    >>> plain({"a": np.float64(0.5), "b": np.array([1, 2]), "c": -np.inf})
    {'a': 0.5, 'b': [1, 2], 'c': '-inf'}
    """
    if isinstance(x, Mapping):
        return {str(key): plain(value) for key, value in x.items()}
    if isinstance(x, (np.ndarray, np.generic)):
        return plain(x.tolist())
    if isinstance(x, (list, tuple)):
        return [plain(part) for part in x]
    if isinstance(x, float) and not math.isfinite(x):
        return str(x)
    return x


def as_json(document: Any, *, ascii: bool = True) -> str:
    """Valid JSON in ASCII, so that it survives every terminal and locale.

    Without ascii, for a page, Chinese stays as it is read.

    >>> print(as_json({"S": np.eye(2)}))
    {
      "S": [[1.0, 0.0], [0.0, 1.0]]
    }
    >>> print(as_json({"scores": [0.5, -np.inf]}))
    {
      "scores": [0.5, "-inf"]
    }
    """
    text = json.dumps(plain(document), indent=2, allow_nan=False, ensure_ascii=ascii)
    flat = r"[^\[\]{}\"]|\"-?inf\"|\"nan\""  # numbers, and what stands for one
    row = re.compile(rf"\[\s+((?:{flat}|\[(?:(?!\n)(?:{flat}))*\])*?)\s+\]")
    while row.search(text):  # numbers in one line, rows inside it first
        text = row.sub(lambda m: "[" + re.sub(r"\s*\n\s*", " ", m[1]) + "]", text)
    return text


def rounded(x: Any) -> Any:
    """The same document with its numbers as they are read: six significant digits.

    Rounding noise below 1e-12 of nothing becomes 0, so that a printed document is the
    same on every processor.

    >>> rounded({"a": [1 / 3, 1e-17], "b": 4})
    {'a': [0.333333, 0.0], 'b': 4}
    """
    x = plain(x)
    if isinstance(x, dict):
        return {key: rounded(value) for key, value in x.items()}
    if isinstance(x, list):
        return [rounded(part) for part in x]
    if isinstance(x, float):
        return 0.0 if abs(x) < 1e-12 else float(f"{x:.{DIGITS}g}")
    return x


def bounded(x: Any) -> Any:
    """The same document with each rounding error that it reports as an upper bound.

    The bound is a wide one: a difference quotient of step h is off by eps / h, and by
    how much exactly is up to the processor.

    >>> bounded({"checks": {"max_error": 1.3e-10, "count": 4}})
    {'checks': {'max_error': 'below 1e-8', 'count': 4}}
    """
    if isinstance(x, Mapping):
        return {
            key: bound(max(value, 5e-9))
            if str(key).endswith("max_error")
            else bounded(value)
            for key, value in x.items()
        }
    return [bounded(part) for part in x] if isinstance(x, (list, tuple)) else x


def measured(verdict: Verdict) -> str:
    """What a run measured, in one word or number."""
    check = verdict.check
    if verdict.message:
        return verdict.message
    if check.kind == "exact":
        return "the same" if verdict.held else "not the same"
    if check.kind == "refuses":
        return "refused" if verdict.held else "taken"
    if check.kind in ("order", "differs"):
        shown = verdict.error if verdict.held else max(verdict.error, 0.0)
        return bound(shown) if shown < NOISE else number(shown)
    if not verdict.held:
        return number(float(f"{verdict.error:.2g}"))
    # A tenth of what is allowed bounds the recorded error ten times over, so that this
    # text is the same on every processor.
    tenth = float(f"{check.tolerance / 10:.0e}")
    return f"below {number(tenth if verdict.error < tenth else check.tolerance)}"


def allowed(check: Check) -> str:
    """What a check allows: a largest error, or a smallest difference or margin."""
    if check.kind in ("exact", "refuses"):
        return "-"
    sign = "> " if check.kind in ("order", "differs") else "< "
    return sign + number(check.tolerance)


def verdict_word(held: bool) -> str:
    """holds or broken."""
    return "holds" if held else "broken"


# ---- Text -------------------------------------------------------------------------


def table(rows: Sequence[Sequence[str]]) -> str:
    """Columns padded to their widest cell.

    >>> print(table([("a", "bb"), ("ccc", "d")]))
    a    bb
    ccc  d
    """
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)


def checks_text(verdicts: Iterable[Verdict], predicted: Iterable[str] = ()) -> str:
    """A table of verdicts for a terminal."""
    predicted = set(predicted)
    rows = [("check", "measured", "allowed", "verdict", "predicted")]
    for v in verdicts:
        rows.append(
            (
                v.check.id,
                measured(v)[:40],
                allowed(v.check),
                verdict_word(v.held),
                "yes" if v.check.id in predicted else "",
            )
        )
    if not predicted:
        rows = [row[:-1] for row in rows]  # type: ignore[misc]
    return f"{table(rows)}\n{RELATIVE}"


# ---- HTML -------------------------------------------------------------------------


def checks_html(
    verdicts: Iterable[Verdict], caption: str, predicted: Iterable[str] = ()
) -> str:
    """A table of verdicts with the margin strip: measured, allowed, nearest mistake."""
    predicted = set(predicted)
    body = "".join(_row(v, v.check.id in predicted) for v in verdicts)
    return (
        '<table class="checks" role="table">'
        f"<caption>{html.escape(caption)} <br>"
        '<span class="holds">measured</span> | allowed | '
        f'<span class="broken">the nearest mistake</span> <br>{RELATIVE}</caption>'
        '<thead role="rowgroup"><tr role="row">'
        '<th role="columnheader">check</th>'
        '<th role="columnheader"><span class="scale" aria-label="error, log scale">'
        "<span>1e-18</span> <span>1e-9</span> <span>1</span></span></th>"
        '<th role="columnheader" class="n">measured</th>'
        '<th role="columnheader" class="n">allowed</th>'
        '<th role="columnheader">verdict</th></tr></thead>'
        f'<tbody role="rowgroup">{body}</tbody></table>'
    )


def _row(v: Verdict, predicted: bool) -> str:
    claim = html.escape(v.check.claim)
    claim = f"<mark>{claim}</mark>" if predicted else claim
    word = verdict_word(v.held)
    kind = "n said" if v.message else "n"  # a number stays in one line, words do not
    return (
        f'<tr role="row"{"" if v.held else " class=bad"}>'
        f'<td role="cell">{claim}<br><code>{v.check.id}</code></td>'
        f'<td role="cell">{strip(v)}</td>'
        f'<td role="cell" class="{kind}" data-l="measured">'
        f"{html.escape(measured(v))}</td>"
        f'<td role="cell" class="n" data-l="allowed">'
        f"{html.escape(allowed(v.check))}</td>"
        f'<td role="cell"><span class="{word}">{word}</span></td></tr>'
    )


def strip(v: Verdict) -> str:
    """The margin strip of one check, from 1e-18 to 1 on a logarithmic axis."""
    check = v.check
    if check.kind in ("exact", "refuses"):
        return ""
    row = recorded()["checks"].get(check.id, {})
    marks = [
        '<path class="axis" d="M4 8H116"/>',
        f'<path class="tol" d="M{_place(check.tolerance)} 2v12"/>',
    ]
    gap = row.get("gap")
    if gap is not None and v.held:
        marks.append(f'<path class="gap" stroke="#c4313b" d="{_cross(_place(gap))}"/>')
    if v.held:
        noise = check.kind in ("equal", "value")  # its digits differ between processors
        error = row.get("floor", v.error) if noise else v.error
        place = f'cx="{_place(error)}" cy="8" r="3.4"'
        marks.append(f'<circle class="err" fill="gray" stroke="none" {place}/>')
    elif math.isfinite(v.error):
        error = max(v.error, NOISE)  # of a difference that is gone only noise is left
        place = f'd="{_cross(_place(error))}"'
        marks.append(f'<path class="bad" stroke="#c4313b" {place}/>')
    return (
        '<svg class="strip" viewBox="0 0 120 16" width="120" height="16" fill="none" '
        'stroke="gray" '
        f'aria-hidden="true">{"".join(marks)}</svg>'
    )


def _place(value: float) -> float:
    exponent = math.log10(max(abs(value), 1e-18))
    return round(4 + 112 * min(max(exponent + 18, 0.0), 18.0) / 18, 1)


def _cross(x: float) -> str:
    return f"M{x - 3:g} 5l6 6M{x + 3:g} 5l-6 6"


def faults_html(chapter: str) -> str:
    """The faults of a chapter and what each breaks: the answers to the predictions."""
    rows = []
    for fault in FAULTS.values():
        if fault.chapter != chapter or fault.id not in recorded()["faults"]:
            continue
        red = recorded()["faults"][fault.id]["red"]
        here = [id for id in red if CHECKS[id].chapter == chapter]
        shown = "".join(f"<li><code>{id}</code></li>" for id in here)
        rows.append(
            '<tr role="row">'
            f'<td role="cell">{html.escape(fault.title)}<code>{fault.id}</code></td>'
            f'<td role="cell" data-l="broken"><ul>{shown}</ul></td>'
            '<td role="cell" data-l="stays green">'
            f"<code>{fault.stays_green}</code></td>"
            "</tr>"
        )
    return (
        '<table class="faults" role="table"><thead role="rowgroup"><tr role="row">'
        '<th role="columnheader">fault</th><th role="columnheader">'
        '<span class="broken">broken</span></th><th role="columnheader">'
        '<span class="holds">stays green</span></th></tr></thead>'
        f'<tbody role="rowgroup">{"".join(rows)}</tbody></table>'
    )


def examples_html(chapter: str) -> str:
    """The worked examples of a chapter; each opens to its givens and its output."""
    parts = []
    for example in EXAMPLES.values():
        if example.chapter != chapter:
            continue
        again = f", the calculation of {example.same_as}" if example.same_as else ""
        title = html.escape(example.title)
        if example.title_zh:
            title += f' <span lang="zh">{html.escape(example.title_zh)}</span>'
        document = {"givens": example.givens, "output": bounded(example.output())}
        text = html.escape(as_json(rounded(document), ascii=False))
        parts.append(
            f'<details class="example" id="example-{example.id}"><summary>'
            f"<code>{example.id}</code> {title}{again}</summary>"
            f"<p>Units: {html.escape(example.units)}.</p><pre>{text}</pre></details>"
        )
    return "".join(parts)


def named_html(chapter: str) -> str:
    """Where each named check of a chapter stands, and a fault that breaks it."""
    rows = []
    for (program, test), ids in NAMED_CHECKS.items():
        if CHECKS[ids[0]].chapter != chapter:
            continue
        here = "".join(f"<li><code>{id}</code></li>" for id in ids)
        faults = dict.fromkeys(fault_of(id) for id in ids)
        breaking = "".join(f"<li><code>{fault}</code></li>" for fault in faults)
        rows.append(
            f'<tr role="row"><td role="cell"><code>{test}</code> {program}</td>'
            f'<td role="cell" data-l="check"><ul>{here}</ul></td>'
            f'<td role="cell" data-l="broken"><ul>{breaking}</ul></td></tr>'
        )
    return (
        '<table class="faults" role="table"><thead role="rowgroup"><tr role="row">'
        '<th role="columnheader">name</th><th role="columnheader">'
        '<span class="holds">check</span></th><th role="columnheader">'
        '<span class="broken">broken by</span></th></tr></thead>'
        f'<tbody role="rowgroup">{"".join(rows)}</tbody></table>'
    )


def fault_of(check: str) -> str:
    """A fault that breaks this check: the one made for it, else one of its chapter."""
    breaking = [
        FAULTS[id] for id, row in recorded()["faults"].items() if check in row["red"]
    ]
    if not breaking:
        raise ValueError(f"no recorded fault breaks {check!r}")
    home = CHECKS[check].chapter
    return min(breaking, key=lambda f: (f.made_for != check, f.chapter != home)).id


def fault_text(fault: Fault) -> str:
    """A fault in two lines."""
    return f"{fault.id}: {fault.operation}: {fault.title}\n    {fault.story}"
