"""The addresses of hosts, for the frontier: what the mapper knows, what a host's row remembers, and whom to look up.

Where the address is not known yet, the frontier puts the host aside until `on_located` names it.

`Outage` tells whether the machine itself is cut off, because its line is down or its name server is silent. A host that
cannot be reached is given up after a few tries (`fetch.retry`). When nobody can be reached, that says nothing of a
host, and half a minute without a line would give up every host of a crawl. So tries do not count while several hosts in
a row failed and none answered in between; for `LONGEST_S` at most, since the last hosts of a crawl may all be gone.
"""

from collections.abc import Callable

from lycosa.crawl.seams import Parts
from lycosa.frontier import Host
from lycosa.mapping import Mapper
from lycosa.records import Failure, Mapped
from lycosa.settings import CrawlSettings

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


class HostAddresses:
    """Asks the mapper for the frontier; an address is written into the host's row, so that a restart knows it."""

    def __init__(
        self,
        settings: CrawlSettings,
        parts: Parts,
        *,
        now: Callable[[], float],
        now_unix: Callable[[], float],
    ) -> None:
        self._now, self._now_unix, self._other_shards = now, now_unix, parts.other_shards
        self.on_located: Callable[[list[str]], None] = lambda _: None  # who asked hears of them
        self.outage = Outage()
        self._put_off: list[str] = []  # names that found the mapping queue full
        for typed in settings.typed_hosts:
            host, _, port = typed.rpartition(":")
            parts.guard.allow_literal(host, int(port))
        self.mapper = Mapper(
            parts.resolver,
            parts.guard,
            self._on_mapped,
            now=now,
            workers=settings.mapping_workers,
            batch=settings.mapping_batch,
        )

    def locate(self, host: Host) -> Mapped | None:
        """Where a host lives, or why it cannot be asked; None: it is being looked up."""
        mapped = self.mapper.lookup(host.host, host.port)
        row = host.row
        if mapped is None and row.address and (left_s := row.address_until - self._now_unix()) > 0:
            self.mapper.restore(host.host, row.address, valid_s=left_s)
            mapped = self.mapper.lookup(host.host, host.port)
        if mapped is None:
            if not self.mapper.want(host.host):
                self._put_off.append(host.host)
        elif mapped.failure is None:
            if row.address != mapped.address:
                host.set_address(mapped.address, min(mapped.expires_s - self._now() + self._now_unix(), 1e12))
            if self._other_shards is not None and not self._other_shards.may_visit(mapped.address, host.host):
                return None
        return mapped

    def forget(self, host: Host) -> None:
        """The address of a host seems to be wrong: it is looked up before the host is asked again."""
        self.mapper.forget(host.host)
        host.forget_address()

    async def close(self) -> None:
        await self.mapper.close()

    def _on_mapped(self, mapped: list[Mapped]) -> None:
        if any(each.failure is not Failure.DNS for each in mapped):
            self.outage.record_name_answer()
        self.on_located([each.host for each in mapped])
        waiting, self._put_off = self._put_off, []
        self._put_off = [name for name in waiting if not self.mapper.want(name)]
