"""Streams of bytes: what must hold, and how it breaks."""

from __future__ import annotations

import codecs
from itertools import pairwise

from ..systems.streams import SSEDecoder, SSEEvent, sse_decode, utf8_stream
from ._check import Inputs, Rng, nothing
from .worked import state as chapter

JSON = 'data: {"path":"学习.py"}\n\n'.encode()
# Every rule that a cut could harm: a byte order mark, CR LF, CR, a comment, several
# data lines, an id, a retry time, U+2028, characters of two to four bytes.
BODY = (
    "\ufeffid: 7\r\nevent: note\r\ndata: é\r\ndata: 漢🙂\r\n\r\n"
    ": a comment\r\rretry: 1500\rdata:  two\u2028parts\r\rdata: last\n\nid\ndata\n\n"
).encode()
EVENTS = [
    ("note", "é\n漢🙂", "7"),
    ("message", " two\u2028parts", "7"),
    ("message", "last", "7"),
    ("message", "", ""),
]


# ---- What is drawn ----------------------------------------------------------------


def some_events(rng: Rng, size: int) -> Inputs:
    """Events as a server writes them, every line with an end of its own kind."""
    lines, events = [], []
    for i in range(size + 2):
        data = [f"{rng.integers(1000)} ü漢🙂\u2028", "", f": {i}"][: 1 + i % 3]
        kind = ["message", "token"][i % 2]
        lines += [": keep alive", f"id: {i}"] + [f"data: {part}" for part in data]
        lines += [f"event: {kind}", ""]
        events.append((kind, "\n".join(data), str(i)))
    ends = ["\r\n", "\r", "\n"]
    body, before = "", ""
    for i, line in enumerate(lines):
        # A bare CR before an empty line that ends in LF would be read as one end.
        choice = ends[(i + int(rng.integers(2))) % 3]
        if not line and before == "\r" and choice == "\n":
            choice = "\r\n"
        body += line + choice
        before = choice
    whole = body.removesuffix(before).encode() + b"\r\n"
    inside = whole.index("漢".encode()) + 1  # one cut is inside a character
    cuts = [inside, *rng.integers(0, len(whole), size=3 * size).tolist()]
    return {"body": whole, "events": events, "cuts": sorted(cuts)}


def some_text(rng: Rng, size: int) -> Inputs:
    """Text of characters of one to four bytes."""
    letters = rng.choice(list("aé漢🙂"), size=4 * size)
    return {"text": "é漢🙂" + "".join(letters.tolist())}


def _plain(events: list[SSEEvent]) -> list[tuple[str, str, str]]:
    return [(e.event, e.data, e.last_event_id) for e in events]


def _cut(body: bytes, cuts: list[int]) -> list[bytes]:
    return [body[a:b] for a, b in pairwise([0, *cuts, len(body)])]


# ---- What must hold ---------------------------------------------------------------


@chapter.check(
    "sse_every_byte_split",
    "A line of JSON with Chinese characters survives every cut in two.",
    draw=nothing,
    kind="exact",
)
def _():
    got = [_plain(sse_decode(_cut(JSON, [i])).events) for i in range(len(JSON) + 1)]
    return got, [[("message", '{"path":"学习.py"}', "")]] * len(got)


@chapter.check(
    "sse_every_rule_every_split",
    "So does a stream that uses every rule, and one that comes byte by byte.",
    draw=nothing,
    kind="exact",
)
def _():
    cuts = [[i] for i in range(len(BODY) + 1)] + [list(range(1, len(BODY)))]
    streams = [sse_decode(_cut(BODY, cut)) for cut in cuts]
    got = [(_plain(s.events), s.last_event_id, s.retry) for s in streams]
    return got, [(EVENTS, "", 1500)] * len(cuts)


@chapter.check(
    "sse_written_and_read",
    "What a server writes is what a client reads, with any line ends and any cuts.",
    draw=some_events,
    kind="exact",
)
def _(body, events, cuts):
    stream = sse_decode(_cut(body, cuts))
    return (_plain(stream.events), stream.last_event_id), (events, events[-1][2])


