"""Kernel attention as a recurrence: what must hold, and how it breaks."""

from __future__ import annotations

import numpy as np

from ..ops.attention import causal_attention
from ..ops.kernel import (
    KernelState,
    elu_plus_one,
    kernel_attention,
    kernel_attention_chunked,
    kernel_attention_recurrent,
)
from ._check import Chapter, Inputs, Rng, nothing

chapter = Chapter(
    "kernel-attention", "Kernel attention as a recurrence", "The identities"
)


# ---- What is drawn ----------------------------------------------------------------


def a_sequence(rng: Rng, size: int) -> Inputs:
    """Positive features of size + 4 tokens, a batch of two; d_k and d_v differ."""
    n = size + 4
    return {
        "fq": rng.uniform(0.1, 1.5, size=(2, n, size + 1)),
        "fk": rng.uniform(0.1, 1.5, size=(2, n, size + 1)),
        "v": rng.normal(size=(2, n, size + 2)),
    }


def vectors(rng: Rng, size: int) -> Inputs:
    """Queries and keys before any feature map; entries of both signs."""
    n, d = size + 3, size + 1
    return {
        "q": rng.normal(size=(n, d)),
        "k": rng.normal(size=(n, d)),
        "v": rng.normal(size=(n, size + 2)),
    }


# ---- What must hold ---------------------------------------------------------------


@chapter.check(
    "normalized_kernel_recurrence",
    "A state of fixed size gives the read over all pairs.",
    draw=a_sequence,
)
def _(fq, fk, v):
    return kernel_attention_recurrent(fq, fk, v)[0], kernel_attention(fq, fk, v)


@chapter.check(
    "kernel_chunked",
    "Chunks give the recurrence, its state included, for every chunk.",
    draw=a_sequence,
)
def _(fq, fk, v):
    n = fk.shape[1]
    got = [kernel_attention_chunked(fq, fk, v, chunk=c) for c in (1, 2, 3, n + 1)]
    return got, [kernel_attention_recurrent(fq, fk, v)] * 4


@chapter.check(
    "kernel_state_handover",
    "A sequence cut in two, its state handed over, is the whole sequence.",
    draw=a_sequence,
)
def _(fq, fk, v):
    first, state = kernel_attention_recurrent(fq[:, :2], fk[:, :2], v[:, :2])
    second, end = kernel_attention_recurrent(
        fq[:, 2:], fk[:, 2:], v[:, 2:], initial=state
    )
    in_chunks, also = kernel_attention_chunked(
        fq[:, 2:], fk[:, 2:], v[:, 2:], chunk=2, initial=state
    )
    whole, last = kernel_attention_recurrent(fq, fk, v)
    got = (np.concatenate([first, second], axis=1), end, in_chunks, also)
    return got, (whole, last, whole[:, 2:], last)


@chapter.check(
    "kernel_state_is_a_sum",
    "The state is the sum of all outer products, the normaliser that of all keys.",
    draw=a_sequence,
)
def _(fq, fk, v):
    _, state = kernel_attention_recurrent(fq, fk, v)
    return state, KernelState(np.swapaxes(fk, 1, 2) @ v, fk.sum(axis=1))


@chapter.check(
    "kernel_constant_values",
    "Values that are all the same are read as they are.",
    draw=a_sequence,
)
def _(fq, fk, v):
    same = np.broadcast_to(v[:, :1], v.shape)
    return (
        kernel_attention(fq, fk, same),
        kernel_attention_recurrent(fq, fk, same)[0],
        kernel_attention_chunked(fq, fk, same, chunk=2)[0],
    ), (same, same, same)


@chapter.check(
    "kernel_future_independence",
    "Changing later keys and values leaves earlier outputs alone.",
    draw=a_sequence,
)
def _(fq, fk, v):
    other_k, other_v = fk.copy(), v.copy()
    other_k[:, 2:] *= 7
    other_v[:, 2:] += 50
    return (
        kernel_attention(fq, other_k, other_v)[:, :2],
        kernel_attention(fq, fk, v)[:, :2],
    )


