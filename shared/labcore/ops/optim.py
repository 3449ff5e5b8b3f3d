"""Steps of an optimizer, and what training keeps in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from . import _validate as must
from ._op import Array, op


class AdamWStep(NamedTuple):
    """The new weights, the two means to carry on, and the numbers on the way.

    m_hat and v_hat are the means without their bias; decayed is w after decay only.
    """

    w: Array
    m: Array
    v: Array
    m_hat: Array
    v_hat: Array
    decayed: Array


def _plain_step(w: Array, gradient: Array, *, lr: float) -> None:
    must.finite(w=w, gradient=gradient)
    _one_shape(w=w, gradient=gradient)
    must.within(0.0, np.inf, lr=lr)
    must.finite(lr=lr)


def _adamw(
    w: Array,
    gradient: Array,
    m: Array,
    v: Array,
    step: int,
    *,
    lr: float = 1e-3,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
    weight_decay: float = 0.01,
) -> None:
    must.count(1, step=step)
    must.finite(m=m, v=v, weight_decay=weight_decay)
    _plain_step(w, gradient, lr=lr)
    _one_shape(w=w, m=m, v=v)
    must.within(0.0, np.inf, v=v, eps=eps, weight_decay=weight_decay)
    must.finite(eps=eps)
    for name, beta in (("beta1", beta1), ("beta2", beta2)):
        must.within(0.0, 1.0, **{name: beta})
        if beta == 1:
            raise ValueError(f"{name} must be below 1, or the mean never moves")
    if eps == 0 and np.any((np.asarray(v) == 0) & (np.asarray(gradient) == 0)):
        raise ValueError("eps must be positive where every gradient so far is 0")


def _micro_batches(gradients: Sequence[Array], counts: Sequence[int]) -> None:
    must.same("micro-batches", gradients=len(gradients), counts=len(counts))
    for count in counts:
        must.count(0, counts=count)
    if sum(counts) == 0:
        raise ValueError("counts has no token to average over")
    for gradient in gradients:
        must.finite(gradients=gradient)
        if np.shape(gradient) != np.shape(gradients[0]):
            raise ValueError(
                f"gradients must have one shape, got {np.shape(gradients[0])} and "
                f"{np.shape(gradient)}"
            )


def _low_rank(B: Array, A: Array, *, alpha: float | None = None) -> None:
    must.axes(2, B=B, A=A)
    must.finite(B=B, A=A)
    if B.shape[-1] != A.shape[-2] or A.shape[-2] == 0:
        raise ValueError(
            f"B and A must share their rank, (..., out, r) and (..., r, in), got "
            f"{B.shape} and {A.shape}"
        )
    must.batch(B=B.shape[:-2], A=A.shape[:-2])
    if alpha is not None:
        must.finite(alpha=alpha)


def _sizes(d_in: int, d_out: int, rank: int, *, matrices: int = 1) -> None:
    must.count(1, d_in=d_in, d_out=d_out, rank=rank, matrices=matrices)


def _sharded(
    params: int,
    *,
    devices: int,
    stage: int,
    weight_bytes: float = 2.0,
    gradient_bytes: float = 2.0,
    optimizer_bytes: float = 12.0,
) -> None:
    must.count(1, params=params, devices=devices)
    must.count(0, stage=stage)
    if stage > 3:
        raise ValueError(f"stage must be 0, 1, 2 or 3, got {stage}")
    sizes = {
        "weight_bytes": weight_bytes,
        "gradient_bytes": gradient_bytes,
        "optimizer_bytes": optimizer_bytes,
    }
    must.within(0.0, np.inf, **sizes)
    must.finite(**sizes)


@op(_plain_step, floats="w gradient lr")
def sgd_step(w: Array, gradient: Array, *, lr: float) -> Array:
    r"""Downhill by a share of the slope.

    $$w' = w - \eta\, g$$

    w, gradient: one shape. lr >= 0; nothing says that the loss falls if it is large.

    >>> sgd_step([1.0], [-16.0], lr=0.25).tolist()
    [5.0]
    """
    return w - lr * gradient


@op(_adamw, floats="w gradient m v lr beta1 beta2 eps weight_decay")
def adamw_step(
    w: Array,
    gradient: Array,
    m: Array,
    v: Array,
    step: int,
    *,
    lr: float = 1e-3,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
    weight_decay: float = 0.01,
) -> AdamWStep:
    r"""Adam's step beside a decay of the weights that does not pass through it.

    $$m' = \beta_1 m + (1 - \beta_1) g, \qquad v' = \beta_2 v + (1 - \beta_2) g^2,$$
    $$w' = (1 - \eta \lambda)\, w -
    \eta\, \frac{m' / (1 - \beta_1^t)}{\sqrt{v' / (1 - \beta_2^t)} + \epsilon}$$

    w, gradient, m, v: one shape; m and v are 0 before the first step. step t counts
    from 1: it says how much of its zero start each mean still holds. eps is added
    outside the root. Returns w, m, v, and m_hat, v_hat, decayed on the way.
    Sources: Kingma and Ba 2015; Loshchilov and Hutter 2019.

    >>> step = adamw_step([1.0], [4.0], [0.0], [0.0], 1, lr=0.5, eps=0.0)
    >>> step.decayed.tolist(), step.w.tolist()
    ([0.995], [0.495])
    """
    m = beta1 * m + (1 - beta1) * gradient
    v = beta2 * v + (1 - beta2) * gradient**2
    m_hat, v_hat = m / (1 - beta1**step), v / (1 - beta2**step)
    decayed = w * (1 - lr * weight_decay)
    return AdamWStep(
        decayed - lr * m_hat / (v_hat**0.5 + eps), m, v, m_hat, v_hat, decayed
    )


@op(_micro_batches, floats="gradients*")
def accumulate_gradients(gradients: Sequence[Array], counts: Sequence[int]) -> Array:
    r"""The gradient of one large batch from its micro-batches.

    $$g = \frac{\sum_b g_b}{\sum_b n_b}$$

    gradients: for each micro-batch the gradient of the *sum* of its losses, all of one
    shape; counts: how many tokens each sum has. An empty micro-batch adds nothing. The
    mean of the micro-batches' means is another number unless all counts are equal.

    >>> float(accumulate_gradients([[6.0], [1.0]], [3, 1])[0])
    1.75
    """
    return sum(gradients[1:], start=gradients[0]) / float(sum(counts))


@op(_low_rank, floats="B A alpha")
def lora_update(B: Array, A: Array, *, alpha: float | None = None) -> Array:
    r"""What a pair of thin matrices adds to a weight.

    $$\Delta W = \frac{\alpha}{r}\, B A$$

    B: (..., out, r); A: (..., r, in). alpha None: r, so that the product is added as it
    is. The rank of the update is at most r. Source: Hu et al. 2022.

    >>> lora_update([[1.0], [2.0]], [[3.0, 4.0]], alpha=2.0).tolist()
    [[6.0, 8.0], [12.0, 16.0]]
    """
    rank = A.shape[-2]
    return (B @ A) * ((rank if alpha is None else alpha) / rank)


@op(_sizes)
def lora_parameters(d_in: int, d_out: int, rank: int, *, matrices: int = 1) -> int:
    r"""How many numbers are trained in place of d_in * d_out.

    $$\mathrm{matrices} \cdot r\, (d_{in} + d_{out})$$

    Fewer only while r is below d_in d_out / (d_in + d_out). Source: Hu et al. 2022.

    >>> lora_parameters(1000, 1000, 8)
    16000
    """
    return matrices * rank * (d_in + d_out)


@op(_sharded)
def zero_bytes_per_device(
    params: int,
    *,
    devices: int,
    stage: int,
    weight_bytes: float = 2.0,
    gradient_bytes: float = 2.0,
    optimizer_bytes: float = 12.0,
) -> float:
    r"""What training keeps on one device, if the state is dealt out over all.

    $$\frac{P \psi}{N_3} + \frac{G \psi}{N_2} + \frac{O \psi}{N_1},
    \qquad N_s = N \text{ from stage } s \text{ on, else } 1$$

    params $\psi$; bytes a parameter for weights P, gradients G and optimizer O (by
    default half precision, with weights, mean and square in float32). Stage 0 is plain
    data parallelism. Activations, buffers and fragments are not counted. Returns bytes.
    Source: Rajbhandari et al. 2020.

    >>> [zero_bytes_per_device(10, devices=2, stage=s) for s in (0, 1, 2, 3)]
    [160.0, 100.0, 90.0, 80.0]
    """
    shares = [devices if stage >= s else 1 for s in (3, 2, 1)]
    kept = zip((weight_bytes, gradient_bytes, optimizer_bytes), shares, strict=True)
    return float(sum(params * each / share for each, share in kept))


def _one_shape(**arrays: Array) -> None:
    (first, a), *rest = arrays.items()
    for name, x in rest:
        if np.shape(x) != np.shape(a):
            raise ValueError(
                f"{name} must have the shape of {first}, {np.shape(a)}, got "
                f"{np.shape(x)}"
            )
