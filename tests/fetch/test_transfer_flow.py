"""Pausing: never more bytes than allowed, never a standstill, fair shares. Transfers are fakes, time is virtual."""

from hypothesis import given
from hypothesis import strategies as st

from lycosa.fetch.transfer import FlowControl

BODY_BYTES = 1_000
PIECE_BYTES = 100


class FakeTransfer:
    """Wants `left` bytes, in pieces; tries again when told to go on."""

    def __init__(self, flow: FlowControl, left: int) -> None:
        self.flow = flow
        self.left = left
        self.got = 0
        self.is_paused = False

    def receive(self) -> None:
        size = min(PIECE_BYTES, self.left)
        if not self.is_paused and size and self.flow.admit(self, size):
            self.left -= size
            self.got += size

    go_on = receive


def flow_of(in_flight_bytes: int, bandwidth_bytes_s: float | None = None) -> FlowControl:
    return FlowControl(
        in_flight_bytes=in_flight_bytes,
        body_bytes=BODY_BYTES,
        bandwidth_bytes_s=bandwidth_bytes_s,
        now_s=0.0,
        plan_turn=lambda: None,
    )


@given(
    sizes=st.lists(st.integers(1, BODY_BYTES), min_size=1, max_size=40),
    rate=st.one_of(st.none(), st.floats(100, 100_000)),
    order=st.randoms(use_true_random=False),
)
def test_flow_any_transfers_all_end_and_never_hold_too_much(
    sizes: list[int], rate: float | None, order: object
) -> None:
    flow = flow_of(8 * BODY_BYTES, rate)
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
            flow.leave(transfer, transfer.got)
        flow.turn(now_s)
        for transfer in [one for one in running if not one.left]:
            running.remove(transfer)
            flow.leave(transfer, transfer.got)

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
        flow.leave(transfer, transfer.got)
    flow.turn(0.0)

    assert any(not transfer.is_paused for transfer in stuck)


def test_flow_bandwidth_is_shared_evenly_and_kept() -> None:
    flow = flow_of(10**9, 10_000)
    transfers = [FakeTransfer(flow, 10**6) for _ in range(7)]
    for step in range(1, 1_001):
        for transfer in transfers:
            transfer.receive()
        flow.turn(step * 0.01)

    got = [transfer.got for transfer in transfers]
    assert 95_000 <= sum(got) <= 105_000
    assert max(got) - min(got) <= 0.1 * max(got)


def test_flow_paused_transfer_that_leaves_is_never_told_to_go_on() -> None:
    flow = flow_of(10**9, 1_000)
    first, second = FakeTransfer(flow, 500), FakeTransfer(flow, 500)
    first.receive()
    second.receive()
    flow.leave(first, first.got)
    flow.turn(10.0)

    assert first.got == 0
    assert second.got > 0
