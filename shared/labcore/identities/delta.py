"""Writes, decay and noncommuting updates: what must hold, and how it breaks."""

from __future__ import annotations

import numpy as np

from ..ops.delta import (
    _decays,
    _rows,
    _start,
    delta_attention,
    delta_attention_chunked,
    delta_write,
    gated_write,
)
from ._check import Chapter, Inputs, Rng, nothing

chapter = Chapter(
    "writes-and-decay", "Writes, decay and noncommuting updates", "The identities"
)


# ---- What is drawn ----------------------------------------------------------------


def one_write(rng: Rng, size: int) -> Inputs:
    """A state, a unit key, a value, a beta: d_k and d_v are never the same."""
    k = rng.normal(size=size + 1)
    return {
        "S": rng.normal(size=(size + 1, size + 2)),
        "k": k / np.linalg.norm(k),
        "v": rng.normal(size=size + 2),
        "beta": float(rng.uniform(0.2, 0.8)),
    }


def one_gated_write(rng: Rng, size: int) -> Inputs:
    """As one_write, with a retention for each key channel, all of them different."""
    retention = np.linspace(0.3, 0.9, size + 1) + rng.uniform(0, 0.05, size=size + 1)
    return {**one_write(rng, size), "retention": rng.permutation(retention)}


def a_sequence(rng: Rng, size: int) -> Inputs:
    """A batch of two sequences of 2 size + 3 tokens, and a state to start from."""
    n, d_k, d_v = 2 * size + 3, size + 1, size + 2
    k = rng.normal(size=(2, n, d_k))
    return {
        "q": rng.normal(size=(2, n, d_k)),
        "k": k / np.linalg.norm(k, axis=-1, keepdims=True),
        "v": rng.normal(size=(2, n, d_v)),
        "beta": rng.uniform(0.3, 0.9, size=(2, n)),
        "initial": rng.normal(size=(2, d_k, d_v)),
    }


def a_gated_sequence(rng: Rng, size: int) -> Inputs:
    """One retention a step; one step forgets all, one keeps all."""
    drawn = a_sequence(rng, size)
    retention = rng.uniform(0.4, 0.9, size=drawn["beta"].shape)
    retention[:, 0], retention[0, 1], retention[:, 2] = 1.0, 0.0, 1.0
    return {**drawn, "retention": retention}


def a_channel_gated_sequence(rng: Rng, size: int) -> Inputs:
    """One retention a step and key channel; one step forgets one channel."""
    drawn = a_sequence(rng, size)
    retention = rng.uniform(0.4, 0.9, size=drawn["k"].shape)
    retention[:, 0], retention[0, 1, 0], retention[:, 2] = 1.0, 0.0, 1.0
    return {**drawn, "retention": retention}


# ---- What must hold ---------------------------------------------------------------


@chapter.check(
    "delta_unit_key_overwrite",
    "With a unit key and beta 1, the key reads the new value exactly.",
    draw=one_write,
)
def _(S, k, v, beta):
    return k @ delta_write(S, k, v, 1.0), v


@chapter.check(
    "delta_partial_write",
    "With a unit key, a read after the write mixes old and new by beta.",
    draw=one_write,
)
def _(S, k, v, beta):
    return k @ delta_write(S, k, v, beta), (1 - beta) * (k @ S) + beta * v


@chapter.check(
    "delta_orthogonal_read",
    "A query orthogonal to the key reads what it read before.",
    draw=one_write,
)
def _(S, k, v, beta):
    q = np.roll(np.eye(len(k))[0], 1)
    q = q - (q @ k) * k
    return q @ delta_write(S, k, v, 1.0), q @ S


@chapter.check(
    "delta_long_key_overshoots",
    "A key of length 2 overshoots: it reads 14 where 5 was written.",
    draw=nothing,
    kind="value",
)
def _():
    # S = I, k = (2, 0), v = (5, 0), beta = 1: error = v - k S = (3, 0);
    # S' = I + k error^T = I + [[6, 0], [0, 0]], and k reads 2 * 7. With v = (3, 0) a
    # write that normalises its key gives the same state: that example is blind.
    got = delta_write(np.eye(2), np.array([2.0, 0.0]), np.array([5.0, 0.0]), 1.0)
    return got, np.array([[7.0, 0.0], [0.0, 1.0]])


