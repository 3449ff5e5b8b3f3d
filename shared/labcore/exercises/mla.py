"""Exercises on absorbing the MLA projections."""

from __future__ import annotations

from ..identities import recorded
from ..ops.mla import mla_cache_elements, mla_multiplications
from . import exercise


@exercise(
    "mla/cache",
    hint="Keys and values come from one latent, and the rotary key is one for all.",
    because="(256 + 32) numbers in each of 24 layers. The heads do not count.",
)
def _() -> int:
    return mla_cache_elements(256, 32, layers=24)


@exercise(
    "mla/queries",
    hint=(
        "Projecting pays 512 (128 + 128) for every cached token, absorbing as much for "
        "every query; per query and cached token they pay 320 and 1088."
    ),
    because="512 · 256 · n + 4096 · 768 · n must exceed 4096 · 512 · 256.",
)
def _() -> int:
    n_queries = 1
    while True:
        cost = mla_multiplications(4096, 128, 128, 64, 128, 512, n_queries=n_queries)
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
