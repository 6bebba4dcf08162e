"""What more than one test folder needs: the folder of conformance data, which is not part of the repository.

Examples have no deadline: how long one takes says more about what else the machine does than about the code.
"""

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")

BESIDE = Path(__file__).parents[2] / "shared" / "conformance"


@pytest.fixture(scope="session")
def conformance() -> Path:
    """The conformance data beside the repository, or where LYCOSA_CONFORMANCE says."""
    folder = BESIDE if BESIDE.is_dir() else Path(os.environ.get("LYCOSA_CONFORMANCE", "missing"))
    if not folder.is_dir():
        pytest.skip("no conformance data: set LYCOSA_CONFORMANCE to its folder")
    return folder
