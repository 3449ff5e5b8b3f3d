"""Laplacian attention: memory, limits, axes in front, gradients, counts, the toy."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import labcore
import numpy as np
import pytest
from labcore.examples import retrieval_toy as toy
from labcore.identities import laplacian as identities


def drawn(*sizes: int, batch: tuple[int, ...] = ()) -> list[np.ndarray]:
    """q, k, v and a gradient at the output: n queries, m keys, c channels, d_v."""
    n, m, c, d_v = sizes
    rng = np.random.default_rng(3)
    shapes = ((n, c), (m, c), (m, d_v), (n, d_v))
    return [rng.normal(size=(*batch, *shape)) for shape in shapes]


# ---- Memory -------------------------------------------------------------------------


def peak(work: Callable[[], Any]) -> int:
    """The most memory that was in use during the call, in bytes."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def call(name: str, c: int) -> Callable[[], Any]:
    q, k, v, grad = drawn(300, 300, c, 4)
    given = {
        "laplacian_distances": (q, k),
        "laplacian_attention": (q, k, v, 1.5),
        "laplacian_gradients": (q, k, v, 1.5, grad),
        "median_sigma": (q, k),
    }[name]
    return lambda: getattr(labcore, name)(*given)


@pytest.mark.parametrize(
    "name",
    [
        "laplacian_distances",
        "laplacian_attention",
        "laplacian_gradients",
        "median_sigma",
    ],
)
def test_memory_does_not_grow_with_the_channels(name):
    few, many = (peak(call(name, c)) for c in (8, 64))
    one_array = 300 * 300 * 8
    rows = 2 * 300 * 64 * 8  # the inputs' own size: what a copy of them would take
    assert many <= few + one_array / 2 + 2 * rows
    assert many < 8 * one_array < 64 * one_array  # all differences would take 64


def test_the_full_broadcast_would_be_noticed():
    q, k, _, _ = drawn(300, 300, 64, 1)
    full = peak(lambda: np.abs(q[:, None, :] - k[None, :, :]).sum(axis=-1))
    assert full > 60 * 300 * 300 * 8


# ---- Limits -------------------------------------------------------------------------


def weights(distances: list[float], sigma: float) -> np.ndarray:
    k = np.array(distances)[:, None]
    return labcore.laplacian_attention(
        [[0.0]], k, np.zeros((len(k), 1)), sigma
    ).weights[0]


@pytest.mark.parametrize("sigma", [5e-324, 1e-300, 1e-9, 1e-3])
def test_a_tiny_sigma_reads_the_nearest_keys_alone(sigma):
    assert weights([1.0, 3.0, -1.0, 2.0], sigma).tolist() == [0.5, 0.0, 0.5, 0.0]


@pytest.mark.parametrize("sigma", [1e12, 1e300])
def test_a_huge_sigma_reads_all_keys_alike(sigma):
    np.testing.assert_allclose(weights([1.0, 3.0, 9.0, 2.0], sigma), 0.25, rtol=1e-11)


def test_far_keys_underflow_to_zero_without_a_warning():
    w = weights([0.0, 1e4], 1.0)
    assert w.tolist() == [1.0, 0.0]
    assert labcore.entropy(w) == 0.0


# ---- Axes in front ------------------------------------------------------------------


