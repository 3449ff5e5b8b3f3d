"""The formulas of losses, gradients and optimizers."""

from __future__ import annotations

import numpy as np

from ..ops.gradients import cross_entropy_gradient
from ..ops.losses import cross_entropy
from ..ops.optim import (
    accumulate_gradients,
    adamw_step,
    lora_update,
    zero_bytes_per_device,
)
from ._formula import Inputs, formula

CHAPTER = "losses-gradients-optimizers"
LETTERS = {
    "v": "v",  # not the value of an attention
    "mean": "m'",
    "size": "v'",
    "m_hat": r"\hat m",
    "v_hat": r"\hat v",
    "new": "w'",
    "decay": r"\lambda",
    "eta": r"\eta",
    "psi": r"\psi",
    "change": r"\Delta W",
    "held": r"\text{bytes}",
    "slopes": r"\frac{\partial L}{\partial x_{ti}}",
    "is_true()": "[#1]",
}


def a_batch(rng: np.random.Generator) -> Inputs:
    """Logits x and their softmax p; of the targets y two are ignored."""
    x = rng.normal(size=(5, 4))
    p = np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True)
    C = [0, 2, 3]
    y = np.full(5, -100)
    y[C] = rng.integers(4, size=3)
    every = np.arange(4)
    return {"x": x, "p": p, "y": y, "C": C, "n": len(C), "t": 2, "i": every}


def micro_batches(rng: np.random.Generator) -> Inputs:
    """Gradients of sums over unequally many tokens."""
    return {"g": rng.normal(size=(3, 2)), "n": [5, 1, 3]}


def a_step(rng: np.random.Generator) -> Inputs:
    """A step that is not the first; epsilon and decay are large enough to be seen."""
    w, m, g = rng.normal(size=(3, 4))
    v, t = rng.uniform(0.2, 2.0, size=4), 3
    beta_1, beta_2, eta, decay = rng.uniform(0.3, 0.8, size=4)
    epsilon = rng.uniform(0.1, 0.3)
    options = {"lr": eta, "beta1": beta_1, "beta2": beta_2, "eps": epsilon}
    mean, size = beta_1 * m + (1 - beta_1) * g, beta_2 * v + (1 - beta_2) * g**2
    return {
        "w": w,
        "m": m,
        "v": v,
        "g": g,
        "t": t,
        "beta_1": beta_1,
        "beta_2": beta_2,
        "eta": eta,
        "decay": decay,
        "epsilon": epsilon,
        "mean": mean,
        "size": size,
        "m_hat": mean / (1 - beta_1**t),
        "v_hat": size / (1 - beta_2**t),
        "done": adamw_step(w, g, m, v, t, **options, weight_decay=decay),
    }


def thin_pair(rng: np.random.Generator) -> Inputs:
    """Two thin matrices; alpha is not their rank r."""
    r = 2
    return {
        "B": rng.normal(size=(4, r)),
        "A": rng.normal(size=(r, 3)),
        "r": r,
        "alpha": rng.uniform(0.3, 0.9),
    }


def sharded(rng: np.random.Generator) -> Inputs:
    """Every stage at once; N_s is the number of devices from stage s on."""
    devices, stages = int(rng.integers(3, 9)), np.arange(4)
    P, G, O = (float(size) for size in rng.integers(1, 13, size=3))  # noqa: E741
    N_1, N_2, N_3 = (np.where(stages >= s, devices, 1) for s in (1, 2, 3))
    return {
        "psi": int(rng.integers(10, 99)),
        "devices": devices,
        "P": P,
        "G": G,
        "O": O,
        "N_1": N_1,
        "N_2": N_2,
        "N_3": N_3,
    }


