"""The rooms of the tree: who may import whom, only through doors, without cycles; lazy and typing imports count."""

import ast
import importlib
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "lycosa"
BASE = {"doors", "errors", "files", "notebook", "processes", "records", "version", "wording"}
FILES = sorted(SOURCE.rglob("*.py"))

# room -> the rooms it may import, from the ground up; the picture in docs/architecture.md
MAY_IMPORT: dict[str, set[str]] = {
    "version": set(),
    "wording": set(),
    "doors": set(),
    "errors": set(),
    "files": set(),
    "notebook": set(),
    "processes": set(),
    "records": set(),
    "settings": BASE,
    "web": BASE,
    "mapping": BASE,
    "fetch": BASE | {"mapping"},
    "store": BASE | {"web"},
    "frontier": BASE | {"web"},
    "learning": BASE | {"web", "store", "frontier"},
    "graph": BASE | {"web", "store"},
    "duplicates": BASE | {"web", "store"},
    "simweb": BASE,
    "testing": BASE | {"web", "mapping", "fetch", "frontier"},
}
MAY_IMPORT["crawl"] = BASE | {
    "settings",
    "web",
    "mapping",
    "fetch",
    "store",
    "frontier",
    "learning",
    "graph",
    "duplicates",
}
MAY_IMPORT["render"] = MAY_IMPORT["crawl"] | {"crawl"}
MAY_IMPORT["tables"] = MAY_IMPORT["crawl"] | {"crawl"}
MAY_IMPORT["sessions"] = MAY_IMPORT["crawl"] | {"crawl"}
MAY_IMPORT["identity"] = MAY_IMPORT["crawl"] | {"crawl"}
MAY_IMPORT["recrawl"] = MAY_IMPORT["tables"] | {"tables"}
MAY_IMPORT["notify"] = MAY_IMPORT["recrawl"] | {"recrawl"}
MAY_IMPORT["search"] = MAY_IMPORT["recrawl"] | {"recrawl"}
MAY_IMPORT["inspect"] = MAY_IMPORT["search"] | {"search"}
MAY_IMPORT["export"] = MAY_IMPORT["inspect"] | {"inspect"}
MAY_IMPORT["importing"] = MAY_IMPORT["inspect"] | {"inspect"}
MAY_IMPORT["report"] = MAY_IMPORT["inspect"] | {"inspect"}
MAY_IMPORT["replay"] = MAY_IMPORT["inspect"] | {"inspect"}
MAY_IMPORT["removal"] = MAY_IMPORT["search"] | {"notify", "search"}
MAY_IMPORT["api"] = MAY_IMPORT["export"] | {"export", "identity", "notify", "removal", "render", "report", "sessions"}
MAY_IMPORT["__init__"] = {"api", "version"}
MAY_IMPORT["cluster"] = MAY_IMPORT["api"] | {"api"}
MAY_IMPORT["cli"] = MAY_IMPORT["cluster"] | {"cluster", "importing", "replay", "serve", "simweb"}
MAY_IMPORT["serve"] = MAY_IMPORT["cluster"] | {"cluster", "replay"}
MAY_IMPORT["__main__"] = {"cli"}


class Import(NamedTuple):
    line: int
    module: str  # "frontier.hosts", without the package
    names: tuple[str, ...]
    is_lazy: bool  # in a function


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def module_of(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


@cache
def imports_of(path: Path) -> tuple[Import, ...]:
    """Every import of the package's own modules, wherever it stands in the file."""
    return tuple(_imports(ast.parse(path.read_text()), is_lazy=False))


def _imports(tree: ast.AST, *, is_lazy: bool) -> Iterator[Import]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, f"line {node.lineno}: relative import, write the room's name"
            package, _, module = (node.module or "").partition(".")
            if package == "lycosa":
                yield Import(node.lineno, module, tuple(alias.name for alias in node.names), is_lazy)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                package, _, module = alias.name.partition(".")
                if package == "lycosa":
                    yield Import(node.lineno, module, (), is_lazy)
        else:
            yield from _imports(node, is_lazy=is_lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def rooms_in(item: Import) -> set[str]:
    if item.module:
        return {item.module.split(".")[0]}
    return {name if is_module("", name) else "__init__" for name in item.names}


each_file = pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))


@each_file
def test_module_imports_only_rooms_below_it(path: Path) -> None:
    room = room_of(path)
    assert room in MAY_IMPORT, f"new room {room}: say in MAY_IMPORT and docs/architecture.md what it may use"
    for item in imports_of(path):
        forbidden = rooms_in(item) - MAY_IMPORT[room] - {room}
        assert not forbidden, f"line {item.line}: {room} imports {sorted(forbidden)}"


@each_file
def test_module_uses_other_rooms_through_their_doors(path: Path) -> None:
    for item in imports_of(path):
        room, _, inner = item.module.partition(".")
        if room != room_of(path):
            assert not inner, f"line {item.line}: lycosa.{item.module} is behind the door of {room}"
            modules = [name for name in item.names if is_module(room, name)] if room else []
            assert not modules, f"line {item.line}: {modules} are modules behind the door of {room}"


def is_module(room: str, name: str) -> bool:
    return (SOURCE / room / f"{name}.py").is_file() or (SOURCE / room / name).is_dir()


@each_file
def test_lazy_import_says_what_it_saves(path: Path) -> None:
    lines = path.read_text().splitlines()
    for item in imports_of(path):
        if item.is_lazy:
            near = lines[item.line - 2] + lines[item.line - 1]
            assert "lazy:" in near, f"line {item.line}: say in a comment `# lazy: …` what it saves"


@each_file
def test_module_opens_with_its_contract(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text())), f"{path} has no docstring"


def test_rooms_have_no_cycle() -> None:
    assert list(TopologicalSorter(MAY_IMPORT).static_order())


def test_modules_of_a_room_have_no_cycle() -> None:
    """Doors are left out: a module does not import the door of its own room (see the next test)."""
    graph: dict[str, set[str]] = {}
    known = {module_of(path) for path in FILES}
    for path in FILES:
        if path.name != "__init__.py":
            graph[module_of(path)] = {item.module for item in imports_of(path)} & known
    TopologicalSorter(graph).prepare()


@each_file
def test_module_does_not_import_its_own_door(path: Path) -> None:
    for item in imports_of(path):
        if item.module == room_of(path) and path.name != "__init__.py":
            names = [name for name in item.names if not is_module(item.module, name)]
            assert not names, f"line {item.line}: {names} come through the room's own door"


def test_class_names_are_used_once() -> None:
    where = defaultdict(list)
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                where[node.name].append(str(path.relative_to(SOURCE)))
    assert not {name: files for name, files in where.items() if len(files) > 1}


@pytest.mark.parametrize("room", sorted(path.parent.name for path in FILES if path.match("lycosa/*/__init__.py")))
def test_door_gives_every_name_that_it_promises(room: str) -> None:
    door = importlib.import_module(f"lycosa.{room}")
    for name in getattr(door, "__all__", ()):
        assert getattr(door, name) is not None or name in vars(door)
