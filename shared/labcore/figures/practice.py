"""Plots of the chapters on practice: types, tests of gradients, and cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..report import number
from ._draw import BROKEN, HOLDS, INK, INK2, RULE, STATE, Figure, canvas, finish

Array = np.ndarray[Any, Any]


def above(x: float) -> int:
    """The exponent of the power of ten at or above a number.

    >>> above(8.9e-16), above(0.02), above(0.1)
    (-15, -1, -1)
    """
    return math.ceil(math.log10(x))


def _short(x: Any, digits: int = 1) -> str:
    return number(float(f"{float(x):.{digits}g}"))


# ---- From float64 to the dtype you train in -----------------------------------------


def window(
    rows: Mapping[str, Mapping[str, tuple[float, float]]],
    faults: Mapping[str, str],
    least: Mapping[str, float],
) -> Figure:
    """Rounding and the nearest fault of some checks in several types.

    rows: check -> type -> (floor, gap); least: type -> the lowest floor there is, which
    is drawn. A gap that is not above its floor is rounding noise: the fault is drawn
    where it is in the first type.
    """
    types = list(next(iter(rows.values())))
    lowest, left, step = 1e-17, -22.0, len(types) + 1.9
    told = []
    closed: dict[str, int] = dict.fromkeys(types, 0)
    with canvas(5.6) as (figure, ax):
        for place, (check, row) in enumerate(rows.items()):
            top = -place * step
            ax.text(left, top, check, color=INK, va="center", weight="bold")
            size = row[types[0]][1]
            for line, (name, (floor, gap)) in enumerate(row.items(), 1):
                y = top - line
                open_ = gap > floor
                closed[name] += not open_
                at = float(_short(gap if open_ else size))
                noise = least[name]
                ax.barh(
                    y,
                    math.log10(noise / lowest),
                    0.62,
                    left=math.log10(lowest),
                    color=RULE,
                    lw=0,
                )
                ax.text(
                    math.log10(lowest) - 0.3,
                    y,
                    name,
                    color=INK2,
                    ha="right",
                    va="center",
                    fontsize=10.5,
                )
                ax.plot([math.log10(noise)], [y], "o", color=HOLDS, ms=4.5)
                ax.plot([math.log10(at)], [y], "x", color=BROKEN, ms=6)
                if not open_:
                    ax.text(0.4, y, "closed", color=BROKEN, va="center", fontsize=10.5)
                told.append(
                    (
                        check,
                        faults[check],
                        name,
                        f"1e{above(floor)}",
                        _short(gap) if open_ else "below the floor",
                    )
                )
        bottom = -len(rows) * step + 0.6
        ax.set(xlim=(left, 3.4), ylim=(bottom, 0.8))
        ax.set_xticks([-15, -12, -9, -6, -3, 0])
        ax.set_xticklabels(["1e-15", "1e-12", "1e-9", "1e-6", "0.001", "1"])
        ax.set_yticks([])
        ax.spines["left"].set_visible(False)
        ax.spines["bottom"].set_bounds(-17, 0)
        ax.set_xlabel("error, in parts of the largest number wanted")
        return finish(
            figure,
            finding="The coarser the type, the more windows are closed.",
            caption=(
                "Grey: what counts as rounding, up to the lowest floor of the type "
                "(dot). Cross: the nearest fault. Where it lies in the grey no "
                "tolerance can tell it from rounding."
            ),
            alt=(
                f"Error on a log axis, for {number(len(rows))} checks in "
                f"{number(len(types))} types. The floor rises from type to type and "
                "the fault stays where it is. Windows that are closed: "
                + ", ".join(f"{number(n)} in {name}" for name, n in closed.items())
                + ". The checks, with the size of the nearest fault: "
                + "; ".join(
                    f"{check} {_short(row[types[0]][1])}" for check, row in rows.items()
                )
                + "."
            ),
            columns=("check", "fault", "type", "floor, at most", "nearest fault"),
            rows=told,
        )


# ---- Testing gradients --------------------------------------------------------------

ROUNDING = 8 * float(np.finfo(np.float64).eps)  # of a loss, in parts of its terms


def rounding(h: Any, terms: float) -> Any:
    """What rounding does at most to a difference over a step h; terms: of the loss."""
    return ROUNDING * terms / h


def steps(
    sizes: Sequence[float], errors: Mapping[str, Sequence[float]], terms: float
) -> Figure:
    """Errors of three ways to a slope against the step.

    sizes: falling steps; errors: one-sided, central, complex. Where rounding could be
    seen in an error only its bound is drawn: rounding differs between processors. The
    first step is too large for the bounds and is in the table only.
    """
    h: Array = np.asarray(sizes)
    tiny = ROUNDING * terms
    power = {"one-sided": 1, "central": 2, "complex": 2}
    look: dict[str, Any] = {
        "one-sided": (INK2, (0, (7, 2.2)), "s"),
        "central": (INK, "-", "o"),
        "complex": (STATE, (0, (1.2, 1.6)), "D"),
    }
    place = {  # of the name: at a step, and how far from its line
        "one-sided": (3, 0.5, 3.0, "right"),
        "central": (2, 1.6, 0.2, "left"),
        "complex": (len(h) - 1, 0.9, 4.0, "left"),
    }
    exact, bounds = {}, {}
    for way, measured in errors.items():
        noise = rounding(h, terms) if way != "complex" else np.full(len(h), tiny)
        size = np.asarray(measured)
        start = size[1] / h[1] ** power[way]
        bounds[way] = 1.5 * start * h ** power[way] + noise
        if np.any(size[1:] > bounds[way][1:]):
            raise AssertionError(f"{way}: an error above its bound")
        exact[way] = size > 100 * noise
    with canvas(3.7) as (figure, ax):
        for way, measured in errors.items():
            color, dash, mark = look[way]
            seen = exact[way] & (h < h[0])
            y = np.array([float(_short(x, 2)) for x in measured])
            ring = {"ms": 8.5, "mfc": "none"}  # the diamonds lie in it
            dot = ring if way == "central" else {"ms": 4.5}
            ax.loglog(h[seen], y[seen], color=color, ls="", marker=mark, **dot)
            ax.loglog(h[1:], bounds[way][1:], color=color, ls=dash, marker="", lw=1.4)
            at, right, up, side = place[way]
            ax.text(
                h[at] * right,
                bounds[way][at] * up,
                way,
                color=color,
                ha=side,
                va="center",
            )
        ax.set(title="error of the slope, and its bound", xlabel="step")
        ax.set_xticks([1e-12, 1e-9, 1e-6, 1e-3], ["1e-12", "1e-9", "1e-6", "0.001"])
        ax.set_yticks(
            [1e-15, 1e-12, 1e-9, 1e-6, 1e-3],
            ["1e-15", "1e-12", "1e-9", "1e-6", "0.001"],
        )
        ax.minorticks_off()
        best = {way: float(h[int(np.argmin(line))]) for way, line in bounds.items()}
        return finish(
            figure,
            finding="A smaller step helps only so far, unless it is imaginary.",
            caption=(
                "Marks: errors that were measured, where rounding plays no part (rings "
                "are central, the diamonds in them complex). Lines: what bounds the "
                "errors, rounding included. Every error measured lies under its line."
            ),
            alt=(
                "Error against the step, both on log axes. From large steps to small "
                "ones the errors fall along straight lines, and for differences rise "
                "again. The bound is smallest at the step "
                + " and ".join(
                    f"{number(best[way])}, {way}" for way in ("one-sided", "central")
                )
                + f". The complex step falls to {_short(tiny)} and stays there."
            ),
            columns=("step", *errors),
            rows=[
                (
                    float(step),
                    *(
                        _short(errors[way][i], 2)
                        if exact[way][i]
                        else f"below 1e{above(float(bounds[way][i]))}"
                        for way in errors
                    ),
                )
                for i, step in enumerate(h)
            ],
        )


# ---- What it costs ------------------------------------------------------------------


def forms(costs: Mapping[int, Mapping[str, Mapping[str, float]]]) -> Figure:
    """What forms of attention multiply and move for a token, against the length.

    costs: length -> form -> {"multiplied": ..., "moved": ...}.
    """
    n = np.array(list(costs))
    names = list(next(iter(costs.values())))
    look: dict[str, tuple[str, Any]] = {
        "direct": (INK, "-"),
        "L1 distance": (INK2, (0, (7, 2.2))),
        "recurrent": (STATE, "-"),
        "in chunks": (STATE, (0, (1.2, 1.6))),
    }
    lines = {
        what: {name: np.array([costs[int(x)][name][what] for x in n]) for name in names}
        for what in ("multiplied", "moved")
    }
    crossing = {
        (what, name): _meets(n, line["direct"], line[name])
        for what, line in lines.items()
        for name in ("recurrent", "in chunks")
    }
    with canvas(6.0, nrows=2, sharex=True) as (figure, axes):
        titles = {
            "multiplied": "multiplications for a token",
            "moved": "numbers moved for a token",
        }
        for ax, (what, line) in zip(axes, lines.items(), strict=True):
            for name in names:
                color, dash = look[name]
                if what == "moved" and name == "L1 distance":
                    continue  # the line of the direct form
                ax.loglog(n, line[name], color=color, ls=dash, marker="")
                ax.text(n[-1] * 1.12, line[name][-1], name, color=color, va="center")
            for name in ("recurrent", "in chunks"):
                at = crossing[what, name]
                if at:
                    height = float(np.interp(at, n, line["direct"]))
                    ax.plot([at], [height], "o", color=INK, mfc="none", ms=9)
            ax.set(title=titles[what], xlim=(n[0], n[-1] * 9))
            ax.set_xticks(
                [16, 64, 256, 1024, 4096], ["16", "64", "256", "1024", "4096"]
            )
            ax.set_yticks([1e3, 1e4, 1e5], ["1000", "1e4", "1e5"])
            ax.minorticks_off()
            ax.spines["bottom"].set_bounds(n[0], n[-1])
        axes[1].set_xlabel("length of the sequence, in tokens", loc="left")
        last = int(n[-1])
        far = costs[last]
        return finish(
            figure,
            finding=(
                "On long texts the recurrence multiplies least, and chunks move least."
            ),
            caption=(
                "Both axes are logarithmic. Rings: where a line meets that of all "
                "pairs. Distances move what products move, and multiply less."
            ),
            alt=(
                "Two panels against the length, on log axes. At "
                f"{number(last)} tokens a token takes, in multiplications and in "
                "numbers moved: "
                + "; ".join(
                    f"{name} {_short(far[name]['multiplied'], 3)} and "
                    f"{_short(far[name]['moved'], 3)}"
                    for name in names
                )
                + ". The direct form is met by the recurrence at about "
                f"{number(crossing['multiplied', 'recurrent'])} tokens and by chunks "
                f"at about {number(crossing['multiplied', 'in chunks'])}."
            ),
            columns=(
                "tokens",
                *(f"{name}, {what}" for what in lines for name in names),
            ),
            rows=[
                (
                    int(x),
                    *(float(lines[what][name][i]) for what in lines for name in names),
                )
                for i, x in enumerate(n)
            ],
        )


def _meets(n: Array, rising: Array, other: Array) -> int:
    """The length at which a rising line meets another; 0 if it lies above it always."""
    every = np.arange(n[0], n[-1] + 1)
    over = np.interp(every, n, rising) > np.interp(every, n, other)
    return 0 if over[0] or not over.any() else int(every[np.argmax(over)])
