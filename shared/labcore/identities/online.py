"""Merging softmax summaries: what must hold, and how it breaks."""

from __future__ import annotations

import numpy as np

from ..ops.attention import attention, causal_mask
from ..ops.online import (
    SoftmaxSummary,
    blockwise_attention,
    finish,
    merge,
    online_softmax,
    online_trace,
    summarize,
)
from ..ops.softmax import softmax
from ._check import Chapter, Inputs, Rng, nothing

chapter = Chapter("softmax-summaries", "Merging softmax summaries", "The identities")


# ---- What is drawn ----------------------------------------------------------------


def a_row_in_pieces(rng: Rng, size: int) -> Inputs:
    """Scores near 1000 that ascend, cut unevenly, an empty and a masked piece between.

    Ascending, because under descending or random scores the first maximum may already
    be the last, and a merge that never rescales its past would pass.
    """
    n = 3 * size + 3
    scores = 1000.0 + rng.uniform(0.2, 1.0, size=n).cumsum()
    values = rng.normal(size=(n, size + 1))
    masked, extra = np.array([-np.inf, -np.inf]), rng.normal(size=(2, size + 1))
    pieces = [slice(0, 2), slice(2, 2), slice(2, n - 1), slice(n - 1, n)]
    score_chunks = [scores[piece] for piece in pieces]
    value_chunks = [values[piece] for piece in pieces]
    return {
        "score_chunks": [*score_chunks[:2], masked, *score_chunks[2:]],
        "value_chunks": [*value_chunks[:2], extra, *value_chunks[2:]],
    }


def three_chunks(rng: Rng, size: int) -> Inputs:
    """Three chunks of different length and mass, in ascending order of scores."""
    lengths = (size, size + 1, size + 2)
    return {
        "scores": [
            2.0 * i + rng.uniform(0.0, 1.0, size=n) for i, n in enumerate(lengths)
        ],
        "values": [rng.normal(size=(n, size + 1)) for n in lengths],
    }


def light_and_heavy(rng: Rng, size: int) -> Inputs:
    """A short chunk with low values, a longer one with higher scores and values."""
    lengths = (size, 3 * size)
    return {
        "scores": [
            2.0 * i + rng.uniform(0.0, 0.5, size=n) for i, n in enumerate(lengths)
        ],
        "values": [
            5.0 * i + rng.uniform(0.0, 1.0, size=(n, size + 1))
            for i, n in enumerate(lengths)
        ],
    }


def keys_in_order(rng: Rng, size: int) -> Inputs:
    """Queries and keys whose scores ascend along the keys; a batch of two."""
    n, m, d = size + 1, size + 4, size + 3
    k = rng.uniform(0.1, 0.5, size=(2, m, d)).cumsum(axis=1)
    return {
        "q": rng.uniform(0.5, 1.5, size=(2, n, d)),
        "k": k,
        "v": rng.normal(size=(2, m, size + 2)),
    }


def two_rows(rng: Rng, size: int) -> Inputs:
    """Two rows of scores, the second a thousand lower."""
    below = np.array([[0.0], [-1000.0]])
    return {
        "scores": below + rng.uniform(0.0, 1.0, size=(2, size + 2)),
        "values": rng.normal(size=(2, size + 2, size + 1)),
    }


# ---- What must hold ---------------------------------------------------------------


@chapter.check(
    "online_softmax",
    "Pieces read one after the other give the read of the whole row.",
    draw=a_row_in_pieces,
)
def _(score_chunks, value_chunks):
    whole = softmax(np.concatenate(score_chunks)) @ np.concatenate(value_chunks)
    return online_softmax(score_chunks, value_chunks), whole


@chapter.check(
    "online_worked_output",
    "Scores 1000, 1001, 999 read the values 2, 4, 8 as 3.8706...",
    draw=nothing,
    kind="value",
)
def _():
    # Shifted by 1001: (2 e^-1 + 4 + 8 e^-2) / (e^-1 + 1 + e^-2), at 50 digits.
    want = np.float64(3.870665350571926)
    direct = softmax([1000.0, 1001.0, 999.0]) @ np.array([2.0, 4.0, 8.0])
    pieces = online_softmax([[1000.0, 1001.0], [999.0]], [[[2.0], [4.0]], [[8.0]]])
    return (direct, pieces[0]), (want, want)


@chapter.check(
    "merge_associative",
    "It does not matter which neighbours merge first.",
    draw=three_chunks,
)
def _(scores, values):
    a, b, c = (summarize(s, v) for s, v in zip(scores, values, strict=True))
    return merge(merge(a, b), c), merge(a, merge(b, c))


