"""What a crawl keeps: a folder with its state (RocksDB) and its archive (WARC), and the commit that joins the two.

    a collection       CollectionStore: create, open, commit; JoinedCollection reads the shards of one as one
    the state          State and Batch: sorted keys in families; the rows of fetched URLs are PageRow and LinkRow
    the archive        HttpExchange: the records of one fetch; WarcLocation: where a record lies
    the central store  CentralStore: where shards bring archive files; upload_warc, read_record_at, StoreSelection
    a part of the web  bucket_rows, write_arriving, …: rows that shards hand to each other

Guarantee: records are appended to the archive before the batch that names their length is written to the state. After
a crash the archive holds at least what the state speaks of, so opening cuts what the state does not speak of. A batch
is applied as a whole or not at all. Whatever fails is a `StoreError` of one sentence.
"""

from lycosa.store.buckets import (
    CLAIMED_PREFIX,
    BucketRow,
    activate_arrived_hosts,
    arriving_hosts,
    bucket_hosts,
    bucket_rows,
    buckets_with_rows,
    delete_bucket,
    document_bucket,
    document_buckets,
    host_buckets,
    write_arriving,
)
from lycosa.store.central import (
    CentralStore,
    claim_store,
    file_digest,
    is_claimed_store,
    open_central_store,
    put_bytes,
    put_verified,
    read_chunks,
    require_shareable_store,
    require_store,
)
from lycosa.store.collection import (
    LOG_FILE,
    MOVED_RECORD,
    CollectionStore,
    JoinedCollection,
    adopt_collection,
    committed_lengths,
    hold_lock,
    is_collection,
    is_written,
)
from lycosa.store.forgotten import Forgotten, read_entry, write_forgotten
from lycosa.store.joined import (
    COPIES_FOLDER,
    SHARDED_FILE,
    SHARDS_FOLDER,
    JoinedState,
    is_sharded,
    shard_paths,
    sharded_parent,
)
from lycosa.store.packed import RecordLeftOut, unpack_warc
from lycosa.store.page_rows import (
    REDIRECTS,
    SELF_CANONICAL,
    SITEMAP,
    LinkRow,
    PageHead,
    PageRow,
    doc_key,
    link_row,
    pack_links,
    pack_row,
    page_at,
    pages_at,
    unpack_head,
    unpack_links,
    unpack_page,
)
from lycosa.store.recorded import recorded_response
from lycosa.store.released import (
    COPY,
    STORE_WARC_FOLDER,
    ArchiveUnavailable,
    StoreSelection,
    left_out_counts,
    open_packed,
    packed_name,
    read_record_at,
    released_files,
    remember_store,
    store_urls,
    upload_warc,
)
from lycosa.store.state import Batch, State
from lycosa.store.warc_edit import (
    MovedRecord,
    begun_moves,
    blank_records,
    delete_files,
    find_records,
    move_records,
    response_of_revisit,
)
from lycosa.store.warc_file import warc_path
from lycosa.store.warc_read import WarcLocation, WarcReader, WarcRecord, read_message
from lycosa.store.warc_record import (
    ExchangeParts,
    Fetched,
    HttpExchange,
    OriginalRecord,
    PatchBase,
    RevisitProfile,
    conversion,
    member_writer,
    members_of,
    patch_locations,
    patch_on_read_exchange,
    patched_exchange,
    recompress_record,
    record_bytes,
    rendered_exchange,
    rendered_message,
    response_exchange,
    response_parts,
    revisit_exchange,
    warcinfo,
)

__all__ = [
    "CLAIMED_PREFIX", "COPIES_FOLDER", "COPY", "LOG_FILE", "MOVED_RECORD", "REDIRECTS",
    "SELF_CANONICAL", "SHARDED_FILE", "SHARDS_FOLDER", "SITEMAP", "STORE_WARC_FOLDER", "ArchiveUnavailable", "Batch",
    "BucketRow", "CentralStore", "CollectionStore", "ExchangeParts", "Fetched", "Forgotten", "HttpExchange",
    "JoinedCollection",
    "JoinedState", "LinkRow", "MovedRecord", "OriginalRecord", "PageHead", "PageRow", "PatchBase", "RecordLeftOut",
    "RevisitProfile", "State", "StoreSelection", "WarcLocation", "WarcReader", "WarcRecord", "activate_arrived_hosts",
    "adopt_collection", "arriving_hosts", "begun_moves", "blank_records", "bucket_hosts", "bucket_rows",
    "buckets_with_rows", "claim_store", "committed_lengths", "conversion", "delete_bucket", "delete_files", "doc_key",
    "document_bucket", "document_buckets", "file_digest", "find_records", "hold_lock", "host_buckets",
    "is_claimed_store", "is_collection", "is_sharded", "is_written", "left_out_counts", "link_row", "member_writer",
    "members_of", "move_records", "open_central_store", "open_packed", "pack_links", "pack_row", "packed_name",
    "page_at", "pages_at",
    "patch_locations", "patch_on_read_exchange", "patched_exchange", "put_bytes", "put_verified", "read_chunks",
    "read_entry", "read_message", "read_record_at", "recompress_record", "record_bytes", "recorded_response",
    "released_files", "remember_store", "rendered_exchange", "rendered_message", "require_shareable_store",
    "require_store", "response_exchange", "response_of_revisit", "response_parts", "revisit_exchange", "shard_paths",
    "sharded_parent", "store_urls", "unpack_head", "unpack_links", "unpack_page", "unpack_warc", "upload_warc",
    "warc_path", "warcinfo", "write_arriving", "write_forgotten",
]  # fmt: skip
