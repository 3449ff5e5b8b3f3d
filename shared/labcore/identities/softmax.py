"""Softmax, temperature and entropy: what must hold, and how it breaks."""

from __future__ import annotations

import numpy as np

from ..ops.softmax import (
    entropy,
    log_softmax,
    logsumexp,
    softmax,
    temperature_softmax,
)
from ._check import Inputs, Rng, nothing
from .online import chapter  # softmax is told where its pieces are merged

# ---- What is drawn ----------------------------------------------------------------


def rows_of_scores(rng: Rng, size: int) -> Inputs:
    """Two rows of size + 2 scores, distinct by at least a tenth."""
    n = size + 2
    steps = rng.uniform(0.1, 1.0, size=(2, n)).cumsum(axis=-1)
    return {"x": rng.permuted(steps, axis=-1)}


# ---- What must hold ---------------------------------------------------------------


@chapter.check(
    "softmax_near_1000",
    "Scores near 1000 give the weights of the same scores near 0.",
    draw=rows_of_scores,
)
def _(x):
    small = np.exp(x)
    return softmax(x + 1000.0), small / small.sum(axis=-1, keepdims=True)


@chapter.check(
    "softmax_log_odds",
    "The log of a ratio of weights is the difference of the scores.",
    draw=rows_of_scores,
)
def _(x):
    p = softmax(x)
    return np.log(p[:, 1:] / p[:, :1]), x[:, 1:] - x[:, :1]


@chapter.check(
    "softmax_sums_to_one",
    "Weights sum to one.",
    draw=rows_of_scores,
)
def _(x):
    return softmax(x).sum(axis=-1), np.ones(len(x))


@chapter.check(
    "logsumexp_of_parts",
    "The log-sum-exp of a whole is that of its parts; nothing adds nothing.",
    draw=rows_of_scores,
)
def _(x):
    parts = np.stack(
        [logsumexp(x[:, :1]), logsumexp(x[:, 1:1]), logsumexp(x[:, 1:])], axis=-1
    )
    return logsumexp(parts), np.log(np.exp(x).sum(axis=-1))


@chapter.check(
    "logsumexp_underflow",
    "Two scores of -745.2 have the log-sum-exp -745.2 + log 2.",
    draw=nothing,
    kind="value",
)
def _():
    # exp(-745.2) is zero in float64, so only a shifted sum can know this.
    return logsumexp([-745.2, -745.2]), np.float64(-745.2 + 0.6931471805599453)


@chapter.check(
    "log_softmax_far_below",
    "A log-probability of -1000 is kept; its probability is a rounded zero.",
    draw=nothing,
    kind="value",
)
def _():
    # log softmax((0, -1000)) = (-log1p(e^-1000), -1000 - log1p(e^-1000)).
    return log_softmax([0.0, -1000.0]), np.array([0.0, -1000.0])


@chapter.check(
    "log_softmax_is_the_log",
    "The log-softmax is the logarithm of the softmax.",
    draw=rows_of_scores,
)
def _(x):
    return np.exp(log_softmax(x)), softmax(x)


@chapter.check(
    "temperature_one_is_softmax",
    "Temperature one is the softmax itself.",
    draw=rows_of_scores,
)
def _(x):
    return temperature_softmax(x, 1.0), softmax(x)


@chapter.check(
    "temperature_log_odds",
    "Temperature divides every difference of log-probabilities.",
    draw=rows_of_scores,
)
def _(x):
    p = temperature_softmax(x, 2.5)
    return np.log(p[:, 1:] / p[:, :1]), (x[:, 1:] - x[:, :1]) / 2.5


@chapter.check(
    "temperature_limits",
    "Near zero the largest score takes all; far up the weights are uniform.",
    draw=rows_of_scores,
)
def _(x):
    largest = (x == x.max(axis=-1, keepdims=True)).astype(float)
    cold, hot = temperature_softmax(x, 1e-3), temperature_softmax(x, 1e16)
    return (cold, hot), (largest, np.full(x.shape, 1 / x.shape[-1]))


