"""The counts of a collection for Prometheus, in its text format and by its naming conventions.

The numbers are those of `lycosa status --json` at the same moment. Counters end in `_total` and count over the whole
collection, so they go on after a restart; gauges are of this moment; units are seconds and bytes.
"""

from collections.abc import Iterable, Mapping

from lycosa.crawl import CrawlStats
from lycosa.version import __version__

LONGEST_BITS = 18  # 2^18 ms: no request takes longer


def prometheus_text(stats: CrawlStats, *, is_crawled: bool, viewers: int) -> str:
    """All metrics."""
    lines = list[str]()

    def put(kind: str, name: str, help: str, values: Iterable[tuple[Mapping[str, str], float]]) -> None:
        lines.append(f"# HELP lycosa_{name} {help}")
        lines.append(f"# TYPE lycosa_{name} {kind}")
        lines.extend(f"lycosa_{name}{_labels(labels)} {_number(value)}" for labels, value in values)

    def one(kind: str, name: str, help: str, value: float) -> None:
        put(kind, name, help, [({}, value)])

    def by(name: str, label: str, help: str, counts: Mapping[str, int]) -> None:
        put("counter", name, help, [({label: each}, many) for each, many in sorted(counts.items())])

    one("counter", "pages_total", "Pages stored.", stats.pages)
    one("counter", "duplicates_total", "Pages that were known under another URL.", stats.duplicates)
    one("counter", "requests_total", "Requests that have ended.", stats.requests)
    one("counter", "received_bytes_total", "Bytes of bodies received.", stats.bytes)
    one("counter", "redirects_total", "Redirects met.", stats.redirects)
    one("counter", "visits_total", "Revisits of pages.", stats.visits)
    one("counter", "changed_visits_total", "Revisits that found a change.", stats.visits_changed)
    by("responses_total", "status", "Answers by status, or by what failed.", stats.statuses)
    by("failed_urls_total", "reason", "URLs given up, by reason.", stats.failed)
    by("dropped_urls_total", "reason", "Known URLs that are not asked for or not kept, by reason.", stats.dropped)
    by("documents_total", "media_type", "Documents stored, by media type.", stats.types)
    one("counter", "crawl_seconds_total", "Seconds that this collection has been crawled for.", stats.seconds)
    one("gauge", "known_urls", "URLs known.", stats.known)
    one("gauge", "queued_urls", "URLs queued.", stats.queued)
    one("gauge", "retrying_urls", "URLs that wait for another try.", stats.retrying)
    one("gauge", "hosts", "Hosts known.", stats.hosts)
    states = (("active", stats.hosts_active), ("waiting", stats.hosts_waiting), ("parked", stats.hosts_parked))
    put("gauge", "hosts_by_state", "Hosts with work, by state.", [({"state": name}, many) for name, many in states])
    one("gauge", "in_flight_requests", "Requests under way.", stats.in_flight)
    one("gauge", "resident_memory_bytes", "Memory of the crawl.", stats.memory_bytes)
    one("gauge", "busy_cores", "Processor cores that the crawl keeps busy.", stats.cores)
    one("gauge", "running", "1 while a crawl writes the collection.", is_crawled)
    one("gauge", "paused", "1 while the crawl is paused.", stats.is_paused)
    one("gauge", "viewers", "Viewers of the live page.", viewers)
    for name, help, counts, total_s in (
        ("response_latency_seconds", "Time until the first byte of an answer.", stats.first_bytes, stats.first_bytes_s),
        ("page_time_seconds", "Time of a whole request.", stats.request_times, stats.requests_s),
    ):
        put("histogram", name, help, [])
        lines.extend(_histogram(f"lycosa_{name}", counts, total_s))
    put("gauge", "build_info", "The version of Lycosa.", [({"version": __version__}, 1)])
    return "\n".join(lines) + "\n"


def _histogram(name: str, counts: Mapping[str, int], total_s: float) -> Iterable[str]:
    """A histogram of counts by powers of two in milliseconds."""
    below = 0
    for bits in range(LONGEST_BITS + 1):
        below += counts.get(str(1 << bits), 0)
        yield f'{name}_bucket{{le="{(1 << bits) / 1_000:g}"}} {below}'
    everything = sum(counts.values())
    yield f'{name}_bucket{{le="+Inf"}} {everything}'
    yield f"{name}_sum {_number(total_s)}"
    yield f"{name}_count {everything}"


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(round(float(value), 6))
