"""A real browser. Where there is none the tests are skipped, and in CI they fail."""

import os
import shutil

import pytest

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
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: complaints.extend(strange(request.url)))
        page.goto(path.as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


def strange(url: str) -> list[str]:
    return [] if url.startswith(("file:", "data:")) else [url]
