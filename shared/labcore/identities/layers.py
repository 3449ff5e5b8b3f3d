"""Norms and activations: what must hold, and how it breaks."""

from __future__ import annotations

import numpy as np

from ..ops.layers import layer_norm, relu, rms_norm, silu, swiglu
from ._check import Inputs, Rng, nothing
from .attention import chapter

# ---- What is drawn ----------------------------------------------------------------


def rows(rng: Rng, size: int) -> Inputs:
    """A batch of rows far from centred, each of another length."""
    lengths = np.geomspace(0.5, 4.0, size + 1)[:, None]
    return {"x": lengths * rng.normal(1.0, 1.0, size=(2, size + 1, size + 3))}


def branches(rng: Rng, size: int) -> Inputs:
    """Both branches of a gate, negative entries in each."""
    gate, up = rng.normal(size=(2, size + 1, size + 3))
    gate[0, :2], up[0, :2] = [-1.5, 0.5], [2.0, -0.5]
    return {"gate": gate, "up": up}


# ---- What must hold ---------------------------------------------------------------


@chapter.check(
    "layer_norm_moments",
    "Every row has mean zero, and variance one up to the share of eps.",
    draw=rows,
)
def _(x):
    eps = 0.1
    y, variance = layer_norm(x, eps=eps), np.var(x, axis=-1)
    centre = np.sum(y, axis=-1) / x.shape[-1]
    spread = np.sum(y**2, axis=-1) / x.shape[-1]
    return (1 + centre, spread), (np.ones_like(centre), variance / (variance + eps))


@chapter.check(
    "layer_norm_forgets_place_and_scale",
    "Moving and stretching a row changes nothing, with eps zero.",
    draw=rows,
)
def _(x):
    return layer_norm(5 * x - 7, eps=0.0), layer_norm(x, eps=0.0)


@chapter.check(
    "layer_norm_worked",
    "The row (1, 3) becomes (-1, 1), is stretched by (2, 4) and moved by (10, 20).",
    draw=nothing,
    kind="value",
)
def _():
    y = layer_norm([1.0, 3.0], weight=[2.0, 4.0], bias=[10.0, 20.0], eps=0.0)
    return y, np.array([8.0, 24.0])


@chapter.check(
    "layer_norm_far_from_zero",
    "Three neighbours around a hundred million are told apart.",
    draw=nothing,
    kind="value",
)
def _():
    # Centred: -1, 0, 1, so the variance is 2/3 and the ends are at root 3/2.
    y = layer_norm([1e8 + 1, 1e8 + 2, 1e8 + 3], eps=0.0)
    return y, np.array([-np.sqrt(1.5), 0.0, np.sqrt(1.5)])


@chapter.check(
    "layer_norm_refuses_no_variance",
    "A row of equal entries has no variance to divide by.",
    draw=nothing,
    kind="refuses",
)
def _():
    return lambda: layer_norm([3.0, 3.0], eps=0.0), "x"


@chapter.check(
    "rms_norm_is_layer_norm_of_centred_rows",
    "On rows with mean zero, RMS norm and layer norm agree.",
    draw=rows,
)
def _(x):
    centred = x - x.mean(axis=-1, keepdims=True)
    return rms_norm(centred, eps=0.3), layer_norm(centred, eps=0.3)


@chapter.check(
    "rms_norm_worked",
    "The row (1, 7) has mean square 25: it becomes (1/5, 7/5), then its weights.",
    draw=nothing,
    kind="value",
)
def _():
    return rms_norm([1.0, 7.0], weight=[10.0, 5.0], eps=0.0), np.array([2.0, 7.0])


@chapter.check(
    "rms_norm_eps_inside",
    "eps is added to the mean square: (1, -1) with eps 3 is halved.",
    draw=nothing,
    kind="value",
)
def _():
    return rms_norm([1.0, -1.0], eps=3.0), np.array([0.5, -0.5])


