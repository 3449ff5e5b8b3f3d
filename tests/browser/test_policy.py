"""A browser holds every page to its policy: the page works, and nothing else does."""

from pathlib import Path

import pytest

from tests.browser.looks import SITE, wait_until

PAGE = SITE / "book" / "part-1" / "rope.html"
RECORD = """
window.refused = [];
document.addEventListener("securitypolicyviolation",
  (event) => window.refused.push(event.effectiveDirective));
"""


@pytest.fixture
def visit(chromium):
    """visit(path) opens a file and gives the page, which records what was refused."""
    contexts = []

    def opened(path: Path):
        context = chromium.new_context()
        contexts.append(context)
        page = context.new_page()
        page.add_init_script(RECORD)
        page.goto(path.as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()


def copy_with(folder: Path, added: str) -> Path:
    """A copy of the page with something added; its files are found from there too."""
    for name in ("_static", "vendor"):
        (folder / name).symlink_to(SITE / name, target_is_directory=True)
    copy = folder / PAGE.relative_to(SITE)
    copy.parent.mkdir(parents=True)
    page = PAGE.read_text(encoding="utf-8")
    assert page.count("</article>") == 1
    copy.write_text(page.replace("</article>", f"{added}</article>"), encoding="utf-8")
    return copy


def test_the_page_as_it_is_loads_all_that_it_asks_for(visit):
    page = visit(PAGE)
    assert page.evaluate("window.refused") == []
    assert page.evaluate("document.documentElement.dataset.theme") == "light"


def test_the_handlers_of_the_theme_work(visit):
    page = visit(PAGE)
    page.evaluate("window.print = () => { window.printed = true }")
    page.evaluate("document.querySelector('.btn-download-pdf-button').click()")
    assert page.evaluate("window.printed") is True
    assert page.evaluate("window.refused") == []


@pytest.mark.parametrize(
    ("added", "directive"),
    [
        ("<script>window.ran = 1</script>", "script-src-elem"),
        ('<img src="x.png" alt="" onerror="window.ran = 1">', "script-src-attr"),
        ('<script src="https://example.org/a.js"></script>', "script-src-elem"),
        ('<img src="https://example.org/a.png" alt="">', "img-src"),
        ('<link rel="stylesheet" href="https://example.org/a.css">', "style-src-elem"),
        ('<iframe src="https://example.org/"></iframe>', "frame-src"),
    ],
)
def test_what_the_book_did_not_write_is_refused(visit, tmp_path, added, directive):
    page = visit(copy_with(tmp_path, added))
    wait_until(page, "window.refused.length > 0")
    assert set(page.evaluate("window.refused")) == {directive}
    assert page.evaluate("window.ran") is None
