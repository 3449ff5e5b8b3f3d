"""Plots of the chapters on Laplacian attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..examples import retrieval_toy as toy
from ..identities import FAULTS
from ..ops.laplacian import laplacian_attention, laplacian_gradients
from ..ops.softmax import entropy, temperature_softmax
from ..report import bound, number
from ._draw import (
    BROKEN,
    HOLDS,
    INK,
    INK2,
    KEY,
    LINE,
    QUERY,
    RULE,
    Figure,
    canvas,
    finish,
)

DASHES: tuple[Any, ...] = ((0, (7, 2.2)), "-", (0, (3, 1.4)))


# What is drawn is rounded: the last bits differ from one processor to the next, and
# with them a picture's bytes.
DIGITS = 12
NEAR = 1e-12  # from its limit, an entropy has met it


def _weights(q: Any, k: Any, sigma: float) -> np.ndarray[Any, Any]:
    k = np.asarray(k, dtype=float)
    return laplacian_attention(np.array([q]), k, np.zeros((len(k), 1)), sigma).weights[
        0
    ]


def _frame(ax: Any, bottom: Sequence[float], left: Sequence[float]) -> None:
    ax.spines["bottom"].set_bounds(*bottom)
    ax.spines["left"].set_bounds(*left)


# ---- Ratio and transition ---------------------------------------------------------


def weight_against_distance(sigmas: Sequence[float], wrong: str) -> Figure:
    """Weights in parts of the nearest key's, on a log axis: lines of slope -1/sigma."""
    distances = np.linspace(0.0, 5.0, 26)
    keys = np.stack([0.4 * distances, -0.6 * distances], axis=-1)
    lines = {
        s: np.round((w := _weights([0.0, 0.0], keys, s)) / w[0], DIGITS) for s in sigmas
    }
    middle = sigmas[len(sigmas) // 2]
    w = (
        FAULTS[wrong]
        .by([[0.0, 0.0]], keys, np.zeros((len(keys), 1)), middle)
        .weights[0]
    )
    bent = np.round(w / w[0], DIGITS)
    low = 1e-4
    with canvas(3.4) as (figure, ax):
        for (sigma, line), dash in zip(lines.items(), DASHES, strict=True):
            shown = line >= low
            ax.semilogy(distances[shown], line[shown], color=INK, ls=dash, marker="")
            ax.semilogy(distances[shown][::5], line[shown][::5], "o", color=HOLDS)
            ax.text(
                distances[shown][-1] + 0.12,
                line[shown][-1],
                f"sigma {number(sigma)}",
                color=INK,
                va="center",
            )
        shown = bent >= low
        ax.semilogy(distances[shown], bent[shown], color=BROKEN, ls="-.", marker="")
        ax.text(2.72, 1.6e-4, "distance squared", color=BROKEN, ha="right")
        ax.set(title="weight, in parts of the nearest key's", xlabel="distance")
        ax.set(xlim=(0, 5), ylim=(low * 0.8, 1.3))
        ax.set_yticks([1e-4, 1e-3, 1e-2, 0.1, 1], ["1e-4", "0.001", "0.01", "0.1", "1"])
        ax.minorticks_off()
        ax.set_xticks([0, 1, 2, 3, 4, 5])
        _frame(ax, (0, 5), (low, 1))
        slopes = {s: float(np.log(line[5] / line[0])) for s, line in lines.items()}
        return finish(
            figure,
            finding=(
                "On a log axis the weights fall along a line of slope minus one over "
                "sigma."
            ),
            caption=(
                "Keys in a row behind the query. Dots are weights that the attention "
                f"returned. Red: the squared distance at sigma {number(middle)}, which "
                "bends."
            ),
            alt=(
                "Weight against distance on a log axis, three straight lines. One unit "
                "of distance changes the logarithm of the weight by "
                + ", ".join(
                    f"{number(round(x, 9))} at sigma {number(s)}"
                    for s, x in slopes.items()
                )
                + ". With the squared distance the line is a parabola."
            ),
            columns=("distance", *(f"sigma {number(s)}" for s in sigmas), "squared"),
            rows=[
                (distances[i], *(line[i] for line in lines.values()), bent[i])
                for i in range(0, 26, 5)
            ],
        )


def two_keys(sigmas: Sequence[float]) -> Figure:
    """The near key's weight against how much farther the other is, by sigma."""
    near = 4.0
    differences = np.linspace(-3.0, 3.0, 61)

    def weight(sigma: float, difference: float) -> float:
        pair = [[near, 0.0], [1.0, near - 1.0 + difference]]
        return round(float(_weights([0.0, 0.0], pair, sigma)[0]), DIGITS)

    lines = {s: np.array([weight(s, d) for d in differences]) for s in sigmas}
    at_zero = [float(line[30]) for line in lines.values()]
    with canvas(3.3) as (figure, ax):
        ax.plot([-3, 0], [0.5, 0.5], color=LINE, ls="-", marker="", lw=0.9)
        ax.plot([0, 0], [0, 0.5], color=LINE, ls="-", marker="", lw=0.9)
        for line, dash in zip(lines.values(), DASHES, strict=True):
            ax.plot(differences, line, color=INK, ls=dash, marker="")
        ax.plot(differences[::5], lines[sigmas[1]][::5], "o", color=HOLDS)
        for sigma, offset in zip(sigmas, (0.035, -0.05, 0.0), strict=True):
            ax.text(
                3.1, lines[sigma][-1] + offset, f"sigma {number(sigma)}", va="center"
            )
        ax.plot([0], [0.5], "o", color=INK, mfc="none", ms=11)
        ax.text(-2.95, 0.53, "one half", color=INK2)
        ax.set(title="weight of the first key", xlim=(-3, 3), ylim=(-0.02, 1.05))
        ax.set_xlabel("how much farther the second key is")
        ax.set_xticks([-3, -2, -1, 0, 1, 2, 3])
        ax.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.5", "0.75", "1"])
        _frame(ax, (-3, 3), (0, 1))
        return finish(
            figure,
            finding="Every sigma crosses one half at equal distance.",
            caption=(
                f"The first key is {number(near)} away, the second moves past it. "
                "Every point is a run of the attention."
            ),
            alt=(
                "Three rising curves of the first key's weight against the difference "
                f"of the distances. At difference {_slope(differences[30])} all are at "
                f"{number(at_zero[0])}. At difference {_slope(differences[40])} they "
                "are at "
                + ", ".join(
                    f"{number(line[40])} for sigma {number(s)}"
                    for s, line in lines.items()
                )
                + "."
            ),
            columns=("difference", *(f"sigma {number(s)}" for s in sigmas)),
            rows=[
                (differences[i], *(line[i] for line in lines.values()))
                for i in range(0, 61, 10)
            ],
        )


def equal_distance(keys: np.ndarray[Any, Any], sigma: float) -> Figure:
    """Keys at one L2 distance from the query: their L1 distances, and weights."""
    read = laplacian_attention(np.zeros((1, 2)), keys, np.zeros((len(keys), 1)), sigma)
    w, d = read.weights[0].round(DIGITS), read.distances[0].round(DIGITS)
    radius = float(np.linalg.norm(keys[0]))
    turn = np.linspace(0, 2 * np.pi, 121)
    circle = np.round([radius * np.cos(turn), radius * np.sin(turn)], DIGITS)
    with canvas(3.9) as (figure, ax):
        ax.plot(
            *circle,
            color=LINE,
            ls="-",
            marker="",
            lw=0.9,
        )
        for size in sorted({round(float(x), 9) for x in d}):
            ax.plot(
                [size, 0, -size, 0, size],
                [0, size, 0, -size, 0],
                color=HOLDS,
                ls=(0, (4, 2)),
                marker="",
                lw=1.2,
            )
            inside = size <= radius
            at = -0.5 * size + (0.15 if inside else -0.15)
            ax.text(
                at,
                at,
                f"L1: {number(size)}",
                color=HOLDS,
                ha="left" if inside else "right",
                va="bottom" if inside else "top",
            )
        ax.text(
            0,
            radius + 0.15,
            f"L2: {number(radius)}",
            color=INK2,
            ha="center",
            va="bottom",
        )
        ax.plot([0], [0], "^", color=QUERY, ms=7)
        ax.text(0.3, -0.2, "query", color=QUERY, va="top")
        for key, weight in zip(keys, w, strict=True):
            ax.plot(*key, "s", color=KEY, ms=6)
            ax.text(
                key[0] + 0.3,
                key[1] + 0.3,
                f"weight {number(round(float(weight), 3))}",
                color=KEY,
            )
        edge = float(d.max())
        ax.set(xlim=(-edge - 0.6, edge + 3.4), ylim=(-edge - 0.2, edge + 0.2))
        ax.set_aspect("equal")
        ax.axis("off")
        return finish(
            figure,
            finding="Keys on a circle are not equally near, those on a diamond are.",
            caption=(
                f"All keys are {number(radius)} from the query in L2. Dashed: lines of "
                f"equal L1 distance, which are lines of equal weight. Sigma "
                f"{number(sigma)}."
            ),
            alt=(
                "A query in the middle of a circle with keys on it, and diamonds of "
                "equal L1 distance through the keys: "
                + "; ".join(
                    f"The key at {_pair(key)} is {number(x)} away in L1 and has weight "
                    f"{number(round(float(y), 6))}"
                    for key, x, y in zip(keys, d, w, strict=True)
                )
                + "."
            ),
            columns=("key", "L2 distance", "L1 distance", "weight"),
            rows=[
                (_pair(key), float(np.linalg.norm(key)), x, y)
                for key, x, y in zip(keys, d, w, strict=True)
            ],
        )


def kink(
    keys: np.ndarray[Any, Any], values: np.ndarray[Any, Any], sigma: float
) -> Figure:
    """The output while the query passes a key: two slopes, and the one returned."""
    at = float(keys[0, 0])

    def output(x: float) -> float:
        read = laplacian_attention(np.array([[x]]), keys, values, sigma)
        return round(float(read.output[0, 0]), DIGITS)

    def slope(x: float) -> float:
        one = np.ones((1, 1))
        found = laplacian_gradients(np.array([[x]]), keys, values, sigma, one)
        return round(float(found.q[0, 0]), 8)  # beside the corner, not in it

    places = np.linspace(at - 1.5, at + 2.5, 161)
    line = np.array([output(x) for x in places])
    here, tiny = output(at), 1e-9
    left, right, middle = slope(at - tiny), slope(at + tiny), slope(at)
    reach = 0.75
    with canvas(3.3) as (figure, ax):
        ax.plot(places, line, color=INK, ls="-", marker="")
        for x in keys[:, 0]:
            ax.plot([x, x], [0, 0.05], color=KEY, ls="-", marker="", lw=1.8)
            ax.text(x, 0.075, "key", color=KEY, ha="center")
        for rise, sides, dash in (
            (left, (-reach, 0.0), (0, (4, 2))),
            (right, (0.0, reach), (0, (4, 2))),
            (middle, (-reach, reach), (0, (1, 1.5))),
        ):
            ax.plot(
                [at + s for s in sides],
                [here + rise * s for s in sides],
                color=HOLDS,
                ls=dash,
                marker="",
                lw=2.2,
            )
        ax.plot([at], [here], "o", color=INK, mfc="none", ms=10)
        ax.text(at - reach, here - 0.03, f"left {_slope(left)}", color=HOLDS, va="top")
        for words, rise in (("right", right), ("returned", middle)):
            ax.text(
                at + reach + 0.08,
                here + rise * reach,
                f"{words} {_slope(rise)}",
                color=HOLDS,
                va="center",
            )
        ax.set(title="output", xlabel="query", xlim=(at - 1.5, at + 2.5), ylim=(0, 1.1))
        ax.set_xticks([-1, 0, 1, 2])
        ax.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.5", "0.75", "1"])
        _frame(ax, (at - 1.5, at + 2.5), (0, 1))
        return finish(
            figure,
            finding="Where the query meets a key the output has a corner.",
            caption=(
                "One channel, two keys, sigma "
                f"{number(sigma)}. Dashed: the slopes of both sides. Dotted: what the "
                "gradient returns, their mean."
            ),
            alt=(
                "The output against the query, with corners at the keys. At "
                f"{number(at)} the slope is {_slope(left)} on the left and "
                f"{_slope(right)} on the right; the gradient returns {_slope(middle)}."
            ),
            columns=("query", "output"),
            rows=[(places[i], line[i]) for i in range(0, 161, 20)],
        )


# ---- Sigma, temperature and entropy ------------------------------------------------


def entropy_against_sigma(distances: Sequence[float]) -> Figure:
    """From log m to log N, and where float64 sees no difference any more."""
    keys = np.array(distances)[:, None]
    n = len(keys)
    tied = int(np.sum(np.isclose(keys, keys.min())))
    sigmas = np.array([float(f"{s:.9g}") for s in np.logspace(-4, 9, 261)])
    found = np.array([float(entropy(_weights([0.0], keys, s))) for s in sigmas])
    low, high = float(np.log(tied)), float(np.log(n))
    below = float(sigmas[found > low + NEAR][0])
    above = float(sigmas[found < high - NEAR][-1])
    found = found.round(DIGITS)
    with canvas(3.3) as (figure, ax):
        for at, words in ((low, f"log {tied}"), (high, f"log {n}")):
            ax.plot([1e-4, 1e9], [at, at], color=LINE, ls="-", marker="", lw=0.9)
            ax.text(2.4e9, at, words, color=INK2, va="center")
        for a, b in ((1e-4, below), (above, 1e9)):
            ax.fill_between(
                [a, b], 0, 1.75, hatch="////", facecolor="none", edgecolor=RULE, lw=0
            )
        ax.semilogx(sigmas, found, color=INK, ls="-", marker="")
        ax.semilogx(sigmas[::20], found[::20], "o", color=HOLDS)
        ax.set(title="entropy", xlabel="sigma", xlim=(1e-4, 1e9), ylim=(0, 1.8))
        ax.minorticks_off()
        ticks = [1e-4, 0.01, 1, 100, 1e4, 1e6, 1e8]
        ax.set_xticks(ticks, ["1e-4", "0.01", "1", "100", "1e4", "1e6", "1e8"])
        ax.set_yticks([0, 0.5, 1, 1.5])
        _frame(ax, (1e-4, 1e9), (0, 1.75))
        return finish(
            figure,
            finding=f"Entropy rises from log {tied} to log {n} and stays between them.",
            caption=(
                f"{n} keys, of which the {tied} nearest tie. Hatched: the entropy is "
                f"within {number(NEAR)} of its limit."
            ),
            alt=(
                f"Entropy against sigma, rising from {number(low)} to {number(high)}. "
                f"Up to sigma {_rough(below)} it is within {number(NEAR)} of the lower "
                f"limit, from about {_rough(above)} of the upper one."
            ),
            columns=("sigma", "entropy"),
            rows=[(sigmas[i], found[i]) for i in range(40, 141, 20)],
        )


def same_dial(q: Any, k: np.ndarray[Any, Any]) -> Figure:
    """Each key's weight against the dial: Laplacian as lines, temperature as rings."""
    dials = np.logspace(-1.3, 1.7, 61).round(9)
    d = np.array([sum(abs(a - b) for a, b in zip(q, key, strict=True)) for key in k])
    by_sigma = np.array([_weights(q, k, s) for s in dials])
    by_t = np.array([temperature_softmax(-d, t) for t in dials])
    apart = float(np.max(np.abs(by_sigma - by_t)))
    by_sigma, by_t = by_sigma.round(DIGITS), by_t.round(DIGITS)
    order = np.argsort(d)
    with canvas(3.3) as (figure, ax):
        for place, j in enumerate(order):
            ax.semilogx(
                dials,
                by_sigma[:, j],
                color=KEY,
                ls=[*DASHES, ":", "-."][place],
                marker="",
            )
            ax.semilogx(dials[::6], by_t[::6, j], "o", color=INK2, mfc="none", ms=6)
        ax.text(
            dials[0],
            by_sigma[0, order[0]] + 0.02,
            f"nearest, {number(d[order[0]])} away",
            color=KEY,
        )
        ax.text(
            6.0, 0.02, f"farthest, {number(d[order[-1]])} away", color=KEY, va="bottom"
        )
        ax.text(dials[-1] * 1.16, 1 / len(d), f"1/{len(d)}", color=INK2, va="center")
        ax.set(title="weight of each key", xlabel="sigma, or temperature")
        high = 0.25 * np.ceil(4 * by_sigma.max() - 1e-9)
        ax.set(xlim=(dials[0] * 0.93, dials[-1]), ylim=(-0.01, 1.12 * high))
        ax.minorticks_off()
        ax.set_xticks([0.1, 1, 10], ["0.1", "1", "10"])
        ticks = np.arange(0, high + 0.1, 0.25)
        ax.set_yticks(ticks, [number(tick) for tick in ticks])
        _frame(ax, (dials[0], dials[-1]), (0, high))
        return finish(
            figure,
            finding="Sigma and temperature are one dial.",
            caption=(
                "Lines: Laplacian attention at sigma. Rings: softmax of minus the "
                f"distances at that temperature. The difference is {bound(apart)}."
            ),
            alt=(
                f"The weights of {len(d)} keys against sigma as lines, against "
                "temperature as rings on the same lines. At "
                f"{number(dials[20].round(3))} the nearest key has "
                f"{number(by_sigma[20, order[0]])}, at the right end every key has "
                f"about {number(1 / len(d))}."
            ),
            columns=("dial", *(f"{number(d[j])} away" for j in order)),
            rows=[(dials[i].round(4), *by_sigma[i, order]) for i in range(0, 61, 10)],
        )


def _bars(
    names: Sequence[str], weights: np.ndarray[Any, Any], finding: str, caption: str
) -> Figure:
    """One row a key: how much of the read comes from it."""
    n, weights = len(names), weights.round(DIGITS)
    with canvas(0.62 + 0.36 * n) as (figure, ax):
        rows = np.arange(n)[::-1]
        ax.axvline(1 / n, color=LINE, ls="-", marker="", lw=0.9, zorder=0)
        ax.barh(rows, weights, height=0.62, color=KEY, linewidth=0)
        for row, weight in zip(rows, weights, strict=True):
            text = number(round(float(weight), 3))
            ax.text(min(weight, 1.0) + 0.02, row, text, color=KEY, va="center")
        ax.set(xlim=(0, 1.14), ylim=(-0.6, n - 0.4))
        ax.set_yticks(rows, names)
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)
        ax.spines["bottom"].set_bounds(0, 1)
        ax.set_xticks([0, 1 / n, 1], ["0", f"1/{n}", "1"])
        return finish(
            figure,
            finding=finding,
            caption=caption,
            alt=f"{finding} Weights: "
            + ", ".join(
                f"{name} {number(round(float(w), 4))}"
                for name, w in zip(names, weights, strict=True)
            )
            + ".",
            columns=tuple(name.partition(" (")[0] for name in names),
            rows=[tuple(round(float(w), 4) for w in weights)],
        )


