"""Where settings come from and go to: TOML files, the environment, several sources merged into one `CrawlSettings`.

A source keeps how its user spells each setting, so that a message about a value names the option, the variable or the
file it came from. Later sources win. Law: what `to_toml` writes, `read_file` and `merge` read back equal. Called by the
command line and by `lycosa.api`.
"""

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from lycosa.errors import SettingsError
from lycosa.settings.schema import GROUPS, CrawlSettings, explain, nearest
from lycosa.settings.values import NONE

PREFIX = "LYCOSA_"
SETTINGS_FILE = "lycosa.toml"  # in the folder of a collection
# A variable this near to a setting's name is taken for a slip; others may belong to someone else.
SLIP = 0.8

_PLACE = re.compile(r"\s*\(at (?:line (\d+), column \d+|end of document)\)$")


class SettingsSource(NamedTuple):
    """Settings from one place, by their names in the schema; `spelled` gives the name the user knows one by."""

    values: Mapping[str, object]
    spelled: Callable[[str], str] = str


def read_file(path: Path) -> SettingsSource:
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
    return SettingsSource(_with_absolute_paths(values, path.parent), lambda name: f"{_plain(name)} in {path}")


def settings_of_folder(folder: Path) -> SettingsSource | None:
    """The settings of the collection in a folder; None where there is none yet."""
    file = folder / SETTINGS_FILE
    return read_file(file) if os.path.lexists(file) else None


def from_environment(environ: Mapping[str, str]) -> SettingsSource:
    """The settings in variables such as LYCOSA_DELAY_S; lists are separated by spaces, empty variables not set."""
    known = {PREFIX + name.upper(): name for name in CrawlSettings.model_fields}
    values = {}
    for variable, value in environ.items():
        if variable in known and value:
            values[known[variable]] = value
        elif variable.startswith(PREFIX) and variable not in known:
            _refuse_slip(variable)
    return SettingsSource(_with_absolute_paths(values, Path.cwd()), lambda name: PREFIX + name.upper())


def merge(*sources: SettingsSource) -> CrawlSettings:
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
        words = explain(error.__cause__, lambda name: spelled[name](name))
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


HEADER = """\
# The settings of this crawl. The same command again goes on with them; change one here, or for good on the command
# line. Times are in seconds, or "500ms", "10m", "2h"; sizes in bytes, or "500MB", "2GiB"; "none" is no limit.
"""
# From here on digits are set apart by threes.
LONG_NUMBER = 10_000
# A setting's meaning stands behind it from this column on, or above it where the line would get too long.
COMMENT_COLUMN = 36
LINE_CHARS = 120


def to_toml(settings: CrawlSettings) -> str:
    """All settings in force, commented."""
    parts = [HEADER]
    for group in GROUPS:
        parts.append(f"\n# -- {group.title} --\n")
        parts += (
            _toml_line(name, getattr(settings, name), field.description) for name, field in group.model_fields.items()
        )
    return "".join(parts)


def _toml_line(name: str, value: object, meaning: str | None) -> str:
    setting = f"{name} = {_toml_value(value)}"
    line = f"{setting:<{COMMENT_COLUMN}}  # {meaning}"
    return f"{line}\n" if len(line) <= LINE_CHARS else f"# {meaning}\n{setting}\n"


def _toml_value(value: object) -> str:
    match value:
        case None:
            return _toml_text(NONE)
        case bool():
            return "true" if value else "false"
        case int():
            return f"{value:_}" if value >= LONG_NUMBER else str(value)
        case float():
            return repr(value)
        case tuple():
            return _toml_list([_toml_text(item) for item in value])
        case _:
            return _toml_text(str(value))


def _toml_list(items: list[str]) -> str:
    line = f"[{', '.join(items)}]"
    return line if len(line) <= LINE_CHARS else "[\n" + "".join(f"    {item},\n" for item in items) + "]"


def _toml_text(value: str) -> str:
    """A basic string. The settings hold printable text only, so nothing but these two needs an escape."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
