"""A page's text: white space collapsed, the text codes, and the page of a document that is text and little else.

Linear in the length, never raises. Called by the analysers.
"""

import re

import numpy as np

from lycosa.web.document import Document, Page, TextCodes, text_digest
from lycosa.web.encodings import decode_text
from lycosa.web.links import Links

# What an analyser puts between two pieces of text. No parsed text contains NUL.
BETWEEN = "\0"
# Two pieces of text are two words, except where punctuation clings: "(", "here" and "." of <i>(<a>here</a>.
_CLINGING = re.compile("\0(?:(?=[.,;:!?)\\]}%'])|(?<=[(\\[{]\0)[\0- ]*)")
_ASCII = bytes(range(128))
_CONTROLS_AS_SPACES = bytes(max(byte, 0x20) for byte in range(256))
# What each byte of ASCII adds to the codes: itself, its square, and one to the length.
_CODES = np.arange(len(_ASCII))
_SUMS = np.stack([_CODES, _CODES**2, np.ones_like(_CODES)], axis=1)

_NO_LINKS = Links()


def analyse_text(document: Document) -> Page:
    """The page of plain text. It has no links: an address in prose is a mention, often cut or with a comma after."""
    return page_of_text(document, decode_text(document.body, document.charset).lstrip("\ufeff"))


def page_of_text(document: Document, content: str, *, title: str | None = None, links: Links = _NO_LINKS) -> Page:
    """The page of a document whose text is known: for analysers of formats that have little else to say."""
    visible = collapse(content)
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
        text_digest=text_digest(visible),
    )


def collapse(pieces: str) -> bytes:
    """Pieces of text, joined by `BETWEEN`, as UTF-8 with each run of white space and controls as one space."""
    text = _CLINGING.sub("", pieces).encode("utf-8", "replace")
    return b" ".join(text.translate(_CONTROLS_AS_SPACES).split())


def codes_of(text: bytes) -> TextCodes:
    """The text codes of valid UTF-8; a character's code is its Unicode code point."""
    counts = np.bincount(np.frombuffer(text, dtype=np.uint8), minlength=len(_ASCII))[: len(_ASCII)]
    beyond = [ord(character) for character in text.translate(None, _ASCII).decode()]  # without ASCII it is still UTF-8
    total, squares, length = (counts @ _SUMS).tolist()
    return TextCodes(
        total=total + sum(beyond),
        squares=squares + sum(code * code for code in beyond),
        distinct=int(np.count_nonzero(counts)) + len(set(beyond)),
        length=length + len(beyond),
    )