@chapter.check(
    "sse_as_they_come",
    "An event is there as soon as its empty line is, whatever follows.",
    draw=nothing,
    kind="exact",
)
def _():
    # The stream so far is decoded after each byte: events appear one at a time.
    body = b"data: a\n\ndata: b\r\n\r\n"
    got = [len(sse_decode([body[:i]]).events) for i in range(len(body) + 1)]
    return got, [0] * 9 + [1] * 10 + [2] * 2  # at the CR of the empty line


@chapter.check(
    "sse_unfinished_is_dropped",
    "Without its empty line an event is not dispatched, whatever is known of it.",
    draw=nothing,
    kind="exact",
)
def _():
    tails = [b'data: {"x":1}', b'data: {"x":1}\n', b"id: 1\ndata: a\n", b""]
    got = [sse_decode([b"data: whole\n\n", tail]) for tail in tails]
    alone = [tuple(sse_decode([tail])) for tail in tails]
    return (
        ([_plain(s.events) for s in got], alone),
        ([[("message", "whole", "")]] * 4, [([], "", None)] * 4),
    )


@chapter.check(
    "sse_line_ends",
    "LF, CR LF and CR end a line; form feed, next line and U+2028 do not.",
    draw=nothing,
    kind="exact",
)
def _():
    inside = "a\v\f\x1c\x1d\x1e\x85\u2028\u2029b"
    got = [
        _plain(sse_decode([f"data: {inside}{end}data: c{end}{end}".encode()]).events)
        for end in ("\n", "\r\n", "\r")
    ]
    return got, [[("message", f"{inside}\nc", "")]] * 3


@chapter.check(
    "sse_byte_order_mark",
    "One byte order mark at the very start is dropped; a second is part of a field.",
    draw=nothing,
    kind="exact",
)
def _():
    mark, rest = codecs.BOM_UTF8, b"data: a\n\n"
    bodies = [mark + rest, mark + mark + rest, rest + mark + rest]
    got = [len(sse_decode([body]).events) for body in bodies]
    return got, [1, 0, 1]


@chapter.check(
    "sse_fields",
    "One space is dropped, no colon is an empty value, names are exact.",
    draw=nothing,
    kind="exact",
)
def _():
    bodies = ["data:x", "data: x", "data:  x", "data: x ", "data", "Data: x"]
    bodies += [" data: x", "data: a: b", ": data: x", "data\ndata"]
    got = [
        [e.data for e in sse_decode([f"{body}\n\n".encode()]).events] for body in bodies
    ]
    want = [["x"], ["x"], [" x"], ["x "], [""], [], [], ["a: b"], [], ["\n"]]
    return got, want


@chapter.check(
    "sse_event_without_data",
    "An event without data is not dispatched, and its type does not reach the next.",
    draw=nothing,
    kind="exact",
)
def _():
    stream = sse_decode([b"event: x\n\n\n\n: hi\n\ndata: y\n\nevent: z\ndata:\n\n"])
    return _plain(stream.events), [("message", "y", ""), ("z", "", "")]


@chapter.check(
    "sse_last_event_id",
    "An id stays until it is changed or emptied, one with a NUL is ignored.",
    draw=nothing,
    kind="exact",
)
def _():
    blocks = ["id: 7\ndata: a", "data: b", "id: 8\0\ndata: c", "id: 9", "data: d"]
    blocks += ["id\ndata: e", "id: 5\ndata"]
    stream = sse_decode(["".join(f"{b}\n\n" for b in blocks).encode()])
    resumed = sse_decode([b"data: a\n\nid: 4\n"], last_event_id="3")
    return (
        [e.last_event_id for e in stream.events],
        stream.last_event_id,
        [e.last_event_id for e in resumed.events],
        resumed.last_event_id,  # the 4 was never dispatched
    ), (["7", "7", "7", "9", "", "5"], "5", ["3"], "3")


@chapter.check(
    "sse_retry",
    "A retry time of ASCII digits is taken, any other ignored.",
    draw=nothing,
    kind="exact",
)
def _():
    values = ["1000", "0", "10x", "-5", "1.5", "", " 7", "٣", "9" * 5000]
    got = [sse_decode([f"retry: {v}\n\n".encode()]).retry for v in values]
    kept = sse_decode([b"retry: 1000\nretry: x\n\n"]).retry
    return [*got, kept], [1000, 0, *[None] * 7, 1000]


