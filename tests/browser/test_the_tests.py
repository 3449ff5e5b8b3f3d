"""A small wrong page for each thing that the other files ask of every page.

Each has one fault, and what looks for that fault has to name it; the page without any
has to pass.
"""

import pytest

from tests.browser.looks import (
    COLOURS,
    DESK,
    PHONE,
    barriers,
    cut_tables,
    listen,
    lost,
    out_of_reach,
    pale,
    sheets,
    sideways,
    unprintable,
    unsaid,
)

PLOT = (
    '<figure><svg class="plot" role="img" width="90" height="30" '
    'aria-label="A rises from 1 to 3 and B falls."><text y="20" {style}>A</text>'
    '<path d="M0 9H50" style="fill:none; stroke:{line}"></path></svg>'
    "<figcaption>A finding.</figcaption>{numbers}</figure>"
)
NUMBERS = "<details><summary>Numbers</summary><table><tr><td>1</table></details>"
GOOD = (
    "<h1>A page</h1><p>Words with <a href='#end'>a link</a>.</p>"
    + PLOT.format(style="", line="#000", numbers=NUMBERS)
    + "<p id='end'><button>Press</button></p>"
)
STYLE = (
    "@media print { button { display: none } }"
    "html, body { background: #fff; color: #000 } .bd-article { margin: 1em }"
)


@pytest.fixture
def small(tmp_path, open_page):
    """small(body, ...): a small page with this body."""

    def shown(body, style="", **options):
        path = tmp_path / "page.html"
        path.write_text(
            '<!doctype html><html lang="en" data-theme="light"><head>'
            '<meta charset="utf-8"><title>A page</title><meta name="viewport" '
            f'content="width=device-width"><style>{STYLE}{style}</style></head>'
            f'<body><main class="bd-article">{body}</main></body></html>',
            encoding="utf-8",
        )
        return open_page(path, **({"viewport": DESK} | options))

    return shown


def named(found: list[str], fault: str) -> bool:
    return len(found) >= 1 and all(fault in one for one in found)


def test_the_page_without_a_fault_passes(small):
    page = small(GOOD)
    plain = small(GOOD, java_script_enabled=False)
    assert barriers(page) == barriers(page, known=set()) == []
    assert pale(page) == unsaid(page) == lost(page, plain) == []
    assert sideways(page, [320, 1280]) == []
    assert out_of_reach(page) == []
    page.emulate_media(media="print")
    assert unprintable(page) == []
    assert sheets(page.pdf()) == 1


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ("<img src='data:,'>", "image-alt"),
        ("<p style='color: #999'>Pale words.</p>", "color-contrast"),
        ("<p style='opacity: .4'>Pale words.</p>", "color-contrast"),
        ("<p style='background: #555'>Dark words.</p>", "color-contrast"),
        (
            "<p>Words with <a href='#' style='color: #222; text-decoration: none'>"
            "a link</a> in them.</p>",
            "link-in-text-block",
        ),
        (
            "<pre style='width: 90px; overflow: auto' tabindex='-1'>"
            f"{'long ' * 20}</pre>",
            "scrollable-region-focusable",
        ),
        (
            "<button style='width: 9px; height: 9px; padding: 0' title='a'></button>"
            * 2,
            "target-size",
        ),
        (
            "<table><tr><th></th><th>b</th></tr><tr><td>1<td>2</table>",
            "empty-table-header",
        ),
        ("<button></button>", "button-name"),
    ],
)
def test_axe_finds_it(small, body, rule):
    assert named(barriers(small(GOOD + body)), rule)


def test_a_look_that_is_known_is_not_asked_about_again(small):
    page, known = small(GOOD + "<p style='color: #999'>Pale words.</p>"), set()
    assert named(barriers(page, COLOURS, known), "color-contrast")
    assert barriers(page, COLOURS, known) == []
    assert named(barriers(page, COLOURS), "color-contrast")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_colour_that_is_wrong_in_one_theme_only(small, theme):
    style = f"html[data-theme={theme}] p {{ color: #aaa !important }}"
    page = small(GOOD, style)
    other = {"light": "dark", "dark": "light"}[theme]
    for now in (theme, other, theme):
        page.evaluate(
            "theme => { document.documentElement.dataset.theme = theme }", now
        )
        assert bool(barriers(page, COLOURS, set())) == (now == theme)


