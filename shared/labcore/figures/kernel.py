"""Plots of the chapter on kernel attention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..ops.attention import attention_weights
from ..ops.kernel import elu_plus_one, kernel_attention
from ..report import number
from ._draw import INK, INK2, LINE, STATE, Figure, canvas, finish

Array = np.ndarray[Any, Any]


def cost(
    lengths: Sequence[int],
    multiplied: Mapping[str, Sequence[int]],
    kept: Mapping[str, Sequence[int]],
) -> Figure:
    """Counted work per token, and numbers kept for the next token, against length."""
    n = np.asarray(lengths)
    per_token = {form: np.asarray(m) / n for form, m in multiplied.items()}
    first, least = "pairwise", "recurrent"
    crossing = _first(n, multiplied[first], multiplied[least])
    fuller = _first(n, kept[first], kept[least])
    styles = {
        "pairwise": (INK, "-"),
        "pairwise, half": (INK2, (0, (7, 2.2))),
        "in chunks": (STATE, (0, (1.2, 1.6))),
        "recurrent": (STATE, "-"),
    }
    with canvas(5.2, nrows=2, height_ratios=[3, 2], sharex=True) as (figure, axes):
        panels = (
            (axes[0], per_token, "multiplications for each token"),
            (axes[1], kept, "numbers kept for the next token"),
        )
        for ax, lines, title in panels:
            for form, line in lines.items():
                color, dashes = styles[form]
                ax.plot(n, line, color=color, ls=dashes, marker="")
                ax.text(n[-1] + 0.8, line[-1], form, color=color, va="center")
            ax.set(title=title, xlim=(0, n[-1]))
            ax.set_ylim(0, None)
        for ax, at, lines in ((axes[0], crossing, per_token), (axes[1], fuller, kept)):
            height = lines[first][list(n).index(at)]
            ax.plot([at], [height], "o", color=INK, mfc="none", ms=10)
            above = height + 0.13 * ax.get_ylim()[1]
            ax.text(at, above, f"{at} tokens", color=INK2, ha="center")
        axes[1].set_xlabel("length of the sequence, in tokens")
        state = kept[least][0]
        return finish(
            figure,
            finding=(
                f"From {crossing} tokens on the recurrence multiplies less than the "
                "pairwise form, and what it keeps never grows."
            ),
            caption=(
                "Counted while the operations ran. Half: only the pairs that the mask "
                "allows, as in a decoder with a cache."
            ),
            alt=(
                f"Two panels against the length, up to {n[-1]} tokens. Above, the "
                f"multiplications for each token: pairwise they rise to "
                f"{number(per_token[first][-1])}, recurrent they stay at "
                f"{number(per_token[least][-1])}, in chunks they stay below "
                f"{number(max(per_token['in chunks']))}; pairwise costs more from "
                f"{crossing} tokens on. Below, the numbers kept: pairwise rises to "
                f"{number(kept[first][-1])}, recurrent stays at {number(state)}."
            ),
            columns=(
                "tokens",
                *per_token,
                *(f"kept, {form}" for form in kept),
            ),
            rows=[
                (
                    int(n[i]),
                    *(line[i] for line in per_token.values()),
                    *(line[i] for line in kept.values()),
                )
                for i in sorted({0, *(i for i in range(len(n)) if n[i] % 8 == 0)})
            ],
        )


def sharpness(keys: Array, direction: Array, lengths: Array) -> Figure:
    """The largest weight of one query against its length, under two kernels."""
    queries = lengths[:, None] * direction
    each = np.eye(len(keys))
    weights = {
        "softmax": attention_weights(queries, keys),
        "elu + 1": kernel_attention(
            elu_plus_one(queries), elu_plus_one(keys), each, causal=False
        ),
    }
    largest = {name: w.max(axis=-1) for name, w in weights.items()}
    equal = 1 / len(keys)
    with canvas(3.1) as (figure, ax):
        ax.plot([0, lengths[-1]], [equal, equal], color=LINE, ls="-", marker="", lw=0.9)
        ax.text(lengths[-1] * 0.995, equal - 0.075, "all equal", color=INK2, ha="right")
        for (name, line), color, style in zip(
            largest.items(), (INK, STATE), ((0, (7, 2.2)), "-"), strict=True
        ):
            ax.plot(lengths, line, color=color, ls=style, marker="")
            ax.text(
                lengths[-1] * 1.02, line[-1], name, color=color, va="center", ha="left"
            )
        ax.set(
            xlabel="length of the query",
            title="largest of its weights",
            xlim=(0, lengths[-1]),
            ylim=(0, 1.02),
        )
        ax.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.5", "0.75", "1"])
        ax.spines["left"].set_bounds(0, 1)
        end = {name: line[-1] for name, line in largest.items()}
        return finish(
            figure,
            finding=(
                "A longer query lets softmax choose one key; this kernel goes on "
                "averaging."
            ),
            caption=(
                f"One query direction and {len(keys)} keys; only the length of the "
                "query changes."
            ),
            alt=(
                f"Two lines from a query of length zero, where both start near "
                f"{number(round(largest['softmax'][0], 3))}. At length "
                f"{number(lengths[-1])} the largest weight is "
                f"{number(round(end['softmax'], 3))} under softmax and "
                f"{number(round(end['elu + 1'], 3))} under the other kernel."
            ),
            columns=("length of the query", *largest),
            rows=[
                (lengths[i], *(line[i] for line in largest.values()))
                for i in range(0, len(lengths), 10)
            ],
        )


def _first(n: Array, more: Sequence[int], less: Sequence[int]) -> int:
    """The first length at which one count is above the other, for good."""
    above = np.asarray(more) > np.asarray(less)
    start = len(above) - int(np.argmin(above[::-1])) if not above.all() else 0
    return int(n[start])
