"""Losses and preferences: what must hold, and how it breaks."""

from __future__ import annotations

import numpy as np

from ..ops.losses import (
    contrastive_loss,
    cross_entropy,
    dpo_loss,
    dpo_margin,
    kl,
    ppo_clip,
    sequence_logprob,
    squared_error,
    surprisal,
    token_losses,
)
from ..ops.softmax import entropy
from ._check import Inputs, Rng, nothing
from .worked import preferences, training

# ---- What is drawn ----------------------------------------------------------------


def a_batch(rng: Rng, size: int) -> Inputs:
    """Two texts, every target counts; no two classes have the same score."""
    n, vocabulary = size + 2, size + 3
    return {
        "logits": 2 * rng.normal(size=(2, n, vocabulary)),
        "targets": rng.integers(0, vocabulary, size=(2, n)),
    }


def a_padded_batch(rng: Rng, size: int) -> Inputs:
    """The same with other numbers of ignored targets in the two texts."""
    drawn = a_batch(rng, size)
    drawn["targets"][0, 0] = drawn["targets"][1, :2] = -100
    return drawn


def two_laws(rng: Rng, size: int) -> Inputs:
    """Two laws that lean to opposite ends."""
    slope = np.linspace(-1.5, 1.5, size + 2)
    p = np.exp(slope + rng.uniform(-0.2, 0.2, size=(3, size + 2)))
    q = np.exp(-0.3 * slope + rng.uniform(-0.2, 0.2, size=(3, size + 2)))
    return {
        "p": p / p.sum(axis=-1, keepdims=True),
        "q": q / q.sum(axis=-1, keepdims=True),
    }


def some_chances(rng: Rng, size: int) -> Inputs:
    """Probabilities of two kinds of event, not near 1."""
    return {name: rng.uniform(0.1, 0.7, size=size + 1) for name in "pq"}


def a_response(rng: Rng, size: int) -> Inputs:
    """Log-probabilities behind a prompt and before padding, both with numbers."""
    n = size + 4
    return {
        "logprobs": -rng.uniform(0.1, 3.0, size=(2, n)),
        "mask": np.array([[0, 0] + [1] * (n - 2), [0] + [1] * (n - 2) + [0]]),
    }


def some_pairs(rng: Rng, size: int) -> Inputs:
    """Pairs of responses; the margins have both signs, beta is not 1."""
    logs = -rng.uniform(1.0, 9.0, size=(4, size + 2))
    logs[:2, 0], logs[:2, 1] = [-2.0, -7.0], [-6.0, -3.0]
    logs[2:, :2] = [[-4.0, -5.0], [-5.0, -4.5]]
    return {"logs": logs, "beta": float(rng.uniform(0.2, 0.6))}


def a_prompt_and_two_responses(rng: Rng, size: int) -> Inputs:
    """Of each token under a policy (first row) and its reference; unequal lengths."""
    policy, reference = (0.1, 0.6), (1.0, 2.0)
    return {
        "prompt": -rng.uniform(0.1, 3.0, size=(2, size + 1)),
        "chosen": -np.stack(
            [rng.uniform(*ends, size=size + 1) for ends in (policy, reference)]
        ),
        "rejected": -np.stack(
            [rng.uniform(*ends, size=size + 3) for ends in (reference, policy)]
        ),
    }


def rewarded_answers(rng: Rng, size: int) -> Inputs:
    """Two laws over answers and what each answer earns; beta is not 1."""
    drawn = {name: law[0] for name, law in two_laws(rng, size).items()}
    reward = np.linspace(1.5, -1.5, size + 2) + rng.uniform(-0.2, 0.2, size=size + 2)
    return {**drawn, "reward": reward, "beta": float(rng.uniform(0.4, 0.7))}


def some_actions(rng: Rng, size: int) -> Inputs:
    """Ratios below, inside and above the range, for good and for bad actions."""
    below, inside, above = (
        rng.uniform(*ends, size=size) for ends in ((0.2, 0.7), (0.9, 1.1), (1.4, 2.0))
    )
    ratio = np.concatenate([below, inside, above])
    good = rng.uniform(0.5, 2.0, size=ratio.size)
    return {
        "ratio": np.concatenate([ratio, ratio]),
        "advantage": np.concatenate([good, -good]),
    }


