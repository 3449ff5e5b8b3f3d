"""Tokens, shapes and a decoder by hand: what must hold, and how it breaks."""

from __future__ import annotations

import numpy as np

from ..ops.attention import (
    attention,
    attention_weights,
    causal_mask,
    kv_append,
    paged_positions,
)
from ..ops.decoder import join_heads, split_heads
from ..ops.decoder_trace import DecoderTrace, decoder_trace
from ..ops.layers import (
    embedding,
    layer_norm,
    linear,
    patchify,
    relu,
    rms_norm,
    swiglu,
)
from ..ops.softmax import softmax
from ._check import Inputs, Rng, nothing
from .worked import sampling
from .worked import tokens as chapter

X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])  # three tokens, their own keys
V = np.array([[1.0, 2.0], [3.0, 4.0], [4.0, 6.0]])


# ---- What is drawn ----------------------------------------------------------------


def a_table(rng: Rng, size: int) -> Inputs:
    """An embedding table, and ids of two texts; id 0 and the last id occur."""
    ids = rng.integers(0, size + 3, size=(2, size + 3))
    ids[0, :2], ids[1, -2:] = [size + 2, 0], [0, 1]
    return {"table": rng.normal(size=(size + 3, size + 1)) + 2.0, "ids": ids}


def a_layer(rng: Rng, size: int) -> Inputs:
    """Rows, a matrix that is not square, a bias."""
    return {
        "x": rng.normal(size=(2, size + 1, size + 2)),
        "W": rng.normal(size=(size + 2, size + 3)),
        "bias": rng.normal(size=size + 3) + 2.0,
    }


def an_image(rng: Rng, size: int) -> Inputs:
    """Two channels, three columns of patches of two by two; three kernels."""
    return {
        "image": rng.normal(size=(2, 2 * (size + 1), 6)),
        "kernels": rng.normal(size=(3, 2, 2, 2)),
    }


def a_read(rng: Rng, size: int) -> Inputs:
    """Queries, keys and values of one number of tokens; all widths differ."""
    n = size + 2
    return {
        "q": rng.normal(size=(n, size + 1)),
        "k": rng.normal(size=(n, size + 1)),
        "v": rng.normal(size=(n, size + 3)),
    }


def a_small_decoder(rng: Rng, size: int) -> Inputs:
    """Two heads whose keys are wider than their values; four tokens; SwiGLU or not."""
    d, d_k, d_ff = 2 * size + 2, 4 * size + 2, size + 3
    shapes = {
        "Wq": (d, d_k),
        "Wk": (d, d_k),
        "Wv": (d, d),
        "W_up": (d, d_ff),
        "W_down": (d_ff, d),
        "unembed": (d, 5),
    }
    weights = {
        name: 1.5 * rng.normal(size=shape) / np.sqrt(shape[0])
        for name, shape in shapes.items()
    }
    gate = {"W_gate": rng.normal(size=(d, d_ff))}
    x = 2.0 * rng.normal(size=(4, d))
    return {"weights": {**weights, **gate}, "x": x, "eps": 0.3}


# ---- What must hold: rows, matrices, patches --------------------------------------


@chapter.check(
    "embedding_looks_up_rows",
    "Looking up is multiplying by a row that is one at the token and zero elsewhere.",
    draw=a_table,
)
def _(table, ids):
    one_hot = (ids[..., None] == np.arange(len(table))).astype(float)
    return embedding(table, ids), np.einsum("bti,ic->btc", one_hot, table)


@chapter.check(
    "embedding_same_token_same_row",
    "A token has the same row wherever it stands.",
    draw=a_table,
)
def _(table, ids):
    rows = embedding(table, np.array([2, 0, 2, 1, 2]))
    return (rows[2], rows[4]), (rows[0], rows[0])


@chapter.check(
    "embedding_of_sentences",
    "Two sentences, one of them padded: padding has a row like any other.",
    draw=nothing,
    kind="value",
)
def _():
    table = np.array([[0.5, 0.25], [0.2, -0.1], [-0.3, 0.8]])
    want = [[[0.2, -0.1], [-0.3, 0.8]], [[-0.3, 0.8], [0.5, 0.25]]]
    return embedding(table, [[1, 2], [2, 0]]), np.array(want)


