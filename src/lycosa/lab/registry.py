"""Finds experiments: those that come with Lycosa, and those of other packages through their entry points.

One door for both: a name and a "module:attribute" that holds an `Experiment` of that name. Nothing is imported
before it is asked for. Called by the command line.
"""

from collections.abc import Iterator
from importlib.metadata import EntryPoint, entry_points

from lycosa.errors import LycosaError, SettingsError
from lycosa.lab.experiment import Experiment
from lycosa.lab.experiments import BUILT_IN

GROUP = "lycosa.experiments"


def find(name: str) -> Experiment:
    """The experiment of that name; `SettingsError` if there is none, or two."""
    doors = _doors()
    matching = [door for door in doors if door.name == name]
    if not matching:
        known = ", ".join(dict.fromkeys(door.name for door in doors)) or "none is installed"
        raise SettingsError(f"no experiment is called {name!r}; known: {known}")
    if len(matching) > 1:
        places = " and ".join(door.value for door in matching)
        raise SettingsError(f"experiment {name!r} is registered more than once, by {places}: remove one of them")
    return _load(matching[0])


def catalogue() -> Iterator[tuple[str, Experiment | LycosaError]]:
    """Every name with its experiment, or with the reason why it cannot be loaded: one bad package hides no other."""
    for door in _doors():
        try:
            yield door.name, _load(door)
        except LycosaError as error:
            yield door.name, error


def _doors() -> list[EntryPoint]:
    built_in = [EntryPoint(name=name, value=place, group=GROUP) for name, place in BUILT_IN.items()]
    return built_in + sorted(entry_points(group=GROUP), key=lambda door: (door.name, door.value))


def _load(door: EntryPoint) -> Experiment:
    where = f"experiment {door.name!r} ({door.value})"
    try:
        found = door.load()
    except LycosaError:
        raise
    except Exception as error:  # another package's module runs here: whatever it raises is its own affair
        raise SettingsError(f"{where} cannot be loaded: {type(error).__name__}: {error}") from error
    if not isinstance(found, Experiment):
        raise SettingsError(f"{where} is a {type(found).__name__}, not an Experiment")
    if found.name != door.name:
        raise SettingsError(f"{where} calls itself {found.name!r}: register it under that name")
    return found