def a_table(rng: Rng, size: int) -> Inputs:
    """More documents than queries; similarities of both signs; tau is not 1."""
    return {"sim": rng.normal(size=(2, size + 1, size + 3)), "tau": 0.5}


# ---- What must hold: losses -------------------------------------------------------


@training.check(
    "cross_entropy_is_the_mean",
    "Where every target counts, the loss is the mean of minus its log-probability.",
    draw=a_batch,
)
def _(logits, targets):
    p = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    own = np.array(
        [p[i, j, targets[i, j]] for i, j in np.ndindex(targets.shape)],
    )
    return cross_entropy(logits, targets), -np.log(own).sum() / own.size


@training.check(
    "cross_entropy_ignores_padding",
    "Ignored targets change neither the sum nor the denominator.",
    draw=a_padded_batch,
)
def _(logits, targets):
    counted = targets != -100
    return cross_entropy(logits, targets), cross_entropy(
        logits[counted], targets[counted]
    )


@training.check(
    "cross_entropy_ignores_what_is_named",
    "Another number may mark padding, a class among them.",
    draw=a_padded_batch,
)
def _(logits, targets):
    other = np.where(targets == -100, 1, np.where(targets == 1, 2, targets))
    p = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    own = np.take_along_axis(p, other[..., None], axis=-1)[..., 0]
    want = np.where(other == 1, 0.0, -np.log(own))
    got = (
        token_losses(logits, other, ignore_index=1),
        cross_entropy(logits, other, ignore_index=1),
    )
    return got, (want, want.sum() / np.count_nonzero(other != 1))


@training.check(
    "cross_entropy_worked",
    "Targets at .8, .5 and .25 with one of padding cost a third of log 10.",
    draw=nothing,
    kind="value",
)
def _():
    # .8 * .5 * .25 = 1/10, so the three losses sum to log 10; three targets count.
    logits = np.log([[0.8, 0.2], [0.5, 0.5], [0.25, 0.75], [0.5, 0.5]])
    return cross_entropy(logits, [0, 0, 0, -100]), np.log(10.0) / 3


@training.check(
    "cross_entropy_uniform",
    "Equal scores cost the logarithm of the vocabulary, whatever the targets are.",
    draw=a_batch,
)
def _(logits, targets):
    level = np.ones_like(logits) * logits[..., :1]
    return cross_entropy(level, targets), np.log(logits.shape[-1])


@training.check(
    "cross_entropy_far",
    "A target a thousand below the other costs a thousand, not infinity.",
    draw=nothing,
    kind="value",
)
def _():
    # -log(e^0 / (e^1000 + e^0)) = 1000 + log(1 + e^-1000), which is 1000.
    return cross_entropy([[1000.0, 0.0]], [1]), np.float64(1000.0)


@training.check(
    "token_losses_add_up",
    "The losses of all tokens sum to minus the log-probability of the text.",
    draw=a_padded_batch,
)
def _(logits, targets):
    p = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    both = [
        np.prod([p[i, j, t] for j, t in enumerate(row) if t != -100])
        for i, row in enumerate(targets)
    ]
    return token_losses(logits, targets).sum(axis=-1), -np.log(both)


@training.check(
    "cross_entropy_refuses_all_ignored",
    "A batch of padding only has no mean.",
    draw=nothing,
    kind="refuses",
)
def _():
    return lambda: cross_entropy([[0.0, 1.0]], [-100]), "targets"


@training.check(
    "cross_entropy_refuses_negative_target",
    "Target -1 is refused: an array would take the last class.",
    draw=nothing,
    kind="refuses",
)
def _():
    return lambda: cross_entropy([[0.0, 1.0]], [-1]), "targets"


@training.check(
    "surprisal_units",
    "One chance in two to the k costs k bits, and k log 2 nats.",
    draw=nothing,
    kind="value",
)
def _():
    k = np.arange(1.0, 9.0)
    return (surprisal(0.5**k, base=2.0), surprisal(0.5**k)), (k, k * np.log(2.0))


@training.check(
    "surprisal_of_both",
    "Two independent events cost together what they cost apart.",
    draw=some_chances,
)
def _(p, q):
    return surprisal(p * q), surprisal(p) + surprisal(q)


@training.check(
    "squared_error_worked",
    "Four short or four over costs sixteen.",
    draw=nothing,
    kind="value",
)
def _():
    return squared_error([2.0, 10.0, 6.0], [6.0, 6.0, 6.0]), np.array([16.0, 16.0, 0])


