"""Gradients by formula and by differences: what must hold, and how it breaks."""

from __future__ import annotations

import numpy as np

from ..ops.attention import attention
from ..ops.gradients import (
    attention_gradients,
    contrastive_gradient,
    cross_entropy_gradient,
    dpo_gradient,
    embedding_gradient,
    finite_difference,
    ppo_clip_gradient,
    squared_error_gradient,
)
from ..ops.layers import embedding
from ..ops.losses import (
    contrastive_loss,
    cross_entropy,
    dpo_loss,
    ppo_clip,
    squared_error,
)
from ._check import Inputs, Rng, nothing
from .losses import a_padded_batch, a_table, some_actions, some_pairs
from .worked import preferences, training

# ---- What is drawn ----------------------------------------------------------------


def a_read(rng: Rng, size: int) -> Inputs:
    """Two masked reads, the gradients that come back, a direction for the queries."""
    n, m, d, d_v = 2, size + 2, size + 3, size + 1
    allowed = np.ones((n, m), bool)
    allowed[0, -1] = allowed[1, 0] = False
    return {
        "q": rng.normal(size=(2, n, d)),
        "k": rng.normal(size=(2, m, d)),
        "v": 2 * rng.normal(size=(2, m, d_v)),
        "grad": rng.normal(size=(2, n, d_v)),
        "allowed": allowed,
        "direction": rng.normal(size=(2, n, d)),
    }


def a_search(rng: Rng, size: int) -> Inputs:
    """A query and its documents, none of them far ahead; the relevant one is first."""
    d = size + 1
    return {
        "q": rng.uniform(0.5, 1.0, size=d) / np.sqrt(d),
        "docs": rng.uniform(-1.0, 1.0, size=(size + 2, d)),
        "tau": 0.5,
    }


def a_text(rng: Rng, size: int) -> Inputs:
    """A text that says one token three times, and the gradient at its embeddings."""
    rest = rng.permutation(np.arange(1, size + 3))
    ids = np.concatenate([[0], rest[:1], [0, 0], rest[1:]])
    return {"ids": ids, "grad": rng.uniform(0.5, 1.5, size=(len(ids), size + 2))}


def a_parabola(rng: Rng, size: int) -> Inputs:
    """Curvature, slope and place in several dimensions, all of them at least 1/2."""
    return {name: rng.uniform(0.5, 2.0, size=size + 1) for name in "abx"}


# ---- What must hold ---------------------------------------------------------------


@training.check(
    "central_difference_of_a_parabola",
    "For a parabola the central difference is the slope itself.",
    draw=a_parabola,
)
def _(a, b, x):
    return finite_difference(lambda t: (a * t**2 + b * t).sum(), x), 2 * a * x + b


@training.check(
    "attention_gradient_by_difference",
    "The formulas agree with small changes of every query, key and value.",
    draw=a_read,
)
def _(q, k, v, grad, allowed, direction):
    options = {"allowed": allowed, "scale": 0.8}
    exact = attention_gradients(q, k, v, grad, **options)
    q, k, v, grad = q[0], k[0], v[0], grad[0]  # the first read
    by_change = (
        finite_difference(lambda x: _loss(x, k, v, grad, **options), q),
        finite_difference(lambda x: _loss(q, x, v, grad, **options), k),
        finite_difference(lambda x: _loss(q, k, x, grad, **options), v),
    )
    return (exact.dq[0], exact.dk[0], exact.dv[0]), by_change


@training.check(
    "attention_slope_along_a_direction",
    "The slope along a direction of the query is its product with the gradient.",
    draw=a_read,
)
def _(q, k, v, grad, allowed, direction):
    h = 1e-5
    ahead = _loss(q + h * direction, k, v, grad, allowed=allowed)
    behind = _loss(q - h * direction, k, v, grad, allowed=allowed)
    dq = attention_gradients(q, k, v, grad, allowed=allowed).dq
    return (dq * direction).sum(), (ahead - behind) / (2 * h)


@training.check(
    "attention_gradient_of_scores_sums_to_zero",
    "A shift of all scores of a row changes nothing, so their gradients cancel.",
    draw=a_read,
)
def _(q, k, v, grad, allowed, direction):
    ds = attention_gradients(q, k, v, grad, allowed=allowed).dscores
    return ds.sum(axis=-1), np.zeros(q.shape[:2])


