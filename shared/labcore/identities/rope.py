"""RoPE: what must hold, and how it breaks."""

from __future__ import annotations

import numpy as np

from ..ops.attention import attention
from ..ops.rope import rope, rope_attention, rope_frequencies, rope_rotation
from ._check import Chapter, Inputs, Rng, nothing

chapter = Chapter("rope", "RoPE depends on a relative offset", "The identities")


# ---- What is drawn ----------------------------------------------------------------


def a_plane(rng: Rng, size: int) -> Inputs:
    """A query and a key in one plane, two positions, a shift, a frequency."""
    return {
        "q": rng.normal(size=2),
        "k": rng.normal(size=2),
        "i": int(rng.integers(0, 5)),
        "j": int(rng.integers(5, 9)),
        "shift": 10 + size,
        "frequency": float(rng.uniform(0.3, 0.5)),
    }


def a_head(rng: Rng, size: int) -> Inputs:
    """Tokens of a head with at least three planes, at uneven positions."""
    n, d = size + 2, 2 * size + 4  # with two planes the layouts' exchange is its own
    return {
        "q": rng.normal(size=(2, n, d)),
        "k": rng.normal(size=(2, n, d)),
        "v": rng.normal(size=(2, n, size + 1)),
        "positions": np.cumsum([1, *rng.integers(1, 4, size=n - 1)]),
    }


# ---- What must hold ---------------------------------------------------------------


@chapter.check(
    "rope_relative_identity",
    "A rotated query meets a rotated key as if only the key had turned, by the offset.",
    draw=a_plane,
)
def _(q, k, i, j, shift, frequency):
    rotated = (rope_rotation(i * frequency) @ q) @ (rope_rotation(j * frequency) @ k)
    return rotated, q @ rope_rotation((j - i) * frequency) @ k


@chapter.check(
    "rope_joint_shift",
    "Moving both positions by the same shift changes no score.",
    draw=a_plane,
)
def _(q, k, i, j, shift, frequency):
    def score(a, b):
        return (rope_rotation(a * frequency) @ q) @ (rope_rotation(b * frequency) @ k)

    return score(i, j), score(i + shift, j + shift)


@chapter.check(
    "rope_rotation_sign",
    "A turn by 30 degrees takes the first axis towards the second.",
    draw=nothing,
    kind="value",
)
def _():
    # cos(pi/6) = sqrt(3)/2 and sin(pi/6) = 1/2.
    return rope_rotation(np.pi / 6) @ [1.0, 0.0], np.array([np.sqrt(3) / 2, 0.5])


@chapter.check(
    "rope_worked",
    "Position 3 in four dimensions, base 10000: two planes, two angles.",
    draw=nothing,
    kind="value",
)
def _():
    # Angles 3 and 0.03. (cos 3 - 2 sin 3, sin 3 + 2 cos 3) and
    # (3 cos .03 - 4 sin .03, 3 sin .03 + 4 cos .03), at 50 digits.
    got = rope([1.0, 2.0, 3.0, 4.0], 3)
    want = [
        -1.2722325127201799,
        -1.8388649851410237,
        2.87866810043698,
        4.088186635603437,
    ]
    return got, np.array(want)


@chapter.check(
    "rope_frequency_exponent",
    "Eight dimensions at base 10000: the planes turn by 1, .1, .01 and .001.",
    draw=nothing,
    kind="value",
)
def _():
    # 10000 ** (-2 i / 8) = 10 ** -i.
    return rope_frequencies(8), np.array([1.0, 0.1, 0.01, 0.001])


@chapter.check(
    "rope_frequency_base",
    "Four dimensions at base 256: the planes turn by 1 and by 1/16.",
    draw=nothing,
    kind="value",
)
def _():
    # 256 ** (-2 i / 4) = 16 ** -i.
    return rope_frequencies(4, 256.0), np.array([1.0, 0.0625])


