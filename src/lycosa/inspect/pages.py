"""The stored pages of a collection, one by URL or all of them; and which URL a user means.

The row of a page says most of it; its header fields and its body are read from the archive when they are first asked
for. Used by `lycosa get`, `lycosa.Collection` and exports.
"""

from base64 import b32encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from lycosa.crawl import followed_links, redirect_location, unpack_fields
from lycosa.errors import LycosaError, NoPage, SettingsError, StoreError
from lycosa.graph import LinkView, outgoing_links
from lycosa.notebook import page_html
from lycosa.records import Family, FieldRule, Response
from lycosa.recrawl import Fields, StoredDocuments, history, no_bodies, version_row
from lycosa.search import past_time, row_as_of
from lycosa.settings import CrawlSettings, InvalidValue, seed
from lycosa.store import (
    REDIRECTS,
    CollectionStore,
    PageRow,
    WarcLocation,
    pack_links,
    page_at,
    unpack_page,
    warc_path,
)
from lycosa.web import (
    DetectedLanguage,
    FieldExtractor,
    LinkRules,
    MediaKind,
    PageMetadata,
    Readable,
    Url,
    analyse_page,
    detect_language,
    extract_article,
    extract_readable,
    extract_text,
    format_timestamp,
    host_key_of,
    language_of_text,
    media_kind,
    page_metadata,
    parse_url,
    url_from_key,
    url_key,
)
from lycosa.wording import folder_word

_TEXTUAL = frozenset((MediaKind.HTML, MediaKind.XHTML, MediaKind.TEXT, MediaKind.FEED, MediaKind.XML))


def asked_url(collection: CollectionStore, text: str) -> Url:
    """The URL that a user means; raises SettingsError for what is none. Without a scheme it is https, as for a seed,
    unless the collection knows it, or its host, by http only."""
    if not text.strip():
        raise SettingsError("no URL was given: ask about one, such as https://example.org/")
    if text.startswith("/") and not text.startswith("//"):
        raise SettingsError(f"{text!r} is the path of a URL: give the whole URL, such as https://example.org{text}")
    url = parse_url(text)
    if url is not None:
        return url
    try:
        url = parse_url(seed(text.strip()))
    except InvalidValue:
        url = None
    if url is None:
        raise SettingsError(f"{text!r} is not an http or https URL, so it is never asked for")
    plain = parse_url(f"http://{text.strip()}") or url
    keys = {each: url_key(each.href) for each in (url, plain)}
    for each, key in keys.items():
        if collection.state.get(Family.URL, key) is not None:
            return each
    return next((each for each, key in keys.items() if collection.state.get(Family.HOST, host_key_of(key))), url)


