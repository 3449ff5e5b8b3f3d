"""What students do: never all green when wrong, never a crash, all put back."""

from __future__ import annotations

import threading
import time
import warnings

import labcore
import numpy as np
import pytest
from labcore import lab, report
from labcore.identities import CHECKS, FAULTS
from labcore.ops import _op

S1, ONE, THREE = np.ones((1, 1)), np.ones(1), np.full(1, 3.0)
HOME = [check.id for check in CHECKS.values() if check.chapter == "writes-and-decay"]


@pytest.fixture(autouse=True)
def everything_is_back():
    yield
    assert not _op._stand_ins
    assert not _op._one_at_a_time.locked()
    assert labcore.gated_write(S1, ONE, THREE, 1.0, 1.0).tolist() == [[3.0]]


# ---- Right functions ----------------------------------------------------------------


def written_out(S, k, v, beta, retention):
    rows = np.asarray(retention)
    S = S * (rows[..., :, None] if rows.ndim else rows)
    error = v - (k[..., None, :] @ S)[..., 0, :]
    return S + np.asarray(beta, S.dtype)[..., None, None] * (
        k[..., :, None] * error[..., None, :]
    )


def calls_its_own_name(S, k, v, beta, retention):
    return labcore.gated_write(S, k, v, beta, retention)


def calls_another_operation(S, k, v, beta, retention):
    rows = np.asarray(retention)
    S = S * (rows[..., :, None] if rows.ndim else rows)
    return labcore.delta_write(S, k, v, beta)


def in_fortran_order(S, k, v, beta, retention):
    return np.asfortranarray(written_out(S, k, v, beta, retention))


@pytest.mark.parametrize(
    "right",
    [written_out, calls_its_own_name, calls_another_operation, in_fortran_order],
)
def test_a_right_function_is_all_green(right):
    outcome = lab.try_it(gated_write=right)
    assert outcome.all_held
    assert outcome.red == [] and outcome.elsewhere == 0
    assert [v.check.id for v in outcome.verdicts] == HOME
    assert "Every check holds." in str(outcome)
    assert report.RELATIVE in str(outcome)
    assert report.RELATIVE in report.checks_html(outcome.verdicts, "")


def test_mine_does_not_shadow_the_name_of_the_chapter():
    @lab.mine
    def gated_write(S, k, v, beta, retention):
        return 0.0 * S

    assert gated_write(S1, ONE, THREE, 1.0, 1.0).tolist() == [[3.0]]  # the reference
    assert "lab.try_it(gated_write)" in repr(gated_write)
    assert not lab.try_it(gated_write).all_held  # what was written


def test_an_answer_of_yes_or_no_is_one():
    def swapped(answer):
        def compare_and_swap(current, *, expect, new):
            swap = labcore.compare_and_swap(current, expect=expect, new=new)
            return swap._replace(ok=answer(swap.ok))

        return lab.try_it(compare_and_swap)

    assert swapped(bool).all_held and swapped(np.bool_).all_held
    assert "must return True or False, got int" in str(swapped(int))


def test_a_class_of_the_course_may_be_copied_and_derived_from():
    ours = labcore.IdempotentExecutor
    copy = type(ours.__name__, (), dict(vars(ours)))
    derived = type("Derived", (ours,), {})

    def returned(kind):
        def idempotent_executor(effect, *, waiting=None):
            return kind(effect, waiting or (lambda key: None))

        return lab.try_it(idempotent_executor)

    assert returned(copy).all_held and returned(derived).all_held
    wanted = "must return IdempotentExecutor, got 2 values"
    assert wanted in str(returned(lambda *given: given))


def test_mine_written_right_is_all_green():
    @lab.mine
    def gated_write(S, k, v, beta, retention):
        return written_out(S, k, v, beta, retention)

    assert lab.try_it(gated_write).all_held


# ---- Wrong ones ---------------------------------------------------------------------


class AlwaysEqual(np.ndarray):
    """An array that compares equal to everything, and whose differences are zero."""

    def __array_ufunc__(self, *args, **kwargs):
        return np.zeros(1)

    def __eq__(self, other):
        return np.ones(np.shape(other), bool)

    def __sub__(self, other):
        return np.zeros(np.shape(other))

    __rsub__ = __sub__


def always_equal(S, k, v, beta, retention):
    return np.zeros_like(S).view(AlwaysEqual)


def changes_its_argument(S, k, v, beta, retention):
    S *= np.reshape(retention, (-1, 1))
    return S + beta * np.outer(k, v - k @ S)