@chapter.check(
    "embedding_refuses_negative",
    "Token -1 is refused: an array would read the last row.",
    draw=nothing,
    kind="refuses",
)
def _():
    return lambda: embedding([[1.0], [2.0]], [-1]), "ids"


@chapter.check(
    "linear_worked",
    "(1, 2) before a matrix: 1 * 3 + 2 * 5 and 1 * 4 + 2 * 6.",
    draw=nothing,
    kind="value",
)
def _():
    return linear([[1, 2]], [[3, 4], [5, 6]]), np.array([[13.0, 16.0]])


@chapter.check(
    "linear_sums_over_inputs",
    "Every output is the sum over all inputs, and its own bias.",
    draw=a_layer,
)
def _(x, W, bias):
    terms = x[..., :, None] * W
    return linear(x, W, bias=bias), terms.sum(axis=-2) + bias


@chapter.check(
    "transposing_is_no_reshape",
    "Three heads of one feature are the columns of two tokens.",
    draw=nothing,
    kind="value",
)
def _():
    heads = split_heads([[1, 2, 3], [4, 5, 6]], 3)[..., 0]
    return heads, np.array([[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]])


@chapter.check(
    "patch_is_a_strided_convolution",
    "Patches before a matrix are a convolution whose stride is its size.",
    draw=an_image,
)
def _(image, kernels):
    c, height, width = image.shape
    want = [
        [(kernel * image[:, i : i + 2, j : j + 2]).sum() for kernel in kernels]
        for i in range(0, height, 2)
        for j in range(0, width, 2)
    ]
    flat = kernels.reshape(len(kernels), -1).T
    return linear(patchify(image, patch=2), flat), np.array(want)


@chapter.check(
    "patch_keeps_every_pixel",
    "Patches hold the pixels of the image, each once.",
    draw=an_image,
)
def _(image, kernels):
    return np.sort(patchify(image, patch=2), axis=None), np.sort(image, axis=None)


@chapter.check(
    "patch_worked",
    "Sixteen pixels, four patches, and what a matrix makes of them.",
    draw=nothing,
    kind="value",
)
def _():
    # The matrix adds the first and third, and the second and fourth pixel of a patch.
    patches = patchify([np.arange(1.0, 17.0).reshape(4, 4)], patch=2)
    corners = np.array([1.0, 3.0, 9.0, 11.0])[:, None]
    W = [[1, 0], [0, 1], [1, 0], [0, 1]]
    return (patches, linear(patches, W)), (
        corners + [0, 1, 4, 5],
        2 * corners + [4, 6],
    )


@chapter.check(
    "patch_refuses_a_remainder",
    "An image that patches do not fill is refused.",
    draw=nothing,
    kind="refuses",
)
def _():
    return lambda: patchify(np.zeros((1, 4, 5)), patch=2), "image"


@chapter.check(
    "layer_norm_of_equal_entries",
    "With eps above zero a row of equal entries becomes zeros.",
    draw=nothing,
    kind="value",
)
def _():
    rows = layer_norm([[2.0, 2.0], [1.0, 3.0]], eps=1e-5)
    side = 1 / np.sqrt(1 + 1e-5)
    return rows, np.array([[0.0, 0.0], [-side, side]])


@chapter.check(
    "norms_differ",
    "Layer norm and RMS norm make different rows of (1, 3).",
    draw=nothing,
    kind="differs",
)
def _():
    return layer_norm([1.0, 3.0], eps=1e-5), rms_norm([1.0, 3.0], eps=1e-5)


# ---- What must hold: masks and reads ----------------------------------------------


@chapter.check(
    "causal_weights_above_the_diagonal",
    "No query gives a weight to a later key, and its weights still sum to one.",
    draw=a_read,
)
def _(q, k, v):
    n = len(q)
    w = attention_weights(q, k, allowed=causal_mask(n, n))
    return (np.triu(w, 1), w.sum(axis=-1)), (np.zeros((n, n)), np.ones(n))