@chapter.check(
    "gated_decay_then_correct",
    "Scalar example: 4 decays to 2, then a quarter of the error 8 brings it to 4.",
    draw=nothing,
    kind="value",
)
def _():
    # 4 * 0.5 = 2; 2 + 0.25 * (10 - 2) = 4.
    return gated_write([[4.0]], [1.0], [10.0], 0.25, 0.5), np.array([[4.0]])


@chapter.check(
    "gated_worked_matrix",
    "Matrix example: a state of four entries, all of which change.",
    draw=nothing,
    kind="value",
)
def _():
    # Decayed: [[.5, 1], [0, .5]]. Read by k: (.3, .6 + .4) = (.3, 1).
    # Error: (.7, -1). Half of k error^T: [[.21, -.3], [.28, -.4]].
    S = np.array([[1.0, 2.0], [0.0, 1.0]])
    got = gated_write(S, [0.6, 0.8], [1.0, 0.0], 0.5, 0.5)
    return got, np.array([[0.71, 0.7], [0.28, 0.1]])


@chapter.check(
    "gated_no_decay_limit",
    "Retention 1 is the plain delta write.",
    draw=one_write,
)
def _(S, k, v, beta):
    return gated_write(S, k, v, beta, 1.0), delta_write(S, k, v, beta)


@chapter.check(
    "gated_no_write_limit",
    "Beta 0 only decays, each key channel by its own retention.",
    draw=one_gated_write,
)
def _(S, k, v, beta, retention):
    return gated_write(S, k, v, 0.0, retention), np.diag(retention) @ S


@chapter.check(
    "gated_equal_channels",
    "A retention that is the same in every channel is a scalar one.",
    draw=one_write,
)
def _(S, k, v, beta):
    return (
        gated_write(S, k, v, beta, np.full(len(k), 0.6)),
        gated_write(S, k, v, beta, 0.6),
    )


@chapter.check(
    "kda_affine_form",
    "The update is affine in the state: decay, project, add.",
    draw=one_gated_write,
)
def _(S, k, v, beta, retention):
    project = np.eye(len(k)) - beta * np.outer(k, k)
    want = project @ np.diag(retention) @ S + beta * np.outer(k, v)
    return gated_write(S, k, v, beta, retention), want


@chapter.check(
    "kda_noncommuting_counterexample",
    "Decay then projection is not projection then decay.",
    draw=nothing,
    kind="differs",
)
def _():
    # Writing the value 0 with beta 1 projects; writing nothing decays. On the state
    # I the two orders leave the matrices P D and D P, a quarter apart off the diagonal.
    k, decay, zero = (
        np.array([1.0, 1.0]) / np.sqrt(2),
        np.array([1.0, 0.5]),
        np.zeros(2),
    )
    decay_first = gated_write(np.eye(2), k, zero, 1.0, decay)
    project_first = np.diag(decay) @ delta_write(np.eye(2), k, zero, 1.0)
    return decay_first, project_first


@chapter.check(
    "delta_attention_unrolled",
    "A sequence of writes and reads equals the product of its affine maps.",
    draw=a_channel_gated_sequence,
)
def _(q, k, v, beta, initial, retention):
    S, reads = initial, []
    for t in range(k.shape[1]):
        outer = k[:, t, :, None] * k[:, t, None, :]
        A = (np.eye(k.shape[-1]) - beta[:, t, None, None] * outer) * retention[
            :, t, None, :
        ]
        S = A @ S + beta[:, t, None, None] * k[:, t, :, None] * v[:, t, None, :]
        reads.append(np.einsum("bc,bcd->bd", q[:, t], S))
    got = delta_attention(q, k, v, beta, retention=retention, initial=initial)
    return got, (np.stack(reads, axis=1), S)


@chapter.check(
    "delta_state_handover",
    "A sequence cut in two, its state handed over, is the whole sequence.",
    draw=a_gated_sequence,
)
def _(q, k, v, beta, initial, retention):
    cut = 2
    first, S = delta_attention(
        q[:, :cut],
        k[:, :cut],
        v[:, :cut],
        beta[:, :cut],
        retention=retention[:, :cut],
        initial=initial,
    )
    second, S = delta_attention(
        q[:, cut:],
        k[:, cut:],
        v[:, cut:],
        beta[:, cut:],
        retention=retention[:, cut:],
        initial=S,
    )
    whole = delta_attention(q, k, v, beta, retention=retention, initial=initial)
    return (np.concatenate([first, second], axis=1), S), whole


