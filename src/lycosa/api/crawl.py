"""The library's face: `async with Crawl(url, into=folder) as crawl: async for page in crawl: …`.

Pages come as they are committed, so whatever an iteration saw is on disk. Works in a script, a notebook and any running
event loop. Leaving the block early stops the crawl, lets what is in flight end, and commits. `async for page in
Crawl(…)` alone opens and closes the crawl itself.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import msgspec

from lycosa.api.assembly import assemble_engine, parts_from_settings
from lycosa.crawl import (
    CommittedPage,
    CrawlStats,
    Engine,
    Parts,
    Pipeline,
    Recrawl,
    Statistics,
    literal_hosts,
    refuse_forgotten,
    refuse_private,
    unpack_fields,
)
from lycosa.errors import SettingsError
from lycosa.fetch import Downloader
from lycosa.mapping import Resolver
from lycosa.notebook import page_html
from lycosa.search import IndexFollower
from lycosa.settings import (
    CrawlSettings,
    NamedSettings,
    merge,
    read_field,
    save_secrets,
    settings_of_folder,
    take_out_secrets,
    to_toml,
)
from lycosa.store import CollectionStore, is_collection
from lycosa.version import __version__
from lycosa.web import Analyser, UrlFilter, parse_url

if TYPE_CHECKING:
    from lycosa.web import FieldExtractor

# Committed pages that wait for the iterator, and their bytes: beyond either the crawl waits for its reader.
PAGES_AHEAD = 1_000
BYTES_AHEAD = 64 << 20


class CrawledPage(msgspec.Struct, frozen=True):
    """A committed page. `headers` are the header fields of the response by lower-case name, `body` is what came with
    them, its content coding undone; `text` is what is for reading in it; `links` are hrefs as the page wrote
    them; `sent_bytes` is the size of the body as sent, `document_bytes` with its content coding undone;
    `duplicate_of` is the URL under which the same document was known before; `fields` are those that the selectors in
    the settings extract and pipelines have added."""

    url: str
    status: int
    title: str
    language: str
    content_type: str
    sent_bytes: int
    document_bytes: int
    depth: int
    text: str
    links: tuple[str, ...]
    duplicate_of: str
    headers: dict[str, str]
    body: bytes
    fields: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"<CrawledPage {self.status} {self.url}>"

    def _repr_html_(self) -> str:
        return page_html(self.url, title=self.title, answer=f"{self.status} {self.content_type}", text=self.text)

    @property
    def markdown(self) -> str:
        """What is for reading in the page, as Markdown; by the built-in analyser."""
        from lycosa.web import extract_readable  # lazy: 11 ms that the first request of a crawl need not wait for

        said = self.headers.get("content-type")
        return extract_readable(self.body, url=self.url, content_type=said, wants_markdown=True).markdown

    @property
    def kept_bytes(self) -> int:
        """What the page takes of memory, near enough."""
        return len(self.body) + 2 * len(self.text) + 100 * len(self.links)


class _GivenParts(NamedTuple):
    """The parts that the user brought; the others are made when the event loop runs."""

    resolver: Resolver | None
    downloader: Downloader | None
    filters: Sequence[UrlFilter]
    analysers: Mapping[str, Analyser]
    statistics: Sequence[Statistics]
    pipelines: Sequence[Pipeline]
    now: Callable[[], float] | None
    wall: Callable[[], float] | None

    def parts(self, settings: CrawlSettings) -> Parts:
        return parts_from_settings(settings, **self._asdict())


class Crawl:
    """One crawl into one collection. Settings are keyword arguments, as in `lycosa.toml`: laid over those that the
    collection keeps, as on the command line, or over `settings`, which count as a whole. `analysers` are parts, or
    their names, by the kind or media type of documents that they read; names are kept, so that searches read by them.
    `pipelines` are called with each page before it is kept (`crawl.pipeline`), or named likewise.
    """

    def __init__(
        self,
        *urls: str,
        into: str | Path,
        settings: CrawlSettings | None = None,
        resolver: Resolver | None = None,
        downloader: Downloader | None = None,
        filters: Sequence[UrlFilter] = (),
        analysers: Mapping[str, Analyser | str] | None = None,
        statistics: Sequence[Statistics] = (),
        pipelines: Sequence[Pipeline | str] = (),
        now: Callable[[], float] | None = None,
        wall: Callable[[], float] | None = None,
        recrawl: Recrawl | None = None,
        **named: Unpack[NamedSettings],
    ) -> None:
        self.into = Path(into)
        parts, values = (analysers or {}).items(), dict[str, Any](named)
        if names := [f"{kind}={part}" for kind, part in parts if isinstance(part, str)]:
            values["analysers"] = names
        if chosen := [part for part in pipelines if isinstance(part, str)]:
            values["pipelines"] = chosen
        kept = settings_of_folder(self.into) if settings is None else None
        base = settings or (merge(kept) if kept else CrawlSettings())
        refuse_forgotten((url for seed in urls if (url := parse_url(seed))), self.into)
        opened = tuple(dict.fromkeys((*base.typed_hosts, *literal_hosts(urls))))
        self.settings = base.replace(**values, seeds=(*base.seeds, *urls), typed_hosts=opened)
        self._recrawl = recrawl
        readers = {kind: part for kind, part in parts if not isinstance(part, str)}
        callables = [part for part in pipelines if not isinstance(part, str)]
        self._given = _GivenParts(resolver, downloader, filters, readers, statistics, callables, now, wall)
        self._pages: deque[CrawledPage] = deque()
        self._waiting_bytes = 0
        self._news = asyncio.Event()
        self._task: asyncio.Task[CrawlStats] | None = None
        self._engine: Engine | None = None
        self._collection: CollectionStore | None = None
        self._is_read = False
        self.following = IndexFollower(self.into) if self.settings.index else None
        self.is_indexing = False  # the crawl is over, the search index is not

    def __repr__(self) -> str:
        return f"<Crawl into {self.into} {self._engine!r}>"

    @property
    def engine(self) -> Engine:
        if self._engine is None:
            raise _not_begun()
        return self._engine

    async def __aenter__(self) -> "Crawl":
        taken = take_out_secrets(self.settings, self.into)
        s = self.settings = taken.settings
        info = {"software": f"lycosa/{__version__}", "format": "WARC File Format 1.1"}
        is_restart = is_collection(self.into)
        if not s.seeds and settings_of_folder(self.into) is None:
            raise SettingsError(f"there is nothing to start from: give a URL, {self.into} is no collection yet")
        if s.has_sessions:
            from lycosa.sessions import require_secrets  # lazy: for crawls that send credentials

            require_secrets(s, self.into, taken.secrets)
        parts = self._given.parts(s)  # first: settings that name a part which is not there leave nothing behind
        try:
            self._collection = CollectionStore.create(self.into, warc_info=info, warc_bytes=s.warc_bytes)
            save_secrets(self.into, taken.secrets)
            self._engine = assemble_engine(self._collection, s, parts, is_restart=is_restart, recrawl=self._recrawl)
            self._collection.save_settings(to_toml(s))  # after it: settings that are refused do not stay
        except BaseException:
            if self._collection is not None:
                self._collection.close()
            await parts.downloader.close()
            await parts.resolver.close()
            raise
        self._task = asyncio.get_running_loop().create_task(self._run())
        return self

    async def _run(self) -> CrawlStats:
        try:
            if self.following is None:
                return await self.engine.run()
            self.following.take_texts(self.engine)
            self.following.start()
            try:
                return await self.engine.run()
            finally:
                self.is_indexing = True
                await self.following.finish()
        finally:
            self._news.set()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._task is not None
        assert self._collection is not None
        try:
            if not self._task.done():
                self.stop()
            await self._task
            self._prune(self._collection)
        finally:
            self._collection.close()

    def _prune(self, collection: CollectionStore) -> None:
        """Drops the versions that the settings do not keep."""
        if self.settings.keep_versions is None and self.settings.keep_days is None:
            return
        from lycosa.removal import VersionLimits, prune_versions  # lazy: only these settings need it, and tantivy

        limits = VersionLimits(self.settings.keep_versions, self.settings.keep_days)
        prune_versions(collection, limits, now_s=self.engine.shard.now_unix())

    async def finish(self) -> CrawlStats:
        """Waits for the end of the crawl."""
        if self._task is None:
            raise _not_begun()
        return await asyncio.shield(self._task)

    def stop(self, reason: str = "stopped") -> None:
        """Ends the crawl gently; called a second time, at once. The search index is not waited for."""
        if self.following is not None:
            self.following.is_hurried = True
        self.engine.stop(reason)

    def add(self, *urls: str) -> int:
        """Feeds URLs to the running crawl; returns how many were new."""
        parsed = [parse_url(url) for url in urls]
        if None in parsed:
            raise SettingsError(f"{urls[parsed.index(None)]!r} is not an http or https URL")
        wanted = [url for url in parsed if url is not None]
        refuse_private(wanted, self.settings, self.into)
        refuse_forgotten(wanted, self.into)
        return self.engine.intake.add(wanted)

    def stats(self) -> CrawlStats:
        return self.engine.stats()

    def _hear(self, committed: CommittedPage) -> None:
        page = _crawled(committed, self._extractor)
        self._pages.append(page)
        self._waiting_bytes += page.kept_bytes
        self.engine.waits_for_consumer = len(self._pages) >= PAGES_AHEAD or self._waiting_bytes >= BYTES_AHEAD
        self._news.set()

    @cached_property
    def _extractor(self) -> "FieldExtractor":
        from lycosa.web import FieldExtractor  # lazy: its libraries need not be there before the first request is out

        return FieldExtractor([read_field(entry) for entry in self.settings.fields])

    async def __aiter__(self) -> AsyncIterator[CrawledPage]:
        if self._task is None:
            async with self:
                async for page in self:
                    yield page
            return
        while pages := await self.take(1):
            yield pages[0]

    async def take(self, most: int) -> list[CrawledPage]:
        """The next committed pages, one at least and at most so many; none when the crawl is over. Raises what ended
        it."""
        if self._task is None:
            raise _not_begun()
        if not self._is_read:
            self._is_read = True
            self.engine.features.listen(self._hear)
        while not self._pages and not self._task.done():
            self.engine.waits_for_consumer = False
            self._news.clear()
            await self._news.wait()
        if not self._pages:
            await self._task
        pages = [self._pages.popleft() for _ in range(min(most, len(self._pages)))]
        self._waiting_bytes -= sum(page.kept_bytes for page in pages)
        return pages


def _not_begun() -> SettingsError:
    return SettingsError("the crawl has not begun: use it as `async with Crawl(...) as crawl`")


def _crawled(committed: CommittedPage, extractor: "FieldExtractor") -> CrawledPage:
    row, said = committed.row, committed.headers.get("content-type")
    fields = extractor.extract(committed.body, url=committed.url, content_type=said) if extractor else {}
    return CrawledPage(
        url=committed.url,
        status=row.status,
        title=row.title,
        language=row.language,
        content_type=row.essence,
        sent_bytes=row.size_bytes,
        document_bytes=row.document_bytes,
        depth=row.depth,
        text=committed.text,
        links=committed.page.links.hrefs,
        duplicate_of=row.original,
        headers=dict(committed.headers),
        body=committed.body,
        fields={**fields, **unpack_fields(row.fields)},
    )
