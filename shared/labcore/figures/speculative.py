"""Plots of the chapter on speculative decoding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.colors import to_rgb

from ..ops.speculative import (
    expected_tokens,
    speculative_acceptance,
    speculative_block_law,
    speculative_distribution,
)
from ..report import number
from ._draw import HOLDS, INK, INK2, LINE, PAPER, Figure, canvas, finish

Law = np.ndarray[Any, Any]


def accepted_and_redrawn(p: Law, q: Law) -> Figure:
    """Draft and target token by token: what is accepted, rejected and redrawn."""
    accepted = speculative_acceptance(p, q)
    rejected = q - accepted
    redrawn = speculative_distribution(p, q) - accepted
    kinds = {"accepted": accepted, "rejected": rejected, "redrawn": redrawn}
    widest = {kind: int(np.argmax(mass)) for kind, mass in kinds.items()}
    pitch, high = 2.75, 1.0
    with canvas(3.3) as (figure, ax):
        for token in range(len(p)):
            top = -pitch * token
            ax.text(-0.115, top - 1.06, f"token {token}", color=INK, **_LEFT)
            for row, (word, second) in enumerate(
                (("draft", "rejected"), ("target", "redrawn"))
            ):
                y = top - row * (high + 0.12)
                ax.text(-0.012, y - 0.5 * high, word, color=INK2, **_LEFT)
                left = 0.0
                for kind in ("accepted", second):
                    mass = kinds[kind][token]
                    told = widest[kind] == token and (row == 0 or kind != "accepted")
                    word = f"{kind} {_share(mass)}" if told else _share(mass)
                    _piece(ax, left, y - high, mass, high, FILL[kind], word)
                    left += mass
        ax.set(xlim=(-0.235, max(p.max(), q.max()) * 1.01))
        ax.set(ylim=(-pitch * len(p) + 0.5, 0.1))
        ax.axis("off")
        return finish(
            figure,
            finding=(
                f"What is rejected in all, {_share(rejected.sum())}, is redrawn in "
                f"all, {_share(redrawn.sum())}."
            ),
            caption=(
                "The draft's bar splits into accepted and rejected, the target's into "
                "accepted and redrawn. No token is both rejected and redrawn."
            ),
            alt=" ".join(
                f"Token {t}: the draft proposes {_share(q[t])}, of it {_share(a)} is "
                f"accepted and {_share(r)} rejected; the target wants {_share(p[t])}, "
                f"so {_share(n)} is redrawn."
                for t, (a, r, n) in enumerate(
                    zip(accepted, rejected, redrawn, strict=True)
                )
            ),
            columns=("token", "target", "draft", "accepted", "rejected", "redrawn"),
            rows=[
                (t, *map(_clean, row))
                for t, row in enumerate(
                    zip(p, q, accepted, rejected, redrawn, strict=True)
                )
            ],
        )


def blocks_by_length(p: Sequence[Law], q: Sequence[Law]) -> Figure:
    """The first token of a block, by the length of the block, and for all lengths."""
    first = [
        block.reshape(len(block), -1).sum(axis=1)
        for block in speculative_block_law(p, q)
    ]
    rows = [
        (f"{i + 1} token{'s' if i else ''}", f"{100 * _clean(f.sum()):.3g} %", f)
        for i, f in enumerate(first)
    ]
    rows = [(name, share, law / law.sum()) for name, share, law in rows]
    rows += [("all blocks", "100 %", sum(first)), ("target", "", p[0])]
    with canvas(3.1) as (figure, ax):
        for i, (name, share, law) in enumerate(rows):
            y = -1.45 * i - (0.5 if i >= len(first) else 0)
            ax.text(-0.19, y - 0.5, name, color=INK, **_LEFT)
            ax.text(-0.02, y - 0.5, share, color=INK2, **_LEFT)
            left = 0.0
            for token, mass in enumerate(law):
                fill = {"edgecolor": HOLDS, **TOKEN_FILL[token % 3]}
                _piece(ax, left, y - 1, mass, 1.0, fill, f"{_clean(mass):.2g}")
                if i == len(rows) - 1:
                    word = f"token {token}" if mass > 0.2 else str(token)
                    middle = left + mass / 2
                    ax.text(middle, y - 1.2, word, color=INK2, ha="center", va="top")
                left += mass
        ax.set(xlim=(-0.45, 1.005), ylim=(-1.45 * len(rows) - 1.1, 0.1))
        ax.axis("off")
        gap = max(np.abs(law - p[0]).max() for _, _, law in rows[: len(first)])
        return finish(
            figure,
            finding=(
                "Sorted by length, the blocks are biased; all of them together "
                "follow the target."
            ),
            caption=(
                "The law of the first token of a block. Beside the name, how many of "
                "all blocks have that length."
            ),
            alt="First token of the block. "
            + "; ".join(
                f"{name}{f', {share} of all' if i < len(first) else ''}: "
                + ", ".join(f"{_share(mass)}" for mass in law)
                for i, (name, share, law) in enumerate(rows)
            )
            + f". The largest difference from the target is {_share(gap)}.",
            columns=("blocks", "share", *(f"token {t}" for t in range(len(p[0])))),
            rows=[(name, share, *map(_clean, law)) for name, share, law in rows],
        )


def tokens_a_round(alpha: float, gammas: Sequence[int]) -> Figure:
    """Expected tokens of a round against the acceptance rate."""
    alphas = np.linspace(0.0, 1.0, 51)
    lines = {g: [expected_tokens(float(a), g) for a in alphas] for g in gammas}
    here = {g: expected_tokens(alpha, g) for g in gammas}
    with canvas(3.4) as (figure, ax):
        dashes = ["-", (0, (7, 2.2)), "-.", ":", (0, (3, 1.4))]
        for i, (g, line) in enumerate(lines.items()):
            ax.plot(alphas, line, color=HOLDS, ls=dashes[i % 5], marker="")
            ax.plot([alpha], [here[g]], "o", color=INK, ms=4)
            ax.text(1.015, line[-1], f"{g} drafted", color=INK, va="center")
        ax.axvline(alpha, color=LINE, lw=0.9, ls="-", ymax=0.93, zorder=0)
        most = max(line[-1] for line in lines.values())
        ax.set(title="tokens a round", xlabel="acceptance rate")
        ax.set(xlim=(0, 1), ylim=(0, most * 1.06))
        ax.set_xticks(
            [0, 0.2, 0.4, 0.6, 0.8, 1], ["0", "0.2", "0.4", "0.6", "0.8", "1"]
        )
        ax.set_yticks([1, *(line[-1] for line in lines.values())])
        ax.spines["left"].set_bounds(0, most)
        ax.spines["bottom"].set_bounds(0, 1)
        low, high = min(gammas), max(gammas)
        ceiling = 1 / (1 - alpha)
        return finish(
            figure,
            finding=(
                f"At acceptance rate {number(alpha)}, {high} drafted tokens yield "
                f"{here[high]:.3g} a round, {low} yields {here[low]:.3g}."
            ),
            caption=(
                f"However many are drafted, that rate yields less than {ceiling:.3g}. "
                "Each token is taken to be accepted independently of the others."
            ),
            alt=(
                "Curves of the expected number of tokens against the acceptance rate. "
                f"At {number(alpha)}: "
                + ", ".join(f"{here[g]:.3g} with {g} drafted" for g in gammas)
                + ". Where all drafts are accepted: "
                + ", ".join(number(line[-1]) for line in lines.values())
                + "."
            ),
            columns=("acceptance rate", *(f"{g} drafted" for g in gammas)),
            rows=[
                (_clean(alphas[i]), *(line[i] for line in lines.values()))
                for i in range(0, 51, 5)
            ],
        )


_LEFT: Any = {"ha": "right", "va": "center"}
FILL: dict[str, dict[str, Any]] = {
    "accepted": {"facecolor": (*to_rgb(HOLDS), 0.25), "edgecolor": HOLDS},
    "redrawn": {"facecolor": "none", "edgecolor": INK, "hatch": "///"},
    "rejected": {"facecolor": "none", "edgecolor": LINE, "linestyle": (0, (3, 2))},
}
TOKEN_FILL: list[dict[str, Any]] = [
    {"facecolor": "none", "hatch": "...."},
    {"facecolor": "none"},
    {"facecolor": "none", "hatch": "\\\\\\\\"},
]


def _piece(
    ax: Any,
    x: float,
    y: float,
    width: float,
    height: float,
    fill: dict[str, Any],
    word: str,
) -> None:
    """A part of a bar, its share inside; what it is shows in the fill."""
    if width < 1e-12:
        return
    ax.barh(y, width, height, left=x, align="edge", lw=0.9, **fill)
    ax.text(
        x + width / 2,
        y + height / 2,
        word,
        color=INK,
        ha="center",
        va="center",
        bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 1.2}
        if "hatch" in fill
        else None,
    )


def _clean(x: Any) -> float:
    return round(float(x), 12)


def _share(x: Any) -> str:
    return f"{_clean(x):.3g}"
