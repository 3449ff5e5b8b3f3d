"""The shared module of the Transformer Math Lab: ``labcore.softmax`` and the rest.

The operations are loaded when they are first used, so that ``import labcore`` is
cheap. Each lives in a module of ``labcore.ops`` that is named in ``OPERATIONS``.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

OPERATIONS: dict[str, tuple[str, ...]] = {
    "softmax": (
        "softmax",
        "logsumexp",
        "log_softmax",
        "entropy",
        "temperature_softmax",
    ),
    "attention": (
        "causal_mask",
        "attention_weights",
        "attention",
        "causal_attention",
        "KVCache",
        "kv_append",
        "attention_from_cache",
        "causal_attention_cached",
        "kv_head_of",
        "grouped_query_attention",
        "paged_positions",
    ),
    "online": (
        "SoftmaxSummary",
        "summarize",
        "merge",
        "finish",
        "online_trace",
        "online_softmax",
        "blockwise_attention",
    ),
    "kernel": (
        "elu_plus_one",
        "KernelState",
        "kernel_attention",
        "kernel_attention_recurrent",
        "kernel_attention_chunked",
    ),
    "delta": (
        "delta_write",
        "gated_write",
        "delta_attention",
        "delta_attention_chunked",
    ),
    "rope": ("rope_rotation", "rope_frequencies", "rope", "rope_attention"),
    "mla": (
        "MLARead",
        "MLACost",
        "mla_explicit",
        "mla_absorbed",
        "mla_cache_elements",
        "mla_explicit_cache_elements",
        "mla_multiplications",
    ),
    "speculative": (
        "Speculation",
        "speculative_acceptance",
        "speculative_residual",
        "speculative_distribution",
        "speculative_decode",
        "speculative_block_law",
        "expected_tokens",
    ),
    "sampling": ("top_k",),
    "layers": ("layer_norm", "rms_norm", "relu", "silu", "swiglu"),
    "decoder": (
        "split_heads",
        "join_heads",
        "decoder_projections",
        "decoder_attention",
        "decoder_attention_cached",
        "decoder_mlp",
        "decoder_logits",
        "decoder_step",
        "decoder_logits_cached",
    ),
    "gradients": ("finite_difference",),
    "laplacian": (
        "LaplacianRead",
        "LaplacianGradients",
        "OperationCounts",
        "laplacian_distances",
        "laplacian_attention",
        "laplacian_gradients",
        "median_sigma",
        "operation_counts",
    ),
}
_HOME = {name: module for module, names in OPERATIONS.items() for name in names}

__all__ = ["OPERATIONS", "__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'labcore' has no attribute {name!r}")
    value = getattr(import_module(f"labcore.ops.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
