"""The images of pages that are visited again: the last thing that is compared.

If neither structure nor text of a page has changed, its images are asked for too, each a URL with conditions, a history
and versions of its own. An image that has changed is a change of every page that waits for it: they are told in the
background, since each is read again. A page that nobody remembers to be waiting, after a crash or when very many do,
finds the change at its next visit in the history of the image. Only images that were fetched count (`--images`), and
only those in the main content. An image that was seen within the hour is not asked for again.
Called by `recrawl.recorder` with every visit that is finished, by `recrawl.revisits` before a new version is stored.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from lycosa.crawl import DocumentStore, Shard, joined_links
from lycosa.records import Response
from lycosa.recrawl.change.verdict import UNCHANGED, ChangedImage, ChangeKind, ChangeVerdict, Presence
from lycosa.recrawl.plan import DAY_S, SHORTEST_DAYS
from lycosa.recrawl.recorder import Visit, VisitRecorder, VisitResult
from lycosa.recrawl.versions import VisitRow, history, visit_of
from lycosa.store import LinkRow, PageRow, page_at
from lycosa.web import LinkKind, Steps, url_key

MOST_IMAGES = 64  # of a page, asked for at one visit: those first that were not seen for longest
MOST_PAGES = 2_000  # that wait for images
MOST_WAITING = 1_000  # pages that wait for one image: each is read again when it has changed
MOST_RECENT = 10_000  # images that were visited a moment ago, and may not be committed yet
STEP_BYTES = 50_000  # of a page, read in some milliseconds
MOST_HOPS = 3  # redirects between a page and its image
OPENING = UNCHANGED | {ChangeKind.NEW}  # rows of a history that are no change


class _ShownImage(NamedTuple):
    """An image of a page. `seen_s` is when it was last visited, `changed_s` when it was last found to have changed."""

    href: str  # as the page has it
    url: str
    key: bytes
    seen_s: float
    changed_s: float


class _WaitingPage(msgspec.Struct):
    """A page whose images are visited. `row` is the visit row that its visit left; `found` are the images that have
    changed, which are in its history since `noted_s`."""

    visit: Visit
    row: VisitRow
    shown: dict[bytes, _ShownImage]
    found: list[ChangedImage] = msgspec.field(default_factory=list)
    noted_s: float = 0.0


class ImageRevisits:
    """Compares images and tells their pages. `ask` queues visits of images, but for those that are queued already."""

    def __init__(self, shard: Shard, documents: DocumentStore, recorder: VisitRecorder) -> None:
        self._shard, self._state, self._documents, self._recorder = shard, shard.collection.state, documents, recorder
        self.ask: Callable[[Sequence[bytes]], None] | None = None
        self._pages: dict[bytes, _WaitingPage] = {}
        self._waiting: dict[bytes, dict[bytes, None]] = {}  # the pages that wait for an image
        self._news: deque[tuple[bytes, float, list[_WaitingPage]]] = deque()  # images that changed, when, and who waits
        self._recent: dict[bytes, tuple[float, float]] = {}  # when an image was seen, and when it last changed
        if shard.settings.images:
            recorder.on_finished = self._finished

    def __repr__(self) -> str:
        return f"<ImageRevisits pages={len(self._pages)} images={len(self._waiting)}>"

    def changed_before(self, visit: Visit) -> tuple[ChangedImage, ...]:
        """The images of the stored version that are known to have changed since the page was last seen."""
        return tuple(self._changed(visit, self._images_of(visit))) if self._shard.settings.images else ()

    def _finished(self, visit: Visit, found: VisitResult, row: VisitRow) -> None:
        """A visit is over, that of an image or that of a page."""
        now, is_change = self._shard.now_unix(), found.verdict is not None and found.verdict.is_change
        is_page = found.presence is Presence.PAGE
        if found.verdict is not None and not is_page:
            self._recent[visit.key] = now, now if is_change else self._changed_s(visit.key, row)
            if len(self._recent) > MOST_RECENT:
                del self._recent[next(iter(self._recent))]
        waiting = [self._pages[key] for key in self._waiting.pop(visit.key, ()) if key != visit.key]
        self._forget(visit.key)
        if is_change and waiting:
            self._news.append((visit.key, now, waiting))
            if len(self._news) == 1:
                self._shard.background.start(self._tell_all(), visit.lease.host.host)
        if is_page and found.verdict is not None and not is_change:
            self._look(visit, row)

    def _tell_all(self) -> Steps[None]:
        """Images have changed: the pages that wait for them are told, but for those that were visited again since, or
        forgotten. One image after the other, so that after a crash what a page was not told is what came last."""
        while self._news:
            key, at_s, waiting = self._news[0]
            for page in waiting:
                if self._pages.get(page.visit.key) is page:
                    found = self._in_content(page.visit, [page.shown[key]])
                    self._tell(page, [ChangedImage(one.url, at_s) for one in found], at_s)
                    for _ in range(1 + page.visit.row.document_bytes // STEP_BYTES):
                        yield
            self._news.popleft()

    def _look(self, visit: Visit, row: VisitRow) -> None:
        """Asks for the images of a page whose structure and text have not changed."""
        shown = self._images_of(visit)
        if not shown:
            return
        visit = visit._replace(response=Response(visit.lease.url))  # its body is not needed any more
        oldest = sorted(shown, key=lambda image: image.seen_s)[:MOST_IMAGES]
        page = _WaitingPage(visit, row, {image.key: image for image in oldest})
        self._tell(page, self._changed(visit, shown), self._shard.now_unix())
        if self.ask is not None:
            latest = self._shard.now_unix() - SHORTEST_DAYS * DAY_S
            self.ask([image.key for image in oldest if image.seen_s <= latest])
        if len(self._pages) >= MOST_PAGES:
            self._forget(next(iter(self._pages)))
        self._pages[visit.key] = page
        for key in page.shown:
            waiting = self._waiting.setdefault(key, {})
            if len(waiting) < MOST_WAITING:
                waiting[visit.key] = None

    def _forget(self, key: bytes) -> None:
        """A page waits for its images no more."""
        page = self._pages.pop(key, None)
        for image in page.shown if page else ():
            waiting = self._waiting.get(image, {})
            waiting.pop(key, None)
            if not waiting:
                self._waiting.pop(image, None)

    def _images_of(self, visit: Visit) -> list[_ShownImage]:
        """The images of the stored version that were fetched, with the redirects on the way to them."""
        links = self._documents.links(visit.key)
        if links is None or LinkKind.IMG not in links.kinds:
            return []
        hrefs = tuple(href for href, kind in zip(links.hrefs, links.kinds, strict=True) if kind == LinkKind.IMG)
        joined = joined_links(LinkRow(hrefs, links.base_href), visit.lease.url).joined
        found = {image.key: image for href, url in joined.items() for image in self._fetched(href, url)}
        return list(found.values())

    def _fetched(self, href: str, url: str) -> Iterator[_ShownImage]:
        for _ in range(MOST_HOPS):
            key = url_key(url)
            row = page_at(self._state, key)
            if row is None or not row.file_num or (row.essence and not row.essence.startswith("image/")):
                return
            seen = self._recent.get(key)
            if seen is None:
                visit = visit_of(self._state, key) or VisitRow()
                seen = visit.checked_s or row.fetched_s, self._changed_s(key, visit)
            yield _ShownImage(href, url, key, *seen)
            url = row.location
            if not url:
                return

    def _changed_s(self, key: bytes, visit: VisitRow) -> float:
        """When an image was last found to have changed."""
        if not visit.changes:
            return 0.0
        return max((at_s for at_s, row in history(self._state, key) if row.kind not in OPENING), default=0.0)

    def _changed(self, visit: Visit, shown: Sequence[_ShownImage]) -> list[ChangedImage]:
        since = visit.before.checked_s or visit.row.fetched_s
        found = self._in_content(visit, [image for image in shown if image.changed_s > since])
        return [ChangedImage(image.url, image.changed_s) for image in found]

    def _in_content(self, visit: Visit, images: Sequence[_ShownImage]) -> Sequence[_ShownImage]:
        """The images in the main content of the page: a new logo in the frame is no change of every page."""
        version = self._recorder.stored(visit) if images else None
        if version is None:
            return images
        shown = version.content().images
        return [image for image in images if any(image.href in text for text in shown)]

    def _tell(self, page: _WaitingPage, images: list[ChangedImage], at_s: float) -> None:
        """Records that images have changed, as was seen at `at_s`: the visit of their page found a change after all."""
        visit = page.visit
        if not images or not self._shard.frontier.owns(visit.lease.host.host):
            return
        page.found += images
        page.noted_s = page.noted_s or at_s
        more = f" and {len(page.found) - 1} more" if len(page.found) > 1 else ""
        where = f"picture {page.found[0].url}{more}"
        verdict = ChangeVerdict(ChangeKind.IMAGE, where, len(page.found), pictures=tuple(page.found))
        self._recorder.add_change(visit, verdict, PageRow(visit.row.status, 0.0), None, at_s=page.noted_s)
        page.row = self._recorder.amend(visit, page.row, at_s)
