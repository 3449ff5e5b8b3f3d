"""Record one run: what the programs print, in which environment, and every verdict.

Writes ``shared/labcore/recorded/``, which the page of the recorded run shows, and
``book/floors.json``, below which no build may fall; then builds the book, and writes
the digests of what every cell of it prints, ``tests/data/outputs.json``.
"""

import hashlib
import json
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
from build import ROOT, date_of_source

sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "book" / "_ext"))
import strict

from tests.notebooks.outputs import digests

RECORDED = ROOT / "shared" / "labcore" / "recorded"
PROGRAMS = ("transformer_math_lab", "laplacian_attention_lab", "worked_examples")


def printed(program: str, *options: str) -> str:
    """What a program prints; it must pass."""
    command = [sys.executable, str(ROOT / "labs" / f"{program}.py"), *options]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return run.stdout


def environment() -> dict[str, object]:
    """What the numbers may depend on."""
    config = np.show_config(mode="dicts")
    blas = config["Build Dependencies"]["blas"]
    simd = config["SIMD Extensions"]
    pins = (ROOT / "requirements.txt").read_text("utf-8")
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "machine": platform.machine(),
        "system": platform.system(),
        "blas": f"{blas['name']} {blas['version']}",
        "cpu_features": [*simd["baseline"], *simd["found"]],
        "requirements": hashlib.sha256(pins.encode()).hexdigest(),
    }


def main() -> None:
    RECORDED.mkdir(exist_ok=True)
    documents = {}
    for program in PROGRAMS:
        text = printed(program)
        (RECORDED / f"{program}.json").write_text(text, encoding="utf-8")
        digest = hashlib.sha256(text.encode()).hexdigest()
        documents[program] = {"bytes": len(text.encode()), "sha256": digest}
    named = [line.split() for line in printed("worked_examples", "--test").splitlines()]
    identities = json.loads(printed("transformer_math_lab"))["checks"]
    run = {
        "commit_time": int(date_of_source()),
        "environment": environment(),
        "documents": documents,
        "identities": {name: "passed" for name in identities},
        "named_checks": [
            {"suite": suite, "name": name, "verdict": verdict}
            for verdict, suite, name in (row for row in named if len(row) == 3)
        ],
    }
    write(RECORDED / "run.json", run)
    write(ROOT / "book" / "floors.json", strict.counted(ROOT))
    subprocess.run([sys.executable, str(ROOT / "book" / "build.py")], check=True)
    executed = ROOT / "_build" / "jupyter_execute" / "book"
    write(ROOT / "tests" / "data" / "outputs.json", digests(executed))


def write(path: Path, document: object) -> None:
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
