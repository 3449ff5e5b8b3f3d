"""For students: break an operation, predict who notices, and see.

>>> import labcore
>>> from labcore import lab
>>> with lab.broken(softmax=lambda x, axis=-1: 2 * labcore.softmax(x)):
...     labcore.softmax([0.0, 0.0]).tolist()
[1.0, 1.0]
"""

from __future__ import annotations

import _thread
import copy
import difflib
import functools
import inspect
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import report
from .identities import CHAPTERS, CHECKS, FAULTS, Check, Verdict, recorded, run
from .identities._check import _arrays
from .matrix import reach
from .notebook import dressed
from .ops import _op

MOST_PREDICTED = 8
MOST_SHOWN = 12  # numbers of a counterexample that are written out
# The slowest check computes for 0.6 s; a processor that is shared counts more.
SECONDS = 5.0
PATIENCE = 5.0  # so many times longer for who only waits: a busy machine is no mistake


class StudentError(Exception):
    """What a stand-in did that no operation may do, in plain words."""


class CannotRun(BaseException):
    """A mistake of Python, not of mathematics: no check can be asked about it.

    Not an Exception, so that no check takes it for an answer.
    """


class TooSlow(BaseException):
    """Not an Exception, so that a student's ``except Exception`` cannot catch it."""


@contextmanager
def broken(
    fault: str | None = None, /, **stand_ins: Callable[..., Any]
) -> Iterator[None]:
    """Put a named fault, or functions of your own, behind the doors for one block.

    ``lab.broken("gated_decay_after_write")`` or ``lab.broken(softmax=f)``. Whoever
    calls the operation inside the block gets the stand-in; inside the stand-in its own
    name is the reference. Everything is back afterwards, whatever happened.
    Raises ValueError for an unknown name, RuntimeError when one is in place already.
    """
    replaced: dict[str, _op.StandIn] = {}
    if fault is not None:
        known = FAULTS[_known("fault", fault, FAULTS)]
        replaced[known.operation] = _op.StandIn(known.by, known.unguarded)
    for name, function in stand_ins.items():
        if not callable(function):
            raise ValueError(
                f"{name} must be a function, got {type(function).__name__}"
            )
        replaced[_known("operation", name, _operations())] = _op.StandIn(function)
    with _op.replaced(replaced):
        yield


class Mine:
    """A student's version of an operation.

    Called, it is the reference: the chapter's own name is not shadowed. ``try_it`` and
    ``broken`` use what the student wrote, in ``function``.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.__name__ = _known("operation", function.__name__, _operations())
        self.function = function
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        import labcore

        return getattr(labcore, self.__name__)(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<your {self.__name__}; try it with lab.try_it({self.__name__})>"


def mine(function: Callable[..., Any]) -> Mine:
    """Mark a ``def`` as your own version of the operation with its name."""
    return Mine(function)


@dataclass(frozen=True)
class Outcome:
    """What happened to the checks while a student's function stood in."""

    operation: str
    what: str  # whose version stood in: yours, or a known fault
    verdicts: list[Verdict]
    predicted: tuple[str, ...]
    elsewhere: int  # checks of other chapters that broke
    asked_elsewhere: int
    stopped: str = ""

    @property
    def all_held(self) -> bool:
        """Nothing broke, here or elsewhere, and the run came to its end."""
        return not self.red and not self.elsewhere and not self.stopped

    @property
    def red(self) -> list[str]:
        """The ids of the broken checks of the chapter."""
        return [v.check.id for v in self.verdicts if not v.held]

    @property
    def caught(self) -> list[str]:
        """Predicted and broken."""
        return [id for id in self.red if id in self.predicted]

    @property
    def missed(self) -> list[str]:
        """Broken and not predicted."""
        return [id for id in self.red if id not in self.predicted]

    @property
    def false_alarms(self) -> list[str]:
        """Predicted and not broken."""
        return [id for id in self.predicted if id not in self.red]

    def sentence(self) -> str:
        """The score and the rest of the course, in words."""
        words = []
        if self.stopped:
            words.append(self.stopped)
        if not self.verdicts:
            return " ".join(words)
        if self.all_held:
            words.append("Every check holds.")
        else:
            words.append(f"{len(self.red)} of {len(self.verdicts)} checks broke.")
        if self.predicted:
            words.append(
                f"You named {len(self.caught)} of the {len(self.red)} that broke"
                + (
                    f", and {len(self.false_alarms)} that held."
                    if self.false_alarms
                    else "."
                )
            )
        if self.asked_elsewhere:
            words.append(
                f"Elsewhere in the course {self.elsewhere} of {self.asked_elsewhere} "
                "checks broke."
            )
        return " ".join(words)

    def counterexamples(self) -> list[tuple[Verdict, str]]:
        """Each broken check with the smallest inputs found, wanted beside got."""
        return [(v, _counterexample(v)) for v in self.verdicts if not v.held]

    def __str__(self) -> str:
        parts = [self.sentence(), *(text for _, text in self.counterexamples())]
        if self.verdicts:
            parts.insert(0, report.checks_text(self.verdicts, self.predicted))
        return "\n\n".join(parts)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        told = [v for v in self.verdicts if not v.held or v.check.id in self.predicted]
        quiet = [v for v in self.verdicts if v not in told]
        caption = f"Broken or predicted, with {self.what}."
        table = report.checks_html(told, caption, self.predicted) if told else ""
        details = ""
        if self.red:
            examples = "\n\n".join(text for _, text in self.counterexamples())
            details += _disclosure(
                "The smallest counterexamples",
                f'<pre class="counter">{report.html.escape(examples)}</pre>',
            )
        if quiet:
            details += _disclosure(
                f"The {len(quiet)} checks that hold and were not predicted",
                report.checks_html(quiet, f"Not broken, with {self.what}."),
            )
        sentence = report.html.escape(self.sentence())
        return dressed(f'{table}<p class="say">{sentence}</p>{details}')


