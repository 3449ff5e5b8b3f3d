"""The rules of the house: layers, pins, versions, the form of files."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import distributions
from pathlib import Path

import pytest
import yaml
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).resolve().parents[1]
LABCORE = ROOT / "shared" / "labcore"

# Imports run downwards only: a module may import from its own layer and from below.
LAYERS = [
    {"ops", "systems", "counting"},
    {"identities", "examples"},
    {"_told"},
    {"matrix", "report", "formulas", "contents", "notebook"},
    {"lab", "figures", "exercises", "program", "quiz", "indexes"},
    {"present"},
]
NOT_OURS = {"_build", "__pycache__", "node_modules", "my", "vendor"}
BINARY = {".png", ".ico", ".woff", ".woff2", ".npz", ".npy", ".sqlite"}


def project_files() -> list[Path]:
    files = []
    for folder, subfolders, names in os.walk(ROOT):
        subfolders[:] = [
            name
            for name in subfolders
            if name not in NOT_OURS
            and not name.endswith(".egg-info")
            and (not name.startswith(".") or name == ".ci")
        ]
        files += [Path(folder, name) for name in names if name != ".git"]
    return sorted(files)


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def version() -> str:
    init = (LABCORE / "__init__.py").read_text(encoding="utf-8")
    return re.search(r'^__version__ = "(.+)"$', init, re.MULTILINE)[1]


# --- layers ----------------------------------------------------------------------


def imported_parts(path: Path) -> set[str]:
    """The first name under labcore of each import of a module, absolute or not."""
    package = path.relative_to(LABCORE.parent).with_suffix("").parts[:-1]
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level + 1]) if node.level else []
            base += node.module.split(".") if node.module else []
            names = [".".join([*base, alias.name]) for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "labcore" and len(parts) > 1:
                found.add(parts[1])
    return found


def layer(part: str) -> int | None:
    return next((i for i, names in enumerate(LAYERS) if part in names), None)


def test_no_module_imports_upwards():
    wrong = []
    for path in LABCORE.rglob("*.py"):
        name = path.relative_to(LABCORE).with_suffix("").parts[0]
        if name.startswith("__"):
            continue
        own = layer(name)
        if own is None:
            wrong.append(f"labcore.{name} stands in no layer: add it to LAYERS")
            continue
        for part in imported_parts(path):
            if (other := layer(part)) is not None and other > own:
                wrong.append(f"{path.relative_to(ROOT)} imports labcore.{part}")
    assert wrong == []


def test_importing_any_module_prints_nothing():
    modules = sorted(
        ".".join(path.relative_to(LABCORE.parent).with_suffix("").parts)
        for path in LABCORE.rglob("*.py")
        if path.name not in {"__init__.py", "__main__.py"}
    )
    code = f"import importlib\nfor m in {modules!r}: importlib.import_module(m)"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_labcore_needs_numpy_only():
    """Its plain import must work where neither matplotlib nor IPython is."""
    code = (
        "import sys; sys.modules.update(matplotlib=None, IPython=None)\n"
        "import labcore; [getattr(labcore, n) for n in getattr(labcore, '__all__', [])]"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


# --- pins and versions -----------------------------------------------------------


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-lab.txt"])
def test_every_package_is_pinned(name: str):
    lines = [line.split("#")[0].strip() for line in read(name).splitlines()]
    loose = [
        line
        for line in lines
        if line
        and line != "-e ./shared"
        and not re.match(r"[\w.-]+==[\w.]+( ;|$)", line)
    ]
    assert loose == []


def test_every_pin_installs_on_the_oldest_python_that_is_promised():
    # A pin may need a later patch release than the one a distribution ships.
    wanted = SpecifierSet(
        tomllib.loads(read("shared/pyproject.toml"))["project"]["requires-python"]
    )
    oldest = min(s.version for s in wanted) + ".0"
    refuses = [
        f"{dist.metadata['Name']} {dist.version} wants Python {needs}"
        for dist in distributions()
        if (needs := dist.metadata["Requires-Python"])
        and oldest not in SpecifierSet(needs)
    ]
    assert refuses == []


def test_the_environment_is_the_pinned_one():
    from importlib.metadata import version as installed

    for line in read("requirements.txt").splitlines():
        if pin := re.fullmatch(r"([\w.-]+)==([\w.]+)", line):
            assert installed(pin[1]) == pin[2], "run `make test`, or install again"


def test_one_version_everywhere():
    assert re.search(rf"^version: {re.escape(version())}$", read("CITATION.cff"), re.M)
    assert f"## {version()}" in read("CHANGELOG.md")


# --- the configuration of the book -----------------------------------------------


def test_every_configuration_key_is_known():
    """Jupyter Book says nothing about a key that it does not know."""
    import jupyter_book

    default = Path(jupyter_book.__file__).parent / "default_config.yml"
    known = yaml.safe_load(default.read_text(encoding="utf-8"))
    known |= {"project": "", "bibtex_bibfiles": []}

    def unknown(ours: dict, theirs: dict, where: str = "") -> list[str]:
        found = []
        for key, value in ours.items():
            if key not in theirs:
                found.append(where + key)
            elif isinstance(value, dict) and isinstance(theirs[key], dict):
                found += unknown(value, theirs[key], f"{where}{key}.")
        return found

    assert unknown(yaml.safe_load(read("_config.yml")), known) == []


def test_the_scripts_of_the_book_stay_small():
    scripts = [*(ROOT / "book").glob("_static/**/*.js")]
    lines = sum(len(p.read_text(encoding="utf-8").splitlines()) for p in scripts)
    assert 0 < lines <= 250


def test_no_chapter_is_left_out_and_no_two_share_a_name():
    contents = re.findall(r"(?:root|file): *(\S+)", read("_toc.yml"))
    sources = [
        path.relative_to(ROOT).with_suffix("").as_posix()
        for path in project_files()
        if path.is_relative_to(ROOT / "book") and path.suffix in {".ipynb", ".md"}
    ]
    assert sorted(sources) == sorted(contents)


# --- files -----------------------------------------------------------------------


def test_text_files_are_utf8_with_plain_line_ends():
    odd = []
    for path in project_files():
        if path.suffix in BINARY:
            continue
        data = path.read_bytes()
        try:
            data.decode("utf-8")
        except UnicodeDecodeError:
            odd.append(f"{path}: not UTF-8")
        if b"\r" in data:
            odd.append(f"{path}: carriage returns")
        if data and not data.endswith(b"\n"):
            odd.append(f"{path}: no line end at the end")
    assert odd == []


def test_no_name_clashes_or_fails_on_another_system():
    names = [path.relative_to(ROOT).as_posix() for path in project_files()]
    assert len({name.casefold() for name in names}) == len(names)
    assert [name for name in names if re.search(r'[<>:"\\|?*\s]', name)] == []


def test_the_readme_is_true():
    makefile = read("Makefile")
    for name in ("README.md", "CONTRIBUTING.md"):
        text = read(name)
        for target in re.findall(
            r"\bmake ([a-z]+)\b",
            "\n".join(re.findall(r"`[^`]+`|^    .*|^make .*", text, re.M)),
        ):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), (
                f"{name}: {target}"
            )
        for link in re.findall(r"\]\(([^)#]+)\)", text):
            if not link.startswith("http"):
                assert (ROOT / link).exists(), f"{name}: {link}"
