"""Rendering in the life of a URL: which answers the browser gets, and what becomes of what it makes of them.

`Rendering` takes HTML pages after they were fetched and before they are read (`crawl.seams.AnswerConverter`). The slots
of their hosts are free from then on, since what they need has to be fetched there, too. A page that was rendered is
read from what the browser shows: links, text, digests. Its archive records are those of the fetch and a conversion of
the response. Where rendering adds nothing (`auto`), fails, or is not wanted, the page goes on as it was fetched. A page
stays leased meanwhile: after a kill it is fetched and rendered again.
"""

import asyncio
from functools import partial
from typing import NamedTuple

import msgspec

from lycosa.crawl import (
    AnswerConverter,
    Engine,
    LeaseAnswer,
    PreparedPage,
    Requisites,
    RunCompanion,
    decoded_body,
    record_metadata,
)
from lycosa.errors import PartError
from lycosa.frontier import Lease
from lycosa.learning import path_pattern
from lycosa.records import Failure, Response
from lycosa.render.browser_link import BrowserLink, PageToRender
from lycosa.render.families import RenderFamilies, adds_something, looks_empty
from lycosa.render.gate import Answered, SubresourceGate
from lycosa.render.messages import BrowserMissing, RenderedDocument, RenderStep, Subresource
from lycosa.settings import read_render_step
from lycosa.store import Fetched, HttpExchange, rendered_exchange
from lycosa.web import FollowedLinks, LinkKind, MediaKind, document_digests, identify_media, parse_url, split_url

MOST_BODY_BYTES = 1 << 20  # of a page that is rendered: it is read here, and must not hold the event loop
LARGE_BYTES = 200_000  # of a rendered document: beyond that it is read beside the event loop
MOST_HELD = 48  # pages that wait for the browser or are in it: their bodies are in memory
_PAGES = frozenset((MediaKind.HTML, MediaKind.XHTML))
_NOT_OF_DOCUMENT = frozenset(("content-encoding", "content-length", "etag", "last-modified"))


class _PageInBrowser(NamedTuple):
    """An answer with the browser; `before` is the page as it was fetched, `family` its host and pattern of paths."""

    answer: LeaseAnswer
    before: PreparedPage
    family: tuple[bytes, str]

    def as_fetched(self) -> LeaseAnswer:
        """The answer as it came."""
        self.answer.prepared = self.before
        return self.answer


class _ReadDocument(NamedTuple):
    """The answer that a browser's document makes; `has_gained`: it has more links than the page as it was fetched, or a
    good deal more text."""

    answer: LeaseAnswer
    has_gained: bool


