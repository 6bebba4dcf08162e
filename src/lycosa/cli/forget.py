"""`lycosa forget`: pages that are taken out of a collection for good, and do not come back."""

import sys
from typing import Annotated

import typer

from lycosa.cli.options import AsJson, CommandTable, Folder
from lycosa.cli.wording import counted, note, say, say_json
from lycosa.errors import SettingsError
from lycosa.inspect import open_to_read
from lycosa.removal import ArchiveRemoval, Removal, forget, plan_removal, undo_forget
from lycosa.store import Forgotten

app = CommandTable()


@app.command(
    "forget",
    epilog="""
        lycosa forget my-crawl https://example.org/about --dry-run   what would go
        lycosa forget my-crawl https://example.org/about             asks before it begins
        lycosa forget my-crawl example.org --yes                     a host with all its pages
        lycosa forget my-crawl --list                                what is forgotten
        lycosa forget my-crawl example.org --undo                    may be crawled again
        lycosa forget my-crawl --yes                                 goes on after an interruption
    """,
)
def forget_pages(
    into: Folder,
    entries: Annotated[
        list[str] | None,
        typer.Argument(metavar="URL|HOST", help="Forget these URLs, or all of these hosts."),
    ] = None,
    archive: Annotated[
        ArchiveRemoval,
        typer.Option(
            help="Take records out of the archive by moving all others to new files (rewrite), overwrite them where "
            "they are (blank), or leave the archive as it is (keep)."
        ),
    ] = ArchiveRemoval.REWRITE,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would go.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Let these URLs or hosts be crawled again.")] = False,
    show: Annotated[bool, typer.Option("--list", help="List what is forgotten.")] = False,
    json: AsJson = False,
) -> None:
    """Take pages out of a collection, and keep them from coming back.

    Pages go from the state, the archive, the link index and the search index, with all their versions. A page that
    has the same content under another URL keeps it. The next search makes its index anew.
    """
    wanted = entries or []
    if show:
        _list(into)
        return
    if undo:
        _undo(into, wanted)
        return
    plan = plan_removal(into, wanted)
    if not wanted and not Forgotten.of(into):
        raise SettingsError(f"nothing is forgotten in {into}: give a URL or a host")
    if dry_run:
        _tell(plan, "would go", json=json)
        return
    if not yes:
        _ask(plan, wanted, archive)
    done = forget(into, wanted, archive=archive, progress=note)
    _tell(done, "gone", json=json)
    if wanted and not done.urls:
        note("none of them was known; they are not asked for from now on")


def _ask(plan: Removal, wanted: list[str], archive: ArchiveRemoval) -> None:
    what = ", ".join(wanted[:5]) + (f" and {len(wanted) - 5} more" if len(wanted) > 5 else "")
    words = f"{counted(plan.urls, 'URL')}, {counted(plan.pages, 'page')} and {counted(plan.versions, 'version')}"
    if not sys.stdin.isatty():
        raise SettingsError(f"{words} would go for good: say --yes, or look first with --dry-run")
    kept = "" if archive is not ArchiveRemoval.KEEP else ", but stay in the archive"
    typer.confirm(f"{what or 'what is forgotten'}: {words} go for good{kept}. Go on?", abort=True, err=True)


def _tell(found: Removal, word: str, *, json: bool) -> None:
    if json:
        say_json(found)
        return
    print(f"{counted(found.urls, 'URL')} {word}, {counted(found.pages, 'page')}, {counted(found.versions, 'version')}")
    if found.copies:
        print(f"{counted(found.copies, 'page')} with the same content under another URL stay")
    if found.files:
        print(f"{counted(found.records, 'record')} gone from {counted(found.files, 'archive file')}")


def _list(into: Folder) -> None:
    with open_to_read(into):
        for entry, at in Forgotten.of(into).entries.items():
            say(f"{at}  {entry}")


def _undo(into: Folder, wanted: list[str]) -> None:
    with open_to_read(into):
        found = undo_forget(into, wanted)
    if not found:
        raise SettingsError(f"none of these is forgotten in {into}: --list shows what is")
    note(f"no longer forgotten: {', '.join(found)}; a crawl that finds a link there fetches it again")
