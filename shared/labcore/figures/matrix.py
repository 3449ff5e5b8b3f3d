"""Plots of the fault matrix: which fault breaks which check, and with what room."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .. import contents
from ..identities import CHAPTERS, CHECKS, FAULTS, Check, Fault, recorded
from ..notebook import dressed
from ..report import number
from ._draw import BROKEN, HOLDS, INK, INK2, LINE, RULE, Figure, canvas, finish

WIDTH = 396.0  # units of a plot
ROW, GAP, HEAD = 12.0, 4.0, 18.0  # of a row, between operations, above the first row
LETTER = 5.7  # of a label, at its largest
MIDDLE = 1e-7  # where nothing lies, between what is allowed and the mistakes


@dataclass(frozen=True)
class Map(Figure):
    """A matrix: under it stand the names of its columns and of its rows."""

    checks: tuple[tuple[str, str], ...] = ()
    faults: tuple[tuple[str, str, str], ...] = ()

    def _repr_html_(self) -> str:
        checks = "".join(
            f"<li><code>{id}</code> {html.escape(claim)}</li>"
            for id, claim in self.checks
        )
        faults = "".join(
            f"<li><code>{id}</code> {html.escape(title)}: {html.escape(red)}</li>"
            for id, title, red in self.faults
        )
        return dressed(
            f'<figure class="fig">{self.svg}'
            f"<figcaption><b>{html.escape(self.finding)}</b> "
            f"{html.escape(self.caption)}</figcaption>"
            "<details><summary>The checks by number, and what each fault "
            f"breaks</summary><ol>{checks}</ol><ul>{faults}</ul></details></figure>"
        )


def topic_of(function: Callable[..., Any]) -> str:
    """The module of identities in which a check or a fault is written down."""
    return function.__module__.rpartition(".")[2]


def heatmap(topic: str) -> Map:
    """Faults of one topic against its checks: a cross is broken, a dot holds."""
    checks = [c for c in CHECKS.values() if topic_of(c.sides) == topic]
    faults = [f for f in FAULTS.values() if topic_of(f.by) == topic]
    groups: dict[str, list[Fault]] = {}
    for fault in faults:
        groups.setdefault(fault.operation, []).append(fault)
    left = LETTER * max(map(len, groups)) + 8
    step = (WIDTH - left - 34) / len(checks)
    x = {check.id: left + step * (i + 0.5) for i, check in enumerate(checks)}
    height = HEAD + ROW * len(faults) + GAP * len(groups) + 4
    red, green = (
        {f.id: list(recorded()["faults"][f.id][color]) for f in faults}
        for color in ("red", "green")
    )
    with canvas(height / 72) as (figure, ax):
        figure.set_layout_engine("none")
        ax.set_position((0, 0, 1, 1))
        ax.set(xlim=(0, WIDTH), ylim=(height, 0))
        ax.set_axis_off()
        for i, check in enumerate(checks, 1):
            ax.vlines(x[check.id], HEAD - 3, height - 4, colors=RULE, lw=0.7)
            if step >= 14 or i % 2:
                ax.text(x[check.id], 9, str(i), color=INK2, ha="center", size=10.5)
        ax.text(WIDTH, 9, "more", color=INK2, ha="right", size=10.5)
        y = HEAD
        for operation, members in groups.items():
            y += GAP
            middle = y + ROW * len(members) / 2
            ax.text(0, middle, operation, color=INK, va="center", size=10.5)
            ax.hlines(y - GAP / 2, 0, WIDTH, colors=LINE, lw=0.6)
            for fault in members:
                centre = y + ROW / 2
                inside = [x[id] for id in red[fault.id] if id in x]
                held = [x[id] for id in green[fault.id] if id in x]
                ax.plot(held, [centre] * len(held), "o", color=HOLDS, ms=1.8, mew=0)
                ax.plot(inside, [centre] * len(inside), "x", color=BROKEN, ms=4.8)
                if fault.stays_green in x:
                    at = x[fault.stays_green]
                    ax.plot([at], [centre], "o", mfc="none", color=INK, ms=5.6, mew=1)
                more = len(red[fault.id]) - len(inside)
                if more:
                    ax.text(
                        WIDTH,
                        centre,
                        f"+{more}",
                        color=INK2,
                        ha="right",
                        va="center",
                        size=10.5,
                    )
                y += ROW
        drawn = finish(
            figure,
            finding=_finding(faults, red, checks),
            caption=(
                "A row is a fault, a column a check. A cross: broken. A dot: reached "
                "and not broken. A ring: the obvious check that stays green. At the "
                "right: checks of other topics that break too."
            ),
            alt=_alt(topic, faults, red, checks),
            columns=(),
            rows=(),
        )
    number_of = {check.id: i for i, check in enumerate(checks, 1)}
    return Map(
        **{**vars(drawn), "columns": (), "rows": ()},
        checks=tuple((check.id, check.claim) for check in checks),
        faults=tuple((f.id, f.title, _breaks(red[f.id], number_of)) for f in faults),
    )


def margins(chapters: Sequence[str], pitch: float = 2.8) -> Figure:
    """Every check as one line: measured, allowed, nearest mistake.

    The lines stand in the order of the chapters, and in a chapter the narrowest room
    comes last. pitch is the distance of two lines, in units of the plot.
    """
    bands = _bands(chapters)
    known = [row for _, band in bands for row in band]
    low = min(row[1] for row in known)
    high = max(row[3] or 0.0 for row in known)
    y, space = 22.0, 7.0
    fine = pitch < 2
    with canvas((y + pitch * len(known) + space * len(bands) + 44) / 72) as (
        figure,
        ax,
    ):
        for name, band in bands:
            ax.text(MIDDLE, y + 3, name, color=INK2, ha="center", va="top")
            for _, floor, tolerance, gap in band:
                reach = [floor, gap or tolerance]
                ax.plot(reach, [y, y], color=RULE, ls="-", marker="", lw=pitch / 4)
                ax.plot([floor], [y], "o", color=HOLDS, ms=1.4 if fine else 2, mew=0)
                ends = [y - 0.55 * pitch, y + 0.55 * pitch]
                ax.plot([tolerance] * 2, ends, color=INK, ls="-", marker="", lw=1.6)
                if gap is not None:
                    size = {"ms": 2.2, "mew": 0.5} if fine else {"ms": 3, "mew": 1}
                    ax.plot([gap], [y], "x", color=BROKEN, **size)
                y += pitch
            y += space
        bottom = y
        ax.text(3 * low, 8, "measured", color=HOLDS, ha="right")
        ax.text(min(row[2] for row in known) / 3, 8, "allowed", color=INK)
        ax.text(1, 8, "the nearest mistake", color=BROKEN, ha="right")
        ax.set(xscale="log", ylim=(bottom, 0), xlabel="error, log scale")
        ax.set_xlim(low / 1e3, 3 * max(high, 1.0))
        ticks = [1e-15, 1e-12, 1e-9, 1e-6, 1e-3, 1.0]
        ax.set_xticks(ticks, [number(t) for t in ticks])
        ax.minorticks_off()
        ax.set_yticks([])
        ax.spines["left"].set_visible(False)
        above = min(row[2] / row[1] for row in known)
        below = min(row[3] / row[2] for row in known if row[3] is not None)
        silent = sum(row[3] is None for row in known)
        found = min(row[3] for row in known if row[3] is not None)
        return finish(
            figure,
            finding="No dot comes near its tick, and no tick comes near its cross.",
            caption=(
                f"One line a check, {len(known)} lines, in the order of the course. "
                f"From dot to tick at least a factor of {number(round(above))}, from "
                f"tick to cross at least {number(float(f'{below:.1g}'))}. "
                f"{silent} lines have no cross: their mistakes raise an error or "
                "return what is no number."
            ),
            alt=(
                f"{len(known)} checks on a logarithmic axis of errors. The largest "
                f"measured error is {number(max(row[1] for row in known))}, the errors "
                f"allowed go from {number(min(row[2] for row in known))} to "
                f"{number(max(row[2] for row in known))}, and "
                f"the smallest error of a known mistake is {number(found)}."
            ),
            columns=("allowed", "checks", "largest measured", "nearest mistake"),
            rows=[
                (
                    tolerance,
                    len(group),
                    max(row[1] for row in group),
                    min((row[3] for row in group if row[3] is not None), default="-"),
                )
                for tolerance in sorted({row[2] for row in known})
                for group in [[row for row in known if row[2] == tolerance]]
            ],
        )


Row = tuple[str, float, float, float | None]


def _bands(chapters: Sequence[str]) -> list[tuple[str, list[Row]]]:
    """The lines by chapter; of more than one part, the chapters of a part are one."""
    of = {slug: part for part, slugs in contents.PARTS.items() for slug in slugs}
    bands: dict[str, list[Row]] = {}
    whole = len({of[slug] for slug in chapters}) > 1
    for slug in chapters:
        rows = [_margin(c) for c in CHECKS.values() if c.chapter == slug]
        band = bands.setdefault(of[slug] if whole else CHAPTERS[slug].title, [])
        band += sorted(
            (row for row in rows if row is not None),
            key=lambda row: (-(row[3] or 10.0), row[2], row[1]),
        )
    return [(name, band) for name, band in bands.items() if band]


def _margin(check: Check) -> Row | None:
    """(id, floor, tolerance, gap) of a check that measures an error."""
    row = recorded()["checks"].get(check.id)
    if row is None or check.kind not in ("equal", "value"):
        return None
    return check.id, row["floor"], row["tolerance"], row["gap"]


def _finding(
    faults: list[Fault], red: dict[str, list[str]], checks: list[Check]
) -> str:
    here = {check.id for check in checks}
    hit = {id for ids in red.values() for id in ids}
    lone = sum(len(red[fault.id]) == 1 for fault in faults)
    rows = sum(not here & set(red[fault.id]) for fault in faults)
    columns = len(here - hit)
    words = "No row and no column is without a cross."
    if rows or columns:
        words = (
            f"{_count(rows, 'row')} and {_count(columns, 'column')} without a cross "
            "here have it in another topic."
        )
    return f"{words} {lone} of {len(faults)} faults are noticed by one check only."


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _alt(
    topic: str, faults: list[Fault], red: dict[str, list[str]], checks: list[Check]
) -> str:
    loud = max(faults, key=lambda fault: len(red[fault.id]))
    counts = {c.id: sum(c.id in ids for ids in red.values()) for c in checks}
    busy = max(counts, key=lambda id: counts[id])
    return (
        f"Matrix of {len(faults)} faults and {len(checks)} checks, topic {topic}. "
        f"The loudest fault, {loud.id}, breaks {len(red[loud.id])} checks. The check "
        f"that most faults break is {busy}: {counts[busy]} of {len(faults)}."
    )


def _breaks(red: list[str], number_of: dict[str, int]) -> str:
    here = ", ".join(str(number_of[id]) for id in red if id in number_of)
    elsewhere = sum(id not in number_of for id in red)
    return (here or "none here") + (f", and {elsewhere} elsewhere" if elsewhere else "")
