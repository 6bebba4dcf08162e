"""`lycosa augment`: tables of links and of volatile information beside the documents of a static site."""

from pathlib import Path
from typing import Annotated

import typer

from lycosa.cli.options import AsJson, CommandTable
from lycosa.cli.wording import counted, say, say_json
from lycosa.errors import SettingsError
from lycosa.tables import AugmentOptions, augment_site
from lycosa.web import parse_url

STALE = 1  # exit code of a check that found something
SHOWN = 50
NAMED = 5  # files without a table, of each reason


app = CommandTable()


@app.command(
    epilog="""
        lycosa augment public/                        after each build
        lycosa augment public/ --volatile .visitors   with a CSS selector
        lycosa augment public/ --check                are all tables current?
    """
)
def augment(
    site: Annotated[Path, typer.Argument(metavar="SITE_DIR", help="The folder with the files of the site.")],
    volatile: Annotated[
        str, typer.Option(metavar="SELECTOR", help="Treat elements that match this CSS selector as volatile, too.")
    ] = "",
    url: Annotated[
        str, typer.Option(metavar="URL", help="The site is published here: links that begin with it are internal.")
    ] = "",
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; list the tables that are stale and exit with 1 if any are.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Write tables of links and changes beside a site's files, so that crawlers find links early and changes cheaply.

    page.tol lists the links of page.html; page.tvi holds its volatile parts: what is in <span data-vol="ID"> in HTML,
    in <Vol1>, <Vol2> … in XML, and in elements that --volatile selects. Only tables whose document has changed are
    written; a file that has a table's name and is none stays as it is. The formats are in docs/formats.md.
    """
    if not site.is_dir():
        raise SettingsError(f"{site} is not a folder; give the folder with the site's files")
    published = parse_url(url) if url else None
    if url and published is None:
        raise SettingsError(f"--url is {url!r}, it must be an http or https URL")
    origin = published.href[: published.href.index("/", 8)] if published else ""
    try:
        done = augment_site(site, AugmentOptions(origin, volatile), check=check)
    except ValueError as error:
        raise SettingsError(f"--volatile: {error}") from error
    except OSError as error:
        raise SettingsError(f"cannot write in {site}: {error.strerror} ({error.filename})") from error
    if json:
        say_json(done)
    else:
        for line in done.stale[:SHOWN]:
            say(line)
        if len(done.stale) > SHOWN:
            print(f"and {len(done.stale) - SHOWN:,} more")
        verb = f"{counted(len(done.stale), 'table')} stale" if check else f"tables of {done.written:,} written"
        removed = counted(done.removed, "table")
        print(f"{counted(done.documents, 'document')}: {verb}, {done.unchanged:,} up to date, {removed} removed")
        for reason, count in done.refused.most_common():
            names = [each.file for each in done.without if each.reason == reason]
            more = f" and {count - NAMED:,} more; --json names them" if count > NAMED else ""
            line = f"without a table: {count:,} ({reason}): {', '.join(names[:NAMED])}{more}"
            say(line)
    if check and done.stale:
        raise typer.Exit(STALE)
