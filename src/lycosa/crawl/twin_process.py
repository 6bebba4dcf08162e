"""The process that reads documents for `TwinReaders`: from standard input to standard output, until the former ends.

It says that it has begun by an empty message. For each document it then makes the digests, the page with the links that
are followed, and the WARC records. Nothing that a document does to it is lost: the crawl reads itself what this process
cannot read.
"""

import pickle
import sys
from typing import Any

import msgspec

from lycosa.crawl.twin_readers import SIZE_BYTES, packed
from lycosa.store import members_of
from lycosa.web import Document, Page, analyse_html, base_url, document_digests, follow_links


def main() -> None:
    """Reads documents until there are no more."""
    documents, answers = sys.stdin.buffer, sys.stdout.buffer
    answers.write(packed(()))
    answers.flush()
    while size := documents.read(SIZE_BYTES):
        number, payload, body, document, parts = pickle.loads(documents.read(int.from_bytes(size)))
        try:
            answer = number, *_read(payload, body, document, parts)
        except Exception:  # it comes again, where it ends the crawl
            answer = number, None, document is not None, None, None
        answers.write(packed(answer))
        answers.flush()


def _read(payload: bytes, body: bytes, document: Document | None, parts: Any) -> tuple[Any, ...]:
    digests = document_digests([(payload, body)])[0]
    fingerprint, payload_sha1, digest = digests
    page = document and _page(msgspec.structs.replace(document, fingerprint=fingerprint, digest=digest))
    return digests, page is not None, page, parts and members_of(parts, payload_sha1)


def _page(document: Document) -> Page:
    page, rules, base = analyse_html(document), document.follow, ""
    if rules is None:
        return page
    base = base_url(document.url, page.base_href)
    return msgspec.structs.replace(page, followed=follow_links(page.links, base, rules, page.base_href or ""))
