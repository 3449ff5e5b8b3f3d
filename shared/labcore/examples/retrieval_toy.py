"""Finding a noisy copy: Laplacian attention beside dot-product attention.

Every query has one key that is a noisy copy of it, among many that are not; the values
are one-hot, so that the output says which key was read. What can move the share of
queries that find their copy, and what cannot, is told apart by the variants.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from ..ops._op import Array
from ..ops.attention import attention, attention_weights
from ..ops.laplacian import laplacian_attention, laplacian_distances, median_sigma
from ..ops.softmax import softmax

NOISES = (0.03, 0.10, 0.20, 0.35)
N, CHANNELS = 128, 8
SHARE = 0.95  # of the seeds, for an interval


class Toy(NamedTuple):
    """Queries and their noisy copies (1, n, c), in the same order."""

    q: Array
    k: Array


def draw(
    rng: np.random.Generator,
    noise: float,
    n: int = N,
    channels: int = CHANNELS,
    *,
    shape: Literal["normal", "laplace"] = "normal",
) -> Toy:
    """Queries uniform in [0.1, 1]; keys with noise added, clipped to [0, 1].

    noise is the standard deviation, whatever the shape of the distribution.
    """
    q = rng.uniform(0.1, 1.0, size=(1, n, channels))
    if shape == "normal":
        apart = rng.normal(0, noise, size=q.shape)
    else:
        apart = rng.laplace(0, noise / np.sqrt(2), size=q.shape)
    return Toy(q, np.clip(q + apart, 0, 1))


def top1(weights: Array) -> float:
    """The share of queries whose largest weight is at their own copy."""
    return float(np.mean(np.argmax(weights[0], axis=-1) == np.arange(weights.shape[1])))


def mse(output: Array) -> float:
    """The mean squared error of the outputs, when the values are one-hot."""
    return float(np.mean((output - np.eye(output.shape[-1])) ** 2))


def comparison(rng: np.random.Generator, noise: float) -> dict[str, float]:
    """One row of the table: both kinds of attention on the same draw."""
    q, k = draw(rng, noise)
    values = np.eye(N)[None]
    sigma = float(median_sigma(q, k))
    laplacian = laplacian_attention(q, k, values, sigma)
    return {
        "noise": noise,
        "sigma": sigma,
        "lap_mse": mse(laplacian.output),
        "dot_mse": mse(attention(q, k, values)),
        "lap_top1": top1(laplacian.weights),
        "dot_top1": top1(attention_weights(q, k)),
    }


def table(seed: int = 7) -> list[dict[str, float]]:
    """The four rows, drawn one after the other as the program of this part does.

    The program draws a fifth example before them, for the section on invariants.
    """
    rng = np.random.default_rng(seed)
    draw(rng, 0.10)
    return [comparison(rng, noise) for noise in NOISES]


# ---- What moves top-1, and what does not ------------------------------------------


def variants(toy: Toy) -> dict[str, Array]:
    """The weights by metric, with and without normalising and centring."""
    q, k = toy
    qc, kc = _centred(q, q), _centred(k, q)
    squares = ((q[:, :, None, :] - k[:, None, :, :]) ** 2).sum(axis=-1)
    return {
        "L1 distance": softmax(-laplacian_distances(q, k)),
        "L2 distance": softmax(-np.sqrt(squares)),
        "dot product": attention_weights(q, k),
        "dot, unit length": attention_weights(_unit(q), _unit(k)),
        "dot, centred": attention_weights(qc, kc),
        "dot, centred, unit length": attention_weights(_unit(qc), _unit(kc)),
    }


def dials(toy: Toy, factors: Sequence[float]) -> list[dict[str, float]]:
    """Top-1 and error of both kinds, sigma and scale multiplied by each factor."""
    q, k = toy
    values = np.eye(q.shape[1])[None]
    sigma, scale = float(median_sigma(q, k)), 1 / np.sqrt(q.shape[-1])
    rows = []
    for factor in factors:
        read = laplacian_attention(q, k, values, factor * sigma)
        dot = attention_weights(q, k, scale=scale / factor)
        rows.append(
            {
                "factor": factor,
                "lap_top1": top1(read.weights),
                "lap_mse": mse(read.output),
                "dot_top1": top1(dot),
                "dot_mse": mse(dot),  # the values are one-hot: output and weights agree
            }
        )
    return rows


def over_seeds(seeds: Iterable[int], noise: float, **options: Any) -> dict[str, Array]:
    """Top-1 of every variant, one entry a seed."""
    rows = []
    for seed in seeds:
        found = variants(draw(np.random.default_rng(seed), noise, **options))
        rows.append({name: top1(weights) for name, weights in found.items()})
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def interval(x: Array) -> tuple[float, float, float]:
    """The mean over the seeds, and the interval that holds that SHARE of them."""
    low, high = np.quantile(x, [(1 - SHARE) / 2, (1 + SHARE) / 2])
    return float(x.mean()), float(low), float(high)


def readers(weights: Array) -> Array:
    """How many queries put their largest weight on each key."""
    return np.bincount(np.argmax(weights[0], axis=-1), minlength=weights.shape[-1])


def _unit(x: Array) -> Array:
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def _centred(x: Array, around: Array) -> Array:
    return x - around.mean(axis=-2, keepdims=True)
