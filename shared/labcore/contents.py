"""The order of the chapters, and where each has its page."""

from __future__ import annotations

from .identities import CHAPTERS, Chapter

PARTS: dict[str, tuple[str, ...]] = {
    "The identities": (
        "attention-and-caching",
        "softmax-summaries",
        "kernel-attention",
        "writes-and-decay",
        "rope",
        "absorbing-mla",
        "speculative-decoding",
    ),
    "Laplacian attention": (
        "ratio-and-transition",
        "sigma-and-entropy",
        "retrieval-and-cost",
    ),
    "Worked examples": (
        "tokens-shapes-decoder",
        "sampling-and-search",
        "losses-gradients-optimizers",
        "preferences",
        "retrieval",
        "memory-quantization-serving",
        "streams-and-state",
        "evaluation",
    ),
}


def chapters() -> list[Chapter]:
    """The chapters with checks of their own, as the book orders them."""
    return [CHAPTERS[slug] for slugs in PARTS.values() for slug in slugs]


def page(slug: str) -> str:
    """Where a chapter stands in the folder of the book, without a suffix.

    >>> page("rope")
    'part-1/rope'
    """
    for number, slugs in enumerate(PARTS.values(), 1):
        if slug in slugs:
            return f"part-{number}/{slug}"
    raise ValueError(f"no chapter {slug!r}")
