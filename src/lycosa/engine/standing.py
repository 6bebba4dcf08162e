"""Why a crawl stands still, in a sentence: whom it waits for, until when, and what for."""

import time
from collections import Counter

from lycosa.frontier.frontier import Frontier
from lycosa.frontier.hosts import Place

HOSTS_LOOKED_AT = 10_000


def standing(frontier: Frontier, now: float, now_unix: float, *, in_flight: int) -> str:
    """Empty while requests are under way or nothing is left to wait for."""
    if in_flight or frontier.queued <= 0:
        return ""
    at = frontier.turns.next_wake()
    hosts = list(frontier.shelf.hosts.values())[:HOSTS_LOOKED_AT]
    parked = Counter(host.row.wait_reason for host in hosts if host.place is Place.PARKED)
    waiting = sum(host.place is Place.WAITING for host in hosts)
    names = sum(host.place is Place.NAME for host in hosts)
    parts = []
    if waiting:
        parts.append(f"{waiting} {_hosts(waiting)} between two requests")
    if names:
        parts.append(f"{names} {_hosts(names)} being looked up")
    parts += [f"{count} {_hosts(count)} after {reason}" for reason, count in parked.most_common(3)]
    if not parts:
        return ""
    until = ""
    if at is not None and at > now:
        until = time.strftime(" until %H:%M:%S", time.localtime(now_unix + at - now))
    return f"waiting{until}: {', '.join(parts)}"


def _hosts(count: int) -> str:
    return "host" if count == 1 else "hosts"
