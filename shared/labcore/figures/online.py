"""Plots of the chapter on softmax summaries and temperature."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.patches import Rectangle

from ..ops.online import finish as finished
from ..ops.online import merge, online_trace, summarize
from ..ops.softmax import entropy, temperature_softmax
from ..report import number
from ._draw import BROKEN, INK2, KEY, LINE, STATE, VALUE, Figure, canvas, finish

Array = np.ndarray[Any, Any]


def running(score_chunks: Sequence[Array], value_chunks: Sequence[Array]) -> Figure:
    """Scores with their running maximum, and the mass: rescaled past, new chunk."""
    trace = online_trace(score_chunks, value_chunks)
    maxima = [float(s.maximum) for s in trace]
    masses = [float(s.mass) for s in trace]
    rows = []
    for i, summary in enumerate(trace):
        before = masses[i - 1] if i else 0.0
        kept = before * float(np.exp(maxima[i - 1] - summary.maximum)) if i else 0.0
        rows.append((i, before, kept, masses[i] - kept))
    finite = np.concatenate([s[np.isfinite(s)] for s in score_chunks])
    low, high = float(finite.min()), float(finite.max())
    with canvas(4.4, nrows=2, sharex=True) as (figure, (top, bottom)):
        for i, scores in enumerate(score_chunks):
            top.plot([i, i + 0.86], [maxima[i]] * 2, color=STATE, ls="-", marker="")
            if i:
                step = [maxima[i - 1], maxima[i]]
                top.plot([i - 0.14, i], step, color=STATE, ls=":", marker="", lw=0.9)
            x = i + 0.86 * (np.arange(len(scores)) + 1) / (len(scores) + 1)
            seen = np.isfinite(scores)
            top.plot(x[seen], scores[seen], "s", color=KEY, ls="")
            if not np.any(seen):
                word = "masked" if len(scores) else "empty"
                top.text(i + 0.43, low, word, color=INK2, ha="center", va="center")
            _, before, kept, new = rows[i]
            _bar(bottom, i, 0.0, kept, color=STATE, hatch="////")
            _bar(bottom, i, kept, new, color=KEY, hatch="")
            if before > kept > 0:
                gone = [before] * 2
                bottom.plot([i, i + 0.86], gone, color=LINE, ls=":", marker="")
                bottom.text(
                    i + 0.43, before, "before", color=INK2, ha="center", va="bottom"
                )
        end = len(trace) - 0.06
        top.text(end, maxima[-1], "maximum", color=STATE, va="center")
        _, _, kept, new = rows[-1]
        bottom.text(end, kept / 2, "the past", color=STATE, va="center")
        bottom.text(end, kept + new / 2, "the chunk", color=KEY, va="center")
        top.set(title="scores", ylim=(low - 0.8, high + 0.6))
        ticks = np.arange(np.ceil(low), high + 0.1, 2)
        top.set_yticks(ticks, [number(t) for t in ticks])
        bottom.set(title="mass, in units of the running maximum", xlabel="chunk")
        bottom.set(ylim=(0, max(max(masses), *(r[1] for r in rows)) * 1.14))
        names = [f"{i}" for i in range(len(trace))]
        bottom.set_xticks(np.arange(len(trace)) + 0.43, names)
        for ax in (top, bottom):
            ax.set_xlim(-0.1, len(trace) + 0.85)
            ax.spines["bottom"].set_bounds(0, len(trace) - 0.14)
            ax.tick_params(axis="x", length=0)
        shrunk = [r for r in rows if 0 < r[2] < r[1] - 1e-12]
        last = shrunk[-1]
        return finish(
            figure,
            finding=(
                f"When chunk {last[0]} raises the maximum, the mass of the past "
                f"shrinks from {last[1]:.3g} to {last[2]:.3g}."
            ),
            caption=(
                "Squares are the scores of a chunk, the line is the largest so far. "
                "Below, the mass after each chunk: the hatched part is the past, "
                "rescaled."
            ),
            alt=(
                f"{len(trace)} chunks. The running maximum goes "
                f"{', '.join(number(m) for m in maxima)}; the mass goes "
                f"{', '.join(f'{m:.3g}' for m in masses)}. A masked or empty chunk "
                "changes neither."
            ),
            columns=("chunk", "maximum", "mass before", "rescaled", "of the chunk"),
            rows=[
                (f"{i}", maxima[i], f"{before:.4f}", f"{kept:.4f}", f"{new:.4f}")
                for i, before, kept, new in rows
            ],
        )


def wrong_average(scores: Sequence[Array], values: Sequence[Array]) -> Figure:
    """Two chunks: the output against the share of the second, and where it lies."""
    a, b = (summarize(s, v) for s, v in zip(scores, values, strict=True))
    whole = merge(a, b)
    low, high = (float(finished(s)[0]) for s in (a, b))
    right = float(finished(whole)[0])
    share = float(np.exp(b.lse - whole.lse))
    mean = (low + high) / 2
    with canvas(3.1) as (figure, ax):
        ax.plot([0, 1], [low, high], color=VALUE, ls="-", marker="")
        for x, y in ((0.5, mean), (share, right)):
            ax.plot([x, x], [0, y], color=LINE, ls="-", marker="", lw=0.9)
        ax.plot([0.5], [mean], "x", color=BROKEN, ms=9)
        ax.text(
            0.47, mean + 0.15, f"the average: {number(mean)}", color=BROKEN, ha="right"
        )
        ax.plot([share], [right], "o", color=VALUE, mfc="none", ms=11)
        ax.text(
            share - 0.03,
            right + 0.3,
            f"the merge: {right:.4g}",
            color=VALUE,
            ha="right",
        )
        ax.text(0.02, low - 0.1, "first chunk alone", color=INK2, va="top")
        ax.text(1.02, high, "second chunk alone", color=INK2, va="center")
        ax.set(
            title="output",
            xlabel="share of the mass that lies in the second chunk",
            xlim=(0, 1),
            ylim=(0, max(low, high) * 1.08),
        )
        ax.set_xticks([0, 0.5, share, 1], ["0", "0.5", f"{share:.2g}", "1"])
        ax.spines["bottom"].set_bounds(0, 1)
        return finish(
            figure,
            finding=(
                f"The second chunk has {share:.2g} of the mass, and the average gives "
                "it one half."
            ),
            caption=(
                "The output moves on a straight line from one chunk's own output to "
                "the other's, by the share of the mass."
            ),
            alt=(
                f"A line from {number(low)}, the first chunk alone, to {number(high)}, "
                f"the second alone. In the middle lies the average, {number(mean)}, "
                f"and at share {share:.2g} the merge, {right:.4g}."
            ),
            columns=("answer", "share of the second", "output"),
            rows=[
                ("first chunk alone", "0", number(low)),
                ("second chunk alone", "1", number(high)),
                ("the average", "0.5", number(mean)),
                ("the merge", f"{share:.4f}", f"{right:.4f}"),
            ],
        )


def temperatures(logits: Array) -> Figure:
    """Weights and entropy of one row against the temperature, with their limits."""
    ts = np.logspace(-1, 2, 61)
    weights = np.array([temperature_softmax(logits, float(t)) for t in ts])
    undecided = np.array([entropy(w) for w in weights])
    n, most = len(logits), float(np.log(len(logits)))
    at = int(np.argmin(np.abs(ts - 1.6)))
    with canvas(4.6, nrows=2, sharex=True) as (figure, (top, bottom)):
        for j in range(n):
            top.plot(ts, weights[:, j], color=KEY, ls="-", marker="")
            below = j == int(np.argmin(logits))  # its label hangs, the others stand
            ahead = below or j == int(np.argmax(logits))
            x = at + 8 if below else at
            top.text(
                ts[x] * (1.08 if ahead else 1),
                weights[x, j] + (-0.02 if below else 0.02),
                f"score {number(logits[j])}",
                color=KEY,
                va="top" if below else "bottom",
                ha="left" if ahead else "right",
            )
        top.plot(ts, np.full(len(ts), 1 / n), color=LINE, ls=":", marker="", lw=0.9)
        top.text(112, 1 / n, f"1 / {n}", color=INK2, va="center")
        bottom.plot(ts, undecided, color=STATE, ls="-", marker="")
        bottom.plot(ts, np.full(len(ts), most), color=LINE, ls=":", marker="", lw=0.9)
        bottom.text(112, most, f"log {n}", color=INK2, va="center")
        top.set(title="weight", xscale="log", ylim=(-0.02, 1.04))
        top.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])
        bottom.set(
            title="entropy, in nats", xlabel="temperature", ylim=(-0.03, most * 1.12)
        )
        bottom.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])
        bottom.set_xticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
        bottom.minorticks_off()
        top.minorticks_off()
        for ax in (top, bottom):
            ax.set_xlim(0.1, 100)
        rows = [
            (
                number(t),
                *(f"{w:.4f}" for w in temperature_softmax(logits, t)),
                f"{entropy(temperature_softmax(logits, t)):.4f}",
            )
            for t in (0.1, 0.3, 1.0, 3.0, 10.0, 100.0)
        ]
        return finish(
            figure,
            finding="Cold, the largest score takes all; hot, all scores get the same.",
            caption=(
                f"One row of {n} scores. Dotted lines are the limits: equal weights, "
                f"and the logarithm of {n} for the entropy."
            ),
            alt=(
                f"{n} lines of weight against temperature, for the scores "
                f"{', '.join(number(x) for x in logits)}. At {number(ts[0])} they are "
                f"{', '.join(f'{w:.2f}' for w in weights[0])}, at {number(ts[-1])} "
                f"{', '.join(f'{w:.2f}' for w in weights[-1])}. The entropy rises from "
                f"{undecided[0]:.3f} to {undecided[-1]:.3f}, below log {n}."
            ),
            columns=(
                "temperature",
                *(f"score {number(x)}" for x in logits),
                "entropy",
            ),
            rows=rows,
        )


def _bar(ax: Any, i: int, low: float, height: float, *, color: str, hatch: str) -> None:
    if height <= 0:
        return
    at, size = (i, low), (0.86, height)
    alpha = 0.12 if hatch else 0.5
    ax.add_patch(Rectangle(at, *size, facecolor=color, alpha=alpha, edgecolor="none"))
    ax.add_patch(
        Rectangle(at, *size, facecolor="none", edgecolor=color, hatch=hatch, lw=0.9)
    )
