"""How much may come in: the body bytes of all transfers together, and the bandwidth. Transfers beyond it pause.

Invariants: bytes in flight stay below the cap as long as no transfer has a larger limit than the usual one; there is no
standstill, because a few transfers, the first to need it, are favoured and may always go on to their own limit; held
transfers go on in the order they were held, one piece each, so bandwidth is shared evenly. Called by `fetch.transfer`
(may this piece come in?) and `fetch.curl` (one has ended, time has passed).
"""

from collections import deque
from collections.abc import Callable
from typing import Protocol

# Transfers that may go on while all others wait for memory. More than one, so that a slow server among them does not
# hold up the rest; their limits are kept free below the cap.
FAVOURED = 4
# Unused bandwidth is saved up for this long: a burst after a pause stays small.
BURST_S = 0.2


class Holdable(Protocol):
    """A transfer that can be held. `go_on` may ask `admit` again, and be held again."""

    is_paused: bool

    def go_on(self) -> None: ...


class Flow:
    """See the module. `plan_turn` asks for a call of `turn` soon, from outside libcurl."""

    def __init__(
        self,
        *,
        in_flight_bytes: int,
        body_bytes: int,
        bandwidth_bytes_s: float | None,
        now_s: float,
        plan_turn: Callable[[], None],
    ) -> None:
        self._plan_turn = plan_turn
        self._full_bytes = max(in_flight_bytes - FAVOURED * body_bytes, in_flight_bytes // 2)
        self._rate_bytes_s = bandwidth_bytes_s
        self._credit_bytes = bandwidth_bytes_s * BURST_S if bandwidth_bytes_s else 0.0
        self._credited_s = now_s
        self._held: deque[Holdable] = deque()
        self._held_favoured: deque[Holdable] = deque()  # for bandwidth only; memory is theirs
        self._favoured: set[Holdable] = set()
        self._next: Holdable | None = None
        self.in_flight_bytes = 0

    @property
    def held(self) -> int:
        return len(self._held) + len(self._held_favoured)

    def admit(self, transfer: Holdable, size_bytes: int) -> bool:
        """Whether a piece may come in now. If not, the transfer is held and will be told to go on."""
        if self._rate_bytes_s is not None and transfer is not self._next:
            return self._hold(transfer)  # every piece waits for its turn
        self._next = None
        if self.in_flight_bytes + size_bytes > self._full_bytes and transfer not in self._favoured:
            if len(self._favoured) >= FAVOURED:
                return self._hold(transfer)
            self._favoured.add(transfer)
        if self._rate_bytes_s is not None:
            self._credit_bytes -= size_bytes
        self.in_flight_bytes += size_bytes
        return True

    def leave(self, transfer: Holdable, size_bytes: int) -> None:
        """A transfer has ended; what it held is free."""
        self.in_flight_bytes -= size_bytes
        if transfer.is_paused:
            self._queue_of(transfer).remove(transfer)
            transfer.is_paused = False
        self._favoured.discard(transfer)

    def turn(self, now_s: float) -> None:
        """Time has passed or room was made: let held transfers go on, each at most once, while there is room."""
        if self._rate_bytes_s is not None:
            earned = (now_s - self._credited_s) * self._rate_bytes_s
            self._credit_bytes = min(self._credit_bytes + earned, self._rate_bytes_s * BURST_S)
            self._credited_s = now_s
        for queue in (self._held_favoured, self._held):
            for _ in range(len(queue)):
                if not queue or not self._has_room(is_favoured=queue is self._held_favoured):
                    break
                transfer = queue.popleft()
                transfer.is_paused = False
                self._next = transfer  # for one piece; for the next one it waits behind the others
                transfer.go_on()
        self._next = None

    def _has_room(self, *, is_favoured: bool) -> bool:
        if self._rate_bytes_s is not None and self._credit_bytes <= 0:
            return False
        return is_favoured or len(self._favoured) < FAVOURED or self.in_flight_bytes < self._full_bytes

    def _hold(self, transfer: Holdable) -> bool:
        transfer.is_paused = True
        self._queue_of(transfer).append(transfer)
        if self._credit_bytes > 0:
            self._plan_turn()
        return False

    def _queue_of(self, transfer: Holdable) -> deque[Holdable]:
        return self._held_favoured if transfer in self._favoured else self._held
