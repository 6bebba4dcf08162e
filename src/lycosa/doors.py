"""Doors of rooms whose modules are imported when a name is first used, not when the door is."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def open_lazily(room: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a room: `names` has a module of it and the names that are imported from there."""
    modules = {name: module for module, together in names.items() for name in together.split()}

    def find(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        return getattr(import_module(f"{room}.{modules[name]}"), name)

    return find
