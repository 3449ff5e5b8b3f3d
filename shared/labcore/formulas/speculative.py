"""The formulas of speculative decoding. Places in a block are counted from one."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ops.speculative import (
    expected_tokens,
    speculative_acceptance,
    speculative_block_law,
    speculative_distribution,
    speculative_residual,
)
from ._formula import Inputs, formula

CHAPTER = "speculative-decoding"
# Here q is no query but the law of the draft.
LAWS = {"q": "q", "block()": r"\Pr(x_1 \dots x_{#1})"}


def law(rng: np.random.Generator, *shape: int) -> Any:
    """A law for each prefix, no chance near zero."""
    chances = rng.uniform(0.2, 1.0, size=shape)
    return chances / chances.sum(axis=-1, keepdims=True)


def one_step(rng: np.random.Generator) -> Inputs:
    """A target and a draft, as functions of the token, and all tokens."""
    target, draft = law(rng, 5), law(rng, 5)
    accepted = speculative_acceptance(target, draft)
    residual = speculative_residual(target, draft)
    return {
        "target": target,
        "draft": draft,
        "p": lambda x: target[x],
        "q": lambda x: draft[x],
        "a": lambda x: accepted[x],
        "r": lambda x: residual[x],
        "x": np.arange(5),
    }


def one_block(rng: np.random.Generator) -> Inputs:
    """A text whose every token may also be redrawn; each law knows its prefix."""
    gamma, n = 2, 3
    targets = [law(rng, *(n,) * i) for i in range(1, gamma + 2)]
    drafts = [law(rng, *(n,) * i) for i in range(1, gamma + 1)]
    x: list[int] = []
    nothing: list[list[Any]] = [[None], [None], [None], [None]]  # at place zero
    p, a, r, z = nothing
    for i in range(gamma + 1):
        target = targets[i][tuple(x)]
        p.append(target.__getitem__)
        if i < gamma:
            draft = drafts[i][tuple(x)]
            accepted = np.minimum(target, draft)
            surplus = np.maximum(target - draft, 0)
            a.append(accepted.__getitem__)
            r.append((surplus / surplus.sum()).__getitem__)
            z.append(1 - accepted.sum())
            x.append(int(np.argmax(surplus)))
        else:
            x.append(int(rng.integers(n)))
    blocks = speculative_block_law(targets, drafts)
    return {
        "targets": targets,
        "drafts": drafts,
        "text": tuple(x),
        "x": [None, *x],
        **{"p": p, "a": a, "r": r, "z": z},
        "block": lambda m: blocks[m - 1][tuple(x[:m])],
        "m": 2,
        "gamma": gamma,
    }


formula(
    "accepted_mass",
    "min(p(x), q(x))",
    defines="a(x)",
    symbols=LAWS,
    functions={"min": np.minimum},
    chapter=CHAPTER,
    draw=one_step,
    function=lambda target, draft: speculative_acceptance(target, draft),
    operations=("speculative_acceptance",),
    checks=("speculative_acceptance_rate", "speculative_worked"),
)
formula(
    "residual_law",
    "plus(p(x) - q(x)) / sum(plus(p(y) - q(y)) for y in range(len(target)))",
    defines="r(x)",
    symbols=LAWS,
    chapter=CHAPTER,
    draw=one_step,
    function=lambda target, draft: speculative_residual(target, draft),
    operations=("speculative_residual",),
    checks=("speculative_worked", "speculative_distribution"),
)
formula(
    "accepted_and_redrawn",
    "a(x) + (1 - sum(a(y) for y in range(len(target)))) * r(x)",
    "p(x)",
    symbols=LAWS,
    chapter=CHAPTER,
    draw=one_step,
    function=lambda target, draft: speculative_distribution(target, draft),
    operations=("speculative_distribution", "speculative_residual"),
    checks=("speculative_distribution", "speculative_enumerated"),
)
formula(
    "block_with_rejection",
    "z[m] * r[m](x[m]) * prod(a[i](x[i]) for i in range(1, m))",
    defines="block(m)",
    symbols=LAWS,
    chapter=CHAPTER,
    draw=one_block,
    function=lambda targets, drafts, text, m: speculative_block_law(targets, drafts)[
        m - 1
    ][text[:m]],
    operations=("speculative_block_law",),
    checks=("block_law_by_rounds", "block_law_worked"),
)
formula(
    "block_with_bonus",
    "p[gamma + 1](x[gamma + 1]) * prod(a[i](x[i]) for i in range(1, gamma + 1))",
    defines="block(gamma + 1)",
    symbols=LAWS,
    chapter=CHAPTER,
    draw=one_block,
    function=lambda targets, drafts, text: speculative_block_law(targets, drafts)[-1][
        text
    ],
    operations=("speculative_block_law",),
    checks=("block_law_by_rounds", "block_law_sums_to_one"),
)
formula(
    "completed_block",
    "sum(block(m) * prod(p[i](x[i]) for i in range(m + 1, len(p)))"
    " for m in range(1, len(p)))",
    "prod(p[i](x[i]) for i in range(1, len(p)))",
    symbols=LAWS,
    chapter=CHAPTER,
    draw=one_block,
    operations=("speculative_block_law",),
    checks=("block_law_completed", "block_law_round_after_round"),
)
formula(
    "expected_tokens",
    "sum(alpha ** i for i in range(0, gamma + 1))",
    "(1 - alpha ** (gamma + 1)) / (1 - alpha)",
    chapter=CHAPTER,
    draw=lambda rng: {
        "alpha": rng.uniform(0.5, 0.9),
        "gamma": int(rng.integers(2, 6)),
    },
    function=lambda alpha, gamma: expected_tokens(alpha, gamma),
    operations=("expected_tokens",),
    checks=("expected_tokens_enumerated", "block_law_mean_length"),
)