def try_it(
    function: Mine | Callable[..., Any] | str | None = None,
    /,
    *,
    predict: Sequence[str] = (),
    chapter: str | None = None,
    seconds: float = SECONDS,
    **named: Callable[..., Any],
) -> Outcome:
    """Run the checks with your function behind its door, and score your prediction.

    ``try_it(gated_write, predict=[...])`` for a function named like its operation,
    ``try_it(gated_write=f)`` for another, ``try_it("fault_id")`` for a known fault.
    The checks of the operation's own chapter, or of the one that ``chapter`` names, are
    shown, and MOST_PREDICTED of them at most may be predicted; the rest of the course
    is told in a sentence.
    A function that cannot run (a name that does not exist, another signature) is told
    in words and not scored. The run ends at the first time-out. A function in C that
    never returns cannot be stopped from Python: interrupt the kernel (in a notebook:
    press i twice), and restart it if that does not help.
    """
    name, stand_in = _stand_in(function, named)
    home = _known("chapter", chapter or _chapter_of(name), CHAPTERS)
    predicted = _predictions(predict, home)
    reached = _checks_that_reach(name)
    here = [c for c in CHECKS.values() if c.chapter == home]
    there = [c for c in reached if c.chapter != home]
    verdicts: list[Verdict] = []
    elsewhere = asked = 0
    stopped = ""
    with _op.replaced({name: stand_in}):
        for check in [*here, *there]:
            try:
                with time_limit(seconds):
                    verdict = (
                        smallest_failure(check) if check in reached else run(check)
                    )
            except TooSlow as slow:
                stopped = f"The run was stopped: {slow}."
                verdict = _gave_up(check, str(slow))
            except CannotRun as mistake:
                words = f"Your {name} could not run: {mistake}. Nothing was scored."
                return Outcome(name, f"your {name}", [], (), 0, 0, words)
            except KeyboardInterrupt:
                stopped = "The run was interrupted."
                verdict = _gave_up(check, "interrupted")
            except BaseException as left:  # SystemExit, or one of the student's own
                words = f"{name} raised {type(left).__name__}: an operation must return"
                verdict = _gave_up(check, words)
            if check.chapter == home:
                verdicts.append(verdict)
            else:
                asked += 1
                elsewhere += not verdict.held
            if stopped:
                break
    done = {v.check.id for v in verdicts}
    verdicts += [_gave_up(c, "not run") for c in here if stopped and c.id not in done]
    what = f"your {name}"
    if isinstance(function, str):
        what = f"this fault of {name}: {FAULTS[function].title}"
    outcome = Outcome(name, what, verdicts, predicted, elsewhere, asked, stopped)
    if isinstance(function, str) and outcome.all_held:
        raise AssertionError(f"nothing notices {function}: it is no fault any more")
    return outcome


def smallest_failure(check: Check, seeds: Iterable[int] = range(3)) -> Verdict:
    """The first red run from small sizes upward; a green one if there is none."""
    verdict = None
    for size in (1, 2, 4):
        for seed in seeds:
            verdict = run(check, seed, size)
            if not verdict.held or not check.inputs(seed, size):
                return verdict
    assert verdict is not None
    return verdict


