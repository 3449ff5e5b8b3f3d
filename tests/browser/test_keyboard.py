"""Every page without a mouse. The quiz and the scrubber have their own files."""

import pytest

from tests.browser.looks import (
    PHONE,
    SETTLED,
    SITE,
    out_of_reach,
    start_before,
    wait_until,
)

FOCUSED = "document.activeElement"
CHAPTER = SITE / "book" / "part-1" / "rope.html"


def test_tab_reaches_everything_behind_the_skip_link(page):
    start_before(page, "body")
    page.keyboard.press("Tab")
    assert page.evaluate(f"{FOCUSED}.hash") == "#main-content"
    wait_until(page, f"{FOCUSED}.getBoundingClientRect().top >= 0")
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#main-content"
    page.keyboard.press("Tab")
    assert page.evaluate(f"{FOCUSED}.closest('main') !== null")
    assert out_of_reach(page, "#main-content") == []


@pytest.mark.parametrize("name", ["book/index.html", "search.html"])
@pytest.mark.parametrize("width", [375, 1280])
def test_tab_reaches_the_whole_page(open_page, name, width):
    page = open_page(SITE / name, viewport={"width": width, "height": 800})
    assert out_of_reach(page) == []


def test_enter_and_space_open_and_close_details(page):
    states = []
    for summary in page.locator(".bd-article summary").all()[:3]:
        summary.focus()
        for key in ("Enter", "Space"):
            page.keyboard.press(key)
            states.append(summary.evaluate("e => e.parentElement.open"))
    assert states == [False, True] * (len(states) // 2)


def test_the_theme_is_switched_and_remembered(open_page):
    page = open_page(CHAPTER, color_scheme="light")
    page.locator(".theme-switch-button").focus()
    seen = []
    for _ in range(3):
        page.keyboard.press("Enter")
        seen.append(page.evaluate("document.documentElement.dataset.theme"))
    assert set(seen) == {"light", "dark"}
    while page.evaluate("document.documentElement.dataset.mode") != "dark":
        page.keyboard.press("Space")
    page.goto((SITE / "book" / "index.html").as_uri())
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


@pytest.mark.parametrize("key", ["Control+k", "Enter"])
def test_the_search_opens_closes_and_leads_to_results(open_page, key):
    page = open_page(CHAPTER)
    page.locator(".search-button__button:visible").first.focus()
    page.keyboard.press(key)
    assert page.evaluate(f"{FOCUSED}.name") == "q"
    page.keyboard.press("Escape")
    assert not page.locator("#pst-search-dialog").is_visible()
    page.keyboard.press(key)
    page.keyboard.type("softmax")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=softmax")


@pytest.mark.parametrize("side", ["primary", "secondary"])
def test_the_sidebars_open_and_close_on_a_phone(open_page, side):
    page = open_page(CHAPTER, viewport=PHONE)
    link = page.locator(f"#pst-{side}-sidebar-modal a:visible")
    assert link.count() == 0
    page.locator(f".{side}-toggle").focus()
    page.keyboard.press("Enter")
    link.first.wait_for()
    page.keyboard.press("Tab")
    assert (
        page.evaluate(f"{FOCUSED}.closest('dialog').id") == f"pst-{side}-sidebar-modal"
    )
    page.keyboard.press("Escape")
    link.first.wait_for(state="hidden")
    assert page.evaluate(f"{FOCUSED}.classList.contains('{side}-toggle')")


def test_a_block_inside_details_scrolls_by_keyboard_once_it_is_open(open_page):
    page = open_page(SITE / "book" / "part-3" / "sampling-and-search.html")
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    page.wait_for_timeout(SETTLED)
    assert out_of_reach(page, ".bd-article") == []
