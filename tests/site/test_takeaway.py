"""The files to take away: made twice the same, and run where nothing else is.

Each runs in an empty folder with an environment of its own. What it prints is what the
program of the project prints there.
"""

from __future__ import annotations

import hashlib
import html
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.labs.programs import ROOT, Ran, load, strict_json

sys.path.insert(0, str(ROOT / "book" / "_ext"))
import onefile
import takeaway

SITE = ROOT / "_build" / "html"
ONE, PYZ, ZIP = takeaway.FILES
LAB = load(ROOT / "labs" / "transformer_math_lab.py")
COURSE = takeaway.COURSE


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    takeaway.make(ROOT, folder)
    return folder


def environment(folder: Path, *install: str, cwd: Path | None = None) -> Path:
    """The Python of a new virtual environment with these packages.

    It is filled from outside, for to put pip into it would take longer than numpy.
    """
    make = (sys.executable, "-m", "venv", "--without-pip", folder)
    subprocess.run(make, check=True)
    place = ("Scripts", "python.exe") if os.name == "nt" else ("bin", "python")
    python = folder.joinpath(*place)
    pip = ("-m", "pip", "--python", python, "--disable-pip-version-check")
    options = ("--quiet", "--no-compile")
    run(Path(sys.executable), *pip, "install", *options, *install, cwd=cwd or folder)
    return python


