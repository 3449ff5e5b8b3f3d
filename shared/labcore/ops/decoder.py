"""A small decoder of several layers, over a whole text and through a cache.

Pre-norm blocks in the manner of Llama: RMS norm, rotated causal attention with grouped
heads, SwiGLU, residual sums, a last norm, logits. Vectors are rows: y = x @ W.

Weights are a dictionary: ``embed`` (vocabulary, d), ``unembed`` (d, vocabulary), and
``layers``, a list of dictionaries with ``Wq Wk Wv Wo W_gate W_up W_down``. A decoder of
one layer may hold the matrices of that layer itself. The weights of the norms may be
left out: ``norm_attention`` and ``norm_mlp`` in a layer, ``norm`` before the logits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import _validate as must
from ._op import Array, op
from .attention import KVCache, causal_mask, grouped_query_attention, kv_append
from .layers import rms_norm, swiglu
from .rope import rope

Weights = Mapping[str, Any]
MATRICES = ("Wq", "Wk", "Wv", "Wo", "W_gate", "W_up", "W_down")


def _layers(weights: Weights) -> Sequence[Weights]:
    return weights["layers"] if "layers" in weights else [weights]


# ---- What is refused --------------------------------------------------------------


def _a_layer(
    layer: Weights, x: Array, *, heads: int = 1, rope_base: float | None = 10000.0
) -> None:
    must.count(1, heads=heads)
    must.axes(2, x=x)
    must.finite(x=x)
    for name in MATRICES[:4]:
        _matrix(name, layer)
    d, width = layer["Wq"].shape
    must.same("d_model", x=x.shape[-1], Wq=d, Wk=len(layer["Wk"]), Wv=len(layer["Wv"]))
    if width % heads:
        raise ValueError(f"heads must divide the width of Wq, {width}, got {heads}")
    d_head, kv_width = width // heads, layer["Wk"].shape[1]
    groups = kv_width // d_head
    if kv_width % d_head or groups == 0 or heads % groups:
        raise ValueError(
            f"Wk must make heads of {d_head}, their number a divisor of {heads}, "
            f"got a width of {kv_width}"
        )
    if layer["Wv"].shape[1] % groups:
        raise ValueError(
            f"Wv must make {groups} heads, got a width of {layer['Wv'].shape[1]}"
        )
    read = heads * (layer["Wv"].shape[1] // groups)
    if layer["Wo"].shape != (read, d):
        raise ValueError(f"Wo must be {(read, d)}, got {layer['Wo'].shape}")
    if rope_base is not None:
        must.positive(rope_base=rope_base)
        if d_head % 2:
            raise ValueError(f"heads must be of even width to rotate, got {d_head}")


def _placed(
    layer: Weights,
    x: Array,
    positions: Array,
    *,
    heads: int = 1,
    rope_base: float | None = 10000.0,
) -> None:
    _a_layer(layer, x, heads=heads, rope_base=rope_base)
    p = np.asarray(positions)
    if p.dtype.kind not in "iu" or p.shape != x.shape[-2:-1]:
        raise ValueError(
            f"positions must be {x.shape[-2]} integers, got {p.dtype} {p.shape}"
        )


def _cached(
    layer: Weights,
    x: Array,
    cache: KVCache | None = None,
    *,
    heads: int = 1,
    rope_base: float | None = 10000.0,
) -> None:
    _a_layer(layer, x, heads=heads, rope_base=rope_base)


def _feed_forward(layer: Weights, x: Array) -> None:
    for name in MATRICES[4:]:
        _matrix(name, layer)
    must.axes(1, x=x)
    gate, up, down = (layer[name].shape for name in MATRICES[4:])
    must.same("d_model", x=x.shape[-1], W_gate=gate[0], W_up=up[0], W_down=down[1])
    must.same("d_ff", W_gate=gate[1], W_up=up[1], W_down=down[0])


def _heads(x: Array, heads: int) -> None:
    must.axes(2, x=x)
    must.count(1, heads=heads)
    if x.shape[-1] % heads:
        raise ValueError(f"heads must divide the width {x.shape[-1]}, got {heads}")


def _joined(x: Array) -> None:
    must.axes(3, x=x)


def _tokens(
    weights: Weights,
    tokens: Array,
    *,
    heads: int = 1,
    rope_base: float | None = 10000.0,
    norm_eps: float = 1e-6,
) -> None:
    for name in ("embed", "unembed"):
        _matrix(name, weights)
    must.same(
        "d_model", embed=weights["embed"].shape[1], unembed=len(weights["unembed"])
    )
    if not _layers(weights):
        raise ValueError("weights has no layers")
    ids = np.asarray(tokens)
    if ids.dtype.kind not in "iu" or ids.ndim == 0 or ids.shape[-1] == 0:
        raise ValueError(f"tokens must be integers, got {ids.dtype} {ids.shape}")
    bad = (ids < 0) | (ids >= len(weights["embed"]))
    if np.any(bad):
        raise ValueError(
            f"tokens must lie in [0, {len(weights['embed'])}), got {ids[bad].flat[0]}"
        )


def _stepped(
    weights: Weights,
    tokens: Array,
    cache: Sequence[KVCache] | None = None,
    *,
    heads: int = 1,
    rope_base: float | None = 10000.0,
    norm_eps: float = 1e-6,
) -> None:
    _tokens(weights, tokens)
    if cache is not None:
        must.same("the layers", weights=len(_layers(weights)), cache=len(cache))


def _in_chunks(
    weights: Weights,
    tokens: Array,
    *,
    chunks: Sequence[int],
    heads: int = 1,
    rope_base: float | None = 10000.0,
    norm_eps: float = 1e-6,
) -> None:
    _tokens(weights, tokens)
    for n in chunks:
        must.count(1, chunks=n)
    if sum(chunks) != np.shape(tokens)[-1]:
        raise ValueError(
            f"chunks must sum to the {np.shape(tokens)[-1]} tokens, got {list(chunks)}"
        )


def _matrix(name: str, weights: Weights) -> None:
    if name not in weights:
        raise ValueError(f"weights has no {name}")
    if np.ndim(weights[name]) != 2:
        raise ValueError(f"{name} must be a matrix, got {np.shape(weights[name])}")
    must.finite(**{name: weights[name]})


# ---- The parts --------------------------------------------------------------------


@op(_heads, floats="x")
def split_heads(x: Array, heads: int) -> Array:
    """The features of each token, dealt out to heads.

    x: (..., n, heads * d). Returns (..., heads, n, d); head h has the h-th d features.

    >>> split_heads([[1.0, 2.0], [3.0, 4.0]], 2).tolist()
    [[[1.0], [3.0]], [[2.0], [4.0]]]
    """
    parts = x.reshape(*x.shape[:-1], heads, -1)
    return np.swapaxes(parts, -2, -3)


@op(_joined, floats="x")
def join_heads(x: Array) -> Array:
    """The heads of each token side by side again.

    x: (..., heads, n, d). Returns (..., n, heads * d).

    >>> join_heads([[[1.0], [3.0]], [[2.0], [4.0]]]).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    parts = np.swapaxes(x, -2, -3)
    return parts.reshape(*parts.shape[:-2], -1)


