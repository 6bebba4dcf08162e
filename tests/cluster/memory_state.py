"""A state in memory for the exchange's tests: rows, batches, copies of a moment."""

from collections.abc import Iterator, Sequence

from lycosa.records import Family
from lycosa.store import Batch


class MemoryState:
    """What outbox and arrivals need of a state, and `copy`, which is a checkpoint."""

    def __init__(self, rows: dict[tuple[Family, bytes], bytes] | None = None) -> None:
        self.rows = rows or {}

    def copy(self) -> "MemoryState":
        return MemoryState(dict(self.rows))

    def write(self, batch: Batch) -> None:
        for family, key, value, _ in batch:
            if value is None:
                self.rows.pop((family, key), None)
            else:
                self.rows[family, key] = value

    def get_many(self, family: Family, keys: Sequence[bytes]) -> list[bytes | None]:
        return [self.rows.get((family, key)) for key in keys]

    def walk(self, family: Family, start: bytes = b"", end: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        found = [(k, v) for (f, k), v in self.rows.items() if f is family and start <= k and (end is None or k < end)]
        yield from sorted(found)
