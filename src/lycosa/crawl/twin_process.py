"""The process that reads documents for `TwinReaders`: from standard input to standard output, until the former ends.

It says that it has begun by an empty message. For each document it then makes the digests, the page with the links that
are followed, and the WARC records. Nothing that a document does to it is lost: the crawl reads itself what this process
cannot read.
"""

import gc
import os

import msgspec

from lycosa.crawl.twin_readers import GREETING, PIPE_BYTES, SIZE_BYTES, ReadAnswer, ToRead, packed
from lycosa.store import members_of
from lycosa.web import Document, Page, analyse_html, base_url, charset_of, document_digests, follow_links

COLLECTED_AFTER = 50_000  # objects: a page has hundreds, which go with it


def main() -> None:
    """Reads documents until there are no more."""
    documents, answers = open(0, "rb", PIPE_BYTES), os.fdopen(os.dup(1), "wb")  # noqa: SIM115 -- as long as it runs
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what a library prints is no answer
    gc.freeze()
    gc.set_threshold(COLLECTED_AFTER)
    decoder = msgspec.msgpack.Decoder(ToRead)
    answers.write(GREETING)
    answers.flush()
    while size := documents.read(SIZE_BYTES):
        message = decoder.decode(documents.read(int.from_bytes(size)))
        try:
            answer = packed(_read(message))
        except Exception:  # it comes again, where it ends the crawl
            answer = packed(ReadAnswer(message.number, None, message.document is not None, None, None))
        answers.write(answer)
        answers.flush()


def _read(message: ToRead) -> ReadAnswer:
    document, body = message.document, message.body
    digests = document_digests(body if message.payload is None else message.payload, body)
    fingerprint, payload_sha1, digest = digests
    page = None
    if document is not None:
        encoding = charset_of(body, document.media)
        about = {"charset": encoding, "body": body, "fingerprint": fingerprint, "digest": digest}
        page = _page(msgspec.structs.replace(document, **about))
    members = message.parts and members_of(message.parts, payload_sha1)
    return ReadAnswer(message.number, digests, page is not None, page, members)


def _page(document: Document) -> Page:
    page, rules, base = analyse_html(document), document.follow, ""
    if rules is None:
        return page
    base = base_url(document.url, page.base_href)
    return msgspec.structs.replace(page, followed=follow_links(page.links, base, rules, page.base_href or ""))
