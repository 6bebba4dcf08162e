"""What the kernel says of the memory that this process has of a file."""

from pathlib import Path

import pytest

SMAPS = Path("/proc/self/smaps")
needs_smaps = pytest.mark.skipif(not SMAPS.exists(), reason="the system does not say what is resident")


def resident_bytes(path: Path) -> int:
    """The resident bytes of all maps of a file."""
    found, is_wanted = 0, False
    for line in SMAPS.read_text().splitlines():
        first, *rest = line.split()
        if not first.endswith(":"):
            is_wanted = rest[-1] == str(path)
        elif is_wanted and first == "Rss:":
            found += 1024 * int(rest[0])
    return found
