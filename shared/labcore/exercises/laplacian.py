"""Exercises on Laplacian attention."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..identities import recorded
from ..ops.laplacian import (
    laplacian_attention,
    laplacian_gradients,
    operation_counts,
)
from . import exercise


@exercise(
    "ratio/two_keys",
    hint="The ratio of the weights is e to the power of the difference of the "
    "distances over sigma, and they sum to one.",
    because="1/(1 + e^(-{gap}/{sigma})): only the difference of the distances counts.",
    tells=lambda k, **_: {"gap": np.subtract(*np.abs(k[::-1]).sum(axis=1))},
    k=[[4, 0], [3, 4]],
    sigma=2,
)
def _(k: Any, sigma: float) -> float:
    read = laplacian_attention(np.zeros((1, 2)), k, np.zeros((2, 1)), sigma)
    return float(read.weights[0, 0])


@exercise(
    "ratio/slope",
    hint="Both distances change, one up and one down: the slope is -2 w (1 - w).",
    because="Both weights are equal there, and w (1 - w) is as large as it can be.",
    k=[0, 1],
    v=[1, 0],
    sigma=1,
)
def _(k: Any, v: Any, sigma: float) -> float:
    keys, values = np.array(k)[:, None], np.array(v)[:, None]
    halfway, one = [[np.mean(k)]], np.ones((1, 1))
    return float(laplacian_gradients(halfway, keys, values, sigma, one).q[0, 0])


@exercise(
    "ratio/blind",
    hint="Put each wrong distance in place with lab.broken and move q and k together.",
    because="Every norm of q - k is blind to a shift. The dot product is no norm.",
)
def _() -> set[str]:
    return _green("laplacian_distances", "laplacian_translation")


@exercise(
    "dial/sigma",
    hint="Solve 1/(1 + e^(-farther/sigma)) = {weight} for sigma.",
    because="farther over the logarithm of the odds, and the odds are {odds} to one.",
    tells=lambda weight, **_: {"odds": weight / (1 - weight)},
    farther=1,
    weight=0.9,
)
def _(farther: float, weight: float) -> float:
    low, high = 0.01, 10.0
    k, v = np.array([[1.0], [1.0 + farther]]), np.zeros((2, 1))
    for _ in range(60):  # the near weight falls as sigma rises
        sigma = (low + high) / 2
        near = laplacian_attention([[0.0]], k, v, sigma).weights[0, 0]
        low, high = (sigma, high) if near > weight else (low, sigma)
    return low


@exercise(
    "dial/units",
    hint="Every distance is now a number of millimetres. What must sigma be, so that "
    "the quotients stay?",
    because="Sigma has the unit of the distances: weights depend on their quotient.",
    sigma=0.7,
)
def _(sigma: float) -> float:
    k, v = np.array([[1.0], [2.5]]), np.zeros((2, 1))
    want = laplacian_attention([[0.0]], k, v, sigma).weights
    found = [
        width
        for width in (sigma / 1000, sigma, 1000 * sigma)
        if np.allclose(laplacian_attention([[0.0]], 1000 * k, v, width).weights, want)
    ]
    return found[0]


@exercise(
    "dial/blind",
    hint="Which wrong versions give the right weights when sigma is 1?",
    because="1, its square and its inverse are the same number.",
)
def _() -> set[str]:
    return _green("laplacian_attention", "laplacian_worked", "sigma_is_temperature")


@exercise(
    "retrieval/loses",
    hint="Compare the two distances: the differences of the channels, then their sum.",
    because="It is {stranger} away, the copy {copy}. In L2 the copy would have won.",
    tells=lambda query, **keys: {
        name: np.abs(np.subtract(query, key)).sum() for name, key in keys.items()
    },
    query=[0.5, 0.5],
    copy=[0.8, 0.8],
    stranger=[0.5, 0],
)
def _(query: Any, copy: Any, stranger: Any) -> str:
    read = laplacian_attention([query], [copy, stranger], np.zeros((2, 1)), 0.35)
    return ("copy", "stranger")[int(np.argmax(read.weights[0]))]


@exercise(
    "cost/additions",
    hint="A sum of c terms has c - 1 additions, and there are n m sums.",
    because="{pairs} pairs with {each} additions each.",
    tells=lambda n_queries, n_keys, channels: {
        "pairs": n_queries * n_keys,
        "each": channels - 1,
    },
    n_queries=8,
    n_keys=8,
    channels=16,
)
def _(n_queries: int, n_keys: int, channels: int) -> int:
    return operation_counts(n_queries, n_keys, channels).laplacian_additions


@exercise(
    "retrieval/blind",
    hint="Top-1 asks for an order. Which faults keep the order of the keys?",
    because="A rescaled or squared distance puts the keys in the same order.",
)
def _() -> set[str]:
    return _green("laplacian_attention", "sigma_never_changes_the_order")


def _green(operation: str, *checks: str) -> set[str]:
    """The faults of an operation that leave the first check green, not the others."""
    first, *others = checks
    return {
        id
        for id, row in recorded()["faults"].items()
        if row["operation"] == operation
        and first in row["green"]
        and all(other in row["red"] for other in others)
    }
