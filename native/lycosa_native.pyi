"""The page kernel of Lycosa. `lycosa.web.kernel` chooses it; each function has a twin in Python with the same result."""

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
