"""What a crawl can tell of itself at any moment: one record for the progress view, `status`, `--json`, tests and logs.

Counts are over the whole collection unless they say "run". Filled by the engine, read by everyone else.
"""

import msgspec


class SlowHost(msgspec.Struct, frozen=True):
    """A host that takes its time: its mean response time and how much is still queued there."""

    host: str
    mean_s: float
    queued: int


class CrawlStats(msgspec.Struct, frozen=True, kw_only=True):
    """A crawl at one moment.

    `pages` are documents stored (2xx), `failed` URLs given up by reason, `dropped` URLs not asked for by reason,
    `standing` says in a sentence why nothing is moving, empty while something is.
    """

    pages: int = 0
    bytes: int = 0
    requests: int = 0
    queued: int = 0
    known: int = 0
    duplicates: int = 0
    redirects: int = 0
    not_modified: int = 0
    in_flight: int = 0
    hosts: int = 0
    hosts_active: int = 0
    hosts_waiting: int = 0
    hosts_parked: int = 0
    failed: dict[str, int] = {}
    dropped: dict[str, int] = {}
    types: dict[str, int] = {}
    languages: dict[str, int] = {}
    statuses: dict[str, int] = {}
    sizes: dict[str, int] = {}
    links: dict[str, int] = {}
    seconds: float = 0.0
    run_seconds: float = 0.0
    run_pages: int = 0
    run_requests: int = 0
    run_bytes: int = 0
    pages_per_s: float = 0.0
    bytes_per_s: float = 0.0
    slowest: tuple[SlowHost, ...] = ()
    left_s: float | None = None
    standing: str = ""
