"""The formulas of streams and state. What they compute is made into numbers."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..systems.database import (
    BALANCE,
    balances,
    killed_transfer,
    open_accounts,
    transfer,
)
from ..systems.state import (
    Fact,
    Versioned,
    bitemporal_lookup,
    bitemporal_record,
    compare_and_swap,
    replay_events,
)
from ..systems.streams import sse_decode, utf8_stream
from ._formula import Inputs, formula

CHAPTER = "streams-and-state"
SYMBOLS = {
    "v": "v",
    "seen": r"n_{\mathrm{seen}}",
    "pair()": r"(#1,\, #2)",
    "join()": r"#1 \cdot #2",
    "reopened": r"\mathrm{reopened}",
    "commit": r"t_{\mathrm{COMMIT}}",
    "after": r"(v,\, n)'",
    "with_one()": r"#1 \cup \{#2\}",
}


# ---- What is drawn ------------------------------------------------------------------


def a_cut_stream(rng: np.random.Generator) -> Inputs:
    """The bytes of a stream up to a cut, which may be inside a character, and after."""
    numbers = [int(n) for n in rng.integers(100, size=3)]
    body = "".join(f"data: 漢🙂{n}\r\ndata: é\r\n\r\n" for n in numbers).encode()
    inside = body.index("漢".encode(), 1) + 1
    at = [inside, body.index(b"\r") + 1, int(rng.integers(len(body)))]
    cut = at[int(rng.integers(3))]
    return {"x": body[:cut], "y": body[cut:]}


def a_cut_log(rng: np.random.Generator) -> Inputs:
    """Rows of (key, status) before a cut and after it, and the statuses before both."""
    x, y = rng.integers(5, size=(7, 2)), rng.integers(5, size=(4, 2))
    return {"s": rng.integers(5, size=5), "x": x, "y": y}


def a_kill(rng: np.random.Generator) -> Inputs:
    """A kill on either side of the COMMIT; what both halves of the accounts hold."""
    amount = int(rng.integers(1, BALANCE))
    return {
        "amount": amount,
        "b": np.array([BALANCE, BALANCE]),
        "T": lambda b: _transferred(amount),
        "t": np.array([[1], [3]]),
        "commit": 2,
    }


def some_swaps(rng: np.random.Generator) -> Inputs:
    """Versions that were seen: the one that stands there, and others."""
    n = rng.integers(2, 9, size=4)
    return {
        "v": rng.normal(size=4),
        "w": rng.normal(size=4),
        "n": n,
        "seen": n + np.array([0, -1, 1, 0]),
    }


def a_record(rng: np.random.Generator) -> Inputs:
    """Facts on record, one more record, and questions for times before it."""
    R: list[Fact] = []
    for at in (1, 3, 6):
        start = int(rng.integers(1, 8))
        R = bitemporal_record(R, at, valid_from=start, valid_to=start + 5, at=at)
    start = int(rng.integers(1, 8))
    return {
        "R": R,
        "r": (7.0, start, start + 4, 8),
        "v": np.arange(14)[:, None],
        "t": np.arange(8)[None],
    }


# ---- What is computed ---------------------------------------------------------------


def _decoded(*chunks: bytes) -> Any:
    """The events of a stream and its text, as the numbers of their characters."""
    events = "\0".join(event.data for event in sse_decode(chunks).events)
    return np.array([ord(char) for char in events + "".join(utf8_stream(chunks))])


def _replayed(s: Any, rows: Any) -> Any:
    """The statuses after some rows of a log."""
    events = [(str(key), str(status)) for key, status in rows]
    initial = {str(key): str(status) for key, status in enumerate(s)}
    after = replay_events(events, initial=initial)
    return np.array([int(after[str(key)]) for key in range(len(s))])


def _transferred(amount: int) -> Any:
    """What both halves hold after a transfer that nobody disturbs."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "bank.db")
        open_accounts(path)
        transfer(path, amount)
        return _halves(balances(path))


def _killed(amount: int) -> Any:
    """What both halves hold after a kill before COMMIT, and after one behind it."""
    rows = []
    for when in ("before COMMIT", "after COMMIT"):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "bank.db")
            open_accounts(path)
            rows.append(_halves(killed_transfer(path, amount, when).balances))
    return np.array(rows)


def _halves(found: dict[int, int]) -> Any:
    return np.array([min(found), max(found)])


def _swapped(v: Any, n: Any, w: Any, seen: Any) -> Any:
    swaps = [
        compare_and_swap(Versioned(old, int(at)), expect=int(expect), new=new).now
        for old, at, new, expect in zip(v, n, w, seen, strict=True)
    ]
    return np.array(swaps).T


def _answers(facts: Sequence[Fact], valid: Any, known: Any) -> Any:
    """For each pair of times; 0 where nothing is on record."""

    def one(v: float, t: float) -> float:
        return bitemporal_lookup(facts, valid_at=v, known_at=t) or 0.0

    return np.vectorize(one, otypes=[float])(valid, known)


def _with_one(facts: Sequence[Fact], record: tuple[float, int, int, int]) -> list[Fact]:
    value, start, end, at = record
    return bitemporal_record(facts, value, valid_from=start, valid_to=end, at=at)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "D": _decoded,
    "F": _replayed,
    "A": _answers,
    "pair": lambda *parts: np.array(parts),
    "with_one": _with_one,
}


formula(
    "decode_cut",
    "D(join(x, y))",
    "D(x, y)",
    symbols=SYMBOLS,
    functions={**FUNCTIONS, "join": lambda x, y: x + y},
    chapter=CHAPTER,
    draw=a_cut_stream,
    operations=("sse_decode", "utf8_stream"),
    checks=("sse_every_byte_split", "sse_every_rule_every_split", "utf8_every_split"),
)
formula(
    "replay_cut",
    "F(s, join(x, y))",
    "F(F(s, x), y)",
    symbols=SYMBOLS,
    functions={**FUNCTIONS, "join": lambda x, y: np.concatenate([x, y])},
    chapter=CHAPTER,
    draw=a_cut_log,
    operations=("replay_events",),
    checks=("replay_twice", "compaction_same_state"),
)
formula(
    "killed_transfer",
    "b if t < commit else T(b)",
    defines="reopened",
    symbols=SYMBOLS,
    chapter=CHAPTER,
    draw=a_kill,
    function=_killed,
    operations=("transfer",),
    checks=("killed_before_commit", "killed_after_commit"),
)
formula(
    "compare_and_swap",
    "pair(w, n + 1) if n == seen else pair(v, n)",
    defines="after",
    symbols=SYMBOLS,
    functions=FUNCTIONS,
    chapter=CHAPTER,
    draw=some_swaps,
    function=_swapped,
    operations=("compare_and_swap",),
    checks=("swap_refuses_stale", "swap_sees_there_and_back"),
)
formula(
    "record_changes_no_past",
    "A(with_one(R, r), v, t)",
    "A(R, v, t)",
    where=r" \quad \text{for } t < t_r",
    symbols=SYMBOLS,
    functions=FUNCTIONS,
    chapter=CHAPTER,
    draw=a_record,
    operations=("bitemporal_record", "bitemporal_lookup"),
    checks=("bitemporal_past_unchanged", "bitemporal_latest_record_wins"),
)
