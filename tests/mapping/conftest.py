"""What the mapping tests share: the conformance data and a DNS server of our own."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def conformance() -> Callable[[str], Path]:
    """The path of a conformance file; the test is skipped where the data is not at hand."""
    places = [REPOSITORY.parent / "shared" / "conformance"]
    if "LYCOSA_CONFORMANCE" in os.environ:
        places.append(Path(os.environ["LYCOSA_CONFORMANCE"]))

    def find(name: str) -> Path:
        for place in places:
            if (place / name).exists():
                return place / name
        pytest.skip(f"conformance data {name} not found; set LYCOSA_CONFORMANCE")

    return find
