"""The program that runs all programs: what it keeps, what it names, its status."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.labs.programs import ROOT, Ran, load, start, strict_json

LABS = ROOT / "labs"
ALL = load(LABS / "run_all.py")
NO_SUITES = {"run_all.py", "__main__.py"}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Any:
    out = tmp_path_factory.mktemp("run") / "new" / "folder"
    run = start(LABS / "run_all.py", "--out", out)
    assert (run.returncode, run.stderr) == (0, b"")
    return strict_json(run.stdout), out


def test_it_runs_every_program_of_the_folder():
    programs = {command[0] for command in ALL.SUITES.values()}
    assert programs == {p.name for p in LABS.glob("*.py")} - NO_SUITES


def test_all_pass_and_are_listed(ran: Any):
    document, _ = ran
    assert list(document) == ["all_passed", "suites"]
    assert document["all_passed"] is True
    assert [s["suite"] for s in document["suites"]] == list(ALL.SUITES)
    assert {s["status"] for s in document["suites"]} == {0}


def test_each_document_is_written_as_it_was_printed(ran: Any):
    document, out = ran
    written = {path.stem: path for path in out.iterdir()}
    assert set(written) == set(ALL.SUITES)
    for suite in document["suites"]:
        text = written[suite["suite"]].read_bytes()
        assert hashlib.sha256(text).hexdigest() == suite["sha256"]
        if written[suite["suite"]].suffix == ".json":
            strict_json(text)
    tally = written["worked_examples_checks"].read_text("ascii").splitlines()[-1]
    assert tally == "108 passed, 0 failed"


@pytest.mark.parametrize(
    ("program", "status", "words"),
    [
        ("import sys; print('{}'); sys.exit('it broke')", 1, "it broke"),
        ("print('{')", 1, "no JSON document"),
        ("print('{\"a\": NaN}')", 1, "no JSON document"),
        ("pass", 1, "no JSON document"),
        ("import time; time.sleep(60)", -1, "no end after 1 seconds"),
        ("raise SystemExit(3)", 3, "no JSON document"),
    ],
)
def test_a_failing_suite_is_named_and_the_others_run(
    program: str, status: int, words: str, tmp_path: Path, monkeypatch: Any, capsys: Any
):
    (tmp_path / "bad.py").write_text(program)
    (tmp_path / "good.py").write_text("print('[1]')")
    monkeypatch.setattr(ALL, "HERE", tmp_path)
    monkeypatch.setattr(ALL, "SECONDS", 1)
    monkeypatch.setattr(ALL, "SUITES", {"bad": ("bad.py",), "good": ("good.py",)})
    run = Ran(ALL, capsys, "--out", str(tmp_path / "out"))
    assert run.status == 1
    assert run.err.startswith("bad failed: ") and words in run.err
    bad, good = run.document["suites"]
    assert run.document["all_passed"] is False
    assert (bad["status"], good["status"]) == (status, 0)
    assert (tmp_path / "out" / "good.json").read_text().strip() == "[1]"


def test_a_wrong_labcore_makes_it_fail(tmp_path: Path):
    """The real programs, on a labcore whose AdamW counts its steps from zero."""
    shutil.copytree(LABS, tmp_path / "labs")
    shutil.copytree(ROOT / "shared", tmp_path / "shared")
    source = tmp_path / "shared" / "labcore" / "ops" / "softmax.py"
    text = source.read_text(encoding="utf-8")
    assert text.count("np.exp(") >= 1
    source.write_text(text.replace("np.exp(", "np.exp2(", 1), encoding="utf-8")
    run = start(tmp_path / "labs" / "run_all.py")
    assert run.returncode == 1
    named = {line.split(b" failed: ")[0] for line in run.stderr.splitlines()}
    assert b"transformer_math_lab" in named
    failed = [s for s in strict_json(run.stdout)["suites"] if s["status"]]
    assert {s["suite"].encode() for s in failed} == named


def test_wrong_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "file").write_text("")
    for argv, words in [
        (["--out", str(tmp_path / "file")], "--out: "),
        (["--out"], "--out"),
        (["--out", "a", "--out", "b"], "given twice"),
        (["all"], "unrecognized arguments"),
    ]:
        run = Ran(ALL, capsys, *argv)
        assert (run.status, run.out) == (2, "")
        assert words in run.err


def test_help(capsys: pytest.CaptureFixture[str]):
    run = Ran(ALL, capsys, "--help")
    assert (run.status, run.err) == (0, "")
    assert "--out" in run.out and "Exit status" in run.out
