"""`lycosa cluster`: a node, a crawl on it, shards that join and leave, and what is said when something is wrong."""

import re
import socket
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.log import AuditRules, audit, read_log
from lycosa.simweb.truth import truth_of
from tests.cluster.test_workers import LONGEST_S, NOT_PAGES, logged, wait_for
from tests.simweb.conftest import lycosa, running_simweb

pytest.importorskip("ray", reason="a cluster needs the extra cluster")

HOSTS, PAGES, DELAY_S = 30, 700, 0.1


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def said(*words: str) -> tuple[int, str, str]:
    process = lycosa(*words)
    out, err = process.communicate(timeout=LONGEST_S)
    return process.returncode, out, err


@contextmanager
def head(token: Path, port: int) -> Iterator["subprocess.Popen[str]"]:
    node = lycosa("cluster", "--token-file", str(token), "start", "--head", "--port", str(port), "--processors", "2")
    try:
        yield node
    finally:
        node.terminate()
        node.communicate(timeout=LONGEST_S)


def listens(port: int) -> bool:
    with socket.socket() as asker:
        return asker.connect_ex(("127.0.0.1", port)) == 0


def wait_for_epoch(into: Path, epoch: int, crawler: "subprocess.Popen[str]") -> None:
    wait_for(lambda: msgspec.json.decode((into / "cluster.json").read_bytes())["epoch"] >= epoch, crawler)


@pytest.mark.slow
def test_shards_join_and_leave_by_command_and_the_crawl_is_whole(tmp_path: Path) -> None:
    log, into, token, port = tmp_path / "log", tmp_path / "crawl", tmp_path / "token", free_port()
    at = ("--token-file", str(token), "--at", f"127.0.0.1:{port}")
    shape = ("--hosts", str(HOSTS), "--pages", str(PAGES), "--addresses", str(HOSTS), "--sizes", "uniform")
    with running_simweb(*shape, "--log", str(log)) as (ready, _), head(token, port) as node:
        seed = f"http://h0.sim:{ready.port}/"
        names = ("--dns", f"127.0.0.1:{ready.dns_port}", "--allow-private", "127.0.0.0/8")
        words = ("crawl", seed, "--into", str(into), "--scope", "any", "--delay", str(DELAY_S), *names, "--quiet")
        wait_for(lambda: listens(port), node)
        crawler = lycosa("cluster", *at, *words, "--workers", "2")
        wait_for(lambda: logged(log) > 60, crawler)
        code, _, err = said("cluster", *at, "grow", "1")
        assert code == 0
        assert re.fullmatch(r"crawl-\w+: grows by 1 shard\n", err), err
        wait_for_epoch(into, 2, crawler)
        code, _, err = said("cluster", *at, "shrink", "s0")
        assert code == 0
        assert re.fullmatch(r"crawl-\w+: s0 told to hand over and end\n", err), err
        wait_for_epoch(into, 3, crawler)
        code, out, _ = said("cluster", *at, "status")
        assert code == 0
        assert ": alive" in out
        _, err = crawler.communicate(timeout=LONGEST_S)
        assert crawler.returncode == 0, err
        code, _, err = said("cluster", *at, "stop")
        assert (code, err.strip()) == (1, f"lycosa: no crawl is running on the cluster at 127.0.0.1:{port}")
    web = SimWeb(SimSettings(hosts=HOSTS, pages=PAGES, addresses=HOSTS, sizes="uniform", port=ready.port))
    entries = list(read_log(log)[1])
    fetched = Counter(
        f"http://{e.host}:{ready.port}{e.path}" for e in entries if e.status == 200 and not e.path.endswith(NOT_PAGES)
    )
    assert set(fetched) == truth_of(web, [seed], scope="any", mine="ancestors").pages
    assert max(fetched.values()) == 1
    findings = audit(web.settings, entries, AuditRules(delay_s=DELAY_S))
    assert findings.is_clean, findings.broken()[:5]
    kept = msgspec.json.decode((into / "cluster.json").read_bytes())
    assert [member["name"] for member in kept["members"]] == ["s1", "s2"]


def test_what_is_wrong_with_a_node_is_said_in_a_sentence(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret\n")
    token.chmod(0o600)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        start = ("cluster", "--token-file", str(token), "start", "--head")
        code, _, err = said(*start, "--port", str(port))
        assert code == 2
        assert err.strip() == f"lycosa: port {port} at 127.0.0.1 is in use: choose another with --port"
    code, _, err = said(*start, "--address", "192.0.2.77")
    assert code == 2
    assert err.startswith("lycosa: 192.0.2.77 is no address of this machine")
    code, _, err = said("cluster", "--token-file", str(token), "--at", f"127.0.0.1:{free_port()}", "status")
    assert code != 0
    assert "nobody listens at" in err
    for address, why in (("foo", "is no address of a cluster"), ("127.0.0.1:99999", "no such port")):
        for words in (("start", "--join", address), ("--at", address, "status")):
            code, _, err = said("cluster", "--token-file", str(token), *words)
            assert code == 2
            assert err.startswith(f"lycosa: {address!r} "), err
            assert why in err


def test_places_without_a_cluster_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "places"
    file.write_text("192.0.2.0/24 berlin\n")
    words = ("crawl", "http://127.0.0.1:9/", "--into", str(tmp_path / "c"), "--places", str(file))
    code, _, err = said(*words, "--workers", "2")
    assert code == 2
    assert "lycosa cluster start --place NAME" in err
    code, _, err = said(*words)
    assert code == 2
    assert "--places is for a cluster" in err
    assert not (tmp_path / "c").exists()