@chapter.check(
    "sse_bad_bytes_replaced",
    "Bytes that are not UTF-8 become replacement characters, and nothing raises.",
    draw=nothing,
    kind="exact",
)
def _():
    got = [
        [e.data for e in sse_decode(chunks).events]
        for chunks in ([b"data: \xff\xfe\n\n"], [b"data: \xe6", b"x\n\n"])
    ]
    return got, [["\ufffd\ufffd"], ["\ufffdx"]]


@chapter.check(
    "utf8_three_bytes",
    "我 is the bytes 230, 136, 145, and comes with the last of them.",
    draw=nothing,
    kind="exact",
)
def _():
    # U+6211 = 0110 001000 010001: 1110.... 10...... 10...... around its sixteen bits.
    point = 0x6211
    bits = [0xE0 | point >> 12, 0x80 | point >> 6 & 0x3F, 0x80 | point & 0x3F]
    got = utf8_stream([bytes([b]) for b in bits])
    return (bits, got), ([230, 136, 145], ["", "", chr(point)])


@chapter.check(
    "utf8_every_split",
    "Characters of one to four bytes survive every cut, each with its last byte.",
    draw=some_text,
    kind="exact",
)
def _(text, **_):
    data, got, want = text.encode(), [], []
    for i in range(len(data) + 1):
        got.append(utf8_stream([data[:i], data[i:]]))
        whole = 0
        while len(text[: whole + 1].encode()) <= i and whole < len(text):
            whole += 1
        want.append([text[:whole], text[whole:]])
    return got, want


@chapter.check(
    "utf8_held_back",
    "Told that more may come, the beginning of a character is held back.",
    draw=some_text,
    kind="exact",
)
def _(text):
    return utf8_stream([text.encode(), b"\xf0\x9f"], flush=False), [text, ""]


@chapter.check(
    "utf8_refuses_unfinished",
    "A stream that ends inside a character is refused.",
    draw=nothing,
    kind="refuses",
)
def _():
    return lambda: utf8_stream([b"\xe6\xbc"]), "chunks"


# ---- How it breaks ------------------------------------------------------------------


def _decode_with(chunks, last_event_id, decoder):
    """The stream, by a decoder that somebody else wrote."""
    events = [event for chunk in chunks for event in decoder.feed(chunk)]
    kind = type(sse_decode([]))
    return kind(events, decoder.last_event_id, decoder.retry)


def _whole(chunks):
    """The text of a stream, its mark dropped and its line ends made LF."""
    text = b"".join(chunks).decode(errors="replace").removeprefix("\ufeff")
    return text.replace("\r\n", "\n").replace("\r", "\n")


@chapter.fault(
    "sse_each_chunk_alone",
    "every chunk is decoded by itself",
    operation="sse_decode",
    story=(
        "What the example is about, and what many clients do: it shows when a packet "
        "ends inside a character or an event."
    ),
    made_for="sse_every_byte_split",
    stays_green="sse_line_ends",
)
def _(chunks, *, last_event_id=""):
    events: list[SSEEvent] = []
    last, retry = last_event_id, None
    for chunk in chunks:
        stream = sse_decode([chunk], last_event_id=last)
        events, last, retry = events + stream.events, stream.last_event_id, stream.retry
    return type(sse_decode([]))(events, last, retry)


@chapter.fault(
    "sse_characters_chunk_by_chunk",
    "the bytes of every chunk are made text by themselves",
    operation="sse_decode",
    story="Events are buffered with care, characters are not.",
    made_for="sse_every_byte_split",
    stays_green="sse_fields",
)
def _(chunks, *, last_event_id=""):
    text = [chunk.decode(errors="replace").encode() for chunk in chunks]
    return sse_decode(text, last_event_id=last_event_id)


