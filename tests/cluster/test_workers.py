"""`lycosa crawl --workers N` with real processes: the truth, whatever is killed, and nobody fetched by two agents."""

import os
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from lycosa.cluster.run import ShardedFolder
from lycosa.crawl.stats import KEY, CrawlStats, Totals
from lycosa.inspect import open_to_read, stats_of
from lycosa.records import Family
from lycosa.settings import CrawlSettings
from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.log import AuditRules, audit, read_log
from lycosa.simweb.truth import truth_of
from lycosa.store import Batch, CollectionStore, JoinedCollection, WarcLocation
from lycosa.store.page_rows import unpack_page
from lycosa.web.url import url_from_key
from tests.cli.command import ended, simulated_web, started
from tests.crawl.consistency import problems
from tests.simweb.conftest import lycosa, running_simweb

pytest.importorskip("ray", reason="--workers needs the extra cluster")

HOSTS, PAGES, DELAY_S = 20, 700, 0.03
NOT_PAGES = ("robots.txt", ".xml", ".gz")
LONGEST_S = 120.0


def wait_for(there: Callable[[], bool], process: "subprocess.Popen[str]") -> None:
    deadline = time.monotonic() + LONGEST_S
    while not there():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)


def logged(log: Path) -> int:
    return log.read_bytes().count(b"\n") if log.exists() else 0


def holder(into: Path, shard: str) -> int:
    """The process that writes a shard."""
    return int((into / "shards" / shard / "lycosa.lock").read_text())


@pytest.mark.slow
def test_two_workers_reach_the_truth_although_agent_and_driver_are_killed(tmp_path: Path) -> None:
    log, into = tmp_path / "log", tmp_path / "crawl"
    shape = ("--hosts", str(HOSTS), "--pages", str(PAGES), "--addresses", str(HOSTS))
    with running_simweb(*shape, "--log", str(log)) as (ready, _):
        seed = f"http://h0.sim:{ready.port}/"
        names = ("--dns", f"127.0.0.1:{ready.dns_port}", "--allow-private", "127.0.0.0/8")
        words = ("crawl", seed, "--into", str(into), "--scope", "any", "--delay", str(DELAY_S), *names, "--quiet")
        first = lycosa(*words, "--workers", "2")
        wait_for(lambda: logged(log) > 200, first)
        os.kill(holder(into, "s0"), signal.SIGKILL)
        killed_at = logged(log)
        wait_for(lambda: logged(log) > killed_at + 150, first)
        first.kill()
        first.communicate()
        second = lycosa(*words)  # the folder knows how many
        _, err = second.communicate(timeout=LONGEST_S)
        assert second.returncode == 0, err
    web = SimWeb(SimSettings(hosts=HOSTS, pages=PAGES, addresses=HOSTS, port=ready.port))
    entries = list(read_log(log)[1])
    fetched = Counter(
        f"http://{e.host}:{ready.port}{e.path}" for e in entries if e.status == 200 and not e.path.endswith(NOT_PAGES)
    )
    assert set(fetched) == truth_of(web, [seed], scope="any", mine="ancestors").pages
    assert fetched.total() - len(fetched) <= 0.2 * len(fetched)
    findings = audit(web.settings, entries, AuditRules(delay_s=DELAY_S))
    assert findings.is_clean, findings.broken()[:5]
    with open_to_read(into) as whole:
        assert isinstance(whole, JoinedCollection)
        pages = [{key for key, _ in shard.state.walk(Family.PAGE)} for shard in whole.shards]
        hosts = [{key for key, _ in shard.state.walk(Family.HOST)} for shard in whole.shards]
        assert all(pages)
        assert not set.intersection(*pages)
        assert not set.intersection(*hosts)
        assert stats_of(whole).pages >= len(fetched)
        for key, row in list(whole.state.walk(Family.PAGE))[::100]:
            place = unpack_page(row).place
            assert not place or whole.record(WarcLocation.unpack(place)).url == url_from_key(key)
    assert [problems(into / "shards" / name) for name in ("s0", "s1")] == [[], []]


