"""The members of a collection: what is saved of them, in the names of every version so far."""

import json
from pathlib import Path

from lycosa.cluster.assignment import Member
from lycosa.cluster.coordinator import Coordinator
from lycosa.cluster.membership import load_cluster_state, save_cluster_state
from lycosa.settings import CrawlSettings

SAVED = {
    "epoch": 3,
    "number": 3,
    "incarnation": 7,
    "scheme": "ip",
    "threads": 1,
    "letters": {},
    "members": [{"name": name, "number": 1, "capacity": 1.0, "place": "", "address": ""} for name in ("s0", "s1")],
    "after": [{"name": "s1", "number": 2, "capacity": 1.0, "place": "", "address": ""}],
    "leaving": [],
    "widened": ["http://a.example/"],
    "ranges": {"192.0.2.0/24": "berlin"},
    "homes": {"5": "192.0.2.1"},
    "homes_new": {"6": "192.0.2.2"},
    "identity": "abc",
    "stores": ["/mnt/store"],
    "moved": {"s0": 1},
}


def test_state_of_earlier_versions_is_read_and_written_in_their_names(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text(json.dumps(SAVED))
    state = load_cluster_state(tmp_path)
    assert (state.last_number, state.last_incarnation, state.next_members) == (3, 7, [Member("s1", 2)])
    assert (state.bucket_addresses, state.next_addresses) == ({5: "192.0.2.1"}, {6: "192.0.2.2"})
    assert state.generations == {"s0": 1}
    save_cluster_state(tmp_path, state)
    assert json.loads((tmp_path / "cluster.json").read_text()) == SAVED


def test_move_that_was_begun_before_a_restart_of_the_coordinator_is_finished(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text(json.dumps(SAVED))
    coordinator = Coordinator(tmp_path, CrawlSettings())
    assert coordinator.next_table is not None
    assert (coordinator.table.epoch, coordinator.next_table.epoch, coordinator.names) == (3, 4, ["s0", "s1"])
    coordinator.activate_next_table()
    assert (coordinator.next_table, coordinator.names) == (None, ["s1", "s0"])
    coordinator.has_left("s0")
    assert Coordinator(tmp_path, CrawlSettings()).names == ["s1"]
