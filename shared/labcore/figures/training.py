"""Plots of the chapter on losses, gradients and optimizers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..identities import FAULTS
from ..ops.optim import accumulate_gradients, adamw_step
from ..report import number
from ._draw import BROKEN, INK, INK2, LINE, Figure, canvas, finish

DIGITS = 6  # what is drawn is rounded: the last bits differ between processors


# ---- Micro-batches ------------------------------------------------------------------


def token_weights(counts: Sequence[int]) -> dict[str, np.ndarray[Any, Any]]:
    """How much each token counts: the gradient where token i alone has gradient e_i."""
    ends = np.cumsum(counts)[:-1]
    sums = [part.sum(axis=0) for part in np.split(np.eye(sum(counts)), ends)]
    ways: dict[str, Callable[..., Any]] = {
        "sum over sum": accumulate_gradients,
        "mean of means": FAULTS["accumulate_mean_of_means"].by,
    }
    return {name: by(sums, counts).round(DIGITS) for name, by in ways.items()}


def weight_of_a_token(counts: Sequence[int]) -> Figure:
    """The weight of every token in the gradient of the batch, right and by means."""
    right, wrong = token_weights(counts).values()
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    gap = 0.6
    with canvas(3.3) as (figure, ax):
        rows = []
        for b, (start, n) in enumerate(zip(starts, counts, strict=True)):
            left = start + b * gap
            x = left + np.arange(n) + 0.5
            ax.bar(
                x, wrong[start : start + n], 0.92, fc="none", ec=BROKEN, hatch="////"
            )
            ax.plot([left, left + n], [right[start]] * 2, color=INK, marker="", ls="-")
            ax.text(
                left + n / 2,
                wrong[start] + 0.008,
                number(float(f"{wrong[start]:.3g}")),
                color=BROKEN,
                ha="center",
            )
            ax.text(
                left + n / 2,
                -0.012,
                f"{n} token{'s' if n > 1 else ''}",
                color=INK2,
                ha="center",
                va="top",
            )
            rows.append((n, float(right[start]), float(wrong[start])))
        ax.text(
            0, right[0] + 0.008, f"sum over sum: {number(float(right[0]))}", color=INK
        )
        shortest = int(np.argmin(counts))
        ax.text(
            starts[shortest] + shortest * gap - 0.25,
            max(wrong) * 0.85,
            "mean of means",
            color=BROKEN,
            ha="right",
        )
        ax.set(title="weight of one token in the gradient")
        ax.set(
            xlim=(-0.1, sum(counts) + gap * len(counts)), ylim=(0, 1.15 * max(wrong))
        )
        ax.set_xticks([])
        ax.set_xlabel("micro-batches", labelpad=22)
        ax.spines["bottom"].set_visible(False)
        least, most = int(np.argmax(counts)), int(np.argmin(counts))
        times = number(round(float(wrong[starts[most]] / wrong[starts[least]]), 3))
        return finish(
            figure,
            finding=(
                "Averaged by means, a token in the shortest micro-batch counts "
                f"{times} times as much as one in the longest."
            ),
            caption=(
                "Every box is a token. Both ways share out the same total: the boxes, "
                "and the area under the lines."
            ),
            alt=(
                f"{number(sum(counts))} tokens in {number(len(counts))} micro-batches. "
                f"Divided once, each token has the weight {number(float(right[0]))}. "
                "By the mean of means a token has the weight "
                + ", ".join(
                    f"{number(w)} in the micro-batch of {number(n)}" for n, _, w in rows
                )
                + "."
            ),
            columns=("tokens", "each, sum over sum", "each, mean of means"),
            rows=rows,
        )


# ---- Decay --------------------------------------------------------------------------


def left_by_decay(
    scales: ArrayLike, *, steps: int, options: Mapping[str, float]
) -> dict[str, np.ndarray[Any, Any]]:
    """The share of a weight that decay leaves, by the size of alternating gradients.

    Each run is held against the same run without decay, so that the gradients' own
    walk is taken off.
    """
    ways: dict[str, Callable[..., Any]] = {
        "AdamW": adamw_step,
        "L2 in Adam": FAULTS["adamw_l2_in_the_gradient"].by,
    }
    free = {**options, "weight_decay": 0.0}
    return {
        name: (1 + _after(by, scales, steps, options) - _after(by, scales, steps, free))
        for name, by in ways.items()
    }


def _after(
    by: Callable[..., Any],
    scales: ArrayLike,
    steps: int,
    options: Mapping[str, float],
) -> np.ndarray[Any, Any]:
    size = np.asarray(scales, float)
    w, m, v = np.ones_like(size), np.zeros_like(size), np.zeros_like(size)
    for t in range(1, steps + 1):
        done = by(w, size * (-1.0) ** (t + 1), m, v, t, **options)
        w, m, v = done.w, done.m, done.v
    return np.asarray(w)


def decay_against_scale(
    low: float, high: float, *, steps: int, options: Mapping[str, float]
) -> Figure:
    """The weight that decay leaves, against the size of its gradients.

    low * high = 1, so that size 1 is in the middle.
    """
    scales = np.geomspace(low, high, 49)
    lines = {
        name: line.round(DIGITS)
        for name, line in left_by_decay(scales, steps=steps, options=options).items()
    }
    flat, bent = lines.values()
    middle = len(scales) // 2
    with canvas(3.4) as (figure, ax):
        at_one = float(bent[middle])
        ax.plot([1, 1], [0, at_one], color=LINE, ls="-", marker="", lw=0.9)
        ax.semilogx(scales, flat, color=INK, ls="-", marker="")
        ax.semilogx(scales, bent, color=BROKEN, ls="-.", marker="")
        ax.text(scales[1], flat[0] + 0.03, "AdamW", color=INK)
        ax.text(scales[10] * 1.25, bent[10], "L2 in Adam", color=BROKEN, va="top")
        ax.plot([1], [at_one], "o", color=INK, mfc="none", ms=11)
        ax.text(1.12, 0.05, f"gradients of size {_three(scales[middle])}", color=INK2)
        ax.set(title=f"share of the weight after {steps} steps")
        ax.set(xlabel="size of the gradients", ylim=(0, 1.06), xlim=(low, high))
        ticks = [t for t in (0.01, 0.1, 1, 10, 100) if low <= t <= high]
        ax.set_xticks(ticks, [number(t) for t in ticks])
        ax.minorticks_off()
        ax.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.5", "0.75", "1"])
        ax.spines["left"].set_bounds(0, 1)
        return finish(
            figure,
            finding=(
                "AdamW decays every weight alike; L2 in Adam spares the weights with "
                "large gradients."
            ),
            caption=(
                "Gradients that alternate in sign, so that nothing but decay moves the "
                f"weight for long. Rate {number(options['lr'])}, decay "
                f"{number(options['weight_decay'])}. In the ring both nearly "
                "agree."
            ),
            alt=(
                f"What is left of a weight after {number(steps)} steps, against the "
                f"size of its gradients on a log axis. AdamW leaves "
                f"{_three(flat.min())} at every size. L2 in Adam leaves "
                f"{_three(bent[0])} at size {number(low)}, {_three(at_one)} at size "
                f"{_three(scales[middle])} and {_three(bent[-1])} at size "
                f"{number(high)}."
            ),
            columns=("size of the gradients", *lines),
            rows=[
                (float(f"{scales[i]:.3g}"), float(flat[i]), float(bent[i]))
                for i in range(0, len(scales), 6)
            ],
        )


def _three(x: Any) -> str:
    return number(float(f"{float(x):.3g}"))