@chapter.check(
    "chunk_mask_worked",
    "Two queries behind three cached keys: the first sees four of five.",
    draw=nothing,
    kind="exact",
)
def _():
    return causal_mask(2, 5), np.array([[True] * 4 + [False], [True] * 5])


@chapter.check(
    "one_query_counts_from_the_end",
    "A query behind two cached keys does not read what it would read as the first.",
    draw=nothing,
    kind="differs",
)
def _():
    last = attention(X[2:], X, V, allowed=causal_mask(1, 3))
    return last, attention(X[2:], X, V, allowed=[[True, False, False]])


@chapter.check(
    "mask_conventions",
    "Blocked is not allowed, and minus infinity is added where a key is blocked.",
    draw=a_read,
)
def _(q, k, v):
    blocked = np.triu(np.ones((len(q), len(q)), bool), 1)
    additive = np.where(blocked, -np.inf, 0.0)
    e = np.exp(q @ k.T / np.sqrt(q.shape[-1]) + additive)
    want = e / e.sum(axis=-1, keepdims=True) @ v
    return attention(q, k, v, allowed=~blocked), want


@chapter.check(
    "pooling_leaves_padding_out",
    "A query that likes all keys alike reads the mean of those that are valid.",
    draw=nothing,
    kind="value",
)
def _():
    # (2, 0), (0, 2) and a row of padding: the mean of two rows, not of three.
    vectors = [[2.0, 0.0], [0.0, 2.0], [9.0, 9.0]]
    valid = [[True, True, False]]
    return attention([[0.0, 0.0]], vectors, vectors, allowed=valid), np.ones((1, 2))


@chapter.check(
    "values_scale_the_read",
    "Twice the values, twice the output: the weights do not look at them.",
    draw=a_read,
)
def _(q, k, v):
    return attention(q, k, 2 * v), 2 * attention(q, k, v)


@chapter.check(
    "weight_is_not_contribution",
    "A weight of .9 on .01 brings .009; a weight of .1 on 10 brings 1.",
    draw=nothing,
    kind="value",
)
def _():
    # With d_k = 4 the score is half the product: log 9 against 0, weights 9 : 1.
    q = [[2.0 * np.log(9.0), 0.0, 0.0, 0.0]]
    k = [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]]
    return attention(q, k, np.diag([0.01, 10.0])), np.array([[0.009, 1.0]])


@chapter.check(
    "paged_position_worked",
    "Blocks 7, 2 and 19 of four: the sixth token is the second of block 2.",
    draw=nothing,
    kind="exact",
)
def _():
    # Token 5 is number 1 of the table's entry 1: row 2 * 4 + 1.
    return paged_positions([7, 2, 19], 6, block_size=4), np.array(
        [28, 29, 30, 31, 8, 9]
    )


@sampling.check(
    "softmax_refuses_nan",
    "A score that is no number is refused.",
    draw=nothing,
    kind="refuses",
)
def _():
    return lambda: softmax([np.nan, 0.0]), "x"


@sampling.check(
    "softmax_refuses_infinity",
    "A score of plus infinity is refused; minus infinity is a mask.",
    draw=nothing,
    kind="refuses",
)
def _():
    return lambda: softmax([np.inf, 0.0]), "x"


# ---- What must hold: a decoder by hand --------------------------------------------


@chapter.check(
    "decoder_by_hand",
    "Two positions, one layer: every probability has a closed form.",
    draw=nothing,
    kind="value",
)
def _():
    # Rows of two that are centred are (-t, t); the norm makes them (-s, s) with
    # s = t / sqrt(t^2 + eps). (1, 0) and (0, 2) have t = -1/2 and 1: rows (a, -a) and
    # (-b, b). The second query scores -2ab / root 2 and 2bb / root 2, weighs the second
    # value by p and reads (-c, c), c = p b - (1 - p) a. The sum (-c, 2 + c) has
    # t = 1 + c. The layer adds (0, n / 2), so that t = 1 + c + n / 4, and the last norm
    # gives (-f, f). The logits are -f, f and 3 f / 2.
    def norm(t):
        return t / np.sqrt(t**2 + 1e-5)

    a, b = norm(0.5), norm(1.0)
    p = 1 / (1 + np.exp(-(2 * b * b + 2 * a * b) / np.sqrt(2)))
    c = p * b - (1 - p) * a
    f = norm(1 + c + norm(1 + c) / 4)
    e = np.exp([-f, f, 1.5 * f])
    eye = np.eye(2)
    weights = dict.fromkeys(("Wq", "Wk", "Wv", "W_up"), eye)
    weights |= {"W_down": eye / 2, "unembed": np.array([[1, 0, -1], [0, 1, 0.5]])}
    t = decoder_trace(weights, [[1.0, 0.0], [0.0, 2.0]])
    got = (t.norm1[1], t.weights[0, 1], t.residual1[1], t.logits[-1])
    want = ([-b, b], [1 - p, p], [-c, 2 + c], [-f, f, 1.5 * f])
    return (*got, softmax(t.logits[-1])), (*map(np.array, want), e / e.sum())


