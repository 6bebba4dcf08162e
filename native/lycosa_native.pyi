"""The page kernel of Lycosa. `lycosa.web.kernel` chooses it; each function has a twin in Python with the same result."""

from collections.abc import Sequence

__version__: str

CONTRACT: int
"""The number of this interface: `lycosa.web.kernel` refuses a kernel that has another one."""

_Head = tuple[str | None, str | None, str | None, str | None, str | None, tuple[str, ...]]
_Links = tuple[tuple[str, ...], bytes, tuple[str, ...], tuple[str, ...]]
_Text = tuple[bytes, tuple[tuple[int, str], ...], str, str, tuple[int, int, int, int], bytes]

def analyse_html(body: bytes, is_xml: bool = False) -> tuple[_Head, _Links, _Text] | None:
    """What a page in UTF-8 says, see `lycosa.web.html.analyse_html`; None if that takes a parser that builds a tree.

    The head is title, description, canonical, language, base href, robots; the links are hrefs, kinds, anchors, rels;
    the text is the visible text, headings, first and last letters of the tags, text codes, digest of the main text.
    """

_Joined = tuple[dict[str, str | None], list[str]]

def join_hrefs(base: str, hrefs: Sequence[str], max_bytes: int) -> _Joined | None:
    """Where hrefs lead, see `lycosa.web.url.join_map`; None if `base` is no http URL or a
    href has half of a surrogate pair.

    The hrefs in the list are left to the parser of URLs; in the mapping they hold their places with None.
    """

def follow_links(
    base: str, columns: _Links, images: bool, obeys_nofollow: bool, max_bytes: int
) -> tuple[tuple[str, ...], bytes, tuple[str, ...], dict[str, str | None], list[str]] | None:
    """The links that are followed: hrefs, kinds, anchors, then as `join_hrefs`. See `lycosa.web.url.follow_links`."""
