"""Help of the commands: options and commands in groups, defaults, examples; and parameters that several commands have.

`CommandTable` is what a module of commands registers them with. A summary is never cut off, a metavar is for people.
"""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

F = TypeVar("F", bound=Callable[..., Any])

# Groups of options that are not groups of settings.
MOST_WITHOUT_GROUPS = 12  # options of a command
COMMON, SOURCES, OUTPUT = "Common options", "Where to crawl", "Settings and output"

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
AsJsonLines = Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a collection, as given to --into.")]
InFolder = Annotated[
    Path, typer.Option("--in", metavar="DIR", help="The folder of the collection, as given to --into.")
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


class LycosaCommand(TyperCommand):
    """A command whose help has its options in groups and ends with examples (its epilog)."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        arguments = [param for param in self.get_params(ctx) if isinstance(param, TyperArgument)]
        words = [_name(param) if param.required else f"[{_name(param)}]" for param in arguments]
        options = [param for param in self.get_params(ctx) if isinstance(param, TyperOption) and param.required]
        return [*words, *(f"{option.opts[0]} {option.metavar}" for option in options), "[OPTIONS]"]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        params = [param for param in self.get_params(ctx) if not getattr(param, "hidden", False)]
        has_groups = len(params) > MOST_WITHOUT_GROUPS
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
    return (argument.metavar or argument.name.upper()) + ("…" if argument.nargs == -1 else "")


def _record(option: TyperOption) -> tuple[str, str]:
    """`--pages N` and what it does; a default that says something stands behind it."""
    names = ", ".join(sorted(option.opts, key=len))
    if option.secondary_opts:
        names += f" / {option.secondary_opts[0]}"
    elif not option.is_flag:
        names += f" {option.metavar or option.display_type_rich(None)}"  # type: ignore[arg-type]
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
