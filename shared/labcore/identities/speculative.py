"""Speculative decoding: what must hold, and how it breaks."""

from __future__ import annotations

from itertools import product

import numpy as np

from ..ops.sampling import top_k
from ..ops.speculative import (
    Speculation,
    _draw,
    expected_tokens,
    speculative_acceptance,
    speculative_block_law,
    speculative_decode,
    speculative_distribution,
    speculative_residual,
)
from ._check import Chapter, Inputs, Rng, nothing

chapter = Chapter(
    "speculative-decoding", "Recover the exact target distribution", "The identities"
)


# ---- What is drawn ----------------------------------------------------------------


def two_laws(rng: Rng, size: int) -> Inputs:
    """A target that falls and a draft that rises, so that they always differ."""
    n = size + 2
    p = np.sort(rng.uniform(0.2, 1.0, size=n))[::-1] + np.arange(n)[::-1]
    q = np.sort(rng.uniform(0.2, 1.0, size=n)) + np.arange(n)
    return {"p": p / p.sum(), "q": q / q.sum()}


def prefix_laws(rng: Rng, size: int) -> Inputs:
    """Laws that depend on the whole prefix; three tokens, two drafted ones.

    Targets fall and drafts rise, each after each prefix in its own way.
    """
    falling = np.arange(3.0)[::-1]
    p = [_sharpened(rng, (3,) * (i + 1), falling, size) for i in range(3)]
    q = [_sharpened(rng, (3,) * (i + 1), falling[::-1], size) for i in range(2)]
    return {"p": p, "q": q}


def one_law_for_every_prefix(rng: Rng, size: int) -> Inputs:
    """The same target and draft after every prefix; size tokens are drafted."""
    return {**two_laws(rng, 1), "gamma": size}


def certain_target(rng: Rng, size: int) -> Inputs:
    """A target with a single token, and a draft that may say anything."""
    n = size + 2
    q = rng.uniform(0.2, 1.0, size=n)
    return {"p": np.eye(n)[rng.integers(n)], "q": q / q.sum()}


def _sharpened(rng, shape, trend, size):
    law = rng.uniform(0.2, 1.0, size=shape) + trend / size
    return law / law.sum(axis=-1, keepdims=True)


# ---- What must hold ---------------------------------------------------------------


@chapter.check(
    "speculative_distribution",
    "Accepted mass plus redrawn mass is the target, token by token.",
    draw=two_laws,
)
def _(p, q):
    return speculative_distribution(p, q), p


@chapter.check(
    "speculative_acceptance_rate",
    "The acceptance rate is one minus the total variation distance.",
    draw=two_laws,
)
def _(p, q):
    return speculative_acceptance(p, q).sum(), 1 - np.abs(p - q).sum() / 2


@chapter.check(
    "speculative_sums_to_one",
    "The emitted law sums to one.",
    draw=two_laws,
)
def _(p, q):
    return speculative_distribution(p, q).sum(), np.float64(1.0)


@chapter.check(
    "speculative_worked",
    "Target (.6, .3, .1), draft (.2, .5, .3): every rejection redraws token 0.",
    draw=nothing,
    kind="value",
)
def _():
    # min: (.2, .3, .1), rate .6. Surplus: (.4, 0, 0), so the residual is (1, 0, 0).
    p, q = [0.6, 0.3, 0.1], [0.2, 0.5, 0.3]
    got = speculative_acceptance(p, q), speculative_residual(p, q)
    return got, (np.array([0.2, 0.3, 0.1]), np.array([1.0, 0.0, 0.0]))


