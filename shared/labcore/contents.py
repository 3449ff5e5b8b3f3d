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

# Chapters without checks of their own: their titles and their pages.
OTHERS = {
    "break-everything": ("Break everything", "part-1/break-everything"),
    "from-float64-to-half": (
        "From float64 to the dtype you train in",
        "part-4/from-float64-to-half",
    ),
    "testing-gradients": ("Testing gradients", "part-4/testing-gradients"),
    "what-it-costs": ("What it costs", "part-4/what-it-costs"),
}


def chapters() -> list[Chapter]:
    """The chapters with checks of their own, as the book orders them."""
    return [CHAPTERS[slug] for slugs in PARTS.values() for slug in slugs]


def title(slug: str) -> str:
    """What a chapter is called.

    >>> title("break-everything")
    'Break everything'
    """
    return OTHERS[slug][0] if slug in OTHERS else CHAPTERS[slug].title


def page(slug: str) -> str:
    """Where a chapter stands in the folder of the book, without a suffix.

    >>> page("rope")
    'part-1/rope'
    """
    if slug in OTHERS:
        return OTHERS[slug][1]
    for number, slugs in enumerate(PARTS.values(), 1):
        if slug in slugs:
            return f"part-{number}/{slug}"
    raise ValueError(f"no chapter {slug!r}")
