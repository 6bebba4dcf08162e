"""Helpers in processes of their own: a module of Lycosa's, started with the same Python and the same sources."""

import os
import subprocess
import sys
from pathlib import Path

IN_USE = 3  # exit code of a follower: another process writes the index
_SOURCE = str(Path(__file__).parents[2])


def start_helper(module: str, *words: str | Path, talks: bool = True) -> "subprocess.Popen[bytes]":
    """Runs `python -m module words`; with `talks` it is spoken to through its standard input and output. It gets no
    Ctrl-C from the terminal, and ends by itself when its input does."""
    known = os.environ.get("PYTHONPATH")
    return subprocess.Popen(
        [sys.executable, "-m", module, *map(str, words)],
        env={**os.environ, "PYTHONPATH": f"{_SOURCE}{os.pathsep}{known}" if known else _SOURCE},
        stdin=subprocess.PIPE if talks else subprocess.DEVNULL,
        stdout=subprocess.PIPE if talks else subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