class Rendering(AnswerConverter, RunCompanion):
    """Has answers rendered and hands the documents on to the loop. It runs on the crawl's event loop alone."""

    def __init__(self, engine: Engine, requisites: Requisites, program: str) -> None:
        self._engine, self._shard, self._program = engine, engine.shard, program
        settings = engine.settings
        self._is_always = settings.render == "always"
        self._steps = tuple(RenderStep(*read_render_step(text)) for text in settings.render_steps)
        self._gate = SubresourceGate(engine.shard, requisites, engine.wake)
        engine.features.observe(self._gate)
        self._families = RenderFamilies()
        self._held: dict[int, _PageInBrowser] = {}
        self._browser: BrowserLink | None = None
        self.rendered = self.failed = 0

    def __repr__(self) -> str:
        return f"<Rendering rendered={self.rendered} held={len(self._held)} {self._browser!r}>"

    @property
    def waiting(self) -> int:
        return len(self._held)

    @property
    def is_full(self) -> bool:
        return len(self._held) >= MOST_HELD

    @property
    def browser(self) -> BrowserLink:
        if self._browser is None:
            agent = dict(self._engine.pages.requests.fields).get("User-Agent", "")
            self._browser = BrowserLink(self._program, agent)
        return self._browser

    # taking pages

    def take(self, answer: LeaseAnswer) -> bool:
        lease, response, reader = answer.lease, answer.response, self._shard.reader
        if not answer.is_document or response.status != 200 or response.truncated or lease.is_head:
            return False
        media = identify_media(response.headers.get("content-type"), response.body[:512])
        if media.kind not in _PAGES or "attachment" in response.headers.get("content-disposition", ""):
            return False
        if len(decoded_body(response, MOST_BODY_BYTES + 1)) > MOST_BODY_BYTES:
            return False
        self._gate.ended(lease, response, None)  # another page may wait for it
        before = reader.digests(response)
        analysed = reader.analyse(response, before)
        family = lease.host.key, path_pattern(split_url(lease.url).path)
        is_empty = looks_empty(analysed, before.body)
        if not self._is_always and not self._families.wants(family, is_empty=is_empty):
            answer.prepared = before
            return False
        self._shard.release(lease, response)
        answer.lease = lease = msgspec.structs.replace(lease, is_claimed=True)  # it holds no slots any more
        self._held[lease.ticket] = _PageInBrowser(answer, before, family)
        document = Subresource(response.status, dict(response.headers), before.body)
        page = PageToRender(lease.url, document, partial(self._fetch, lease), self._steps)
        self.browser.submit(page).add_done_callback(partial(self._on_rendered, lease.ticket))
        return True

    def _fetch(self, lease: Lease, url: str, done: Answered) -> None:
        """What a page asks for."""
        if lease.ticket in self._held:
            self._gate.fetch(url, lease.url, lease.depth + 1, done)
        else:
            done(None)

    # handing them on

    def _on_rendered(self, ticket: int, future: "asyncio.Future[RenderedDocument]") -> None:
        error = asyncio.CancelledError() if future.cancelled() else future.exception()
        held = self._held.get(ticket)
        if held is None:  # cancelled
            return
        if isinstance(error, BrowserMissing):  # the page is put back when the crawl ends
            self._engine.fail(PartError(f"rendering needs a browser: {error}"))
        elif error is not None:
            self.failed += 1
            self._shard.events.write("render-failed", url=held.answer.lease.url, reason=str(error) or repr(error))
            self._hand_on(ticket, held.as_fetched())
        elif len(future.result().html) <= LARGE_BYTES:
            self._take_over(ticket, held, self._read(held, future.result()))
        else:
            reading = asyncio.get_running_loop().run_in_executor(None, self._read, held, future.result())
            reading.add_done_callback(partial(self._on_read, ticket, held))

    def _on_read(self, ticket: int, held: _PageInBrowser, reading: "asyncio.Future[_ReadDocument]") -> None:
        """A large document was read beside the event loop."""
        if ticket not in self._held or reading.cancelled():
            return
        if (error := reading.exception()) is not None:
            self._engine.fail(error if isinstance(error, Exception) else PartError(repr(error)))
        else:
            self._take_over(ticket, held, reading.result())

    def _take_over(self, ticket: int, held: _PageInBrowser, read: _ReadDocument) -> None:
        """Hands on what the browser shows in place of the page, or the page as it was, where that adds nothing."""
        self._families.learn(held.family, has_gained=read.has_gained)
        if read.has_gained or self._is_always:
            self.rendered += 1
            self._hand_on(ticket, read.answer)
        else:
            self._hand_on(ticket, held.as_fetched())

    def _hand_on(self, ticket: int, answer: LeaseAnswer) -> None:
        del self._held[ticket]
        self._engine.on_converted(answer)

    def _read(self, held: _PageInBrowser, found: RenderedDocument) -> _ReadDocument:
        """The answer with what the browser shows in place of the body. Has no state: runs on any thread."""
        answer, before = held.answer, held.before
        fetched, reader, body = answer.response, self._shard.reader, found.html
        headers = {name: value for name, value in fetched.headers.items() if name not in _NOT_OF_DOCUMENT}
        headers["content-type"] = "text/html; charset=utf-8"
        response = msgspec.structs.replace(fetched, headers=headers, body=body)
        prepared = PreparedPage(body, *document_digests(fetched.body, body))
        page = reader.analyse(response, prepared)
        self._add_links(prepared, found.led_to)
        assert before.page is not None
        links, known = set(prepared.joined.values()), set(before.joined.values())
        has_gained = adds_something(known, len(before.page.text_utf8), links, len(page.text_utf8))
        if has_gained or self._is_always:
            prepared.records = self._records(answer, prepared, body)
        return _ReadDocument(
            LeaseAnswer(answer.lease, answer.request, response, answer.fetched_s, prepared), has_gained
        )

    def _add_links(self, prepared: PreparedPage, urls: tuple[str, ...]) -> None:
        """Where scripts wanted to go instead is a link of the page."""
        more = [url.href for text in urls if (url := parse_url(text)) and url.href not in prepared.joined]
        if more and not (prepared.directives.nofollow and self._shard.reader.rules.obeys_nofollow):
            links = prepared.links
            kinds = links.kinds + bytes((LinkKind.REFRESH,)) * len(more)
            anchors = (*links.anchors, *([""] * len(more)))
            joined = {**links.joined, **{url: url for url in more}}
            prepared.links = FollowedLinks((*links.hrefs, *more), kinds, anchors, joined, links.base_href)

    def _records(self, answer: LeaseAnswer, prepared: PreparedPage, body: bytes) -> HttpExchange:
        assert answer.request is not None
        if not self._shard.reader.has_archive:
            return HttpExchange([], prepared.payload_sha1, answer.fetched_s)
        agent = self._shard.reader.rules.agent
        about = {**record_metadata(answer.lease, answer.response, agent), "rendered": "chromium"}
        fetch = Fetched(answer.request, answer.response, answer.fetched_s, about, prepared.payload_sha1)
        return rendered_exchange(fetch, body)

    # the end

    def cancel_all(self) -> None:
        held, self._held = self._held, {}
        self._gate.cancel_all()
        now = self._shard.now()
        for page in held.values():
            gone = Response(page.answer.lease.url, failure=Failure.CANCELLED, started_s=now, ended_s=now)
            self._engine.on_converted(LeaseAnswer(page.answer.lease, None, gone, page.answer.fetched_s))

    def begin(self) -> None:
        return

    async def finish(self, *, is_hurried: bool) -> None:
        replaced = self._browser.replaced if self._browser is not None else 0
        counts = {"pages": self.rendered, "failed": self.failed, "browsers_replaced": replaced}
        self._shard.events.write("rendered", **counts)
        if self._browser is not None:
            await self._browser.finish()

    def hurry(self) -> None:
        return

    def close(self) -> None:
        if self._browser is not None:
            self._browser.close()

    def leftover(self) -> str:
        if not self.failed:
            return ""
        what = "page" if self.failed == 1 else "pages"
        return f"{self.failed:,} {what} could not be rendered, and kept as fetched: log.jsonl says why (render-failed)"
