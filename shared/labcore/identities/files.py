"""Files: what must hold when processes meet, and how it breaks.

These checks use real files and other processes. They draw nothing, and each takes a
few tenths of a second.
"""

from __future__ import annotations

import inspect
import os
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ..ops import _op
from ..systems._child import ALONE
from ..systems.files import (
    atomic_replace,
    interrupted_replace,
    lost_update,
    overtaken_comparison,
    read,
    replace_if_unchanged,
)
from ._check import FAULTS, nothing
from .worked import state as chapter


@contextmanager
def a_file(text: str) -> Iterator[Path]:
    """A file with a directory of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "notes.txt")
        path.write_bytes(text.encode())
        yield path


IN_CHILDREN = ("atomic_replace", "replace_if_unchanged", "transfer")


def told() -> Sequence[str]:
    """The command that starts another process with whatever stands in here.

    It is told a known fault by its name, and any other stand-in by its source. Raises
    RuntimeError for a function whose source cannot be found.
    """
    standing = {n: s for n, s in _op._stand_ins.items() if n in IN_CHILDREN}
    if not standing:
        return ALONE
    [(operation, stand_in)] = standing.items()
    command = [sys.executable, "-m", "labcore._told"]
    for name, fault in FAULTS.items():
        if fault.by is stand_in.function:
            topic = fault.by.__module__.rpartition(".")[2]
            return [*command, "fault", topic, name]
    try:
        source = inspect.getsource(inspect.unwrap(stand_in.function))
    except (OSError, TypeError):
        raise RuntimeError(
            "this check runs another process, which cannot be told a function whose "
            "source is not to be found: write it in a cell, with def"
        ) from None
    return [*command, "source", operation, textwrap.dedent(source)]


# ---- What must hold ---------------------------------------------------------------


@chapter.check(
    "replace_leaves_new_only",
    "After a replacement the file holds the new text, and nothing is left beside it.",
    draw=nothing,
    kind="exact",
)
def _():
    with a_file("old") as path:
        atomic_replace(path, "new\r\n学习\n")
        return [path.read_bytes(), os.listdir(path.parent)], [
            "new\r\n学习\n".encode(),
            ["notes.txt"],
        ]


@chapter.check(
    "replace_all_or_nothing",
    "A process killed at the last moment leaves the old text, as it was just before.",
    draw=nothing,
    kind="exact",
)
def _():
    old, new = "old " * 1000, "new " * 1000
    with a_file("") as path:
        atomic_replace(path, old)
        seen = interrupted_replace(path, new, command=told())
    return seen, (old, old)


@chapter.check(
    "replace_loses_an_update",
    "Two processes read, then both replace: both are told it went well, one is lost.",
    draw=nothing,
    kind="exact",
)
def _():
    # B writes "7B"; A, which has read "7", writes "7A" over it.
    with a_file("7") as path:
        seen = lost_update(path, ("A", "B"), compared=False, command=told())
    return tuple(seen), ("written", "written", "7A")


@chapter.check(
    "compare_keeps_the_update",
    "The same steps with a comparison: the late one is refused, and tries again.",
    draw=nothing,
    kind="exact",
)
def _():
    with a_file("7") as path:
        seen = lost_update(path, ("A", "B"), compared=True, command=told())
        again = replace_if_unchanged(path, "7B", "7BA")
        return (tuple(seen), again, read(path)), (
            ("refused", "written", "7B"),
            True,
            "7BA",
        )


@chapter.check(
    "compare_excludes_others",
    "Between a comparison and its rename nobody else is let in.",
    draw=nothing,
    kind="exact",
)
def _():
    with a_file("7") as path:
        seen = overtaken_comparison(path, ("A", "B"), command=told())
        left = os.listdir(path.parent)
    return (seen, left), (("written", "refused", "7A"), ["notes.txt"])


@chapter.check(
    "compare_refuses_stale",
    "Who saw version 7 does not replace version 9; who saw 9 does.",
    draw=nothing,
    kind="exact",
)
def _():
    with a_file("v9") as path:
        stale, kept = replace_if_unchanged(path, "v7", "v8"), read(path)
        fresh, new = replace_if_unchanged(path, "v9", "v10"), read(path)
        again = replace_if_unchanged(path, "v10", "v11")  # no lock was left behind
    return (stale, kept, fresh, new, again), (False, "v9", True, "v10", True)


# ---- How it breaks ------------------------------------------------------------------


@chapter.fault(
    "replace_in_place",
    "the file is opened for writing, and written",
    operation="atomic_replace",
    story=(
        "open(path, 'w') empties the file first: whoever reads then, or whoever is "
        "killed, has half of it."
    ),
    made_for="replace_all_or_nothing",
    stays_green="replace_leaves_new_only",
)
def _(path, text, *, hold=lambda word: None):
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(text[: len(text) // 2])
        file.flush()
        hold("written")
        file.write(text[len(text) // 2 :])


@chapter.fault(
    "replace_copies",
    "the new text is copied from the file beside, which stays",
    operation="atomic_replace",
    story="A copy for a rename: the directory fills, and the copy is not atomic.",
    made_for="replace_leaves_new_only",
    stays_green="compare_refuses_stale",
)
def _(path, text, *, hold=lambda word: None):
    beside = Path(f"{path}.new")
    beside.write_bytes(text.encode())
    hold("written")
    Path(path).write_bytes(beside.read_bytes())


@chapter.fault(
    "replace_translates_line_ends",
    "line ends are made those of the system, or of one kind",
    operation="atomic_replace",
    story="Text mode without newline='': a file of another system changes throughout.",
    made_for="replace_leaves_new_only",
    stays_green="replace_all_or_nothing",
)
def _(path, text, *, hold=lambda word: None):
    atomic_replace(path, text.replace("\r\n", "\n"), hold=hold)


@chapter.fault(
    "replace_skips_existing",
    "a file that is there is left as it is",
    operation="atomic_replace",
    story=(
        "os.rename fails on Windows where the target exists; the failure was passed "
        "over."
    ),
    made_for="replace_loses_an_update",
    stays_green="receipt_once",
)
def _(path, text, *, hold=lambda word: None):
    hold("written")
    if not Path(path).exists():
        atomic_replace(path, text)


@chapter.fault(
    "compare_not_at_all",
    "an atomic replacement is taken for a comparison",
    operation="replace_if_unchanged",
    story="Atomic says that nobody sees half a file, not that nobody was there before.",
    made_for="compare_keeps_the_update",
    stays_green="replace_leaves_new_only",
)
def _(path, expect, text, *, hold=lambda word: None):
    hold("compared")
    atomic_replace(path, text)
    return True


@chapter.fault(
    "compare_without_lock",
    "the text is compared, and then replaced",
    operation="replace_if_unchanged",
    story=(
        "Check, then act: between the two somebody else may act, and with one process "
        "nobody ever does."
    ),
    made_for="compare_excludes_others",
    stays_green="compare_keeps_the_update",
)
def _(path, expect, text, *, hold=lambda word: None):
    if read(path) != expect:
        return False
    hold("compared")
    atomic_replace(path, text)
    return True


@chapter.fault(
    "compare_leaves_lock",
    "a refused comparison leaves its lock behind",
    operation="replace_if_unchanged",
    story="An early return past the clean-up: the next writer waits for nobody.",
    made_for="compare_refuses_stale",
    stays_green="replace_leaves_new_only",
)
def _(path, expect, text, *, hold=lambda word: None):
    done = replace_if_unchanged(path, expect, text, hold=hold)
    if read(path) not in (expect, text):
        Path(f"{path}.lock").touch()
    return done
