"""Exercises on absorbing the MLA projections."""

from __future__ import annotations

from ..identities import recorded
from ..ops.mla import mla_cache_elements, mla_multiplications
from . import exercise


@exercise(
    "mla/cache",
    hint="Keys and values come from one latent, and the rotary key is one for all.",
    because="rank and rotary key, added, in each of the layers. Heads do not count.",
    heads=16,
    width=64,
    rank=256,
    d_R=32,
    layers=24,
)
def _(rank: int, d_R: int, layers: int, **_: int) -> int:
    return mla_cache_elements(rank, d_R, layers=layers)


@exercise(
    "mla/queries",
    hint=(
        "Projecting pays rank (d_nope + d_v) for every cached token, absorbing as much "
        "for every query. For a query and a cached token together, projecting pays "
        "d_nope + d_rope + d_v and absorbing 2 rank + d_rope."
    ),
    because=(
        "n rank (d_nope + d_v) + n context (2 rank - d_nope - d_v) must exceed "
        "context rank (d_nope + d_v)."
    ),
    context=4096,
    n_heads=128,
    d_nope=128,
    d_rope=64,
    d_v=128,
    rank=512,
)
def _(context: int, rank: int, **sizes: int) -> int:
    n_queries = 1
    while True:
        cost = mla_multiplications(context, kv_rank=rank, n_queries=n_queries, **sizes)
        if cost.projected < cost.absorbed:
            return n_queries
        n_queries += 1


@exercise(
    "mla/blind",
    hint="Put each one in place with lab.broken, and run the check inside the block.",
    because=(
        "With an identity as projection the rank is the width of a head, and there is "
        "no mask in the check."
    ),
)
def _() -> set[str]:
    return {
        id
        for id, row in recorded()["faults"].items()
        if row["operation"] == "mla_absorbed"
        and "mla_identity_projections" in row["green"]
    }