@chapter.check(
    "rope_turns_each_plane",
    "Every plane is turned by the rotation of its own angle.",
    draw=a_head,
)
def _(q, k, v, positions):
    want = q.copy()
    for plane, frequency in enumerate(rope_frequencies(q.shape[-1])):
        pair = slice(2 * plane, 2 * plane + 2)
        for t, position in enumerate(positions):
            turn = rope_rotation(float(position * frequency))
            want[:, t, pair] = q[:, t, pair] @ turn.T
    return rope(q, positions), want


@chapter.check(
    "rope_relative_scores",
    "All planes together: scores depend on offsets alone.",
    draw=a_head,
)
def _(q, k, v, positions):
    def scores(p):
        return rope(q, p) @ np.swapaxes(rope(k, p), -1, -2)

    return scores(positions), scores(positions + 37)


@chapter.check(
    "rope_layouts",
    "Both layouts are one map, up to where the pairs stand.",
    draw=a_head,
)
def _(q, k, v, positions):
    d = q.shape[-1]
    order = np.concatenate([np.arange(0, d, 2), np.arange(1, d, 2)])
    return rope(q[..., order], positions, layout="half"), rope(q, positions)[..., order]


@chapter.check(
    "rope_keeps_length",
    "A rotation changes no length, and position 0 changes nothing.",
    draw=a_head,
)
def _(q, k, v, positions):
    lengths = np.sum(rope(q, positions) ** 2, axis=-1), rope(q[:, :1], [0])
    return lengths, (np.sum(q**2, axis=-1), q[:, :1])


@chapter.check(
    "rope_composes",
    "Turning twice is turning by twice the position.",
    draw=a_head,
)
def _(q, k, v, positions):
    return rope(rope(q, positions), positions), rope(q, 2 * positions)


