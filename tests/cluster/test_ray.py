"""Crawls on real Ray, in processes of their own: the truth, politely, whatever is killed, joins, leaves or is deleted.

All are in one group, so that they share one cluster and are not in each other's way (`--dist loadgroup`). A crawl with
`--workers` has a Ray of its own, which ends with it.
"""

import json
import os
import re
import shutil
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from lycosa.cluster.checkpoints import latest_checkpoint
from lycosa.cluster.coordinator import Coordinator
from lycosa.inspect import open_to_read, stats_of
from lycosa.records import Family
from lycosa.recrawl.versions import StoredDocuments
from lycosa.settings import CrawlSettings
from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.log import AuditRules, LoggedRequest, audit, read_log
from lycosa.simweb.truth import truth_of
from lycosa.store import JoinedCollection, WarcLocation, open_central_store, unpack_page
from lycosa.web import url_from_key
from tests.cli.command import ended, simulated_web, started
from tests.cluster.conftest import RayCluster
from tests.cluster.processes import LONGEST_S, NOT_PAGES, holder, logged, wait_for
from tests.crawl.consistency import problems
from tests.simweb.conftest import lycosa, running_simweb, wait_until_read

pytest.importorskip("ray", reason="a cluster needs the extra cluster")
pytestmark = pytest.mark.xdist_group("ray")

CHECKPOINT_EVERY_S = 2.0


class CrawledWeb(NamedTuple):
    """A simulated web that runs, and the words of a crawl of it."""

    web: SimWeb
    seed: str
    log: Path
    into: Path
    words: tuple[str, ...]
    delay_s: float

    def entries(self) -> list[LoggedRequest]:
        return list(read_log(self.log)[1])

    def fetched(self) -> Counter[str]:
        port = self.web.settings.port
        return Counter(f"http://{e.host}:{port}{e.path}" for e in self.entries() if is_page(e))

    def assert_whole(self) -> None:
        """Everything was fetched, and politely."""
        assert set(self.fetched()) == truth_of(self.web, [self.seed], scope="any", mine="ancestors").pages
        findings = audit(self.web.settings, self.entries(), AuditRules(delay_s=self.delay_s))
        assert findings.is_clean, findings.broken()[:5]


def is_page(entry: LoggedRequest) -> bool:
    return entry.status == 200 and not entry.path.endswith(NOT_PAGES)


@contextmanager
def crawled_web(folder: Path, *, hosts: int, delay_s: float) -> Iterator[CrawledWeb]:
    log, into = folder / "log", folder / "crawl"
    shape = {"hosts": hosts, "pages": 700, "addresses": hosts, "sizes": "uniform"}
    options = [word for name, value in shape.items() for word in (f"--{name}", str(value))]
    with running_simweb(*options, "--log", str(log)) as (ready, _):
        seed = f"http://h0.sim:{ready.port}/"
        names = ("--dns", f"127.0.0.1:{ready.dns_port}", "--allow-private", "127.0.0.0/8")
        words = ("crawl", seed, "--into", str(into), "--scope", "any", "--delay", str(delay_s), *names, "--quiet")
        web = SimWeb(SimSettings(**shape, port=ready.port))  # type: ignore[arg-type]
        yield CrawledWeb(web, seed, log, into, words, delay_s)


@pytest.mark.slow
def test_two_workers_reach_the_truth_although_agents_and_driver_are_killed(tmp_path: Path) -> None:
    with crawled_web(tmp_path, hosts=20, delay_s=0.03) as sim:
        log, into = sim.log, sim.into
        first = lycosa(*sim.words, "--workers", "2")
        wait_for(lambda: logged(log) > 200, first)
        os.kill(holder(into, "s0"), signal.SIGKILL)
        killed_at = logged(log)
        wait_for(lambda: logged(log) > killed_at + 150, first)
        first.kill()
        first.communicate()
        second = lycosa(*sim.words, "--index", "--json")  # the folder knows how many workers
        killed_at = logged(log)
        wait_for(lambda: logged(log) > killed_at + 50, second)
        os.kill(holder(into, "s1"), signal.SIGKILL)
        out, err = second.communicate(timeout=LONGEST_S)
        assert second.returncode == 0, err
    sim.assert_whole()
    fetched = sim.fetched()
    assert fetched.total() - len(fetched) <= 0.2 * len(fetched)
    with open_to_read(into) as whole:
        assert isinstance(whole, JoinedCollection)
        pages = [{key for key, _ in shard.state.walk(Family.PAGE)} for shard in whole.shards]
        hosts = [{key for key, _ in shard.state.walk(Family.HOST)} for shard in whole.shards]
        assert all(pages)
        assert not set.intersection(*pages)
        assert not set.intersection(*hosts)
        assert stats_of(whole).pages == json.loads(out)["pages"] >= len(fetched), "nothing else is on standard output"
        for key, row in list(whole.state.walk(Family.PAGE))[::100]:
            place = unpack_page(row).place
            assert not place or whole.record(WarcLocation.unpack(place)).url == url_from_key(key)
    assert [problems(into / "shards" / name) for name in ("s0", "s1")] == [[], []]
    found = ended(started("search", into, "anchor:folder", "--no-update", "--json"))
    assert (found.facts["behind"], found.facts["total"] > 0) == (0, True), "all is in the index, names too"


