"""The formulas of retrieval. Query and document vectors are columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ops.retrieval import bm25, bm25_idf, bm25_term, maxsim, rrf
from ._formula import Inputs, formula

CHAPTER = "retrieval"
TERM = {"idf": r"\mathrm{idf}", "k_1": "k_1", "size()": "|#1|"}  # k_1: not a key


def a_term(rng: np.random.Generator) -> Inputs:
    """A term in documents of unequal length; i is one of those that hold it."""
    docs = [["x"] * int(rng.integers(1, 4)) + ["y"] * (2 * i + 1) for i in range(4)]
    docs.append(["y"] * int(rng.integers(2, 9)))
    i, b = int(rng.integers(4)), rng.uniform(0.4, 0.9)
    N, n, ell = len(docs), 4, np.mean([len(doc) for doc in docs])
    return {
        "docs": docs,
        "i": i,
        "d": docs[i],
        "f": docs[i].count("x"),
        "k_1": rng.uniform(0.8, 1.8),
        "b": b,
        "N": N,
        "n": n,
        "ell": ell,
        "size": len,
        "L_d": 1 + b * (len(docs[i]) / ell - 1),
        "idf": -np.log(1 - (N - n + 0.5) / (N + 1)),
    }


def _weight_of_length(docs: Any, i: int, f: int, k_1: float, b: float) -> float:
    """What a document's length makes of k_1, read off the operation."""
    return (bm25_term(docs, "x", k1=k_1, b=b).denominator[i] - f) / k_1


formula(
    "bm25_score",
    "idf * (f * (k_1 + 1) / (f + k_1 * L_d))",
    defines="s_d",
    symbols=TERM,
    chapter=CHAPTER,
    draw=a_term,
    function=lambda docs, i, k_1, b: bm25(docs, ["x"], k1=k_1, b=b)[i],
    operations=("bm25", "bm25_term"),
    checks=("bm25_worked", "bm25_reciprocal_form"),
)
formula(
    "bm25_length",
    "1 - b + b * (size(d) / ell)",
    defines="L_d",
    symbols=TERM,
    chapter=CHAPTER,
    draw=a_term,
    function=_weight_of_length,
    operations=("bm25_term",),
    checks=("bm25_b_zero_ignores_length", "bm25_full_length_only_density"),
)
formula(
    "bm25_idf",
    "log(1 + (N - n + 0.5) / (n + 0.5))",
    defines="idf",
    symbols=TERM,
    chapter=CHAPTER,
    draw=a_term,
    function=lambda N, n: bm25_idf(N, n),
    operations=("bm25_idf",),
    checks=("bm25_idf_worked", "bm25_rarer_weighs_more"),
)


def some_lists(rng: np.random.Generator) -> Inputs:
    """Three rankings, and an id that stands in two of them."""
    lists = [rng.permutation(5).tolist() for _ in range(2)]
    lists.append([5, *rng.permutation(2).tolist()])
    return {
        "lists": lists,
        "d": int(rng.integers(2, 5)),
        "c": int(rng.integers(1, 70)),
        "having": lambda d: [R for R in lists if d in R],
        "rank": lambda R, d: 1 + R.index(d),
    }


formula(
    "rank_fusion",
    "sum(1 / (c + rank(R, d)) for R in having(d))",
    defines="rrf(d)",
    symbols={
        "rrf": r"\mathrm{rrf}",
        "having()": r"\text{lists with } #1",
        "rank()": r"\mathrm{rank}_{#1}(#2)",
    },
    chapter=CHAPTER,
    draw=some_lists,
    function=lambda lists, d, c: dict(rrf(lists, c=c))[d],
    operations=("rrf",),
    checks=("rrf_worked", "rrf_fractions"),
)


def some_vectors(rng: np.random.Generator) -> Inputs:
    """More vectors in the document than in the query, products of both signs."""
    return {"q": rng.normal(size=(2, 3, 1)), "d": rng.normal(size=(4, 3, 1))}


formula(
    "maxsim",
    "sum(max(q[i].T @ d[j] for j in range(len(d))) for i in range(len(q)))",
    defines="s(q, d)",
    symbols={"d": r"\key{d}"},
    chapter=CHAPTER,
    draw=some_vectors,
    function=lambda q, d: maxsim(q[..., 0], d[..., 0]),
    operations=("maxsim",),
    checks=("maxsim_worked", "maxsim_by_pairs"),
)
