"""Worked examples of streams and state: bytes in pieces, facts with two times."""

from __future__ import annotations

from typing import Any

from ..systems.state import Fact, bitemporal_lookup, bitemporal_record
from ..systems.streams import sse_decode
from ._registry import example

CHAPTER = "streams-and-state"


@example(
    "Q038",
    "One character in three packets: decode the stream, not the packets",
    chapter=CHAPTER,
    givens={"text": "我", "before": 'data: {"text":"', "after": '"}\n\n'},
    units="bytes",
    title_zh="一个汉字分三次到达，解码必须跨片段进行",
)
def split_character(text: str, before: str, after: str) -> dict[str, Any]:
    """The bytes of the character, and the event from chunks that cut it twice."""
    inside = text.encode("utf-8")
    chunks = [
        before.encode("utf-8") + inside[:1],
        inside[1:2],
        inside[2:] + after.encode("utf-8"),
    ]
    events = sse_decode(chunks).events
    return {"utf8_bytes_of_wo": list(inside), "events": [e.data for e in events]}


@example(
    "Q071",
    "What was true, and what was known: one correction, three questions",
    chapter=CHAPTER,
    givens={
        "records": (
            {"value": 5, "valid_from": 1, "valid_to": 99, "at": 1},
            {"value": 7, "valid_from": 5, "valid_to": 99, "at": 10},
        ),
        "questions": ((3, 11), (7, 8), (7, 11)),
    },
    units="days",
)
def two_times(records: Any, questions: Any) -> dict[str, Any]:
    """The answer for a day, by what was on record on another day."""
    facts: list[Fact] = []
    for record in records:
        facts = bitemporal_record(facts, **record)
    return {
        "queries": [
            {
                "valid_day": valid_at,
                "known_day": known_at,
                "value": bitemporal_lookup(facts, valid_at=valid_at, known_at=known_at),
            }
            for valid_at, known_at in questions
        ]
    }


# The source's tests by program and name, each with the checks that stand for it.
NAMED_CHECKS: dict[tuple[str, str], tuple[str, ...]] = {
    ("engine", "test_acl_before_model"): ("acl_hides_the_best",),
    ("engine", "test_atomic_replace_fixture"): (
        "replace_leaves_new_only",
        "replace_all_or_nothing",
    ),
    ("engine", "test_compare_and_swap"): ("swap_refuses_stale",),
    ("engine", "test_memory_bitemporal"): ("bitemporal_day_of_record",),
    ("engine", "test_source_version_gate"): ("report_of_this_commit",),
    ("engine", "test_sqlite_local_transaction"): (
        "receipt_once",
        "transfer_committed",
        "killed_before_commit",
        "killed_after_commit",
    ),
    ("engine", "test_sse_all_byte_boundaries"): (
        "sse_every_byte_split",
        "sse_every_rule_every_split",
    ),
    ("engine", "test_sse_incomplete_not_emitted"): ("sse_unfinished_is_dropped",),
    ("engine", "test_tool_result_pairing"): ("pairs_worked",),
    ("additional_checks", "test_acl_topk_order"): ("acl_before_cut",),
    ("additional_checks", "test_approval_bound_to_artifact_environment"): (
        "approval_for_this_thing",
    ),
    ("additional_checks", "test_atomic_replace_is_not_compare_and_swap"): (
        "replace_loses_an_update",
        "compare_keeps_the_update",
        "compare_excludes_others",
    ),
    ("additional_checks", "test_bitemporal_specific_scenario"): (
        "bitemporal_scenario",
    ),
    ("additional_checks", "test_compaction_suffix_preserved"): (
        "compaction_keeps_suffix",
    ),
    ("additional_checks", "test_current_test_version"): ("report_of_this_version",),
    ("additional_checks", "test_exclude_boundary_counterexample"): ("path_boundary",),
    ("additional_checks", "test_gui_scroll_transform"): ("screen_worked",),
    ("additional_checks", "test_idempotency_parameter_conflict"): (
        "idempotent_refuses_other_payload",
        "idempotent_replay",
        "idempotent_concurrent",
    ),
    ("additional_checks", "test_merge_lost_update_counterexample"): (
        "merge_keeps_both",
    ),
    ("additional_checks", "test_refund_conditions_and_not_or"): ("refund_needs_both",),
    ("additional_checks", "test_replay_does_not_repeat_effect"): ("replay_worked",),
    ("additional_checks", "test_tool_completion_order_not_identity"): ("pairs_by_id",),
    ("additional_checks", "test_unknown_not_failure"): ("unknown_is_not_failed",),
    ("additional_checks", "test_utf8_three_bytes"): ("utf8_three_bytes",),
    ("additional_checks", "test_version_check_refuses_stale_write"): (
        "swap_refuses_stale",
        "compare_refuses_stale",
    ),
}
