"""What the commands share: how their help looks, parameters that several of them have, and the options of a crawl.

A module of commands registers them with a `CommandTable`; the help then shows options and commands in groups, with
defaults and examples, and cuts no summary off. The options of a crawl are made from the settings' schema
(`with_settings`). They hand on what the user typed as text, and the schema reads it, so that file, environment and
command line take the same spellings and give the same messages. `resolve_settings` merges these sources, and
`read_urls` reads lists of URLs (`-i FILE`).
"""

import inspect
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from lycosa.crawl import Recrawl, literal_hosts
from lycosa.errors import SettingsError, require_utf8
from lycosa.records import FieldRule
from lycosa.settings import (
    DEFAULTS,
    SETTINGS,
    CrawlSettings,
    InvalidValue,
    Setting,
    SettingsSource,
    field_rules,
    from_environment,
    merge,
    read_fields_file,
    read_file,
    seconds,
    seed,
    settings_of_folder,
    shown_value,
)

F = TypeVar("F", bound=Callable[..., Any])

MAX_UNGROUPED_OPTIONS = 12  # a command with more parameters shows them in groups
# Titles of groups of options; SOURCES is also the title of a group of settings.
COMMON, SOURCES, OUTPUT = "Common options", "Where to crawl", "Settings and output"
FIELDS = SETTINGS["fields"].group
ALLOW_PRIVATE = "--allow-private"
# Settings that may not be empty, and what to give. An empty value usually means an unset shell variable.
NEVER_EMPTY = {
    "apprise": "a file",
    "atom": "a file",
    "credentials": "a file",
    "store": "a folder or a URL",
    "topic": "words",
}
STANDARD_INPUT = "-"
SHORTEST_INTERVAL_S = 1.0  # between two visits of a URL; the host's delay holds all the same
WIDEST_CHOICE = 24  # the help shows the choices (a|b|c) in place of WORD up to this length

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
AsJsonLines = Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a collection, as given to --into.")]
InFolder = Annotated[
    Path, typer.Option("--in", metavar="DIR", help="The folder of the collection, as given to --into.")
]
UrlPrefix = Annotated[
    str,
    typer.Argument(
        metavar="URL-PREFIX",
        help="The beginning of a URL (https://example.org/docs/), or a host or domain (example.org).",
    ),
]
UrlFiles = Annotated[
    list[str] | None,
    typer.Option(
        "-i",
        metavar="FILE",
        help="Read URLs from this file, one a line; - reads standard input. Repeatable.",
        rich_help_panel=SOURCES,
    ),
]
FieldEntries = Annotated[
    list[str] | None,
    typer.Option(
        "--field",
        metavar="NAME=SELECTOR",
        help="Extract this field by a CSS selector, in place of those that the collection names. Repeatable.",
        rich_help_panel=FIELDS,
    ),
]
FieldsFile = Annotated[
    str | None,
    typer.Option(
        "--fields", metavar="FILE", help="Read fields from this TOML file: price = '.price'.", rich_help_panel=FIELDS
    ),
]


class LycosaCommand(TyperCommand):
    """A command whose help has its options in groups and ends with examples (its epilog)."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        arguments = [param for param in self.get_params(ctx) if isinstance(param, TyperArgument)]
        words = [_name(param) if param.required else f"[{_name(param)}]" for param in arguments]
        options = [param for param in self.get_params(ctx) if isinstance(param, TyperOption) and param.required]
        return [*words, *(f"{option.opts[0]} {option.metavar}" for option in options), "[OPTIONS]"]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        params = [param for param in self.get_params(ctx) if not getattr(param, "hidden", False)]
        has_groups = len(params) > MAX_UNGROUPED_OPTIONS
        groups: dict[str, list[tuple[str, str]]] = {"Arguments": [], COMMON: []}
        others: list[tuple[str, str]] = []
        for param in params:
            if isinstance(param, TyperArgument):
                groups["Arguments"].append((_name(param), param.help or ""))
            elif isinstance(param, TyperOption):
                title = param.rich_help_panel if has_groups else None
                (groups.setdefault(title, []) if title and title != OUTPUT else others).append(_record(param))
        groups[OUTPUT if has_groups else "Options"] = others
        for title, records in groups.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        if self.epilog:
            lines = inspect.cleandoc(self.epilog).splitlines()
            formatter.write("\nExamples:\n" + "".join(f"  {line}".rstrip() + "\n" for line in lines))


class LycosaGroup(TyperGroup):
    """Commands in groups, each with a summary that is never cut off."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        LycosaCommand.format_options(self, ctx, formatter)  # type: ignore[arg-type]
        groups: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command = self.commands[name]
            title = getattr(command, "rich_help_panel", None) or "Commands"
            groups.setdefault(title, []).append((name, command.short_help or command.get_short_help_str(200)))
        widest = max(len(name) for records in groups.values() for name, _ in records)
        for title, records in groups.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(widest), summary) for name, summary in records])

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        LycosaCommand.format_epilog(self, ctx, formatter)  # type: ignore[arg-type]


