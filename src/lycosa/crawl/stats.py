"""The counts of a crawl: over the collection, over this run, and joined over many shards.

`Totals` is what a collection keeps, `CrawlStats` what a crawl tells at one moment, `Counters` the open counts of a
running shard. Counts are written in the same commit as what they count. Media types, languages, sizes and link counts
are counted from a page's row, so that what is counted when a page is stored is taken back when another version takes
its place; a copy is counted with its original.
"""

from collections import Counter
from collections.abc import Sequence
from heapq import nlargest, nsmallest
from operator import attrgetter
from typing import Any, TypeVar

import msgspec

from lycosa.fetch import describe_next_try
from lycosa.frontier import FrontierStats
from lycosa.records import Family, Response
from lycosa.store import PageRow, State
from lycosa.web import kernel_name

SLOWEST_SHOWN = RETRIES_SHOWN = 3  # of all hosts
FETCHING_SHOWN = 100  # of those in flight, the oldest


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
        return describe_next_try(self.tries, self.failed)


class InFlight(msgspec.Struct, frozen=True):
    """A URL that is being fetched, and since when."""

    url: str
    since_unix: float


def _tally() -> "Counter[str]":
    return msgspec.field(default_factory=Counter)


class Totals(msgspec.Struct, omit_defaults=True, kw_only=True):
    """Counts over the whole collection.

    `pages` are documents fetched, `followed_only` those among them that were only read for their links, `duplicates`
    those that were known under another URL, `requisites` what pages need to be shown, `requisites_queued` those of them
    that are queued, `external` links out of scope that were checked and lead somewhere. `failed` are URLs
    given up, `dropped` known URLs that are not asked for or not kept, `ignored` links that were never taken in, each
    by reason; a link that stands on many pages may be ignored more than once. `tables` are requests for tables of
    links: those that were read, and the others by what came instead. `visits` are looks at pages that were there
    before, `not_modified` those answered by 304, `revisiting` the pages that wait to be looked at again. `types`,
    `languages`, `sizes` and `links` count each document once: `duplicates` are left out. `first_bytes` and
    `request_times` count answers by the milliseconds until their first byte and their end, up to the next power of two;
    `first_bytes_s` and `requests_s` are the sums. `kernel` names what has read the pages of the last run.
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
    requisites: int = 0
    requisites_queued: int = 0
    followed_only: int = 0
    external: int = 0
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
    first_bytes: Counter[str] = _tally()
    request_times: Counter[str] = _tally()
    requests_s: float = 0.0
    first_bytes_s: float = 0.0
    kernel: str = ""


class CrawlStats(Totals, frozen=True, omit_defaults=False, kw_only=True):  # type: ignore[misc]
    """A crawl at one moment. `retrying` counts the URLs that wait for another try, `retries` are the next of them;
    `fetching` are the URLs that have been in flight for longest.
    `standing` says in a sentence why nothing is moving, empty while something is; `pace` what sets the pace:
    politeness, the hosts, a limit or this machine; `is_paused`: somebody paused it; `cores` are the processor cores
    that it keeps busy; `limit_share` is how much of the nearest limit is used up;
    `run_statuses` are the answers of this run, by status or failure; `run_lost` are the URLs whose records were not in
    the archive any more when it began, so that they are asked for again."""

    is_running: bool = False
    is_paused: bool = False
    in_flight: int = 0
    memory_bytes: int = 0
    cores: float = 0.0
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
    fetching: tuple[InFlight, ...] = ()
    left_s: float | None = None
    limit_share: float | None = None
    standing: str = ""
    pace: str = ""
    left_out: Counter[str] = _tally()
    left_out_bytes: Counter[str] = _tally()

    def as_facts(self) -> dict[str, Any]:
        """The counts for JSON. `failed`, `dropped` and `ignored` are numbers; `failed_by` and the like say why."""
        facts: dict[str, Any] = msgspec.to_builtins(self)
        for name in ("failed", "dropped", "ignored"):
            facts[f"{name}_by"] = facts[name]
            facts[name] = sum(facts[name].values())
        return facts

    @property
    def has_only_silence(self) -> bool:
        """Was somebody asked in this run, and nobody answered?"""
        return bool(self.run_statuses) and not any(status.isdigit() for status in self.run_statuses)


# Counted by every shard from its own start, so that the longest stands for all.
_TAKEN_AS_MAXIMUM = frozenset({"seconds", "run_seconds"})


def sum_of_shards(parts: Sequence[CrawlStats], *, seconds: float | None = None) -> CrawlStats:
    """The crawl as a whole. It stands still only if every shard with something queued does."""
    whole: dict[str, Any] = {}
    for name in CrawlStats.__struct_fields__:
        values = [getattr(part, name) for part in parts]
        if not values or name in ("slowest", "retries", "fetching", "standing", "pace"):
            continue
        if name in ("is_running", "is_paused"):
            whole[name] = any(values)
        elif name in ("left_s", "limit_share"):  # of the whole crawl, as each shard heard of it
            heard = [value for value in values if value is not None]
            whole[name] = (min if name == "left_s" else max)(heard, default=None)
        elif name == "kernel":
            whole[name] = ", ".join(sorted({value for value in values if value}))
        elif isinstance(values[0], Counter):
            whole[name] = Counter[str]()
            for value in values:
                whole[name].update(value)  # `+` would leave out what is below zero in one of them
            whole[name] = +whole[name]
        else:
            whole[name] = max(values) if name in _TAKEN_AS_MAXIMUM else sum(values)
    if seconds is not None:
        whole["seconds"] = seconds
    slow = nlargest(SLOWEST_SHOWN, (host for part in parts for host in part.slowest), key=lambda host: host.mean_s)
    retries = nsmallest(RETRIES_SHOWN, (one for part in parts for one in part.retries), key=lambda one: one.in_s)
    fetching = nsmallest(FETCHING_SHOWN, (one for part in parts for one in part.fetching), key=attrgetter("since_unix"))
    queued = [part for part in parts if part.queued or part.in_flight]
    return CrawlStats(
        **whole,
        slowest=tuple(slow),
        retries=tuple(retries),
        fetching=tuple(fetching),
        standing=queued[0].standing if queued and all(part.standing for part in queued) else "",
        pace=_pace_of_shards([part.pace for part in queued]),
    )


PAUSED = "paused: "  # before the reason why nothing is asked


def _pace_of_shards(paces: Sequence[str]) -> str:
    """How many shards crawl at a pace that is set by what; a pause is that of all."""
    said = Counter(pace if pace.startswith(PAUSED) else pace.partition(": ")[2] or pace for pace in paces if pace)
    if len(said) == 1 and (why := next(iter(said))).startswith(PAUSED):
        return why
    return "; ".join(f"{many} of {len(paces)} shards: {why}" for why, many in said.most_common())


def count_document(totals: Totals, row: PageRow, sign: int = 1) -> None:
    """Counts a document, or with -1 takes it back; what is no document, or a copy, counts nothing."""
    if not row.is_page or row.original:
        return
    totals.types[row.essence or "unknown"] += sign
    if row.language:
        totals.languages[row.language.partition("-")[0].lower()] += sign
    _count_power_of_two(totals.sizes, row.size_bytes, sign)
    _count_power_of_two(totals.links, row.links, sign)


_POWERS_OF_TWO = [str(1 << bits) for bits in range(64)]


def _count_power_of_two(histogram: "Counter[str]", value: int, sign: int) -> None:
    histogram[_POWERS_OF_TWO[(value - 1).bit_length()] if value > 0 else "0"] += sign


def crawl_state(stats: CrawlStats, *, is_crawled: bool) -> str:
    """What the crawl of a collection is doing, in a word. `is_crawled`: somebody is writing it."""
    if is_crawled:
        return "paused" if stats.is_paused else "running"
    return "stopped" if stats.queued else "finished"


KEY, MOMENT = b"counters", b"moment"

T = TypeVar("T", bound=Totals)


def load_counts(state: State, kind: type[T]) -> T:
    """The counts that a collection keeps, as totals or as what a crawl tells."""
    packed = state.get(Family.META, KEY)
    return msgspec.json.decode(packed, type=kind, dec_hook=_to_counter) if packed else kind()


def counts_row(totals: Totals) -> tuple[Family, bytes, bytes]:
    """The row of the counts that a collection keeps."""
    return Family.META, KEY, msgspec.json.encode(totals)


def load_live_stats(state: State) -> CrawlStats | None:
    """What a crawl said of itself a moment ago; None when the last one came to its end. One that was killed did not."""
    packed = state.get(Family.META, MOMENT)
    return msgspec.json.decode(packed, type=CrawlStats, dec_hook=_to_counter) if packed else None


def _without_zeros(counts: "Counter[str]") -> "Counter[str]":
    return Counter({name: number for name, number in counts.items() if number})


def _to_counter(_: type, counts: Any) -> "Counter[str]":
    return Counter(counts)


class Counters:
    """Totals of the collection, and what this run added. Whoever finishes a URL has it counted here."""

    def __init__(self, totals: Totals) -> None:
        self.totals = totals
        totals.kernel = kernel_name()
        self.run_pages = self.run_requests = self.run_bytes = self.run_lost = 0
        self._has_answer = False
        self._statuses_before = totals.statuses.copy()
        self._before = (totals.visits, totals.visits_changed, totals.not_modified, totals.visits_saved_bytes)

    def request(self, response: Response) -> None:
        """A request has ended, one way or the other."""
        size_bytes = response.size_bytes
        self.totals.requests += 1
        self.totals.bytes += size_bytes
        self.totals.statuses[str(response.status or response.failure or "none")] += 1
        if response.status:
            self._time(response)
        self.run_requests += 1
        self.run_bytes += size_bytes

    def _time(self, response: Response) -> None:
        totals, started_s = self.totals, response.started_s
        whole_s, first_s = response.ended_s - started_s, max(response.first_byte_s - started_s, 0.0)
        totals.requests_s += whole_s
        totals.first_bytes_s += first_s
        _count_power_of_two(totals.request_times, int(1_000 * whole_s) + 1, 1)
        _count_power_of_two(totals.first_bytes, int(1_000 * first_s) + 1, 1)

    def page(self, row: PageRow) -> None:
        """A page was fetched for the first time."""
        self.run_pages += 1
        self.add(row)

    def add(self, row: PageRow) -> None:
        """A stored page counts from now on."""
        self.totals.pages += 1
        self.totals.duplicates += bool(row.original)
        self.totals.followed_only += row.is_followed_only
        count_document(self.totals, row)

    def remove(self, row: PageRow) -> None:
        """What a row was counted as, a page, a redirect, a sitemap or a failure, it is no more."""
        totals = self.totals
        if row.failure:
            totals.failed[row.failure] -= 1
        elif row.location:
            totals.redirects -= 1
        elif row.is_sitemap:
            totals.sitemaps -= 1
        elif row.requisite and row.status and row.status < 400:
            totals.requisites -= 1
        elif row.is_external and row.status and row.status < 400:
            totals.external -= 1
        elif row.status and row.status < 400:
            totals.pages -= 1
            totals.duplicates -= bool(row.original)
            totals.followed_only -= row.is_followed_only
            count_document(totals, row, -1)
        else:
            totals.failed[str(row.status or "none")] -= 1

    def failed(self, name: str, urls: int = 1) -> None:
        """A URL is given up for a reason, or queued again."""
        self.totals.failed[name] += urls

    def redirect(self) -> None:
        self.totals.redirects += 1

    def sitemap(self) -> None:
        self.totals.sitemaps += 1

    def external(self) -> None:
        """A link that leaves the scope was checked, and leads somewhere."""
        self.totals.external += 1

    def requisite(self) -> None:
        self.totals.requisites += 1

    def ignored(self, reason: str, links: int = 1) -> None:
        """Links of a page are not followed."""
        self.totals.ignored[reason] += links

    def table(self, outcome: str) -> None:
        """The answer to a table was read, or is none."""
        self.totals.tables[outcome] += 1

    def visit(self, *, changed: bool = False) -> None:
        """A page was visited again."""
        self.totals.visits += 1
        self.totals.visits_changed += changed

    def visit_changed(self) -> None:
        """A visit that was counted found a change after all."""
        self.totals.visits_changed += 1

    def lost(self, records: int) -> None:
        """Records are not in the archive any more; their pages are asked for again."""
        self.run_lost += records

    def visit_saved(self, size_bytes: int, *, not_modified: bool = False) -> None:
        """A visit did without the body of a page."""
        self.totals.visits_saved_bytes += size_bytes
        self.totals.not_modified += not_modified

    @property
    def has_answer(self) -> bool:
        """Has any host ever answered, in this run or before?"""
        self._has_answer = self._has_answer or any(status.isdigit() for status in self.totals.statuses)
        return self._has_answer

    def now(self, frontier: FrontierStats, *, seconds: float) -> dict[str, Any]:
        """The counts of this moment by name; a copy. What another shard had counted before a host came here may be
        below zero once it is taken back here: the sum over the shards is right."""
        t = self.totals
        t.known, t.queued, t.hosts, t.seconds = frontier.known, frontier.queued, frontier.hosts, seconds
        t.revisiting, t.requisites_queued = frontier.revisiting, frontier.requisites
        counts = msgspec.structs.asdict(t)
        return {name: _without_zeros(value) if isinstance(value, Counter) else value for name, value in counts.items()}

    def row(self, frontier: FrontierStats, *, seconds: float) -> tuple[Family, bytes, bytes]:
        """What a commit writes."""
        return Family.META, KEY, msgspec.json.encode(Totals(**self.now(frontier, seconds=seconds)))

    def stats(self, frontier: FrontierStats, *, seconds: float, run_s: float, **moment: Any) -> CrawlStats:
        """What a crawl tells of itself; `moment` holds what is not counted."""
        visits, changed, not_modified, saved = self._before
        t = self.totals
        return CrawlStats(
            **self.now(frontier, seconds=seconds),
            run_visits=t.visits - visits,
            run_changed=t.visits_changed - changed,
            run_not_modified=t.not_modified - not_modified,
            run_saved_bytes=t.visits_saved_bytes - saved,
            run_statuses=t.statuses - self._statuses_before,
            hosts_active=frontier.active,
            hosts_waiting=frontier.waiting,
            hosts_parked=frontier.parked,
            run_seconds=run_s,
            run_pages=self.run_pages,
            run_requests=self.run_requests,
            run_bytes=self.run_bytes,
            run_lost=self.run_lost,
            pages_per_s=self.run_pages / run_s,
            bytes_per_s=self.run_bytes / run_s,
            **moment,
        )
