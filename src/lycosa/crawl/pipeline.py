"""Pipelines: parts that see each page before it is kept, and may add fields to it or drop it.

    def shop(page):
        page.fields["cents"] = round(100 * float(page.fields["price"]))
        if page.fields["cents"] == 0:
            page.drop("no price", follow=True)

They are called one after the other on the event loop, in the order in which pages arrive: for every document that is
new or has changed, copies too, whatever thread read it. What they add is kept in the row of the page, in the commit
that keeps the page. A dropped page leaves nothing but its URL and the reason. Where a crash comes between a page and
its commit, it is fetched and seen again. Whatever a pipeline raises ends the crawl with a sentence that names it.

A crawl without pipelines has no `Pipelines`. Called by `crawl.pages` for first visits and by `recrawl` for others.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from lycosa.crawl.reading import PageReader, PageVerdict, PreparedPage
from lycosa.errors import PartError
from lycosa.records import Family, FieldRule, Response
from lycosa.store import Batch, State
from lycosa.web import Page

if TYPE_CHECKING:
    from lycosa.web import FieldExtractor, PageMetadata

MAX_FIELD_BYTES = 65_536  # of what pipelines add to a page: it is read with every row
MAX_REASON_CHARS = 200
_KEY = b"drop:"  # + URL key, in META → why a pipeline dropped it; it moves with its host (`store.buckets`)

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(dict[str, Any]).decode


class PipelinePage:
    """A page on its way into the collection. `fields` has those of the selectors, and takes what pipelines add: text,
    numbers, booleans, None, and lists and dictionaries of them. What is not asked for is not computed."""

    def __init__(
        self, response: Response, prepared: PreparedPage, reader: PageReader, fields: "FieldExtractor"
    ) -> None:
        self._response, self._prepared, self._reader, self._extractor = response, prepared, reader, fields
        self.url, self.status, self.headers, self.body = response.url, response.status, response.headers, prepared.body
        self.dropped, self.follows = "", True

    def __repr__(self) -> str:
        return f"<PipelinePage {self.status} {self.url}>"

    def drop(self, reason: str = "dropped", *, follow: bool = False) -> None:
        """Has the page not kept. Its links are not followed, unless `follow` says so. `lycosa why` shows the reason."""
        self.dropped = (" ".join(str(reason).split()) or "dropped")[:MAX_REASON_CHARS]
        self.follows = follow

    @cached_property
    def _page(self) -> Page:
        return self._reader.analyse(self._response, self._prepared)

    @property
    def title(self) -> str:
        return self._page.title or ""

    @property
    def language(self) -> str:
        """The language that the page declares."""
        return self._page.language or ""

    @property
    def content_type(self) -> str:
        """The media type, by header and first bytes."""
        return self._page.media.essence

    @property
    def links(self) -> tuple[str, ...]:
        """The URLs of the links that are followed."""
        assert self._page is not None  # they are there when it is analysed
        return tuple(dict.fromkeys(self._prepared.joined.values()))

    @cached_property
    def text(self) -> str:
        """The main text, as `lycosa get --text` shows it."""
        from lycosa.web import extract_readable  # lazy: its libraries need not be there before the first request is out

        said, analysers = self.headers.get("content-type"), self._reader.analysers
        found = self._page.readable
        return (found or extract_readable(self.body, url=self.url, content_type=said, analysers=analysers)).text

    @cached_property
    def metadata(self) -> "PageMetadata":
        """What the page says of itself."""
        from lycosa.web import page_metadata  # lazy: as above

        return page_metadata(self.body, url=self.url, content_type=self.headers.get("content-type"))

    @cached_property
    def _extracted(self) -> Mapping[str, Any]:
        said = self.headers.get("content-type")
        return self._extractor.extract(self.body, url=self.url, content_type=said) if self._extractor else {}

    @cached_property
    def fields(self) -> dict[str, Any]:
        return dict(self._extracted)

    def added_fields(self) -> dict[str, Any]:
        """What pipelines have added or changed."""
        if "fields" not in self.__dict__:
            return {}
        return {
            name: value
            for name, value in self.fields.items()
            if name not in self._extracted or self._extracted[name] != value
        }


Pipeline = Callable[[PipelinePage], object]


class Pipelines:
    """The pipelines of a crawl, by name. Each page is judged once: the verdict stays with what was prepared of it."""

    def __init__(self, named: Sequence[tuple[str, Pipeline]], rules: Sequence[FieldRule], reader: PageReader) -> None:
        from lycosa.web import FieldExtractor  # lazy: the parser takes 30 ms, which crawls without pipelines save

        self._named, self._extractor, self._reader = list(named), FieldExtractor(rules), reader
        reader.has_pipelines = True

    def __repr__(self) -> str:
        return f"<Pipelines {' '.join(name for name, _ in self._named)}>"

    def judge(self, response: Response, prepared: PreparedPage) -> PageVerdict:
        """Shows the page to the pipelines, the first time; one that drops it is the last that sees it."""
        if prepared.verdict is not None:
            return prepared.verdict
        page, fields = PipelinePage(response, prepared, self._reader, self._extractor), b""
        for name, pipeline in self._named:
            try:
                pipeline(page)
            except Exception as error:  # whatever a user's part raises is the part's
                raise PartError(f"the pipeline {name} failed on {page.url}: {error!r}") from error
            if page.dropped:
                prepared.verdict = PageVerdict(dropped=page.dropped, follows=page.follows)
                return prepared.verdict
            fields = _packed(name, page)
        prepared.verdict = PageVerdict(fields)
        return prepared.verdict


def _packed(name: str, page: PipelinePage) -> bytes:
    added = page.added_fields()
    try:
        packed = _encode(added) if added else b""
        if packed:
            _decode(packed)
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as error:
        allowed = "fields have names and are text, numbers, booleans, None, and lists and dictionaries of them"
        raise PartError(
            f"the pipeline {name} gave a field of {page.url} that cannot be kept ({error}): {allowed}"
        ) from error
    if len(packed) > MAX_FIELD_BYTES:
        sizes = f"{len(packed):,} bytes, where {MAX_FIELD_BYTES:,} can be kept"
        raise PartError(f"the pipeline {name} gave {page.url} fields of {sizes}")
    return packed


def unpack_fields(packed: bytes) -> dict[str, Any]:
    """The fields that pipelines have added to a page."""
    return _decode(packed) if packed else {}


def write_drop(batch: Batch, key: bytes, reason: str) -> None:
    """Remembers why the page with this URL key was dropped."""
    batch.put(Family.META, _KEY + key, reason.encode())


def drop_reason(state: State, key: bytes) -> str:
    """Why a pipeline dropped the page with this URL key; empty if that is not known."""
    return (state.get(Family.META, _KEY + key) or b"").decode("utf-8", "replace")
