"""What a model is trained to make small, or large."""

from __future__ import annotations

import math

import numpy as np

from . import _validate as must
from ._op import Array, op
from .softmax import log_softmax

IGNORE = -100


def valid_targets(logits: Array, targets: Array, ignore_index: int) -> Array:
    """Which targets count; ValueError for one that is no class."""
    must.axes(1, logits=logits)
    must.scores("logits", logits)
    must.some_key("logits", logits, -1)
    ids = np.asarray(targets)
    if ids.dtype.kind not in "iu" or ids.shape != logits.shape[:-1]:
        raise ValueError(
            f"targets must be integers of shape {logits.shape[:-1]}, one a row of "
            f"logits, got {ids.dtype} {ids.shape}"
        )
    if isinstance(ignore_index, bool) or not isinstance(
        ignore_index, (int, np.integer)
    ):
        raise ValueError(f"ignore_index must be an integer, got {ignore_index!r}")
    counted = ids != ignore_index
    bad = counted & ((ids < 0) | (ids >= logits.shape[-1]))
    if np.any(bad):
        raise ValueError(
            f"targets must lie in [0, {logits.shape[-1]}) or be ignore_index = "
            f"{ignore_index}, got {ids[bad].flat[0]}"
        )
    return counted


def _tokens(logits: Array, targets: Array, *, ignore_index: int = IGNORE) -> None:
    valid_targets(logits, targets, ignore_index)


def some_targets(logits: Array, targets: Array, *, ignore_index: int = IGNORE) -> None:
    """As valid_targets, and one of them counts."""
    if not np.any(valid_targets(logits, targets, ignore_index)):
        raise ValueError("targets has no entry that counts: all are ignore_index")


def _event(p: Array, *, base: float = math.e) -> None:
    must.within(0.0, 1.0, p=p)
    must.positive(base=base)
    if base == 1:
        raise ValueError("base must not be 1")


def _residual(prediction: Array, target: Array) -> None:
    must.finite(prediction=prediction, target=target)
    must.batch(prediction=np.shape(prediction), target=np.shape(target))


def _two_laws(p: Array, q: Array) -> None:
    must.probabilities(p=p, q=q)
    must.same("the vocabulary", p=p.shape[-1], q=q.shape[-1])
    must.batch(p=p.shape[:-1], q=q.shape[:-1])


def _response(logprobs: Array, *, mask: Array | None = None) -> None:
    must.axes(1, logprobs=logprobs)
    must.within(-np.inf, 0.0, logprobs=logprobs)
    if mask is None:
        return
    kept = np.asarray(mask)
    try:
        fits = np.broadcast_shapes(kept.shape, logprobs.shape) == logprobs.shape
    except ValueError:
        fits = False
    if not fits or not np.all(np.isin(kept, (0, 1))):
        raise ValueError(
            f"mask must be 0 or 1 for each entry of logprobs, shape {logprobs.shape}, "
            f"got {kept.dtype} {kept.shape}"
        )


def _two_ratios(
    policy_chosen: Array,
    policy_rejected: Array,
    ref_chosen: Array,
    ref_rejected: Array,
) -> None:
    logs = {
        "policy_chosen": policy_chosen,
        "policy_rejected": policy_rejected,
        "ref_chosen": ref_chosen,
        "ref_rejected": ref_rejected,
    }
    must.finite(**logs)
    must.within(-np.inf, 0.0, **logs)
    must.batch(**{name: np.shape(x) for name, x in logs.items()})


def preference(
    policy_chosen: Array,
    policy_rejected: Array,
    ref_chosen: Array,
    ref_rejected: Array,
    *,
    beta: float,
) -> None:
    """Four log-probabilities of whole responses, and how hard to pull."""
    must.positive(beta=beta)
    _two_ratios(policy_chosen, policy_rejected, ref_chosen, ref_rejected)


def clipped(ratio: Array, advantage: Array, *, eps: float = 0.2) -> None:
    """Ratios of probabilities are not negative."""
    must.finite(ratio=ratio, advantage=advantage)
    must.within(0.0, np.inf, ratio=ratio)
    must.batch(ratio=np.shape(ratio), advantage=np.shape(advantage))
    must.positive(eps=eps)


