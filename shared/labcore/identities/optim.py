"""Steps of optimizers, low rank, memory of training: what must hold; how it breaks."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ..ops.gradients import cross_entropy_gradient, squared_error_gradient
from ..ops.layers import linear
from ..ops.losses import cross_entropy, squared_error
from ..ops.optim import (
    AdamWStep,
    accumulate_gradients,
    adamw_step,
    lora_parameters,
    lora_update,
    sgd_step,
    zero_bytes_per_device,
)
from ._check import Inputs, Rng, nothing
from .worked import training as chapter

FREE = {"weight_decay": 0.0, "eps": 0.0}


# ---- What is drawn ----------------------------------------------------------------


def some_steps(rng: Rng, size: int) -> Inputs:
    """Weights, four gradients of both signs, and all settings off their defaults."""
    gradients = rng.uniform(0.5, 2.0, size=(4, size + 1))
    gradients[1] *= -1
    return {
        "w": rng.uniform(1.0, 2.0, size=size + 1),
        "gradients": gradients * rng.choice([-1.0, 1.0], size=size + 1),
        "options": {
            "lr": 0.1,
            "beta1": 0.7,
            "beta2": 0.9,
            "eps": 0.05,
            "weight_decay": 0.3,
        },
    }


def a_parabola(rng: Rng, size: int) -> Inputs:
    """A place, a minimum, and the curvature around it."""
    return {
        "w": rng.normal(size=size + 1),
        "minimum": rng.normal(size=size + 1) + 3.0,
        "curvature": float(rng.uniform(2.0, 5.0)),
    }


def tokens_in_batches(rng: Rng, size: int) -> Inputs:
    """A gradient for each token; micro-batches of several sizes, one of them empty."""
    counts = [size + 3, 0, 1, size]
    gradients = rng.uniform(0.5, 2.0, size=(sum(counts), size + 1))
    gradients[: counts[0]] += 2.0
    return {"gradients": gradients, "counts": counts}


def equal_batches(rng: Rng, size: int) -> Inputs:
    """Three micro-batches of as many tokens each."""
    return {"gradients": rng.normal(size=(3, size + 1, 2)) + 2.0}


def thin_matrices(rng: Rng, size: int) -> Inputs:
    """Two pairs of rank r, an input, and an alpha that is not r."""
    r, d_out, d_in = size + 1, size + 3, size + 2
    return {
        "B": rng.normal(size=(d_out, r)),
        "A": rng.normal(size=(r, d_in)),
        "W": rng.normal(size=(d_out, d_in)),
        "x": rng.normal(size=(2, d_in)),
        "alpha": 3.0 * r,
    }


def a_model(rng: Rng, size: int) -> Inputs:
    """Parameters that divide by the devices, and what each takes."""
    devices = size + 1
    sizes = rng.integers(1, 6, size=3)
    return {
        "params": 60 * devices,
        "devices": devices,
        "sizes": [int(n) for n in sizes],
    }


# ---- What must hold: gradient descent ---------------------------------------------


@chapter.check(
    "sgd_to_the_minimum",
    "On a parabola one step of the inverse curvature reaches the minimum.",
    draw=a_parabola,
)
def _(w, minimum, curvature):
    return sgd_step(w, curvature * (w - minimum), lr=1 / curvature), minimum


@chapter.check(
    "sgd_worked",
    "Weight 1 on input 2 for target 6 at rate .1: weight 2.6, loss .64.",
    draw=nothing,
    kind="value",
)
def _():
    # y = 2, error -4, slope 2 * (-4) * 2 = -16, w = 1 + 1.6; (5.2 - 6)^2 = .64.
    after = _one_weight(lr=0.1)
    return (after, _loss_of(after)), (np.array([2.6]), np.array([0.64]))


@chapter.check(
    "sgd_large_step_loses",
    "The same step at rate 1 makes the loss larger: it flies over the minimum.",
    draw=nothing,
    kind="order",
)
def _():
    return _loss_of(_one_weight(lr=1.0)), _loss_of(np.array([1.0]))


@chapter.check(
    "sgd_lowers_cross_entropy",
    "One step at rate .1 from two equal logits lowers the loss below log 2.",
    draw=nothing,
    kind="value",
)
def _():
    # The gradient is (-1/2, 1/2), so the logits become .05 and -.05.
    logits = np.zeros((1, 2))
    after = sgd_step(logits, cross_entropy_gradient(logits, [0]), lr=0.1)
    return (after, cross_entropy(after, [0])), (
        np.array([[0.05, -0.05]]),
        np.log1p(np.exp(-0.1)),
    )


# ---- What must hold: AdamW --------------------------------------------------------


@chapter.check(
    "adamw_closed_form",
    "Four steps equal the means written out as sums over all gradients so far.",
    draw=some_steps,
)
def _(w, gradients, options):
    lr, b1, b2 = options["lr"], options["beta1"], options["beta2"]
    want = w
    for t in range(1, 5):
        ages = np.arange(t)[::-1]
        by1, by2 = b1 ** ages[:, None], b2 ** ages[:, None]
        m = (by1 * gradients[:t]).sum(axis=0) / by1.sum()
        v = (by2 * gradients[:t] ** 2).sum(axis=0) / by2.sum()
        step = m / (np.sqrt(v) + options["eps"])
        want = want - lr * (options["weight_decay"] * want + step)
    return _run(w, gradients, **options).w, want


@chapter.check(
    "adamw_first_step",
    "From 1 with gradient .2 at rate .1 and decay .01: .999 less a tenth.",
    draw=nothing,
    kind="value",
)
def _():
    # Both means are unbiased: .2 and .04, so the step is .1 * .2 / (.2 + 1e-8).
    got = adamw_step([1.0], [0.2], [0.0], [0.0], 1, lr=0.1)
    return (got.w, got.m_hat, got.v_hat, got.decayed), (
        np.array([0.999 - 0.1 / (1 + 5e-8)]),
        np.array([0.2]),
        np.array([0.04]),
        np.array([0.999]),
    )


@chapter.check(
    "adamw_first_step_is_the_sign",
    "Without decay the first step is the rate, against the sign of the gradient.",
    draw=some_steps,
)
def _(w, gradients, options):
    moved = _run(w, gradients[:1], **{**options, **FREE}).w - w
    return moved, -options["lr"] * np.sign(gradients[0])


@chapter.check(
    "adamw_zero_gradient_decays",
    "Where every gradient is zero the weights decay, by the same share each step.",
    draw=some_steps,
)
def _(w, gradients, options):
    share = 1 - options["lr"] * options["weight_decay"]
    return _run(w, 0 * gradients, **options).w, w * share**4


@chapter.check(
    "adamw_decay_stands_beside",
    "What decay takes from a weight does not depend on its gradients.",
    draw=some_steps,
)
def _(w, gradients, options):
    free = {**options, "weight_decay": 0.0}
    start = (w, gradients[0], gradients[1], gradients[2] ** 2, 3)
    taken = adamw_step(*start, **options).w - adamw_step(*start, **free).w
    return taken, -options["lr"] * options["weight_decay"] * w


@chapter.check(
    "adamw_forgets_scale",
    "With eps zero, gradients a thousand times as large move the weights as far.",
    draw=some_steps,
)
def _(w, gradients, options):
    free = {**options, **FREE}
    return _run(w, 1000 * gradients, **free).w, _run(w, gradients, **free).w


@chapter.check(
    "adamw_eps_outside_the_root",
    "A first gradient of the size of eps makes half a step.",
    draw=nothing,
    kind="value",
)
def _():
    # 1e-8 / (sqrt(1e-16) + 1e-8) = 1/2; under the root it would be 1e-4.
    options = {"lr": 1.0, "eps": 1e-8, "weight_decay": 0.0}
    return adamw_step([0.0], [1e-8], [0.0], [0.0], 1, **options).w, np.array([-0.5])


@chapter.check(
    "adamw_refuses_step_zero",
    "Steps count from 1: before the first nothing can be unbiased.",
    draw=nothing,
    kind="refuses",
)
def _():
    return lambda: adamw_step([1.0], [1.0], [0.0], [0.0], 0), "step"


# ---- What must hold: batches ------------------------------------------------------


@chapter.check(
    "accumulate_any_partition",
    "Micro-batches of any sizes, empty ones too, give the mean over all tokens.",
    draw=tokens_in_batches,
)
def _(gradients, counts):
    want = gradients.sum(axis=0) / len(gradients)
    return accumulate_gradients(_sums(gradients, counts), counts), want


@chapter.check(
    "accumulate_equal_batches",
    "Of equal micro-batches it is the mean of their means.",
    draw=equal_batches,
)
def _(gradients):
    n = gradients.shape[1]
    means = [part.sum(axis=0) / n for part in gradients]
    sums = [part.sum(axis=0) for part in gradients]
    return accumulate_gradients(sums, [n] * 3), sum(means) / 3


@chapter.check(
    "accumulate_worked",
    "Means 1, 2, 3, 4 of equal micro-batches sum to 10, and their mean is 2.5.",
    draw=nothing,
    kind="value",
)
def _():
    parts = [[1.0], [2.0], [3.0], [4.0]]
    return accumulate_gradients(parts, [1, 1, 1, 1]), np.array([2.5])


@chapter.check(
    "accumulate_is_no_mean_of_means",
    "Means 1 and 3 over 2 and 4 tokens: their mean, 2, is not the mean of all.",
    draw=nothing,
    kind="differs",
)
def _():
    return accumulate_gradients([[1.0 * 2], [3.0 * 4]], [2, 4]), np.array([2.0])


# ---- What must hold: low rank -----------------------------------------------------


@chapter.check(
    "lora_rank_one",
    "The column (1, 2) before the row (3, 4) is a matrix of rank one.",
    draw=nothing,
    kind="value",
)
def _():
    want = np.array([[3.0, 4.0], [6.0, 8.0]])
    return lora_update([[1.0], [2.0]], [[3.0, 4.0]]), want


@chapter.check(
    "lora_merged",
    "Merged into the weight, the update does what it does beside it.",
    draw=thin_matrices,
)
def _(B, A, W, x, alpha):
    beside = x @ W.T + 3.0 * (x @ A.T) @ B.T
    return x @ (W + lora_update(B, A, alpha=alpha)).T, beside


@chapter.check(
    "lora_stacked",
    "Both pairs twice, side by side: twice the rank at one alpha, the same update.",
    draw=thin_matrices,
)
def _(B, A, W, x, alpha):
    twice = lora_update(np.hstack([B, B]), np.vstack([A, A]), alpha=alpha)
    return twice, lora_update(B, A, alpha=alpha)


@chapter.check(
    "lora_large_count",
    "On 1000 by 1000 at rank 8, two thin matrices hold 16000 numbers.",
    draw=nothing,
    kind="exact",
)
def _():
    B, A = np.zeros((1000, 8)), np.zeros((8, 1000))
    return lora_parameters(1000, 1000, 8), B.size + A.size


@chapter.check(
    "lora_small_count_saves_nothing",
    "On 2 by 2 at rank 1 they hold as many as the matrix itself.",
    draw=nothing,
    kind="exact",
)
def _():
    return lora_parameters(2, 2, 1), np.zeros((2, 2)).size


@chapter.check(
    "lora_one_budget",
    "Rank 8 on one matrix of each of 96 layers, 4 on two, 2 on four: one count.",
    draw=nothing,
    kind="exact",
)
def _():
    # 12288 wide, so 96 * 8 * (12288 + 12288) = 18874368, the 18 million of the paper.
    got = [
        lora_parameters(12288, 12288, r, matrices=96 * n)
        for r, n in ((8, 1), (4, 2), (2, 4))
    ]
    return got, [18874368] * 3


# ---- What must hold: memory -------------------------------------------------------


@chapter.check(
    "zero_state_accounting",
    "Each stage deals out one part more; what is dealt out adds up to one copy.",
    draw=a_model,
)
def _(params, devices, sizes):
    got, want = [], []
    for stage in range(4):
        each = zero_bytes_per_device(
            params,
            devices=devices,
            stage=stage,
            weight_bytes=sizes[0],
            gradient_bytes=sizes[1],
            optimizer_bytes=sizes[2],
        )
        copies = [1 if stage >= first else devices for first in (3, 2, 1)]
        got.append(each * devices)
        want.append(sum(params * s * c for s, c in zip(sizes, copies, strict=True)))
    return np.array(got), np.array(want, float)


@chapter.check(
    "zero_published",
    "7.5 billion parameters on 64 devices: 120, 31.4, 16.6 and 1.9 billion bytes.",
    draw=nothing,
    kind="value",
)
def _():
    # 2 + 2 + 12 bytes a parameter; a stage divides 12, then 2, then 2 of them by 64.
    shares = [Fraction(16), 4 + Fraction(12, 64), 2 + Fraction(14, 64), Fraction(1, 4)]
    want = np.array([float(Fraction(15, 2) * share) for share in shares])
    got = [
        zero_bytes_per_device(7_500_000_000, devices=64, stage=stage)
        for stage in range(4)
    ]
    return np.array(got) / 1e9, want


@chapter.check(
    "zero_on_one_device",
    "On one device no stage saves anything.",
    draw=a_model,
)
def _(params, devices, sizes):
    got = [zero_bytes_per_device(params, devices=1, stage=s) for s in range(4)]
    return np.array(got), np.full(4, 16.0 * params)


def _one_weight(*, lr):
    w = np.array([1.0])
    y = linear([2.0], [w])
    return sgd_step(w, 2 * squared_error_gradient(y, [6.0]), lr=lr)


def _loss_of(w):
    return squared_error(linear([2.0], [w]), [6.0])


def _run(w, gradients, **options):
    m = v = np.zeros_like(w)
    for t, gradient in enumerate(gradients, 1):
        done = adamw_step(w, gradient, m, v, t, **options)
        w, m, v = done.w, done.m, done.v
    return done


def _sums(gradients, counts):
    ends = np.cumsum(counts)[:-1]
    return [part.sum(axis=0) for part in np.split(gradients, ends)]


# ---- How it breaks ----------------------------------------------------------------


@chapter.fault(
    "sgd_goes_uphill",
    "the gradient is added",
    operation="sgd_step",
    story="One sign, where one library maximises and the other minimises.",
    made_for="sgd_to_the_minimum",
    stays_green="sgd_large_step_loses",
)
def _(w, gradient, *, lr):
    return w + lr * gradient


@chapter.fault(
    "sgd_clips_in_silence",
    "the gradient is cut to length one before the step",
    operation="sgd_step",
    story="A default of a trainer; a rate that is too large then looks safe.",
    made_for="sgd_large_step_loses",
    stays_green="sgd_lowers_cross_entropy",
)
def _(w, gradient, *, lr):
    length = float(np.sqrt((gradient**2).sum()))
    return w - lr * gradient / max(length, 1.0)


def _adamw(  # the reference with its formulas as options
    w,
    gradient,
    m,
    v,
    step,
    *,
    lr=1e-3,
    beta1=0.9,
    beta2=0.999,
    eps=1e-8,
    weight_decay=0.01,
    l2=False,
    unbiased=True,
    decay_last=False,
    eps_inside=False,
    by_rate=True,
):
    if l2:
        gradient, weight_decay = gradient + weight_decay * w, 0.0
    m = beta1 * m + (1 - beta1) * gradient
    v = beta2 * v + (1 - beta2) * gradient**2
    m_hat = m / (1 - beta1**step) if unbiased else m
    v_hat = v / (1 - beta2**step) if unbiased else v
    root = np.sqrt(v_hat + eps) if eps_inside else np.sqrt(v_hat) + eps
    share = 1 - (lr if by_rate else 1.0) * weight_decay
    moved = lr * m_hat / root
    new = (w - moved) * share if decay_last else w * share - moved
    return AdamWStep(new, m, v, m_hat, v_hat, w * share)


@chapter.fault(
    "adamw_l2_in_the_gradient",
    "decay is added to the gradient and goes through both means",
    operation="adamw_step",
    story="Adam with L2, which AdamW was written to replace; both are called decay.",
    made_for="adamw_decay_stands_beside",
    stays_green="adamw_first_step_is_the_sign",
)
def _(w, gradient, m, v, step, **options):
    return _adamw(w, gradient, m, v, step, l2=True, **options)


@chapter.fault(
    "adamw_without_bias_correction",
    "the means are used with their zero start in them",
    operation="adamw_step",
    story="Some optimizers leave it out on purpose; the first steps are far too long.",
    made_for="adamw_first_step_is_the_sign",
    stays_green="adamw_zero_gradient_decays",
)
def _(w, gradient, m, v, step, **options):
    return _adamw(w, gradient, m, v, step, unbiased=False, **options)


@chapter.fault(
    "adamw_decays_the_new_weight",
    "decay comes after the step and takes from it too",
    operation="adamw_step",
    story="Two lines exchanged; the difference is of second order.",
    made_for="adamw_closed_form",
    stays_green="adamw_zero_gradient_decays",
)
def _(w, gradient, m, v, step, **options):
    return _adamw(w, gradient, m, v, step, decay_last=True, **options)


@chapter.fault(
    "adamw_eps_under_the_root",
    "eps is added before the root is taken",
    operation="adamw_step",
    story="Two families of optimizers differ here; ordinary gradients cannot tell.",
    made_for="adamw_eps_outside_the_root",
    stays_green="adamw_forgets_scale",
)
def _(w, gradient, m, v, step, **options):
    return _adamw(w, gradient, m, v, step, eps_inside=True, **options)


@chapter.fault(
    "adamw_decay_without_rate",
    "the decay is not multiplied by the learning rate",
    operation="adamw_step",
    story="As the schedule of the paper reads; weights then vanish in a few steps.",
    made_for="adamw_zero_gradient_decays",
    stays_green="adamw_forgets_scale",
)
def _(w, gradient, m, v, step, **options):
    return _adamw(w, gradient, m, v, step, by_rate=False, **options)


@chapter.fault(
    "adamw_adds_raw_gradient",
    "the gradient itself is used where its mean is meant",
    operation="adamw_step",
    story="RMSprop under another name; on the first step the two agree.",
    made_for="adamw_forgets_scale",
    stays_green="adamw_zero_gradient_decays",
)
def _(w, gradient, m, v, step, **options):
    done = adamw_step(w, gradient, m, v, step, **options)
    lr = options.get("lr", 1e-3)
    return done._replace(w=done.decayed - lr * gradient)


@chapter.fault(
    "adamw_counts_from_zero",
    "steps are counted from zero",
    operation="adamw_step",
    story="A loop that starts at 0, and an optimizer that forgives it by adding one.",
    made_for="adamw_refuses_step_zero",
    stays_green="adamw_zero_gradient_decays",
    unguarded=True,
)
def _(w, gradient, m, v, step, **options):
    w, gradient, m, v = (np.asarray(x, float) for x in (w, gradient, m, v))
    return _adamw(w, gradient, m, v, step + 1, **options)


@chapter.fault(
    "accumulate_mean_of_means",
    "the means of the micro-batches are averaged",
    operation="accumulate_gradients",
    story=(
        "Reported against several trainers in one autumn: the last, short micro-batch "
        "counts as much as a full one."
    ),
    made_for="accumulate_any_partition",
    stays_green="accumulate_equal_batches",
)
def _(gradients, counts):
    means = [g / max(n, 1) for g, n in zip(gradients, counts, strict=True)]
    return sum(means) / len(counts)


@chapter.fault(
    "accumulate_divides_by_micro_batches",
    "the sums are divided by the number of micro-batches",
    operation="accumulate_gradients",
    story="Right for losses that are means already.",
    made_for="accumulate_equal_batches",
    stays_green="accumulate_worked",
)
def _(gradients, counts):
    return sum(gradients) / len(counts)


@chapter.fault(
    "accumulate_never_divides",
    "the gradients of the micro-batches are added and left so",
    operation="accumulate_gradients",
    story="backward() adds by itself, and nobody divides.",
    made_for="accumulate_worked",
    stays_green="accumulate_is_no_mean_of_means",
)
def _(gradients, counts):
    return sum(gradients) + 0.0


@chapter.fault(
    "lora_transposed",
    "the factors are multiplied in the other order, each transposed",
    operation="lora_update",
    story="One checkpoint stores (r, in) and the other (in, r).",
    made_for="lora_rank_one",
    stays_green="lora_stacked",
)
def _(B, A, *, alpha=None):
    return lora_update(B, A, alpha=alpha).swapaxes(-1, -2)


@chapter.fault(
    "lora_alpha_without_rank",
    "alpha is not divided by the rank",
    operation="lora_update",
    story="Reported against four ports; at rank 1 there is nothing to divide.",
    made_for="lora_stacked",
    stays_green="lora_rank_one",
)
def _(B, A, *, alpha=None):
    return (B @ A) * (A.shape[-2] if alpha is None else alpha)


@chapter.fault(
    "lora_alpha_over_root_of_rank",
    "alpha is divided by the root of the rank",
    operation="lora_update",
    story="A later proposal under another name, switched on by a flag of one library.",
    made_for="lora_merged",
    stays_green="lora_rank_one",
)
def _(B, A, *, alpha=None):
    rank = A.shape[-2]
    return (B @ A) * (rank if alpha is None else alpha) / np.sqrt(rank)


@chapter.fault(
    "lora_counts_one_factor",
    "only one of the two thin matrices is counted",
    operation="lora_parameters",
    story="Half the number; at 2 by 2 the saving then looks real.",
    made_for="lora_small_count_saves_nothing",
    stays_green="lora_rank_one",
)
def _(d_in, d_out, rank, *, matrices=1):
    return matrices * rank * d_in


@chapter.fault(
    "lora_counts_the_product",
    "the sides are multiplied instead of added",
    operation="lora_parameters",
    story="The count of the update, not of what is trained; 2 * 2 is 2 + 2.",
    made_for="lora_large_count",
    stays_green="lora_small_count_saves_nothing",
)
def _(d_in, d_out, rank, *, matrices=1):
    return matrices * rank * d_in * d_out


@chapter.fault(
    "lora_counts_one_matrix",
    "one adapted matrix is counted, however many there are",
    operation="lora_parameters",
    story="The count of a layer reported as that of the model.",
    made_for="lora_one_budget",
    stays_green="lora_large_count",
)
def _(d_in, d_out, rank, *, matrices=1):
    return rank * (d_in + d_out)


def _zero(params, devices, shares, sizes):
    return float(sum(params * s / n for s, n in zip(sizes, shares, strict=True)))


@chapter.fault(
    "zero_stage_two_keeps_gradients",
    "the stage that deals out gradients leaves them whole",
    operation="zero_bytes_per_device",
    story="Reported against the library itself: the second stage saved nothing.",
    made_for="zero_state_accounting",
    stays_green="zero_on_one_device",
)
def _(
    params,
    *,
    devices,
    stage,
    weight_bytes=2.0,
    gradient_bytes=2.0,
    optimizer_bytes=12.0,
):
    shares = [devices if stage >= s else 1 for s in (3, 3, 1)]
    sizes = (weight_bytes, gradient_bytes, optimizer_bytes)
    return _zero(params, devices, shares, sizes)


@chapter.fault(
    "zero_stage_three_keeps_weights",
    "stage 3 leaves the weights whole",
    operation="zero_bytes_per_device",
    story="The sum of the first two stages, taken for all three.",
    made_for="zero_published",
    stays_green="zero_on_one_device",
)
def _(
    params,
    *,
    devices,
    stage,
    weight_bytes=2.0,
    gradient_bytes=2.0,
    optimizer_bytes=12.0,
):
    shares = [devices if stage >= s else 1 for s in (4, 2, 1)]
    sizes = (weight_bytes, gradient_bytes, optimizer_bytes)
    return _zero(params, devices, shares, sizes)


@chapter.fault(
    "zero_forgets_master_weights",
    "the float32 weights of the optimizer are not counted",
    operation="zero_bytes_per_device",
    story="Mean and square are remembered, the third copy of the weights is not.",
    made_for="zero_on_one_device",
    stays_green="zero_state_accounting",
)
def _(
    params,
    *,
    devices,
    stage,
    weight_bytes=2.0,
    gradient_bytes=2.0,
    optimizer_bytes=8.0,
):
    shares = [devices if stage >= s else 1 for s in (3, 2, 1)]
    sizes = (weight_bytes, gradient_bytes, optimizer_bytes)
    return _zero(params, devices, shares, sizes)
