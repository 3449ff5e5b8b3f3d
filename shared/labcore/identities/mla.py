"""Absorbing the MLA projections: what must hold, and how it breaks."""

from __future__ import annotations

import numpy as np

from ..ops.attention import attention
from ..ops.mla import (
    MLACost,
    MLARead,
    mla_absorbed,
    mla_cache_elements,
    mla_explicit,
    mla_explicit_cache_elements,
    mla_multiplications,
)
from ..ops.rope import rope
from ..ops.softmax import softmax
from ._check import Chapter, Inputs, Rng, nothing

chapter = Chapter("absorbing-mla", "Absorbing the MLA projections", "The identities")


# ---- What is drawn ----------------------------------------------------------------


def heads(rng: Rng, size: int) -> Inputs:
    """Two heads on one latent; no two sizes are the same."""
    n, n_q, rank = size + 4, size + 1, size + 2
    d_nope, d_rope, d_v = size + 3, 2, size + 5
    return {
        "q_nope": rng.normal(size=(2, n_q, d_nope)),
        "q_rope": rng.normal(size=(2, n_q, d_rope)),
        "c_kv": rng.normal(size=(n, rank)),
        "k_rope": rng.normal(size=(n, d_rope)),
        "w_uk": rng.normal(size=(2, d_nope, rank)),
        "w_uv": rng.normal(size=(2, d_v, rank)),
    }


def turned(rng: Rng, size: int) -> Inputs:
    """A query behind four latents, and an up-projection; all widths are even."""
    d_nope, rank = 2 * (size + 1), 2 * (size + 2)
    return {
        "q": rng.normal(size=d_nope),
        "c_kv": rng.normal(size=(4, rank)),
        "w_uk": rng.normal(size=(d_nope, rank)),
        "positions": 2 * np.arange(4),
    }


def counts(rng: Rng, size: int) -> Inputs:
    """Sizes of a read, no two the same; twice the rank is the width of a head."""
    d_nope, kv_rank = 2 * size + 3, 2 * size + 5
    return {
        "n_keys": 3 * size + 5,
        "n_heads": size + 1,
        "d_nope": d_nope,
        "d_rope": 2,
        "d_v": 2 * kv_rank - d_nope,
        "kv_rank": kv_rank,
        "n_queries": size,
    }


WORKED = {
    "q_nope": [[1.0, 2.0]],
    "q_rope": [[3.0, -1.0]],
    "c_kv": [[1.0, 0.0, 1.0], [0.0, 2.0, 1.0]],
    "k_rope": [[1.0, 0.0], [0.0, 1.0]],
    "w_uk": [[1.0, 0.0, 2.0], [0.0, 1.0, -1.0]],
    "w_uv": [[2.0, -1.0, 0.0], [1.0, 0.0, 1.0]],
}


# ---- What must hold ---------------------------------------------------------------


@chapter.check(
    "mla_joint_score_and_projection",
    "Absorbed projections give the read over explicit keys and values.",
    draw=heads,
)
def _(**inputs):
    return mla_absorbed(**inputs), mla_explicit(**inputs)


@chapter.check(
    "mla_by_loops",
    "Head by head and key by key, the explicit form is what its formula says.",
    draw=heads,
)
def _(q_nope, q_rope, c_kv, k_rope, w_uk, w_uv):
    output = np.zeros((*q_nope.shape[:2], w_uv.shape[1]))
    for h in range(q_nope.shape[0]):
        for i in range(q_nope.shape[1]):
            scores = [
                (w_uk[h] @ c) @ q_nope[h, i] + r @ q_rope[h, i]
                for c, r in zip(c_kv, k_rope, strict=True)
            ]
            e = np.exp(np.array(scores) / np.sqrt(q_nope.shape[2] + q_rope.shape[2]))
            values = [w_uv[h] @ c for c in c_kv]
            output[h, i] = sum(w * v for w, v in zip(e / e.sum(), values, strict=True))
    return mla_explicit(q_nope, q_rope, c_kv, k_rope, w_uk, w_uv).output, output


@chapter.check(
    "mla_worked",
    "Scores 4 and 3, scale one half: the logistic of one half decides.",
    draw=nothing,
    kind="value",
)
def _():
    # q W_UK = (1, 2, 0). Scores: (1 + 0 + 0) + 3 = 4 and (0 + 4 + 0) - 1 = 3.
    # Weights at scale 1/2: s = 1/(1 + e^-.5) and 1 - s. Values (2, 2) and (-2, 1).
    s = 0.6224593312018546
    want = MLARead(
        np.array([[4 * s - 2, s + 1]]),
        np.array([[s, 1 - s]]),
        np.array([[4.0, 3.0]]),
    )
    return (mla_absorbed(**WORKED), mla_explicit(**WORKED)), (want, want)


