"""A collection as it was at a time: which version of a page stood there, and an index of all of them.

A page's versions are its history (`recrawl.versions`), and where it never changed the page itself. An index of a time
that is past never changes: it is made once from the archive, under `then/TIME/`, and the last few are kept. Versions
that asked to be left out (noindex) are. Links and ranks are those of today, so they do not count there.
"""

import re
import shutil
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

from lycosa.crawl import page_directives
from lycosa.errors import SettingsError
from lycosa.fetch import parse_fields
from lycosa.graph import last_sequence
from lycosa.records import Family, Response
from lycosa.recrawl import ChangeKind, ChangeRow, document_at, history, require_bodies, version_row
from lycosa.search.documents import (
    HostLanguages,
    IndexMember,
    copy_document,
    indexed_page,
    is_searchable,
    page_document,
)
from lycosa.search.index import FOLDER as INDEX_FOLDER
from lycosa.search.index import IndexReader, IndexWriter, NoIndex
from lycosa.search.text_log import FOLDER as TEXTS_FOLDER
from lycosa.search.texts import PageTexts
from lycosa.settings import CrawlSettings, merge, read_file
from lycosa.store import CollectionStore, PageRow, State, page_at
from lycosa.web import RobotsDirectives, analyse_page, parse_date, split_url, url_from_key

FOLDER = "then"
KEPT = 3  # indexes of past times
AT_ONCE = 2_000
_YEAR_OR_MONTH = re.compile(r"\d{4}(-\d\d?)?", re.ASCII)
_TIME_OF_DAY = re.compile(r"[Tt ](\d\d)(?::?(\d\d)(?::?(\d\d)(?:[.,](\d+))?)?)?", re.ASCII)
_NOTHING_THERE = frozenset({ChangeKind.GONE, ChangeKind.MOVED})


def end_of_date(text: str) -> float:
    """The end of the year, month, day, hour, minute or second that a date names, in Unix time."""
    found = parse_date(text)
    if found is None or not text[:4].isdigit():
        raise SettingsError(f"{text[:40]!r} is no date: write 2026-01-31, or 2026-01-31T12:00 for a time of that day")
    try:
        return (_end_of(text, datetime.fromtimestamp(found, UTC)) - timedelta(microseconds=1)).timestamp()
    except (ValueError, OverflowError):  # the last of all years
        return found


def _end_of(text: str, start: datetime) -> datetime:
    """The end of what begins at `start`, by how exactly it is written."""
    if whole := _YEAR_OR_MONTH.fullmatch(text):
        month = start.month if whole[1] else 12
        return datetime(start.year + month // 12, month % 12 + 1, 1, tzinfo=UTC)
    time_of_day = _TIME_OF_DAY.search(text)
    if time_of_day is None:
        return start + timedelta(days=1)
    _, minute, second, fraction = time_of_day.groups()
    if fraction:
        return start + timedelta(microseconds=10 ** max(0, 6 - len(fraction)))
    return start + (timedelta(seconds=1) if second else timedelta(minutes=1) if minute else timedelta(hours=1))


def past_time(as_of: str) -> float | None:
    """The time that is asked for, or None where that is now: all that was committed a second ago is there."""
    at_s = end_of_date(as_of) if as_of else None
    return at_s if at_s is not None and at_s < time.time() - 1.0 else None


def row_as_of(state: State, key: bytes, at_s: float) -> PageRow | None:
    """The row of the page that was at a URL at that time; None if there was none, or it was not known yet."""
    return _find_as_of(state, key, at_s)[0]


def _find_as_of(state: State, key: bytes, at_s: float) -> tuple[PageRow | None, bool]:
    """The row of the page at that time, and whether it has the robots directives of the page: the history has none."""
    today = page_at(state, key)
    stored: ChangeRow | None = None  # the version that was stored last
    stored_s, is_there, has_history = 0.0, False, False
    for changed_s, change in history(state, key):
        has_history = True
        if changed_s > at_s:
            break
        if change.is_version:  # also that of a file that took the page's place, by which the page is gone
            stored, stored_s, is_there = change, changed_s, True
        elif change.kind in _NOTHING_THERE:
            is_there = False
        elif change.kind is ChangeKind.BACK:  # as it was before: nothing was stored anew
            is_there = True
    if not has_history:
        return (today if today is not None and today.fetched_s <= at_s else None), True
    if stored is None or not is_there:
        return None, True
    row = version_row(stored_s, stored)
    is_todays = today is not None and today.place == stored.place
    if today is not None and is_todays:
        row.apply_directives(today.directives)
    return row, is_todays


def reader_as_of(
    collection: CollectionStore, at_s: float, *, progress: Callable[[int, int], None] | None = None
) -> IndexReader:
    """The index of a past time, made if it is not there."""
    name = f"{FOLDER}/{int(at_s * 1000)}"
    try:
        return IndexReader.open(collection.path, name)
    except NoIndex:
        pass
    _delete_oldest(collection.path / FOLDER)
    return make_reader(collection, at_s, name, progress=progress)


def make_reader(
    collection: CollectionStore, at_s: float, folder: str, *, progress: Callable[[int, int], None] | None = None
) -> IndexReader:
    """An index of the collection as it was at a time, in a folder of it or, by an absolute path, elsewhere."""
    require_bodies(collection)
    writer = IndexWriter(collection.path, anew=True, of=folder)
    try:
        _fill(collection, at_s, writer, progress or (lambda done, pages: None))
        writer.commit(0)
    finally:
        writer.close()
    return IndexReader.open(collection.path, folder)


def _delete_oldest(folder: Path) -> None:
    """Makes room for one more index."""
    made = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime) if folder.is_dir() else []
    for path in made[: max(0, len(made) - KEPT + 1)]:
        shutil.rmtree(path, ignore_errors=True)


