"""The choice of the kernel, and that the native one and its twin in Python make the same page of everything."""

import os
import subprocess
import sys

import pytest

from lycosa.errors import SettingsError
from lycosa.web import kernel


def chosen(value: str) -> str:
    """What a process says that is started with this value of the variable."""
    call = "from lycosa.web import kernel_name; print(kernel_name())"
    environment = {**os.environ, kernel.VARIABLE: value}
    ran = subprocess.run([sys.executable, "-c", call], env=environment, capture_output=True, text=True, check=False)
    return ran.stdout.strip() or ran.stderr.strip().splitlines()[-1]


def test_variable_chooses_the_kernel() -> None:
    pytest.importorskip("lycosa_native")

    assert chosen("python") == "python"
    assert chosen("native").startswith("native ")
    assert chosen("").startswith("native ")
    assert "it can be native or python" in chosen("rust")


def test_kernel_with_another_interface_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    module = pytest.importorskip("lycosa_native")
    monkeypatch.setattr(module, "CONTRACT", kernel.CONTRACT + 1)
    monkeypatch.delenv(kernel.VARIABLE, raising=False)
    kernel.native.cache_clear()
    try:
        with pytest.raises(SettingsError, match="run make"):
            kernel.native()
    finally:
        kernel.native.cache_clear()