@chapter.check(
    "mla_output_in_hull",
    "With values that are all the same, the output is that value.",
    draw=heads,
)
def _(c_kv, w_uv, **inputs):
    same = np.broadcast_to(c_kv[:1], c_kv.shape)
    want = np.broadcast_to(
        w_uv @ c_kv[0], (inputs["q_nope"].shape[1], *w_uv.shape[:2])
    ).swapaxes(0, 1)
    return mla_absorbed(c_kv=same, w_uv=w_uv, **inputs).output, want


@chapter.check(
    "mla_one_softmax",
    "Two softmaxes, one a score term, read something else.",
    draw=heads,
    kind="differs",
)
def _(q_nope, q_rope, c_kv, k_rope, w_uk, w_uv):
    scale = 1 / np.sqrt(q_nope.shape[-1] + q_rope.shape[-1])
    content = softmax(scale * (q_nope @ w_uk @ c_kv.T))
    rotary = softmax(scale * (q_rope @ k_rope.T))
    values = c_kv @ np.swapaxes(w_uv, -1, -2)
    joint = mla_explicit(q_nope, q_rope, c_kv, k_rope, w_uk, w_uv)
    return joint.output, (content + rotary) / 2 @ values


@chapter.check(
    "mla_cache_count",
    "Rank 512 and 64 rotary entries in 60 layers: 34560 numbers a token.",
    draw=nothing,
    kind="exact",
)
def _():
    # 60 * (512 + 64). DeepSeek-V2 says: as many as 2.25 key-value heads of 128.
    heads = mla_cache_elements(512, 64) / (2 * 128)
    return (mla_cache_elements(512, 64, layers=60), heads), (34560, 2.25)


@chapter.check(
    "mla_identity_projections",
    "With identities as projections, the read is attention over the latent.",
    draw=heads,
)
def _(q_nope, q_rope, c_kv, k_rope, w_uk, w_uv):
    q_nope = q_nope[..., : c_kv.shape[-1]]  # the rank, which becomes the head's width
    one = np.eye(c_kv.shape[-1])
    got = mla_absorbed(q_nope, q_rope, c_kv, k_rope, one, one).output
    q = np.concatenate([q_nope, q_rope], axis=-1)
    return got, attention(q, np.concatenate([c_kv, k_rope], axis=-1), c_kv)


@chapter.check(
    "mla_rotation_in_between",
    "A rotation between query and up-projection cannot move to the latent.",
    draw=turned,
    kind="differs",
)
def _(q, c_kv, w_uk, positions):
    turned_query = rope(q, 9)
    turned_keys = rope(c_kv @ w_uk.T, positions) @ turned_query
    turned_latents = rope(c_kv, positions) @ (turned_query @ w_uk)
    return turned_latents, turned_keys


@chapter.check(
    "mla_explicit_cache_by_arrays",
    "The explicit cache holds what the arrays of one token hold.",
    draw=heads,
    kind="exact",
)
def _(q_nope, q_rope, c_kv, k_rope, w_uk, w_uv):
    k = c_kv[:1] @ np.swapaxes(w_uk, -1, -2)  # a row for every head
    v = c_kv[:1] @ np.swapaxes(w_uv, -1, -2)
    (n_heads, d_nope), d_rope, d_v = w_uk.shape[:2], k_rope.shape[-1], w_uv.shape[-2]
    got = mla_explicit_cache_elements(n_heads, d_nope, d_rope, d_v, layers=3)
    return got, 3 * (k.size + v.size + k_rope[:1].size)


@chapter.check(
    "mla_cache_ratio",
    "128 heads of 128 against rank 512, with 64 rotary entries: 57 times less.",
    draw=nothing,
    kind="exact",
)
def _():
    # 128 * (128 + 128) + 64 = 32832 = 57 * 576
    explicit = mla_explicit_cache_elements(128, 128, 64, 128)
    return (explicit, explicit / mla_cache_elements(512, 64)), (32832, 57.0)


