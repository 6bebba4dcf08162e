"""`make chaos` is two campaigns: both run, and it ends as the worse one does."""

import os
import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
# In place of Python: notes what it is told, and ends as the test wants it.
PYTHON = """#!/bin/sh
echo "$3 $4" >> "$NOTED"
case "$4" in chaos) exit "$CHAOS" ;; *) exit "$MACHINE" ;; esac
"""


@pytest.mark.parametrize(
    ("chaos", "machine", "ends", "both"),
    [(0, 0, 0, True), (3, 0, 3, True), (0, 3, 3, True), (3, 4, 4, True), (130, 0, 130, False), (2, 0, 2, False)],
)
def test_chaos_runs_the_faults_of_the_machine_too_and_ends_as_the_worse_one(
    tmp_path: Path, chaos: int, machine: int, ends: int, both: bool
) -> None:
    python, noted = tmp_path / "python", tmp_path / "noted"
    python.write_text(PYTHON)
    python.chmod(0o755)
    made = [word for name in ("READY", "NATIVE") for word in (f"{name}={tmp_path / name}", "-o", str(tmp_path / name))]
    for name in ("READY", "NATIVE"):
        (tmp_path / name).touch()
    environment = {"PATH": os.environ["PATH"], "NOTED": str(noted), "CHAOS": str(chaos), "MACHINE": str(machine)}

    ended = subprocess.run(
        ["make", "--silent", "chaos", f"BIN={tmp_path}", *made],
        cwd=PROJECT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert noted.read_text().splitlines() == ["bench chaos", *["bench machine"] * both]
    assert ended.returncode == (2 if ends else 0)  # make's own way to say that a command failed
    assert (f"Error {ends}" in ended.stderr) == bool(ends)