def changes_a_thawed_argument(S, k, v, beta, retention):
    S.setflags(write=True)
    S += 1.0
    return written_out(S - 1.0, k, v, beta, retention)


def returns_its_input(S, k, v, beta, retention):
    return S


def returns_none(S, k, v, beta, retention):
    written_out(S, k, v, beta, retention)


def returns_nan(S, k, v, beta, retention):
    return np.full_like(S, np.nan)


def returns_infinity(S, k, v, beta, retention):
    return np.full_like(S, np.inf)


def adds_an_axis_that_would_broadcast(S, k, v, beta, retention):
    return written_out(S, k, v, beta, retention)[None]


def returns_one_number_that_would_broadcast(S, k, v, beta, retention):
    return np.float64(4.0)


def returns_a_list(S, k, v, beta, retention):
    return written_out(S, k, v, beta, retention).tolist()


def returns_a_tuple(S, k, v, beta, retention):
    return (written_out(S, k, v, beta, retention),)


def returns_integers(S, k, v, beta, retention):
    return written_out(S, k, v, beta, retention).astype(int)


def returns_complex_numbers(S, k, v, beta, retention):
    return written_out(S, k, v, beta, retention).astype(complex)


def returns_objects(S, k, v, beta, retention):
    return written_out(S, k, v, beta, retention).astype(object)


def returns_words(S, k, v, beta, retention):
    return "held"


def raises(S, k, v, beta, retention):
    raise RuntimeError("not written yet")


def raises_a_value_error(S, k, v, beta, retention):
    raise ValueError("beta")


def exits(S, k, v, beta, retention):
    raise SystemExit(3)


def stops_a_generator(S, k, v, beta, retention):
    raise GeneratorExit


def calls_itself(S, k, v, beta, retention):
    return calls_itself(S, k, v, beta, retention)


def forgets_to_correct(S, k, v, beta, retention):
    return S * np.asarray(retention).reshape(-1, 1)


WRONG = {
    always_equal: "",
    changes_its_argument: "read-only",
    changes_a_thawed_argument: "changed one of its arguments in place",
    returns_its_input: "",
    returns_none: "must return an array of shape",
    returns_nan: "NaN",
    returns_infinity: "infinite",
    adds_an_axis_that_would_broadcast: "returned shape",
    returns_one_number_that_would_broadcast: "must return an array",
    returns_a_list: "must return an array of shape",
    returns_a_tuple: "must return an array of shape",
    returns_integers: "returned int64, wanted float64",
    returns_complex_numbers: "returned complex128, wanted float64",
    returns_objects: "returned object, wanted float64",
    returns_words: "must return an array of shape (1, 1), got str",
    raises: "RuntimeError: not written yet",
    raises_a_value_error: "ValueError: beta",
    exits: "gated_write raised SystemExit: an operation must return",
    stops_a_generator: "gated_write raised GeneratorExit: an operation must return",
    calls_itself: "RecursionError",
    forgets_to_correct: "",
}


@pytest.mark.parametrize("wrong", WRONG, ids=lambda f: f.__name__)
def test_a_wrong_function_breaks_checks_and_says_why(wrong):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing but the outcome is shown
        outcome = lab.try_it(gated_write=wrong)
    assert not outcome.all_held
    assert "gated_worked_matrix" in outcome.red
    assert WRONG[wrong] in str(outcome)
    assert "Every check holds" not in str(outcome)
    assert "<table" in outcome._repr_html_()


def misspells_a_name(S, k, v, beta, retention):
    return retention * delta_writ(S, k, v, beta)  # noqa: F821


def misspells_a_function(S, k, v, beta, retention):
    return np.outerr(k, v)


def reads_before_it_assigns(S, k, v, beta, retention):
    S = decayed  # noqa: F821
    decayed = retention * S
    return decayed


def takes_too_few(S, k, v):
    return S


def takes_too_many(S, k, v, beta, retention, more):
    return S


CANNOT_RUN = {
    misspells_a_name: "NameError: name 'delta_writ' is not defined",
    misspells_a_function: "AttributeError: module 'numpy' has no attribute 'outerr'",
    reads_before_it_assigns: "UnboundLocalError: ",
    takes_too_few: "the signature is gated_write(S, k, v, beta, retention)",
    takes_too_many: "the signature is gated_write(S, k, v, beta, retention)",
}


