"""Every entry of the conventions page names a function, and a check that runs it."""

from __future__ import annotations

import re
from pathlib import Path

import labcore
import pytest
from labcore.identities import CHECKS, recorded

PAGE = Path(__file__).resolve().parents[2] / "book" / "reference" / "conventions.md"
CHOSEN = PAGE.read_text(encoding="utf-8").partition("## Chosen here")[2]
ENTRIES = re.findall(r"^`(\w+)`\n: (.*)$", CHOSEN, flags=re.MULTILINE)
# Where practice is unsettled, and the course must say what it does.
ASKED = {
    "temperature_softmax",
    "rrf",
    "pass_at_k",
    "mcnemar_exact",
    "attention_weights",
    "bpe_encode",
    "bm25",
}


@pytest.mark.parametrize(("function", "told"), ENTRIES, ids=[f for f, _ in ENTRIES])
def test_a_choice_names_the_check_that_holds_it(function: str, told: str):
    assert function in labcore.__all__
    checks = re.findall(r"`(\w+)`", told.rpartition(". ")[2])
    assert checks
    for check in checks:
        assert check in CHECKS
        assert check in recorded()["reach"][function], f"{check} does not run it"


def test_the_choices_that_were_asked_for_are_there():
    assert {function for function, _ in ENTRIES} >= ASKED
