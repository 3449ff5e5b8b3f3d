"""The policy of a page allows what the page holds, and nothing else."""

import base64
import hashlib
import re
import sys
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from tests.site.test_pages import CHAPTERS, ROOT, SITE

sys.path.insert(0, str(ROOT / "book" / "_ext"))
import policy
import unused
import weight

WHOLE = [*CHAPTERS, SITE / "search.html", SITE / "genindex.html"]


def read(path: Path) -> BeautifulSoup:
    """The head of a page: all that these tests look at."""
    head, _, _ = path.read_text(encoding="utf-8").partition("</head>")
    return BeautifulSoup(head, "html.parser")


def directives(page: BeautifulSoup) -> dict[str, set[str]]:
    metas = page.head.find_all("meta", {"http-equiv": "Content-Security-Policy"})
    (content,) = [meta["content"] for meta in metas]
    return {name: set(rest) for name, *rest in map(str.split, content.split(";"))}


def written(html: str) -> dict[str, set[str]]:
    return directives(BeautifulSoup(policy.guard(html), "html.parser"))


def page_with(head: str = "", body: str = "") -> str:
    return (
        f"<html><head>{policy.FIRST}<title>t</title>{head}</head>"
        f"<body>{body}</body></html>"
    )


@pytest.mark.parametrize("path", WHOLE, ids=lambda path: path.stem)
def test_no_other_host_is_allowed(path: Path):
    rules = directives(read(path))
    assert rules["default-src"] == {"'none'"}
    allowed = set().union(*rules.values())
    hashes = {word for word in allowed if re.fullmatch(r"'sha256-[\w+/]{43}='", word)}
    assert hashes <= rules["script-src"]
    words = {"'none'", "'self'", "file:", "data:", "'unsafe-inline'", "'unsafe-hashes'"}
    assert allowed - hashes <= words
    assert "'unsafe-inline'" not in rules["script-src"]


@pytest.mark.parametrize("path", WHOLE, ids=lambda path: path.stem)
def test_the_policy_stands_before_what_it_rules(path: Path):
    head = read(path).head
    first = [tag.get("http-equiv") or tag.name for tag in head.find_all(True)][:2]
    assert first == ["meta", "Content-Security-Policy"]


def test_a_script_is_allowed_by_the_hash_of_all_its_characters():
    script = "\n let a = '<b>&amp;é';\n"
    digest = hashlib.sha256(script.encode()).digest()
    expected = f"'sha256-{base64.b64encode(digest).decode()}'"
    rules = written(page_with(f"<script>{script}</script>"))
    assert rules["script-src"] == {"'self'", "file:", expected}


def test_a_handler_is_allowed_as_the_browser_reads_it():
    rules = written(page_with(body='<button onclick="say(&quot;a&quot;)">a</button>'))
    assert policy.source('say("a")') in rules["script-src"]
    assert "'unsafe-hashes'" in rules["script-src"]


def test_data_and_files_need_no_hash():
    data = '<script type="application/json">{"a": 1}</script>'
    rules = written(page_with(data + '<script src="a.js"></script>'))
    assert rules["script-src"] == {"'self'", "file:"}


def test_what_no_page_names_is_not_reached(tmp_path: Path):
    files = {
        "a.html": '<link href="_static/a.css?v=1"><img src="_static/b%20c.png">',
        "_static/a.css": '@import "d.css"; a { background: url(e.svg) }',
        "_static/d.css": 'b { src: url("fonts/f.woff2") }',
        "_static/page.html": '<img src="g.png">',  # a template is no page
    }
    for name in ("b c.png", "e.svg", "fonts/f.woff2", "g.png", "a.css.map"):
        files[f"_static/{name}"] = ""
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    reached = {p.relative_to(tmp_path).as_posix() for p in unused.reached(tmp_path)}
    static = {name.removeprefix("_static/") for name in reached - {"a.html"}}
    assert static == {"a.css", "b c.png", "d.css", "e.svg", "fonts/f.woff2"}


def test_all_that_lies_in_the_site_is_asked_for_and_all_asked_for_lies_there():
    site = SITE.resolve()
    reached = unused.reached(site)
    static = {path for path in (site / "_static").rglob("*") if path.is_file()}
    assert {path for path in static - reached if "LICENSE" not in path.name} == set()
    absent = {path for path in reached if not path.exists()}
    assert {path.relative_to(site).as_posix() for path in absent} == set()


def test_a_style_sheet_has_no_rule_that_can_apply_to_no_page():
    texts = [page.read_text("utf-8") for page in weight.pages(SITE)]
    reached = unused.reached(SITE.resolve())
    scripts = (p.read_text("utf-8") for p in reached if p.suffix == ".js")
    known = weight.Known(texts, scripts)
    sheets = [p for p in reached if p.suffix == ".css" and "_static" in p.parts]
    theirs = [p for p in sheets if p.name not in weight.OURS]
    assert theirs
    for sheet in theirs:
        text = sheet.read_text("utf-8")
        assert len(text) - len(weight.pruned(text, known)) < 0.01 * len(text), sheet
