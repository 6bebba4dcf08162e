"""The choice of the kernel: pages are read by the native module where it is installed, else by its twin in Python.

Both give the same results (tests/web/test_kernel.py). LYCOSA_KERNEL=python leaves the native one out, =native demands
it. Whoever has a native function in place of a Python one asks `native` and nobody else; native/lycosa_native.pyi says
what the functions take and give.
"""

import os
from functools import cache
from types import ModuleType

from lycosa.errors import MissingExtra, SettingsError

VARIABLE = "LYCOSA_KERNEL"
# Counts up, here and in native/src/lib.rs, with every change of what a native function takes or gives.
CONTRACT = 24


@cache
def native() -> ModuleType | None:
    """The native module; None where it is not installed or not wanted."""
    wanted = os.environ.get(VARIABLE, "")
    if wanted not in ("", "native", "python"):
        raise SettingsError(f"{VARIABLE} is {wanted!r}; it can be native or python, or not set")
    if wanted == "python":
        return None
    try:
        import lycosa_native
    except ImportError as error:
        if wanted:
            raise MissingExtra.of("native", what=f"{VARIABLE}=native") from error
        return None
    if (contract := getattr(lycosa_native, "CONTRACT", 0)) != CONTRACT:
        found = f"the installed page kernel has interface {contract}"
        raise SettingsError(f"{found}, this version needs {CONTRACT}: run make to build it, or set {VARIABLE}=python")
    return lycosa_native


def kernel_name() -> str:
    """What reads the pages, in a word or two."""
    module = native()
    return "python" if module is None else f"native {module.__version__}"
