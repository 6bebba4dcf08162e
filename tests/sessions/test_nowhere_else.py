"""A crawl with every kind of credential, and all that a collection shows or writes: no secret is in any of it."""

import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlencode

import pytest

from lycosa.serve.server import make_app
from lycosa.serve.source import CollectionSource
from tests.cli.command import ended, lycosa, started
from tests.serve.client import Client
from tests.sessions.recording_server import Asked, RecordingServer, Reply, page, running, written_bytes
from tests.sessions.test_login import MemberSite

KEY, PASSWORD, COOKIE = "k3y-of-ann", "s3cr3t & more", "session1"
BASIC = "YW5uOnB3LW9mLWJhc2lj"  # ann:pw-of-basic
SECRETS = (KEY, "s3cr3t", "pw-of-basic", BASIC, COOKIE)


class OpenSite(MemberSite):
    """A site behind a form, whose pages name everything that another origin could be asked for."""

    def __init__(self) -> None:
        super().__init__(12)
        self.other = ""

    def __call__(self, asked: Asked) -> Reply:
        if asked.path == "/robots.txt":
            return Reply(
                body=f"User-agent: *\nDisallow:\nSitemap: {self.other}/map.xml\n",
                fields=(("Content-Type", "text/plain"),),
            )
        reply = super().__call__(asked)
        if "member page" not in reply.body:
            return reply
        embeds = f"<link rel=stylesheet href='{self.other}/s.css'><img src='{self.other}/i.png'>"
        return reply._replace(body=f"{reply.body}{embeds}<a href='{self.other}/page'>other</a>")


def leaks(text: str | bytes) -> list[str]:
    data = text.encode() if isinstance(text, str) else text
    return [secret for secret in SECRETS if secret.encode() in data]


def config(folder: Path, own: RecordingServer) -> Path:
    file = folder / "my.toml"
    fields = json.dumps(PASSWORD)
    file.write_text(
        f'logins = [{{url = "{own.origin}/login", fields = {{user = "ann", password = {fields}}}}}]\n'
        'tables = "always"\nscope = "any"\ndelay_s = 0\nrequisites = true\n'
    )
    return file


@pytest.mark.slow
def test_no_secret_is_anywhere_but_where_it_belongs(tmp_path: Path) -> None:
    folder, site = tmp_path / "c", OpenSite()
    with running(lambda asked: page(), host="127.0.0.2", robots=True) as other, running(site, robots=True) as own:
        site.other = other.origin
        options = ("--header", f"X-Api-Key: {KEY}", "--user", "ann:pw-of-basic", "--allow-private", "--request-log")
        log = folder / "requests.jsonl"
        said = lycosa("crawl", own.origin, "--into", folder, *options, log, "--config", config(tmp_path, own))
        assert said.code == 0, said.err

        assert {"/robots.txt", "/map.xml", "/s.css", "/i.png", "/page"} <= set(other.paths())
        assert [asked for asked in other.asked for secret in SECRETS if secret in asked] == []
        assert own.got(KEY) == own.paths()
        assert own.got(COOKIE)
    assert leaks(said.out + said.err) == []
    assert log.read_bytes().count(b"\n") >= len(own.asked)
    state = written_bytes(folder / "state")
    outside = b"".join(written_bytes(part) for part in folder.iterdir() if part.is_dir() and part.name != "state")
    outside += b"".join(f.read_bytes() for f in folder.iterdir() if f.is_file() and f.name != "credentials.toml")
    assert leaks(outside) == []
    assert leaks(state) == [COOKIE]  # the jar of the site is there, and nothing else
    commands = [
        ("status", folder, "--json"),
        ("status", folder),
        ("hosts", folder, "--json"),
        ("urls", folder),
        ("tree", folder),
    ]
    commands += [
        ("why", f"{own.origin}/p1", "--in", folder),
        ("get", f"{own.origin}/p1", "--in", folder),
        ("settings",),
        ("links", f"{own.origin}/p1", "--in", folder),
        ("report", folder),
        ("sql", folder, "select * from pages"),
        ("shell", folder, "-c", "settings"),
    ]
    for command in commands:
        shown = lycosa(*command)
        assert shown.code == 0, (command, shown.err)
        assert leaks(shown.out + shown.err) == [], command
    live = dict(live_pages(folder, f"{own.origin}/p1"))
    assert {path: found for path, text in live.items() if (found := leaks(text))} == {}
    assert "X-Api-Key" in live["/settings"]
    assert "logged-in" in live["/log"]
    for format in ("jsonl", "csv", "warc", "wacz", "cdxj", "markdown", "sitemap"):
        out = tmp_path / f"out-{format}"
        shown = lycosa("export", folder, format, "--out", out)
        assert shown.code == 0, (format, shown.err)
        files = [out] if out.is_file() else []
        assert (
            leaks(b"".join(path.read_bytes() for path in files) + (written_bytes(out) if out.is_dir() else b"")) == []
        )


