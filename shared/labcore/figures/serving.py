"""Plots of the chapter on memory, quantization and serving."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.patches import Rectangle

from ..identities import FAULTS
from ..ops.compress import dequantize, quantize_symmetric
from ..ops.serving import critical_path, mm1
from ..report import number
from ._draw import BROKEN, HOLDS, INK, INK2, LINE, RULE, Figure, canvas, finish

GIB, KIB = 2**30, 2**10
DASHES: tuple[Any, ...] = ("-", (0, (7, 2.2)), "-.", (0, (3, 1.4)))
DIGITS = 12  # the last bits differ from one processor to the next


# ---- Bytes --------------------------------------------------------------------------


def cache_against_length(
    per_token: Mapping[str, tuple[float, int]], memory: float
) -> Figure:
    """Bytes of one request by its length; per_token: name -> (bytes, longest)."""
    first = 1024
    fits = {name: int(memory // size) for name, (size, _) in per_token.items()}
    heaviest, lightest = (
        pick(per_token, key=lambda name: per_token[name][0]) for pick in (max, min)
    )
    farthest = max(longest for _, longest in per_token.values())
    with canvas(3.7) as (figure, ax):
        level = [memory / GIB] * 2
        ax.plot([first, farthest], level, color=LINE, ls="-", marker="", lw=0.9)
        words = f"all the memory: {number(memory / GIB)} GiB"
        ax.text(1.05 * first, 1.15 * memory / GIB, words, color=INK2, va="bottom")
        for (name, (size, longest)), dash in zip(
            per_token.items(), DASHES, strict=True
        ):
            ends = np.array([first, longest])
            ax.loglog(ends, size * ends / GIB, color=INK, ls=dash, marker="")
            ax.plot(ends[1:], size * ends[1:] / GIB, "o", color=HOLDS, clip_on=False)
            end = size * longest / GIB
            if longest == farthest:
                ax.text(1.15 * longest, end, name, color=INK, va="center")
            else:  # a short line: its name stands over it, clear of the others
                ax.text(1.05 * first, 1.15 * end, name, color=INK, va="bottom")
            if first < fits[name] < longest:
                ax.plot([fits[name]], [memory / GIB], "o", color=INK, mfc="none", ms=10)
        ax.set(title="GiB for one request", xlabel="tokens", xlim=(first, farthest))
        ax.minorticks_off()
        ax.set_yticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
        ticks = [2**i for i in range(10, 18) if 2**i <= farthest]
        ax.set_xticks(ticks, [f"{x // KIB}k" for x in ticks])
        ax.spines["bottom"].set_bounds(first, farthest)
        return finish(
            figure,
            finding=(
                f"Kept as a latent, a token takes "
                f"{number(round(per_token[lightest][0] / KIB, 6))} KiB; with every "
                f"head, {number(round(per_token[heaviest][0] / KIB, 6))} KiB."
            ),
            caption=(
                f"One request, both axes logarithmic; k is {KIB} tokens. Each line "
                "ends at the length its model is published with. Ring: here a single "
                "request fills the memory."
            ),
            alt=(
                "Parallel rising lines of bytes against tokens. "
                + "; ".join(
                    f"{name}: {number(round(size / KIB, 6))} KiB a token, "
                    f"{number(round(size * longest / GIB, 6))} GiB at {longest} tokens"
                    for name, (size, longest) in per_token.items()
                )
                + f". The memory of {number(memory / GIB)} GiB is full at "
                + ", ".join(
                    f"{fits[name]} tokens for {name}"
                    for name, (_, longest) in per_token.items()
                    if fits[name] < longest
                )
                + "."
            ),
            columns=("cache", "KiB a token", "tokens", "GiB", "tokens that fit"),
            rows=[
                (
                    name,
                    round(size / KIB, 6),
                    longest,
                    round(size * longest / GIB, 6),
                    fits[name],
                )
                for name, (size, longest) in per_token.items()
            ],
        )


def quantisation_steps(
    x: Sequence[float], scale: float, qmin: int, qmax: int, wrong: str
) -> Figure:
    """What comes back for what goes in: steps, their ends, and a wrong staircase."""
    edge = round((qmax + 2.1) * scale, DIGITS)
    places = np.linspace(-edge, edge, 4801)

    def back(quantize: Any, given: Any) -> np.ndarray[Any, Any]:
        codes = quantize(np.asarray(given, float), scale, qmin=qmin, qmax=qmax)
        return np.round(dequantize(codes, scale), DIGITS)

    right, other = (
        back(quantize, places) for quantize in (quantize_symmetric, FAULTS[wrong].by)
    )
    got, same = back(quantize_symmetric, x), back(FAULTS[wrong].by, x)
    ends = (qmin - 0.5) * scale, (qmax + 0.5) * scale
    errors = np.round(np.abs(got - np.asarray(x)), DIGITS)
    agree = int(np.sum(got == same))
    with canvas(4.3) as (figure, ax):
        for a, b in ((-edge, ends[0]), (ends[1], edge)):
            ax.fill_between(
                [a, b],
                -edge,
                edge,
                hatch="////",
                facecolor="none",
                edgecolor=RULE,
                lw=0,
            )
        ax.plot([-edge, edge], [-edge, edge], color=LINE, ls="-", marker="", lw=0.9)
        ax.plot(places, other, color=BROKEN, ls=(0, (3, 1.4)), marker="")
        ax.plot(places, right, color=INK, ls="-", marker="")
        for at, y in zip(x, got, strict=True):
            ax.plot([at, at], [at, y], color=HOLDS, ls="-", marker="", lw=2.4)
            ax.plot([at], [y], "o", color=HOLDS, ms=7)
        top = edge - 0.25 * scale
        ax.text(ends[1] + 0.15 * scale, -top, "cut off", color=INK2)
        ax.text(
            0.62 * scale, -0.42 * scale, "point cut off instead", color=BROKEN, va="top"
        )
        ax.text(-0.6 * scale, 1.25 * scale, "rounded", color=INK, ha="right")
        ax.text(
            top - 0.4 * scale,
            top + 0.1 * scale,
            "no error",
            color=INK2,
            ha="right",
            va="top",
        )
        ax.set(title="what comes back", xlabel="what goes in")
        ax.set(xlim=(-edge, edge), ylim=(-edge, edge), aspect="equal")
        ticks = [round(i * scale, DIGITS) for i in range(qmin - 1, qmax + 2)]
        ax.set_xticks(ticks, [number(t) for t in ticks])
        ax.set_yticks(ticks, [number(t) for t in ticks])
        return finish(
            figure,
            finding=(
                f"All {agree} inputs of the example lie where rounding and cutting "
                "the point off agree."
                if agree == len(got)
                else f"{agree} of {len(got)} inputs lie where both staircases agree."
            ),
            caption=(
                f"Steps of {number(scale)}, codes from {qmin} to {qmax}. Dots: the "
                "inputs of X10, with their errors as bars. Hatched: beyond the range, "
                "where the error grows with the input. Red: what is behind the point "
                "is dropped."
            ),
            alt=(
                f"A staircase of {qmax - qmin + 1} steps around the diagonal, flat "
                "beyond the range. "
                + "; ".join(
                    f"{number(a)} comes back as {number(b)}, an error of {number(e)}"
                    for a, b, e in zip(x, got, errors, strict=True)
                )
                + ". The staircase without rounding has a wider middle step "
                f"and returns {', '.join(number(y) for y in same)} for the same inputs."
            ),
            columns=("in", "rounded", "point cut off", "error of rounding"),
            rows=list(zip(x, got, same, errors, strict=True)),
        )


# ---- Time ---------------------------------------------------------------------------


def wait_against_load(watched: Mapping[float, float], example: float) -> Figure:
    """Mean wait in line by load: the formula, what was watched, and even spacing."""
    loads = np.linspace(0.0, 0.96, 97)
    line = np.array([mm1(load, 1.0).Wq for load in loads]).round(DIGITS)
    at = mm1(example, 1.0).Wq
    formula = {load: mm1(load, 1.0).Wq for load in watched}
    top = float(line[-1])
    with canvas(3.4) as (figure, ax):
        ax.plot([0, 1], [0, 0], color=INK, ls=DASHES[1], marker="", clip_on=False)
        ax.plot([1, 1], [0, top], color=LINE, ls="-", marker="", lw=0.9)
        ax.plot(loads, line, color=INK, ls="-", marker="")
        ax.plot(list(watched), list(watched.values()), "o", color=HOLDS)
        ax.plot([example], [at], "o", color=INK, mfc="none", ms=11)
        ax.plot([0, example - 0.025], [at, at], color=LINE, ls="-", marker="", lw=0.9)
        ax.text(0.01, at + 0.4, f"at load {number(example)}: {number(round(at, 6))}")
        ax.text(0.915, 14, "arrivals at random", color=INK, ha="right")
        ax.text(0.01, -0.7, "arrivals evenly spaced: nobody waits", va="top")
        ax.text(1.015, 0.5 * top, "full", color=INK2, va="center")
        ax.set(title="mean wait in line, in service times", xlabel="load")
        ax.set(xlim=(0, 1.02), ylim=(-3.2, top + 0.5))
        ax.set_xticks(
            [0, 0.2, 0.4, 0.6, 0.8, 1], ["0", "0.2", "0.4", "0.6", "0.8", "1"]
        )
        ax.spines["bottom"].set_bounds(0, 1)
        ax.spines["left"].set_bounds(0, top)
        return finish(
            figure,
            finding=(
                "Rates alone leave nobody waiting below capacity. Chance does: for "
                f"{number(round(at, 6))} service times at load {number(example)}."
            ),
            caption=(
                "One server. Line: the formula for random arrivals and services. "
                "Dots: queues that were watched. Dashed: the same rates, one request "
                "after another in even steps."
            ),
            alt=(
                "Mean wait against load. With even arrivals nobody waits. With "
                "random ones the wait bends upward towards the full load: "
                + ", ".join(
                    f"{number(round(wait, 6))} at {number(load)} by the formula and "
                    f"{number(watched[load])} watched"
                    for load, wait in formula.items()
                )
                + "."
            ),
            columns=("load", "formula", "watched", "even steps"),
            rows=[
                (load, round(formula[load], 6), wait, 0)
                for load, wait in watched.items()
            ],
        )


Plan = tuple[Mapping[str, float], Mapping[str, Sequence[str]]]


def plans(named: Mapping[str, Plan], unit: str) -> Figure:
    """Tasks as boxes on a clock, arrows to what waits for them, the path in bold."""
    found = {name: critical_path(*plan) for name, plan in named.items()}
    longest = max(plan.makespan for plan in found.values())
    base = next(iter(found.values())).makespan
    with canvas(1.35 * len(named) + 0.3, nrows=len(named), sharex=True) as (
        figure,
        axes,
    ):
        for ax, (name, (durations, after)) in zip(axes, named.items(), strict=True):
            plan = found[name]
            lanes = _lanes(durations, after)
            for task, duration in durations.items():
                start = plan.finish[task] - duration
                _task(ax, task, start, duration, lanes[task], plan)
            for task, before in after.items():
                for earlier in before:
                    place = plan.finish[task] - durations[task], lanes[task]
                    _arrow(ax, earlier, place, lanes[earlier], plan)
            ax.text(
                longest + 0.9,
                0.5,
                f"{number(plan.makespan)} {unit}",
                va="center",
                fontweight="bold",
            )
            ax.set_title(name, color=INK)
            ax.set(xlim=(-0.05, longest + 1.7), ylim=(-0.45, 1.45))
            ax.set_yticks([])
            ax.spines["left"].set_visible(False)
            ax.spines["bottom"].set_visible(ax is axes[-1])
            ax.spines["bottom"].set_bounds(0, longest)
            ax.tick_params(axis="x", length=0 if ax is not axes[-1] else 3)
        axes[-1].set_xticks(range(int(longest) + 1))
        axes[-1].set_xlabel(unit)
        told = [
            f"{name}: {number(plan.makespan)} {unit}, by way of {', '.join(plan.path)}"
            for name, plan in found.items()
        ]
        tasks = list(found[next(iter(found))].slack)
        idle = [n for n, plan in list(found.items())[1:] if plan.makespan == base]
        return finish(
            figure,
            finding=f"{' and '.join(idle)}: nothing changes for the one who waits."
            if idle
            else "Every change moves the end.",
            caption=(
                "Arrows go from a task to the one that waits for it. Bold: the "
                "critical path. Slack: how much later a task could end without moving "
                "the whole."
            ),
            alt="Tasks on a clock. " + "; ".join(told) + ".",
            columns=("plan", *(f"slack of {task}" for task in tasks), unit),
            rows=[
                (name, *plan.slack.values(), plan.makespan)
                for name, plan in found.items()
            ],
        )


def _lanes(
    durations: Mapping[str, float], after: Mapping[str, Sequence[str]]
) -> dict[str, float]:
    """A lane for each task that starts at once, the middle for what waits."""
    first = [task for task in durations if not after.get(task)]
    lanes = {task: 1.0 - i for i, task in enumerate(first)}
    return {task: lanes.get(task, 0.5) for task in durations}


def _task(
    ax: Any, task: str, start: float, duration: float, lane: float, plan: Any
) -> None:
    critical = plan.slack[task] == 0
    ax.add_patch(
        Rectangle(
            (start, lane - 0.3),
            duration,
            0.6,
            facecolor="none",
            edgecolor=INK if critical else LINE,
            lw=2.4 if critical else 0.9,
        )
    )
    ax.text(
        start + 0.12,
        lane,
        f"{task} {number(duration)}",
        va="center",
        color=INK if critical else INK2,
    )


def _arrow(
    ax: Any, earlier: str, to: tuple[float, float], lane: float, plan: Any
) -> None:
    slack, end = plan.slack[earlier], plan.finish[earlier]
    ax.annotate(
        "",
        to,
        (end, lane),
        arrowprops={
            "arrowstyle": "-|>",
            "color": LINE if slack else INK,
            "lw": 0.9 if slack else 2.4,
            "ls": (0, (4, 2)) if slack else "-",
            "shrinkA": 0,
            "shrinkB": 0,
        },
    )
    if slack:
        above = lane > to[1]
        ax.text(
            end + 0.12,
            lane + (0.06 if above else -0.06),
            f"slack {number(slack)}",
            color=INK2,
            va="bottom" if above else "top",
        )
