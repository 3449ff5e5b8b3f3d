"""What every page of the built site must be like. `make book` builds it."""

import re
from collections import Counter
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from bs4 import BeautifulSoup

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "_build" / "html"
PAGES = sorted(
    path
    for path in SITE.rglob("*.html")
    if not path.relative_to(SITE).parts[0].startswith(("_", "vendor"))
)
# The theme writes these itself, and the root page only sends the reader on.
MADE_BY_SPHINX = {"index.html", "genindex.html", "search.html"}
CHAPTERS = [p for p in PAGES if p.relative_to(SITE).as_posix() not in MADE_BY_SPHINX]

# What an output shows when a value was printed that no reader wants to see.
LEAKS = {
    "a memory address": r" at 0x[0-9a-f]{6,}",
    "a numpy scalar": r"\bnp\.(float|int|bool|str)\w*\(",
    "an object without a display": r"<(IPython|matplotlib)\.",
    "a path of one machine": r"(/home/|/root/|/tmp/|[A-Z]:\\Users|site-packages)",
    "a missing glyph": r"Glyph \d+ .*missing",
    "a traceback": r"Traceback \(most recent call last\)",
}


@cache
def soup(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


@cache
def ids(path: Path) -> Counter[str]:
    return Counter(tag["id"] for tag in soup(path).find_all(id=True))


def each(pages: list[Path]):
    return pytest.mark.parametrize(
        "page", pages, ids=lambda page: page.relative_to(SITE).as_posix()
    )


def test_the_site_is_there():
    assert CHAPTERS, "no page in _build/html: run `make book`"


def test_every_page_of_the_contents_is_there():
    contents = (ROOT / "_toc.yml").read_text(encoding="utf-8")
    wanted = re.findall(r"(?:root|file): *(\S+)", contents)
    assert {f"{name}.html" for name in wanted} == {
        page.relative_to(SITE).as_posix() for page in CHAPTERS
    }


@each(PAGES)
def test_no_page_asks_another_host(page: Path):
    loads = [
        tag.get(name)
        for tag in soup(page).find_all(["script", "link", "img", "iframe", "source"])
        for name in ("src", "href")
        if tag.get(name)
    ]
    assert [url for url in loads if re.match(r"(https?:)?//", url)] == []
    for script in soup(page).find_all("script", src=False):
        assert not re.search(r"https?://(?!127\.0\.0\.1)", script.text), script.text


@each(CHAPTERS)
def test_scripts_and_styles_stand_once(page: Path):
    for name, attribute in (("script", "src"), ("link", "href")):
        found = [
            tag[attribute]
            for tag in soup(page).head.find_all(name)
            if tag.get(attribute) and tag.get("rel") != ["preload"]
        ]
        files = [url.split("?")[0] for url in found]
        assert sorted(files) == sorted(set(files))
    styles = [tag["href"] for tag in soup(page).find_all("link", rel="stylesheet")]
    assert sum("lab.css" in href for href in styles) == 1


@each(CHAPTERS)
def test_internal_links_lead_somewhere(page: Path):
    broken = []
    for link in soup(page).find_all("a", href=True):
        parts = urlsplit(link["href"])
        if parts.scheme or parts.netloc:
            continue
        target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
        if not target.is_file():
            broken.append(link["href"])
        elif parts.fragment and target.suffix == ".html":
            if unquote(parts.fragment) not in ids(target):
                broken.append(link["href"])
    assert broken == []


@each(CHAPTERS)
def test_ids_are_unique(page: Path):
    assert [name for name, count in ids(page).items() if count > 1] == []


@each(CHAPTERS)
def test_a_page_has_one_title(page: Path):
    assert len(soup(page).select("article h1")) == 1
    assert soup(page).html["lang"] == "en"


@each(CHAPTERS)
def test_pictures_say_what_they_show(page: Path):
    for image in soup(page).find("main").find_all("img"):
        alt = image.get("alt", "")
        assert len(alt) >= 20, image
        assert not re.search(r"\.(png|svg|jpe?g|gif)$", alt), image
    for drawing in soup(page).select(".cell_output svg"):
        labelled = drawing.find_parent(attrs={"aria-label": True})
        said = drawing.get("aria-label") or (labelled and labelled["aria-label"])
        hidden = drawing.get("aria-hidden") or drawing.find_parent(
            attrs={"aria-hidden": "true"}
        )
        assert hidden or len(said or "") >= 20, str(drawing)[:200]


@each(CHAPTERS)
def test_outputs_leak_nothing(page: Path):
    for output in soup(page).select(".cell_output"):
        for what, pattern in LEAKS.items():
            found = re.search(pattern, output.get_text())
            assert not found, f"{what}: {found[0]}"


def test_the_site_is_signed_by_its_authors():
    text = soup(SITE / "book" / "index.html").find("footer", class_="bd-footer-content")
    assert "The Transformer Math Lab authors" in text.get_text()
    for page in PAGES:
        whole = page.read_text(encoding="utf-8")
        assert "The Jupyter Book community" not in whole
        assert "executablebooks/jupyter-book" not in whole


def test_nothing_from_outside_the_book_is_published():
    strays = [
        path
        for path in SITE.rglob("*")
        if "README" in path.name or path.relative_to(SITE).parts[0] in {"labs", "tests"}
    ]
    assert strays == []