@op(_placed, floats="layer x")
def decoder_projections(
    layer: Weights,
    x: Array,
    positions: Array,
    *,
    heads: int = 1,
    rope_base: float | None = 10000.0,
) -> tuple[Array, Array, Array]:
    """Queries, keys and values by head; queries and keys are rotated.

    x: (..., n, d), normalised; positions: (n,) integers; rope_base None: no rotation.
    The width of Wk says how many key-value heads there are.
    Returns (..., heads, n, d_head) and twice (..., kv_heads, n, ...).

    >>> one = {name: [[1.0]] for name in ("Wq", "Wk", "Wv", "Wo")}
    >>> q, k, v = decoder_projections(one, [[5.0]], [0], rope_base=None)
    >>> q.tolist()
    [[[5.0]]]
    """
    kv_heads = heads * layer["Wk"].shape[1] // layer["Wq"].shape[1]
    q = split_heads(x @ layer["Wq"], heads)
    k = split_heads(x @ layer["Wk"], kv_heads)
    v = split_heads(x @ layer["Wv"], kv_heads)
    if rope_base is not None:
        q = rope(q, positions, base=rope_base)
        k = rope(k, positions, base=rope_base)
    return q, k, v


@op(_a_layer, floats="layer x")
def decoder_attention(
    layer: Weights, x: Array, *, heads: int = 1, rope_base: float | None = 10000.0
) -> Array:
    """The attention of one layer over a whole text.

    x: (..., n, d), normalised. Returns (..., n, d), what is added to the stream.

    >>> one = {name: [[1.0]] for name in ("Wq", "Wk", "Wv", "Wo")}
    >>> decoder_attention(one, [[0.0], [4.0]], rope_base=None).round(4).tolist()
    [[0.0], [4.0]]
    """
    n = x.shape[-2]
    q, k, v = decoder_projections(
        layer, x, np.arange(n), heads=heads, rope_base=rope_base
    )
    read = grouped_query_attention(q, k, v, allowed=causal_mask(n, n))
    return join_heads(read) @ layer["Wo"]


