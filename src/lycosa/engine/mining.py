"""Guesses in a crawl (T2, T3): the folders above fetched pages, and what the hosts' miners propose, queued like links.

A guess goes through the same filters, seen test and robots.txt as any URL and carries its origin. Folders are queued in
the commit that holds the page below them, so no crash loses one; where a host has shown that its folders are not there,
those that wait are dropped when their turn comes. The members of series are guessed by the hosts' miners.
"""

from lycosa.engine.minds import Minds
from lycosa.engine.shard import Shard
from lycosa.frontier.hosts import Host
from lycosa.frontier.lease import Lease
from lycosa.frontier.mining import Found, Guess, Mine
from lycosa.frontier.recent import Recent
from lycosa.frontier.rows import Entry, Origin, Reason
from lycosa.frontier.series import ancestors

GUESSES_AT_ONCE = 8
RECENT_FOLDERS = 10_000
# A host's folders are no longer guessed when so many were tried and less than this share was there.
FOLDERS_ENOUGH, FOLDERS_LEAST = 8, 0.3


class Mining:
    """The guesses of a shard. It watches the frontier for new URLs and for guesses that are dropped."""

    def __init__(self, shard: Shard, minds: Minds) -> None:
        self._shard, self._minds = shard, minds
        self._level = Mine(shard.settings.mine)
        self._recent = Recent(RECENT_FOLDERS)
        self._folders: dict[str, int] = {}  # to be queued with the next commit, and the depth that they are at
        self._busy: dict[bytes, tuple[Host, int]] = {}  # hosts that heard something new, and the depth it was at
        if self._level is not Mine.OFF:
            shard.frontier.watchers.append(self)

    def __repr__(self) -> str:
        return f"<Mining {self._level} folders={len(self._folders)}>"

    # what the frontier tells

    def queued(self, host: Host, entry: Entry) -> None:
        """Nothing to do: guesses are made from pages that are there."""

    def judge(self, host: Host, entry: Entry, now_unix: float) -> Reason | float | None:
        """A folder is not asked for where folders are not there."""
        row = host.row
        is_vain = row.folders_tried >= FOLDERS_ENOUGH and row.folders_found < FOLDERS_LEAST * row.folders_tried
        return Reason.GUESS if entry.origin is Origin.ANCESTOR and is_vain else None

    def dropped(self, host: Host, entry: Entry, reason: Reason) -> None:
        """A URL is not asked for: a guess may have been forbidden."""
        if entry.origin is Origin.SERIES and reason is not Reason.GUESS:
            self._minds.change(host).miner.settle(entry.path, Found.BARRED)

    def puts_last(self, host: Host) -> bool:
        return False

    def page(self, lease: Lease) -> None:
        """A page was fetched: the folders above it may be there too, and its neighbours."""
        entry, host = lease.entry, lease.host
        if self._level is Mine.OFF or entry is None:
            return
        for folder in ancestors(entry.path):
            url = host.origin + folder
            if not self._recent.is_new(url):
                break  # those above it were queued with it
            self._folders[url] = lease.depth + 1
        if self._level is Mine.ALL and not entry.origin.is_guess:
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
        elif self._level is Mine.ALL:
            self._minds.change(host).miner.settle(entry.path, Found.HIT if is_hit else Found.MISS)
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
            self._minds.change(host).miner.settle(guess.path, Found.BARRED if is_new is None else Found.KNOWN)