@training.check(
    "contrastive_is_mean_cross_entropy",
    "Every row is a choice among all columns, at the temperature; the mean is taken.",
    draw=a_table,
)
def _(sim, tau):
    e = np.exp(sim / tau)
    own = np.diagonal(e, axis1=-2, axis2=-1) / e.sum(axis=-1)
    return contrastive_loss(sim, tau=tau), -np.log(own).sum(axis=-1) / own.shape[-1]


@training.check(
    "contrastive_worked",
    "A positive at .8 beside a negative at 0 costs log(1 + exp(-.8)).",
    draw=nothing,
    kind="value",
)
def _():
    # softmax(.8, 0) gives the positive 1 / (1 + e^-.8).
    return contrastive_loss([[0.8, 0.0]], tau=1.0), np.log1p(np.exp(-0.8))


@training.check(
    "contrastive_equal_similarities",
    "Where all similarities are equal, the loss is the logarithm of their number.",
    draw=a_table,
)
def _(sim, tau):
    level = np.full((2, sim.shape[-1], sim.shape[-1]), sim[0, 0, 0])
    return contrastive_loss(level, tau=tau), np.full(2, np.log(sim.shape[-1]))


@training.check(
    "contrastive_refuses_zero_temperature",
    "Temperature zero is refused.",
    draw=nothing,
    kind="refuses",
)
def _():
    return lambda: contrastive_loss([[1.0]], tau=0.0), "tau"


# ---- What must hold: preferences --------------------------------------------------


@preferences.check(
    "kl_is_cross_entropy_less_entropy",
    "The divergence is what coding by q costs beyond what coding by p costs.",
    draw=two_laws,
)
def _(p, q):
    return kl(p, q), -(p * np.log(q)).sum(axis=-1) - entropy(p)


@preferences.check(
    "kl_worked",
    "From (1/2, 1/2) to (9/10, 1/10) and back: two different numbers.",
    draw=nothing,
    kind="value",
)
def _():
    # (log 5/9 + log 5) / 2 = log 5/3, and the other way by its definition.
    back = 0.9 * np.log(1.8) + 0.1 * np.log(0.2)
    p, q = [0.5, 0.5], [0.9, 0.1]
    return (kl(p, q), kl(q, p)), (np.log(5 / 3), np.float64(back))


@preferences.check(
    "kl_asymmetry",
    "Exchanging the two laws changes the divergence.",
    draw=nothing,
    kind="differs",
)
def _():
    return kl([0.8, 0.2], [0.5, 0.5]), kl([0.5, 0.5], [0.8, 0.2])


@preferences.check(
    "kl_never_negative",
    "Two different laws have a positive divergence, in both directions.",
    draw=two_laws,
    kind="order",
)
def _(p, q):
    return np.stack([kl(p, q), kl(q, p)]), np.zeros((2, 3))


@preferences.check(
    "kl_of_pairs",
    "Of independent pairs the divergences add.",
    draw=two_laws,
)
def _(p, q):
    both = kl(np.outer(p[0], p[1]).ravel(), np.outer(q[0], q[1]).ravel())
    return both, kl(p[0], q[0]) + kl(p[1], q[1])


@preferences.check(
    "kl_zero_support",
    "Nothing is paid for what p rules out; infinity for what only q rules out.",
    draw=nothing,
    kind="value",
)
def _():
    # 1 log(1 / .5) + 0 log 0 = log 2; .5 log(.5 / 0) is infinite.
    certain, even = [1.0, 0.0], [0.5, 0.5]
    return (kl(certain, even), kl(even, certain)), (np.log(2.0), np.inf)


@preferences.check(
    "kl_penalty_gap",
    "Reward less beta KL(law, reference) falls short of the best law by beta KL to it.",
    draw=rewarded_answers,
)
def _(p, q, reward, beta):
    best = q * np.exp(reward / beta)
    value = (p * reward).sum() - beta * kl(p, q)
    return value, beta * (np.log(best.sum()) - kl(p, best / best.sum()))


@preferences.check(
    "sequence_logprob_of_the_response",
    "The chance of a response is the product over its tokens, and over no others.",
    draw=a_response,
)
def _(logprobs, mask):
    chances = [
        np.prod([np.exp(x) for x, m in zip(row, kept, strict=True) if m])
        for row, kept in zip(logprobs, mask, strict=True)
    ]
    return sequence_logprob(logprobs, mask=mask), np.log(chances)


