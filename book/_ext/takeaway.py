"""Sphinx extension: the files that a reader takes away, and the list of them.

Each build makes them anew, into the folder take-away of the site:

    transformer_math_lab.py          the 17 identities as one file; needs NumPy only
    transformer-math-lab.pyz         all programs and labcore; needs NumPy only
    transformer-math-lab-course.zip  chapters, workbooks, programs, labcore, pins
    SHA256SUMS                       for sha256sum -c

Equal sources and an equal SOURCE_DATE_EPOCH give equal bytes. On a page of the book

    ```{takeaway}
    ```

is a table of them: a link, what it is, the size, the hash. Without a book:

    python book/_ext/takeaway.py FOLDER
"""

from __future__ import annotations

import hashlib
import html
import io
import json
import os
import re
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import onefile
import strict

FOLDER = "take-away"
SUMS = "SHA256SUMS"
FIRST_DATE = "315532800"  # of a zip: 1980
COURSE = "transformer-math-lab-course"
# What a student installs; the rest of the pins belongs to the site and the tests.
INSTALLED = (
    "numpy",
    "ml_dtypes",
    "matplotlib",
    "ipykernel",
    "ipython",
    "jupyterlab",
)

FILES = {
    "transformer_math_lab.py": "One file to read from top to bottom: operations, "
    "checks, faults and the program. It runs alone, with Python and NumPy.",
    "transformer-math-lab.pyz": "All programs in one file. It runs alone, with Python "
    "and NumPy; without an argument it lists them.",
    f"{COURSE}.zip": "The whole course to run and to edit: chapters, workbooks, "
    "programs, the package. Its README says how to start.",
}

ABOUT = """\
This is one file of the course Transformer Math Lab, version {version}. The build of the
course made it from the package labcore: it holds the operations and the checks that
this program uses, and the faults that one of these checks notices. The course has more
of each. Break your copy as you like; the next build makes a new one.

It runs alone: it needs Python 3.11 or later and NumPy (python -m pip install numpy).
The licence is the MIT License, at the end of the file."""

README = """\
# Transformer Math Lab: the course to take away

Version {version}. You need Python 3.11 or later.

## Start

Unpack the archive, and open a terminal in the folder that holds this file.

Linux and macOS:

```sh
python3 -m venv .venv
.venv/bin/python -m pip install -r requirements.txt
.venv/bin/python -m jupyter lab
```

Windows, in PowerShell:

```powershell
py -m venv .venv
.venv\\Scripts\\python -m pip install -r requirements.txt
.venv\\Scripts\\python -m jupyter lab
```

The second line needs the network, once. The third opens JupyterLab in your browser:
start with `book/part-1/attention-and-caching.ipynb`, and run its cells from the top. A
notebook that has not been run yet has gaps where its results will stand.

## What is where

| folder or file | what it holds |
|---|---|
| `book/` | the chapters, and the pages of reference |
| `labs/workbooks/` | notebooks to edit: break an operation, predict what notices |
| `labs/` | programs; `python labs` lists them; they need NumPy only |
| `shared/labcore/` | the package of the course: operations, checks, faults |
| `requirements.txt` | what the notebooks need |
| `constraints.txt` | the exact version of every package that those need in turn |

The package is installed from this folder: what you change in `shared/labcore` is used
by the notebooks after a restart of their kernel. You cannot lose anything: the archive
has it all again.

## Licence

Code: MIT. Text and figures: CC BY 4.0. Both are in `LICENSE`.
"""


# --- the files -------------------------------------------------------------------


def make(root: Path, folder: Path) -> None:
    """Write the files; one that is there already, and the same, is left as it is."""
    made = {
        "transformer_math_lab.py": single_file(root),
        "transformer-math-lab.pyz": b"#!/usr/bin/env python3\n" + archive(pyz(root)),
        f"{COURSE}.zip": archive(course(root)),
    }
    sums = [f"{hashlib.sha256(made[name]).hexdigest()}  {name}\n" for name in FILES]
    made[SUMS] = "".join(sums).encode()
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in made.items():
        path = folder / name
        if not path.is_file() or path.read_bytes() != data:
            path.write_bytes(data)


def single_file(root: Path) -> bytes:
    program = root / "labs" / "transformer_math_lab.py"
    licence = re.search(
        r"^MIT License$.*?(?=\n=====)", read(root / "LICENSE"), flags=re.M | re.S
    )
    assert licence
    about = ABOUT.format(version=version(root))
    return onefile.one_file(program, root / "shared", about, licence[0]).encode()


def pyz(root: Path) -> Iterator[tuple[str, bytes]]:
    """The programs, and labcore beside them."""
    for path in (root / "labs").glob("*.py"):
        yield path.name, path.read_bytes()
    yield from package(root / "shared")
    yield "LICENSE", (root / "LICENSE").read_bytes()


