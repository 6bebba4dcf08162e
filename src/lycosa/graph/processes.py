"""Starts helper processes: a function `main` of a module of Lycosa, run with the same Python and the same sources."""

import os
import subprocess
import sys
from pathlib import Path

_SOURCE = str(Path(__file__).parents[2])


def start_helper(module: str, *words: str | Path, has_pipes: bool = True) -> "subprocess.Popen[bytes]":
    """Runs `main()` of a module with `words` as its arguments; with `has_pipes` its standard input and output are
    pipes. It gets no Ctrl-C from the terminal, and should end by itself when its input does."""
    known = os.environ.get("PYTHONPATH")
    stream = subprocess.PIPE if has_pipes else subprocess.DEVNULL
    return subprocess.Popen(
        [sys.executable, "-c", f"from {module} import main; main()", *map(str, words)],
        env={**os.environ, "PYTHONPATH": f"{_SOURCE}{os.pathsep}{known}" if known else _SOURCE},
        stdin=stream,
        stdout=stream,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