@chapter.check(
    "merge_order_free",
    "Nor in which order.",
    draw=three_chunks,
)
def _(scores, values):
    a, b, c = (summarize(s, v) for s, v in zip(scores, values, strict=True))
    return merge(merge(c, a), b), merge(merge(a, b), c)


@chapter.check(
    "merge_empty_neutral",
    "The summary of nothing changes nothing, first or last; two of them stay empty.",
    draw=three_chunks,
)
def _(scores, values):
    a = summarize(scores[1], values[1])
    empty = summarize(scores[0][:0], values[0][:0])
    return (merge(empty, a), merge(a, empty), merge(empty, empty)), (a, a, empty)


@chapter.check(
    "merge_masked_neutral",
    "A chunk that is masked throughout changes nothing, whatever its values are.",
    draw=three_chunks,
)
def _(scores, values):
    a, b = (summarize(s, v) for s, v in zip(scores[:2], values[:2], strict=True))
    masked = summarize(np.full(len(scores[2]), -np.inf), 1e9 * values[2])
    return merge(merge(masked, a), merge(masked, b)), merge(a, b)


@chapter.check(
    "summary_of_a_chunk",
    "A summary holds the maximum, the mass and the weighted sum of its chunk.",
    draw=three_chunks,
)
def _(scores, values):
    got = summarize(scores[2], values[2])
    weights = np.exp(scores[2] - max(scores[2]))
    return got, SoftmaxSummary(
        np.array(max(scores[2])),
        np.array(sum(weights)),
        sum(w * v for w, v in zip(weights, values[2], strict=True)),
    )


@chapter.check(
    "summary_lse",
    "Maximum plus log-mass is the log-sum-exp of all scores so far.",
    draw=three_chunks,
)
def _(scores, values):
    got = [summary.lse for summary in online_trace(scores, values)]
    seen = [np.concatenate(scores[: i + 1]) for i in range(3)]
    return np.array(got), np.array([np.log(np.exp(x).sum()) for x in seen])


@chapter.check(
    "averaging_chunks_is_wrong",
    "The mean of the chunks' own outputs is another number: it forgets their masses.",
    draw=light_and_heavy,
    kind="differs",
)
def _(scores, values):
    own = [finish(summarize(s, v)) for s, v in zip(scores, values, strict=True)]
    return (own[0] + own[1]) / 2, online_softmax(scores, values)


@chapter.check(
    "one_chunk_is_the_row",
    "A single chunk is the row itself.",
    draw=three_chunks,
)
def _(scores, values):
    return online_softmax(scores[2:], values[2:]), softmax(scores[2]) @ values[2]


@chapter.check(
    "blockwise_equals_dense",
    "Attention in blocks of keys equals dense attention, for every block size.",
    draw=keys_in_order,
)
def _(q, k, v):
    m = k.shape[1]
    got = [blockwise_attention(q, k, v, block=block) for block in range(1, m + 2)]
    scaled = blockwise_attention(q, k, v, block=2, scale=0.3)
    want = [attention(q, k, v)] * len(got)
    return [*got, scaled], [*want, attention(q, k, v, scale=0.3)]


@chapter.check(
    "blockwise_causal",
    "So it does behind a causal mask, where whole blocks are masked for a row.",
    draw=keys_in_order,
)
def _(q, k, v):
    n, m = q.shape[1], k.shape[1]
    age = np.arange(m - n, m)[:, None] - np.arange(m)
    want = attention(q, k, v, allowed=age >= 0)
    got = [
        blockwise_attention(q, k, v, block=block, causal=True)
        for block in range(1, m + 2)
    ]
    return got, [want] * len(got)


@chapter.check(
    "blockwise_keeps_the_mask",
    "A mask of one's own holds in every block, behind a causal one too.",
    draw=keys_in_order,
)
def _(q, k, v):
    n, m = q.shape[1], k.shape[1]
    real = np.broadcast_to(np.arange(m) > 0, (n, m))  # the first key is padding
    both = real & causal_mask(n, m)
    got = (
        blockwise_attention(q, k, v, block=2, allowed=real),
        blockwise_attention(q, k, v, block=2, allowed=real, causal=True),
    )
    return got, (attention(q, k, v, allowed=real), attention(q, k, v, allowed=both))


@chapter.check(
    "online_refuses_nan",
    "A NaN score is refused, never skipped.",
    draw=nothing,
    kind="refuses",
)
def _():
    return lambda: summarize([np.nan, 1.0], [[1.0], [2.0]]), "scores"


@chapter.check(
    "finish_refuses_no_key",
    "A row with no allowed key has no output.",
    draw=nothing,
    kind="refuses",
)
def _():
    return lambda: online_softmax([[-np.inf]], [[[1.0]]]), "summary"


