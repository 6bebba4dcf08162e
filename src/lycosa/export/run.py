"""One export from beginning to end: selects the pages, hands them to the format, keeps checkpoints, gives it its name.

The same job, after a kill or a full disk, goes on at its last checkpoint. A page whose record is damaged is left out
and counted; an archive file that is missing, or a store that cannot be reached, ends the export with a sentence, unless
`skip_missing`. Called by `lycosa export` and `Collection.export`.
"""

import contextlib
import time
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import msgspec

from lycosa.crawl import extractor_of
from lycosa.errors import SettingsError, StoreError
from lycosa.export.format import ExportFormat, ExportSource, Shape, make_format
from lycosa.export.output import Checkpoint, Output, OutputFailed, output_failed
from lycosa.export.place import STANDARD_OUTPUT, LastExport, increment_name, open_output, read_last, write_last
from lycosa.export.selection import Cursor, PageSelection, expected_pages, select
from lycosa.inspect import open_to_read, settings_of
from lycosa.records import FieldRule
from lycosa.store import ArchiveUnavailable, CollectionStore, JoinedCollection, is_written
from lycosa.web import FieldExtractor, Purpose

CHECKPOINT_S = 5.0
# Names that say how a file is packed: one that says it wrongly is refused.
_ENDINGS = frozenset((".gz", ".zst", ".bz2", ".xz", ".zip", ".wacz", ".warc", ".wet"))
TOLD_PAGES = 64  # the clock is looked at, and progress told, after so many
# A page that a running crawl fetched before an export began may be committed after it: the next export looks back.
COMMIT_LAG_S = 600.0


class ExportJob(NamedTuple):
    """What is asked for. `out` is a path, a URL or `-`; `options` are those of the format; `fields` are those of the
    pages, None for those that the collection names. With `since_last` what is new or has changed since the last
    finished export to `out` is written beside it. `ignores_preferences`: pages are written whatever their publishers
    say of the purpose of the selection."""

    format: str
    out: str = STANDARD_OUTPUT
    selection: PageSelection = PageSelection()
    options: dict[str, str] = {}  # noqa: RUF012 -- never changed
    restart: bool = False
    skip_missing: bool = False
    since_last: bool = False
    fields: tuple[FieldRule, ...] | None = None
    ignores_preferences: bool = False

    def digest(self, collection: Path) -> str:
        """Names the job: a resumed export must have the same."""
        said = (str(collection.absolute()), self.format, self.selection, sorted(self.options.items()), self.fields)
        return blake2b(msgspec.json.encode(said), digest_size=16).hexdigest()


class ExportProgress(NamedTuple):
    """How far an export has come. `total` is how many pages there will be, 0 where that is not known; `resumed` were
    written by an earlier run."""

    pages: int
    written_bytes: int
    seconds: float
    total: int
    resumed: int


class ExportReport(msgspec.Struct, frozen=True):
    """A finished export: its place, the pages in it, those that could not be read, its bytes, and the seconds it
    took. `since_s` is the time from which on it holds what is new, 0 where it holds all; `out` is empty where nothing
    was new, so that nothing was written. `forbidden` are pages that were left out since their publishers forbid what
    they are for. With `has_answers` the format takes redirects and errors, too, and `pages` counts them;
    with `has_records` those that are captured, with `has_versions` every version of a page."""

    format: str
    out: str
    pages: int
    unread: int
    bytes: int
    seconds: float
    resumed: int = 0
    since_s: float = 0.0
    forbidden: int = 0
    has_answers: bool = False
    has_records: bool = False
    has_versions: bool = False


Tell = Callable[[ExportProgress], None]


def export_pages(collection: Path, job: ExportJob, *, tell: Tell = lambda progress: None) -> ExportReport:
    """Runs an export of the collection at `collection`. `tell` is called now and then."""
    made = make_format(job.format, job.options)
    _require_place(made, job)
    with open_to_read(collection) as opened:
        job = job._replace(selection=msgspec.structs.replace(job.selection, purpose=_purpose(opened, job)))
        digest = job.digest(collection)
        last = _last(job, digest) if job.since_last else None
        if last is not None:
            since_s = max(last.covered_s, job.selection.changed_since_s)
            job = job._replace(selection=msgspec.structs.replace(job.selection, changed_since_s=since_s))
        out = open_output(
            job.out,
            job.digest(collection),
            is_folder=made.shape is Shape.FOLDER,
            compresses=not made.compresses_itself,
            resumes=made.resumes,
            restart=job.restart,
        )
        was_crawled = _is_crawled(opened)  # it may end meanwhile, and commit what is not seen here
        export = _Export(opened, job, made, out, tell)
        report = export.run(is_increment=last is not None)
        if job.since_last:
            lag_s = COMMIT_LAG_S if was_crawled or _is_crawled(opened) else 0.0
            write_last(job.out, LastExport(digest, export.began_s - lag_s))
        return report


def _purpose(collection: CollectionStore, job: ExportJob) -> Purpose | None:
    """What the pages are for: as is asked for, or what the collection was crawled for."""
    if job.ignores_preferences:
        return None
    if job.selection.purpose is None:
        with contextlib.suppress(SettingsError):  # settings that cannot be read are for the next crawl to complain of
            purpose = Purpose(settings_of(collection).purpose)
            return None if purpose is Purpose.ARCHIVE else purpose
    return job.selection.purpose


