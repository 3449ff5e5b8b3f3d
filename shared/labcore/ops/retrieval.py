"""Finding what is relevant: term weights, fused rankings, late interaction, graphs."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from . import _validate as must
from ._op import Array, op

Docs = Sequence[Sequence[str]]
Points = Mapping[Any, Sequence[float]]
Edges = Collection[tuple[Any, Any]]


class BM25Term(NamedTuple):
    """One term's weight in every document, factor by factor."""

    n: int
    df: int
    avgdl: float
    idf: float
    length: list[int]
    frequency: list[int]
    denominator: list[float]
    tf_factor: list[float]
    score: list[float]


class PrecisionRecall(NamedTuple):
    """What part of the found is relevant, and of the relevant is found."""

    precision: float
    recall: float
    f1: float


# ---- Term weights -------------------------------------------------------------------


def _frequencies(n: int, df: int) -> None:
    must.count(1, n=n)
    must.count(0, df=df)
    if df > n:
        raise ValueError(f"df must be at most n = {n} documents, got {df}")


def _settings(k1: float, b: float) -> None:
    must.finite(k1=k1)
    if k1 < 0:
        raise ValueError(f"k1 must not be negative, got {k1}")
    must.within(0.0, 1.0, b=b)


def _corpus(docs: Docs) -> None:
    if isinstance(docs, str) or not isinstance(docs, Collection):
        raise ValueError(f"docs must be a list of documents, got {docs!r}")
    for doc in docs:
        if isinstance(doc, str) or not isinstance(doc, Collection):
            raise ValueError(f"docs must hold lists of terms, got {doc!r}: split it")
    if not len(docs):
        raise ValueError("docs is empty: no document, no average length")
    if not any(len(doc) for doc in docs):
        raise ValueError("docs hold no term: their average length is 0")


def _a_term(docs: Docs, term: str, *, k1: float = 1.2, b: float = 0.75) -> None:
    _corpus(docs)
    if not isinstance(term, Hashable):
        raise ValueError(f"term must be one term, got {term!r}")
    _settings(k1, b)


def _a_query(
    docs: Docs,
    query: Sequence[str],
    *,
    k1: float = 1.2,
    b: float = 0.75,
    saturation_factor: bool = True,
) -> None:
    _corpus(docs)
    if isinstance(query, str) or not isinstance(query, Collection):
        raise ValueError(f"query must be a list of terms, got {query!r}: split it")
    _settings(k1, b)


@op(_frequencies)
def bm25_idf(n: int, df: int) -> float:
    r"""How much a term tells, by the number of documents that hold it.

    $$\mathrm{idf} = \ln\left(1 +
    \frac{N - \mathrm{df} + 0.5}{\mathrm{df} + 0.5}\right)$$

    n: documents; df: documents with the term, each counted once, whatever the number
    of occurrences. With the 1 inside the logarithm it is positive at df = n too; the
    classic form without it is negative for a term in more than half of the documents.
    Source: Robertson and Zaragoza 2009; the 1 is that of Lucene.

    >>> round(bm25_idf(3, 2), 6)
    0.470004
    """
    return math.log(1 + (n - df + 0.5) / (df + 0.5))


@op(_a_term)
def bm25_term(docs: Docs, term: str, *, k1: float = 1.2, b: float = 0.75) -> BM25Term:
    r"""One term in every document: count, length, saturation, weight.

    $$\mathrm{score} = \mathrm{idf} \cdot \frac{f\,(k_1 + 1)}
    {f + k_1 (1 - b + b\,|d| / \mathrm{avgdl})}$$

    docs: lists of terms; f counts the term in one of them. k1 >= 0 bends the count,
    which never brings more than k1 + 1 times the idf; b from 0 to 1 is how much the
    length of a document counts. Raises ValueError for an empty collection.
    Source: Robertson and Zaragoza 2009.

    >>> bm25_term([["a", "b"], ["a", "a"]], "b").score[1]
    0.0
    """
    n, df = len(docs), sum(term in doc for doc in docs)
    lengths = [len(doc) for doc in docs]
    average = sum(lengths) / n
    counts = [sum(word == term for word in doc) for doc in docs]
    below = [
        f + k1 * (1 - b + b * length / average)
        for f, length in zip(counts, lengths, strict=True)
    ]
    factors = [
        f * (k1 + 1) / d if f else 0.0 for f, d in zip(counts, below, strict=True)
    ]
    idf = bm25_idf(n, df)
    scores = [idf * factor for factor in factors]
    return BM25Term(n, df, average, idf, lengths, counts, below, factors, scores)


