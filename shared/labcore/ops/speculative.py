"""Speculative decoding: a draft proposes, and the target's law is kept exactly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from . import _validate as must
from ._op import Array, op


class Speculation(NamedTuple):
    """The tokens of one round, and how many of them the draft had proposed."""

    tokens: list[int]
    accepted: int


def _two_laws(p: Array, q: Array) -> None:
    must.probabilities(p=p, q=q)
    must.same("the vocabulary", p=p.shape[-1], q=q.shape[-1])
    must.batch(p=p.shape[:-1], q=q.shape[:-1])


def _differ(p: Array, q: Array) -> Array:
    """Row by row: the target has a surplus over the draft, beyond rounding."""
    surplus = np.maximum(p - q, 0.0).sum(axis=-1)
    return np.asarray(surplus > 4 * np.finfo(p.dtype).eps)


def _with_residual(p: Array, q: Array) -> None:
    _two_laws(p, q)
    if not np.all(_differ(p, q)):
        raise ValueError("p equals q: nothing is ever rejected, there is no residual")


def _round(
    p: Array, q: Array, draft_tokens: Sequence[int], uniforms: Sequence[float]
) -> None:
    must.axes(2, p=p, q=q)
    for name, laws in (("p", p), ("q", q)):
        if laws.ndim > 2:
            raise ValueError(f"{name} must be of one round, got shape {laws.shape}")
    must.probabilities(p=p, q=q)
    must.same("the vocabulary", p=p.shape[-1], q=q.shape[-1])
    gamma = len(draft_tokens)
    must.same("gamma, the drafted tokens", q=q.shape[-2], draft_tokens=gamma)
    must.same("gamma + 1", p=p.shape[-2], draft_tokens=gamma + 1)
    for i, token in enumerate(draft_tokens):
        must.count(0, draft_tokens=token)
        if token >= q.shape[-1]:
            raise ValueError(
                f"draft_tokens: {token} is not in a vocabulary of {q.shape[-1]}"
            )
        if q[i, token] == 0:
            raise ValueError(f"q gives probability 0 to draft_tokens[{i}] = {token}")
    if not gamma <= len(uniforms) <= gamma + 1:
        raise ValueError(
            f"uniforms must be gamma = {gamma} numbers, and one more to draw with, "
            f"got {len(uniforms)}"
        )
    u = np.asarray(uniforms, float)
    if np.any(~((u >= 0) & (u < 1))):
        raise ValueError(f"uniforms must lie in [0, 1), got {uniforms}")


def _prefix_laws(p: Sequence[Array], q: Sequence[Array]) -> None:
    if len(p) != len(q) + 1:
        raise ValueError(
            f"p must hold one table more than q, got {len(p)} and {len(q)}"
        )
    for name, tables in (("p", p), ("q", q)):
        for i, table in enumerate(tables):
            must.probabilities(**{f"{name}[{i}]": table})
            wanted = (p[0].shape[-1],) * (i + 1)
            if table.shape != wanted:
                raise ValueError(
                    f"{name}[{i}] must have shape {wanted}, an axis for each token "
                    f"before it and the law last, got {table.shape}"
                )


def _expected(alpha: float, gamma: int) -> None:
    must.within(0.0, 1.0, alpha=alpha)
    must.count(0, gamma=gamma)


@op(_two_laws, floats="p q")
def speculative_acceptance(p: Array, q: Array) -> Array:
    r"""The mass of each token that is both drafted and accepted.

    $$a(x) = q(x) \min\left(1, \frac{p(x)}{q(x)}\right) = \min(p(x), q(x))$$

    p: (..., n), the target; q: (..., n), the law the draft really sampled from
    (after its own truncation). The sum over x is the acceptance rate, one minus the
    total variation distance. Source: Leviathan et al. 2023; Chen et al. 2023.

    >>> float(speculative_acceptance([0.25, 0.75], [0.5, 0.5]).sum())
    0.75
    """
    return np.minimum(p, q)


@op(_with_residual, floats="p q")
def speculative_residual(p: Array, q: Array) -> Array:
    r"""Where a rejected round draws instead: the target's surplus over the draft.

    $$r(x) = \frac{[p(x) - q(x)]_+}{\sum_y [p(y) - q(y)]_+}$$

    Raises ValueError when p equals q: then nothing is rejected.

    >>> speculative_residual([0.25, 0.75], [0.5, 0.5]).tolist()
    [0.0, 1.0]
    """
    surplus = np.maximum(p - q, 0.0)
    return surplus / surplus.sum(axis=-1, keepdims=True)


@op(_two_laws, floats="p q")
def speculative_distribution(p: Array, q: Array) -> Array:
    r"""The law of the token that one speculative step emits.

    $$a(x) + \Big(1 - \sum_y a(y)\Big)\, r(x)$$

    Accepted mass, plus the rejected mass redrawn. It equals p for every q.

    >>> speculative_distribution([0.25, 0.75], [0.5, 0.5]).tolist()
    [0.25, 0.75]
    """
    p, q = np.broadcast_arrays(p, q)
    accepted = speculative_acceptance(p, q)
    rejected = 1.0 - accepted.sum(axis=-1, keepdims=True)
    rows = _differ(p, q)  # in the others nothing is rejected
    redrawn = np.zeros_like(accepted)
    redrawn[rows] = rejected[rows] * speculative_residual(p[rows], q[rows])
    return accepted + redrawn


@op(_round, floats="p q")
def speculative_decode(
    p: Array, q: Array, draft_tokens: Sequence[int], uniforms: Sequence[float]
) -> Speculation:
    r"""One round: accept in order, stop at the first rejection, draw one more token.

    Draft i is accepted when $u_i < \min(1, p_i(x_i)/q_i(x_i))$. The first rejected
    one is replaced by a draw from the residual; if none is, the target's next row
    gives a bonus token.

    p: (gamma + 1, n), the target after each prefix; q: (gamma, n); draft_tokens:
    gamma tokens; uniforms: gamma numbers in [0, 1) for the tests, and one more for
    the last draw (by the inverse of the cumulative law), which may be left out where
    that law has a single token. Returns :class:`Speculation`, 1 to gamma + 1 tokens.

    >>> speculative_decode([[0.0, 1.0], [1.0, 0.0]], [[0.5, 0.5]], [1], [0.3])
    Speculation(tokens=[1, 0], accepted=1)
    """
    tokens: list[int] = []
    left = uniforms[len(draft_tokens) :]  # for the last draw
    for i, token in enumerate(draft_tokens):
        if uniforms[i] >= min(1.0, p[i, token] / q[i, token]):
            law = speculative_residual(p[i], q[i])
            return Speculation([*tokens, _draw(law, left)], i)
        tokens.append(int(token))
    return Speculation([*tokens, _draw(p[-1], left)], len(tokens))


@op(_prefix_laws, floats="p* q*")
def speculative_block_law(p: Sequence[Array], q: Sequence[Array]) -> tuple[Array, ...]:
    r"""The law of the whole block that one round emits, in exact probabilities.

    $$\Pr(x_1 \dots x_m) = \prod_{i<m} a(x_i)
    \cdot \Big(1 - \sum_y a(y)\Big)\, r(x_m), \qquad m \le \gamma$$

    each factor given the tokens before it; the block of gamma + 1 tokens ends with
    the target's own law in place of the rejection. p: gamma + 1 tables, q: gamma
    tables; p[i] and q[i] have shape (n,) * (i + 1), for every prefix of i tokens the
    law of the next. Returns gamma + 1 arrays: entry i holds the blocks of i + 1 tokens,
    with an axis for each. Together they sum to one. The last has n**(gamma + 1)
    entries: for small vocabularies. Source: Leviathan et al. 2023.

    >>> certain = [[1.0, 0.0], [0.0, 1.0]]
    >>> one, two = speculative_block_law([[0.25, 0.75], certain], [[0.5, 0.5]])
    >>> one.tolist(), two.tolist()
    ([0.0, 0.25], [[0.25, 0.0], [0.0, 0.5]])
    """
    path = np.ones((), p[0].dtype)  # mass of each accepted prefix
    blocks = []
    for p_next, q_next in zip(p, q, strict=False):  # p has one table more
        accepted = speculative_acceptance(p_next, q_next)
        redrawn = speculative_distribution(p_next, q_next) - accepted
        blocks.append(path[..., None] * redrawn)
        path = path[..., None] * accepted
    blocks.append(path[..., None] * p[-1])
    return tuple(blocks)


@op(_expected, floats="alpha")
def expected_tokens(alpha: float, gamma: int) -> float:
    r"""Tokens a round yields on average, if each is accepted independently.

    $$\sum_{i=0}^{\gamma} \alpha^i = \frac{1 - \alpha^{\gamma+1}}{1 - \alpha}$$

    alpha: acceptance rate in [0, 1]; gamma: drafted tokens. The bonus token counts.

    >>> round(expected_tokens(0.8, 5), 5)
    3.68928
    """
    return sum(alpha**i for i in range(gamma + 1))


def _draw(law: Array, uniforms: Sequence[float]) -> int:
    support = np.flatnonzero(law)
    if len(support) == 1:
        return int(support[0])
    if len(uniforms) == 0:
        raise ValueError("uniforms has no number left to draw the last token with")
    total = np.cumsum(law[support])
    return int(support[np.searchsorted(total / total[-1], uniforms[0], side="right")])
