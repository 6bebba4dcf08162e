"""A host profile is what the crawl has learned of one host: guesses that pay, families that repeat, idle parameters.

The profiles of the `PROFILES_MOST` hosts that were busy last are in memory. Each is also a row `mind:HOST` in the state
(the key keeps its old name), written a few at a time, so that a crash costs a host at most some seconds of experience.
"""

from collections import OrderedDict

import msgspec

from lycosa.frontier import Host
from lycosa.learning.mining import Miner, MinerRow
from lycosa.learning.parameters import ParameterRow, QueryParameters
from lycosa.learning.traps import BudgetRow, PatternBudgets
from lycosa.records import Family
from lycosa.store import Batch, State

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
    """All that is learned of one host."""

    __slots__ = ("budgets", "miner", "parameters")

    def __init__(self, row: HostProfileRow | None = None) -> None:
        self.miner = Miner(row.miner if row else None)
        self.budgets = PatternBudgets(row.budgets if row else None)
        self.parameters = QueryParameters(row.parameters if row else None)

    def pack(self) -> bytes:
        return _encode(HostProfileRow(self.miner.pack(), self.budgets.pack(), self.parameters.pack()))


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
