"""What a crawl can tell of itself at any moment: one record for the progress view, `status`, `--json`, tests and logs.

`Totals` is what a collection keeps, written with every commit; `CrawlStats` adds what is true of this moment and this
run. Invariant: every known URL is counted in exactly one place,

    known = pages + redirects + sitemaps + failed + dropped + queued

where `failed` and `dropped` are sums over their reasons. Filled by `engine.counters`, read by everyone else.
"""

from collections import Counter

import msgspec

from lycosa.fetch.retry import next_try

SLOWEST_SHOWN = RETRIES_SHOWN = 3  # of all hosts


class SlowHost(msgspec.Struct, frozen=True):
    """A host that takes its time: its mean response time and how much is still queued there."""

    host: str
    mean_s: float
    queued: int


class Retry(msgspec.Struct, frozen=True):
    """A URL that has failed and waits for another try: what is known of it, and in how many seconds it is due."""

    url: str
    tries: int
    failed: str
    in_s: float

    @property
    def next_try(self) -> str:
        return next_try(self.tries, self.failed)


def _tally() -> "Counter[str]":
    return msgspec.field(default_factory=Counter)


class Totals(msgspec.Struct, omit_defaults=True, kw_only=True):
    """Counts over the whole collection.

    `pages` are documents stored, `duplicates` those among them that were known under another URL. `failed` are URLs
    given up, `dropped` known URLs that are not asked for or not kept, `ignored` links that were never taken in, each
    by reason; a link that stands on many pages may be ignored more than once. `tables` are requests for tables of
    links: those that were read, and the others by what came instead. `visits` are looks at pages that were there
    before, `not_modified` those answered by 304, `revisiting` the pages that wait to be looked at again.
    """

    pages: int = 0
    bytes: int = 0
    requests: int = 0
    known: int = 0
    queued: int = 0
    hosts: int = 0
    duplicates: int = 0
    redirects: int = 0
    sitemaps: int = 0
    not_modified: int = 0
    visits: int = 0
    visits_changed: int = 0
    visits_saved_bytes: int = 0
    revisiting: int = 0
    seconds: float = 0.0
    failed: Counter[str] = _tally()
    dropped: Counter[str] = _tally()
    ignored: Counter[str] = _tally()
    types: Counter[str] = _tally()
    languages: Counter[str] = _tally()
    statuses: Counter[str] = _tally()
    sizes: Counter[str] = _tally()
    links: Counter[str] = _tally()
    tables: Counter[str] = _tally()


class CrawlStats(Totals, frozen=True, omit_defaults=False, kw_only=True):  # type: ignore[misc]
    """A crawl at one moment. `retrying` counts the URLs that wait for another try, `retries` are the next of them.
    `standing` says in a sentence why nothing is moving, empty while something is;
    `run_statuses` are the answers of this run, by status or failure; `run_lost` are the URLs whose records were not in
    the archive any more when it began, so that they are asked for again."""

    is_running: bool = False
    in_flight: int = 0
    hosts_active: int = 0
    hosts_waiting: int = 0
    hosts_parked: int = 0
    run_seconds: float = 0.0
    run_pages: int = 0
    run_requests: int = 0
    run_bytes: int = 0
    run_visits: int = 0
    run_changed: int = 0
    run_not_modified: int = 0
    run_saved_bytes: int = 0
    run_lost: int = 0
    run_statuses: Counter[str] = _tally()
    pages_per_s: float = 0.0
    bytes_per_s: float = 0.0
    slowest: tuple[SlowHost, ...] = ()
    retrying: int = 0
    retries: tuple[Retry, ...] = ()
    left_s: float | None = None
    standing: str = ""
    left_out: Counter[str] = _tally()
    left_out_bytes: Counter[str] = _tally()

    @property
    def has_only_silence(self) -> bool:
        """Was somebody asked in this run, and nobody answered?"""
        return bool(self.run_statuses) and not any(status.isdigit() for status in self.run_statuses)
