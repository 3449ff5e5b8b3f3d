"""Every page for readers who do not see it, or see it in another way."""

import os

import pytest

from tests.browser.looks import COLOURS, DESK, PAGES, PHONE, at, barriers, boxes, pale

# All rules, on every text, in both themes: some 20 minutes.
FULL = bool(os.environ.get("BROWSER_FULL"))


def test_the_site_is_there():
    assert len(PAGES) >= 36, "too few pages in _build/html: run `make book`"


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_axe_finds_nothing(page, size):
    at(page, size)
    assert barriers(page, every_text=FULL) == []
    light = boxes(page)
    at(page, size, "dark")
    # The themes differ in colours only, so that only these are asked again.
    assert boxes(page) == light
    assert barriers(page, None if FULL else COLOURS, every_text=FULL) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_plots_and_pictures_are_seen(page, theme):
    at(page, DESK, theme)
    assert pale(page) == []