def similarities(sim: Array, *, tau: float) -> None:
    """Row i has its positive in column i."""
    must.positive(tau=tau)
    must.axes(2, sim=sim)
    must.finite(sim=sim)
    n, m = sim.shape[-2:]
    if not 1 <= n <= m:
        raise ValueError(
            f"sim must be (..., n, m) with 1 <= n <= m, a positive for each row on "
            f"the diagonal, got {sim.shape}"
        )


@op(_tokens, floats="logits")
def token_losses(logits: Array, targets: Array, *, ignore_index: int = IGNORE) -> Array:
    r"""What each position costs: minus the log-probability of its target.

    $$\ell_t = -\log \mathrm{softmax}(x_t)_{y_t}$$

    logits: (..., V); targets: (...) integers. Returns (...) in nats, 0 where the
    target is ignored, infinite where it is masked by a logit of -inf.
    Raises ValueError for a target outside [0, V).

    >>> token_losses([[1000.0, 0.0], [0.0, 0.0]], [1, -100]).tolist()
    [1000.0, 0.0]
    """
    ids = np.asarray(targets)
    counted = ids != ignore_index
    column = np.where(counted, ids, 0)[..., None]
    losses = -np.take_along_axis(log_softmax(logits), column, axis=-1)[..., 0]
    return np.where(counted, losses, 0.0).astype(logits.dtype)


@op(some_targets, floats="logits")
def cross_entropy(
    logits: Array, targets: Array, *, ignore_index: int = IGNORE
) -> Array:
    r"""The mean over the positions that count, and over no others.

    $$L = \frac{1}{|\{t : y_t \ne \mathrm{ignored}\}|}
    \sum_{y_t \ne \mathrm{ignored}} -\log \mathrm{softmax}(x_t)_{y_t}$$

    logits: (..., V); targets: (...) integers. Returns a number, in nats: one mean over
    all axes. Padding is left out of the sum and of its denominator.
    Raises ValueError where no target counts: the mean over nothing is no number.

    >>> round(float(cross_entropy([[0.0, 0.0], [9.0, 0.0]], [1, -100])), 4)
    0.6931
    """
    losses = token_losses(logits, targets, ignore_index=ignore_index)
    count = np.count_nonzero(np.asarray(targets) != ignore_index)
    return losses.sum() / losses.dtype.type(count)


@op(_event, floats="p base")
def surprisal(p: Array, *, base: float = math.e) -> Array:
    r"""What it costs that an event of probability p happened.

    $$-\log_b p$$

    p: any shape, in [0, 1]. base e gives nats, base 2 bits; an impossible event costs
    infinity. Logarithms to base 2 are log base e times 1.4427: mind the unit.

    >>> float(surprisal([0.125], base=2.0)[0])
    3.0
    """
    with np.errstate(divide="ignore"):
        return 0.0 - np.log(p) / math.log(base)


@op(_residual, floats="prediction target")
def squared_error(prediction: Array, target: Array) -> Array:
    r"""The square of what is missing, entry by entry.

    $$(y - t)^2$$

    >>> squared_error([2.0, 5.0], [6.0, 5.0]).tolist()
    [16.0, 0.0]
    """
    return (prediction - target) ** 2


@op(_two_laws, floats="p q")
def kl(p: Array, q: Array) -> Array:
    r"""What it costs, in nats, to take q for p.

    $$\mathrm{KL}(p \,\|\, q) = \sum_i p_i \log \frac{p_i}{q_i},
    \qquad 0 \log 0 = 0$$

    p, q: (..., n) probabilities; the mean is taken under the first. Returns (...),
    0 for equal laws, infinite where q rules out what p does not. Not symmetric.
    Library functions that take log q first mean the same number by other arguments.

    >>> round(float(kl([0.5, 0.5], [0.75, 0.25])), 4)
    0.1438
    """
    some = p != 0
    with np.errstate(divide="ignore"):
        log_q = np.log(np.where(some, q, 1.0))
    return (p * (np.log(np.where(some, p, 1.0)) - log_q)).sum(axis=-1)


