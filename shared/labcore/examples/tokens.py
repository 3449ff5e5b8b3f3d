"""Tokens, shapes and a decoder by hand: the worked examples of the chapter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..identities.worked import tokens
from ..ops.attention import (
    KVCache,
    attention,
    attention_weights,
    causal_mask,
    kv_append,
    kv_head_of,
)
from ..ops.compress import bpe_encode, tensor_bytes
from ..ops.decoder_trace import DecoderTrace, decoder_trace
from ..ops.kernel import kernel_attention
from ..ops.layers import (
    embedding,
    layer_norm,
    linear,
    patchify,
    rms_norm,
    silu,
    swiglu,
)
from ..ops.rope import rope_rotation
from ..ops.sampling import forbid_tokens
from ..ops.softmax import softmax
from ._plain import plain, whole
from ._registry import EXAMPLES, example

CHAPTER = tokens.slug

TABLE = [
    [0.0, 0.0, 0.0, 0.0],
    [0.2, -0.1, 0.7, 0.4],
    [-0.3, 0.8, 0.1, 0.5],
    [0.6, 0.2, -0.4, 0.9],
    [0.1, -0.5, 0.9, 0.3],
    [-0.2, 0.4, 0.5, -0.6],
]
WORDS = ["PAD", "我", "爱", "学习", "你", "！"]


@example(
    "F05",
    "Two sentences become rows of an embedding table",
    title_zh="两个句子如何按编号查表变成向量",
    chapter=CHAPTER,
    givens={"table": TABLE, "ids": [[1, 2, 3], [4, 2, 0]]},
    units="none: coordinates of embeddings",
)
def _(table: Any, ids: Any) -> Any:
    return {"table": table, "ids": ids, "output": plain(embedding(table, ids))}


@example(
    "F06",
    "What a batch of token ids takes, and what its embeddings take",
    title_zh="编号与向量各占多少元素和字节",
    chapter=CHAPTER,
    givens={"batch": 2, "length": 128, "width": 4096, "id_bits": 64, "bits": 16},
    units="elements and bytes",
)
def _(batch: int, length: int, width: int, id_bits: int, bits: int) -> Any:
    ids, embedded = (batch, length), (batch, length, width)
    return {
        "ids_elements": tensor_bytes(ids, 8),
        "ids_bytes_int64": tensor_bytes(ids, id_bits),
        "embedding_elements": tensor_bytes(embedded, 8),
        "embedding_bytes_fp16": tensor_bytes(embedded, bits),
    }


@example(
    "F07",
    "A row times a matrix, entry by entry",
    chapter=CHAPTER,
    givens={"A": [[1, 2]], "B": [[3, 4], [5, 6]]},
    units="none",
)
def _(A: Any, B: Any) -> Any:
    return {"A": A, "B": B, "product": whole(linear(A, B))}


@example(
    "Q005",
    "One decoder layer on two positions, from the input to probabilities",
    title_zh="两个位置走完一层解码器：每一步的数",
    chapter=CHAPTER,
    givens={
        "X": [[1.0, 0.0], [0.0, 2.0]],
        "W_down": [[0.5, 0.0], [0.0, 0.5]],
        "unembed": [[1.0, 0.0, -1.0], [0.0, 1.0, 0.5]],
    },
    units="none; probabilities sum to 1",
)
def _(X: Any, W_down: Any, unembed: Any) -> Any:
    same = np.eye(len(X[0]))
    weights = {**dict.fromkeys(("Wq", "Wk", "Wv", "W_up"), same)}
    t = decoder_trace({**weights, "W_down": W_down, "unembed": unembed}, X)
    return {
        "X": X,
        "norm1": plain(t.norm1),
        "attention": _head(t, 0),
        "residual1": plain(t.residual1),
        "norm2": plain(t.norm2),
        "ffn": plain(t.mlp),
        "Y": plain(t.y),
        "final_norm": plain(t.last[-1]),
        "logits": plain(t.logits[-1]),
        "probabilities": plain(softmax(t.logits[-1])),
    }


@example(
    "Q006",
    "A query, two keys, two values",
    chapter=CHAPTER,
    givens={
        "q": [[1.0, 0.0]],
        "k": [[1.0, 0.0], [0.0, 1.0]],
        "v": [[10.0, 0.0], [0.0, 20.0]],
    },
    units="probabilities; the output has the units of the values",
)
def _(q: Any, k: Any, v: Any) -> Any:
    return {
        "probabilities": plain(attention_weights(q, k)[0]),
        "output": plain(attention(q, k, v)[0]),
    }


@example(
    "Q010",
    "Two rotated copies of one vector meet by the angle between them",
    chapter=CHAPTER,
    givens={"x": [1.0, 0.0], "degrees": [30, 90]},
    units="degrees; the product of unit vectors has none",
)
def _(x: Any, degrees: Any) -> Any:
    first, second = (rope_rotation(float(np.deg2rad(a))) @ x for a in degrees)
    return {
        "relative_angle_degrees": degrees[1] - degrees[0],
        "dot_product": plain(first @ second),
    }


@example(
    "Q107",
    "An image of sixteen pixels as four tokens",
    chapter=CHAPTER,
    givens={
        "image": [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12], [13, 14, 15, 16]],
        "patch": 2,
        "W": [[1, 0], [0, 1], [1, 0], [0, 1]],
    },
    units="pixel values",
)
def _(image: Any, patch: int, W: Any) -> Any:
    patches = patchify([image], patch=patch)
    return {
        "image": image,
        "patches": whole(patches),
        "W": W,
        "projected": whole(linear(patches, W)),
    }


@example(
    "Q108",
    "The key with the large weight need not be the one that counts",
    chapter=CHAPTER,
    givens={"weights": [0.9, 0.1], "values": [0.01, 10]},
    units="weights sum to 1; the sum has the units of the values",
)
def _(weights: Any, values: Any) -> Any:
    shares = np.asarray(weights)[:, None]
    apart = kernel_attention([[1.0]], shares, np.diag(values), causal=False)
    return {
        "weights": weights,
        "values": values,
        "contributions": whole(apart[0]),
        "sum": plain(
            kernel_attention(
                [[1.0]], shares, np.asarray(values)[:, None], causal=False
            )[0, 0]
        ),
    }


@example(
    "X01",
    "Two short sentences through one layer, then one step with the cache",
    title_zh="两句短话走完一层模型，再用缓存续写一步",
    chapter=CHAPTER,
    givens={
        "table": TABLE,
        "words": WORDS,
        "sentence_A": [1, 2, 3],
        "sentence_B": [4, 2],
        "heads": 2,
        "padding": 0,
        "Wq": [[float(i == j) for j in range(4)] for i in range(4)],
        "Wk": [[float(j == i ^ 1) for j in range(4)] for i in range(4)],
        "Wv": [[(1.0, 0.5)[i % 2] * (i == j) for j in range(4)] for i in range(4)],
        "W_down": [[0.25 * (i == j) for j in range(4)] for i in range(4)],
    },
    units="none; probabilities sum to 1; selected tokens are ids of the vocabulary",
)
def _(sentence_A: Any, sentence_B: Any, **given: Any) -> Any:
    a = _sentence(sentence_A, None, **given)
    b = _sentence(sentence_B, None, **given)
    then = [a["selected_token"]]
    cache = KVCache(np.array(a["cache"]["K"]), np.array(a["cache"]["V"]))
    follow = _sentence(then, cache, **given)
    full = _sentence([*sentence_A, *then], None, **given)
    apart = np.subtract(follow["hidden_output"][0], full["hidden_output"][-1])
    return {
        "sentence_A": a,
        "sentence_B": b,
        "next_step_A": follow,
        "full_recompute_A": full,
        "cached_vs_full_max_error": float(np.max(np.abs(apart))),
        "operators": {id: EXAMPLES[id].output() for id in OPERATORS},
    }


OPERATORS = [f"X{i:02}" for i in range(2, 13)]


@example(
    "X02",
    "One pair of numbers through two norms and two activations",
    title_zh="一对数经过两种归一化与两种激活",
    chapter=CHAPTER,
    givens={"input": [1, 3], "eps": 1e-5, "activated": [1, 2]},
    units="none",
)
def _(input: Any, eps: float, activated: Any) -> Any:
    mean = np.mean(input)
    return {
        "input": input,
        "mean": whole(mean),
        "population_variance": whole(np.mean((np.asarray(input) - mean) ** 2)),
        "LayerNorm_epsilon1e5": plain(layer_norm(input, eps=eps)),
        "RMSNorm_epsilon1e5": plain(rms_norm(input, eps=eps)),
        "SiLU_1_2": plain(silu(activated)),
        "SwiGLU_identity_gate_up_down": plain(swiglu(activated, activated)),
    }


@example(
    "X06",
    "Four query heads on two key-value heads",
    title_zh="四个查询头如何共用两组键值",
    chapter=CHAPTER,
    givens={"Hq": 4, "Hkv": 2, "d_head": 2},
    units="heads; the cache in elements for one token",
)
def _(Hq: int, Hkv: int, d_head: int) -> Any:
    one_token = np.zeros((Hkv, 1, d_head))
    cache = kv_append(None, one_token, one_token)
    return {
        "Hq": Hq,
        "Hkv": Hkv,
        "group_mapping": plain(kv_head_of(Hq, Hkv)),
        "toy_KV_per_token": cache.k.size + cache.v.size,
    }


@example(
    "X07",
    "One causal mask in three conventions",
    title_zh="同一张因果掩码在三种约定下的写法",
    chapter=CHAPTER,
    givens={"n_queries": 2, "n_keys": 2},
    units="booleans; the additive mask in units of scores",
)
def _(n_queries: int, n_keys: int) -> Any:
    allowed = causal_mask(n_queries, n_keys)
    return {
        "semantic_allowed": plain(allowed),
        "sdpa_bool": plain(allowed),
        "multihead_attention_bool_blocked": plain(~allowed),
        "additive_mask": whole(np.where(allowed, 0.0, -np.inf)),
    }


@example(
    "X11",
    "The rank of a merge decides, not its place in the text",
    title_zh="合并顺序看规则的名次，不看左右",
    chapter=CHAPTER,
    givens={
        "characters": ["a", "b", "c"],
        "merge_rank": [["b", "c", 0], ["a", "b", 1]],
        "vocabulary": {"a": 1, "bc": 5},
    },
    units="tokens and their ids",
)
def _(characters: Any, merge_rank: Any, vocabulary: Any) -> Any:
    by_rank = sorted(merge_rank, key=lambda rule: rule[2])
    merged = bpe_encode("".join(characters), [(a, b) for a, b, _ in by_rank])
    return {
        "character_input": characters,
        "merge_rank": merge_rank,
        "merged": merged,
        "teaching_vocabulary": vocabulary,
        "IDs": [vocabulary[token] for token in merged],
    }


def _head(t: DecoderTrace, h: int) -> Mapping[str, Any]:
    return {
        "scores": plain(t.scores[h]),
        "weights": plain(t.weights[h]),
        "output": plain(t.head_reads[h]),
    }


def _sentence(
    ids: Sequence[int],
    cache: KVCache | None,
    *,
    table: Any,
    words: Sequence[str],
    heads: int,
    padding: int,
    **matrices: Any,
) -> Mapping[str, Any]:
    """One pass of the small model: gate and up are 1, unembed is the table."""
    same = np.eye(len(table[0]))
    weights = {"W_gate": same, "W_up": same, "unembed": np.transpose(table)}
    x = embedding(table, np.asarray(ids))
    t = decoder_trace({**weights, **matrices}, x, heads=heads, cache=cache)
    p = softmax(forbid_tokens(t.logits[-1], [padding]))
    chosen = int(np.argmax(p))
    return {
        "ids": list(ids),
        "words": [words[i] for i in ids],
        "X": plain(t.x),
        "normalized": plain(t.norm1),
        **{name: matrices[name] for name in ("Wq", "Wk", "Wv")},
        "Q": plain(t.q),
        "K_new": plain(t.k),
        "V_new": plain(t.v),
        "heads": [_head(t, h) for h in range(heads)],
        "concat_attention": plain(t.read),
        "residual1": plain(t.residual1),
        "normalized2": plain(t.norm2),
        "ffn": plain(t.mlp),
        "hidden_output": plain(t.y),
        "last_norm": plain(t.last[-1]),
        "logits_before_PAD_filter": plain(t.logits[-1]),
        "probabilities_after_PAD_filter": plain(p),
        "selected_token": chosen,
        "selected_word": words[chosen],
        "cache": {"K": plain(t.cache.k), "V": plain(t.cache.v)},
    }


NAMED_CHECKS: dict[tuple[str, str], tuple[str, ...]] = {
    ("engine", "test_cache_equivalence"): ("decode_one_by_one", "prefill_then_decode"),
    ("engine", "test_cache_wrong_offset_detected"): ("one_query_counts_from_the_end",),
    ("engine", "test_chunk_mask"): ("chunk_mask_worked", "chunk_mask_offset"),
    ("engine", "test_embedding_semantics"): (
        "embedding_of_sentences",
        "embedding_same_token_same_row",
    ),
    ("engine", "test_future_mask"): (
        "causal_weights_above_the_diagonal",
        "future_perturbation",
    ),
    ("engine", "test_paginated_position"): ("paged_position_worked", "paged_cache"),
    ("engine", "test_pool_mask"): ("pooling_leaves_padding_out",),
    ("engine", "test_rope_preserves_norm"): ("rope_keeps_length",),
    ("additional_checks", "test_attention_value_scaling"): ("values_scale_the_read",),
    ("additional_checks", "test_dense_layer_chain"): ("decoder_by_hand",),
    ("additional_checks", "test_dot_matrix_distinction"): (
        "linear_worked",
        "linear_sums_over_inputs",
    ),
    ("additional_checks", "test_every_masked_probability_zero"): (
        "causal_weights_above_the_diagonal",
    ),
    ("additional_checks", "test_high_weight_not_high_contribution"): (
        "weight_is_not_contribution",
    ),
    ("additional_checks", "test_layer_norm_constant_safe"): (
        "layer_norm_of_equal_entries",
    ),
    ("additional_checks", "test_layer_norm_mean"): ("layer_norm_moments",),
    ("additional_checks", "test_patch_projector"): (
        "patch_worked",
        "patch_is_a_strided_convolution",
    ),
    ("additional_checks", "test_relative_rope_shift"): ("rope_joint_shift",),
    ("additional_checks", "test_transpose_not_reshape"): ("transposing_is_no_reshape",),
    ("chain_and_operators", "test_bool_masks_inversion"): ("mask_conventions",),
    ("chain_and_operators", "test_cache_full_equivalence"): (
        "trace_cached_equals_whole",
    ),
    ("chain_and_operators", "test_causal_change_later_cannot_change_first"): (
        "trace_later_tokens",
    ),
    ("chain_and_operators", "test_embedding_rows_match_foundation"): (
        "embedding_looks_up_rows",
    ),
    ("chain_and_operators", "test_norms_differ"): ("norms_differ",),
    ("chain_and_operators", "test_two_heads_each_row_probability"): (
        "trace_weights_sum_to_one",
    ),
}
