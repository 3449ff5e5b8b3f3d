"""What must hold, and how it breaks: checks and faults, one topic a module."""

from . import attention, delta, kernel, mla, online, rope, softmax, speculative
from ._check import (
    CHAPTERS,
    CHECKS,
    FAULTS,
    SEEDS,
    SIZES,
    Chapter,
    Check,
    Fault,
    Verdict,
    compare,
    recorded,
    run,
)

__all__ = [
    "CHAPTERS",
    "CHECKS",
    "FAULTS",
    "SEEDS",
    "SIZES",
    "Chapter",
    "Check",
    "Fault",
    "Verdict",
    "attention",
    "compare",
    "delta",
    "kernel",
    "mla",
    "online",
    "recorded",
    "rope",
    "run",
    "softmax",
    "speculative",
]
