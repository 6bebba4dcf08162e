"""Which pieces of bodies may come in now: memory for large bodies, and bandwidth, are shared by all transfers.

`FlowControl` bounds the bytes of large bodies, of all transfers together, and the bandwidth; transfers beyond it pause.
Bodies count until nobody has them any more: where whoever reads them cannot keep up, fewer come in. Small bodies are
never held for memory, so that large ones that drip cannot stop them. Large bodies come as fast as they can only while
there are few of them: then one transfer at a time does, and each of the others gets so much a tick, which no slow
server notices. Where those that have come and are not read yet are as many, all come slowly: who reads has enough to
do with them. Invariants: bytes in flight stay below the cap as long as no transfer has a larger limit than the usual
one; there is no standstill, because a few transfers, the first to need it, are favoured and may always go on to their
own limit; held transfers go on in the order they were held, so bandwidth is shared evenly. Called by `fetch.transfer`
for every piece, and by `fetch.curl`.
"""

from collections import deque
from collections.abc import Callable
from typing import Protocol

from lycosa.fetch.downloader import TransferLimits

# Transfers that may go on while all others wait for memory. More than one, so that a slow server among them does not
# hold up the rest; their limits are kept free below the cap.
FAVOURED = 4
# Where too much has come that is not read yet, other large bodies wait, unless nobody lets one go for so long: what is
# read may need what is held.
STUCK_S = 5.0
# Where large bodies no longer come as fast as they can, each gets so much in such a time, which is one tick of the
# clocks: two megabytes a second.
PACED_S, PACED_BYTES = 0.08, 256 * 1024
# Where those who read do not keep up: a piece of libcurl's in three ticks, so that no server gives a transfer up.
SLOW_S, SLOW_BYTES = 0.28, 64 * 1024
# Unused bandwidth is saved up for this long: a burst after a pause stays small.
BURST_S = 0.2


class Holdable(Protocol):
    """A transfer that can be held. `go_on` may ask `admit` again, and be held again."""

    is_paused: bool
    body_bytes: int  # so much has come

    def go_on(self) -> None: ...


