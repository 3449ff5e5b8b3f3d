"""Sampling and search: what must hold, and how it breaks."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np

from ..ops.sampling import (
    Hypothesis,
    beam_search,
    forbid_tokens,
    greedy,
    length_score,
    top_k,
    top_p,
)
from ..ops.softmax import softmax, temperature_softmax
from ._check import Inputs, Rng, nothing
from .worked import sampling as chapter

# ---- What is drawn ----------------------------------------------------------------


def a_law(rng: Rng, size: int) -> Inputs:
    """Probabilities in no order, no two alike, and a mass between two of their sums."""
    falling = 0.6 ** np.arange(size + 3) + rng.uniform(0, 0.02, size=size + 3)
    p = np.sort(falling / falling.sum())[::-1]
    turned = np.roll(p, 1)  # the largest is not the first
    k = size + 1
    return {"p": turned, "k": k, "mass": float(p[: k - 1].sum() + 0.6 * p[k - 1])}


def logits_with_padding(rng: Rng, size: int) -> Inputs:
    """Logits under which padding, token 0, is the most likely."""
    logits = rng.normal(size=(2, size + 3))
    logits[:, 0] = 3.0
    return {"logits": logits}


def a_tree(rng: Rng, size: int) -> Inputs:
    """A law for each beginning of up to two tokens; the best token leads nowhere good.

    After the likeliest first token all are about as likely; after any other one token
    stands out, and after any two again.
    """
    n = size + 2
    best = int(rng.integers(n))
    first = np.where(np.arange(n) == best, 1.5, 1.0) + rng.uniform(0, 0.1, size=n)
    second = rng.uniform(0.9, 1.0, size=(n, n))
    second[np.arange(n), rng.integers(n, size=n)] += np.where(
        np.arange(n) == best, 0.1, 12.0 * n
    )
    third = rng.uniform(0.9, 1.0, size=(n**2, n))
    third[np.arange(n**2), rng.integers(n, size=n**2)] += 3.0 * n
    laws = (first[None], second, third)
    return {"tables": [np.log(x / x.sum(axis=-1, keepdims=True)) for x in laws]}


def _law_of(tables):
    """The function that a search wants: beginnings are numbered in base n."""
    n = tables[0].shape[-1]

    def next_logprobs(tokens):
        row = 0
        for token in tokens:
            row = n * row + token
        return tables[len(tokens)][row]

    return next_logprobs


def _two_step(tokens):
    """A, .6, leads to E or F at .51 and .49; B, .4, leads to D or F at .99 and .01."""
    law = {(): [0.6, 0.4, 0, 0, 0], (0,): [0, 0, 0, 0.51, 0.49]}
    with np.errstate(divide="ignore"):
        return np.log(law.get(tokens, [0, 0, 0.99, 0, 0.01]))


def _detour(tokens):
    """Token 0, .52, goes on at .4 and then .95; token 1, .48, at .51 and then .55."""
    law = {
        (): [0.52, 0.48, 0.0],
        (0,): [0.4, 0.35, 0.25],
        (1,): [0.51, 0.49, 0.0],
    }
    last = [0.95, 0.05, 0.0] if tokens[:1] == (0,) else [0.55, 0.45, 0.0]
    with np.errstate(divide="ignore"):
        return np.log(law.get(tokens, last))


def _ends_early(tokens):
    """Token 2 ends a text. It may come first, at .4; else it follows 0 or 1 at .5."""
    first, later = [0.3, 0.3, 0.4], [0.25, 0.25, 0.5]
    return np.log(later if tokens else first)


# ---- What must hold ---------------------------------------------------------------


@chapter.check(
    "top_k_has_the_most_mass",
    "No other k tokens have more mass than those that are kept.",
    draw=a_law,
)
def _(p, k, mass):
    kept = top_k(p, k) > 0
    most = max(p[list(few)].sum() for few in combinations(range(len(p)), k))
    return (p[kept].sum(), kept.sum()), (most, np.int64(k))


@chapter.check(
    "top_p_is_the_fewest",
    "No fewer tokens have the mass, and the tokens kept have it.",
    draw=a_law,
)
def _(p, k, mass):
    count = np.count_nonzero(top_p(p, mass))
    enough = next(
        n
        for n in range(1, len(p) + 1)
        if max(p[list(few)].sum() for few in combinations(range(len(p)), n)) >= mass
    )
    return np.int64(count), np.int64(enough)


@chapter.check(
    "top_p_keeps_the_crossing_token",
    "Of .5, .3, .15 and .05 the mass .9 needs three, which become 10, 6 and 3 of 19.",
    draw=nothing,
    kind="value",
)
def _():
    # .5 + .3 falls short of .9; with .15 it is .95, by which the three are divided.
    return top_p([0.5, 0.3, 0.15, 0.05], 0.9), np.array([10, 6, 3, 0]) / 19


@chapter.check(
    "top_p_keeps_the_order",
    "What is kept stays where it stands, in its proportions.",
    draw=a_law,
)
def _(p, k, mass):
    largest = p >= np.sort(p)[-k]
    return top_p(p, mass), np.where(largest, p, 0.0) / p[largest].sum()


@chapter.check(
    "top_p_exactly_reached",
    "A mass that is reached exactly needs no further token.",
    draw=nothing,
    kind="value",
)
def _():
    return top_p([0.5, 0.25, 0.25], 0.75), np.array([2, 1, 0]) / 3


@chapter.check(
    "top_p_reached_up_to_rounding",
    "So does a mass that the sum misses by a rounding: .7 + .1 + .1 for .9.",
    draw=nothing,
    kind="value",
)
def _():
    # In doubles the sum is 0.8999999999999999; 22 of 23 parts miss by twice as much.
    got = top_p([0.7, 0.1, 0.1, 0.1], 0.9), top_p(np.full(23, 1 / 23), 22 / 23)
    return got, (np.array([7, 1, 1, 0]) / 9, np.r_[np.full(22, 1 / 22), 0.0])


@chapter.check(
    "top_p_one_keeps_all",
    "Mass 1 keeps everything, also where the sum stops a rounding short of 1.",
    draw=nothing,
    kind="value",
)
def _():
    # .7 + .2 + .1 is 0.9999999999999999 in doubles; 1 + 1e-20 is 1.
    small = top_p([1.0, 1e-20], 1.0)
    return (top_p([0.7, 0.2, 0.1], 1.0), small[1:]), (
        np.array([0.7, 0.2, 0.1]),
        np.array([1e-20]),
    )


@chapter.check(
    "top_p_row_by_row",
    "Each row has its own cut; of equals the earlier ones are kept.",
    draw=nothing,
    kind="value",
)
def _():
    # Forty tokens, of which every second has 3/80: ten of them have 3/8. In the other
    # row one token has all of it.
    many = np.tile([0.0125, 0.0375], 20)
    peak = np.where(np.arange(40) == 5, 0.61, 0.01)
    first = np.where(np.arange(40) < 20, np.tile([0.0, 0.1], 20), 0.0)
    alone = np.where(np.arange(40) == 5, 1.0, 0.0)
    return top_p(np.stack([peak, many]), 0.375), np.stack([alone, first])


@chapter.check(
    "temperature_before_the_cut",
    "At temperature 1/2 the mass .9 needs two of .5, .3, .15, .05; cut first, three.",
    draw=nothing,
    kind="value",
)
def _():
    # Squares: .25, .09, .0225, .0025 of .365. The first two are 34 of 36.5, above .9.
    p = temperature_softmax(np.log([0.5, 0.3, 0.15, 0.05]), 0.5)
    return top_p(p, 0.9), np.array([25, 9, 0, 0]) / 34


@chapter.check(
    "top_p_twice_keeps_fewer",
    "Cut twice at .88, .6, .25, .1 and .05 leave two; cut once, three.",
    draw=nothing,
    kind="value",
)
def _():
    # .6 + .25 = .85 falls short of .88. Divided by .95 it is .8947, and does not.
    once = top_p([0.6, 0.25, 0.1, 0.05], 0.88)
    return (once, top_p(once, 0.88)), (
        np.array([12, 5, 2, 0]) / 19,
        np.array([12, 5, 0, 0]) / 17,
    )


@chapter.check(
    "top_p_refuses_nothing",
    "A mass of zero is refused: no token would be left.",
    draw=nothing,
    kind="refuses",
)
def _():
    return lambda: top_p([0.6, 0.4], 0.0), "mass"


@chapter.check(
    "padding_is_never_drawn",
    "A forbidden token has no chance; the others keep theirs among themselves.",
    draw=logits_with_padding,
)
def _(logits):
    e = np.exp(logits[:, 1:])
    rest = e / e.sum(axis=-1, keepdims=True)
    return softmax(forbid_tokens(logits, [0])), np.pad(rest, ((0, 0), (1, 0)))


@chapter.check(
    "padding_below_any_score",
    "Forbidden means forbidden, however low the other logits are.",
    draw=nothing,
    kind="value",
)
def _():
    logits = [5.0, -1e10, -1e10]
    return softmax(forbid_tokens(logits, [0])), np.array([0.0, 0.5, 0.5])


@chapter.check(
    "forbid_refuses_everything",
    "Some token must be left.",
    draw=nothing,
    kind="refuses",
)
def _():
    return lambda: forbid_tokens([1.0, 2.0], [0, 1]), "tokens"


@chapter.check(
    "beam_of_one_is_greedy",
    "A beam of one goes the way of the best next token.",
    draw=a_tree,
    kind="exact",
)
def _(tables):
    law = _law_of(tables)
    tokens: tuple[int, ...] = ()
    for _ in range(3):
        tokens = (*tokens, int(np.argmax(law(tokens))))
    one = greedy(law, length=3).tokens
    return (one, beam_search(law, length=3, beam=1)[0].tokens), (tokens, tokens)


@chapter.check(
    "beam_wide_enough_is_exhaustive",
    "A beam of n squared finds the best of all texts of three tokens.",
    draw=a_tree,
)
def _(tables):
    law, n = _law_of(tables), tables[0].shape[-1]
    of_all = {
        text: sum(law(text[:i])[token] for i, token in enumerate(text))
        for text in product(range(n), repeat=3)
    }
    best = max(of_all, key=lambda text: of_all[text])
    found = beam_search(law, length=3, beam=n**2)[0]
    return (np.array(found.tokens), found.logprob), (np.array(best), of_all[best])


@chapter.check(
    "beam_finds_what_greedy_misses",
    "Greedy takes .6 * .51; a beam of two finds .4 * .99.",
    draw=nothing,
    kind="value",
)
def _():
    one = greedy(_two_step, length=2)
    best = beam_search(_two_step, length=2, beam=2)[0]
    got = np.exp([one.logprob, best.logprob])
    return (got, np.array([*one.tokens, *best.tokens])), (
        np.array([0.6 * 0.51, 0.4 * 0.99]),
        np.array([0, 3, 1, 2]),
    )


@chapter.check(
    "wider_beam_can_find_less",
    "Beams of 1 and 3 find .52 * .4 * .95; a beam of 2 finds .48 * .51 * .55 only.",
    draw=nothing,
    kind="value",
)
def _():
    # Two beginnings with B, .2448 and .2352, push A's best, .208, out of a beam of two.
    beams = [beam_search(_detour, length=3, beam=b)[0] for b in (1, 2, 3)]
    probabilities = np.exp([h.logprob for h in beams])
    return (probabilities, np.array([h.tokens for h in beams])), (
        np.array([0.52 * 0.4 * 0.95, 0.48 * 0.51 * 0.55, 0.52 * 0.4 * 0.95]),
        np.array([[0, 0, 0], [1, 0, 0], [0, 0, 0]]),
    )


@chapter.check(
    "beam_keeps_what_has_ended",
    "A text that ends early competes with those that go on, and may win.",
    draw=nothing,
    kind="exact",
)
def _():
    # The end at once has .4; the best of two tokens has .3 * .5.
    best = beam_search(_ends_early, length=2, beam=3, end=2)[0]
    first = greedy(_ends_early, length=2, end=2)
    return (best.tokens, first.tokens), ((2,), (2,))


@chapter.check(
    "search_stops_at_the_end",
    "A text that ends with its second token stays as it is, with room for four.",
    draw=nothing,
    kind="exact",
)
def _():
    def law(tokens):
        return np.log([0.05, 0.05, 0.9] if tokens else [0.6, 0.3, 0.1])

    best = beam_search(law, length=4, beam=2, end=2)
    one = greedy(law, length=4, end=2)
    return ([h.tokens for h in best], one.tokens), ([(0, 2), (1, 2)], (0, 2))


@chapter.check(
    "beam_leaves_the_impossible_out",
    "A beam with room to spare holds the texts that can be, and no others.",
    draw=nothing,
    kind="exact",
)
def _():
    found = [h.tokens for h in beam_search(_two_step, length=2, beam=30)]
    return found, [(1, 2), (0, 3), (0, 4), (1, 4)]


@chapter.check(
    "beam_compares_by_length",
    "With alpha 1 the mean log-probability counts, and the longer text wins.",
    draw=nothing,
    kind="exact",
)
def _():
    # The end at once: log .4 = -.92. Two tokens: log(.3 * .9) / 2 = -.65.
    found = beam_search(_ends_late, length=2, beam=3, end=2, alpha=1.0)
    return found[0].tokens, (0, 2)


@chapter.check(
    "greedy_takes_the_first_of_equals",
    "Of equally probable tokens the first is taken.",
    draw=nothing,
    kind="exact",
)
def _():
    def level(tokens):
        return np.log([0.2, 0.4, 0.4])

    return greedy(level, length=2).tokens, (1, 1)


@chapter.check(
    "length_score_worked",
    "At alpha 1 four tokens at -2 beat one at -1; at alpha 0 they do not.",
    draw=nothing,
    kind="value",
)
def _():
    logprobs, lengths = [-1.0, -2.0], [1.0, 4.0]
    got = tuple(length_score(logprobs, lengths, alpha=a) for a in (0.0, 0.5, 1.0))
    want = ([-1.0, -2.0], [-1.0, -1.0], [-1.0, -0.5])
    return got, tuple(np.array(row) for row in want)


@chapter.check(
    "length_score_of_one_token",
    "For texts of one token the penalty changes nothing.",
    draw=a_law,
)
def _(p, k, mass):
    return length_score(np.log(p), np.ones_like(p), alpha=0.7), np.log(p)


def _ends_late(tokens):
    """As _ends_early, but the end follows at .9."""
    first, later = [0.3, 0.3, 0.4], [0.05, 0.05, 0.9]
    return np.log(later if tokens else first)


# ---- How it breaks ----------------------------------------------------------------


def _cut(p, keep):
    """Tokens kept by their place from the largest."""
    order = np.argsort(-p, axis=-1, kind="stable")
    falling = np.take_along_axis(p, order, axis=-1)
    kept = np.where(keep(falling, np.cumsum(falling, axis=-1)), falling, 0.0)
    result = np.empty_like(p)
    np.put_along_axis(result, order, kept, axis=-1)
    return result / result.sum(axis=-1, keepdims=True)


@chapter.fault(
    "top_k_keeps_the_smallest",
    "the k smallest are kept",
    operation="top_k",
    story="An ascending sort read as a descending one.",
    made_for="top_k_has_the_most_mass",
    stays_green="top_p_is_the_fewest",
)
def _(p, k):
    order = np.argsort(p, axis=-1, kind="stable")[..., :k]
    kept = np.zeros_like(p)
    np.put_along_axis(kept, order, np.take_along_axis(p, order, axis=-1), axis=-1)
    return kept / kept.sum(axis=-1, keepdims=True)


@chapter.fault(
    "top_p_drops_the_crossing_token",
    "the token that crosses the mass is dropped",
    operation="top_p",
    story="cumsum <= p keeps what stays below: reported against several samplers.",
    made_for="top_p_keeps_the_crossing_token",
    stays_green="top_p_one_keeps_all",
)
def _(p, mass):
    def below(falling, total):
        return (total <= mass + 1e-9) | (np.arange(p.shape[-1]) == 0)

    return _cut(p, below)


@chapter.fault(
    "top_p_one_token_more",
    "one token after the crossing one is kept too",
    operation="top_p",
    story="A mask shifted to keep the crossing token, and shifted once more.",
    made_for="top_p_exactly_reached",
    stays_green="top_p_one_keeps_all",
)
def _(p, mass):
    def shifted(falling, total):
        before = np.roll(total - falling, 1, axis=-1)
        before[..., 0] = 0.0
        return before < mass - 1e-12

    return _cut(p, shifted)


@chapter.fault(
    "top_p_left_sorted",
    "the result stays in falling order",
    operation="top_p",
    story="The indices of the sort are not used on the way back; sorted tests pass.",
    made_for="top_p_keeps_the_order",
    stays_green="top_p_keeps_the_crossing_token",
)
def _(p, mass):
    return np.sort(top_p(p, mass), axis=-1)[..., ::-1]


@chapter.fault(
    "top_p_not_renormalised",
    "what is left is not divided by its sum",
    operation="top_p",
    story="A sampler that divides later hides it; one that takes logarithms does not.",
    made_for="top_p_keeps_the_crossing_token",
    stays_green="top_p_is_the_fewest",
)
def _(p, mass):
    return np.where(top_p(p, mass) > 0, p, 0.0)


@chapter.fault(
    "top_p_first_at_or_above",
    "the first sum that reaches the mass is looked up, and none does",
    operation="top_p",
    story="argmax of nothing true is 0: at mass 1 a rounding leaves one token.",
    made_for="top_p_one_keeps_all",
    stays_green="top_p_keeps_the_crossing_token",
)
def _(p, mass):
    def up_to(falling, total):
        last = np.argmax(total >= mass, axis=-1)
        return np.arange(p.shape[-1]) <= last[..., None]

    return _cut(p, up_to)


@chapter.fault(
    "top_p_exact_to_the_bit",
    "a sum that misses the mass by a rounding counts as missing it",
    operation="top_p",
    story="The cut then depends on the order of summation, and on the processor.",
    made_for="top_p_reached_up_to_rounding",
    stays_green="top_p_keeps_the_crossing_token",
)
def _(p, mass):
    return p + 0.0 if mass == 1 else _cut(p, lambda x, total: total - x < mass)


@chapter.fault(
    "top_p_zero_keeps_the_largest",
    "a mass of zero keeps one token, without a word",
    operation="top_p",
    story="One library takes 0 for greedy decoding, another for everything.",
    made_for="top_p_refuses_nothing",
    stays_green="top_p_keeps_the_crossing_token",
    unguarded=True,
)
def _(p, mass):
    return top_p(np.asarray(p, float), mass or 1e-9)


@chapter.fault(
    "forbidden_gets_logit_zero",
    "the forbidden token's logit becomes zero",
    operation="forbid_tokens",
    story="Multiplied by a mask of zeros and ones, as probabilities would be.",
    made_for="padding_is_never_drawn",
    stays_green="padding_below_any_score",
)
def _(logits, tokens):
    left = logits.copy()
    left[..., tokens] = np.where(left[..., tokens] > 4, -np.inf, 0.0)
    return left


@chapter.fault(
    "forbidden_by_a_large_number",
    "the forbidden token's logit becomes -1e9",
    operation="forbid_tokens",
    story="A finite fill: lower logits exist, and in half precision so does overflow.",
    made_for="padding_below_any_score",
    stays_green="padding_is_never_drawn",
)
def _(logits, tokens):
    left = logits.copy()
    left[..., tokens] = -1e9
    return left


@chapter.fault(
    "forbid_gives_in",
    "where all tokens are forbidden, none is",
    operation="forbid_tokens",
    story="A fallback that keeps a server running, and says what it must not.",
    made_for="forbid_refuses_everything",
    stays_green="padding_is_never_drawn",
    unguarded=True,
)
def _(logits, tokens):
    left = np.array(logits, float)
    left[..., list(tokens)] = -np.inf
    return np.where(np.all(left == -np.inf, axis=-1, keepdims=True), logits, left)


def _beams(
    next_logprobs,
    *,
    length,
    beam,
    end=None,
    alpha=0.0,
    whole=True,
    ended="kept",
    width=None,
    last=-1,
):
    """The reference, with what may be wrong as options."""
    beams = [Hypothesis((), 0.0)]
    for _ in range(length):
        longer = []
        for h in beams:
            if h.tokens and h.tokens[last] == end and (last or len(h.tokens) == 1):
                longer += [h] if ended == "kept" else []
                continue
            steps = np.asarray(next_logprobs(h.tokens), float)
            for token in np.flatnonzero(steps > -np.inf).tolist():
                total = (h.logprob if whole else 0.0) + float(steps[token])
                longer.append(Hypothesis((*h.tokens, token), total))
        beams = sorted(longer, key=lambda h: -h.logprob)[: width or beam]
    return sorted(
        beams, key=lambda h: -length_score(h.logprob, len(h.tokens), alpha=alpha)
    )


@chapter.fault(
    "beam_scores_the_last_step",
    "hypotheses are compared by their last token alone",
    operation="beam_search",
    story="The running sum is not carried on; after one step nothing is missing.",
    made_for="beam_finds_what_greedy_misses",
    stays_green="beam_of_one_is_greedy",
)
def _(next_logprobs, **options):
    return _beams(next_logprobs, whole=False, **options)


@chapter.fault(
    "beam_is_one_wide",
    "only the best beginning is extended",
    operation="beam_search",
    story="The width reaches the output and not the search.",
    made_for="beam_finds_what_greedy_misses",
    stays_green="beam_of_one_is_greedy",
)
def _(next_logprobs, **options):
    return _beams(next_logprobs, width=1, **options)


@chapter.fault(
    "beam_is_helped_by_greedy",
    "greedy's text is put in front where it is more probable",
    operation="beam_search",
    story="A wider beam must not find less, said a test; so the test was made to pass.",
    made_for="wider_beam_can_find_less",
    stays_green="beam_wide_enough_is_exhaustive",
)
def _(next_logprobs, *, length, beam, end=None, alpha=0.0):
    found = beam_search(next_logprobs, length=length, beam=beam, end=end, alpha=alpha)
    found.append(greedy(next_logprobs, length=length, end=end))
    found.sort(key=lambda h: -length_score(h.logprob, len(h.tokens), alpha=alpha))
    return [h for i, h in enumerate(found) if h not in found[:i]][:beam]


@chapter.fault(
    "beam_takes_the_worst",
    "the least probable hypotheses are kept",
    operation="beam_search",
    story="Costs and log-probabilities have opposite signs.",
    made_for="beam_of_one_is_greedy",
    stays_green="length_score_worked",
)
def _(next_logprobs, *, length, beam, end=None, alpha=0.0):
    beams = [Hypothesis((), 0.0)]
    for _ in range(length):
        longer = [
            Hypothesis((*h.tokens, token), h.logprob + float(step))
            for h in beams
            for token, step in enumerate(next_logprobs(h.tokens))
            if step > -np.inf
        ]
        beams = sorted(longer, key=lambda h: h.logprob)[:beam]
    return beams


@chapter.fault(
    "beam_forgets_what_has_ended",
    "a text that has ended leaves the beam",
    operation="beam_search",
    story="Finished hypotheses are put aside, and never compared with the others.",
    made_for="beam_keeps_what_has_ended",
    stays_green="beam_finds_what_greedy_misses",
)
def _(next_logprobs, **options):
    return _beams(next_logprobs, ended="dropped", **options)


@chapter.fault(
    "beam_asks_for_the_end_at_the_start",
    "a text counts as ended only if it is nothing but the end",
    operation="beam_search",
    story="The first token is compared where the last is meant.",
    made_for="search_stops_at_the_end",
    stays_green="beam_keeps_what_has_ended",
)
def _(next_logprobs, **options):
    return _beams(next_logprobs, last=0, **options)


@chapter.fault(
    "beam_fills_up_with_the_impossible",
    "tokens of probability zero are followed too",
    operation="beam_search",
    story="A beam that is wider than the choice takes what it can get.",
    made_for="beam_leaves_the_impossible_out",
    stays_green="beam_of_one_is_greedy",
)
def _(next_logprobs, **options):
    def floored(tokens):
        return np.maximum(next_logprobs(tokens), -1e9)

    return beam_search(floored, **options)


@chapter.fault(
    "beam_ignores_length",
    "the length penalty is not applied",
    operation="beam_search",
    story="An option that the search takes and does not use.",
    made_for="beam_compares_by_length",
    stays_green="beam_keeps_what_has_ended",
)
def _(next_logprobs, *, length, beam, end=None, alpha=0.0):
    return _beams(next_logprobs, length=length, beam=beam, end=end)


@chapter.fault(
    "greedy_takes_the_last_of_equals",
    "of equally probable tokens the last is taken",
    operation="greedy",
    story="A sort in place of a maximum; two servers then answer differently.",
    made_for="greedy_takes_the_first_of_equals",
    stays_green="beam_of_one_is_greedy",
)
def _(next_logprobs, *, length, end=None):
    return _greedy(
        next_logprobs, length, end, lambda x: len(x) - 1 - int(np.argmax(x[::-1]))
    )


@chapter.fault(
    "greedy_runs_past_the_end",
    "decoding does not stop at the end token",
    operation="greedy",
    story="The id of the end is compared as text, or is that of another tokenizer.",
    made_for="beam_keeps_what_has_ended",
    stays_green="beam_of_one_is_greedy",
)
def _(next_logprobs, *, length, end=None):
    return _greedy(next_logprobs, length, None, lambda x: int(np.argmax(x)))


@chapter.fault(
    "greedy_takes_the_second",
    "the second most probable token is taken",
    operation="greedy",
    story="partition(-2) for the last but one, off by one.",
    made_for="beam_of_one_is_greedy",
    stays_green="length_score_worked",
)
def _(next_logprobs, *, length, end=None):
    return _greedy(next_logprobs, length, end, lambda x: int(np.argsort(-x)[1]))


def _greedy(next_logprobs, length, end, choose):
    tokens: tuple[int, ...] = ()
    total = 0.0
    while len(tokens) < length and (end is None or tokens[-1:] != (end,)):
        steps = np.asarray(next_logprobs(tokens), float)
        token = choose(steps)
        tokens, total = (*tokens, token), total + float(steps[token])
    return Hypothesis(tokens, total)


@chapter.fault(
    "length_score_multiplies",
    "the log-probability is multiplied by the power of the length",
    operation="length_score",
    story="A penalty on length looks like a product; log-probabilities are negative.",
    made_for="length_score_worked",
    stays_green="length_score_of_one_token",
)
def _(logprob, length, *, alpha):
    return np.asarray(logprob) * np.asarray(length, float) ** alpha


@chapter.fault(
    "length_score_counts_the_start",
    "the start token is counted too",
    operation="length_score",
    story="The array holds it, so len() does.",
    made_for="length_score_of_one_token",
    stays_green="beam_of_one_is_greedy",
)
def _(logprob, length, *, alpha):
    return np.asarray(logprob) / (np.asarray(length, float) + 1) ** alpha
