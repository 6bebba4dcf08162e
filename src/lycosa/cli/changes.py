"""`lycosa changes` and `lycosa freshness`: what changed in a collection, one page's versions, and how fresh it is.

They read the committed state and the archive beside a running crawl, or without one.
"""

import time
from pathlib import Path
from typing import Annotated

import typer

from lycosa.cli.options import AsJsonLines, CommandTable, Folder
from lycosa.cli.wording import counted, folder_word, note, say, say_json, size
from lycosa.cluster import recrawl_command
from lycosa.errors import SettingsError
from lycosa.inspect import (
    ChangeFilter,
    ChangeView,
    PageHistory,
    change_time,
    knows_host,
    list_changes,
    open_to_read,
    page_history,
    size_words,
)
from lycosa.inspect import freshness as freshness_of_hosts
from lycosa.recrawl import ChangeKind, can_decode, no_bodies
from lycosa.web import format_date

ROWS = 50
KINDS = ("text", "structure", "image", "moved", "gone", "back", "volatile", "new", "changed", "removed")

app = CommandTable()


@app.command(
    epilog="""
        lycosa changes my-crawl --since 2d --kind text   changes of text since then
        lycosa changes my-crawl https://example.org/     the versions of a page
        lycosa get https://example.org/ --in my-crawl --as-of 2026-01
    """
)
def changes(
    into: Folder,
    url: Annotated[
        str | None, typer.Argument(metavar="URL", help="Show the versions of this page and what differs between them.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Show changes from then on: 2h or 3d ago, or a day (UTC): 2026-05-31."),
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="Show changes until then; a day counts to its end.")
    ] = None,
    host: Annotated[str, typer.Option(metavar="HOST", help="Show changes of this host alone.")] = "",
    kinds: Annotated[
        list[str] | None,
        typer.Option("--kind", metavar="KIND", help=f"Show changes of this kind: {', '.join(KINDS)}. Repeatable."),
    ] = None,
    rows: Annotated[int, typer.Option("-n", min=1, metavar="N", help="Show this many, the newest first.")] = ROWS,
    old: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="With URL: compare this version; otherwise the last but one.")
    ] = None,
    new: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="With URL: compare with this version; otherwise the last one."),
    ] = None,
    json: AsJsonLines = False,
) -> None:
    """Show what has changed, and the versions of a page."""
    if unknown := [kind for kind in kinds or [] if kind not in KINDS]:
        raise SettingsError(f"--kind is {unknown[0]!r}, it must be one of {', '.join(KINDS)}")
    with open_to_read(into) as collection:
        if url is not None:
            found = page_history(collection, url, old=old, new=new)
            if json:
                say_json(found)
            else:
                _show_page(found, into)
            return
        now = time.time()
        wanted = ChangeFilter(
            since_s=change_time(since, "--since", now_s=now) if since else 0.0,
            until_s=change_time(until, "--until", now_s=now, is_end=True) if until else float("inf"),
            host=host,
            kinds=tuple(kinds or ()),
        )
        if host and not knows_host(collection, host):
            raise SettingsError(f"{into} knows no host {host}: `lycosa hosts {folder_word(into)}` lists them")
        listed = list_changes(collection, wanted, most=rows if json else rows + 1)
    if json:
        for view in listed:
            say_json(view)
        return
    if not listed:
        which = " of these" if host or kinds or since or until else ""
        note(f"no change{which} is known; `{recrawl_command(into)}` revisits pages")
    for view in listed[:rows]:
        say(f"{format_date(view.at_s)}  {view.word:<8} {view.kind:<10} {view.url}  {_where(view)}".rstrip())
    if len(listed) > rows:
        note(f"more than {rows}; -n shows more")