@chapter.check(
    "rope_mirror",
    "Turning back is turning the mirror image, in both layouts.",
    draw=a_head,
)
def _(q, k, v, positions):
    d = q.shape[-1]
    neighbours = np.tile([1.0, -1.0], d // 2)
    halves = np.repeat([1.0, -1.0], d // 2)
    got = (rope(q, -positions), rope(q, -positions, layout="half"))
    return got, (
        neighbours * rope(neighbours * q, positions),
        halves * rope(halves * q, positions, layout="half"),
    )


@chapter.check(
    "rope_far_positions",
    "At position ten million float32 vectors turn as float64 vectors do, to 1/1000.",
    draw=a_head,
    kind="order",
)
def _(q, k, v, positions):
    far, q = 10_000_000 + positions, q.astype(np.float32)
    apart = np.abs(rope(q, far) - rope(q.astype(np.float64), far)).max()
    return 1e-3, float(np.round(apart / np.abs(q).max(), 5))


@chapter.check(
    "rope_attention_shift",
    "Moving all tokens by the same shift changes no output of attention.",
    draw=a_head,
)
def _(q, k, v, positions):
    moved = rope_attention(q, k, v, positions + 38)
    return moved, rope_attention(q, k, v, positions)


@chapter.check(
    "rope_attention_options",
    "Base and layout reach the queries and the keys.",
    draw=a_head,
)
def _(q, k, v, positions):
    turned_q = rope(q, positions, base=50.0, layout="half")
    turned_k = rope(k, positions, base=50.0, layout="half")
    got = rope_attention(q, k, v, positions, base=50.0, layout="half")
    return got, attention(turned_q, turned_k, v)


@chapter.check(
    "rope_leaves_values",
    "Values are not rotated: a token that reads itself alone reads its value.",
    draw=a_head,
)
def _(q, k, v, positions):
    alone = np.eye(q.shape[1], dtype=bool)
    return rope_attention(q, k, v, positions, allowed=alone), v


@chapter.check(
    "rope_cached_positions",
    "Keys rotated when they were cached give the scores of keys rotated now.",
    draw=a_head,
)
def _(q, k, v, positions):
    cached = np.concatenate(
        [rope(k[:, t : t + 1], positions[t : t + 1]) for t in range(k.shape[1])], axis=1
    )
    scores = rope(q[:, -1:], positions[-1:]) @ np.swapaxes(cached, -1, -2)
    scores = scores / np.sqrt(q.shape[-1])
    weights = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
    return rope_attention(q, k, v, positions)[:, -1:], weights @ v


@chapter.check(
    "rope_refuses_odd",
    "An odd dimension has a coordinate without a plane.",
    draw=nothing,
    kind="refuses",
)
def _():
    return lambda: rope([1.0, 2.0, 3.0], 1), "x"


@chapter.check(
    "rope_other_base",
    "At base 16, position 2 turns two planes by 2 and by 1/2, in both layouts.",
    draw=nothing,
    kind="value",
)
def _():
    # 16 ** (-2 i / 4) = 4 ** -i, twice. The cosine and the sine of 2 and of 1/2.
    c, s = (
        [-0.4161468365471424, 0.8775825618903728],
        [
            0.9092974268256817,
            0.479425538604203,
        ],
    )
    pairs = rope([1.0, 0.0, 1.0, 0.0], 2, base=16.0)
    halves = rope([1.0, 1.0, 0.0, 0.0], 2, base=16.0, layout="half")
    return (pairs, halves), (np.array([c[0], s[0], c[1], s[1]]), np.array([*c, *s]))


@chapter.check(
    "rope_between_positions",
    "Positions need not be whole: turning twice by a half of each is turning once.",
    draw=a_head,
)
def _(q, k, v, positions):
    half = positions / 2
    return rope(rope(q, half), half), rope(q, positions)


# ---- How it breaks ----------------------------------------------------------------


@chapter.fault(
    "rotation_by_negative_angle",
    "the rotation turns clockwise",
    operation="rope_rotation",
    story=(
        "The two RoPE checks of the source article cannot see it, although the article "
        "says that they do: both sides turn the wrong way together."
    ),
    made_for="rope_rotation_sign",
    stays_green="rope_relative_identity",
)
def _(angle):
    return rope_rotation(angle).T


@chapter.fault(
    "rotation_is_a_reflection",
    "the lower right entry has the wrong sign",
    operation="rope_rotation",
    story="A matrix of the right entries with one sign slipped: it reflects.",
    made_for="rope_relative_identity",
    stays_green="rope_keeps_length",
)
def _(angle):
    return rope_rotation(angle) * np.array([[1.0, 1.0], [1.0, -1.0]])


@chapter.fault(
    "rope_by_negative_angle",
    "every plane turns clockwise",
    operation="rope",
    story=(
        "The transposed convention: each score becomes that of the opposite offset, so"
        " every relative check agrees, and no checkpoint does."
    ),
    made_for="rope_worked",
    stays_green="rope_relative_scores",
)
def _(x, positions, *, base=10000.0, layout="interleaved"):
    return rope(x, -np.asarray(positions), base=base, layout=layout)


@chapter.fault(
    "rope_other_layout",
    "the pairs are halves where they should be neighbours, and the reverse",
    operation="rope",
    story="The most frequent porting bug of all: two model families use two layouts.",
    made_for="rope_worked",
    stays_green="rope_relative_scores",
)
def _(x, positions, *, base=10000.0, layout="interleaved"):
    other = "half" if layout == "interleaved" else "interleaved"
    return rope(x, positions, base=base, layout=other)


@chapter.fault(
    "rope_one_frequency",
    "every plane turns at the first plane's frequency",
    operation="rope",
    story="A broadcast that fits by accident; two dimensions hide it.",
    made_for="rope_turns_each_plane",
    stays_green="rope_keeps_length",
)
def _(x, positions, *, base=10000.0, layout="interleaved"):
    return rope(x, positions, base=1.0, layout=layout)


@chapter.fault(
    "rope_positions_from_zero",
    "positions are counted from the start of what is passed in",
    operation="rope",
    story=(
        "Position ids that restart with every decode step, instead of going on behind "
        "the cache."
    ),
    made_for="rope_cached_positions",
    stays_green="rope_keeps_length",
)
def _(x, positions, *, base=10000.0, layout="interleaved"):
    p = np.asarray(positions)
    return rope(x, p - p[..., :1] if p.ndim else 0 * p, base=base, layout=layout)


@chapter.fault(
    "rope_table_too_short",
    "positions beyond a table's end use its last row",
    operation="rope",
    story="Cosines computed once for a shorter context, and an index that is clipped.",
    made_for="rope_relative_scores",
    stays_green="rope_keeps_length",
)
def _(x, positions, *, base=10000.0, layout="interleaved"):
    return rope(x, np.minimum(positions, 30), base=base, layout=layout)


@chapter.fault(
    "rope_grows_with_position",
    "later positions are longer as well as turned",
    operation="rope",
    story=(
        "A length factor of a context extension, applied to the vectors and not to the"
        " scores."
    ),
    made_for="rope_keeps_length",
    stays_green="rope_worked",
)
def _(x, positions, *, base=10000.0, layout="interleaved"):
    p = np.asarray(positions, float)
    longer = 1.0 + p / 10.0 if p.ndim else np.ones_like(p)
    turned = rope(x, positions, base=base, layout=layout)
    return turned * longer[..., None].astype(x.dtype)


@chapter.fault(
    "rope_rounds_odd_positions",
    "positions are rounded down to even ones",
    operation="rope",
    story="Positions halved for two interleaved streams, and doubled again.",
    made_for="rope_composes",
    stays_green="rope_keeps_length",
)
def _(x, positions, *, base=10000.0, layout="interleaved"):
    return rope(x, np.asarray(positions) // 2 * 2, base=base, layout=layout)


@chapter.fault(
    "rope_half_in_thirds",
    "in the half layout the second entries are taken one place too early",
    operation="rope",
    story="An off-by-one at the middle of the head; the other layout is right.",
    made_for="rope_layouts",
    stays_green="rope_turns_each_plane",
)
def _(x, positions, *, base=10000.0, layout="interleaved"):
    if layout == "interleaved":
        return rope(x, positions, base=base)
    middle = x.shape[-1] // 2
    shifted = np.concatenate(
        [x[..., :middle], np.roll(x[..., middle:], 1, axis=-1)], axis=-1
    )
    return rope(shifted, positions, base=base, layout="half")


@chapter.fault(
    "rope_exponent_by_index",
    "the exponent is i/d, not 2i/d",
    operation="rope_frequencies",
    story=(
        "Index of the plane for index of its first entry: every relative check agrees."
    ),
    made_for="rope_frequency_exponent",
    stays_green="rope_relative_scores",
)
def _(d, base=10000.0):
    return float(base) ** (-np.arange(d // 2) / d)


@chapter.fault(
    "rope_ignores_base",
    "the base is always 10000",
    operation="rope_frequencies",
    story=(
        "A configuration that names its base in a field the loader does not know: the "
        "default takes over without a word (vLLM pull request 44158)."
    ),
    made_for="rope_frequency_base",
    stays_green="rope_frequency_exponent",
)
def _(d, base=10000.0):
    return rope_frequencies(d)


@chapter.fault(
    "rope_angles_in_own_type",
    "the angles are computed in the type of the vectors",
    operation="rope",
    story=(
        "A model cast to half precision, its table of frequencies with it "
        "(transformers issue 25681, gpt-neox issue 1003)."
    ),
    made_for="rope_far_positions",
    stays_green="rope_turns_each_plane",
)
def _(x, positions, *, base=10000.0, layout="interleaved"):
    d, own = x.shape[-1], x.dtype
    angle = np.asarray(positions, own)[..., None] * rope_frequencies(d, base).astype(
        own
    )
    order = np.arange(d).reshape((-1, 2) if layout == "interleaved" else (2, -1))
    first, second = order.T if layout == "interleaved" else order
    turned = (x[..., first] + 1j * x[..., second]) * np.exp(1j * angle)
    rotated = np.empty_like(x)
    rotated[..., first], rotated[..., second] = turned.real, turned.imag
    return rotated


@chapter.fault(
    "rope_unsigned_positions",
    "a negative position is taken as its size",
    operation="rope",
    story="Positions or offsets in an unsigned type; nobody tests before the start.",
    made_for="rope_mirror",
    stays_green="rope_worked",
)
def _(x, positions, *, base=10000.0, layout="interleaved"):
    return rope(x, np.abs(positions), base=base, layout=layout)


@chapter.fault(
    "rope_keys_turn_back",
    "the keys turn the other way than the queries",
    operation="rope_attention",
    story="A sign that is wrong on one side only: this one the relative checks see.",
    made_for="rope_attention_shift",
    stays_green="rope_leaves_values",
)
def _(q, k, v, positions, *, base=10000.0, layout="interleaved", allowed=None):
    twice_back = -2 * np.asarray(positions)
    k = rope(k, twice_back, base=base, layout=layout)
    return rope_attention(q, k, v, positions, base=base, layout=layout, allowed=allowed)


@chapter.fault(
    "rope_attention_default_options",
    "base and layout are not passed on",
    operation="rope_attention",
    story="Two keyword arguments that are accepted and then forgotten.",
    made_for="rope_attention_options",
    stays_green="rope_cached_positions",
)
def _(q, k, v, positions, *, base=10000.0, layout="interleaved", allowed=None):
    return rope_attention(q, k, v, positions, allowed=allowed)


@chapter.fault(
    "rope_rotates_values",
    "the values are rotated too",
    operation="rope_attention",
    story="One loop over q, k and v.",
    made_for="rope_leaves_values",
    stays_green="rope_relative_scores",
)
def _(q, k, v, positions, *, base=10000.0, layout="interleaved", allowed=None):
    spin = {"base": base, "layout": layout}
    even = v.shape[-1] // 2 * 2
    turned = rope(v[..., :even], positions, **spin) if even else -v[..., :0]
    v = np.concatenate([turned, -v[..., even:]], axis=-1)
    return rope_attention(q, k, v, positions, allowed=allowed, **spin)


@chapter.fault(
    "rope_queries_only",
    "the keys are not rotated",
    operation="rope_attention",
    story="Keys cached before their rotation and never turned afterwards.",
    made_for="rope_cached_positions",
    stays_green="rope_leaves_values",
)
def _(q, k, v, positions, *, base=10000.0, layout="interleaved", allowed=None):
    back = rope(k, -np.asarray(positions), base=base, layout=layout)
    return rope_attention(
        q, back, v, positions, base=base, layout=layout, allowed=allowed
    )


@chapter.fault(
    "rope_drops_odd_entry",
    "the last entry of an odd dimension is left alone",
    operation="rope",
    story="A slice that rounds down.",
    made_for="rope_refuses_odd",
    stays_green="rope_turns_each_plane",
    unguarded=True,
)
def _(x, positions, *, base=10000.0, layout="interleaved"):
    even = x.shape[-1] // 2 * 2
    turned = rope(x[..., :even], positions, base=base, layout=layout)
    return np.concatenate([turned, x[..., even:]], axis=-1)


@chapter.fault(
    "rope_base_not_passed_on",
    "the base is taken and not handed to the frequencies",
    operation="rope",
    story=(
        "A model trained at base 5,000,000 and run at 10,000: its configuration has "
        "the right one, and nobody reads it (candle pull request 3746)."
    ),
    made_for="rope_other_base",
    stays_green="rope_worked",
)
def _(x, positions, *, base=10000.0, layout="interleaved"):
    return rope(x, positions, layout=layout)


@chapter.fault(
    "rope_whole_positions",
    "positions are cut to whole numbers",
    operation="rope",
    story=(
        "An index into a table of cosines is whole. Position interpolation, which "
        "squeezes a long text into the positions of a short one, asks between."
    ),
    made_for="rope_between_positions",
    stays_green="rope_worked",
)
def _(x, positions, *, base=10000.0, layout="interleaved"):
    return rope(x, np.asarray(positions).astype(int), base=base, layout=layout)


@chapter.fault(
    "rope_table_widens",
    "vectors are multiplied by a table of cosines in float64",
    operation="rope",
    story="Angles must be float64; cosines that stay so widen all that comes after.",
    made_for="float32_stays_float32",
    stays_green="rope_worked",
)
def _(x, positions, *, base=10000.0, layout="interleaved"):
    return rope(x * np.float64(1.0), positions, base=base, layout=layout)
