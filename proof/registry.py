"""Finds experiments: the modules of `proof.lab` and `proof.bench` that have a record called `EXPERIMENT`.

A module's name is the experiment's, with dashes for underscores. Nothing is imported before it is asked for.
Called by the command line.
"""

import importlib
import pkgutil
from collections.abc import Iterator

from lycosa.errors import SettingsError
from proof.experiment import Experiment

KINDS = {"lab": "experiment", "bench": "benchmark"}  # folder of `proof` → what one of its modules is called

# The scenarios of a comparison of crawlers, by the benchmarks that they are.
SCENARIOS = {"deep": "peers", "big-frontier": "frontier", "resume": "start", "floor": "site"}


def names(kind: str) -> list[str]:
    """The names of all modules of a kind, in order of the alphabet."""
    folder = importlib.import_module(f"proof.{kind}").__path__
    return sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(folder))


def find(kind: str, name: str) -> Experiment:
    """The experiment of that name; `SettingsError` if there is none."""
    known = names(kind)
    if kind == "bench":
        name = SCENARIOS.get(name, name)
    if name not in known:
        raise SettingsError(f"no {KINDS[kind]} is called {name!r}; known: {', '.join(known)}")
    found = getattr(importlib.import_module(f"proof.{kind}.{name.replace('-', '_')}"), "EXPERIMENT", None)
    if not isinstance(found, Experiment):
        raise SettingsError(f"proof/{kind}/{name.replace('-', '_')}.py has no EXPERIMENT that is an Experiment")
    if found.name != name:
        raise SettingsError(f"the {KINDS[kind]} {name!r} calls itself {found.name!r}: the module's name is its name")
    return found


def catalogue(kind: str) -> Iterator[Experiment]:
    """Every experiment of a kind."""
    for name in names(kind):
        yield find(kind, name)
