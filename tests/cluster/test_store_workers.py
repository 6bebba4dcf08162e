"""A shard whose process is killed and whose folder is deleted, with real processes on real Ray: it is restored."""

import os
import shutil
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from lycosa.cluster.assignment import AssignmentTable
from lycosa.cluster.checkpoints import latest_checkpoint
from lycosa.cluster.coordinator import Coordinator
from lycosa.inspect import open_to_read
from lycosa.records import Family
from lycosa.recrawl.versions import StoredDocuments
from lycosa.settings import CrawlSettings
from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.log import AuditRules, LoggedRequest, audit, read_log
from lycosa.simweb.truth import truth_of
from lycosa.store.central import open_central_store
from lycosa.store.page_rows import unpack_page
from tests.cluster.test_workers import LONGEST_S, NOT_PAGES, holder, logged, wait_for
from tests.simweb.conftest import lycosa, running_simweb

pytest.importorskip("ray", reason="--workers needs the extra cluster")

HOSTS, PAGES, DELAY_S, COPY_EVERY_S = 20, 700, 0.03, 2.0


def is_page(entry: LoggedRequest) -> bool:
    return entry.status == 200 and not entry.path.endswith(NOT_PAGES)


@pytest.mark.slow
def test_shard_whose_disk_is_gone_is_restored_from_its_last_copy(tmp_path: Path) -> None:
    log, into, place = tmp_path / "log", tmp_path / "crawl", tmp_path / "store"
    shape = ("--hosts", str(HOSTS), "--pages", str(PAGES), "--addresses", str(HOSTS))
    with running_simweb(*shape, "--log", str(log)) as (ready, _):
        seed = f"http://h0.sim:{ready.port}/"
        names = ("--dns", f"127.0.0.1:{ready.dns_port}", "--allow-private", "127.0.0.0/8")
        words = ("crawl", seed, "--into", str(into), "--scope", "any", "--delay", str(DELAY_S), *names, "--quiet")
        keeping = ("--store", str(place), "--checkpoint", f"{COPY_EVERY_S:g}s")
        process = lycosa(*words, "--workers", "2", *keeping)
        wait_for(
            lambda: logged(log) > 300 and latest_checkpoint(open_central_store(str(place)), "s1") is not None, process
        )
        os.kill(holder(into, "s1"), signal.SIGKILL)
        shutil.rmtree(into / "shards" / "s1")
        killed_s, copy = time.monotonic(), latest_checkpoint(open_central_store(str(place)), "s1")
        assert copy is not None
        copied_s = killed_s - (time.time() - copy.at_s)
        _, err = process.communicate(timeout=LONGEST_S)
        assert process.returncode == 0, err
    web = SimWeb(SimSettings(hosts=HOSTS, pages=PAGES, addresses=HOSTS, port=ready.port))
    entries = list(read_log(log)[1])
    fetched = Counter(f"http://{e.host}:{ready.port}{e.path}" for e in entries if is_page(e))
    assert set(fetched) == truth_of(web, [seed], scope="any", mine="ancestors").pages
    findings = audit(web.settings, entries, AuditRules(delay_s=DELAY_S))
    assert findings.is_clean, findings.broken()[:5]
    owners: AssignmentTable = Coordinator(into, CrawlSettings()).table
    lost = [e for e in entries if is_page(e) and owners.owner(e.host) == "s1" and copied_s - 1 < e.end < killed_s + 0.5]
    assert fetched.total() - len(fetched) <= len(lost)
    assert not list(into.glob("shards/*/warc/*.warc.gz"))
    with open_to_read(into) as whole:
        contents = StoredDocuments(whole)
        rows = [unpack_page(row) for _, row in whole.state.walk(Family.PAGE)]
        assert len(rows) >= len(fetched)
        assert all(contents.read(row) is not None for row in rows if row.place and row.status == 200)
