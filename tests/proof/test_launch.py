"""What a command took is its own: not the memory of whoever started it."""

import subprocess
import sys
from pathlib import Path

import pytest

from proof.ground import launch


def launched(file: Path, code: str, seconds: int = 60) -> int:
    command = [sys.executable, "-I", "-S", launch.__file__, file, str(seconds), sys.executable, "-I", "-S", "-c", code]
    return subprocess.run(command, check=False).returncode


def test_usage_of_a_small_command_is_not_that_of_the_large_process_that_starts_it(tmp_path: Path) -> None:
    large = b"x" * 200_000_000
    assert launched(tmp_path / "usage", "sum(range(1_000_000)); raise SystemExit(7)") == 7
    cpu_s, peak_mb = map(float, (tmp_path / "usage").read_text().split())
    assert peak_mb < len(large) / 1e6 / 4
    assert cpu_s > 0


@pytest.mark.slow
def test_command_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    assert launched(tmp_path / "usage", "import time; time.sleep(60)", seconds=1) == 255
    assert (tmp_path / "usage").is_file()