@preferences.check(
    "sequence_logprob_prompt_does_not_count",
    "What stands outside the mask may be any number.",
    draw=a_response,
)
def _(logprobs, mask):
    other = np.where(mask == 1, logprobs, 3 * logprobs - 1)
    return sequence_logprob(other, mask=mask), sequence_logprob(logprobs, mask=mask)


@preferences.check(
    "sequence_logprob_of_all",
    "Without a mask all tokens count.",
    draw=a_response,
)
def _(logprobs, mask):
    return sequence_logprob(logprobs), np.log(np.exp(logprobs).prod(axis=-1))


@preferences.check(
    "dpo_prompt_cancels",
    "What policy and reference say of the prompt is in both responses: it cancels.",
    draw=a_prompt_and_two_responses,
)
def _(prompt, chosen, rejected):
    def margin(of):
        logs = [of(np.concatenate([prompt, said], axis=-1)) for said in pair]
        return dpo_margin(logs[0][:1], logs[1][:1], logs[0][1:], logs[1][1:])

    pair = (chosen, rejected)
    n = prompt.shape[-1]
    masked = margin(
        lambda x: sequence_logprob(x, mask=(np.arange(x.shape[-1]) >= n).astype(int))
    )
    odds = [np.exp(said).prod(axis=-1) for said in pair]
    want = np.log([odds[0][0] / odds[0][1] / (odds[1][0] / odds[1][1])])
    return (masked, margin(sequence_logprob)), (want, want)


@preferences.check(
    "dpo_by_hand",
    "The loss is minus the log of the logistic of beta times the margin.",
    draw=some_pairs,
)
def _(logs, beta):
    chances = np.exp(logs)
    odds = chances[0] / chances[1] / (chances[2] / chances[3])
    return dpo_loss(*logs, beta=beta), -np.log(odds**beta / (1 + odds**beta))


@preferences.check(
    "dpo_worked",
    "Chances .6 and .2 under the policy, .3 and .2 under its reference: log 1.5.",
    draw=nothing,
    kind="value",
)
def _():
    # The ratio of ratios is (.6 / .3) / (.2 / .2) = 2; -log(2 / 3) = log 1.5.
    logs = np.log([[0.6], [0.2], [0.3], [0.2]])
    return (dpo_margin(*logs), dpo_loss(*logs, beta=1.0)), (
        np.log([2.0]),
        np.log([1.5]),
    )


@preferences.check(
    "dpo_margin_is_the_reward",
    "Of the best law under the penalty, beta times the margin is a gap of rewards.",
    draw=rewarded_answers,
)
def _(p, q, reward, beta):
    best = q * np.exp(reward / beta)
    policy, reference = np.log(best / best.sum()), np.log(q)
    h = dpo_margin(policy[:-1], policy[1:], reference[:-1], reference[1:])
    return beta * h, reward[:-1] - reward[1:]


@preferences.check(
    "dpo_is_a_choice_of_two",
    "The loss is the contrastive loss of two columns at temperature 1/beta.",
    draw=some_pairs,
)
def _(logs, beta):
    row = np.stack([logs[0] - logs[2], logs[1] - logs[3]], axis=-1)[:, None, :]
    return dpo_loss(*logs, beta=beta), contrastive_loss(row, tau=1 / beta)


@preferences.check(
    "dpo_at_the_reference",
    "A policy that is its reference pays log 2, whatever beta is.",
    draw=some_pairs,
)
def _(logs, beta):
    same = dpo_loss(*logs[:2], *logs[:2], beta=beta)
    return same, np.full(same.shape, np.log(2.0))


@preferences.check(
    "dpo_likes_the_chosen",
    "A policy that makes the chosen response more probable pays less.",
    draw=some_pairs,
    kind="order",
)
def _(logs, beta):
    more = np.stack([logs[0] + 1.0, *logs[1:]])
    return dpo_loss(*logs, beta=beta), dpo_loss(*more, beta=beta)


@preferences.check(
    "dpo_counts_the_reference",
    "Had the reference liked the chosen response more already, the loss is larger.",
    draw=some_pairs,
    kind="order",
)
def _(logs, beta):
    more = np.stack([*logs[:2], logs[2] + 1.0, logs[3]])
    return dpo_loss(*more, beta=beta), dpo_loss(*logs, beta=beta)


