"""The small machines: what neither cases nor checks pin, and how children are told."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import labcore
import pytest
from labcore import lab, matrix
from labcore.identities import CHECKS, FAULTS, run
from labcore.ops import _op
from labcore.systems import files
from labcore.systems._child import Child

PROCESSES = [
    id
    for id, check in CHECKS.items()
    if check.sides.__module__.endswith((".files", ".database"))
]


# ---- Other processes ----------------------------------------------------------------


@pytest.mark.parametrize("id", PROCESSES)
def test_a_check_of_processes_draws_nothing_so_that_it_runs_once(id):
    assert CHECKS[id].inputs(0, 1) == {}


@pytest.mark.parametrize(
    "fault", [f for f in FAULTS.values() if f.made_for in PROCESSES], ids=lambda f: f.id
)
def test_a_fault_is_seen_in_what_the_files_hold_and_not_in_a_crash(fault):
    [verdict] = matrix.under(fault, CHECKS[fault.made_for])
    assert not verdict.held
    assert "RuntimeError" not in verdict.message
    assert verdict.got is not None


def test_another_process_is_told_a_written_function_by_its_source():
    @lab.mine
    def atomic_replace(path, text, *, hold=lambda word: None):
        path = Path(path)
        beside = path.with_name("my.tmp")
        beside.write_bytes(text.encode())
        hold("written")
        os.replace(beside, path)

    assert lab.try_it(atomic_replace).all_held

    def in_place(path, text, *, hold=lambda word: None):
        with open(path, "w", newline="", encoding="utf-8") as file:
            hold("opened")
            file.write(text)

    assert "replace_all_or_nothing" in lab.try_it(atomic_replace=in_place).red


def test_a_function_without_source_is_reported_in_plain_words():
    names: dict = {"labcore": labcore}
    exec("def f(path, text, *, hold=None):\n    return None", names)
    with lab.broken(atomic_replace=names["f"]):
        verdict = run(CHECKS["replace_all_or_nothing"])
    assert "source is not to be found" in verdict.message


def test_other_operations_do_not_concern_the_processes():
    outcome = lab.try_it(three_way_merge=lambda base, ours, theirs: dict(theirs))
    assert outcome.red == ["merge_keeps_both", "merge_of_changes"]


def test_a_reference_with_effects_is_not_run_beside_the_students(tmp_path):
    place = tmp_path / "a.txt"
    shout = lab.guarded("atomic_replace", lambda path, text: path.write_text("MINE"))
    shout(place, "text")
    assert place.read_text() == "MINE"
    assert {"atomic_replace", "replace_if_unchanged"} <= _op.EFFECTS
    assert {"transfer", "record_receipt"} <= _op.EFFECTS


def test_a_child_that_dies_says_why():
    with Child("write", "/no/such/file", "A", "replaced") as other:
        with pytest.raises(RuntimeError, match="No such file"):
            other.says()


def test_no_process_is_left_behind(tmp_path):
    place = tmp_path / "a.txt"
    place.write_text("7")
    with Child("write", str(place), "A", "replaced") as other:
        assert other.says() == "read"
    assert other._process.poll() is not None


# ---- Files --------------------------------------------------------------------------


def test_whoever_has_a_file_open_goes_on_reading_the_old_one(tmp_path):
    place = tmp_path / "a.txt"
    labcore.atomic_replace(place, "old")
    with open(place, encoding="utf-8") as reader:
        labcore.atomic_replace(place, "new")
        assert reader.read() == "old"
    assert files.read(place) == "new"


@pytest.mark.parametrize("name", ["atomic_replace", "replace_if_unchanged"])
def test_a_replacement_that_fails_leaves_nothing_behind(tmp_path, name):
    place = tmp_path / "a.txt"
    place.write_text("old")

    def fails(word):
        raise OSError(word)

    arguments = ("new",) if name == "atomic_replace" else ("old", "new")
    with pytest.raises(OSError):
        getattr(labcore, name)(place, *arguments, hold=fails)
    assert os.listdir(tmp_path) == ["a.txt"]
    assert place.read_text() == "old"


def test_a_lock_of_somebody_else_refuses(tmp_path):
    place = tmp_path / "a.txt"
    place.write_text("7")
    (tmp_path / "a.txt.lock").touch()
    assert labcore.replace_if_unchanged(place, "7", "8") is False
    assert sorted(os.listdir(tmp_path)) == ["a.txt", "a.txt.lock"]  # and stays


def test_a_hot_journal_taken_away_leaves_a_database_half_changed(tmp_path):
    """What the journal is for: without it the kill of the lesson is seen."""
    from labcore.systems import database

    place = tmp_path / "bank.db"
    database.open_accounts(place)
    with Child("transfer", str(place), "10") as other:
        assert other.says() == "before COMMIT"
    shutil.move(f"{place}-journal", f"{place}-taken")
    torn = database.balances(place)
    assert torn != {100: 600} and sum(torn.values()) == 600
    shutil.move(f"{place}-taken", f"{place}-journal")
    assert database.balances(place) == {100: 600}


# ---- Streams ------------------------------------------------------------------------


def test_a_decoder_is_fed_as_bytes_arrive():
    decoder = labcore.SSEDecoder("3")
    assert decoder.feed(b"id: 4\ndata: a\r") == []
    assert decoder.feed(b"\n\r") == [("message", "a", "4")]
    assert decoder.feed(b"\ndata: b\n") == []
    assert decoder.feed(b"") == []
    assert decoder.feed(b"\n") == [("message", "b", "4")]
    assert decoder.last_event_id == "4"


@pytest.mark.parametrize("decode", [labcore.sse_decode, labcore.utf8_stream])
def test_an_iterator_is_refused_and_not_used_up(decode):
    chunks = iter([b"data: a\n\n"])
    with pytest.raises(ValueError, match="chunks"):
        decode(chunks)
    assert list(chunks) == [b"data: a\n\n"]


@pytest.mark.parametrize(
    "call, name",
    [
        (lambda ids: labcore.precision(ids, ["a"]), "retrieved"),
        (lambda ids: labcore.recall(["a"], ids), "relevant"),
        (lambda ids: labcore.bm25([["a"]], ids), "query"),
        (lambda ids: labcore.bm25(ids, ["a"]), "docs"),
        (lambda ids: labcore.safe_to_retry({"a": "failed"}, ids), "effects"),
        (lambda ids: labcore.acl_filter([], ids), "groups"),
    ],
)
def test_what_is_looked_at_twice_may_not_be_an_iterator(call, name):
    with pytest.raises(ValueError, match=name):
        call(iter(["a"]))


# ---- Once ---------------------------------------------------------------------------


def test_many_threads_and_keys_run_each_key_once():
    executed: list[int] = []
    run_once = labcore.idempotent_executor(lambda n: executed.append(n) or n * n)
    start, results = threading.Barrier(16), []

    def work():
        start.wait()
        for n in range(20):
            results.append((n, run_once.submit(str(n), n)))

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(executed) == list(range(20))
    assert len(results) == 320
    assert all(result == n * n for n, result in results)


def test_those_who_waited_for_an_effect_that_raised_try_themselves():
    tries, inside, waiting = [], threading.Event(), threading.Event()

    def effect(payload):
        tries.append(payload)
        if len(tries) == 1:
            inside.set()
            waiting.wait(10)
            raise OSError("lost")
        return "paid"

    run_once = labcore.idempotent_executor(effect, waiting=lambda key: waiting.set())
    told: list = []

    def first():
        with pytest.raises(OSError):
            run_once.submit("k", 5)

    threads = [
        threading.Thread(target=first),
        threading.Thread(target=lambda: told.append(run_once.submit("k", 5))),
    ]
    threads[0].start()
    assert inside.wait(10)
    threads[1].start()
    for thread in threads:
        thread.join()
    assert (tries, told) == ([5, 5], ["paid"])


# ---- Choices ------------------------------------------------------------------------


def test_choices_that_practice_has_not_settled():
    """Each is told in the docstring of its operation."""
    assert labcore.rrf([["b", "a"], ["a", "b"]])[0][0] == "a"  # a tie: order of ids
    assert labcore.rrf([["a", "a", "b"]])[1] == ("b", 1 / 62)  # places move up
    assert labcore.precision(["a", "a"], ["a"], k=2) == 0.5  # a repeat wastes its place
    assert labcore.mcnemar_exact(0, 0) == 1.0
    assert labcore.roofline(4.0, 1.0, peak_flops=8.0, bandwidth=2.0).bound == "compute"
    assert labcore.rate_limit(60, 6000, request_limit=60, token_limit=6000).allowed
    assert labcore.error_budget(100, 0.999, 0).allowed == 0
    assert labcore.path_is_excluded("cache/../src", "cache") is False
    assert labcore.nearest({"b": [1.0], "a": [-1.0]}, [0.0]) == [("b", 1.0)]
    assert (
        labcore.bm25([["a"], ["b"]], ["a", "a"])[0]
        == 2 * labcore.bm25([["a"], ["b"]], ["a"])[0]
    )
