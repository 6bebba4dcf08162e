"""`lycosa tree`: where the known URLs of a collection lie, and how far each part has come.

Reads the committed state beside a running crawl, or without one.
"""

import sys
from pathlib import Path
from typing import Annotated

import typer

ROWS = 40
_ROWS_MOST = 10_000  # what one can look at; a whole list of URLs is not what a tree is for
_INDENT = "  "


def register(app: typer.Typer) -> None:
    app.command()(tree)


def tree(
    into: Annotated[Path, typer.Argument(metavar="DIR", help="A collection: the folder a crawl went into.")],
    prefix: Annotated[
        str,
        typer.Argument(
            metavar="URL-PREFIX",
            help="The beginning of a URL (https://example.org/docs/), or a host or domain (example.org).",
            show_default=False,
        ),
    ] = "",
    depth: Annotated[
        int | None, typer.Option("--depth", min=1, metavar="N", help="Go at most N folders down.", show_default=False)
    ] = None,
    rows: Annotated[int, typer.Option("--rows", min=1, max=_ROWS_MOST, metavar="N", help="Branches to show.")] = ROWS,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")] = False,
) -> None:
    """The known URLs as a tree of hosts and folders, the heaviest branches first.

    Every line counts the URLs that start with its prefix: how many are known, queued, done, failed and dropped.
    A folder ends with a slash, a query with its question mark. The heaviest branches are shown wherever they are, so a
    trap shows itself: a calendar, a session id or a loop of folders outweighs the pages around it.

    \b
    lycosa tree my-crawl                                  hosts and their largest folders
    lycosa tree my-crawl --depth 1                        hosts only
    lycosa tree my-crawl example.org                      a domain: its hosts, every port and scheme
    lycosa tree my-crawl https://example.org/docs/        one folder
    lycosa why https://example.org/docs/a --in my-crawl   one URL
    """
    import msgspec

    from lycosa.cli.wording import printable
    from lycosa.engine.tree import tree as branches
    from lycosa.engine.views import open_to_read

    with open_to_read(into) as collection:
        found = branches(collection, prefix, depth=depth, rows=rows)
    if not found[0].known:
        about = f"that starts with {found[0].prefix}" if "://" in found[0].prefix else f"of {found[0].prefix}"
        print(f"{into} knows no URL {about if prefix else 'yet'}", file=sys.stderr)
    if json:
        for branch in found:
            sys.stdout.buffer.write(msgspec.json.encode(branch) + b"\n")
    elif found[0].known:
        print(f"{'known':>10}{'queued':>10}{'done':>10}{'failed':>8}{'dropped':>9}")
        for branch in found:
            counts = f"{branch.known:>10,}{branch.queued:>10,}{branch.done:>10,}{branch.failed:>8,}{branch.dropped:>9,}"
            more = f"  ({branch.left_out:,} more below)" if branch.left_out else ""
            line = f"{counts}  {_INDENT * branch.level}{branch.prefix or 'all'}{more}"
            print(printable(line, sys.stdout.encoding))