def delete_past_indexes(collection: Path) -> None:
    """Deletes the indexes of past times, since versions that they have are gone."""
    shutil.rmtree(collection / FOLDER, ignore_errors=True)


def delete_index(collection: Path) -> bool:
    """Deletes the search index and those of past times, with the texts on their way there. Returns whether there was
    one; the next search makes it anew."""
    has_one = (collection / INDEX_FOLDER).is_dir() or (collection / FOLDER).is_dir()
    for folder in (INDEX_FOLDER, FOLDER, TEXTS_FOLDER):
        shutil.rmtree(collection / folder, ignore_errors=True)
    return has_one


def _fill(collection: CollectionStore, at_s: float, writer: IndexWriter, progress: Callable[[int, int], None]) -> None:
    expected, done = last_sequence(collection.state), 0
    languages, known = HostLanguages(lambda host: {}), dict[int, int]()
    texts = PageTexts(collection)
    with texts.expected(expected):
        rest = _members(collection, at_s)
        while members := list(islice(rest, AT_ONCE)):
            heads = []
            for member in members:
                payload = int.from_bytes(member.row.payload_sha1[:8])
                if payload and known.setdefault(payload, member.number) != member.number:
                    writer.add(copy_document(member.number, known[payload]))
                else:
                    heads.append(member)
            for member, read in zip(heads, texts.of(heads), strict=True):
                found = indexed_page(member.number, member.number, member.url, member.row, read)
                language = languages.language_of(split_url(member.url).host, found.language, found.beginning)
                writer.add(page_document(found, language))
            done += len(members)
            progress(done, expected)


def _members(collection: CollectionStore, at_s: float) -> Iterator[IndexMember]:
    """Every page as it was then, without those that asked to be left out, or to be left out by now."""
    agent, now = agent_of(collection), time.time()
    for number, key in collection.state.walk(Family.FILE):
        row = full_row_as_of(collection, key, at_s, agent)
        if row is not None and is_searchable(row, now):
            yield IndexMember(int.from_bytes(number), url_from_key(key), row)


def agent_of(collection: CollectionStore) -> str:
    """The robots name of the crawl, by which pages address it."""
    path = collection.settings_path
    return (merge(read_file(path)) if path.is_file() else CrawlSettings()).agent


def full_row_as_of(collection: CollectionStore, key: bytes, at_s: float, agent: str) -> PageRow | None:
    """Like `row_as_of`, with the robots directives of that version."""
    row, has_directives = _find_as_of(collection.state, key, at_s)
    if row is not None and not has_directives:
        row.apply_directives(_directives_as_of(collection, url_from_key(key), row, agent))
    return row


def _directives_as_of(collection: CollectionStore, url: str, row: PageRow, agent: str) -> RobotsDirectives:
    """The robots directives of a version, from the document in the archive and its header fields."""
    document = document_at(collection, row.place)
    if document is None:
        return RobotsDirectives()
    response = Response(url, row.status, headers=parse_fields(document[0]))
    found = analyse_page(document[1], url=url, content_type=response.headers.get("content-type"))
    return page_directives(found.robots, response, agent)
