"""Where settings come from and go to: TOML files, the environment, and the reference page docs/settings.md.

A source keeps how its user spells each setting, so that a message about a value names the option, the variable or the
file it came from. `merge` makes one `CrawlSettings` of several sources; later ones win. Law: what `to_toml` writes,
`read_file` and `merge` read back equal. Called by whoever opens a collection, and by the command line.
"""

import os
import re
import textwrap
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from lycosa.errors import SettingsError
from lycosa.files import replace_file
from lycosa.records import FieldRule
from lycosa.settings.fields import field_table, read_field
from lycosa.settings.schema import DEFAULTS, RETIRED, SETTINGS, CrawlSettings, nearest, read_values
from lycosa.settings.values import NONE, InvalidValue, SettingTable, has_userinfo

PREFIX = "LYCOSA_"
SETTINGS_FILE = "lycosa.toml"  # in the folder of a collection
# Variables that hold a secret: no settings, which are written to lycosa.toml.
SECRETS = frozenset({f"{PREFIX}WEBHOOK_SECRET"})
# A variable this near to a setting's name is taken for a slip; others may belong to someone else.
SLIP = 0.8

# Settings that name a file or a folder.
PATHS = ("ca_file", "credentials", "store", "atom", "apprise")

_PLACE = re.compile(r"\s*\(at (?:line (\d+), column \d+|end of document)\)$")


class SettingsSource(NamedTuple):
    """Settings from one place, by their names in the schema; `spelled` gives the name the user knows one by."""

    values: Mapping[str, object]
    spelled: Callable[[str], str] = str


def read_file(path: Path) -> SettingsSource:
    """The settings in a TOML file, without those that only earlier versions had. A relative path in it starts
    at the file's folder."""
    values = {name: value for name, value in read_toml(path, "settings").items() if name not in RETIRED}
    if proxy := values.pop("proxy", None):  # its name in earlier versions, when there was one at most
        values.setdefault("proxies", [proxy])
    return SettingsSource(_with_absolute_paths(values, path.parent), lambda name: f"{_plain(name)} in {path}")