@preferences.check(
    "dpo_far",
    "A margin of minus ten thousand at beta .1 costs a thousand, not infinity.",
    draw=nothing,
    kind="value",
)
def _():
    # log(1 + e^1000) = 1000 + log(1 + e^-1000), which is 1000.
    return dpo_loss([-1e4], [0.0], [0.0], [0.0], beta=0.1), np.array([1000.0])


@preferences.check(
    "dpo_sums_tokens",
    "Responses of three and of two tokens enter as sums over their tokens.",
    draw=nothing,
    kind="value",
)
def _():
    # Sums -6 and -4 against a reference of -6 and -6: the margin is 0 - 2.
    chosen = sequence_logprob([-1.0, -2.0, -3.0, -9.0], mask=[1, 1, 1, 0])
    rejected = sequence_logprob([-2.0, -2.0, -9.0, -9.0], mask=[1, 1, 0, 0])
    loss = dpo_loss([chosen], [rejected], [-6.0], [-6.0], beta=1.0)
    return loss, np.array([np.log(1 + np.exp(2.0))])


@preferences.check(
    "ppo_by_cases",
    "A good action earns up to 1 + eps, a bad one costs at least 1 - eps.",
    draw=some_actions,
)
def _(ratio, advantage):
    want = [
        min(r, 1.2) * a if a > 0 else max(r, 0.8) * a
        for r, a in zip(ratio, advantage, strict=True)
    ]
    return ppo_clip(ratio, advantage, eps=0.2), np.array(want)


@preferences.check(
    "ppo_worked",
    "Of the four corners two are clipped: too far in the direction that pays.",
    draw=nothing,
    kind="value",
)
def _():
    # r 1.5 at A 2: 3 or 1.2 * 2. r .5 at A -2: -1 or .8 * -2. The smaller of each.
    got = ppo_clip([1.5, 0.5, 1.5, 0.5], [2.0, 2.0, -2.0, -2.0], eps=0.2)
    return got, np.array([2.4, 1.0, -3.0, -1.6])


@preferences.check(
    "ppo_paying_corners",
    "A good action made likelier and a bad one made rarer: both are clipped.",
    draw=nothing,
    kind="value",
)
def _():
    # 1.2 * 2 is less than 1.5 * 2, and .8 * -2 is less than .5 * -2.
    return ppo_clip([1.5, 0.5], [2.0, -2.0], eps=0.2), np.array([2.4, -1.6])


@preferences.check(
    "ppo_at_ratio_one",
    "Where nothing has changed yet the objective is the advantage.",
    draw=some_actions,
)
def _(ratio, advantage):
    return ppo_clip(np.ones_like(ratio), advantage), advantage


# ---- How losses break -------------------------------------------------------------


@training.fault(
    "cross_entropy_divides_by_all",
    "the sum over valid targets is divided by the number of all rows",
    operation="cross_entropy",
    story="Reported against several trainers: padding makes a batch look easy.",
    made_for="cross_entropy_ignores_padding",
    stays_green="cross_entropy_is_the_mean",
)
def _(logits, targets, *, ignore_index=-100):
    losses = token_losses(logits, targets, ignore_index=ignore_index)
    return losses.mean()


@training.fault(
    "cross_entropy_sums",
    "the losses are summed and not divided",
    operation="cross_entropy",
    story="reduction='sum' in place of 'mean': the learning rate grows with the batch.",
    made_for="cross_entropy_is_the_mean",
    stays_green="cross_entropy_far",
)
def _(logits, targets, *, ignore_index=-100):
    return token_losses(logits, targets, ignore_index=ignore_index).sum()


@training.fault(
    "cross_entropy_ignores_minus_100_only",
    "the number that marks padding is fixed",
    operation="token_losses",
    story="A constant of one library in the kernel of another.",
    made_for="cross_entropy_ignores_what_is_named",
    stays_green="cross_entropy_ignores_padding",
)
def _(logits, targets, *, ignore_index=-100):
    return token_losses(logits, targets)


@training.fault(
    "cross_entropy_of_ignored_is_zero",
    "a batch without a target costs nothing, without a word",
    operation="cross_entropy",
    story="A guard against 0/0; data that lost all targets then train in silence.",
    made_for="cross_entropy_refuses_all_ignored",
    stays_green="cross_entropy_ignores_padding",
    unguarded=True,
)
def _(logits, targets, *, ignore_index=-100):
    losses = token_losses(logits, targets, ignore_index=ignore_index)
    count = np.count_nonzero(np.asarray(targets) != ignore_index)
    return losses.sum() / max(count, 1)