@op(_response, floats="logprobs")
def sequence_logprob(logprobs: Array, *, mask: Array | None = None) -> Array:
    r"""The log-probability of a whole response: a sum, not a mean.

    $$\log \pi(y \mid x) = \sum_t m_t \log \pi(y_t \mid x, y_{<t})$$

    logprobs: (..., n), of each token that was said; mask: (..., n), 1 for the tokens of
    the response, 0 for the prompt and for padding; None counts all. Returns (...).
    A long response is less probable, and this says so.

    >>> float(sequence_logprob([-1.0, -2.0, -5.0], mask=[1, 1, 0]))
    -3.0
    """
    if mask is not None:
        logprobs = np.where(np.asarray(mask) == 1, logprobs, 0.0)
    return logprobs.sum(axis=-1)


@op(_two_ratios, floats="policy_chosen policy_rejected ref_chosen ref_rejected")
def dpo_margin(
    policy_chosen: Array,
    policy_rejected: Array,
    ref_chosen: Array,
    ref_rejected: Array,
) -> Array:
    r"""How far the policy has moved towards the chosen response, beyond its reference.

    $$h = \log \frac{\pi(y_w)}{\pi_{ref}(y_w)} - \log \frac{\pi(y_l)}{\pi_{ref}(y_l)}$$

    Log-probabilities of whole responses, summed over their tokens; any shapes that
    broadcast. Source: Rafailov et al. 2023.

    >>> float(dpo_margin([-1.0], [-3.0], [-2.0], [-2.0])[0])
    2.0
    """
    return (policy_chosen - ref_chosen) - (policy_rejected - ref_rejected)


@op(preference, floats="policy_chosen policy_rejected ref_chosen ref_rejected beta")
def dpo_loss(
    policy_chosen: Array,
    policy_rejected: Array,
    ref_chosen: Array,
    ref_rejected: Array,
    *,
    beta: float,
) -> Array:
    r"""The price of a pair of responses: the larger the margin, the lower.

    $$L = -\log \sigma(\beta h) = \log\left(1 + e^{-\beta h}\right)$$

    with the margin h of :func:`dpo_margin`: log 2 where the policy is its reference.
    One loss a pair, nothing is averaged.
    beta > 0: how strongly the policy is held to the reference.
    Source: Rafailov et al. 2023.

    >>> dpo_loss([-10000.0], [0.0], [0.0], [0.0], beta=0.1).tolist()
    [1000.0]
    """
    h = dpo_margin(policy_chosen, policy_rejected, ref_chosen, ref_rejected)
    return softplus(-beta * h)


@op(clipped, floats="ratio advantage eps")
def ppo_clip(ratio: Array, advantage: Array, *, eps: float = 0.2) -> Array:
    r"""The clipped objective: no reward for going further than eps.

    $$\min\left(r A, \mathrm{clip}(r, 1 - \epsilon, 1 + \epsilon)\, A\right)$$

    ratio r: new probability over old, not negative; advantage A: any sign; shapes that
    broadcast. Returns the objective, to be made *large*, entry by entry; the loss is
    minus its mean. The smaller product is taken after multiplying, so that a step in
    the wrong direction is never clipped. Source: Schulman et al. 2017.

    >>> ppo_clip([1.5, 1.5], [1.0, -1.0]).tolist()
    [1.2, -1.5]
    """
    return np.minimum(ratio * advantage, np.clip(ratio, 1 - eps, 1 + eps) * advantage)


@op(similarities, floats="sim tau")
def contrastive_loss(sim: Array, *, tau: float) -> Array:
    r"""Every row should pick its own column among all.

    $$L = -\frac{1}{n} \sum_i \log \mathrm{softmax}(s_i / \tau)_i$$

    sim: (..., n, m), m >= n: similarity of query i and document j, the positive of row
    i in column i, the further columns negatives for all. tau > 0. Returns (...): the
    mean over rows, in nats. One direction only; the other is that of the transpose.
    Source: van den Oord et al. 2018 (InfoNCE).

    >>> round(float(contrastive_loss([[1.0, 1.0], [1.0, 1.0]], tau=0.07)), 4)
    0.6931
    """
    own = np.diagonal(log_softmax(sim / tau), axis1=-2, axis2=-1)
    return -own.mean(axis=-1)


def softplus(x: Array) -> Array:
    """log(1 + exp x), for any x."""
    with np.errstate(over="ignore", invalid="ignore"):
        small = np.log1p(np.exp(np.where(np.real(x) > 0, -x, x)))
    return np.where(np.real(x) > 0, x + small, small)