@chapter.check(
    "kernel_two_keys",
    "The second read weighs two values by their two products.",
    draw=a_sequence,
)
def _(fq, fk, v):
    first = np.sum(fq[:, 1] * fk[:, 0], axis=-1, keepdims=True)
    second = np.sum(fq[:, 1] * fk[:, 1], axis=-1, keepdims=True)
    want = (first * v[:, 0] + second * v[:, 1]) / (first + second)
    return kernel_attention(fq, fk, v)[:, 1], want


@chapter.check(
    "kernel_last_row_reads_all",
    "The last causal row is the read over all keys.",
    draw=a_sequence,
)
def _(fq, fk, v):
    everything = kernel_attention(fq, fk, v, causal=False)
    return kernel_attention(fq, fk, v)[:, -1], everything[:, -1]


@chapter.check(
    "kernel_is_not_softmax",
    "Another kernel is another model: exact recurrence, different output.",
    draw=vectors,
    kind="differs",
)
def _(q, k, v):
    return (
        kernel_attention(elu_plus_one(q), elu_plus_one(k), v),
        causal_attention(q, k, v),
    )


@chapter.check(
    "elu_plus_one_tail",
    "Far below zero the feature is tiny and positive, not a rounded zero.",
    draw=nothing,
    kind="value",
)
def _():
    # log of the feature: x below zero, log(1 + x) above.
    x = np.array([-50.0, -1.0, 0.0, 3.0])
    return np.log(elu_plus_one(x)), np.array([-50.0, -1.0, 0.0, 1.3862943611198906])


@chapter.check(
    "kernel_worked",
    "Two tokens by hand: the second reads 7, from the state (12, 16) and (2, 2).",
    draw=nothing,
    kind="value",
)
def _():
    # Products of the second query with the keys: 1 and 1 + 2 = 3. (1*4 + 3*8) / 4 = 7.
    # S = 4 (1, 0) + 8 (1, 2) = (12, 16), z = (1, 0) + (1, 2) = (2, 2); 28 / 4 = 7.
    fq, fk, v = [[1.0, 0.0], [1.0, 1.0]], [[1.0, 0.0], [1.0, 2.0]], [[4.0], [8.0]]
    reads = np.array([[4.0], [7.0]])
    state = KernelState(np.array([[12.0], [16.0]]), np.array([2.0, 2.0]))
    got = (kernel_attention(fq, fk, v), kernel_attention_recurrent(fq, fk, v))
    return got, (reads, (reads, state))


@chapter.check(
    "kernel_scale_free",
    "Scaling all features changes no read: the normaliser scales with them.",
    draw=a_sequence,
)
def _(fq, fk, v):
    small = 1e-6 * fq
    return (
        kernel_attention(small, fk, v),
        kernel_attention_recurrent(fq, 5 * fk, v)[0],
        kernel_attention_chunked(small, fk, v, chunk=2)[0],
    ), (
        kernel_attention(fq, fk, v),
        kernel_attention_recurrent(fq, fk, v)[0],
        kernel_attention_chunked(fq, fk, v, chunk=2)[0],
    )


@chapter.check(
    "kernel_refuses_negative_features",
    "A feature below zero is refused: weights would change sign.",
    draw=nothing,
    kind="refuses",
)
def _():
    return lambda: kernel_attention([[1.0]], [[-1.0]], [[2.0]]), "fk"


@chapter.check(
    "kernel_refuses_zero_normaliser",
    "A query that meets no key at all is refused: there is nothing to divide by.",
    draw=nothing,
    kind="refuses",
)
def _():
    return lambda: kernel_attention([[1.0, 0.0]], [[0.0, 1.0]], [[2.0]]), "fq"