@chapter.check(
    "delta_chunked",
    "Delta writes in chunks equal one write at a time, for every chunk.",
    draw=a_sequence,
)
def _(q, k, v, beta, initial):
    return _every_chunk(q, k, v, beta, None, initial)


@chapter.check(
    "gated_chunked",
    "So do gated writes, with retention 0 and 1 among the gates.",
    draw=a_gated_sequence,
)
def _(q, k, v, beta, initial, retention):
    return _every_chunk(q, k, v, beta, retention, initial)


@chapter.check(
    "kda_chunked",
    "So do writes with a gate for each channel.",
    draw=a_channel_gated_sequence,
)
def _(q, k, v, beta, initial, retention):
    return _every_chunk(q, k, v, beta, retention, initial)


@chapter.check(
    "delta_refuses_large_beta",
    "A beta of 2.5 is refused: the error would grow with every write.",
    draw=nothing,
    kind="refuses",
)
def _():
    return lambda: delta_write([[0.0]], [1.0], [1.0], 2.5), "beta"


def _every_chunk(q, k, v, beta, retention, initial):
    n = k.shape[1]
    one_by_one = delta_attention(q, k, v, beta, retention=retention, initial=initial)
    in_chunks = [
        delta_attention_chunked(
            q, k, v, beta, chunk=chunk, retention=retention, initial=initial
        )
        for chunk in (1, 2, 3, n + 1)
    ]
    return in_chunks, [one_by_one] * 4


@chapter.check(
    "delta_from_nothing",
    "Without a state to start from, both forms start from zeros.",
    draw=a_sequence,
)
def _(q, k, v, beta, initial):
    want = delta_attention(q, k, v, beta, initial=np.zeros_like(initial))
    chunked = delta_attention_chunked(q, k, v, beta, chunk=2)
    return (delta_attention(q, k, v, beta), chunked), (want, want)


@chapter.check(
    "delta_overshoots",
    "With a unit key and beta above one, a read passes the value that is written.",
    draw=one_write,
)
def _(S, k, v, beta):
    # (1 - b) old + b v with b = 1 + beta.
    old = k @ S
    got = k @ delta_write(S, k, v, 1 + beta), k @ gated_write(S, k, v, 1 + beta, 0.5)
    return got, (v + beta * (v - old), v + beta * (v - 0.5 * old))


@chapter.check(
    "gated_long_key",
    "A key of length 2 overshoots after a decay too: it reads 17 where 5 was written.",
    draw=nothing,
    kind="value",
)
def _():
    # Decayed: I/2. Read by k = (2, 0): (1, 0). Error: (4, 0). k error^T: [[8, 0],
    # [0, 0]]; k then reads 2 * 8.5.
    got = gated_write(np.eye(2), np.array([2.0, 0.0]), np.array([5.0, 0.0]), 1.0, 0.5)
    return got, np.array([[8.5, 0.0], [0.0, 0.5]])


@chapter.check(
    "delta_any_key_and_beta",
    "Sequences take keys of any length and betas up to two, as single writes do.",
    draw=a_channel_gated_sequence,
)
def _(q, k, v, beta, initial, retention):
    k, beta = 1.25 * k, 2.0 * beta
    S, reads = initial, []
    for t in range(k.shape[1]):
        S = retention[:, t, :, None] * S
        error = v[:, t] - np.einsum("bc,bcd->bd", k[:, t], S)
        S = S + beta[:, t, None, None] * k[:, t, :, None] * error[:, None, :]
        reads.append(np.einsum("bc,bcd->bd", q[:, t], S))
    options = {"retention": retention, "initial": initial}
    one_by_one = delta_attention(q, k, v, beta, **options)
    in_chunks = delta_attention_chunked(q, k, v, beta, chunk=3, **options)
    want = np.stack(reads, axis=1), S
    return (one_by_one, in_chunks), (want, want)


@chapter.check(
    "delta_no_tokens",
    "A sequence without a token reads nothing and leaves the state as it was.",
    draw=a_gated_sequence,
    kind="exact",
)
def _(q, k, v, beta, initial, retention):
    none = q[:, :0], k[:, :0], v[:, :0], beta[:, :0]
    options = {"retention": retention[:, :0], "initial": initial}
    want = np.zeros((len(q), 0, v.shape[-1])), initial
    in_chunks = delta_attention_chunked(*none, chunk=2, **options)
    return (delta_attention(*none, **options), in_chunks), (want, want)


# ---- How it breaks ----------------------------------------------------------------


