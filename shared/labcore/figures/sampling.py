"""Plots of the chapter on sampling and search."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.patches import Rectangle

from ..ops.sampling import beam_search, greedy, top_k, top_p
from ..report import number
from ._draw import HOLDS, INK, INK2, LINE, PAPER, Figure, canvas, finish

Tokens = tuple[int, ...]
NextLogprobs = Callable[[Tokens], Any]

DIGITS = 12  # what is drawn is rounded: last bits differ between processors

# In units of the page, which is 396 wide: the bars, and the tree.
ROW, WORDS, WIDE, GAP = 15.0, 62.0, 148.0, 26.0
LINES, WAY = 22.0, 296.0


# ---- What is cut ------------------------------------------------------------------


def two_cuts(laws: Mapping[str, Mapping[str, float]], k: int, mass: float) -> Figure:
    """What top-k and top-p leave of several laws, side by side."""
    rows, told = [], []
    block = ROW * max(map(len, laws.values())) + 48
    with canvas(block * len(laws) / 72) as (figure, ax):
        for i, (prompt, law) in enumerate(laws.items()):
            p = np.array(list(law.values()))
            cuts = {
                "top-k": top_k(p, k).round(DIGITS),
                "top-p": top_p(p, mass).round(DIGITS),
            }
            kept = {name: int(np.count_nonzero(cut)) for name, cut in cuts.items()}
            share = {name: float(p[cut > 0].sum()) for name, cut in cuts.items()}
            top = i * block
            ax.text(0, top, f"{prompt} …", color=INK, style="italic", va="top")
            for j, (name, cut) in enumerate(cuts.items()):
                left = WORDS + j * (WIDE + GAP)
                head = (
                    f"{name} keeps {_short(share[name])}"
                    if name == "top-k"
                    else f"{name} keeps {_counted(kept[name])}"
                )
                ax.text(left, top + 18, head, color=INK2, va="top")
                for line, (before, after) in enumerate(zip(p, cut, strict=True)):
                    _bar(ax, left, top + 38 + ROW * line, float(before), float(after))
            for line, word in enumerate(law):
                place = (WORDS - 6, top + 38 + ROW * (line + 0.5))
                ax.text(*place, word, color=INK, ha="right", va="center", size=10.5)
            rows += [
                (prompt, word, *(float(x) for x in numbers))
                for word, *numbers in zip(law, p, *cuts.values(), strict=True)
            ]
            told.append((prompt, share["top-k"], kept["top-p"], share["top-p"]))
        ax.set(xlim=(0, 396), ylim=(block * len(laws) - 10, 0))
        ax.axis("off")
        shares = [_short(t[1]) for t in told]
        counts = [number(t[2]) for t in told]
        return finish(
            figure,
            finding=(
                f"Top-k keeps {k} tokens, whatever mass they have: "
                f"{', then '.join(shares)}. Top-p keeps a mass of {number(mass)}, "
                f"however many tokens that takes: {', then '.join(counts)}."
            ),
            caption=(
                "Outlines: the probability before the cut. Grey, with its number: "
                "after it, divided by what is left. Hatched: cut."
            ),
            alt="Bars of next-token probabilities, before and after two cuts. "
            + " ".join(
                f"After “{prompt}” top-k keeps {k} tokens with {_short(by_k)} of the "
                f"mass, top-p keeps {_counted(n)} with {_short(by_p)}."
                for prompt, by_k, n, by_p in told
            ),
            columns=("after", "token", "before", f"top-k, k {k}", f"top-p, {mass:g}"),
            rows=rows,
        )


def _bar(ax: Any, left: float, top: float, before: float, after: float) -> None:
    box: dict[str, Any] = {"height": ROW - 4, "lw": 0.9, "zorder": 2}
    if after > 0:
        wide: dict[str, Any] = {
            "width": WIDE * after,
            "facecolor": HOLDS,
            "alpha": 0.35,
        }
        ax.add_patch(Rectangle((left, top + 2), **wide, **{**box, "lw": 0}))
    outline: dict[str, Any] = {
        "width": WIDE * before,
        "facecolor": "none",
        "edgecolor": INK2,
    }
    hatch = "" if after > 0 else "//////"
    ax.add_patch(Rectangle((left, top + 2), hatch=hatch, **outline, **box))
    inside = after > 0.75
    end = left + WIDE * (before if inside else max(before, after))
    ax.text(
        end + (-5 if inside else 5),
        top + ROW / 2,
        _short(after) if after > 0 else "cut",
        color=INK if after > 0 else INK2,
        ha="right" if inside else "left",
        va="center",
        size=10.5,
    )


# ---- What is searched -------------------------------------------------------------


def search_tree(
    next_logprobs: NextLogprobs,
    names: Sequence[str],
    *,
    length: int,
    beam: int,
) -> Figure:
    """The beginnings that greedy and a beam look at, and what each of them keeps."""
    followed = [set(found) for found in _followed(next_logprobs, length, beam)]
    seen = _seen(next_logprobs, followed)
    one = greedy(next_logprobs, length=length)
    best = beam_search(next_logprobs, length=length, beam=beam)[0]
    place = _places(seen, length)
    text = {t: "".join(names[x] for x in t) for t in seen}
    step = WAY / length
    with canvas((LINES * len(_ends(seen)) + 34) / 72) as (figure, ax):
        for t in seen:
            if t:
                _edge(ax, t, place, step, one.tokens, best.tokens)
        for t, p in seen.items():
            x, y = step * len(t), place[t]
            on_the_way = t in followed[len(t)] or t == one.tokens[: len(t)]
            mark = {"marker": "o" if on_the_way else "x", "ms": 5, "color": INK}
            fill = INK if t == best.tokens[: len(t)] else PAPER
            ax.plot([x], [y], ls="", mfc=fill, zorder=3, **mark)
            words = f"{names[t[-1]]} {_short(p)}" if t else ""
            last, lost = len(t) == length, on_the_way and t not in followed[len(t)]
            if lost and not last:
                words += f", not in beam {beam}"
            ax.text(
                x + (8 if last else 22 if lost else 0),
                y - (0 if last else 7),
                words,
                color=INK if on_the_way else INK2,
                ha="left" if last else "right" if lost else "center",
                va="center" if last else "bottom",
                size=10.5,
            )
        for tokens, word in ((one.tokens, "greedy"), (best.tokens, f"beam {beam}")):
            where = (WAY + 60, place[tokens])
            ax.text(*where, word, color=INK, va="center", weight="bold", size=10.5)
        lines = place.values()
        ax.set(xlim=(-8, WAY + 106), ylim=(max(lines) + 12, min(lines) - 22))
        ax.axis("off")
        ends = {"Greedy": one, f"A beam of {beam}": best}
        found = [_short(float(np.exp(h.logprob))) for h in (best, one)]
        more = "more" if best.logprob > one.logprob else "less"
        return finish(
            figure,
            finding=(
                f"A beam of {beam} finds {more} than greedy: {found[0]} against "
                f"{found[1]}."
            ),
            caption=(
                "From the left; numbers are probabilities of beginnings. Dashed: "
                f"greedy. Thick, with filled dots: what the beam of {beam} returns. "
                "Rings: beginnings that it keeps or greedy takes. Crosses: dropped."
            ),
            alt="A tree of beginnings. "
            + " ".join(
                f"{who} ends at {''.join(names[x] for x in h.tokens)} with probability "
                f"{_short(float(np.exp(h.logprob)))}."
                for who, h in ends.items()
            )
            + " "
            + " ".join(
                f"After step {i} the beam keeps "
                + ", ".join(f"{text[t]} {_short(seen[t])}" for t in sorted(held))
                + "."
                for i, held in enumerate(followed)
                if i
            ),
            columns=("beginning", "probability", "beam", "greedy"),
            rows=[
                (
                    text[t],
                    p,
                    "kept" if t in followed[len(t)] else "dropped",
                    "taken" if t == one.tokens[: len(t)] else "",
                )
                for t, p in seen.items()
                if t
            ],
        )


def _followed(next_logprobs: NextLogprobs, length: int, beam: int) -> list[Any]:
    """What the beam holds after each step."""
    found: list[Any] = [[()]]
    for i in range(1, length + 1):
        held = beam_search(next_logprobs, length=i, beam=beam)
        found.append([h.tokens for h in held])
    return found


def _seen(
    next_logprobs: NextLogprobs, followed: Sequence[set[Tokens]]
) -> dict[Tokens, float]:
    """All beginnings that either search looks at, with their probabilities."""
    seen: dict[Tokens, float] = {(): 1.0}
    for i in range(len(followed) - 1):
        way = greedy(next_logprobs, length=i).tokens if i else ()
        for t in sorted(followed[i] | {way}):
            steps = np.exp(next_logprobs(t))
            for token in np.flatnonzero(steps).tolist():
                seen[(*t, token)] = float(seen[t] * steps[token])
    return {t: round(p, DIGITS) for t, p in sorted(seen.items())}


def _ends(seen: Mapping[Tokens, float]) -> list[Tokens]:
    """Beginnings that no search has looked beyond."""
    before = {t[:-1] for t in seen if t}
    return [t for t in seen if t not in before]


def _places(seen: Mapping[Tokens, float], length: int) -> dict[Tokens, float]:
    """Ends stand one below the other, every beginning in the middle of its own."""
    lines = {t: LINES * i for i, t in enumerate(_ends(seen))}
    for n in range(length - 1, -1, -1):
        for t in seen:
            if len(t) == n and t not in lines:
                after = [lines[u] for u in seen if len(u) == n + 1 and u[:n] == t]
                lines[t] = (min(after) + max(after)) / 2
    return lines


def _edge(
    ax: Any,
    t: Tokens,
    place: Mapping[Tokens, float],
    step: float,
    one: Tokens,
    best: Tokens,
) -> None:
    way = {"color": LINE, "ls": "-", "lw": 0.9}
    if t == best[: len(t)]:
        way = {"color": INK, "ls": "-", "lw": 2.4}
    elif t == one[: len(t)]:
        way = {"color": INK, "ls": (0, (4, 2)), "lw": 1.8}
    x = step * (len(t) - 1)
    ax.plot([x, x + step], [place[t[:-1]], place[t]], marker="", zorder=1, **way)


def _short(p: float) -> str:
    return number(round(p, 3))


def _counted(n: int) -> str:
    return f"{n} token" if n == 1 else f"{n} tokens"