@chapter.check(
    "feature_worked",
    "The feature of -1 is 1/e, that of 1/2 is 3/2, that of 2 is 3.",
    draw=nothing,
    kind="value",
)
def _():
    want = [0.36787944117144233, 1.5, 3.0]
    return elu_plus_one([-1.0, 0.5, 2.0]), np.array(want)


@chapter.check(
    "kernel_no_tokens",
    "A sequence without a token reads nothing and leaves the state as it was.",
    draw=a_sequence,
    kind="exact",
)
def _(fq, fk, v):
    none = fq[:, :0], fk[:, :0], v[:, :0]
    state = KernelState(np.swapaxes(fk, -1, -2) @ v, fk.sum(axis=-2))
    want = np.zeros((len(v), 0, v.shape[-1])), state
    in_chunks = kernel_attention_chunked(*none, chunk=2, initial=state)
    return (kernel_attention_recurrent(*none, initial=state), in_chunks), (want, want)


# ---- How it breaks ----------------------------------------------------------------


@chapter.fault(
    "kernel_without_denominator",
    "the denominator is dropped",
    operation="kernel_attention",
    story=(
        "Named by the source article; some layers drop it on purpose and normalise "
        "later."
    ),
    made_for="kernel_constant_values",
    stays_green="kernel_future_independence",
)
def _(fq, fk, v, *, causal=True):
    weights = fq @ np.swapaxes(fk, -1, -2)
    return (np.tril(weights) if causal else weights) @ v


@chapter.fault(
    "kernel_sums_the_future",
    "the denominator sums over all keys",
    operation="kernel_attention",
    story="A normaliser computed once for the sequence: right in the last row only.",
    made_for="kernel_two_keys",
    stays_green="kernel_last_row_reads_all",
)
def _(fq, fk, v, *, causal=True):
    weights = fq @ np.swapaxes(fk, -1, -2)
    mass = weights.sum(axis=-1, keepdims=True)
    return ((np.tril(weights) if causal else weights) @ v) / mass


@chapter.fault(
    "kernel_without_diagonal",
    "a token reads the keys before its own, itself left out",
    operation="kernel_attention",
    story="The triangle without its diagonal: future tokens still have no effect.",
    made_for="kernel_last_row_reads_all",
    stays_green="kernel_future_independence",
)
def _(fq, fk, v, *, causal=True):
    weights = fq @ np.swapaxes(fk, -1, -2)
    if causal:
        weights = np.tril(weights, -1)
        weights[..., 0, 0] = 1.0
    return (weights @ v) / weights.sum(axis=-1, keepdims=True)


@chapter.fault(
    "kernel_not_causal",
    "every token reads all keys",
    operation="kernel_attention",
    story="The mask forgotten, since a recurrence needs none.",
    made_for="kernel_future_independence",
    stays_green="kernel_constant_values",
)
def _(fq, fk, v, *, causal=True):
    return kernel_attention(fq, fk, v, causal=False)


@chapter.fault(
    "kernel_recurrence_unnormalised",
    "the recurrence keeps no normaliser",
    operation="kernel_attention_recurrent",
    story=(
        "The same omission in the recurrent form: both forms dropped agree with each "
        "other."
    ),
    made_for="normalized_kernel_recurrence",
    stays_green="kernel_state_is_a_sum",
)
def _(fq, fk, v, *, initial=None):
    output, state = kernel_attention_recurrent(fq, fk, v, initial=initial)
    before = 0.0 if initial is None else initial.z[..., None, :]
    mass = (fq * (before + fk.cumsum(axis=-2))).sum(axis=-1, keepdims=True)
    return output * mass, state


@chapter.fault(
    "kernel_state_is_a_mean",
    "the state that is handed over is divided by the number of tokens",
    operation="kernel_attention_recurrent",
    story="A running mean cannot overflow, and reads are ratios: no output shows it.",
    made_for="kernel_state_is_a_sum",
    stays_green="normalized_kernel_recurrence",
)
def _(fq, fk, v, *, initial=None):
    output, state = kernel_attention_recurrent(fq, fk, v, initial=initial)
    n = fk.shape[-2]
    return output, KernelState(state.S / n, state.z / n)