@pytest.mark.parametrize("mistake", CANNOT_RUN, ids=lambda f: f.__name__)
def test_a_function_that_cannot_run_is_told_first_and_not_scored(mistake):
    outcome = lab.try_it(gated_write=mistake, predict=HOME[:3])
    assert not outcome.all_held
    assert str(outcome).startswith("Your gated_write could not run: ")
    assert CANNOT_RUN[mistake] in str(outcome)
    assert str(outcome).endswith(" Nothing was scored.")
    assert "named" not in str(outcome) and "broke" not in str(outcome)
    assert outcome.caught == outcome.missed == outcome.false_alarms == []
    shown = outcome._repr_html_()
    assert shown.startswith('<p class="say">Your gated_write could not run: ')
    assert "<table" not in shown


def test_a_name_missing_in_one_branch_is_told_too():
    def half_written(S, k, v, beta, retention):
        if np.ndim(retention):
            return written_out(S, k, v, beta, retention)
        return missing  # noqa: F821

    told = str(lab.try_it(gated_write=half_written))
    assert "could not run: NameError: name 'missing' is not defined" in told


def test_an_interrupt_ends_the_run_and_is_told():
    calls = []

    def interrupted(S, k, v, beta, retention):
        calls.append(1)
        raise KeyboardInterrupt

    outcome = lab.try_it(gated_write=interrupted)
    assert not outcome.all_held
    assert "interrupted" in outcome.sentence()
    assert len(calls) == 1
    assert [v.check.id for v in outcome.verdicts] == HOME


def endless(S, k, v, beta, retention):
    while True:
        pass


def endless_with_a_sleep(S, k, v, beta, retention):
    while True:
        time.sleep(0.01)


@pytest.mark.parametrize("slow", [endless, endless_with_a_sleep])
def test_an_endless_loop_is_stopped_and_ends_the_run(slow):
    start = time.monotonic()
    outcome = lab.try_it(gated_write=slow, seconds=0.1)
    assert time.monotonic() - start < 5
    assert not outcome.all_held
    assert outcome.stopped == "The run was stopped: no answer after 0.1 s."
    assert [v.check.id for v in outcome.verdicts] == HOME
    told = [v.message for v in outcome.verdicts]
    assert told.count("no answer after 0.1 s") == 1
    assert told[-1] == "not run"


@pytest.mark.skipif(
    not hasattr(lab.signal, "setitimer"), reason="needs a repeated alarm"
)
def test_an_endless_loop_that_swallows_the_alarm_is_stopped_by_the_next():
    def stubborn(S, k, v, beta, retention):
        caught = 0
        while caught < 3:
            try:
                while True:
                    pass
            except:  # noqa: E722
                caught += 1
        while True:
            pass

    outcome = lab.try_it(gated_write=stubborn, seconds=0.1)
    assert not outcome.all_held
    assert "no answer after 0.1 s" in outcome.stopped


@pytest.mark.parametrize("alarm", [True, False])
def test_who_waits_for_a_busy_machine_is_not_stopped(
    alarm: bool, monkeypatch: pytest.MonkeyPatch
):
    """The seconds are those of computing; without an alarm an interrupt does it."""
    if not alarm:
        monkeypatch.delattr(lab.signal, "setitimer", raising=False)
    with lab.time_limit(0.1):
        time.sleep(0.3)
    start = time.monotonic()
    with pytest.raises(lab.TooSlow, match="no answer after 0.1 s"):
        with lab.time_limit(0.1):
            while True:
                time.sleep(0.01)
    assert 0.1 * lab.PATIENCE <= time.monotonic() - start < 10


def test_the_alarm_is_off_after_a_run():
    lab.try_it(gated_write=endless, seconds=0.05)
    time.sleep(0.3)  # an alarm left behind would end the test here
    assert lab.try_it(gated_write=written_out).all_held


def test_outside_the_main_thread_a_run_has_no_limit_and_works():
    outcomes = []
    work = threading.Thread(
        target=lambda: outcomes.append(lab.try_it(gated_write=written_out))
    )
    work.start()
    work.join()
    assert outcomes[0].all_held


# ---- Questions asked wrongly --------------------------------------------------------


