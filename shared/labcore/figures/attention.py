"""Plots of the chapter on attention and caching."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.patches import Rectangle

from ..ops.attention import causal_mask, kv_append
from ..report import number
from ._draw import BROKEN, INK2, KEY, LINE, QUERY, Figure, canvas, finish

Array = np.ndarray[Any, Any]
WIDE, HIGH = 0.92, 0.86  # of a cell that is one by one


def masked_weights(weights: Array, allowed: Array) -> Figure:
    """One rectangle for each weight, as dark as it is heavy; masked cells hatched."""
    n_q, n_k = weights.shape
    with canvas(3.5) as (figure, ax):
        for i, j in np.ndindex(n_q, n_k):
            if allowed[i, j]:
                _cell(ax, i, j, weight=float(weights[i, j]))
            else:
                _masked(ax, i, j)
        for i in range(n_q):
            ax.text(-0.1, i + 0.5, f"query {i}", color=QUERY, ha="right", va="center")
        for j in range(n_k):
            ax.text(j + 0.5, -0.14, f"key {j}", color=KEY, ha="center", va="bottom")
        _grid(ax, n_q, n_k)
        heaviest = np.unravel_index(np.argmax(weights[1:]), weights[1:].shape)
        row, column = int(heaviest[0]) + 1, int(heaviest[1])
        return finish(
            figure,
            finding="The mask is a staircase, and every row shares one unit of weight.",
            caption=(
                "A row is a query, a column is a key, and a stronger colour is a "
                "larger weight. Hatched cells are masked: nothing of them is read."
            ),
            alt=(
                f"A grid of {n_q} queries by {n_k} keys. "
                f"{int(np.sum(~allowed))} cells above the diagonal are hatched. The "
                "first query gives its whole weight to the first key. After that the "
                f"heaviest cell is query {row} on key {column}, with "
                f"{number(weights[row, column])}."
            ),
            columns=("query", *(f"key {j}" for j in range(n_k))),
            rows=[
                (
                    str(i),
                    *(
                        f"{weights[i, j]:.3f}" if allowed[i, j] else "masked"
                        for j in range(n_k)
                    ),
                )
                for i in range(n_q)
            ],
        )


def cache_filling(k: Array, v: Array, chunks: Sequence[int]) -> Figure:
    """The slots of a cache, call by call: kept, appended, not there yet."""
    n = sum(chunks)
    cache, rows, start = None, [], 0
    for new in chunks:
        fresh = slice(start, start + new)
        cache = kv_append(cache, k[fresh], v[fresh])
        n_keys = cache.k.shape[-2]
        scores = new * n_keys
        read = int(causal_mask(new, n_keys).sum())
        rows.append((start, new, n_keys, scores, read))
        start += new
    with canvas(2.6) as (figure, ax):
        for i, (kept, new, n_keys, scores, _) in enumerate(rows):
            for j in range(n):
                if j >= n_keys:
                    _masked(ax, i, j)
                    continue
                _cell(ax, i, j, weight=0.8 if j >= kept else 0.16)
            word = "prefill" if i == 0 else "decode"
            ax.text(-0.1, i + 0.5, word, color=QUERY, ha="right", va="center")
            text = f"{new} x {n_keys} = {scores}"
            ax.text(n + 0.12, i + 0.5, text, color=INK2, va="center")
        for j in range(n):
            ax.text(j + 0.5, -0.14, f"key {j}", color=KEY, ha="center", va="bottom")
        ax.text(n + 0.12, -0.14, "scores", color=INK2, va="bottom")
        _grid(ax, len(rows), n, right=1.75)
        cached = sum(row[3] for row in rows)
        again = sum(n_keys * n_keys for _, _, n_keys, _, _ in rows)
        return finish(
            figure,
            finding=(
                f"With the cache {cached} scores are computed, without it {again}."
            ),
            caption=(
                "A row is one call. Strong cells are appended in it, faint ones are "
                "kept from before, hatched slots are still empty. Without a cache "
                "each call would compute the whole square."
            ),
            alt=(
                f"{len(rows)} calls over {n} slots. "
                + " ".join(
                    f"{'Prefill' if i == 0 else 'Decode'} keeps {kept}, appends {new} "
                    f"and computes {scores} scores."
                    for i, (kept, new, _, scores, _) in enumerate(rows)
                )
            ),
            columns=("call", "kept", "appended", "scores", "of them allowed"),
            rows=[
                (f"{i} {'prefill' if i == 0 else 'decode'}", kept, new, scores, read)
                for i, (kept, new, _, scores, read) in enumerate(rows)
            ],
        )


def two_corners(right: Array, wrong: Array) -> Figure:
    """A mask for a chunk behind a prefix, aligned at either corner."""
    n_q, n_k = right.shape
    panels = (
        (right, "bottom right: the last query sees every key", INK2),
        (wrong, "top left: the prefix is forgotten", BROKEN),
    )
    lost = int(np.sum(right & ~wrong))
    with canvas(3.2, nrows=2) as (figure, both):
        for ax, (mask, title, color) in zip(both, panels, strict=True):
            for i, j in np.ndindex(n_q, n_k):
                if mask[i, j]:
                    _cell(ax, i, j, weight=0.55)
                else:
                    _masked(ax, i, j)
                if right[i, j] and not mask[i, j]:
                    x, y = j + WIDE / 2, i + 0.5
                    ax.plot([x], [y], "x", color=BROKEN, ms=9)
            for i in range(n_q):
                name = f"query {n_k - n_q + i}"
                ax.text(-0.1, i + 0.5, name, color=QUERY, ha="right", va="center")
            ax.text(0, -0.14, title, color=color, va="bottom")
            _grid(ax, n_q, n_k)
        for j in range(n_k):
            ax.text(
                j + WIDE / 2, n_q + 0.1, f"key {j}", color=KEY, ha="center", va="top"
            )
        return finish(
            figure,
            finding=f"The wrong corner takes {lost} keys away, and nothing crashes.",
            caption=(
                f"{n_q} new queries, {n_k} keys. Hatched cells are masked; a cross is "
                "a key that should be read and is not."
            ),
            alt=(
                f"Two masks of {n_q} by {n_k}. Bottom right, the queries read "
                f"{_counts(right)} keys; top left they read {_counts(wrong)}."
            ),
            columns=("mask", *(f"query {n_k - n_q + i} reads" for i in range(n_q))),
            rows=[
                ("bottom right", *(int(x) for x in right.sum(axis=1))),
                ("top left", *(int(x) for x in wrong.sum(axis=1))),
            ],
        )


def _cell(ax: Any, i: int, j: int, *, weight: float) -> None:
    """Row i, column j, filled by its weight; an edge, so that zero is not absent."""
    at, size = (j, i + (1 - HIGH) / 2), (WIDE, HIGH)
    ax.add_patch(Rectangle(at, *size, facecolor=KEY, alpha=weight, edgecolor="none"))
    ax.add_patch(Rectangle(at, *size, facecolor="none", edgecolor=KEY, lw=0.9))


def _masked(ax: Any, i: int, j: int) -> None:
    at, size = (j, i + (1 - HIGH) / 2), (WIDE, HIGH)
    ax.add_patch(
        Rectangle(at, *size, facecolor="none", edgecolor=LINE, hatch="////", lw=0.0)
    )


def _grid(ax: Any, rows: int, columns: int, right: float = 0.0) -> None:
    ax.set(xlim=(-1.15, columns + right), ylim=(rows + 0.05, -0.5))
    ax.set_axis_off()


def _counts(mask: Array) -> str:
    return " and ".join(str(int(x)) for x in mask.sum(axis=1))