@chapter.check(
    "silu_odd_part",
    "silu(x) less silu(-x) is x.",
    draw=branches,
)
def _(gate, up):
    return silu(gate) - silu(-gate), gate


@chapter.check(
    "silu_worked",
    "At the logarithm of 3 the logistic is 3/4, and far below zero nothing is left.",
    draw=nothing,
    kind="value",
)
def _():
    log3 = np.log(3.0)
    return silu([log3, -log3, -1000.0]), np.array([0.75 * log3, -0.25 * log3, 0.0])


@chapter.check(
    "swiglu_is_linear_in_up",
    "The branch without silu is linear, the other is not.",
    draw=branches,
)
def _(gate, up):
    return swiglu(gate, 3 * up), 3 * swiglu(gate, up)


@chapter.check(
    "swiglu_worked",
    "The gate goes through silu, the other branch does not.",
    draw=nothing,
    kind="value",
)
def _():
    log3 = np.log(3.0)
    return swiglu([log3, 0.0], [4.0, 9.0]), np.array([3.0 * log3, 0.0])


@chapter.check(
    "relu_worked",
    "relu keeps what is positive and nothing else.",
    draw=nothing,
    kind="value",
)
def _():
    return relu([-2.0, 0.0, 3.0]), np.array([0.0, 0.0, 3.0])


# ---- How it breaks ----------------------------------------------------------------


@chapter.fault(
    "layer_norm_one_pass",
    "the variance is the mean square less the squared mean",
    operation="layer_norm",
    story="One pass over the data instead of two; far from zero every digit is lost.",
    made_for="layer_norm_far_from_zero",
    stays_green="layer_norm_worked",
)
def _(x, *, weight=None, bias=None, eps=1e-5):
    mean = x.mean(axis=-1, keepdims=True)
    variance = (x**2).mean(axis=-1, keepdims=True) - mean**2
    y = (x - mean) / np.sqrt(variance + eps)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


@chapter.fault(
    "layer_norm_unbiased",
    "the variance divides by one less than the number of features",
    operation="layer_norm",
    story="The default of several libraries' var; a norm wants the other one.",
    made_for="layer_norm_worked",
    stays_green="layer_norm_forgets_place_and_scale",
)
def _(x, *, weight=None, bias=None, eps=1e-5):
    centred = x - x.mean(axis=-1, keepdims=True)
    y = centred / np.sqrt(np.var(x, axis=-1, keepdims=True, ddof=1) + eps)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


@chapter.fault(
    "layer_norm_over_everything",
    "mean and variance are taken over all rows together",
    operation="layer_norm",
    story="An axis left out; a test with one row cannot see it.",
    made_for="layer_norm_moments",
    stays_green="layer_norm_worked",
)
def _(x, *, weight=None, bias=None, eps=1e-5):
    y = (x - x.mean()) / np.sqrt(x.var() + eps)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


@chapter.fault(
    "layer_norm_without_mean",
    "the mean is not taken away",
    operation="layer_norm",
    story="RMS norm under the other name; centred test data hide it.",
    made_for="layer_norm_moments",
    stays_green="rms_norm_is_layer_norm_of_centred_rows",
)
def _(x, *, weight=None, bias=None, eps=1e-5):
    y = x / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + eps)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


@chapter.fault(
    "layer_norm_moves_first",
    "the bias is added before the weight multiplies",
    operation="layer_norm",
    story="Two lines exchanged; with weights of one nothing changes.",
    made_for="layer_norm_worked",
    stays_green="layer_norm_moments",
)
def _(x, *, weight=None, bias=None, eps=1e-5):
    y = layer_norm(x, eps=eps)
    y = y if bias is None else y + bias
    return y if weight is None else y * weight