@pytest.mark.slow
def test_summary_after_ctrl_c_to_the_whole_group_agrees_with_status(tmp_path: Path) -> None:
    with simulated_web(tmp_path, "--hosts", "8", "--pages", "2000") as web:
        words = web.crawl(tmp_path / "c", "--workers", "2", "--scope", "any", "--json", "--quiet", delay="0.1")
        running = started(*words, before=("setsid",))
        wait_for(lambda: logged(web.log) > 60, running)
        os.kill(running.pid, signal.SIGINT)  # as `timeout -s INT` does: the command, then all
        time.sleep(0.02)
        os.killpg(running.pid, signal.SIGINT)
        said = ended(running)
    assert (said.code, said.facts["ended_by"]) == (130, "interrupted"), said.err
    with open_to_read(tmp_path / "c") as collection:
        kept = stats_of(collection)
    counts = ("pages", "known", "queued", "bytes", "requests", "redirects")
    assert {name: said.facts[name] for name in counts} == {name: getattr(kept, name) for name in counts}
    assert kept.pages > 20


@pytest.mark.slow
def test_shard_whose_disk_is_gone_is_restored_from_its_last_checkpoint(tmp_path: Path, ray_cluster: RayCluster) -> None:
    place = tmp_path / "store"
    store = open_central_store(str(place))
    with crawled_web(tmp_path, hosts=20, delay_s=0.03) as sim:
        into = sim.into
        keeping = ("--store", str(place), "--checkpoint", f"{CHECKPOINT_EVERY_S:g}s")
        process = lycosa("cluster", *ray_cluster.at, *sim.words, "--workers", "2", *keeping)
        wait_for(lambda: logged(sim.log) > 300 and latest_checkpoint(store, "s1") is not None, process)
        os.kill(holder(into, "s1"), signal.SIGKILL)
        shutil.rmtree(into / "shards" / "s1")
        wait_until_read(sim.web.settings.port)
        killed_s, checkpoint = time.monotonic(), latest_checkpoint(store, "s1")
        assert checkpoint is not None
        covers_s = killed_s - (time.time() - checkpoint.at_s)
        _, err = process.communicate(timeout=LONGEST_S)
        assert process.returncode == 0, err
    sim.assert_whole()
    fetched, owners = sim.fetched(), Coordinator(into, CrawlSettings()).table
    pages = [entry for entry in sim.entries() if is_page(entry) and owners.owner(entry.host) == "s1"]
    lost = [entry for entry in pages if covers_s - 3 < entry.end < killed_s + 0.5]
    assert fetched.total() - len(fetched) <= len(lost)
    assert not list(into.glob("shards/*/warc/*.warc.gz"))
    with open_to_read(into) as whole:
        documents = StoredDocuments(whole)
        rows = [unpack_page(row) for _, row in whole.state.walk(Family.PAGE)]
        assert len(rows) >= len(fetched)
        assert all(documents.read(row) is not None for row in rows if row.place and row.status == 200)


def said(*words: str) -> tuple[int, str, str]:
    process = lycosa(*words)
    out, err = process.communicate(timeout=LONGEST_S)
    return process.returncode, out, err


def cluster_state(into: Path) -> dict[str, object]:
    state: dict[str, object] = msgspec.json.decode((into / "cluster.json").read_bytes())
    return state


@pytest.mark.slow
def test_shards_join_and_leave_by_command_and_the_crawl_is_whole(tmp_path: Path, ray_cluster: RayCluster) -> None:
    at = ray_cluster.at
    with crawled_web(tmp_path, hosts=30, delay_s=0.1) as sim:
        into = sim.into
        crawler = lycosa("cluster", *at, *sim.words, "--workers", "2")
        wait_for(lambda: logged(sim.log) > 60, crawler)
        code, _, err = said("cluster", *at, "grow", "1")
        assert code == 0
        assert re.fullmatch(r"crawl-\w+: grows by 1 shard\n", err), err
        wait_for(lambda: cluster_state(into)["epoch"] == 2, crawler)
        code, _, err = said("cluster", *at, "shrink", "s0")
        assert code == 0
        assert re.fullmatch(r"crawl-\w+: s0 told to hand over and end\n", err), err
        wait_for(lambda: cluster_state(into)["epoch"] == 3, crawler)
        code, out, _ = said("cluster", *at, "status")
        assert code == 0
        assert ": alive" in out
        _, err = crawler.communicate(timeout=LONGEST_S)
        assert crawler.returncode == 0, err
        code, _, err = said("cluster", *at, "stop")
        assert (code, err.strip()) == (1, f"lycosa: no crawl is running on the cluster at 127.0.0.1:{ray_cluster.port}")
    sim.assert_whole()
    assert max(sim.fetched().values()) == 1
    members: list[dict[str, object]] = cluster_state(into)["members"]  # type: ignore[assignment]
    assert [member["name"] for member in members] == ["s1", "s2"]
