"""`make changed` names the pages that a change touches, and misses none."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest
import strict
from labcore.contents import page
from labcore.identities import CHECKS, FAULTS, recorded
from labcore.ops import _op

from tests.site.small_book import ROOT

SPEC = importlib.util.spec_from_file_location("changed", ROOT / "book" / "changed.py")
changed = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(changed)

PAGES = set(strict.listed(ROOT))
LABCORE = ROOT / "shared" / "labcore"
DELTA, BREAK = "book/part-1/writes-and-decay", "book/part-1/break-everything"
# What these touch, and nothing else.
EXACTLY = {
    "book/part-1/rope.ipynb": {"book/part-1/rope"},
    "book/reference/conventions.md": {"book/reference/conventions"},
    "shared/labcore/figures/mla.py": {"book/part-1/absorbing-mla"},
    "shared/labcore/figures/matrix.py": {BREAK},
    "shared/labcore/exercises/delta.py": {DELTA},
    "shared/labcore/formulas/delta.py": {DELTA, "book/reference/formulas"},
    "shared/labcore/systems/files.py": {"book/part-3/streams-and-state"},
    "shared/labcore/examples/tokens.py": {
        "book/part-3/tokens-shapes-decoder",
        "book/reference/examples",
    },
    "shared/labcore/recorded/run.json": {"book/reference/recorded-run"},
}
EVERY = [
    "_config.yml",
    "_toc.yml",
    "requirements.txt",
    "book/_static/lab.css",
    "book/_ext/truth.py",
    "book/build.py",
    "shared/pyproject.toml",
    "shared/labcore/report.py",
    "shared/labcore/ops/_op.py",
    "shared/labcore/identities/matrix.json",
    "shared/labcore/figures/_draw.py",
    "shared/labcore/ops/a_module_that_is_gone.py",
]
NONE = ["README.md", "tests/tamper.py", "labs/run_all.py", "book/changed.py"]
NONE += ["labs/workbooks/part-1.ipynb", "book/floors.json", ".ci/run"]


@pytest.mark.parametrize(("file", "pages"), EXACTLY.items())
def test_a_file_of_one_topic_touches_its_pages(file: str, pages: set[str]):
    assert (ROOT / file).exists()
    assert changed.touched(file) == pages


@pytest.mark.parametrize("file", EVERY)
def test_what_everything_depends_on_touches_every_page(file: str):
    assert changed.touched(file) == PAGES


@pytest.mark.parametrize("file", NONE)
def test_what_no_page_depends_on_touches_none(file: str):
    assert changed.touched(file) == set()


def test_references_touch_the_pages_that_cite():
    pages = changed.touched("book/references.bib")
    assert {"book/reference/bibliography", "book/part-1/rope"} <= pages
    assert "book/reference/checks" not in pages


@pytest.mark.parametrize("operation", _op.OPS)
def test_an_operation_touches_every_chapter_whose_checks_a_fault_of_it_breaks(
    operation: str,
):
    module = _op.OPS[operation].__module__
    broken = {
        f"book/{page(CHECKS[check].chapter)}"
        for fault in FAULTS.values()
        if fault.operation == operation
        for check in recorded()["faults"].get(fault.id, {"red": ()})["red"]
        if check in CHECKS
    }
    assert broken <= changed.touched(f"shared/{module.replace('.', '/')}.py")


@pytest.mark.parametrize("folder", changed.TOPICS)
def test_every_module_of_a_topic_touches_some_page_and_not_all(folder: str):
    for path in sorted((LABCORE / folder).glob("[a-z]*.py")):
        pages = changed.touched(path.relative_to(ROOT).as_posix())
        assert pages and pages < PAGES, path


# --- what has changed ------------------------------------------------------------


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    if shutil.which("git") is None:
        pytest.skip("git is not here")
    run(tmp_path, "init", "-q", "-b", "main")
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("1\n", encoding="utf-8")
    commit(tmp_path)
    (tmp_path / "a.txt").write_text("2\n", encoding="utf-8")
    commit(tmp_path)
    return tmp_path


def run(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def commit(folder: Path) -> None:
    run(folder, "add", "-A")
    run(folder, "commit", "-q", "-m", "a")


def test_work_begins_at_the_last_commit(repository: Path):
    assert changed.start(repository) == "HEAD~1"
    assert changed.changed_files(repository, "HEAD~1") == ["a.txt"]


def test_work_that_is_not_committed_counts_alone(repository: Path):
    (repository / "b.txt").unlink()
    (repository / "new.txt").write_text("1\n", encoding="utf-8")
    assert changed.start(repository) == "HEAD"
    assert changed.changed_files(repository, "HEAD") == ["b.txt", "new.txt"]


def test_on_a_branch_all_of_the_branch_counts(repository: Path):
    run(repository, "checkout", "-q", "-b", "work")
    (repository / "b.txt").write_text("2\n", encoding="utf-8")
    commit(repository)
    (repository / "c.txt").write_text("1\n", encoding="utf-8")
    files = changed.changed_files(repository, changed.start(repository))
    assert files == ["b.txt", "c.txt"]


def test_a_commit_that_is_not_there_is_told(repository: Path):
    with pytest.raises(SystemExit, match="git diff"):
        changed.changed_files(repository, "no-such-commit")


def test_the_list_has_addresses_and_reasons(monkeypatch, tmp_path, capsys):
    files = ["book/part-1/rope.ipynb", "shared/labcore/figures/rope.py", "README.md"]
    files.append("book/reference/conventions.md")
    (tmp_path / "book" / "part-1").mkdir(parents=True)
    (tmp_path / "book" / "part-1" / "rope.html").touch()
    monkeypatch.setattr(changed, "SITE", tmp_path)
    monkeypatch.setattr(changed, "changed_files", lambda root, since: files)
    assert changed.main(["HEAD"]) == 0
    rope, conventions, last = capsys.readouterr().out.splitlines()
    address = (tmp_path / "book" / "part-1" / "rope.html").as_uri()
    assert rope == f"{address}  book/part-1/rope.ipynb and 1 more"
    assert conventions.startswith("book/reference/conventions (not built)")
    assert last == f"2 of {len(PAGES)} pages, since HEAD."