@chapter.check(
    "speculative_enumerated",
    "Running one round for every draft and a fine grid of numbers gives the target.",
    draw=two_laws,
)
def _(p, q):
    # The round is a piecewise constant map of its two uniform numbers; their cuts are
    # the acceptance ratios and the residual's cumulative sums, so midpoints between
    # consecutive cuts enumerate it exactly.
    residual = np.maximum(p - q, 0)
    cuts = np.cumsum(residual / residual.sum())
    grid = np.arange(1, 4) / 4  # for the laws that wrong versions draw from
    law = np.zeros(len(p))
    for token in range(len(p)):
        ratio = min(1.0, p[token] / q[token])
        for u, u_mass in _cells([ratio]):
            for w, w_mass in _cells(np.concatenate([cuts, np.cumsum(p), grid])):
                p_rows = np.stack([p, np.eye(len(p))[0]])
                done = speculative_decode(p_rows, q[None], [token], [u, w])
                law[done.tokens[0]] += q[token] * u_mass * w_mass
    return law, p


@chapter.check(
    "speculative_trace",
    "Accept, reject, stop: the rest of the draft and the bonus row are not used.",
    draw=nothing,
    kind="exact",
)
def _():
    # Ratio .5/.2 > .9: accepted. Ratio .3/.5 = .6 <= .7: rejected; the residual of
    # (.5, .3, .2) over (.2, .5, .3) has the single token 0.
    p = np.array([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2], [0.0, 0.0, 1.0]])
    q = np.array([[0.2, 0.5, 0.3], [0.2, 0.5, 0.3]])
    return speculative_decode(p, q, [0, 1], [0.9, 0.7]), Speculation([0, 0], 1)


@chapter.check(
    "speculative_bonus_token",
    "When every draft is accepted, the target's next row gives one token more.",
    draw=nothing,
    kind="exact",
)
def _():
    p = np.array([[0.5, 0.5], [0.25, 0.75], [0.0, 1.0]])
    q = np.array([[0.5, 0.5], [0.25, 0.75]])
    return speculative_decode(p, q, [0, 1], [0.9, 0.9]), Speculation([0, 1, 1], 2)


@chapter.check(
    "speculative_truncated_draft",
    "A draft truncated to two tokens must be judged by its truncated law.",
    draw=nothing,
    kind="value",
)
def _():
    # Raw draft = target = (.5, .25, .25). The truncated draft is (2/3, 1/3, 0):
    # min is (.5, .25, 0), and the residual gives the missing quarter to token 2.
    p = np.array([0.5, 0.25, 0.25])
    q = top_k(p, 2)
    got = speculative_acceptance(p, q).sum(), speculative_distribution(p, q)
    return got, (np.float64(0.75), np.array([0.5, 0.25, 0.25]))


@chapter.check(
    "expected_tokens_enumerated",
    "The expected length of a round is the mean over its outcomes.",
    draw=two_laws,
)
def _(p, q):
    alpha, gamma = float(p[0]), 3
    mean = 0.0
    for outcome in product([True, False], repeat=gamma):
        accepted = (*outcome, False).index(False)
        mass = float(np.prod([alpha if hit else 1 - alpha for hit in outcome]))
        mean += mass * (accepted + 1)
    return np.float64(expected_tokens(alpha, gamma)), np.float64(mean)


@chapter.check(
    "speculative_greedy_target",
    "A target that is certain emits its token, whatever is drafted.",
    draw=certain_target,
)
def _(p, q):
    first = [
        speculative_decode(np.stack([p, p]), q[None], [token], [u, w]).tokens[0]
        for token in range(len(p))
        for u, w in product([0.125, 0.875], repeat=2)
    ]
    want = np.full(len(first), np.argmax(p))
    return (speculative_distribution(p, q), np.array(first)), (p, want)


# ---- The whole block ---------------------------------------------------------------


@chapter.check(
    "block_law_completed",
    "Completed by the target to a fixed length, the block follows the target's law.",
    draw=prefix_laws,
)
def _(p, q):
    return _completed(speculative_block_law(p, q), p), _joint(p)


