"""Plots of the chapter on evaluation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..identities import FAULTS
from ..ops.evaluation import (
    calibration_table,
    pass_at_k,
    pass_at_k_iid,
    simpson_table,
)
from ..report import number
from ._draw import BROKEN, HOLDS, INK, INK2, LINE, Figure, canvas, finish

DIGITS = 12  # what is drawn is rounded: the last bits differ between processors
SHARE = 0.95  # of the runs, for the bars of a reliability diagram
Strata = Mapping[str, tuple[int, int]]


def binomial(n: int, p: float) -> list[float]:
    """The chance of each number of successes in n trials."""
    return [math.comb(n, c) * p**c * (1 - p) ** (n - c) for c in range(n + 1)]


def mean_and_spread(values: Sequence[float], chance: Sequence[float]) -> Any:
    """Mean and standard deviation of values that come with these chances."""
    mean = math.fsum(x * w for x, w in zip(values, chance, strict=True))
    square = math.fsum(w * (x - mean) ** 2 for x, w in zip(values, chance, strict=True))
    return mean, math.sqrt(square)


def estimates(p: float, n: int) -> Figure:
    """The mean of both estimates of pass@k over all that n samples can show."""
    ks = list(range(1, n + 1))
    chance = binomial(n, p)
    plug_in = FAULTS["pass_plug_in"].by

    def mean(estimate: Any, k: int) -> float:
        values = [estimate(n, c, k) for c in range(n + 1)]
        return round(mean_and_spread(values, chance)[0], DIGITS)

    truth = [round(float(pass_at_k_iid(p, k)), DIGITS) for k in ks]
    drawn = [mean(pass_at_k, k) for k in ks]
    plugged = [mean(plug_in, k) for k in ks]
    top = max(truth)
    with canvas(3.3) as (figure, ax):
        ax.plot(ks, truth, color=INK, ls="-", marker="")
        ax.plot(ks, drawn, "o", color=HOLDS, ms=6)
        ax.plot(ks, plugged, color=BROKEN, ls=(0, (3, 1.4)), marker="x", ms=6)
        ax.text(
            n * 0.7,
            truth[round(n * 0.7) - 1] + 0.06,
            "true chance, and the mean of pass_at_k",
            color=INK,
            ha="right",
            va="bottom",
        )
        ax.text(
            n,
            plugged[-1] - 0.12,
            "mean of the plug-in",
            color=BROKEN,
            ha="right",
            va="top",
        )
        ax.set(title="at least one of k succeeds", xlabel="k")
        ax.set(xlim=(0.6, n + 0.4), ylim=(0, top + 0.12))
        ax.set_xticks(ks)
        ax.spines["bottom"].set_bounds(1, n)
        ax.spines["left"].set_bounds(0, math.floor(10 * top) / 10)
        return finish(
            figure,
            finding="The plug-in is too low, and more so for more draws.",
            caption=(
                f"Means over all that {n} samples can show when each is right with a "
                f"chance of {number(p)}. Line: the true chance. Dots: pass_at_k. Red: "
                "the share of right samples put into the formula."
            ),
            alt=(
                f"Three series against k, up to {n}. The true chance rises from "
                f"{number(truth[0])} to {number(truth[-1])}, and the mean of pass_at_k "
                "lies on it at every k. The mean of the plug-in starts at "
                f"{number(plugged[0])} and falls behind, to {number(plugged[-1])}."
            ),
            columns=("k", "true chance", "mean of pass_at_k", "mean of the plug-in"),
            rows=[
                (k, truth[k - 1], drawn[k - 1], plugged[k - 1])
                for k in sorted({1, 2, 3, 5, n})
            ],
        )


def simpson(a: Strata, b: Strata) -> Figure:
    """Each side's rate against the share of the second stratum, its total marked."""
    first, second = a
    table = simpson_table(a, b)
    sides = []
    for name, rates, strata, total in (
        ("A", table.a, a, table.total_a),
        ("B", table.b, b, table.total_b),
    ):
        trials = strata[first][1] + strata[second][1]
        sides.append(
            (name, rates[first], rates[second], strata[second][1] / trials, total)
        )
    (_, a0, a1, mix_a, total_a), (_, b0, b1, mix_b, total_b) = sides
    trials = sum(n for strata in (a, b) for _, n in strata.values())
    same = sum(strata[second][1] for strata in (a, b)) / trials
    level_a, level_b = a0 + (a1 - a0) * same, b0 + (b1 - b0) * same
    with canvas(3.6) as (figure, ax):
        ax.plot([same, same], [0, level_a], color=LINE, ls="-", marker="", lw=0.9)
        for (name, left, right, mix, total), dash, marker in zip(
            sides, ("-", (0, (7, 2.2))), ("o", "s"), strict=True
        ):
            ax.plot([0, 1], [left, right], color=INK, ls=dash, marker="")
            ax.text(1.02, right, name, va="center")
            ax.text(-0.02, left, name, va="center", ha="right")
            ax.plot([mix], [total], marker, color=HOLDS, ms=8)
            ax.plot(
                [same],
                [left + (right - left) * same],
                marker,
                color=HOLDS,
                ms=7,
                mfc="none",
            )
        for name, _, _, mix, total in sides:
            away = 0.2 if name == "A" else -0.2
            ax.plot([mix, mix], [total, total + away], color=LINE, marker="", lw=0.9)
            ax.text(
                mix,
                total + 1.1 * away,
                f"{name} in total\n{number(round(total, 3))}",
                color=HOLDS,
                ha="center",
                va="bottom" if away > 0 else "top",
            )
        ax.text(same + 0.02, 0.03, "the same mix for both", color=INK2, va="bottom")
        ax.set(title="success rate", xlabel=f"share of {second} tasks")
        ax.set(xlim=(-0.08, 1.08), ylim=(0, 1))
        ax.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.5", "0.75", "1"])
        ax.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.5", "0.75", "1"])
        ax.spines["bottom"].set_bounds(0, 1)
        return finish(
            figure,
            finding=_turned(table),
            caption=(
                f"A line is a side's rate at every mix of {first} and {second} tasks. "
                "Filled: the totals, each read at the mix its side happened to have. "
                "Open: both at the mix of all tasks together."
            ),
            alt=(
                f"Two lines against the share of {second} tasks. A goes from "
                f"{number(a0)} to {number(a1)}, B from {number(b0)} to {number(b1)}. "
                f"{_turned(table)} A's total of {number(total_a)} stands at a share "
                f"of {number(mix_a)}, B's of {number(total_b)} at {number(mix_b)}. At "
                f"the share of {number(same)} A has {number(round(level_a, 9))} and B "
                f"{number(round(level_b, 9))}."
            ),
            columns=("side", first, second, f"share {second}", "total", "same mix"),
            rows=[
                ("A", a0, a1, mix_a, total_a, round(level_a, DIGITS)),
                ("B", b0, b1, mix_b, total_b, round(level_b, DIGITS)),
            ],
        )


