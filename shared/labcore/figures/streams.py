"""Plots of the chapter on streams and state."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from ..identities import FAULTS
from ..report import number
from ..systems.database import Killed
from ..systems.state import Fact, bitemporal_lookup
from ..systems.streams import sse_decode
from ._draw import (
    BROKEN,
    HOLDS,
    INK,
    INK2,
    KEY,
    LINE,
    PAPER,
    RULE,
    STATE,
    Figure,
    canvas,
    finish,
)

SIGNS = {"\r": "CR", "\n": "LF", " ": ""}


# ---- Cuts ---------------------------------------------------------------------------


def right_at(body: bytes, fault: str | None) -> list[bool]:
    """For every cut inside a stream: whether the events are those of the whole."""
    decode = sse_decode if fault is None else FAULTS[fault].by
    whole = sse_decode([body])
    return [decode([body[:i], body[i:]]) == whole for i in range(1, len(body))]


def every_cut(text: str, wrong: Mapping[str, str]) -> Figure:
    """A stream cut at every place, decoded right and by wrong decoders.

    wrong: fault -> a few words for it.
    """
    body = text.encode()
    n = len(body)
    names: dict[str | None, str] = {None: "this course"}
    names.update(wrong)
    rows = {fault: right_at(body, fault) for fault in names}
    there = next(i for i in range(n + 1) if sse_decode([body[:i]]).events)
    bad = {fault: rows[fault].count(False) for fault in names}
    rarest = min(wrong, key=lambda fault: bad[fault])
    at = ", ".join(str(i) for i, ok in enumerate(rows[rarest], 1) if not ok)
    low = -0.95 * len(names) - 0.35
    with warnings.catch_warnings(), canvas(1.1 + 0.46 * len(names)) as (figure, ax):
        warnings.filterwarnings("ignore", "Glyph")  # the page's fonts have it
        place = 0
        for char in text:
            wide = len(char.encode())
            ax.plot(
                [place, place, place + wide, place + wide, place],
                [0.1, 0.85, 0.85, 0.1, 0.1],
                color=LINE,
                ls="-",
                marker="",
                lw=0.9,
            )
            for inner in range(place + 1, place + wide):
                ax.plot([inner] * 2, [0.1, 0.28], color=LINE, ls="-", marker="", lw=0.9)
            ax.text(
                place + wide / 2,
                0.44,
                SIGNS.get(char, char),
                color=INK,
                ha="center",
                va="center",
                fontsize=10,
            )
            place += wide
        ax.plot([there] * 2, [0.85, 1.2], color=INK2, ls="-", marker="", lw=1.4)
        ax.text(there - 0.25, 1.05, "event complete", color=INK2, ha="right")
        for row, (fault, name) in enumerate(names.items()):
            y = -0.95 * (row + 1)
            for i, ok in enumerate(rows[fault], 1):
                mark: dict[str, Any] = {"marker": "o", "ms": 3, "color": HOLDS}
                if not ok:
                    mark = {"marker": "x", "ms": 6.5, "color": BROKEN}
                ax.plot([i], [y], ls="", **mark)
            ax.text(0, y + 0.42, name, color=INK, va="center")
            ax.text(
                n,
                y + 0.42,
                f"wrong at {bad[fault]}",
                color=BROKEN if bad[fault] else HOLDS,
                ha="right",
                va="center",
            )
        ax.set(xlim=(-0.1, n + 0.1), ylim=(low, 1.75))
        ax.axis("off")
        return finish(
            figure,
            finding=(
                f"One wrong decoder is wrong at {bad[rarest]} of {n - 1} cuts, and "
                "passes all others."
            ),
            caption=(
                "Above: the stream, a box a character, a short stroke where a cut is "
                "inside it. Each mark is a run in two chunks: a dot where the "
                "events are right, a cross where not."
            ),
            alt=(
                f"A stream of {n} bytes with a mark under each of its {n - 1} cuts, a "
                "row for each decoder. Wrong cuts: "
                + "; ".join(f"{names[fault]} {bad[fault]}" for fault in names)
                + f". The cut of {names[rarest]} is after byte {at}. The event is "
                f"complete after byte {there}."
            ),
            columns=("decoder", "wrong at", "of cuts"),
            rows=[(names[fault], bad[fault], n - 1) for fault in names],
        )


# ---- Killed -------------------------------------------------------------------------


def killed(
    untouched: Mapping[int, int], runs: Mapping[str, Sequence[Killed]]
) -> Figure:
    """What lies on the disk in the course of a transfer, and what a kill leaves.

    untouched: balance -> accounts, before it. runs: program -> what was found after a
    kill just before COMMIT and just after; of the first program the files are shown.
    """
    first = next(iter(runs))
    lanes: list[tuple[str, list[str], list[bool]]] = [
        (
            "the file",
            [
                "old",
                *(_yes(seen.file_changed, "changed", "old") for seen in runs[first]),
            ],
            [False, *(seen.file_changed for seen in runs[first])],
        ),
        (
            "the journal beside it",
            ["none", *(_yes(seen.hot_journal, "hot", "none") for seen in runs[first])],
            [False, *(seen.hot_journal for seen in runs[first])],
        ),
    ]
    for name, pair in runs.items():
        found = [untouched, *(seen.balances for seen in pair)]
        lanes.append(
            (
                f"killed and reopened, {name}",
                [_balances(balances) for balances in found],
                [balances != untouched for balances in found],
            )
        )
    totals = {
        name: [sum(b * n for b, n in seen.balances.items()) for seen in pair]
        for name, pair in runs.items()
    }
    whole = sum(b * n for b, n in untouched.items())
    with canvas(0.9 + 0.72 * len(lanes)) as (figure, ax):
        low = -1.5 * len(lanes)
        for x, word in ((1, "the updates"), (2, "COMMIT")):
            ax.plot([x, x], [low, -0.05], color=LINE, ls=(0, (4, 2)), marker="", lw=1)
            ax.text(x, 0.1, word, color=INK2, ha="center")
        for row, (name, words, filled) in enumerate(lanes):
            y = -1.5 * row
            ax.text(0, y - 0.42, name, color=INK, va="center").set_bbox(COVER)
            wrong = row >= 2 and any(t != whole for t in totals[list(runs)[row - 2]])
            for i, (word, fill) in enumerate(zip(words, filled, strict=True)):
                lost = wrong and i > 0 and totals[list(runs)[row - 2]][i - 1] != whole
                color = BROKEN if lost else INK
                box = ([i + 0.02, i + 0.98], y - 1.4, y - 0.75)
                ax.fill_between(
                    *box,
                    facecolor="none",
                    edgecolor=BROKEN if lost else LINE,
                    hatch="////" if fill else "",
                )
                ax.text(i + 0.5, y - 1.08, word, color=color, ha="center", va="center")
                ax.texts[-1].set_bbox(COVER)
        ax.set(xlim=(-0.02, 3.02), ylim=(low, 0.6))
        ax.axis("off")
        when = ("before COMMIT", "after COMMIT")
        early, late = runs[first]
        as_told = (
            early.file_changed
            and early.hot_journal
            and early.balances == untouched
            and not late.hot_journal
            and late.balances != untouched
        )
        gone = {name: [whole - t for t in some] for name, some in totals.items()}
        worst, most = max(gone.items(), key=lambda item: max(item[1]))
        return finish(
            figure,
            finding=(
                "The answer changes when the journal goes, not when the file does."
                if as_told
                else "A kill leaves what a transaction should not leave."
            ),
            caption=(
                "From left to right: before the transfer, before COMMIT and after it. "
                "Hatched: not as it was. What stands in the lower rows is the balances "
                f"after a kill there. With {worst}, {number(max(most))} of "
                f"{number(whole)} are lost."
            ),
            alt=" ".join(
                f"{name} before the transfer, before COMMIT and after it: "
                f"{', '.join(words)}."
                for name, words, _ in lanes
            ),
            columns=("program", "killed", "file changed", "hot journal", "balances"),
            rows=[
                (
                    name,
                    when[i],
                    str(seen.file_changed),
                    str(seen.hot_journal),
                    _balances(seen.balances),
                )
                for name, pair in runs.items()
                for i, seen in enumerate(pair)
            ],
        )


COVER = {"facecolor": PAPER, "edgecolor": "none", "pad": 1.2}


def _yes(which: bool, yes: str, no: str) -> str:
    return yes if which else no


def _balances(balances: Mapping[int, int]) -> str:
    if len(balances) == 1:
        return f"all {number(next(iter(balances)))}"
    return " and ".join(number(balance) for balance in balances)


# ---- Two times ----------------------------------------------------------------------


def two_times(
    history: Sequence[tuple[float, Sequence[Fact]]],
    questions: Sequence[tuple[float, float]],
) -> Figure:
    """What is answered for each day, by what was on record on each day.

    history: (day of the record, the facts after it), one panel each; questions:
    (day in the world, day of the record), marked in the last panel.
    """
    right = max(valid for valid, _ in questions) + 4
    top = max(known for _, known in questions) + 3
    days = [(v, t) for v in range(int(right)) for t in range(int(top))]
    last, facts = history[-1]
    answers = [
        bitemporal_lookup(facts, valid_at=valid, known_at=known)
        for valid, known in questions
    ]
    changed = _changed(history, days)
    below = sum(known < last for _, known in changed)
    values = list(dict.fromkeys(f.value for _, some in history for f in some))
    with canvas(3.3, ncols=len(history), sharex=True, sharey=True) as (figure, axes):
        for ax, (day, some) in zip(axes, history, strict=True):
            for fact in some:
                _rectangle(ax, fact, values.index(fact.value), right, top)
            ax.axhline(day, color=BROKEN, ls=(0, (4, 2)), marker="", lw=1.2)
            above = day < 2
            ax.text(
                right - 0.2,
                day + (0.3 if above else -0.3),
                f"recorded on {number(day)}",
                color=BROKEN,
                ha="right",
                va="bottom" if above else "top",
            )
            ax.set(xlim=(0, right), ylim=(0, top))
            ax.set_xlabel("day asked for")
            ax.set_xticks(sorted({fact.valid_from for fact in facts}))
            ax.set_yticks([when for when, _ in history])
        for valid, known in questions:
            axes[-1].plot([valid], [known], "o", color=INK, ms=6)
        axes[0].set_title("day of the record")
        return finish(
            figure,
            finding=(
                f"The record of day {number(last)} changes {below} answers below its "
                "line."
            ),
            caption=(
                "Across: the day that is asked for. Up: the day by whose records it is "
                "answered. Dots: the questions; the answer is the value of the region "
                "that a dot is in."
            ),
            alt=(
                f"{len(history)} maps of answers, before and after a record. It "
                f"changes {len(changed)} of {len(days)} pairs of days, {below} of them "
                "below its line. "
                + "; ".join(
                    f"day {number(valid)} by the records of day {number(known)} is "
                    f"{number(answer)}"
                    for (valid, known), answer in zip(questions, answers, strict=True)
                )
                + "."
            ),
            columns=("day asked for", "day of the record", "answer"),
            rows=[
                (valid, known, answer)
                for (valid, known), answer in zip(questions, answers, strict=True)
            ],
        )


def _changed(
    history: Sequence[tuple[float, Sequence[Fact]]], days: Sequence[tuple[float, float]]
) -> list[tuple[float, float]]:
    """The pairs of days whose answer the last record changed."""
    (_, before), (_, after) = history[-2:]
    return [
        (valid, known)
        for valid, known in days
        if bitemporal_lookup(before, valid_at=valid, known_at=known)
        != bitemporal_lookup(after, valid_at=valid, known_at=known)
    ]


def _rectangle(ax: Any, fact: Fact, kind: int, right: float, top: float) -> None:
    x0, x1 = fact.valid_from, min(fact.valid_to, right)
    y0, y1 = max(fact.known_from, 0), min(fact.known_to, top)
    color, hatch = [(STATE, ""), (KEY, "////")][kind % 2]
    ax.fill_between(
        [x0, x1], y0, y1, facecolor=color, alpha=0.12, edgecolor="none", lw=0
    )
    ax.fill_between([x0, x1], y0, y1, facecolor="none", edgecolor=RULE, hatch=hatch)
    ax.plot(
        [x0, x1, x1, x0, x0], [y0, y0, y1, y1, y0], color=LINE, ls="-", marker="", lw=1
    )
    ax.text(
        x0 + 0.35,
        y1 - 0.35,
        number(fact.value),
        color=color,
        fontsize=17,
        va="top",
    )
