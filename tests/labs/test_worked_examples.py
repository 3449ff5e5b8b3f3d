"""The program of the worked examples: its document, its checks, its options."""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from labcore import lab, report
from labcore.examples import EXAMPLES, NAMED_CHECKS
from labcore.identities import FAULTS, recorded

from tests.labs import programs
from tests.labs.programs import ROOT, Ran, load, strict_json

PROGRAM = ROOT / "labs" / "worked_examples.py"
# What the programs that this part started from printed, and the names of their checks.
SOURCE = json.loads(
    (ROOT / "tests" / "data" / "worked_examples.json").read_text(encoding="utf-8")
)
OUTPUTS: dict[str, Any] = SOURCE["outputs"]
NAMES = [(program, test) for program, test in SOURCE["checks"]]
# Two outputs are rounding errors: what they are differs, what they stay below does not.
BELOW = {"Q012/max_error": 1e-8, "X01/cached_vs_full_max_error": 1e-12}
LAB = load(PROGRAM)


def start(*arguments: str | Path, **more: Any) -> subprocess.CompletedProcess[bytes]:
    return programs.start(*(arguments or (PROGRAM,)), **more)


def printed(capsys: pytest.CaptureFixture[str], *argv: str) -> Ran:
    return Ran(LAB, capsys, *argv)


def differences(got: Any, want: Any, where: str) -> list[str]:
    """Names, order, kinds, integers and strings exactly; numbers to 1e-12 of wanted."""
    if where in BELOW:
        return [] if type(got) is float and got <= BELOW[where] else [f"{where}: {got}"]
    if isinstance(want, dict):
        if not isinstance(got, dict) or list(got) != list(want):
            return [f"{where}: {got}"]
        pairs = [(f"{where}/{name}", got[name], want[name]) for name in want]
    elif isinstance(want, list):
        if not isinstance(got, list) or len(got) != len(want):
            return [f"{where}: {got}"]
        triples = zip(got, want, strict=True)
        pairs = [(f"{where}/{i}", g, w) for i, (g, w) in enumerate(triples)]
    else:
        same = type(got) is type(want) and (
            abs(got - want) <= 1e-12 * abs(want) if type(want) is float else got == want
        )
        return [] if same else [f"{where}: {got!r}, wanted {want!r}"]
    return [line for name, g, w in pairs for line in differences(g, w, name)]


# ---- The document -------------------------------------------------------------------


@pytest.fixture(scope="module")
def document() -> Any:
    run = start()
    assert (run.returncode, run.stderr) == (0, b"")
    return strict_json(run.stdout)


def test_the_document_holds_all_examples(document: Any):
    assert list(document) == ["python", "numpy", "examples"]
    assert document["numpy"] == np.__version__
    assert set(document["examples"]) == set(OUTPUTS)
    assert len(OUTPUTS) == 71


@pytest.mark.parametrize("id", OUTPUTS)
def test_an_output_is_the_reference_s(id: str, document: Any):
    entry = document["examples"][id]
    assert list(entry) == ["title", "chapter", "output"]
    assert differences(entry["output"], OUTPUTS[id], id) == []


def test_an_infinite_logit_is_written_as_a_string(document: Any):
    assert '"-inf"' in json.dumps(document["examples"])


def changed(value: Any) -> list[Any]:
    """Wrong versions of one entry of a document."""
    if isinstance(value, bool):
        return [not value, int(value)]
    if isinstance(value, int):
        return [value + 1, float(value)]
    if isinstance(value, float):
        return [value * (1 + 1e-11) + 1e-300, str(value)]
    return [f"{value} ", None]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        return [p for k, v in value.items() for p in places(v, (*path, k))]
    if isinstance(value, list):
        return [p for i, v in enumerate(value) for p in places(v, (*path, i))]
    return [path]


@pytest.mark.parametrize("id", OUTPUTS)
def test_another_output_would_be_noticed(id: str):
    wrong = copy.deepcopy(OUTPUTS[id])
    for *path, last in places(OUTPUTS[id]):
        if "/".join([id, *map(str, path), str(last)]) in BELOW:
            continue
        inner = wrong
        for step in path:
            inner = inner[step]
        right = inner[last]
        for value in changed(right):
            inner[last] = value
            assert differences(wrong, OUTPUTS[id], id) != [], (path, last, value)
        inner[last] = right