@chapter.fault(
    "sse_splitlines",
    "lines are split where Python's splitlines splits",
    operation="sse_decode",
    story=(
        "str.splitlines breaks at U+2028, at form feeds and at other characters that "
        "JSON may hold unescaped."
    ),
    made_for="sse_line_ends",
    stays_green="sse_every_byte_split",
)
def _(chunks, *, last_event_id=""):
    text = "\n".join(part for part in _whole(chunks).split("\n"))
    whole = text.endswith("\n")
    lines = "\n".join(text.splitlines()) + "\n" * whole
    return sse_decode([lines.encode()], last_event_id=last_event_id)


@chapter.fault(
    "sse_lf_only",
    "only LF ends a line",
    operation="sse_decode",
    story=(
        "Splitting on two LF: a server behind a proxy that writes CR LF never fires an "
        "event."
    ),
    made_for="sse_line_ends",
    stays_green="sse_every_byte_split",
)
def _(chunks, *, last_event_id=""):
    body = b"".join(chunks).replace(b"\r", b"\0")  # no end of a line any more
    return sse_decode([body], last_event_id=last_event_id)


@chapter.fault(
    "sse_crlf_cut_in_two",
    "a CR at the end of a chunk and the LF of the next end two lines",
    operation="sse_decode",
    story=(
        "Reported against several parsers: one event in two, whenever a chunk ends "
        "between CR and LF."
    ),
    made_for="sse_every_rule_every_split",
    stays_green="sse_every_byte_split",
)
def _(chunks, *, last_event_id=""):
    class Forgets(SSEDecoder):
        def feed(self, chunk):
            self._after_cr = False
            return super().feed(chunk)

    return _decode_with(chunks, last_event_id, Forgets(last_event_id))


@chapter.fault(
    "sse_cr_needs_next_byte",
    "a line that ends in CR waits for the byte after it",
    operation="sse_decode",
    story="Looking ahead for an LF: the last event comes one packet late, or never.",
    made_for="sse_as_they_come",
    stays_green="sse_every_byte_split",
)
def _(chunks, *, last_event_id=""):
    return sse_decode(
        [b"".join(chunks).removesuffix(b"\r")], last_event_id=last_event_id
    )


@chapter.fault(
    "sse_mark_kept",
    "a byte order mark is part of the first line",
    operation="sse_decode",
    story="The first event of a stream that was saved by an editor is lost.",
    made_for="sse_byte_order_mark",
    stays_green="sse_every_byte_split",
)
def _(chunks, *, last_event_id=""):
    body = b"".join(chunks)
    first = codecs.BOM_UTF8 if body.startswith(codecs.BOM_UTF8) else b""
    return sse_decode([first + body], last_event_id=last_event_id)


@chapter.fault(
    "sse_all_marks_dropped",
    "every byte order mark is dropped",
    operation="sse_decode",
    story="A replace over the whole text: data loses characters too.",
    made_for="sse_byte_order_mark",
    stays_green="sse_every_rule_every_split",
)
def _(chunks, *, last_event_id=""):
    body = b"".join(chunks).replace(codecs.BOM_UTF8, b"")
    return sse_decode([body], last_event_id=last_event_id)


@chapter.fault(
    "sse_flush_at_end",
    "the end of the stream dispatches what there is",
    operation="sse_decode",
    story=(
        "A public client hands out half an event when a connection breaks: valid JSON "
        "if one is unlucky."
    ),
    made_for="sse_unfinished_is_dropped",
    stays_green="sse_every_byte_split",
)
def _(chunks, *, last_event_id=""):
    return sse_decode([*chunks, b"\n\n"], last_event_id=last_event_id)


@chapter.fault(
    "sse_all_spaces_stripped",
    "values lose all spaces around them",
    operation="sse_decode",
    story="Tokens of a language model begin with the space that separates words.",
    made_for="sse_fields",
    stays_green="sse_every_byte_split",
)
def _(chunks, *, last_event_id=""):
    found = sse_decode(chunks, last_event_id=last_event_id)
    lines = [e.data.split("\n") for e in found.events]
    events = [
        e._replace(data="\n".join(part.strip(" ") for part in parts))
        for e, parts in zip(found.events, lines, strict=True)
    ]
    return found._replace(events=events)


