"""The page kernel of Lycosa. `lycosa.web.kernel` chooses it; each function has a twin in Python with the same result."""

from collections.abc import Callable, Sequence

__version__: str

CONTRACT: int
"""The number of this interface: `lycosa.web.kernel` refuses a kernel that has another one."""

ISAL_MAJOR_VERSION: int
"""That of the ISA-L which `MemberWriter` can call."""

MAIN_TEXT_VERSION: int
"""That of `lycosa.web.document`: what the main text of a document is."""

_Head = tuple[str | None, str | None, str | None, str | None, str | None, tuple[str, ...]]
_Links = tuple[tuple[str, ...], bytes, tuple[str, ...], tuple[str, ...]]
_Text = tuple[bytes, tuple[tuple[int, str], ...], str, str, tuple[int, int, int, int], bytes]

_Readable = tuple[str, str, list[str], str, str, str]
_Joined = tuple[dict[str, str | None], list[str]]
_Rules = tuple[bool, bool, int, int]  # images, obeys nofollow, how many links, bytes of a URL

class PageLinks:
    """The links of a page, see `lycosa.web.links.Links`."""

    def __len__(self) -> int: ...
    def is_ascii(self) -> bool:
        """Are all addresses?"""

    def kinds(self) -> bytes: ...
    def columns(self) -> _Links: ...

class Followed:
    """The links of a page that are followed, see `lycosa.web.url.FollowedLinks`, with all that is looked up of them."""

    def __len__(self) -> int: ...
    def counts(self) -> tuple[int, int]:
        """How many hrefs lead somewhere, and how many are left to the parser of URLs."""

    def row(self) -> bytes:
        """The packed row, see `lycosa.store.LinkRow`."""

    def columns(self) -> tuple[tuple[str, ...], bytes, tuple[str, ...]]:
        """Hrefs, kinds and anchors."""

    def urls(self, start: int, end: int) -> list[str]:
        """Where those links lead that stand from `start` to `end`."""

    def joined(self, hrefs: tuple[str, ...]) -> _Joined:
        """Where its hrefs lead, as from `join_hrefs`."""

def analyse_html(
    body: bytes,
    encoding: str,
    is_xml: bool = False,
    wants_main: bool = False,
    wants_simhash: bool = False,
    follow: tuple[str, _Rules] | None = None,
) -> tuple[_Head, PageLinks, _Text, _Readable | None, bytes, Followed | None, bool, bool] | None:
    """What a page says, see `lycosa.web.html.analyse_html`; None if that takes a parser that builds a tree.

    The head is title, description, canonical, language, base href, robots; then come the links;
    the text is the visible text, headings, first and last letters of the tags, text codes, digest of the main element.
    With `wants_main` comes what is for reading, as from `read_readable`, then with `wants_simhash` the SimHash of its
    text. With `follow`, the page's URL and the rules, come the links that are followed, unless the base is odd. Then whether only the beginning
    was read, see `safe_length`, and whether there are marks of volatile parts.
    """

def read_readable(
    body: bytes, encoding: str, is_xml: bool, leaves_unshown: bool, wants_markdown: bool
) -> _Readable | None:
    """What is for reading in an HTML document, see `lycosa.web.readable`: title, main text, headings, the canonical
    URL and the base as they are written, and Markdown if it is wanted, its targets as they are written. None after a
    fault of the kernel."""

def join_hrefs(base: str, hrefs: tuple[str, ...], max_bytes: int) -> _Joined | None:
    """Where hrefs lead, see `lycosa.web.url.join_map`; None if `base` is no http URL or a
    href has half of a surrogate pair.

    The hrefs in the list are left to the parser of URLs; in the mapping they hold their places with None.
    """

def follow_links(base: str, base_href: str, columns: _Links, rules: _Rules) -> Followed | None:
    """The links that are followed, see `lycosa.web.url.follow_links`; None as from `join_hrefs`."""

def document_digests(answers: Sequence[tuple[bytes, bytes]]) -> list[tuple[int, bytes, bytes]]:
    """See `lycosa.web.document.document_digests`."""

_RequestParts = tuple[str, str, bytes, bool, str]
_AnswerParts = tuple[bytes, int, int | None, bytes]
_RecordParts = tuple[bytes, bytes, bytes, bytes, bytes, bytes, bytes]

class MemberWriter:
    """Makes WARC records as gzip members, with the ISA-L of the library at `path`; OSError if there is none in it."""

    def __new__(cls, path: str) -> MemberWriter: ...
    def exchanges(
        self, fetches: Sequence[tuple[_RequestParts, _AnswerParts, _RecordParts]]
    ) -> list[list[bytes] | None]:
        """The records of each fetch, see `lycosa.store.warc_record`: request, response or revisit, metadata if there are
        fields for it. None if a string has other than ASCII characters.

        A request is URL, method, header lines, whether they name the host, and the address of the host; an answer is
        its header block, status, the length of the body that the block must name (None: whatever it says), and the body
        that is kept. Of the record there are type, lines before the payload digest, that digest, lines behind it, date,
        16 random bytes, and the fields of the metadata.
        """

