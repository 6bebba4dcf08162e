"""Proxies: for all hosts, for some, in turns; each gets its own credentials and none of those for servers."""

from pathlib import Path

import pytest

from lycosa.sessions.credentials import Proxies
from lycosa.settings import merge, read_file
from tests.sessions.recording_server import crawl, page, redirect, running, written_bytes
from tests.sessions.tunnel_proxy import tunnelling

SECRET = "s3cr3t-of-the-proxy"
BASIC = "YW5uOnMzY3IzdC1vZi10aGUtcHJveHk="  # ann:s3cr3t-of-the-proxy


@pytest.mark.parametrize("is_socks", [False, True])
def test_proxy_tunnels_to_the_checked_address_and_gets_its_user_alone(tmp_path: Path, is_socks: bool) -> None:
    with tunnelling(is_socks=is_socks) as proxy, running(lambda asked: page("/a")) as server:
        users = [f"{proxy.url} ann:{SECRET}"]
        headers = ["X-Api-Key: for-the-server"]
        stats = crawl(tmp_path / "c", server.origin, proxies=[proxy.url], users=users, headers=headers)

    assert stats.pages == 2
    assert set(proxy.targets) == {f"127.0.0.1:{server.port}"}
    told = "\n".join(proxy.told)
    assert (f"ann:{SECRET}" if is_socks else f"Proxy-Authorization: Basic {BASIC}") in told
    assert "for-the-server" not in told
    assert server.got(SECRET) == server.got(BASIC) == []
    assert all("proxy-authorization" not in asked.fields for asked in server.asked)
    assert SECRET.encode() not in written_bytes(tmp_path / "c", but=("credentials.toml",))


def test_redirect_to_a_host_of_another_proxy_carries_no_credentials_of_the_first(tmp_path: Path) -> None:
    """Scrapy's advisories on proxies: credentials of one went to the next one, or to the target, over a redirect."""
    with (
        tunnelling() as first,
        tunnelling() as second,
        running(lambda asked: page(), host="127.0.0.2") as other,
        running(lambda asked: redirect(f"{other.origin}/x")) as own,
    ):
        proxies = [f"127.0.0.1={first.url}", f"127.0.0.2={second.url}"]
        crawl(tmp_path / "c", own.origin, proxies=proxies, users=[f"{first.url} ann:{SECRET}"])

    assert BASIC in "".join(first.told)
    assert set(second.targets) == {f"127.0.0.2:{other.port}"}
    assert "Proxy-Authorization" not in "".join(second.told)
    assert other.got(BASIC) == []
    assert "/x" in other.paths()


def test_proxies_take_turns_and_hosts_have_their_own() -> None:
    proxies = Proxies(["http://a:1", "*.org=http://c:3", "http://b:2", "x.org=direct", "*.org=http://d:4"])

    assert [proxies.of("site.example") for _ in range(3)] == ["http://a:1", "http://b:2", "http://a:1"]
    assert [proxies.of("x.org") for _ in range(3)] == ["http://c:3", "http://d:4", "http://c:3"]
    assert Proxies(["x.org=direct", "http://a:1"]).of("x.org") == ""
    assert Proxies([]).of("x.org") == ""


def test_settings_of_earlier_versions_name_one_proxy(tmp_path: Path) -> None:
    (tmp_path / "old.toml").write_text('proxy = "http://127.0.0.1:3128"\n')
    (tmp_path / "none.toml").write_text('proxy = ""\n')

    assert merge(read_file(tmp_path / "old.toml")).proxies == ("http://127.0.0.1:3128",)
    assert merge(read_file(tmp_path / "none.toml")).proxies == ()
