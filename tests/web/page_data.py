"""Where the conformance data lies: beside the repository, or where LYCOSA_CONFORMANCE says."""

import os
from pathlib import Path

import pytest


def conformance(name: str) -> Path:
    """A file or folder of the conformance data; the test that asks for it is skipped when there is none."""
    beside = Path(__file__).parents[2] / ".." / "shared" / "conformance"
    root = beside if beside.is_dir() else Path(os.environ.get("LYCOSA_CONFORMANCE", "/nonexistent"))
    if not (root / name).exists():
        pytest.skip(f"no conformance data {name}: set LYCOSA_CONFORMANCE to its folder")
    return root / name
