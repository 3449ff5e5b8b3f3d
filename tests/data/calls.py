"""A right call of every operation, drawn at random: ``CALLS[name](draw)``.

The numbers come from a ``Draw``, of floats or of integers, so that rules about all
operations can be tested on all of them. A call is (arguments, keyword arguments).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from labcore import KernelState, KVCache, SoftmaxSummary

Call = tuple[tuple[Any, ...], dict[str, Any]]


class Draw:
    """Floats: of both signs, positive, gates between 0 and 1, probabilities."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def numbers(self, *shape: int) -> np.ndarray:
        return self.rng.normal(size=shape)

    def positive(self, *shape: int) -> np.ndarray:
        return self.rng.uniform(0.25, 2.0, size=shape)

    def gates(self, *shape: int) -> np.ndarray:
        return self.rng.uniform(0.1, 0.9, size=shape)

    def laws(self, *shape: int) -> np.ndarray:
        p = self.rng.uniform(0.2, 1.0, size=shape)
        return p / p.sum(axis=-1, keepdims=True)


class DrawIntegers(Draw):
    """The same in integers; a law is certain, and no two in a row are the same."""

    drawn = 0

    def numbers(self, *shape: int) -> np.ndarray:
        return self.rng.integers(-3, 4, size=shape)

    def positive(self, *shape: int) -> np.ndarray:
        return self.rng.integers(1, 4, size=shape)

    def gates(self, *shape: int) -> np.ndarray:
        return self.rng.integers(0, 2, size=shape)

    def laws(self, *shape: int) -> np.ndarray:
        self.drawn += 1
        certain = np.zeros(shape, dtype=int)
        certain[..., self.drawn % shape[-1]] = 1
        return certain


def qkv(draw: Draw, n: int = 5, d_k: int = 3, d_v: int = 2) -> tuple[Any, ...]:
    return draw.numbers(n, d_k), draw.numbers(n, d_k), draw.numbers(n, d_v)


def mask() -> np.ndarray:
    return np.tril(np.ones((5, 5), dtype=bool))


def summary(draw: Draw) -> SoftmaxSummary:
    return SoftmaxSummary(draw.numbers(2), draw.positive(2), draw.numbers(2, 3))


def cache(draw: Draw) -> KVCache:
    return KVCache(draw.numbers(5, 3), draw.numbers(5, 2))


def features(draw: Draw) -> tuple[Any, ...]:
    return draw.positive(5, 3), draw.positive(5, 3), draw.numbers(5, 2)


def state(draw: Draw) -> KernelState:
    return KernelState(draw.numbers(3, 2), draw.positive(3))


def write(draw: Draw) -> tuple[Any, ...]:
    return draw.numbers(3, 2), draw.numbers(3), draw.numbers(2), draw.gates(1)[0]


def latent(draw: Draw) -> tuple[Any, ...]:
    shapes = (5, 4), (5, 2), (5, 3), (5, 2), (4, 3), (6, 3)
    return tuple(draw.numbers(*shape) for shape in shapes)


def round_of(draw: Draw) -> tuple[Any, ...]:
    p, q = draw.laws(3, 4), draw.laws(2, 4)
    tokens = [int(np.argmax(row)) for row in q]
    return p, q, tokens, [0.9, 0.4, 0.7]


