"""A decoder of one layer that can be followed by hand, number by number.

The block of the first GPT models: layer norm without weights, attention, layer norm,
feed-forward, residual sums. Vectors are rows: y = x @ W. A model in the manner of
Llama, of several layers, stands in :mod:`labcore.ops.decoder`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from . import _validate as must
from ._op import Array, op
from .attention import KVCache, causal_mask, kv_append
from .decoder import join_heads, split_heads
from .layers import layer_norm, linear, relu, swiglu
from .softmax import softmax

Weights = Mapping[str, Any]
NEEDED = ("Wq", "Wk", "Wv", "W_up", "W_down", "unembed")


class DecoderTrace(NamedTuple):
    """Everything between the stream that enters and the logits.

    x, norm1, q, k, v, read, residual1, norm2, mlp, y, last: (n, width), of the new
    tokens; scores, weights: (heads, n, n_keys); head_reads: (heads, n, width of a
    head); logits: (n, vocabulary); cache: keys and values of all tokens so far.
    """

    x: Array
    norm1: Array
    q: Array
    k: Array
    v: Array
    scores: Array
    weights: Array
    head_reads: Array
    read: Array
    residual1: Array
    norm2: Array
    mlp: Array
    y: Array
    last: Array
    logits: Array
    cache: KVCache


def _block(
    weights: Weights,
    x: Array,
    *,
    heads: int = 1,
    cache: KVCache | None = None,
    eps: float = 1e-5,
) -> None:
    must.count(1, heads=heads)
    must.axes(2, x=x)
    must.finite(x=x)
    must.positive(eps=eps)
    for name in (*NEEDED, *(("W_gate",) if "W_gate" in weights else ())):
        if name not in weights or np.ndim(weights[name]) != 2:
            raise ValueError(f"weights must hold a matrix {name}")
        must.finite(**{name: weights[name]})
    width = {name: weights[name].shape for name in weights}
    d = x.shape[-1]
    for name in ("Wq", "Wk", "W_up", "unembed"):
        must.same("d_model", x=d, **{name: width[name][0]})
    if width["Wv"] != (d, d):
        raise ValueError(
            f"Wv must be {(d, d)}, for what is read is added to x, got {width['Wv']}"
        )
    must.same("d_k", Wq=width["Wq"][1], Wk=width["Wk"][1])
    must.same("d_ff", W_up=width["W_up"][1], W_down=width["W_down"][0])
    must.same("d_model", x=d, W_down=width["W_down"][1])
    if "W_gate" in weights and width["W_gate"] != width["W_up"]:
        raise ValueError(f"W_gate must have the shape of W_up, got {width['W_gate']}")
    if d % heads or width["Wq"][1] % heads:
        raise ValueError(
            f"heads must divide the widths {d} and {width['Wq'][1]}, got {heads}"
        )


@op(_block, floats="weights x cache eps")
def decoder_trace(
    weights: Weights,
    x: Array,
    *,
    heads: int = 1,
    cache: KVCache | None = None,
    eps: float = 1e-5,
) -> DecoderTrace:
    r"""One layer over new tokens, with every number on the way.

    $$u = \mathrm{LN}(x), \quad r = x + \mathrm{attn}(u W_q, u W_k, u W_v), \quad
    y = r + f(\mathrm{LN}(r)), \quad \mathrm{logits} = \mathrm{LN}(y)\, U$$

    weights: Wq, Wk (d, d_k), Wv (d, d), W_up (d, d_ff), W_down (d_ff, d), unembed U
    (d, V), and W_gate if there is one: then f is SwiGLU, else relu between W_up and
    W_down. x: (n, d), embedded tokens; cache: what earlier calls returned. Attention is
    causal, has no rotation and no output matrix. Returns a :class:`DecoderTrace`.

    >>> I = [[1.0, 0.0], [0.0, 1.0]]
    >>> names = ("Wq", "Wk", "Wv", "W_up", "W_down", "unembed")
    >>> trace = decoder_trace(dict.fromkeys(names, I), [[3.0, 1.0]])
    >>> trace.weights.tolist(), trace.residual1.round(3).tolist()
    ([[[1.0]]], [[4.0, 0.0]])
    """
    u = layer_norm(x, eps=eps)
    q, k, v = (linear(u, weights[name]) for name in ("Wq", "Wk", "Wv"))
    cache = kv_append(cache, k, v)
    Q, K, V = (split_heads(part, heads) for part in (q, cache.k, cache.v))
    allowed = causal_mask(Q.shape[-2], K.shape[-2])
    scores = Q @ np.swapaxes(K, -1, -2) / float(np.sqrt(Q.shape[-1]))
    scores = np.where(allowed, scores, -np.inf).astype(x.dtype)
    P = softmax(scores)
    read = join_heads(P @ V)
    r = x + read
    n = layer_norm(r, eps=eps)
    up = linear(n, weights["W_up"])
    gated = "W_gate" in weights
    inner = swiglu(linear(n, weights["W_gate"]), up) if gated else relu(up)
    mlp = linear(inner, weights["W_down"])
    y = r + mlp
    last = layer_norm(y, eps=eps)
    logits = linear(last, weights["unembed"])
    return DecoderTrace(
        x, u, q, k, v, scores, P, P @ V, read, r, n, mlp, y, last, logits, cache
    )
