"""Exercises on streams and state."""

from __future__ import annotations

from collections.abc import Callable

from ..examples import EXAMPLES
from ..identities import FAULTS
from ..systems.state import Fact, bitemporal_lookup, bitemporal_record
from ..systems.streams import SSEStream, sse_decode
from . import exercise

# Two streams that show every wrong decoder at some cut. One cannot: a lookahead past
# the last CR shows by a good retry time in the last line, a time read by int() by a bad
# one that no good one follows.
TELLING = (
    (
        "\ufeffid: 1\r\nevent: note\r\ndata:  é\u2028\r\ndata: x\ufeff\r\n\r\n"
        "event: alone\n\ndata: y\n\n"
    ).encode()
    + b"data: \xff\n\ndata: z\rretry: 5\r",
    b"retry: +7\n",
)


@exercise(
    "streams/inside",
    hint="A character of n bytes has n - 1 cuts inside it, and no other cut harms.",
    because="Bytes minus characters: only a cut inside a character harms this decoder.",
    line="data: né 我🙂\n\n",
)
def _(line: str) -> int:
    body = line.encode()
    cut_up = FAULTS["sse_characters_chunk_by_chunk"].by
    whole = sse_decode([body])
    return sum(cut_up([body[:i], body[i:]]) != whole for i in range(1, len(body)))


@exercise(
    "streams/two_times",
    hint="Which records were there on that day, and which of those covers the day?",
    because="The third record was not there yet; then it was; its end is outside it.",
    value=6,
    valid_from=3,
    valid_to=6,
    at=12,
    asked=[(5, 11), (5, 12), (6, 12)],
)
def _(asked: list[tuple[int, int]], **third: int) -> list[int]:
    facts: list[Fact] = []
    for record in (*EXAMPLES["Q071"].givens["records"], third):
        facts = bitemporal_record(facts, **record)
    return [
        bitemporal_lookup(facts, valid_at=valid, known_at=known)
        for valid, known in asked
    ]


@exercise(
    "streams/telling",
    hint="Print the faults that are missing: each title says which bytes it needs.",
    because="Rules had to be in the stream; more cuts would never have done it.",
)
def _() -> set[str]:
    first, second = TELLING
    return shown_by(first) | shown_by(second)


def shown_by(body: bytes) -> set[str]:
    """The wrong decoders that some cut of this stream shows, or the whole of it."""
    right = sse_decode([body])
    return {
        fault.id
        for fault in FAULTS.values()
        if fault.operation == "sse_decode"
        and any(
            _differs(fault.by, [body[:i], body[i:]], right)
            for i in range(len(body) + 1)
        )
    }


def _differs(
    decode: Callable[..., SSEStream], chunks: list[bytes], right: SSEStream
) -> bool:
    try:
        return decode(chunks) != right
    except ValueError:
        return True