@chapter.check(
    "mla_multiplications_counted",
    "Counted product by product while each path computes the same output.",
    draw=heads,
)
def _(q_nope, q_rope, c_kv, k_rope, w_uk, w_uv):
    n_q, n = q_nope.shape[1], len(c_kv)
    scale = 1 / np.sqrt(q_nope.shape[-1] + q_rope.shape[-1])
    cached, projected, absorbed = _Counted(), _Counted(), _Counted()
    w_k, w_v = np.swapaxes(w_uk, -1, -2), np.swapaxes(w_uv, -1, -2)

    def read(x, keys, values, q):
        scores = x.product(q, np.swapaxes(keys, -1, -2))
        rotary = x.product(q_rope, np.broadcast_to(k_rope.T, (2, *k_rope.T.shape)))
        return x.product(softmax(scale * (scores + rotary)), values)

    old, new, all_rows = (
        np.broadcast_to(c, (2, *c.shape)) for c in (c_kv[:-n_q], c_kv[-n_q:], c_kv)
    )
    keys = np.concatenate([old @ w_k, cached.product(new, w_k)], axis=1)
    values = np.concatenate([old @ w_v, cached.product(new, w_v)], axis=1)
    outputs = [read(cached, keys, values, q_nope)]
    keys, values = projected.product(all_rows, w_k), projected.product(all_rows, w_v)
    outputs.append(read(projected, keys, values, q_nope))
    latent = read(absorbed, all_rows, all_rows, absorbed.product(q_nope, w_uk))
    outputs.append(absorbed.product(latent, w_v))
    got = mla_multiplications(
        n, 2, w_uk.shape[1], k_rope.shape[1], w_uv.shape[1], c_kv.shape[1],
        n_queries=n_q,
    )  # fmt: skip
    want = MLACost(cached.count, projected.count, absorbed.count)
    explicit = mla_explicit(q_nope, q_rope, c_kv, k_rope, w_uk, w_uv).output
    return (got, *outputs), (want, explicit, explicit, explicit)


@chapter.check(
    "mla_equal_cost",
    "If the rank is the mean of both head widths, absorbing costs no product more.",
    draw=counts,
    kind="exact",
)
def _(**sizes):
    cost = mla_multiplications(**sizes)
    return cost.absorbed, cost.cached


@chapter.check(
    "mla_masked",
    "Behind a causal mask both paths still agree, and the first row reads one value.",
    draw=heads,
)
def _(q_nope, q_rope, c_kv, k_rope, w_uk, w_uv):
    n_q = q_nope.shape[1]
    args = (q_nope, q_rope, c_kv[:n_q], k_rope[:n_q], w_uk, w_uv)
    allowed = np.tril(np.ones((n_q, n_q), dtype=bool))
    absorbed = mla_absorbed(*args, allowed=allowed).output
    explicit = mla_explicit(*args, allowed=allowed).output
    return (absorbed, absorbed[:, 0]), (explicit, w_uv @ c_kv[0])


@chapter.check(
    "mla_refuses_ranks",
    "A latent of another rank than the projection is refused.",
    draw=nothing,
    kind="refuses",
)
def _():
    wrong = {**WORKED, "c_kv": [[1.0, 0.0], [0.0, 2.0]]}
    return lambda: mla_absorbed(**wrong), "rank"


class _Counted:
    """Products of matrices, with the multiplications that they take."""

    def __init__(self) -> None:
        self.count = 0

    def product(self, a, b):
        self.count += a.size * b.shape[-1]
        return a @ b


@chapter.check(
    "mla_text_by_text",
    "A batch of texts, each with its own latent, is read text by text.",
    draw=heads,
)
def _(q_nope, q_rope, c_kv, k_rope, w_uk, w_uv):
    latents = np.stack([c_kv, c_kv[::-1]]), np.stack([k_rope, k_rope + 1.0])
    want = [
        mla_explicit(q_nope[i], q_rope[i], c, r, w_uk[i], w_uv[i])
        for i, (c, r) in enumerate(zip(*latents, strict=True))
    ]
    together = MLARead(*(np.stack(parts) for parts in zip(*want, strict=True)))
    args = (q_nope, q_rope, *latents, w_uk, w_uv)
    return (mla_explicit(*args), mla_absorbed(*args)), (together, together)


# ---- How it breaks ----------------------------------------------------------------


def _read(q_nope, q_rope, c_kv, k_rope, w_uk, w_uv, *, width, rotary=1.0):
    scores = q_nope @ w_uk @ c_kv.swapaxes(-1, -2)
    scores = scores + rotary * (q_rope @ k_rope.swapaxes(-1, -2))
    return scores, scores / float(np.sqrt(width))


def _finished(scores_and_scaled, c_kv, w_uv, allowed):
    scores, scaled = scores_and_scaled
    masked = scaled if allowed is None else np.where(allowed, scaled, -np.inf)
    weights = softmax(masked)
    return MLARead((weights @ c_kv) @ w_uv.swapaxes(-1, -2), weights, scores)


