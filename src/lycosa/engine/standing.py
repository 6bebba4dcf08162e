"""Why a crawl stands still, in a sentence: whom it waits for, until when, and what for."""

import time
from collections import Counter

from lycosa.frontier.frontier import Frontier
from lycosa.frontier.hosts import Host, Place
from lycosa.records import Failure

HOSTS_LOOKED_AT = 10_000
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


def standing(frontier: Frontier, now: float, now_unix: float, *, in_flight: int) -> str:
    """Empty while requests are under way or nothing is left to wait for."""
    if in_flight or frontier.queued <= 0:
        return ""
    at = frontier.turns.next_wake() or now
    hosts = list(frontier.shelf.hosts.values())[:HOSTS_LOOKED_AT]
    after = [host for host in hosts if host.place is Place.PARKED]
    parked = Counter(host.row.wait_reason for host in after)
    waiting = sum(host.place is Place.WAITING for host in hosts)
    names = sum(host.place is Place.NAME for host in hosts)
    if len(after) == 1 and not waiting and not names:
        return f"{_alone(after[0])}; trying again in {max(1, round(at - now))} s (Ctrl-C to stop)"
    parts = []
    if waiting:
        parts.append(f"{waiting} {_hosts(waiting)} between two requests")
    if names:
        parts.append(f"{names} {_hosts(names)} being looked up")
    parts += [f"{count} {_hosts(count)} after {reason}" for reason, count in parked.most_common(3)]
    if not parts:
        return ""
    until = ""
    if at > now:
        until = time.strftime(" until %H:%M:%S", time.localtime(now_unix + at - now))
    return f"waiting{until}: {', '.join(parts)}"


def _alone(host: Host) -> str:
    reason = host.row.wait_reason.removeprefix(ROBOTS)
    return f"{host.origin} {_SAID.get(reason, f'cannot be asked ({reason})')}"


def _hosts(count: int) -> str:
    return "host" if count == 1 else "hosts"