def test_a_title_is_ours_and_where_the_source_had_one_in_chinese_so_have_we():
    assert [id for id in EXAMPLES if EXAMPLES[id].title_zh] == sorted(
        SOURCE["with_chinese_title"], key=list(EXAMPLES).index
    )
    titles = [e.title for e in EXAMPLES.values()]
    assert len(set(titles)) == len(titles)
    assert all(title.isascii() for title in titles)


def test_the_examples_hold_65_distinct_results():
    """Six tell a calculation again; X01 repeats X02 to X12 and is counted."""
    again = {id: e.same_as for id, e in EXAMPLES.items() if e.same_as}
    assert again == {
        "Q007": "F09",
        "Q014": "F09",
        "Q026": "F16",
        "Q021": "F19",
        "Q058": "F28",
        "Q061": "F29",
    }
    assert len(EXAMPLES) - len(again) == 65
    for id, first in again.items():
        assert EXAMPLES[id].chapter == EXAMPLES[first].chapter


# ---- The 108 checks -----------------------------------------------------------------


def test_the_names_are_the_source_s():
    assert sorted(NAMED_CHECKS) == sorted(NAMES)
    assert len(set(NAMES)) == 108


@pytest.mark.parametrize("name", NAMES, ids="-".join)
def test_a_named_check_drives_an_operation_and_a_fault_breaks_it(name: Any):
    """Half of the source's checks compare literals: no change of code breaks those."""
    for id in NAMED_CHECKS[name]:
        assert any(id in checks for checks in recorded()["reach"].values())
        fault = report.fault_of(id)
        assert LAB.worst(id).held
        with lab.broken(fault):
            assert not LAB.worst(id).held, f"{id} does not notice {fault}"


def test_test_runs_the_names(capsys: pytest.CaptureFixture[str]):
    run = printed(capsys, "--test")
    *lines, last = run.out.splitlines()
    assert (run.status, run.err, last) == (0, "", "108 passed, 0 failed")
    assert sorted(tuple(line.split()) for line in lines) == sorted(
        ("passed", *name) for name in NAMES
    )


def test_a_broken_check_is_named_and_counted(capsys: pytest.CaptureFixture[str]):
    run = printed(capsys, "--test", "--break", "adamw_counts_from_zero")
    assert run.status == 1
    assert run.out.splitlines()[-1] == "107 passed, 1 failed"
    assert "failed  engine  test_adamw" in run.out.splitlines()
    assert run.named == ["test_adamw"]
    assert "adamw_first_step: measured 0.5, allowed <" in run.err
    assert LAB.worst("adamw_first_step").held  # the right version is back


# ---- Options ------------------------------------------------------------------------


def test_only(capsys: pytest.CaptureFixture[str]):
    run = printed(capsys, "--only", "Q012", "F05", "--only", "X01", "X01")
    assert (run.status, run.err) == (0, "")
    assert sorted(run.document["examples"]) == ["F05", "Q012", "X01"]


def test_list(capsys: pytest.CaptureFixture[str]):
    run = printed(capsys, "--list")
    assert (run.status, run.err) == (0, "")
    assert [line.partition(":")[0] for line in run.out.splitlines()] == list(EXAMPLES)
    assert any(line.endswith("(same as F09)") for line in run.out.splitlines())


def test_list_of_the_checks(capsys: pytest.CaptureFixture[str]):
    run = printed(capsys, "--test", "--list")
    assert (run.status, run.err) == (0, "")
    assert len(run.out.splitlines()) == 108
    assert "engine  test_adamw: adamw_first_step" in run.out


def test_faults_are_those_that_a_name_notices(capsys: pytest.CaptureFixture[str]):
    run = printed(capsys, "--faults")
    assert (run.status, run.err) == (0, "")
    listed = [block.partition(":")[0] for block in run.out.split("\n\n")]
    assert "adamw_counts_from_zero" in listed
    assert set(listed) <= set(FAULTS)
    broken = {id for ids in NAMED_CHECKS.values() for id in ids}
    for id in FAULTS.keys() - set(listed):
        assert broken.isdisjoint(recorded()["faults"][id]["red"])