@chapter.check(
    "block_law_given_length",
    "Of the blocks of one length, the tokens do not follow the target's law.",
    draw=prefix_laws,
    kind="differs",
)
def _(p, q):
    whole = speculative_block_law(p, q)[-1]
    return whole / whole.sum(), _joint(p)


@chapter.check(
    "block_law_sums_to_one",
    "The blocks of all lengths together have mass one.",
    draw=prefix_laws,
)
def _(p, q):
    return sum(block.sum() for block in speculative_block_law(p, q)), np.float64(1.0)


@chapter.check(
    "block_law_by_rounds",
    "Running the round for every draft and every cell of its numbers gives that law.",
    draw=prefix_laws,
)
def _(p, q):
    law = [np.zeros(table.shape) for table in p]
    for draft in product(range(3), repeat=2):
        p_rows = np.stack([p[i][draft[:i]] for i in range(3)])
        q_rows = np.stack([q[i][draft[:i]] for i in range(2)])
        here = np.arange(2), draft
        ratios = np.minimum(1.0, p_rows[here] / q_rows[here])
        last = [*speculative_residual(p_rows[:2], q_rows), p_rows[2]]
        for numbers, accepted, mass in _judged(ratios):
            mass = mass * np.prod(q_rows[here])
            cuts = np.cumsum(last[accepted]) / last[accepted].sum()
            for w, cell in _cells([*cuts, 0.5]):
                done = speculative_decode(p_rows, q_rows, list(draft), [*numbers, w])
                law[len(done.tokens) - 1][tuple(done.tokens)] += mass * cell
    return list(speculative_block_law(p, q)), law


@chapter.check(
    "block_law_worked",
    "One drafted token, worked by hand: the block (0), or two tokens.",
    draw=nothing,
    kind="value",
)
def _():
    # min(p, q) = (.2, .3, .1); the rest, .4, is redrawn as token 0. What is accepted
    # goes on with the target's row for that token.
    p_next = [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5]]
    got = speculative_block_law([[0.6, 0.3, 0.1], p_next], [[0.2, 0.5, 0.3]])
    two = [[0.1, 0.1, 0.0], [0.0, 0.15, 0.15], [0.05, 0.0, 0.05]]
    return got, (np.array([0.4, 0.0, 0.0]), np.array(two))


@chapter.check(
    "block_law_round_after_round",
    "Rounds one after another, cut after two tokens, give the target's law of two.",
    draw=prefix_laws,
)
def _(p, q):
    one, two = speculative_block_law(p[:2], q[:1])
    for x in range(3):  # a block of one token: a second round starts behind it
        short, long = speculative_block_law([p[1][x], p[2][x]], [q[1][x]])
        two = two + np.eye(3)[x][:, None] * one[x] * (short + long.sum(axis=-1))
    return two, _joint(p[:2])


@chapter.check(
    "block_law_nothing_drafted",
    "Without a draft the block is one token of the target.",
    draw=prefix_laws,
)
def _(p, q):
    return speculative_block_law(p[:1], []), (p[0],)


@chapter.check(
    "block_law_mean_length",
    "With one law for every prefix, the mean length is the geometric sum.",
    draw=one_law_for_every_prefix,
)
def _(p, q, gamma):
    shapes = [(3,) * (i + 1) for i in range(gamma + 1)]
    law = speculative_block_law(
        [np.broadcast_to(p, shape) for shape in shapes],
        [np.broadcast_to(q, shape) for shape in shapes[:-1]],
    )
    mean = sum((i + 1) * block.sum() for i, block in enumerate(law))
    return mean, np.float64(expected_tokens(np.minimum(p, q).sum(), gamma))


@chapter.check(
    "speculative_refuses_undrafted",
    "A draft token that the draft gives probability 0 is refused.",
    draw=nothing,
    kind="refuses",
)
def _():
    p, q = [[0.5, 0.5], [0.5, 0.5]], [[1.0, 0.0]]
    return lambda: speculative_decode(p, q, [1], [0.5]), "draft_tokens"


