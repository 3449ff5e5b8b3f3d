"""What a page must be like in a browser: each function lists what is not so.

The published pages are tried with them; test_the_tests.py tries small wrong pages, in
which each has to find what is wrong. What they ask inside the page is in looks.js.
"""

from __future__ import annotations

import re
from collections import Counter
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page

SITE = Path(__file__).resolve().parents[2] / "_build" / "html"
# Files of the theme are no pages, and the root page only sends the reader on.
PAGES = sorted(
    path.relative_to(SITE).as_posix()
    for path in SITE.rglob("*.html")
    if not path.relative_to(SITE).parts[0].startswith(("_", "vendor"))
    and path != SITE / "index.html"
)
DESK = {"width": 1280, "height": 900}
PHONE = {"width": 375, "height": 800}
COLOURS = ["color-contrast", "link-in-text-block"]
NO_RULES = ["experimental", "deprecated", "wcag2aaa"]  # of axe: not asked about

BY_KEY = 40  # so often Tab is pressed on a page; a script focuses the rest
# 300 ms after the last resize the theme makes what scrolls focusable.
SETTLED = 350
LOOKS = Path(__file__).with_name("looks.js").read_text(encoding="utf-8")


def ask(page: Page, question: str, argument: Any = None) -> Any:
    """What an expression of looks.js and ``argument`` is in the page."""
    return page.evaluate(f"(argument) => {{ {LOOKS}; return {question}; }}", argument)


def wait_until(page: Page, condition: str, ms: int = 3000) -> None:
    """Ask from outside: a wait inside needs a script that the pages refuse."""
    for _ in range(ms // 50):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(50)
    raise TimeoutError(f"not so after {ms} ms: {condition}")


def at(page: Page, size: dict[str, int], theme: str = "light") -> None:
    """Show the page at this size and in this theme."""
    if page.viewport_size != size:
        page.set_viewport_size(size)
        page.evaluate("dispatchEvent(new Event('resize'))")
        page.wait_for_timeout(SETTLED)
    page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)


def open_all(page: Page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")


def listen(page: Page, complaints: list[str]) -> None:
    """Keep errors, what the console shows as one, and requests to other hosts."""
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: complaints.extend(strange(request.url)))
    page.on(
        "console",
        lambda said: complaints.append(said.text) if said.type == "error" else None,
    )


def strange(url: str) -> list[str]:
    return [] if url.startswith(("file:", "data:")) else [url]


def barriers(
    page: Page, rules: list[str] | None = None, known: set[str] | None = None
) -> list[str]:
    """What axe-core finds, by these rules or by all.

    It takes 5 to 20 s to compare the colours of every text of a long page. With a set
    of looks that are known (colour, size, weight, grounds), only new ones are asked
    about, one text each, and the set grows. Without it every text is asked about.
    """
    if not page.evaluate("'axe' in window"):
        source = files("axe_playwright_python") / "axe.min.js"
        page.evaluate(source.read_text(encoding="utf-8"))
    rules = rules or [
        rule["ruleId"]
        for rule in page.evaluate("axe.getRules()")
        if not set(NO_RULES) & set(rule["tags"])
    ]
    if known is not None:
        new = ask(page, "mark(argument)", sorted(known))
        known.update(new)
        rules = [rule for rule in rules if new or rule not in COLOURS]
    selector = "" if known is None else "[data-asked]"
    return ask(page, "barriers(...argument)", [rules, selector]) if rules else []


def boxes(page: Page) -> str:
    return ask(page, "boxes()")


def pale(page: Page) -> list[str]:
    """Lines and words of plots that can hardly be seen; cards behind pictures.

    A shade (less than opaque) tells more or less of something by itself, and the three
    quiet colours are the grounds and the lines for decoration: these may be pale.
    """
    return ask(page, "pale()")


def sideways(page: Page, widths: list[int]) -> list[str]:
    """The widths at which the page moves sideways, and what is too wide there."""
    found = []
    for width in widths:
        page.set_viewport_size({"width": width, "height": 800})
        found += [f"at {width} px: {wide}" for wide in ask(page, "tooWide()")]
    return found


def cut_tables(page: Page) -> list[str]:
    """Tables of text that do not fit the screen."""
    return ask(page, "cutTables()")


def unprintable(page: Page) -> list[str]:
    """What should not be on paper, and what is not whole there."""
    return ask(page, "unprintable()")


def sheets(pdf: bytes) -> int:
    return len(re.findall(rb"/Type\s*/Page\b", pdf))


def out_of_reach(page: Page, root: str = "body") -> list[str]:
    """What Tab, from before it, does not reach in order, or without a sign of it."""
    for _ in range(min(BY_KEY, ask(page, "watch(argument)", root))):
        page.keyboard.press("Tab")
    ask(page, "focusFrom(argument)", BY_KEY)
    return ask(page, "walked()")


def start_before(page: Page, element: str) -> None:
    """Put the focus where it is when nothing of the element was reached yet."""
    ask(page, "startBefore(document.querySelector(argument))", element)


def unsaid(page: Page) -> list[str]:
    """Figures without a name, without a caption, or without their numbers."""
    return ask(page, "unsaid()")


def lost(page: Page, plain: Page) -> list[str]:
    """What a page shows with scripts, and another without them does not."""
    missing = Counter(ask(page, "content()")) - Counter(ask(plain, "content()"))
    return [f"{count} x {text[:80]}" for text, count in missing.items() if text]