@chapter.check(
    "entropy_rises_with_temperature",
    "A hotter softmax is less decided.",
    draw=rows_of_scores,
    kind="order",
)
def _(x):
    ladder = [entropy(temperature_softmax(x, t)) for t in (0.3, 0.6, 1.0, 2.0, 4.0)]
    return np.stack(ladder[1:]), np.stack(ladder[:-1])


@chapter.check(
    "entropy_worked",
    "Half, a quarter, a quarter and an impossible outcome: one and a half bits.",
    draw=nothing,
    kind="value",
)
def _():
    # (1/2) log 2 + 2 (1/4) log 4 = (3/2) log 2 nats.
    return entropy([0.5, 0.25, 0.25, 0.0]), np.float64(1.5 * 0.6931471805599453)


@chapter.check(
    "temperature_refuses_zero",
    "Temperature zero is refused: greedy choice is another operation.",
    draw=nothing,
    kind="refuses",
)
def _():
    return lambda: temperature_softmax([0.0, 1.0], 0.0), "t must be"


@chapter.check(
    "softmax_refuses_empty_rows",
    "A row with no allowed key is refused.",
    draw=nothing,
    kind="refuses",
)
def _():
    return lambda: softmax([[0.0, 1.0], [-np.inf, -np.inf]]), "x has a row"


@chapter.check(
    "logsumexp_row_by_row",
    "Rows a thousand apart have one softmax, and log-sum-exps a thousand apart.",
    draw=nothing,
    kind="value",
)
def _():
    # Each row has two equal scores: the score plus log 2, and a half for each.
    rows = [[0.0, 0.0], [-1000.0, -1000.0]]
    lse = np.array([0.0, -1000.0]) + 0.6931471805599453
    return (logsumexp(rows), softmax(rows)), (lse, np.full((2, 2), 0.5))


@chapter.check(
    "log_softmax_keeps_digits",
    "Scores near 100 million lose no digit of their log-probabilities.",
    draw=nothing,
    kind="value",
)
def _():
    # (-log(1 + e), 1 - log(1 + e)) whatever is added to both; at 50 digits.
    want = [-1.3132616875182228, -0.31326168751822286]
    return log_softmax([[1e8, 1e8 + 1.0], [0.0, 1.0]]), np.array([want, want])


@chapter.check(
    "temperature_tiny",
    "At temperature 1e-306 the largest score of each row takes all.",
    draw=nothing,
    kind="value",
)
def _():
    # 1000 / 1e-306 is infinite; the distance to the largest score, divided, is zero
    # there and minus infinity elsewhere.
    rows = [[1000.0, 999.0], [0.0, -1.0]]
    got = temperature_softmax(rows, 1e-306), temperature_softmax(rows[0], 1e-306)
    return got, (np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([1.0, 0.0]))


@chapter.check(
    "softmax_along_any_axis",
    "Down the columns of a table they are what they are along the rows on its side.",
    draw=rows_of_scores,
)
def _(x):
    small = np.exp(x)
    mass = small.sum(axis=-1)
    got = softmax(x.T, axis=0), log_softmax(x.T, axis=0), logsumexp(x.T, axis=0)
    return got, (small.T / mass, x.T - np.log(mass), np.log(mass))


# ---- How it breaks ----------------------------------------------------------------


@chapter.fault(
    "softmax_without_shift",
    "the largest score is not subtracted",
    operation="softmax",
    story="The formula as it is printed; it overflows above 709.",
    made_for="softmax_near_1000",
    stays_green="softmax_log_odds",
)
def _(x, axis=-1):
    weights = np.exp(x)
    return weights / weights.sum(axis=axis, keepdims=True)


@chapter.fault(
    "softmax_in_base_two",
    "powers of two instead of e",
    operation="softmax",
    story=(
        "Fast kernels use exp2 and fold log2(e) into the scale; one of the two is "
        "easily forgotten."
    ),
    made_for="softmax_log_odds",
    stays_green="softmax_sums_to_one",
)
def _(x, axis=-1):
    weights = np.exp2(x - x.max(axis=axis, keepdims=True))
    return weights / weights.sum(axis=axis, keepdims=True)


