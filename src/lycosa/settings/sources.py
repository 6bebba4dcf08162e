"""Where settings come from: TOML files and the environment, and how several sources become one `CrawlSettings`.

A source keeps how its user spells each setting, so that a message about a value names the option, the variable or
the file it came from. Later sources win. Called by the command line and by the library's face.
"""

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from lycosa.errors import SettingsError
from lycosa.settings.schema import CrawlSettings, nearest, sentence

PREFIX = "LYCOSA_"
SETTINGS_FILE = "lycosa.toml"  # in the folder of a collection
# A variable this near to a setting's name is taken for a slip; others may belong to someone else.
SLIP = 0.8

_PLACE = re.compile(r"\s*\(at (?:line (\d+), column \d+|end of document)\)$")


class Source(NamedTuple):
    """Settings from one place, by their names in the schema; `spelled` gives the name the user knows one by."""

    values: Mapping[str, object]
    spelled: Callable[[str], str] = str


def read_file(path: Path) -> Source:
    """The settings in a TOML file. A relative `ca_file` or `store` is meant from the file's folder."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise SettingsError(f"cannot read the settings {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path} is not UTF-8 text, it cannot be read as settings") from error
    try:
        values = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise SettingsError(_broken(path, text, error)) from error
    return Source(_with_absolute_paths(values, path.parent), lambda name: f"{_plain(name)} in {path}")


def kept_in(folder: Path) -> Source | None:
    """The settings of the collection in a folder; None where there is none yet."""
    file = folder / SETTINGS_FILE
    return read_file(file) if os.path.lexists(file) else None


def from_environment(environ: Mapping[str, str]) -> Source:
    """The settings in variables such as LYCOSA_DELAY_S; lists are separated by spaces, empty variables not set."""
    known = {PREFIX + name.upper(): name for name in CrawlSettings.model_fields}
    values = {}
    for variable, value in environ.items():
        if variable in known and value:
            values[known[variable]] = value
        elif variable.startswith(PREFIX) and variable not in known:
            _refuse_slip(variable)
    return Source(_with_absolute_paths(values, Path.cwd()), lambda name: PREFIX + name.upper())


def merge(*sources: Source) -> CrawlSettings:
    """Defaults overridden by each source in turn."""
    values: dict[str, object] = {}
    spelled: dict[str, Callable[[str], str]] = {}
    for source in sources:
        values |= source.values
        spelled |= dict.fromkeys(source.values, source.spelled)
    try:
        return CrawlSettings(**values)
    except SettingsError as error:
        if not isinstance(error.__cause__, ValidationError):
            raise
        words = sentence(error.__cause__, lambda name: spelled[name](name))
        raise SettingsError(words) from error.__cause__


def _broken(path: Path, text: str, error: Exception) -> str:
    if isinstance(error, RecursionError):
        return f"{path} cannot be read as TOML: it is nested too deeply"
    place = _PLACE.search(str(error))
    if place is None:
        return f"{path} cannot be read as TOML: {error}"
    line = place[1] or len(text.splitlines())
    return f"{path}, line {line}, is not TOML: {str(error)[: place.start()].lower()}"


def _refuse_slip(variable: str) -> None:
    meant = nearest(variable.removeprefix(PREFIX), cutoff=SLIP)
    if meant:
        raise SettingsError(f"there is no setting {variable}; did you mean {PREFIX}{meant.upper()}?")


def _with_absolute_paths(values: Mapping[str, object], folder: Path) -> Mapping[str, object]:
    """A collection keeps its settings, and may be used from another folder."""
    paths = {name: values.get(name) for name in ("ca_file", "store")}
    given = {name: path for name, path in paths.items() if isinstance(path, str) and path and "://" not in path}
    return {**values, **{name: str((folder / path).absolute()) for name, path in given.items()}}


def _plain(name: str) -> str:
    return name if name.isidentifier() else repr(name)
