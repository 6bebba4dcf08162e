"""A changed page is told once by each way, whatever is down or killed meanwhile."""

import os
import signal
import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.command import ended, lycosa, started
from tests.notify.receivers import AppriseFile, Site, apprise_file, is_signed, page, site, wait_for

ATOM = "{http://www.w3.org/2005/Atom}"


def entries(feed: Path) -> list[ElementTree.Element]:
    return ElementTree.parse(feed).getroot().findall(f"{ATOM}entry") if feed.exists() else []


def crawl(web: Site, into: Path, hook: Site, service: AppriseFile | None = None) -> None:
    apprise = ("--apprise", str(service.urls)) if service else ()
    feed = into.with_name("changes.atom")
    said = lycosa(
        "crawl", f"{web.url}/", "--into", into, "--delay", "0", "-q", "--allow-private", "127.0.0.0/8",
        "--webhook", f"{hook.url}/hook", "--atom", feed, *apprise,
    )  # fmt: skip
    assert said.code == 0, said.err


@pytest.mark.slow
def test_change_is_told_once_each_way_when_receiver_hangs_and_crawler_is_killed(tmp_path: Path) -> None:
    pytest.importorskip("apprise")
    into, feed, is_asked, is_killed = tmp_path / "c", tmp_path / "changes.atom", threading.Event(), threading.Event()

    def hang(request: BaseHTTPRequestHandler) -> None:
        is_asked.set()
        is_killed.wait(600)

    with site() as web, site() as hook, apprise_file(tmp_path / "apprise") as service:
        web.pages["/"] = page("Shop", "A heat pump", "It costs 5 coins")
        crawl(web, into, hook, service)
        web.pages["/"] = page("Shop", "A heat pump", "Sold out")
        hook.answer = hang
        process = started("recrawl", into, "--all")
        wait_for(lambda: is_asked.is_set() and len(entries(feed)) == 1 and len(service.messages) == 1)
        wait_for(lambda: (into / "log.jsonl").read_text().count('"event":"told"') == 2)
        assert process.poll() is None  # it waits for the answer
        os.kill(process.pid, signal.SIGKILL)
        ended(process)
        is_killed.set()
        assert hook.received == []

        hook.answer = None
        for _ in range(2):
            said = ended(started("recrawl", into))
            assert said.code == 0, said.err
        (change,) = hook.changes
        (entry,) = entries(feed)
        (message,) = service.messages
    assert (change["url"], change["change"], change["kind"]) == (f"{web.url}/", "changed", "text")
    assert (change["added"], change["removed"]) == (["Sold out"], ["It costs 5 coins"])
    assert entry.findtext(f"{ATOM}id") == f"urn:uuid:{change['id']}"
    assert message.splitlines()[:2] == ["changed: Shop", f"changed {web.url}/ (text)"]
    secret = into / "webhook.secret"
    assert secret.stat().st_mode & 0o777 == 0o600
    fields, body = hook.received[0]
    assert is_signed(secret.read_text(), fields, body)
    assert not is_signed(secret.read_text(), fields, body + b" ")
    assert secret.read_text().strip() not in (into / "lycosa.toml").read_text() + (into / "log.jsonl").read_text()


@pytest.mark.slow
def test_receiver_that_is_down_is_told_by_the_next_run(tmp_path: Path) -> None:
    into = tmp_path / "c"
    with site() as web:
        web.pages["/"] = page("One", "before")
        with site() as hook:
            crawl(web, into, hook)
            port = hook.port
        web.pages["/"] = page("One", "after")
        said = lycosa("recrawl", into, "--all", "-q")
        assert said.code == 0
        assert "changes that are not told yet: 1 to the webhook at 127.0.0.1 (connect); the next run" in said.err
        assert "1 change not told to everybody yet" in lycosa("status", into).err
        web.pages["/"] = page("One", "and again")
        assert lycosa("recrawl", into, "--all", "-q").code == 0

        with site(port) as hook:
            assert lycosa("recrawl", into, "-q").err == ""
            assert lycosa("status", into).err == ""
            assert [change["added"] for change in hook.changes] == [["after"], ["and again"]]
            assert len(hook.received) == 1  # in one message
        assert len(entries(tmp_path / "changes.atom")) == 2


@pytest.mark.slow
def test_change_is_told_once_each_way_when_crawler_is_killed_while_the_receiver_is_down(tmp_path: Path) -> None:
    pytest.importorskip("apprise")
    into, feed = tmp_path / "c", tmp_path / "changes.atom"
    with site() as web, apprise_file(tmp_path / "apprise") as service:
        web.pages["/"] = page("One", "before")
        with site() as hook:
            crawl(web, into, hook, service)
            port = hook.port
        web.pages["/"] = page("One", "after")
        assert lycosa("add", into, f"{web.url}/", "--every", "1s").code == 0
        process = started("crawl", "--into", into, "--keep-fresh")
        log = into / "log.jsonl"
        wait_for(lambda: '"event":"not-told"' in log.read_text() and len(entries(feed)) == len(service.messages) == 1)
        wait_for(lambda: log.read_text().count('"event":"told"') == 2)
        os.kill(process.pid, signal.SIGKILL)
        ended(process)

        with site(port) as hook:
            for _ in range(2):
                assert lycosa("recrawl", into, "-q").code == 0
            assert [change["added"] for change in hook.changes] == [["after"]]
        assert len(entries(feed)) == len(service.messages) == 1


@pytest.mark.slow
def test_gone_and_new_pages_are_told_and_volatile_ones_are_not(tmp_path: Path) -> None:
    into = tmp_path / "c"
    with site() as web, site() as hook:
        web.pages |= {"/": page("Home", "<a href='/a'>a</a>", "same"), "/a": page("A", "text of a")}
        crawl(web, into, hook)
        assert hook.received == []
        del web.pages["/a"]
        web.pages["/"] = page("Home", "<a href='/a'>a</a>", "same", "<a href='/b'>b</a>")
        web.pages["/b"] = page("B", "text of b")
        lycosa("recrawl", into, "--all", "-q")
        assert sorted((change["url"].removeprefix(web.url), change["change"]) for change in hook.changes) == [
            ("/", "changed"),
            ("/a", "removed"),
            ("/b", "new"),
        ]
        hook.received.clear()
        web.pages["/"] = web.pages["/"].replace("<body>", "<body class='x'>")  # other bytes, the same content
        lycosa("recrawl", into, "--all", "-q")
        assert hook.received == []
