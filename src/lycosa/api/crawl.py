"""The library's face: `async with Crawl(url, into=folder) as crawl: async for page in crawl: …`.

Pages come as they are committed, so whatever an iteration saw is on disk. Works in a script, a notebook and any running
event loop. Leaving the block early stops the crawl, lets what is in flight end, and commits. `async for page in
Crawl(…)` alone opens and closes the crawl itself.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import msgspec

from lycosa.api.assembly import assemble_engine, parts_from_settings
from lycosa.crawl import CrawlStats, Engine, Parts, Recrawl, Statistics, literal_hosts, refuse_private
from lycosa.errors import SettingsError
from lycosa.fetch import Downloader
from lycosa.mapping import Resolver
from lycosa.search import IndexFollower
from lycosa.settings import CrawlSettings, merge, settings_of_folder, to_toml
from lycosa.store import CollectionStore, PageRow, is_collection
from lycosa.version import __version__
from lycosa.web import Analyser, Page, UrlFilter, parse_url

PAGES_AHEAD = 1_000  # committed pages that wait for the iterator; beyond it the crawl waits for its reader


class CrawledPage(msgspec.Struct, frozen=True):
    """A committed page. `text` is what is for reading in it, as `lycosa get --text` shows it; `links` are hrefs as the
    page wrote them; `sent_bytes` is the size of the body as sent, `document_bytes` with its content coding undone;
    `duplicate_of` is the URL under which the same document was known before."""

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


class _GivenParts(NamedTuple):
    """The parts that the user brought; the others are made when the event loop runs."""

    resolver: Resolver | None
    downloader: Downloader | None
    filters: Sequence[UrlFilter]
    analysers: Mapping[str, Analyser]
    statistics: Sequence[Statistics]
    now: Callable[[], float] | None
    wall: Callable[[], float] | None

    def parts(self, settings: CrawlSettings) -> Parts:
        return parts_from_settings(settings, **self._asdict())


class Crawl:
    """One crawl into one collection. Settings are keyword arguments, as in `lycosa.toml`: laid over those that the
    collection keeps, as on the command line, or over `settings`, which count as a whole. `analysers` are parts, or
    their names, by the kind or media type of documents that they read; names are kept, so that searches read by them.
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
        now: Callable[[], float] | None = None,
        wall: Callable[[], float] | None = None,
        recrawl: Recrawl | None = None,
        **named: Any,
    ) -> None:
        self.into = Path(into)
        parts = (analysers or {}).items()
        if names := [f"{kind}={part}" for kind, part in parts if isinstance(part, str)]:
            named["analysers"] = names
        kept = settings_of_folder(self.into) if settings is None else None
        base = settings or (merge(kept) if kept else CrawlSettings())
        opened = tuple(dict.fromkeys((*base.typed_hosts, *literal_hosts(urls))))
        self.settings = base.replace(**named, seeds=(*base.seeds, *urls), typed_hosts=opened)
        self._recrawl = recrawl
        readers = {kind: part for kind, part in parts if not isinstance(part, str)}
        self._given = _GivenParts(resolver, downloader, filters, readers, statistics, now, wall)
        self._pages: deque[CrawledPage] = deque()
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
        s = self.settings
        info = {"software": f"lycosa/{__version__}", "format": "WARC File Format 1.1"}
        is_restart = is_collection(self.into)
        if not (s.seeds or is_restart):
            raise SettingsError(f"there is nothing to start from: give a URL, {self.into} is no collection yet")
        parts = self._given.parts(s)  # first: settings that name a part which is not there leave nothing behind
        try:
            self._collection = CollectionStore.create(self.into, warc_info=info, warc_bytes=s.warc_bytes)
            self._collection.save_settings(to_toml(s))
            self._engine = assemble_engine(self._collection, s, parts, is_restart=is_restart, recrawl=self._recrawl)
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
        finally:
            self._collection.close()

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
        return self.engine.add(wanted)

    def stats(self) -> CrawlStats:
        return self.engine.stats()

    def _hear(self, url: str, row: PageRow, page: Page, text: str) -> None:
        self._pages.append(_crawled(url, row, page, text))
        self.engine.is_paused = len(self._pages) >= PAGES_AHEAD
        self._news.set()

    async def __aiter__(self) -> AsyncIterator[CrawledPage]:
        if self._task is None:
            async with self:
                async for page in self:
                    yield page
            return
        if not self._is_read:
            self._is_read = True
            self.engine.listen(self._hear)
        while True:
            while self._pages:
                yield self._pages.popleft()
            self.engine.is_paused = False
            if self._task.done():
                if not self._pages:
                    break
                continue
            self._news.clear()
            await self._news.wait()
        await self._task


def _not_begun() -> SettingsError:
    return SettingsError("the crawl has not begun: use it as `async with Crawl(...) as crawl`")


def _crawled(url: str, row: PageRow, page: Page, text: str) -> CrawledPage:
    return CrawledPage(
        url=url,
        status=row.status,
        title=row.title,
        language=row.language,
        content_type=row.essence,
        sent_bytes=row.size_bytes,
        document_bytes=row.document_bytes,
        depth=row.depth,
        text=text,
        links=page.links.hrefs,
        duplicate_of=row.original,
    )
