"""The checks decide whether a URL whose turn has come may be fetched: robots.txt, the limits of a host, and hooks.

They are made now and not when the URL is queued, because rules, counts and what is learned change while it waits. Pure.
Called by `Frontier` only; a `FrontierHook` is how other rooms have their say.
"""

from typing import Protocol

from lycosa.frontier.hosts import Host
from lycosa.frontier.politeness import Politeness
from lycosa.frontier.rows import QueueEntry, Reason, RequestKind


class FrontierHook(Protocol):
    """A hook has a say in which URLs are fetched: it derives from this class and overrides what concerns it."""

    def judge(self, host: Host, entry: QueueEntry, now_unix: float) -> Reason | float | None:
        """Return why a URL whose turn has come is dropped, or for how many seconds it has to wait; None lets it go."""
        return None

    def dropped(self, host: Host, entry: QueueEntry, reason: Reason) -> None:
        """A URL was dropped, by this hook or for any other reason."""
        return

    def puts_last(self, host: Host) -> bool:
        """Return whether this host has had its share, so that other hosts go first."""
        return False


class FetchChecks:
    """The checks of one frontier."""

    def __init__(self, politeness: Politeness) -> None:
        self._obeys_robots = politeness.robots
        self._most_pages, self._most_depth = politeness.pages_per_host, politeness.host_depth
        self.hooks: list[FrontierHook] = []

    def needs_robots(self, host: Host, now_unix: float) -> bool:
        """Return whether the host's robots.txt has to be fetched before anything else."""
        return self._obeys_robots and (host.row.robots is None or host.row.robots_until < now_unix)

    def allows(self, host: Host, path: str) -> bool:
        """Return whether the host's robots.txt allows this path."""
        rules = host.row.robots
        return not self._obeys_robots or (rules is not None and rules.allows(path))

    def judge(self, host: Host, entry: QueueEntry, now_unix: float) -> Reason | float | None:
        """Return why a URL is dropped, or for how many seconds it waits for the sake of others; None lets it go."""
        # Robots.txt first, for revisits, too: a page that was allowed once may be forbidden now.
        if not self.allows(host, entry.path):
            return Reason.ROBOTS
        if entry.kind is RequestKind.REVISIT or entry.key in host.leased:  # it was judged when it was given out first
            return None
        if self._most_pages is not None and host.row.pages >= self._most_pages:
            return Reason.PAGES_PER_HOST
        # Depth within the host: counted from where it was entered, which may be deep in the crawl.
        if self._most_depth is not None and entry.depth - (host.row.entered or 0) > self._most_depth:
            return Reason.DEPTH
        for hook in self.hooks:
            verdict = hook.judge(host, entry, now_unix)
            if verdict is not None:
                return verdict
        return None

    def may_reach_page_limit(self, host: Host) -> bool:
        """Return whether what is in flight may already fill the host's limit of pages; if it fails, other URLs go
        on."""
        most = self._most_pages
        return most is not None and host.row.pages < most <= host.row.pages + host.slots.in_use

    def puts_last(self, host: Host) -> bool:
        """Return whether any hook puts this host behind all others."""
        for hook in self.hooks:  # noqa: SIM110 - for every URL given out
            if hook.puts_last(host):
                return True
        return False
