"""Guessed URLs in a crawl: queued like links, through the same filters, seen test and robots.txt.

`UrlMining` queues what the hosts' miners propose and tells them what became of it. Folders are queued in the commit
that holds the page below them, so no crash loses one; where a host has shown that its folders are not there, those that
wait are dropped when their turn comes.
"""

from lycosa.crawl.shard import Shard
from lycosa.frontier import Host, Lease, Origin, QueueEntry, Reason, RecentUrls
from lycosa.learning.mining import Guess, GuessOutcome, MiningLevel
from lycosa.learning.profiles import HostProfiles
from lycosa.learning.series import ancestors

GUESSES_AT_ONCE = 8
RECENT_FOLDERS = 10_000
# A host's folders are no longer guessed when so many were tried and less than this share was there.
FOLDERS_ENOUGH, FOLDERS_LEAST = 8, 0.3


class UrlMining:
    """The guesses of a shard. It watches the frontier for new URLs and for guesses that are dropped."""

    def __init__(self, shard: Shard, minds: HostProfiles) -> None:
        self._shard, self._minds = shard, minds
        self._level = MiningLevel(shard.settings.mine)
        self._recent = RecentUrls(RECENT_FOLDERS)
        self._folders: dict[str, int] = {}  # to be queued with the next commit, and the depth that they are at
        self._busy: dict[bytes, tuple[Host, int]] = {}  # hosts that heard something new, and the depth it was at
        if self._level is not MiningLevel.OFF:
            shard.frontier.watchers.append(self)

    def __repr__(self) -> str:
        return f"<Mining {self._level} folders={len(self._folders)}>"

    # what the frontier tells

    def queued(self, host: Host, entry: QueueEntry) -> None:
        """Nothing to do: guesses are made from pages that are there."""

    def judge(self, host: Host, entry: QueueEntry, now_unix: float) -> Reason | float | None:
        """A folder is not asked for where folders are not there."""
        row = host.row
        is_vain = row.folders_tried >= FOLDERS_ENOUGH and row.folders_found < FOLDERS_LEAST * row.folders_tried
        return Reason.GUESS if entry.origin is Origin.ANCESTOR and is_vain else None

    def dropped(self, host: Host, entry: QueueEntry, reason: Reason) -> None:
        """A URL is not asked for: a guess may have been forbidden."""
        if entry.origin is Origin.SERIES and reason is not Reason.GUESS:
            self._minds.change(host).miner.settle(entry.path, GuessOutcome.BARRED)

    def puts_last(self, host: Host) -> bool:
        return False

    def page(self, lease: Lease) -> None:
        """A page was fetched: the folders above it may be there too, and its neighbours."""
        entry, host = lease.entry, lease.host
        if self._level is MiningLevel.OFF or entry is None:
            return
        for folder in ancestors(entry.path):
            url = host.origin + folder
            if not self._recent.is_new(url):
                break  # those above it were queued with it
            self._folders[url] = lease.depth + 1
        if self._level is MiningLevel.ALL and not entry.origin.is_guess:
            self._minds.change(host).miner.learn(entry.path)
            self._busy[host.key] = host, entry.depth

    # what becomes of guesses

    def settled(self, lease: Lease, *, is_hit: bool) -> None:
        """A request has ended; a guess that hit is a document that was not known before."""
        entry, host = lease.entry, lease.host
        if entry is None or not entry.origin.is_guess:
            return
        if entry.origin is Origin.ANCESTOR:
            host.row.folders_tried += 1
            host.row.folders_found += is_hit
        elif self._level is MiningLevel.ALL:
            self._minds.change(host).miner.settle(entry.path, GuessOutcome.HIT if is_hit else GuessOutcome.MISS)
            self._busy[host.key] = host, entry.depth

    # guessing

    def before_commit(self) -> None:
        """Guesses are queued."""
        folders, self._folders = self._folders, {}
        for url, depth in folders.items():
            self._admit(url, depth, Origin.ANCESTOR)
        busy, self._busy = self._busy, {}
        for host, depth in busy.values():
            if not host.row.gave_up:
                for guess in self._minds.change(host).miner.guesses(GUESSES_AT_ONCE):
                    self._try(host, guess, depth)

    def _admit(self, url: str, depth: int, origin: Origin) -> bool | None:
        """Whether a guess is new; None if it is not wanted."""
        limit = self._shard.settings.depth
        kept = self._shard.sifter.sift([url]) if limit is None or depth <= limit else []
        if not kept:
            return None
        return bool(self._shard.frontier.admit(kept, depth=depth, now=self._shard.now(), origin=origin))

    def _try(self, host: Host, guess: Guess, depth: int) -> None:
        is_new = self._admit(host.origin + guess.path, depth + 1, Origin.SERIES)
        if not is_new:
            self._minds.change(host).miner.settle(
                guess.path, GuessOutcome.BARRED if is_new is None else GuessOutcome.KNOWN
            )