@op(_a_query)
def bm25(
    docs: Docs,
    query: Sequence[str],
    *,
    k1: float = 1.2,
    b: float = 0.75,
    saturation_factor: bool = True,
) -> Array:
    """The score of every document: :func:`bm25_term` summed over the query's terms.

    query: a list of terms; one that is written twice counts twice, one that no
    document holds adds nothing. saturation_factor False leaves out the k1 + 1 above
    the fraction, as Lucene does: every score is k1 + 1 times smaller, no ranking
    changes. Returns (documents,) in the order of docs.

    >>> bm25([["a", "b"], ["c"]], ["a", "b"]).round(4).tolist()
    [1.2199, 0.0]
    """
    total = np.zeros(len(docs))
    for term in query:
        total += bm25_term(docs, term, k1=k1, b=b).score
    return total if saturation_factor else total / (k1 + 1)


# ---- Rankings -----------------------------------------------------------------------


def _rankings(lists: Sequence[Sequence[Any]], *, c: float = 60) -> None:
    must.finite(c=c)
    if c + 1 <= 0:
        raise ValueError(f"c must leave c + rank positive, so c > -1, got {c}")
    _ranking("lists", lists)
    for ranking in lists:
        _ranking("lists", ranking)


def _ranking(name: str, ids: Any) -> None:
    if isinstance(ids, str) or not isinstance(ids, Collection):
        raise ValueError(f"{name} must hold ids, got {ids!r}")


def _relevance(
    retrieved: Sequence[Any], relevant: Collection[Any], *, k: int | None = None
) -> None:
    _ranking("retrieved", retrieved)
    _ranking("relevant", relevant)
    if k is not None:
        must.count(1, k=k)


def _precise(
    retrieved: Sequence[Any], relevant: Collection[Any], *, k: int | None = None
) -> None:
    _relevance(retrieved, relevant, k=k)
    if not len(retrieved) and k is None:
        raise ValueError("retrieved is empty: precision is undefined without it")


def _recalled(
    retrieved: Sequence[Any], relevant: Collection[Any], *, k: int | None = None
) -> None:
    _relevance(retrieved, relevant, k=k)
    if not set(relevant):
        raise ValueError("relevant is empty: recall is undefined without it")


def _both(
    retrieved: Sequence[Any], relevant: Collection[Any], *, k: int | None = None
) -> None:
    _precise(retrieved, relevant, k=k)
    _recalled(retrieved, relevant, k=k)


@op(_rankings)
def rrf(lists: Sequence[Sequence[Any]], *, c: float = 60) -> list[tuple[Any, float]]:
    r"""Fuse rankings by the reciprocals of their ranks.

    $$\mathrm{rrf}(d) = \sum_{\text{lists with } d} \frac{1}{c + \mathrm{rank}(d)},
    \qquad \mathrm{rank} \ge 1$$

    lists: ids, best first. A list without d adds nothing; of an id that stands twice in
    one list the first place counts, and those behind it move up. c >= 0 as a rule (60
    in the paper); c + 1 must be positive. Sums are exact fractions, rounded once, so
    that a tie is a tie in whatever order the lists come; ties stand in the order of
    their ids. Returns [(id, score)], best first.
    Source: Cormack, Clarke and Buettcher 2009.

    >>> rrf([["b", "a"], ["a", "b"]], c=1)
    [('a', 0.8333333333333334), ('b', 0.8333333333333334)]
    """
    scores: dict[Any, Fraction] = {}
    for ranking in lists:
        for rank, id in enumerate(dict.fromkeys(ranking), 1):
            scores[id] = scores.get(id, Fraction(0)) + 1 / (Fraction(c) + rank)
    order = sorted(scores, key=lambda id: (-scores[id], id))
    return [(id, float(scores[id])) for id in order]


