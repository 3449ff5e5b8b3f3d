"""A transaction on a real SQLite file, and what a kill leaves of it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from ..ops import _validate as must
from ..ops._op import op
from ._child import ALONE, Child, step
from .files import _held, _nothing, _path

PAGES = 2  # of cache: what does not fit is written to the file before COMMIT
ACCOUNTS, BALANCE = 600, 100
PADDING = "." * 200  # so that the accounts fill many pages

Place = str | os.PathLike[str]


class Killed(NamedTuple):
    """What lay on the disk after a kill, and what the database says reopened."""

    hot_journal: bool
    file_changed: bool
    balances: dict[int, int]


def _moved(path: Place, amount: int, *, hold: Callable[[str], None] = _nothing) -> None:
    _path("path", path)
    must.count(1, amount=amount)
    _held(hold)


def _receipt(path: Place, key: str, result: str) -> None:
    _path("path", path)
    for name, text in (("key", key), ("result", result)):
        if not isinstance(text, str) or not text:
            raise ValueError(f"{name} must be text, got {text!r}")


@op(_moved, effects=True)
def transfer(
    path: Place, amount: int, *, hold: Callable[[str], None] = _nothing
) -> None:
    """Move an amount from every account of one half to its fellow in the other.

    One transaction: both updates or neither. The page cache is so small that changed
    pages go to the file before COMMIT; what they were is in the rollback journal
    beside it until then, and the commit is the moment that the journal goes.
    hold(word) is called before COMMIT and after it. The database is one of
    :func:`open_accounts`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     open_accounts(folder + "/bank.db")
    ...     transfer(folder + "/bank.db", 10)
    ...     balances(folder + "/bank.db")
    {90: 300, 110: 300}
    """
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(f"PRAGMA cache_size = {PAGES}")
        db.execute("BEGIN IMMEDIATE")
        half = ACCOUNTS // 2
        db.execute(
            "UPDATE account SET balance = balance - ? WHERE id < ?", (amount, half)
        )
        db.execute(
            "UPDATE account SET balance = balance + ? WHERE id >= ?", (amount, half)
        )
        hold("before COMMIT")
        db.execute("COMMIT")
        hold("after COMMIT")


@op(_receipt, effects=True)
def record_receipt(path: Place, key: str, result: str) -> str:
    """Write down the result of an operation once; return the one that stands.

    The key is unique in the database, which refuses a second row in one step: looking
    first and inserting then would let two processes both find nothing. The first
    result stays, whatever the second says.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for result in ("done", "again"):
    ...         record_receipt(folder + "/receipts.db", "op1", result)
    'done'
    'done'
    """
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE IF NOT EXISTS receipt (key TEXT PRIMARY KEY, result)")
        db.execute("INSERT OR IGNORE INTO receipt VALUES (?, ?)", (key, result))
        [found] = db.execute("SELECT result FROM receipt WHERE key = ?", (key,))
        return found[0]


def open_accounts(path: Place) -> None:
    """A database of accounts, all with the same balance."""
    rows = [(id, BALANCE, PADDING) for id in range(ACCOUNTS)]
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE account (id INTEGER PRIMARY KEY, balance, padding)")
        db.executemany("INSERT INTO account VALUES (?, ?, ?)", rows)


def balances(path: Place) -> dict[int, int]:
    """How many accounts have which balance."""
    with closing(sqlite3.connect(path)) as db:
        rows = db.execute("SELECT balance, count(*) FROM account GROUP BY balance")
        return dict(rows.fetchall())


def killed_transfer(
    path: Place, amount: int, when: str, *, command: Sequence[str] = ALONE
) -> Killed:
    """Kill a process inside a transfer, look at the files, open the database again.

    when: "before COMMIT" or "after COMMIT".
    """
    place = Path(path)
    untouched = place.read_bytes()
    with Child("transfer", os.fspath(path), str(amount), command=command) as other:
        while other.says() != when:
            other.go_on()
        other.kill()
    journal = Path(f"{place}-journal")
    hot = journal.exists() and journal.stat().st_size > 0
    changed = place.read_bytes() != untouched
    return Killed(hot, changed, balances(path))


def transfer_in_steps(path: str, amount: str) -> None:
    """A role: a transfer, held before its COMMIT and after it."""
    transfer(path, int(amount), hold=step)
