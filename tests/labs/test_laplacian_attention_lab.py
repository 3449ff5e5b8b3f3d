"""The program on Laplacian attention: its document, its options, its exit status."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from labcore.identities import FAULTS

from tests.labs import programs
from tests.labs.programs import ROOT, Ran, load, strict_json

PROGRAM = ROOT / "labs" / "laplacian_attention_lab.py"
# What the program that this part started from printed.
REFERENCE = json.loads(
    (ROOT / "tests" / "data" / "laplacian_attention.json").read_text(encoding="utf-8")
)
SECTIONS = list(REFERENCE)


LAB = load(PROGRAM)
OURS = [fault.id for fault in LAB.faults()]


def start(*arguments: str | Path, **more: Any) -> subprocess.CompletedProcess[bytes]:
    return programs.start(*(arguments or (PROGRAM,)), **more)


def printed(capsys: pytest.CaptureFixture[str], *argv: str) -> Ran:
    return Ran(LAB, capsys, *argv)


def differences(got: Any, want: Any, where: str = "") -> list[str]:
    """Where two documents differ in names, order, kind, or by more than 1e-9."""
    if isinstance(want, dict):
        if not isinstance(got, dict) or list(got) != list(want):
            return [f"{where}: {got}"]
        pairs = [(f"{where}/{name}", got[name], want[name]) for name in want]
    elif isinstance(want, list):
        if not isinstance(got, list) or len(got) != len(want):
            return [f"{where}: {got}"]
        triples = zip(got, want, strict=True)
        pairs = [(f"{where}/{i}", g, w) for i, (g, w) in enumerate(triples)]
    elif type(got) is not type(want) or abs(got - want) > 1e-9:
        return [f"{where}: {got}, wanted {want}"]
    else:
        return []
    return [line for name, g, w in pairs for line in differences(g, w, name)]


# ---- Parity with the program that this part started from ----------------------------


def test_the_document_is_the_reference_s():
    run = start()
    assert (run.returncode, run.stderr) == (0, b"")
    assert differences(strict_json(run.stdout), REFERENCE) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["toy_comparison"][2].update(lap_mse=0.007696867088056128),
        lambda d: d["toy_comparison"].reverse(),
        lambda d: d["two_key_transition"].pop("max_abs_error"),
        lambda d: d["operation_count_example"].update(N=128.0),
        lambda d: d["sigma_entropy"].update(monotone_observed=1),
        lambda d: d.update(invariants=d.pop("invariants")),
    ],
)
def test_another_document_would_be_noticed(change):
    document = json.loads(json.dumps(REFERENCE))
    change(document)
    assert differences(document, REFERENCE) != []


def test_the_same_run_twice_is_the_same_text(capsys: pytest.CaptureFixture[str]):
    assert printed(capsys).out == printed(capsys, "--seed", "7").out


def test_the_observed_transition_is_a_run_of_the_attention(capsys):
    """The source compares a formula with itself: its error can only be zero."""
    section = printed(capsys, "--break", "laplacian_gaussian").document
    moved = section["two_key_transition"]
    assert moved["max_abs_error"] > 0.1
    reference = REFERENCE["two_key_transition"]
    predicted = "predicted_near_probability"
    assert differences(moved[predicted], reference[predicted]) == []


# ---- Options ------------------------------------------------------------------------


def test_seed_draws_other_inputs(capsys: pytest.CaptureFixture[str]):
    one, other = printed(capsys), printed(capsys, "--seed", "0")
    assert (one.status, other.status, other.err) == (0, 0, "")
    assert one.document["toy_comparison"] != other.document["toy_comparison"]
    assert one.document["ratio_prediction"] == other.document["ratio_prediction"]


def test_many_seeds_hold(capsys: pytest.CaptureFixture[str]):
    for seed in range(8):
        run = printed(capsys, "--seed", str(seed))
        assert (run.status, run.err) == (0, ""), seed


def test_faults_are_those_of_this_part(capsys: pytest.CaptureFixture[str]):
    run = printed(capsys, "--faults")
    assert (run.status, run.err) == (0, "")
    assert run.out.isascii()
    assert run.out.splitlines() == [f"{id}: {FAULTS[id].title}" for id in OURS]
    assert len(OURS) >= 20


# ---- Breaking -----------------------------------------------------------------------

# Fault -> the sections that notice it; no section looks at what is missing here.
NOTICED = {
    "laplacian_l2": ["two_key_transition"],
    "laplacian_mean_distance": ["two_key_transition"],
    "laplacian_max_distance": ["two_key_transition"],
    "laplacian_dot": SECTIONS[:5],
    "laplacian_times_sigma": SECTIONS[:3],
    "laplacian_plus_sign": [*SECTIONS[:2], *SECTIONS[3:5]],
    "laplacian_not_normalised": SECTIONS[1:4],
    "laplacian_over_the_queries": SECTIONS[:4],
    "laplacian_gaussian": SECTIONS[:2],
    "laplacian_relative_sigma": SECTIONS[:2],
    "laplacian_unit_length_first": SECTIONS[:2],
    "laplacian_sigma_squared": SECTIONS[:2],
    "softmax_reversed": [*SECTIONS[:2], *SECTIONS[3:5]],
}


@pytest.mark.parametrize("fault", OURS)
def test_a_fault_has_the_right_status(fault: str, capsys):
    run = printed(capsys, "--break", fault)
    noticed = NOTICED.get(fault, [])
    if noticed:
        assert (run.status, set(run.named)) == (1, set(noticed))
        assert all(": " in line and line.isascii() for line in run.err.splitlines())
    else:
        assert (run.status, run.named) == (0, ["note"])
        assert fault in run.err
    assert list(run.document) == SECTIONS
    assert printed(capsys).status == 0  # the right version is back


def test_a_section_that_fails_says_why_and_the_others_stand(capsys):
    run = printed(capsys, "--break", "laplacian_over_the_queries")
    assert "p must sum to 1" in run.document["sigma_entropy"]["error"]
    assert "toy_comparison" in run.document


def test_break_as_a_process():
    run = start(PROGRAM, "--break", "laplacian_l2")
    assert run.returncode == 1
    assert b"two_key_transition: max_abs_error does not hold" in run.stderr
    assert list(strict_json(run.stdout)) == SECTIONS


# ---- Wrong options ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--break", "laplacian_l1"], "did you mean laplacian_l2"),
        (["--break", "zzz"], "--faults shows all"),
        (["--break", ""], "no fault named ''"),
        (["--break"], "--break"),
        (["--break", "laplacian_l2", "--break", "laplacian_dot"], "given twice"),
        (["--break", "laplacian_l2", "--faults"], "not allowed with"),
        (["--seed", "1", "--seed", "2"], "given twice"),
        (["--seed", "-1"], "wants a whole number from 0, got '-1'"),
        (["--seed", "1.5"], "wants a whole number"),
        (["--seed", "nan"], "wants a whole number"),
        (["--seed", ""], "wants a whole number"),
        (["--seed"], "--seed"),
        (["--see", "1"], "unrecognized arguments"),
        (["laplacian_l2"], "unrecognized arguments"),
    ],
)
def test_wrong_options(argv: list[str], words: str, capsys: pytest.CaptureFixture[str]):
    run = printed(capsys, *argv)
    assert (run.status, run.out) == (2, "")
    assert words in run.err and "Traceback" not in run.err


def test_help(capsys: pytest.CaptureFixture[str]):
    run = printed(capsys, "--help")
    assert (run.status, run.err) == (0, "")
    for word in ["--seed", "--faults", "--break", "Exit status", *SECTIONS]:
        assert word in run.out


# ---- Wherever it is started ---------------------------------------------------------


def test_from_another_folder_without_an_installed_labcore(tmp_path: Path):
    """-S leaves the editable install out; NumPy comes by its folder alone."""
    folder = str(Path(np.__file__).parents[1])
    run = start(PROGRAM, python=("-S", "-s"), cwd=tmp_path, env={"PYTHONPATH": folder})
    assert (run.returncode, run.stderr) == (0, b"")
    assert list(strict_json(run.stdout)) == SECTIONS


def test_isolated(tmp_path: Path):
    run = start(PROGRAM, "--faults", python=("-I",), cwd=tmp_path)
    assert (run.returncode, run.stderr) == (0, b"")


def test_the_labcore_beside_it_comes_before_an_installed_one(tmp_path: Path):
    (tmp_path / "labcore").mkdir()
    (tmp_path / "labcore" / "__init__.py").write_text("raise SystemExit('wrong one')\n")
    run = start(PROGRAM, "--faults", env={"PYTHONPATH": str(tmp_path)})
    assert (run.returncode, run.stderr) == (0, b"")


@pytest.mark.parametrize("missing", ["labcore", "numpy"])
def test_what_is_missing_is_said_in_one_line(missing: str, tmp_path: Path):
    copy = shutil.copy(PROGRAM, tmp_path)
    code = (
        f"import runpy, sys; sys.modules[{missing!r}] = None; "
        f"runpy.run_path({str(copy)!r}, run_name='__main__')"
    )
    run = start("-c", code)
    assert (run.returncode, run.stdout) == (2, b"")
    [line] = run.stderr.decode().splitlines()
    assert missing in line.casefold() and "pip" in line


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "utf-16"])
def test_in_any_encoding(encoding: str):
    run = start(env={"PYTHONIOENCODING": encoding, "LC_ALL": "C"})
    assert (run.returncode, run.stderr) == (0, b"")
    assert list(strict_json(run.stdout.decode(encoding))) == SECTIONS


def test_a_strange_name_in_a_narrow_encoding():
    run = start(PROGRAM, "--break", "\u00e9\u03b2", env={"PYTHONIOENCODING": "ascii"})
    assert run.returncode == 2
    assert b"no fault named" in run.stderr and b"Traceback" not in run.stderr


@pytest.mark.parametrize("option", [[], ["--faults"], ["--help"]])
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