def guarded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The student's function, its mistakes turned into plain messages.

    Its arguments are checked for changes, and its answer must have the form (arrays,
    shapes, kinds of number) of the reference's answer. Subclasses of arrays lose what
    they do to comparisons. Where it cannot run, CannotRun is raised.
    """
    plain = _op.OPS[name]

    @functools.wraps(function)
    def guard(*args: Any, **kwargs: Any) -> Any:
        before = copy.deepcopy((args, kwargs))
        try:
            got = function(*args, **kwargs)
        except (NameError, AttributeError, ImportError, SyntaxError) as error:
            raise CannotRun(f"{type(error).__name__}: {error}") from None
        except TypeError as error:
            if f"{getattr(function, '__qualname__', name)}() " in str(error):
                words = f"{error}; the signature is {name}{_bare_signature(plain)}"
                raise CannotRun(words) from None
            raise
        after = list(_arrays((args, kwargs)))
        for now, then in zip(after, _arrays(before), strict=True):
            if not _identical(now, then):
                raise StudentError(f"{name} changed one of its arguments in place")
        if name in _op.EFFECTS:
            return got  # the reference would do again, and undo, what was done
        want = plain(*before[0], **before[1])
        return _same_form(name, got, want)

    return guard


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Stop Python code in this block. A call into C is stopped when it returns.

    In the main thread of a POSIX system an alarm that repeats, since a bare except in
    the student's loop may swallow the first; elsewhere an interrupt of the main thread.
    Outside the main thread there is no limit.

    The seconds are those of computing, so that a busy machine stops nobody; what does
    not compute is stopped after PATIENCE times as long.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    words = f"no answer after {report.number(seconds)} s"
    if hasattr(signal, "setitimer"):
        began, busy = time.monotonic(), time.thread_time()

        def ring(*_: Any) -> None:
            waited = (time.monotonic() - began) / PATIENCE
            if max(waited, time.thread_time() - busy) >= seconds:
                raise TooSlow(words)

        old = signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, seconds, 0.1)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, old)
        return
    handshake, done, fired = threading.Lock(), threading.Event(), threading.Event()

    def interrupt() -> None:
        began, busy = time.monotonic(), time.process_time()
        late = False
        while not done.wait(0.1 if late else seconds):
            late = True
            waited = (time.monotonic() - began) / PATIENCE
            with handshake:
                if not done.is_set() and (
                    max(waited, time.process_time() - busy) >= seconds
                ):
                    fired.set()
                    _thread.interrupt_main()

    threading.Thread(target=interrupt, daemon=True).start()
    try:
        yield
    except KeyboardInterrupt:
        if fired.is_set():
            raise TooSlow(words) from None
        raise
    finally:
        with handshake:
            done.set()


def _disclosure(summary: str, body: str) -> str:
    return f"<details><summary>{summary}</summary>{body}</details>"


# ---- Small parts ------------------------------------------------------------------


def _operations() -> dict[str, Callable[..., Any]]:
    return _op.OPS


def _known(what: str, name: str, names: Iterable[str]) -> str:
    names = list(names)
    if name not in names:
        near = difflib.get_close_matches(name, names, 3)
        hint = f"; did you mean {', '.join(near)}?" if near else ""
        raise ValueError(f"no {what} named {name!r}{hint}")
    return name


def _stand_in(
    function: Mine | Callable[..., Any] | str | None,
    named: dict[str, Callable[..., Any]],
) -> tuple[str, _op.StandIn]:
    """The operation that is replaced, and by what; a student's function is guarded."""
    given = dict(named)
    if isinstance(function, str) and not named:
        fault = FAULTS[_known("fault", function, FAULTS)]
        return fault.operation, _op.StandIn(fault.by, fault.unguarded)
    if function is not None:
        if not callable(function):
            raise ValueError(f"try_it wants a function, got {type(function).__name__}")
        given[getattr(function, "__name__", "?")] = function
    if len(given) != 1:
        raise ValueError(f"try_it takes one function at a time, got {len(given)}")
    [(name, stand_in)] = given.items()
    if name == "<lambda>":
        raise ValueError("a lambda has no name: write try_it(softmax=lambda x: ...)")
    _known("operation", name, _operations())
    written = stand_in.function if isinstance(stand_in, Mine) else stand_in
    return name, _op.StandIn(guarded(name, written))


def _chapter_of(operation: str) -> str:
    """The chapter whose module of identities checks this operation's module."""
    module = _op.OPS[operation].__module__.rpartition(".")[2]
    for check in CHECKS.values():
        if check.sides.__module__.endswith(f".identities.{module}"):
            return check.chapter
    return _checks_that_reach(operation)[0].chapter


def _checks_that_reach(operation: str) -> list[Check]:
    """As the matrix recorded it; found out anew where the operation is a new one."""
    found = recorded().get("reach", {}).get(operation)
    if found is None:
        return [c for c in CHECKS.values() if operation in reach(c)]
    return [CHECKS[id] for id in found if id in CHECKS]


