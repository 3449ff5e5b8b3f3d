"""The formulas of writes and decay. Keys and values are columns."""

from __future__ import annotations

import numpy as np

from ..ops.delta import delta_attention, gated_write
from ._formula import Inputs, formula

CHAPTER = "writes-and-decay"
DECAYED = {"decayed": r"\tilde{\state{S}}", "after": r"\state{S'}"}


def one_write(rng: np.random.Generator) -> Inputs:
    """A state, a key, a value, a share, and a gate for each key channel."""
    S, alpha = rng.normal(size=(3, 2)), rng.uniform(0.2, 0.9, size=3)
    return {
        "S": S,
        "decayed": alpha[:, None] * S,
        "k": rng.normal(size=(3, 1)),
        "v": rng.normal(size=(2, 1)),
        "beta": rng.uniform(0.2, 0.9),
        "alpha": alpha,
        "eye": np.eye(3),
    }


formula(
    "gated_decay",
    "diag(alpha) @ S",
    defines="decayed",
    symbols=DECAYED,
    chapter=CHAPTER,
    draw=one_write,
    function=lambda S, k, v, alpha: gated_write(S, k[:, 0], v[:, 0], 0.0, alpha),
    operations=("gated_write",),
    checks=("gated_no_write_limit",),
)
formula(
    "gated_write",
    "decayed + beta * k @ (v.T - k.T @ decayed)",
    defines="after",
    symbols=DECAYED,
    chapter=CHAPTER,
    draw=one_write,
    function=lambda S, k, v, beta, alpha: gated_write(S, k[:, 0], v[:, 0], beta, alpha),
    operations=("gated_write",),
    checks=("gated_worked_matrix", "gated_decay_then_correct", "gated_no_decay_limit"),
)
formula(
    "gated_affine",
    "(eye - beta * k @ k.T) @ diag(alpha) @ S + beta * k @ v.T",
    defines="after",
    symbols=DECAYED,
    chapter=CHAPTER,
    draw=one_write,
    function=lambda S, k, v, beta, alpha: gated_write(S, k[:, 0], v[:, 0], beta, alpha),
    operations=("gated_write",),
    checks=("kda_affine_form",),
)


def one_chunk(rng: np.random.Generator) -> Inputs:
    """Four writes; the corrections u are read off the states of the operation."""
    n, d_k, d_v = 4, 3, 2
    k, v = rng.normal(size=(n, d_k, 1)), rng.normal(size=(n, d_v, 1))
    beta, alpha = rng.uniform(0.2, 0.9, size=n), rng.uniform(0.3, 0.9, size=(n, d_k))
    S = rng.normal(size=(d_k, d_v))
    states = [S]
    for t in range(n):
        one = slice(t, t + 1)
        states.append(
            delta_attention(
                np.zeros((1, d_k)),
                k[one, :, 0],
                v[one, :, 0],
                beta[one],
                retention=alpha[one],
                initial=states[-1],
            )[1]
        )
    written = [states[t + 1] - alpha[t][:, None] * states[t] for t in range(n)]
    return {
        "k": k,
        "v": v,
        "beta": beta,
        "S": S,
        "u": [k[t].T @ written[t] / (k[t].T @ k[t]) for t in range(n)],
        "D": {
            (i, j): np.diag(alpha[j + 1 : i + 1].prod(0))
            for i in range(n)
            for j in range(i)
        },
        "G": [np.diag(alpha[: t + 1].prod(0)) for t in range(n)],
        "i": 3,
    }


formula(
    "chunk_corrections",
    "u[i] + beta[i] * sum((k[i].T @ D[i, j] @ k[j]) * u[j] for j in range(i))",
    "beta[i] * (v[i].T - (G[i] @ k[i]).T @ S)",
    chapter=CHAPTER,
    draw=one_chunk,
    operations=("delta_attention",),
    checks=("delta_chunked", "gated_chunked", "kda_chunked"),
)
