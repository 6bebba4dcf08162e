"""Writes docs/commands.md, the help of every command: `python docs/commands.py > docs/commands.md`."""

import os
import sys
from collections.abc import Iterator

import typer

from lycosa.cli.commands import COMMANDS, app

HEAD = """# Commands

The help of every command, made by `python docs/commands.py > docs/commands.md`.

A command exits with 0 when it is done, 1 when nothing could be fetched, 2 after wrong usage, 3 at a limit that you asked to treat as a
failure, 4 when storage failed, 130 when it was interrupted or terminated.
"""


def reference() -> str:
    """The page."""
    os.environ["COLUMNS"], os.environ["TERMINAL_WIDTH"] = "80", "80"
    root = typer.main.get_command(app)
    context = root.make_context("lycosa", [], resilient_parsing=True)
    parts = [HEAD]
    for group, commands in COMMANDS.items():
        parts.append(f"## {group}\n")
        for name in commands:
            parts += helps(root.get_command(context, name), context, name, f"lycosa {name}", "###")
    return "\n".join(parts)


def helps(command: typer.core.TyperCommand, parent: typer.Context, name: str, title: str, level: str) -> Iterator[str]:
    """The help of a command, then of the commands below it."""
    context = command.make_context(name, [], parent=parent, resilient_parsing=True)
    yield f"{level} {title}\n\n```text\n{command.get_help(context).strip()}\n```\n"
    for below in getattr(command, "commands", {}):
        yield from helps(command.get_command(context, below), context, below, f"{title} {below}", f"{level}#")


if __name__ == "__main__":
    sys.stdout.write(reference())
