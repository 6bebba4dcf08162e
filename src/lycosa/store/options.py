"""How RocksDB is set up for the column families of a collection's state.

Invariant: memory is bounded, whatever the number of keys. Filters and indexes are cut into partitions that live in the
one block cache, memtables share one budget, open files are bounded. Called by `store.state` only.
"""

from rocksdict import BlockBasedIndexType, BlockBasedOptions, Cache, DBCompressionType, DBRecoveryMode, Options

from lycosa.records import Family

# One cache for data, index and filter blocks of all families. Small on purpose: what does not fit is in the kernel's
# page cache, compressed, and a crawl has filled it after some 20,000 pages (docs/decisions/0007).
CACHE_LEAST_BYTES, CACHE_MOST_BYTES = 16 << 20, 96 << 20
# A URL's share of the filters and indexes, which every seen test needs: 10 bits, and an index entry a block of 4 KB.
_CACHE_URL_BYTES = 3
# All memtables together; a family that reaches its own size is flushed earlier.
MEMTABLES_BYTES = 48 << 20
# What a start after a kill has to read again, well under a second. It bounds the memtables as well: the families that
# hold the oldest log back are flushed.
WAL_BYTES = 8 << 20
# With 64 MB a file this covers 16 GB of state without reopening one; sockets need the descriptors more.
OPEN_FILES = 256
SST_BYTES = 64 << 20

# Families whose unknown keys are asked for: a Bloom filter answers without reading a block.
_ASKED_FOR_UNKNOWN = frozenset({Family.URL, Family.DOC, Family.HOST})
# Families that need the filter only: now and then an unknown key among keys that are read in order, packed as such.
_FILTERED = _ASKED_FOR_UNKNOWN | {Family.PAGE}
# 10 bits a key: one unknown key in a hundred costs a block read.
_BLOOM_BITS = 10
# Families that are emptied from their front: a file that is half tombstones is compacted soon.
_EMPTIED = frozenset({Family.QUEUE, Family.DUE, Family.FEED})
_TOMBSTONE_WINDOW, _TOMBSTONES = 8192, 4096
# Point reads decompress a whole block, so small ones under lz4; scanned families pack better in larger ones under zstd.
_POINT_BLOCK_BYTES, _SCAN_BLOCK_BYTES = 4 << 10, 16 << 10
_BUSY_MEMTABLE_BYTES, _MEMTABLE_BYTES = 32 << 20, 8 << 20
# Share of a memtable spent on a filter of its own, so that an unknown key skips the skip list.
_MEMTABLE_BLOOM = 0.05


def cache_bytes(urls: int) -> int:
    """The size of the block cache: it holds the filters and indexes of so many URLs, within bounds."""
    return min(max(CACHE_LEAST_BYTES, urls * _CACHE_URL_BYTES), CACHE_MOST_BYTES)


def database_options(*, is_reader: bool, accept_torn_log: bool) -> Options:
    """Options of the database as a whole; `accept_torn_log` keeps the good part of a damaged write-ahead log."""
    options = Options(raw_mode=True)
    options.create_if_missing(not is_reader)
    options.create_missing_column_families(not is_reader)
    # A reader must hold every file open: the writer may delete one between two reads.
    options.set_max_open_files(-1 if is_reader else OPEN_FILES)
    # For a few tables a family, which is all that most states have, it takes longer to start threads than to open them.
    options.set_max_file_opening_threads(1)
    options.set_max_background_jobs(2)
    options.set_db_write_buffer_size(MEMTABLES_BYTES)
    options.set_max_total_wal_size(WAL_BYTES)
    # The kernel writes the log back in order and little by little, which shortens what a power loss can take.
    options.set_wal_bytes_per_sync(1 << 20)
    options.set_bytes_per_sync(1 << 20)
    options.set_wal_recovery_mode(
        DBRecoveryMode.point_in_time() if accept_torn_log else DBRecoveryMode.absolute_consistency()
    )
    options.set_keep_log_file_num(2)
    options.set_max_log_file_size(1 << 20)
    options.set_stats_dump_period_sec(0)
    options.set_max_manifest_file_size(4 << 20)
    return options


def family_options(family: Family, cache: Cache) -> Options:
    is_point_read = family in _ASKED_FOR_UNKNOWN
    options = Options(raw_mode=True)
    options.set_block_based_table_factory(_table(cache, is_point_read=is_point_read, is_filtered=family in _FILTERED))
    options.set_write_buffer_size(_BUSY_MEMTABLE_BYTES if family is Family.URL else _MEMTABLE_BYTES)
    options.set_max_write_buffer_number(3)
    options.set_target_file_size_base(SST_BYTES)
    options.set_level_compaction_dynamic_level_bytes(True)
    options.set_compression_type(DBCompressionType.lz4())
    if not is_point_read:
        options.set_bottommost_compression_type(DBCompressionType.zstd())
    if is_point_read:
        options.set_memtable_prefix_bloom_ratio(_MEMTABLE_BLOOM)
        options.set_memtable_whole_key_filtering(True)
    if family in _EMPTIED:
        options.add_compact_on_deletion_collector_factory(_TOMBSTONE_WINDOW, _TOMBSTONES, 0.5)
    return options


def _table(cache: Cache, *, is_point_read: bool, is_filtered: bool) -> BlockBasedOptions:
    table = BlockBasedOptions()
    table.set_block_cache(cache)
    table.set_format_version(6)
    table.set_block_size(_POINT_BLOCK_BYTES if is_point_read else _SCAN_BLOCK_BYTES)
    if is_filtered:
        table.set_bloom_filter(_BLOOM_BITS, False)
        table.set_partition_filters(True)
    # Whole indexes and filters in the cache push each other out; in partitions only the parts in use are there.
    table.set_index_type(BlockBasedIndexType.two_level_index_search())
    table.set_cache_index_and_filter_blocks(True)
    table.set_pin_top_level_index_and_filter(True)
    table.set_pin_l0_filter_and_index_blocks_in_cache(True)
    return table
