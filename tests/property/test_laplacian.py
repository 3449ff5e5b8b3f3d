"""The laws of Laplacian attention, over shapes, seeds and magnitudes."""

from __future__ import annotations

import labcore
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

many = settings(max_examples=40)
rngs = st.integers(0, 2**32 - 1).map(np.random.default_rng)
sizes = st.integers(1, 6)
widths = st.floats(0.05, 20.0)


def qkv(rng, n, m, c, d_v=2):
    return rng.normal(size=(n, c)), rng.normal(size=(m, c)), rng.normal(size=(m, d_v))


def close(got, want, rtol=1e-10):
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=rtol, atol=rtol)


@given(rngs, sizes, sizes, sizes, widths)
@many
def test_weights_are_a_distribution_and_reads_a_mean(rng, n, m, c, sigma):
    q, k, v = qkv(rng, n, m, c)
    read = labcore.laplacian_attention(q, k, v, sigma)
    assert np.all(read.weights >= 0)
    np.testing.assert_allclose(read.weights.sum(axis=-1), 1, rtol=1e-14)
    assert np.all(read.output <= v.max(axis=0) + 1e-14)
    assert np.all(read.output >= v.min(axis=0) - 1e-14)


@given(rngs, sizes, sizes, sizes, widths, st.floats(-100, 100))
@many
def test_moving_queries_and_keys_together_changes_nothing(rng, n, m, c, sigma, shift):
    q, k, v = qkv(rng, n, m, c)
    by = shift * rng.normal(size=c)
    moved = labcore.laplacian_attention(q + by, k + by, v, sigma)
    close(moved, labcore.laplacian_attention(q, k, v, sigma))


@given(rngs, sizes, sizes, sizes, widths, st.floats(1e-3, 1e3))
@many
def test_scaling_everything_and_sigma_changes_no_weight(rng, n, m, c, sigma, by):
    q, k, v = qkv(rng, n, m, c)
    scaled = labcore.laplacian_attention(by * q, by * k, v, by * sigma)
    alone = labcore.laplacian_attention(q, k, v, sigma)
    close(scaled[:2], alone[:2])
    np.testing.assert_allclose(scaled.distances, by * alone.distances, rtol=1e-12)


@given(rngs, sizes, sizes, sizes, widths)
@many
def test_permuting_keys_channels_and_signs(rng, n, m, c, sigma):
    q, k, v = qkv(rng, n, m, c)
    alone = labcore.laplacian_attention(q, k, v, sigma)
    keys, channels = rng.permutation(m), rng.permutation(c)
    moved = labcore.laplacian_attention(q, k[keys], v[keys], sigma)
    close(moved, (alone.output, alone.weights[:, keys], alone.distances[:, keys]))
    sign = rng.choice([-1.0, 1.0], size=c)
    mirrored = labcore.laplacian_attention(
        (sign * q)[:, channels], (sign * k)[:, channels], v, sigma
    )
    close(mirrored, alone)


@given(rngs, sizes, sizes, sizes)
@many
def test_the_distance_is_a_metric(rng, n, m, c):
    q, k, _ = qkv(rng, n, m, c)
    d = labcore.laplacian_distances
    assert np.all(d(q, k) >= 0)
    np.testing.assert_array_equal(d(q, k), d(k, q).T)
    np.testing.assert_array_equal(np.diag(d(q, q)), 0)
    between = d(q, q)[:, :, None] + d(q, k)[None, :, :]
    assert np.all(d(q, k)[:, None, :] <= between + 1e-12)


@given(rngs, sizes, sizes, sizes, widths)
@many
def test_a_key_more_leaves_the_ratios_of_the_others(rng, n, m, c, sigma):
    q, k, v = qkv(rng, n, m + 1, c)
    more = labcore.laplacian_attention(q, k, v, sigma).weights
    fewer = labcore.laplacian_attention(q, k[:-1], v[:-1], sigma).weights
    np.testing.assert_allclose(
        more[:, :-1] * fewer[:, :1], fewer * more[:, :1], rtol=1e-10, atol=1e-300
    )


@given(rngs, st.integers(2, 6), sizes, widths, widths)
@many
def test_a_larger_sigma_is_less_decided_and_keeps_the_order(rng, m, c, one, two):
    q, k, v = qkv(rng, 1, m, c)
    low, high = sorted((one, two))
    w = [labcore.laplacian_attention(q, k, v, s).weights[0] for s in (low, high)]
    assert labcore.entropy(w[0]) <= labcore.entropy(w[1]) + 1e-14
    d = labcore.laplacian_distances(q, k)[0]
    for weights in w:
        assert np.all(np.diff(weights[np.argsort(d)]) <= 0)


@given(rngs, sizes, sizes, sizes)
@many
def test_half_of_the_affinities_are_at_least_one_half_at_the_median(rng, n, m, c):
    q, k, _ = qkv(rng, n, m, c)
    sigma = labcore.median_sigma(q, k)
    affinity = np.exp(-labcore.laplacian_distances(q, k) / sigma)
    assert np.mean(affinity >= 0.5 - 1e-12) >= 0.5
    np.testing.assert_allclose(np.median(-np.log(affinity)), np.log(2), rtol=1e-9)


@given(rngs, st.integers(1, 3), st.integers(2, 4), st.integers(1, 3), widths)
@many
def test_gradients_agree_with_finite_differences(rng, n, m, c, sigma):
    """On a grid of tenths and half tenths no query meets a key."""
    q = rng.integers(-20, 20, size=(n, c)) / 10
    k = rng.integers(-20, 20, size=(m, c)) / 10 + 0.05
    v, grad = rng.normal(size=(m, 2)), rng.normal(size=(n, 2))
    given = {"q": q, "k": k, "v": v, "sigma": sigma}

    def loss(name):
        def of(x):
            changed = {**given, name: float(x[0]) if name == "sigma" else x}
            return (labcore.laplacian_attention(**changed).output * grad).sum()

        return of

    found = labcore.laplacian_gradients(q, k, v, sigma, grad)._asdict()
    for name, x in given.items():
        h = 1e-5 * (sigma if name == "sigma" else min(1.0, sigma))
        want = labcore.finite_difference(loss(name), np.atleast_1d(x), h=h)
        got = np.reshape(found[name], np.shape(want))
        scale = 1 + np.abs(want).max()
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5 * scale)
