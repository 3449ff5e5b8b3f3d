"""The formulas of kernel attention. Queries, keys and values are columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ops.kernel import (
    KernelState,
    elu_plus_one,
    kernel_attention,
    kernel_attention_chunked,
    kernel_attention_recurrent,
)
from ._formula import Inputs, formula

CHAPTER = "kernel-attention"
STATE = {"z": r"\state{z}"}
CHUNK = {
    **STATE,
    "Phi_q": r"\query{\Phi_q}",
    "Phi_k": r"\key{\Phi_k}",
    "ones": r"\mathbf{1}",
}


def feature(x: Any) -> Any:
    """A feature that is never negative, another than that of labcore."""
    return 0.3 + x * x


def a_text(rng: np.random.Generator) -> Inputs:
    """Six tokens, and the states after some of them, each from a run of its own."""
    q, k, v = (rng.normal(size=(6, d, 1)) for d in (3, 3, 2))
    t = 4
    after = {
        last: kernel_attention_recurrent(*rows(q, k, v, last))[1] for last in (t - 1, t)
    }
    return {
        "q": q,
        "k": k,
        "v": v,
        "t": t,
        "S": {last: state.S for last, state in after.items()},
        "z": {last: state.z[:, None] for last, state in after.items()},
    }


def rows(q: Any, k: Any, v: Any, t: int) -> tuple[Any, Any, Any]:
    """Features and values of the tokens up to t, as an operation takes them."""
    now = slice(t + 1)
    return feature(q[now, :, 0]), feature(k[now, :, 0]), v[now, :, 0]


def a_chunk(rng: np.random.Generator) -> Inputs:
    """Features of four tokens behind a state that already holds something."""
    Phi_q, Phi_k = rng.uniform(0.1, 2.0, size=(2, 4, 3))
    return {
        "Phi_q": Phi_q,
        "Phi_k": Phi_k,
        "V": rng.normal(size=(4, 2)),
        "W": np.array(
            [[Phi_q[i] @ Phi_k[j] * (j <= i) for j in range(4)] for i in range(4)]
        ),
        "S": rng.normal(size=(3, 2)),
        "z": rng.uniform(0.1, 2.0, size=(3, 1)),
        "ones": np.ones((4, 1)),
    }


def weights(Phi_q: Any, Phi_k: Any) -> Any:
    """What the operation reads of values that name their keys, times the mass."""
    n = len(Phi_q)
    read, _ = kernel_attention_chunked(Phi_q, Phi_k, np.eye(n), chunk=n)
    mass = [Phi_q[i] @ Phi_k[: i + 1].sum(axis=0) for i in range(n)]
    return read * np.array(mass)[:, None]


formula(
    "kernel_read",
    "sum((phi(q[t]).T @ phi(k[j])) * v[j].T for j in range(t + 1))"
    " / sum(phi(q[t]).T @ phi(k[j]) for j in range(t + 1))",
    defines="o[t]",
    functions={"phi": feature},
    chapter=CHAPTER,
    draw=a_text,
    function=lambda q, k, v, t: kernel_attention(*rows(q, k, v, t))[t],
    operations=("kernel_attention",),
    checks=(
        "kernel_worked",
        "kernel_two_keys",
        "kernel_constant_values",
        "kernel_scale_free",
    ),
)
formula(
    "kernel_state",
    "S[t - 1] + phi(k[t]) @ v[t].T",
    defines="S[t]",
    functions={"phi": feature},
    chapter=CHAPTER,
    draw=a_text,
    function=lambda q, k, v, t: kernel_attention_recurrent(*rows(q, k, v, t))[1].S,
    operations=("kernel_attention_recurrent",),
    checks=("kernel_state_is_a_sum",),
)
formula(
    "kernel_normaliser",
    "z[t - 1] + phi(k[t])",
    defines="z[t]",
    symbols=STATE,
    functions={"phi": feature},
    chapter=CHAPTER,
    draw=a_text,
    function=lambda q, k, v, t: kernel_attention_recurrent(*rows(q, k, v, t))[1].z,
    operations=("kernel_attention_recurrent",),
    checks=("kernel_state_is_a_sum", "kernel_state_handover"),
)
formula(
    "kernel_read_from_state",
    "(phi(q[t]).T @ S[t]) / (phi(q[t]).T @ z[t])",
    defines="o[t]",
    symbols=STATE,
    functions={"phi": feature},
    chapter=CHAPTER,
    draw=a_text,
    function=lambda q, k, v, t: kernel_attention_recurrent(*rows(q, k, v, t))[0][t],
    operations=("kernel_attention_recurrent",),
    checks=("normalized_kernel_recurrence",),
)
formula(
    "kernel_weights_of_a_chunk",
    "tril(Phi_q @ Phi_k.T)",
    defines="W",
    symbols=CHUNK,
    chapter=CHAPTER,
    draw=a_chunk,
    function=weights,
    operations=("kernel_attention_chunked",),
    checks=("kernel_chunked",),
)
formula(
    "kernel_read_of_a_chunk",
    "(W @ V + Phi_q @ S) / (W @ ones + Phi_q @ z)",
    defines="O",
    symbols=CHUNK,
    chapter=CHAPTER,
    draw=a_chunk,
    function=lambda Phi_q, Phi_k, V, S, z: kernel_attention_chunked(
        Phi_q, Phi_k, V, chunk=len(V), initial=KernelState(S, z[:, 0])
    )[0],
    operations=("kernel_attention_chunked",),
    checks=("kernel_chunked",),
)
formula(
    "elu_plus_one",
    "x + 1 if x >= 0 else exp(x)",
    defines="phi(x)",
    chapter=CHAPTER,
    draw=lambda rng: {"x": np.linspace(-2, 2, 21) + rng.normal(scale=0.05, size=21)},
    function=lambda x: elu_plus_one(x),
    operations=("elu_plus_one",),
    checks=("feature_worked", "elu_plus_one_tail", "kernel_is_not_softmax"),
)
