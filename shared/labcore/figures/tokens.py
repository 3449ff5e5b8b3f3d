"""Plots of the chapter on tokens, shapes and a decoder by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.patches import Rectangle

from ..ops.compress import bpe_encode, bpe_train
from ..ops.decoder_trace import DecoderTrace
from ..report import number
from ._draw import (
    BROKEN,
    HOLDS,
    INK,
    INK2,
    KEY,
    LINE,
    MARK,
    QUERY,
    RULE,
    VALUE,
    Figure,
    canvas,
    finish,
)

# The flow is drawn in the units of the picture: 396 wide, y downwards.
WIDE = 396.0
LEFT = (26.0, 226.0)  # where the numbers of each position begin
CELL = 42.0
TOP = 50.0  # the first row of numbers
STEP = 31.0  # from one row to the next
_LAST = TOP + 11 * STEP
SMALL: Any = {"color": INK2, "fontsize": 10}


# ---- The decoder as a flow of numbers ----------------------------------------------


def decoder_flow(
    ids: Sequence[int],
    glosses: Sequence[str],
    trace: DecoderTrace,
    probabilities: Any,
    *,
    padding: int,
) -> Figure:
    """Two tokens through one layer, every number on the way, down to the next token."""
    heads, n, _ = trace.scores.shape
    scores, weights = (
        np.moveaxis(part, 0, 1).reshape(n, -1)  # by position: head 1, then head 2
        for part in (trace.scores, trace.weights)
    )
    stations: list[tuple[str, Any, str]] = [
        ("row of the table", trace.x, INK),
        ("normalised", trace.norm1, INK2),
        ("query", trace.q, QUERY),
        ("key", trace.k, KEY),
        ("value", trace.v, VALUE),
        ("scores, head by head", scores, INK2),
        ("weights, head by head", weights, INK2),
        ("weights times values", trace.read, VALUE),
        ("sum", trace.residual1, INK),
        ("normalised", trace.norm2, INK2),
        ("feed-forward", trace.mlp, INK2),
        ("sum", trace.y, INK),
    ]
    stream = [i for i, (_, _, color) in enumerate(stations) if color == INK]
    rows: list[tuple[str, ...]] = []
    with canvas(7.5) as (figure, ax):
        ax.set(xlim=(0, WIDE), ylim=(_LAST + 146, 0))
        ax.axis("off")
        for t, left in enumerate(LEFT):
            word = f"position {t + 1}: id {ids[t]}, {glosses[ids[t]]}"
            ax.text(left, 12, word, fontweight="bold")
            for i, (name, values, color) in enumerate(stations):
                at = TOP + i * STEP
                if t == 0:
                    ax.text(left + 6 * (i not in stream), at - 13, name, **SMALL)
                for j, x in enumerate(values[t]):
                    _number(ax, left + (j + 1) * CELL - 4, at, x, color)
                rows.append((name, f"position {t + 1}", *map(_shown, values[t])))
            _stream(ax, left - 12, stream, ends=t < n - 1)
        for source, target, color, bend in ((3, 5, KEY, 8), (4, 7, VALUE, 3)):
            _crossing(ax, TOP + source * STEP - 4, TOP + target * STEP - 4, color, bend)
        rows += _choice(ax, trace, probabilities, padding, glosses)
        chosen = int(np.argmax(probabilities))
        mine, back = (
            " and ".join(_shown(weights[t][2 * h + 1 - t]) for h in range(heads))
            for t in (0, 1)
        )
        chances = [f"{_shown(p)} for id {i}" for i, p in enumerate(probabilities)]
        return finish(
            figure,
            finding="Positions meet in attention alone, and only backwards.",
            caption=(
                "Sentence B of X01, rounded for reading. Heavy lines: the stream of "
                "each position, to which both halves of the layer are added. Hatched: "
                "what the mask or the filter of padding takes away. Only the last "
                "position goes on to the logits."
            ),
            alt=(
                f"Two columns of numbers, for the tokens {ids[0]} and {ids[1]}. Keys "
                "and values of the first column reach the second, nothing leads back: "
                f"the first position gives the second key the weights {mine} in its "
                f"heads, the second gives the first key {back}. It ends in the "
                f"probabilities {', '.join(chances)}: the next token is {chosen}, "
                f"{glosses[chosen]}."
            ),
            columns=("step", "where", *map(str, range(1, len(probabilities) + 1))),
            rows=[(*row, *[""] * (2 + len(probabilities) - len(row))) for row in rows],
        )


def _number(ax: Any, right: float, y: float, value: float, color: str) -> None:
    """A number that ends at right; hatched if it is masked."""
    if np.isneginf(value):
        _hatched(ax, right - 32, y)
    else:
        ax.text(right, y, _shown(value), color=color, ha="right", fontsize=11)


def _hatched(ax: Any, x: float, y: float) -> None:
    ax.add_patch(Rectangle((x, y - 9), 32, 11, fc="none", ec=LINE, hatch="////"))


def _stream(ax: Any, x: float, sums: Sequence[int], *, ends: bool) -> None:
    """The stream of one position: a heavy line, its sums, and what branches off."""
    heavy: Any = {"color": INK, "lw": 2.2, "ls": "-", "marker": ""}
    thin: Any = {"color": LINE, "lw": 0.9, "ls": "-", "marker": ""}
    at = [TOP + i * STEP - 4 for i in sums]
    ax.plot([x, x], [at[0] - 14, at[-1] + 9], **heavy)
    for y in at:
        ax.plot([x, x + 9], [y, y], **heavy)
    for y in at[:-1] if ends else at:
        ax.plot([x, x + 15, x + 15], [y + 9, y + 9, y + 15], **thin)
    if ends:
        ax.plot([x - 5, x + 5], [at[-1] + 9] * 2, **heavy)


def _crossing(ax: Any, start: float, end: float, color: str, bend: float) -> None:
    """From a row of the first position to a row of the second."""
    x = LEFT[0] + 4 * CELL - 1
    path = [x, x + bend, x + bend, LEFT[1] + 1]
    ax.plot(path, [start, start, end, end], color=color, lw=1.2, ls="-", marker="")
    ax.plot(path[-1:], [end], ">", color=color, ms=4)


def _choice(
    ax: Any, trace: DecoderTrace, probabilities: Any, padding: int, words: Sequence[str]
) -> list[tuple[str, ...]]:
    """The last position alone: its norm, the logits over the vocabulary, the choice."""
    chosen = int(np.argmax(probabilities))
    y, wide = _LAST + STEP, (WIDE - LEFT[0] - 14) / len(probabilities)
    ax.text(LEFT[1] + 6, y - 13, "normalised", **SMALL)
    for i, x in enumerate(trace.last[-1]):
        _number(ax, LEFT[1] + (i + 1) * CELL - 4, y, x, INK2)
    ids = f"of ids 0 to {len(probabilities) - 1}"
    shown = np.where(np.arange(len(probabilities)) == padding, -np.inf, probabilities)
    for name, values in (("logits", trace.logits[-1]), ("probabilities", shown)):
        y += STEP + 3
        ax.text(LEFT[0], y - 13, f"{name} {ids}", **SMALL)
        for i, x in enumerate(values):
            right = LEFT[0] + (i + 1) * wide
            if name == "probabilities" and i == chosen:
                ax.add_patch(Rectangle((right - 39, y - 11), 44, 15, fc=MARK, ec=INK))
            _number(ax, right, y, x, INK)
    word = f"next token: id {chosen}, {words[chosen]}"
    ax.text(LEFT[0], y + 24, word, fontweight="bold")
    return [
        (name, "position 2", *map(_shown, values))
        for name, values in (
            ("last norm", trace.last[-1]),
            ("logits", trace.logits[-1]),
            ("probabilities", shown),
        )
    ]


def _shown(x: Any) -> str:
    """Two decimals, as in the picture; a mask in words."""
    if np.isneginf(x):
        return "masked"
    return f"{round(float(x), 9) + 0.0:.2f}".replace("-0.00", "0.00")


# ---- Byte-pair merges ----------------------------------------------------------------


def merge_tree(text: str, n_merges: int, word: str) -> Figure:
    """The pieces of a word, a line for each rule that merges some of them."""
    merges = bpe_train(text, n_merges)
    steps = [bpe_encode(word, merges[:k]) for k in range(n_merges + 1)]
    used = [k for k in range(1, n_merges + 1) if steps[k] != steps[k - 1]]
    lines = [(0, steps[0]), *((k, steps[k]) for k in used)]
    wide, down = 300.0 / len(word), 34.0
    with canvas(0.47 * len(lines)) as (figure, ax):
        for row, (rule, pieces) in enumerate(lines):
            y = row * down
            label = f"rule {rule}" if rule else "letters"
            ax.text(0, y, label, color=INK2, va="center", fontsize=10.5)
            before = lines[row - 1][1] if row else pieces
            at = 0
            for piece in pieces:
                x, w = 84 + at * wide, len(piece) * wide
                new = piece not in before
                box = Rectangle(
                    (x + 3, y - 11),
                    w - 6,
                    22,
                    fc=MARK if new else "none",
                    ec=INK if new else RULE,
                )
                ax.add_patch(box)
                ax.text(x + w / 2, y, piece, ha="center", va="center", color=INK)
                at += len(piece)
        ax.set(xlim=(0, WIDE), ylim=((len(lines) - 1) * down + 14, -14))
        ax.axis("off")
        final = steps[-1]
        return finish(
            figure,
            finding=f"The unseen word {word} becomes {len(final)} tokens.",
            caption=(
                f"The rules learnt from the text, in their order; of {n_merges} rules "
                f"these {len(used)} apply. On the highlighter: what the rule made. The "
                "end of the word merges first: the rank of a rule decides, not the "
                "place."
            ),
            alt=(
                f"The word {word} in rows of pieces. "
                + " ".join(
                    f"{'Rule ' + str(rule) if rule else 'At first'}: "
                    f"{', '.join(pieces)}."
                    for rule, pieces in lines
                )
            ),
            columns=("rule", "merges", "pieces"),
            rows=[
                (
                    str(rule),
                    " + ".join(merges[rule - 1]) if rule else "",
                    " | ".join(pieces),
                )
                for rule, pieces in lines
            ],
        )


# ---- Who notices -----------------------------------------------------------------


def who_notices(seen: Mapping[str, Mapping[str, bool]]) -> Figure:
    """A cross where a quick look shows a wrong decoder, a dot where it does not."""
    looks = list(next(iter(seen.values())))
    order = sorted(seen, key=lambda fault: sum(seen[fault].values()))
    named = {f: f.removeprefix("trace_").replace("_", " ") for f in order}
    unseen = [named[f] for f in order if not any(seen[f].values())]
    counts = {look: sum(bool(row[look]) for row in seen.values()) for look in looks}
    wide, down = 40.0, 25.0
    with canvas(0.35 * len(seen) + 0.45) as (figure, ax):
        for i, look in enumerate(looks):
            x = WIDE - (len(looks) - i - 0.5) * wide
            ax.text(x, -24, look, color=INK2, ha="center", fontsize=10)
            for row, fault in enumerate(order):
                found = seen[fault][look]
                mark, color = ("x", BROKEN) if found else ("o", HOLDS)
                ax.plot([x], [row * down], mark, color=color, ms=6 if found else 3)
        for row, fault in enumerate(order):
            y = row * down
            ax.plot([0, WIDE], [y - 12.5] * 2, color=RULE, lw=0.9, ls="-", marker="")
            ax.text(0, y, named[fault], va="center", fontsize=10)
        ax.set(xlim=(0, WIDE), ylim=((len(seen) - 0.5) * down, -34))
        ax.axis("off")
        return finish(
            figure,
            finding=f"A decoder {' or '.join(unseen)} passes every look.",
            caption=(
                "Wrong decoders, and what a look at the examples shows. Cross: seen. "
                "Dot: not seen. Shapes; sums of the weights; the answers of Q005 and "
                "of X01; the cached step of X01 against the whole."
            ),
            alt=(
                f"Of {len(seen)} wrong decoders, "
                + ", ".join(f"{look} show {number(k)}" for look, k in counts.items())
                + f". None of them shows the decoder {' or '.join(unseen)}."
            ),
            columns=("wrong decoder", *looks),
            rows=[
                (fault, *("seen" if seen[fault][look] else "-" for look in looks))
                for fault in order
            ],
        )
