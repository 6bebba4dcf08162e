"""The columns of Common Crawl's index of captures: 33 with their names, types and order, of which two are folders.

A row is one answer. Where Common Crawl and we differ: `warc_filename` is relative to the collection's folder and
`warc_segment` the name of the shard (0 where there is one only, or the file is in a central store). Of an answer
without a record in the archive, as most errors are, the file name and the record id are empty and offset and length
are -1. They are -1 too where a record begins beyond 2 GB, which 32 bits cannot say: our files end at 1 GB
(`warc_bytes`), those of others may not. Pages are the subset `warc`; redirects, errors and sitemaps are
`crawldiagnostics`. There are no rows of robots.txt.
"""

from base64 import b32encode
from functools import cache, lru_cache
from typing import NamedTuple
from uuid import UUID

import pyarrow as pa
from publicsuffixlist import PublicSuffixList

from lycosa.inspect import StoredPage
from lycosa.store import WarcLocation
from lycosa.web import is_ip_host, split_url, surt_key, three_letters

PAGES, OTHERS = "warc", "crawldiagnostics"  # subsets
_NONE, _MOST = -1, 2**31 - 1
_HOST_PARTS = 5


def _field(name: str, type: pa.DataType = None, *, is_null: bool = True) -> pa.Field:
    return pa.field(name, type or pa.string(), nullable=is_null)


SCHEMA = pa.schema(
    [
        _field("url_surtkey", is_null=False),
        _field("url", is_null=False),
        _field("url_host_name", is_null=False),
        _field("url_host_tld"),
        _field("url_host_2nd_last_part"),
        _field("url_host_3rd_last_part"),
        _field("url_host_4th_last_part"),
        _field("url_host_5th_last_part"),
        _field("url_host_registry_suffix"),
        _field("url_host_registered_domain"),
        _field("url_host_private_suffix"),
        _field("url_host_private_domain"),
        _field("url_host_name_reversed"),
        _field("url_protocol", is_null=False),
        _field("url_port", pa.int32()),
        _field("url_path", is_null=False),
        _field("url_query"),
        _field("fetch_time", pa.timestamp("ms"), is_null=False),
        _field("fetch_status", pa.int16(), is_null=False),
        _field("fetch_redirect"),
        _field("content_digest"),
        _field("content_mime_type"),
        _field("content_mime_detected"),
        _field("content_charset"),
        _field("content_languages"),
        _field("content_truncated"),
        _field("warc_record_id", pa.binary(), is_null=False),
        _field("warc_filename", is_null=False),
        _field("warc_record_offset", pa.int32(), is_null=False),
        _field("warc_record_length", pa.int32(), is_null=False),
        _field("warc_segment", is_null=False),
    ]
)


class RecordPlace(NamedTuple):
    """Where the record of an answer is: its id, the name of its file, its shard, and its bytes in the file."""

    record_id: str
    file_name: str
    segment: str
    place: WarcLocation


def subset_of(page: StoredPage) -> str:
    return PAGES if page.row.is_stored_page else OTHERS


def index_row(page: StoredPage, sent_type: str | None, record: RecordPlace | None, language: str) -> tuple[object, ...]:
    """The values of `SCHEMA`; `sent_type` is the Content-Type that came with it, `language` a tag."""
    row, url = page.row, split_url(page.url)
    path, mark, query = url.path.partition("?")
    is_usual = url.port == {"http": 80, "https": 443}[url.scheme]
    return (
        surt_key(page.url),
        page.url,
        *_host_columns(url.host),
        url.scheme,
        None if is_usual else url.port,
        path,
        query if mark else None,
        int(row.fetched_s * 1000),
        row.status,
        row.location or None,
        b32encode(row.payload_sha1).decode() if row.payload_sha1 else None,
        (sent_type or "").partition(";")[0].strip() or None,
        None if row.is_sitemap else row.essence or None,
        row.charset or None,
        three_letters(language) or None,
        row.truncated or None,
        *_record_columns(record),
    )


def _record_columns(record: RecordPlace | None) -> tuple[bytes, str, int, int, str]:
    if record is None:
        return b"", "", _NONE, _NONE, "0"
    offset, length = record.place.offset, record.place.length
    has_room = offset <= _MOST and length <= _MOST
    return (
        _id_bytes(record.record_id),
        record.file_name,
        offset if has_room else _NONE,
        length if has_room else _NONE,
        record.segment,
    )


def _id_bytes(record_id: str) -> bytes:
    """The 16 bytes of an id that is a UUID, as almost all are; else its text."""
    text = record_id.strip("<>").removeprefix("urn:uuid:")
    try:
        return UUID(text).bytes
    except ValueError:
        return text.encode()


@lru_cache(16_384)
def _host_columns(host: str) -> tuple[str | None, ...]:
    """The columns from url_host_name to url_host_name_reversed. An address has its name only."""
    if is_ip_host(host):
        return (host, *[None] * (_HOST_PARTS + 4), host)
    name = host.strip(".")
    parts: list[str | None] = [*reversed(name.split("."))]
    registry, private = _suffixes(only_icann=True), _suffixes(only_icann=False)
    return (
        host,
        *[*parts, *[None] * _HOST_PARTS][:_HOST_PARTS],
        registry.publicsuffix(name),
        registry.privatesuffix(name),
        private.publicsuffix(name),
        private.privatesuffix(name),
        ".".join(filter(None, parts)),
    )


@cache
def _suffixes(*, only_icann: bool) -> PublicSuffixList:
    return PublicSuffixList(only_icann=only_icann)
