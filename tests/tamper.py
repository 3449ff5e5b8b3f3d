"""Corrupt copies of the project on purpose, and see that each corruption is noticed.

    python tests/tamper.py            all of them
    python tests/tamper.py --short    those that are noticed within a few seconds

Each corruption changes one thing that a careless or a malicious hand could change:
a constant, a label, a number in a sentence, a sign, a cache, a check, a page. It is
applied to a copy of the project, and one of the project's own commands must fail there,
naming the reason. The last line is ``caught N of M``.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

ROOT = Path(__file__).resolve().parents[1]
FLOOR, FLOOR_SHORT = 60, 27  # fewer corruptions than this, and the suite itself fails

Command = tuple[str, ...]
BUILD: Command = ("book/build.py",)
READ: Command = ("book/build.py", "--check")  # what the build does first
PROGRAMS: Command = ("labs/run_all.py",)


def tests(*arguments: str) -> Command:
    """Part of the tests, up to the first failure."""
    return ("-m", "pytest", "-q", "-x", *arguments)


def prints(page: str) -> Command:
    """Run one page, and compare what it prints with what was recorded."""
    return ("tests/notebooks/outputs.py", page)


@dataclass(frozen=True)
class Corruption:
    """One wrong thing, the command that must notice it, and a word of the reason."""

    what: str
    change: Callable[[Path], None]
    noticed_by: Command
    reason: str


def edit(name: str, old: str, new: str) -> Callable[[Path], None]:
    """Replace one thing in one file; it must be there."""

    def change(project: Path) -> None:
        path = project / name
        text = path.read_text(encoding="utf-8")
        if old not in text:
            raise LookupError(f"{name} does not hold {old!r}")
        path.write_text(text.replace(old, new, 1), encoding="utf-8")

    return change


def cell(page: str, id: str, change: Callable[[dict], None]) -> Callable[[Path], None]:
    """Change one cell of one notebook."""

    def apply(project: Path) -> None:
        path = project / "book" / f"{page}.ipynb"
        notebook = json.loads(path.read_text(encoding="utf-8"))
        [found] = [c for c in notebook["cells"] if c["id"] == id]
        before = json.dumps(found)
        change(found)
        if json.dumps(found) == before:
            raise LookupError(f"{page}, cell {id}: nothing to change")
        text = json.dumps(notebook, indent=1, ensure_ascii=False)
        path.write_text(text + "\n", encoding="utf-8")

    return apply


def prose(page: str, id: str, old: str, new: str) -> Callable[[Path], None]:
    """Replace words in the source of a cell."""

    def change(found: dict) -> None:
        text = "".join(found["source"]).replace(old, new, 1)
        found["source"] = text.splitlines(keepends=True)

    return cell(page, id, change)


def added(page: str, id: str, sentence: str) -> Callable[[Path], None]:
    """Put a sentence behind a cell of prose."""
    return cell(page, id, lambda c: c["source"].append(f"\n\n{sentence}"))


WRITES, LIMITS = "part-1/writes-and-decay", "limits"
DELTA = "shared/labcore/formulas/delta.py"
DRAWN = "shared/labcore/figures/delta.py"
MATRIX = "shared/labcore/identities/matrix.json"


def gone(name: str) -> Callable[[Path], None]:
    """Remove one file."""
    return lambda project: (project / name).unlink()


def loosened(project: Path) -> None:
    """Let one check allow a million times more."""
    path = project / MATRIX
    matrix = json.loads(path.read_text(encoding="utf-8"))
    matrix["checks"]["kda_affine_form"]["tolerance"] *= 1e6
    path.write_text(json.dumps(matrix), encoding="utf-8")


def pair_dropped(project: Path) -> None:
    """Forget that a fault breaks a check."""
    path = project / MATRIX
    matrix = json.loads(path.read_text(encoding="utf-8"))
    del matrix["faults"]["gated_error_before_decay"]["red"]["gated_decay_then_correct"]
    path.write_text(json.dumps(matrix), encoding="utf-8")


def committed(found: dict) -> None:
    """An output that no run computed."""
    text = {"output_type": "stream", "name": "stdout", "text": ["all checks hold\n"]}
    found["outputs"] = [text]


def tagged(*tags: str) -> Callable[[dict], None]:
    return lambda found: found["metadata"].update(tags=list(tags))


CORRUPTIONS = [
    # ---- results typed into sentences -----------------------------------------------
    Corruption(
        "a decimal as a result",
        added(WRITES, LIMITS, "The error was 0.37."),
        READ,
        "a typed number, '0.37'",
    ),
    Corruption(
        "an integer as a result",
        added(WRITES, LIMITS, "It breaks 7 of them."),
        READ,
        "a typed number, '7'",
    ),
    Corruption(
        "a percentage as a result",
        added("part-2/sigma-and-entropy", LIMITS, "It wins in 40 % of the runs."),
        READ,
        "a typed number, '40 %'",
    ),
    Corruption(
        "the word half as a result",
        added(WRITES, LIMITS, "It leaves half the error."),
        READ,
        "a typed number, 'half'",
    ),
    Corruption(
        "a number word as a result",
        added("part-3/evaluation", LIMITS, "It takes eleven tokens."),
        READ,
        "a typed number, 'eleven'",
    ),
    Corruption(
        "a result that equals a given",
        added(WRITES, LIMITS, "So the error is 0.25."),
        READ,
        "a typed number, '0.25'",
    ),
    Corruption(
        "a number in inline mathematics",
        added(WRITES, LIMITS, r"So $\beta = 0.3$ is the best."),
        READ,
        "a typed number, '0.3'",
    ),
    Corruption(
        "a number in a sentence that code prints",
        prose(WRITES, "scalar-say", "ends at {after}.", "ends at {after}, not at 9."),
        READ,
        "a typed number, '9'",
    ),
    Corruption(
        "a number in the caption of a figure",
        edit(
            "shared/labcore/figures/delta.py",
            "One number as state, from",
            "One number of 5 as state, from",
        ),
        READ,
        "a typed number, '5'",
    ),
    Corruption(
        "a number in the alt text of a figure",
        edit(
            "shared/labcore/figures/delta.py",
            "Four lines of the state",
            "At 0.31 four lines of the state",
        ),
        READ,
        "a typed number, '0.31'",
    ),
    Corruption(
        "a number on a page without code",
        edit("book/reference/conventions.md", "## Letters", "It is 12.\n\n## Letters"),
        READ,
        "a typed number, '12'",
    ),
    Corruption(
        "a ratio in words as a result",
        added("part-3/evaluation", LIMITS, "One in ten is wrong."),
        READ,
        "a typed number, 'one in ten'",
    ),
    Corruption(
        "a result in the reason of an exercise",
        edit(
            "shared/labcore/exercises/practice.py",
            "The slope is {slope},",
            "The slope is 12 here,",
        ),
        READ,
        "a typed number, '12'",
    ),
    Corruption(
        "a given of an exercise, changed in the text only",
        prose(WRITES, "exercises", "k=[3, 0]", "k=[4, 0]"),
        READ,
        "k is [3, 0] where it is given",
    ),
    Corruption(
        "a given of an exercise, changed in the code only",
        edit("shared/labcore/exercises/delta.py", "beta=0.5", "beta=0.4"),
        READ,
        "beta is 0.4 where it is given",
    ),
    # ---- formulas -------------------------------------------------------------------
    Corruption(
        "a sign in a displayed formula",
        prose(WRITES, "identity", r"(I - \beta", r"(I + \beta"),
        READ,
        "no registered formula prints",
    ),
    Corruption(
        "a sign in the expression of a formula",
        edit(DELTA, "(eye - beta * k @ k.T)", "(eye + beta * k @ k.T)"),
        tests("tests/engine/test_formulas.py"),
        "gated_affine",
    ),
    Corruption(
        "a sign in the expression and in the page",
        lambda project: (
            edit(DELTA, "(eye - beta * k @ k.T)", "(eye + beta * k @ k.T)")(project),
            prose(WRITES, "identity", r"(I - \beta", r"(I + \beta")(project),
        ),
        tests("tests/engine/test_formulas.py"),
        "gated_affine",
    ),
    Corruption(
        "an exponent in the expression of a formula",
        edit("shared/labcore/formulas/rope.py", "-(2 * i) / d", "-(3 * i) / d"),
        tests("tests/engine/test_formulas.py"),
        "rope",
    ),
    Corruption(
        "a box that names another function",
        prose(WRITES, "identity", "`labcore.gated_write`", "`labcore.delta_write`"),
        READ,
        "a box names the functions",
    ),
    Corruption(
        "a box that names another check",
        prose(WRITES, "identity", "`kda_affine_form`", "`gated_no_write_limit`"),
        READ,
        "a box names the checks",
    ),
    # ---- operations and examples ----------------------------------------------------
    Corruption(
        "a constant in softmax",
        edit(
            "shared/labcore/ops/softmax.py", "np.exp(x -", "1.001 * np.exp(0.999 * x -"
        ),
        PROGRAMS,
        "transformer_math_lab failed",
    ),
    Corruption(
        "a constant in AdamW",
        edit("shared/labcore/ops/optim.py", "1 - beta1**step", "1 - beta2**step"),
        PROGRAMS,
        "worked_examples_checks failed",
    ),
    Corruption(
        "a constant in Laplacian attention",
        edit("shared/labcore/ops/laplacian.py", "distances) / sigma", "distances) / 2"),
        PROGRAMS,
        "laplacian_attention_lab failed",
    ),
    Corruption(
        "a constant in an operation, seen by its page",
        edit(
            "shared/labcore/ops/delta.py", "np.asarray(beta,", "0.99 * np.asarray(beta,"
        ),
        prints("book/part-1/writes-and-decay.ipynb"),
        "not as recorded",
    ),
    Corruption(
        "a given of an example",
        edit("shared/labcore/examples/tokens.py", "[4, 2, 0]]", "[4, 1, 0]]"),
        tests("tests/labs/test_worked_examples.py", "-k", "reference_s"),
        "F05",
    ),
    Corruption(
        "an output of an example, typed in",
        edit(
            "shared/labcore/examples/tokens.py",
            '"product": whole(linear(A, B))',
            '"product": [[13, 16]]',
        ),
        tests("tests/engine/test_recorded.py", "-k", "computed"),
        "F07",
    ),
    Corruption(
        "a docstring with another number",
        edit("shared/labcore/report.py", "('3.87067',", "('3.87066',"),
        ("-m", "pytest", "-q", "--doctest-modules", "shared/labcore/report.py"),
        "3.87066",
    ),
    # ---- figures, units, labels -----------------------------------------------------
    Corruption(
        "two labels of a plot, exchanged",
        lambda project: (
            edit(DRAWN, '"decay, project"', '"project, decay" ')(project),
            edit(DRAWN, '"project, decay",', '"decay, project",')(project),
        ),
        prints("book/part-1/writes-and-decay.ipynb"),
        "cell orders-figure: not what was recorded",
    ),
    Corruption(
        "a figure of the wrong data",
        edit(DRAWN, "k, zero, 1.0, retention", "k, zero, 0.9, retention"),
        prints("book/part-1/writes-and-decay.ipynb"),
        "cell orders-figure: not what was recorded",
    ),
    Corruption(
        "a figure without alt text",
        edit(
            "shared/labcore/figures/_draw.py",
            """aria-label="{html.escape(alt)}" """,
            """aria-label="" """,
        ),
        prints("book/part-1/writes-and-decay.ipynb"),
        "cell orders-figure: not what was recorded",
    ),
    Corruption(
        "a wrong unit in a sentence",
        prose("part-3/memory-quantization-serving", "slots-say", "GiB", "GB"),
        prints("book/part-3/memory-quantization-serving.ipynb"),
        "cell slots-say: not what was recorded",
    ),
    Corruption(
        "a wrong unit in an example",
        edit("shared/labcore/examples/serving.py", "/ 2**30", "/ 10**9"),
        tests("tests/labs/test_worked_examples.py", "-k", "reference_s"),
        "F16",
    ),
    Corruption(
        "a row missing in an index",
        edit(
            "shared/labcore/indexes.py",
            '    return _table("formula", rows)',
            '    return _table("formula", rows[1:])',
        ),
        prints("book/reference/formulas.ipynb"),
        "not what was recorded",
    ),
    # ---- checks, faults, tolerances -------------------------------------------------
    Corruption(
        "a loosened tolerance",
        loosened,
        tests("tests/engine/test_recorded.py"),
        "kda_affine_form",
    ),
    Corruption(
        "a pair of fault and check, dropped",
        pair_dropped,
        prints("book/part-1/writes-and-decay.ipynb"),
        "not what was recorded",
    ),
    Corruption(
        "a topic of checks, dropped",
        edit("shared/labcore/identities/__init__.py", "    rope,\n", ""),
        READ,
        "checks, and there were",
    ),
    Corruption(
        "a deleted check, and the floor with it",
        lambda project: (
            edit("shared/labcore/identities/__init__.py", "    rope,\n", "")(project),
            edit("book/floors.json", '"checks": ', '"checks": 1, "was": ')(project),
            edit("book/floors.json", '"faults": ', '"faults": 1, "had": ')(project),
        ),
        tests("tests/engine/test_recorded.py"),
        "test_the_matrix_holds_every_check",
    ),
    Corruption(
        "a check that compares a side with itself",
        edit(
            "shared/labcore/identities/_check.py",
            "    g, w = _plain(got), _plain(want)",
            "    g = w = _plain(got)",
        ),
        tests("tests/engine/test_check.py"),
        "failed",
    ),
    Corruption(
        "a fault that is right",
        edit(
            "shared/labcore/lab.py",
            "_op.StandIn(fault.by",
            "_op.StandIn(_op.OPS[fault.operation]",
        ),
        prints("book/part-1/writes-and-decay.ipynb"),
        "it is no fault any more",
    ),
    Corruption(
        "a door that does not listen",
        edit("shared/labcore/ops/_op.py", "_stand_ins.update(stand_ins)", "pass"),
        tests("tests/engine/test_door.py"),
        "failed",
    ),
    # ---- caches, pages, contents ----------------------------------------------------
    Corruption(
        "a cache that does not look at labcore",
        edit("book/_ext/bookbuild.py", '("shared", "labs")', '("labs",)'),
        tests("tests/site/test_cache_key.py"),
        "an operation",
    ),
    Corruption(
        "a cache that does not look at the pins",
        edit("book/_ext/bookbuild.py", '[root / "requirements.txt"]', "[]"),
        tests("tests/site/test_cache_key.py"),
        "a pin",
    ),
    Corruption(
        "a chapter out of the table of contents",
        edit("_toc.yml", "      - file: book/part-1/rope\n", ""),
        READ,
        "book/part-1/rope.ipynb has no entry",
    ),
    Corruption(
        "a chapter out of the contents, with its file",
        lambda project: (
            edit("_toc.yml", "      - file: book/part-1/rope\n", "")(project),
            gone("book/part-1/rope.ipynb")(project),
        ),
        READ,
        "pages, and there were",
    ),
    Corruption(
        "an output committed by hand",
        cell(WRITES, "scalar-run", committed),
        READ,
        "an output that this build did not compute",
    ),
    Corruption(
        "a cell that is skipped",
        cell(WRITES, "scalar-run", tagged("skip-execution")),
        READ,
        "skip-execution",
    ),
    Corruption(
        "chapters that are not executed",
        edit("_config.yml", "execute_notebooks: cache", 'execute_notebooks: "off"'),
        READ,
        "execute_notebooks must be",
    ),
    Corruption(
        "errors that are allowed",
        edit("_config.yml", "allow_errors: false", "allow_errors: true"),
        READ,
        "allow_errors must be",
    ),
    Corruption(
        "a mistyped setting",
        edit("_config.yml", "  stderr_output:", "  stderr_outputs:"),
        READ,
        "nothing reads 'execute.stderr_outputs'",
    ),
    Corruption(
        "a setting that stands twice",
        edit(
            "_config.yml",
            "only_build_toc_files",
            "title: Another\nonly_build_toc_files",
        ),
        READ,
        "the key 'title' stands twice",
    ),
    Corruption(
        "a citation that resolves to nothing",
        added(WRITES, LIMITS, "See {cite:t}`nobody1900nothing`."),
        BUILD,
        "nobody1900nothing",
    ),
    Corruption(
        "a link to no page",
        added(WRITES, LIMITS, "See [there](nowhere.md)."),
        BUILD,
        "nowhere.md",
    ),
    Corruption(
        "a formula in a sentence that was not rendered",
        added(WRITES, LIMITS, r"And $\state{S} \cup \key{k}$ too."),
        BUILD,
        "cup",
    ),
    # ---- what watches ---------------------------------------------------------------
    Corruption(
        "a lint that finds nothing",
        edit(
            "book/_ext/prose.py",
            "            found.append((number,",
            "            print((number,",
        ),
        tests("tests/site/test_prose.py"),
        "failed",
    ),
    Corruption(
        "a comparison of runs that sees nothing",
        edit("tests/notebooks/outputs.py", "    return sorted(found)", "    return []"),
        tests("tests/notebooks/test_outputs.py"),
        "failed",
    ),
    Corruption(
        "a workbook that is not the source of labcore",
        edit("labs/workbooks/part-1.ipynb", "np.exp(", "np.exp2("),
        tests("tests/notebooks/test_workbook.py"),
        "failed",
    ),
    # ---- the record -----------------------------------------------------------------
    Corruption(
        "a verdict in the recorded run",
        edit("shared/labcore/recorded/run.json", '"passed"', '"failed"'),
        tests("tests/site/test_recorded_run.py"),
        "failed",
    ),
    Corruption(
        "a number in a recorded document",
        edit("shared/labcore/recorded/transformer_math_lab.json", "3.87066", "3.87067"),
        tests("tests/site/test_recorded_run.py"),
        "failed",
    ),
    Corruption(
        "a pin that moved",
        edit("requirements.txt", "numpy==2.4.6", "numpy==2.4.5"),
        tests("tests/site/test_recorded_run.py", "-k", "pins"),
        "make record",
    ),
]


# ---- Running ------------------------------------------------------------------------

LEFT_OUT = shutil.ignore_patterns(
    "_build", ".second_run", ".git", ".venv", "node_modules", "__pycache__", ".*_cache"
)


def copy(folder: Path) -> Path:
    """The project, with the outputs of its last build."""
    project = folder / "project"
    shutil.copytree(ROOT, project, ignore=LEFT_OUT)
    cache = ROOT / "_build" / ".jupyter_cache"
    if cache.is_dir():
        shutil.copytree(cache, project / "_build" / ".jupyter_cache")
    return project


def restore(project: Path, files: dict[str, bytes]) -> None:
    """Bring a copy back to what it was."""
    now = sources(project)
    for name in now.keys() - files.keys():
        (project / name).unlink()
    for name, content in files.items():
        if now.get(name) != content:
            (project / name).write_bytes(content)


def sources(project: Path) -> dict[str, bytes]:
    return {
        path.relative_to(project).as_posix(): path.read_bytes()
        for path in project.rglob("*")
        if path.is_file()
        and not {"_build", "__pycache__", ".hypothesis"} & set(path.parts)
    }


def run(project: Path, command: Command) -> tuple[int, str]:
    """Exit status and all that was said, by the labcore of the copy."""
    environment = {**os.environ, "PYTHONPATH": str(project / "shared")}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    ran = subprocess.run(
        [sys.executable, *command],
        cwd=project,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        timeout=600,
        check=False,
    )
    return ran.returncode, ran.stdout


def verdict(corruption: Corruption, project: Path) -> str:
    """caught, or why not."""
    corruption.change(project)
    status, said = run(project, corruption.noticed_by)
    if status == 0:
        return "NOT NOTICED"
    if corruption.reason not in said:
        return f"red, but not for this: {said[-300:]}"
    return "caught"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="the quick ones only")
    parser.add_argument("words", nargs="*", help="only those whose name holds these")
    asked = parser.parse_args(arguments)
    chosen = [
        c
        for c in CORRUPTIONS
        if all(word in c.what for word in asked.words)
        and (c.noticed_by is READ or not asked.short)
    ]
    floor = 1 if asked.words else FLOOR_SHORT if asked.short else FLOOR
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        copies: Queue[tuple[Path, dict[str, bytes]]] = Queue()
        for worker in ("one", "two"):
            project = copy(Path(folder, worker))
            copies.put((project, sources(project)))
        clean, files = copies.get()
        for command in dict.fromkeys(c.noticed_by for c in chosen):
            status, said = run(clean, command)
            if status:
                print(said[-2000:])
                print(f"the project itself is red: {' '.join(command)}")
                return 1
        copies.put((clean, files))

        def one(corruption: Corruption) -> str:
            project, files = copies.get()
            try:
                return verdict(corruption, project)
            finally:
                restore(project, files)
                copies.put((project, files))

        caught = 0
        for corruption, found in zip(chosen, pool.map(one, chosen), strict=True):
            caught += found == "caught"
            print(f"{found:<8} {corruption.what}", flush=True)
    print(f"caught {caught} of {len(chosen)}")
    return 0 if caught == len(chosen) >= floor else 1


if __name__ == "__main__":
    sys.exit(main())
