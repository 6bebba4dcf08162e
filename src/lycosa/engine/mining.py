"""Guesses in a crawl (T2, T3): hosts' miners hear of every new URL, and what they propose is queued like a link.

A guess goes through the same filters, seen test and robots.txt as any URL and carries its origin. Miners are kept for
the hosts that were busy last, at most `MINERS_MOST`; the others rest in the state, in the row `mine:HOST`.
"""

from collections import OrderedDict

import msgspec

from lycosa.engine.shard import Shard
from lycosa.frontier.frontier import Lease
from lycosa.frontier.hosts import Host
from lycosa.frontier.mining import Found, Guess, Mine, Miner, MinerRow
from lycosa.frontier.mining import Origin as Guessed
from lycosa.frontier.rows import Entry, Origin, Reason
from lycosa.records import Family
from lycosa.store import Batch

MINERS_MOST = 2_000
GUESSES_AT_ONCE = 8
ORIGINS = {Guessed.ANCESTOR: Origin.ANCESTOR, Guessed.SERIES: Origin.SERIES}

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(MinerRow).decode


class Mining:
    """The miners of a shard. It watches the frontier for new URLs and for guesses that are dropped."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self._level = Mine(shard.settings.mine)
        self._miners: OrderedDict[bytes, Miner] = OrderedDict()
        self._busy: dict[bytes, tuple[Host, int]] = {}  # hosts that heard something new, and the depth it was at
        if self._level is not Mine.OFF:
            shard.frontier.watchers.append(self)

    def __repr__(self) -> str:
        return f"<Mining {self._level} miners={len(self._miners)}>"

    def queued(self, host: Host, entry: Entry) -> None:
        """A URL became known."""
        if not entry.origin.is_guess:
            self._miner(host).learn(entry.path)
            self._busy[host.key] = host, entry.depth

    def dropped(self, host: Host, entry: Entry, reason: Reason) -> None:
        """A URL is not asked for: a guess may have been forbidden."""
        if entry.origin.is_guess and reason is not Reason.GUESS:
            self._miner(host).settle(entry.path, Found.BARRED)

    def settled(self, lease: Lease, *, is_hit: bool) -> None:
        """A request has ended; a guess that hit is a document that was not known before."""
        entry = lease.entry
        if entry is not None and entry.origin.is_guess and self._level is not Mine.OFF:
            self._miner(lease.host).settle(entry.path, Found.HIT if is_hit else Found.MISS)
            self._busy[lease.host.key] = lease.host, entry.depth

    def guess(self) -> None:
        """Queues what the miners propose; called before each commit."""
        busy, self._busy = self._busy, {}
        for host, depth in busy.values():
            if host.row.gave_up:
                continue
            for guess in self._miner(host).guesses(GUESSES_AT_ONCE):
                self._try(host, guess, depth)

    def _try(self, host: Host, guess: Guess, depth: int) -> None:
        shard = self._shard
        kept = shard.sifter.sift([host.origin + guess.path])
        if not kept:
            self._miner(host).settle(guess.path, Found.BARRED)
        elif not shard.frontier.admit(kept, depth=depth, now=shard.now(), origin=ORIGINS[guess.origin]):
            self._miner(host).settle(guess.path, Found.KNOWN)

    def _miner(self, host: Host) -> Miner:
        miner = self._miners.get(host.key)
        if miner is None:
            row = self._shard.collection.state.get(Family.META, _key(host.key))
            miner = Miner.unpack(_decode(row), self._level) if row else Miner(self._level)
            self._miners[host.key] = miner
        self._miners.move_to_end(host.key)
        return miner

    def before_commit(self, batch: Batch) -> None:
        """Guesses are queued, and surplus miners put to rest."""
        if self._level is Mine.OFF:
            return
        self.guess()
        while len(self._miners) > MINERS_MOST:
            self._rest(batch, *self._miners.popitem(last=False))

    def close(self, batch: Batch) -> None:
        """The crawl ends: what the miners know is kept."""
        for key, miner in self._miners.items():
            self._rest(batch, key, miner)

    def _rest(self, batch: Batch, key: bytes, miner: Miner) -> None:
        batch.put(Family.META, _key(key), _encode(miner.pack()))


def _key(host_key: bytes) -> bytes:
    return b"mine:" + host_key
