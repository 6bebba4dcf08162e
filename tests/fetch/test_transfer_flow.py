"""Pausing: never more bytes than allowed, never a standstill, fair shares. Transfers are fakes, time is virtual."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from lycosa.fetch.downloader import TransferLimits
from lycosa.fetch.flow import FAVOURED, PACED_BYTES, PACED_S, SLOW_BYTES, SLOW_S, STUCK_S, FlowControl

BODY_BYTES = 1_000
PIECE_BYTES = 100


class FakeTransfer:
    """Wants `left` bytes, in pieces; tries again when told to go on."""

    piece_bytes = PIECE_BYTES

    def __init__(self, flow: FlowControl, left: int) -> None:
        self.flow = flow
        self.left = left
        self.body_bytes = 0
        self.is_paused = False

    def receive(self) -> None:
        size = min(self.piece_bytes, self.left)
        if not self.is_paused and size and self.flow.admit(self, size):
            self.left -= size
            self.body_bytes += size

    go_on = receive

    def end(self) -> None:
        self.flow.leave(self)
        self.flow.let_go(self.body_bytes)


class WideTransfer(FakeTransfer):
    """Wants larger pieces, as libcurl gives them."""

    piece_bytes = 16 * 1024


def flow_of(
    in_flight_bytes: int,
    bandwidth_bytes_s: float | None = None,
    plan_turn: Callable[[], None] = lambda: None,
    *,
    eager_bytes: int = 8_000_000,
) -> FlowControl:
    limits = TransferLimits(
        in_flight_bytes=in_flight_bytes,
        eager_bytes=eager_bytes,
        unread_bytes=in_flight_bytes // 6,
        small_bytes=in_flight_bytes // 200,
        body_bytes=BODY_BYTES,
        bandwidth_bytes_s=bandwidth_bytes_s,
    )
    return FlowControl(limits, now_s=0.0, plan_turn=plan_turn)


@given(
    sizes=st.lists(st.integers(1, BODY_BYTES), min_size=1, max_size=40),
    rate=st.one_of(st.none(), st.floats(100, 100_000)),
    order=st.randoms(use_true_random=False),
    eager_bytes=st.sampled_from([0, BODY_BYTES, 8_000_000]),
)
def test_flow_any_transfers_all_end_and_never_hold_too_much(
    sizes: list[int], rate: float | None, order: object, eager_bytes: int
) -> None:
    flow = flow_of(8 * BODY_BYTES, rate, eager_bytes=eager_bytes)
    running = [FakeTransfer(flow, size) for size in sizes]
    now_s = 0.0

    for _ in range(20_000):
        if not running:
            break
        now_s += 0.1
        order.shuffle(running)  # type: ignore[attr-defined]
        for transfer in running:
            transfer.receive()
        assert flow.in_flight_bytes <= 8 * BODY_BYTES
        for transfer in [one for one in running if not one.left]:
            running.remove(transfer)
            transfer.end()
        flow.turn(now_s)
        for transfer in [one for one in running if not one.left]:
            running.remove(transfer)
            transfer.end()

    assert running == []
    assert flow.in_flight_bytes == 0
    assert flow.held == 0


def test_flow_favoured_transfer_that_leaves_makes_room_for_the_next() -> None:
    flow = flow_of(2 * BODY_BYTES)
    transfers = [FakeTransfer(flow, BODY_BYTES) for _ in range(30)]
    for _ in range(10):
        for transfer in transfers:
            transfer.receive()
    stuck = [transfer for transfer in transfers if transfer.is_paused]
    assert stuck

    for transfer in [one for one in transfers if not one.is_paused]:
        transfer.end()
    flow.turn(0.0)

    assert any(not transfer.is_paused for transfer in stuck)


def test_flow_bandwidth_is_shared_evenly_and_kept() -> None:
    flow = flow_of(10**9, 10_000)
    transfers = [FakeTransfer(flow, 10**6) for _ in range(7)]
    for step in range(1, 1_001):
        for transfer in transfers:
            transfer.receive()
        flow.turn(step * 0.01)

    got = [transfer.body_bytes for transfer in transfers]
    assert 95_000 <= sum(got) <= 105_000
    assert max(got) - min(got) <= 0.1 * max(got)


def test_flow_paused_transfer_that_leaves_is_never_told_to_go_on() -> None:
    flow = flow_of(10**9, 1_000)
    first, second = FakeTransfer(flow, 500), FakeTransfer(flow, 500)
    first.receive()
    second.receive()
    first.end()
    flow.turn(10.0)

    assert first.body_bytes == 0
    assert second.body_bytes > 0


def test_flow_unread_bodies_hold_large_transfers_until_they_are_let_go_or_nothing_moves_for_long() -> None:
    flow = flow_of(8 * BODY_BYTES)
    unread = [FakeTransfer(flow, BODY_BYTES) for _ in range(3)]
    for transfer in unread * 10:
        transfer.receive()
    for transfer in unread:
        flow.leave(transfer)
    large, small = FakeTransfer(flow, BODY_BYTES), FakeTransfer(flow, 30)
    large.receive()
    small.receive()
    flow.turn(1.0)

    assert (large.body_bytes, small.body_bytes) == (0, 30)
    flow.turn(1.0 + STUCK_S)
    assert large.body_bytes == 0
    flow.turn(1.1 + STUCK_S)
    assert large.body_bytes == PIECE_BYTES

    flow.leave(large)
    waiting = FakeTransfer(flow, BODY_BYTES)
    waiting.receive()
    flow.turn(1.2 + STUCK_S)
    assert waiting.body_bytes == PIECE_BYTES  # still nobody reads
    flow.let_go(unread[0].body_bytes)
    waiting.receive()
    flow.turn(1.3 + STUCK_S)
    assert waiting.body_bytes == PIECE_BYTES
    for transfer in unread[1:]:
        flow.let_go(transfer.body_bytes)
    flow.turn(1.4 + STUCK_S)
    assert waiting.body_bytes == 2 * PIECE_BYTES


def test_flow_small_bodies_that_end_do_not_keep_the_large_ones_waiting() -> None:
    flow = flow_of(8 * BODY_BYTES)
    unread = [FakeTransfer(flow, BODY_BYTES) for _ in range(2)]
    for transfer in unread * 10:
        transfer.receive()
    for transfer in unread:
        flow.leave(transfer)
    large = FakeTransfer(flow, BODY_BYTES)
    large.receive()
    flow.turn(0.0)
    for second in range(1, round(STUCK_S) + 3):
        small = FakeTransfer(flow, 30)
        small.receive()
        small.end()
        flow.turn(float(second))

    assert large.body_bytes > 0


def test_flow_transfer_that_waits_for_memory_plans_no_turn_however_much_bandwidth_there_is() -> None:
    turns = list[None]()
    flow = flow_of(2 * BODY_BYTES, 1e9, lambda: turns.append(None))
    transfers = [FakeTransfer(flow, BODY_BYTES) for _ in range(FAVOURED + 4)]
    for transfer in transfers:
        transfer.receive()
    for tenth in range(1, 60):
        flow.turn(tenth / 10)
        for transfer in transfers:
            transfer.receive()
    before = len(turns)
    flow.turn(6.0)

    assert flow.held > 0
    assert len(turns) == before


def test_flow_large_bodies_beyond_the_eager_ones_come_little_by_little_but_one() -> None:
    whole = 4 * PACED_BYTES
    limits = TransferLimits(body_bytes=whole, eager_bytes=whole - 1, unread_bytes=20 * whole)
    flow = FlowControl(limits, now_s=0.0, plan_turn=lambda: None)
    eager, fast, *others = transfers = [WideTransfer(flow, whole) for _ in range(5)]

    def receive_all() -> None:
        for transfer in transfers * 200:
            transfer.receive()

    while eager.body_bytes < whole:
        eager.receive()
    receive_all()
    before = [transfer.body_bytes for transfer in others]
    assert fast.body_bytes == whole
    assert max(before) <= limits.small_bytes  # small bodies are never held

    flow.turn(PACED_S / 2)  # too soon
    receive_all()
    assert [transfer.body_bytes for transfer in others] == before

    flow.turn(PACED_S * 1.01)
    receive_all()
    assert all(0 < transfer.body_bytes <= before[0] + PACED_BYTES for transfer in others)

    fast.end()
    flow.turn(PACED_S * 2.02)
    receive_all()
    assert sorted(transfer.body_bytes == whole for transfer in others) == [False, False, True]

    for tick in range(4, 10):
        flow.turn(PACED_S * 1.01 * tick)
        receive_all()
    assert [transfer.body_bytes for transfer in others] == [whole] * 3


def test_flow_large_bodies_come_slowly_while_enough_of_them_are_not_read() -> None:
    whole = 4 * PACED_BYTES
    limits = TransferLimits(body_bytes=whole, eager_bytes=whole - 1, unread_bytes=20 * whole)
    flow = FlowControl(limits, now_s=0.0, plan_turn=lambda: None)
    unread, fast, other = transfers = [WideTransfer(flow, 2 * whole) for _ in range(3)]
    while unread.body_bytes < whole:
        unread.receive()
    flow.leave(unread)

    def receive_all() -> list[int]:
        for transfer in transfers[1:] * 200:
            transfer.receive()
        return [transfer.body_bytes for transfer in transfers[1:]]

    before = receive_all()
    assert max(before) <= limits.small_bytes
    flow.turn(PACED_S * 1.01)  # too soon
    assert receive_all() == before

    flow.turn(SLOW_S * 1.01)
    slow = receive_all()
    assert all(size < now <= size + SLOW_BYTES for size, now in zip(before, slow, strict=True))

    flow.let_go(unread.body_bytes)
    flow.turn(SLOW_S * 2.02)
    receive_all()
    assert fast.body_bytes == 2 * whole
    assert other.body_bytes > slow[1] + SLOW_BYTES