def _frames(
    dial: str, names: Sequence[str], runs: Sequence[tuple[float, np.ndarray[Any, Any]]]
) -> list[tuple[str, dict[str, Any], Figure]]:
    frames = []
    for value, weights in runs:
        h = float(entropy(weights))
        largest = np.isclose(weights, weights.max(), rtol=1e-9)
        top = " and ".join(n for n, top in zip(names, largest, strict=True) if top)
        finding = f"At {dial} {number(value)} the largest weight is at {top}."
        told = {"entropy": round(h, 4), "keys read": f"{np.exp(h):.3g}"}
        frames.append((number(value), told, _bars(names, weights, finding, "")))
    return frames


def sigma_frames(
    names: Sequence[str], q: Any, k: np.ndarray[Any, Any], sigmas: Sequence[float]
) -> list[tuple[str, dict[str, Any], Figure]]:
    """For the scrubber: the weights of Laplacian attention at each sigma."""
    return _frames("sigma", names, [(s, _weights(q, k, s)) for s in sigmas])


def temperature_frames(
    names: Sequence[str], scores: np.ndarray[Any, Any], temperatures: Sequence[float]
) -> list[tuple[str, dict[str, Any], Figure]]:
    """For the scrubber: the softmax of scores at each temperature."""
    runs = [(t, temperature_softmax(scores, t)) for t in temperatures]
    return _frames("temperature", names, runs)


