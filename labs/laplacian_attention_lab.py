"""Check what Laplacian attention promises and print one JSON document of six sections.

    ratio_prediction         the log of a ratio of weights is a distance difference
    two_key_transition       with two keys, the nearer one's weight is a logistic
    sigma_entropy            a larger sigma is less decided
    invariants               rows are distributions; a noisy copy wins mostly
    toy_comparison           finding a noisy copy, beside dot-product attention
    operation_count_example  what the scores of all pairs cost

Every observed number comes from running the attention on keys placed for it, every
predicted one from its formula. A prediction that fails is named on standard error.

Exit status: 0 every prediction holds, 1 one fails, 2 the options are wrong.

    python laplacian_attention_lab.py --break laplacian_l2
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

SHARED = Path(__file__).resolve().parent.parent / "shared"
if (SHARED / "labcore" / "__init__.py").is_file():
    sys.path.insert(0, str(SHARED))  # the labcore beside this file, not another one
try:
    import numpy as np
    from labcore import lab, report
    from labcore.examples import retrieval_toy as toy
    from labcore.identities import FAULTS
    from labcore.ops.laplacian import laplacian_attention, operation_counts
    from labcore.ops.softmax import entropy
    from labcore.program import Once, Parser, say, unknown, whole
except ModuleNotFoundError as missing:
    what = (missing.name or "").partition(".")[0]
    if what not in ("numpy", "labcore"):
        raise
    print(
        f"{what} is missing: install NumPy with pip, and run this file where it stands "
        "in the project, with the folder shared beside its own.",
        file=sys.stderr,
    )
    sys.exit(2)

SEED = 7
TOLERANCE = 1e-11


def main(argv: Sequence[str] | None = None) -> int:
    """Do what the options say; the exit status."""
    try:
        asked = options(argv)
    except SystemExit as left:
        return int(left.code or 0)
    if asked.faults:
        say("\n".join(f"{f.id}: {f.title}" for f in faults()), sys.stdout)
        return 0
    rng = np.random.default_rng(asked.seed)
    with lab.broken(asked.fault) if asked.fault else nullcontext():
        document = {
            "ratio_prediction": section(ratio_prediction),
            "two_key_transition": section(two_key_transition),
            "sigma_entropy": section(sigma_entropy),
            "invariants": section(lambda: invariants(rng)),
            "toy_comparison": section(lambda: comparison(rng)),
            "operation_count_example": section(operation_count_example),
        }
    say(report.as_json(document), sys.stdout)
    failed = failures(document, copies_must_win=asked.seed == SEED)
    for words in failed:
        say(words, sys.stderr)
    if asked.fault and not failed:
        say(f"note: no prediction of this program notices {asked.fault}", sys.stderr)
    return 1 if failed else 0


# ---- The six sections -------------------------------------------------------------


def section(work: Callable[[], Any]) -> Any:
    """What a section found; the words of its error, where a fault made it fail."""
    try:
        return work()
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def weights(q: Any, k: Any, sigma: float) -> Any:
    """The weights of one query."""
    k = np.array(k, dtype=float)
    return laplacian_attention([q], k, np.zeros((len(k), 1)), sigma).weights[0]


def ratio_prediction() -> dict[str, Any]:
    """Two keys at distances 0.8 and 2.4, four values of sigma."""
    d1, d2 = 0.8, 2.4
    sigmas = [0.2, 0.4, 0.8, 1.6]
    pairs = [weights([0.0], [[d1], [d2]], sigma) for sigma in sigmas]
    observed = [math.log(near / far) for near, far in pairs]
    predicted = [(d2 - d1) / sigma for sigma in sigmas]
    return {
        "sigmas": sigmas,
        "observed_log_ratio": observed,
        "predicted_log_ratio": predicted,
        "max_abs_error": largest(np.subtract(observed, predicted)),
    }


def two_key_transition() -> dict[str, Any]:
    """A near key at distance 4, another whose distance moves past it."""
    sigma, near = 0.7, 4.0
    differences = np.linspace(-3, 3, 13)
    keys = [[[near, 0.0], [1.0, near - 1.0 + d]] for d in differences]
    observed = np.array([weights([0.0, 0.0], pair, sigma)[0] for pair in keys])
    predicted = 1 / (1 + np.exp(-differences / sigma))
    return {
        "delta_distances": differences,
        "observed_near_probability": observed,
        "predicted_near_probability": predicted,
        "max_abs_error": largest(observed - predicted),
        "crossing_delta": differences[np.argmin(np.abs(observed - 0.5))],
    }


def sigma_entropy() -> dict[str, Any]:
    """Four keys at distances 0, 1, 3, 8, six values of sigma."""
    sigmas = [0.1, 0.25, 0.5, 1.0, 2.0, 8.0]
    keys = [[0.0, 0.0], [1.0, 0.0], [3.0, 0.0], [8.0, 0.0]]
    found = [float(entropy(weights([0.0, 0.0], keys, sigma))) for sigma in sigmas]
    return {
        "sigmas": sigmas,
        "entropy": found,
        "predicted_monotone_increase": True,
        "monotone_observed": bool(np.all(np.diff(found) > 0)),
        "limit_log_N": math.log(len(keys)),
    }


def invariants(rng: np.random.Generator) -> dict[str, Any]:
    """Rows of a larger example; a noisy copy wins mostly, an exact one always."""
    q, k = toy.draw(rng, noise=0.10)
    w = laplacian_attention(q, k, np.zeros((1, toy.N, 1)), 0.35).weights
    return {
        "row_sum_max_error": largest(w.sum(axis=-1) - 1),
        "nonnegative": bool(np.all(w >= 0)),
        "self_argmax_fraction": toy.top1(w),
    }


def comparison(rng: np.random.Generator) -> list[dict[str, float]]:
    """Both kinds of attention on the same draws, one row a noise level."""
    return [toy.comparison(rng, noise) for noise in toy.NOISES]


def operation_count_example() -> dict[str, int]:
    """128 queries, 128 keys, 8 channels."""
    sizes = {"B": 1, "N": 128, "M": 128, "C": 8}
    counts = operation_counts(128, 128, 8)
    return {
        **sizes,
        "dot_qk_channel_multiplications": counts.dot_multiplications,
        "laplacian_qk_channel_multiplications": counts.laplacian_multiplications,
        "laplacian_abs_subtracts": counts.laplacian_subtractions,
    }


def failures(document: dict[str, Any], *, copies_must_win: bool) -> list[str]:
    """In words, each prediction that does not hold."""
    promises: list[tuple[str, str, Callable[[Any], bool]]] = [
        ("ratio_prediction", "max_abs_error", lambda x: x < TOLERANCE),
        ("two_key_transition", "max_abs_error", lambda x: x < TOLERANCE),
        ("two_key_transition", "crossing_delta", lambda x: x == 0),
        ("sigma_entropy", "monotone_observed", lambda x: x),
        ("sigma_entropy", "entropy", lambda x: x[-1] < math.log(4)),
        ("invariants", "row_sum_max_error", lambda x: x < TOLERANCE),
        ("invariants", "nonnegative", lambda x: x),
        ("invariants", "self_argmax_fraction", lambda x: x > 0.5),
        (
            "operation_count_example",
            "dot_qk_channel_multiplications",
            lambda x: x == 128 * 128 * 8,
        ),
    ]
    failed = [
        f"{name}: {found['error']}"
        for name, found in document.items()
        if "error" in found
    ]
    for name, key, holds in promises:
        found = document[name]
        if "error" not in found and not holds(found[key]):
            failed.append(f"{name}: {key} does not hold")
    table = document["toy_comparison"]
    if copies_must_win and "error" not in table and table[0]["lap_top1"] != 1:
        failed.append("toy_comparison: lap_top1 at the lowest noise is not 1")
    return failed


def largest(errors: Any) -> float:
    """The largest absolute entry."""
    return float(np.max(np.abs(errors)))


# ---- Options ----------------------------------------------------------------------


def faults() -> list[Any]:
    """The faults of the part on Laplacian attention."""
    return [f for f in FAULTS.values() if f.by.__module__.endswith(".laplacian")]


def options(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options, checked; SystemExit with status 2 if they are wrong."""
    parser = Parser(
        prog="laplacian_attention_lab.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--seed",
        type=whole,
        action=Once,
        metavar="N",
        help=f"draw with seed N ({SEED})",
    )
    one = parser.add_mutually_exclusive_group()
    one.add_argument("--faults", action="store_true", help="list the faults and end")
    one.add_argument(
        "--break",
        dest="fault",
        action=Once,
        metavar="FAULT",
        help="run with this fault in place",
    )
    asked = parser.parse_args(argv)
    if asked.fault is not None and asked.fault not in FAULTS:
        parser.error(unknown("fault", asked.fault, FAULTS, "--faults"))
    asked.seed = SEED if asked.seed is None else asked.seed
    return asked


if __name__ == "__main__":
    sys.exit(main())
