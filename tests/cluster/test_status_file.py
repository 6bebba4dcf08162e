"""What the coordinator knows is there for whoever looks on: leases, moves, exchange."""

from pathlib import Path

from lycosa.cluster.coordinator import Coordinator
from lycosa.cluster.status_file import StatusFile, coordinator_status, load_coordinator_status
from lycosa.settings import CrawlSettings
from tests.cluster.test_leases import beat

ADDRESS = "192.0.2.1"


def test_leases_moves_and_exchange_are_told(tmp_path: Path) -> None:
    coordinator = Coordinator(tmp_path, CrawlSettings(seeds=["http://a.example/"]))
    coordinator.create_members(["", ""])
    given = {name: coordinator.enrol(name).incarnation for name in ("s0", "s1")}
    beat(coordinator, "s0", given["s0"], wants=(ADDRESS,), sent_urls=7, sent_bytes=900)
    beat(coordinator, "s1", given["s1"])
    beat(coordinator, "s0", given["s0"], wants=(ADDRESS,), sent_urls=7, sent_bytes=900)
    beat(coordinator, "s1", given["s1"], wants=(ADDRESS,))
    coordinator.leave(["s1"])
    beat(coordinator, "s0", given["s0"], handing_over=2, sent_urls=8)

    status = coordinator_status(coordinator, now_unix=1_000.0)

    assert (status.epoch, status.move) == (1, "hosts move to the assignment of epoch 2")
    first, second = status.shards
    assert (first.addresses, first.awaited, first.move, first.sent_urls) == (1, 0, "hands over", 8)
    assert (second.addresses, second.awaited, second.move) == (0, 1, "leaves")
    assert second.heard_unix <= 1_000

    StatusFile(tmp_path).write(coordinator)
    written = load_coordinator_status(tmp_path)
    assert written is not None
    assert [each.name for each in written.shards] == ["s0", "s1"]


def test_no_status_where_no_coordinator_was(tmp_path: Path) -> None:
    assert load_coordinator_status(tmp_path) is None
    (tmp_path / "coordinator.json").write_text("{")
    assert load_coordinator_status(tmp_path) is None