@pytest.fixture(scope="session")
def numpy_only(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pins = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    [pin] = re.findall(r"^numpy==\S+", pins, flags=re.M)
    return environment(tmp_path_factory.mktemp("numpy only"), pin)


def run(
    python: Path, *arguments: str | Path, cwd: Path, status: int = 0
) -> tuple[bytes, bytes]:
    """What it printed: nothing of this process's environment reaches it."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    command = [str(python), *map(str, arguments)]
    ran = subprocess.run(command, cwd=cwd, env=clean, capture_output=True)
    assert ran.returncode == status, (ran.stdout[-2000:], ran.stderr[-2000:])
    return ran.stdout, ran.stderr


def alone(made: Path, name: str, folder: Path) -> Path:
    """The file, in an empty folder."""
    return Path(shutil.copy(made / name, folder))


# --- as files --------------------------------------------------------------------


def test_made_twice_they_are_the_same(made: Path, tmp_path: Path):
    takeaway.make(ROOT, tmp_path)
    for name in (*takeaway.FILES, takeaway.SUMS):
        assert (tmp_path / name).read_bytes() == (made / name).read_bytes(), name


def test_another_order_of_files_and_sets_changes_nothing(made: Path, tmp_path: Path):
    clean = os.environ | {"PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo"}
    program = ROOT / "book" / "_ext" / "takeaway.py"
    subprocess.run([sys.executable, program, tmp_path], check=True, env=clean)
    sums = (tmp_path / takeaway.SUMS).read_bytes()
    assert sums == (made / takeaway.SUMS).read_bytes()


def test_a_file_that_is_the_same_is_left_alone(tmp_path: Path):
    takeaway.make(ROOT, tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    takeaway.make(ROOT, tmp_path)
    assert before == {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}


@pytest.mark.parametrize("name", [PYZ, ZIP])
def test_entries_are_sorted_dated_and_readable(
    name: str, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1796083200")
    takeaway.make(ROOT, tmp_path)
    entries = zipfile.ZipFile(tmp_path / name).infolist()
    names = [entry.filename for entry in entries]
    assert names == sorted(names) and len(set(names)) == len(names)
    assert {entry.date_time for entry in entries} == {(2026, 12, 1, 0, 0, 0)}
    assert {entry.external_attr >> 16 for entry in entries} == {0o100644}
    assert not [
        n for n in names if re.search(r"__pycache__|egg-info|\.pyc$|^/|\.\.", n)
    ]


def test_the_site_has_them_with_their_sums_and_the_opening_page_links_them():
    folder = SITE / takeaway.FOLDER
    lines = (folder / takeaway.SUMS).read_text(encoding="ascii").splitlines()
    sums = {name: digest for digest, name in map(str.split, lines)}
    assert list(sums) == list(takeaway.FILES)
    page = (SITE / "book" / "index.html").read_text(encoding="utf-8")
    page = page.replace("<wbr>", "")
    for name, digest in sums.items():
        data = (folder / name).read_bytes()
        assert hashlib.sha256(data).hexdigest() == digest
        assert f'href="../{takeaway.FOLDER}/{name}"' in page
        assert digest in page and f"{len(data) / 1000:.0f}&nbsp;kB" in page


def test_the_table_names_each_file(made: Path, tmp_path: Path):
    table = takeaway.table(made, "../../")
    for name, words in takeaway.FILES.items():
        assert f'href="../../take-away/{name}"' in table
        assert html.escape(words) in table
    with pytest.raises(FileNotFoundError):
        takeaway.table(tmp_path, "")


# --- the one file ----------------------------------------------------------------


@pytest.fixture(scope="module")
def one(made: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("one_file", made / ONE)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["one_file"] = module
    spec.loader.exec_module(module)
    return module


def test_it_prints_what_the_program_prints(
    made: Path, numpy_only: Path, tmp_path: Path
):
    file = alone(made, ONE, tmp_path)
    ours = ROOT / "labs" / "transformer_math_lab.py"
    for options in ([], ["--seed", "7"], ["--list"]):
        wanted = run(numpy_only, ours, *options, cwd=tmp_path)
        assert run(numpy_only, file, *options, cwd=tmp_path) == wanted
    broken = ("--break", "gated_decay_after_write")
    wanted = run(numpy_only, ours, *broken, cwd=tmp_path, status=1)
    assert run(numpy_only, file, *broken, cwd=tmp_path, status=1) == wanted
    assert os.listdir(tmp_path) == [ONE]


@pytest.mark.parametrize(
    "argv",
    [
        ["--seeds", "3"],
        ["--only", "rope_joint_shift", "online_softmax", "--seeds", "2"],
        ["--seed", "-1"],
        ["--only", "online_softmx"],
        ["--break", "no fault has a name like this"],
        ["--list", "--faults"],
    ],
)
def test_its_options_are_those_of_the_program(
    argv: list[str], one: ModuleType, capsys: pytest.CaptureFixture[str]
):
    ours, here = Ran(LAB, capsys, *argv), Ran(one, capsys, *argv)
    assert vars(here) == vars(ours)


def test_every_fault_in_it_does_what_it_does_in_the_program(
    one: ModuleType, capsys: pytest.CaptureFixture[str]
):
    recorded = LAB.known.recorded()["faults"]
    chapters = {LAB.CHECKS[name].chapter for name in LAB.NAMES}
    noticed = {
        id
        for id, fault in LAB.FAULTS.items()
        if fault.chapter in chapters
        and not set(recorded.get(id, {"red": ()})["red"]).isdisjoint(LAB.NAMES)
    }
    assert set(one.FAULTS) == noticed and len(noticed) > 40
    for id in noticed:
        ours, here = (Ran(lab, capsys, "--break", id) for lab in (LAB, one))
        assert vars(here) == vars(ours) and here.status == 1, id


def test_its_faults_are_told_in_the_same_words(
    one: ModuleType, capsys: pytest.CaptureFixture[str]
):
    ours = Ran(LAB, capsys, "--faults").out.strip().split("\n\n")
    here = Ran(one, capsys, "--faults").out.strip().split("\n\n")
    assert len(here) == len(one.FAULTS) and set(here) <= set(ours)


def test_it_is_plain_readable_python(made: Path):
    text = (made / ONE).read_text(encoding="utf-8")
    assert not re.search(r"base64|\bexec\(|\beval\(|__import__|labcore import", text)
    assert max(map(len, text.splitlines())) <= 100
    assert len(text.splitlines()) < 4500
    for words in ("MIT License", "WITHOUT WARRANTY", "pip install numpy", "made it"):
        assert words in text
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "E9,F"]
    ran = subprocess.run([*ruff, made / ONE], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout
    lines = text.splitlines()
    listed = re.findall(r"^# +(\d+)  (.+)$", text, flags=re.M)
    assert len(listed) > 20
    assert [lines[int(n) - 1] for n, _ in listed] == [f"# {t}" for _, t in listed]


def test_each_definition_in_it_stands_in_labcore(made: Path):
    """But for names: what was told apart is named after its module."""
    sources = "".join(
        path.read_text(encoding="utf-8")
        for folder in ("shared/labcore", "labs")
        for path in (ROOT / folder).rglob("*.py")
    )
    text = (made / ONE).read_text(encoding="utf-8")
    code = text[text.index("# labcore.ops._kinds") : text.index("# What was recorded")]
    known = {line.strip() for line in sources.splitlines()}
    lines = [line.strip() for line in code.splitlines()]
    told_apart = [line for line in lines if line and line not in known]
    assert len(told_apart) < 0.12 * len(lines)


def test_a_changed_operation_changes_it(made: Path, tmp_path: Path):
    for name in ("labs", "shared"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "LICENSE", tmp_path)
    source = tmp_path / "shared" / "labcore" / "ops" / "softmax.py"
    text = source.read_text(encoding="utf-8")
    assert takeaway.single_file(tmp_path) == (made / ONE).read_bytes()
    source.write_text(text.replace("np.exp(x", "np.exp2(x"), encoding="utf-8")
    changed = takeaway.single_file(tmp_path)
    assert b"np.exp2(x" in changed and changed != (made / ONE).read_bytes()


def small(folder: Path, body: str) -> str:
    """One file, of a program whose one check has this module of identities."""
    inner = folder / "shared" / "labcore"
    for name in ("identities", "ops"):
        (inner / name).mkdir(parents=True)
    (inner / "__init__.py").write_text("")
    (inner / "identities" / "__init__.py").write_text("")
    (inner / "identities" / "matrix.json").write_text('{"checks": {}, "faults": {}}')
    (inner / "identities" / "_check.py").write_text("chapter = print\n")
    (inner / "identities" / "topic.py").write_text(
        "from ._check import chapter\n" + body
    )
    program = folder / "program.py"
    program.write_text(
        '"""A program."""\n'
        "from labcore.identities import _check as known\n"
        'NAMES = ("one",)\n'
        "def main():\n    chapter = known.chapter\n    return chapter, NAMES\n"
        'if __name__ == "__main__":\n    main()\n'
    )
    return onefile.one_file(program, folder / "shared", "about", "licence")


CHECKED = '@chapter.check("one")\ndef _():\n    '


def test_a_name_is_told_apart_from_a_local_one(tmp_path: Path):
    text = small(tmp_path, f'{CHECKED}return f"{{chapter!r}}, a chapter_of"\n')
    assert "\nchapter_check = print\n" in text
    assert "\n    chapter = chapter_check\n" in text
    assert 'return f"{chapter_check!r}, a chapter_of"' in text


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("for x in []:\n    pass\n" + CHECKED + "return 1\n", "neither a definition"),
        (CHECKED + "import os\n    return os\n", "import os in a function"),
        (CHECKED + "return nothing_of_that_name\n", "what is nothing_of_that_name"),
        (CHECKED + 'return f"chapter {chapter}"\n', "chapter is a name and a word"),
        ("def f():\n    pass\n", "no check called one"),
    ],
)
def test_what_it_cannot_move_it_refuses(body: str, words: str, tmp_path: Path):
    with pytest.raises(onefile.CannotBeOneFile, match=words):
        small(tmp_path, body)


def test_without_numpy_it_says_so(made: Path, numpy_only: Path, tmp_path: Path):
    for name, more in ((ONE, []), (PYZ, ["worked_examples"])):
        file = alone(made, name, tmp_path)
        out, said = run(numpy_only, "-S", file, *more, cwd=tmp_path, status=2)
        assert out == b"" and b"numpy" in said.lower() and said.count(b"\n") == 1


# --- the .pyz --------------------------------------------------------------------


def test_the_pyz_lists_its_programs(made: Path, numpy_only: Path, tmp_path: Path):
    file = alone(made, PYZ, tmp_path)
    out, _ = run(numpy_only, file, cwd=tmp_path)
    listed = re.findall(r"^\w+$", out.decode(), flags=re.M)
    programs = {path.stem for path in (ROOT / "labs").glob("[!_]*.py")}
    assert len(listed) == len(programs) and set(listed) == programs
    _, said = run(numpy_only, file, "work_examples", cwd=tmp_path, status=2)
    assert said.startswith(b"no program named 'work_examples'; there are")


def test_the_pyz_prints_what_the_programs_print(
    made: Path, numpy_only: Path, tmp_path: Path
):
    file = alone(made, PYZ, tmp_path)
    for name, *options in (
        ["transformer_math_lab", "--faults"],
        ["laplacian_attention_lab", "--seed", "3"],
        ["worked_examples", "--only", "F05", "Q012"],
    ):
        ours = run(numpy_only, ROOT / "labs" / f"{name}.py", *options, cwd=tmp_path)
        assert run(numpy_only, file, name, *options, cwd=tmp_path) == ours


def test_the_pyz_runs_all_programs_and_their_children(
    made: Path, numpy_only: Path, tmp_path: Path
):
    """The 108 checks start processes of their own, which must find labcore inside."""
    file = alone(made, PYZ, tmp_path)
    kept, ours = tmp_path / "kept", tmp_path / "ours"
    out, said = run(numpy_only, file, "run_all", "--out", kept, cwd=tmp_path)
    assert strict_json(out)["all_passed"] is True and said == b""
    command = (ROOT / "labs", "run_all", "--out", ours)
    assert run(numpy_only, *command, cwd=tmp_path) == (out, b"")
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(["kept", "ours", PYZ])


def test_a_fault_reaches_the_children_of_the_pyz(
    made: Path, numpy_only: Path, tmp_path: Path
):
    file = alone(made, PYZ, tmp_path)
    options = ("--test", "--break", "transfer_statement_by_statement")
    ours = ROOT / "labs" / "worked_examples.py"
    wanted = run(numpy_only, ours, *options, cwd=tmp_path, status=1)
    got = run(numpy_only, file, "worked_examples", *options, cwd=tmp_path, status=1)
    assert got == wanted and b"failed  " in got[0]


def test_the_pyz_uses_its_own_labcore_wherever_it_lies(
    made: Path, numpy_only: Path, tmp_path: Path
):
    wrong = tmp_path / "shared" / "labcore"
    wrong.mkdir(parents=True)
    (wrong / "__init__.py").write_text("raise SystemExit('the wrong one')\n")
    file = alone(made, PYZ, tmp_path)
    run(numpy_only, file, "worked_examples", "--only", "F05", cwd=tmp_path)


# --- the course ------------------------------------------------------------------


@pytest.fixture(scope="session")
def student(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The Python and the folder of a student who did what the README says."""
    folder = tmp_path_factory.mktemp("a student")
    takeaway.make(ROOT, folder)
    zipfile.ZipFile(folder / ZIP).extractall(folder)
    course = folder / COURSE
    return environment(course / ".venv", "-r", "requirements.txt", cwd=course), course


def test_the_zip_holds_one_folder_with_every_chapter_and_workbook(made: Path):
    names = zipfile.ZipFile(made / ZIP).namelist()
    assert {name.partition("/")[0] for name in names} == {COURSE}
    inside = {name.partition("/")[2] for name in names}
    for pattern in ("labs/workbooks/*.ipynb", "labs/*.py", "shared/labcore/*.py"):
        ours = {p.relative_to(ROOT).as_posix() for p in ROOT.glob(pattern)}
        assert ours and ours <= inside
    chapters = {f"{page}.ipynb" for page in takeaway.strict.listed(ROOT)[1:]}
    assert {name for name in chapters if (ROOT / name).is_file()} <= inside
    assert len(chapters & inside) > 20
    assert {"README.md", "LICENSE", "requirements.txt"} <= inside


def test_its_notebooks_have_no_outputs(made: Path):
    archive = zipfile.ZipFile(made / ZIP)
    for name in archive.namelist():
        if name.endswith(".ipynb"):
            cells = json.loads(archive.read(name))["cells"]
            assert not [c for c in cells if c.get("outputs")], name
            ours = ROOT / name.partition("/")[2]
            assert [c["source"] for c in cells] == [
                c["source"] for c in json.loads(ours.read_text("utf-8"))["cells"]
            ]


def test_its_requirements_are_what_its_notebooks_import(made: Path):
    archive = zipfile.ZipFile(made / ZIP)
    imported = set()
    for name in archive.namelist():
        if name.endswith(".ipynb"):
            for cell in json.loads(archive.read(name))["cells"]:
                if cell["cell_type"] == "code":
                    source = "".join(cell["source"])
                    words = re.findall(r"^ *(?:import|from) (\w+)", source, flags=re.M)
                    imported |= set(words)
    needed = {name.casefold() for name in imported - set(sys.stdlib_module_names)}
    assert needed - {"labcore"} <= set(takeaway.INSTALLED)


def test_a_notebook_that_was_run_is_packed_without_outputs(tmp_path: Path):
    cell: dict[str, Any] = {"cell_type": "code", "execution_count": 1, "source": "1"}
    notebook = {"cells": [{**cell, "outputs": [1]}, {"cell_type": "markdown"}]}
    path = tmp_path / "run.ipynb"
    path.write_text(json.dumps(notebook), encoding="utf-8")
    [code, _] = json.loads(takeaway.without_outputs(path))["cells"]
    assert code == {**cell, "outputs": [], "execution_count": None}


def test_its_programs_need_numpy_only(made: Path, numpy_only: Path, tmp_path: Path):
    zipfile.ZipFile(made / ZIP).extractall(tmp_path)
    command = ("labs", "worked_examples", "--test")
    out, _ = run(numpy_only, *command, cwd=tmp_path / COURSE)
    assert out.endswith(b"108 passed, 0 failed\n")


@pytest.mark.parametrize(
    "name", ["book/part-1/writes-and-decay.ipynb", "labs/workbooks/part-2.ipynb"]
)
def test_a_student_runs_a_notebook(name: str, student: tuple[Path, Path]):
    python, course = student
    arguments = ("-m", "jupyter", "execute", "--inplace", course / name)
    run(python, *arguments, cwd=course)
    cells = json.loads((course / name).read_text("utf-8"))["cells"]
    assert any(cell.get("outputs") for cell in cells)


def test_a_student_s_labcore_is_the_one_of_the_zip(student: tuple[Path, Path]):
    python, course = student
    command = ("-c", "import labcore, jupyterlab; print(labcore.__file__)")
    out, _ = run(python, *command, cwd=course.parent)
    assert Path(out.decode().strip()).is_relative_to(course.resolve())
