"""Sphinx extension: when chapters run, and how their failures reach the reader.

- Outputs are cached under a key made of everything that a chapter may depend on.
- Pages are read, and so executed, in parallel.
- A failed chapter stops the build with its cell and traceback, and a build that
  failed reads every page again the next time.
"""

import hashlib
import os
import re
import shutil
import sys
from functools import partial
from pathlib import Path

import kernels
from jupyter_cache.cache.main import JupyterCacheBase
from jupyter_cache.executors.utils import ExecutionResult
from jupyter_cache.utils import Timer
from myst_nb.core.execute import cache as myst_nb_cache
from myst_nb.core.execute import direct as myst_nb_direct
from nbclient import NotebookClient
from sphinx.errors import SphinxError

ANSI_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
CACHES_KEPT = 4


class ChapterFailed(SphinxError):
    category = "A chapter failed"


# --- the cache key ---------------------------------------------------------------


def is_source(path: Path) -> bool:
    """Whether a chapter can depend on this file. No chapter imports a notebook."""
    return not (
        path.suffix in {".pyc", ".ipynb"}
        or any(
            part == "__pycache__" or part.startswith(".") or part.endswith(".egg-info")
            for part in path.parts
        )
    )


def fingerprint(root: Path) -> str:
    """Hash of the Python version, the pins, and all of shared/ and labs/."""
    files = [root / "requirements.txt"]
    for folder in ("shared", "labs"):
        found = (p for p in (root / folder).rglob("*") if p.is_file())
        files += sorted(p for p in found if is_source(p.relative_to(root)))
    digest = hashlib.sha256(sys.version.encode())
    for path in files:
        if path.exists():
            digest.update(path.relative_to(root).as_posix().encode() + b"\0")
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def of_extensions() -> str:
    """Hash of the extensions beside this file: when one changes, so may every page."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def set_cache(app, config) -> None:
    if config.nb_execution_mode != "cache":
        return
    caches = Path(app.outdir).parent / ".jupyter_cache"
    path = caches / fingerprint(Path(app.srcdir))
    # Sphinx reads every page again when this value changes.
    config.nb_execution_cache_path = str(path)
    # Create the database here: parallel readers would race to do it.
    myst_nb_cache.get_cache(path).db.dispose()
    os.utime(path)
    by_age = sorted(caches.iterdir(), key=lambda p: p.stat().st_mtime)
    for old in by_age[:-CACHES_KEPT]:
        shutil.rmtree(old, ignore_errors=True)


def keep_all_outputs() -> None:
    """Let jupyter-cache delete nothing; whole caches are deleted above.

    It looks twice at what is there, and deletes what another reader added in between,
    now and then before its file is written: "Notebook file does not exist".
    """
    JupyterCacheBase.truncate_caches = lambda cache: None


# --- running one chapter ---------------------------------------------------------


def describe(nb, index: int | None, error: Exception) -> str:
    text = ANSI_COLOUR.sub("", str(error)).strip()
    if index is None:
        return f"before the first cell\n{text}"
    cell = nb.cells[index]
    if cell.source.strip() in text:  # nbclient repeats the cell for most errors
        return f"cell {cell.id}\n{text}"
    return f"cell {cell.id}\n{cell.source}\n------------------\n{text}"


def run_chapter(app, nb, cwd, timeout, **_) -> ExecutionResult:
    """Execute one notebook, in place of jupyter-cache's function.

    That one lets the metadata of a notebook switch errors off, does not catch a
    dead kernel, and does not say which cell it was.
    """
    started: list[int] = []
    client = NotebookClient(
        nb,
        timeout=timeout,
        allow_errors=False,
        record_timing=False,  # its times would be part of the key in the cache
        resources={"metadata": {"path": cwd}},
        on_cell_start=lambda cell, cell_index: started.append(cell_index),
    )
    timer = Timer()
    with timer:
        try:
            client.execute()
        except Exception as error:
            page = Path(app.env.doc2path(app.env.docname, base=False)).as_posix()
            reason = describe(nb, started[-1] if started else None, error)
            name = type(error).__name__
            raise ChapterFailed(f"{page}: {name} in {reason}") from error
    return ExecutionResult(nb, cwd, timer.last_split)


def keep_outputs(client: myst_nb_cache.NotebookClientCache) -> None:
    """Start a client, and let the notebook that it was given hold the outputs.

    myst-nb leaves it bare when the outputs come from the cache, and writes it so to
    jupyter_execute, where the record of outputs is taken from.
    """
    given = client.notebook
    start_client(client)
    given.cells = client.notebook.cells


start_client = myst_nb_cache.NotebookClientCache.start_client


# --- the build as a whole --------------------------------------------------------


def allow_parallel_reading(app) -> None:
    # sphinx-external-toc always loads this one. It numbers sections after all
    # pages are read, so it does not mind who read them, but does not say so.
    extension = app.extensions.get("sphinx_multitoc_numbering")
    if extension is not None:
        extension.parallel_read_safe = True


class TitlesEverywhere:
    """Write all pages when one was read: each shows the titles of the others."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def note(self, app, env, docnames) -> None:
        self.read.extend(docnames)

    def pages_to_write(self, app, env) -> list[str]:
        return sorted(env.found_docs) if self.read else []


def forget_failed_build(app, exception) -> None:
    """Sphinx repeats no warning of a page that it has read already.

    Without its saved environment it reads all pages again. It removes the file
    itself after an exception, but not after a warning.
    """
    if app._warncount:
        (Path(app.doctreedir) / "environment.pickle").unlink(missing_ok=True)


def setup(app):
    kernels.prepare()
    keep_all_outputs()
    run = partial(run_chapter, app)
    myst_nb_cache.single_nb_execution = run
    myst_nb_direct.single_nb_execution = run
    myst_nb_cache.NotebookClientCache.start_client = keep_outputs
    app.parallel = int(os.environ.get("BOOK_JOBS", os.cpu_count() or 1))
    # Sphinx reads every page again when this value changes.
    app.add_config_value("book_extensions", of_extensions(), "env", [str])
    app.connect("config-inited", set_cache)
    app.connect("builder-inited", allow_parallel_reading)
    titles = TitlesEverywhere()
    app.connect("env-before-read-docs", titles.note)
    app.connect("env-updated", titles.pages_to_write)
    app.connect("build-finished", forget_failed_build)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
