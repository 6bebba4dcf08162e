"""Why a crawl stands still, in a sentence: whom it waits for, until when, and what for; and whether that pays."""

from collections import Counter
from collections.abc import Sequence

from lycosa.engine.moments import clock, duration
from lycosa.fetch.retry import next_try
from lycosa.frontier.frontier import Frontier
from lycosa.frontier.hosts import Host, Place
from lycosa.records import Failure

HOSTS_LOOKED_AT = 10_000
WAITING = "waiting"  # what ends a crawl when all that is queued has to wait for long
LONG_WAIT_S = 900.0  # the table's own waits are shorter: only a host that asks for it waits for longer
ROBOTS = "robots.txt: "  # before the reason, where a host waits for its rules
_SAID = {
    Failure.DNS: "cannot be looked up",
    Failure.CONNECT: "takes no connections",
    Failure.CONNECT_TIMEOUT: "takes no connections",
    Failure.TLS: "has no certificate that can be trusted",
    Failure.RESET: "breaks off",
    Failure.PROTOCOL: "does not speak HTTP",
    Failure.FIRST_BYTE_TIMEOUT: "does not answer",
    "429": "asks for patience",
    "503": "asks for patience",
}


def standing(frontier: Frontier, now: float, now_unix: float, *, in_flight: int, is_over: bool = False) -> str:
    """Empty while requests are under way or nothing is left to wait for. `is_over`: nobody waits any more; the hosts
    are named that the next run will leave alone at first."""
    if in_flight or frontier.queued <= 0:
        return ""
    at = frontier.turns.next_wake() or now
    hosts = list(frontier.shelf.hosts.values())[:HOSTS_LOOKED_AT]
    after = [host for host in hosts if host.place is Place.PARKED]
    if is_over:
        return _left_alone([host for host in after if host.row.wait_until > now_unix], now_unix)
    waiting = sum(host.place is Place.WAITING and not _waits_for_retry(host) for host in hosts)
    again = [host for host in hosts if host.place is Place.WAITING and _waits_for_retry(host)]
    names = sum(host.place is Place.NAME for host in hosts)
    wait_s = max(1, round(at - now))
    soon = f"in {wait_s} s" if wait_s < 60 else f"in {duration(wait_s)}"
    if len(after) == 1 and not waiting and not names and not again:
        return f"{_alone(after[0])}; trying again {soon} (Ctrl-C to stop)"
    if len(again) == 1 and not waiting and not names and not after and (entry := again[0].retries.next):
        others = f", and {again[0].row.retries - 1:,} more after it" if again[0].row.retries > 1 else ""
        return f"{again[0].origin}{entry.path}: {next_try(entry.tries, entry.failed)} {soon}{others} (Ctrl-C to stop)"
    parts = []
    if waiting:
        parts.append(f"{waiting} {_hosts(waiting)} between two requests")
    if names:
        parts.append(f"{names} {_hosts(names)} being looked up")
    if again:
        urls = sum(host.row.retries for host in again)
        parts.append(f"{urls:,} {'URL that is' if urls == 1 else 'URLs that are'} to be tried again")
    parts += _reasons(after)
    if not parts:
        return ""
    until = f" until {clock(now_unix + at - now, now_unix=now_unix)}" if at > now else ""
    return f"waiting{until}: {', '.join(parts)}"


def _waits_for_retry(host: Host) -> bool:
    """Does a host have nothing but URLs that have failed and wait for another try?"""
    return host.waits_for_due and host.row.retries > 0


def waits_long(frontier: Frontier, now: float, now_unix: float) -> bool:
    """Is something queued, and is all of it at hosts that are left alone for longer than `LONG_WAIT_S`?"""
    turns, at_least = frontier.turns, now_unix + LONG_WAIT_S
    at = turns.next_wake()
    if frontier.queued <= 0 or at is None or at - now <= LONG_WAIT_S:
        return False
    if any(turns.places[place] for place in Place if place not in (Place.IDLE, Place.PARKED)):
        return False
    parked = [host.row for host in frontier.shelf.hosts.values() if host.place is Place.PARKED]
    if any(row.wait_until <= at_least for row in parked):  # a Crawl-delay, which would be as long in the next run
        return False
    return sum(row.queued - row.revisits for row in parked) >= frontier.queued  # nobody else is on disk


def _left_alone(hosts: Sequence[Host], now_unix: float) -> str:
    if not hosts:
        return ""
    first = min(hosts, key=lambda host: host.row.wait_until)
    until = f"until {clock(first.row.wait_until, now_unix=now_unix)}"
    if len(hosts) == 1:
        return f"{_alone(first)}; it is left alone {until}"
    return f"{len(hosts):,} hosts are left alone, {first.origin} {until}: {', '.join(_reasons(hosts))}"


def _reasons(hosts: Sequence[Host]) -> list[str]:
    reasons = Counter(host.row.wait_reason for host in hosts)
    return [f"{count} {_hosts(count)} after {reason}" for reason, count in reasons.most_common(3)]


def _alone(host: Host) -> str:
    reason = host.row.wait_reason.removeprefix(ROBOTS)
    return f"{host.origin} {_SAID.get(reason, f'cannot be asked ({reason})')}"


def _hosts(count: int) -> str:
    return "host" if count == 1 else "hosts"
