"""The recorded run is a run of what stands here."""

from __future__ import annotations

import hashlib
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from tests.labs.programs import ROOT, start, strict_json

RECORDED = Path(str(files("labcore"))) / "recorded"
RUN = json.loads((RECORDED / "run.json").read_text(encoding="utf-8"))
SUITES = {"engine": 34, "additional_checks": 60, "chain_and_operators": 14}


def alike(one: Any, other: Any) -> bool:
    """The same document up to rounding and versions."""
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(
            key in ("python", "numpy") or alike(one[key], other[key]) for key in one
        )
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= 1e-7 * max(abs(one), abs(other), 0.1)
    return type(one) is type(other) and one == other


@pytest.mark.parametrize("program", RUN["documents"])
def test_a_document_is_what_the_program_prints_and_has_its_hash(program: str):
    text = (RECORDED / f"{program}.json").read_bytes()
    about = RUN["documents"][program]
    assert hashlib.sha256(text).hexdigest() == about["sha256"]
    assert len(text) == about["bytes"]
    now = start(ROOT / "labs" / f"{program}.py")
    assert alike(strict_json(text), strict_json(now.stdout)), "run `make record`"


def test_the_documents_are_three():
    assert len(RUN["documents"]) == 3


def test_the_names_and_verdicts_are_those_of_the_programs():
    assert len(RUN["identities"]) == 17
    assert set(RUN["identities"].values()) == {"passed"}
    for suite, count in SUITES.items():
        rows = [row for row in RUN["named_checks"] if row["suite"] == suite]
        assert len({row["name"] for row in rows}) == count
    assert {row["verdict"] for row in RUN["named_checks"]} == {"passed"}
    now = start(ROOT / "labs" / "worked_examples.py", "--test").stdout.decode()
    lines = [line.split() for line in now.splitlines()[:-1]]
    recorded = [[r["verdict"], r["suite"], r["name"]] for r in RUN["named_checks"]]
    assert recorded == lines


def test_it_was_made_with_the_pins_that_stand_here():
    pins = (ROOT / "requirements.txt").read_bytes()
    assert RUN["environment"]["requirements"] == hashlib.sha256(pins).hexdigest(), (
        "the pins changed: run `make record`"
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["checks"].pop("rope_joint_shift"),
        lambda d: d["checks"].update(online_worked_output=3.87067),
        lambda d: d.update(seed=7),
    ],
)
def test_another_document_would_be_noticed(change: Any):
    document = strict_json((RECORDED / "transformer_math_lab.json").read_bytes())
    other = json.loads(json.dumps(document))
    change(other)
    assert not alike(document, other)
