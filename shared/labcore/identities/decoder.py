"""A decoder of several layers and its cache: what must hold, and how it breaks."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ops.attention import causal_mask, grouped_query_attention, kv_append
from ..ops.decoder import (
    decoder_attention,
    decoder_attention_cached,
    decoder_logits,
    decoder_logits_cached,
    decoder_mlp,
    decoder_projections,
    decoder_step,
    join_heads,
    split_heads,
)
from ..ops.layers import rms_norm
from ..ops.rope import rope
from ._check import Inputs, Rng, nothing
from .attention import chapter

# One layer, one head of two features, three tokens to know; the norms have no weights.
SMALL = {
    "embed": np.array([[1.0, 0.5], [-0.5, 1.0], [0.25, -1.0]]),
    "Wq": np.array([[1.0, 0.5], [0.0, 1.0]]),
    "Wk": np.array([[0.5, 0.0], [1.0, 1.0]]),
    "Wv": np.array([[1.0, -1.0], [0.5, 1.0]]),
    "Wo": np.array([[1.0, 0.0], [0.5, -1.0]]),
    "W_gate": np.array([[1.0, 0.5], [-1.0, 1.0]]),
    "W_up": np.array([[0.5, 1.0], [1.0, 0.0]]),
    "W_down": np.array([[1.0, 1.0], [-0.5, 0.5]]),
    "unembed": np.array([[1.0, 0.0, -1.0], [0.5, 1.0, 0.0]]),
}
# The logits of the text (0, 2, 1). The first row by hand: the stream starts at
# (1, 1/2) and is divided by the root of 5/8; alone, it reads its own value; adding what
# Wo makes of it gives (2.2649, 1.1325), and the gated half adds (1.5475, 3.0913).
TEXT = [0, 2, 1]
LOGITS = np.array(
    [
        [1.4865170231080076, 1.0256179987767615, -0.973708023719627],
        [0.8618799688955371, 1.405215237981975, -0.1592723499045496],
        [-0.328303072301243, 1.1060214558407175, 0.8813138002216019],
    ]
)


# ---- What is drawn ----------------------------------------------------------------


def a_decoder(rng: Rng, size: int) -> Inputs:
    """Two or three layers, four heads on two, and two texts of four tokens."""
    weights = {
        "layers": [_layer(rng, size, 4, 2) for _ in range(2 + size % 2)],
        "embed": rng.normal(size=(7, size + 4)),
        "unembed": rng.normal(size=(size + 4, 6)),
        "norm": rng.uniform(0.5, 2.0, size=size + 4),
    }
    tokens = np.stack([[rng.permutation(7)[:4]] for _ in range(2)])
    return {"weights": weights, "tokens": tokens, "heads": 4}


def a_layer(rng: Rng, size: int) -> Inputs:
    """One layer of six heads on two, and a text as it enters."""
    return {
        "layer": _layer(rng, size, 6, 2),
        "x": rng.normal(size=(2, size + 3, size + 4)),
    }


def a_stream(rng: Rng, size: int) -> Inputs:
    """A text as it enters a layer, behind a prefix of seven tokens."""
    n = size + 2
    return {"x": rng.normal(size=(2, n, 2 * size + 2)), "positions": 7 + np.arange(n)}


def one_layer(rng: Rng, size: int) -> Inputs:
    """A decoder of one layer, and a text of five different tokens."""
    weights = {
        "layers": [_layer(rng, size, 2, 2)],
        "embed": rng.normal(size=(7, size + 4)),
        "unembed": rng.normal(size=(size + 4, 6)),
    }
    return {"weights": weights, "tokens": rng.permutation(7)[:5]}


def _layer(rng: Rng, size: int, heads: int, kv_heads: int) -> Inputs:
    d, d_head, d_v, d_ff = size + 4, 4, size + 2, size + 5
    shapes = {
        "Wq": (d, heads * d_head),
        "Wk": (d, kv_heads * d_head),
        "Wv": (d, kv_heads * d_v),
        "Wo": (heads * d_v, d),
        "W_gate": (d, d_ff),
        "W_up": (d, d_ff),
        "W_down": (d_ff, d),
    }
    layer = {
        name: rng.normal(size=shape) / np.sqrt(shape[0])
        for name, shape in shapes.items()
    }
    layer["norm_attention"] = rng.uniform(0.5, 2.0, size=d)
    layer["norm_mlp"] = rng.uniform(0.5, 2.0, size=d)
    return layer


# ---- What must hold ---------------------------------------------------------------


@chapter.check(
    "decoder_cached_equals_uncached",
    "A cached decoder of several layers gives the logits of one pass, for every cut.",
    draw=a_decoder,
)
def _(weights, tokens, heads):
    tokens = tokens[..., :3]
    options = {"heads": heads, "rope_base": 50.0, "norm_eps": 0.1}
    fed = [
        decoder_logits_cached(weights, tokens, chunks=cut, **options)
        for cut in ((1, 2), (2, 1))
    ]
    one_by_one = decoder_logits_cached(
        weights, tokens[1, 0], chunks=(1, 1, 1), **options
    )
    whole = decoder_logits(weights, tokens, **options)
    return (fed, one_by_one), ([whole] * 2, whole[1, 0])


@chapter.check(
    "decoder_cache_is_append_only",
    "A step leaves what each layer cached for earlier tokens as it was.",
    draw=a_decoder,
)
def _(weights, tokens, heads):
    _, before = decoder_step(weights, tokens[..., :2], heads=heads)
    _, after = decoder_step(weights, tokens[..., 2:], before, heads=heads)
    kept = [(c.k[..., :2, :], c.v[..., :2, :]) for c in after]
    lengths = np.array([c.k.shape[-2] for c in after])
    return (kept, lengths), (
        [(c.k, c.v) for c in before],
        np.full(len(weights["layers"]), tokens.shape[-1]),
    )


@chapter.check(
    "decoder_future_tokens",
    "Changing later tokens leaves the logits of earlier ones alone, in every layer.",
    draw=a_decoder,
)
def _(weights, tokens, heads):
    changed = tokens.copy()
    changed[..., 2:] = (changed[..., 2:] + 1) % 7
    earlier = decoder_logits(weights, changed, heads=heads)[..., :2, :]
    return earlier, decoder_logits(weights, tokens, heads=heads)[..., :2, :]


@chapter.check(
    "decoder_stream_scale",
    "A stream three times as large, with all that is added, gives the same logits.",
    draw=a_decoder,
)
def _(weights, tokens, heads):
    larger = {
        **weights,
        "embed": 3 * weights["embed"],
        "layers": [
            {**layer, "Wo": 3 * layer["Wo"], "W_down": 3 * layer["W_down"]}
            for layer in weights["layers"]
        ],
    }
    options = {"heads": heads, "norm_eps": 0.0}
    return (
        decoder_logits(larger, tokens, **options),
        decoder_logits(weights, tokens, **options),
    )


@chapter.check(
    "decoder_stream_alone",
    "Layers that add nothing leave the embedding, normalised once at the end.",
    draw=a_decoder,
)
def _(weights, tokens, heads):
    silent = {
        **weights,
        "layers": [
            {**layer, "Wo": 0 * layer["Wo"], "W_down": 0 * layer["W_down"]}
            for layer in weights["layers"]
        ],
    }
    x = weights["embed"][tokens]
    x = x / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + 0.5) * weights["norm"]
    logits = decoder_logits(silent, tokens, heads=heads, norm_eps=0.5)
    return logits, x @ weights["unembed"]


@chapter.check(
    "decoder_heads_add_up",
    "Attention of several heads is the sum over heads that were run alone.",
    draw=a_layer,
)
def _(layer, x):
    whole = decoder_attention(layer, x, heads=6)
    d_v = len(layer["Wo"]) // 6
    alone = []
    for h in range(6):
        q, kv = slice(4 * h, 4 * h + 4), h // 3
        one = {
            "Wq": layer["Wq"][:, q],
            "Wk": layer["Wk"][:, 4 * kv : 4 * kv + 4],
            "Wv": layer["Wv"][:, d_v * kv : d_v * (kv + 1)],
            "Wo": layer["Wo"][d_v * h : d_v * (h + 1)],
        }
        alone.append(decoder_attention(one, x, heads=1))
    return whole, np.sum(alone, axis=0)


@chapter.check(
    "decoder_rotates_queries_and_keys",
    "Where all matrices are the unit matrix, queries and keys are rotated, values not.",
    draw=a_stream,
)
def _(x, positions):
    unit = {name: np.eye(x.shape[-1]) for name in ("Wq", "Wk", "Wv", "Wo")}
    q, k, v = decoder_projections(unit, x, positions, rope_base=50.0)
    turned = rope(x, positions, base=50.0)[..., None, :, :]
    return (q, k, v), (turned, turned, x[..., None, :, :])


@chapter.check(
    "decoder_order_without_rotation",
    "Without rotation the last token of one layer cannot tell the order of its past.",
    draw=one_layer,
)
def _(weights, tokens):
    other = np.concatenate([tokens[-2::-1], tokens[-1:]])
    options = {"heads": 2, "rope_base": None}
    return (
        decoder_logits(weights, other, **options)[-1],
        decoder_logits(weights, tokens, **options)[-1],
    )


@chapter.check(
    "decoder_order_with_rotation",
    "With rotation it can tell: positions come from there and from nowhere else.",
    draw=one_layer,
    kind="differs",
)
def _(weights, tokens):
    other = np.concatenate([tokens[-2::-1], tokens[-1:]])
    return (
        decoder_logits(weights, other, heads=2)[-1],
        decoder_logits(weights, tokens, heads=2)[-1],
    )


@chapter.check(
    "decoder_worked",
    "One layer of two features has the logits that were worked out for it.",
    draw=nothing,
    kind="value",
)
def _():
    return decoder_logits(SMALL, TEXT), LOGITS


@chapter.check(
    "decoder_step_worked",
    "The same logits come from a prefill of two tokens and one step.",
    draw=nothing,
    kind="value",
)
def _():
    _, cache = decoder_step(SMALL, TEXT[:2])
    last, _ = decoder_step(SMALL, TEXT[2:], cache)
    return last, LOGITS[2:]


@chapter.check(
    "decoder_refuses_negative_token",
    "Token -1 is refused: an array would read the last row.",
    draw=nothing,
    kind="refuses",
)
def _():
    return lambda: decoder_logits(SMALL, [0, -1]), "tokens"


# ---- How it breaks ----------------------------------------------------------------


def _one_pass(weights, tokens, heads, rope_base, norm_eps, *, block, last=rms_norm):
    """A decoder whose block, or last norm, is another."""
    x = weights["embed"][np.asarray(tokens)]
    for layer in weights.get("layers", [weights]):

        def normed(x, name, layer=layer):
            return rms_norm(x, weight=layer.get(name), eps=norm_eps)

        def attend(h, layer=layer):
            return decoder_attention(layer, h, heads=heads, rope_base=rope_base)

        def mlp(h, layer=layer):
            return decoder_mlp(layer, h)

        x = block(x, normed, attend, mlp)
    return last(x, weight=weights.get("norm"), eps=norm_eps) @ weights["unembed"]


def _block(x, normed, attend, mlp):
    x = x + attend(normed(x, "norm_attention"))
    return x + mlp(normed(x, "norm_mlp"))


@chapter.fault(
    "decoder_last_norm_missing",
    "the stream is not normalised before the logits",
    operation="decoder_logits",
    story="The one norm outside the loop; greedy decoding often chooses as before.",
    made_for="decoder_stream_scale",
    stays_green="decoder_future_tokens",
)
def _(weights, tokens, *, heads=1, rope_base=10000.0, norm_eps=1e-6):
    def as_it_is(x, *, weight, eps):
        return x if weight is None else x * weight

    return _one_pass(
        weights, tokens, heads, rope_base, norm_eps, block=_block, last=as_it_is
    )


@chapter.fault(
    "decoder_post_norm",
    "each half is normalised after it is added, not before it is read",
    operation="decoder_logits",
    story="The order of the first Transformer; both orders train, and differ.",
    made_for="decoder_stream_alone",
    stays_green="decoder_future_tokens",
)
def _(weights, tokens, *, heads=1, rope_base=10000.0, norm_eps=1e-6):
    def block(x, normed, attend, mlp):
        x = normed(x + attend(x), "norm_attention")
        return normed(x + mlp(x), "norm_mlp")

    return _one_pass(weights, tokens, heads, rope_base, norm_eps, block=block)


@chapter.fault(
    "decoder_parallel_halves",
    "the feed-forward half reads what attention read, not its result",
    operation="decoder_logits",
    story="A parallel block, which other models have on purpose.",
    made_for="decoder_worked",
    stays_green="decoder_stream_scale",
)
def _(weights, tokens, *, heads=1, rope_base=10000.0, norm_eps=1e-6):
    def block(x, normed, attend, mlp):
        return x + attend(normed(x, "norm_attention")) + mlp(normed(x, "norm_mlp"))

    return _one_pass(weights, tokens, heads, rope_base, norm_eps, block=block)


@chapter.fault(
    "decoder_without_residual",
    "what attention reads replaces the stream instead of being added",
    operation="decoder_logits",
    story="A plus sign lost in a refactoring; the loss still falls for a while.",
    made_for="decoder_worked",
    stays_green="decoder_stream_scale",
)
def _(weights, tokens, *, heads=1, rope_base=10000.0, norm_eps=1e-6):
    def block(x, normed, attend, mlp):
        x = attend(normed(x, "norm_attention"))
        return x + mlp(normed(x, "norm_mlp"))

    return _one_pass(weights, tokens, heads, rope_base, norm_eps, block=block)


@chapter.fault(
    "decoder_wraps_tokens",
    "token numbers outside the vocabulary wrap around",
    operation="decoder_logits",
    story="Negative indices count from the end: a padding id of -1 reads a real token.",
    made_for="decoder_refuses_negative_token",
    stays_green="decoder_worked",
    unguarded=True,
)
def _(weights, tokens, *, heads=1, rope_base=10000.0, norm_eps=1e-6):
    tokens = np.asarray(tokens) % len(weights["embed"])
    return decoder_logits(
        weights, tokens, heads=heads, rope_base=rope_base, norm_eps=norm_eps
    )


@chapter.fault(
    "decoder_cache_of_next_layer",
    "each layer appends to the cache of the next",
    operation="decoder_step",
    story="A cache keyed by a counter that is off by one; one layer cannot see it.",
    made_for="decoder_cached_equals_uncached",
    stays_green="decoder_step_worked",
)
def _(weights, tokens, cache=None, *, heads=1, rope_base=10000.0, norm_eps=1e-6):
    moved = None if cache is None else [*cache[1:], cache[0]]
    return decoder_step(
        weights, tokens, moved, heads=heads, rope_base=rope_base, norm_eps=norm_eps
    )


@chapter.fault(
    "decoder_caches_before_norm",
    "the cached path reads the stream before its norm",
    operation="decoder_step",
    story="The norm moved into the uncached path only, in a refactoring.",
    made_for="decoder_cached_equals_uncached",
    stays_green="decoder_worked",
)
def _(weights, tokens, cache=None, *, heads=1, rope_base=10000.0, norm_eps=1e-6):
    x = weights["embed"][np.asarray(tokens)]
    caches: list[Any] = []
    for i, layer in enumerate(weights.get("layers", [weights])):
        read, new = decoder_attention_cached(
            layer,
            x,
            None if cache is None else cache[i],
            heads=heads,
            rope_base=rope_base,
        )
        x, caches = x + read, [*caches, new]
        h = rms_norm(x, weight=layer.get("norm_mlp"), eps=norm_eps)
        x = x + decoder_mlp(layer, h)
    x = rms_norm(x, weight=weights.get("norm"), eps=norm_eps)
    return x @ weights["unembed"], tuple(caches)


@chapter.fault(
    "decoder_positions_restart",
    "each step counts its positions from zero",
    operation="decoder_attention_cached",
    story=(
        "The commonest bug of a cached decoder: the length of the step in place of the"
        " length of the cache."
    ),
    made_for="decoder_cached_equals_uncached",
    stays_green="decoder_cache_is_append_only",
)
def _(layer, x, cache=None, *, heads=1, rope_base=10000.0):
    n = x.shape[-2]
    q, k, v = decoder_projections(
        layer, x, np.arange(n), heads=heads, rope_base=rope_base
    )
    cache = kv_append(cache, k, v)
    allowed = causal_mask(n, cache.k.shape[-2])
    read = grouped_query_attention(q, cache.k, cache.v, allowed=allowed)
    return join_heads(read) @ layer["Wo"], cache


@chapter.fault(
    "decoder_mask_top_left",
    "new tokens see the first keys of the cache instead of all up to their own",
    operation="decoder_attention_cached",
    story="The mask of a prefill, cut to the shape of a step.",
    made_for="decoder_step_worked",
    stays_green="decoder_cache_is_append_only",
)
def _(layer, x, cache=None, *, heads=1, rope_base=10000.0):
    _, after = decoder_attention_cached(
        layer, x, cache, heads=heads, rope_base=rope_base
    )
    n, total = x.shape[-2], after.k.shape[-2]
    q, _, _ = decoder_projections(
        layer, x, total - n + np.arange(n), heads=heads, rope_base=rope_base
    )
    allowed = np.arange(n)[:, None] >= np.arange(total)
    read = grouped_query_attention(q, after.k, after.v, allowed=allowed)
    return join_heads(read) @ layer["Wo"], after


@chapter.fault(
    "decoder_step_without_mask",
    "the tokens of one step see each other, later ones too",
    operation="decoder_attention_cached",
    story=(
        "A step of one token needs no mask, so none was written; then several tokens "
        "were fed at once."
    ),
    made_for="decoder_cached_equals_uncached",
    stays_green="decoder_step_worked",
)
def _(layer, x, cache=None, *, heads=1, rope_base=10000.0):
    _, after = decoder_attention_cached(
        layer, x, cache, heads=heads, rope_base=rope_base
    )
    n, total = x.shape[-2], after.k.shape[-2]
    q, _, _ = decoder_projections(
        layer, x, total - n + np.arange(n), heads=heads, rope_base=rope_base
    )
    read = grouped_query_attention(q, after.k, after.v)
    return join_heads(read) @ layer["Wo"], after


@chapter.fault(
    "decoder_rotates_cache_again",
    "the whole cache is rotated at every step, the old keys once more",
    operation="decoder_attention_cached",
    story="Keys are cached rotated and treated as if they were not.",
    made_for="decoder_cache_is_append_only",
    stays_green="rope_cached_positions",
)
def _(layer, x, cache=None, *, heads=1, rope_base=10000.0):
    if cache is not None and rope_base is not None:
        seen = np.arange(cache.k.shape[-2])
        cache = cache._replace(k=rope(cache.k, seen, base=rope_base))
    return decoder_attention_cached(layer, x, cache, heads=heads, rope_base=rope_base)


@chapter.fault(
    "decoder_cache_not_passed_on",
    "every chunk starts with an empty cache",
    operation="decoder_logits_cached",
    story="The new cache is returned, and the caller keeps the old one.",
    made_for="decoder_cached_equals_uncached",
    stays_green="decoder_step_worked",
)
def _(weights, tokens, *, chunks, heads=1, rope_base=10000.0, norm_eps=1e-6):
    options = {"heads": heads, "rope_base": rope_base, "norm_eps": norm_eps}
    parts = np.split(np.asarray(tokens), np.cumsum(chunks)[:-1], axis=-1)
    logits = [decoder_step(weights, new, **options)[0] for new in parts]
    return np.concatenate(logits, axis=-2)


@chapter.fault(
    "decoder_feeds_token_twice",
    "the last token of a chunk is fed again at the start of the next",
    operation="decoder_logits_cached",
    story="The token that starts the decode is in the cache of the prefill already.",
    made_for="decoder_cached_equals_uncached",
    stays_green="decoder_cache_is_append_only",
)
def _(weights, tokens, *, chunks, heads=1, rope_base=10000.0, norm_eps=1e-6):
    options = {"heads": heads, "rope_base": rope_base, "norm_eps": norm_eps}
    tokens, cache, logits, start = np.asarray(tokens), None, [], 0
    for n in chunks:
        again = 1 if start else 0
        new = tokens[..., start - again : start + n]
        part, cache = decoder_step(weights, new, cache, **options)
        logits.append(part[..., again:, :])
        start += n
    return np.concatenate(logits, axis=-2)


@chapter.fault(
    "heads_split_by_reshape",
    "tokens and heads are exchanged by a reshape instead of a transposition",
    operation="split_heads",
    story="The shapes agree, and one head or one token cannot tell.",
    made_for="decoder_future_tokens",
    stays_green="decoder_worked",
)
def _(x, heads):
    return x.reshape(*x.shape[:-2], heads, x.shape[-2], -1)


@chapter.fault(
    "heads_dealt_in_turn",
    "head h takes every so-many-th feature, from h on",
    operation="split_heads",
    story="Two layouts of one weight file; a model trained with either is consistent.",
    made_for="decoder_heads_add_up",
    stays_green="decoder_cached_equals_uncached",
)
def _(x, heads):
    parts = x.reshape(*x.shape[:-1], -1, heads)
    return np.moveaxis(parts, -1, -3)


@chapter.fault(
    "heads_joined_by_reshape",
    "heads are put together by a reshape alone",
    operation="join_heads",
    story="The transposition back is forgotten; the shape is right.",
    made_for="decoder_future_tokens",
    stays_green="decoder_worked",
)
def _(x):
    return x.reshape(*x.shape[:-3], x.shape[-2], -1)


@chapter.fault(
    "decoder_scale_of_model",
    "scores are divided by the root of the width of the model",
    operation="decoder_attention",
    story="d_model for d_head; with one head they are one number.",
    made_for="decoder_heads_add_up",
    stays_green="decoder_worked",
)
def _(layer, x, *, heads=1, rope_base=10000.0):
    n = x.shape[-2]
    q, k, v = decoder_projections(
        layer, x, np.arange(n), heads=heads, rope_base=rope_base
    )
    scale = 1.0 / np.sqrt(layer["Wq"].shape[-1])
    read = grouped_query_attention(q, k, v, allowed=causal_mask(n, n), scale=scale)
    return join_heads(read) @ layer["Wo"]


@chapter.fault(
    "decoder_rotates_before_split",
    "queries and keys are rotated before they are split into heads",
    operation="decoder_projections",
    story="Every head then turns at other frequencies; one head cannot tell.",
    made_for="decoder_heads_add_up",
    stays_green="decoder_cached_equals_uncached",
)
def _(layer, x, positions, *, heads=1, rope_base=10000.0):
    if rope_base is None:
        return decoder_projections(layer, x, positions, heads=heads, rope_base=None)
    kv_heads = heads * layer["Wk"].shape[-1] // layer["Wq"].shape[-1]
    q = rope(x @ layer["Wq"], positions, base=rope_base)
    k = rope(x @ layer["Wk"], positions, base=rope_base)
    v = x @ layer["Wv"]
    return split_heads(q, heads), split_heads(k, kv_heads), split_heads(v, kv_heads)


@chapter.fault(
    "decoder_rotates_values",
    "the values are rotated too",
    operation="decoder_projections",
    story="One fused product holds all three, and the rotation is applied to it whole.",
    made_for="decoder_rotates_queries_and_keys",
    stays_green="decoder_cached_equals_uncached",
)
def _(layer, x, positions, *, heads=1, rope_base=10000.0):
    q, k, v = decoder_projections(layer, x, positions, heads=heads, rope_base=rope_base)
    even = v.shape[-1] // 2 * 2
    if rope_base is None or even == 0:
        return q, k, v
    turned = rope(v[..., :even], positions, base=rope_base)
    return q, k, np.concatenate([turned, v[..., even:]], axis=-1)


@chapter.fault(
    "decoder_ignores_base",
    "the base of the rotation is always ten thousand",
    operation="decoder_projections",
    story="A default that hides a missing argument; newer models use larger bases.",
    made_for="decoder_rotates_queries_and_keys",
    stays_green="decoder_cached_equals_uncached",
)
def _(layer, x, positions, *, heads=1, rope_base=10000.0):
    base = None if rope_base is None else 10000.0
    return decoder_projections(layer, x, positions, heads=heads, rope_base=base)


@chapter.fault(
    "decoder_without_rotation",
    "nothing is rotated",
    operation="decoder_projections",
    story="Both paths agree without positions, and the model reads a bag of tokens.",
    made_for="decoder_order_with_rotation",
    stays_green="decoder_cached_equals_uncached",
)
def _(layer, x, positions, *, heads=1, rope_base=10000.0):
    return decoder_projections(layer, x, positions, heads=heads, rope_base=None)


@chapter.fault(
    "decoder_always_rotates",
    "the rotation cannot be switched off",
    operation="decoder_projections",
    story="A default in place of a given None; some layers of some models want none.",
    made_for="decoder_order_without_rotation",
    stays_green="decoder_worked",
)
def _(layer, x, positions, *, heads=1, rope_base=10000.0):
    base = 10000.0 if rope_base is None else rope_base
    return decoder_projections(layer, x, positions, heads=heads, rope_base=base)


@chapter.fault(
    "decoder_mlp_exchanged",
    "the matrices of the gate and of the other branch are exchanged",
    operation="decoder_mlp",
    story="One fused matrix holds both, and two conventions say which comes first.",
    made_for="decoder_worked",
    stays_green="decoder_cached_equals_uncached",
)
def _(layer, x):
    return decoder_mlp({**layer, "W_gate": layer["W_up"], "W_up": layer["W_gate"]}, x)
