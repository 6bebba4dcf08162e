"""The rooms import one way only: a room may use what stands below it, never what stands above."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "lycosa"

# room -> the rooms it may import (itself is always allowed); the picture in docs/architecture.md
MAY_IMPORT: dict[str, set[str]] = {
    "__init__": {"engine"},
    "errors": set(),
    "records": set(),
    "web": {"records"},
    "mapping": {"errors", "records"},
    "fetch": {"errors", "records", "mapping"},
    "frontier": {"records", "web"},
    "store": {"errors", "records"},
    "change": {"records", "web"},
    "testing": {"records", "web", "mapping", "fetch", "frontier"},
    "simweb": {"errors", "records"},
    "augment": {"web"},
    "settings": {"errors"},
    "graph": {"errors", "records", "store"},
    "search": {"errors", "records", "store", "graph", "web"},
    "engine": {
        "__init__",
        "errors",
        "records",
        "settings",
        "web",
        "mapping",
        "fetch",
        "store",
        "frontier",
        "graph",
        "search",
        "change",
    },
    "cluster": {"__init__", "errors", "records", "settings", "web", "frontier", "store", "mapping", "fetch", "engine"},
    "cli": {
        "__init__",
        "errors",
        "records",
        "settings",
        "web",
        "augment",
        "engine",
        "search",
        "cluster",
        "simweb",
        "change",
    },
    "__main__": {"cli"},
}


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "lycosa":
            parts = (node.module or "").split(".")
            rooms |= {parts[1]} if len(parts) > 1 else {name_to_room(alias.name) for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level:
            raise AssertionError(f"{path}:{node.lineno} relative import: write the room's name")
        elif isinstance(node, ast.Import):
            rooms |= {a.name.split(".")[1] for a in node.names if a.name.startswith("lycosa.")}
    return rooms


def name_to_room(name: str) -> str:
    return name if (SOURCE / name).is_dir() or (SOURCE / f"{name}.py").is_file() else "__init__"


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE)))
def test_module_imports_only_rooms_below_it(path: Path) -> None:
    room = room_of(path)
    assert room in MAY_IMPORT, f"new room {room}: say in MAY_IMPORT and docs/architecture.md what it may use"
    forbidden = imported_rooms(path) - MAY_IMPORT[room] - {room}
    assert not forbidden, f"{path.name} in {room} imports {sorted(forbidden)}"


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE)))
def test_module_opens_with_its_contract(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text())), f"{path} has no docstring"
