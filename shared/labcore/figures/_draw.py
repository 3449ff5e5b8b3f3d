"""The house style of the plots, and a plot as HTML."""

from __future__ import annotations

import hashlib
import html
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
from cycler import cycler
from matplotlib.figure import Figure as Canvas

from ..notebook import dressed
from ..report import number

# Colours are words: each hex becomes a custom property of the page, so that a plot
# follows the theme. The page's style sheet holds the values for dark.
INK, INK2, LINE, RULE = "#1c1c1a", "#5a5852", "#8b877c", "#d9d5cb"
QUERY, KEY, VALUE, STATE = "#1d5fc2", "#774a04", "#1a7a5f", "#5f1a72"
BROKEN, HOLDS, MARK, PAPER = "#c4313b", "#565d66", "#fff1b3", "#fdfcf9"
TOKEN = {
    INK: "ink",
    INK2: "ink2",
    LINE: "line",
    RULE: "rule",
    QUERY: "query",
    KEY: "key",
    VALUE: "value",
    STATE: "state",
    BROKEN: "broken",
    HOLDS: "holds",
    MARK: "mark",
    PAPER: "paper",
}

# In a notebook there is no style sheet of the book: JupyterLab's own colours do.
NOTEBOOK = {
    "ink": "--jp-content-font-color1",
    "ink2": "--jp-content-font-color2",
    "paper": "--jp-layout-color0",
}

STYLE: Any = {
    "figure.figsize": (5.5, 3.1),  # 396 units, shown at 343 (phone) to 600 px
    "figure.facecolor": "none",
    "figure.constrained_layout.use": True,
    "savefig.facecolor": "none",
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "transformer-math-lab",  # the same file at every build
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # wider than any system sans: what fits, fits
    "font.size": 11.5,
    "axes.titlesize": 11.5,
    "axes.labelsize": 11.5,
    "xtick.labelsize": 10.5,
    "ytick.labelsize": 10.5,
    "text.color": INK,
    "axes.edgecolor": LINE,
    "axes.labelcolor": INK2,
    "xtick.color": LINE,
    "ytick.color": LINE,
    "xtick.labelcolor": INK2,
    "ytick.labelcolor": INK2,
    "axes.facecolor": "none",
    "grid.color": RULE,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.9,
    "xtick.major.width": 0.9,
    "ytick.major.width": 0.9,
    "axes.xmargin": 0.03,
    "axes.ymargin": 0.06,
    "axes.titlelocation": "left",
    "axes.unicode_minus": False,  # a number looks as it is printed
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
    "lines.markeredgewidth": 1.6,
    "patch.linewidth": 0.9,
    "hatch.linewidth": 0.7,
    # query, key, value, state, broken, holds; dash and marker say the same as colour
    "axes.prop_cycle": cycler(color=[QUERY, KEY, VALUE, STATE, BROKEN, HOLDS])
    + cycler(linestyle=["-", (0, (7, 2.2)), "-.", ":", (0, (3, 1.4)), "-"])
    + cycler(marker=["^", "s", "v", "D", "x", "o"]),
}


@dataclass(frozen=True)
class Figure:
    """A finished plot: what it shows, in words, in numbers and as a picture."""

    svg: str
    alt: str
    finding: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(c)}</th>" for c in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{_cell(x)}</td>" for x in row) + "</tr>"
            for row in self.rows
        )
        return dressed(
            f'<figure class="fig">{self.svg}'
            f"<figcaption><b>{html.escape(self.finding)}</b> "
            f"{html.escape(self.caption)}</figcaption>"
            "<details><summary>The numbers behind this figure</summary>"
            f'<table class="nums"><thead><tr>{head}</tr></thead>'
            f"<tbody>{body}</tbody></table></details></figure>"
        )

    def __repr__(self) -> str:
        return f"{self.finding} {self.alt}"


@contextmanager
def canvas(height: float = 3.1, **layout: Any) -> Iterator[tuple[Canvas, Any]]:
    """A figure and its axes in the house style; no state of pyplot is touched."""
    with matplotlib.rc_context(STYLE):
        figure = Canvas(figsize=(STYLE["figure.figsize"][0], height))
        yield figure, figure.subplots(**layout)


def finish(
    figure: Canvas,
    *,
    alt: str,
    finding: str,
    caption: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
) -> Figure:
    """The drawn figure as HTML, with its words and its numbers."""
    _keep_marks_whole(figure)
    return Figure(
        svg=themed_svg(figure, alt),
        alt=alt,
        finding=finding,
        caption=caption,
        columns=tuple(columns),
        rows=tuple(tuple(row) for row in rows),
    )


def _keep_marks_whole(figure: Canvas) -> None:
    """A mark on the edge of its axes is drawn whole, not cut in half."""
    for ax in figure.axes:
        (left, right), (bottom, top) = sorted(ax.get_xlim()), sorted(ax.get_ylim())
        for line in ax.lines:
            x, y = np.asarray(line.get_xydata(), float).T
            inside = (left <= x) & (x <= right) & (bottom <= y) & (y <= top)
            marked = line.get_marker() not in ("", "None", None) and x.size > 0
            if marked and inside.all():
                line.set_clip_on(False)


def _named_anew(svg: str) -> str:
    """Ids by their order, and in no other plot; ids that nothing uses go.

    Matplotlib makes them from all digits of a float, and the last one depends on the
    processor. What the plot shows has six decimals.
    """
    used = re.findall(r'(?:href="#|url\(#)([\w-]+)', svg)
    number_of = {name: str(i) for i, name in enumerate(dict.fromkeys(used))}

    def named(prefix: str, text: str) -> str:
        for pattern in (r'(href="#|url\(#)([\w-]+)', r'( id=")([^"]+)'):
            text = re.sub(
                pattern, lambda m: f"{m[1]}{prefix}{number_of.get(m[2], '')}", text
            )
        return text.replace(f' id="{prefix}"', "")

    digest = hashlib.sha256(named("f", svg).encode()).hexdigest()
    return named(f"f{digest[:6]}-", svg)


def themed_svg(figure: Canvas, alt: str) -> str:
    """Inline SVG: colours become properties of the page, ids unique, text scalable."""
    with matplotlib.rc_context(STYLE):
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    unwanted = (
        r"<metadata>.*?</metadata>|<defs>\s*<style.*?</style>\s*</defs>|<!--.*?-->"
    )
    svg = re.sub(unwanted, "", svg, flags=re.S)  # its style rule would hit the page
    svg = _named_anew(svg)
    for hexa, name in TOKEN.items():
        other = NOTEBOOK.get(name)
        svg = svg.replace(
            hexa,
            f"var(--{name},var({other},{hexa}))" if other else f"var(--{name},{hexa})",
        )
    svg = re.sub(
        r"font: ([\d.]+px) [^;\"]*|font-size: ([\d.]+px); font-family: [^;\"]*",
        lambda m: f"font-size: calc(var(--t,1)*{m[1] or m[2]})",
        svg,
    )
    box = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
    assert box is not None
    opening = (
        f'<svg class="plot" role="img" aria-label="{html.escape(alt)}" '
        f'viewBox="0 0 {box[1]} {box[2]}" width="{box[1]}" height="{box[2]}" '
        'xmlns="http://www.w3.org/2000/svg" '
        'xmlns:xlink="http://www.w3.org/1999/xlink">'
    )
    svg = re.sub(r"<svg[^>]*>", opening, svg, count=1)
    return re.sub(r"\s*\n\s*", " ", svg).strip()


def _cell(x: Any) -> str:
    return html.escape(x if isinstance(x, str) else number(x))