@chapter.fault(
    "mla_scale_from_rank",
    "the scale is taken from the rank of the latent",
    operation="mla_absorbed",
    story=(
        "The absorbed query has as many entries as the rank, and attention divides by "
        "the root of what it is given."
    ),
    made_for="mla_worked",
    stays_green="mla_identity_projections",
)
def _(q_nope, q_rope, c_kv, k_rope, w_uk, w_uv, *, allowed=None):
    width = c_kv.shape[-1] + q_rope.shape[-1] + 0.0
    both = _read(q_nope, q_rope, c_kv, k_rope, w_uk, w_uv, width=width)
    return _finished(both, c_kv, w_uv, allowed)


@chapter.fault(
    "mla_scale_without_rotary",
    "the scale forgets the rotary entries",
    operation="mla_absorbed",
    story=(
        "1/sqrt(d_nope): the rotary part was added to the scores and not to the width."
    ),
    made_for="mla_worked",
    stays_green="mla_output_in_hull",
)
def _(q_nope, q_rope, c_kv, k_rope, w_uk, w_uv, *, allowed=None):
    both = _read(q_nope, q_rope, c_kv, k_rope, w_uk, w_uv, width=q_nope.shape[-1])
    return _finished(both, c_kv, w_uv, allowed)


@chapter.fault(
    "mla_rotary_dropped",
    "the rotary term is left out of the scores",
    operation="mla_absorbed",
    story="What is left when the absorbed path is derived without RoPE.",
    made_for="mla_joint_score_and_projection",
    stays_green="mla_output_in_hull",
)
def _(q_nope, q_rope, c_kv, k_rope, w_uk, w_uv, *, allowed=None):
    width = q_nope.shape[-1] + q_rope.shape[-1]
    both = _read(q_nope, q_rope, c_kv, k_rope, w_uk, w_uv, width=width, rotary=0.0)
    return _finished(both, c_kv, w_uv, allowed)


@chapter.fault(
    "mla_separate_softmaxes",
    "each score term has a softmax of its own",
    operation="mla_explicit",
    story=(
        "Named by the source article: two attentions averaged are not one over a sum."
    ),
    made_for="mla_one_softmax",
    stays_green="mla_output_in_hull",
)
def _(q_nope, q_rope, c_kv, k_rope, w_uk, w_uv, *, allowed=None):
    width = q_nope.shape[-1] + q_rope.shape[-1]
    content, _ = _read(
        q_nope, q_rope, c_kv, k_rope, w_uk, w_uv, width=width, rotary=0.0
    )
    rotary = q_rope @ k_rope.swapaxes(-1, -2)
    parts = [
        _finished((s, s / float(np.sqrt(width))), c_kv, w_uv, allowed)
        for s in (content, rotary)
    ]
    weights = (parts[0].weights + parts[1].weights) / 2
    output = (weights @ c_kv) @ w_uv.swapaxes(-1, -2)
    return MLARead(output, weights, content + rotary)


@chapter.fault(
    "mla_both_scales_from_rank",
    "the explicit form takes its scale from the rank",
    operation="mla_explicit",
    story=(
        "A shared helper for the scale: both paths wrong together agree with each "
        "other."
    ),
    made_for="mla_by_loops",
    stays_green="mla_output_in_hull",
)
def _(q_nope, q_rope, c_kv, k_rope, w_uk, w_uv, *, allowed=None):
    width = c_kv.shape[-1] + q_rope.shape[-1] + 0.0
    both = _read(q_nope, q_rope, c_kv, k_rope, w_uk, w_uv, width=width)
    return _finished(both, c_kv, w_uv, allowed)


@chapter.fault(
    "mla_output_not_normalised",
    "the weights that read the latent are exponentials, not divided by their sum",
    operation="mla_absorbed",
    story="An absorbed kernel that leaves the division to a step which is not there.",
    made_for="mla_output_in_hull",
    stays_green="mla_by_loops",
)
def _(q_nope, q_rope, c_kv, k_rope, w_uk, w_uv, *, allowed=None):
    done = mla_absorbed(q_nope, q_rope, c_kv, k_rope, w_uk, w_uv, allowed=allowed)
    return done._replace(output=2.0 * done.output)


@chapter.fault(
    "mla_cache_counts_heads",
    "keys and values are both counted for the latent",
    operation="mla_cache_elements",
    story="The factor 2 of an ordinary cache: the latent serves both.",
    made_for="mla_cache_count",
    stays_green="mla_worked",
)
def _(kv_rank, d_rope, *, layers=1):
    return 2 * (kv_rank + d_rope) * layers