CALLS: dict[str, Callable[[Draw], Call]] = {
    "softmax": lambda draw: ((draw.numbers(2, 4),), {}),
    "logsumexp": lambda draw: ((draw.numbers(2, 4),), {}),
    "log_softmax": lambda draw: ((draw.numbers(2, 4),), {}),
    "entropy": lambda draw: ((draw.laws(2, 4),), {}),
    "temperature_softmax": lambda draw: ((draw.numbers(2, 4), 1.5), {}),
    "causal_mask": lambda draw: ((2, 5), {"window": 2}),
    "attention_weights": lambda draw: (qkv(draw)[:2], {"allowed": mask()}),
    "attention": lambda draw: (qkv(draw), {"allowed": mask(), "scale": 0.7}),
    "causal_attention": lambda draw: (qkv(draw), {}),
    "kv_append": lambda draw: ((cache(draw), *qkv(draw, 2)[1:]), {}),
    "attention_from_cache": lambda draw: ((draw.numbers(2, 3), cache(draw)), {}),
    "causal_attention_cached": lambda draw: (qkv(draw), {"chunk": 2}),
    "kv_head_of": lambda draw: ((6, 3), {}),
    "grouped_query_attention": lambda draw: (
        (draw.numbers(4, 5, 3), draw.numbers(2, 5, 3), draw.numbers(2, 5, 2)),
        {"allowed": mask()},
    ),
    "paged_positions": lambda draw: ((np.array([4, 0, 2]), 8), {"block_size": 3}),
    "summarize": lambda draw: ((draw.numbers(2, 4), draw.numbers(2, 4, 3)), {}),
    "merge": lambda draw: ((summary(draw), summary(draw)), {}),
    "finish": lambda draw: ((summary(draw),), {}),
    "online_trace": lambda draw: (
        (
            [draw.numbers(3), draw.numbers(1)],
            [draw.numbers(3, 2), draw.numbers(1, 2)],
        ),
        {},
    ),
    "online_softmax": lambda draw: (
        (
            [draw.numbers(3), draw.numbers(1)],
            [draw.numbers(3, 2), draw.numbers(1, 2)],
        ),
        {},
    ),
    "blockwise_attention": lambda draw: (
        qkv(draw),
        {"block": 2, "causal": True, "scale": 0.7},
    ),
    "elu_plus_one": lambda draw: ((draw.numbers(2, 4),), {}),
    "kernel_attention": lambda draw: (features(draw), {}),
    "kernel_attention_recurrent": lambda draw: (
        features(draw),
        {"initial": state(draw)},
    ),
    "kernel_attention_chunked": lambda draw: (
        features(draw),
        {"chunk": 2, "initial": state(draw)},
    ),
    "delta_write": lambda draw: (write(draw), {}),
    "gated_write": lambda draw: ((*write(draw), draw.gates(3)), {}),
    "delta_attention": lambda draw: (
        (*qkv(draw), draw.gates(5)),
        {"retention": draw.gates(5, 3), "initial": draw.numbers(3, 2)},
    ),
    "delta_attention_chunked": lambda draw: (
        (*qkv(draw), draw.gates(5)),
        {"chunk": 2, "retention": draw.gates(5, 3), "initial": draw.numbers(3, 2)},
    ),
    "rope_rotation": lambda draw: ((0.5,), {}),
    "rope_frequencies": lambda draw: ((8, 500.0), {}),
    "rope": lambda draw: ((draw.numbers(5, 4), np.arange(2, 7)), {"layout": "half"}),
    "rope_attention": lambda draw: (
        (*qkv(draw, d_k=4), np.arange(2, 7)),
        {"allowed": mask()},
    ),
    "mla_explicit": lambda draw: (latent(draw), {"allowed": mask()}),
    "mla_absorbed": lambda draw: (latent(draw), {"allowed": mask()}),
    "mla_cache_elements": lambda draw: ((512, 64), {"layers": 3}),
    "speculative_acceptance": lambda draw: ((draw.laws(2, 4), draw.laws(2, 4)), {}),
    "speculative_residual": lambda draw: ((draw.laws(2, 4), draw.laws(2, 4)), {}),
    "speculative_distribution": lambda draw: ((draw.laws(2, 4), draw.laws(2, 4)), {}),
    "speculative_decode": lambda draw: (round_of(draw), {}),
    "expected_tokens": lambda draw: ((0.8, 5), {}),
    "top_k": lambda draw: ((draw.laws(2, 4), 2), {}),
}

ON_COUNTS = {  # operations on counts and settings; nothing to compute in a chosen type
    "causal_mask",
    "kv_head_of",
    "mla_cache_elements",
    "paged_positions",
    "rope_frequencies",
}
ON_SCALARS = {"rope_rotation", "expected_tokens"}  # a scalar never decides the type
