"""Guesses in a crawl (T2, T3): the folders above fetched pages, and what the hosts' miners propose, queued like links.

A guess goes through the same filters, seen test and robots.txt as any URL and carries its origin. Folders are queued in
the commit that holds the page below them, so no crash loses one; where a host has shown that its folders are not there,
those that wait are dropped when their turn comes. Miners, which guess the members of series, are kept for the hosts
that were busy last, at most `MINERS_MOST`; the others rest in the state, in the row `mine:HOST`.
"""

from collections import OrderedDict

import msgspec

from lycosa.engine.shard import Shard
from lycosa.frontier.frontier import Lease
from lycosa.frontier.hosts import Host
from lycosa.frontier.mining import Found, Guess, Mine, Miner, MinerRow
from lycosa.frontier.recent import Recent
from lycosa.frontier.rows import Entry, Origin, Reason
from lycosa.frontier.series import ancestors
from lycosa.records import Family
from lycosa.store import Batch

MINERS_MOST = 2_000
GUESSES_AT_ONCE = 8
RECENT_FOLDERS = 10_000
# A host's folders are no longer guessed when so many were tried and less than this share was there.
FOLDERS_ENOUGH, FOLDERS_LEAST = 8, 0.3

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(MinerRow).decode


class Mining:
    """The guesses of a shard. It watches the frontier for new URLs and for guesses that are dropped."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self._level = Mine(shard.settings.mine)
        self._recent = Recent(RECENT_FOLDERS)
        self._folders: dict[str, int] = {}  # to be queued with the next commit, and the depth that they are at
        self._miners: OrderedDict[bytes, Miner] = OrderedDict()
        self._busy: dict[bytes, tuple[Host, int]] = {}  # hosts that heard something new, and the depth it was at
        if self._level is not Mine.OFF:
            shard.frontier.watchers.append(self)

    def __repr__(self) -> str:
        return f"<Mining {self._level} miners={len(self._miners)}>"

    # what the frontier tells

    def queued(self, host: Host, entry: Entry) -> None:
        """A URL became known."""
        if self._level is Mine.ALL and entry.origin is not Origin.SERIES:
            self._miner(host).learn(entry.path)
            self._busy[host.key] = host, entry.depth

    def drops(self, host: Host, entry: Entry) -> Reason | None:
        """Is a URL not to be asked for, though its turn has come?"""
        row = host.row
        is_vain = row.folders_tried >= FOLDERS_ENOUGH and row.folders_found < FOLDERS_LEAST * row.folders_tried
        return Reason.GUESS if entry.origin is Origin.ANCESTOR and is_vain else None

    def dropped(self, host: Host, entry: Entry, reason: Reason) -> None:
        """A URL is not asked for: a guess may have been forbidden."""
        if entry.origin is Origin.SERIES and reason is not Reason.GUESS:
            self._miner(host).settle(entry.path, Found.BARRED)

    def page(self, lease: Lease) -> None:
        """A page was fetched: the folders above it may be there too."""
        if self._level is Mine.OFF or lease.entry is None:
            return
        for folder in ancestors(lease.entry.path):
            url = lease.host.origin + folder
            if not self._recent.is_new(url):
                break  # those above it were queued with it
            self._folders[url] = lease.depth + 1

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
            self._miner(host).settle(entry.path, Found.HIT if is_hit else Found.MISS)
            self._busy[host.key] = host, entry.depth

    # guessing

    def before_commit(self, batch: Batch) -> None:
        """Guesses are queued, and surplus miners put to rest."""
        folders, self._folders = self._folders, {}
        for url, depth in folders.items():
            self._admit(url, depth, Origin.ANCESTOR)
        busy, self._busy = self._busy, {}
        for host, depth in busy.values():
            if not host.row.gave_up:
                for guess in self._miner(host).guesses(GUESSES_AT_ONCE):
                    self._try(host, guess, depth)
        while len(self._miners) > MINERS_MOST:
            self._rest(batch, *self._miners.popitem(last=False))

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
            self._miner(host).settle(guess.path, Found.BARRED if is_new is None else Found.KNOWN)

    def _miner(self, host: Host) -> Miner:
        miner = self._miners.get(host.key)
        if miner is None:
            row = self._shard.collection.state.get(Family.META, _key(host.key))
            miner = Miner.unpack(_decode(row), self._level) if row else Miner(self._level)
            self._miners[host.key] = miner
        self._miners.move_to_end(host.key)
        return miner

    def close(self, batch: Batch) -> None:
        """The crawl ends: what the miners know is kept."""
        for key, miner in self._miners.items():
            self._rest(batch, key, miner)

    def _rest(self, batch: Batch, key: bytes, miner: Miner) -> None:
        batch.put(Family.META, _key(key), _encode(miner.pack()))


def _key(host_key: bytes) -> bytes:
    return b"mine:" + host_key
