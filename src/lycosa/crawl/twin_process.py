"""The process that reads documents for `TwinReaders`: from standard input to standard output, until the former ends.

It says that it has begun by an empty message. For each document it then makes the digests, the page with the links that
are followed, and the WARC records. Nothing that a document does to it is lost: the crawl reads itself what this process
cannot read.
"""

import gc
import pickle
import sys
from typing import Any

import msgspec

from lycosa.crawl.twin_readers import PIPE_BYTES, SIZE_BYTES, packed
from lycosa.store import members_of
from lycosa.web import Document, Page, analyse_html, base_url, charset_of, document_digests, follow_links

COLLECTED_AFTER = 50_000  # objects: a page has hundreds, which go with it


def main() -> None:
    """Reads documents until there are no more."""
    documents, answers = open(0, "rb", PIPE_BYTES), sys.stdout.buffer  # noqa: SIM115 -- as long as it runs
    gc.freeze()
    gc.set_threshold(COLLECTED_AFTER)
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
    digests = document_digests(payload, body)
    fingerprint, payload_sha1, digest = digests
    page = None
    if document is not None:
        encoding = charset_of(body, document.media)
        about = {"charset": encoding, "fingerprint": fingerprint, "digest": digest}
        page = _page(msgspec.structs.replace(document, **about))
    return digests, page is not None, page, parts and members_of(parts, payload_sha1)


def _page(document: Document) -> Page:
    page, rules, base = analyse_html(document), document.follow, ""
    if rules is None:
        return page
    base = base_url(document.url, page.base_href)
    return msgspec.structs.replace(page, followed=follow_links(page.links, base, rules, page.base_href or ""))