def _name(argument: TyperArgument) -> str:
    return (argument.metavar or (argument.name or "").upper()) + ("…" if argument.nargs == -1 else "")


def _record(option: TyperOption) -> tuple[str, str]:
    """`--pages N` and what it does; a default that says something stands behind it."""
    names = ", ".join(sorted(option.opts, key=len))
    if option.secondary_opts:
        names += f" / {option.secondary_opts[0]}"
    elif not option.is_flag:
        names += f" {option.metavar or 'VALUE'}"
    help = option.help or ""
    default = option.show_default if isinstance(option.show_default, str) else default_words(option.default)
    return names, f"{help} [default: {default}]" if default and option.show_default else help


def default_words(value: object) -> str:
    """A default as the help shows it; empty where there is nothing to say."""
    match value:
        case None | False | "" | () | []:
            return ""
        case True:
            return "yes"
        case float():
            return f"{value:g}"
        case _:
            return str(value)


class CommandTable(typer.Typer):
    """The commands of a module."""

    def __init__(self, **named: Any) -> None:
        super().__init__(cls=LycosaGroup, rich_markup_mode=None, **named)

    def command(
        self, name: str | None = None, *, cls: type[TyperCommand] | None = None, **named: Any
    ) -> Callable[[F], F]:
        return super().command(name, cls=cls or LycosaCommand, **named)


class CrawlJob(NamedTuple):
    """What the user asked for. `leftover_note` is shown about URLs that are left when the same command would not
    continue the crawl; if it is empty, the summary says how to continue. `bare_seeds` were typed without a scheme."""

    settings: CrawlSettings
    into: Path
    json: bool = False
    quiet: bool = False
    recrawl: Recrawl | None = None
    leftover_note: str = ""
    serves: bool = False  # the live page runs beside it
    bare_seeds: tuple[str, ...] = ()


class PrivateNetworksCommand(LycosaCommand):
    """A command in which `--allow-private` may stand alone or before a network."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, expand_allow_private(args))


class CrawlCommand(PrivateNetworksCommand):
    """A command with options for settings."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        for param in self.params:
            # The schema reads what was typed. Typer would import pydantic and build a reader for each of 60 options
            # before the first request is sent: 0.13 s.
            if not param.required:  # what has to be there is still asked for
                param.process_value = _as_typed  # type: ignore[assignment,method-assign]


def _as_typed(_context: object, value: Any) -> Any:
    return value


def expand_allow_private(words: list[str]) -> list[str]:
    """A bare `--allow-private` becomes `--allow-private=private`, unless the next word is a network."""
    spelled: list[str] = []
    for at, word in enumerate(words):
        if word == "--":
            return spelled + words[at:]
        is_bare = word == ALLOW_PRIVATE and not _is_network("".join(words[at + 1 : at + 2]))
        spelled.append(f"{word}=private" if is_bare else word)
    return spelled


def with_settings(command: Callable[..., None], names: Iterable[str] = SETTINGS) -> Callable[..., None]:
    """The command with an option for each of these settings that has one; it gets them as further keyword arguments.
    Register it with `cls=CrawlCommand`."""
    own = [each for each in inspect.signature(command).parameters.values() if each.kind is not each.VAR_KEYWORD]
    made = [_parameter(SETTINGS[name]) for name in names if SETTINGS[name].option]
    command.__signature__ = inspect.Signature([*own, *made])  # type: ignore[attr-defined]
    return command


def _parameter(setting: Setting) -> inspect.Parameter:
    default, option = DEFAULTS[setting.name], setting.option or ""
    annotation: Any = str | None
    metavar, help = setting.metavar, setting.help
    if isinstance(default, bool):
        annotation, option = bool | None, f"{option}/--no-{option[2:]}"
    elif isinstance(default, tuple):
        annotation, help = list[str] | None, f"{help} Repeatable."
    elif setting.choices:
        words = "|".join(setting.choices)
        metavar, help = (words, help) if len(words) <= WIDEST_CHOICE else ("WORD", setting.meaning)
    shown = default_words(default)
    panel = COMMON if setting.is_common else setting.group
    about = typer.Option(
        option,
        metavar=metavar or None,
        help=help,
        rich_help_panel=panel,
        show_default=shown or False,
        autocompletion=one_of(setting.choices),
    )
    return inspect.Parameter(
        setting.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[annotation, about]
    )


def one_of(choices: Iterable[str]) -> Callable[[str], list[str]] | None:
    """What a shell is told of the words that may stand here; None where any may."""
    words = [*choices]
    return (lambda incomplete: [word for word in words if word.startswith(incomplete)]) if words else None