formula(
    "mean_cross_entropy",
    "-(1 / n) * sum(log(p[t, y[t]]) for t in C)",
    defines="L",
    symbols=LETTERS,
    chapter=CHAPTER,
    draw=a_batch,
    function=lambda x, y: cross_entropy(x, y),
    operations=("cross_entropy",),
    checks=("cross_entropy_ignores_padding", "cross_entropy_is_the_mean"),
)
formula(
    "mean_cross_entropy_gradient",
    "(p[t, i] - is_true(i == y[t])) / n",
    defines="slopes",
    symbols=LETTERS,
    functions={"is_true": lambda x: np.asarray(x, float)},
    chapter=CHAPTER,
    draw=a_batch,
    function=lambda x, y, t: cross_entropy_gradient(x, y)[t],
    operations=("cross_entropy_gradient",),
    checks=("cross_entropy_gradient_by_difference", "cross_entropy_gradient_rows"),
)
formula(
    "accumulated_gradient",
    "sum(g[b] for b in range(len(g))) / sum(n[b] for b in range(len(n)))",
    defines="g",
    symbols=LETTERS,
    chapter=CHAPTER,
    draw=micro_batches,
    function=lambda g, n: accumulate_gradients(g, n),
    operations=("accumulate_gradients",),
    checks=("accumulate_any_partition", "accumulate_is_no_mean_of_means"),
)
formula(
    "adamw_mean",
    "beta_1 * m + (1 - beta_1) * g",
    defines="mean",
    symbols=LETTERS,
    chapter=CHAPTER,
    draw=a_step,
    function=lambda done: done.m,
    operations=("adamw_step",),
    checks=("adamw_closed_form",),
)
formula(
    "adamw_size",
    "beta_2 * v + (1 - beta_2) * g ** 2",
    defines="size",
    symbols=LETTERS,
    chapter=CHAPTER,
    draw=a_step,
    function=lambda done: done.v,
    operations=("adamw_step",),
    checks=("adamw_closed_form",),
)
formula(
    "adamw_mean_corrected",
    "mean / (1 - beta_1 ** t)",
    defines="m_hat",
    symbols=LETTERS,
    chapter=CHAPTER,
    draw=a_step,
    function=lambda done: done.m_hat,
    operations=("adamw_step",),
    checks=("adamw_closed_form", "adamw_first_step"),
)
formula(
    "adamw_size_corrected",
    "size / (1 - beta_2 ** t)",
    defines="v_hat",
    symbols=LETTERS,
    chapter=CHAPTER,
    draw=a_step,
    function=lambda done: done.v_hat,
    operations=("adamw_step",),
    checks=("adamw_closed_form", "adamw_first_step"),
)
formula(
    "adamw_weights",
    "(1 - eta * decay) * w - eta * (m_hat / (sqrt(v_hat) + epsilon))",
    defines="new",
    symbols=LETTERS,
    chapter=CHAPTER,
    draw=a_step,
    function=lambda done: done.w,
    operations=("adamw_step",),
    checks=(
        "adamw_decay_stands_beside",
        "adamw_forgets_scale",
        "adamw_eps_outside_the_root",
    ),
)
formula(
    "low_rank_update",
    "(alpha / r) * B @ A",
    defines="change",
    symbols=LETTERS,
    chapter=CHAPTER,
    draw=thin_pair,
    function=lambda B, A, alpha: lora_update(B, A, alpha=alpha),
    operations=("lora_update",),
    checks=("lora_stacked", "lora_merged"),
)
formula(
    "bytes_of_a_device",
    "psi * (P / N_3 + G / N_2 + O / N_1)",
    defines="held",
    symbols=LETTERS,
    chapter=CHAPTER,
    draw=sharded,
    function=lambda psi, devices, P, G, O: [  # noqa: E741
        zero_bytes_per_device(
            psi,
            devices=devices,
            stage=stage,
            weight_bytes=P,
            gradient_bytes=G,
            optimizer_bytes=O,
        )
        for stage in range(4)
    ],
    operations=("zero_bytes_per_device",),
    checks=("zero_published", "zero_on_one_device"),
)
