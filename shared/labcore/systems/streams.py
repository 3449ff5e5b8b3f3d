"""Bytes that arrive in pieces: characters and events that no cut may harm."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from typing import NamedTuple

from ..ops._op import op

MOST_DIGITS = 15  # of a retry time: longer is no time, and Python refuses to read it


class SSEEvent(NamedTuple):
    """One event of an event stream."""

    event: str
    data: str
    last_event_id: str


class SSEStream(NamedTuple):
    """What a stream held: its events, and what a client keeps for reconnecting."""

    events: list[SSEEvent]
    last_event_id: str
    retry: int | None


class SSEDecoder:
    """Decode an event stream as its bytes arrive, however they are cut.

    The rules of the HTML standard (WHATWG 2025, server-sent events): UTF-8, bad bytes
    replaced; one byte order mark at the start is dropped; lines end in LF, CR LF or
    CR, and in nothing else; a line that begins with a colon is a comment; one space
    after a field's colon is dropped; data lines are joined by LF; an empty line
    dispatches, unless there was no data; an id with a NUL and a retry time that is not
    all digits are ignored; what is unfinished at the end of the stream is dropped.
    """

    def __init__(self, last_event_id: str = "") -> None:
        self.last_event_id = last_event_id  # as of the last dispatch
        self.retry: int | None = None  # milliseconds
        self._decode = codecs.getincrementaldecoder("utf-8")(errors="replace").decode
        self._at_start = True
        self._after_cr = False
        self._line: list[str] = []  # pieces of the line that has not ended
        self._data: list[str] = []
        self._type = ""
        self._id = last_event_id

    def feed(self, chunk: bytes) -> list[SSEEvent]:
        """The events that these bytes complete."""
        text = self._decode(chunk)
        if self._at_start and text:
            self._at_start = False
            text = text.removeprefix("\ufeff")
        if self._after_cr and text:
            self._after_cr = False
            text = text.removeprefix("\n")  # the CR has ended its line already
        self._after_cr = self._after_cr or text.endswith("\r")
        first, *others = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._line.append(first)
        events = []
        for piece in others:
            events += self._end_of_line("".join(self._line))
            self._line = [piece]
        return events

    def _end_of_line(self, line: str) -> list[SSEEvent]:
        if not line:
            return self._dispatch()
        field, _, value = line.partition(":")  # a comment's field is empty
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._type = value
        elif field == "id" and "\0" not in value:
            self._id = value
        elif field == "retry" and value.isascii() and value.isdecimal():
            if len(value) <= MOST_DIGITS:
                self.retry = int(value)
        return []

    def _dispatch(self) -> list[SSEEvent]:
        self.last_event_id = self._id
        data, kind = self._data, self._type or "message"
        self._data, self._type = [], ""
        return [SSEEvent(kind, "\n".join(data), self._id)] if data else []


def _chunks(chunks: Sequence[bytes], *, last_event_id: str = "") -> None:
    _bytes(chunks)
    if not isinstance(last_event_id, str):
        raise ValueError(f"last_event_id must be text, got {last_event_id!r}")


def _bytes(chunks: Sequence[bytes], *, flush: bool = True) -> None:
    if not isinstance(chunks, (list, tuple)):
        raise ValueError(f"chunks must be a list of bytes, got {chunks!r:.60}")
    for chunk in chunks:
        if not isinstance(chunk, (bytes, bytearray)):
            raise ValueError(f"chunks must hold bytes, got {chunk!r:.60}")


@op(_chunks)
def sse_decode(chunks: Sequence[bytes], *, last_event_id: str = "") -> SSEStream:
    """An event stream, from its first byte to its last, by :class:`SSEDecoder`.

    chunks: bytes in the order of arrival; where they are cut changes nothing.
    last_event_id: what an earlier connection left. Raises ValueError for what is not
    bytes; no byte is wrong.

    >>> sse_decode([b"data: a\\r", b"\\ndata: b\\n\\ndata: unfinished"]).events
    [SSEEvent(event='message', data='a\\nb', last_event_id='')]
    """
    decoder = SSEDecoder(last_event_id)
    events = [event for chunk in chunks for event in decoder.feed(chunk)]
    return SSEStream(events, decoder.last_event_id, decoder.retry)


@op(_bytes)
def utf8_stream(chunks: Sequence[bytes], *, flush: bool = True) -> list[str]:
    """The text that each chunk completes; a character cut in two comes with its end.

    A character takes one to four bytes, and a network cuts where it likes: decoding
    every chunk by itself breaks it. Joined, the answers are the text of the whole.
    Raises ValueError for bytes that are not UTF-8, and, if flush, for a stream that
    ends inside a character; without it the beginning is held back in silence.

    >>> utf8_stream([bytes([230]), bytes([136, 145])])
    ['', '我']
    """
    decode = codecs.getincrementaldecoder("utf-8")().decode
    try:
        text = [decode(bytes(chunk)) for chunk in chunks]
    except UnicodeDecodeError as error:
        raise ValueError(f"chunks are not UTF-8: {error}") from None
    try:
        decode(b"", final=flush)
    except UnicodeDecodeError:
        raise ValueError("chunks end inside a character") from None
    return text