@chapter.check(
    "trace_cached_equals_whole",
    "Fed in two pieces through the cache it computes what it computes at once.",
    draw=a_small_decoder,
)
def _(weights, x, eps):
    whole, got = decoder_trace(weights, x, heads=2), []
    for cut in (1, 2, 3):
        first = decoder_trace(weights, x[:cut], heads=2)
        then = decoder_trace(weights, x[cut:], heads=2, cache=first.cache)
        got.append((np.vstack([first.y, then.y]), then.cache.k, then.cache.v))
    return got, [(whole.y, whole.k, whole.v)] * 3


@chapter.check(
    "trace_later_tokens",
    "Changing later tokens leaves the first position as it was.",
    draw=a_small_decoder,
)
def _(weights, x, eps):
    other = np.concatenate([x[:1], 3 - 2 * x[1:]])
    first, changed = (decoder_trace(weights, part, heads=2) for part in (x, other))
    return (changed.y[0], changed.logits[0]), (first.y[0], first.logits[0])


@chapter.check(
    "trace_weights_sum_to_one",
    "In both heads the weights of every position sum to one.",
    draw=a_small_decoder,
)
def _(weights, x, eps):
    return decoder_trace(weights, x, heads=2).weights.sum(axis=-1), np.ones((2, 4))


@chapter.check(
    "trace_heads_are_attention",
    "Each head is causal attention on its own columns.",
    draw=a_small_decoder,
)
def _(weights, x, eps):
    t, u = decoder_trace(weights, x, heads=2, eps=eps), _normed(x, eps)
    want = []
    for h in range(2):
        q, k, v = (
            np.split(u @ weights[name], 2, axis=-1)[h] for name in ("Wq", "Wk", "Wv")
        )
        e = np.tril(np.exp(q @ k.T / np.sqrt(q.shape[-1])))
        want.append(e / e.sum(axis=-1, keepdims=True) @ v)
    return (t.head_reads, t.read), (np.stack(want), np.concatenate(want, axis=-1))


@chapter.check(
    "trace_residual_sums",
    "What each half reads and makes is added to the stream, nothing is replaced.",
    draw=a_small_decoder,
)
def _(weights, x, eps):
    t = decoder_trace(weights, x, heads=2)
    return (t.y - t.mlp - t.read, t.residual1 - t.read), (x, x)


@chapter.check(
    "trace_last_norm",
    "The logits read the stream normalised once more.",
    draw=a_small_decoder,
)
def _(weights, x, eps):
    t = decoder_trace(weights, x, heads=2, eps=eps)
    return t.logits, _normed(t.y, eps) @ weights["unembed"]


@chapter.check(
    "trace_feed_forward",
    "The second half reads the sum, normalised: a product of two branches, or relu.",
    draw=a_small_decoder,
)
def _(weights, x, eps):
    plain = {name: W for name, W in weights.items() if name != "W_gate"}
    gated, t = (decoder_trace(w, x, heads=2, eps=eps) for w in (weights, plain))
    n = _normed(gated.residual1, eps)
    g, up = n @ weights["W_gate"], n @ weights["W_up"]
    want = (g / (1 + np.exp(-g)) * up, np.where(up > 0, up, 0.0))
    return (gated.mlp, t.mlp), tuple(inner @ weights["W_down"] for inner in want)