def resolve_settings(
    typed: Mapping[str, object],
    *,
    into: Path,
    config: Path | None = None,
    url_files: list[str] | None = None,
    environ: Mapping[str, str] | None = None,
) -> CrawlSettings:
    """Defaults < the collection's settings < `config` < environment < what was typed; URLs add to the collection's.

    `typed` holds settings by name; those that were not typed are None or empty.
    """
    require_utf8(into)
    given = {name: value for name, value in typed.items() if value not in (None, [], ())}
    for name, what in NEVER_EMPTY.items():
        if isinstance(word := given.get(name), str) and not word.strip():
            raise SettingsError(f"{SETTINGS[name].option} is empty: give {what}, or leave the option out")
    for name in ("apprise", "atom", "credentials", "store"):
        if isinstance(path := given.get(name), str) and "://" not in path:
            given[name] = str(Path(path).expanduser().absolute())
    typed_seeds = _texts(given.get("seeds"))
    if listed := [url for file in url_files or [] for url in read_urls(file)]:
        given["seeds"] = [*typed_seeds, *listed]
    kept = settings_of_folder(into)
    settings = merge(
        kept or SettingsSource({}),
        read_file(config) if config else SettingsSource({}),
        from_environment(os.environ if environ is None else environ),
        SettingsSource(given, lambda name: SETTINGS[name].option or "the list of URLs"),
    )
    if kept is None and not settings.seeds:
        raise SettingsError("there is nothing to start from: give a URL, or a file of them with -i FILE")
    _require_store(settings, typed=given)
    if "render_steps" in given and settings.render == "never":
        raise SettingsError("--render-step is done in rendered pages: add --render auto or --render always")
    seeds = (*merge(kept).seeds, *settings.seeds) if kept else settings.seeds
    # Only seeds that were typed open private hosts, not those of a file or the environment.
    from_command_line = merge(SettingsSource({"seeds": typed_seeds})).seeds
    opened = (*settings.typed_hosts, *literal_hosts(from_command_line))
    return settings.replace(seeds=tuple(dict.fromkeys(seeds)), typed_hosts=tuple(dict.fromkeys(opened)))


def _require_store(settings: CrawlSettings, *, typed: Mapping[str, object]) -> None:
    """Settings about a central store want one."""
    if not settings.store:
        if "checkpoint_s" in typed:
            raise SettingsError("--checkpoint copies shards to a central store: name one with --store DIR|URL")
        if settings.store_types or settings.store_relevance:
            raise SettingsError(
                "--store-type and --store-relevance choose what is moved to a central store: "
                "name one with --store DIR|URL"
            )
    if settings.store_relevance and not (settings.topic or settings.topic_pages):
        raise SettingsError(
            "--store-relevance is about relevance to a topic: name it with --topic WORDS or --topic-page FILE"
        )


def field_entries(typed: Sequence[str] | None, file: str | None) -> list[str]:
    """The fields of a TOML file, then those that were typed, which count where both name one."""
    return [*(read_fields_file(Path(file)) if file else ()), *(typed or ())]


def asked_fields(typed: Sequence[str] | None, file: str | None) -> list[FieldRule] | None:
    """How the fields that were asked for are found; None: those that the collection names."""
    entries = field_entries(typed, file)
    return field_rules(entries, "--field") if entries else None


def read_urls(file: str) -> list[str]:
    """The lines of a list of URLs but blank ones and those that begin with #; `-` is standard input."""
    name, lines = _read_lines(file)
    return [_seed(line, name, number) for number, line in lines]


def read_watched_urls(file: str) -> list[tuple[str, float | None]]:
    """The same of a list in which the seconds between two visits may stand behind a URL: `https://example.org/ 10m`."""
    name, lines = _read_lines(file)
    found = list[tuple[str, float | None]]()
    for number, line in lines:
        url, _, every = line.partition(" ")
        own = interval_s(every.strip(), f"-i: {name}, line {number}, has an interval that") if every.strip() else None
        found.append((_seed(url, name, number), own))
    return found


def interval_s(text: str, name: str) -> float:
    """The seconds between two visits that a user asks for; 0 for `none`."""
    try:
        return 0.0 if text.strip().lower() == "none" else seconds(SHORTEST_INTERVAL_S)(text)
    except InvalidValue as invalid:
        raise SettingsError(f"{name} is {shown_value(text)}, {invalid.phrase}, or none") from invalid


def _read_lines(file: str) -> tuple[str, list[tuple[int, str]]]:
    """The name of a list and its numbered lines."""
    name = "standard input" if file == STANDARD_INPUT else file
    try:
        raw = sys.stdin.buffer.read() if file == STANDARD_INPUT else Path(file).read_bytes()
    except OSError as error:
        raise SettingsError(f"-i: cannot read {name}: {error.strerror or error}") from error
    except ValueError as error:  # a file name with a null byte
        raise SettingsError(f"-i: {file!r} is no file name") from error
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise SettingsError(f"-i: {name}, line {line}, is not UTF-8 text") from error
    lines = [line.strip() for line in text.split("\n")]
    return name, [(number, line) for number, line in enumerate(lines, 1) if line and not line.startswith("#")]


def _seed(line: str, name: str, number: int) -> str:
    """The URL in a line, as the settings write it."""
    try:
        return seed(line)
    except InvalidValue as invalid:
        raise SettingsError(f"-i: {name}, line {number}, is {shown_value(line)}, {invalid.phrase}") from invalid


def _texts(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else []


def _is_network(word: str) -> bool:
    try:
        ip_network(word, strict=False)
    except ValueError:
        return word == "private"
    return True