def _last(job: ExportJob, digest: str) -> LastExport | None:
    if job.out == STANDARD_OUTPUT:
        raise SettingsError("--since-last remembers exports by their place: name one with --out")
    last = read_last(job.out)
    if last is not None and last.job != digest:
        raise SettingsError(
            f"the last export to {job.out} was of another collection, format or selection: "
            "choose another name for this one, or leave --since-last out"
        )
    return last


def _is_crawled(collection: CollectionStore) -> bool:
    """Whether a crawl is writing into the collection, or into any of its shards."""
    shards = collection.shards if isinstance(collection, JoinedCollection) else [collection]
    return any(is_written(shard.path) for shard in shards)


def _require_place(made: ExportFormat, job: ExportJob) -> None:
    if job.out == STANDARD_OUTPUT and made.shape is not Shape.LINES:
        what = "a folder" if made.shape is Shape.FOLDER else "a file that is not text"
        raise SettingsError(f"{job.format} is {what}: name its place with --out, such as --out pages{made.suffix}")
    ending = Path(job.out).suffix.lower()
    if ending in _ENDINGS and ending not in made.endings:
        as_what = " or ".join(made.endings) or "a folder"
        raise SettingsError(f"--out ends with {ending}, but {job.format} is written as {as_what}: choose another name")


class _Export:
    """An export while it runs."""

    def __init__(
        self, collection: CollectionStore, job: ExportJob, made: ExportFormat, out: Output, tell: Tell
    ) -> None:
        self._collection, self._job, self._format, self._out, self._tell = collection, job, made, out, tell
        self._began = time.monotonic()
        before = out.resumed_from or Checkpoint(began_s=time.time())
        self._resumed, self._before = before.pages, before
        self._pages, self._unread, self._forbidden = before.pages, before.unread, before.forbidden
        self._purpose = job.selection.purpose
        self._cursor = Cursor(before.key, before.versions) if before.key else None
        self._total = 0 if made.takes_answers else expected_pages(collection, job.selection)

    @property
    def began_s(self) -> float:
        return self._before.began_s

    def run(self, *, is_increment: bool) -> ExportReport:
        """Writes everything; an increment gets a name of its own, and where nothing is new none at all."""
        try:
            self._write()
            where = ""
            if self._pages or not is_increment:
                where = self._out.commit(increment_name(self._job.out, self.began_s) if is_increment else "")
        except BaseException as error:
            self._leave(error)
            if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
                raise output_failed(error, self._job.out) from error
            raise
        if not where:
            self._out.abandon(keep=False)
        since_s = self._job.selection.changed_since_s if is_increment else 0.0
        return ExportReport(
            self._job.format,
            where,
            self._pages,
            self._unread,
            self._out.written,
            self._seconds,
            self._resumed,
            since_s,
            self._forbidden,
            self._format.takes_answers,
            self._format.needs_records,
            self._job.selection.versions,
        )

    def _write(self) -> None:
        fields = extractor_of(self._collection.path) if self._job.fields is None else FieldExtractor(self._job.fields)
        source = ExportSource(self._collection, self._job.selection, self._before.began_s, fields.names, fields.lists)
        self._format.begin(self._out, source)
        checkpoint_at = time.monotonic() + CHECKPOINT_S
        pages = select(
            self._collection,
            self._job.selection,
            takes_answers=self._format.takes_answers,
            after=self._cursor,
            fields=self._job.fields,
        )
        for number, (page, cursor) in enumerate(pages, 1):
            try:
                if self._purpose is not None and page.row.objection(self._purpose, now=self._before.began_s):
                    self._forbidden += 1
                elif (page.row.place or not self._format.needs_records) and self._format.takes(page):
                    self._format.add(page)
                    self._pages += 1
            except ArchiveUnavailable as error:
                if not self._job.skip_missing:
                    raise ArchiveUnavailable(
                        f"{error}; bring it back, or leave its pages out with --skip-missing"
                    ) from error
                self._unread += 1
            except OutputFailed:
                raise
            except StoreError:
                self._unread += 1
            self._cursor = cursor
            if not number % TOLD_PAGES:
                self._tell(self._progress())
                if time.monotonic() >= checkpoint_at or self._format.wants_checkpoint:
                    self._save()
                    checkpoint_at = time.monotonic() + CHECKPOINT_S
        self._format.finish()

    @property
    def _seconds(self) -> float:
        return self._before.spent_s + time.monotonic() - self._began

    def _progress(self) -> ExportProgress:
        seconds = time.monotonic() - self._began
        return ExportProgress(self._pages, self._out.written, seconds, self._total, self._resumed)

    def _save(self) -> None:
        if self._cursor is not None and self._format.resumes and self._format.checkpoint():
            self._out.save(
                Checkpoint(
                    self._cursor.key,
                    self._cursor.versions,
                    self._pages,
                    self._unread,
                    self._before.began_s,
                    self._seconds,
                    self._forbidden,
                )
            )

    def _leave(self, error: BaseException) -> None:
        """Keeps what can be continued; after Ctrl-C up to the last page."""
        if isinstance(error, KeyboardInterrupt):
            self._save()
        self._out.abandon(keep=self._format.resumes)