@training.fault(
    "cross_entropy_wraps_targets",
    "a negative target counts from the end",
    operation="cross_entropy",
    story="Indexing does it unasked; datasets mark padding by -1 as well as by -100.",
    made_for="cross_entropy_refuses_negative_target",
    stays_green="cross_entropy_ignores_padding",
    unguarded=True,
)
def _(logits, targets, *, ignore_index=-100):
    ids = np.asarray(targets)
    wrapped = np.where(ids == ignore_index, ids, ids % logits.shape[-1])
    return cross_entropy(logits, wrapped, ignore_index=ignore_index)


@training.fault(
    "token_losses_log_of_softmax",
    "the logarithm is taken of a probability that was rounded to zero",
    operation="token_losses",
    story="Two library calls where one is meant: log(softmax(x)).",
    made_for="cross_entropy_far",
    stays_green="cross_entropy_uniform",
)
def _(logits, targets, *, ignore_index=-100):
    ids = np.asarray(targets)
    p = np.exp(logits - logits.max(axis=-1, keepdims=True))
    p = p / p.sum(axis=-1, keepdims=True)
    column = np.where(ids == ignore_index, 0, ids)[..., None]
    own = np.take_along_axis(p, column, axis=-1)[..., 0]
    return np.where(ids == ignore_index, 0.0, -np.log(own))


@training.fault(
    "token_losses_shifted",
    "each position is held against the target of its neighbour",
    operation="token_losses",
    story="Targets shifted by one where the loader has shifted them already.",
    made_for="token_losses_add_up",
    stays_green="cross_entropy_uniform",
)
def _(logits, targets, *, ignore_index=-100):
    ids = np.asarray(targets)
    moved = (ids + 1) % logits.shape[-1]
    moved = np.where(ids == ignore_index, ids, moved)
    return token_losses(logits, moved, ignore_index=ignore_index)


@training.fault(
    "surprisal_always_in_bits",
    "the base is 2, whatever is asked for",
    operation="surprisal",
    story="log2 in one file and log in the other: losses that differ by 1.4427.",
    made_for="surprisal_units",
    stays_green="surprisal_of_both",
)
def _(p, *, base=np.e):
    return -np.log2(p)


@training.fault(
    "surprisal_to_first_order",
    "one minus the probability stands for its logarithm",
    operation="surprisal",
    story="Near certainty they agree, which is where a trained model lives.",
    made_for="surprisal_of_both",
    stays_green="cross_entropy_worked",
)
def _(p, *, base=np.e):
    return (1 - np.asarray(p)) / np.log(base)


@training.fault(
    "squared_error_halved",
    "half the square",
    operation="squared_error",
    story="Textbooks put the half there for the gradient's sake.",
    made_for="squared_error_worked",
    stays_green="cross_entropy_worked",
)
def _(prediction, target):
    return (prediction - target) ** 2 / 2


@training.fault(
    "contrastive_over_columns",
    "the choice is among the rows",
    operation="contrastive_loss",
    story="An axis mistaken: documents choose queries. Square tables hide the shape.",
    made_for="contrastive_is_mean_cross_entropy",
    stays_green="contrastive_equal_similarities",
)
def _(sim, *, tau):
    e = np.exp(sim / tau - (sim / tau).max())
    own = np.diagonal(e / e.sum(axis=-2, keepdims=True), axis1=-2, axis2=-1)
    return -np.log(own).mean(axis=-1)


@training.fault(
    "contrastive_without_temperature",
    "the temperature is not used",
    operation="contrastive_loss",
    story="Left at its default of 1 in a call that forgot to pass it on.",
    made_for="contrastive_is_mean_cross_entropy",
    stays_green="contrastive_worked",
)
def _(sim, *, tau):
    return contrastive_loss(sim, tau=1.0)


@training.fault(
    "contrastive_without_own_column",
    "the positive is missing from the denominator",
    operation="contrastive_loss",
    story="Only the negatives are summed, as one paper writes it and most do not.",
    made_for="contrastive_worked",
    stays_green="cross_entropy_worked",
)
def _(sim, *, tau):
    e = np.exp(sim / tau)
    own = np.diagonal(e, axis1=-2, axis2=-1)
    return -np.log(own / (e.sum(axis=-1) - own)).mean(axis=-1)