@pytest.mark.parametrize("batch", [(), (2,), (2, 3)])
def test_each_batch_entry_is_a_run_of_its_own(batch):
    q, k, v, grad = drawn(4, 5, 3, 2, batch=batch)
    read = labcore.laplacian_attention(q, k, v, 0.8)
    found = labcore.laplacian_gradients(q, k, v, 0.8, grad)
    by_sigma = 0.0
    for i in np.ndindex(batch):
        alone = labcore.laplacian_attention(q[i], k[i], v[i], 0.8)
        for got, want in zip(read, alone, strict=True):
            np.testing.assert_allclose(got[i], want, rtol=1e-13)
        slopes = labcore.laplacian_gradients(q[i], k[i], v[i], 0.8, grad[i])
        by_sigma += slopes.sigma
        for got, want in zip(found[:3], slopes[:3], strict=True):
            np.testing.assert_allclose(got[i], want, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(found.sigma, by_sigma, rtol=1e-12)


def test_one_set_of_keys_serves_a_batch_of_queries():
    q, k, v, _ = drawn(4, 5, 3, 2)
    many = labcore.laplacian_attention(np.stack([q, q + 1]), k, v, 1.0)
    for i, one in enumerate((q, q + 1)):
        alone = labcore.laplacian_attention(one, k, v, 1.0)
        np.testing.assert_allclose(many.output[i], alone.output, rtol=1e-13)


# ---- Gradients ----------------------------------------------------------------------


def line(x: float, dtype: Any = float) -> Any:
    """One channel, keys at 0 and 1, values 1 and 0, sigma 1; a query at x."""
    one = np.ones((1, 1), dtype)
    k, v = np.array([[0.0], [1.0]], dtype), np.array([[1.0], [0.0]], dtype)
    return labcore.laplacian_gradients(np.array([[x]], dtype), k, v, 1.0, one)


def test_at_a_kink_the_gradient_is_the_mean_of_the_slopes_beside_it():
    left, at, right = (line(x).q[0, 0] for x in (-1e-9, 0.0, 1e-9))
    w = 1 / (1 + np.exp(-1))
    np.testing.assert_allclose(
        [left, at, right], [0, -w * (1 - w), -2 * w * (1 - w)], rtol=1e-8, atol=1e-12
    )


def test_slopes_of_one_side_see_the_kink_and_a_central_difference_does_not():
    def output(x: float) -> float:
        read = labcore.laplacian_attention([[x]], [[0.0], [1.0]], [[1.0], [0.0]], 1.0)
        return float(read.output[0, 0])

    h = 1e-6
    left, right = (output(0) - output(-h)) / h, (output(h) - output(0)) / h
    assert abs(left - right) > 0.39
    central = labcore.finite_difference(lambda x: output(x[0]), [0.0])[0]
    assert abs(central - line(0.0).q[0, 0]) < 1e-5


def test_a_query_that_equals_a_key_is_not_moved_by_it():
    q = np.array([[0.3, -0.2]])
    k, v = np.concatenate([q, q + 1.0]), np.array([[1.0], [0.0]])
    found = labcore.laplacian_gradients(q, k, v, 1.0, np.ones((1, 1)))
    assert found.k[0].tolist() == [0.0, 0.0]
    assert np.all(found.k[1] != 0)


def test_gradients_in_the_type_that_was_given():
    assert line(0.5, np.float32).q.dtype == np.float32


# ---- Counts -------------------------------------------------------------------------


@pytest.mark.parametrize("n, m, c", [(1, 1, 1), (2, 3, 4), (5, 1, 2)])
def test_the_counts_are_those_of_the_functions(n, m, c):
    rng = np.random.default_rng(0)
    q, k = rng.normal(size=(n, c)), rng.normal(size=(m, c))
    counts = labcore.operation_counts(n, m, c)
    product, distance = (
        identities.count_dot_products(q, k),
        identities.count_distances(q, k),
    )
    assert product.get("multiplications", 0) == counts.dot_multiplications == n * m * c
    assert product.get("additions", 0) == counts.dot_additions == n * m * (c - 1)
    assert distance.get("multiplications", 0) == counts.laplacian_multiplications == 0
    assert distance.get("subtractions", 0) == counts.laplacian_subtractions
    assert distance.get("absolute values", 0) == counts.laplacian_absolute_values
    assert distance.get("additions", 0) == counts.laplacian_additions


def test_a_batch_counts_once_for_each_entry():
    one, many = (labcore.operation_counts(2, 3, 4, batch=b) for b in (1, 5))
    assert [5 * x for x in one] == list(many)


# ---- The toy ------------------------------------------------------------------------


def test_neither_sigma_nor_scale_moves_top_1():
    draw = toy.draw(np.random.default_rng(0), 0.1, n=40)
    rows = toy.dials(draw, [0.01, 0.1, 1.0, 10.0])
    assert len({row["lap_top1"] for row in rows}) == 1
    assert len({row["dot_top1"] for row in rows}) == 1
    assert len({row["lap_mse"] for row in rows}) == len(rows)


def test_unit_length_closes_the_gap_at_the_lowest_noise():
    found = toy.over_seeds(range(20), toy.NOISES[0])
    assert toy.interval(found["dot product"])[2] < 0.15
    assert toy.interval(found["dot, unit length"])[1] == 1.0
    assert toy.interval(found["L1 distance"])[1] == 1.0


def test_the_noise_chooses_the_metric():
    for shape, better, worse in (
        ("normal", "L2 distance", "L1 distance"),
        ("laplace", "L1 distance", "L2 distance"),
    ):
        found = toy.over_seeds(range(20), 0.2, shape=shape)
        assert np.sum(found[better] > found[worse]) >= 14, shape


def test_both_kinds_of_noise_have_the_deviation_they_are_asked_for():
    for shape in ("normal", "laplace"):
        rng = np.random.default_rng(1)
        q, k = toy.draw(rng, 0.02, n=400, shape=shape)
        inside = (k > 0) & (k < 1)
        assert abs((k - q)[inside].std() - 0.02) < 0.002, shape


def test_an_exact_copy_always_wins_and_a_noisy_one_mostly():
    for seed in range(20):
        q, k = toy.draw(np.random.default_rng(seed), 0.1)
        v = np.zeros((1, toy.N, 1))
        assert toy.top1(labcore.laplacian_attention(q, q, v, 0.35).weights) == 1.0
        assert 0.8 < toy.top1(labcore.laplacian_attention(q, k, v, 0.35).weights) < 1.0


def test_every_query_reads_one_key():
    draw = toy.draw(np.random.default_rng(0), 0.1, n=30)
    for name, w in toy.variants(draw).items():
        assert toy.readers(w).sum() == 30, name
