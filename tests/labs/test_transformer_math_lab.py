"""The program of the 17 checks: its document, its options, its exit status."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from labcore import report
from labcore.identities import CHECKS, FAULTS, recorded

from tests.labs import programs
from tests.labs.programs import ROOT, Ran, load, strict_json

PROGRAM = ROOT / "labs" / "transformer_math_lab.py"
# What the program that the course started from printed.
REFERENCE = json.loads(
    (ROOT / "tests" / "data" / "reference.json").read_text(encoding="utf-8")
)
NAMES = list(REFERENCE["checks"])


LAB = load(PROGRAM)


def start(*arguments: str | Path, **more: Any) -> subprocess.CompletedProcess[bytes]:
    return programs.start(*(arguments or (PROGRAM,)), **more)


def printed(capsys: pytest.CaptureFixture[str], *argv: str) -> Ran:
    return Ran(LAB, capsys, *argv)


# ---- Parity with the program that the course started from --------------------------


def test_the_document_is_the_reference_s():
    run = start()
    assert (run.returncode, run.stderr) == (0, b"")
    document = strict_json(run.stdout)
    assert list(document) == list(REFERENCE)
    assert document["python"] == platform.python_version()
    assert document["numpy"] == np.__version__
    assert (document["seed"], document["dtype"]) == (184, "float64")
    assert list(document["checks"]) == NAMES
    for name, wanted in REFERENCE["checks"].items():
        entry = document["checks"][name]
        if not isinstance(wanted, dict):
            assert name == "online_worked_output" and type(entry) is float
            continue
        assert list(entry) == list(wanted), name
        if "tolerance" in wanted:
            assert entry["tolerance"] == wanted["tolerance"] == 1e-11
            assert 0 <= entry["max_absolute_error"] < 1e-11, name
    checks = document["checks"]
    assert checks["online_worked_output"] == pytest.approx(3.870665350571926, rel=1e-14)
    gap = checks["kda_noncommuting_counterexample"]["max_difference"]
    assert gap == pytest.approx(0.25, rel=1e-14)


def test_the_same_run_twice_is_the_same_text(capsys: pytest.CaptureFixture[str]):
    assert printed(capsys).out == printed(capsys, "--seed", "184").out


# ---- Options ------------------------------------------------------------------------


def test_seed_draws_other_inputs(capsys: pytest.CaptureFixture[str]):
    one, other = printed(capsys), printed(capsys, "--seed", "0")
    assert (one.status, other.status, other.document["seed"]) == (0, 0, 0)
    assert one.document["checks"] != other.document["checks"]


def test_seeds_report_the_worst(capsys: pytest.CaptureFixture[str]):
    single = [printed(capsys, "--seed", str(i)).document["checks"] for i in range(3)]
    many = printed(capsys, "--seeds", "3")
    assert (many.status, many.err) == (0, "")
    assert (many.document["seed"], many.document["seeds"]) == (0, 3)
    assert list(many.document["checks"]) == NAMES
    for name, entry in many.document["checks"].items():
        one_by_one = [checks[name] for checks in single]
        if isinstance(entry, float):
            assert entry in one_by_one
        elif "max_difference" in entry:
            found = [e["max_difference"] for e in one_by_one]
            assert entry["max_difference"] == min(found)
        else:
            errors = [e["max_absolute_error"] for e in one_by_one]
            assert entry["max_absolute_error"] == max(errors)


def test_many_seeds_hold(capsys: pytest.CaptureFixture[str]):
    run = printed(capsys, "--seeds", "40")
    assert (run.status, run.err) == (0, "")


def test_the_worst_of_a_counterexample_is_the_smallest_difference():
    check = CHECKS["kda_noncommuting_counterexample"]

    def verdict(held: bool, difference: float) -> Any:
        return LAB.Verdict(check, held, difference, difference, 0, 2)

    found = [verdict(True, 0.5), verdict(True, 0.3), verdict(True, 0.4)]
    assert LAB.entry(found) == {"max_difference": 0.3}
    found.append(verdict(False, np.inf))  # an exception is no difference
    assert LAB.entry(found) == {"max_difference": np.inf}


def test_an_error_between_the_two_tolerances_fails():
    check = CHECKS["rope_joint_shift"]
    large = LAB.Verdict(check, True, 1e-14, 2e-11, 0, 2)
    assert LAB.failed(large) and "allowed < 1e-11" in LAB.complaint(large)
    small = LAB.Verdict(check, False, 1e-10, 1e-12, 0, 2)
    assert LAB.failed(small) and "measured 1e-10" in LAB.complaint(small)
    assert LAB.failed(LAB.Verdict(check, True, 0.0, np.nan, 0, 2))


def test_only_keeps_the_order_of_the_source(capsys: pytest.CaptureFixture[str]):
    ids = ("rope_joint_shift", "online_softmax", "rope_joint_shift")
    run = printed(capsys, "--only", *ids, "--seeds", "2", "--only", NAMES[0])
    assert run.status == 0
    assert list(run.document["checks"]) == [NAMES[0], ids[1], ids[0]]


def test_list_names_every_check_with_its_claim(capsys: pytest.CaptureFixture[str]):
    run = printed(capsys, "--list")
    lines = [f"{name}: {CHECKS[name].claim}" for name in NAMES]
    assert (run.status, run.out.splitlines(), run.err) == (0, lines, "")
    assert printed(capsys, "--list", "--only", NAMES[3]).out == lines[3] + "\n"


def test_faults_tell_operation_story_and_who_breaks(capsys: pytest.CaptureFixture[str]):
    run = printed(capsys, "--faults")
    assert run.status == 0 and run.out.isascii()
    blocks = run.out.strip().split("\n\n")
    told = {block.partition(":")[0]: block for block in blocks}
    chapters = {CHECKS[name].chapter for name in NAMES}
    wanted = [fault for fault in FAULTS.values() if fault.chapter in chapters]
    assert len(told) == len(blocks) == len(wanted)
    for fault in wanted:
        block, red = told[fault.id], recorded()["faults"][fault.id]["red"]
        assert fault.operation in block and fault.story in block
        breaks = block.splitlines()[-1]
        assert [name for name in NAMES if name in breaks] == notice(fault.id)
        more = len(red) - len(notice(fault.id))
        assert (f"and {more} more" in breaks) is (more > 0)
    few = printed(capsys, "--faults", "--only", "rope_joint_shift").out
    assert "rope_queries_only: " in few and "softmax_without_shift: " not in few


# ---- Breaking -----------------------------------------------------------------------


def notice(fault: str) -> list[str]:
    """Those of the 17 that are recorded as broken by a fault, in order."""
    return [name for name in NAMES if name in recorded()["faults"][fault]["red"]]


def test_each_of_the_17_has_a_fault():
    assert {name for fault in FAULTS for name in notice(fault)} == set(NAMES)


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if notice(fault)])
def test_a_fault_turns_its_checks_red(fault: str, capsys: pytest.CaptureFixture[str]):
    run = printed(capsys, "--break", fault)
    assert (run.status, run.named) == (1, notice(fault))
    for line in run.err.splitlines():
        assert ": measured " in line and ", allowed " in line
    assert run.document["fault"] == fault
    assert list(run.document["checks"]) == NAMES
    for name, entry in run.document["checks"].items():
        if "max_absolute_error" in str(entry):
            error = float(entry["max_absolute_error"])
            assert (error >= 1e-11) is (name in run.named), name
    assert printed(capsys).status == 0  # the right version is back


def test_a_fault_that_none_of_the_17_notices(capsys: pytest.CaptureFixture[str]):
    assert notice("scale_missing") == []
    run = printed(capsys, "--break", "scale_missing")
    assert (run.status, run.named) == (0, ["note"])
    assert list(run.document["checks"]) == NAMES


def test_break_with_only_and_seeds(capsys: pytest.CaptureFixture[str]):
    options = ("--break", "gated_decay_after_write", "--seeds", "3", "--only")
    run = printed(capsys, *options, "kda_affine_form", "gated_no_decay_limit")
    assert (run.status, run.named) == (1, ["kda_affine_form"])
    assert "seed " in run.err
    held = printed(capsys, *options, "gated_no_decay_limit")
    assert held.status == 0


def test_a_number_that_is_none_is_a_string(capsys: pytest.CaptureFixture[str]):
    run = printed(capsys, "--break", "summary_without_guard")
    entry = run.document["checks"]["online_softmax"]
    assert entry["max_absolute_error"] in ("inf", "nan")
    verdict = LAB.Verdict(
        CHECKS["online_worked_output"], False, np.inf, np.inf, 0, 2, "ValueError: x\ny"
    )
    assert report.as_json(LAB.entry([verdict])) == '"nan"'
    assert "\n" not in LAB.complaint(verdict)


def test_break_as_a_process():
    run = start(PROGRAM, "--break", "gated_decay_after_write")
    assert run.returncode == 1
    named = [line.partition(":")[0] for line in run.stderr.decode().splitlines()]
    assert named == notice("gated_decay_after_write")
    assert list(strict_json(run.stdout)["checks"]) == NAMES


# ---- Wrong options ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--only", "online_softmx"], "did you mean online_softmax?"),
        (["--only", "delta_partial_write"], "no check named 'delta_partial_write'"),
        (["--only", "zzz"], "--list shows all"),
        (["--only", ""], "no check named ''"),
        (["--only"], "--only"),
        (["--break", "gated_decay_after"], "did you mean gated_decay_after_write"),
        (["--break", "zzz"], "--faults shows all"),
        (["--break"], "--break"),
        (["--break", "scale_missing", "--break", "mask_top_left"], "given twice"),
        (["--break", "scale_missing", "--list"], "run nothing"),
        (["--faults", "--break", "zzz"], "run nothing"),
        (["--list", "--faults"], "not allowed with"),
        (["--list", "--seed", "1"], "not allowed with"),
        (["--seed", "1", "--seeds", "2"], "not allowed with"),
        (["--seed", "1", "--seed", "2"], "given twice"),
        (["--seed", "-1"], "wants a whole number from 0, got '-1'"),
        (["--seed", "1.5"], "wants a whole number"),
        (["--seed", "nan"], "wants a whole number"),
        (["--seed", ""], "wants a whole number"),
        (["--seed", "1" * 5000], "wants a whole number"),
        (["--seeds", "0"], "wants 1 or more"),
        (["--seeds", "-3"], "wants a whole number"),
        (["--seeds", "many"], "wants a whole number"),
        (["--see", "1"], "unrecognized arguments"),
        (["online_softmax"], "unrecognized arguments"),
    ],
)
def test_wrong_options(argv: list[str], words: str, capsys: pytest.CaptureFixture[str]):
    run = printed(capsys, *argv)
    assert (run.status, run.out) == (2, "")
    assert words in run.err and "Traceback" not in run.err


def test_help(capsys: pytest.CaptureFixture[str]):
    run = printed(capsys, "--help")
    assert (run.status, run.err) == (0, "")
    for option in "--seed --seeds --only --list --faults --break".split():
        assert option in run.out


# ---- Wherever it is started ---------------------------------------------------------


def test_from_another_folder_without_an_installed_labcore(tmp_path: Path):
    """-S leaves the editable install out; NumPy comes by its folder alone."""
    folder = str(Path(np.__file__).parents[1])
    run = start(PROGRAM, python=("-S", "-s"), cwd=tmp_path, env={"PYTHONPATH": folder})
    assert (run.returncode, run.stderr) == (0, b"")
    assert list(strict_json(run.stdout)["checks"]) == NAMES


def test_isolated(tmp_path: Path):
    run = start(PROGRAM, "--only", NAMES[0], python=("-I",), cwd=tmp_path)
    assert (run.returncode, run.stderr) == (0, b"")


def test_the_labcore_beside_it_comes_before_an_installed_one(tmp_path: Path):
    (tmp_path / "labcore").mkdir()
    (tmp_path / "labcore" / "__init__.py").write_text("raise SystemExit('wrong one')\n")
    run = start(PROGRAM, "--list", env={"PYTHONPATH": str(tmp_path)})
    assert (run.returncode, run.stderr) == (0, b"")


def test_alone_with_an_installed_labcore(tmp_path: Path):
    copy = shutil.copy(PROGRAM, tmp_path)
    run = start(copy, "--list", env={"PYTHONPATH": str(ROOT / "shared")})
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
    assert list(strict_json(run.stdout.decode(encoding))["checks"]) == NAMES


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


def test_both_outputs_in_one_pipe_that_closes():
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, str(PROGRAM), "--break", "scale_missing"]  # has a note
    run = subprocess.run(command, stdout=write, stderr=write)
    os.close(write)
    assert run.returncode == 0