_Html = tuple[str, bool, bool, bool, tuple[str, _Rules] | None]  # what `analyse_html` takes beside the bytes
_Read = tuple[int, tuple[int, bytes, bytes], bool, object, list[bytes] | None]

class Readers:
    """Threads that read documents without Python, see `lycosa.crawl.reading`. `fileno()` can be read from when `take` has
    something to give. OSError where the system gives no thread."""

    def __new__(cls, threads: int, writer: MemberWriter | None) -> Readers: ...
    def fileno(self) -> int: ...
    def submit(
        self, number: int, payload: bytes, body: bytes, html: _Html | None, parts: object | None, is_large: bool
    ) -> None:
        """Hands a document over: HTML to be read, and its parts as `MemberWriter` takes them, with any digest. One whose
        fingerprint was seen lately is not read, unless it is large, and has no records made."""

    def take(self, waits: bool) -> list[_Read]:
        """What was made since: number, digests, whether the document was read, what `analyse_html` would give, records.
        With `waits` it is at least one."""

    def close(self) -> None:
        """Ends the threads, each after the document that it is reading."""

class RecentUrls:
    """URLs seen a moment ago, see `lycosa.frontier.RecentUrls`: two generations of hashes."""

    def __init__(self, generation: int) -> None: ...
    def unseen(self, urls: list[str] | Followed) -> list[str]:
        """Notes URLs, also those that the links of a page lead to; those that were not among the recent ones are returned, each once."""

def near_hashes(
    asked: bytes, segments: list[tuple[object, int, int]], newest: bytes, first: int, bounds: tuple[int, int]
) -> tuple[bytes, bytes, bytes]:
    """The pairs of SimHashes that differ in so many sure bits at the most, see `lycosa.duplicates.index`: places of those
    asked for, numbers of entries and distances, of eight bytes, the lowest first, in the order of places and numbers.
    Entries are those of segments, mapped files with the number of their first entry and the bits of their parts, of
    which so many entries are looked at, and the newest, which are numbered from `first` on."""

_Columns = tuple[bytes, bytes, bytes, bytes, bytes, bytes, bytes]

def link_columns(pages: list[object]) -> tuple[_Columns, tuple[bytes, bytes, bytes]]:
    """The links of pages, see `lycosa.graph.columns.from_pages`: the columns and the table of texts. Numbers are of eight
    bytes, the lowest first, flags of one. Raises UnicodeEncodeError for half a character."""

def hash_page(text: bytes, frame: bytes) -> tuple[int, int]:
    """The XXH3 hashes of a text with what frames it, with the digits of the text and without them."""

def detect_charset(body: bytes, http_charset: str | None, form: str) -> str:
    """The name of the encoding of a document, see `lycosa.web.charset.detect_charset`."""

def to_utf8(body: bytes, encoding: str) -> bytes:
    """A document as UTF-8 without a byte order mark, see `lycosa.web.charset.to_utf8`."""

def safe_length(body: bytes) -> int:
    """How many of the body's bytes can be parsed safely, see `lycosa.web.hazard.safe_length`."""

def panic(is_reading: bool) -> None:
    """Panics, for tests. A panic is an exception like others; while a page is read, the page goes to the twin. Standard
    error says why."""

def simhash(text: str, least_words: int) -> bytes:
    """See `lycosa.web.similarity.simhash`."""

def identifiers(text: str) -> list[str]:
    """The words of a text in which another word begins (`getElementById`), each once; none of 50 bytes or more."""

class TermMap:
    """The words of one tokeniser that were asked for: `tokens` gives the terms of words."""

    def __init__(self, tokens: Callable[[str], list[str]]) -> None: ...
    def terms(self, text: str) -> str:
        """The terms of a text with spaces between them; words of 50 bytes and more are as they are."""

    def document(
        self,
        head: str,
        language: str,
        texts: tuple[str, str, bytes],
        url: str,
        url_words: str,
        of_url: TermMap | None,
        of_parts: TermMap | None,
    ) -> tuple[str, str]:
        """The document of a page as JSON: `head`, an object of its other values, with the terms of its title, headings
        and text in fields of `language`, those of the words of its URL, which `of_url` knows, and those of the words in
        the identifiers of its title, URL and text, each once, which `of_parts` knows; None is this map. Second, these
        words where they are not ASCII, and in no field yet."""

class TellingWords:
    """Words with the number of the one language that each is of."""

    def __init__(self, words: list[tuple[str, int]]) -> None: ...
    def counts(self, text: bytes, characters: int) -> list[int]:
        """How many different ones of each language are among the first characters of a text, in small letters."""