def test_an_example_under_a_fault_is_another_document(capsys):
    """A fault is not hidden by a typed-in output."""
    run = printed(capsys, "--only", "Q018", "--break", "adamw_counts_from_zero")
    assert "output" not in run.document["examples"]["Q018"] or differences(
        run.document["examples"]["Q018"]["output"], OUTPUTS["Q018"], "Q018"
    )


def test_an_example_that_fails_says_why_and_the_others_stand(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    def refuse(**givens: Any) -> Any:
        raise ValueError("no")

    monkeypatch.setitem(EXAMPLES, "F05", replace(EXAMPLES["F05"], compute=refuse))
    run = printed(capsys, "--only", "F05", "F06")
    assert (run.status, run.named) == (1, ["F05"])
    assert run.document["examples"]["F05"]["error"] == "ValueError: no"
    assert "output" in run.document["examples"]["F06"]


def test_a_fault_that_nothing_notices_is_said(capsys: pytest.CaptureFixture[str]):
    run = printed(capsys, "--test", "--break", "laplacian_l2")
    assert (run.status, run.named) == (0, ["note"])


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--only", "F5"], "did you mean F35, F05"),
        (["--only", "zzz"], "--list shows all"),
        (["--only", ""], "no example named ''"),
        (["--only"], "--only"),
        (["--only", "F05", "--test"], "not both"),
        (["--only", "F05", "--list"], "not allowed with"),
        (["--break", "adamw_counts_from_one"], "did you mean adamw_counts_from_zero"),
        (["--break", "a", "--break", "b"], "given twice"),
        (["--tes"], "unrecognized arguments"),
        (["F05"], "unrecognized arguments"),
    ],
)
def test_wrong_options(argv: list[str], words: str, capsys: pytest.CaptureFixture[str]):
    run = printed(capsys, *argv)
    assert (run.status, run.out) == (2, "")
    assert words in run.err and "Traceback" not in run.err


def test_help(capsys: pytest.CaptureFixture[str]):
    run = printed(capsys, "--help")
    assert (run.status, run.err) == (0, "")
    for word in ["--only", "--list", "--test", "--faults", "--break", "Exit status"]:
        assert word in run.out


# ---- Wherever it is started ---------------------------------------------------------


def test_from_another_folder_without_an_installed_labcore(tmp_path: Path):
    """-S leaves the editable install out; NumPy comes by its folder alone."""
    folder = str(Path(np.__file__).parents[1])
    run = start(PROGRAM, python=("-S", "-s"), cwd=tmp_path, env={"PYTHONPATH": folder})
    assert (run.returncode, run.stderr) == (0, b"")
    assert len(strict_json(run.stdout)["examples"]) == 71
    assert list(tmp_path.iterdir()) == []


def test_the_checks_from_another_folder(tmp_path: Path):
    folder = str(Path(np.__file__).parents[1])
    python = ("-S", "-s")
    environment = {"PYTHONPATH": folder}
    run = start(PROGRAM, "--test", python=python, cwd=tmp_path, env=environment)
    assert (run.returncode, run.stderr) == (0, b"")
    assert run.stdout.splitlines()[-1] == b"108 passed, 0 failed"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("missing", ["labcore", "numpy"])
def test_what_is_missing_is_said_in_one_line(missing: str, tmp_path: Path):
    alone = shutil.copy(PROGRAM, tmp_path)
    code = (
        f"import runpy, sys; sys.modules[{missing!r}] = None; "
        f"runpy.run_path({str(alone)!r}, run_name='__main__')"
    )
    run = start("-c", code)
    assert (run.returncode, run.stdout) == (2, b"")
    [line] = run.stderr.decode().splitlines()
    assert missing in line.casefold() and "pip" in line


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "utf-16"])
def test_in_any_encoding(encoding: str):
    run = start(env={"PYTHONIOENCODING": encoding, "LC_ALL": "C"})
    assert (run.returncode, run.stderr) == (0, b"")
    assert len(strict_json(run.stdout.decode(encoding))["examples"]) == 71


@pytest.mark.parametrize("option", [[], ["--test"], ["--list"], ["--faults"]])
def test_a_reader_that_leaves(option: list[str]):
    process = subprocess.Popen(
        [sys.executable, str(PROGRAM), *option],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout and process.stderr
    process.stdout.close()
    with process.stderr as stderr:
        said = stderr.read()
    assert (process.wait(), said) == (0, b"")