@training.check(
    "attention_gradient_of_values",
    "A value gets the gradients of its readers, by the weight each reads it with.",
    draw=a_read,
)
def _(q, k, v, grad, allowed, direction):
    scores = np.einsum("bnd,bmd->bnm", q, k) / np.sqrt(q.shape[-1])
    e = np.where(allowed, np.exp(scores), 0.0)
    weights = e / e.sum(axis=-1, keepdims=True)
    want = np.einsum("bnm,bnc->bmc", weights, grad)
    return attention_gradients(q, k, v, grad, allowed=allowed).dv, want


@training.check(
    "attention_gradient_of_masked_key",
    "A key that no query may read has no gradient, and neither has its value.",
    draw=a_read,
)
def _(q, k, v, grad, allowed, direction):
    hidden = allowed.copy()
    hidden[:, 1] = False
    found = attention_gradients(q, k, v, grad, allowed=hidden)
    none = np.zeros((2, k.shape[-1])), np.zeros((2, v.shape[-1]))
    return (found.dk[:, 1], found.dv[:, 1]), none


@training.check(
    "attention_gradient_worked",
    "Two equal scores, values 0 and 4, gradient 1: the query feels (k2 - k1).",
    draw=nothing,
    kind="value",
)
def _():
    # P = (1/2, 1/2), dP = (0, 4), row sum 2: dS = (-1, 1). With d_k = 4 the scale is
    # 1/2, so dq = (k2 - k1) / 2 and dk = dS q / 2.
    q = [[0.0, 2.0, 0.0, 0.0]]
    k = [[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 3.0, 0.0]]
    found = attention_gradients(q, k, [[0.0], [4.0]], [[1.0]])
    dq = np.array([[-0.5, 0.0, 1.5, 0.0]])
    dk = np.array([[0.0, -1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
    return (found.dq, found.dk, found.dscores), (dq, dk, np.array([[-1.0, 1.0]]))


@training.check(
    "cross_entropy_gradient_by_difference",
    "The gradient of the mean agrees with small changes of every logit.",
    draw=a_padded_batch,
)
def _(logits, targets):
    first, second = logits

    def loss(x):
        return cross_entropy(np.stack([first, x]), targets)

    of_second = cross_entropy_gradient(logits, targets)[1]
    return of_second, finite_difference(loss, second)


@training.check(
    "cross_entropy_gradient_rows",
    "Every row of the gradient sums to zero.",
    draw=a_padded_batch,
)
def _(logits, targets):
    rows = cross_entropy_gradient(logits, targets).sum(axis=-1)
    return rows, np.zeros(targets.shape)


@training.check(
    "squared_error_gradient_by_difference",
    "The slope of a square agrees with a small change.",
    draw=a_parabola,
)
def _(a, b, x):
    by_change = finite_difference(lambda y: squared_error(y, -b).sum(), x)
    return squared_error_gradient(x, -b), by_change


@training.check(
    "squared_error_gradient_at_the_target",
    "At the target nothing pulls, and on both sides of it the pulls are opposite.",
    draw=a_parabola,
)
def _(a, b, x):
    above, below = (squared_error_gradient(b + step * x, b) for step in (1, -1))
    return (squared_error_gradient(b, b), above), (np.zeros_like(b), -below)


@training.check(
    "contrastive_gradient_by_difference",
    "At temperature 1/2 the gradient agrees with small changes of every similarity.",
    draw=a_table,
)
def _(sim, tau):
    by_change = finite_difference(lambda s: contrastive_loss(s, tau=tau), sim[1])
    return contrastive_gradient(sim, tau=tau)[1], by_change


@training.check(
    "contrastive_gradient_rows",
    "Every row of the gradient sums to zero.",
    draw=a_table,
)
def _(sim, tau):
    rows = contrastive_gradient(sim, tau=tau).sum(axis=-1)
    return rows, np.zeros(sim.shape[:-1])


@training.check(
    "contrastive_gradient_of_a_query",
    "What a query feels is what its similarities feel, spread over the documents.",
    draw=a_search,
)
def _(q, docs, tau):
    def loss(x):
        return contrastive_loss((docs @ x)[None], tau=tau)

    of_scores = contrastive_gradient((docs @ q)[None], tau=tau)
    return (of_scores @ docs)[0], finite_difference(loss, q)


@training.check(
    "embedding_gradient_by_difference",
    "The gradient of a table agrees with small changes of every row.",
    draw=a_text,
)
def _(ids, grad):
    table = np.ones((ids.max() + 1, grad.shape[-1]))
    by_change = finite_difference(lambda t: (embedding(t, ids) * grad).sum(), table)
    return embedding_gradient(ids, grad, vocabulary=len(table)), by_change


@training.check(
    "embedding_gradient_adds_occurrences",
    "Two occurrences of one token add (.1, -.2) and (.3, .4) in one row.",
    draw=nothing,
    kind="value",
)
def _():
    got = embedding_gradient([1, 1], [[0.1, -0.2], [0.3, 0.4]], vocabulary=2)
    return got, np.array([[0.0, 0.0], [0.4, 0.2]])


@training.check(
    "embedding_gradient_each_once",
    "Where every token occurs once, each row has its own gradient.",
    draw=a_text,
)
def _(ids, grad):
    once = np.arange(len(grad))[::-1]
    return embedding_gradient(once, grad, vocabulary=len(grad)), grad[::-1]


@training.check(
    "embedding_gradient_of_several_texts",
    "Of texts side by side the occurrences add; of gradients in a batch they do not.",
    draw=a_text,
)
def _(ids, grad):
    texts, both = np.stack([ids, ids[::-1]]), np.stack([grad, 2 * grad])
    batch = np.stack([both, 3 * both[::-1]])
    got = embedding_gradient(texts, batch, vocabulary=ids.max() + 1)
    want = np.zeros((2, ids.max() + 1, grad.shape[-1]))
    for i, j, t in np.ndindex(2, 2, len(ids)):
        want[i, texts[j, t]] += batch[i, j, t]
    return got, want


@preferences.check(
    "dpo_gradient_by_difference",
    "The pull on the chosen response agrees with a small change, and is opposite.",
    draw=some_pairs,
)
def _(logs, beta):
    def of_chosen(x):
        return dpo_loss(x, *logs[1:], beta=beta).sum()

    def of_rejected(x):
        return dpo_loss(logs[0], x, *logs[2:], beta=beta).sum()

    pull = dpo_gradient(*logs, beta=beta)
    by_change = finite_difference(of_chosen, logs[0])
    return (pull, -pull), (by_change, finite_difference(of_rejected, logs[1]))


@preferences.check(
    "dpo_gradient_at_the_reference",
    "A policy that is its reference is pulled by half of beta.",
    draw=some_pairs,
)
def _(logs, beta):
    pull = dpo_gradient(*logs[:2], *logs[:2], beta=beta)
    return pull, np.full(pull.shape, -beta / 2)


@preferences.check(
    "ppo_gradient_by_difference",
    "The slope of the clipped objective agrees with small changes of the ratio.",
    draw=some_actions,
)
def _(ratio, advantage):
    by_change = finite_difference(lambda r: ppo_clip(r, advantage).sum(), ratio)
    return ppo_clip_gradient(ratio, advantage), by_change


@preferences.check(
    "ppo_gradient_inside",
    "Inside the range the slope is the advantage.",
    draw=some_actions,
)
def _(ratio, advantage):
    inside = 1 + (ratio - 1) / 100
    return ppo_clip_gradient(inside, advantage), advantage


@preferences.check(
    "ppo_gradient_at_the_kink",
    "Too far in the direction that pays there is no slope; at the kink there still is.",
    draw=nothing,
    kind="value",
)
def _():
    # Past the kink for a good and a bad action, in it for both, the wrong way for both.
    ratio = [1.5, 0.5, 1.2, 0.8, 0.5, 1.5]
    advantage = [2.0, -3.0, 2.0, -3.0, 2.0, -3.0]
    want = np.array([0.0, 0.0, 2.0, -3.0, 2.0, -3.0])
    return ppo_clip_gradient(ratio, advantage, eps=0.2), want


def _loss(q, k, v, grad, **options):
    return (attention(q, k, v, **options) * grad).sum()


# ---- How it breaks ----------------------------------------------------------------


@training.fault(
    "difference_one_sided_over_two_steps",
    "a one-sided difference is divided by twice the step",
    operation="finite_difference",
    story="The central rule changed to save half of the calls, in one place of two.",
    made_for="central_difference_of_a_parabola",
    stays_green="attention_gradient_of_scores_sums_to_zero",
)
def _(f, x, *, h=1e-5):
    x = np.asarray(x, float)
    gradient = np.empty_like(x)
    for i in np.ndindex(x.shape):
        up = x.copy()
        up[i] += h
        gradient[i] = (float(f(up)) - float(f(x))) / (2 * h)
    return gradient


@training.fault(
    "attention_gradient_without_row_sum",
    "the row sum is not taken away from the gradient of the weights",
    operation="attention_gradients",
    story="Softmax taken for an elementwise function; values are right all the same.",
    made_for="attention_gradient_of_scores_sums_to_zero",
    stays_green="attention_gradient_of_values",
)
def _(q, k, v, grad, *, allowed=None, scale=None):
    found = attention_gradients(q, k, v, grad, allowed=allowed, scale=scale)
    c = 1 / np.sqrt(q.shape[-1]) if scale is None else scale
    eye = np.eye(k.shape[-2])
    eye = np.broadcast_to(eye, (*k.shape[:-1], k.shape[-2]))
    P = attention(q, k, eye, allowed=allowed, scale=scale)
    dS = P * found.dweights
    return found._replace(
        dq=c * (dS @ k), dk=c * (np.swapaxes(dS, -1, -2) @ q), dscores=dS
    )


@training.fault(
    "attention_gradient_without_scale",
    "the scale of the scores is left out on the way back",
    operation="attention_gradients",
    story="It is a part of the forward formula that is easy to fold away.",
    made_for="attention_gradient_by_difference",
    stays_green="attention_gradient_of_scores_sums_to_zero",
)
def _(q, k, v, grad, *, allowed=None, scale=None):
    found = attention_gradients(q, k, v, grad, allowed=allowed, scale=scale)
    c = 1 / np.sqrt(q.shape[-1]) if scale is None else scale
    return found._replace(dq=found.dq / c, dk=found.dk / c)


@training.fault(
    "attention_gradient_without_mask",
    "the way back reads keys that the way forward did not",
    operation="attention_gradients",
    story="A fused backward pass that is not handed the mask.",
    made_for="attention_gradient_of_masked_key",
    stays_green="attention_gradient_of_scores_sums_to_zero",
)
def _(q, k, v, grad, *, allowed=None, scale=None):
    return attention_gradients(q, k, v, grad, scale=scale)


@training.fault(
    "attention_gradient_of_values_by_grad_only",
    "every value gets the sum of all gradients",
    operation="attention_gradients",
    story="The transposition of the weights is lost together with the weights.",
    made_for="attention_gradient_of_values",
    stays_green="attention_gradient_worked",
)
def _(q, k, v, grad, *, allowed=None, scale=None):
    found = attention_gradients(q, k, v, grad, allowed=allowed, scale=scale)
    total = grad.sum(axis=-2, keepdims=True)
    return found._replace(dv=np.broadcast_to(total, v.shape) + 0.0)


@training.fault(
    "cross_entropy_gradient_over_all_rows",
    "the gradient is divided by all rows, ignored ones too",
    operation="cross_entropy_gradient",
    story="The loss was mended and its gradient was not.",
    made_for="cross_entropy_gradient_by_difference",
    stays_green="cross_entropy_gradient_rows",
)
def _(logits, targets, *, ignore_index=-100):
    ids = np.asarray(targets)
    found = cross_entropy_gradient(logits, targets, ignore_index=ignore_index)
    return found * np.count_nonzero(ids != ignore_index) / ids.size


@training.fault(
    "cross_entropy_gradient_is_softmax",
    "the target's one is not taken away",
    operation="cross_entropy_gradient",
    story="Every logit falls, and the loss may fall with them for a while.",
    made_for="cross_entropy_gradient_rows",
    stays_green="central_difference_of_a_parabola",
)
def _(logits, targets, *, ignore_index=-100):
    counted = np.asarray(targets) != ignore_index
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    p = e / e.sum(axis=-1, keepdims=True)
    return np.where(counted[..., None], p, 0.0) / np.count_nonzero(counted)


@training.fault(
    "squared_error_gradient_without_two",
    "the factor 2 is left out",
    operation="squared_error_gradient",
    story="Right for half the square, which is another loss.",
    made_for="squared_error_gradient_by_difference",
    stays_green="squared_error_gradient_at_the_target",
)
def _(prediction, target):
    return prediction - target


@training.fault(
    "squared_error_gradient_never_negative",
    "the distance to the target has no sign",
    operation="squared_error_gradient",
    story="The root of the square in place of the difference.",
    made_for="squared_error_gradient_at_the_target",
    stays_green="squared_error_gradient_by_difference",
)
def _(prediction, target):
    return 2 * np.abs(prediction - target)


@training.fault(
    "contrastive_gradient_without_temperature",
    "the division by the temperature is missing",
    operation="contrastive_gradient",
    story="A test at temperature 1 agrees with it.",
    made_for="contrastive_gradient_by_difference",
    stays_green="contrastive_gradient_rows",
)
def _(sim, *, tau):
    return tau * contrastive_gradient(sim, tau=tau)


@training.fault(
    "contrastive_gradient_without_positive",
    "only the negatives push",
    operation="contrastive_gradient",
    story="The one on the diagonal is forgotten; the query flees all documents.",
    made_for="contrastive_gradient_rows",
    stays_green="central_difference_of_a_parabola",
)
def _(sim, *, tau):
    n, m = sim.shape[-2:]
    return contrastive_gradient(sim, tau=tau) + np.eye(n, m) / (n * tau)


@training.fault(
    "embedding_gradient_last_one_wins",
    "a later occurrence of a token overwrites the earlier ones",
    operation="embedding_gradient",
    story="table[ids] += grad adds once for each index, which surprises many.",
    made_for="embedding_gradient_adds_occurrences",
    stays_green="embedding_gradient_each_once",
)
def _(ids, grad, *, vocabulary):
    table = np.zeros((vocabulary, grad.shape[-1]))
    table[np.asarray(ids)] += grad
    return table


@training.fault(
    "embedding_gradient_mean_of_occurrences",
    "the occurrences of a token are averaged",
    operation="embedding_gradient",
    story="Frequent tokens then learn no faster than rare ones.",
    made_for="embedding_gradient_by_difference",
    stays_green="embedding_gradient_each_once",
)
def _(ids, grad, *, vocabulary):
    counts = np.bincount(np.ravel(ids), minlength=vocabulary)
    found = embedding_gradient(ids, grad, vocabulary=vocabulary)
    return found / np.maximum(counts, 1)[:, None]


@training.fault(
    "embedding_gradient_at_positions",
    "the gradient goes to the row of the position, not of the token",
    operation="embedding_gradient",
    story="Position and token embeddings have tables of one width.",
    made_for="embedding_gradient_each_once",
    stays_green="central_difference_of_a_parabola",
)
def _(ids, grad, *, vocabulary):
    places = np.arange(np.size(ids)) % vocabulary
    return embedding_gradient(places, grad, vocabulary=vocabulary)


@preferences.fault(
    "dpo_gradient_pulls_at_the_won",
    "pairs that are told apart already are pulled hardest",
    operation="dpo_gradient",
    story="The logistic of the margin in place of its complement.",
    made_for="dpo_gradient_by_difference",
    stays_green="dpo_gradient_at_the_reference",
)
def _(policy_chosen, policy_rejected, ref_chosen, ref_rejected, *, beta):
    given = (policy_chosen, policy_rejected, ref_chosen, ref_rejected)
    return -beta - dpo_gradient(*given, beta=beta)


@preferences.fault(
    "dpo_gradient_without_beta",
    "the factor beta in front is missing",
    operation="dpo_gradient",
    story="The chain rule stops one step early.",
    made_for="dpo_gradient_at_the_reference",
    stays_green="ppo_gradient_inside",
)
def _(policy_chosen, policy_rejected, ref_chosen, ref_rejected, *, beta):
    given = (policy_chosen, policy_rejected, ref_chosen, ref_rejected)
    return dpo_gradient(*given, beta=beta) / beta


@preferences.fault(
    "ppo_gradient_zero_outside",
    "there is no slope outside the range, on either side",
    operation="ppo_clip_gradient",
    story="What a clamp does in automatic differentiation, if the minimum is left out.",
    made_for="ppo_gradient_by_difference",
    stays_green="ppo_gradient_inside",
)
def _(ratio, advantage, *, eps=0.2):
    inside = (ratio > 1 - eps) & (ratio < 1 + eps)
    return np.where(inside, advantage, 0.0)


@preferences.fault(
    "ppo_gradient_of_the_sign",
    "the slope is the sign of the advantage",
    operation="ppo_clip_gradient",
    story="Advantages normalised once too often.",
    made_for="ppo_gradient_inside",
    stays_green="dpo_gradient_at_the_reference",
)
def _(ratio, advantage, *, eps=0.2):
    return np.sign(ppo_clip_gradient(ratio, advantage, eps=eps))
