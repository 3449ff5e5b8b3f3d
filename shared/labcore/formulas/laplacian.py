"""The formulas of Laplacian attention. Queries and keys are rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ops.attention import attention_weights
from ..ops.gradients import finite_difference
from ..ops.laplacian import (
    laplacian_attention,
    laplacian_distances,
    laplacian_gradients,
    median_sigma,
    operation_counts,
)
from ..ops.softmax import entropy, temperature_softmax
from ._formula import Inputs, formula

RATIO = "ratio-and-transition"
DIAL = "sigma-and-entropy"
COST = "retrieval-and-cost"


def a_read(rng: np.random.Generator) -> Inputs:
    """Queries, keys, values and what the attention made of them; sigma is not 1."""
    q, k, v = rng.normal(size=(3, 2)), rng.normal(size=(5, 2)), rng.normal(size=(5, 4))
    sigma = float(rng.uniform(1.5, 3.0))
    _, w, d = laplacian_attention(q, k, v, sigma)
    given: Inputs = {"q": q, "k": k, "v": v, "sigma": sigma, "w": w, "d": d}
    given["j"], given["l"] = rng.permutation(5)[:2]
    return {**given, "i": rng.integers(3), "c": rng.integers(2)}


# ---- Ratio and transition -----------------------------------------------------------

formula(
    "laplacian_distance",
    "sum(abs(q[i, c] - k[j, c]) for c in range(len(q[i])))",
    defines="d[i, j]",
    chapter=RATIO,
    draw=a_read,
    function=lambda q, k, i, j: laplacian_distances(q, k)[i, j],
    operations=("laplacian_distances",),
    checks=("laplacian_full_broadcast", "laplacian_translation"),
)
formula(
    "laplacian_weight",
    "exp(-d[i, j] / sigma) / sum(exp(-d[i, l] / sigma) for l in range(len(k)))",
    defines="w[i, j]",
    chapter=RATIO,
    draw=a_read,
    function=lambda q, k, v, sigma, i, j: laplacian_attention(q, k, v, sigma).weights[
        i, j
    ],
    operations=("laplacian_attention",),
    checks=(
        "laplacian_worked",
        "laplacian_weights_are_a_distribution",
        "laplacian_refuses_sigma_zero",
    ),
)
formula(
    "laplacian_output",
    "w @ v",
    defines="O",
    symbols={"w": "W", "v": r"\value{V}"},  # all of them: matrices
    chapter=RATIO,
    draw=a_read,
    function=lambda q, k, v, sigma: laplacian_attention(q, k, v, sigma).output,
    operations=("laplacian_attention",),
    checks=("laplacian_full_broadcast",),
)
formula(
    "laplacian_weight_ratio",
    "w[i, j] / w[i, l]",
    "exp(-(d[i, j] - d[i, l]) / sigma)",
    chapter=RATIO,
    draw=a_read,
    operations=("laplacian_attention",),
    checks=("laplacian_ratio", "laplacian_ratio_ignores_others"),
)


def two_keys(rng: np.random.Generator) -> Inputs:
    """A query between two keys on a line, and its distance from each."""
    d_1, d_2 = rng.uniform(0.2, 2.0, size=2)
    return {"d_1": d_1, "d_2": d_2, "sigma": float(rng.uniform(0.4, 0.8))}


formula(
    "laplacian_two_keys",
    "1 / (1 + exp(-(d_2 - d_1) / sigma))",
    defines="w_1",
    chapter=RATIO,
    draw=two_keys,
    function=lambda d_1, d_2, sigma: laplacian_attention(
        [[0.0]], [[-d_1], [d_2]], np.zeros((2, 1)), sigma
    ).weights[0, 0],
    operations=("laplacian_attention",),
    checks=("laplacian_two_keys", "laplacian_equal_distance"),
)

SLOPES = {
    "at_query": r"\frac{\partial d_{ij}}{\partial \query{q_{ic}}}",
    "at_key": r"\frac{\partial d_{ij}}{\partial \key{k_{jc}}}",
    "loss_at_query": r"\frac{\partial L}{\partial \query{q_{ic}}}",
    "loss_at_sigma": r"\frac{\partial L}{\partial \sigma}",
    "loss_at_score()": r"\frac{\partial L}{\partial z_{#1#2}}",
}
STEP = 2.0**-10  # distances are straight lines: a difference over it is a slope


def two_slopes(rng: np.random.Generator) -> Inputs:
    """Entries of keys beyond those of queries: a sum has another sign than a gap."""
    q = rng.uniform(-1.0, 1.0, size=(3, 2))
    k = rng.choice([-1.0, 1.0], size=(4, 2)) * rng.uniform(1.5, 2.0, size=(4, 2))
    i, j, c = rng.integers(3), rng.integers(4), rng.integers(2)

    def moved(x: Any) -> Any:
        return laplacian_distances(q, x)[i, j]

    at_key = finite_difference(moved, k, h=STEP)[j, c]
    return {"q": q, "k": k, "i": i, "j": j, "c": c, "at_key": at_key}


formula(
    "laplacian_slope_of_a_distance",
    "sign(q[i, c] - k[j, c])",
    "-at_key",
    defines="at_query",
    symbols=SLOPES,
    chapter=RATIO,
    draw=two_slopes,
    function=lambda q, k, i, j, c: finite_difference(
        lambda x: laplacian_distances(x, k)[i, j], q, h=STEP
    )[i, c],
    operations=("laplacian_distances",),
    checks=("laplacian_gradients_by_differences",),
)


def a_loss(rng: np.random.Generator) -> Inputs:
    """A gradient at the output; one entry of a query meets an entry of a key."""
    given = a_read(rng)
    i, j, c = (given[name] for name in "ijc")
    given["k"][j, c] = given["q"][i, c]
    q, k, v, sigma = (given[name] for name in ("q", "k", "v", "sigma"))
    grad = rng.normal(size=(3, 4))
    _, w, d = laplacian_attention(q, k, v, sigma)

    def loss_at_score(i: int, j: int) -> Any:
        softmax_slopes = np.diag(w[i]) - np.outer(w[i], w[i])
        return softmax_slopes[j] @ v @ grad[i]

    return {**given, "d": d, "grad": grad, "loss_at_score": loss_at_score}


formula(
    "laplacian_loss_at_a_query",
    "-(1 / sigma * sum(loss_at_score(i, j) * sign(q[i, c] - k[j, c])"
    " for j in range(len(k))))",
    defines="loss_at_query",
    symbols=SLOPES,
    chapter=RATIO,
    draw=a_loss,
    function=lambda q, k, v, sigma, grad, i, c: laplacian_gradients(
        q, k, v, sigma, grad
    ).q[i, c],
    operations=("laplacian_gradients",),
    checks=("laplacian_gradients_balance", "laplacian_gradient_at_the_kink"),
)
formula(
    "laplacian_loss_at_sigma",
    "sum(loss_at_score(i, j) * (d[i, j] / sigma ** 2)"
    " for i in range(len(q)) for j in range(len(k)))",
    defines="loss_at_sigma",
    symbols=SLOPES,
    chapter=RATIO,
    draw=a_loss,
    function=lambda q, k, v, sigma, grad: (
        laplacian_gradients(q, k, v, sigma, grad).sigma
    ),
    operations=("laplacian_gradients",),
    checks=("laplacian_gradients_by_differences", "laplacian_gradients_scale"),
)


# ---- Sigma, temperature and entropy -------------------------------------------------

TEMPERED = {"tempered()": r"\mathrm{softmax}_{#2}(#1)"}


def some_scores(rng: np.random.Generator) -> Inputs:
    """Scores, and a temperature that is not 1."""
    return {"x": rng.normal(size=5), "T": rng.uniform(0.3, 0.8)}


formula(
    "softmax_at_a_temperature",
    "tempered(x, T)",
    "softmax(x / T)",
    symbols=TEMPERED,
    functions={"tempered": temperature_softmax},
    chapter=DIAL,
    draw=some_scores,
    operations=("temperature_softmax",),
    checks=("sigma_is_temperature",),
)
formula(
    "sigma_as_temperature",
    "tempered(-d[i], sigma)",
    defines="w[i]",
    symbols=TEMPERED,
    functions={"tempered": temperature_softmax},
    chapter=DIAL,
    draw=a_read,
    function=lambda q, k, v, sigma, i: laplacian_attention(q, k, v, sigma).weights[i],
    operations=("laplacian_attention", "temperature_softmax"),
    checks=("sigma_is_temperature", "scale_is_sigma"),
)


def one_query(rng: np.random.Generator) -> Inputs:
    """The distances and weights of one query, and the mean distance under them."""
    q, k = rng.normal(size=(1, 2)), rng.normal(size=(5, 2))
    v, sigma = np.zeros((5, 1)), float(rng.uniform(0.5, 0.9))
    _, [w], [d] = laplacian_attention(q, k, v, sigma)
    return {"q": q, "k": k, "v": v, "sigma": sigma, "w": w, "d": d, "mean_d": w @ d}


def entropy_at(q: Any, k: Any, v: Any, sigma: Any) -> Any:
    return entropy(laplacian_attention(q, k, v, sigma).weights)[0]


formula(
    "entropy_slope_is_a_variance",
    "sum(w[j] * (d[j] - mean_d) ** 2 for j in range(len(d))) / sigma ** 3",
    defines="slope",
    symbols={"slope": r"\frac{\mathrm{d}H}{\mathrm{d}\sigma}", "mean_d": r"\bar d"},
    chapter=DIAL,
    draw=one_query,
    function=lambda q, k, v, sigma: (
        entropy_at(q, k, v, complex(sigma, 1e-30)).imag / 1e-30
    ),
    operations=("entropy", "laplacian_attention"),
    checks=(
        "entropy_slope",
        "entropy_rises_with_sigma",
        "laplacian_entropy_underflow",
    ),
)


def keys_that_tie(rng: np.random.Generator) -> Inputs:
    """N keys on a line, m of them at distance 1, the others half a unit apart."""
    m, others = int(rng.integers(2, 5)), int(rng.integers(1, 4))
    signs = rng.choice([-1.0, 1.0], size=(m + others, 1))
    distances = np.concatenate([np.ones(m), 1.5 + 0.5 * np.arange(others)])[:, None]
    return {
        "m": m,
        "N": m + others,
        "q": np.zeros((1, 1)),
        "k": rng.permutation(signs * distances),
        "v": np.zeros((m + others, 1)),
    }


LIMITS = {
    "at_zero": r"\lim_{\sigma \to 0} H",
    "at_infinity": r"\lim_{\sigma \to \infty} H",
}
formula(
    "entropy_up_from_log_m",
    "log(m)",
    defines="at_zero",
    symbols=LIMITS,
    chapter=DIAL,
    draw=keys_that_tie,
    function=lambda q, k, v: entropy_at(q, k, v, 1e-3),  # the others weigh e^-500
    operations=("entropy", "laplacian_attention"),
    checks=("entropy_limits",),
)
formula(
    "entropy_up_to_log_n",
    "log(N)",
    defines="at_infinity",
    symbols=LIMITS,
    chapter=DIAL,
    draw=keys_that_tie,
    function=lambda q, k, v: entropy_at(q, k, v, 1e9),  # what is missing is 1e-18
    operations=("entropy", "laplacian_attention"),
    checks=("entropy_limits",),
)
formula(
    "laplacian_order_of_keys",
    "d[i, j] < d[i, l]",
    "w[i, j] > w[i, l]",
    relation=r"\iff",
    chapter=DIAL,
    draw=a_read,
    operations=("laplacian_attention",),
    checks=("sigma_never_changes_the_order",),
)


def median_width(rng: np.random.Generator) -> Inputs:
    """All distances, and the width that goes with their median."""
    q, k = rng.normal(size=(2, 3)), rng.normal(size=(5, 3))
    return {"d": laplacian_distances(q, k), "sigma": float(median_sigma(q, k))}


formula(
    "median_heuristic",
    "exp(-median(d) / sigma)",
    "1 / 2",
    symbols={"median": r"\mathrm{median}"},
    functions={"median": np.median},
    chapter=DIAL,
    draw=median_width,
    operations=("median_sigma",),
    checks=("median_affinity",),
)


# ---- Retrieval and cost -------------------------------------------------------------

formula(
    "nearest_key_wins",
    "argmax(w[i, j] for j in range(len(k)))",
    "argmin(d[i, j] for j in range(len(k)))",
    chapter=COST,
    draw=a_read,
    operations=("laplacian_attention",),
    checks=("nearest_key_wins", "noisy_match_can_lose"),
)


def products(rng: np.random.Generator) -> Inputs:
    """Queries and keys with the weights of their scaled products."""
    q, k, i = rng.normal(size=(3, 2)), rng.normal(size=(5, 2)), rng.integers(3)
    return {
        "q": q,
        "k": k,
        "i": i,
        "a": attention_weights(q, k, scale=float(rng.uniform(0.2, 2.0))),
    }


formula(
    "largest_product_wins",
    "argmax(a[i, j] for j in range(len(k)))",
    "argmax(q[i].T @ k[j] for j in range(len(k)))",
    chapter=COST,
    draw=products,
    operations=("attention_weights",),
    checks=("dot_scale_never_changes_the_order",),
)


def two_vectors(rng: np.random.Generator) -> Inputs:
    """A query and a key of lengths that differ."""
    return {"q": rng.normal(size=3), "k": rng.normal(size=3)}


def against_the_origin(q: Any, k: Any) -> Any:
    """Twice the product: how the key does, at scale 2, against a key of zeros."""
    [[at_key, at_zero]] = attention_weights([q], [k, np.zeros(3)], scale=2.0)
    return np.log(at_key / at_zero)


formula(
    "product_lengths_and_distance",
    "2 * q.T @ k",
    "norm(q) ** 2 + norm(k) ** 2 - norm(q - k) ** 2",
    chapter=COST,
    draw=two_vectors,
    function=against_the_origin,
    operations=("attention_weights", "softmax"),
    checks=("unit_vectors_rank_as_distances",),
)

COUNTS = {
    "products": r"N_\times",
    "differences": "N_-",
    "absolutes": r"N_{|\cdot|}",
    "sums": "N_+",
}


def some_sizes(rng: np.random.Generator) -> Inputs:
    """Numbers of queries, keys and channels, all of them different, and the counts."""
    n, m, c = (int(x) for x in rng.permutation(np.arange(2, 9))[:3])
    counts = operation_counts(n, m, c)
    return {
        "n": n,
        "m": m,
        "c": c,
        "absolutes": counts.laplacian_absolute_values,
        "sums": counts.dot_additions,
    }


formula(
    "product_multiplications",
    "n * m * c",
    defines="products",
    where=r" \quad \text{(product)}",
    symbols=COUNTS,
    chapter=COST,
    draw=some_sizes,
    function=lambda n, m, c: operation_counts(n, m, c).dot_multiplications,
    operations=("operation_counts",),
    checks=("operation_counts_counted",),
)
formula(
    "distance_subtractions",
    "absolutes",
    "n * m * c",
    defines="differences",
    where=r" \quad \text{(distance)}",
    symbols=COUNTS,
    chapter=COST,
    draw=some_sizes,
    function=lambda n, m, c: operation_counts(n, m, c).laplacian_subtractions,
    operations=("operation_counts",),
    checks=("operation_counts_counted",),
)
formula(
    "additions_of_both",
    "sums",
    "n * m * (c - 1)",
    where=r" \quad \text{(both)}",
    symbols=COUNTS,
    chapter=COST,
    draw=some_sizes,
    function=lambda n, m, c: operation_counts(n, m, c).laplacian_additions,
    operations=("operation_counts",),
    checks=("operation_counts_counted",),
)
