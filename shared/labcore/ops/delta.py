"""Delta writes: correct what a key reads, with and without decay."""

from __future__ import annotations

import numpy as np

from . import _validate as must
from ._op import Array, op


def _write(S: Array, k: Array, v: Array, beta: float | Array) -> None:
    must.axes(2, S=S)
    must.axes(1, k=k, v=v)
    must.finite(S=S, k=k, v=v)
    must.same("d_k", S=S.shape[-2], k=k.shape[-1])
    must.same("d_v", S=S.shape[-1], v=v.shape[-1])
    must.within(0.0, 2.0, beta=beta)
    must.batch(S=S.shape[:-2], k=k.shape[:-1], v=v.shape[:-1], beta=np.shape(beta))


def _gated(
    S: Array, k: Array, v: Array, beta: float | Array, retention: float | Array
) -> None:
    _write(S, k, v, beta)
    must.within(0.0, 1.0, retention=retention)
    if np.ndim(retention) and np.shape(retention)[-1] not in (1, S.shape[-2]):
        raise ValueError(
            f"retention must be a number or have d_k = {S.shape[-2]} entries along its "
            f"last axis, one a row of S, got shape {np.shape(retention)}"
        )
    must.batch(
        S=S.shape[:-2],
        k=k.shape[:-1],
        v=v.shape[:-1],
        beta=np.shape(beta),
        retention=np.shape(retention)[:-1],
    )


def _sequence(
    q: Array,
    k: Array,
    v: Array,
    beta: Array,
    *,
    retention: Array | None = None,
    initial: Array | None = None,
) -> None:
    must.axes(2, q=q, k=k, v=v)
    must.axes(1, beta=beta)
    must.finite(q=q, k=k, v=v)
    n = k.shape[-2]
    must.same("d_k", q=q.shape[-1], k=k.shape[-1])
    must.same("tokens", q=q.shape[-2], k=n, v=v.shape[-2], beta=beta.shape[-1])
    must.within(0.0, 2.0, beta=beta)
    gates = None
    if retention is not None:
        must.axes(1, retention=retention)
        must.within(0.0, 1.0, retention=retention)
        per_step = retention.ndim == beta.ndim and retention.shape[-1] == n
        per_channel = retention.ndim == beta.ndim + 1 and retention.shape[-2:] == (
            n,
            k.shape[-1],
        )
        if not per_step and not per_channel:
            raise ValueError(
                f"retention must be (..., n) or (..., n, d_k) with n = {n}, "
                f"d_k = {k.shape[-1]} and as many axes in front as beta, {beta.shape}, "
                f"got {retention.shape}"
            )
        gates = retention.shape[: beta.ndim - 1]
    if initial is not None:
        must.finite(initial=initial)
        if initial.shape[-2:] != (k.shape[-1], v.shape[-1]):
            raise ValueError(
                f"initial must be (..., d_k, d_v) = {(k.shape[-1], v.shape[-1])}, "
                f"got {initial.shape}"
            )
    must.batch(
        q=q.shape[:-2],
        k=k.shape[:-2],
        v=v.shape[:-2],
        beta=beta.shape[:-1],
        retention=gates,
        initial=None if initial is None else initial.shape[:-2],
    )


def _in_chunks(
    q: Array,
    k: Array,
    v: Array,
    beta: Array,
    *,
    chunk: int,
    retention: Array | None = None,
    initial: Array | None = None,
) -> None:
    must.count(1, chunk=chunk)
    _sequence(q, k, v, beta, retention=retention, initial=initial)


@op(_write, floats="S k v beta")
def delta_write(S: Array, k: Array, v: Array, beta: float | Array) -> Array:
    r"""Read what the key returns, and write a share of the error back.

    $$S' = S + \beta\, k \,(v - k^\top S)
    = (I - \beta k k^\top) S + \beta k v^\top$$

    S: (..., d_k, d_v), read as q @ S; k: (..., d_k); v: (..., d_v);
    beta: a number or (...), from 0 to 2. With a unit key, beta = 1 makes the key read
    exactly v; beyond 2 the error would grow. Keys are not normalised here.
    Raises ValueError for beta outside [0, 2]. Source: Yang et al. 2024 (DeltaNet).

    >>> delta_write([[4.0]], [1.0], [10.0], 0.5).tolist()
    [[7.0]]
    """
    error = v - (k[..., None, :] @ S)[..., 0, :]
    share = np.asarray(beta, S.dtype)[..., None, None]
    return S + share * (k[..., :, None] * error[..., None, :])


@op(_gated, floats="S k v beta retention")
def gated_write(
    S: Array, k: Array, v: Array, beta: float | Array, retention: float | Array
) -> Array:
    r"""Decay, then read, then correct.

    $$\tilde S = \mathrm{Diag}(\alpha)\, S, \qquad
    S' = \tilde S + \beta\, k \,(v - k^\top \tilde S)^\top$$

    retention $\alpha$: a number (Gated DeltaNet) or (..., d_k), one a key channel, that
    is a row of S (KDA); from 0 to 1. The rest as :func:`delta_write`.
    Sources: Yang et al. 2024 (Gated DeltaNet); Kimi Team 2025 (KDA).

    >>> gated_write([[4.0]], [1.0], [10.0], 0.25, 0.5).tolist()
    [[4.0]]
    """
    rows = np.asarray(retention, S.dtype)
    decayed = S * (rows[..., :, None] if rows.ndim else rows)
    return delta_write(decayed, k, v, beta)


