"""Ids inside a plot: the same for the same picture, and never those of another."""

from __future__ import annotations

import re

import numpy as np
from labcore.figures import _draw


def plot(left: float, top: float = 2.0) -> str:
    """A line under a clip, and marks that a plot defines once and uses often."""
    with _draw.canvas(2.0) as (figure, ax):
        ax.plot([1.0, 2.0, 3.0], [0.0, 0.5, top], "o-")
        ax.set_position((left, 0.2, 0.8, 0.7))
        return _draw.themed_svg(figure, "A line.")


def ids(svg: str) -> list[str]:
    return re.findall(r' id="([^"]*)"', svg)


def test_a_last_digit_that_no_picture_shows_changes_nothing():
    left = 0.1 / 3
    assert plot(left) == plot(float(np.nextafter(left, 1)))


def test_every_id_is_used_and_every_use_has_its_id():
    svg = plot(0.1)
    used = re.findall(r'(?:href="#|url\(#)([^")]+)', svg)
    assert set(ids(svg)) == set(used) and len(ids(svg)) == len(set(used)) >= 2


def test_two_plots_share_no_id():
    assert not set(ids(plot(0.1))) & set(ids(plot(0.1, top=3.0)))