def live_pages(folder: Path, url: str) -> Iterator[tuple[str, str]]:
    """All that the live page and its API show of a collection, with a URL and its host where they ask for one."""
    source = CollectionSource(folder)
    try:
        client = Client(make_app(source, token="t", replay_at="http://127.0.0.1:1/"), "t")
        described = client.get("/api/v1/openapi.json").facts["paths"]
        paths = [path for path, verbs in described.items() if "get" in verbs and not path.endswith("/events")]
        assert len(paths) > 10
        for path in ["/", "/hosts", "/host", "/urls", "/url", "/settings", "/log", "/report", *paths]:
            asked = urlencode({"url": url, "host": "127.0.0.1", "q": "member"})
            answered = client.get(f"{path}?{asked}")
            assert answered.status in (200, 404), (path, answered.text)
            yield path, answered.text
    finally:
        source.close()


@pytest.mark.slow
def test_a_browser_gets_credentials_for_what_is_of_their_origin_and_for_nothing_else(tmp_path: Path) -> None:
    pytest.importorskip("playwright")
    if not (shutil.which("chromium-headless-shell") or shutil.which("chromium")):
        pytest.skip("Chromium is not installed")
    folder, site = tmp_path / "c", MemberSite(3)
    script = Reply(body="document.title = 'made'", fields=(("Content-Type", "text/javascript"),))

    def answer(asked: Asked) -> Reply:
        reply = script if asked.path == "/own.js" else site(asked)
        scripts = f"<script src='/own.js'></script><script src='{other.origin}/other.js'></script>"
        return reply._replace(body=reply.body + scripts) if "member page" in reply.body else reply

    with running(lambda asked: script, host="127.0.0.2") as other, running(answer) as own:
        options = ("--header", f"X-Api-Key: {KEY}", "--allow-private", "--render", "always", "--scope", "host")
        said = ended(started("crawl", own.origin, "--into", folder, "--config", config(tmp_path, own), *options))
        assert said.code == 0, said.err

    assert "/other.js" in other.paths()
    assert [asked for asked in other.asked for secret in SECRETS if secret in asked] == []
    assert own.got(KEY) == own.paths()
    assert "/own.js" in own.got(COOKIE)
    assert leaks(written_bytes(folder / "warc") + (folder / "log.jsonl").read_bytes()) == []


@pytest.mark.slow
def test_shards_log_in_by_themselves_and_ray_hears_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray")
    folder, site, logs = tmp_path / "c", MemberSite(30, ends_after=(11,)), dict[Path, bytes]()
    with (
        running(site) as own,
        running(lambda asked: page("/a"), host="127.0.0.2") as other,
        tempfile.TemporaryDirectory() as short,  # Ray's sockets are in it, and their names may not be long
    ):
        monkeypatch.setenv("TMPDIR", short)
        header = f"{other.origin} X-Api-Key: {KEY}"
        options = ("--workers", "2", "--header", header, "--allow-private", "--config", config(tmp_path, own))
        process = started("crawl", own.origin, other.origin, "--into", folder, "--json", *options)
        while process.poll() is None:
            logs |= ray_logs(Path(short))
            time.sleep(0.1)
        said = ended(process)
        assert said.code == 0, said.err

    assert said.facts["pages"] == 32
    assert site.logins == 2
    assert {"/robots.txt", "/", "/a"} <= set(other.got(KEY))
    assert own.got(KEY) == []
    assert any(logs.values())
    assert leaks(said.err.encode() + b"".join(logs.values())) == []


def ray_logs(folder: Path) -> dict[Path, bytes]:
    """What Ray has written so far; it takes its files away when it ends."""
    found = {}
    for root, _, names in os.walk(folder):  # a folder that goes away meanwhile is passed over; `Path.glob` would raise
        for path in (Path(root, name) for name in names if "/logs" in root):
            with suppress(OSError):
                found[path] = path.read_bytes()
    return found


@pytest.mark.slow
def test_a_crawl_that_was_killed_goes_on_with_its_login_and_loses_nothing(tmp_path: Path) -> None:
    folder, site = tmp_path / "c", MemberSite(200, ends_after=(90,))
    with running(site) as own:
        words = ("crawl", own.origin, "--into", folder, "--config", config(tmp_path, own), "--json", "--no-requisites")
        first = started(*words)
        while site.shown < 60 and first.poll() is None:
            time.sleep(0.01)
        first.kill()
        ended(first)
        said = ended(started(*words))

    assert said.code == 0, said.err
    assert (said.facts["pages"], said.facts["queued"], said.facts["failed"]) == (200, 0, 0)
    assert site.refused == 0