@op(_sequence, floats="q k v beta retention initial")
def delta_attention(
    q: Array,
    k: Array,
    v: Array,
    beta: Array,
    *,
    retention: Array | None = None,
    initial: Array | None = None,
) -> tuple[Array, Array]:
    r"""One write and one read a token.

    $$S_t = \mathrm{write}(S_{t-1}, k_t, v_t, \beta_t, \alpha_t), \qquad o_t = q_t S_t$$

    q, k: (..., n, d_k); v: (..., n, d_v); beta: (..., n); retention: None, (..., n) or
    (..., n, d_k); initial: (..., d_k, d_v), zeros unless given.
    Returns (output (..., n, d_v), S (..., d_k, d_v)); of no token, no output and the
    state as it was.

    >>> output, S = delta_attention([[1.0]], [[1.0]], [[3.0]], [1.0])
    >>> output.tolist(), S.tolist()
    ([[3.0]], [[3.0]])
    """
    alpha = _rows(k, beta, retention)
    S = _start(k, v) if initial is None else initial
    reads = []
    for t in range(k.shape[-2]):
        S = gated_write(S, k[..., t, :], v[..., t, :], beta[..., t], alpha[..., t, :])
        reads.append((q[..., t, None, :] @ S)[..., 0, :])
    return np.stack(reads, axis=-2) if reads else q @ S, S  # of no token, no read


@op(_in_chunks, floats="q k v beta retention initial")
def delta_attention_chunked(
    q: Array,
    k: Array,
    v: Array,
    beta: Array,
    *,
    chunk: int,
    retention: Array | None = None,
    initial: Array | None = None,
) -> tuple[Array, Array]:
    r"""The same, a chunk of writes at once by solving for their corrections.

    Inside a chunk let $D_{ij} = \prod_{l=j+1}^{i} \alpha_l$ and
    $G_i = \prod_{l \le i} \alpha_l$. The corrections $u_i$ solve

    $$u_i + \beta_i \sum_{j<i} (k_i^\top D_{ij} k_j)\, u_j
      = \beta_i \left(v_i - (G_i k_i)^\top S\right),$$

    a unit lower triangular system; then
    $o_i = (G_i q_i)^\top S + \sum_{j \le i} (q_i^\top D_{ij} k_j)\, u_j$.
    The products are formed directly, never as quotients, so that retention 0 is exact.
    Shapes and result as :func:`delta_attention`, which it equals for every chunk.
    Source: Yang et al. 2024 (parallelizing DeltaNet), the WY form.

    >>> delta_attention_chunked([[1.0]], [[1.0]], [[3.0]], [1.0], chunk=2)[1].tolist()
    [[3.0]]
    """
    alpha = _rows(k, beta, retention)
    S = _start(k, v) if initial is None else initial
    reads = []
    for start in range(0, k.shape[-2], chunk):
        now = slice(start, start + chunk)
        Q, K, b = q[..., now, :], k[..., now, :], beta[..., now, None]
        D, G = _decays(alpha[..., now, :])
        by_key = np.einsum("...ic,...ijc,...jc->...ij", K, D, K)
        by_query = np.einsum("...ic,...ijc,...jc->...ij", Q, D, K)
        system = np.eye(K.shape[-2], dtype=K.dtype) + b * np.tril(by_key, -1)
        u = np.linalg.solve(system, b * (v[..., now, :] - (G * K) @ S))
        reads.append((G * Q) @ S + np.tril(by_query) @ u)
        carried = D[..., -1, :, :] * K
        S = G[..., -1, :, None] * S + np.swapaxes(carried, -1, -2) @ u
    return np.concatenate(reads, axis=-2) if reads else q @ S, S  # no token, no read


def _rows(k: Array, beta: Array, retention: Array | None) -> Array:
    """Retention as (..., n, d_k) or (..., n, 1), ones where there is none."""
    if retention is None:
        return np.ones((*beta.shape, 1), k.dtype)
    return retention[..., None] if retention.ndim == beta.ndim else retention


def _start(k: Array, v: Array) -> Array:
    batch = np.broadcast_shapes(k.shape[:-2], v.shape[:-2])
    return np.zeros((*batch, k.shape[-1], v.shape[-1]), np.result_type(k, v))


def _decays(alpha: Array) -> tuple[Array, Array]:
    """D[i, j]: what step j's write keeps at step i >= j; G[i]: what the state keeps."""
    n = alpha.shape[-2]
    D = np.zeros((*alpha.shape[:-2], n, n, alpha.shape[-1]), alpha.dtype)
    for i in range(n):
        D[..., i, i, :] = 1.0
        D[..., i, :i, :] = alpha[..., i, None, :] * D[..., i - 1, :i, :]
    return D, np.cumprod(alpha, axis=-2)
