"""Credentials go to the origin that they are bound to, and nowhere else: other hosts, ports, schemes, files and logs.

Each of the advisories that Scrapy published about leaked credentials is a test here.
"""

import hashlib
import json
import os
import re
import ssl
import stat
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
import trustme

from lycosa.cluster.delegation import CentralRobotsDownloader
from lycosa.crawl import ROBOTS_BYTES
from lycosa.errors import SettingsError
from lycosa.records import PrivateParts, Request
from lycosa.settings import CrawlSettings, merge, read_file, read_secrets, save_secrets, take_out_secrets
from tests.cli.command import lycosa
from tests.sessions.recording_server import Asked, Reply, crawl, page, redirect, request_records, running, written_bytes

SECRET = "s3cr3t-of-ann"
BASIC = "YW5uOnMzY3IzdC1vZi1hbm4="  # ann:s3cr3t-of-ann


def front(*hrefs: str) -> object:
    return lambda asked: page(*hrefs) if asked.path == "/" else page()


def basic(reply: Reply) -> object:
    """A server that wants a name and a password for everything."""

    def answer(asked: Asked) -> Reply:
        if asked.fields.get("authorization") == f"Basic {BASIC}":
            return reply if asked.path == "/" else page()
        return Reply(401, "who are you?", (("WWW-Authenticate", 'Basic realm="r"'),))

    return answer


def test_header_goes_to_the_seeds_origin_alone_and_not_to_other_hosts_and_ports(tmp_path: Path) -> None:
    with (
        running(lambda asked: page(), host="127.0.0.2") as host,
        running(lambda asked: page()) as port,
        running(front(f"{host.origin}/a", f"{port.origin}/b", "/own")) as own,
    ):
        crawl(tmp_path / "c", own.origin, headers=[f"X-Api-Key: {SECRET}"])

    assert own.got(SECRET) == ["/robots.txt", "/", "/own"]
    assert host.paths() == ["/robots.txt", "/a"]
    assert port.paths() == ["/robots.txt", "/b"]
    assert host.got(SECRET) == port.got(SECRET) == []


def test_header_with_an_origin_goes_there_and_not_to_the_seed(tmp_path: Path) -> None:
    with running(lambda asked: page(), host="127.0.0.2") as other, running(front(f"{other.origin}/a")) as own:
        crawl(tmp_path / "c", own.origin, headers=[f"{other.origin} Authorization: Bearer {SECRET}"])

    assert own.got(SECRET) == []
    assert other.asked[-1].fields["authorization"] == f"Bearer {SECRET}"


def test_secrets_are_in_no_file_but_the_credentials_file_which_others_cannot_read(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    with running(basic(page("/a", text="hello"))) as server:
        crawl(folder, server.origin, headers=[f"X-Api-Key: {SECRET}", "Accept-Language: de"], users=[f"ann:{SECRET}"])

    assert server.got(SECRET) == ["/robots.txt", "/", "/", "/a"]
    everything = written_bytes(folder, but=("credentials.toml",))
    assert SECRET.encode() not in everything
    assert BASIC.encode() not in everything
    kept = folder / "credentials.toml"
    assert SECRET in kept.read_text()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    settings = merge(read_file(folder / "lycosa.toml"))
    assert f"{server.origin} X-Api-Key: ${{x-api-key}}" in settings.headers
    assert settings.users == (f"{server.origin} ann:${{password-of-ann}}",)
    last = request_records(folder)[-1]
    assert "X-Api-Key: [redacted: x-api-key]" in last
    assert "Authorization: [redacted: password-of-ann]" in last
    assert "Accept-Language: de" in last


def test_a_second_run_has_the_credentials_and_a_new_seed_does_not_get_them(tmp_path: Path) -> None:
    with running(lambda asked: page()) as first, running(lambda asked: page(), host="127.0.0.2") as second:
        crawl(tmp_path / "c", first.origin, headers=[f"X-Api-Key: {SECRET}"])
        crawl(tmp_path / "c", second.origin, f"{first.origin}/new")

    assert first.got(SECRET)[-1] == "/new"
    assert second.got(SECRET) == []


def test_secret_comes_from_the_environment_or_a_file_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SITE_KEY", SECRET)
    own = tmp_path / "mine.toml"
    own.write_text('other = "of-the-file"\n')
    own.chmod(0o600)
    with running(lambda asked: page()) as server:
        headers = ["X-Api-Key: ${SITE_KEY}", "X-Other: a${other}"]
        crawl(tmp_path / "c", server.origin, headers=headers, credentials=str(own))

    assert server.asked[-1].fields["x-api-key"] == SECRET
    assert server.asked[-1].fields["x-other"] == "aof-the-file"
    assert not (tmp_path / "c" / "credentials.toml").exists()


def test_missing_secret_and_readable_file_are_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError, match="the secret nowhere is missing: set the environment variable"):
        crawl(tmp_path / "c", "http://127.0.0.1:9/", headers=["X-Api-Key: ${nowhere}"])
    assert not (tmp_path / "c").exists()
    monkeypatch.setenv("BROKEN", "a\n")
    with pytest.raises(
        SettingsError, match=r"X-Api-Key cannot be sent to http://127\.0\.0\.1:9: its secret has line breaks"
    ):
        crawl(tmp_path / "c", "http://127.0.0.1:9/", headers=["X-Api-Key: ${BROKEN}"])
    loose = tmp_path / "loose.toml"
    loose.write_text('nowhere = "x"\n')
    loose.chmod(0o644)
    with pytest.raises(SettingsError, match=r"other users may read .*: run chmod 600"):
        crawl(tmp_path / "c", "http://127.0.0.1:9/", headers=["X-Api-Key: ${nowhere}"], credentials=str(loose))


