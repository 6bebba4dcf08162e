"""A crawl gives memory back: large blocks do not stay on the heap between small ones."""

import os
import subprocess
import sys

from tests.cli.command import REPOSITORY

# Large blocks between small ones that stay, after a larger one that taught glibc to keep them on its heap.
SCRIPT = """
import sys
from lycosa.processes import return_large_blocks

def resident_mb():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS:"))

if sys.argv[1] == "steady":
    return_large_blocks()
teacher = bytearray(b"x") * (16 << 20)
del teacher
before = resident_mb()
large, small = [], []
for _ in range(64):
    large.append(bytearray(b"x") * (1 << 20))
    small.append(bytearray(32_000))
large.clear()
print(resident_mb() - before)
"""


def kept_mb(how: str) -> float:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src")}
    command = [sys.executable, "-c", SCRIPT, how]
    return float(subprocess.run(command, check=True, env=environment, timeout=120, capture_output=True).stdout)


def test_large_blocks_between_small_ones_go_back_to_the_kernel() -> None:
    assert kept_mb("as it is") > 32  # else this says nothing
    assert kept_mb("steady") < 8
