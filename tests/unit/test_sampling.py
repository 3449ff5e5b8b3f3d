"""Sampling and search: what cases and checks leave open."""

from __future__ import annotations

import labcore
import numpy as np
import pytest

INF = float("inf")


def law(tokens: tuple[int, ...]) -> np.ndarray:
    return np.log([0.5, 0.3, 0.2])


def test_a_mass_smaller_than_a_rounding_keeps_the_largest():
    assert labcore.top_p([0.25, 0.75], 1e-300).tolist() == [0.0, 1.0]


def test_of_equal_probabilities_the_earlier_are_kept():
    assert labcore.top_p([0.25] * 4, 0.5).tolist() == [0.5, 0.5, 0.0, 0.0]


def test_what_is_cut_is_exactly_zero():
    p = labcore.top_p(np.full(1000, 1 / 1000), 0.0105)
    assert np.count_nonzero(p) == 11


def test_a_masked_logit_stays_masked_beside_a_forbidden_token():
    got = labcore.forbid_tokens([-INF, 1.0, 2.0], [2])
    assert got.tolist() == [-INF, 1.0, -INF]


def test_nothing_need_be_forbidden():
    assert labcore.forbid_tokens([1.0, 2.0], []).tolist() == [1.0, 2.0]


def test_a_beam_returns_at_most_as_many_as_it_is_wide():
    found = labcore.beam_search(law, length=2, beam=2)
    assert [h.tokens for h in found] == [(0, 0), (0, 1)]
    assert found[1].logprob == pytest.approx(np.log(0.15))


def test_of_equal_hypotheses_the_one_found_first_is_first():
    def level(tokens):
        return np.log([0.5, 0.5])

    found = labcore.beam_search(level, length=2, beam=3)
    assert [h.tokens for h in found] == [(0, 0), (0, 1), (1, 0)]


def test_a_search_that_is_cut_short_returns_what_it_has():
    assert labcore.greedy(law, length=2, end=2).tokens == (0, 0)
    assert labcore.beam_search(law, length=1, beam=1, end=2)[0].tokens == (0,)


def test_the_function_sees_every_beginning_as_a_tuple():
    seen = []

    def note(tokens):
        seen.append(tokens)
        return law(tokens)

    labcore.greedy(note, length=3)
    assert seen == [(), (0,), (0, 0)]
