"""Joins the commands and turns every error a user can cause into one sentence and an exit code.

Command modules import what they need inside their functions, so that `lycosa --help` and the first
request of a crawl do not wait for libraries they do not use.
"""

import errno
import os
import sys
from io import TextIOWrapper
from typing import Annotated, NoReturn

import typer

from lycosa.cli import augment, changes, cluster, collection, crawl, search, simweb
from lycosa.cli import collection as links
from lycosa.cli import collection as tree
from lycosa.cli import crawl as recrawl
from lycosa.cli import simweb as demo
from lycosa.cli.startup import INTERRUPTED, raise_on_interrupt
from lycosa.errors import LycosaError, StoreError
from lycosa.version import __version__

UNTIDY = ("crawl", "recrawl", "cluster")  # it has nothing to tidy up until it takes Ctrl-C for itself

app = typer.Typer(
    name="lycosa",
    help="A polite, fast web crawler that loses nothing, and the simulated web it is proved on.",
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
crawl.register(app)
recrawl.register_recrawl(app)
changes.register(app)
collection.register(app)
tree.register_tree(app)
augment.register(app)
links.register_links(app)
search.register(app)
demo.register_demo(app)
cluster.register(app)
app.add_typer(simweb.app, name="simweb")


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"lycosa {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())
    elif context.invoked_subcommand not in UNTIDY:
        raise_on_interrupt()


def main() -> NoReturn:
    """The entry point: run the command line, say what went wrong in a sentence, exit with its code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a terminal without the letter gets its number
            stream.reconfigure(errors="backslashreplace")
    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()
    except typer.TyperException as error:
        sentence = error.format_message().strip()
        code = _complain(sentence or "see lycosa --help", error.exit_code)
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
        if error.errno != errno.ENOSPC:
            raise
        code = _without_output(_complain("cannot write the output: no space left", StoreError.exit_code))
    sys.exit(code if isinstance(code, int) else 0)


def _without_output(code: int) -> int:
    """What is still in the buffer goes nowhere, so that leaving does not fail on it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)
    return code


def _complain(sentence: str, code: int) -> int:
    print(f"lycosa: {' '.join(sentence.split())}", file=sys.stderr)
    return code
