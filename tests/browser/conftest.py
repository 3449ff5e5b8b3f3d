"""A real browser. Where there is none the tests are skipped, and in CI they fail."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.browser.looks import DESK, PAGES, SITE, at, listen, open_all

if TYPE_CHECKING:
    from playwright.sync_api import Page

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def missing(what: str) -> None:
    words = f"{what} is not here: the pages are not tried in a browser"
    if os.environ.get("CI", "").lower() in {"1", "true"}:
        pytest.fail(words)
    pytest.skip(words)


@pytest.fixture(scope="session")
def chromium():
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("playwright (a package of Python)")
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        missing("Chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=QUIET)
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium):
    """open_page(path, ...) gives a page; an error or another host fails the test."""
    contexts, complaints = [], []

    def opened(path, **options):
        context = chromium.new_context(**options)
        context.set_default_timeout(5000)
        contexts.append(context)
        page = context.new_page()
        listen(page, complaints)
        page.goto(path.as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


@dataclass
class Published:
    """A page of the built site, opened once for all tests, with its details open."""

    name: str
    page: Page
    complaints: list[str]


@pytest.fixture(
    scope="session",
    params=[pytest.param(n, marks=pytest.mark.xdist_group(n)) for n in PAGES],
)
def published(chromium, request):
    context = chromium.new_context(
        viewport=DESK,
        color_scheme="light",
        reduced_motion="reduce",  # else colours are read while they change
    )
    page = context.new_page()
    complaints: list[str] = []
    listen(page, complaints)
    page.goto((SITE / request.param).as_uri())
    open_all(page)
    yield Published(request.param, page, complaints)
    context.close()


@pytest.fixture
def page(published) -> Page:
    """The published page on a screen of 1280 px, in light."""
    published.page.emulate_media(media="screen")
    at(published.page, DESK)
    return published.page
