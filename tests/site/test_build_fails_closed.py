"""The build fails on whatever is wrong, names it, and fails again the next time.

A small book is built with the project's own configuration and extensions, once clean
and once with each fault.
"""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.site.small_book import (
    OUTPUTS,
    Change,
    build,
    cell,
    edit,
    make_book,
    page,
    prose,
)


def unlisted(folder: Path) -> None:
    (folder / "book" / "third.md").write_text("# Third\n", encoding="utf-8")


def committed_output(folder: Path) -> None:
    path = folder / "book" / "first.ipynb"
    document = json.loads(path.read_text(encoding="utf-8"))
    output = {"output_type": "stream", "name": "stdout", "text": "3"}
    document["cells"][1]["outputs"] = [output]
    path.write_text(json.dumps(document), encoding="utf-8")


def too_slow(folder: Path) -> None:
    edit("_config.yml", "timeout: 120", "timeout: 2")(folder)
    cell("import time\n\ntime.sleep(60)")(folder)


def empty_glue(folder: Path) -> None:
    cell("from myst_nb import glue\n\nglue('nothing', '', display=False)")(folder)
    name = max(p.stem for p in (folder / "book").glob("page*"))
    page(f"# Glue\n\nIt is {{glue:any}}`{name}.ipynb::nothing`.\n")(folder)


SAY = "from labcore.present import say\n\n"
SHOW = "from IPython.display import HTML, display\n\n"
MEND = """\
from dataclasses import replace
from labcore import lab
from labcore.identities import FAULTS
from labcore.ops import _op

right = _op.OPS["gated_write"]
FAULTS["gated_log_decay"] = replace(FAULTS["gated_log_decay"], by=right)
lab.try_it("gated_log_decay")
"""