@chapter.check(
    "trace_one_layer_reads_a_bag",
    "Without positions, the last token of one layer reads the others in any order.",
    draw=a_small_decoder,
)
def _(weights, x, eps):
    turned = np.concatenate([x[2::-1], x[3:]])
    got, want = (decoder_trace(weights, part, heads=2, eps=eps) for part in (turned, x))
    return (got.y[-1], got.logits[-1]), (want.y[-1], want.logits[-1])


@chapter.check(
    "trace_second_layer_knows_the_order",
    "A second layer on the first knows their order, and only the mask can tell it.",
    draw=a_small_decoder,
    kind="differs",
)
def _(weights, x, eps):
    turned = np.concatenate([x[2::-1], x[3:]])
    got, want = (
        decoder_trace(weights, decoder_trace(weights, part, heads=2).y, heads=2)
        for part in (turned, x)
    )
    return got.logits[-1], want.logits[-1]


def _normed(x, eps):
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + eps)


# ---- How rows, matrices and patches break -----------------------------------------


@chapter.fault(
    "embedding_counts_from_one",
    "the row before the token's is read",
    operation="embedding",
    story="Ids that count from 1 in one file and from 0 in the other.",
    made_for="embedding_looks_up_rows",
    stays_green="embedding_same_token_same_row",
)
def _(table, ids):
    return np.take(table, np.asarray(ids) - 1, axis=-2)


@chapter.fault(
    "embedding_times_root_of_width",
    "rows are multiplied by the root of their width",
    operation="embedding",
    story="The first Transformer does so; most of its successors do not.",
    made_for="embedding_of_sentences",
    stays_green="embedding_same_token_same_row",
)
def _(table, ids):
    return embedding(table, ids) * np.sqrt(table.shape[-1])


@chapter.fault(
    "embedding_adds_positions",
    "the position is added inside the look-up",
    operation="embedding",
    story="Two tables fused into one layer: a token then depends on where it stands.",
    made_for="embedding_same_token_same_row",
    stays_green="linear_worked",
)
def _(table, ids):
    rows = embedding(table, ids)
    return rows + np.arange(rows.shape[-2])[:, None]


@chapter.fault(
    "embedding_padding_is_zero",
    "token 0 has the row zero, whatever the table says",
    operation="embedding",
    story="padding_idx of a library, which fixes the row only where it is created.",
    made_for="embedding_of_sentences",
    stays_green="embedding_same_token_same_row",
)
def _(table, ids):
    return embedding(table, ids) * (np.asarray(ids) != 0)[..., None]


@chapter.fault(
    "embedding_wraps_around",
    "a negative token reads from the end",
    operation="embedding",
    story="Indexing does it unasked, where padding was marked by -1.",
    made_for="embedding_refuses_negative",
    stays_green="embedding_looks_up_rows",
    unguarded=True,
)
def _(table, ids):
    return np.asarray(table)[np.asarray(ids)]


@chapter.fault(
    "linear_by_the_transpose",
    "the matrix is transposed",
    operation="linear",
    story="Libraries store (out, in); a square matrix keeps quiet about it.",
    made_for="linear_worked",
    stays_green="embedding_looks_up_rows",
)
def _(x, W, *, bias=None):
    y = np.asarray(x, float) @ np.asarray(W, float).T
    return y if bias is None else y + bias


@chapter.fault(
    "linear_without_bias",
    "the bias is not added",
    operation="linear",
    story="A layer built with bias=False for a checkpoint that has one.",
    made_for="linear_sums_over_inputs",
    stays_green="linear_worked",
)
def _(x, W, *, bias=None):
    return linear(x, W)


@chapter.fault(
    "patch_channel_last",
    "the channels vary fastest inside a patch",
    operation="patchify",
    story="Reported against three ports: one channel, which tests have, cannot tell.",
    made_for="patch_is_a_strided_convolution",
    stays_green="patch_worked",
)
def _(image, *, patch):
    c = image.shape[-3]
    rows = patchify(image, patch=patch)
    parts = rows.reshape(*rows.shape[:-1], c, patch * patch)
    return np.swapaxes(parts, -1, -2).reshape(rows.shape)