@chapter.fault(
    "kernel_read_before_update",
    "each token reads the state from before its own key",
    operation="kernel_attention_recurrent",
    story="An exclusive scan; only the first row, which then reads nothing, looks odd.",
    made_for="normalized_kernel_recurrence",
    stays_green="kernel_state_is_a_sum",
)
def _(fq, fk, v, *, initial=None):
    _, state = kernel_attention_recurrent(fq, fk, v, initial=initial)
    late_k = np.concatenate([np.full_like(fk[..., :1, :], 1e-9), fk[..., :-1, :]], -2)
    late_v = np.concatenate([np.zeros_like(v[..., :1, :]), v[..., :-1, :]], -2)
    return kernel_attention_recurrent(fq, late_k, late_v, initial=initial)[0], state


@chapter.fault(
    "kernel_ignores_initial_state",
    "the state that was handed over is dropped",
    operation="kernel_attention_recurrent",
    story="A prefix cache that is filled and never read.",
    made_for="kernel_state_handover",
    stays_green="normalized_kernel_recurrence",
)
def _(fq, fk, v, *, initial=None):
    return kernel_attention_recurrent(fq, fk, v)


@chapter.fault(
    "kernel_chunk_forgets_normaliser",
    "the state is carried from chunk to chunk, the normaliser is not",
    operation="kernel_attention_chunked",
    story="Two carries, one of them forgotten: a chunk over the length hides it.",
    made_for="kernel_chunked",
    stays_green="normalized_kernel_recurrence",
)
def _(fq, fk, v, *, chunk, initial=None):
    reads, state = [], initial
    for start in range(0, fk.shape[-2], chunk):
        q, k, x = (a[..., start : start + chunk, :] for a in (fq, fk, v))
        read, after = kernel_attention_chunked(q, k, x, chunk=chunk, initial=state)
        alone = np.tril(q @ np.swapaxes(k, -1, -2)).sum(axis=-1, keepdims=True)
        past = 0.0 if state is None else q @ state.z[..., :, None]
        reads.append(read * (alone + past) / alone)
        state = after
    return np.concatenate(reads, axis=-2), state


@chapter.fault(
    "kernel_chunk_not_causal",
    "inside a chunk every token reads the whole chunk",
    operation="kernel_attention_chunked",
    story="A missing triangle that a chunk of one cannot show.",
    made_for="kernel_chunked",
    stays_green="kernel_constant_values",
)
def _(fq, fk, v, *, chunk, initial=None):
    reads, state = [], initial
    for start in range(0, fk.shape[-2], chunk):
        q, k, x = (a[..., start : start + chunk, :] for a in (fq, fk, v))
        _, state = kernel_attention_chunked(q, k, x, chunk=chunk, initial=state)
        reads.append((q @ state.S) / (q @ state.z[..., :, None]))
    return np.concatenate(reads, axis=-2), state


@chapter.fault(
    "kernel_chunked_unnormalised",
    "the form in chunks keeps no normaliser",
    operation="kernel_attention_chunked",
    story=(
        "Dropped here as in both other forms, it leaves no comparison between forms "
        "that could notice."
    ),
    made_for="kernel_constant_values",
    stays_green="normalized_kernel_recurrence",
)
def _(fq, fk, v, *, chunk, initial=None):
    output, state = kernel_attention_chunked(fq, fk, v, chunk=chunk, initial=initial)
    before = 0.0 if initial is None else initial.z[..., None, :]
    mass = (fq * (before + fk.cumsum(axis=-2))).sum(axis=-1, keepdims=True)
    return output * mass, state