def gated_writ(S, k, v, beta, retention):
    return S


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: lab.try_it(gated_writ), "did you mean gated_write"),
        (lambda: lab.try_it(gated_writ=written_out), "did you mean gated_write"),
        (lambda: lab.mine(gated_writ), "did you mean gated_write"),
        (lambda: lab.try_it(lambda S: S), r"write try_it\(softmax=lambda"),
        (lambda: lab.try_it(), "one function at a time, got 0"),
        (
            lambda: lab.try_it(softmax=written_out, merge=written_out),
            "one function at a time, got 2",
        ),
        (lambda: lab.try_it(7), "wants a function, got int"),
        (
            lambda: lab.try_it("gated_decay_after_writ"),
            "did you mean gated_decay_after",
        ),
        (
            lambda: lab.try_it(
                gated_write=written_out, predict=["gated_decay_then_corect"]
            ),
            "did you mean gated_decay_then_correct",
        ),
        (
            lambda: lab.try_it(gated_write=written_out, predict=["rope_worked"]),
            "no check of this chapter named 'rope_worked'",
        ),
        (
            lambda: lab.try_it(gated_write=written_out, predict=HOME[:9]),
            "at most 8 checks, got 9",
        ),
    ],
)
def test_a_question_asked_wrongly_is_answered_in_words(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_a_run_inside_a_run_is_refused_with_the_reason():
    with lab.broken(merge=lambda a, b: a):
        with pytest.raises(RuntimeError, match="merge is replaced already"):
            lab.try_it(gated_write=written_out)


# ---- The score ----------------------------------------------------------------------


def decays_last(S, k, v, beta, retention):
    rows = np.asarray(retention)
    rows = rows[..., :, None] if rows.ndim else rows
    return rows * labcore.delta_write(S, k, v, beta)


def test_a_prediction_is_scored_by_what_broke():
    outcome = lab.try_it(
        gated_write=decays_last,
        predict=["gated_worked_matrix", "gated_no_write_limit", "gated_no_decay_limit"],
    )
    assert outcome.caught == ["gated_worked_matrix"]
    assert outcome.false_alarms == ["gated_no_write_limit", "gated_no_decay_limit"]
    assert set(outcome.caught) | set(outcome.missed) == set(outcome.red)
    assert "kda_noncommuting_counterexample" in outcome.missed
    assert (
        f"You named 1 of the {len(outcome.red)} that broke, and 2 that held."
        in outcome.sentence()
    )


def test_the_checks_that_break_are_those_of_the_matrix():
    by_hand = lab.try_it(gated_write=decays_last)
    by_name = lab.try_it("gated_decay_after_write")
    assert by_hand.red == by_name.red
    assert set(by_name.red) == {
        id
        for id in labcore.identities.recorded()["faults"]["gated_decay_after_write"][
            "red"
        ]
        if CHECKS[id].chapter == "writes-and-decay"
    }


def test_a_single_prediction_needs_no_list():
    outcome = lab.try_it(gated_write=decays_last, predict="gated_worked_matrix")
    assert outcome.caught == ["gated_worked_matrix"]


def test_checks_elsewhere_are_counted_not_listed():
    outcome = lab.try_it(softmax=lambda x, axis=-1: 1.01 * labcore.softmax(x, axis))
    assert outcome.operation == "softmax"
    assert 0 < outcome.elsewhere <= outcome.asked_elsewhere
    home = {CHECKS[v.check.id].chapter for v in outcome.verdicts}
    assert home == {"softmax-summaries"}
    assert f"{outcome.elsewhere} of {outcome.asked_elsewhere}" in outcome.sentence()


def test_a_broken_check_shows_its_smallest_inputs_and_wanted_beside_got():
    outcome = lab.try_it(gated_write=returns_its_input)
    shown = {verdict.check.id: text for verdict, text in outcome.counterexamples()}
    assert list(shown) == outcome.red
    assert "size 1" in shown["gated_no_write_limit"]
    assert "retention = [" in shown["gated_no_write_limit"]
    assert "wanted [" in shown["gated_no_write_limit"]
    assert "got    [" in shown["gated_no_write_limit"]


@pytest.mark.parametrize("fault", FAULTS)
def test_no_known_fault_is_all_green(fault):
    assert FAULTS[fault].made_for in CHECKS
    with lab.broken(fault):
        verdict = lab.smallest_failure(CHECKS[FAULTS[fault].made_for])
    assert not verdict.held


def test_an_exception_outside_the_usual_tree_is_a_broken_check():
    class Mutiny(BaseException):
        pass

    class Mute(Exception):
        def __str__(self):
            raise RuntimeError

    for kind in (Mutiny, Mute):

        def leave(x, axis=-1, kind=kind):
            raise kind

        outcome = lab.try_it(softmax=leave)
        assert outcome.red and not outcome.all_held
        assert labcore.softmax([0.0, 0.0]).tolist() == [0.5, 0.5]
