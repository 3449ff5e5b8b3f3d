"""What the programs of the course share: options with clear messages, safe output."""

from __future__ import annotations

import argparse
import difflib
import errno
import os
import sys
from collections.abc import Iterable
from typing import Any, TextIO


class Parser(argparse.ArgumentParser):
    """A parser whose help and errors survive every locale and a reader who has gone."""

    def _print_message(self, message: str, file: Any = None) -> None:
        say(message, file or sys.stderr, end="")


class Once(argparse.Action):
    """An option that may be given only once: the second would win in silence."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        if getattr(namespace, self.dest) is not None:
            parser.error(f"{option_string} is given twice")
        setattr(namespace, self.dest, values)


def whole(text: str) -> int:
    """0, 1, 2, ... in plain digits."""
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise argparse.ArgumentTypeError(f"wants a whole number from 0, got {text!r}")
    return int(text)


def unknown(what: str, name: str, names: Iterable[str], option: str) -> str:
    """The message for a name that is not there, with those that are spelt like it."""
    near = difflib.get_close_matches(name, list(names), 3)
    hint = f"did you mean {', '.join(near)}?" if near else f"{option} shows all"
    return f"no {what} named {name!r}; {hint}"


def say(text: str, stream: TextIO | None, end: str = "\n") -> None:
    """Write, in ASCII; quietly give up when the reader has gone (| head -1)."""
    if stream is None:
        return
    try:
        stream.write(text.encode("ascii", "backslashreplace").decode() + end)
        stream.flush()
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.EINVAL):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
