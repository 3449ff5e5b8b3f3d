"""For `pytest --nbmake`: notebooks run as they do in the build of the book."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "book" / "_ext"))

import kernels


def pytest_configure(config) -> None:
    if config.getoption("nbmake", default=False):
        kernels.prepare()
