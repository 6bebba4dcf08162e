"""Joins the commands and turns every error a user can cause into one sentence and an exit code.

The module of a command is imported when the command is called: `lycosa --help` imports none of them, and the first
request of a crawl does not wait for what only other commands use (0.2 s).
"""

import errno
import importlib
import os
import sys
from io import TextIOWrapper
from typing import Annotated, Any, NoReturn

import typer
from typer._click.shell_completion import CompletionItem  # typer has no public name for it
from typer.core import TyperCommand

from lycosa.cli.options import LycosaGroup
from lycosa.cli.startup import INTERRUPTED, raise_on_interrupt
from lycosa.errors import LycosaError, StoreError
from lycosa.version import __version__

# These commands install their own handler of Ctrl-C; until then it ends the process at once.
HANDLE_INTERRUPT_THEMSELVES = ("crawl", "recrawl", "cluster", "serve")

COMPLETION_VARIABLE = "_LYCOSA_COMPLETE"  # set by the scripts of `lycosa completion`

# group -> command -> its module and what it does; a summary fits into a line of 80 columns
COMMANDS = {
    "Crawling": {
        "crawl": ("crawl", "Crawl from URLs into a folder, or continue a crawl."),
        "recrawl": ("crawl", "Revisit the pages that are due and keep what has changed."),
        "add": ("crawl", "Add URLs to a crawl, whether it is running or not."),
        "steer": ("crawl", "Pause, resume or stop a running crawl, or change its settings."),
        "import": ("importing", "Make a collection of WARC and WACZ files of others."),
        "demo": ("crawl", "Crawl a simulated web for some seconds, to see how it looks."),
    },
    "Reading pages": {
        "search": ("search", "Find pages by their words."),
        "get": ("search", "Print a page as it is archived, or as it once was."),
        "shell": ("shell", "Try selectors, fields and links on a page in a prompt."),
        "replay": ("replay", "Show archived pages in a browser, as they were."),
        "export": ("export", "Write pages as JSON lines, tables, archives, Markdown or graphs."),
        "changes": ("changes", "Show what has changed, and the versions of a page."),
        "links": ("collection", "Show which pages link to a URL, and where it links."),
        "rank": ("collection", "List the most important pages or hosts by their links."),
    },
    "Inspecting and maintaining": {
        "report": ("report", "Report what is broken, doubled, missing or slow on a site."),
        "duplicates": ("duplicates", "Show pages that are copies or near-copies of each other."),
        "serve": ("serve", "Show a collection in a browser, live, and steer its crawl."),
        "watch": ("watch", "Show a collection on the whole terminal, live."),
        "status": ("collection", "Show what a collection holds and how its crawl is doing."),
        "why": ("collection", "Say why a URL was fetched, is queued, failed or was skipped."),
        "hosts": ("collection", "List the hosts with their pages, pace and waits."),
        "urls": ("urls", "List known URLs by state, status, type, depth and host."),
        "sql": ("sql", "Ask the tables of a collection in SQL."),
        "tree": ("collection", "Show known URLs as a tree of hosts and folders."),
        "freshness": ("changes", "Show how fresh the pages of each host are."),
        "index": ("search", "Build or update the search index."),
        "prune": ("forget", "Drop old versions of pages, and free their space."),
        "forget": ("forget", "Take pages out for good and keep them from coming back."),
        "settings": ("crawl", "Print all settings with their defaults."),
        "doctor": ("doctor", "Check this machine and say what to change before a crawl."),
        "completion": ("completion", "Print a script that completes words in a shell."),
    },
    "Many machines, publishing, testing": {
        "cluster": ("cluster", "Crawl with many machines."),
        "identity": ("identity", "Make a key that signs requests, and its directory."),
        "augment": ("augment", "Write tables of links and changes beside a site's files."),
        "simweb": ("simweb", "Run a simulated web to test crawlers on."),
    },
}
MODULES = {name: module for group in COMMANDS.values() for name, (module, _) in group.items()}


class RootGroup(LycosaGroup):
    """All commands by name and summary; the one that is called is imported."""

    def __init__(self, **named: Any) -> None:
        super().__init__(**named)
        for group, commands in COMMANDS.items():
            for name, (_, summary) in commands.items():
                self.commands[name] = TyperCommand(name, short_help=summary, rich_help_panel=group)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in MODULES:
            return None
        module = importlib.import_module(f"lycosa.cli.{MODULES[cmd_name]}")
        found = typer.main.get_group(module.app)
        return found.commands.get(cmd_name, found)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Names and summaries, without the import of every module that they would need by get_command."""
        if incomplete.startswith("-"):
            return TyperCommand.shell_complete(self, ctx, incomplete)
        named = [command for name, command in self.commands.items() if name.startswith(incomplete)]
        return [CompletionItem(command.name, help=command.short_help) for command in named]


app = typer.Typer(
    name="lycosa",
    cls=RootGroup,
    help="Lycosa is a polite, fast web crawler that loses nothing.",
    epilog="""
        lycosa crawl https://example.org --into my-crawl --pages 1000
        lycosa search my-crawl 'solar power'
        lycosa COMMAND --help
    """,
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"lycosa {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())
    elif context.invoked_subcommand not in HANDLE_INTERRUPT_THEMSELVES:
        raise_on_interrupt()


def main() -> NoReturn:
    """The entry point: runs the command line, says what went wrong in a sentence, exits with its code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a terminal without the letter gets its number
            stream.reconfigure(errors="backslashreplace")
    if COMPLETION_VARIABLE in os.environ:
        # lazy: only a shell that completes a word needs it
        from typer._completion_classes import completion_init

        completion_init()
    try:
        code = app(prog_name="lycosa", standalone_mode=False)
        sys.stdout.flush()
    except typer.TyperException as error:
        code = _complain(_sentence_of(error), error.exit_code)
    except LycosaError as error:
        code = _complain(str(error), error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except SystemExit as leave:
        if not isinstance(leave.__context__, BrokenPipeError):
            raise
        code = _without_output(0)  # `lycosa … | head`: the reader has what it wanted; typer would exit with 1
    except BrokenPipeError:
        code = _without_output(0)
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            sys.exit(
                _complain("no file descriptors are left: allow more of them (ulimit -n 1024)", StoreError.exit_code)
            )
        if error.errno != errno.ENOSPC:
            raise
        code = _without_output(_complain("cannot write the output: no space left", StoreError.exit_code))
    sys.exit(code if isinstance(code, int) else 0)


def _sentence_of(error: typer.TyperException) -> str:
    """What is wrong with a command line, and where it is said how to write it."""
    sentence = error.format_message().strip().removesuffix(".")
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "lycosa"
    return sentence if sentence.endswith("?") else f"{sentence}{'; ' if sentence else ''}see {path} --help"


def _without_output(code: int) -> int:
    """What is still in the buffer goes nowhere, so that leaving does not fail on it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)
    return code


def _complain(sentence: str, code: int) -> int:
    print(f"lycosa: {' '.join(sentence.split())}", file=sys.stderr)
    return code
