"""The formulas of absorbing the MLA projections. Queries and keys are columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ops.mla import (
    MLARead,
    mla_absorbed,
    mla_cache_elements,
    mla_explicit,
    mla_explicit_cache_elements,
    mla_multiplications,
)
from ._formula import Inputs, formula

CHAPTER = "absorbing-mla"
ROTARY = {
    "q_R": r"\query{q^R}",
    "k_R": r"\key{k^R}",
    "dot()": r"#1 \cdot #2",
}
COUNTS = {
    "cached": r"\text{cached}",
    "absorbed": r"\text{absorbed}",
    "explicit": r"\text{explicit}",
    "latent": r"\text{latent}",
}


def one_head(rng: np.random.Generator) -> Inputs:
    """One query of one head on five tokens; the first token is zero throughout."""
    c, k_R = rng.normal(size=(5, 3, 1)), rng.normal(size=(5, 2, 1))
    c[0], k_R[0] = 0.0, 0.0
    return {
        "q": rng.normal(size=(4, 1)),
        "q_R": rng.normal(size=(2, 1)),
        "c": c,
        "k_R": k_R,
        "W_K": rng.normal(size=(4, 3)),
        "W_V": rng.normal(size=(6, 3)),
        "d_N": 4,
        "d_R": 2,
        "j": 3,
    }


def content_alone(rng: np.random.Generator) -> Inputs:
    """The same with a rotary query of zero, and one token to look at."""
    inputs = one_head(rng)
    inputs["q_R"] = np.zeros((2, 1))
    return inputs | {"cached": inputs["c"], "c": inputs["c"][3]}


def weighed(rng: np.random.Generator) -> Inputs:
    """The same with the weights that both paths give."""
    inputs = one_head(rng)
    paths = both(*(inputs[name] for name in ("q", "q_R", "c", "k_R", "W_K", "W_V")))
    return inputs | {"w": sum(path.weights[0] for path in paths) / 2}


def both(q: Any, q_R: Any, c: Any, k_R: Any, W_K: Any, W_V: Any) -> list[MLARead]:
    """What either path says of one query."""
    arguments = q.T, q_R.T, c[..., 0], k_R[..., 0], W_K, W_V
    return [mla_explicit(*arguments), mla_absorbed(*arguments)]


def content(q: Any, q_R: Any, cached: Any, k_R: Any, W_K: Any, W_V: Any, j: int) -> Any:
    """The score of a token without a rotary part: the mean of the paths."""
    paths = both(q, q_R, cached, k_R, W_K, W_V)
    return np.mean([path.scores[0, j] for path in paths])


def read(q: Any, q_R: Any, c: Any, k_R: Any, W_K: Any, W_V: Any) -> Any:
    """The output: the mean of the paths."""
    paths = both(q, q_R, c, k_R, W_K, W_V)
    return np.mean([path.output[0] for path in paths], axis=0)


def odds(q: Any, q_R: Any, c: Any, k_R: Any, W_K: Any, W_V: Any, j: int) -> Any:
    """The log of the odds of a token against one that scores zero, of the paths."""
    weights = [path.weights[0] for path in both(q, q_R, c, k_R, W_K, W_V)]
    return np.mean([np.log(w[j] / w[0]) for w in weights])


def sizes(rng: np.random.Generator) -> Inputs:
    """Sizes of a layer, no two the same."""
    H, r, d_N, d_R, d_V = (int(n) for n in rng.permutation(np.arange(3, 8)))
    return {"H": H, "r": r, "d_N": d_N, "d_R": d_R, "d_V": d_V, "n": 9}


def one_token_more(path: str) -> Any:
    """What one more token in the cache adds to a path, for each head."""

    def difference(n: int, H: int, d_N: int, d_R: int, d_V: int, r: int) -> float:
        after, before = (
            mla_multiplications(keys, H, d_N, d_R, d_V, r, n_queries=1)._asdict()[path]
            for keys in (n + 1, n)
        )
        return (after - before) / H

    return difference


formula(
    "query_takes_the_projection",
    "q.T @ (W_K @ c)",
    "(W_K.T @ q).T @ c",
    chapter=CHAPTER,
    draw=content_alone,
    function=content,
    operations=("mla_explicit", "mla_absorbed"),
    checks=("mla_joint_score_and_projection", "mla_identity_projections"),
)
formula(
    "output_takes_the_projection",
    "sum(w[j] * W_V @ c[j] for j in range(len(c)))",
    "W_V @ sum(w[j] * c[j] for j in range(len(c)))",
    chapter=CHAPTER,
    draw=weighed,
    function=read,
    operations=("mla_explicit", "mla_absorbed"),
    checks=("mla_output_in_hull", "mla_by_loops"),
)
formula(
    "joint_score",
    "((W_K.T @ q).T @ c[j] + dot(q_R, k_R[j])) / sqrt(d_N + d_R)",
    defines="s[j]",
    symbols=ROTARY,
    functions={"dot": lambda a, b: (a * b).sum()},
    chapter=CHAPTER,
    draw=one_head,
    function=odds,
    operations=("mla_explicit", "mla_absorbed"),
    checks=("mla_one_softmax", "mla_worked"),
)
formula(
    "explicit_cache",
    "H * (d_N + d_V) + d_R",
    defines="explicit",
    symbols=COUNTS,
    chapter=CHAPTER,
    draw=sizes,
    function=lambda H, d_N, d_R, d_V: mla_explicit_cache_elements(H, d_N, d_R, d_V),
    operations=("mla_explicit_cache_elements",),
    checks=("mla_cache_ratio", "mla_explicit_cache_by_arrays"),
)
formula(
    "latent_cache",
    "r + d_R",
    defines="latent",
    symbols=COUNTS,
    chapter=CHAPTER,
    draw=sizes,
    function=lambda r, d_R: mla_cache_elements(r, d_R),
    operations=("mla_cache_elements",),
    checks=("mla_cache_ratio", "mla_cache_count"),
)
formula(
    "products_cached",
    "d_N + d_R + d_V",
    defines="cached",
    symbols=COUNTS,
    chapter=CHAPTER,
    draw=sizes,
    function=one_token_more("cached"),
    operations=("mla_multiplications",),
    checks=("mla_multiplications_counted",),
)
formula(
    "products_absorbed",
    "2 * r + d_R",
    defines="absorbed",
    symbols=COUNTS,
    chapter=CHAPTER,
    draw=sizes,
    function=one_token_more("absorbed"),
    operations=("mla_multiplications",),
    checks=("mla_multiplications_counted", "mla_equal_cost"),
)