@op(_precise)
def precision(
    retrieved: Sequence[Any], relevant: Collection[Any], *, k: int | None = None
) -> float:
    """The share of what was retrieved that is relevant.

    retrieved: ids, best first; relevant: ids. An id that is retrieved twice counts
    once. With k only the first k places are looked at, and the share is of k, even
    where fewer were retrieved. Raises ValueError where nothing was (and no k is given).

    >>> precision(["a", "x"], ["a", "b"]), precision(["a"], ["a"], k=5)
    (0.5, 0.2)
    """
    found = set(retrieved[:k])
    return len(found & set(relevant)) / (len(found) if k is None else k)


@op(_recalled)
def recall(
    retrieved: Sequence[Any], relevant: Collection[Any], *, k: int | None = None
) -> float:
    """The share of what is relevant that was retrieved, in the first k places.

    Arguments as :func:`precision`. Raises ValueError where nothing is relevant.

    >>> recall(["x", "a"], ["a", "b"]), recall(["x", "a"], ["a", "b"], k=1)
    (0.5, 0.0)
    """
    wanted = set(relevant)
    return len(set(retrieved[:k]) & wanted) / len(wanted)


@op(_both)
def precision_recall(
    retrieved: Sequence[Any], relevant: Collection[Any], *, k: int | None = None
) -> PrecisionRecall:
    r"""Both shares, and the harmonic mean of the two.

    $$F_1 = \frac{2PR}{P + R}, \qquad 0 \text{ where both are } 0$$

    Arguments as :func:`precision`. Raises ValueError where either is undefined: no
    value, 0 or 1, would be honest there, and libraries disagree about which to give.

    >>> precision_recall(["a", "x"], ["a"])
    PrecisionRecall(precision=0.5, recall=1.0, f1=0.6666666666666666)
    """
    p, r = precision(retrieved, relevant, k=k), recall(retrieved, relevant, k=k)
    return PrecisionRecall(p, r, 2 * p * r / (p + r) if p else 0.0)


@op(_recalled)
def reciprocal_rank(
    retrieved: Sequence[Any], relevant: Collection[Any], *, k: int | None = None
) -> float:
    """One over the rank of the first relevant id; 0 where none was retrieved.

    Arguments as :func:`precision`. Ranks begin at 1.

    >>> reciprocal_rank(["x", "a", "b"], ["a", "b"])
    0.5
    """
    wanted = set(relevant)
    ranks = (rank for rank, id in enumerate(retrieved[:k], 1) if id in wanted)
    first = next(ranks, None)
    return 0.0 if first is None else 1 / first


# ---- Vectors ------------------------------------------------------------------------


def _late(
    q: Array, d: Array, *, q_mask: Array | None = None, d_mask: Array | None = None
) -> None:
    for name, x, mask in (("q", q, q_mask), ("d", d, d_mask)):
        if x.shape[-2:-1] == (0,) or x.shape == (0,):
            raise ValueError(f"{name} has no vectors: shape {x.shape}")
        must.axes(2, **{name: x})
        must.finite(**{name: x})
        if mask is None:
            continue
        mask = np.asarray(mask)
        if mask.dtype != bool or mask.shape[-1:] != x.shape[-2:-1]:
            raise ValueError(
                f"{name}_mask must be boolean, one a vector of {name} "
                f"({x.shape[-2]}), got {mask.dtype} {mask.shape}"
            )
        must.batch(**{name: x.shape[:-2], f"{name}_mask": mask.shape[:-1]})
        if not mask.any(axis=-1).all():
            raise ValueError(f"{name}_mask leaves no vector of {name}")
    must.same("d_k", q=q.shape[-1], d=d.shape[-1])
    must.batch(q=q.shape[:-2], d=d.shape[:-2])


