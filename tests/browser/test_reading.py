"""Every page as it is read: with no script, with no error, with its numbers at hand."""

import hashlib
import re

import pytest

from tests.browser.looks import DESK, SITE, lost, open_all, unsaid


@pytest.fixture(scope="session")
def plain(chromium):
    """A browser without JavaScript."""
    context = chromium.new_context(viewport=DESK, java_script_enabled=False)
    yield context.new_page()
    context.close()


def test_without_a_script_nothing_is_lost(page, plain):
    plain.goto(page.url.partition("#")[0])
    open_all(plain)
    assert plain.evaluate("document.body.innerText.length") > 200
    assert lost(page, plain) == []


def test_no_error_and_no_other_host(published):
    assert published.complaints == []


def test_a_figure_has_a_name_and_its_numbers(page):
    assert unsaid(page) == []


def test_the_root_leads_to_the_opening_page(open_page):
    page = open_page(SITE / "index.html")
    page.wait_for_url("**/book/index.html")


def test_the_opening_page_leads_to_files_as_it_tells_them(open_page):
    page = open_page(SITE / "book" / "index.html")
    links = page.locator(".bd-article a[href]").all()
    targets = [link.evaluate("a => a.href").partition("#")[0] for link in links]
    missing = [t for t in targets if t.startswith("file:") and not path(t).is_file()]
    assert missing == []
    assert any(target.startswith("file:") for target in targets)


def test_what_is_taken_away_is_what_is_told(open_page):
    page = open_page(SITE / "book" / "index.html")
    rows = page.locator("table.take-away tbody tr").all()
    assert len(rows) == 3
    for row in rows:
        link, size, digest = (
            row.locator(s) for s in ("a", "td >> nth=1", "td >> nth=2")
        )
        data = path(link.evaluate("a => a.href")).read_bytes()
        assert digest.text_content() == hashlib.sha256(data).hexdigest()
        kilobytes = re.fullmatch(r"(\d+)\skB", size.text_content())
        assert int(kilobytes[1]) == round(len(data) / 1000)


def path(url: str):
    return SITE / url.partition("/_build/html/")[2]