@pytest.mark.parametrize(
    ("plot", "fault"),
    [
        ({"style": 'style="fill: #999"', "line": "#000"}, "text fill"),
        ({"style": "", "line": "#ccc"}, "path stroke"),
    ],
)
def test_a_plot_that_is_hardly_seen(small, plot, fault):
    assert named(pale(small(PLOT.format(**plot, numbers=NUMBERS))), fault)


def test_a_plot_that_stays_dark_on_dark(small):
    page = small(GOOD, "html[data-theme=dark] :is(body, main) { background: #111 }")
    assert pale(page) == []
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    assert {one.split(" rgb")[0] for one in pale(page)} == {"text fill", "path stroke"}


def test_a_picture_on_a_white_card(small):
    image = "<img alt='A picture' style='background: #fff; width: 9px; height: 9px'>"
    page = small(image, "body { background: #111 !important }")
    assert named(pale(page), "a card")


@pytest.mark.parametrize("wide", [330, 2000])
def test_a_page_that_moves_sideways(small, wide):
    page = small(f"{GOOD}<div style='width: {wide}px'>Wide.</div>")
    found = sideways(page, [320, 1280])
    assert len(found) == (1 if wide < 1280 else 2)
    assert named(found, "Wide" if wide == 330 else "px")


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("<nav>Elsewhere</nav>", "furniture"),
        ("<pre style='width: 900px'>long</pre>", "cut off"),
        (f"<pre style='overflow: auto'>{'long ' * 99}</pre>", "scrolls"),
        ("<div class='scrub'><div class='frame' hidden>1</div></div>", "left out"),
        ("<style>body { background: #111 !important }</style>", "ground"),
        ("<style>main { color: #ccc !important }</style>", "ink"),
    ],
)
def test_what_is_wrong_on_paper(small, body, fault):
    page = small(GOOD + body, viewport={"width": 680, "height": 900})
    page.emulate_media(media="print")
    assert any(fault in one for one in unprintable(page))


@pytest.mark.parametrize(("word", "cut"), [("word " * 30, 0), ("word" * 30, 1)])
def test_a_table_that_a_phone_cuts_off(small, word, cut):
    table = f"<div style='overflow: auto'><table class='table'><td>{word}</table></div>"
    assert len(cut_tables(small(table, viewport=PHONE))) == cut


def test_sheets_are_counted(small):
    page = small("<p style='break-after: page'>One.</p><p>Two.</p>")
    assert sheets(page.pdf()) == 2


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("<div tabindex='0' style='outline: none'>Focus</div>", "focus is not seen"),
        (
            "<p style='display: flex; flex-flow: row-reverse; "
            "reading-flow: flex-visual'>"
            "<a href='#'>left</a><a href='#'>right</a></p>",
            "out of order",
        ),
        (
            f"<pre style='overflow: auto' tabindex='-1'>{'long ' * 400}</pre>",
            "not reached",
        ),
    ],
)
def test_what_is_wrong_by_keyboard(small, body, fault):
    assert any(fault in one for one in out_of_reach(small(GOOD + body)))


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (PLOT.format(style="", line="#000", numbers=""), "no numbers"),
        (GOOD.replace("A rises from 1 to 3 and B falls.", ""), "no name"),
        (GOOD.replace("<figcaption>A finding.</figcaption>", ""), "no caption"),
        ("<img src='data:,' alt=''>", "no name"),
    ],
)
def test_a_figure_that_does_not_say_enough(small, body, fault):
    assert named(unsaid(small(body)), fault)


def test_what_only_a_script_shows(small):
    body = GOOD + "<script>document.querySelector('h1').after(Object.assign("
    body += "document.createElement('p'), {textContent: 'Only here.'}))</script>"
    page, plain = small(body), small(body, java_script_enabled=False)
    assert lost(page, plain) == ["1 x Only here."]


def test_errors_and_other_hosts_are_heard(chromium, tmp_path):
    context = chromium.new_context(offline=True)
    page, complaints = context.new_page(), []
    listen(page, complaints)
    page.set_content(
        "<script>console.error('told')</script><script>throw Error('thrown')</script>"
        "<img alt='far' src='https://example.invalid/far.png'>"
    )
    context.close()
    for words in ("told", "thrown", "example.invalid"):
        assert any(words in complaint for complaint in complaints)
