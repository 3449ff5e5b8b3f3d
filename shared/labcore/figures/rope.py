"""Plots of the chapter on RoPE."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..identities import FAULTS
from ..ops.rope import rope, rope_frequencies
from ..report import number
from ._draw import BROKEN, INK, INK2, KEY, LINE, QUERY, RULE, Figure, canvas, finish

Array = np.ndarray[Any, Any]


def planes(d: int, base: float, places: Sequence[tuple[int, int]]) -> Figure:
    """A query and a key, turned in each plane, at several pairs of positions.

    Both point along the first axis before they are turned.
    """
    frequencies = rope_frequencies(d, base)
    before = np.tile([1.0, 0.0], d // 2)
    offset = places[0][1] - places[0][0]
    between = np.zeros((len(places), d // 2))
    rows = []
    with canvas(3.3, nrows=len(places), ncols=d // 2) as (figure, axes):
        for row, (i, j) in enumerate(places):
            tips = [rope(before, p, base=base).reshape(-1, 2) for p in (i, j)]
            for plane, ax in enumerate(axes[row]):
                q, k = tips[0][plane], tips[1][plane]
                turn = np.arctan2(q[0] * k[1] - q[1] * k[0], q @ k)
                between[row, plane] = turn
                _dial(ax, q, k, turn)
                if row == 0:
                    ax.set_title(
                        f"{number(round(frequencies[plane], 3))} a token",
                        loc="center",
                        color=INK2,
                    )
            axes[row, 0].text(
                -1.55, 0, f"{i} and {j}", color=INK2, ha="right", va="center"
            )
            rows.append((f"{i} and {j}", *(round(a, 6) for a in between[row])))
        same = np.allclose(between, between[0])
        told = ", ".join(number(round(a, 3)) for a in between[0])
        return finish(
            figure,
            finding=(
                "Every arrow has moved, and no angle between two arrows has."
                if same
                else "The angles between the arrows are not the same in both rows."
            ),
            caption=(
                f"A query (q) and a key (k) in {d // 2} planes, which turn by so many "
                f"radians from one token to the next. Rows: the positions of q and k, "
                f"{offset} tokens apart in both."
            ),
            alt=(
                f"{len(places)} rows of {d // 2} dials. In each dial an arrow for the "
                f"query and one for the key. The angles from query to key are {told} "
                "radians in the first row"
                + (", and the same in the others." if same else ".")
            ),
            columns=(
                "positions",
                *(f"angle in plane {plane}" for plane in range(d // 2)),
            ),
            rows=rows,
        )


def scores(q: Array, k: Array, starts: Sequence[int], farthest: int) -> Figure:
    """The score against the offset from several positions, and turned the wrong way."""
    offsets = np.arange(-farthest, farthest + 1)
    wrong = FAULTS["rope_by_negative_angle"].by

    def score(turn: Any, start: int) -> Array:
        keys = np.broadcast_to(k, (len(offsets), len(k)))
        return turn(keys, start + offsets) @ turn(q, start)

    right = [score(rope, start) for start in starts]
    back = score(wrong, starts[0])
    apart = max(float(np.max(np.abs(line - right[0]))) for line in right)
    mirrored = np.allclose(back, right[0][::-1])
    with canvas(3.5) as (figure, ax):
        ax.axvline(0, color=RULE, lw=0.9, zorder=0)
        ax.plot(offsets, back, color=BROKEN, ls=(0, (3, 1.4)), marker="")
        ax.plot(offsets, right[0], color=INK, ls="-", marker="", lw=1.2)
        for at, (line, mark) in enumerate(zip(right, "osx", strict=False)):
            some = slice(2 * at, None, 6)
            ax.plot(offsets[some], line[some], mark, color=INK, mfc="none", ms=6)
        for line, color, words in (
            (right[0], INK, "RoPE"),
            (back, BROKEN, "turned back"),
        ):
            ax.text(
                farthest + 1, line[-1], words, color=color, va="center", clip_on=False
            )
        ax.set(
            xlabel="offset: position of the key minus position of the query",
            title="score",
            xlim=(-farthest, farthest),
        )
        ax.set_xticks([-farthest, -farthest // 2, 0, farthest // 2, farthest])
        where = ", ".join(str(s) for s in starts)
        return finish(
            figure,
            finding=(
                "From every position the same curve. Turned back, its mirror image: "
                "a curve of the offset as well."
                if mirrored and apart < 1e-9
                else "The curves are not what the identity says."
            ),
            caption=(
                f"One query and one key with {len(q)} entries. The query stands at "
                f"position {where} (circles, squares, crosses)."
            ),
            alt=(
                f"A wavy curve of the score against the offset, from "
                f"{number(-farthest)} to {number(farthest)}. Marks for a query at "
                f"position {where} lie on it. A second, dashed curve for the "
                "negative angle is "
                + ("its mirror image" if mirrored else "another curve")
                + ". Where the offset is zero both are "
                + f"{number(round(right[0][farthest], 3))}."
            ),
            columns=("offset", *(f"query at {s}" for s in starts), "turned back"),
            rows=[
                (int(offsets[i]), *(round(line[i], 9) for line in right), back[i])
                for i in range(0, len(offsets), 6)
            ],
        )


def decode(right: Array, restarted: Array) -> Figure:
    """The weights of one decode step, with positions that go on and that restart."""
    keys = np.arange(len(right))
    apart = 0.5 * float(np.abs(right - restarted).sum())
    with canvas(2.9) as (figure, ax):
        for weights, color, style, mark, words in (
            (restarted, BROKEN, (0, (3, 1.4)), "x", "restarted at 0"),
            (right, INK, "-", "o", "goes on"),
        ):
            ax.plot(keys, weights, color=color, ls=style, marker=mark, lw=1.2)
            ax.text(keys[-1] + 0.4, weights[-1], words, color=color, va="center")
        ax.set(
            xlabel="position of the cached key",
            title="weight that the new token gives",
            xlim=(-0.3, keys[-1] + 0.2),
        )
        ax.set_ylim(0, None)
        ax.set_xticks(keys[:: max(1, len(keys) // 6)])
        return finish(
            figure,
            finding=(
                f"A restarted position moves {number(round(100 * apart, 1))} % of the "
                "attention to other keys."
            ),
            caption="One new token against the keys of a cache, in one head.",
            alt=(
                f"The weights of {len(keys)} cached keys. With the right position the "
                f"largest is {number(round(right.max(), 3))} at key "
                f"{int(right.argmax())}; with the restarted one it is "
                f"{number(round(restarted.max(), 3))} at key "
                f"{int(restarted.argmax())}."
            ),
            columns=("key", "position goes on", "position restarted"),
            rows=[(int(t), right[t], restarted[t]) for t in keys],
        )


def _dial(ax: Any, q: Array, k: Array, turn: float) -> None:
    """One plane: a circle, two arrows, and the angle between them."""
    around = np.linspace(0, 2 * np.pi, 97)
    ax.plot(np.cos(around), np.sin(around), color=RULE, ls="-", marker="", lw=0.9)
    start = np.arctan2(q[1], q[0])
    arc = start + np.linspace(0, turn, 33)
    ax.plot(0.4 * np.cos(arc), 0.4 * np.sin(arc), color=LINE, ls="-", marker="", lw=1.2)
    for tip, color, letter in ((q, QUERY, "q"), (k, KEY, "k")):
        arrow = {"arrowstyle": "->", "color": color, "lw": 1.8, "shrinkA": 0}
        ax.annotate("", tip, (0, 0), arrowprops={**arrow, "shrinkB": 0})
        ax.text(*(1.24 * tip), letter, color=color, ha="center", va="center")
    angle = f"{number(round(turn, 3))} apart"
    ax.text(0, -1.7, angle, color=INK, ha="center", va="center")
    ax.set(xlim=(-1.5, 1.5), ylim=(-2.15, 1.4), aspect="equal")
    ax.axis("off")
