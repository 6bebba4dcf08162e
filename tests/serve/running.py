"""The command `lycosa serve`, running, for tests with a browser."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from lycosa.errors import LycosaError
from proof.ground.browser import chromium
from tests.cli.command import started


def require_chromium() -> None:
    """Skips the test where there is no browser."""
    try:
        chromium()
    except LycosaError as error:
        pytest.skip(str(error))


@contextlib.contextmanager
def served(path: Path) -> Iterator[str]:
    """The link to open."""
    process = started("serve", path, "--port", "0")
    assert process.stdout is not None
    try:
        yield next(word for word in process.stdout.readline().split() if word.startswith("http"))
    finally:
        process.terminate()
        process.communicate(timeout=30)
