"""Laplacian attention: what must hold, and how it breaks."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from ..counting import counted
from ..ops import _op
from ..ops.attention import attention_weights
from ..ops.gradients import finite_difference
from ..ops.laplacian import (
    LaplacianGradients,
    LaplacianRead,
    laplacian_attention,
    laplacian_distances,
    laplacian_gradients,
    median_sigma,
    operation_counts,
)
from ..ops.softmax import entropy, softmax, temperature_softmax
from ._check import Chapter, Inputs, Rng, nothing

PART = "Laplacian attention"
ratio = Chapter("ratio-and-transition", "Ratio and transition", PART)
dial = Chapter("sigma-and-entropy", "Sigma, temperature and entropy", PART)
cost = Chapter("retrieval-and-cost", "Retrieval and cost", PART)


# ---- What is drawn ----------------------------------------------------------------


def a_batch(rng: Rng, size: int) -> Inputs:
    """Two sets of queries, keys and values; all axes differ, sigma is not 1."""
    n, m, c = size + 1, size + 3, size + 2
    return {
        "q": rng.normal(size=(2, n, c)),
        "k": rng.normal(size=(2, m, c)),
        "v": rng.normal(size=(2, m, size + 4)),
        "sigma": float(rng.uniform(1.5, 3.0)),
    }


def a_row(rng: Rng, size: int) -> Inputs:
    """One query, and keys in a line behind it, the farthest first.

    The query points along the line, so that its dot product with a key grows with the
    distance: a dot product in place of the distance turns every order round.
    """
    c = size + 1
    steps = rng.uniform(0.1, 1.0, size=size + 3).cumsum()[::-1]
    direction = rng.dirichlet(np.ones(c)) * rng.choice([-1.0, 1.0], size=c)
    q = direction / (direction @ direction)
    return {
        "q": q[None],
        "k": q + steps[:, None] * direction,
        "sigma": float(rng.uniform(0.5, 0.8)),
    }


def matches_among_others(rng: Rng, size: int) -> Inputs:
    """Every query has an exact copy among the keys; rows of all kinds of length."""
    q = rng.uniform(0.1, 1.0, size=(size + 4, size + 2))
    return {"q": q, "order": rng.permutation(len(q)), "sigma": 0.35}


def rival_neighbours(rng: Rng, size: int) -> Inputs:
    """Three keys: one wins by dot product, one in L2 and by maximum, the last in L1."""
    c = size + 2
    q = rng.uniform(0.5, 1.0, size=(1, c))
    across = 0.8 * np.ones(c)  # 2.4 or more away in L1
    along = np.where(np.arange(c) == 0, 2.2, 0.0)  # 2.2 away in every norm
    return {"q": q, "k": np.concatenate([q + 5.0, q + across, q - along])}


def tied_nearest(rng: Rng, size: int) -> Inputs:
    """The nearest keys tie in L1 and in no other norm; the others are 0.5 apart."""
    ties, others = size + 1, size + 2
    d = np.concatenate([np.ones(ties), 1 + rng.uniform(0.5, 1.0, size=others).cumsum()])
    share = rng.permutation(np.linspace(0.02, 0.48, len(d)))
    signs = rng.choice([-1.0, 1.0], size=(len(d), 2))
    q = rng.normal(size=(1, 2))
    return {"q": q, "k": q + signs * np.stack([share * d, (1 - share) * d], -1)}


def _weights(q: Any, k: Any, sigma: Any) -> Any:
    return laplacian_attention(q, k, np.zeros((len(k), 1)), sigma).weights


# ---- Ratio and transition: what must hold -----------------------------------------


@ratio.check(
    "laplacian_ratio",
    (
        "The ratio of two weights is the exponential of the distance difference over "
        "sigma."
    ),
    draw=a_row,
)
def _(q, k, sigma):
    w = _weights(q, k, sigma)
    d = np.array([[sum(abs(a - b) for a, b in zip(q[0], x, strict=True)) for x in k]])
    return np.log(w[:, 1:] / w[:, :1]), -(d[:, 1:] - d[:, :1]) / sigma


@ratio.check(
    "laplacian_ratio_ignores_others",
    "The ratio of two weights is the same with other keys and without them.",
    draw=a_row,
)
def _(q, k, sigma):
    among_others, alone = _weights(q, k, sigma)[0], _weights(q, k[1:3], sigma)[0]
    return among_others[2] / among_others[1], alone[1] / alone[0]


@ratio.check(
    "laplacian_two_keys",
    "With two keys, the nearer one's weight is the logistic of the difference.",
    draw=a_batch,
)
def _(q, k, v, sigma):
    differences = np.linspace(-3, 3, 13)
    near = []
    for difference in differences:
        keys = np.array([[4.0, 0.0], [0.5, 3.5 + difference]])
        near.append(_weights(np.zeros((1, 2)), keys, sigma)[0, 0])
    return np.array(near), 1 / (1 + np.exp(-differences / sigma))


@ratio.check(
    "laplacian_equal_distance",
    "Equal L1 distance gives equal weight: one half each.",
    draw=nothing,
    kind="value",
)
def _():
    # |3| + |0| = |1| + |-2| = 3; the lengths in L2 are 3 and sqrt(5).
    w = _weights(np.zeros((1, 2)), np.array([[3.0, 0.0], [1.0, -2.0]]), 0.7)
    return w, np.array([[0.5, 0.5]])


@ratio.check(
    "laplacian_equal_l2_differs",
    "Equal L2 distance does not: a key along an axis is nearer than one across.",
    draw=nothing,
    kind="differs",
)
def _():
    # (5, 0) and (3, 4) are both 5 away in L2, but 5 and 7 away in L1.
    w = _weights(np.zeros((1, 2)), np.array([[5.0, 0.0], [3.0, 4.0]]), 2.0)
    return w[:, 0], w[:, 1]


@ratio.check(
    "laplacian_weights_are_a_distribution",
    "Weights are not negative and sum to one.",
    draw=a_batch,
)
def _(q, k, v, sigma):
    w = laplacian_attention(q, k, v, sigma).weights
    ones = np.ones(w.shape[:-1])
    return (w.sum(axis=-1), np.abs(w).sum(axis=-1)), (ones, ones)


@ratio.check(
    "laplacian_translation",
    "Moving queries and keys together changes nothing.",
    draw=a_batch,
)
def _(q, k, v, sigma):
    shift = np.linspace(-4.0, 7.5, q.shape[-1])
    return (
        laplacian_attention(q + shift, k + shift, v, sigma),
        laplacian_attention(q, k, v, sigma),
    )


@ratio.check(
    "laplacian_self_match",
    "An exact copy of the query always has the largest weight.",
    draw=matches_among_others,
    kind="order",
)
def _(q, order, sigma):
    w = _weights(q, q[order], sigma)
    copy = np.argsort(order)
    others = w.copy()
    others[np.arange(len(q)), copy] = 0.0
    return w[np.arange(len(q)), copy], others.max(axis=-1)


@ratio.check(
    "laplacian_full_broadcast",
    "Channel by channel gives what one array of all differences gives.",
    draw=a_batch,
)
def _(q, k, v, sigma):
    d = np.abs(q[:, :, None, :] - k[:, None, :, :]).sum(axis=-1)
    e = np.exp(-d / sigma)
    w = e / e.sum(axis=-1, keepdims=True)
    return laplacian_attention(q, k, v, sigma), LaplacianRead(w @ v, w, d)


@ratio.check(
    "laplacian_worked",
    "Distances 1, 2, 3 at sigma 1: weights fall by a factor e.",
    draw=nothing,
    kind="value",
)
def _():
    # 1 / (1 + e^-1 + e^-2), times 1, e^-1, e^-2, at 50 digits.
    k = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 3.0]])
    want = [[0.6652409557748219, 0.24472847105479764, 0.09003057317038046]]
    return _weights(np.zeros((1, 2)), k, 1.0), np.array(want)


@ratio.check(
    "laplacian_gradients_by_differences",
    "Gradients at q, k, v and sigma agree with finite differences away from kinks.",
    draw=a_batch,
)
def _(q, k, v, sigma):
    q, k, v = q[:1, :2], k[:1, :4], v[:1, :4, :5]
    grad = np.cos(np.arange(q.shape[0] * q.shape[1] * v.shape[2])).reshape(
        q.shape[0], q.shape[1], v.shape[2]
    )

    def loss(**changed: Any) -> Any:
        given = {"q": q, "k": k, "v": v, "sigma": sigma, **changed}
        return (laplacian_attention(**given).output * grad).sum()

    want = [
        finite_difference(lambda x: loss(q=x), q),
        finite_difference(lambda x: loss(k=x), k),
        finite_difference(lambda x: loss(v=x), v),
        finite_difference(lambda x: loss(sigma=float(x[0])), np.array([sigma]))[0],
    ]
    return list(laplacian_gradients(q, k, v, sigma, grad)), want


def _gradients(q: Any, k: Any, v: Any, sigma: float) -> Any:
    grad = np.sin(1 + np.arange(q[..., :1].size * v.shape[-1]))
    return laplacian_gradients(q, k, v, sigma, grad.reshape(*q.shape[:-1], -1))


@ratio.check(
    "laplacian_gradients_balance",
    "Moving q and k together changes nothing: their gradients sum to zero.",
    draw=a_batch,
)
def _(q, k, v, sigma):
    found = _gradients(q, k, v, sigma)
    return found.q.sum(axis=-2), -found.k.sum(axis=-2)


@ratio.check(
    "laplacian_gradients_scale",
    "Scaling q, k and sigma together changes nothing: so do their gradients.",
    draw=a_batch,
)
def _(q, k, v, sigma):
    # The derivative of the loss along (q, k, sigma), by Euler's rule.
    found = _gradients(q, k, v, sigma)
    return (q * found.q).sum() + (k * found.k).sum(), -sigma * found.sigma


@ratio.check(
    "laplacian_gradient_at_the_kink",
    "Where an entry of q meets one of k, the gradient is the mean of both slopes.",
    draw=nothing,
    kind="value",
)
def _():
    # q = 0, keys 0 and 1, values 1 and 0, sigma 1. Output s = 1/(1 + e^(d0 - d1)),
    # with slope -s(1-s)(d0' - d1') where d1' = -1: right of the kink d0' = 1 and the
    # slope is -2s(1-s); left d0' = -1 and it is 0. The mean is -s(1-s).
    s = 0.7310585786300049
    got = laplacian_gradients([[0.0]], [[0.0], [1.0]], [[1.0], [0.0]], 1.0, [[1.0]])
    slope = s * (1 - s)
    # Moving the key at 0, the two slopes of d0 are 1 and -1: their mean is 0. Moving
    # the key at 1, there is no kink: d1' = 1, and the slope is -s(1-s)(0 - 1).
    return (got.q, got.k), (np.array([[-slope]]), np.array([[0.0], [slope]]))


@ratio.check(
    "laplacian_refuses_sigma_zero",
    "Sigma must be positive.",
    draw=nothing,
    kind="refuses",
)
def _():
    return lambda: laplacian_attention([[0.0]], [[1.0]], [[1.0]], 0.0), "sigma"


# ---- Sigma, temperature and entropy: what must hold --------------------------------


@dial.check(
    "sigma_is_temperature",
    "Sigma is the temperature of a softmax over minus the distances.",
    draw=a_row,
)
def _(q, k, sigma):
    d = np.abs(q - k).sum(axis=-1)[None]
    return _weights(q, k, sigma), temperature_softmax(-d, sigma)


@dial.check(
    "entropy_rises_with_sigma",
    "A larger sigma is less decided, strictly, where the distances differ.",
    draw=a_row,
    kind="order",
)
def _(q, k, sigma):
    ladder = [entropy(_weights(q, k, s)) for s in (0.25, 0.5, 1.0, 2.0, 4.0)]
    return np.stack(ladder[1:]), np.stack(ladder[:-1])


@dial.check(
    "entropy_slope",
    "The slope of entropy in sigma is the variance of the distance over sigma cubed.",
    draw=a_row,
)
def _(q, k, sigma):
    # A step into the complex plane gives a derivative without a difference.
    h = 1e-30
    slope = np.imag(entropy(_weights(q, k, complex(sigma, h)))) / h
    d = np.abs(q - k).sum(axis=-1)[None]
    e = np.exp(-d / sigma)
    p = e / e.sum(axis=-1, keepdims=True)
    mean = (p * d).sum(axis=-1, keepdims=True)
    return slope, (p * (d - mean) ** 2).sum(axis=-1) / sigma**3


@dial.check(
    "entropy_limits",
    "From log m for m tied nearest keys to log N for all N.",
    draw=tied_nearest,
)
def _(q, k):
    # The nearest keys are 1 away, the others 0.5 farther or more: at sigma 1/500 they
    # weigh e^-250. At 1e9 the weights differ from 1/N by 1e-9, and the entropy by the
    # square of that.
    got = entropy(_weights(q, k, 0.002)), entropy(_weights(q, k, 1e9))
    tied = (len(k) - 1) // 2
    return got, (np.log([1.0 * tied]), np.log([1.0 * len(k)]))


@dial.check(
    "sigma_never_changes_the_order",
    "Sigma and scale change the weights, never their order.",
    draw=a_row,
    kind="exact",
)
def _(q, k, sigma):
    orders = [np.argsort(-_weights(q, k, s)[0]) for s in (0.3, sigma, 2.0, 9.0)]
    orders.append(np.argsort(-_weights(3 * q, 3 * k, sigma)[0]))
    nearest_first = np.argsort(np.abs(q - k).sum(axis=-1))
    return orders, [nearest_first] * 5


@dial.check(
    "scale_is_sigma",
    "Scaling queries, keys and sigma together changes no weight.",
    draw=a_row,
)
def _(q, k, sigma):
    return _weights(3.7 * q, 3.7 * k, 3.7 * sigma), _weights(q, k, sigma)


@dial.check(
    "median_affinity",
    "At the median distance the affinity is one half.",
    draw=a_row,
)
def _(q, k, sigma):
    middle = np.sort(np.abs(q - k).sum(axis=-1))
    n = len(middle)
    median = (middle[(n - 1) // 2] + middle[n // 2]) / 2
    return np.exp(-median / median_sigma(q, k)), np.float64(0.5)


@dial.check(
    "laplacian_entropy_underflow",
    "A weight that underflows to zero adds nothing to the entropy.",
    draw=nothing,
    kind="value",
)
def _():
    w = _weights(np.zeros((1, 1)), np.array([[0.0], [1000.0]]), 1.0)
    return (w, entropy(w)), (np.array([[1.0, 0.0]]), np.array([0.0]))


# ---- Retrieval and cost: what must hold ---------------------------------------------


def count_distances(q: Any, k: Any) -> Counter[str]:
    """The plain function of the distances, run on numbers that count."""
    return counted(_op.OPS["laplacian_distances"], q, k)


def count_dot_products(q: Any, k: Any) -> Counter[str]:
    """The scores of dot-product attention, run on numbers that count."""
    return counted(lambda a, b: a @ np.swapaxes(b, -1, -2), q, k)


@cost.check(
    "operation_counts_counted",
    "The counts are those of the functions, run on numbers that count.",
    draw=a_batch,
    kind="exact",
)
def _(q, k, v, sigma):
    lap, dot = count_distances(q, k), count_dot_products(q, k)
    got = operation_counts(q.shape[1], k.shape[1], q.shape[2], batch=q.shape[0])
    return list(got), [
        dot["multiplications"],
        dot["additions"],
        lap["multiplications"],
        lap["subtractions"],
        lap["absolute values"],
        lap["additions"],
    ]


@cost.check(
    "nearest_key_wins",
    "The largest weight is at the nearest key in L1, whatever the norms are.",
    draw=rival_neighbours,
    kind="exact",
)
def _(q, k):
    nearest = min(range(3), key=lambda j: sum(abs(q[0] - k[j])))
    return int(np.argmax(_weights(q, k, 0.9))), nearest


@cost.check(
    "noisy_match_can_lose",
    "A noisy copy of the query can be farther away than a stranger.",
    draw=nothing,
    kind="order",
)
def _():
    # The copy is 0.3 off in both channels, 0.6 away; the stranger is 0.1 away.
    w = _weights(np.array([[0.5, 0.5]]), np.array([[0.8, 0.8], [0.5, 0.4]]), 0.35)
    return w[:, 1], w[:, 0]


@cost.check(
    "dot_scale_never_changes_the_order",
    "The scale of a dot product changes the weights, never their order.",
    draw=a_row,
    kind="exact",
)
def _(q, k, sigma):
    k = k[::-1]
    orders = [np.argsort(-attention_weights(q, k, scale=s)[0]) for s in (0.1, 0.5, 1.0)]
    dots = [sum(a * b for a, b in zip(q[0], x, strict=True)) for x in k]
    largest_first = np.argsort([-dot for dot in dots])
    return orders, [largest_first] * 3


@cost.check(
    "unit_vectors_rank_as_distances",
    "On vectors of length one, the largest dot product is the smallest L2 distance.",
    draw=a_batch,
    kind="exact",
)
def _(q, k, v, sigma):
    q = q / np.linalg.norm(q, axis=-1, keepdims=True)
    k = k / np.linalg.norm(k, axis=-1, keepdims=True)
    weights = softmax(q @ np.swapaxes(k, -1, -2))
    squares = ((q[:, :, None, :] - k[:, None, :, :]) ** 2).sum(axis=-1)
    return np.argmax(weights, axis=-1), np.argmin(squares, axis=-1)


@dial.check(
    "median_sigma_floor",
    "Where most pairs coincide the width is 1e-4, not zero.",
    draw=nothing,
    kind="value",
)
def _():
    # Distances 0, 0, 3: the median is 0.
    return median_sigma([[1.0]], [[1.0], [1.0], [4.0]]), np.float64(1e-4)


@dial.check(
    "sigma_tiny",
    "At a width of 1e-308 the nearest key of each query takes all.",
    draw=nothing,
    kind="value",
)
def _():
    # 5 / 1e-308 is infinite; what lies beyond the nearest key, divided, is 0 there.
    ones = [[1.0], [2.0]]
    read = laplacian_attention([[0.0], [5.0]], [[1000.0], [1001.0]], ones, 1e-308)
    return read.weights, np.array([[1.0, 0.0], [1.0, 0.0]])


# ---- How it breaks ----------------------------------------------------------------


@ratio.fault(
    "laplacian_l2",
    "the distance is L2",
    operation="laplacian_distances",
    story=(
        "A library's default norm; many checks of a distance kernel hold for any norm."
    ),
    made_for="laplacian_equal_distance",
    stays_green="laplacian_translation",
)
def _(q, k):
    apart = q[..., :, None, :] - k[..., None, :, :]
    return np.sqrt((apart * apart).sum(axis=-1))


@ratio.fault(
    "laplacian_mean_distance",
    "the distance is averaged over the channels",
    operation="laplacian_distances",
    story="mean for sum: a rescaled sigma, so that every order and limit is right.",
    made_for="laplacian_worked",
    stays_green="sigma_never_changes_the_order",
)
def _(q, k):
    return laplacian_distances(q, k) / q.shape[-1]


@ratio.fault(
    "laplacian_max_distance",
    "the distance is the largest difference of a channel",
    operation="laplacian_distances",
    story="Chebyshev for Manhattan: one channel cannot tell.",
    made_for="laplacian_worked",
    stays_green="laplacian_translation",
)
def _(q, k):
    return np.abs(q[..., :, None, :] - k[..., None, :, :]).max(axis=-1)


@ratio.fault(
    "laplacian_dot",
    "minus the dot product stands for the distance",
    operation="laplacian_distances",
    story="What is left of a distance when the norms are thought to be constant.",
    made_for="laplacian_translation",
    stays_green="laplacian_weights_are_a_distribution",
)
def _(q, k):
    return -(q @ np.swapaxes(k, -1, -2))


@ratio.fault(
    "laplacian_times_sigma",
    "the distance is multiplied by sigma",
    operation="laplacian_attention",
    story=(
        "Bandwidth and its inverse under one name: gamma in one library, 1/sigma in "
        "another."
    ),
    made_for="entropy_rises_with_sigma",
    stays_green="laplacian_equal_distance",
)
def _(q, k, v, sigma):
    return laplacian_attention(q, k, v, 1 / sigma)


@ratio.fault(
    "laplacian_plus_sign",
    "the minus sign is missing: far keys win",
    operation="laplacian_attention",
    story="A distance fed to code that expects a similarity.",
    made_for="laplacian_self_match",
    stays_green="laplacian_weights_are_a_distribution",
)
def _(q, k, v, sigma):
    d = laplacian_distances(q, k)
    w = softmax(d / sigma)
    return LaplacianRead(w @ v, w, d)


@ratio.fault(
    "laplacian_not_normalised",
    "affinities are used as weights",
    operation="laplacian_attention",
    story="A kernel regression without its denominator: ratios are right.",
    made_for="laplacian_weights_are_a_distribution",
    stays_green="laplacian_ratio",
)
def _(q, k, v, sigma):
    d = laplacian_distances(q, k)
    w = np.exp(-d / sigma)
    return LaplacianRead(w @ v, w, d)


@ratio.fault(
    "laplacian_over_the_queries",
    "the softmax runs over the queries",
    operation="laplacian_attention",
    story="The other axis: one query hides it only when there is one key as well.",
    made_for="laplacian_full_broadcast",
    stays_green="laplacian_translation",
)
def _(q, k, v, sigma):
    d = laplacian_distances(q, k)
    w = softmax(-d / sigma, axis=-2)
    return LaplacianRead(w @ v, w, d)


@ratio.fault(
    "laplacian_gaussian",
    "the distance is squared",
    operation="laplacian_attention",
    story="The Gaussian kernel: the same order of keys, other ratios.",
    made_for="laplacian_ratio",
    stays_green="sigma_never_changes_the_order",
)
def _(q, k, v, sigma):
    d = laplacian_distances(q, k)
    w = softmax(-(d * d) / sigma)
    return LaplacianRead(w @ v, w, d)


@ratio.fault(
    "laplacian_relative_sigma",
    "sigma is measured in mean distances of the row",
    operation="laplacian_attention",
    story=(
        "A width that tunes itself: now every weight depends on how far the others are."
    ),
    made_for="laplacian_ratio_ignores_others",
    stays_green="laplacian_translation",
)
def _(q, k, v, sigma):
    d = laplacian_distances(q, k)
    w = softmax(-d / (sigma * d.mean(axis=-1, keepdims=True)))
    return LaplacianRead(w @ v, w, d)


@ratio.fault(
    "laplacian_any_sigma",
    "sigma zero is replaced by a small number",
    operation="laplacian_attention",
    story="An epsilon that turns a mistake into a plausible answer.",
    made_for="laplacian_refuses_sigma_zero",
    stays_green="laplacian_ratio",
    unguarded=True,
)
def _(q, k, v, sigma):
    return laplacian_attention(q, k, v, np.maximum(sigma, 1e-6))


@ratio.fault(
    "laplacian_gradient_without_row_sum",
    "the row sum in the gradient of softmax is left out",
    operation="laplacian_gradients",
    story="Each weight differentiated as if its denominator were constant.",
    made_for="laplacian_gradients_by_differences",
    stays_green="laplacian_gradients_balance",
)
def _(q, k, v, sigma, grad):
    read = laplacian_attention(q, k, v, sigma)
    dz = read.weights * (grad @ np.swapaxes(v, -1, -2))
    sign = np.sign(q[..., :, None, :] - k[..., None, :, :])
    return LaplacianGradients(
        -(dz[..., None] * sign).sum(axis=-2) / sigma,
        (dz[..., None] * sign).sum(axis=-3) / sigma,
        laplacian_gradients(q, k, v, sigma, grad).v,
        (dz * read.distances).sum() / sigma**2,
    )


@ratio.fault(
    "laplacian_gradient_key_sign",
    "the gradient at the keys has the sign of the one at the queries",
    operation="laplacian_gradients",
    story="The second half of a derivative copied from the first.",
    made_for="laplacian_gradients_balance",
    stays_green="laplacian_translation",
)
def _(q, k, v, sigma, grad):
    good = laplacian_gradients(q, k, v, sigma, grad)
    return good._replace(k=-good.k)


@ratio.fault(
    "laplacian_gradient_sigma_once",
    "the gradient at sigma is divided by sigma once",
    operation="laplacian_gradients",
    story="The derivative of 1/sigma as that of log sigma: at sigma 1 nobody can tell.",
    made_for="laplacian_gradients_scale",
    stays_green="laplacian_gradients_balance",
)
def _(q, k, v, sigma, grad):
    good = laplacian_gradients(q, k, v, sigma, grad)
    return good._replace(sigma=sigma * good.sigma)


@ratio.fault(
    "laplacian_gradient_one_sided",
    "at the kink the slope of one side is taken",
    operation="laplacian_gradients",
    story="q >= k for the sign: right wherever nothing meets, wrong for exact matches.",
    made_for="laplacian_gradient_at_the_kink",
    stays_green="laplacian_gradients_by_differences",
)
def _(q, k, v, sigma, grad):
    good = laplacian_gradients(q, k, v, sigma, grad)
    p = laplacian_attention(q, k, v, sigma).weights
    dp = grad @ np.swapaxes(v, -1, -2)
    dz = p * (dp - (p * dp).sum(axis=-1, keepdims=True))
    side = np.where(q[..., :, None, :] >= k[..., None, :, :], 1.0, -1.0)
    return good._replace(
        q=-(dz[..., None] * side).sum(axis=-2) / sigma,
        k=(dz[..., None] * side).sum(axis=-3) / sigma,
    )


@dial.fault(
    "laplacian_sigma_squared",
    "the distance is divided by sigma squared",
    operation="laplacian_attention",
    story="A variance where a width is meant: at sigma 1 nobody can tell.",
    made_for="sigma_is_temperature",
    stays_green="laplacian_worked",
)
def _(q, k, v, sigma):
    return laplacian_attention(q, k, v, sigma**2)


@dial.fault(
    "median_without_log",
    "sigma is the median distance",
    operation="median_sigma",
    story="The half-life and the width differ by log 2.",
    made_for="median_affinity",
    stays_green="sigma_is_temperature",
)
def _(q, k):
    return median_sigma(q, k) * np.log(2.0)


@dial.fault(
    "entropy_with_epsilon_outside",
    "p log p is not guarded where p vanishes",
    operation="entropy",
    story="0 log 0 is NaN in floating point; an epsilon hides it and biases the rest.",
    made_for="laplacian_entropy_underflow",
    stays_green="entropy_rises_with_sigma",
)
def _(p):
    return 0.0 - (p * np.log(p)).sum(axis=-1)


@cost.fault(
    "counts_forget_the_batch",
    "the counts are those of one sequence",
    operation="operation_counts",
    story="A cost model per sequence, used for a batch.",
    made_for="operation_counts_counted",
    stays_green="nearest_key_wins",
)
def _(n_queries, n_keys, channels, *, batch=1):
    return operation_counts(n_queries, n_keys, channels)


@cost.fault(
    "counts_one_addition_too_many",
    "a sum of c terms is counted as c additions",
    operation="operation_counts",
    story="An accumulator that starts at zero: right for a loop, wrong for a sum.",
    made_for="operation_counts_counted",
    stays_green="nearest_key_wins",
)
def _(n_queries, n_keys, channels, *, batch=1):
    counts = operation_counts(n_queries, n_keys, channels, batch=batch)
    entries = counts.dot_multiplications
    return counts._replace(dot_additions=entries, laplacian_additions=entries)


@cost.fault(
    "counts_absolute_values_free",
    "absolute values are not counted",
    operation="operation_counts",
    story="Only clearing a bit, and still an instruction for every entry.",
    made_for="operation_counts_counted",
    stays_green="nearest_key_wins",
)
def _(n_queries, n_keys, channels, *, batch=1):
    counts = operation_counts(n_queries, n_keys, channels, batch=batch)
    return counts._replace(laplacian_absolute_values=0)


@cost.fault(
    "laplacian_unit_length_first",
    "queries and keys are given unit length before the distance",
    operation="laplacian_distances",
    story="The cure of the dot product, applied to a distance: the lengths are lost.",
    made_for="nearest_key_wins",
    stays_green="laplacian_self_match",
)
def _(q, k):
    q = q / np.maximum(np.linalg.norm(q, axis=-1, keepdims=True), 1e-12)
    k = k / np.maximum(np.linalg.norm(k, axis=-1, keepdims=True), 1e-12)
    return np.abs(q[..., :, None, :] - k[..., None, :, :]).sum(axis=-1)


@cost.fault(
    "softmax_reversed",
    "the smallest score gets the largest weight",
    operation="softmax",
    story="Weights of a cost instead of a score: they still sum to one.",
    made_for="unit_vectors_rank_as_distances",
    stays_green="laplacian_equal_distance",
)
def _(x, axis=-1):
    return softmax(-x, axis)


@dial.fault(
    "median_without_floor",
    "the width may be zero",
    operation="median_sigma",
    story="Duplicates in the data: a width of zero, and a division by it later.",
    made_for="median_sigma_floor",
    stays_green="median_affinity",
)
def _(q, k):
    return np.median(laplacian_distances(q, k)) / np.log(2.0)


@dial.fault(
    "sigma_divides_first",
    "distances are divided before the smallest is subtracted",
    operation="laplacian_attention",
    story="A width of nearly zero, meant as nearest neighbour, makes infinities.",
    made_for="sigma_tiny",
    stays_green="median_affinity",
)
def _(q, k, v, sigma):
    distances = laplacian_distances(q, k)
    weights = softmax(-distances / sigma)
    return LaplacianRead(weights @ v, weights, distances)
