"""Tests that take a minute and say what quicker ones say of less: `LYCOSA_LONG=1 make test` runs them, too."""

import os

import pytest

long = pytest.mark.skipif("LYCOSA_LONG" not in os.environ, reason="takes long: LYCOSA_LONG=1 runs it")
