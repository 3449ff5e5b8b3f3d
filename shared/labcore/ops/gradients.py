"""Gradients: by formula, and by finite differences to compare them with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from . import _validate as must
from ._op import Array, op
from .attention import attention_weights
from .losses import (
    IGNORE,
    clipped,
    dpo_margin,
    preference,
    similarities,
    some_targets,
)
from .softmax import softmax


class AttentionGradients(NamedTuple):
    """Of the loss with respect to each argument, in its shape; and on the way there.

    dweights (..., n, m) is with respect to the weights, dscores to the scaled scores.
    """

    dq: Array
    dk: Array
    dv: Array
    dweights: Array
    dscores: Array


def _difference(f: Callable[[Array], Any], x: Array, *, h: float = 1e-5) -> None:
    if not callable(f):
        raise ValueError(f"f must be a function, got {type(f).__name__}")
    must.finite(x=x)
    must.positive(h=h)


def _read(
    q: Array,
    k: Array,
    v: Array,
    grad: Array,
    *,
    allowed: Array | None = None,
    scale: float | None = None,
) -> None:
    must.axes(2, q=q, k=k, v=v)
    must.finite(q=q, k=k, v=v, grad=grad)
    must.same("d_k", q=q.shape[-1], k=k.shape[-1])
    must.same("the number of keys", k=k.shape[-2], v=v.shape[-2])
    wanted = (*q.shape[:-1], v.shape[-1])
    if grad.shape != wanted:
        raise ValueError(
            f"grad must have the shape of the output, {wanted}, got {grad.shape}"
        )
    for name, x in (("k", k), ("v", v)):
        if x.shape[:-2] != q.shape[:-2]:
            raise ValueError(
                f"{name} must have the axes in front that q has, {q.shape[:-2]}, "
                f"got {x.shape[:-2]}"
            )


def _residual(prediction: Array, target: Array) -> None:
    must.finite(prediction=prediction, target=target)
    must.batch(prediction=np.shape(prediction), target=np.shape(target))


def _rows(ids: Array, grad: Array, *, vocabulary: int) -> None:
    must.count(1, vocabulary=vocabulary)
    must.axes(1, grad=grad)
    must.finite(grad=grad)
    a = np.asarray(ids)
    if a.dtype.kind not in "iu" or grad.shape[grad.ndim - 1 - a.ndim : -1] != a.shape:
        raise ValueError(
            f"ids must be integers, one a row of grad {grad.shape}, got {a.dtype} "
            f"{a.shape}"
        )
    bad = (a < 0) | (a >= vocabulary)
    if np.any(bad):
        raise ValueError(f"ids must lie in [0, {vocabulary}), got {a[bad].flat[0]}")


@op(_difference, floats="x")
def finite_difference(f: Callable[[Array], Any], x: Array, *, h: float = 1e-5) -> Array:
    r"""The gradient of a number that depends on an array, by central differences.

    $$\frac{\partial f}{\partial x_i} \approx
    \frac{f(x + h e_i) - f(x - h e_i)}{2h}$$

    f: array -> number; x: any shape. Returns the shape of x. The error is of order
    h squared from the curvature, and eps/h from rounding: about 1e-10 at best.

    >>> finite_difference(lambda x: (x**2).sum(), [1.0, 2.0]).round(6).tolist()
    [2.0, 4.0]
    """
    x = np.asarray(x, dtype=np.float64)
    gradient = np.empty_like(x)
    for i in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[i], down[i] = up[i] + h, down[i] - h
        gradient[i] = (float(f(up)) - float(f(down))) / (up[i] - down[i])
    return gradient


@op(_read, floats="q k v grad scale")
def attention_gradients(
    q: Array,
    k: Array,
    v: Array,
    grad: Array,
    *,
    allowed: Array | None = None,
    scale: float | None = None,
) -> AttentionGradients:
    r"""What a gradient at the output of attention becomes at q, k and v.

    With scores $S = c\, q k^\top$ and weights $P$, and grad $G$ at the output,

    $$\mathrm{d}P = G v^\top, \quad
    \mathrm{d}S = P \odot (\mathrm{d}P - \mathrm{rowsum}(P \odot \mathrm{d}P)),$$
    $$\mathrm{d}q = c\, \mathrm{d}S\, k, \quad \mathrm{d}k = c\, \mathrm{d}S^\top q,
    \quad \mathrm{d}v = P^\top G$$

    q: (..., n, d_k); k: (..., m, d_k); v: (..., m, d_v); grad: (..., n, d_v), all with
    the same axes in front; allowed and scale as in attention. Returns dq, dk, dv,
    dweights, dscores. A key that may not be read has no gradient.

    >>> one = [[1.0]]
    >>> attention_gradients(one, [[1.0], [1.0]], [[0.0], [4.0]], one).dscores.tolist()
    [[-1.0, 1.0]]
    """
    c = 1 / float(np.sqrt(q.shape[-1])) if scale is None else scale
    P = attention_weights(q, k, allowed=allowed, scale=scale)
    dP = grad @ np.swapaxes(v, -1, -2)
    dS = P * (dP - (P * dP).sum(axis=-1, keepdims=True))
    dk = c * (np.swapaxes(dS, -1, -2) @ q)
    return AttentionGradients(c * (dS @ k), dk, np.swapaxes(P, -1, -2) @ grad, dP, dS)


@op(some_targets, floats="logits")
def cross_entropy_gradient(
    logits: Array, targets: Array, *, ignore_index: int = IGNORE
) -> Array:
    r"""What the mean of :func:`cross_entropy` asks of each logit.

    $$\frac{\partial L}{\partial x_{ti}} =
    \frac{\mathrm{softmax}(x_t)_i - [i = y_t]}{\text{number of targets that count}}$$

    Returns the shape of logits. Every row sums to zero; an ignored row is zero.

    >>> cross_entropy_gradient([[0.0, 0.0], [7.0, 1.0]], [0, -100]).tolist()
    [[-0.5, 0.5], [0.0, 0.0]]
    """
    ids = np.asarray(targets)
    counted = (ids != ignore_index)[..., None]
    hit = np.arange(logits.shape[-1]) == ids[..., None]
    gradient = np.where(counted, softmax(logits) - hit.astype(logits.dtype), 0.0)
    return (gradient / float(np.count_nonzero(counted))).astype(logits.dtype)


@op(_residual, floats="prediction target")
def squared_error_gradient(prediction: Array, target: Array) -> Array:
    r"""Towards the target, twice as fast as it is far away.

    $$\frac{\partial}{\partial y} (y - t)^2 = 2 (y - t)$$

    >>> squared_error_gradient([2.0], [6.0]).tolist()
    [-8.0]
    """
    return 2 * (prediction - target)


@op(preference, floats="policy_chosen policy_rejected ref_chosen ref_rejected beta")
def dpo_gradient(
    policy_chosen: Array,
    policy_rejected: Array,
    ref_chosen: Array,
    ref_rejected: Array,
    *,
    beta: float,
) -> Array:
    r"""What the loss of a pair asks of log pi(chosen); rejected gets the opposite.

    $$\frac{\partial L}{\partial \log \pi(y_w)} = -\beta\, \sigma(-\beta h)$$

    The worse the pair is told apart, the stronger the pull, up to beta.

    >>> dpo_gradient([-1.0], [-1.0], [-2.0], [-2.0], beta=0.5).tolist()
    [-0.25]
    """
    z = beta * dpo_margin(policy_chosen, policy_rejected, ref_chosen, ref_rejected)
    with np.errstate(over="ignore"):
        return -beta / (1 + np.exp(z))


@op(clipped, floats="ratio advantage eps")
def ppo_clip_gradient(ratio: Array, advantage: Array, *, eps: float = 0.2) -> Array:
    r"""The slope of the clipped objective in the ratio: the advantage, or nothing.

    $$\frac{\partial}{\partial r} = \begin{cases} A & r A \le
    \mathrm{clip}(r)\, A \\ 0 & \text{otherwise} \end{cases}$$

    It is cut only where going further would pay. At the kink the slope is A.

    >>> ppo_clip_gradient([1.5, 1.5], [1.0, -1.0]).tolist()
    [0.0, -1.0]
    """
    inside = np.clip(ratio, 1 - eps, 1 + eps) * advantage
    slope = np.where(np.real(ratio * advantage) <= np.real(inside), advantage, 0.0)
    return slope.astype(inside.dtype)


@op(similarities, floats="sim tau")
def contrastive_gradient(sim: Array, *, tau: float) -> Array:
    r"""What :func:`contrastive_loss` asks of each similarity.

    $$\frac{\partial L}{\partial s_{ij}} =
    \frac{\mathrm{softmax}(s_i / \tau)_j - [i = j]}{n\, \tau}$$

    sim: (..., n, m). Returns its shape; every row sums to zero. The factor 1/tau
    belongs here: a small temperature pulls harder.

    >>> contrastive_gradient([[1.0, 1.0]], tau=0.5).tolist()
    [[-1.0, 1.0]]
    """
    n, m = sim.shape[-2:]
    return (softmax(sim / tau) - np.eye(n, m, dtype=sim.dtype)) / (n * tau)


@op(_rows, floats="grad")
def embedding_gradient(ids: Array, grad: Array, *, vocabulary: int) -> Array:
    r"""Every occurrence of a token adds its gradient to the one row it was read from.

    $$\frac{\partial L}{\partial E_i} = \sum_{t : y_t = i} G_t$$

    ids: (...) integers; grad: (..., d), what arrives at the embedded tokens; axes in
    front of those of ids are a batch. Returns (vocabulary, d).

    >>> embedding_gradient([1, 1], [[1.0], [2.0]], vocabulary=3).tolist()
    [[0.0], [3.0], [0.0]]
    """
    where = np.asarray(ids)
    front = grad.shape[: grad.ndim - 1 - where.ndim]
    hit = np.arange(vocabulary)[:, None] == where.ravel()
    return hit.astype(grad.dtype) @ grad.reshape(*front, where.size, grad.shape[-1])
