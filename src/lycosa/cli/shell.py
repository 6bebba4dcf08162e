"""`lycosa shell`: a Python prompt with a page, for trying selectors, fields, texts, links and scope.

IPython is used where it is installed. With `-c CODE`, or with code on standard input, it runs that and exits: the value
of a last expression is printed, texts as they are and lists an item a line.
"""

import ast
import code
import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from lycosa.api import PageShell
from lycosa.cli.options import CommandTable, CrawlCommand, FieldsFile, field_entries, resolve_settings, with_settings
from lycosa.cli.wording import note
from lycosa.errors import LycosaError, SettingsError
from lycosa.store import is_collection, is_sharded

SHELL_SETTINGS = (
    "scope", "include", "exclude", "delay_s", "agent", "contact", "robots", "allow_private", "dns", "fields",
)  # fmt: skip
HELPERS = ("fetch", "open", "css", "fields", "text", "markdown", "links", "follow", "why", "view")
BANNER = """\
fetch(url)                     fetch another page, as a crawl does: robots.txt, guard and delay hold
css('.price'), css('a@href')   texts or attributes of all elements that match
fields(price='.price')         fields as --field and `lycosa export` have them
text(), markdown()             what is for reading in the page
links(), links('/docs/')       its links, and what a crawl makes of each
follow(url)                    would a crawl follow this URL, and why not
why(), why(url)                all that is known of a URL
view()                         show the page in a browser
page, settings                 page.status, page.headers, page.body, page.metadata; settings.scope
"""
OPEN_LINE = "open(url)                      open another page of the collection\n"

app = CommandTable()


def shell(
    target: Annotated[str, typer.Argument(metavar="URL|DIR", help="A page to fetch, or a collection to look into.")],
    run_code: Annotated[
        str | None, typer.Option("-c", metavar="CODE", help="Run this code, print its last value, and exit.")
    ] = None,
    fields_file: FieldsFile = None,
    **typed: Any,
) -> None:
    """Try selectors, fields, links and scope on a page in a Python prompt.

    A URL is fetched as a crawl would: robots.txt, the address guard and the delay hold, and nothing is kept. A folder
    is a collection whose pages are opened; it is not written.
    """
    folder = Path(target) if is_collection(Path(target)) or is_sharded(Path(target)) else None
    if folder is None and (Path(target).is_dir() or target.startswith((".", "/"))):
        raise SettingsError(f"{target} is no collection: give the folder of one, or a URL")
    typed["fields"] = field_entries(typed["fields"], fields_file)
    settings = resolve_settings(typed if folder else {"seeds": [target], **typed}, into=folder or Path(os.devnull))
    made = PageShell(settings, folder)
    try:
        if folder is None:
            _fetch_first(made, settings.seeds[-1])
        _run(made, run_code)
    finally:
        made.close()


def _fetch_first(made: PageShell, url: str) -> None:
    if made.fetch(url) is None:
        note(made.why(url))


def _run(made: PageShell, run_code: str | None) -> None:
    names: dict[str, Any] = {name: getattr(made, name) for name in HELPERS if name != "open" or made.collection}
    names |= {"page": made.page, "settings": made.settings, "shell": made, "collection": made.collection}

    def renewing(helper: Callable[[str], Any]) -> Callable[[str], Any]:
        """A helper after which `page` is another one."""

        def renew(url: str) -> Any:
            found = helper(url)
            names["page"] = made.page
            if found is None:
                note(made.why(url))
            return found

        return renew

    for name in ("fetch", "open"):
        if name in names:
            names[name] = renewing(names[name])
    if run_code is not None:
        _execute(run_code, names)
    elif not sys.stdin.isatty():
        _execute(sys.stdin.read(), names)
    else:
        _prompt(made, names)


def _execute(text: str, names: dict[str, Any]) -> None:
    """Runs code, and prints the value of its last expression."""
    try:
        tree = ast.parse(text, "<code>")
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "<code>", "exec"), names)
        if isinstance(last, ast.Expr):
            _print(eval(compile(ast.Expression(last.value), "<code>", "eval"), names))
    except (LycosaError, SystemExit, KeyboardInterrupt):
        raise
    except BrokenPipeError:
        raise
    except Exception as error:  # it is the user's code
        line = getattr(error, "lineno", None) or _line_of(error)
        where = f"line {line}: " if line else ""
        note(f"lycosa: {where}{type(error).__name__}: {error}")
        raise typer.Exit(1) from error


def _line_of(error: Exception) -> int | None:
    """The line of the user's code in which an error was raised."""
    trace, line = error.__traceback__, None
    while trace is not None:
        line = trace.tb_lineno if trace.tb_frame.f_code.co_filename == "<code>" else line
        trace = trace.tb_next
    return line


def _print(value: object) -> None:
    match value:
        case None:
            return
        case str():
            print(value)
        case list() | tuple() if not hasattr(value, "_fields"):
            for item in value:
                print(item)
        case dict():
            print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
        case bytes():
            sys.stdout.buffer.write(value)
        case _:
            print(value)


class _Console(code.InteractiveConsole):
    """A prompt in which a mistake that Lycosa has a sentence for is answered by the sentence."""

    def showtraceback(self) -> None:
        error = sys.exc_info()[1]
        if isinstance(error, LycosaError):
            self.write(f"{error}\n")
        else:
            super().showtraceback()


def _prompt(made: PageShell, names: dict[str, Any]) -> None:
    banner = (OPEN_LINE if made.collection else "") + BANNER
    about = f"page: {made.page!r}" if made.page is not None else "there is no page yet"
    print(f"{banner}\n{about}; Ctrl-D leaves")
    if importlib.util.find_spec("IPython") is not None:
        import IPython  # an extra of the user's, for this prompt alone

        IPython.start_ipython(argv=["--no-banner"], user_ns=names)
        return
    try:
        import readline  # history and completion, where Python has it
        import rlcompleter

        readline.set_completer(rlcompleter.Completer(names).complete)
        readline.parse_and_bind("tab: complete")
    except ImportError:
        pass
    sys.displayhook = _display
    _Console(names).interact(banner="", exitmsg="")


def _display(value: object) -> None:
    """Shows a value in the prompt as Python does, but long texts and lists of links as they are read."""
    is_listed = isinstance(value, list) and bool(value) and hasattr(value[0], "verdict")
    if is_listed or (isinstance(value, str) and "\n" in value):
        _print(value)
    else:
        sys.__displayhook__(value)


SHELL_EXAMPLES = """
    lycosa shell https://example.org/
    lycosa shell my-crawl
    lycosa shell https://example.org/ -c "css('h1')"
    lycosa shell shop.example --include '/shop/*' -c 'links()'
"""
app.command("shell", cls=CrawlCommand, epilog=SHELL_EXAMPLES)(with_settings(shell, SHELL_SETTINGS))