@chapter.fault(
    "kernel_epsilon_in_denominator",
    "a constant of 1e-6 is added to the denominator",
    operation="kernel_attention",
    story=(
        "The default of public implementations, against division by zero. Small "
        "features then read too little."
    ),
    made_for="kernel_scale_free",
    stays_green="kernel_future_independence",
)
def _(fq, fk, v, *, causal=True):
    weights = fq @ np.swapaxes(fk, -1, -2)
    weights = np.tril(weights) if causal else weights
    return (weights @ v) / (weights.sum(axis=-1, keepdims=True) + 1e-6)


@chapter.fault(
    "kernel_zero_over_zero",
    "a query that meets no key reads zero",
    operation="kernel_attention",
    story="0/0 patched to 0: a read that no average of the values can give.",
    made_for="kernel_refuses_zero_normaliser",
    stays_green="kernel_constant_values",
    unguarded=True,
)
def _(fq, fk, v, *, causal=True):
    if np.any(fq < 0) or np.any(fk < 0):
        raise ValueError("fq and fk must not be negative")
    weights = fq @ np.swapaxes(fk, -1, -2)
    weights = np.tril(weights) if causal else weights
    mass = weights.sum(axis=-1, keepdims=True)
    return (weights @ v) / np.where(mass == 0, 1.0, mass)


@chapter.fault(
    "elu_by_expm1",
    "the feature is computed from expm1(x), with one added",
    operation="elu_plus_one",
    story=(
        "elu(x) + 1 from a library: exactly zero below -37, and a denominator with it."
    ),
    made_for="elu_plus_one_tail",
    stays_green="kernel_is_not_softmax",
)
def _(x):
    return np.where(x < 0, np.expm1(np.minimum(x, 0.0)) + 1.0, x + 1.0)


@chapter.fault(
    "kernel_takes_the_exponential",
    "features are exponentiated, so that the kernel becomes softmax's",
    operation="kernel_attention",
    story="What 'linear attention approximates softmax' is sometimes taken to mean.",
    made_for="kernel_is_not_softmax",
    stays_green="kernel_constant_values",
)
def _(fq, fk, v, *, causal=True):
    q, k = (np.where(f < 1, np.log(f), f - 1) for f in (fq, fk))
    scores = q @ np.swapaxes(k, -1, -2) / float(np.sqrt(q.shape[-1]))
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = np.tril(weights) if causal else weights
    return (weights @ v) / weights.sum(axis=-1, keepdims=True)


@chapter.fault(
    "kernel_takes_any_feature",
    "features of any sign are taken",
    operation="kernel_attention",
    story="An identity feature map: the denominator may pass through zero.",
    made_for="kernel_refuses_negative_features",
    stays_green="kernel_two_keys",
    unguarded=True,
)
def _(fq, fk, v, *, causal=True):
    weights = fq @ np.swapaxes(fk, -1, -2)
    weights = np.tril(weights) if causal else weights
    return (weights @ v) / weights.sum(axis=-1, keepdims=True)


@chapter.fault(
    "feature_joined_at_one",
    "between 0 and 1 the feature is 1",
    operation="elu_plus_one",
    story="The branch taken at the wrong number, with the exponential clipped at zero.",
    made_for="feature_worked",
    stays_green="normalized_kernel_recurrence",
)
def _(x):
    return np.where(x < 1, np.exp(np.minimum(x, 0.0)), x + 1.0)


@chapter.fault(
    "kernel_no_tokens_reset",
    "a sequence without a token gives back a fresh state",
    operation="kernel_attention_recurrent",
    story=(
        "A loop that never runs, and a state that is only loaded inside it; an empty "
        "request of a batch is the one to meet it (mamba pull request 920)."
    ),
    made_for="kernel_no_tokens",
    stays_green="kernel_state_handover",
)
def _(fq, fk, v, *, initial=None):
    start = initial if fk.shape[-2] else None
    return kernel_attention_recurrent(fq, fk, v, initial=start)