def test_credentials_file_that_nothing_refers_to_has_to_be_usable_too(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot read the credentials file"):
        crawl(tmp_path / "c", "http://127.0.0.1:9/", credentials=str(tmp_path / "nowhere.toml"))
    assert not (tmp_path / "c").exists()


def test_file_that_is_no_client_certificate_is_refused_and_not_remembered(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing")
    with pytest.raises(SettingsError, match=r"notes\.txt is no client certificate: give a PEM file"):
        crawl(tmp_path / "c", "http://127.0.0.1:9/", certificates=[str(tmp_path / "notes.txt")])
    with running(front()) as own:
        assert crawl(tmp_path / "c", own.origin).pages == 1


@pytest.mark.parametrize(
    "value", ["no colon s3cr3t", "User-Agent: s3cr3t", "X: s3cr3t\r\nY: z", "ftp://a X: s3cr3t", "X: s3cr3t☃"]
)
def test_header_that_cannot_be_sent_is_refused_without_showing_it(value: str) -> None:
    with pytest.raises(SettingsError) as raised:
        CrawlSettings(headers=[value])

    assert "s3cr3t" not in str(raised.value)


@pytest.mark.parametrize(
    "words",
    [
        ("http://ann:s3cr3t@127.0.0.1/",),
        ("-i", "LIST"),
        ("http://127.0.0.1/", "--webhook", "https://ann:s3cr3t@example.org/"),
        ("http://127.0.0.1/", "--proxy", "http://ann:s3cr3t@127.0.0.1:3128"),
        ("http://127.0.0.1/", "--certificate", "nothing-there.pem:s3cr3t"),
        ("http://127.0.0.1/", "--user", "ftp://a ann:s3cr3t"),
        ("http://127.0.0.1/", "--bot-key", "key", "--bot-agent", "https://ann:s3cr3t@example.org"),
    ],
)
def test_what_is_wrong_with_a_password_is_said_without_it(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "list").write_text("http://ann:s3cr3t@127.0.0.1/")
    into = ("--into", tmp_path / "c")
    said = lycosa("crawl", *(tmp_path / "list" if word == "LIST" else word for word in words), *into)
    assert said.code == 2
    assert "s3cr3t" not in said.out + said.err
    assert said.err.count("\n") == 1


def test_a_new_password_takes_the_place_of_the_old_one_and_others_of_the_name_keep_theirs(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    first = take_out_secrets(CrawlSettings(seeds=["http://a.example/"], users=["ann:old"]), folder)
    folder.mkdir()
    save_secrets(folder, first.secrets)
    again = take_out_secrets(first.settings.replace(users=["ann:new", "http://b.example ann:other"]), folder)
    save_secrets(folder, again.secrets)

    assert again.settings.users == (
        "http://a.example ann:${password-of-ann}",
        "http://b.example ann:${password-of-ann-2}",
    )
    assert read_secrets(folder / "credentials.toml") == {"password-of-ann": "new", "password-of-ann-2": "other"}
    kept = take_out_secrets(again.settings, folder)
    assert (kept.settings, kept.secrets) == (again.settings, {})


# The advisories


def test_cve_2021_41125_password_is_not_sent_to_other_hosts_nor_their_robots_txt(tmp_path: Path) -> None:
    with (
        running(
            lambda asked: Reply(401, "", (("WWW-Authenticate", 'Basic realm="r"'),)), host="127.0.0.2", robots=True
        ) as other,
        running(basic(page(f"{other.origin}/a"))) as own,
    ):
        crawl(tmp_path / "c", own.origin, users=[f"ann:{SECRET}"])

    assert own.got(BASIC)
    assert "/robots.txt" in other.paths()
    assert "/a" in other.paths()
    assert other.got(BASIC) == []


def test_cve_2022_0577_cookie_header_is_not_sent_over_a_redirect_to_another_host(tmp_path: Path) -> None:
    with (
        running(lambda asked: page(), host="127.0.0.2") as other,
        running(lambda asked: redirect(f"{other.origin}/a")) as own,
    ):
        crawl(tmp_path / "c", own.origin, headers=[f"Cookie: session={SECRET}"])

    assert own.got(SECRET) == ["/robots.txt", "/"]
    assert other.paths() == ["/robots.txt", "/a"]
    assert other.got(SECRET) == []


def test_cve_2024_3574_authorization_is_not_sent_over_a_redirect_to_another_host(tmp_path: Path) -> None:
    with (
        running(lambda asked: page(), host="127.0.0.2") as other,
        running(lambda asked: redirect(f"{other.origin}/a")) as own,
    ):
        crawl(tmp_path / "c", own.origin, headers=[f"Authorization: Bearer {SECRET}"])

    assert own.got(SECRET) == ["/robots.txt", "/"]
    assert other.paths() == ["/robots.txt", "/a"]
    assert other.got(SECRET) == []
    told = [line for line in (tmp_path / "c" / "log.jsonl").read_text().splitlines() if "credentials-not-sent" in line]
    assert [json.loads(line)["to"] for line in told] == [other.origin]


def tls_context(authority: trustme.CA, *, certificate: ssl.VerifyMode = ssl.CERT_NONE) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    if certificate is not ssl.CERT_NONE:
        context.verify_mode = certificate
        authority.configure_trust(context)
    return context


def test_cve_2024_1968_authorization_is_not_sent_over_a_redirect_to_another_scheme_or_port(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    with (
        running(lambda asked: page()) as plain,
        running(lambda asked: redirect(f"{plain.origin}/a")) as port,
        running(lambda asked: redirect(f"{port.origin}/b"), tls=tls_context(authority)) as own,
    ):
        headers = [f"Authorization: Bearer {SECRET}"]
        crawl(tmp_path / "c", own.origin, headers=headers, ca_file=str(tmp_path / "ca.pem"))

    assert own.got(SECRET) == ["/robots.txt", "/"]
    assert port.paths() == ["/robots.txt", "/b"]
    assert plain.paths() == ["/robots.txt", "/a"]
    assert port.got(SECRET) == plain.got(SECRET) == []


# Digest, certificates


def digest_server(algorithm: str) -> object:
    """Wants Digest, with a nonce for three requests each; checks what it gets as RFC 7616 says."""
    name = "sha256" if algorithm.startswith("SHA-256") else "md5"
    nonces = {"n0": 0}

    def h(text: str) -> str:
        return hashlib.new(name, text.encode()).hexdigest()

    def answer(asked: Asked) -> Reply:
        given = dict(re.findall(r'(\w+)="?([^",]+)"?', asked.fields.get("authorization", "")))
        nonce = f"n{len(nonces) - 1}"
        is_stale = "nonce" in given and (given["nonce"] != nonce or nonces[nonce] >= 3)
        if given and not is_stale:
            secret = h(f"ann:a realm, of ours:{SECRET}")
            if algorithm.endswith("-sess"):
                secret = h(f"{secret}:{nonce}:{given['cnonce']}")
            wanted = h(f"{secret}:{nonce}:{given['nc']}:{given['cnonce']}:auth:" + h(f"{asked.method}:{asked.path}"))
            nonces[nonce] += 1
            if given["response"] == wanted and given["uri"] == asked.path and int(given["nc"], 16) == nonces[nonce]:
                return page("/a?x=1", "/b", "/c", "/d") if asked.path == "/" else page(text=asked.path)
            return Reply(403, "wrong")
        if is_stale:
            nonces[f"n{len(nonces)}"] = 0
        offer = (
            f'Digest realm="a realm, of ours", qop="auth,auth-int", algorithm={algorithm}, nonce="n{len(nonces) - 1}"'
        )
        return Reply(
            401,
            "",
            [
                ("WWW-Authenticate", 'Basic realm="r"'),
                ("WWW-Authenticate", offer + (", stale=true" if is_stale else "")),
            ],
        )

    return answer


@pytest.mark.parametrize("algorithm", ["MD5", "SHA-256", "SHA-256-sess"])
def test_digest_is_answered_and_goes_on_with_a_new_nonce_and_never_sends_the_password(
    tmp_path: Path, algorithm: str
) -> None:
    with running(digest_server(algorithm), robots=True) as server:
        stats = crawl(tmp_path / "c", server.origin, users=[f"ann:{SECRET}"])

    assert stats.pages == 5
    assert not stats.failed
    assert server.got(BASIC) == server.got(SECRET) == []


def test_wrong_password_is_not_tried_again_and_again(tmp_path: Path) -> None:
    with running(basic(page())) as server:
        stats = crawl(tmp_path / "c", server.origin, users=["ann:wrong"])

    assert stats.pages == 0
    assert dict(stats.failed) == {"401": 1}
    assert server.paths() == ["/robots.txt", "/", "/"]


@pytest.mark.slow
def test_client_certificate_is_shown_to_its_origin_and_to_no_other(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    authority.issue_cert("ann@example.org").private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "ann.pem"))
    with (
        running(lambda asked: page(), tls=tls_context(authority, certificate=ssl.CERT_OPTIONAL)) as other,
        running(front("/a", f"{other.origin}/x"), tls=tls_context(authority, certificate=ssl.CERT_REQUIRED)) as own,
    ):
        options = {"ca_file": str(tmp_path / "ca.pem")}
        with_it = crawl(tmp_path / "c", own.origin, certificates=[str(tmp_path / "ann.pem")], **options)
        without = crawl(tmp_path / "d", own.origin, pages=1, **options)

    assert with_it.pages == 3
    assert without.pages == 0
    assert {asked.has_certificate for asked in own.asked} == {True}
    assert [(asked.path, asked.has_certificate) for asked in other.asked] == [("/robots.txt", False), ("/x", False)]


def test_log_and_representations_hold_no_secret(tmp_path: Path) -> None:
    request = Request("http://a.example/", "a.example", 80, "192.0.2.1", private=PrivateParts((("X", SECRET),)))
    assert SECRET not in repr(request)
    with running(basic(page())) as server:
        crawl(tmp_path / "c", server.origin, users=[f"ann:{SECRET}"])
    events = [json.loads(line) for line in (tmp_path / "c" / "log.jsonl").read_text().splitlines()]
    assert events
    assert SECRET not in json.dumps(events)
    assert SECRET not in os.fsdecode(written_bytes(tmp_path / "c", but=("credentials.toml",)))


def test_robots_txt_with_credentials_is_not_fetched_by_the_coordinator_of_a_cluster() -> None:
    sent: list[Request] = []
    own = SimpleNamespace(start=lambda request, done: sent.append(request))
    downloader = CentralRobotsDownloader(own, coordinator=None, now=lambda: 0.0)  # type: ignore[arg-type]
    request = Request("http://a.example/robots.txt", "a.example", 80, "192.0.2.1", body_limit_bytes=ROBOTS_BYTES)
    private = msgspec.structs.replace(request, private=PrivateParts((("X", SECRET),)))

    downloader.start(private, lambda response: None)

    assert sent == [private]
