"""The addresses of hosts, for the frontier: what the mapper knows, what a host's row remembers, and whom to look up.

An answer is at hand or comes later: then the frontier puts the host aside until `on_located` names it.
"""

from collections.abc import Callable

from lycosa.crawl.outage import Outage
from lycosa.crawl.seams import Parts
from lycosa.frontier import Host
from lycosa.mapping import Mapper
from lycosa.records import Failure, Mapped
from lycosa.settings import CrawlSettings


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
