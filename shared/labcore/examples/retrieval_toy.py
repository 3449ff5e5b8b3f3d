"""Finding a noisy copy: Laplacian attention beside dot-product attention.

Every query has one key that is a noisy copy of it, among many that are not; the values
are one-hot, so that the output says which key was read. What can move the share of
queries that find their copy, and what cannot, is told apart by the variants.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..ops._op import Array
from ..ops.attention import attention, attention_weights
from ..ops.laplacian import laplacian_attention, laplacian_distances, median_sigma
from ..ops.softmax import softmax

NOISES = (0.03, 0.10, 0.20, 0.35)
N, CHANNELS = 128, 8


class Toy(NamedTuple):
    """Queries and their noisy copies (1, n, c), in the same order."""

    q: Array
    k: Array


def draw(
    rng: np.random.Generator, noise: float, n: int = N, channels: int = CHANNELS
) -> Toy:
    """Queries uniform in [0.1, 1]; keys with normal noise added, clipped to [0, 1]."""
    q = rng.uniform(0.1, 1.0, size=(1, n, channels))
    k = np.clip(q + rng.normal(0, noise, size=q.shape), 0, 1)
    return Toy(q, k)


def top1(weights: Array) -> float:
    """The share of queries whose largest weight is at their own copy."""
    return float(np.mean(np.argmax(weights[0], axis=-1) == np.arange(weights.shape[1])))


def comparison(rng: np.random.Generator, noise: float) -> dict[str, float]:
    """One row of the table: both kinds of attention on the same draw."""
    q, k = draw(rng, noise)
    values = target = np.eye(N)[None]
    sigma = float(median_sigma(q, k))
    laplacian = laplacian_attention(q, k, values, sigma)
    dot, dot_weights = attention(q, k, values), attention_weights(q, k)
    return {
        "noise": noise,
        "sigma": sigma,
        "lap_mse": float(np.mean((laplacian.output - target) ** 2)),
        "dot_mse": float(np.mean((dot - target) ** 2)),
        "lap_top1": top1(laplacian.weights),
        "dot_top1": top1(dot_weights),
    }


def _unit(x: Array) -> Array:
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def _centred(x: Array, around: Array) -> Array:
    return x - around.mean(axis=-2, keepdims=True)


def variants(toy: Toy) -> dict[str, float]:
    """Top-1 of one draw by metric, with and without normalising and centring."""
    q, k = toy
    qc, kc = _centred(q, q), _centred(k, q)
    squares = ((q[:, :, None, :] - k[:, None, :, :]) ** 2).sum(axis=-1)
    return {
        "L1 distance": top1(softmax(-laplacian_distances(q, k))),
        "L2 distance": top1(softmax(-squares)),
        "dot product": top1(attention_weights(q, k)),
        "dot product, unit length": top1(attention_weights(_unit(q), _unit(k))),
        "dot product, centred": top1(attention_weights(qc, kc)),
        "dot product, centred, unit length": top1(
            attention_weights(_unit(qc), _unit(kc))
        ),
    }


def over_seeds(seeds: range, noise: float) -> dict[str, tuple[float, float, float]]:
    """Mean of top-1 over seeds, and the interval that holds 95 % of the seeds."""
    rows = [variants(draw(np.random.default_rng(seed), noise)) for seed in seeds]
    found: dict[str, Any] = {}
    for name in rows[0]:
        values = np.array([row[name] for row in rows])
        low, high = np.quantile(values, [0.025, 0.975])
        found[name] = (float(values.mean()), float(low), float(high))
    return found