@op(_cached, floats="layer x cache")
def decoder_attention_cached(
    layer: Weights,
    x: Array,
    cache: KVCache | None = None,
    *,
    heads: int = 1,
    rope_base: float | None = 10000.0,
) -> tuple[Array, KVCache]:
    """The attention of one layer for new tokens, behind those in its cache.

    x: (..., n, d), the new tokens only, normalised. The cache holds rotated keys.
    Returns (..., n, d) and the cache with the new tokens appended.

    >>> one = {name: [[1.0]] for name in ("Wq", "Wk", "Wv", "Wo")}
    >>> _, cache = decoder_attention_cached(one, [[0.0]], rope_base=None)
    >>> added, cache = decoder_attention_cached(one, [[4.0]], cache, rope_base=None)
    >>> added.round(4).tolist(), cache.k.tolist()
    ([[4.0]], [[[0.0], [4.0]]])
    """
    n = x.shape[-2]
    seen = 0 if cache is None else cache.k.shape[-2]
    q, k, v = decoder_projections(
        layer, x, seen + np.arange(n), heads=heads, rope_base=rope_base
    )
    cache = kv_append(cache, k, v)
    allowed = causal_mask(n, seen + n)
    read = grouped_query_attention(q, cache.k, cache.v, allowed=allowed)
    return join_heads(read) @ layer["Wo"], cache


@op(_feed_forward, floats="layer x")
def decoder_mlp(layer: Weights, x: Array) -> Array:
    r"""The feed-forward half of one layer.

    $$y = \left(\mathrm{silu}(x W_{gate}) \odot x W_{up}\right) W_{down}$$

    x: (..., d), normalised. Returns (..., d), what is added to the stream.

    >>> one = {name: [[1.0]] for name in ("W_gate", "W_up", "W_down")}
    >>> decoder_mlp(one, [1000.0]).tolist()
    [1000000.0]
    """
    return swiglu(x @ layer["W_gate"], x @ layer["W_up"]) @ layer["W_down"]


# ---- The whole --------------------------------------------------------------------