@chapter.fault(
    "mla_explicit_cache_rotary_by_head",
    "the rotary key is counted once for every head",
    operation="mla_explicit_cache_elements",
    story=(
        "True of code that copies the rotary key to all heads before it caches; the "
        "formula needs it once."
    ),
    made_for="mla_explicit_cache_by_arrays",
    stays_green="mla_cache_count",
)
def _(n_heads, d_nope, d_rope, d_v, *, layers=1):
    return n_heads * (d_nope + d_rope + d_v) * layers


@chapter.fault(
    "mla_explicit_cache_keys_only",
    "the values are not counted",
    operation="mla_explicit_cache_elements",
    story="The latent serves both; ordinary keys do not.",
    made_for="mla_cache_ratio",
    stays_green="mla_cache_count",
)
def _(n_heads, d_nope, d_rope, d_v, *, layers=1):
    return (n_heads * d_nope + d_rope) * layers


@chapter.fault(
    "mla_explicit_cache_one_layer",
    "the layers are forgotten",
    operation="mla_explicit_cache_elements",
    story="One layer's cache compared with a whole model's.",
    made_for="mla_explicit_cache_by_arrays",
    stays_green="mla_cache_ratio",
)
def _(n_heads, d_nope, d_rope, d_v, *, layers=1):
    return n_heads * (d_nope + d_v) + d_rope


@chapter.fault(
    "mla_absorbed_counted_as_head",
    "the absorbed read is counted at the width of a head",
    operation="mla_multiplications",
    story=(
        "'The same attention with a smaller cache': absorbed, every head reads vectors "
        "as long as the rank."
    ),
    made_for="mla_multiplications_counted",
    stays_green="mla_equal_cost",
)
def _(n_keys, n_heads, d_nope, d_rope, d_v, kv_rank, *, n_queries=1):
    cost = mla_multiplications(
        n_keys, n_heads, d_nope, d_rope, d_v, kv_rank, n_queries=n_queries
    )
    return cost._replace(absorbed=cost.cached)


@chapter.fault(
    "mla_absorbed_value_at_head",
    "the latent is read once for the scores and never for the output",
    operation="mla_multiplications",
    story="The factor 2 forgotten: the latent stands for the key and for the value.",
    made_for="mla_equal_cost",
    stays_green="mla_cache_ratio",
)
def _(n_keys, n_heads, d_nope, d_rope, d_v, kv_rank, *, n_queries=1):
    cost = mla_multiplications(
        n_keys, n_heads, d_nope, d_rope, d_v, kv_rank, n_queries=n_queries
    )
    missing = n_heads * n_queries * n_keys * kv_rank
    return cost._replace(absorbed=cost.absorbed - missing)


@chapter.fault(
    "mla_keys_not_turned",
    "RoPE returns what it was given",
    operation="rope",
    story="Without rotation every projection can be absorbed; that is why it is split.",
    made_for="mla_rotation_in_between",
    stays_green="rope_keeps_length",
)
def _(x, positions, *, base=10000.0, layout="interleaved"):
    return x + 0.0


@chapter.fault(
    "mla_mask_ignored",
    "the mask does not reach the absorbed path",
    operation="mla_absorbed",
    story="Absorption is a decode trick; used in prefill, it needs the mask as well.",
    made_for="mla_masked",
    stays_green="mla_joint_score_and_projection",
)
def _(q_nope, q_rope, c_kv, k_rope, w_uk, w_uv, *, allowed=None):
    return mla_absorbed(q_nope, q_rope, c_kv, k_rope, w_uk, w_uv)


@chapter.fault(
    "mla_truncates_rank",
    "the larger rank is cut to the smaller",
    operation="mla_absorbed",
    story="A slice that makes shapes fit.",
    made_for="mla_refuses_ranks",
    stays_green="mla_worked",
    unguarded=True,
)
def _(q_nope, q_rope, c_kv, k_rope, w_uk, w_uv, *, allowed=None):
    r = min(c_kv.shape[-1], w_uk.shape[-1])
    return mla_absorbed(
        q_nope,
        q_rope,
        c_kv[..., :r],
        k_rope,
        w_uk[..., :r],
        w_uv[..., :r],
        allowed=allowed,
    )


@chapter.fault(
    "mla_one_latent_for_all",
    "every text of a batch reads the latent of the first",
    operation="mla_absorbed",
    story="A cache indexed without its batch axis; with one text nobody can tell.",
    made_for="mla_text_by_text",
    stays_green="mla_joint_score_and_projection",
)
def _(q_nope, q_rope, c_kv, k_rope, w_uk, w_uv, *, allowed=None):
    first = c_kv[0] if c_kv.ndim > 2 else c_kv
    return mla_absorbed(q_nope, q_rope, first, k_rope, w_uk, w_uv, allowed=allowed)