def _joint(laws):
    """The law of a whole sequence from the law of each next token."""
    mass = np.ones(())
    for law in laws:
        mass = mass[..., None] * law
    return mass


def _completed(blocks, p):
    """Blocks of every length, continued by the target to the longest."""
    total = np.zeros(p[-1].shape)
    for i, block in enumerate(blocks):
        for law in p[i + 1 :]:
            block = block[..., None] * law
        total += block
    return total


def _judged(ratios):
    """Every outcome of the tests: numbers for it, how many are accepted, its mass."""
    mass = 1.0
    for i, ratio in enumerate(ratios):
        if ratio < 1:
            judged = np.where(np.arange(len(ratios)) < i, ratios / 2, (1 + ratio) / 2)
            yield judged, i, mass * (1 - ratio)
        mass *= ratio
    yield ratios / 2, len(ratios), mass


def _cells(cuts):
    """Midpoint and length of each cell that the cuts make of [0, 1)."""
    edges = np.unique(np.clip(np.concatenate([[0.0], cuts, [1.0]]), 0.0, 1.0))
    return [
        ((a + b) / 2, b - a)
        for a, b in zip(edges[:-1], edges[1:], strict=True)
        if b - a > 1e-15
    ]


@chapter.check(
    "speculative_row_by_row",
    "In a batch each row has its own rejected mass; a row of equal laws has none.",
    draw=two_laws,
)
def _(p, q):
    targets = np.stack([p, p, p[::-1]])
    return speculative_distribution(targets, np.stack([q, p, q])), targets


@chapter.check(
    "speculative_edges",
    "A number equal to the ratio rejects, so that 0 accepts no forbidden token.",
    draw=nothing,
    kind="exact",
)
def _():
    # Ratio .25/.5 = .5: the numbers below .5 accept, half of [0, 1). Ratio 0: none do.
    # The last draw cuts [0, 1) into [0, .5) and [.5, 1).
    two = speculative_decode([[0.25, 0.75], [1.0, 0.0]], [[0.5, 0.5]], [0], [0.5])
    none = speculative_decode([[0.0, 1.0], [1.0, 0.0]], [[0.5, 0.5]], [0], [0.0])
    last = speculative_decode([[1.0, 0.0], [0.5, 0.5]], [[1.0, 0.0]], [0], [0.9, 0.5])
    return (two, none, last), (
        Speculation([1], 0),
        Speculation([1], 0),
        Speculation([0, 1], 1),
    )


@chapter.check(
    "top_k_row_by_row",
    "The k largest of each row are kept; of equals the earlier one.",
    draw=nothing,
    kind="value",
)
def _():
    p = [[0.5, 0.125, 0.375], [0.25, 0.5, 0.25]]
    want = [[4 / 7, 0.0, 3 / 7], [1 / 3, 2 / 3, 0.0]]
    # Forty tokens, of which every second has 3/80: the first ten of those twenty.
    many = np.tile([0.0125, 0.0375], 20)
    first = np.where(np.arange(40) < 20, np.tile([0.0, 0.1], 20), 0.0)
    return (top_k(p, 2), top_k(many, 10)), (np.array(want), first)


# ---- How it breaks ----------------------------------------------------------------


@chapter.fault(
    "residual_is_the_target",
    "a rejected token is redrawn from the target itself",
    operation="speculative_residual",
    story=(
        "The obvious reading of 'ask the target instead'; it favours what was accepted"
        " already."
    ),
    made_for="speculative_distribution",
    stays_green="speculative_sums_to_one",
)
def _(p, q):
    return p + np.zeros_like(q)


@chapter.fault(
    "residual_absolute",
    "the residual takes the absolute difference",
    operation="speculative_residual",
    story="|p - q| for [p - q]+: it still sums to one.",
    made_for="speculative_distribution",
    stays_green="speculative_acceptance_rate",
)
def _(p, q):
    apart = np.abs(p - q)
    return apart / apart.sum(axis=-1, keepdims=True)


