"""Optimizers, adapters and memory: what cases and checks leave open."""

from __future__ import annotations

import labcore
import numpy as np
import pytest


def test_one_weight_may_be_a_number():
    step = labcore.adamw_step(1.0, 0.2, 0.0, 0.0, 1, lr=0.1)
    assert type(step.w) is float
    assert step.w == pytest.approx(0.999 - 0.1 / (1 + 5e-8))


def test_without_eps_a_gradient_that_was_once_not_zero_is_enough():
    step = labcore.adamw_step([1.0], [0.0], [0.5], [0.25], 2, eps=0.0)
    assert np.isfinite(step.w).all()


def test_rate_zero_changes_no_weight_and_carries_the_means():
    step = labcore.adamw_step([1.0], [2.0], [0.0], [0.0], 1, lr=0.0)
    assert step.w.tolist() == [1.0]
    assert step.m[0] == pytest.approx(0.2) and step.v[0] == pytest.approx(0.004)


def test_losses_accumulate_as_gradients_do():
    assert labcore.accumulate_gradients([6.0, 1.0], [3, 1]) == 1.75


def test_alpha_zero_adds_nothing():
    assert labcore.lora_update([[1.0]], [[2.0]], alpha=0.0).tolist() == [[0.0]]


def test_the_rank_of_an_update_is_at_most_that_of_its_factors():
    rng = np.random.default_rng(0)
    update = labcore.lora_update(rng.normal(size=(6, 2)), rng.normal(size=(2, 5)))
    assert np.linalg.matrix_rank(update) == 2


def test_devices_that_do_not_divide_the_parameters_hold_a_fraction():
    got = labcore.zero_bytes_per_device(10, devices=3, stage=3)
    assert got == pytest.approx(160 / 3)
