"""A full disk: one sentence, nothing acknowledged lost, and the crawl goes on when there is room again."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("filling_disk.py")
SOURCE = Path(__file__).parents[2] / "src"
MOUNTS = ["unshare", "--mount", "--map-root-user"]


def filled(how: str, what: str, folder: Path, *, inside: list[str]) -> list[str]:
    run = subprocess.run(
        [*inside, sys.executable, str(SCRIPT), how, what, str(folder)],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("what", ["archive", "state"])
def test_file_size_limit_reached_is_told_and_survived(tmp_path: Path, what: str) -> None:
    said, found = filled("limit", what, tmp_path, inside=[])

    assert said.startswith("writing the ")
    assert "largest file size allowed" in said
    assert found == "readable whole"


def can_mount(folder: Path) -> bool:
    try:
        mount = [*MOUNTS, "mount", "-t", "tmpfs", "tmpfs", str(folder)]
        return not subprocess.run(mount, capture_output=True, check=False).returncode
    except FileNotFoundError:
        return False


@pytest.mark.slow
@pytest.mark.parametrize("what", ["archive", "state"])
def test_disk_full_is_told_and_survived(tmp_path: Path, what: str) -> None:
    if not can_mount(tmp_path):
        pytest.skip("mounting a small disk is not permitted here")

    said, found = filled("mount", what, tmp_path, inside=MOUNTS)

    assert said.startswith("writing the ")
    assert "no space left on the disk of" in said
    assert found == "readable whole"