# ---- Retrieval and cost --------------------------------------------------------------


def accuracy(found: dict[float, dict[str, np.ndarray[Any, Any]]]) -> Figure:
    """Top-1 against noise, one panel a variant, with the interval over the seeds."""
    noises = list(found)
    names = list(found[noises[0]])
    seeds = len(found[noises[0]][names[0]])
    middle = {
        name: [np.round(toy.interval(found[noise][name]), DIGITS) for noise in noises]
        for name in names
    }
    places = np.arange(len(noises))
    first = [row[0] for row in middle[names[0]]]
    with canvas(6.0, nrows=3, ncols=2, sharex=True, sharey=True) as (figure, axes):
        for ax, name in zip(axes.flat, names, strict=True):
            if name != names[0]:
                ax.plot(places, first, color=LINE, ls="-", marker="", lw=0.9)
            for x, (mean, low, high) in zip(places, middle[name], strict=True):
                ax.plot([x, x], [low, high], color=INK, ls="-", marker="", lw=1.8)
                ax.plot([x], [mean], "o", color=INK, ms=6)
            ax.set_title(name, color=INK)
            ax.set(xlim=(-0.4, len(noises) - 0.6), ylim=(-0.03, 1.06))
            ax.set_xticks(places, [number(noise) for noise in noises])
            ax.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])
            _frame(ax, (0, len(noises) - 1), (0, 1))
        for ax in axes[-1]:
            ax.set_xlabel("noise")
        plain, unit = (
            number(round(middle[name][0][0], 3))
            for name in ("dot product", "dot, unit length")
        )
        return finish(
            figure,
            finding=(
                f"Unit length alone takes the dot product from {plain} to {unit} at "
                f"noise {number(noises[0])}."
            ),
            caption=(
                "The share of queries that find their own copy. Dots: mean over "
                f"{seeds} seeds; bars hold {number(100 * toy.SHARE)} % of the seeds. "
                f"Thin line: the mean of {names[0]}."
            ),
            alt=(
                "Six panels of accuracy against noise. "
                + "; ".join(
                    f"{name}: "
                    + ", ".join(number(round(row[0], 3)) for row in middle[name])
                    for name in names
                )
                + f" at noise {', '.join(number(noise) for noise in noises)}."
            ),
            columns=("variant", "noise", "mean", "from", "to"),
            rows=[
                (name, noise, *(f"{x:.3f}" for x in row))
                for name in names
                for noise, row in zip(noises, middle[name], strict=True)
            ],
        )