# A book that fails -> what is wrong in it -> the change, and what the last lines of the
# build must name. What stops a build at once has a book of its own.
BOOKS: dict[str, dict[str, tuple[Change, list[str]]]] = {
    "cell": {
        "a failing cell": (
            cell("wanted = 1\nassert wanted == 2, 'one is not two'"),
            ["AssertionError", "one is not two", "assert wanted == 2", "planted-cell"],
        )
    },
    "kernel": {
        "a dead kernel": (
            cell("import os\n\nos._exit(1)"),
            ["DeadKernelError", "planted-cell"],
        )
    },
    "time": {
        "a time-out": (
            too_slow,
            ["CellTimeoutError", "time.sleep(60)", "planted-cell"],
        )
    },
    "plan": {
        "a planned failure that stopped failing": (
            cell(MEND),
            ["nothing notices gated_log_decay", "planted-cell"],
        )
    },
    "say": {
        "a sentence without its value": (
            cell(SAY + "say('It is {x}.', x='')"),
            ["x has no value", "planted-cell"],
        )
    },
    "before it runs": {
        "a tag that skips": (cell("1", tags=["skip-execution"]), ["skip-execution"]),
        "a tag that allows an error": (
            cell("1 / 0", tags=["raises-exception"]),
            ["cell planted-cell", "raises-exception"],
        ),
        "a page that allows errors": (
            edit(
                "book/second.ipynb",
                '"metadata": {"kernel',
                '"metadata": {"mystnb": {"execution_allow_errors": true}, "kernel',
            ),
            ["book/second", "mystnb"],
        ),
        "an output committed by hand": (committed_output, ["did not compute"]),
        "an entry without a file": (
            edit("_toc.yml", "chapters:", "chapters:\n- file: book/no"),
            ["there is no file for book/no"],
        ),
        "a file without an entry": (unlisted, ["book/third.md has no entry"]),
        "an entry that stands twice": (
            edit("_toc.yml", "chapters:", "chapters:\n- file: book/second"),
            ["book/second stands twice"],
        ),
        "a mistyped key": (
            edit("_config.yml", "exclude_patterns:", "exclude_pattern:"),
            ["nothing reads 'exclude_pattern'"],
        ),
        "a mistyped key of a section": (
            edit("_config.yml", "  timeout:", "  time_out: 1\n  timeout:"),
            ["nothing reads 'execute.time_out'"],
        ),
        "a key that stands twice": (
            edit("_config.yml", "execute:", "title: Another\nexecute:"),
            ["the key 'title' stands twice"],
        ),
        "fewer pages than there were": (
            edit("book/floors.json", '"pages": 1', '"pages": 9999'),
            ["pages, and there were 9999"],
        ),
        "fewer cells than there were": (
            edit("book/floors.json", '"cells": 1', '"cells": 9999'),
            ["cells, and there were 9999"],
        ),
        "fewer checks than there were": (
            edit("book/floors.json", '"checks": 1', '"checks": 9999'),
            ["checks, and there were 9999"],
        ),
        "a typed decimal": (prose("It is 0.25."), ["a typed number, '0.25'"]),
        "a typed percentage": (prose("It is 12 %."), ["a typed number, '12 %'"]),
        "a typed integer": (prose("It breaks 7 checks."), ["a typed number, '7'"]),
        "a typed word": (prose("It is half the error."), ["a typed number, 'half'"]),
        "a given that is not given": (
            prose("With {given}`sigma=0.7` it holds."),
            ["nothing gives 'sigma'"],
        ),
        "a formula that nothing computes": (
            prose("$$\ne = m\n$$"),
            ["no registered formula prints e = m"],
        ),
    },
    "settings": {
        "a mistyped setting of Sphinx": (
            edit("_config.yml", "    language: en", "    languag: en"),
            ["sphinx.config.languag"],
        ),
        "a mistyped option of the theme": (
            edit("_config.yml", "navbar_persistent:", "navbar_persistant:"),
            ["sphinx.config.html_theme_options.navbar_persistant"],
        ),
    },
    "warnings": {
        "a line on stderr": (
            cell("import sys\n\nprint('mind', file=sys.stderr)"),
            ["stderr was found"],
        ),
        "a link to no page": (prose("See [there](nobody.md)."), ["nobody.md"]),
        "a link to no place": (prose("[There](first.ipynb#nowhere)."), ["nowhere"]),
        "a link for a hub to no file": (
            page("# Link\n\n```{hub-link} labs/no.ipynb\n```\n"),
            ["a hub cannot open labs/no.ipynb"],
        ),
        "a citation of nothing": (prose("{cite:t}`no1900nothing`"), ["no1900nothing"]),
    },
    "site": {
        "a picture without words": (
            cell(SHOW + 'display(HTML(\'<svg class="plot" role="img"></svg>\'))'),
            ["a picture without alt text"],
        ),
        "a link of an output to no place": (
            cell(SHOW + "display(HTML('<a href=\"first.html#nowhere\">there</a>'))"),
            ["the link first.html#nowhere leads to no place"],
        ),
        "a link of an output to no page": (
            cell(SHOW + "display(HTML('<a href=\"nobody.html\">there</a>'))"),
            ["the link nobody.html leads to no file"],
        ),
        "an empty glued value": (empty_glue, ["a result is missing"]),
    },
}
FAULTS = [
    pytest.param(book, *fault, id=name)
    for book, faults in BOOKS.items()
    for name, fault in faults.items()
]


@pytest.fixture(scope="module")
def builds(tmp_path_factory) -> dict[str, list[tuple[int, str]]]:
    """Each book, built twice; the books two at a time, after the clean one.

    They start with its outputs, so that of their pages only the spoilt ones run.
    """
    clean = make_book(tmp_path_factory.mktemp("book"))
    found = {"nothing": [build(clean), build(clean)]}

    def twice(name: str) -> list[tuple[int, str]]:
        changes = [change for change, _ in BOOKS[name].values()]
        folder = make_book(tmp_path_factory.mktemp("book"), changes)
        shutil.copytree(clean / OUTPUTS, folder / OUTPUTS)
        return [build(folder), build(folder)]

    with ThreadPoolExecutor(2) as pool:
        return found | dict(zip(BOOKS, pool.map(twice, BOOKS), strict=True))


def test_a_clean_book_is_built(builds):
    for status, said in builds["nothing"]:
        assert status == 0, said
        assert said.splitlines()[-1].endswith("index.html")


@pytest.mark.parametrize(("book", "change", "named"), FAULTS)
@pytest.mark.parametrize("attempt", [0, 1], ids=["first", "again"])
def test_a_fault_fails_the_build(builds, attempt: int, book: str, change, named):
    status, said = builds[book][attempt]
    assert status != 0, said
    reason = said[said.index("The book was not built") :]
    for words in named:
        assert words in reason
