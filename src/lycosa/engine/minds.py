"""What is learned of each host: guesses that pay, families of URLs that say nothing new, parameters without effect.

Kept in memory for the hosts that were busy last, `MINDS_MOST` of them; every mind rests in the state too, in the row
`mind:HOST`, written a few at a time, so that a crash costs a host at most some seconds of experience.
"""

from collections import OrderedDict

import msgspec

from lycosa.frontier.budgets import BudgetRow, PatternBudgets
from lycosa.frontier.hosts import Host
from lycosa.frontier.mining import Mine, Miner, MinerRow
from lycosa.frontier.parameters import ParameterRow, Parameters
from lycosa.records import Family
from lycosa.store import Batch, State

MINDS_MOST = 1_000
WRITES_A_COMMIT = 10


class MindRow(msgspec.Struct, array_like=True):
    """A mind as it is stored."""

    miner: MinerRow
    budgets: BudgetRow
    parameters: ParameterRow


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(MindRow).decode


class Mind:
    """All that is learned of one host."""

    __slots__ = ("budgets", "miner", "parameters")

    def __init__(self, level: Mine, row: MindRow | None) -> None:
        self.miner = Miner.unpack(row.miner, level) if row else Miner(level)
        self.budgets = PatternBudgets.unpack(row.budgets) if row else PatternBudgets()
        self.parameters = Parameters(row.parameters if row else None)

    def pack(self) -> bytes:
        return _encode(MindRow(self.miner.pack(), self.budgets.pack(), self.parameters.pack()))


class Minds:
    """The minds of a shard's hosts."""

    def __init__(self, state: State, level: Mine) -> None:
        self._state, self.level = state, level
        self._minds: OrderedDict[bytes, Mind] = OrderedDict()
        self._changed: OrderedDict[bytes, None] = OrderedDict()

    def __repr__(self) -> str:
        return f"<Minds {len(self._minds)}, {len(self._changed)} changed>"

    def of(self, host: Host) -> Mind:
        """The mind of a host, to be read."""
        mind = self._minds.get(host.key)
        if mind is None:
            row = self._state.get(Family.META, _key(host.key))
            mind = self._minds[host.key] = Mind(self.level, _decode(row) if row else None)
        self._minds.move_to_end(host.key)
        return mind

    def change(self, host: Host) -> Mind:
        """The mind of a host, to be changed."""
        self._changed[host.key] = None
        return self.of(host)

    def forget(self) -> None:
        """Hosts have come or gone: what is not written is lost, experience of some seconds."""
        self._minds.clear()
        self._changed.clear()

    def before_commit(self, batch: Batch) -> None:
        """Some of the minds that changed are written, those that are forgotten all."""
        for _ in range(min(WRITES_A_COMMIT, len(self._changed))):
            self._write(batch, self._changed.popitem(last=False)[0])
        while len(self._minds) > MINDS_MOST:
            key = next(iter(self._minds))
            if key in self._changed:
                del self._changed[key]
                self._write(batch, key)
            del self._minds[key]

    def _write(self, batch: Batch, key: bytes) -> None:
        batch.put(Family.META, _key(key), self._minds[key].pack())


def _key(host_key: bytes) -> bytes:
    return b"mind:" + host_key