def error_against_dial(rows: Sequence[dict[str, float]], uniform: float) -> Figure:
    """The error moves with sigma and with scale; top-1 does not."""
    factors, lap, dot = (
        np.array([float(f"{row[key]:.9g}") for row in rows])
        for key in ("factor", "lap_mse", "dot_mse")
    )
    best = int(np.argmin(lap))
    at = int(np.argmin(np.abs(factors - 1.0)))
    tops = {key: {row[key] for row in rows} for key in ("lap_top1", "dot_top1")}
    [top_lap], [top_dot] = tops["lap_top1"], tops["dot_top1"]
    high = 0.016
    with canvas(3.4) as (figure, ax):
        ax.plot(
            [factors[0], factors[-1]],
            [uniform] * 2,
            color=LINE,
            ls="-",
            marker="",
            lw=0.9,
        )
        ax.text(
            factors[-1],
            uniform * 1.03,
            "all keys alike",
            color=INK2,
            ha="right",
            va="bottom",
        )
        ax.semilogx(factors, dot, color=INK, ls=DASHES[0], marker="")
        ax.semilogx(factors, lap, color=INK, ls="-", marker="")
        ax.plot([1, 1], [0, uniform], color=LINE, ls="-", marker="", lw=0.9)
        ax.text(1.12, 0.0003, "as in the table", color=INK2)
        ax.text(factors[2], dot[2] + 0.0004, f"dot product: top-1 {number(top_dot)}")
        ax.text(
            1.12,
            0.0028,
            f"L1 distance: top-1 {number(top_lap)}",
        )
        ax.set(
            title="mean squared error",
            xlabel="sigma and 1/scale, in parts of the table's",
        )
        ax.set(xlim=(factors[0], factors[-1]), ylim=(0, high))
        ax.minorticks_off()
        ax.set_xticks([0.01, 0.1, 1, 10, 100], ["0.01", "0.1", "1", "10", "100"])
        ax.set_yticks([0, 0.005, 0.01, 0.015], ["0", "0.005", "0.01", "0.015"])
        _frame(ax, (factors[0], factors[-1]), (0, 0.015))
        return finish(
            figure,
            finding="Sigma moves the error, and top-1 not at all.",
            caption=(
                "The same draw at every point; only sigma (L1) or the scale (dot "
                "product) changes. Thin: the error when all keys weigh alike."
            ),
            alt=(
                f"The error of the L1 distance falls to {number(lap[best])} at "
                f"{number(factors[best].round(4))} of the table's sigma, from "
                f"{number(lap[at])} at the table's own; all keys alike give "
                f"{number(uniform)}. Its top-1 is {number(top_lap)} at every sigma. "
                f"The dot product's error goes from {number(dot[0])} to "
                f"{number(dot[-1])} and its top-1 is {number(top_dot)} throughout."
            ),
            columns=("factor", "L1 error", "L1 top-1", "dot error", "dot top-1"),
            rows=[
                (
                    rows[i]["factor"],
                    lap[i],
                    rows[i]["lap_top1"],
                    dot[i],
                    rows[i]["dot_top1"],
                )
                for i in range(0, len(rows), 4)
            ],
        )


