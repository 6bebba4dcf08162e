"""Whether the machine itself is cut off: its line is down, or its name server is silent.

A host that cannot be reached is given up after a few tries (`fetch.retry`). When nobody can be reached, that says
nothing of a host, and half a minute without a line would give up every host of a crawl. So tries do not count while
several hosts in a row failed and none answered in between; for `LONGEST_S` at most, since the last hosts of a crawl may
all be gone. A crawl that never reached anybody ends soon, since its user waits and probably mistyped (`fetch.retry`).
Pure: takes `now`. The loop and the mapper's answers (`crawl.addresses`) fill it; who counts tries asks it.
"""

from lycosa.records import Failure

NO_CONNECTION = frozenset({Failure.CONNECT, Failure.CONNECT_TIMEOUT})
LEAST_HOSTS = 3
LONGEST_S = 120.0  # a router is back sooner; and so much longer a crawl may take whose last hosts are gone


class _Unreached:
    """The first hosts in a row that failed, without an answer from anybody, and since when."""

    def __init__(self) -> None:
        self.hosts: set[str] = set()
        self.since_s = 0.0

    def add(self, host: str, now: float) -> None:
        if not self.hosts:
            self.since_s = now
        if len(self.hosts) < LEAST_HOSTS:
            self.hosts.add(host)

    def is_outage(self, now: float) -> bool:
        return len(self.hosts) >= LEAST_HOSTS and now - self.since_s <= LONGEST_S


class Outage:
    """What the latest requests and lookups say of the line and of the name server."""

    def __init__(self) -> None:
        self._names, self._lines = _Unreached(), _Unreached()

    def __repr__(self) -> str:
        return f"<Outage names={len(self._names.hosts)} lines={len(self._lines.hosts)}>"

    def record(self, host: str, failure: Failure | None, now: float) -> None:
        """A request has ended; one without an address ends with what the lookup said."""
        if failure is Failure.DNS:
            self._names.add(host, now)
        elif failure in NO_CONNECTION:
            self._lines.add(host, now)
        elif failure is not Failure.NO_SUCH_HOST and self._lines.hosts:
            self._lines.hosts.clear()

    def record_name_answer(self) -> None:
        """The name server has answered, whatever it said."""
        self._names.hosts.clear()

    def explains(self, failure: Failure | None, now: float, *, is_first: bool) -> bool:
        """Is this failure most likely the machine's own, and not the host's? `is_first`: nobody has answered yet."""
        if is_first:
            return False
        if failure is Failure.DNS:
            return self._names.is_outage(now)
        return failure in NO_CONNECTION and self._lines.is_outage(now)
