"""What the lint for typed numbers catches, and what it lets pass."""

from __future__ import annotations

from pathlib import Path

import pytest
import truth
from prose import typed_numbers

TYPED = {
    "The error is 0.25.": "0.25",
    "The error falls to -1.5.": "-1.5",
    "It takes 1,024 bytes.": "1,024",
    "It is below 1e-12.": "1e-12",
    "The share is 12%.": "12%",
    "The share is 12 percent.": "12",
    "Seven of them, 7 in all.": "7",
    "It grows by 3x.": "3",
    "The result $0.3$ is right.": "0.3",
    "The result is $x = 7$.": "7",
    "That is half the error.": "half",
    "It is larger than before, and three checks break.": "three",
    "It is twice as large as before.": "twice as",
    "It falls by a third.": "by a third",
    "It is an order of magnitude slower.": "order of magnitude",
    "It breaks *twelve* checks.": "twelve",
    "Of the thirteen faults none is seen.": "thirteen",
    "Twenty-one checks hold.": "twenty-one",
    "Most, some ninety percent, pass.": "ninety",
    "The entropy is one half.": "half",
    "It uses four bytes.": "four",
    "The error is zero.": "zero",
    "The loss falls to two.": "two",
    "| a | 0.5 |": "0.5",
    "- **bold 4** text": "4",
    "[a link of 12](there.md)": "12",
    "It is 2020 bytes, and 20 more.": "20",
    "It is \u00bd of it.": "\u00bd",
    "It is {math}`0.3` there.": "0.3",
    "It falls by a factor of three.": "three",
    "| it took 20 min |": "20",
    "The run took 20 min.": "20",
    "It has 2048 rows.": "2048",
    "One in ten is wrong.": "one in ten",
    "It fails once in eight times.": "once in eight",
    "Nine out of ten answers are right.": "nine out of ten",
    "It is kept in one out of every three rounds.": "one out of every three",
    "One in a thousand is lost.": "one in a thousand",
    "It keeps two thirds of them.": "two thirds",
    "Every third answer is wrong.": "every third",
}
FREE = [
    "In 2017 the paper came out {cite}`vaswani2017attention`.",
    "See section 4 and part 2 of the course.",
    "It needs Python 3.11 and float16.",
    "A 64-bit number, UTF-8 and ISO 8601.",
    "The top-1 and the L2 norm in 2-D.",
    "As $x \\to 0$, $x^2 \\le 1$ and $1/2$ hold.",
    "Run `python labs/run_all.py --seed 184`.",
    "With {given}`sigma=0.7` it holds.",
    "Half precision is another type.",
    "Rounding moves a number by half a step at most.",
    "The example Q012 and the check `rope_worked_30`.",
    "The exponent is i/d, not 2i/d.",
    "```\nx = 0.25\n```",
    "$$\nx = 0.25\n$$",
    "1. First\n2. Second",
    "Two forms, one result.",
    "Every second entry belongs to the other half.",
    "The third one is in there.",
    "It stands in one of two files.",
    "| 20 min | [a page](there.md) |",
    "<!-- 12 -->",
]


@pytest.mark.parametrize(("text", "number"), TYPED.items())
def test_a_typed_number_is_found(text: str, number: str):
    assert number in [found for found, _ in typed_numbers(text)]


@pytest.mark.parametrize("text", FREE)
def test_what_is_no_result_passes(text: str):
    assert typed_numbers(text) == []


@pytest.mark.parametrize(
    "code",
    [
        'say("The error is 0.25.")',
        'say("The error is {x}, half the loss.", x=1)',
        'show_checks("a", caption="All 7 of them.")',
        'finish(f, alt="It ends at 0.5.", finding="", caption="")',
        'finish(f, alt=f"At {x} it is 0.5.", finding="", caption="")',
        'finish(f, alt="a " + ", ".join(f"{x} at 3" for x in y), finding="")',
        'finish(f, finding="Falls to 3." if x else "No.", alt="")',
        'scrubber("d", [], caption="Nine of 9.")',
    ],
)
def test_a_number_in_a_sentence_that_code_prints_is_found(code: str):
    assert list(truth.numbers([truth.Cell("cell a", "code", code)]))