@training.fault(
    "contrastive_takes_any_temperature",
    "a temperature of zero is replaced by a small one",
    operation="contrastive_loss",
    story="A learnt temperature reached zero: the run goes on, and learns nothing.",
    made_for="contrastive_refuses_zero_temperature",
    stays_green="contrastive_worked",
    unguarded=True,
)
def _(sim, *, tau):
    return contrastive_loss(sim, tau=tau or 1e-8)


# ---- How preferences break --------------------------------------------------------


@preferences.fault(
    "kl_swapped",
    "the two laws are exchanged",
    operation="kl",
    story="A library takes log q first and means KL(p || q); calls by position do not.",
    made_for="kl_worked",
    stays_green="kl_never_negative",
)
def _(p, q):
    return kl(q, p)


@preferences.fault(
    "kl_symmetrised",
    "the mean of both directions",
    operation="kl",
    story="A distance is wanted, so one is made.",
    made_for="kl_asymmetry",
    stays_green="kl_never_negative",
)
def _(p, q):
    return (kl(p, q) + kl(q, p)) / 2


@preferences.fault(
    "kl_clamped",
    "q is kept above a small number",
    operation="kl",
    story="An epsilon against log 0: what is impossible costs 27 nats instead.",
    made_for="kl_zero_support",
    stays_green="kl_worked",
)
def _(p, q):
    q = np.maximum(q, 1e-12)
    some = np.where(p > 0, p, 1.0)
    return (np.where(p > 0, p, 0.0) * np.log(some / q)).sum(axis=-1)


@preferences.fault(
    "kl_of_quotient_turned",
    "the quotient is q over p",
    operation="kl",
    story="One sign. A loss that falls for ever.",
    made_for="kl_never_negative",
    stays_green="kl_asymmetry",
)
def _(p, q):
    return 0.0 - kl(p, q)


@preferences.fault(
    "kl_is_cross_entropy",
    "the entropy of p is not taken away",
    operation="kl",
    story="Equal in every gradient with respect to q, and not zero where p is q.",
    made_for="kl_is_cross_entropy_less_entropy",
    stays_green="kl_never_negative",
)
def _(p, q):
    return kl(p, q) + entropy(p)


@preferences.fault(
    "kl_as_a_mean",
    "the terms are averaged over the vocabulary",
    operation="kl",
    story="reduction='mean' of a library averages over every entry, not over rows.",
    made_for="kl_of_pairs",
    stays_green="kl_asymmetry",
)
def _(p, q):
    return kl(p, q) / p.shape[-1]


@preferences.fault(
    "sequence_logprob_mean",
    "log-probabilities are averaged over the positions",
    operation="sequence_logprob",
    story="Reported against two trainers for preferences: long answers win.",
    made_for="dpo_sums_tokens",
    stays_green="sequence_logprob_prompt_does_not_count",
)
def _(logprobs, *, mask=None):
    kept = np.ones_like(logprobs) if mask is None else np.asarray(mask)
    return (logprobs * kept).mean(axis=-1)


@preferences.fault(
    "sequence_logprob_mask_inverted",
    "what is masked is kept, the response is dropped",
    operation="sequence_logprob",
    story="A mask of labels to ignore is handed over as one of tokens to keep.",
    made_for="sequence_logprob_prompt_does_not_count",
    stays_green="sequence_logprob_of_all",
)
def _(logprobs, *, mask=None):
    keep = None if mask is None else 1 - np.asarray(mask)
    return sequence_logprob(logprobs, mask=keep)


@preferences.fault(
    "sequence_logprob_counts_the_prompt",
    "everything before the end of the response is counted",
    operation="sequence_logprob",
    story="The labels of the prompt are left unmasked; a sum in DPO cannot notice.",
    made_for="sequence_logprob_prompt_does_not_count",
    stays_green="dpo_prompt_cancels",
)
def _(logprobs, *, mask=None):
    if mask is not None:
        mask = np.maximum.accumulate(np.asarray(mask)[..., ::-1], axis=-1)[..., ::-1]
    return sequence_logprob(logprobs, mask=mask)


