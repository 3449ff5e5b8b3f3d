"""Plots of the chapter on absorbing the MLA projections."""

from __future__ import annotations

from typing import Any

from matplotlib.patches import Rectangle

from ..ops.mla import (
    mla_cache_elements,
    mla_explicit_cache_elements,
    mla_multiplications,
)
from ..report import number
from ._draw import HOLDS, INK, INK2, KEY, LINE, VALUE, Figure, canvas, finish


def cache_areas(
    n_heads: int, d_nope: int, d_rope: int, d_v: int, kv_rank: int
) -> Figure:
    """What is cached for one token in one layer, every number a unit of area."""
    explicit = mla_explicit_cache_elements(n_heads, d_nope, d_rope, d_v)
    latent = mla_cache_elements(kv_rank, d_rope)
    gap = 0.1 * n_heads
    right = 2 * (n_heads + gap)
    high = max(d_nope, d_v)
    with canvas(2.85) as (figure, ax):
        _area(ax, 0, 0, n_heads, d_nope, KEY, "////")
        _area(ax, n_heads + gap, 0, n_heads, d_v, VALUE, "....")
        _area(ax, right, 0, n_heads, kv_rank / n_heads, HOLDS, "")
        under = -0.12 * high
        for x in (0, right):  # the rotary key, one row as wide as the heads
            _area(ax, x, under, n_heads, d_rope / n_heads, KEY, "")
        for x, size, word, color in (
            (0, d_nope, "keys", KEY),
            (n_heads + gap, d_v, "values", VALUE),
        ):
            ax.text(x, size + 0.05 * high, word, color=color)
            middle = (x + n_heads / 2, size / 2)
            paper = {"facecolor": "#fdfcf9", "edgecolor": "none", "pad": 2.5}
            ax.text(
                *middle,
                f"{n_heads} × {size}",
                color=color,
                ha="center",
                va="center",
                bbox=paper,
            )
        above = kv_rank / n_heads + 0.05 * high
        ax.text(right, above, f"latent, {kv_rank}", color=HOLDS)
        low = {"va": "top", "color": KEY}
        ax.text(0, under - 0.05 * high, f"rotary key, {d_rope}", **low)
        ax.text(right, under - 0.05 * high, f"rotary key, {d_rope}", **low)
        ax.text(0, 1.24 * high, f"explicit: {explicit} numbers", color=INK)
        ax.text(right, 1.24 * high, f"absorbed: {latent}", color=INK)
        ax.set(xlim=(-1, 3 * n_heads + 2 * gap + 1), ylim=(-0.3 * high, 1.36 * high))
        ax.set_aspect("equal")
        ax.axis("off")
        return finish(
            figure,
            finding=(
                f"The absorbed path caches {number(explicit / latent)} times fewer "
                "numbers."
            ),
            caption=(
                "One token in one layer. Every number is the same area; the rotary key "
                "is one for all heads in both."
            ),
            alt=(
                f"Drawn to scale: a block of keys, {n_heads} heads of {d_nope}, a "
                f"block of values, {n_heads} heads of {d_v}, and a line for the rotary "
                f"key of {d_rope}, {explicit} numbers; beside them a strip for the "
                f"latent of {kv_rank} and the same line, {latent} numbers."
            ),
            columns=("part", "explicit", "absorbed"),
            rows=[
                ("keys", n_heads * d_nope, 0),
                ("values", n_heads * d_v, 0),
                ("latent", 0, kv_rank),
                ("rotary key", d_rope, d_rope),
                ("together", explicit, latent),
            ],
        )


def reads_and_products(
    n_keys: int, n_heads: int, d_nope: int, d_rope: int, d_v: int, kv_rank: int
) -> Figure:
    """What one decode step reads from the cache, and what it multiplies."""
    cost = mla_multiplications(n_keys, n_heads, d_nope, d_rope, d_v, kv_rank)
    explicit = n_keys * mla_explicit_cache_elements(n_heads, d_nope, d_rope, d_v)
    latent = n_keys * mla_cache_elements(kv_rank, d_rope)
    points = {
        "cached": (explicit, cost.cached),
        "projected": (latent, cost.projected),
        "absorbed": (latent, cost.absorbed),
    }
    fewer_read = explicit / latent
    fewer_products = cost.projected / cost.absorbed
    more_products = cost.absorbed / cost.cached
    with canvas(3.3) as (figure, ax):
        thin = {"color": LINE, "lw": 0.9, "marker": "", "ls": "-"}
        ax.plot([latent, latent], [cost.absorbed, cost.projected], **thin)
        ax.plot([latent, explicit], [cost.cached, cost.cached], **thin)
        ax.plot([latent, latent], [cost.cached, cost.absorbed], **thin)
        for (name, (x, y)), marker in zip(points.items(), "sDo", strict=True):
            ax.plot([x], [y], marker, color=INK, ms=7, mfc="none" if name else INK)
            ax.annotate(
                name,
                (x, y),
                (10, 0 if name == "projected" else 9),
                textcoords="offset points",
                color=INK,
                va="center",
                ha="left",
            )
        ax.annotate(
            f"÷ {number(round(fewer_products))}",
            (latent, (cost.absorbed * cost.projected) ** 0.5),
            (8, 0),
            textcoords="offset points",
            color=INK2,
            va="center",
        )
        ax.annotate(
            f"÷ {number(round(fewer_read))}",
            ((latent * explicit) ** 0.5, cost.cached),
            (0, -5),
            textcoords="offset points",
            color=INK2,
            va="top",
            ha="center",
        )
        ax.annotate(
            f"× {number(round(more_products, 1))}",
            (latent, (cost.absorbed * cost.cached) ** 0.5),
            (8, -2),
            textcoords="offset points",
            color=INK2,
            va="center",
        )
        ax.set(xscale="log", yscale="log")
        ax.set(title="multiplications", xlabel="numbers read from the cache")
        ax.set_xlim(latent / 1.8, explicit * 4)
        ax.set_ylim(cost.cached / 2.6, cost.projected * 1.8)
        _powers(ax.xaxis, latent, explicit)
        _powers(ax.yaxis, cost.cached, cost.projected)
        return finish(
            figure,
            finding=(
                f"Against cached keys, absorbing reads {number(round(fewer_read))} "
                f"times less and multiplies {number(round(more_products, 1))} times "
                "more."
            ),
            caption=(
                f"One new token, {n_keys} in the cache, one layer. Projecting every "
                "cached token up again would read as little and multiply "
                f"{number(round(fewer_products))} times more than absorbing."
            ),
            alt="A point for each path. "
            + " ".join(
                f"{name.capitalize()} reads {number(x)} numbers and multiplies "
                f"{number(y)} times."
                for name, (x, y) in points.items()
            ),
            columns=("path", "numbers read", "multiplications"),
            rows=[(name, int(x), int(y)) for name, (x, y) in points.items()],
        )


def _area(
    ax: Any, x: float, y: float, width: float, height: float, color: str, hatch: str
) -> None:
    """An area to scale, filled, or hatched where there is room for it."""
    face, edge = ("none", color) if hatch else (color, "none")
    ax.add_patch(
        Rectangle(
            (x, y), width, height, facecolor=face, edgecolor=edge, hatch=hatch, lw=0.9
        )
    )


def _powers(axis: Any, low: float, high: float) -> None:
    """Ticks at whole powers of ten, as text."""
    ticks = [10.0**n for n in range(0, 16) if low / 3 < 10.0**n < high * 3]
    axis.set_ticks(
        ticks, [f"{t:.0e}".replace("e+0", "e").replace("e+", "e") for t in ticks]
    )
    axis.set_ticks([], minor=True)