@chapter.fault(
    "residual_reversed",
    "the residual is the draft's surplus over the target",
    operation="speculative_residual",
    story="p and q in the other order: papers disagree on which letter is the draft.",
    made_for="speculative_worked",
    stays_green="speculative_sums_to_one",
)
def _(p, q):
    return speculative_residual(q, p)


@chapter.fault(
    "acceptance_always",
    "every draft is accepted",
    operation="speculative_acceptance",
    story="Greedy matching replaced by nothing at all; the output is the draft's law.",
    made_for="speculative_acceptance_rate",
    stays_green="speculative_sums_to_one",
)
def _(p, q):
    return q + np.zeros_like(p)


@chapter.fault(
    "acceptance_by_product",
    "a token is accepted with the target's probability",
    operation="speculative_acceptance",
    story=(
        "min(1, p/q) forgotten: q(x) p(x) is the chance that two independent draws "
        "agree."
    ),
    made_for="speculative_worked",
    stays_green="speculative_sums_to_one",
)
def _(p, q):
    return p * q


@chapter.fault(
    "rejected_mass_lost",
    "the rejected mass is not redrawn but spread by renormalising",
    operation="speculative_distribution",
    story=(
        "Dividing the accepted mass by its sum looks like a distribution, and is "
        "another."
    ),
    made_for="speculative_distribution",
    stays_green="speculative_sums_to_one",
)
def _(p, q):
    accepted = speculative_acceptance(p, q)
    return accepted / accepted.sum(axis=-1, keepdims=True)


@chapter.fault(
    "rejected_mass_dropped",
    "the rejected mass is not given to anyone",
    operation="speculative_distribution",
    story="Half of the proof: accepted mass alone, which is not a distribution.",
    made_for="speculative_sums_to_one",
    stays_green="speculative_acceptance_rate",
)
def _(p, q):
    return speculative_acceptance(p, q)


@chapter.fault(
    "round_goes_on_after_rejection",
    "tokens after a rejected one are still taken",
    operation="speculative_decode",
    story=(
        "Acceptance computed for the whole block at once, and the first failure not "
        "searched for."
    ),
    made_for="speculative_trace",
    stays_green="speculative_bonus_token",
)
def _(p, q, draft_tokens, uniforms):
    first = speculative_decode(p, q, draft_tokens, uniforms)
    if first.accepted == len(draft_tokens):
        return first
    bonus = int(np.argmax(p[-1]))
    rest = [int(t) for t in draft_tokens[first.accepted + 1 :]]
    return Speculation([*first.tokens, *rest, bonus], first.accepted)


@chapter.fault(
    "round_redraws_from_target",
    "the replacement token is drawn from the target",
    operation="speculative_decode",
    story="The residual forgotten in the loop, although its function is right.",
    made_for="speculative_enumerated",
    stays_green="speculative_bonus_token",
)
def _(p, q, draft_tokens, uniforms):
    done = speculative_decode(p, q, draft_tokens, uniforms)
    if done.accepted == len(draft_tokens) or len(uniforms) == len(draft_tokens):
        return done
    law = np.cumsum(p[done.accepted])
    token = int(np.searchsorted(law / law[-1], uniforms[-1], side="right"))
    return Speculation([*done.tokens[:-1], token], done.accepted)


@chapter.fault(
    "round_without_bonus",
    "a round that accepts everything emits no token of its own",
    operation="speculative_decode",
    story="One target row thrown away a round: the law is right, the speed is not.",
    made_for="speculative_bonus_token",
    stays_green="speculative_trace",
)
def _(p, q, draft_tokens, uniforms):
    done = speculative_decode(p, q, draft_tokens, uniforms)
    full = done.accepted == len(draft_tokens)
    return Speculation(done.tokens[:-1], done.accepted) if full else done


