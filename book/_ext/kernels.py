"""Where notebooks run: kernels over Unix sockets, and nothing of the reader's own.

Over TCP a kernel start fails now and then with "Address already in use", because
another program may take the port between its choice and its use. A socket file in
a new folder has no such gap. Windows has no such sockets and keeps TCP.
"""

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# A socket's path has room for about a hundred bytes, on macOS a few more are gone.
LONGEST_FOLDER = 70


def use_unix_sockets() -> None:
    """Make nbclient, and with it myst-nb and nbmake, start kernels over sockets."""
    if os.name == "nt":
        return
    import jupyter_client
    from traitlets import default

    folder = tempfile.mkdtemp(prefix="lab-")
    if len(folder) > LONGEST_FOLDER:
        os.rmdir(folder)
        folder = tempfile.mkdtemp(prefix="lab-", dir="/tmp")
    owner = os.getpid()

    def remove() -> None:
        if os.getpid() == owner:  # not in a forked reader
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)

    class SocketKernelManager(jupyter_client.AsyncKernelManager):
        @default("transport")
        def _transport(self) -> str:
            return "ipc"

        @default("ip")
        def _ip(self) -> str:
            # Absolute: the kernel runs in another folder than this process.
            return os.path.join(folder, uuid.uuid4().hex[:8])

    # nbclient reads this name at the start of each notebook.
    jupyter_client.AsyncKernelManager = SocketKernelManager


def use_own_settings() -> None:
    """Keep the reader's matplotlib and IPython settings out, and warm the fonts.

    Matplotlib writes to stderr when it builds its font list slowly, and any stderr
    in a chapter fails the build; so the list is made before the first kernel starts.
    """
    own = ROOT / "_build" / ".settings"
    for name, folder in (
        ("MPLCONFIGDIR", "matplotlib"),
        ("IPYTHONDIR", "ipython"),
    ):
        path = own / folder
        path.mkdir(parents=True, exist_ok=True)
        os.environ[name] = str(path)
    # A notebook that starts a build is not the notebook that the kernels run.
    os.environ.pop("JPY_SESSION_NAME", None)
    if not list((own / "matplotlib").glob("fontlist-*.json")):
        subprocess.run(
            [sys.executable, "-c", "import matplotlib.font_manager"],
            stderr=subprocess.DEVNULL,
            check=False,
        )


WHOLE = {
    "iopub_timeout": 60,
    "raise_on_iopub_timeout": True,
    "coalesce_streams": True,
}


def lose_no_output() -> None:
    """Take what a cell prints whole, and fail when it does not come.

    nbclient waits four seconds after a cell has ended, then goes on without its
    outputs and says so in a log, which nobody reads: the page would lack them.
    Text comes in pieces, cut by the clock; myst-nb would end each with a new line.
    """
    from nbclient import NotebookClient

    init = NotebookClient.__init__

    def patient(self, *args, **options) -> None:
        init(self, *args, **{**WHOLE, **options})

    NotebookClient.__init__ = patient


def prepare() -> None:
    use_unix_sockets()
    lose_no_output()
    use_own_settings()