def who_is_read(
    lengths: np.ndarray[Any, Any],
    dot: np.ndarray[Any, Any],
    lap: np.ndarray[Any, Any],
) -> Figure:
    """How many queries read each key, against the key's length."""
    read, n, lengths = int(np.sum(dot > 0)), len(dot), lengths.round(DIGITS)
    longest = np.argsort(-lengths)
    share = int(dot[longest[:read]].sum())
    least = "" if lap.min() == lap.max() else f"{number(int(lap.min()))} to "
    with canvas(3.2) as (figure, ax):
        ax.plot(lengths, lap, "o", color=HOLDS, ms=4, mew=0.8, mfc="none")
        ax.plot(lengths[dot > 0], dot[dot > 0], "s", color=KEY, ms=6)
        most = int(np.argmax(dot))
        ax.text(
            lengths[most] - 0.05,
            dot[most],
            f"dot product: {number(int(dot[most]))} queries read this key",
            color=KEY,
            ha="right",
            va="center",
        )
        ax.text(
            float(lengths.min()),
            2.8,
            f"L1 distance: {least}{number(int(lap.max()))} for each key",
            color=HOLDS,
        )
        ax.set(title="queries that read the key", xlabel="length of the key")
        ax.set_ylim(-0.8, 1.08 * float(dot.max()))
        ax.spines["left"].set_bounds(0, float(dot.max()))
        ax.spines["bottom"].set_bounds(float(lengths.min()), float(lengths.max()))
        return finish(
            figure,
            finding=f"The dot product reads {read} of {n} keys, the long ones.",
            caption=(
                f"{number(n)} queries, each with one copy among the keys. Squares: "
                "keys that win for some query under the dot product. Rings: under L1."
            ),
            alt=(
                "Queries per key against the key's length. Under the dot product "
                f"{read} keys share all {n} queries, and the {read} longest keys have "
                f"{share} of them; under the L1 distance {least}"
                f"{number(int(lap.max()))} for each key."
            ),
            columns=("length of the key", "dot product", "L1 distance"),
            rows=[(lengths[j], int(dot[j]), int(lap[j])) for j in longest[: read + 2]],
        )


# ---- Small parts --------------------------------------------------------------------


def _pair(x: np.ndarray[Any, Any]) -> str:
    return f"({number(float(x[0]))}, {number(float(x[1]))})"


def _slope(x: float) -> str:
    return number(round(x, 4) + 0.0)


def _rough(x: float) -> str:
    """One significant digit: where an entropy meets its limit is no exact number."""
    return number(float(f"{x:.0e}"))