@chapter.fault(
    "round_ratio_reversed",
    "a draft is accepted by q/p",
    operation="speculative_decode",
    story="The ratio upside down: good drafts are rejected, bad ones pass.",
    made_for="speculative_enumerated",
    stays_green="speculative_bonus_token",
)
def _(p, q, draft_tokens, uniforms):
    tokens: list[int] = []
    for i, token in enumerate(draft_tokens):
        p_x, q_x = p[i, token], q[i, token]
        flipped = 1.0 if p_x == 0 else min(1.0, q_x / p_x)
        if uniforms[i] >= flipped:
            law = np.cumsum(speculative_residual(p[i], q[i]))
            w = uniforms[-1]
            return Speculation(
                [*tokens, int(np.searchsorted(law / law[-1], w, side="right"))], i
            )
        tokens.append(int(token))
    law = np.cumsum(p[len(tokens)])
    last = int(np.searchsorted(law / law[-1], uniforms[-1], side="right"))
    return Speculation([*tokens, last], len(tokens))


@chapter.fault(
    "round_accepts_likely",
    "a draft is accepted when the target finds it likely enough",
    operation="speculative_decode",
    story=(
        "Rules of that kind are used for speed; the output then follows another law "
        "than the target's."
    ),
    made_for="speculative_enumerated",
    stays_green="speculative_greedy_target",
)
def _(p, q, draft_tokens, uniforms):
    likely = [p[i, token] >= 0.25 for i, token in enumerate(draft_tokens)]
    judged = [0.0 if yes else 1 - 1e-12 for yes in likely]
    return speculative_decode(
        p, q, draft_tokens, [*judged, *uniforms[len(draft_tokens) :]]
    )


@chapter.fault(
    "block_goes_on_after_rejection",
    "drafted tokens behind a rejected one stay in the block",
    operation="speculative_block_law",
    story=(
        "They were drafted after a token that is no longer there. Every block has the "
        "full length, and looks fast."
    ),
    made_for="block_law_completed",
    stays_green="block_law_sums_to_one",
)
def _(p, q):
    gamma, n = len(q), p[0].shape[-1]
    law = [np.zeros_like(table) for table in p]
    for draft in product(range(n), repeat=gamma):
        mass = 1.0
        for i, token in enumerate(draft):
            p_i, q_i = p[i][draft[:i]], q[i][draft[:i]]
            rest = np.prod([q[j][draft[: j + 1]] for j in range(i, gamma)])
            rejected = rest * max(0.0, 1 - p_i[token] / q_i[token])
            if rejected > 0:
                redrawn = mass * rejected * speculative_residual(p_i, q_i)
                for y in range(n):
                    law[-1][*draft[:i], y, *draft[i + 1 :]] += redrawn[y] * p[-1][draft]
            mass *= min(p_i[token], q_i[token])
        law[-1][draft] += mass * p[-1][draft]
    return tuple(law)


@chapter.fault(
    "block_bonus_from_row_before",
    "the bonus token is drawn from the target's row before",
    operation="speculative_block_law",
    story="Row i of the logits is the law of token i + 1: off by one at the end.",
    made_for="block_law_completed",
    stays_green="block_law_mean_length",
)
def _(p, q):
    if not q:
        return speculative_block_law(p, q)
    late = [*p[:-1], np.broadcast_to(p[-2][..., None, :], p[-1].shape)]
    return speculative_block_law(late, q)


@chapter.fault(
    "block_without_bonus",
    "a block that is accepted throughout ends without a token of the target",
    operation="speculative_block_law",
    story="One target row thrown away a round: the law is right, the speed is not.",
    made_for="block_law_mean_length",
    stays_green="block_law_completed",
)
def _(p, q):
    law = list(speculative_block_law(p, q))
    whole = law.pop().sum(axis=-1)
    if not law:
        return (np.zeros_like(p[0]),)
    return (*law[:-1], law[-1] + whole, np.zeros_like(p[-1]))