@preferences.fault(
    "dpo_reference_added",
    "the reference is added to the policy instead of taken away",
    operation="dpo_margin",
    story="One sign; raising the chosen response still lowers the loss.",
    made_for="dpo_at_the_reference",
    stays_green="dpo_likes_the_chosen",
)
def _(policy_chosen, policy_rejected, ref_chosen, ref_rejected):
    return (policy_chosen + ref_chosen) - (policy_rejected + ref_rejected)


@preferences.fault(
    "dpo_chosen_and_rejected_swapped",
    "the rejected response is preferred",
    operation="dpo_margin",
    story="Two columns of a data set exchanged; at the start both give log 2.",
    made_for="dpo_likes_the_chosen",
    stays_green="dpo_at_the_reference",
)
def _(policy_chosen, policy_rejected, ref_chosen, ref_rejected):
    return dpo_margin(policy_rejected, policy_chosen, ref_rejected, ref_chosen)


@preferences.fault(
    "dpo_without_reference",
    "the reference is left out",
    operation="dpo_margin",
    story="Reference-free training under the name of DPO.",
    made_for="dpo_counts_the_reference",
    stays_green="dpo_likes_the_chosen",
)
def _(policy_chosen, policy_rejected, ref_chosen, ref_rejected):
    return (policy_chosen - policy_rejected) + 0.0 * (ref_chosen - ref_rejected)


@preferences.fault(
    "dpo_of_the_chosen_only",
    "the rejected response is left out",
    operation="dpo_margin",
    story="In the worked pair its two chances are equal: that half of the margin is 0.",
    made_for="dpo_by_hand",
    stays_green="dpo_worked",
)
def _(policy_chosen, policy_rejected, ref_chosen, ref_rejected):
    return (policy_chosen - ref_chosen) + 0.0 * (policy_rejected - ref_rejected)


@preferences.fault(
    "dpo_without_beta",
    "beta is not used",
    operation="dpo_loss",
    story="A default of 1 that is never overwritten; the worked example cannot tell.",
    made_for="dpo_by_hand",
    stays_green="dpo_worked",
)
def _(policy_chosen, policy_rejected, ref_chosen, ref_rejected, *, beta):
    return dpo_loss(policy_chosen, policy_rejected, ref_chosen, ref_rejected, beta=1.0)


@preferences.fault(
    "dpo_log_of_sigmoid",
    "the logistic is rounded to zero before its logarithm is taken",
    operation="dpo_loss",
    story="log(1 / (1 + exp(x))) as it is written in the paper.",
    made_for="dpo_far",
    stays_green="dpo_at_the_reference",
)
def _(policy_chosen, policy_rejected, ref_chosen, ref_rejected, *, beta):
    h = dpo_margin(policy_chosen, policy_rejected, ref_chosen, ref_rejected)
    return -np.log(1 / (1 + np.exp(-beta * h)))


@preferences.fault(
    "ppo_larger_of_the_two",
    "the larger product is taken",
    operation="ppo_clip",
    story="The objective is to be made large, so max looks right.",
    made_for="ppo_by_cases",
    stays_green="ppo_at_ratio_one",
)
def _(ratio, advantage, *, eps=0.2):
    low, high = ratio * advantage, np.clip(ratio, 1 - eps, 1 + eps) * advantage
    return np.maximum(low, high)


@preferences.fault(
    "ppo_always_clipped",
    "the ratio is clipped on both sides, whatever the advantage is",
    operation="ppo_clip",
    story="Reported against three implementations: no gradient after a wrong step.",
    made_for="ppo_worked",
    stays_green="ppo_paying_corners",
)
def _(ratio, advantage, *, eps=0.2):
    return np.clip(ratio, 1 - eps, 1 + eps) * advantage


@preferences.fault(
    "ppo_smaller_ratio_first",
    "the smaller ratio is chosen before it is multiplied",
    operation="ppo_clip",
    story="Right for every good action, wrong for every bad one.",
    made_for="ppo_worked",
    stays_green="ppo_at_ratio_one",
)
def _(ratio, advantage, *, eps=0.2):
    return np.minimum(ratio, np.clip(ratio, 1 - eps, 1 + eps)) * advantage


@preferences.fault(
    "ppo_of_log_ratio",
    "the logarithm of the ratio is taken for the ratio",
    operation="ppo_clip",
    story="Trainers keep logarithms; the exponential of their difference is due.",
    made_for="ppo_at_ratio_one",
    stays_green="ppo_gradient_inside",
)
def _(ratio, advantage, *, eps=0.2):
    return np.log(ratio) * advantage
