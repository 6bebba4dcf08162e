"""Cookies: off by default, each site its own, kept with the collection, from files of browsers, not in the archive."""

import json
import stat
from pathlib import Path

import pytest

from lycosa.errors import SettingsError
from lycosa.sessions.jars import CookieJar, CookieJars, read_cookie_file
from lycosa.store import Batch, State
from lycosa.web import parse_url
from tests.sessions.recording_server import Asked, Reply, crawl, page, redirect, request_records, running, written_bytes

VALUE = "c00kie-0f-ann"


def setting(*hrefs: str, attributes: str = "; Path=/") -> object:
    """Sets a cookie on its first page."""

    def answer(asked: Asked) -> Reply:
        shown = page(*hrefs) if asked.path == "/" else page()
        return shown._replace(fields=(("Set-Cookie", f"sid={VALUE}{attributes}"),)) if asked.path == "/" else shown

    return answer


def cookies_of(asked: Asked) -> str:
    return asked.fields.get("cookie", "")


def test_cookies_are_off_by_default(tmp_path: Path) -> None:
    with running(setting("/a")) as server:
        crawl(tmp_path / "c", server.origin)

    assert [cookies_of(asked) for asked in server.asked] == ["", "", ""]


def test_cookies_come_back_to_their_site_and_their_path_and_to_nobody_else(tmp_path: Path) -> None:
    with running(lambda asked: page(), host="127.0.0.2") as host, running(lambda asked: page()) as port:
        links = f"{host.origin}/x", f"{port.origin}/y", "/a", "/in/b"
        with running(setting(*links, attributes="; Path=/in")) as own:
            crawl(tmp_path / "c", own.origin, cookies=True)

    by_path = {asked.path: cookies_of(asked) for asked in own.asked}
    assert by_path == {"/robots.txt": "", "/": "", "/a": "", "/in/b": f"sid={VALUE}"}
    assert host.got(VALUE) == port.got(VALUE) == []


def test_secure_cookies_and_those_of_other_domains_are_not_taken_in(tmp_path: Path) -> None:
    def answer(asked: Asked) -> Reply:
        fields = ("Set-Cookie", "a=1; Secure"), ("Set-Cookie", "b=2; Domain=example.org"), ("Set-Cookie", "__Host-c=3")
        return page("/a")._replace(fields=fields)

    with running(answer, host="127.0.0.2") as server:
        crawl(tmp_path / "c", server.origin, cookies=True)

    assert [cookies_of(asked) for asked in server.asked] == ["", "", ""]


