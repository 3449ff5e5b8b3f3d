"""The shared module of the Transformer Math Lab: ``labcore.softmax`` and the rest.

The operations are loaded when they are first used, so that ``import labcore`` is
cheap. Each lives in a module of ``labcore.ops`` or ``labcore.systems`` that is named in
``OPERATIONS``.
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
    "sampling": (
        "Hypothesis",
        "top_k",
        "top_p",
        "forbid_tokens",
        "greedy",
        "beam_search",
        "length_score",
    ),
    "layers": (
        "embedding",
        "linear",
        "patchify",
        "layer_norm",
        "rms_norm",
        "relu",
        "silu",
        "swiglu",
    ),
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
    "decoder_trace": ("DecoderTrace", "decoder_trace"),
    "losses": (
        "token_losses",
        "cross_entropy",
        "surprisal",
        "squared_error",
        "kl",
        "sequence_logprob",
        "dpo_margin",
        "dpo_loss",
        "ppo_clip",
        "contrastive_loss",
    ),
    "gradients": (
        "AttentionGradients",
        "finite_difference",
        "attention_gradients",
        "cross_entropy_gradient",
        "squared_error_gradient",
        "dpo_gradient",
        "ppo_clip_gradient",
        "contrastive_gradient",
        "embedding_gradient",
    ),
    "optim": (
        "AdamWStep",
        "sgd_step",
        "adamw_step",
        "accumulate_gradients",
        "lora_update",
        "lora_parameters",
        "zero_bytes_per_device",
    ),
    "compress": (
        "absmax_scale",
        "quantize_symmetric",
        "dequantize",
        "tensor_bytes",
        "bpe_encode",
        "bpe_train",
        "bpe_decode",
    ),
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
    "retrieval": (
        "BM25Term",
        "PrecisionRecall",
        "bm25_idf",
        "bm25_term",
        "bm25",
        "rrf",
        "precision",
        "recall",
        "precision_recall",
        "reciprocal_rank",
        "maxsim",
        "nearest",
        "greedy_graph_search",
    ),
    "evaluation": (
        "PairedTable",
        "SimpsonTable",
        "SelectiveAccuracy",
        "ErrorRates",
        "CalibrationBin",
        "pass_at_k",
        "pass_at_k_iid",
        "pass_all_k",
        "all_wrong_rate",
        "paired_table",
        "mcnemar_exact",
        "simpson_table",
        "brier",
        "calibration_table",
        "selective_accuracy",
        "error_rates",
    ),
    "serving": (
        "Roofline",
        "ProductCost",
        "LatencyMetrics",
        "CriticalPath",
        "QueueTrace",
        "MM1",
        "ErrorBudget",
        "RateLimit",
        "ContextBudget",
        "kv_cache_bytes",
        "roofline",
        "matvec_cost",
        "train_flops",
        "attention_flops",
        "token_latency",
        "time_per_output_token",
        "latency_metrics",
        "critical_path",
        "service_capacity",
        "queue_backlog",
        "littles_law",
        "queue_trace",
        "mm1",
        "error_budget",
        "rate_limit",
        "context_budget",
        "cost_per_success",
    ),
    "streams": ("SSEEvent", "SSEStream", "SSEDecoder", "sse_decode", "utf8_stream"),
    "state": (
        "Fact",
        "Versioned",
        "Swap",
        "Snapshot",
        "Event",
        "Readable",
        "Report",
        "IdempotentExecutor",
        "bitemporal_lookup",
        "bitemporal_record",
        "compare_and_swap",
        "three_way_merge",
        "report_is_current",
        "approval_covers",
        "refund_allowed",
        "idempotent_executor",
        "safe_to_retry",
        "replay_events",
        "compact_log",
        "acl_filter",
        "pair_results",
        "path_is_excluded",
        "page_to_screen",
        "screen_to_page",
    ),
    "files": ("LostUpdate", "atomic_replace", "replace_if_unchanged"),
    "database": ("Killed", "transfer", "record_receipt"),
}
SYSTEMS = ("streams", "state", "files", "database")  # the rest are labcore.ops
_HOME = {name: module for module, names in OPERATIONS.items() for name in names}

__all__ = ["OPERATIONS", "SYSTEMS", "__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'labcore' has no attribute {name!r}")
    home = _HOME[name]
    layer = "systems" if home in SYSTEMS else "ops"
    value = getattr(import_module(f"labcore.{layer}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