@chapter.fault(
    "delta_write_does_nothing",
    "the write returns the state it was given",
    operation="gated_write",
    story="What is left when an update is computed and not assigned.",
    made_for="gated_worked_matrix",
    stays_green="gated_decay_then_correct",
)
def _(S, k, v, beta, retention):
    return S + np.zeros_like(S)


@chapter.fault(
    "gated_error_before_decay",
    "the error is read from the state before it decays",
    operation="gated_write",
    story=(
        "The order that a linear-attention library's reference kernel was reported to "
        "get wrong; the source article asks for it by name."
    ),
    made_for="gated_worked_matrix",
    stays_green="gated_no_decay_limit",
)
def _(S, k, v, beta, retention):
    error = v - (k[..., None, :] @ S)[..., 0, :]
    correction = k[..., :, None] * error[..., None, :]
    b = np.asarray(beta, S.dtype)[..., None, None]
    return _column(retention) * S + b * correction


@chapter.fault(
    "gated_decay_after_write",
    "decay comes after the write",
    operation="gated_write",
    story="Reads naturally as 'update, then forget', and decays the new value too.",
    made_for="kda_noncommuting_counterexample",
    stays_green="gated_no_write_limit",
)
def _(S, k, v, beta, retention):
    return _column(retention) * delta_write(S, k, v, beta)


@chapter.fault(
    "kda_decays_value_channels",
    "the retention is applied to the columns of the state",
    operation="gated_write",
    story="Follows from reading S as (d_v, d_k), as half of the papers write it.",
    made_for="gated_no_write_limit",
    stays_green="gated_equal_channels",
)
def _(S, k, v, beta, retention):
    rows = np.asarray(retention)
    columns = np.resize(rows, (*rows.shape[:-1], S.shape[-1])) if rows.ndim else rows
    return delta_write(S * (columns[..., None, :] if rows.ndim else rows), k, v, beta)


@chapter.fault(
    "gated_log_decay",
    "the retention is taken for its logarithm",
    operation="gated_write",
    story=(
        "Fused kernels take log alpha; a caller who passes alpha decays by its "
        "exponential."
    ),
    made_for="gated_no_write_limit",
    stays_green="gated_equal_channels",
)
def _(S, k, v, beta, retention):
    return delta_write(S * np.exp(_column(retention)), k, v, beta)


@chapter.fault(
    "delta_additive_write",
    "the value is added without subtracting what the key reads",
    operation="delta_write",
    story=(
        "This is the write of linear attention; the correction is the whole delta rule."
    ),
    made_for="delta_unit_key_overwrite",
    stays_green="delta_orthogonal_read",
)
def _(S, k, v, beta):
    b = np.asarray(beta, S.dtype)[..., None, None]
    return S + b * (k[..., :, None] * v[..., None, :])


@chapter.fault(
    "delta_forgets_beta",
    "the whole error is written, whatever beta is",
    operation="delta_write",
    story="Every test that sets beta to 1 agrees with it.",
    made_for="delta_partial_write",
    stays_green="delta_unit_key_overwrite",
)
def _(S, k, v, beta):
    error = v - (k[..., None, :] @ S)[..., 0, :]
    return S + k[..., :, None] * error[..., None, :]


@chapter.fault(
    "delta_normalises_key",
    "the key is normalised inside the write",
    operation="delta_write",
    story=(
        "Some implementations normalise in the layer, some in the kernel; doing it in "
        "both is silent, doing it in neither is not."
    ),
    made_for="delta_long_key_overshoots",
    stays_green="delta_unit_key_overwrite",
)
def _(S, k, v, beta):
    return delta_write(S, k / np.linalg.norm(k, axis=-1, keepdims=True), v, beta)


@chapter.fault(
    "delta_writes_to_every_row",
    "the error is added to every row, not along the key",
    operation="delta_write",
    story=(
        "The outer product forgotten: shapes still broadcast, and a scalar state "
        "agrees."
    ),
    made_for="delta_orthogonal_read",
    stays_green="gated_decay_then_correct",
)
def _(S, k, v, beta):
    error = v - (k[..., None, :] @ S)[..., 0, :]
    b = np.asarray(beta, S.dtype)[..., None, None]
    return S + b * error[..., None, :]


