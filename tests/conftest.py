"""What more than one test folder needs: the folder of conformance data, which is not part of the repository.

Examples have no deadline, and may take long to be drawn: how long says more about what else the machine does than about
the code.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from lycosa.web import kernel

settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")

BESIDE = Path(__file__).parents[2] / "shared" / "conformance"


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes that are no short text do not name a test: gzip has the time in it, so that two workers would call the same
    test by two names."""
    return argname if isinstance(val, bytes) and not (len(val) < 40 and val.isascii()) else None


@pytest.fixture(scope="session")
def conformance() -> Path:
    """The conformance data beside the repository, or where LYCOSA_CONFORMANCE says."""
    folder = BESIDE if BESIDE.is_dir() else Path(os.environ.get("LYCOSA_CONFORMANCE", "missing"))
    if not folder.is_dir():
        pytest.skip("no conformance data: set LYCOSA_CONFORMANCE to its folder")
    return folder


@pytest.fixture(scope="module", params=["python", "native"])
def each_kernel(request: pytest.FixtureRequest) -> Iterator[str]:
    """Runs the tests of a module twice: with the twin in Python and with the native kernel, where it is installed."""
    if request.param == "native":
        pytest.importorskip("lycosa_native")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(kernel.VARIABLE, request.param)
        kernel.native.cache_clear()
        yield request.param
    kernel.native.cache_clear()