@chapter.fault(
    "softmax_over_everything",
    "the denominator sums over all rows",
    operation="softmax",
    story="An axis left out of a sum; a single row cannot see it.",
    made_for="softmax_sums_to_one",
    stays_green="online_worked_output",
)
def _(x, axis=-1):
    weights = np.exp(x - x.max(axis=axis, keepdims=True))
    return weights / weights.sum()


@chapter.fault(
    "softmax_allows_empty_rows",
    "a row with no allowed key gives zeros",
    operation="softmax",
    story="Several libraries return zeros or NaN for a row that is masked throughout.",
    made_for="softmax_refuses_empty_rows",
    stays_green="softmax_near_1000",
    unguarded=True,
)
def _(x, axis=-1):
    top = x.max(axis=axis, keepdims=True)
    weights = np.exp(x - np.where(np.isfinite(top), top, 0.0))
    total = weights.sum(axis=axis, keepdims=True)
    return weights / np.where(total == 0, 1.0, total)


@chapter.fault(
    "logsumexp_without_shift",
    "the sum of exponentials is taken as it stands",
    operation="logsumexp",
    story="log(sum(exp(x))) in one line of code.",
    made_for="logsumexp_underflow",
    stays_green="logsumexp_of_parts",
)
def _(x, axis=-1):
    return np.log(np.exp(x).sum(axis=axis))


@chapter.fault(
    "logsumexp_is_the_mean",
    "the mean is taken instead of the sum",
    operation="logsumexp",
    story="logmeanexp under the wrong name: the two differ by log n.",
    made_for="logsumexp_of_parts",
    stays_green="softmax_log_odds",
)
def _(x, axis=-1):
    return logsumexp(x, axis) - float(np.log(max(x.shape[axis], 1)))


@chapter.fault(
    "log_softmax_by_log",
    "the logarithm of the rounded softmax",
    operation="log_softmax",
    story="Two library calls instead of one; a rounded zero becomes -inf.",
    made_for="log_softmax_far_below",
    stays_green="log_softmax_is_the_log",
)
def _(x, axis=-1):
    return np.log(softmax(x, axis))


@chapter.fault(
    "log_softmax_keeps_shift",
    "the largest score is subtracted, the log-sum is not",
    operation="log_softmax",
    story="Half of a stable formula; the arg max is right.",
    made_for="log_softmax_is_the_log",
    stays_green="log_softmax_far_below",
)
def _(x, axis=-1):
    return x - x.max(axis=axis, keepdims=True)


@chapter.fault(
    "temperature_multiplies",
    "scores are multiplied by the temperature",
    operation="temperature_softmax",
    story="Inverse temperature under the name of temperature; at 1 they agree.",
    made_for="entropy_rises_with_temperature",
    stays_green="temperature_one_is_softmax",
)
def _(logits, t):
    return softmax(logits * t)


@chapter.fault(
    "temperature_after_softmax",
    "the weights are divided by the temperature and renormalised",
    operation="temperature_softmax",
    story="Temperature applied one line too late: it cancels.",
    made_for="temperature_log_odds",
    stays_green="temperature_one_is_softmax",
)
def _(logits, t):
    p = softmax(logits) / t
    return p / p.sum(axis=-1, keepdims=True)


@chapter.fault(
    "temperature_with_epsilon",
    "a millionth is added to the temperature",
    operation="temperature_softmax",
    story="A guard against division by zero that is paid for at every temperature.",
    made_for="temperature_one_is_softmax",
    stays_green="temperature_limits",
)
def _(logits, t):
    return temperature_softmax(logits, t + 1e-6)


