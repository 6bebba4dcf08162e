"""What a crawl has learned of its hosts, and the guesses that it makes from that: URLs that nobody links to.

    ancestors("/video/clips/x")  →  /video/clips/, /video/, /

`UrlMining` makes the guesses of a crawl: the folders above every page and, with `--mine all`, the members that are
missing in numbered series (`learning.series`). They are queued like links, through the same filters, seen test and
robots.txt.

A `HostProfile` is what the crawl has learned of one host: guesses that pay, families that repeat, idle parameters. The
profiles of the `PROFILES_MOST` hosts that were busy last are in memory. Each is also a row `mind:HOST` in the state
(the key keeps its old name), written a few at a time, so that a crash costs a host at most some seconds of experience.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from enum import StrEnum

import msgspec

from lycosa.frontier import Frontier, FrontierHook, Host, Lease, Origin, QueueEntry, Reason, RecentUrls
from lycosa.learning.series import GuessOutcome, Miner, MinerRow
from lycosa.learning.traps import BudgetRow, ParameterRow, PatternBudgets, QueryParameters
from lycosa.records import Family
from lycosa.store import Batch, State
from lycosa.web import Url

PROFILES_MOST = 1_000
WRITES_A_COMMIT = 10


class HostProfileRow(msgspec.Struct, array_like=True):
    """A host profile as it is stored."""

    miner: MinerRow
    budgets: BudgetRow
    parameters: ParameterRow


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(HostProfileRow).decode


class HostProfile:
    """All that is learned of one host. The miner is made when it is first asked for: most crawls guess no series."""

    __slots__ = ("_miner", "_miner_row", "budgets", "parameters")

    def __init__(self, row: HostProfileRow | None = None) -> None:
        self._miner: Miner | None = None
        self._miner_row = row.miner if row else MinerRow()
        self.budgets = PatternBudgets(row.budgets if row else None)
        self.parameters = QueryParameters(row.parameters if row else None)

    @property
    def miner(self) -> Miner:
        if self._miner is None:
            self._miner = Miner(self._miner_row)
        return self._miner

    def pack(self) -> bytes:
        miner = self._miner_row if self._miner is None else self._miner.pack()
        return _encode(HostProfileRow(miner, self.budgets.pack(), self.parameters.pack()))


class HostProfiles:
    """The profiles of a shard's hosts."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._profiles: OrderedDict[bytes, HostProfile] = OrderedDict()
        self._changed: OrderedDict[bytes, None] = OrderedDict()

    def __repr__(self) -> str:
        return f"<HostProfiles {len(self._profiles)}, {len(self._changed)} changed>"

    def of(self, host: Host) -> HostProfile:
        """Return the profile of a host, to be read."""
        profile = self._profiles.get(host.key)
        if profile is None:
            row = self._state.get(Family.META, _key(host.key))
            profile = self._profiles[host.key] = HostProfile(_decode(row) if row else None)
        self._profiles.move_to_end(host.key)
        return profile

    def change(self, host: Host) -> HostProfile:
        """Return the profile of a host, to be changed."""
        self._changed[host.key] = None
        return self.of(host)

    def forget(self) -> None:
        """Forget all profiles, because hosts have come or gone; what is not written is lost, experience of some
        seconds."""
        self._profiles.clear()
        self._changed.clear()

    def before_commit(self, batch: Batch) -> None:
        """Write some of the profiles that changed, and all of those that are forgotten."""
        for _ in range(min(WRITES_A_COMMIT, len(self._changed))):
            self._write(batch, self._changed.popitem(last=False)[0])
        while len(self._profiles) > PROFILES_MOST:
            key = next(iter(self._profiles))
            if key in self._changed:
                del self._changed[key]
                self._write(batch, key)
            del self._profiles[key]

    def _write(self, batch: Batch, key: bytes) -> None:
        batch.put(Family.META, _key(key), self._profiles[key].pack())


def _key(host_key: bytes) -> bytes:
    return b"mind:" + host_key


MOST_ANCESTORS = 16
GUESSES_AT_ONCE = 8
RECENT_FOLDERS = 10_000
# A host's folders are no longer guessed when so many were tried and less than this share was there.
FOLDERS_ENOUGH, FOLDERS_LEAST = 8, 0.3


def ancestors(path: str) -> Iterator[str]:
    """Yield the folders that a path lies in, the nearest first, at most `MOST_ANCESTORS`; a query makes no
    difference."""
    folder = path.partition("?")[0].rstrip("/").rpartition("/")[0]
    for _ in range(MOST_ANCESTORS - 1):
        if not folder:
            break
        yield folder + "/"
        folder = folder.rpartition("/")[0].rstrip("/")
    if path != "/":
        yield "/"


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
