"""A stylesheet loses the rules that no page can use, and no others."""

import pytest
import weight

PAGE = (
    '<body class="light wide"><p id="one" class="note">Text</p>'
    '<script>show("made");</script></body>'
)
SCRIPT = 'element.classList.add("open", "is-" + state);'
KNOWN = weight.Known([PAGE], [SCRIPT])


def pruned(css: str) -> str:
    return weight.pruned(css, KNOWN)


@pytest.mark.parametrize(
    "selector",
    [
        "p",
        "*",
        ".note",
        "#one",
        ".light>p.note:first-child::before",
        ".open",  # a script adds it
        ".made",  # so does a script in the page
        ".is-late",  # a script puts the name together
        "p:not(.unknown)",
        ":is(.unknown, p)",  # not looked into
        '[class*="unknown.x"]',
        "html[data-theme=dark] .note",
    ],
)
def test_a_rule_that_can_apply_stays(selector):
    assert pruned(f"{selector}{{color:red}}") == f"{selector}{{color:red}}"


@pytest.mark.parametrize(
    "selector", [".unknown", "#two", ".note .unknown", "p.unknown:hover", ".note.Note"]
)
def test_a_rule_that_cannot_apply_goes(selector):
    assert pruned(f"{selector}{{color:red}} p{{margin:0}}") == "p{margin:0}"


def test_of_a_list_of_selectors_some_stay():
    css = ".unknown,.note:not(.a,.b), p :is(b,i),.gone{color:red}"
    assert pruned(css) == ".note:not(.a,.b),p :is(b,i){color:red}"


def test_a_group_of_rules_stays_with_what_is_left_of_it():
    css = "@media print{.gone{color:red}@supports (gap:0){.note{top:0}}}"
    assert pruned(css) == "@media print{@supports (gap:0){.note{top:0}}}"
    assert pruned("@media print{.gone{color:red}}") == ""


@pytest.mark.parametrize(
    "css",
    [
        '@charset "utf-8";',
        "@font-face{font-family:x;src:url(x.woff2)}",
        "@keyframes turn{0%{top:0}to{top:1px}}",
        ':root{--a:";}{";--b:url(data:image/svg+xml;{})}',
        "/*! a licence */",
        "/* Copyright: somebody */",
    ],
)
def test_what_is_no_rule_of_a_page_stays(css):
    assert pruned(css) == css


def test_comments_go():
    assert pruned("/* .gone{ */p{top:0}/* } */") == "p{top:0}"


def test_an_imported_stylesheet_stands_where_it_was_imported(tmp_path):
    (tmp_path / "sub").mkdir()
    base = 'p{top:0}b{background:url(a.png),url("b.png"),url(data:x),url(/c.png)}'
    (tmp_path / "base.css").write_text(base, encoding="utf-8")
    sheet = tmp_path / "sub" / "theme.css"
    sheet.write_text('@import "../base.css";i{top:0}', encoding="utf-8")
    assert weight.with_imports(sheet) == (
        'p{top:0}b{background:url(../a.png),url("../b.png"),url(data:x),url(/c.png)}'
        "i{top:0}"
    )


@pytest.mark.parametrize(
    "file, body, stays",
    [
        ("copybutton.js", "<pre>", True),
        ("copybutton.css", "<p>", False),
        ("togglebutton.js", '<div class="admonition dropdown">', True),
        ("togglebutton.js", '<div class="admonition dropdown-menu">', False),
        ("design-tabs.js", '<div class="sd-tab-set">', True),
        ("design-tabs.js", '<div class="cell">', False),
        ("doctools.js", "", True),
        ("lab.css", "", True),
    ],
)
def test_a_file_goes_from_a_page_that_it_does_not_serve(file, body, stays):
    assert weight.serves(file, body) == stays