@chapter.fault(
    "temperature_zero_is_greedy",
    "temperature zero gives the largest score everything",
    operation="temperature_softmax",
    story=(
        "Many samplers take 0 for greedy; between equal scores the limit shares, and "
        "arg max takes the first."
    ),
    made_for="temperature_refuses_zero",
    stays_green="temperature_limits",
    unguarded=True,
)
def _(logits, t):
    logits = np.asarray(logits, dtype=float)
    if t > 0:
        return temperature_softmax(logits, t)
    first = logits.argmax(axis=-1)[..., None]
    return (np.arange(logits.shape[-1]) == first).astype(float)


@chapter.fault(
    "entropy_in_bits",
    "the logarithm is to base two",
    operation="entropy",
    story="Bits and nats differ by a factor that no ordering can see.",
    made_for="entropy_worked",
    stays_green="entropy_rises_with_temperature",
)
def _(p):
    return entropy(p) / np.log(2.0)


@chapter.fault(
    "entropy_without_minus",
    "the minus sign is missing",
    operation="entropy",
    story="Negative entropy is a common loss term, and a common bug.",
    made_for="entropy_rises_with_temperature",
    stays_green="temperature_log_odds",
)
def _(p):
    return -entropy(p)


@chapter.fault(
    "logsumexp_one_shift",
    "the largest score of all rows is subtracted from every row",
    operation="logsumexp",
    story="An axis left out of a maximum: rows far below the largest become zeros.",
    made_for="logsumexp_row_by_row",
    stays_green="logsumexp_underflow",
)
def _(x, axis=-1):
    top = x.max(initial=-np.inf)
    shift = top if np.isfinite(top) else 0.0
    return np.log(np.exp(x - shift).sum(axis=axis)) + shift


@chapter.fault(
    "log_softmax_unshifted",
    "the log-sum-exp is subtracted from scores that were not shifted",
    operation="log_softmax",
    story="Stable enough for small logits: near 100 million, eight digits cancel.",
    made_for="log_softmax_keeps_digits",
    stays_green="log_softmax_is_the_log",
)
def _(x, axis=-1):
    return x - np.expand_dims(logsumexp(x, axis), axis)


@chapter.fault(
    "temperature_divides_first",
    "scores are divided before the largest is subtracted",
    operation="temperature_softmax",
    story="A temperature of nearly zero, meant as greedy, makes infinities.",
    made_for="temperature_tiny",
    stays_green="temperature_log_odds",
)
def _(logits, t):
    return softmax(logits / t)


@chapter.fault(
    "softmax_ignores_axis",
    "whatever axis is asked for, the last one is taken",
    operation="softmax",
    story=(
        "A module that stores its axis and never reads it (aprender pull request "
        "2152): attention, whose keys come last, cannot notice."
    ),
    made_for="softmax_along_any_axis",
    stays_green="softmax_near_1000",
)
def _(x, axis=-1):
    return softmax(x)


@chapter.fault(
    "log_softmax_ignores_axis",
    "whatever axis is asked for, the log-softmax is taken along the last one",
    operation="log_softmax",
    story=(
        "Rows where columns are meant, and probabilities all the same: a tutorial "
        "trained for years along the wrong axis (pytorchfundamentals pull request 21)."
    ),
    made_for="softmax_along_any_axis",
    stays_green="log_softmax_is_the_log",
)
def _(x, axis=-1):
    return log_softmax(x)


@chapter.fault(
    "logsumexp_ignores_axis",
    "whatever axis is asked for, the sum runs over the last one",
    operation="logsumexp",
    story="A square table keeps its shape, and so no shape gives it away.",
    made_for="softmax_along_any_axis",
    stays_green="logsumexp_of_parts",
)
def _(x, axis=-1):
    return logsumexp(x)


@chapter.fault(
    "softmax_in_half",
    "float32 scores are rounded to float16 on the way",
    operation="softmax",
    story=(
        "A sum taken in the narrow type of a model (mxnet issue 14072). Whoever tests "
        "in float64 never meets it."
    ),
    made_for="float32_stays_float32",
    stays_green="attention_rows_sum_to_one",
)
def _(x, axis=-1):
    if x.dtype != np.float32:
        return softmax(x, axis)
    return softmax(x.astype(np.float16), axis).astype(np.float32)