@chapter.fault(
    "patch_by_reshape",
    "the image is reshaped into rows of the length of a patch",
    operation="patchify",
    story="The shape is right, and every pixel is there.",
    made_for="patch_worked",
    stays_green="patch_keeps_every_pixel",
)
def _(image, *, patch):
    c = image.shape[-3]
    return image.reshape(*image.shape[:-3], -1, c * patch * patch)


@chapter.fault(
    "patch_columns_first",
    "patches are numbered from top to bottom first",
    operation="patchify",
    story="Width and height exchanged in a loop; position embeddings then turn.",
    made_for="patch_is_a_strided_convolution",
    stays_green="patch_keeps_every_pixel",
)
def _(image, *, patch):
    rows, columns = (n // patch for n in image.shape[-2:])
    p = patchify(image, patch=patch)
    grid = p.reshape(*p.shape[:-2], rows, columns, p.shape[-1])
    return np.swapaxes(grid, -2, -3).reshape(p.shape)


@chapter.fault(
    "patch_overlapping_rows",
    "the second half of the patches repeats the first",
    operation="patchify",
    story="A start index that is not multiplied by the size of a patch.",
    made_for="patch_keeps_every_pixel",
    stays_green="linear_worked",
)
def _(image, *, patch):
    p = patchify(image, patch=patch)
    half = p.shape[-2] // 2
    return np.concatenate([p[..., :half, :], p[..., : p.shape[-2] - half, :]], axis=-2)


@chapter.fault(
    "patch_cuts_the_rest_off",
    "rows and columns that fill no patch are dropped",
    operation="patchify",
    story="A convolution does so without a word: the right edge is never seen.",
    made_for="patch_refuses_a_remainder",
    stays_green="patch_worked",
    unguarded=True,
)
def _(image, *, patch):
    height, width = (n - n % patch for n in np.shape(image)[-2:])
    return patchify(np.asarray(image)[..., :height, :width], patch=patch)


@sampling.fault(
    "softmax_takes_anything",
    "scores that are no numbers are taken for the smallest number",
    operation="softmax",
    story="nan_to_num before every softmax: the run survives, the cause is hidden.",
    made_for="softmax_refuses_nan",
    stays_green="softmax_sums_to_one",
    unguarded=True,
)
def _(x, axis=-1):
    x = np.asarray(x)
    bad = np.isnan(x) | (np.real(x) == np.inf)
    if not np.any(bad):
        return softmax(x, axis)
    return softmax(np.where(bad, -1e30, x), axis)


@chapter.fault(
    "causal_mask_forgets_offset",
    "several queries see as if they stood at the start",
    operation="causal_mask",
    story="tril of a matrix that is not square, as one framework defines it.",
    made_for="one_query_counts_from_the_end",
    stays_green="causal_weights_above_the_diagonal",
)
def _(n_queries, n_keys, *, offset=None, window=None):
    i, j = np.arange(n_queries)[:, None], np.arange(n_keys)
    allowed = j <= i
    return allowed if window is None else allowed & (j > i - window)


# ---- How a decoder by hand breaks -------------------------------------------------


def _trace(
    weights,
    x,
    *,
    heads=1,
    cache=None,
    eps=1e-5,
    causal=True,
    normalised=True,
    d_scale=None,
    residual=True,
    last_norm=True,
    first_norm=True,
    second_norm=True,
    slope=0.0,
):
    """The reference, with what may be wrong as options."""
    u = layer_norm(x, eps=eps) if first_norm else x
    q, k, v = (linear(u, weights[name]) for name in ("Wq", "Wk", "Wv"))
    cache = kv_append(cache, k, v)
    Q, K, values = (split_heads(part, heads) for part in (q, cache.k, cache.v))
    n, m = Q.shape[-2], K.shape[-2]
    allowed = causal_mask(n, m) if causal else np.ones((n, m), bool)
    scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(d_scale or Q.shape[-1])
    scores -= slope * np.arange(m)[::-1]
    if normalised:
        scores = np.where(allowed, scores, -np.inf)
        P = softmax(scores)
    else:
        P = softmax(scores) * allowed
    reads = P @ values
    read = join_heads(reads)
    r = x + read if residual else read
    n2 = layer_norm(r, eps=eps) if second_norm else r
    up = linear(n2, weights["W_up"])
    gated = "W_gate" in weights
    inner = swiglu(linear(n2, weights["W_gate"]), up) if gated else relu(up)
    mlp = linear(inner, weights["W_down"])
    y = r + mlp if residual else mlp
    last = layer_norm(y, eps=eps) if last_norm else y
    logits = linear(last, weights["unembed"])
    return DecoderTrace(
        x, u, q, k, v, scores, P, reads, read, r, n2, mlp, y, last, logits, cache
    )


@chapter.fault(
    "trace_without_mask",
    "every token sees all tokens",
    operation="decoder_trace",
    story="A mask that was built and not passed; training then looks wonderful.",
    made_for="trace_later_tokens",
    stays_green="trace_weights_sum_to_one",
)
def _(weights, x, **options):
    return _trace(weights, x, causal=False, **options)


@chapter.fault(
    "trace_masks_after_softmax",
    "weights of later tokens are set to zero, and nothing is divided again",
    operation="decoder_trace",
    story="The mask multiplies where it should be added before the exponential.",
    made_for="trace_weights_sum_to_one",
    stays_green="trace_residual_sums",
)
def _(weights, x, **options):
    return _trace(weights, x, normalised=False, **options)


@chapter.fault(
    "trace_forgets_the_cache",
    "the cache that is handed over is not read",
    operation="decoder_trace",
    story="A parameter with a default: everything runs, the context is gone.",
    made_for="trace_cached_equals_whole",
    stays_green="decoder_by_hand",
)
def _(weights, x, *, heads=1, cache=None, eps=1e-5):
    return decoder_trace(weights, x, heads=heads, eps=eps)


@chapter.fault(
    "trace_scale_of_all_heads",
    "scores are divided by the root of the width of all heads together",
    operation="decoder_trace",
    story="One head cannot tell.",
    made_for="trace_heads_are_attention",
    stays_green="decoder_by_hand",
)
def _(weights, x, **options):
    return _trace(weights, x, d_scale=weights["Wq"].shape[-1], **options)


@chapter.fault(
    "trace_without_residual",
    "each half replaces the stream",
    operation="decoder_trace",
    story="A plus sign lost; the cache agrees with the whole all the same.",
    made_for="trace_residual_sums",
    stays_green="trace_cached_equals_whole",
)
def _(weights, x, **options):
    return _trace(weights, x, residual=False, **options)


@chapter.fault(
    "trace_without_last_norm",
    "the logits read the stream as it is",
    operation="decoder_trace",
    story="The norm outside the loop over layers is the one that is forgotten.",
    made_for="trace_last_norm",
    stays_green="trace_later_tokens",
)
def _(weights, x, **options):
    return _trace(weights, x, last_norm=False, **options)


@chapter.fault(
    "trace_reads_the_raw_stream",
    "queries, keys and values come from the stream before its norm",
    operation="decoder_trace",
    story="Post-norm weights in a pre-norm block, or the other way round.",
    made_for="decoder_by_hand",
    stays_green="trace_cached_equals_whole",
)
def _(weights, x, **options):
    return _trace(weights, x, first_norm=False, **options)


@chapter.fault(
    "trace_second_half_reads_the_raw_sum",
    "the feed-forward half reads the stream before its norm",
    operation="decoder_trace",
    story="One norm a layer instead of two, as parallel blocks have it.",
    made_for="trace_feed_forward",
    stays_green="trace_cached_equals_whole",
)
def _(weights, x, **options):
    return _trace(weights, x, second_norm=False, **options)


@chapter.fault(
    "trace_prefers_near_keys",
    "a key's score falls with its distance to the end",
    operation="decoder_trace",
    story="The bias of one family of models left on in a decoder for another.",
    made_for="trace_one_layer_reads_a_bag",
    stays_green="trace_cached_equals_whole",
)
def _(weights, x, **options):
    return _trace(weights, x, slope=0.5, **options)