@chapter.check(
    "summary_row_by_row",
    "Rows of scores a thousand apart are summarized each by its own maximum.",
    draw=two_rows,
)
def _(scores, values):
    shifted = np.exp(scores - scores.max(axis=-1, keepdims=True))
    want = SoftmaxSummary(
        np.array([max(row) for row in scores]),
        np.array([sum(row) for row in shifted]),
        np.stack([row @ v for row, v in zip(shifted, values, strict=True)]),
    )
    return summarize(scores, values), want


# ---- How it breaks ----------------------------------------------------------------


@chapter.fault(
    "merge_not_rescaled",
    "the past is not rescaled to the new maximum",
    operation="merge",
    story=(
        "The accumulator of a fused kernel left as it was; right whenever the maximum "
        "comes first."
    ),
    made_for="online_softmax",
    stays_green="one_chunk_is_the_row",
)
def _(a, b):
    maximum = np.maximum(a.maximum, b.maximum)
    shift = np.where(np.isfinite(maximum), maximum, 0.0)
    fb = np.exp(b.maximum - shift)
    return SoftmaxSummary(
        maximum, a.mass + fb * b.mass, a.weighted + fb[..., None] * b.weighted
    )


@chapter.fault(
    "merge_mass_not_rescaled",
    "the weighted sum is rescaled, the mass is not",
    operation="merge",
    story="One of two lines forgotten; constant values show it, one chunk does not.",
    made_for="online_softmax",
    stays_green="one_chunk_is_the_row",
)
def _(a, b):
    return merge(a, b)._replace(mass=np.asarray(a.mass + b.mass))


@chapter.fault(
    "merge_averages",
    "finished outputs are averaged",
    operation="merge",
    story="Averaging the chunks of a ring: the counterexample of the source article.",
    made_for="averaging_chunks_is_wrong",
    stays_green="one_chunk_is_the_row",
)
def _(a, b):
    some = [s for s in (a, b) if np.all(s.mass > 0)]
    if len(some) < 2:
        return merge(a, b)
    mean = (a.weighted / a.mass[..., None] + b.weighted / b.mass[..., None]) / 2
    maximum = np.maximum(a.maximum, b.maximum)
    return SoftmaxSummary(maximum, np.ones_like(a.mass), mean)


@chapter.fault(
    "merge_without_guard",
    "two empty summaries subtract infinity from infinity",
    operation="merge",
    story=(
        "The NaN that several inference engines met when a partition of the cache was "
        "empty."
    ),
    made_for="merge_empty_neutral",
    stays_green="merge_associative",
)
def _(a, b):
    maximum = np.maximum(a.maximum, b.maximum)
    fa, fb = np.exp(a.maximum - maximum), np.exp(b.maximum - maximum)
    return SoftmaxSummary(
        maximum,
        fa * a.mass + fb * b.mass,
        fa[..., None] * a.weighted + fb[..., None] * b.weighted,
    )


@chapter.fault(
    "summary_without_guard",
    "a masked chunk subtracts infinity from infinity",
    operation="summarize",
    story="The same guard, one function earlier: a leading masked chunk gives NaN.",
    made_for="merge_masked_neutral",
    stays_green="merge_associative",
)
def _(scores, values):
    maximum = scores.max(axis=-1, initial=-np.inf)
    weights = np.exp(scores - maximum[..., None])
    weighted = (weights[..., None, :] @ values)[..., 0, :]
    return SoftmaxSummary(maximum, weights.sum(axis=-1), weighted)


@chapter.fault(
    "summary_normalised",
    "the weighted sum is divided by the mass already",
    operation="summarize",
    story="Storing finished outputs: the merge needs unfinished ones.",
    made_for="summary_of_a_chunk",
    stays_green="online_refuses_nan",
)
def _(scores, values):
    done = summarize(scores, values)
    mass = np.where(done.mass > 0, done.mass, 1.0)
    return done._replace(weighted=done.weighted / mass[..., None])


@chapter.fault(
    "summary_base_two",
    "the mass is counted in powers of two",
    operation="summarize",
    story="A log-sum-exp in base two handed to code that expects base e.",
    made_for="summary_lse",
    stays_green="merge_associative",
)
def _(scores, values):
    maximum = scores.max(axis=-1, initial=-np.inf)
    shift = np.where(np.isfinite(maximum), maximum, 0.0)
    weights = np.exp2(scores - shift[..., None])
    weighted = (weights[..., None, :] @ values)[..., 0, :]
    return SoftmaxSummary(maximum, weights.sum(axis=-1), weighted)


