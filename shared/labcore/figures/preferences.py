"""Plots of the chapter on preferences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..identities import FAULTS
from ..ops.gradients import ppo_clip_gradient
from ..ops.losses import dpo_loss, ppo_clip
from ..report import number
from ._draw import (
    BROKEN,
    HOLDS,
    INK,
    INK2,
    LINE,
    RULE,
    Figure,
    canvas,
    finish,
)

DIGITS = 12  # the last bits differ from one processor to the next


def equal_loss(
    descent: np.ndarray[Any, Any],
    reference: np.ndarray[Any, Any],
    worked: np.ndarray[Any, Any],
    beta: float,
) -> Figure:
    """Lines of equal DPO loss, and a descent across them.

    Log-probabilities of the chosen and the rejected answer: descent (steps + 1, 2)
    under the policy, reference and worked (a policy of the same reference) (2,).
    """
    path = np.round(descent - reference, DIGITS)
    pair = np.round(worked - reference, DIGITS)
    losses = np.round(dpo_loss(*descent.T, *reference, beta=beta), DIGITS)
    margins = 0.0, pair[0] - pair[1], path[-1, 0] - path[-1, 1]
    left, right, low, high = -2.0, 1.0, -3.9, 1.05
    with canvas(4.2) as (figure, ax):
        ax.fill(
            [left, 0.0, 0.0, left],
            [left, 0.0, low, low],
            facecolor="none",
            edgecolor=RULE,
            hatch="///",
            linewidth=0,
            zorder=0,
        )
        ax.plot([0, 0], [low, high], color=LINE, ls="-", marker="", lw=0.9)
        for h in margins:
            ends = np.array([max(left, low + h), right])
            ax.plot(ends, ends - h, color=LINE, ls="-", marker="", lw=1.2)
            price = float(np.logaddexp(0.0, -beta * h))
            ax.text(
                right + 0.06,
                right - h,
                f"loss {number(round(price, 3))}",
                color=INK2,
                va="center",
            )
        ax.plot(*path.T, color=INK, ls="-", marker="o", ms=4)
        ax.plot(*path[0], "o", color=INK, ms=8, mfc="none")
        ax.plot(*pair, "D", color=HOLDS, ms=7)
        ax.text(pair[0] - 0.08, pair[1] + 0.12, "F19", color=HOLDS, ha="right")
        ax.text(path[-1, 0] - 0.07, path[-1, 1], "descent", ha="right", va="center")
        ax.text(-0.04, low + 0.22, "both answers lose", color=INK2, ha="right")
        ax.set(title="log-ratio of the rejected answer", xlim=(left, right))
        ax.set(ylim=(low, high), xlabel="log-ratio of the preferred answer")
        ax.set_xticks([-2, -1, 0, 1], ["-2", "-1", "0", "1"])
        ax.set_yticks([-3, -2, -1, 0], ["-3", "-2", "-1", "0"])
        ax.spines["bottom"].set_bounds(left, right)
        ax.spines["left"].set_bounds(-3, 0)
        return finish(
            figure,
            finding="Along a line of equal loss the preferred answer gains or loses.",
            caption=(
                "Log-ratio: log of the probability, policy over reference. Dots: steps "
                "of a descent from the reference (ring). Diamond: the worked pair. "
                "Hatched: the loss is lower than at the start, and the preferred "
                "answer less probable."
            ),
            alt=(
                "Lines of equal loss rise diagonally, since only the difference of the "
                f"two log-ratios counts. The worked pair, at ({number(pair[0])}, "
                f"{number(pair[1])}), lies where the preferred answer has gained. A "
                f"descent from ({number(path[0, 0])}, {number(path[0, 1])}) to "
                f"({number(path[-1, 0])}, "
                f"{number(path[-1, 1])}) crosses the same line where it has lost; its "
                f"loss goes from {number(losses[0])} to {number(losses[-1])}."
            ),
            columns=("preferred", "rejected", "margin", "loss"),
            rows=[
                (a, b, round(a - b, 9), loss)
                for (a, b), loss in zip(path, losses, strict=True)
            ],
        )


def clipped_objective(advantages: Sequence[float], eps: float, wrong: str) -> Figure:
    """The clipped objective against the ratio, and where its slope is nothing."""
    ratio = np.round(np.linspace(0.0, 2.0, 81), DIGITS)
    rows = []
    told = []
    with canvas(5.2, nrows=2, sharex=True) as (figure, axes):
        for ax, a in zip(axes, advantages, strict=True):
            advantage = np.full(ratio.shape, a)
            line = np.round(ppo_clip(ratio, advantage, eps=eps), DIGITS)
            slope = ppo_clip_gradient(ratio, advantage, eps=eps)
            bare = np.round(FAULTS[wrong].by(ratio, advantage, eps=eps), DIGITS)
            apart = np.abs(bare - line) > 1e-9
            flat = slope == 0
            for stop in (1 - eps, 1 + eps):
                ax.axvline(stop, color=RULE, ls="-", marker="", lw=0.9, zorder=0)
            ax.plot(ratio[apart], bare[apart], color=BROKEN, ls="-.", marker="")
            ax.plot(ratio[~flat], line[~flat], color=INK, ls="-", marker="")
            ax.plot(
                ratio[flat], line[flat], color=HOLDS, ls=(0, (2, 1)), lw=3.4, marker=""
            )
            middle, far = ratio[flat].mean(), ratio[apart].mean()
            ax.text(
                middle,
                line[flat][0] + 0.09 * abs(2 * a),
                f"slope {number(slope[flat][0])}",
                color=HOLDS,
                ha="center",
                va="bottom",
            )
            ax.text(
                far,
                bare[apart][0] + 0.09 * abs(2 * a),
                "clip alone",
                color=BROKEN,
                ha="center",
                va="bottom",
            )
            ax.plot([1.0], [a], "o", color=INK, ms=7, mfc="none")
            ax.set_title(f"objective at advantage {number(a)}")
            ax.set(xlim=(0, 2))
            low, high = sorted((0.0, 2 * a))
            ax.set_ylim(low - 0.03 * abs(2 * a), high + 0.03 * abs(2 * a))
            ax.set_yticks([low, a, high], [number(x) for x in (low, a, high)])
            ax.spines["left"].set_bounds(low, high)
            ax.spines["bottom"].set_bounds(0, 2)
            side = "above" if a > 0 else "below"
            edge = 1 + eps if a > 0 else 1 - eps
            told.append(
                f"At advantage {number(a)} the objective follows the ratio with slope "
                f"{number(a)} and is flat at {number(line[flat][0])} {side} "
                f"{number(edge)}; the clip alone would be flat at "
                f"{number(bare[apart][0])} on the other side too."
            )
            rows += [
                (a, ratio[i], line[i], slope[i], bare[i]) for i in range(0, 81, 16)
            ]
        axes[-1].set_xlabel("ratio, new probability over old")
        axes[-1].set_xticks(
            [0, 1 - eps, 1, 1 + eps, 2],
            ["0", number(1 - eps), "1", number(1 + eps), "2"],
        )
        return finish(
            figure,
            finding="The slope ends only where going further would pay.",
            caption=(
                "Above a good action, below a bad one; ring: before the first step. "
                "Solid: there is a slope. Dashed: there is none. Red: the ratio is "
                "clipped and no minimum taken, so that a wrong step has no slope "
                "either."
            ),
            alt=" ".join(told),
            columns=("advantage", "ratio", "objective", "slope", "clip alone"),
            rows=rows,
        )
