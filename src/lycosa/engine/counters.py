"""The counts of a crawl, over the collection and over this run; written in the same commit as what they count."""

from collections import Counter

import msgspec

from lycosa.records import Family

KEY = b"counters"


class Totals(msgspec.Struct, omit_defaults=True):
    """Counts over the whole collection."""

    pages: int = 0
    bytes: int = 0
    requests: int = 0
    known: int = 0
    queued: int = 0
    hosts: int = 0
    duplicates: int = 0
    redirects: int = 0
    not_modified: int = 0
    seconds: float = 0.0
    failed: dict[str, int] = {}
    dropped: dict[str, int] = {}
    types: dict[str, int] = {}
    languages: dict[str, int] = {}
    statuses: dict[str, int] = {}
    sizes: dict[str, int] = {}
    links: dict[str, int] = {}


class Counters:
    """Totals of the collection, and what this run added."""

    def __init__(self, totals: Totals) -> None:
        self.totals = totals
        self.run_pages = self.run_requests = self.run_bytes = 0
        self.failed = Counter(totals.failed)
        self.dropped = Counter(totals.dropped)
        self.types = Counter(totals.types)
        self.languages = Counter(totals.languages)
        self.statuses = Counter(totals.statuses)
        self.sizes = Counter(totals.sizes)
        self.links = Counter(totals.links)

    @classmethod
    def load(cls, packed: bytes | None) -> "Counters":
        return cls(msgspec.json.decode(packed, type=Totals) if packed else Totals())

    def request(self, size_bytes: int) -> None:
        self.totals.requests += 1
        self.totals.bytes += size_bytes
        self.run_requests += 1
        self.run_bytes += size_bytes

    def page(self) -> None:
        self.totals.pages += 1
        self.run_pages += 1

    def row(self, *, known: int, queued: int, hosts: int, seconds: float) -> tuple[Family, bytes, bytes]:
        """What a commit writes."""
        t = self.totals
        t.known, t.queued, t.hosts, t.seconds = known, queued, hosts, seconds
        for name in ("failed", "dropped", "types", "languages", "statuses", "sizes", "links"):
            setattr(t, name, {key: count for key, count in getattr(self, name).items() if count})
        return Family.META, KEY, msgspec.json.encode(t)