@pytest.mark.slow
def test_lost_shard_is_named_json_stays_alone_when_ray_speaks_and_the_index_is_made(tmp_path: Path) -> None:
    log, into, lost = tmp_path / "log", tmp_path / "crawl", tmp_path / "crawl" / "shards" / "s1"
    folder = ShardedFolder(into)
    folder.prepare(CrawlSettings(workers=2))
    folder.close()
    CollectionStore.create(into / "shards" / "s0").close()
    sentence = f"lycosa: the folder of shard s1 is missing ({lost}), and with it all that it held\n"
    status = ended(started("status", into, "--json"))
    assert (status.code, status.err, status.facts["pages"]) == (0, sentence, 0)
    with running_simweb("--hosts", "8", "--pages", "200", "--addresses", "8", "--log", str(log)) as (ready, _):
        names = ("--dns", f"127.0.0.1:{ready.dns_port}", "--allow-private", "127.0.0.0/8")
        words = ("crawl", f"http://h0.sim:{ready.port}/", "--into", into, "--scope", "any", "--delay", "0.02", *names)
        process = started(*words, "--workers", "2", "--index", "--json", "--quiet")
        wait_for(lambda: logged(log) > 40, process)
        os.kill(holder(into, "s0"), signal.SIGKILL)
        said = ended(process)
    assert said.code == 0, said
    assert said.err.startswith(sentence)
    assert said.facts["pages"] > 100
    found = ended(started("search", into, "anchor:folder", "--no-update", "--json"))
    assert found.code == 0, found
    assert (found.facts["behind"], found.facts["total"] > 0) == (0, True), "all is in the index, names too"
    assert ended(started("status", into)).err == ""


def test_recrawl_of_shards_is_refused_and_says_what_looks_at_them_again(tmp_path: Path) -> None:
    into, shard = tmp_path / "c", tmp_path / "c" / "shards" / "s0"
    folder = ShardedFolder(into)
    folder.prepare(CrawlSettings(workers=1))
    folder.close()
    CollectionStore.create(shard).close()
    for path, what in ((into, "has shards"), (shard, f"is a shard of {into}")):
        said = ended(started("recrawl", path, "--all"))
        words = f"{path} {what}: lycosa crawl --into {into} --keep-fresh looks at its pages again"
        assert (said.code, said.out) == (2, "")
        assert said.err == f"lycosa: recrawl is for a collection of one process, and {words}\n"
    said = ended(started("crawl", "http://127.0.0.1:9/", "--into", shard, "--workers", "2"))
    assert (said.code, said.err) == (2, f"lycosa: {shard} is a shard of {into}: say --into {into}\n")


def test_summary_of_agents_that_were_ended_at_once_has_the_counts_that_they_kept(tmp_path: Path) -> None:
    folder = ShardedFolder(tmp_path / "c")
    folder.prepare(CrawlSettings(workers=1))
    agent = CollectionStore.create(tmp_path / "c" / "shards" / "s0")
    kept = Totals(pages=33, known=50, queued=17, bytes=900, requests=40, seconds=3.0)

    def commit_late() -> None:
        time.sleep(0.3)
        batch = Batch()
        batch.put(Family.META, KEY, msgspec.json.encode(kept))
        agent.commit(batch)
        agent.close()

    told = CrawlStats(pages=23, known=40, queued=17, bytes=500, requests=25, run_pages=13, run_bytes=400, seconds=7.0)
    ending = threading.Thread(target=commit_late)
    ending.start()
    found = folder.final_stats(told)
    ending.join()
    folder.close()
    assert (found.pages, found.known, found.queued, found.bytes, found.requests) == (33, 50, 17, 900, 40)
    assert (found.run_pages, found.run_bytes, found.seconds) == (23, 800, 7.0)


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


def test_summary_where_nothing_was_kept_is_as_told(tmp_path: Path) -> None:
    folder, told = ShardedFolder(tmp_path / "c"), CrawlStats(pages=1)
    assert folder.final_stats(told) == told
    folder.close()


def test_without_ray_one_sentence_says_how_to_get_it(tmp_path: Path) -> None:
    script = (
        "import importlib.util, sys\n"
        "found = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *rest: None if name == 'ray' else found(name, *rest)\n"
        "from lycosa.cli import main\n"
        "main()\n"
    )
    process = lycosa("crawl", "http://127.0.0.1:9/", "--into", str(tmp_path / "c"), "--workers", "2", script=script)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert err.strip() == "lycosa: a crawl with --workers needs an optional package: pip install 'lycosa[cluster]'"
    assert not (tmp_path / "c").exists()


def test_collection_of_one_process_is_not_gone_on_with_by_several(tmp_path: Path) -> None:
    CollectionStore.create(tmp_path / "c").close()
    process = lycosa("crawl", "http://127.0.0.1:9/", "--into", str(tmp_path / "c"), "--workers", "2")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "go on without --workers" in err