def _predictions(predict: Sequence[str], chapter: str) -> tuple[str, ...]:
    if isinstance(predict, str):
        predict = [predict]
    if len(predict) > MOST_PREDICTED:
        raise ValueError(f"predict at most {MOST_PREDICTED} checks, got {len(predict)}")
    here = [c.id for c in CHECKS.values() if c.chapter == chapter]
    return tuple(_known("check of this chapter", id, here) for id in predict)


def _bare_signature(function: Callable[..., Any]) -> inspect.Signature:
    """The names of the parameters and their defaults, without types."""
    signature = inspect.signature(function)
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return inspect.Signature(bare)


def _gave_up(check: Check, words: str) -> Verdict:
    return Verdict(check, False, np.inf, np.inf, 0, 0, words)


def _identical(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    a, b = np.array(a, subok=False), np.array(b, subok=False)
    return a.shape == b.shape and a.tobytes() == b.tobytes()


def _same_form(name: str, got: Any, want: Any) -> Any:
    """got, as plain arrays; StudentError where its form is not that of want."""
    if isinstance(want, (tuple, list)):
        if not isinstance(got, (tuple, list)) or len(got) != len(want):
            raise StudentError(
                f"{name} must return {len(want)} values, got {_kind(got)}"
            )
        parts = [_same_form(name, g, w) for g, w in zip(got, want, strict=True)]
        return type(want)(*parts) if hasattr(want, "_fields") else type(want)(parts)
    if isinstance(want, np.ndarray):
        if not isinstance(got, np.ndarray):
            raise StudentError(
                f"{name} must return an array of shape {want.shape}, got {_kind(got)}"
            )
        got = np.array(got, subok=False)
        if got.shape != want.shape:
            raise StudentError(
                f"{name} returned shape {got.shape}, wanted {want.shape}"
            )
        if got.dtype.kind != want.dtype.kind:
            raise StudentError(f"{name} returned {got.dtype}, wanted {want.dtype}")
        return got
    if isinstance(want, (bool, np.bool_)):
        if not isinstance(got, (bool, np.bool_)):
            raise StudentError(f"{name} must return True or False, got {_kind(got)}")
        return got
    if isinstance(want, (int, float, complex, np.generic)):
        if type(got) not in (int, float, complex) and not isinstance(got, np.generic):
            raise StudentError(f"{name} must return a number, got {_kind(got)}")
        return got
    if type(got) is not type(want) and not _same_machine(got, want):
        raise StudentError(f"{name} must return {_kind(want)}, got {_kind(got)}")
    return got


def _same_machine(got: Any, want: Any) -> bool:
    """Whether got is of the class of want, if that is labcore's, or of a copy of it."""
    names = [kind.__name__ for kind in type(got).__mro__]
    kind = type(want)
    return kind.__module__.startswith("labcore.") and kind.__name__ in names


def _kind(x: Any) -> str:
    return f"{len(x)} values" if isinstance(x, (tuple, list)) else type(x).__name__


def _counterexample(v: Verdict) -> str:
    lines = [f"{v.check.id}: {v.check.claim}"]
    if v.message:
        lines.append(v.message)
    if v.size:
        lines.append(f"smallest inputs found: seed {v.seed}, size {v.size}")
        for name, value in v.check.inputs(v.seed, v.size).items():
            lines.append(f"{name} = {_shown(value)}")
    if v.want is not None and v.check.kind != "refuses":
        want, got = _worst(v.want, v.got)
        lines += [f"wanted {_shown(want)}", f"got    {_shown(got)}"]
    return "\n".join(lines)


def _shown(x: Any) -> str:
    """Few numbers are written out, many are described."""
    arrays = list(_arrays(x))
    if sum(a.size for a in arrays) <= MOST_SHOWN:
        return str(report.rounded(x))
    if len(arrays) == 1:
        return f"an array {arrays[0].shape}"
    return f"{len(arrays)} arrays, the first {arrays[0].shape}"


def _worst(want: Any, got: Any) -> tuple[Any, Any]:
    """The pair of arrays, or the row of one, in which the difference is largest."""
    pairs = list(zip(_arrays(want), _arrays(got), strict=False))
    pairs = [(w, g) for w, g in pairs if w.shape == g.shape and w.size]
    if not pairs:
        return want, got
    want, got = max(pairs, key=lambda pair: np.max(np.abs(pair[0] - pair[1])))
    while want.size > MOST_SHOWN:
        apart = np.abs(want - got).reshape(len(want), -1).max(axis=1)
        want, got = want[np.argmax(apart)], got[np.argmax(apart)]
    return want, got
