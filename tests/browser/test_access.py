"""Every page for readers who do not see it, or see it in another way."""

import os

import pytest

from tests.browser.looks import COLOURS, DESK, PAGES, PHONE, at, barriers, boxes, pale

# Every rule on every text, in both widths and both themes: some 20 minutes.
FULL = bool(os.environ.get("BROWSER_FULL"))
# What a narrow page may change, beside its colours. Its furniture is that of all pages.
NARROW = [*COLOURS, "target-size", "scrollable-region-focusable", "region"]
WHOLE_WHEN_NARROW = {"book/index.html", "book/part-1/rope.html", "search.html"}


@pytest.fixture(scope="session")
def known():
    """The looks of texts that axe was asked about, on any page."""
    return None if FULL else set()


def test_the_site_is_there():
    assert len(PAGES) >= 36, "too few pages in _build/html: run `make book`"


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_axe_finds_nothing(published, page, size, known):
    at(page, size)
    every = FULL or size == DESK or published.name in WHOLE_WHEN_NARROW
    assert barriers(page, None if every else NARROW, known) == []
    light = boxes(page)
    at(page, size, "dark")
    # The themes differ in colours only, so that only these are asked about again.
    assert boxes(page) == light
    assert barriers(page, None if FULL else COLOURS, known) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_plots_and_pictures_are_seen(page, theme):
    at(page, DESK, theme)
    assert pale(page) == []