class StoredPage:
    """A page, or a redirect, as the archive holds it. `headers` are the header fields of its response, `body` what came
    with them, its content coding undone, `text` its readable text, `markdown` the same with its headings, lists,
    tables, code and links. `digest` is that of the body as it was sent, `sent_bytes` its size; `duplicate_of` is the
    URL under which the same document was known before. With `noarchive` the page asks not to be offered to others as a
    copy. `is_current` is False for an earlier version, of which less is known: no title, language or depth. `row` is
    what the state keeps of it.

    What the row does not say is read when it is asked for, so the collection has to be open then.
    """

    def __init__(self, url: str, row: PageRow, contents: StoredDocuments, *, is_current: bool = True) -> None:
        self.url, self.row, self._contents, self.is_current = url, row, contents, is_current
        self.status, self.depth, self.title, self.content_type = row.status, row.depth, row.title, row.essence
        self.sent_bytes, self.duplicate_of, self.noarchive = row.size_bytes, row.original, row.noarchive

    def __repr__(self) -> str:
        return f"<StoredPage {self.status} {self.url}>"

    def _repr_html_(self) -> str:
        answer = f"{self.status} {self.content_type}, fetched {self.fetched}"
        try:
            text = self.text
        except LycosaError as error:  # it says why the body cannot be read
            text = str(error)
        return page_html(self.url, title=self.title, answer=answer, text=text)

    @cached_property
    def _content(self) -> tuple[Fields, bytes]:
        if self.row.is_followed_only:
            how = "it was read for its links, and --keep or --keep-type leaves it out of what is kept"
            raise SettingsError(f"there is nothing of {self.url} to show: {how}")
        if self.row.lacks_body:
            raise SettingsError(f"there is nothing of {self.url} to show: {no_bodies(self._contents.path)}")
        found = self._contents.read(self.row)
        if found is None:
            when = f"the record of {self.url}, fetched {self.fetched},"
            if self._contents.is_left_out(self.row):
                raise StoreError(f"{when} was left out of the central store: it is on the machine of its shard only")
            raise StoreError(f"{when} is damaged and cannot be read: {self._where()}")
        return found

    def _where(self) -> str:
        """Where in the archive the record should be."""
        if not self.row.place:
            return f"it is nowhere in the archive of {self._contents.path}"
        place = WarcLocation.unpack(self.row.place)
        name = warc_path(self._contents.path, place.file_number).name
        return f"byte {place.offset} of {name} in the archive of {self._contents.path}"

    @cached_property
    def fetched(self) -> str:
        return format_timestamp(self.row.fetched_s)

    @property
    def headers(self) -> Fields:
        return self._content[0]

    @property
    def body(self) -> bytes:
        return self._content[1]

    @cached_property
    def text(self) -> str:
        if "_with_markdown" in self.__dict__:  # it was read with its Markdown: once is enough
            return self._with_markdown.text
        said, analysers = self.headers.get("content-type"), self._contents.analysers
        return extract_text(self.body, url=self.url, content_type=said, analysers=analysers)

    @property
    def markdown(self) -> str:
        return self._with_markdown.markdown

    @cached_property
    def _with_markdown(self) -> Readable:
        said, analysers = self.headers.get("content-type"), self._contents.analysers
        return extract_readable(self.body, url=self.url, content_type=said, analysers=analysers, wants_markdown=True)

    @cached_property
    def article(self) -> Readable:
        """Title, text and Markdown as the extra `article` finds them: for news and blogs, and much slower."""
        return extract_article(self.body, url=self.url, content_type=self.headers.get("content-type"))

    @cached_property
    def language(self) -> str:
        """The language that the page declares, `de-AT`; where it declares none, that which its text is written in;
        empty if that cannot be told. To find it out PDF documents and lost bodies are not read."""
        declared = self.row.language
        if declared or not self.has_body or media_kind(self.content_type) not in _TEXTUAL:
            return declared
        with suppress(StoreError, SettingsError):
            return language_of_text(self.text)
        return ""

    @cached_property
    def detected_language(self) -> DetectedLanguage:
        """The language that the text is written in, and how sure that is, whatever the page declares."""
        return detect_language(self.text)

    @cached_property
    def metadata(self) -> PageMetadata:
        """What the page says of itself: title, author, dates, description, image, and its structured data."""
        return page_metadata(self.body, url=self.url, content_type=self.headers.get("content-type"))

    @cached_property
    def fields(self) -> Mapping[str, Any]:
        """The fields that the settings of the collection extract from its pages, by name, empty ones where there is no
        body; and those that pipelines have added, which are known of the current version only."""
        extractor, added = self._contents.extractor, unpack_fields(self.row.fields)
        if not extractor:
            return added
        said = self.headers.get("content-type") if self.has_body else None
        return {**extractor.extract(self.body if self.has_body else b"", url=self.url, content_type=said), **added}

    @cached_property
    def links(self) -> tuple[LinkView, ...]:
        """The links that a crawl follows from here, as absolute URLs, each once, with kind and anchor text."""
        state = self._contents.collection.state
        packed = state.get(Family.LINK, url_key(self.url)) if self.is_current else None
        if packed or not self._has_unstored_links:
            return outgoing_links(packed, self.url)
        said = self.headers.get("content-type")
        page = analyse_page(self.body, url=self.url, content_type=said, analysers=self._contents.analysers)
        links = followed_links(page, LinkRules(agent=CrawlSettings().agent), self.url)
        return outgoing_links(pack_links(links), self.url)

    @property
    def _has_unstored_links(self) -> bool:
        """Whether the body may have links that no row holds: an earlier version, or an archive from elsewhere."""
        return not (self.is_current and not self.row.links) and bool(self.row.place) and not self.is_redirect

    @cached_property
    def versions(self) -> "tuple[StoredPage, ...]":
        """The versions that were stored before this one, the oldest first."""
        found = history(self._contents.collection.state, url_key(self.url))
        rows = (version_row(at_s, change) for at_s, change in found if change.is_version)
        here = self.row.place, self.row.payload_sha1
        earlier = (row for row in rows if row.fetched_s < self.row.fetched_s and (row.place, row.payload_sha1) != here)
        return tuple(StoredPage(self.url, row, self._contents, is_current=False) for row in earlier)

    @property
    def digest(self) -> str:
        sha1 = self.row.payload_sha1
        return f"sha1:{b32encode(sha1).decode()}" if sha1 else ""

    @property
    def record_id(self) -> str:
        """The WARC-Record-ID of its record; there is one where `has_body`."""
        return self._contents.record_id(self.row)

    @property
    def has_body(self) -> bool:
        """Whether the archive keeps its body, as far as its row says."""
        return bool(self.row.place)

    @property
    def is_redirect(self) -> bool:
        return self.status in REDIRECTS

    @property
    def leads_to(self) -> str:
        """The URL that a redirect leads to; nothing if it does not say, or the page is none."""
        if not self.is_redirect or "location" not in self.headers:
            return ""
        written = redirect_location(Response(self.url, self.status, headers=self.headers))
        target = parse_url(written, self.url)
        return target.href if target else written


