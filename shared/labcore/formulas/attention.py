"""The formulas of attention and caching. Queries, keys and values are columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ops.attention import (
    attention,
    attention_from_cache,
    attention_weights,
    causal_mask,
    grouped_query_attention,
    kv_append,
    kv_head_of,
)
from ._formula import Inputs, formula

CHAPTER = "attention-and-caching"
NAMES = {
    "attention": r"\mathrm{attention}",
    "h_kv": "h_{kv}",
    "H_kv": "H_{kv}",
}


def one_score(rng: np.random.Generator) -> Inputs:
    """A query among keys of which the first is zero, so that its score is zero."""
    k = rng.normal(size=(5, 3, 1))
    k[0] = 0.0
    return {"q": rng.normal(size=(4, 3, 1)), "k": k, "d_k": 3, "i": 2, "j": 4}


def masked_rows(rng: np.random.Generator) -> Inputs:
    """Four queries on five keys; the mask leaves each query at least one key."""
    q, k = rng.normal(size=(4, 3)), rng.normal(size=(5, 3))
    allowed = rng.random(size=(4, 5)) < 0.5
    allowed[np.arange(4), rng.integers(5, size=4)] = True
    v, i = rng.normal(size=(5, 2)), np.arange(4)[:, None]
    return {
        "q": q,
        "k": k,
        "v": v,
        "a": allowed.astype(float),
        "s": q @ k.T / np.sqrt(3),
        "w": attention_weights(q, k, allowed=allowed),
        "i": i,
        "j": np.arange(5),
    }


def a_chunk(rng: np.random.Generator) -> Inputs:
    """New queries behind a prefix: every pair of a query and a key at once."""
    n_q = int(rng.integers(2, 5))
    n_k = n_q + int(rng.integers(1, 5))
    return {
        "n_q": n_q,
        "n_k": n_k,
        "i": np.arange(n_q)[:, None],
        "j": np.arange(n_k),
    }


def a_text(rng: np.random.Generator) -> Inputs:
    """A text of six tokens that is decoded one by one up to token t."""
    return {
        "q": rng.normal(size=(6, 3)),
        "k": rng.normal(size=(6, 3)),
        "v": rng.normal(size=(6, 2)),
        "t": 3,
    }


def shared_heads(rng: np.random.Generator) -> Inputs:
    """Every query head, on fewer key-value heads."""
    H_kv, shared = (int(n) for n in rng.permutation([2, 3]))
    H_q = H_kv * shared
    return {
        "H_q": H_q,
        "H_kv": H_kv,
        "h_q": np.arange(H_q),
        "Q": rng.normal(size=(H_q, 4, 3)),
        "K": rng.normal(size=(H_kv, 5, 3)),
        "V": rng.normal(size=(H_kv, 5, 2)),
    }


def one_shared_head(rng: np.random.Generator) -> Inputs:
    """One of the query heads, and whom it reads according to a list of the groups."""
    inputs = shared_heads(rng)
    H_q, H_kv = inputs["H_q"], inputs["H_kv"]
    one = int(rng.integers(H_q))
    reads = [h for h in range(H_kv) for _ in range(H_q // H_kv)]
    return inputs | {"h_q": one, "h_kv": reads[one]}


def by_hand(q: Any, k: Any, v: Any) -> Any:
    """Attention without a mask, in two lines."""
    weights = np.exp(q @ k.T / np.sqrt(k.shape[-1]))
    return weights @ v / weights.sum(axis=-1, keepdims=True)


def decoded(q: Any, k: Any, v: Any, t: int) -> Any:
    """What token t reads when the tokens come one at a time."""
    cache, read = None, None
    for now in range(t + 1):
        one = slice(now, now + 1)
        cache = kv_append(cache, k[one], v[one])
        read = attention_from_cache(q[one], cache)
    return read


formula(
    "attention_score",
    "q[i].T @ k[j] / sqrt(d_k)",
    defines="s[i, j]",
    chapter=CHAPTER,
    draw=one_score,
    function=lambda q, k, i, j: np.log(
        attention_weights(q[..., 0], k[..., 0])[i, j]
        / attention_weights(q[..., 0], k[..., 0])[i, 0]
    ),
    operations=("attention_weights",),
    checks=("attention_two_keys",),
)
formula(
    "attention_weights",
    "a[i, j] * exp(s[i, j]) / sum(a[i, l] * exp(s[i, l]) for l in range(len(k)))",
    defines="w[i, j]",
    chapter=CHAPTER,
    draw=masked_rows,
    function=lambda q, k, a: attention_weights(q, k, allowed=a > 0),
    operations=("attention_weights",),
    checks=("attention_rows_sum_to_one",),
)
formula(
    "attention_output",
    "sum(w[i, j] * v[j] for j in range(len(v)))",
    defines="o[i]",
    chapter=CHAPTER,
    draw=masked_rows,
    function=lambda q, k, v, a: attention(q, k, v, allowed=a > 0),
    operations=("attention",),
    checks=("padding_reads_as_absent",),
)
formula(
    "causal_mask",
    "1 if j <= i + n_k - n_q else 0",
    defines="a[i, j]",
    chapter=CHAPTER,
    draw=a_chunk,
    function=lambda n_q, n_k: causal_mask(n_q, n_k),
    operations=("causal_mask",),
    checks=("chunk_mask_offset", "future_perturbation", "mask_refuses_wrong_offset"),
)
formula(
    "reading_from_a_cache",
    "attention(q[t], k[: t + 1], v[: t + 1])",
    defines="o[t]",
    symbols=NAMES,
    functions={"attention": by_hand},
    chapter=CHAPTER,
    draw=a_text,
    function=decoded,
    operations=("kv_append", "attention_from_cache", "attention"),
    checks=("causal_prefix_reads", "prefill_then_decode", "decode_one_by_one"),
)
formula(
    "shared_head",
    "floor(h_q * H_kv / H_q)",
    defines="h_kv",
    symbols=NAMES,
    chapter=CHAPTER,
    draw=shared_heads,
    function=lambda H_q, H_kv: kv_head_of(H_q, H_kv),
    operations=("kv_head_of",),
    checks=("kv_head_map",),
)
formula(
    "grouped_heads",
    "attention(Q[h_q], K[h_kv], V[h_kv])",
    defines="O[h_q]",
    symbols=NAMES,
    functions={"attention": by_hand},
    chapter=CHAPTER,
    draw=one_shared_head,
    function=lambda Q, K, V, h_q: grouped_query_attention(Q, K, V)[h_q],
    operations=("grouped_query_attention",),
    checks=("grouped_heads_equal_repeated_heads", "grouped_heads_keep_the_mask"),
)