@chapter.fault(
    "gated_scalar_decays_one_row",
    "a retention that is one number decays the first channel only",
    operation="gated_write",
    story=(
        "A number padded with ones to the width of the gates; gates of full width are "
        "right."
    ),
    made_for="gated_equal_channels",
    stays_green="gated_no_write_limit",
)
def _(S, k, v, beta, retention):
    if np.ndim(retention) == 0:
        retention = np.where(np.arange(S.shape[-2]) == 0, retention, 1.0)
    return gated_write(S, k, v, beta, retention)


@chapter.fault(
    "delta_reads_before_write",
    "each token reads the state from before its own write",
    operation="delta_attention",
    story="An exclusive scan where an inclusive one is meant.",
    made_for="delta_attention_unrolled",
    stays_green="delta_state_handover",
)
def _(q, k, v, beta, *, retention=None, initial=None):
    alpha = _rows(k, beta, retention)
    S = _start(k, v) if initial is None else initial
    reads = []
    for t in range(k.shape[-2]):
        reads.append((q[..., t, None, :] @ S)[..., 0, :])
        S = gated_write(S, k[..., t, :], v[..., t, :], beta[..., t], alpha[..., t, :])
    return np.stack(reads, axis=-2), S


@chapter.fault(
    "delta_ignores_initial_state",
    "the state that was handed over is dropped",
    operation="delta_attention",
    story=(
        "A cache that is filled and never read: every test from an empty state passes."
    ),
    made_for="delta_state_handover",
    stays_green="delta_unit_key_overwrite",
)
def _(q, k, v, beta, *, retention=None, initial=None):
    return delta_attention(q, k, v, beta, retention=retention)


@chapter.fault(
    "delta_chunk_skips_solve",
    "corrections inside a chunk ignore one another",
    operation="delta_attention_chunked",
    story="Right for a chunk of one, and for keys that are orthogonal.",
    made_for="delta_chunked",
    stays_green="delta_attention_unrolled",
)
def _(q, k, v, beta, *, chunk, retention=None, initial=None):
    alpha, reads = _rows(k, beta, retention), []
    S = _start(k, v) if initial is None else initial
    for start in range(0, k.shape[-2], chunk):
        now = slice(start, start + chunk)
        Q, K, b = q[..., now, :], k[..., now, :], beta[..., now, None]
        D, G = _decays(alpha[..., now, :])
        u = b * (v[..., now, :] - (G * K) @ S)
        by_query = np.einsum("...ic,...ijc,...jc->...ij", Q, D, K)
        reads.append((G * Q) @ S + np.tril(by_query) @ u)
        S = G[..., -1, :, None] * S + np.swapaxes(D[..., -1, :, :] * K, -1, -2) @ u
    return np.concatenate(reads, axis=-2), S


@chapter.fault(
    "gated_chunk_state_not_decayed",
    "the state is carried into the next chunk without its decay",
    operation="delta_attention_chunked",
    story="One chunk that covers the sequence hides it, and so does retention 1.",
    made_for="gated_chunked",
    stays_green="delta_chunked",
)
def _(q, k, v, beta, *, chunk, retention=None, initial=None):
    alpha, reads, S = _rows(k, beta, retention), [], initial
    alpha = np.broadcast_to(alpha, k.shape).copy()
    alpha[..., chunk::chunk, :] = 1.0
    for start in range(0, k.shape[-2], chunk):
        now = slice(start, start + chunk)
        part = (x[..., now, :] for x in (q, k, v))
        read, S = delta_attention_chunked(
            *part,
            beta[..., now],
            chunk=chunk,
            retention=alpha[..., now, :],
            initial=S,
        )
        reads.append(read)
    return np.concatenate(reads, axis=-2), S


@chapter.fault(
    "kda_chunk_mean_gate",
    "the channels' gates are replaced by their mean",
    operation="delta_attention_chunked",
    story="What a kernel for one gate a head does when it is handed one a channel.",
    made_for="kda_chunked",
    stays_green="gated_chunked",
)
def _(q, k, v, beta, *, chunk, retention=None, initial=None):
    if retention is not None and retention.ndim > beta.ndim:
        retention = retention.mean(axis=-1)
    return delta_attention_chunked(
        q, k, v, beta, chunk=chunk, retention=retention, initial=initial
    )


@chapter.fault(
    "delta_beta_unchecked",
    "any beta is taken",
    operation="delta_write",
    story="A gate without its sigmoid: training diverges long after the first write.",
    made_for="delta_refuses_large_beta",
    stays_green="delta_partial_write",
    unguarded=True,
)
def _(S, k, v, beta):
    error = v - (k[..., None, :] @ S)[..., 0, :]
    b = np.asarray(beta, S.dtype)[..., None, None]
    return S + b * (k[..., :, None] * error[..., None, :])