@chapter.fault(
    "nan_scores_skipped",
    "NaN scores are skipped as if they were masked",
    operation="summarize",
    story="isfinite as the mask: the source program's online read does this.",
    made_for="online_refuses_nan",
    stays_green="online_softmax",
    unguarded=True,
)
def _(scores, values):
    return summarize(np.where(np.isnan(scores), -np.inf, scores), values)


@chapter.fault(
    "finish_divides_by_count",
    "an output without mass is a row of zeros instead of an error",
    operation="finish",
    story="A guard against division by zero that answers a question nobody may ask.",
    made_for="finish_refuses_no_key",
    stays_green="online_softmax",
    unguarded=True,
)
def _(summary):
    mass = np.where(np.asarray(summary.mass) == 0, 1.0, summary.mass)
    return summary.weighted / mass[..., None]


@chapter.fault(
    "finish_forgets_mass",
    "the output is the weighted sum",
    operation="finish",
    story="Normalisation left to a caller who does not know.",
    made_for="one_chunk_is_the_row",
    stays_green="merge_associative",
)
def _(summary):
    return np.asarray(summary.weighted)


@chapter.fault(
    "blockwise_last_block_lost",
    "keys after the last full block are not read",
    operation="blockwise_attention",
    story="Integer division of the length; any length that divides hides it.",
    made_for="blockwise_equals_dense",
    stays_green="online_softmax",
)
def _(q, k, v, *, block, causal=False, offset=None, allowed=None, scale=None):
    n = max(k.shape[-2] // block * block, 1)
    mask = causal_mask(q.shape[-2], k.shape[-2])[:, :n] if causal else None
    return attention(q, k[..., :n, :], v[..., :n, :], allowed=mask, scale=scale)


@chapter.fault(
    "blockwise_mask_or_causal",
    "a key is read if either mask allows it",
    operation="blockwise_attention",
    story="Two masks joined with the wrong word; with one of them nothing is wrong.",
    made_for="blockwise_keeps_the_mask",
    stays_green="blockwise_causal",
)
def _(q, k, v, *, block, causal=False, offset=None, allowed=None, scale=None):
    if causal and allowed is not None:
        allowed = allowed | causal_mask(q.shape[-2], k.shape[-2], offset=offset)
        causal, offset = False, None
    return blockwise_attention(
        q, k, v, block=block, causal=causal, offset=offset, allowed=allowed, scale=scale
    )


@chapter.fault(
    "online_weighted_by_length",
    "the outputs of chunks are averaged by their number of keys",
    operation="online_softmax",
    story=(
        "Right for a mean loss over micro-batches, wrong here: a chunk weighs as much "
        "as its mass."
    ),
    made_for="online_softmax",
    stays_green="one_chunk_is_the_row",
)
def _(score_chunks, value_chunks):
    total, count = np.zeros(()), 0
    for scores, values in zip(score_chunks, value_chunks, strict=True):
        n = int(np.isfinite(scores).sum())
        if n:
            total = total + n * finish(summarize(scores, values))
            count += n
    return total / count if count else finish(summarize(scores, values))


@chapter.fault(
    "blockwise_mask_per_block",
    "the causal mask starts anew in every block",
    operation="blockwise_attention",
    story="Positions counted inside the block: right without a mask.",
    made_for="blockwise_causal",
    stays_green="blockwise_equals_dense",
)
def _(q, k, v, *, block, causal=False, offset=None, allowed=None, scale=None):
    if causal:
        n, m = q.shape[-2], k.shape[-2]
        age = np.arange(m - n, m)[:, None] % block - np.arange(m) % block
        allowed = age >= 0
    return blockwise_attention(q, k, v, block=block, allowed=allowed, scale=scale)


@chapter.fault(
    "online_trace_forgets",
    "each chunk starts from an empty summary",
    operation="online_trace",
    story="A loop variable that shadows the accumulator.",
    made_for="summary_lse",
    stays_green="one_chunk_is_the_row",
)
def _(score_chunks, value_chunks):
    return [summarize(s, v) for s, v in zip(score_chunks, value_chunks, strict=True)]


@chapter.fault(
    "summary_one_maximum",
    "one maximum is taken for all rows",
    operation="summarize",
    story="An axis left out of a maximum: right for rows of similar scores.",
    made_for="summary_row_by_row",
    stays_green="summary_of_a_chunk",
)
def _(scores, values):
    maximum = np.full(scores.shape[:-1], scores.max(initial=-np.inf))
    shift = np.where(np.isfinite(maximum), maximum, 0.0)
    weights = np.exp(scores - shift[..., None])
    weighted = (weights[..., None, :] @ values)[..., 0, :]
    return SoftmaxSummary(maximum, weights.sum(axis=-1), weighted)