@app.command()
def freshness(into: Folder, json: AsJsonLines = False) -> None:
    """Show how fresh the pages of each host are.

    `fresh %` is the share of pages that are expected to be as they are stored, `age d` the days since a page was seen,
    `cost` the mean cost of changes that were missed; then visits, those that found a change, the bytes that answers
    "not modified" saved, and the pages that are due.
    """
    with open_to_read(into) as collection:
        if not json:
            print(f"{'pages':>8}{'gone':>7}{'fresh %':>9}{'age d':>8}{'cost':>7}{'visits':>9}{'changed':>9}", end="")
            print(f"{'saved':>10}{'due':>7}  host")
        rows = list(freshness_of_hosts(collection))
        for row in rows:
            if json:
                say_json(row)
                continue
            counts = f"{row.pages:>8,}{row.gone:>7,}{100 * row.fresh:>9.1f}{row.age_days:>8.1f}{row.cost:>7.2f}"
            say(
                f"{counts}{row.visits:>9,}{row.changes:>9,}{size(row.saved_bytes):>10}{row.due:>7,}  {row.host}",
            )
    if not rows and not json:
        note(f"no visit is planned yet: lycosa recrawl {folder_word(into)} plans them, and visits what is due")


def _show_page(found: PageHistory, into: Path) -> None:
    say(found.url)
    rate = f"changes {found.changes_per_day:.2g} times a day" if found.visits else "was never revisited"
    visits = f"{counted(found.visits, 'visit')}, {found.changes:,} with a change"
    print(
        f"  {visits}; {rate}; seen {format_date(found.checked_s)}"
        + (f", due {format_date(found.due_s)}" if found.due_s else "")
    )
    for number, view in enumerate(found.versions, start=1):
        if view.pictures and not view.archived:
            stored = "the document as before"
        elif view.archived:
            stored = f"{size_words(view.sent_bytes, view.document_bytes)} {view.content_type}".rstrip()
        elif view.is_kept:
            stored = "not in the archive any more"
        elif view.kind in (ChangeKind.GONE, ChangeKind.MOVED) or not view.sent_bytes:
            stored = "nothing stored"
        else:
            stored = f"{size_words(view.sent_bytes, view.document_bytes)} {view.content_type}, not kept"
        say(
            f"  {number:>3}  {format_date(view.at_s)}  {view.kind:<10} {view.status or '-':>3}  {stored}"
            f"  {_where(view)}"
        )
        if view.codes is not None:
            print(f"       {view.codes}")
    _show_pictures(found, into)
    if found.diff is None or found.compared is None:
        if len(found.versions) > 1 and not any(view.is_kept for view in found.versions):
            note(f"only the codes tell these versions apart: {no_bodies(into)}")
        return
    print(f"\nfrom {format_date(found.compared[0])} to {format_date(found.compared[1])}")
    if found.diff.structure.where:
        say(f"structure: {found.diff.structure.where}")
        for level, before, after in found.diff.structure.levels:
            print(f"  level {level}: {counted(before, 'element')}, then {after}")
        for line in found.diff.structure.lines:
            say(f"  {line}")
    for line in found.diff.lines:
        say(f"  {line}")
    if not found.diff.lines and not found.diff.structure.where:
        print("  the main content is the same")


def _show_pictures(found: PageHistory, into: Path) -> None:
    """Each picture that changed last, before and after, and how to get it."""
    for picture in found.pictures:
        print()
        say(f"image {picture.url}")
        for word, version in (("from", picture.before), ("to", picture.after)):
            if version is None:
                continue
            seen = (
                f"{counted(version.size_bytes, 'byte')} {version.content_type}" if version.size_bytes else version.kind
            )
            sides = f"  {version.width}×{version.height}" if version.width else ""
            value = f"  value {_short(version.value)}  pixels {version.digest[:16]}" if version.digest else ""
            say(f"  {word:<4} {format_date(version.at_s)}  {seen}{sides}{value}")
    if found.pictures:
        if not can_decode():
            print("  Pillow is not installed, so images are compared by their bytes (pip install lycosa[images])")
        if any(version and version.archived for one in found.pictures for version in (one.before, one.after)):
            print(f"  lycosa get IMAGE --in {folder_word(into)} --as-of TIME writes one to standard output")


def _short(digits: str) -> str:
    return digits if len(digits) <= 24 else f"{digits[:10]}…{digits[-10:]} ({len(digits)} digits)"


def _where(view: ChangeView) -> str:
    also = f" (and {', '.join(view.also)})" if view.also else ""
    return f"{view.where}{also}"