def _turned(table: Any) -> str:
    if not table.reversal:
        return "The totals do not contradict the lines."
    a, b = ("A", "B") if table.total_a < table.total_b else ("B", "A")
    return f"{a}'s line lies above {b}'s, and {a}'s total below."


def by_chance(n: int, p: float, share: float = SHARE) -> tuple[float, float]:
    """The frequencies between which n events of chance p fall, in that share of runs.

    At most half of the rest lies beyond either end.
    """
    beyond, total, low, high = (1 - share) / 2, 0.0, None, n
    for c, w in enumerate(binomial(n, p)):
        total += w
        if low is None and total > beyond + 1e-9:
            low = c
        if total >= 1 - beyond - 1e-9:
            high = c
            break
    return (low or 0) / n, high / n


def reliability(said: Any, came: Any, chance: Any, *, bins: int) -> Figure:
    """Frequencies against forecasts by range, with what chance alone would do.

    chance: what the true chance is at a forecast, as a function; it is known because
    the outcomes were drawn.
    """
    table = calibration_table(said, came, bins=bins)
    at = [round(t.mean_forecast, DIGITS) for t in table]
    found = [round(t.frequency, DIGITS) for t in table]
    allowed = [by_chance(t.size, x) for t, x in zip(table, at, strict=True)]
    out = [not low <= y <= high for y, (low, high) in zip(found, allowed, strict=True)]
    ends = [float(chance(0.0)), float(chance(1.0))]
    sure = "surer than" if abs(ends[1] - ends[0]) < 1 else "as sure as"
    outside = [i for i, is_out in enumerate(out) if is_out]
    with canvas(4.2) as (figure, ax):
        ax.plot([0, 1], [0, 1], color=LINE, ls="-", marker="", lw=0.9)
        ax.plot([0, 1], ends, color=INK, ls=(0, (4, 2)), marker="", lw=1.2)
        for x, (low, high) in zip(at, allowed, strict=True):
            ax.plot([x, x], [low, high], color=LINE, ls="-", marker="", lw=2.4)
            for y in (low, high):
                ax.plot([x - 0.012, x + 0.012], [y, y], color=LINE, ls="-", marker="")
        for x, y, is_out in zip(at, found, out, strict=True):
            ax.plot([x], [y], "o", color=HOLDS, ms=8, mfc=HOLDS if is_out else "none")
        for x, t in zip(at, table, strict=True):
            ax.text(x, -0.1, str(t.size), color=INK2, ha="center", va="center")
        ax.text(0.0, -0.19, "forecasts in the range", color=INK2, va="center")
        ax.text(1.01, 1.0, "forecast = chance", color=INK2, ha="right", va="bottom")
        ax.text(1.01, ends[1] - 0.12, "true chance", color=INK, ha="right", va="top")
        ax.set(title="how often the event came", xlabel="forecast")
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.25, 1.08))
        ax.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.5", "0.75", "1"])
        ax.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.5", "0.75", "1"])
        ax.spines["bottom"].set_bounds(0, 1)
        ax.spines["left"].set_bounds(0, 1)
        return finish(
            figure,
            finding=(
                f"The forecasts are {sure} the events. Of "
                f"{len(table)} ranges {len(outside)} show it."
            ),
            caption=(
                "Dots: the ranges. Bars: where a dot falls when forecasts are right, "
                f"in {number(100 * SHARE)} % of the runs or more. Filled dots lie "
                "outside."
            ),
            alt=(
                f"A reliability diagram of {len(at)} dots beside the diagonal. The "
                f"true chance is a line from {number(ends[0])} to {number(ends[1])}. "
                + (
                    "Outside of what right forecasts would give: "
                    + "; ".join(
                        f"forecast {number(round(at[i], 3))}, frequency "
                        f"{number(round(found[i], 3))}"
                        for i in outside
                    )
                    if outside
                    else "No dot lies outside of what right forecasts would give"
                )
                + ". The smallest range holds "
                f"{min(t.size for t in table)} forecasts and its bar spans "
                f"{_span(table, allowed)}."
            ),
            columns=("forecasts", "mean forecast", "frequency", "bar from", "to"),
            rows=[
                (t.size, x, y, low, high)
                for t, x, y, (low, high) in zip(table, at, found, allowed, strict=True)
            ],
        )


def _span(table: Any, allowed: Any) -> str:
    low, high = allowed[min(range(len(table)), key=lambda i: table[i].size)]
    return f"{number(round(low, 3))} to {number(round(high, 3))}"
