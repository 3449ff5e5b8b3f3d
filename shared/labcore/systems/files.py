"""Replacing a file: all of it or nothing, and over what one has read or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from ..ops._op import op
from ._child import ALONE, Child, step


class LostUpdate(NamedTuple):
    """What two writers were told, and what the file holds at the end."""

    told_a: str
    told_b: str
    content: str


def _nothing(word: str) -> None:
    """Where a lesson may hold the writer."""


def _path(name: str, path: str | os.PathLike[str]) -> None:
    if not isinstance(path, (str, os.PathLike)) or not os.fspath(path):
        raise ValueError(f"{name} must be the path of a file, got {path!r}")
    if not Path(path).parent.is_dir():
        raise ValueError(f"{name} must be in a directory that is there, got {path!r}")


def _text(**texts: str) -> None:
    for name, text in texts.items():
        if not isinstance(text, str):
            raise ValueError(f"{name} must be text, got {text!r}")


def _held(hold: Callable[[str], None]) -> None:
    if not callable(hold):
        raise ValueError(f"hold must be a function, got {hold!r}")


def _replacing(
    path: str | os.PathLike[str],
    text: str,
    *,
    hold: Callable[[str], None] = _nothing,
) -> None:
    _path("path", path)
    _text(text=text)
    _held(hold)


def _comparing(
    path: str | os.PathLike[str],
    expect: str,
    text: str,
    *,
    hold: Callable[[str], None] = _nothing,
) -> None:
    _path("path", path)
    _text(expect=expect, text=text)
    _held(hold)


@op(_replacing, effects=True)
def atomic_replace(
    path: str | os.PathLike[str],
    text: str,
    *,
    hold: Callable[[str], None] = _nothing,
) -> None:
    """Put a new content in place of a file's old one, whole or not at all.

    The new content is written beside the file and brought to the disk; one rename then
    puts it in place. Whoever reads sees all of the old or all of the new, and a
    process that is killed before the rename leaves the old. Nothing is compared: who
    replaces last wins. hold(word) is called at the last moment before the rename.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     atomic_replace(folder + "/a.txt", "new")
    ...     Path(folder, "a.txt").read_text()
    'new'
    """
    path = Path(path)
    descriptor, beside = tempfile.mkstemp(prefix=path.name, dir=path.parent)
    try:
        with open(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        hold("written")
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise


@op(_comparing, effects=True)
def replace_if_unchanged(
    path: str | os.PathLike[str],
    expect: str,
    text: str,
    *,
    hold: Callable[[str], None] = _nothing,
) -> bool:
    """Replace a file if it still holds what was read: compare and swap.

    expect: the content that the writer has seen. A lock file, made so that only one can
    make it, holds off the others between the comparison and the rename. Returns False,
    and changes nothing, where the content is another or somebody holds the lock: read
    again, and try again. hold(word) is called between comparison and rename. A process
    killed there leaves its lock behind.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     atomic_replace(folder + "/a.txt", "9")
    ...     replace_if_unchanged(folder + "/a.txt", "7", "8")
    False
    """
    lock = Path(f"{os.fspath(path)}.lock")
    try:
        lock.touch(exist_ok=False)
    except FileExistsError:
        return False
    try:
        if read(path) != expect:
            return False
        hold("compared")
        atomic_replace(path, text)
        return True
    finally:
        lock.unlink()


def read(path: str | os.PathLike[str]) -> str:
    """The content of a file, its line ends as they are."""
    with open(path, encoding="utf-8", newline="") as file:
        return file.read()


# ---- Two processes ------------------------------------------------------------------


def lost_update(
    path: str | os.PathLike[str],
    letters: tuple[str, str],
    *,
    compared: bool,
    command: Sequence[str] = ALONE,
) -> LostUpdate:
    """Two processes read a file, add a letter, and write, one after the other.

    The other process, A, and this one, B, have both read before either writes; B
    writes first. A waits for its turn at a pipe, so that the order is no accident.
    compared: whether they replace only what they have read. The letters that the file
    holds at the end are those whose work is kept.
    """
    how = "compared" if compared else "replaced"
    place = os.fspath(path)
    with Child("write", place, letters[0], how, command=command) as a:
        if a.says() != "read":
            raise RuntimeError("the other process did not read first")
        told_b = _write(path, read(path), letters[1], how)
        a.go_on()
        told_a = a.says()
    return LostUpdate(told_a, told_b, read(path))


def interrupted_replace(
    path: str | os.PathLike[str], text: str, *, command: Sequence[str] = ALONE
) -> tuple[str, str]:
    """What a file holds just before it is replaced, and after a kill at that moment."""
    with Child("replace", os.fspath(path), text, command=command) as other:
        other.says()
        before = read(path)
        other.kill()
    return before, read(path)


def overtaken_comparison(
    path: str | os.PathLike[str],
    letters: tuple[str, str],
    *,
    command: Sequence[str] = ALONE,
) -> tuple[str, str, str]:
    """Somebody comes between another's comparison and its rename.

    The other process, A, has compared and is held; this one, B, tries to write; A goes
    on. Returns what A and B were told, and what the file holds.
    """
    with Child("write", os.fspath(path), letters[0], "held", command=command) as a:
        a.says()
        a.go_on()
        if a.says() != "compared":
            raise RuntimeError("the other process did not stop at its comparison")
        told_b = _write(path, read(path), letters[1], "compared")
        a.go_on()
        told_a = a.says()
    return told_a, told_b, read(path)


def write_in_steps(path: str, letter: str, how: str) -> None:
    """A role: read, wait, write what was read and a letter, say how it went."""
    seen = read(path)
    step("read")
    step(_write(path, seen, letter, how))


def _write(path: str | os.PathLike[str], seen: str, letter: str, how: str) -> str:
    """Add a letter to what was seen, by replacing or comparing; how it went."""
    if how == "replaced":
        atomic_replace(path, seen + letter)
        return "written"
    hold = step if how == "held" else _nothing
    done = replace_if_unchanged(path, seen, seen + letter, hold=hold)
    return "written" if done else "refused"


def replace_in_steps(path: str, text: str) -> None:
    """A role: replace a file, held at the last moment."""
    atomic_replace(path, text, hold=step)
    step("replaced")
