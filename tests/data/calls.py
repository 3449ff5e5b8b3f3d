"""A right call of every operation, drawn at random: ``CALLS[name](draw)``.

The numbers come from a ``Draw``, of floats or of integers, so that rules about all
operations can be tested on all of them. A call is (arguments, keyword arguments).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import labcore
import numpy as np
from labcore import KernelState, KVCache, SoftmaxSummary

from tests.data import worked_calls

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


def layer(draw: Draw) -> dict[str, np.ndarray]:
    """Four heads of two on two key-value heads; the stream is six wide."""
    shapes = {"Wq": (6, 8), "Wk": (6, 4), "Wv": (6, 6), "Wo": (12, 6)}
    shapes |= {"W_gate": (6, 5), "W_up": (6, 5), "W_down": (5, 6)}
    return {name: draw.numbers(*shape) for name, shape in shapes.items()}


def decoder(draw: Draw) -> dict[str, Any]:
    return {
        "layers": [layer(draw), {**layer(draw), "norm_mlp": draw.positive(6)}],
        "embed": draw.numbers(7, 6),
        "unembed": draw.numbers(6, 5),
        "norm": draw.positive(6),
    }


def of_squares(x: np.ndarray) -> float:
    return float((x**2).sum())


def tables(draw: Draw) -> tuple[Any, ...]:
    """A target for blocks of three tokens of four, a draft of two."""
    p = [draw.laws(4), draw.laws(4, 4), draw.laws(4, 4, 4)]
    return p, [draw.laws(4), draw.laws(4, 4)]


def token_ids() -> list[list[int]]:
    """Six targets of four, one of them ignored."""
    return [[0, 3, -100], [1, 1, 2]]


def logprobs(draw: Draw) -> tuple[Any, ...]:
    """Of whole responses: policy chosen, rejected, reference chosen, rejected."""
    return tuple(-draw.positive(5) for _ in range(4))


def traced(draw: Draw) -> dict[str, np.ndarray]:
    shapes = {"Wq": (4, 6), "Wk": (4, 6), "Wv": (4, 4), "unembed": (4, 5)}
    shapes |= {"W_gate": (4, 3), "W_up": (4, 3), "W_down": (3, 4)}
    return {name: draw.numbers(*shape) for name, shape in shapes.items()}


def three_tokens(so_far: tuple[int, ...]) -> np.ndarray:
    """Log-probabilities of the next token, by how many there are."""
    return np.log(np.roll([0.5, 0.3, 0.2], len(so_far)))


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
    "mla_explicit_cache_elements": lambda draw: ((4, 3, 2, 5), {"layers": 2}),
    "mla_multiplications": lambda draw: ((9, 4, 3, 2, 5, 6), {"n_queries": 2}),
    "speculative_block_law": lambda draw: (tables(draw), {}),
    "layer_norm": lambda draw: (
        (draw.numbers(2, 4),),
        {"weight": draw.positive(4), "bias": draw.numbers(4)},
    ),
    "rms_norm": lambda draw: ((draw.numbers(2, 4),), {"weight": draw.positive(4)}),
    "relu": lambda draw: ((draw.numbers(2, 4),), {}),
    "silu": lambda draw: ((draw.numbers(2, 4),), {}),
    "swiglu": lambda draw: ((draw.numbers(2, 4), draw.numbers(2, 4)), {}),
    "split_heads": lambda draw: ((draw.numbers(5, 6), 2), {}),
    "join_heads": lambda draw: ((draw.numbers(2, 5, 3),), {}),
    "decoder_projections": lambda draw: (
        (layer(draw), draw.numbers(3, 6), [2, 3, 4]),
        {"heads": 4, "rope_base": 100.0},
    ),
    "decoder_attention": lambda draw: (
        (layer(draw), draw.numbers(3, 6)),
        {"heads": 4},
    ),
    "decoder_attention_cached": lambda draw: (
        (
            layer(draw),
            draw.numbers(2, 6),
            KVCache(draw.numbers(2, 3, 2), draw.numbers(2, 3, 3)),
        ),
        {"heads": 4},
    ),
    "decoder_mlp": lambda draw: ((layer(draw), draw.numbers(3, 6)), {}),
    "decoder_logits": lambda draw: ((decoder(draw), [0, 2, 1]), {"heads": 4}),
    "decoder_step": lambda draw: (
        (
            decoder(draw),
            [0, 2],
            [KVCache(draw.numbers(2, 3, 2), draw.numbers(2, 3, 3)) for _ in range(2)],
        ),
        {"heads": 4},
    ),
    "decoder_logits_cached": lambda draw: (
        (decoder(draw), [0, 2, 1]),
        {"heads": 4, "chunks": (2, 1)},
    ),
    "finite_difference": lambda draw: ((of_squares, draw.numbers(2, 3)), {}),
    "laplacian_distances": lambda draw: (qkv(draw)[:2], {}),
    "laplacian_attention": lambda draw: ((*qkv(draw), 1.5), {}),
    "laplacian_gradients": lambda draw: ((*qkv(draw), 1.5, draw.numbers(5, 2)), {}),
    "median_sigma": lambda draw: (qkv(draw)[:2], {}),
    "operation_counts": lambda draw: ((5, 4, 3), {"batch": 2}),
    "top_k": lambda draw: ((draw.laws(2, 4), 2), {}),
    "top_p": lambda draw: ((draw.laws(2, 4), 0.6), {}),
    "forbid_tokens": lambda draw: ((draw.numbers(2, 4), [0, 2]), {}),
    "greedy": lambda draw: ((three_tokens,), {"length": 3, "end": 2}),
    "beam_search": lambda draw: (
        (three_tokens,),
        {"length": 3, "beam": 2, "end": 2, "alpha": 0.5},
    ),
    "length_score": lambda draw: ((-draw.positive(5), draw.positive(5)), {"alpha": 1}),
    "embedding": lambda draw: ((draw.numbers(5, 3), [[4, 0], [1, 1]]), {}),
    "linear": lambda draw: (
        (draw.numbers(2, 4), draw.numbers(4, 3)),
        {"bias": draw.numbers(3)},
    ),
    "patchify": lambda draw: ((draw.numbers(2, 4, 6),), {"patch": 2}),
    "decoder_trace": lambda draw: (
        (traced(draw), draw.numbers(3, 4)),
        {"heads": 2, "cache": KVCache(draw.numbers(2, 6), draw.numbers(2, 4))},
    ),
    "token_losses": lambda draw: ((draw.numbers(2, 3, 4), token_ids()), {}),
    "cross_entropy": lambda draw: ((draw.numbers(2, 3, 4), token_ids()), {}),
    "surprisal": lambda draw: ((draw.laws(2, 4),), {"base": 2.0}),
    "squared_error": lambda draw: ((draw.numbers(2, 4), draw.numbers(2, 4)), {}),
    "kl": lambda draw: ((draw.laws(2, 4), draw.laws(2, 4)), {}),
    "sequence_logprob": lambda draw: (
        (-draw.positive(2, 3),),
        {"mask": np.array([[1, 1, 0], [0, 1, 1]])},
    ),
    "dpo_margin": lambda draw: (logprobs(draw), {}),
    "dpo_loss": lambda draw: (logprobs(draw), {"beta": 0.3}),
    "ppo_clip": lambda draw: ((draw.positive(5), draw.numbers(5)), {"eps": 0.1}),
    "contrastive_loss": lambda draw: ((draw.numbers(3, 4),), {"tau": 0.5}),
    "attention_gradients": lambda draw: (
        (*qkv(draw), draw.numbers(5, 2)),
        {"allowed": mask(), "scale": 0.7},
    ),
    "cross_entropy_gradient": lambda draw: (
        (draw.numbers(2, 3, 4), token_ids()),
        {},
    ),
    "squared_error_gradient": lambda draw: ((draw.numbers(4), draw.numbers(4)), {}),
    "dpo_gradient": lambda draw: (logprobs(draw), {"beta": 0.3}),
    "ppo_clip_gradient": lambda draw: (
        (draw.positive(5), draw.numbers(5)),
        {"eps": 0.1},
    ),
    "contrastive_gradient": lambda draw: ((draw.numbers(3, 4),), {"tau": 0.5}),
    "embedding_gradient": lambda draw: (
        ([[0, 3], [3, 1]], draw.numbers(2, 2, 3)),
        {"vocabulary": 4},
    ),
    "sgd_step": lambda draw: ((draw.numbers(2, 3), draw.numbers(2, 3)), {"lr": 0.1}),
    "adamw_step": lambda draw: (
        (*(draw.numbers(2, 3) for _ in range(3)), draw.positive(2, 3), 3),
        {"lr": 0.1},
    ),
    "accumulate_gradients": lambda draw: (
        ([draw.numbers(2, 3), draw.numbers(2, 3)], [3, 1]),
        {},
    ),
    "lora_update": lambda draw: (
        (draw.numbers(4, 2), draw.numbers(2, 3)),
        {"alpha": 3.0},
    ),
    "lora_parameters": lambda draw: ((8, 6, 2), {"matrices": 4}),
    "zero_bytes_per_device": lambda draw: ((1000,), {"devices": 4, "stage": 2}),
    "absmax_scale": lambda draw: ((draw.numbers(2, 4),), {"axis": -1}),
    "quantize_symmetric": lambda draw: (
        (draw.numbers(2, 4), draw.positive(2, 1)),
        {"qmin": -3, "qmax": 4},
    ),
    "dequantize": lambda draw: (
        (np.rint(draw.numbers(2, 4)), draw.positive(2, 1)),
        {},
    ),
    "tensor_bytes": lambda draw: (((2, 3), 4), {}),
    "bpe_encode": lambda draw: (("abcab", [("b", "c"), ("a", "b")]), {}),
    "bpe_train": lambda draw: (("aaabdaaabac", 3), {}),
    "bpe_decode": lambda draw: (([bytes([195]), bytes([169])],), {}),
}

# Topics of which every operation has its row here and in tests/unit/test_bad_input.py.
# A new topic belongs in this list as soon as its rows are written.
COMPLETE = (
    "softmax",
    "attention",
    "online",
    "kernel",
    "delta",
    "rope",
    "mla",
    "speculative",
    "laplacian",
    *worked_calls.TOPICS,
)
CALLS |= worked_calls.CALLS


def operations() -> set[str]:
    """The public operations of the complete topics."""
    names = [name for topic in COMPLETE for name in labcore.OPERATIONS[topic]]
    return {name for name in names if not isinstance(getattr(labcore, name), type)}


ON_COUNTS = {  # operations on counts and settings; nothing to compute in a chosen type
    "beam_search",
    "bpe_decode",
    "bpe_encode",
    "bpe_train",
    "causal_mask",
    "greedy",
    "kv_head_of",
    "lora_parameters",
    "mla_cache_elements",
    "mla_explicit_cache_elements",
    "mla_multiplications",
    "operation_counts",
    "paged_positions",
    "rope_frequencies",
    "tensor_bytes",
    "zero_bytes_per_device",
} | worked_calls.ON_COUNTS
ON_SCALARS = {"rope_rotation", "expected_tokens"}  # a scalar never decides the type
IN_DOUBLE = {"finite_difference"}  # differences of narrow numbers would be noise
