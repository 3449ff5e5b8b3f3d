"""Plots of the chapter on writes and decay."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..identities import FAULTS
from ..ops.delta import delta_write, gated_write
from ..report import number
from ._draw import BROKEN, INK2, KEY, LINE, STATE, Figure, canvas, finish

WRONG = {
    "gated_error_before_decay": "error before decay",
    "gated_decay_after_write": "decay after write",
    "delta_write_does_nothing": "no write at all",
}


def scalar_write(S: float, k: float, v: float, beta: float, retention: float) -> Figure:
    """The state after one scalar write, against beta, right and three times wrong."""
    betas = np.linspace(0.0, 1.0, 41)
    at = int(np.argmin(np.abs(betas - beta)))

    def after(write: Any) -> np.ndarray[Any, Any]:
        given = np.array([[S]]), np.array([k]), np.array([v])
        return np.array([write(*given, b, retention)[0, 0] for b in betas])

    right = after(gated_write)
    wrong = {name: after(FAULTS[name].by) for name in WRONG}
    blind = [name for name in WRONG if np.isclose(wrong[name][at], right[at])]
    with canvas(3.3) as (figure, ax):
        styles = ["-.", (0, (3, 1.4)), ":"]
        for (name, line), style in zip(wrong.items(), styles, strict=True):
            ax.plot(betas, line, color=BROKEN, ls=style, marker="")
            ax.text(1.02, line[-1], WRONG[name], color=BROKEN, va="center")
        ax.plot(betas, right, color=STATE, ls="-", marker="")
        ax.text(1.02, right[-1], "decay, read, correct", color=STATE, va="center")
        ax.plot([beta], [right[at]], "o", color=STATE, mfc="none", ms=11)
        ax.plot(
            [beta, beta], [0, right[at] - 0.35], color=LINE, ls="-", marker="", lw=0.9
        )
        ax.text(beta + 0.015, 0.25, f"the example: {number(right[at])}", color=INK2)
        ax.set(
            xlabel="beta", title="state after the write", xlim=(0, 1), ylim=(0, 10.6)
        )
        ax.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.5", "0.75", "1"])
        ax.set_yticks([0, 2, 4, 6, 8, 10])
        ax.spines["left"].set_bounds(0, 10)
        ax.spines["bottom"].set_bounds(0, 1)
        names = " and ".join(WRONG[name] for name in blind)
        return finish(
            figure,
            finding=(
                f"At beta {number(beta)} two lines cross: the right write and {names}."
            ),
            caption=(
                f"One number as state, from {number(S)}, with the value {number(v)} "
                f"and retention {number(retention)}."
            ),
            alt=(
                f"Four lines of the state against beta. At beta {number(beta)} the "
                f"right write gives {number(right[at])}, and so does {names}; "
                + ", ".join(
                    f"{WRONG[n]} gives {number(wrong[n][at])}"
                    for n in WRONG
                    if n not in blind
                )
                + "."
            ),
            columns=("beta", "decay, read, correct", *WRONG.values()),
            rows=[
                (betas[i], right[i], *(line[i] for line in wrong.values()))
                for i in range(0, 41, 5)
            ],
        )


def two_orders(
    s: np.ndarray[Any, Any], k: np.ndarray[Any, Any], retention: np.ndarray[Any, Any]
) -> Figure:
    """One column of the state as a point: decay then project, project then decay."""
    zero = np.zeros(1)

    def project(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return delta_write(x[:, None], k, zero, 1.0)[:, 0]

    def decay(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return gated_write(x[:, None], k, zero, 0.0, retention)[:, 0]

    right = [s, decay(s), gated_write(s[:, None], k, zero, 1.0, retention)[:, 0]]
    wrong = [s, project(s), decay(project(s))]
    with canvas(3.6) as (figure, ax):
        ax.plot([-1.4, 0.3], [1.4, -0.3], color=LINE, ls="-", marker="", lw=0.9)
        ax.text(-1.42, 1.46, "the key reads 0", color=INK2)
        ax.annotate("", 0.5 * k, (0, 0), arrowprops=_arrow(KEY))
        ax.text(*(0.58 * k), "key", color=KEY, va="center")
        for path, color in ((right, STATE), (wrong, BROKEN)):
            for start, end in zip(path[:-1], path[1:], strict=True):
                ax.annotate("", end, start, arrowprops=_arrow(color))
        ax.plot(*s, "o", color=INK2)
        ax.text(s[0] + 0.1, s[1], "before", color=INK2, va="center")
        ax.plot(*right[2], "D", color=STATE)
        ax.text(0.24, 0.62, "decay, project", color=STATE)
        ax.plot(*wrong[2], "x", color=BROKEN, ms=8)
        ax.text(
            wrong[2][0],
            wrong[2][1] - 0.1,
            "project, decay",
            color=BROKEN,
            va="top",
            ha="center",
        )
        ax.set(xlim=(-1.6, 1.4), ylim=(-0.35, 2.15), aspect="equal")
        ax.set(title="second entry of the column", xlabel="first entry")
        ax.set_xticks([-1, 0, 1], ["-1", "0", "1"])
        ax.set_yticks([0, 1, 2])
        reads = [round(abs(float(k @ end)), 12) for end in (right[2], wrong[2])]
        return finish(
            figure,
            finding="After projecting, decay brings the old content back to the key.",
            caption=(
                "One column of the state, moved step by step by each order. The key "
                "reads zero anywhere on the thin line."
            ),
            alt=(
                f"A point at {_pair(s)} ends at {_pair(right[2])} by decay and then "
                f"projection, where the key reads {number(reads[0])}, and at "
                f"{_pair(wrong[2])} by projection and then decay, where the key reads "
                f"{number(reads[1])}, up to its sign."
            ),
            columns=("step", "decay first", "projection first"),
            rows=[
                (word, _pair(a), _pair(b))
                for word, a, b in zip(
                    ("before", "after one step", "after two steps"),
                    right,
                    wrong,
                    strict=True,
                )
            ],
        )


def _arrow(color: str) -> dict[str, Any]:
    return {"arrowstyle": "->", "color": color, "lw": 1.8, "shrinkA": 3, "shrinkB": 4}


def _pair(x: np.ndarray[Any, Any]) -> str:
    return f"({number(round(x[0], 12))}, {number(round(x[1], 12))})"
