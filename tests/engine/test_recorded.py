"""What can be said of the committed matrix, floors and records without a long run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import strict
from labcore import matrix
from labcore.examples import EXAMPLES
from labcore.identities import CHECKS, FAULTS, recorded
from labcore.ops import _op

ROOT = Path(__file__).resolve().parents[2]


def test_the_matrix_holds_every_check_and_every_fault():
    assert set(recorded()["checks"]) == set(CHECKS)
    assert set(recorded()["faults"]) == set(FAULTS)


@pytest.mark.parametrize("id", CHECKS)
def test_a_tolerance_follows_from_its_floor(id: str):
    row = recorded()["checks"][id]
    assert row["tolerance"] == matrix._tolerance(row["kind"], row["floor"])


@pytest.mark.parametrize("id", FAULTS)
def test_a_fault_opens_a_hundred_tolerances(id: str):
    red = recorded()["faults"][id]["red"]
    assert red
    for check, gap in red.items():
        row = recorded()["checks"][check]
        if gap is not None and row["kind"] in ("equal", "value"):
            assert gap >= 100 * row["tolerance"], check


def test_every_check_is_broken_by_a_fault():
    broken = {id for row in recorded()["faults"].values() for id in row["red"]}
    assert broken == set(CHECKS)


def test_the_floors_of_the_build_are_what_there_is():
    """Less than this is an error of the build; more asks for `make record`."""
    floors = json.loads((ROOT / strict.FLOORS).read_text(encoding="utf-8"))
    assert floors == strict.counted(ROOT)


@pytest.mark.parametrize("id", EXAMPLES)
def test_an_example_is_computed_by_operations(id: str):
    """A result that was typed in would run none."""
    with _op.reached() as names:
        EXAMPLES[id].output()
    assert names
