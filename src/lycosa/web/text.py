"""A page's text: white space collapsed, the text codes, and the page of a document that is text and little else.

The work is done on whole arrays (NumPy), since a page's text is walked once and every character counts: per character
in Python it would be the dearest part of a page. Invariant: linear in the length, never raises. The analysers call it.
"""

import numpy as np

from lycosa.web.document import Document, Page, TextCodes, text_digest
from lycosa.web.encodings import decode_text
from lycosa.web.links import Links

# What the HTML analyser puts between two pieces of text, and around the main element. No parsed text contains NUL.
BETWEEN = "\0"
MAIN_START, MAIN_END = "\1", "\2"

_SPACE = 0x20
# Two pieces of text are two words, except where punctuation clings: "(", "here" and "." of <i>(<a>here</a>.
_CLINGS_TO_LEFT = np.zeros(256, dtype=bool)
_CLINGS_TO_LEFT[list(b".,;:!?)]}%'")] = True
_CLINGS_TO_RIGHT = np.zeros(256, dtype=bool)
_CLINGS_TO_RIGHT[list(b"([{")] = True

_ASCII, _LEADS, _ONE_LEAD = 0x80, 0xC0, 0xC2
# Times the count of each byte: the sum of the codes, the sum of their squares, the number of characters. Right for
# ASCII, and for what 0xC2 leads in, whose other byte is the code itself: spaces that do not break, quotes, signs.
_WEIGHTS = np.zeros((3, 256), dtype=np.int64)
_WEIGHTS[:, :_LEADS] = [np.arange(_LEADS) ** power for power in (1, 2, 0)]
# Characters beyond ASCII up to this many are added up in Python; it takes NumPy as long to begin.
_MANY = 64

_NO_LINKS = Links()


def analyse_text(document: Document) -> Page:
    """The page of plain text. It has no links: an address in prose is a mention, often cut or with a comma after."""
    return page_of_text(document, decode_text(document.body, document.charset).lstrip("\ufeff"))


def page_of_text(document: Document, content: str, *, title: str | None = None, links: Links = _NO_LINKS) -> Page:
    """The page of a document whose text is known: for analysers of formats that have little else to say."""
    visible, main = collapse(content.replace(MAIN_START, " ").replace(MAIN_END, " "))
    return Page(
        url=document.url,
        media=document.media,
        charset=document.charset,
        fingerprint=document.fingerprint,
        digest=document.digest,
        title=title,
        language=document.content_language,
        links=links,
        text_utf8=visible,
        codes=codes_of(visible),
        text_digest=text_digest(main),
    )


def collapse(pieces: str) -> tuple[bytes, bytes]:
    """Text (UTF-8) with each run of white space and controls as one space, and of it the part in the main element.

    `pieces` are joined by `BETWEEN`. Without one main element, between `MAIN_START` and `MAIN_END`, all of it is main.
    """
    data = b" %b " % pieces.encode("utf-8", "replace")  # a space at each end, so that every byte has two neighbours
    codes = np.frombuffer(data, dtype=np.uint8)
    is_solid = codes > _SPACE
    keep = is_solid[1:] | is_solid[:-1]  # a space is dropped where one stands before it; so is the first byte, always
    joints = (codes[:-1] == 0).nonzero()[0]
    clings = _CLINGS_TO_LEFT.take(codes.take(joints + 1)) | _CLINGS_TO_RIGHT.take(codes.take(joints - 1))
    keep[joints[clings] - 1] = False
    kept = np.maximum(codes[1:][keep], _SPACE).tobytes()
    start, end = data.find(b"\1"), data.rfind(b"\2")
    if 0 <= start < end:
        before = np.count_nonzero(keep[:start])
        main = kept[before : before + np.count_nonzero(keep[start:end])].strip()
        return kept.strip(), main
    kept = kept.strip()
    return kept, kept


def codes_of(text: bytes) -> TextCodes:
    """The text codes of valid UTF-8; a character's code is its Unicode code point."""
    octets = np.frombuffer(text, dtype=np.uint8)
    counts = np.bincount(octets, minlength=256)
    total, squares, length = _WEIGHTS.dot(counts).tolist()
    if length + int(counts[_ONE_LEAD]) == len(text):
        return TextCodes(total, squares, int(np.count_nonzero(counts[:_LEADS])), length)
    # Every byte of a longer character has its high bit set: together they are a valid text of their own.
    beyond = octets[octets >= _ASCII].tobytes().decode("utf-8")
    rest = _by_hand(beyond) if len(beyond) < _MANY else _by_sorting(beyond)
    plain = counts[:_ASCII]
    total, squares, length = _WEIGHTS[:, :_ASCII].dot(plain).tolist()
    distinct = int(np.count_nonzero(plain)) + rest.distinct
    return TextCodes(total + rest.total, squares + rest.squares, distinct, length + rest.length)


def _by_hand(characters: str) -> TextCodes:
    codes = list(map(ord, characters))
    return TextCodes(sum(codes), sum(code * code for code in codes), len(set(codes)), len(codes))


def _by_sorting(characters: str) -> TextCodes:
    codes = np.frombuffer(characters.encode("utf-32-le"), dtype=np.uint32).astype(np.int64)
    return TextCodes(int(codes.sum()), int(codes.dot(codes)), len(np.unique(codes)), len(codes))
