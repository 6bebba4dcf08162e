"""What the crawl learns of a host is told here: its rules, that it waits or is given up, what else it is asked for.

Each of them may change when the host's turn comes, so that it is placed anew. Called through `Frontier.host_control`.
"""

from collections.abc import Callable

from lycosa.frontier.hosts import Host, HostJob, HostPlace
from lycosa.frontier.politeness import Politeness
from lycosa.frontier.queues import Queues
from lycosa.frontier.scheduler import FetchChecks, HostScheduler
from lycosa.web import Robots, url_key


class HostControl:
    """What may be told of the hosts of one shard. `host_of` brings the host of a key into memory."""

    def __init__(
        self,
        scheduler: HostScheduler,
        queues: Queues,
        checks: FetchChecks,
        politeness: Politeness,
        *,
        host_of: Callable[[bytes, float], Host],
    ) -> None:
        self._scheduler, self._queues, self._checks, self._politeness = scheduler, queues, checks, politeness
        self._host_of = host_of

    def __repr__(self) -> str:
        return f"<HostControl {self._scheduler!r}>"

    def make_wait(self, host: Host, now: float, *, wait_s: float, reason: str, now_unix: float) -> None:
        """Let the whole host wait, for something that happened outside of its own requests."""
        host.wait(now, wait_s, reason, now_unix)
        # From the other places it is placed again by what it waits for: a request, a name, a slot, its rules.
        if host.place in (HostPlace.READY, HostPlace.WAITING, HostPlace.IDLE):
            self._scheduler.place(host, now)

    def give_up(self, host: Host, reason: str, now: float) -> None:
        """Fetch nothing more from this host; its queue stays on disk, in case it is wanted again."""
        if not host.row.gave_up:
            self._queues.give_up(host, reason)
            for hook in self._checks.hooks:
                hook.gave_up(host)
            self._scheduler.place(host, now)  # it may still have to be asked for another host's robots.txt

    def on_resolved(self, name: str, now: float) -> None:
        """A name has been resolved: the hosts that waited for it go on."""
        for host in self._scheduler.named(name):
            self._scheduler.place(host, now)

    def want(self, job: HostJob, now: float) -> None:
        """Fetch the URL of a job before anything else of its host."""
        other = self._host_of(url_key(job.url), now)
        # In the turn of the host that has it, with its slots and its delay: a redirect is no way round politeness.
        other.jobs.append(job)
        if other.place in (HostPlace.IDLE, HostPlace.WAITING, HostPlace.PARKED, HostPlace.ROBOTS):
            self._scheduler.place(other, now)

    def set_robots(self, host: Host, robots: Robots, *, until_unix: float, now: float) -> None:
        """Set the host's rules: it may go on."""
        host.row.robots, host.row.robots_until, host.row.robots_tries = robots, until_unix, 0
        host.row.tries = 0
        before, host.delay_s = host.delay_s, self._politeness.pause_s(robots)
        if host.delay_s > before:  # its Crawl-delay holds for the pause after robots.txt itself, too
            host.slots.later_by(host.delay_s - before)
        self._on_robots(host, now)

    def robots_failed(self, host: Host, now: float, *, counts: bool = True) -> None:
        """Record that the host's rules could not be fetched; they are tried again when the host may be asked again."""
        host.row.robots_tries += counts
        self._on_robots(host, now)

    def _on_robots(self, host: Host, now: float) -> None:
        host.awaits_robots = False
        host.touch()
        if host.place is HostPlace.ROBOTS:
            self._scheduler.place(host, now)