def read_toml(path: Path, what: str) -> dict[str, object]:
    """The values of a TOML file, which is to hold `what`."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise SettingsError(f"cannot read the {what} {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path} is not UTF-8 text, it cannot be read as {what}") from error
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise SettingsError(_broken(path, text, error)) from error


def read_fields_file(path: Path) -> SettingTable:
    """The fields of a TOML file: selectors by name, at its top or in a table `fields`, and tables for hosts."""
    values = read_toml(path, "fields")
    try:
        return field_table(values.get("fields", values))
    except InvalidValue as invalid:
        said = "is wrong" if invalid.item is None else f"holds {invalid.item!r}"
        raise SettingsError(f"{path} {said}: {invalid.phrase}") from invalid


def has_settings(folder: Path) -> bool:
    """Whether the collection in a folder has its settings yet: they are written after it is made."""
    return os.path.lexists(folder / SETTINGS_FILE)


def settings_of_folder(folder: Path) -> SettingsSource | None:
    """The settings of the collection in a folder; None where there is none yet."""
    if not has_settings(folder):
        return None
    saved = read_file(folder / SETTINGS_FILE)
    contact = saved.values.get("contact")
    if isinstance(contact, str) and has_userinfo(contact):  # earlier versions took it, and sent it to every host
        return saved._replace(values={name: value for name, value in saved.values.items() if name != "contact"})
    return saved


def save_settings(folder: Path, settings: CrawlSettings) -> None:
    """Replaces the settings of the shards in a folder, as a whole."""
    replace_file(folder / SETTINGS_FILE, to_toml(settings).encode())


def from_environment(environ: Mapping[str, str]) -> SettingsSource:
    """The settings in variables such as LYCOSA_DELAY_S; lists are separated by spaces, fields by `;`, empty variables
    not set."""
    known = {PREFIX + name.upper(): name for name in SETTINGS}
    environ = {name: value for name, value in environ.items() if name not in SECRETS}
    values = {}
    for variable, value in environ.items():
        if variable in known and value:
            values[known[variable]] = value
        elif variable.startswith(PREFIX) and variable not in known:
            _refuse_slip(variable)
    return SettingsSource(_with_absolute_paths(values, Path.cwd()), lambda name: PREFIX + name.upper())


def field_rules(fields: object, spelled: str = "fields") -> list[FieldRule]:
    """The rules of a table of selectors, or of a list of NAME=SELECTOR; raises SettingsError."""
    settings = merge(SettingsSource({"fields": fields}, lambda _: spelled))
    return [read_field(entry) for entry in settings.fields]


def merge(*sources: SettingsSource) -> CrawlSettings:
    """Defaults overridden by each source in turn."""
    values: dict[str, object] = {}
    spelled: dict[str, Callable[[str], str]] = {}
    for source in sources:
        values |= source.values
        spelled |= dict.fromkeys(source.values, source.spelled)
    return CrawlSettings(**read_values(values, lambda name: spelled[name](name)))


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
    paths = {name: values.get(name) for name in PATHS}
    given = {name: path for name, path in paths.items() if isinstance(path, str) and path and "://" not in path}
    return {**values, **{name: str((folder / path).absolute()) for name, path in given.items()}}


def _plain(name: str) -> str:
    return name if name.isidentifier() else repr(name)


HEADER = """\
# The settings of this crawl. `lycosa crawl` on this folder continues with them; an option on the command line changes
# one for good, and so does an edit here. Times are in seconds, or "500ms", "10m", "2h"; sizes are in bytes, or "500MB",
# "2GiB"; "none" is no limit.
"""
# From here on digits are set apart by threes.
LONG_NUMBER = 10_000
# A setting's meaning stands behind it from this column on, or above it where the line would get too long.
COMMENT_COLUMN = 36
LINE_CHARS = 120


def to_toml(settings: CrawlSettings) -> str:
    """All settings in force, each with its meaning."""
    parts, group = [HEADER], ""
    for name, setting in SETTINGS.items():
        if setting.group != group:
            group = setting.group
            parts.append(f"\n# -- {group} --\n")
        parts.append(_toml_line(f"{name} = {_toml_value(getattr(settings, name))}", setting.meaning))
    return "".join(parts)


def _toml_line(setting: str, meaning: str) -> str:
    line = f"{setting:<{COMMENT_COLUMN}}  # {meaning}"
    if len(line) <= LINE_CHARS:
        return f"{line}\n"
    comment = textwrap.wrap(f"# {meaning}", LINE_CHARS, subsequent_indent="# ", break_on_hyphens=False)
    return "\n".join([*comment, setting, ""])


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
        case SettingTable():
            return _toml_table(dict(item.split("=", 1) for item in value))
        case (SettingTable(), *_):
            return _toml_list([_toml_value(item) for item in value])
        case tuple():
            return _toml_list([_toml_text(item) for item in value])
        case _:
            return _toml_text(str(value))


def _toml_list(items: list[str]) -> str:
    line = f"[{', '.join(items)}]"
    return line if len(line) <= LINE_CHARS else "[\n" + "".join(f"    {item},\n" for item in items) + "]"


def _toml_table(items: Mapping[str, str]) -> str:
    """An inline table, which TOML wants on one line."""
    bare = re.compile(r"[A-Za-z0-9_-]+")
    return (
        "{"
        + ", ".join(f"{k if bare.fullmatch(k) else _toml_text(k)} = {_toml_text(v)}" for k, v in items.items())
        + "}"
    )


def _toml_text(value: str) -> str:
    """A basic string. The settings hold printable text only, so nothing but these two needs an escape."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


REFERENCE = """\
# Settings

Every setting can stand in a TOML file (`lycosa crawl --config FILE`) and in an environment variable: `delay_s` is
`LYCOSA_DELAY_S`, with spaces between the items of a list (lines for header fields, users, certificates, cookie files
and proxies) and `;` between fields. Most have an option, too. What the
collection keeps in its `lycosa.toml` goes before the defaults, `--config` before that, then the environment, then
options; what is in force is written to `lycosa.toml`. In Python a setting is a keyword argument of `lycosa.Crawl`.

Times are in seconds, or `500ms`, `10m`, `2h`; sizes in bytes, or `500MB`, `2GiB`; `none` is no limit. The option
of a list may be repeated, that of a switch has a form with `--no-` that turns it off.

This page is made from the schema by `lycosa settings --markdown`.
"""


def reference() -> str:
    """All settings as the page docs/settings.md."""
    parts, group = [REFERENCE], ""
    for name, setting in SETTINGS.items():
        if setting.group != group:
            group = setting.group
            parts.append(f"\n## {group}\n\n| setting | option | default | meaning |\n|---|---|---|---|\n")
        words = (setting.option or "", setting.metavar or "|".join(setting.choices))
        option = f"`{' '.join(filter(None, words))}`" if setting.option else ""
        cells = (f"`{name}`", option, f"`{_toml_value(DEFAULTS[name])}`", setting.meaning.replace("*", r"\*"))
        parts.append("| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |\n")
    return "".join(parts)
