"""What the checker of exercises says to answers of every form."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from labcore import exercises
from labcore.exercises import EXERCISES

NAMES = {id for id, task in EXERCISES.items() if isinstance(task.answer(), set)}
ODD: list[Any] = [4, 0.5, True, None, "a name", "", [], {}, [[1.0]], np.float64(2.0)]
ODD += [np.array(3), np.eye(2), {1, 2}, {"a"}, ["a", ["b"]], object, 1j, b"x"]


@pytest.mark.parametrize("id", EXERCISES)
def test_the_right_answer_is_right(id: str):
    reply = exercises.check(id, EXERCISES[id].answer())
    assert reply.right
    assert EXERCISES[id].told(EXERCISES[id].because) in reply.words


@pytest.mark.parametrize("id", EXERCISES)
def test_every_number_of_a_hint_and_a_reason_is_filled_in(id: str):
    task = EXERCISES[id]
    for words in (task.hint, task.because):
        assert not {"{", "}"} & set(task.told(words))
    wrong = exercises.check(id, "no answer")
    assert task.told(task.hint) in wrong.words or id in NAMES


def test_a_number_in_a_reason_follows_the_givens():
    task = EXERCISES["practice/cube"]
    other = replace(task, givens={"t": 3.0, "h": 0.5})
    assert "The slope is 12," in task.told(task.because)
    assert "The slope is 27," in other.told(task.because)
    assert "Cube 3.5 and 2.5." in other.told(task.hint)
    cut = replace(EXERCISES["practice/cut"], givens={"x": 0.1, "h": 0.3})
    assert f"no slope is {cut.answer():.6g}." in cut.told(cut.because)


@pytest.mark.parametrize("id", EXERCISES)
def test_an_answer_of_another_form_is_answered_in_words(
    id: str, monkeypatch: pytest.MonkeyPatch
):
    task = EXERCISES[id]
    wanted = task.answer()
    monkeypatch.setitem(EXERCISES, id, replace(task, compute=lambda **givens: wanted))
    for answer in ODD:
        reply = exercises.check(id, answer)
        assert reply.right or reply.words.startswith("Not yet: you wrote ")
        assert "class=" in reply._repr_html_()


@pytest.mark.parametrize("id", sorted(NAMES))
def test_a_set_of_names_may_be_a_list_and_nothing_less(id: str):
    names = sorted(EXERCISES[id].answer())
    assert exercises.check(id, names).right
    assert not exercises.check(id, names[1:]).right
    for answer in (len(names), names[0], [[name] for name in names]):
        reply = exercises.check(id, answer)
        assert not reply.right
        assert "the answer is a set of names" in reply.words
    if len(names) > 1:
        assert exercises.check(id, names[::-1]).right