def _column(retention):
    rows = np.asarray(retention)
    return rows[..., :, None] if rows.ndim else retention


@chapter.fault(
    "delta_starts_from_ones",
    "a sequence without a state starts from ones",
    operation="delta_attention",
    story="A buffer allocated and not cleared; who hands a state over never sees it.",
    made_for="delta_from_nothing",
    stays_green="delta_state_handover",
)
def _(q, k, v, beta, *, retention=None, initial=None):
    start = 1.0 + _start(k, v) if initial is None else initial
    return delta_attention(q, k, v, beta, retention=retention, initial=start)


@chapter.fault(
    "delta_clips_beta",
    "a beta above one is taken for one",
    operation="delta_write",
    story=(
        "A gate that is a sigmoid never exceeds one. Twice a sigmoid, which lets a "
        "write reflect the state, does (flash-linear-attention pull request 919)."
    ),
    made_for="delta_overshoots",
    stays_green="delta_partial_write",
)
def _(S, k, v, beta):
    return delta_write(S, k, v, np.minimum(beta, 1.0))


@chapter.fault(
    "gated_clips_beta",
    "where there is a decay, a beta above one is taken for one",
    operation="gated_write",
    story="One of two kernels learns of negative eigenvalues, and the other does not.",
    made_for="delta_overshoots",
    stays_green="gated_worked_matrix",
)
def _(S, k, v, beta, retention):
    return gated_write(S, k, v, np.minimum(beta, 1.0), retention)


@chapter.fault(
    "gated_normalises_key",
    "the key is normalised inside the gated write",
    operation="gated_write",
    story=(
        "Where keys are normalised moves from the layer into the kernel with an "
        "option, one call at a time (Megatron-LM pull request 5396)."
    ),
    made_for="gated_long_key",
    stays_green="gated_worked_matrix",
)
def _(S, k, v, beta, retention):
    k = k / np.linalg.norm(k, axis=-1, keepdims=True)
    return gated_write(S, k, v, beta, retention)


@chapter.fault(
    "delta_sequence_normalises_keys",
    "a sequence normalises its keys before it writes",
    operation="delta_attention",
    story="Tests that draw unit keys, as most do, cannot tell.",
    made_for="delta_any_key_and_beta",
    stays_green="delta_attention_unrolled",
)
def _(q, k, v, beta, *, retention=None, initial=None):
    k = k / np.linalg.norm(k, axis=-1, keepdims=True)
    return delta_attention(q, k, v, beta, retention=retention, initial=initial)


@chapter.fault(
    "delta_chunk_clips_beta",
    "in chunks, a beta above one is taken for one",
    operation="delta_attention_chunked",
    story="The fast form is written for sigmoid gates; the slow one, its test, too.",
    made_for="delta_any_key_and_beta",
    stays_green="kda_chunked",
)
def _(q, k, v, beta, *, chunk, retention=None, initial=None):
    beta = np.minimum(beta, 1.0)
    return delta_attention_chunked(
        q, k, v, beta, chunk=chunk, retention=retention, initial=initial
    )


@chapter.fault(
    "delta_no_tokens_reset",
    "a sequence without a token gives back a fresh state",
    operation="delta_attention_chunked",
    story=(
        "The loop over chunks does not run, and neither does what loads the state: "
        "the form in chunks and the recurrence disagreed in public (attention-gym "
        "pull request 419)."
    ),
    made_for="delta_no_tokens",
    stays_green="gated_chunked",
)
def _(q, k, v, beta, *, chunk, retention=None, initial=None):
    start = initial if k.shape[-2] else None
    return delta_attention_chunked(
        q, k, v, beta, chunk=chunk, retention=retention, initial=start
    )


@chapter.fault(
    "gated_state_in_half",
    "a float32 state is kept in float16 between two writes",
    operation="gated_write",
    story=(
        "A state is rewritten at every token, unlike a cache, and so is its rounding: "
        "engines let the state have a wider type than the model, or forget to."
    ),
    made_for="float32_stays_float32",
    stays_green="gated_worked_matrix",
)
def _(S, k, v, beta, retention):
    kept = S.astype(np.float16).astype(S.dtype) if S.dtype == np.float32 else S
    return gated_write(kept, k, v, beta, retention)
