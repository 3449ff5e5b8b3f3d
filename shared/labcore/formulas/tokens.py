"""The formulas of tokens, shapes and a decoder by hand. Tokens are rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ops.attention import KVCache, attention, causal_mask
from ..ops.decoder import join_heads, split_heads
from ..ops.decoder_trace import DecoderTrace, decoder_trace
from ..ops.layers import embedding
from ._formula import Inputs, formula

CHAPTER = "tokens-shapes-decoder"
HEADS = 2
PARTS = {
    "ids": r"\mathrm{id}",
    "onehot()": r"\mathrm{onehot}(#1)",
    "LN()": r"\mathrm{LN}(#1)",
    "attn()": r"\mathrm{attn}(#1, #2, #3)",
    "logits": r"\mathrm{logits}",
}


def a_text(rng: np.random.Generator) -> Inputs:
    """A table, ids, and a position t whose id is not t."""
    E, t = rng.normal(size=(6, 3)), 2
    ids = rng.permutation(6)[:4]
    ids[t] = (ids[t] + (ids[t] == t)) % 6
    return {"E": E, "ids": ids, "t": t, "onehot": lambda id: np.eye(6)[id]}


def a_layer(rng: np.random.Generator) -> Inputs:
    """Weights and a text; u and r are the rows on the way, y is a run of the layer."""
    x = rng.normal(size=(5, 4))
    shapes = {
        "Wq": (4, 6),
        "Wk": (4, 6),
        "Wv": (4, 4),
        "W_gate": (4, 7),
        "W_up": (4, 7),
        "W_down": (7, 4),
        "unembed": (4, 8),
    }
    weights = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    whole = decoder_trace(weights, x, heads=HEADS)

    def step(x: Any, *before: Any) -> Any:
        cache = KVCache(*before) if before else None
        return decoder_trace(weights, np.atleast_2d(x), heads=HEADS, cache=cache).y[-1]

    def half(n: Any) -> Any:
        gate = n @ weights["W_gate"]
        return (gate / (1 + np.exp(-gate)) * (n @ weights["W_up"])) @ weights["W_down"]

    return {
        "weights": weights,
        "x": x,
        "u": whole.norm1,
        "r": whole.residual1,
        "y": whole.y,
        "W_q": weights["Wq"],
        "W_k": weights["Wk"],
        "W_v": weights["Wv"],
        "U": weights["unembed"],
        "K": whole.cache.k,
        "V": whole.cache.v,
        "t": 2,
        "f": half,
        "y_t": step,
    }


def _run(weights: Any, x: Any) -> DecoderTrace:
    return decoder_trace(weights, x, heads=HEADS)


def _attn(q: Any, k: Any, v: Any) -> Any:
    Q, K, V = (split_heads(part, HEADS) for part in (q, k, v))
    return join_heads(attention(Q, K, V, allowed=causal_mask(len(q), len(k))))


def _norm(x: Any) -> Any:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


formula(
    "embedding_row",
    "E[ids[t]]",
    "onehot(ids[t]) @ E",
    defines="X[t]",
    symbols=PARTS,
    chapter=CHAPTER,
    draw=a_text,
    function=lambda E, ids, t: embedding(E, ids)[t],
    operations=("embedding",),
    checks=("embedding_looks_up_rows", "embedding_same_token_same_row"),
)
formula(
    "decoder_norm",
    "LN(x)",
    defines="u",
    symbols=PARTS,
    functions={"LN": _norm},
    chapter=CHAPTER,
    draw=a_layer,
    function=lambda weights, x: _run(weights, x).norm1,
    operations=("decoder_trace",),
    checks=("trace_heads_are_attention",),
)
formula(
    "decoder_attention",
    "x + attn(u @ W_q, u @ W_k, u @ W_v)",
    defines="r",
    symbols=PARTS,
    functions={"attn": _attn},
    chapter=CHAPTER,
    draw=a_layer,
    function=lambda weights, x: _run(weights, x).residual1,
    operations=("decoder_trace",),
    checks=("trace_heads_are_attention", "trace_residual_sums"),
)
formula(
    "decoder_feed_forward",
    "r + f(LN(r))",
    defines="y",
    symbols=PARTS,
    functions={"LN": _norm},
    chapter=CHAPTER,
    draw=a_layer,
    function=lambda weights, x: _run(weights, x).y,
    operations=("decoder_trace",),
    checks=("trace_feed_forward", "trace_residual_sums"),
)
formula(
    "decoder_logits",
    "LN(y) @ U",
    defines="logits",
    symbols=PARTS,
    functions={"LN": _norm},
    chapter=CHAPTER,
    draw=a_layer,
    function=lambda weights, x: _run(weights, x).logits,
    operations=("decoder_trace",),
    checks=("trace_last_norm",),
)
formula(
    "decoder_cached",
    "y_t(x[: t + 1])",
    "y_t(x[t], K[:t], V[:t])",
    chapter=CHAPTER,
    draw=a_layer,
    function=lambda weights, x, t: _run(weights, x).y[t],
    operations=("decoder_trace",),
    checks=("trace_cached_equals_whole",),
)
