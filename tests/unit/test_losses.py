"""Losses and preferences: what cases and checks leave open."""

from __future__ import annotations

import math

import labcore
import numpy as np
import pytest

INF = float("inf")


def test_a_target_behind_a_masked_logit_costs_infinity():
    assert labcore.cross_entropy([[-INF, 0.0]], [0]) == INF
    assert labcore.token_losses([[-INF, 0.0]], [1]).tolist() == [0.0]


def test_ignored_rows_may_hold_any_finite_logits():
    logits = [[0.0, 0.0], [1e300, -1e300]]
    assert labcore.cross_entropy(logits, [0, -100]) == pytest.approx(math.log(2))


def test_one_position_needs_no_axis():
    assert labcore.cross_entropy([0.0, 0.0], 1) == pytest.approx(math.log(2))


def test_a_mask_may_be_shared_by_several_responses():
    logprobs = [[-1.0, -2.0], [-3.0, -4.0]]
    got = labcore.sequence_logprob(logprobs, mask=[0, 1])
    assert got.tolist() == [-2.0, -4.0]


def test_a_token_that_cannot_be_said_makes_the_response_impossible():
    assert labcore.sequence_logprob([-1.0, -INF]) == -INF
    assert labcore.sequence_logprob([-1.0, -INF], mask=[1, 0]) == -1.0


def test_what_is_certain_costs_nothing_and_what_is_impossible_infinity():
    got = labcore.surprisal([1.0, 0.0])
    assert got.tolist() == [0.0, INF]
    assert not np.signbit(got[0])


def test_the_divergence_of_very_small_probabilities_is_finite():
    tiny = 1e-310
    got = float(labcore.kl([0.5, 0.5], [tiny, 1.0]))
    assert got == pytest.approx(math.log(0.5) - 0.5 * math.log(tiny))


def test_dpo_far_on_the_good_side_keeps_its_digits():
    got = labcore.dpo_loss([-1.0], [-101.0], [-1.0], [-1.0], beta=1.0)
    assert got[0] == pytest.approx(math.exp(-100), rel=1e-12)


def test_at_the_kink_the_clipped_objective_has_the_slope_of_the_ratio():
    assert labcore.ppo_clip_gradient([1.2, 0.8], [2.0, -3.0]).tolist() == [2.0, -3.0]


def test_further_documents_are_negatives_for_every_query():
    sim = [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    assert labcore.contrastive_loss(sim, tau=0.1) == pytest.approx(math.log(3))