def test_cookies_are_not_in_the_archive_and_the_state_is_closed_to_others(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    with running(setting("/a")) as server:
        crawl(folder, server.origin, cookies=True)

    assert server.got(VALUE) == ["/a"]
    assert stat.S_IMODE((folder / "state").stat().st_mode) == 0o700
    outside_state = b"".join(written_bytes(part) for part in (folder / "warc", folder / "graph"))
    outside_state += b"".join(path.read_bytes() for path in folder.iterdir() if path.is_file())
    assert VALUE.encode() not in outside_state
    assert b"Set-Cookie: sid=[redacted]; Path=/" in outside_state
    assert "Cookie: [redacted: cookies of the site]" in request_records(folder)[-1]


def test_a_later_run_has_the_cookies_of_the_last_commit(tmp_path: Path) -> None:
    with running(setting()) as server:
        crawl(tmp_path / "c", server.origin, cookies=True)
        crawl(tmp_path / "c", f"{server.origin}/later")

    assert server.got(VALUE) == ["/later"]


NETSCAPE = """# Netscape HTTP Cookie File

#HttpOnly_127.0.0.2\tFALSE\t/\tFALSE\t0\tsid\tv1
.other.example\tTRUE\t/\tFALSE\t0\tx\tv2
"""
PLAYWRIGHT = {
    "cookies": [
        {"name": "sid", "value": "v1", "domain": "127.0.0.2", "path": "/", "expires": -1, "httpOnly": True},
        {"name": "x", "value": "v2", "domain": ".other.example", "path": "/", "expires": 1.5, "secure": False},
    ],
    "origins": [],
}


@pytest.mark.parametrize("text", [NETSCAPE, json.dumps(PLAYWRIGHT)], ids=["netscape", "playwright"])
def test_cookie_file_is_sent_to_the_sites_of_the_seeds_and_read_once(tmp_path: Path, text: str) -> None:
    file = tmp_path / "cookies"
    file.write_text(text)

    def answer(asked: Asked) -> Reply:
        fields = (("Set-Cookie", "sid=v3; Path=/"),) if asked.path == "/" else ()
        return page("/a", f"{other.origin}/b")._replace(fields=fields)

    with running(lambda asked: page()) as other, running(answer, host="127.0.0.2") as server:
        crawl(tmp_path / "c", server.origin, cookie_files=[str(file)])
        crawl(tmp_path / "c", f"{server.origin}/later")

    # the second run goes on with what the server set, not with what the file says
    sent = [cookies_of(asked) for asked in server.asked]
    assert sent[:3] == ["sid=v1", "sid=v1", "sid=v3"]
    assert sent[-1] == "sid=v3"
    assert {cookies_of(asked) for asked in other.asked} == {""}


@pytest.mark.parametrize("content", ["<html>", '{"cookies": 3}', "{}", '{"cookies": [{"name": "a"}]}', b"\xff\xfe\x00"])
def test_file_without_cookies_is_one_sentence(tmp_path: Path, content: str | bytes) -> None:
    file = tmp_path / "cookies"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(SettingsError, match=r"give a cookies\.txt or a storage state of Playwright"):
        read_cookie_file(file)


def test_cookies_over_a_redirect_are_those_of_where_it_leads(tmp_path: Path) -> None:
    with running(lambda asked: page(), host="127.0.0.2") as other:

        def answer(asked: Asked) -> Reply:
            return redirect(f"{other.origin}/x")._replace(
                fields=(("Location", f"{other.origin}/x"), ("Set-Cookie", f"sid={VALUE}; Path=/"))
            )

        with running(answer) as own:
            crawl(tmp_path / "c", own.origin, cookies=True)

    assert other.paths() == ["/robots.txt", "/x"]
    assert other.got(VALUE) == []


def test_a_jar_of_many_cookies_is_cut_and_jars_of_others_are_not_read(tmp_path: Path) -> None:
    state = State.open(tmp_path / "state")
    jars = CookieJars(state, None)
    jar = jars.of("http://a.example/")
    assert isinstance(jar, CookieJar)
    jar.put(f"a.example\tFALSE\t/\tFALSE\t0\tn{number}\tv" for number in range(400))
    jars.changed("http://a.example/")
    batch = Batch()
    jars.before_commit(batch, is_last=False)
    state.write(batch)

    again = CookieJars(state, None).of("http://a.example/x")
    assert again is not None
    assert len(again.lines()) == len(jar.lines()) == 300
    assert jars.of("https://a.example/") is not jar
    assert jars.of("http://a.example:8080/") is not jar
    assert jars.of("http://www.a.example/") is jar
    assert CookieJars(state, frozenset({"b.example"})).of("http://a.example/") is None
    assert parse_url("http://a.example/") is not None
    state.close()


def test_jar_keeps_cookies_that_are_no_text() -> None:
    """A server sends any bytes; a crawl that could not read them back would end."""
    jar = CookieJar(b"k", ["Set-Cookie: a=\xff\xfe; domain=example.org"])
    (line,) = jar.lines()
    assert line.endswith("a\t\xff\xfe")
    assert CookieJar(b"k", [line]).lines() == [line]


def test_cookie_of_a_file_that_is_not_ascii_is_sent_as_it_stands_there(tmp_path: Path) -> None:
    file = tmp_path / "cookies.txt"
    file.write_text(".example.org\tTRUE\t/\tFALSE\t0\tname\té\n", encoding="utf-8")
    ((_, line),) = read_cookie_file(file)[0]
    (kept,) = CookieJar(b"k", [line]).lines()
    assert kept.encode("latin-1").endswith("é".encode())