@chapter.fault(
    "layer_norm_takes_equal_rows",
    "a row without variance becomes zeros without a word",
    operation="layer_norm",
    story="NaN replaced by zero: a dead layer looks like a quiet one.",
    made_for="layer_norm_refuses_no_variance",
    stays_green="layer_norm_worked",
    unguarded=True,
)
def _(x, *, weight=None, bias=None, eps=1e-5):
    return layer_norm(x, weight=weight, bias=bias, eps=max(eps, 1e-300))


@chapter.fault(
    "rms_norm_by_length",
    "rows are divided by their length, not by the root of the mean square",
    operation="rms_norm",
    story="Sum for mean: off by the root of d in every layer.",
    made_for="rms_norm_worked",
    stays_green="decoder_cached_equals_uncached",
)
def _(x, *, weight=None, eps=1e-6):
    y = x / np.sqrt(np.sum(x**2, axis=-1, keepdims=True) + eps)
    return y if weight is None else y * weight


@chapter.fault(
    "rms_norm_takes_mean_away",
    "the mean is taken away first",
    operation="rms_norm",
    story="Layer norm under the other name; on centred rows both agree.",
    made_for="rms_norm_worked",
    stays_green="rms_norm_is_layer_norm_of_centred_rows",
)
def _(x, *, weight=None, eps=1e-6):
    return layer_norm(x, weight=weight, eps=eps or 1e-300)


@chapter.fault(
    "rms_norm_eps_outside",
    "eps is added to the root instead of under it",
    operation="rms_norm",
    story="Two libraries differ here; rows that are not small cannot tell.",
    made_for="rms_norm_eps_inside",
    stays_green="rms_norm_worked",
)
def _(x, *, weight=None, eps=1e-6):
    y = x / (np.sqrt(np.mean(x**2, axis=-1, keepdims=True)) + eps)
    return y if weight is None else y * weight


@chapter.fault(
    "rms_norm_forgets_weight",
    "the weights are not applied",
    operation="rms_norm",
    story="Weights start at one, so an untrained model cannot tell.",
    made_for="rms_norm_worked",
    stays_green="decoder_worked",
)
def _(x, *, weight=None, eps=1e-6):
    return rms_norm(x, eps=eps)


@chapter.fault(
    "silu_is_relu",
    "silu cuts off at zero",
    operation="silu",
    story="Another activation of the same odd part: x less nothing.",
    made_for="silu_worked",
    stays_green="silu_odd_part",
)
def _(x):
    return np.maximum(x, 0.0) + 0.0


@chapter.fault(
    "silu_with_slope",
    "the logistic is that of 1.702 x",
    operation="silu",
    story="The quick form of GELU, which some checkpoints want and others do not.",
    made_for="silu_worked",
    stays_green="silu_odd_part",
)
def _(x):
    return silu(1.702 * x) / 1.702


@chapter.fault(
    "silu_is_the_logistic",
    "the logistic alone, not times x",
    operation="silu",
    story="A sigmoid gate: GLU instead of SwiGLU.",
    made_for="silu_odd_part",
    stays_green="swiglu_is_linear_in_up",
)
def _(x):
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-x))


@chapter.fault(
    "swiglu_other_branch",
    "silu is applied to the other branch",
    operation="swiglu",
    story="Reported against at least three ports; gate and up have the same shape.",
    made_for="swiglu_worked",
    stays_green="decoder_cached_equals_uncached",
)
def _(gate, up):
    return gate * silu(up)


@chapter.fault(
    "swiglu_after_product",
    "silu is applied to the product",
    operation="swiglu",
    story="One pair of brackets moved.",
    made_for="swiglu_is_linear_in_up",
    stays_green="silu_worked",
)
def _(gate, up):
    return silu(gate * up)


@chapter.fault(
    "relu_leaks",
    "a hundredth of what is negative passes",
    operation="relu",
    story="Leaky relu, which has the same name in some model files.",
    made_for="relu_worked",
    stays_green="silu_worked",
)
def _(x):
    return np.where(x > 0, x, 0.01 * x)