@pytest.mark.parametrize(
    ("hint", "because", "found"),
    [
        ("Add 7 to it.", "", ["7"]),
        ("", "The slope is 12.", ["12"]),
        ("", "It is kept once in eight.", ["once in eight"]),
        ("Solve 2 (1 + n)/2^n = {level}.", "From 0 to {answer}.", []),
    ],
)
def test_hints_and_reasons_of_exercises_are_read(
    hint: str, because: str, found: list[str]
):
    code = f'exercise("a", hint="{hint}", because="{because}", x=3)'
    said = [what for _, what in truth.numbers([truth.Cell("a", "code", code)])]
    assert [what.split("'")[1] for what in said] == found


def test_the_exercises_of_labcore_are_among_what_is_read(tmp_path: Path):
    folder = tmp_path / "shared" / "labcore" / "exercises"
    folder.mkdir(parents=True)
    text = 'exercise("a", hint="", because="The slope is 12.")\n'
    (folder / "some.py").write_text(text, encoding="utf-8")
    [problem] = truth.problems(tmp_path, [])
    assert problem.file == "shared/labcore/exercises/some.py"


@pytest.mark.parametrize(
    "code",
    [
        'say("The error is {x}.", x=0.25)',
        'finish(f, alt=f"At {number(0.5)} it ends.", finding="", caption="")',
        "x = 0.25  # not a sentence",
        'print("0.25")',
        "%matplotlib inline",
    ],
)
def test_a_number_that_a_run_fills_in_passes(code: str):
    assert list(truth.numbers([truth.Cell("cell a", "code", code)])) == []


# ---- Givens -------------------------------------------------------------------------

HELD = truth.Cell(
    "cell g", "code", "sigma, k = 0.7, 3\nS = np.array([1, 2])", ("givens",)
)


@pytest.mark.parametrize("text", ["sigma=0.7", "k=3", "S=[1, 2]", "S=(1, 2)"])
def test_a_given_agrees_with_its_cell(text: str):
    said = truth.Cell("cell a", "markdown", f"With {{given}}`{text}` it holds.")
    assert list(truth.givens([HELD, said])) == []


@pytest.mark.parametrize(
    "text", ["sigma=0.8", "k=3.5", "S=[1, 3]", "S=[1]", "tau=0.7", "k=three"]
)
def test_a_given_that_disagrees_is_found(text: str):
    said = truth.Cell("cell a", "markdown", f"With {{given}}`{text}` it holds.")
    assert list(truth.givens([HELD, said]))


def test_a_question_takes_its_givens_from_its_exercise():
    """Another exercise of the same page does not help."""
    ask = truth.Cell("cell q", "code", 'exercises.check("writes/overshoot", answer)')
    right = truth.Cell("cell a", "markdown", "{given}`k=[3, 0]`")
    wrong = truth.Cell("cell b", "markdown", "{given}`retention=0.9`")
    assert list(truth.givens([right, ask])) == []
    assert list(truth.givens([wrong, ask]))


def test_a_cell_that_is_not_of_givens_gives_nothing():
    code = truth.Cell("cell c", "code", "sigma = 0.7")
    said = truth.Cell("cell a", "markdown", "{given}`sigma=0.7`")
    assert list(truth.givens([code, said]))


# ---- Formulas -----------------------------------------------------------------------


def box(tex: str, names: str) -> list[str]:
    text = (
        ":::{admonition} Identity · x\n:class: identity\n\n"
        f"$$\n{tex}\n$$\n\n{names}\n:::\n"
    )
    return [what for _, what in truth.formulas([truth.Cell("c", "markdown", text)])]


def test_a_box_shows_what_the_registry_prints():
    from labcore.formulas import FORMULAS

    tex = FORMULAS["gated_affine"].tex
    names = "Function `labcore.gated_write` · check `kda_affine_form`"
    assert box(tex, names) == []
    assert box(tex.replace("+", "-"), names)
    assert box(tex.replace(r"\beta", r"\alpha"), names)
    assert box(tex, names.replace("gated_write", "delta_write"))
    assert box(tex, names.replace("kda_affine_form", "gated_no_decay_limit"))
    assert box(tex, "Function `labcore.gated_write`")
    assert box(tex, names + ", `gated_no_decay_limit`")
