"""Softmax, its logarithm, its temperature and the entropy of what it returns."""

from __future__ import annotations

import numpy as np

from . import _validate as must
from ._op import Array, op


def _a_distribution(x: Array, axis: int = -1) -> None:
    must.scores("x", x)
    must.some_key("x", x, axis)


def _summable(x: Array, axis: int = -1) -> None:
    must.scores("x", x)
    must.axis_of("x", x, axis)


def _tempered(logits: Array, t: float) -> None:
    must.scores("logits", logits)
    must.some_key("logits", logits, -1)
    must.one_number(t=t)
    must.positive(t=t)


def _entropy(p: Array) -> None:
    must.probabilities(p=p)


@op(_a_distribution, floats="x")
def softmax(x: Array, axis: int = -1) -> Array:
    r"""Weights from scores.

    $$\mathrm{softmax}(x)_i = \frac{e^{x_i - m}}{\sum_j e^{x_j - m}},
    \qquad m = \max_j x_j$$

    The shift by $m$ changes nothing in exact arithmetic and keeps every exponential
    at or below one, so that scores near 1000 do not overflow.

    x: (..., n) scores; -inf is a masked entry. Returns (..., n), each row sums to 1.
    Raises ValueError for NaN, +inf, an empty row, a row that is -inf throughout.

    >>> softmax([1000.0, 1001.0, 999.0]).round(4).tolist()
    [0.2447, 0.6652, 0.09]
    """
    with np.errstate(over="ignore", under="ignore"):
        weights = np.exp(x - x.max(axis=axis, keepdims=True))
    return weights / weights.sum(axis=axis, keepdims=True)


@op(_summable, floats="x")
def logsumexp(x: Array, axis: int = -1) -> Array:
    r"""The logarithm of softmax's denominator.

    $$\mathrm{lse}(x) = m + \log \sum_j e^{x_j - m}, \qquad m = \max_j x_j$$

    x: (..., n). Returns (...). The sum over nothing is the neutral element: -inf.
    Raises ValueError for NaN and +inf.

    >>> round(float(logsumexp([-745.2, -745.2])), 4)  # exp(-745.2) alone is 0
    -744.5069
    >>> float(logsumexp([]))
    -inf
    """
    top = x.max(axis=axis, keepdims=True, initial=-np.inf)
    shift = np.where(np.isfinite(top), top, 0.0)  # -inf - -inf would be NaN
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        return np.log(np.exp(x - shift).sum(axis=axis)) + np.squeeze(shift, axis)


@op(_a_distribution, floats="x")
def log_softmax(x: Array, axis: int = -1) -> Array:
    r"""Log-probabilities without taking the logarithm of a rounded zero.

    $$\log \mathrm{softmax}(x)_i = (x_i - m) - \mathrm{lse}(x - m),
    \qquad m = \max_j x_j$$

    x: (..., n). Returns (..., n). Raises ValueError as :func:`softmax`.

    >>> log_softmax([0.0, -1000.0]).tolist()
    [0.0, -1000.0]
    """
    with np.errstate(over="ignore"):
        shifted = x - x.max(axis=axis, keepdims=True)
    return shifted - np.expand_dims(logsumexp(shifted, axis), axis)


@op(_tempered, floats="logits t")
def temperature_softmax(logits: Array, t: float) -> Array:
    r"""Softmax with a dial: small t sharpens, large t flattens.

    $$p_i \propto e^{x_i / t}$$

    logits: (..., n). t > 0; t -> 0 is the arg max (ties shared), t -> infinity is
    uniform over the entries that are not masked. t = 0 is refused: greedy decoding
    is a different operation.

    >>> temperature_softmax([0.0, 1.0], 0.5).round(4).tolist()
    [0.1192, 0.8808]
    """
    with np.errstate(over="ignore"):  # shift before dividing: t may be tiny
        shifted = logits - logits.max(axis=-1, keepdims=True)
        return softmax(shifted / t)


@op(_entropy, floats="p")
def entropy(p: Array) -> Array:
    r"""How undecided a distribution is, in nats.

    $$H(p) = -\sum_i p_i \log p_i, \qquad 0 \log 0 = 0$$

    p: (..., n) probabilities. Returns (...), from 0 to log n.
    Raises ValueError for negative entries or a sum other than 1.

    >>> round(float(entropy([0.5, 0.5])), 4)
    0.6931
    """
    log_p = np.log(np.where(p > 0, p, 1.0))
    return 0.0 - (p * log_p).sum(axis=-1)