class StoredPages:
    """The pages of an open collection; `fields` are extracted in place of those that its settings name."""

    def __init__(self, collection: CollectionStore, *, fields: Sequence[FieldRule] | None = None) -> None:
        self._collection, self._contents = collection, StoredDocuments(collection)
        if fields is not None:
            self._contents.extractor = FieldExtractor(fields)

    def __repr__(self) -> str:
        return f"<StoredPages of {self._collection.path}>"

    def get(self, text: str, *, as_of: str = "") -> StoredPage:
        """The page, or redirect, of a URL, as it is stored or as of a time; raises NoPage if there is none."""
        url = asked_url(self._collection, text)
        row = self._row(url_key(url.href), as_of)
        if row is None or row.has_failed or not (row.place or row.lacks_body):
            path, when = self._collection.path, f" as of {as_of}" if as_of else ""
            raise NoPage(
                f"{path} holds no page {url.href}{when}: lycosa why {url.href} --in {folder_word(path)} says more"
            )
        page = StoredPage(url.href, row, self._contents, is_current=not as_of)
        assert page.headers is not None  # read now: the collection may be closed later
        return page

    def captures(self, url: str) -> list[StoredPage]:
        """Every stored answer of a normalised URL that has a record, the oldest first."""
        key = url_key(url)
        found = {
            row.place: StoredPage(url, row, self._contents, is_current=False)
            for row in (version_row(at_s, change) for at_s, change in history(self._collection.state, key))
            if row.place
        }
        today = page_at(self._collection.state, key)
        if today is not None and (today.place or today.lacks_body):
            found[today.place] = StoredPage(url, today, self._contents)
        return sorted(found.values(), key=lambda page: page.row.fetched_s)

    def has(self, text: str) -> bool:
        """Whether a page is stored under a URL."""
        try:
            row = page_at(self._collection.state, url_key(asked_url(self._collection, text).href))
        except SettingsError:  # it is no URL
            return False
        return row is not None and row.is_stored_page

    def _row(self, key: bytes, as_of: str) -> PageRow | None:
        if as_of and (at_s := past_time(as_of)) is not None:
            return row_as_of(self._collection.state, key, at_s)
        return page_at(self._collection.state, key)

    def page(self, url: str, row: PageRow) -> StoredPage:
        """The page of a current row that was read from the state."""
        return StoredPage(url, row, self._contents)

    def all(self, host_key: bytes = b"", *, most: int | None = None) -> Iterator[StoredPage]:
        """The stored pages of one host or of all, in the order of the keys; redirects are left out."""
        rows = self._collection.state.walk(Family.PAGE, host_key, host_key + b"\1" if host_key else None)
        pages = ((key, unpack_page(packed)) for key, packed in rows)
        return (
            StoredPage(url_from_key(key), row, self._contents)
            for key, row in islice(((key, row) for key, row in pages if row.is_stored_page), most)
        )


def page_of(path: Path, url: str, *, as_of: str = "", fields: Sequence[FieldRule] | None = None) -> StoredPage:
    """The page of a URL in the collection at `path`; see `StoredPages.get`."""
    with CollectionStore.open(path, read_only=True) as collection:
        return StoredPages(collection, fields=fields).get(url, as_of=as_of)
