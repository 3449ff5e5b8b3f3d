"""A transaction and a kill: what must hold, and how it breaks.

These checks use a real database and other processes. They draw nothing, and each takes
a few tenths of a second.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from ..systems.database import (
    ACCOUNTS,
    BALANCE,
    balances,
    killed_transfer,
    open_accounts,
    record_receipt,
    transfer,
)
from .files import nothing, told
from .worked import state as chapter

HALF = ACCOUNTS // 2


@contextmanager
def accounts() -> Iterator[Path]:
    """A database of accounts with the same balance."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "bank.db")
        open_accounts(path)
        yield path


# ---- What must hold ---------------------------------------------------------------


@chapter.check(
    "transfer_committed",
    "A transfer takes from every account of one half and gives to all of the other.",
    draw=nothing,
    kind="exact",
)
def _():
    with accounts() as path:
        transfer(path, 10)
        first = balances(path)
        transfer(path, 5)
        return (first, balances(path)), (
            {BALANCE - 10: HALF, BALANCE + 10: HALF},
            {BALANCE - 15: HALF, BALANCE + 15: HALF},
        )


@chapter.check(
    "killed_before_commit",
    "Killed before COMMIT, with the file changed: the journal restores the old state.",
    draw=nothing,
    kind="exact",
)
def _():
    with accounts() as path:
        transfer(path, 10)
        seen = killed_transfer(path, 1, "before COMMIT", command=told())
    return tuple(seen), (True, True, {BALANCE - 10: HALF, BALANCE + 10: HALF})


@chapter.check(
    "killed_after_commit",
    "Killed after COMMIT, no journal is left, and the new state is there.",
    draw=nothing,
    kind="exact",
)
def _():
    with accounts() as path:
        transfer(path, 10)
        seen = killed_transfer(path, 1, "after COMMIT", command=told())
    return tuple(seen), (False, True, {BALANCE - 11: HALF, BALANCE + 11: HALF})


@chapter.check(
    "receipt_once",
    "A second receipt for the same operation changes nothing, and is told the first.",
    draw=nothing,
    kind="exact",
)
def _():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "receipts.db")
        written = [("op1", "done"), ("op1", "again"), ("op2", "done")]
        got = [record_receipt(path, *receipt) for receipt in written]
        with closing(sqlite3.connect(path)) as db:
            rows = db.execute("SELECT key, result FROM receipt ORDER BY key").fetchall()
            try:
                db.execute("INSERT INTO receipt VALUES ('op1', 'third')")
                refused = False
            except sqlite3.IntegrityError:
                refused = True
    return (got, rows, refused), (
        ["done", "done", "done"],
        [("op1", "done"), ("op2", "done")],
        True,
    )


# ---- How it breaks ------------------------------------------------------------------


@chapter.fault(
    "transfer_statement_by_statement",
    "every statement is a transaction of its own",
    operation="transfer",
    story=(
        "Autocommit, which is the default of most drivers: killed half-way, money is "
        "gone from one half and has not come to the other."
    ),
    made_for="killed_before_commit",
    stays_green="transfer_committed",
)
def _(path, amount, *, hold=lambda word: None):
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(
            "UPDATE account SET balance = balance - ? WHERE id < ?", (amount, HALF)
        )
        hold("before COMMIT")
        db.execute(
            "UPDATE account SET balance = balance + ? WHERE id >= ?", (amount, HALF)
        )
        hold("after COMMIT")


@chapter.fault(
    "transfer_without_journal",
    "the journal is switched off, for speed",
    operation="transfer",
    story="A pragma found on the web: nothing remembers what the pages were.",
    made_for="killed_before_commit",
    stays_green="transfer_committed",
)
def _(path, amount, *, hold=lambda word: None):
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = OFF")
        db.execute("PRAGMA cache_size = 2")
        db.execute("BEGIN IMMEDIATE")
        db.execute(
            "UPDATE account SET balance = balance - ? WHERE id < ?", (amount, HALF)
        )
        db.execute(
            "UPDATE account SET balance = balance + ? WHERE id >= ?", (amount, HALF)
        )
        hold("before COMMIT")
        db.execute("COMMIT")
        hold("after COMMIT")


@chapter.fault(
    "transfer_answers_too_early",
    "success is reported before COMMIT",
    operation="transfer",
    story="The answer is sent, the process dies, the promise is rolled back.",
    made_for="killed_after_commit",
    stays_green="transfer_committed",
)
def _(path, amount, *, hold=lambda word: None):
    def early(word):
        hold(word)
        if word == "before COMMIT":
            hold("after COMMIT")

    transfer(path, amount, hold=early)


@chapter.fault(
    "transfer_one_half",
    "only one half is changed",
    operation="transfer",
    story="The second statement was lost in a merge: each commit is atomic, and wrong.",
    made_for="transfer_committed",
    stays_green="receipt_once",
)
def _(path, amount, *, hold=lambda word: None):
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA cache_size = 2")
        db.execute("BEGIN IMMEDIATE")
        db.execute(
            "UPDATE account SET balance = balance - ? WHERE id < ?", (amount, HALF)
        )
        hold("before COMMIT")
        db.execute("COMMIT")
        hold("after COMMIT")


@chapter.fault(
    "receipt_overwritten",
    "the last result stands",
    operation="record_receipt",
    story="INSERT OR REPLACE: a retry rewrites what the customer was told.",
    made_for="receipt_once",
    stays_green="transfer_committed",
)
def _(path, key, result):
    record_receipt(path, key, result)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE receipt SET result = ? WHERE key = ?", (result, key))
    return result


@chapter.fault(
    "receipt_without_key",
    "nothing in the table is unique",
    operation="record_receipt",
    story="Looking first and inserting then, with no constraint to catch the second.",
    made_for="receipt_once",
    stays_green="killed_after_commit",
)
def _(path, key, result):
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE IF NOT EXISTS receipt (key, result)")
        found = db.execute(
            "SELECT result FROM receipt WHERE key = ?", (key,)
        ).fetchone()
        if found is None:
            db.execute("INSERT INTO receipt VALUES (?, ?)", (key, result))
    return result if found is None else found[0]
