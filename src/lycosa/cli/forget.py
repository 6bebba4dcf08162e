"""`lycosa forget` and `lycosa prune`: pages that are taken out of a collection for good, and old versions of pages."""

import sys
from typing import Annotated

import typer

from lycosa.cli.options import AsJson, CommandTable, Folder
from lycosa.cli.wording import counted, note, say, say_json, size
from lycosa.errors import SettingsError
from lycosa.inspect import open_to_read, settings_of
from lycosa.removal import (
    ArchiveRemoval,
    Pruned,
    Removal,
    VersionLimits,
    count_old_versions,
    forget,
    open_shards_to_write,
    plan_removal,
    prune_versions,
    undo_forget,
)
from lycosa.store import Forgotten

app = CommandTable()


@app.command(
    "forget",
    epilog="""
        lycosa forget my-crawl https://example.org/a --dry-run   what would go
        lycosa forget my-crawl https://example.org/a             asks first
        lycosa forget my-crawl example.org --yes                 a whole host
        lycosa forget my-crawl --list                            what is forgotten
        lycosa forget my-crawl example.org --undo                may be crawled
        lycosa forget my-crawl --yes                             resume after a kill
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


@app.command(
    epilog="""
        lycosa prune my-crawl --keep-versions 5 --dry-run
        lycosa prune my-crawl --keep-days 90
        lycosa recrawl my-crawl --keep-versions 5   for this and all later crawls
    """
)
def prune(
    into: Folder,
    keep_versions: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Keep at most this many versions of a page, the current one among them."),
    ] = None,
    keep_days: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Keep the versions that stood there within this many days."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count what would go.")] = False,
    json: AsJson = False,
) -> None:
    """Drop old versions of pages, and free their space.

    Without options it applies what the settings of the collection say. A file of the archive is rewritten where a
    quarter of it is old; the current version of a page always stays.
    """
    limits = VersionLimits(keep_versions, keep_days)
    with open_to_read(into) as collection:
        if not limits:
            settings = settings_of(collection)
            limits = VersionLimits(settings.keep_versions, settings.keep_days)
        if not limits:
            raise SettingsError(f"{into} keeps all versions: say --keep-versions N, --keep-days N or both")
        if dry_run:
            print(f"{counted(count_old_versions(collection, limits), 'version')} would go")
            return
    total = Pruned()
    with open_shards_to_write(into) as shards:
        for shard in shards:
            done = prune_versions(shard, limits)
            total = Pruned(total.versions + done.versions, total.bytes + done.bytes, total.files + done.files)
    if json:
        say_json(total)
        return
    freed = f", {size(total.bytes)} freed in {counted(total.files, 'archive file')}" if total.files else ""
    print(f"{counted(total.versions, 'version')} gone{freed}")


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
        stay = "stays" if found.copies == 1 else "stay"
        print(f"{counted(found.copies, 'page')} with the same content under another URL {stay}")
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