@chapter.fault(
    "sse_empty_event_dispatched",
    "an event without data is dispatched",
    operation="sse_decode",
    story="A public Python client does so for a block that has only a type.",
    made_for="sse_event_without_data",
    stays_green="sse_every_byte_split",
)
def _(chunks, *, last_event_id=""):
    blocks = _whole(chunks).split("\n\n")
    with_data = [
        b + "\ndata" if b.strip("\n").startswith("event:") and "\ndata" not in b else b
        for b in blocks
    ]
    return sse_decode(["\n\n".join(with_data).encode()], last_event_id=last_event_id)


@chapter.fault(
    "sse_last_data_line_only",
    "a data line replaces the one before",
    operation="sse_decode",
    story="A dictionary of fields a block: streams of one-line JSON never show it.",
    made_for="sse_every_rule_every_split",
    stays_green="sse_every_byte_split",
)
def _(chunks, *, last_event_id=""):
    found = sse_decode(chunks, last_event_id=last_event_id)
    events = [e._replace(data=e.data.split("\n")[-1]) for e in found.events]
    return found._replace(events=events)


@chapter.fault(
    "sse_id_forgotten",
    "an event without an id has none",
    operation="sse_decode",
    story="The client reconnects from the start, and everything comes twice.",
    made_for="sse_last_event_id",
    stays_green="sse_every_byte_split",
)
def _(chunks, *, last_event_id=""):
    blocks = _whole(chunks).split("\n\n")
    reset = "\n\n".join("id\n" + b if "\ndata" in "\n" + b else b for b in blocks)
    return sse_decode([reset.encode()], last_event_id=last_event_id)


@chapter.fault(
    "sse_retry_as_int",
    "whatever Python's int reads is a retry time",
    operation="sse_decode",
    story="int takes signs, spaces and the digits of every script; not 5000 of them.",
    made_for="sse_retry",
    stays_green="sse_every_byte_split",
)
def _(chunks, *, last_event_id=""):
    class Reads(SSEDecoder):
        def _end_of_line(self, line):
            if line.startswith("retry:"):
                try:
                    self.retry = int(line[6:])
                except ValueError:
                    pass
                return []
            return super()._end_of_line(line)

    return _decode_with(chunks, last_event_id, Reads(last_event_id))


@chapter.fault(
    "sse_bad_bytes_raise",
    "bytes that are not UTF-8 raise",
    operation="sse_decode",
    story="One bad byte ends the stream; a public client does so.",
    made_for="sse_bad_bytes_replaced",
    stays_green="sse_every_byte_split",
)
def _(chunks, *, last_event_id=""):
    utf8_stream(chunks, flush=False)
    return sse_decode(chunks, last_event_id=last_event_id)


@chapter.fault(
    "utf8_each_chunk_alone",
    "every chunk is decoded by itself",
    operation="utf8_stream",
    story="Right for English, and for chunks that happen to end between characters.",
    made_for="utf8_three_bytes",
    stays_green="utf8_refuses_unfinished",
)
def _(chunks, *, flush=True):
    utf8_stream(chunks, flush=flush)
    return [bytes(chunk).decode(errors="replace") for chunk in chunks]


@chapter.fault(
    "utf8_all_at_the_end",
    "everything comes with the last chunk",
    operation="utf8_stream",
    story="Collected and decoded once: right, and no stream any more.",
    made_for="utf8_every_split",
    stays_green="utf8_three_bytes",
)
def _(chunks, *, flush=True):
    text = "".join(utf8_stream(chunks, flush=flush))
    return [*[""] * (len(chunks) - 1), text]


@chapter.fault(
    "utf8_flush_ignored",
    "a stream must always end between characters",
    operation="utf8_stream",
    story="The first half of a stream cannot be decoded while the second is awaited.",
    made_for="utf8_held_back",
    stays_green="utf8_three_bytes",
)
def _(chunks, *, flush=True):
    return utf8_stream(chunks)


@chapter.fault(
    "utf8_tail_dropped",
    "a character that was begun is forgotten in silence",
    operation="utf8_stream",
    story="errors='ignore', to make an exception go away.",
    made_for="utf8_refuses_unfinished",
    stays_green="utf8_three_bytes",
)
def _(chunks, *, flush=True):
    return utf8_stream(chunks, flush=False)
