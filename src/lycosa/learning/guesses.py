"""Guessed URLs in a crawl: queued like links, through the same filters, seen test and robots.txt.

`UrlMining` guesses the folders above every page and, with `--mine all`, the members of numbered series that the hosts'
miners propose, and tells the miners what became of these.
"""

from collections.abc import Callable
from enum import StrEnum

from lycosa.frontier import Frontier, FrontierHook, Host, Lease, Origin, QueueEntry, Reason, RecentUrls
from lycosa.learning.mining import GuessOutcome, ancestors
from lycosa.learning.profiles import HostProfiles
from lycosa.store import Batch
from lycosa.web import Url

GUESSES_AT_ONCE = 8
RECENT_FOLDERS = 10_000
# A host's folders are no longer guessed when so many were tried and less than this share was there.
FOLDERS_ENOUGH, FOLDERS_LEAST = 8, 0.3


class MiningLevel(StrEnum):
    """`--mine`: which guesses a crawl makes."""

    OFF = "off"
    ANCESTORS = "ancestors"
    ALL = "all"


class UrlMining(FrontierHook):
    """The guesses of a shard. `sift` returns those URLs that the crawl's filters let through."""

    def __init__(
        self,
        frontier: Frontier,
        profiles: HostProfiles,
        level: MiningLevel,
        *,
        sift: Callable[[list[str]], list[Url]],
        most_depth: int | None,
        now: Callable[[], float],
    ) -> None:
        self._frontier, self._profiles, self._level = frontier, profiles, level
        self._sift, self._most_depth, self._now = sift, most_depth, now
        self._recent = RecentUrls(RECENT_FOLDERS)
        self._folders: dict[str, int] = {}  # to be queued with the next commit, and the depth that they are at
        self._busy: dict[bytes, tuple[Host, int]] = {}  # hosts that heard something new, and the depth it was at
        if level is not MiningLevel.OFF:
            frontier.add_hook(self)

    def __repr__(self) -> str:
        return f"<UrlMining {self._level} folders={len(self._folders)}>"

    def judge(self, host: Host, entry: QueueEntry, now_unix: float) -> Reason | float | None:
        """Drop a guessed folder where the host has shown that its folders are not there."""
        row = host.row
        is_vain = row.folders_tried >= FOLDERS_ENOUGH and row.folders_found < FOLDERS_LEAST * row.folders_tried
        return Reason.GUESS if entry.origin is Origin.ANCESTOR and is_vain else None

    def dropped(self, host: Host, entry: QueueEntry, reason: Reason) -> None:
        """Tell the miner of a guess that was dropped, by robots.txt or a limit."""
        if entry.origin is Origin.SERIES and reason is not Reason.GUESS:
            self._profiles.change(host).miner.record_outcome(entry.path, GuessOutcome.BARRED)

    def page_fetched(self, lease: Lease) -> None:
        """Learn from a page that was fetched: the folders above it may be there too, and its neighbours."""
        entry, host = lease.entry, lease.host
        if self._level is MiningLevel.OFF or entry is None:
            return
        for folder in ancestors(entry.path):
            url = host.origin + folder
            if not self._recent.is_new(url):
                break  # those above it were queued with it
            self._folders[url] = lease.depth + 1
        if self._level is MiningLevel.ALL and not entry.origin.is_guess:
            self._profiles.change(host).miner.learn(entry.path)
            self._busy[host.key] = host, entry.depth

    def record_outcome(self, lease: Lease, *, is_hit: bool) -> None:
        """Record what became of a guess: it hit if it gave a document that was not known before."""
        entry, host = lease.entry, lease.host
        if entry is None or not entry.origin.is_guess:
            return
        if entry.origin is Origin.ANCESTOR:
            host.count(folders_tried=1, folders_found=is_hit)
        elif self._level is MiningLevel.ALL:
            outcome = GuessOutcome.HIT if is_hit else GuessOutcome.MISS
            self._profiles.change(host).miner.record_outcome(entry.path, outcome)
            self._busy[host.key] = host, entry.depth

    def before_commit(self, batch: Batch, *, is_last: bool) -> None:
        """Enqueue the guesses."""
        # Folders go into the same commit as the page below them: after a crash nobody would think of them again.
        folders, self._folders = self._folders, {}
        for url, depth in folders.items():
            self._admit(url, depth, Origin.ANCESTOR)
        busy, self._busy = self._busy, {}
        for host, depth in busy.values():
            if not host.row.gave_up:
                miner = self._profiles.change(host).miner
                for path in miner.guesses(GUESSES_AT_ONCE):
                    is_new = self._admit(host.origin + path, depth + 1, Origin.SERIES)
                    if not is_new:
                        miner.record_outcome(path, GuessOutcome.BARRED if is_new is None else GuessOutcome.KNOWN)

    def on_committed(self) -> None:
        """Nothing to do."""

    def _admit(self, url: str, depth: int, origin: Origin) -> bool | None:
        """Enqueue a guess; return whether it is new, None if it is not wanted."""
        kept = self._sift([url]) if self._most_depth is None or depth <= self._most_depth else []
        if not kept:
            return None
        return bool(self._frontier.admit(kept, depth=depth, now=self._now(), origin=origin))
