"""The tables of one document, made with the crawler's own analyser, so that a crawler finds in them what it would find
in the document.

Pure. Called by `augment.site` for files and by the middleware for responses.
"""

from typing import NamedTuple

from lycosa.web import tol, tvi
from lycosa.web.links import Links
from lycosa.web.page import links_of
from lycosa.web.table import Refusal, digest_of


class Wanted(NamedTuple):
    """What the publisher asks for: which origin the site has, and which elements are volatile beside the marked."""

    site: str = ""
    selector: str = ""


class Tables(NamedTuple):
    """The tables of a document as bytes; `tvi` is None where it has no volatile parts, `refused` says why there is no
    table of links."""

    tol: bytes | None
    tvi: bytes | None
    refused: str = ""


NOT_A_DOCUMENT = "its kind has no links"


def tables_of(body: bytes, wanted: Wanted, *, name: str, content_type: str | None, tells_of_tvi: bool = True) -> Tables:
    """The tables of `body`; `tells_of_tvi`: whether that of links says that there is the other, if there is. Raises
    ValueError for a selector that is none."""
    found = links_of(body, url=f"http://site.invalid/{name}", content_type=content_type)
    if found is None:
        return Tables(None, None, NOT_A_DOCUMENT)
    volatile = tvi.of_document(body, is_xml=tvi.is_xml(body, content_type), selector=wanted.selector, of=name)
    volatile_bytes = tvi.write(volatile) if volatile else None
    if isinstance(volatile_bytes, Refusal):
        volatile = volatile_bytes = None
    made = tol.write(
        tol.Tol(
            found.links or Links(),
            base_href=found.base_href or "",
            robots=", ".join(found.robots),
            of=name,
            document=volatile.document if volatile else digest_of(body),
            site=wanted.site,
            selector=wanted.selector,
            volatile=len(volatile.parts) if volatile and tells_of_tvi else 0,
        )
    )
    return Tables(None, volatile_bytes, made) if isinstance(made, Refusal) else Tables(made, volatile_bytes)