def course(root: Path) -> Iterator[tuple[str, bytes]]:
    """What a student needs, laid out as in the project."""
    pages = [root / f"{page}.ipynb" for page in strict.listed(root)[1:]]
    books = [path for path in pages if path.is_file()]
    for path in [*books, *(root / "labs" / "workbooks").glob("*.ipynb")]:
        yield f"{COURSE}/{path.relative_to(root).as_posix()}", without_outputs(path)
    for name, data in package(root / "shared"):
        yield f"{COURSE}/shared/{name}", data
    kept = ["shared/pyproject.toml", "LICENSE", "CITATION.cff"]
    kept += [f"labs/{path.name}" for path in (root / "labs").glob("*.py")]
    for name in kept:
        yield f"{COURSE}/{name}", (root / name).read_bytes()
    needed, pinned = pins(root)
    readme = README.format(version=version(root))
    yield f"{COURSE}/README.md", readme.encode()
    yield f"{COURSE}/requirements.txt", needed.encode()
    yield f"{COURSE}/constraints.txt", pinned.encode()


def package(shared: Path) -> Iterator[tuple[str, bytes]]:
    """The sources and the data of labcore."""
    for path in (shared / "labcore").rglob("*"):
        if path.suffix in {".py", ".json"}:
            yield path.relative_to(shared).as_posix(), path.read_bytes()


def pins(root: Path) -> tuple[str, str]:
    """What a student installs, and the versions of all that could come with it."""
    names = ("requirements.txt", "requirements-lab.txt")
    lines = [line for name in names for line in read(root / name).splitlines()]
    pinned = sorted(line for line in lines if re.match(r"[\w.-]+==", line))
    ours = [line for line in pinned if line.partition("==")[0] in INSTALLED]
    assert len(ours) == len(INSTALLED)
    needed = [
        "# What the notebooks of this folder need. Run in this folder:",
        "#     python -m pip install -r requirements.txt",
        "-c constraints.txt",
        "-e ./shared",
        *ours,
    ]
    return "\n".join(needed) + "\n", "\n".join(pinned) + "\n"


def without_outputs(path: Path) -> bytes:
    """The notebook as it was written, whoever ran it since."""
    notebook = json.loads(read(path))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
    text = json.dumps(notebook, ensure_ascii=False, indent=1, sort_keys=True)
    return f"{text}\n".encode()


def archive(entries: Iterator[tuple[str, bytes]]) -> bytes:
    """A zip of these files: sorted, of one date, for everyone to read."""
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH", FIRST_DATE))
    date = time.gmtime(max(seconds, int(FIRST_DATE)))[:6]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as written:
        for name, data in sorted(entries):
            entry = zipfile.ZipInfo(name, date)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix, wherever it is made
            entry.external_attr = 0o100644 << 16
            written.writestr(entry, data, compresslevel=9)
    return buffer.getvalue()


def version(root: Path) -> str:
    source = read(root / "shared" / "labcore" / "__init__.py")
    found = re.search(r'^__version__ = "(.+)"$', source, flags=re.M)
    assert found
    return found[1]


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


# --- the pages -------------------------------------------------------------------


def table(folder: Path, prefix: str) -> str:
    """The files as a table; long names and hashes may break, and stay whole if copied.

    Raises FileNotFoundError where there are no files to list.
    """
    rows = ""
    for line in read(folder / SUMS).splitlines():
        digest, name = line.split()
        size = (folder / name).stat().st_size
        link = re.sub(r"(?<=[-_])", "<wbr>", html.escape(name))
        shown = "<wbr>".join(re.findall(".{8}", digest))
        target = f"{prefix}{FOLDER}/{name}"
        rows += (
            f'<tr><td><a href="{target}" download><code>{link}</code></a>'
            f"<br>{html.escape(FILES[name])}</td>"
            f"<td>{size / 1000:.0f}&nbsp;kB</td><td><code>{shown}</code></td></tr>"
        )
    return (
        '<table class="table take-away"><thead><tr><th scope="col">file</th>'
        '<th scope="col">size</th><th scope="col">SHA-256</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )


def make_files(app) -> None:
    root = Path(app.srcdir)
    if app.builder.format == "html" and (root / "labs").is_dir():
        make(root, Path(app.outdir) / FOLDER)


def setup(app):
    from docutils import nodes
    from sphinx.util.docutils import SphinxDirective

    class TakeAway(SphinxDirective):
        """The table; the page is read again when one of the files changed."""

        def run(self) -> list[nodes.Node]:
            folder = Path(self.env.app.outdir) / FOLDER
            sums = os.path.relpath(folder / SUMS, self.env.srcdir)
            self.env.note_dependency(sums)
            prefix = "../" * self.env.docname.count("/")
            try:
                text = table(folder, prefix)
            except FileNotFoundError as missing:
                raise self.error(f"takeaway: there is no {missing.filename}") from None
            return [nodes.raw("", text, format="html")]

    app.add_directive("takeaway", TakeAway)
    app.connect("builder-inited", make_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    make(Path(__file__).resolve().parents[2], Path(sys.argv[1]))
