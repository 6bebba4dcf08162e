"""What a process that does nothing but crawl sets for itself, once its engine is made: the collector and the heap."""

import contextlib
import ctypes
import gc

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # glibc's malloc.h
LARGE_BLOCK_BYTES = 512 << 10  # below RocksDB's 1 MB blocks, above the buffers that come and go with every page
HEAP_SPARE_BYTES = 4 << 20


def freeze_garbage_collector() -> None:
    """What is there now stays: the collector need not look at it again."""
    gc.freeze()


def return_large_blocks() -> None:
    """Large blocks, such as those of memtables, go back to the kernel when they are freed. By itself glibc soon keeps
    blocks of up to 32 MB on its heap, where small ones settle in the gaps and hold them (docs/decisions/0007)."""
    with contextlib.suppress(OSError, AttributeError):  # another C library: it has its own ways
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES)
        mallopt(M_TRIM_THRESHOLD, HEAP_SPARE_BYTES)
