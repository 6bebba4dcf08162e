"""What tests with a browser need."""

import pytest

from lycosa.errors import LycosaError
from proof.ground.browser import chromium


def require_chromium() -> None:
    """Skips the test where there is no browser."""
    try:
        chromium()
    except LycosaError as error:
        pytest.skip(str(error))
