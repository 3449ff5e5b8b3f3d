"""Every page on screens of several widths, and on paper."""

from tests.browser.looks import (
    PAGES,
    PHONE,
    at,
    cut_tables,
    sheets,
    sideways,
    unprintable,
)

WIDTHS = [320, 375, 414, 768, 1280]
PAPER = {"width": 680, "height": 960}  # of A4, inside its margins


def test_no_page_moves_sideways(page):
    assert sideways(page, WIDTHS) == []


def test_a_table_of_text_fits_a_phone(page):
    at(page, PHONE)
    assert cut_tables(page) == []


def test_paper_shows_the_text_black_on_white_and_whole(page):
    at(page, PAPER, "dark")
    page.emulate_media(media="print")
    assert unprintable(page) == []
    if PAGES.index(page.url.partition("/_build/html/")[2].partition("#")[0]) % 6 == 0:
        tall = page.evaluate("document.documentElement.scrollHeight")
        assert 1 <= sheets(page.pdf(format="A4")) <= tall / 400 + 2
