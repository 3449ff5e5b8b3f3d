"""One constant of labcore changes, and every page that shows it changes with it.

A small book on a copy of labcore: a page prints a sentence, one a document, one a
table, one draws, one without code shows a glued value, and one shows nothing of it.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.notebooks.outputs import texts
from tests.site.small_book import ROOT, build, cell, make_book, page

SHOWING = {
    "a sentence": "from labcore.present import say\n\nsay('It is {x}.', x=1 / 7)",
    "a document": "from labcore.present import show_json\n\nshow_json({'x': 1 / 7})",
    "a table": (
        "from labcore import report\nfrom IPython.display import HTML\n\n"
        "HTML(f'<table><tr><td>{report.number(1 / 7)}</td></tr></table>')"
    ),
    "a figure": (
        "from labcore.figures import delta\nimport numpy as np\n\n"
        "delta.scalar_write(4.0, 1.0, 10.0, 1 / 7, 0.5)"
    ),
    "a glued value": (
        "from labcore import report\nfrom myst_nb import glue\n\n"
        "glue('seventh', report.number(1 / 7), display=False)"
    ),
}
GLUED = "# Glued\n\nIt is {glue:any}`page4.ipynb::seventh`.\n"
SIX, FOUR = "0.142857", "0.1429"


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pages = [*map(cell, SHOWING.values()), page(GLUED), cell("'no number'")]
    folder = make_book(tmp_path_factory.mktemp("book"), pages)
    left_out = shutil.ignore_patterns("__pycache__")
    labcore = folder / "shared" / "labcore"
    shutil.copytree(ROOT / "shared" / "labcore", labcore, ignore=left_out)
    return folder


def pages(book: Path) -> dict[str, str]:
    """Page -> what a reader sees of it, in words and in numbers."""
    found = {}
    for path in sorted((book / "_build" / "html" / "book").glob("page*.html")):
        found[path.stem] = path.read_text(encoding="utf-8").partition("<article")[2]
    return found


def executed(said: str) -> int:
    return said.count("Executed notebook in")


def test_every_page_that_shows_it_changes(book: Path):
    labcore = {"PYTHONPATH": str(book / "shared")}
    status, said = build(book, **labcore)
    assert status == 0, said
    before = pages(book)
    shows = {page for page, text in before.items() if SIX in text}
    assert shows == {"page0", "page1", "page2", "page3", "page5"}

    status, said = build(book, **labcore)
    assert (status, executed(said)) == (0, 0), "nothing changed, so nothing runs"
    assert pages(book) == before

    first = book / "book" / "page0.ipynb"
    text = first.read_text(encoding="utf-8")
    first.write_text(text.replace("# A page", "# Page"), encoding="utf-8")
    status, said = build(book, **labcore)
    assert (status, executed(said)) == (0, 0), "prose changed, so nothing runs"
    outputs = texts(book / "_build" / "jupyter_execute" / "book" / "page0.ipynb")
    assert SIX in str(outputs), "outputs from the cache are outputs"
    before = pages(book)

    report = book / "shared" / "labcore" / "report.py"
    text = report.read_text(encoding="utf-8")
    assert "DIGITS = 6\n" in text
    report.write_text(text.replace("DIGITS = 6\n", "DIGITS = 4\n"), encoding="utf-8")
    status, said = build(book, **labcore)
    assert status == 0, said
    assert executed(said) == len(list((book / "book").glob("*.ipynb")))
    after = pages(book)
    for name in shows:
        assert SIX not in after[name] and FOUR in after[name], name
    assert after["page6"] == before["page6"]
