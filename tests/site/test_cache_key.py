"""A chapter runs again when something changed on which its outputs may depend."""

from collections.abc import Callable
from pathlib import Path

import bookbuild
import pytest
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from nbformat import v4

from tests.site.small_book import build, edit, make_book


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in (
        "requirements.txt",
        "shared/pyproject.toml",
        "shared/labcore/ops/delta.py",
        "shared/labcore/identities/matrix.json",
        "labs/program.py",
        "book/chapter.ipynb",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("one\n", encoding="utf-8")
    return tmp_path


def write(name: str) -> Callable[[Path], object]:
    def change(project: Path) -> None:
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("two\n", encoding="utf-8")

    return change


MATTERS = {
    "a pin": write("requirements.txt"),
    "an operation": write("shared/labcore/ops/delta.py"),
    "data of labcore": write("shared/labcore/identities/matrix.json"),
    "a program": write("labs/program.py"),
    "a new module": write("shared/labcore/new.py"),
    "a module less": lambda project: (project / "labs/program.py").unlink(),
    "a new name": lambda project: (project / "labs/program.py").rename(
        project / "labs/renamed.py"
    ),
}
DOES_NOT_MATTER = {
    "bytecode": write("shared/labcore/__pycache__/delta.cpython-311.pyc"),
    "an installation": write("shared/labcore.egg-info/PKG-INFO"),
    "a workbook": write("labs/workbooks/part-1.ipynb"),
    "a chapter": write("book/chapter.ipynb"),  # the cache looks at its cells itself
}


@pytest.mark.parametrize("what", MATTERS)
def test_the_key_changes(project: Path, what: str):
    before = bookbuild.fingerprint(project)
    MATTERS[what](project)
    assert bookbuild.fingerprint(project) != before


@pytest.mark.parametrize("what", DOES_NOT_MATTER)
def test_the_key_stays(project: Path, what: str):
    before = bookbuild.fingerprint(project)
    DOES_NOT_MATTER[what](project)
    assert bookbuild.fingerprint(project) == before


def test_no_output_is_deleted_while_others_are_read(tmp_path: Path):
    bookbuild.keep_all_outputs()
    cache = get_cache(tmp_path)
    cache.change_cache_limit(1)
    for code in ("1", "2", "3"):
        chapter = v4.new_notebook(cells=[v4.new_code_cell(code)])
        cache.cache_notebook_bundle(CacheBundleIn(chapter, code), check_validity=False)
    assert len(cache.list_cache_records()) == 3


def test_an_extension_that_changed_is_seen_in_pages_that_did_not(tmp_path: Path):
    book = make_book(tmp_path)
    status, said = build(book)
    assert status == 0, said
    edit("book/_ext/policy.py", "img-src {here} data:", "img-src {here} data: blob:")(
        book
    )
    status, said = build(book)
    assert status == 0, said
    for name in ("first", "second"):
        text = (book / f"_build/html/book/{name}.html").read_text(encoding="utf-8")
        assert "img-src 'self' file: data: blob:" in text
