"""Options of one number are not stretched over arrays, and shapes are not guessed."""

import labcore
import numpy as np
import pytest


def test_a_temperature_and_a_scale_are_one_number():
    with pytest.raises(ValueError, match="t must be one number"):
        labcore.temperature_softmax([0.0, 1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="scale must be one number"):
        labcore.attention([[1.0]], [[1.0]], [[1.0]], scale=[1.0, 5.0])


def test_a_retention_shared_by_a_batch_is_not_guessed():
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(2, 2, 3)) for _ in range(3))
    beta, retention = np.full((2, 2), 0.5), np.full((2, 3), 0.5)
    for form in (
        labcore.delta_attention,
        lambda *a, **o: labcore.delta_attention_chunked(*a, chunk=2, **o),
    ):
        with pytest.raises(ValueError, match="retention"):
            form(q, k, v, beta, retention=retention)


def test_a_summary_has_a_finite_mass():
    with pytest.raises(ValueError, match="mass"):
        labcore.finish(labcore.SoftmaxSummary(0.0, np.inf, np.array([1.0])))


def test_a_query_has_a_channel():
    with pytest.raises(ValueError, match="q has no channels"):
        labcore.attention(np.zeros((2, 0)), np.zeros((3, 0)), np.zeros((3, 1)))
