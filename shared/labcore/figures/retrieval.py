"""Plots of the chapter on retrieval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..identities import FAULTS
from ..ops.retrieval import bm25_term, greedy_graph_search, nearest
from ..report import number
from ._draw import BROKEN, HOLDS, INK, INK2, LINE, QUERY, Figure, canvas, finish

DIGITS = 12  # what is drawn is rounded: the last bits differ between processors
Points = Mapping[str, Sequence[float]]


def _factors(matches: Sequence[int], length: int, average: int, **setting: Any) -> Any:
    """The factor of a document of this length, and the count that a fault gives."""
    factors, counts = [], []
    for f in matches:
        doc = ["term"] * f + ["other"] * (length - f)
        others = [["other"] * ((4 * average - length) // 3) for _ in range(3)]
        found = bm25_term([doc, *others], "term", **setting)
        wrong = FAULTS["bm25_no_saturation"].by([doc, *others], "term", **setting)
        factors.append(found.tf_factor[0])
        counts.append(wrong.score[0] / wrong.idf)
    return np.round(factors, DIGITS), np.round(counts, DIGITS)


def saturation(k1: float, b: float, average: int, most: int) -> Figure:
    """The factor of a term against its count, for three lengths of the document."""
    matches = range(most + 1)
    lengths = {"short": average // 2, "average": average, "long": 2 * average}
    lines, counts = {}, np.zeros(0)
    for name, length in lengths.items():
        lines[name], counts = _factors(matches, length, average, k1=k1, b=b)
    ceiling = k1 + 1
    with canvas(3.5) as (figure, ax):
        ax.plot([0, most], [ceiling] * 2, color=LINE, ls=(0, (4, 2)), marker="", lw=0.9)
        ax.text(most, ceiling + 0.03, "k1 + 1", color=INK2, ha="right", va="bottom")
        ax.plot([0, ceiling], [0, ceiling], color=BROKEN, ls="-.", marker="")
        ax.text(
            ceiling + 0.12,
            ceiling + 0.03,
            "the count itself",
            color=BROKEN,
            va="bottom",
        )
        for (name, line), up in zip(lines.items(), (1, 0, -1), strict=True):
            ax.plot(matches, line, "o-", color=INK, ms=4, mew=0.8, mfc=HOLDS, lw=1.2)
            end = lines["average"][-1] + 0.15 * up  # the ends are close together
            ax.text(most + 0.3, end, name, color=INK, va="center")
        ax.set(title="factor of the term", xlabel="matches in the document")
        ax.set(xlim=(-0.2, most + 0.1), ylim=(-0.04, ceiling + 0.24))
        ax.set_xticks(range(0, most + 1, 2))
        ax.set_yticks([0, 0.5, 1, 1.5, 2], ["0", "0.5", "1", "1.5", "2"])
        ax.spines["bottom"].set_bounds(0, most)
        ax.spines["left"].set_bounds(0, 2)
        one, all_ = (float(lines["average"][i]) for i in (1, most))
        return finish(
            figure,
            finding=(
                f"At average length {number(most)} matches count like "
                f"{number(round(all_ / one, 3))} single ones, and no number of them "
                f"like {number(ceiling)}."
            ),
            caption=(
                "The same counts in documents of "
                + ", ".join(number(length) for length in lengths.values())
                + f" words where the average is {number(average)}; k1 = {number(k1)}, "
                f"b = {number(b)}. Red: the count as the factor, which has no ceiling."
            ),
            alt=(
                "The factor against the number of matches: curves that rise ever more "
                f"slowly under a ceiling at {number(ceiling)}. "
                + "; ".join(
                    f"{name} document: {number(round(line[1], 3))} for "
                    f"{number(1)} match and {number(round(line[-1], 3))} for "
                    f"{number(most)}"
                    for name, line in lines.items()
                )
                + ". The count itself is a straight line that leaves the picture."
            ),
            columns=("matches", *lines, "the count itself"),
            rows=[
                (i, *(line[i] for line in lines.values()), counts[i]) for i in matches
            ],
        )


def length(docs: Sequence[Sequence[str]], term: str, k1: float, b: float) -> Figure:
    """The scores of the documents that hold a term, against b."""
    shares = np.linspace(0.0, 1.0, 21)
    table = np.round(
        [bm25_term(docs, term, k1=k1, b=float(x)).score for x in shares], DIGITS
    )
    found = bm25_term(docs, term, k1=k1, b=b)
    names = {
        i: f"{chr(ord('A') + i)}: {found.frequency[i]} of {found.length[i]} words"
        for i in range(found.n)
        if found.frequency[i]
    }
    low, high = float(table[:, list(names)].min()), float(table[:, list(names)].max())
    with canvas(2.9) as (figure, ax):
        ax.plot([b, b], [low, high], color=LINE, ls=(0, (4, 2)), marker="", lw=0.9)
        ax.text(b, high + 0.004, f"b = {number(b)}", color=INK2, ha="center")
        for i, name in names.items():
            line, dash = table[:, i], "-" if _rises(table[:, i]) else (0, (7, 2.2))
            ax.plot(shares, line, color=INK, ls=dash, marker="")
            ax.plot([b], [found.score[i]], "o", color=HOLDS, ms=6)
            up = 1 if _rises(line) else -1
            ax.text(
                0.03,
                line[0] - up * 0.011,
                name,
                color=INK,
                va="top" if up > 0 else "bottom",
            )
        ax.set(title="score", xlabel="b: how much the length of a document counts")
        ax.set(xlim=(0, 1.02), ylim=(low - 0.04, high + 0.04))
        ax.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.5", "0.75", "1"])
        ax.set_yticks([0.45, 0.5, 0.55, 0.6, 0.65])
        ax.spines["bottom"].set_bounds(0, 1)
        ax.spines["left"].set_bounds(0.45, 0.65)
        gap = [float(abs(np.ptp(row[list(names)]))) for row in table]
        return finish(
            figure,
            finding=(
                f"At b = {number(1)} the lead is gone: the term is as dense in one "
                "document as in the other."
            ),
            caption=(
                f"F28 at every b; k1 = {number(k1)}. The document without the term "
                "stays at the bottom, outside the picture."
            ),
            alt=(
                "Scores against b. "
                + "; ".join(
                    f"{name}: from {number(round(table[0, i], 4))} to "
                    f"{number(round(table[-1, i], 4))}"
                    for i, name in names.items()
                )
                + f". The lead falls from {number(round(gap[0], 4))} to "
                f"{number(round(gap[-1], 9))}; at b = {number(b)} it is "
                f"{number(round(float(np.ptp([found.score[i] for i in names])), 4))}."
            ),
            columns=("b", *names.values(), "lead"),
            rows=[
                (round(shares[j], 2), *(table[j, i] for i in names), round(gap[j], 9))
                for j in range(0, 21, 5)
            ],
        )


def walk(
    points: Points,
    edges: Sequence[Sequence[str]],
    query: Sequence[float],
    entry: str,
    beams: Sequence[int],
) -> Figure:
    """A small graph in the plane: where each beam ends, and what it did not see."""
    found = {
        beam: greedy_graph_search(points, edges, query, entry=entry, beam=beam)
        for beam in beams
    }
    ends = {beam: walked[0][0] for beam, walked in found.items()}
    all_ = dict(nearest(points, query, k=len(points)))
    best = next(iter(all_))
    stuck = {end: [b for b in beams if ends[b] == end] for end in ends.values()}
    stop = ends[beams[0]]
    notes = {id: f"{id}: {number(distance)}" for id, distance in all_.items()}
    notes[entry] += ", entry"
    for end, those in stuck.items():
        notes[end] += f", end of beam {' and '.join(number(b) for b in those)}"
    turn = np.linspace(0, 2 * np.pi, 121)
    ring = np.round(all_[stop] * np.array([np.cos(turn), np.sin(turn)]), DIGITS)
    with canvas(3.3) as (figure, ax):
        ax.plot(
            query[0] + ring[0],
            query[1] + ring[1],
            color=LINE,
            ls=(0, (4, 2)),
            marker="",
            lw=0.9,
        )
        for a, b in edges:
            (x0, y0), (x1, y1) = points[a], points[b]
            down = {a, b} == {entry, stop}
            ax.plot(
                [x0, x1],
                [y0, y1],
                color=INK if down else LINE,
                ls="-",
                marker="",
                lw=3.0 if down else 1.1,
            )
        ax.plot(*query, "^", color=QUERY, ms=8)
        ax.text(query[0], query[1] - 0.24, "query", color=QUERY, ha="center", va="top")
        for id, (x, y) in points.items():
            ax.plot(x, y, "o", color=INK, ms=8, mfc=HOLDS if id == stop else "none")
            aside = id == entry
            above = y > all_[best]
            ax.text(
                x + (0.24 if aside or 0 < y <= all_[best] else 0),
                y if aside else y + (0.22 if above else -0.1 if y > 0 else -0.28),
                notes[id],
                color=INK,
                va="center" if aside else "bottom" if above else "top",
            )
        ax.set(xlim=(-2.2, 7.2), ylim=(-2.2, 3.8))
        ax.set_aspect("equal")
        ax.axis("off")
        return finish(
            figure,
            finding=(
                f"The walk ends at {stop}, and {best} is nearer: the way there leads "
                "over a point that is farther than all of the beam."
            ),
            caption=(
                "Numbers are distances from the query. Thick: the only step of the "
                "greedy walk. Inside the dashed circle lies what is nearer than "
                f"{stop}."
            ),
            alt=(
                f"A graph of {number(len(points))} points around a query. Distances: "
                + ", ".join(f"{id} {number(d)}" for id, d in all_.items())
                + f". Edges: {', '.join('-'.join(edge) for edge in edges)}. From "
                f"{entry} the search ends "
                + ", ".join(f"at {ends[b]} with a beam of {number(b)}" for b in beams)
                + "."
            ),
            columns=("beam", "found, nearest first", "distance of the best"),
            rows=[
                (b, " ".join(id for id, _ in walked), walked[0][1])
                for b, walked in found.items()
            ],
        )


def _rises(line: np.ndarray[Any, Any]) -> bool:
    """Whether a line ends higher than it began."""
    return bool(line[-1] > line[0])