@chapter.fault(
    "block_length_drawn_apart",
    "the tokens are drawn from the target, and the length by itself",
    operation="speculative_block_law",
    story=(
        "What a simulator of speed does: every average is right, and the length knows "
        "nothing about the tokens."
    ),
    made_for="block_law_given_length",
    stays_green="block_law_completed",
)
def _(p, q):
    lengths = [block.sum() for block in speculative_block_law(p, q)]
    return tuple(length * _joint(p[: i + 1]) for i, length in enumerate(lengths))


@chapter.fault(
    "block_reads_stale_prefix",
    "every prefix is given the laws of another one",
    operation="speculative_block_law",
    story=(
        "A cache that was not cut back after a rejection: the target judges the draft "
        "as if the text were another."
    ),
    made_for="block_law_completed",
    stays_green="block_law_sums_to_one",
)
def _(p, q):
    stale = [np.broadcast_to(table[(0,) * i], table.shape) for i, table in enumerate(p)]
    return speculative_block_law(stale, q)


@chapter.fault(
    "draft_judged_untruncated",
    "top-k returns its input unchanged",
    operation="top_k",
    story=(
        "The ratio is taken with the law before truncation: nothing is ever rejected."
    ),
    made_for="speculative_truncated_draft",
    stays_green="speculative_distribution",
)
def _(p, k):
    return p + 0.0


@chapter.fault(
    "expected_without_bonus",
    "the bonus token is not counted",
    operation="expected_tokens",
    story="The sum from 1 to gamma: off by one token a round.",
    made_for="expected_tokens_enumerated",
    stays_green="speculative_distribution",
)
def _(alpha, gamma):
    return sum(alpha**i for i in range(gamma))


@chapter.fault(
    "zero_draft_probability_accepted",
    "a token that the draft could not have drawn is judged anyway",
    operation="speculative_decode",
    story="Division by zero gives an infinite ratio, and the token is always accepted.",
    made_for="speculative_refuses_undrafted",
    stays_green="speculative_trace",
    unguarded=True,
)
def _(p, q, draft_tokens, uniforms):
    return speculative_decode(p, np.maximum(q, 1e-300), draft_tokens, uniforms)


@chapter.fault(
    "residual_of_every_row",
    "the residual is asked for in rows where the laws are equal",
    operation="speculative_distribution",
    story="A draft that agrees with the target in one row of a batch: zero by zero.",
    made_for="speculative_row_by_row",
    stays_green="speculative_distribution",
)
def _(p, q):
    accepted = speculative_acceptance(p, q)
    rejected = 1.0 - accepted.sum(axis=-1, keepdims=True)
    return accepted + rejected * speculative_residual(p, q)


@chapter.fault(
    "round_accepts_at_the_ratio",
    "a number equal to the ratio accepts",
    operation="speculative_decode",
    story="An edge too many: the number 0 then accepts what the target forbids.",
    made_for="speculative_edges",
    stays_green="speculative_trace",
)
def _(p, q, draft_tokens, uniforms):
    tokens: list[int] = []
    rest = uniforms[len(draft_tokens) :]
    for i, token in enumerate(draft_tokens):
        if uniforms[i] > min(1.0, p[i, token] / q[i, token]):
            law = speculative_residual(p[i], q[i])
            return Speculation([*tokens, _draw(law, rest)], i)
        tokens.append(int(token))
    return Speculation([*tokens, _draw(p[-1], rest)], len(tokens))


@chapter.fault(
    "top_k_keeps_later_ties",
    "of equal probabilities the later one is kept",
    operation="top_k",
    story="A sort turned round afterwards: two programs keep two vocabularies.",
    made_for="top_k_row_by_row",
    stays_green="speculative_truncated_draft",
)
def _(p, k):
    return top_k(p[..., ::-1], k)[..., ::-1]