class FlowControl:
    """Admits pieces of bodies, or holds their transfers. `plan_turn` asks for a call of `turn` soon, from outside
    libcurl."""

    def __init__(self, limits: TransferLimits, *, now_s: float, plan_turn: Callable[[], None]) -> None:
        self._plan_turn = plan_turn
        self._full_bytes = max(limits.in_flight_bytes - FAVOURED * limits.body_bytes, limits.in_flight_bytes // 2)
        self._small_bytes, self._unread_most_bytes = limits.small_bytes, limits.unread_bytes
        self._eager_bytes = limits.eager_bytes
        self._rate_bytes_s = limits.bandwidth_bytes_s
        self._credit_bytes = self._rate_bytes_s * BURST_S if self._rate_bytes_s else 0.0
        self._credited_s = now_s
        self._held: deque[Holdable] = deque()
        self._held_favoured: deque[Holdable] = deque()  # for bandwidth, or while nobody reads
        self._favoured: set[Holdable] = set()
        self._next: Holdable | None = None
        self._fast: Holdable | None = None  # it comes as fast as it can
        self._paced: dict[Holdable, int] = {}  # how far others may go now
        self._paced_s = now_s
        self.in_flight_bytes = self.unread_bytes = 0  # of large bodies
        self._has_moved, self._moved_s, self._is_stuck = True, now_s, False

    @property
    def held(self) -> int:
        return len(self._held) + len(self._held_favoured)

    def admit(self, transfer: Holdable, size_bytes: int) -> bool:
        """Whether a piece may come in now. If not, the transfer is held until `turn` tells it to go on."""
        if self._rate_bytes_s is not None and transfer is not self._next:
            return self._hold(transfer)  # every piece waits for its turn
        self._next = None
        grown_bytes = self.counted_bytes(transfer.body_bytes + size_bytes) - self.counted_bytes(transfer.body_bytes)
        if grown_bytes and self._is_behind:
            return self._hold(transfer, is_for_memory=True)
        if grown_bytes and self._is_crowded and not self._is_in_time(transfer, transfer.body_bytes + size_bytes):
            return self._hold(transfer, is_for_memory=True)
        if grown_bytes and transfer not in self._favoured and not self._has_memory(grown_bytes):
            if len(self._favoured) >= FAVOURED:
                return self._hold(transfer, is_for_memory=True)
            self._favoured.add(transfer)
        if self._rate_bytes_s is not None:
            self._credit_bytes -= size_bytes
        self.in_flight_bytes += grown_bytes
        return True

    def counted_bytes(self, body_bytes: int) -> int:
        """How much a body of this size counts: nothing while it is small."""
        return body_bytes if body_bytes > self._small_bytes else 0

    def leave(self, transfer: Holdable) -> None:
        """A transfer has ended; its body is still to be read."""
        counted_bytes = self.counted_bytes(transfer.body_bytes)
        self.in_flight_bytes -= counted_bytes
        self.unread_bytes += counted_bytes
        if transfer.is_paused:
            self._queue_of(transfer).remove(transfer)
            transfer.is_paused = False
        self._favoured.discard(transfer)
        self._paced.pop(transfer, None)
        if transfer is self._fast:
            self._fast = None

    def let_go(self, body_bytes: int) -> None:
        """Nobody has the body of a transfer that has ended any more."""
        if counted_bytes := self.counted_bytes(body_bytes):
            self.unread_bytes -= counted_bytes
            self._has_moved, self._is_stuck = True, False

    def turn(self, now_s: float) -> None:
        """Time has passed or bytes were freed: held transfers go on, each at most once, while there is room."""
        if self._rate_bytes_s is not None:
            earned = (now_s - self._credited_s) * self._rate_bytes_s
            self._credit_bytes = min(self._credit_bytes + earned, self._rate_bytes_s * BURST_S)
            self._credited_s = now_s
        if self._has_moved:
            self._has_moved, self._moved_s = False, now_s
        self._is_stuck = now_s - self._moved_s > STUCK_S
        pause_s, paced_bytes = (SLOW_S, SLOW_BYTES) if self._is_slow else (PACED_S, PACED_BYTES)
        if self._is_crowded and now_s - self._paced_s < pause_s:
            return
        self._paced_s = now_s
        for queue in (self._held_favoured, self._held):
            for _ in range(len(queue)):
                if not queue or not self._has_room(is_favoured=queue is self._held_favoured):
                    break
                transfer = queue.popleft()
                transfer.is_paused = False
                self._next = transfer  # for one piece; for the next one it waits behind the others
                if self._rate_bytes_s is None:
                    self._paced[transfer] = transfer.body_bytes + paced_bytes
                transfer.go_on()
        self._next = None

    def _has_room(self, *, is_favoured: bool) -> bool:
        if self._rate_bytes_s is not None:
            return self._credit_bytes > 0  # small ones are among those held
        if self._is_behind:
            return False
        return is_favoured or len(self._favoured) < FAVOURED or self._has_memory(1)

    @property
    def _is_behind(self) -> bool:
        return self.unread_bytes > self._unread_most_bytes and not self._is_stuck

    @property
    def _is_crowded(self) -> bool:
        """Has so much come that the rest has to come little by little?"""
        return self.in_flight_bytes + self.unread_bytes > self._eager_bytes and self._rate_bytes_s is None

    @property
    def _is_slow(self) -> bool:
        """Do those who read not keep up, so that no large body needs to come fast?"""
        return self.unread_bytes > self._eager_bytes and not self._is_stuck

    def _is_in_time(self, transfer: Holdable, body_bytes: int) -> bool:
        if self._fast is None:
            self._fast = transfer
        return (transfer is self._fast and not self._is_slow) or body_bytes <= self._paced.get(transfer, 0)

    def _has_memory(self, size_bytes: int) -> bool:
        return self.in_flight_bytes + self.unread_bytes + size_bytes <= self._full_bytes

    def _hold(self, transfer: Holdable, *, is_for_memory: bool = False) -> bool:
        transfer.is_paused = True
        self._queue_of(transfer).append(transfer)
        # One that waits for memory would be held again in the next turn, and so on: the next tick is soon enough.
        if self._credit_bytes > 0 and not is_for_memory:
            self._plan_turn()
        return False

    def _queue_of(self, transfer: Holdable) -> deque[Holdable]:
        return self._held_favoured if transfer in self._favoured else self._held