@op(_tokens, floats="weights norm_eps")
def decoder_logits(
    weights: Weights,
    tokens: Array,
    *,
    heads: int = 1,
    rope_base: float | None = 10000.0,
    norm_eps: float = 1e-6,
) -> Array:
    """Logits for every position of a text, in one pass without a cache.

    tokens: (..., n) integers. Returns (..., n, vocabulary); row t predicts token t + 1.

    >>> one = {name: [[0.0]] for name in MATRICES}
    >>> decoder_logits({"embed": [[3.0]], "unembed": [[1.0, 2.0]], **one}, [0, 0],
    ...                rope_base=None, norm_eps=0.0).tolist()
    [[1.0, 2.0], [1.0, 2.0]]
    """
    x = weights["embed"][np.asarray(tokens)]
    for layer in _layers(weights):
        h = rms_norm(x, weight=layer.get("norm_attention"), eps=norm_eps)
        x = x + decoder_attention(layer, h, heads=heads, rope_base=rope_base)
        h = rms_norm(x, weight=layer.get("norm_mlp"), eps=norm_eps)
        x = x + decoder_mlp(layer, h)
    x = rms_norm(x, weight=weights.get("norm"), eps=norm_eps)
    return x @ weights["unembed"]


@op(_stepped, floats="weights cache* norm_eps")
def decoder_step(
    weights: Weights,
    tokens: Array,
    cache: Sequence[KVCache] | None = None,
    *,
    heads: int = 1,
    rope_base: float | None = 10000.0,
    norm_eps: float = 1e-6,
) -> tuple[Array, tuple[KVCache, ...]]:
    """Logits for new tokens, and the caches with them appended: prefill and decode.

    tokens: (..., n) integers, the new ones only; cache: one :class:`KVCache` a layer,
    or None at the start of a text. Returns (..., n, vocabulary) and the new caches.

    >>> one = {name: [[0.0]] for name in MATRICES}
    >>> weights = {"embed": [[3.0]], "unembed": [[1.0, 2.0]], **one}
    >>> _, cache = decoder_step(weights, [0, 0], rope_base=None)
    >>> _, cache = decoder_step(weights, [0], cache, rope_base=None)
    >>> cache[0].k.shape
    (1, 3, 1)
    """
    x = weights["embed"][np.asarray(tokens)]
    caches: list[KVCache] = []
    for i, layer in enumerate(_layers(weights)):
        old = None if cache is None else cache[i]
        h = rms_norm(x, weight=layer.get("norm_attention"), eps=norm_eps)
        read, new = decoder_attention_cached(
            layer, h, old, heads=heads, rope_base=rope_base
        )
        x, caches = x + read, [*caches, new]
        h = rms_norm(x, weight=layer.get("norm_mlp"), eps=norm_eps)
        x = x + decoder_mlp(layer, h)
    x = rms_norm(x, weight=weights.get("norm"), eps=norm_eps)
    return x @ weights["unembed"], tuple(caches)


@op(_in_chunks, floats="weights norm_eps")
def decoder_logits_cached(
    weights: Weights,
    tokens: Array,
    *,
    chunks: Sequence[int],
    heads: int = 1,
    rope_base: float | None = 10000.0,
    norm_eps: float = 1e-6,
) -> Array:
    """The logits of :func:`decoder_logits`, fed chunk by chunk through the caches.

    chunks: how many tokens each step takes; (n - 1, 1) is a prefill and one decode.
    Returns (..., n, vocabulary), the same for every way to cut the text.

    >>> one = {name: [[0.0]] for name in MATRICES}
    >>> decoder_logits_cached({"embed": [[3.0]], "unembed": [[1.0, 2.0]], **one},
    ...                       [0, 0], chunks=(1, 1), rope_base=None, norm_eps=0.0
    ...                       ).tolist()
    [[1.0, 2.0], [1.0, 2.0]]
    """
    options = {"heads": heads, "rope_base": rope_base, "norm_eps": norm_eps}
    tokens, cache, seen = np.asarray(tokens), None, 0
    logits: list[Array] = []
    for n in chunks:
        new = tokens[..., seen : seen + n]
        part, cache = decoder_step(weights, new, cache, **options)
        logits, seen = [*logits, part], seen + n
    return np.concatenate(logits, axis=-2)
