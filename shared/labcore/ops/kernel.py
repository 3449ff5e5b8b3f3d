"""Attention with a kernel of positive features: pairwise, recurrent and in chunks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from . import _validate as must
from ._op import Array, op


class KernelState(NamedTuple):
    """The state S: (..., d_k, d_v), and the normaliser z: (..., d_k)."""

    S: Array
    z: Array


def _features(x: Array) -> None:
    must.finite(x=x)


def _sequence(
    fq: Array,
    fk: Array,
    v: Array,
    *,
    causal: bool = True,
    initial: KernelState | None = None,
) -> None:
    must.axes(2, fq=fq, fk=fk, v=v)
    must.finite(fq=fq, fk=fk, v=v)
    must.same("the feature axis", fq=fq.shape[-1], fk=fk.shape[-1])
    must.same("the number of keys and values", fk=fk.shape[-2], v=v.shape[-2])
    must.batch(fq=fq.shape[:-2], fk=fk.shape[:-2], v=v.shape[:-2])
    must.within(0.0, np.inf, fq=fq, fk=fk)
    if initial is not None:
        must.finite(initial=initial.S)
        must.within(0.0, np.inf, initial=initial.z)
        if initial.S.shape[-2:] != (fk.shape[-1], v.shape[-1]):
            raise ValueError(
                f"initial must have S of shape (d_k, d_v) = "
                f"{(fk.shape[-1], v.shape[-1])}, got {initial.S.shape}"
            )
        if initial.z.shape[-1:] != fk.shape[-1:]:
            raise ValueError(
                f"initial must have z of shape (d_k,) = {fk.shape[-1:]}, "
                f"got {initial.z.shape}"
            )
        must.batch(
            fq=fq.shape[:-2],
            fk=fk.shape[:-2],
            v=v.shape[:-2],
            initial=initial.S.shape[:-2],
            z=initial.z.shape[:-1],
        )
    past = 0.0 if initial is None else initial.z[..., None, :]
    if causal:
        must.same("the number of queries and keys", fq=fq.shape[-2], fk=fk.shape[-2])
        mass = (fq * (past + fk.cumsum(axis=-2))).sum(axis=-1)
    else:
        mass = (fq * fk.sum(axis=-2, keepdims=True)).sum(axis=-1)
    if np.any(np.real(mass) == 0):
        raise ValueError("fq meets a zero normaliser: phi(q) . z = 0 in some row")


def _in_chunks(
    fq: Array,
    fk: Array,
    v: Array,
    *,
    chunk: int,
    initial: KernelState | None = None,
) -> None:
    must.count(1, chunk=chunk)
    _sequence(fq, fk, v, initial=initial)


@op(_features, floats="x")
def elu_plus_one(x: Array) -> Array:
    r"""A positive feature map.

    $$\phi(x) = \begin{cases} x + 1 & x \ge 0 \\ e^x & x < 0 \end{cases}$$

    Written with $e^x$, not $(e^x - 1) + 1$, which rounds to zero below -37.
    Source: Katharopoulos et al. 2020.

    >>> elu_plus_one([-50.0, 0.0, 3.0]).tolist()
    [1.9287498479639178e-22, 1.0, 4.0]
    """
    return np.where(x < 0, np.exp(np.where(x < 0, x, 0.0)), x + 1.0)


@op(_sequence, floats="fq fk v")
def kernel_attention(fq: Array, fk: Array, v: Array, *, causal: bool = True) -> Array:
    r"""Every pair of features, weighed and normalised: the definition.

    $$o_t = \frac{\sum_{j \le t} (\phi(q_t)^\top \phi(k_j))\, v_j}
                 {\sum_{j \le t} \phi(q_t)^\top \phi(k_j)}$$

    fq, fk: (..., n, d_k) features, not negative; v: (..., n, d_v).
    Returns (..., n, d_v). causal=False reads all keys.
    Raises ValueError for negative features and for a zero denominator.

    >>> kernel_attention([[1.0], [1.0]], [[1.0], [3.0]], [[4.0], [8.0]]).tolist()
    [[4.0], [7.0]]
    """
    weights = fq @ np.swapaxes(fk, -1, -2)
    weights = np.tril(weights) if causal else weights
    return (weights @ v) / weights.sum(axis=-1, keepdims=True)


@op(_sequence, floats="fq fk v initial")
def kernel_attention_recurrent(
    fq: Array, fk: Array, v: Array, *, initial: KernelState | None = None
) -> tuple[Array, KernelState]:
    r"""The same reads from a state of fixed size, one token at a time.

    $$S_t = S_{t-1} + \phi(k_t) v_t^\top, \quad z_t = z_{t-1} + \phi(k_t), \quad
    o_t = \frac{\phi(q_t) S_t}{\phi(q_t) \cdot z_t}$$

    Shapes and errors as :func:`kernel_attention`. Returns (output, state); of no
    token, no output and the state as it was.

    >>> kernel_attention_recurrent([[1.0]], [[2.0]], [[3.0]])[0].tolist()
    [[3.0]]
    """
    S, z = _start(fk, v, initial)
    reads = []
    for t in range(fk.shape[-2]):
        S = S + fk[..., t, :, None] * v[..., t, None, :]
        z = z + fk[..., t, :]
        read = (fq[..., t, None, :] @ S)[..., 0, :]
        reads.append(read / (fq[..., t, :] * z).sum(axis=-1, keepdims=True))
    output = np.stack(reads, axis=-2) if reads else fq @ S  # of no token, no read
    return output, KernelState(S, z)


@op(_in_chunks, floats="fq fk v initial")
def kernel_attention_chunked(
    fq: Array,
    fk: Array,
    v: Array,
    *,
    chunk: int,
    initial: KernelState | None = None,
) -> tuple[Array, KernelState]:
    """Pairwise inside a chunk, the state between chunks: what hardware likes.

    Equals both other forms for every chunk >= 1. Returns (output, state).

    >>> kernel_attention_chunked([[1.0]], [[2.0]], [[3.0]], chunk=4)[0].tolist()
    [[3.0]]
    """
    S, z = _start(fk, v, initial)
    reads = []
    for start in range(0, fk.shape[-2], chunk):
        now = slice(start, start + chunk)
        q, k, x = fq[..., now, :], fk[..., now, :], v[..., now, :]
        weights = np.tril(q @ np.swapaxes(k, -1, -2))
        mass = weights.sum(axis=-1, keepdims=True) + q @ z[..., :, None]
        reads.append((weights @ x + q @ S) / mass)
        S = S + np.swapaxes(k, -1, -2) @ x
        z = z + k.sum(axis=-2)
    output = np.concatenate(reads, axis=-2) if reads else fq @ S  # no token, no read
    return output, KernelState(S, z)


def _start(fk: Array, v: Array, initial: KernelState | None) -> KernelState:
    if initial is not None:
        return initial
    batch = np.broadcast_shapes(fk.shape[:-2], v.shape[:-2])
    S = np.zeros((*batch, fk.shape[-1], v.shape[-1]), np.result_type(fk, v))
    return KernelState(S, np.zeros((*batch, fk.shape[-1]), fk.dtype))
