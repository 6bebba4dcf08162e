"""Experiments made for the tests stand beside the real ones."""

from pathlib import Path

import pytest

import proof.lab

SAMPLES = Path(__file__).parent / "samples"


@pytest.fixture
def samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """`proof.lab` has the modules of `samples/`, too."""
    monkeypatch.setattr(proof.lab, "__path__", [*proof.lab.__path__, str(SAMPLES)])