@op(_late, floats="q d")
def maxsim(
    q: Array, d: Array, *, q_mask: Array | None = None, d_mask: Array | None = None
) -> Array:
    r"""Late interaction: every query vector takes its best document vector.

    $$s(q, d) = \sum_i \max_j q_i^\top d_j$$

    q: (..., queries, d_k); d: (..., vectors, d_k); the masks, (..., queries) and
    (..., vectors), are True where a vector is real. Padding is left out of the maximum:
    as a vector of zeros it would win wherever every similarity is negative. Vectors
    are not normalised here. Returns (...).
    Raises ValueError for a side without a vector. Source: Khattab and Zaharia 2020.

    >>> float(maxsim([[1.0, 0.0]], [[-0.5, 0.0], [0.0, 0.0]], d_mask=[True, False]))
    -0.5
    """
    similarity = q @ np.swapaxes(d, -1, -2)
    if d_mask is not None:
        real = np.asarray(d_mask)[..., None, :]
        similarity = np.where(real, similarity, -np.inf)
    best = similarity.max(axis=-1)
    return best.sum(axis=-1, where=True if q_mask is None else np.asarray(q_mask))


def _near(points: Points, query: Sequence[float], *, k: int = 1) -> None:
    if not points:
        raise ValueError("points is empty: there is no neighbour")
    must.finite(query=np.asarray(query, float))
    for id, point in points.items():
        must.finite(points=np.asarray(point, float))
        if np.shape(point) != np.shape(query):
            raise ValueError(
                f"points must have the shape of query {np.shape(query)}, got "
                f"{np.shape(point)} for {id!r}"
            )
    must.count(1, k=k)


def _graph(
    points: Points,
    edges: Edges,
    query: Sequence[float],
    *,
    entry: Any,
    beam: int = 1,
) -> None:
    _near(points, query)
    if not isinstance(edges, Collection):
        raise ValueError(f"edges must be a list of pairs, got {edges!r}")
    for edge in edges:
        if len(edge) != 2:
            raise ValueError(f"edges must be pairs, got {edge!r}")
        for id in edge:
            if id not in points:
                raise ValueError(f"edges name {id!r}, which is not among the points")
    if entry not in points:
        raise ValueError(f"entry must be one of the points, got {entry!r}")
    must.count(1, beam=beam)


@op(_near)
def nearest(
    points: Points, query: Sequence[float], *, k: int = 1
) -> list[tuple[Any, float]]:
    """The k nearest points, by looking at all of them.

    points: id -> coordinates; Euclidean distance. Of equal distances the point that is
    named first comes first. Returns [(id, distance)], nearest first, fewer than k where
    there are fewer.

    >>> nearest({"a": [3.0], "b": [-1.0]}, [0.0])
    [('b', 1.0)]
    """
    distances = {id: math.dist(point, query) for id, point in points.items()}
    return sorted(distances.items(), key=lambda found: found[1])[:k]


@op(_graph)
def greedy_graph_search(
    points: Points,
    edges: Edges,
    query: Sequence[float],
    *,
    entry: Hashable,
    beam: int = 1,
) -> list[tuple[Any, float]]:
    """Walk a graph of neighbours towards the query, keeping the best few seen.

    The nearest candidate not yet looked at is looked at: its neighbours enter the
    beam if they are nearer than its last, or if it has room. The walk ends when the
    nearest candidate is farther than the whole beam. beam 1 is the greedy walk, which
    stops at the first local minimum; what cannot be reached from the entry is never
    found, whatever the beam.
    points: id -> coordinates; edges: pairs, in both directions. Returns up to beam
    (id, distance), nearest first. Source: Malkov and Yashunin 2020 (one layer).

    >>> line = {"A": [4.0], "B": [5.0], "C": [1.0]}
    >>> for beam in (1, 2):
    ...     greedy_graph_search(line, ["AB", "BC"], [0.0], entry="A", beam=beam)
    [('A', 4.0)]
    [('C', 1.0), ('A', 4.0)]
    """
    near: dict[Any, list[Any]] = {id: [] for id in points}
    for a, b in edges:
        near[a].append(b)
        near[b].append(a)
    kept = [(entry, math.dist(points[entry], query))]
    waiting, seen = list(kept), {entry}
    while waiting:
        waiting.sort(key=lambda found: found[1])
        here, distance = waiting.pop(0)
        if distance > kept[-1][1]:
            break
        for id in near[here]:
            if id in seen:
                continue
            seen.add(id)
            found = id, math.dist(points[id], query)
            if len(kept) < beam or found[1] < kept[-1][1]:
                kept = sorted([*kept, found], key=lambda f: f[1])[:beam]
                waiting.append(found)
    return kept
