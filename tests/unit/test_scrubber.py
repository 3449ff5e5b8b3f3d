"""The dial over frames that are computed beforehand: what it writes into the page."""

from __future__ import annotations

import numpy as np
import pytest
from bs4 import BeautifulSoup
from labcore import present
from labcore.figures import laplacian as figures

DIAL = (0.25, 0.5, 1.0, 2.0)
NAMES = ("near", "far")
KEYS = np.array([[1.0, 0.0], [2.0, 1.0]])


@pytest.fixture
def shown(monkeypatch):
    """shown(dial, frames, ...) gives the HTML that a cell would display."""
    caught = []
    monkeypatch.setattr(present, "display", lambda html: caught.append(html.data))

    def show(dial, frames, **options):
        present.scrubber(dial, frames, caption="A caption.", **options)
        return BeautifulSoup(caught.pop(), "html.parser")

    return show


def frames():
    return figures.sigma_frames(NAMES, np.zeros(2), KEYS, DIAL)


def test_each_frame_follows_its_button_and_one_is_chosen(shown):
    page = shown("sigma", frames(), start=2)
    buttons = page.select("fieldset.scrub > input[type=radio]")
    assert len(buttons) == len(DIAL)
    assert [button.has_attr("checked") for button in buttons] == [False] * 2 + [
        True,
        False,
    ]
    assert len({button["name"] for button in buttons}) == 1
    for button, value in zip(buttons, DIAL, strict=True):
        assert button["aria-label"] == f"sigma {value:g}"
        frame = button.find_next_sibling()
        assert frame["class"] == ["frame"]
        assert frame.select_one(".read data").text == f"{value:g}"


def test_every_frame_has_a_picture_with_its_own_words(shown):
    page = shown("sigma", frames())
    said = [svg["aria-label"] for svg in page.select(".frame svg[role=img]")]
    assert len(set(said)) == len(DIAL)
    assert all(f"At sigma {x:g}" in s for x, s in zip(DIAL, said, strict=True))
    ids = [tag["id"] for tag in page.find_all(id=True)]
    assert len(ids) == len(set(ids))


def test_ticks_choose_the_buttons_and_are_not_read_twice(shown):
    page = shown("sigma", frames())
    ticks = page.select(".ticks label")
    assert [tick.text for tick in ticks] == [f"{x:g}" for x in DIAL]
    buttons = page.select("input")
    assert [tick["for"] for tick in ticks] == [button["id"] for button in buttons]
    assert page.select_one(".ticks")["aria-hidden"] == "true"


def test_the_numbers_stand_in_a_table(shown):
    page = shown("sigma", frames())
    table = page.select_one("details table.nums")
    head = [cell.text for cell in table.select("th")]
    assert head == ["sigma", "entropy", "keys read", *NAMES]
    rows = [[cell.text for cell in row.select("td")] for row in table.select("tr")[1:]]
    assert [row[0] for row in rows] == [f"{x:g}" for x in DIAL]
    for row, sigma in zip(rows, DIAL, strict=True):
        near = 1 / (1 + np.exp(-2 / sigma))
        assert float(row[3]) == pytest.approx(near, abs=1e-4)


def test_two_dials_on_a_page_do_not_share_a_name(shown):
    one = shown("sigma", frames())
    scores = np.array([1.0, 0.0])
    other = shown("temperature", figures.temperature_frames(NAMES, scores, DIAL))
    names = {page.select_one("input")["name"] for page in (one, other)}
    assert len(names) == 2
    assert shown("sigma", frames()) == one  # the same at every build


def test_frames_may_be_plain_html(shown):
    page = shown("step", [("1", {}, "<p>one</p>"), ("2", {}, "<p>two</p>")])
    assert [frame.select("p")[-1].text for frame in page.select(".frame")] == [
        "one",
        "two",
    ]
    assert [row.text for row in page.select("tbody tr")] == ["1", "2"]


def test_what_is_written_is_escaped(shown):
    page = shown("a < b", [("<1>", {"x & y": "<2>"}, "")])
    assert page.select_one("data").text == "<1>"
    assert page.select_one("input")["aria-label"] == "a < b <1>"
