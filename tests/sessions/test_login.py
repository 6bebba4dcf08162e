"""Form logins: hidden fields are taken from the form, lost sessions are noticed, and tries are bounded."""

import json
import re
import tomllib
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qs

import pytest

from lycosa.errors import SettingsError
from lycosa.frontier import RequestKind
from lycosa.inspect import explain_url, open_to_read
from lycosa.records import PrivateParts, Request, Response
from lycosa.sessions import login as login_module
from lycosa.sessions.credentials import Secrets
from lycosa.sessions.login import Logins, LoginState
from lycosa.settings import CrawlSettings, LoginRule, merge, read_file, read_login, to_toml
from tests.sessions.recording_server import Asked, Reply, crawl, page, redirect, request_records, running, written_bytes

PASSWORD = "s3cr3t & more"


class MemberSite:
    """`pages` pages behind a form with a CSRF token that is good once; a session ends after each of `ends_after`
    answers, which count all pages that were shown. `lost` is said to others, without it a redirect to the form."""

    def __init__(self, pages: int, ends_after: tuple[int, ...] = (), *, lost: Reply | None = None) -> None:
        self.pages, self.ends_after, self.lost = pages, set(ends_after), lost
        self.tokens: set[str] = set()
        self.session = ""
        self.made = self.shown = self.logins = self.refused = 0

    def __call__(self, asked: Asked) -> Reply:
        path = asked.path.partition("?")[0]
        cookies = asked.fields.get("cookie", "")
        if path == "/login":
            return self._login(asked) if asked.method == "POST" else self._form()
        if path == "/logout":
            self.session = ""
            return page()
        if not self.session or f"sid={self.session}" not in cookies:
            return self.lost or redirect(f"/login?next={path}")
        self.shown += 1
        if self.shown in self.ends_after:
            self.session = ""
        number = int(path[2:] or 0) if path.startswith("/p") else 0
        links = [f"/p{child}" for child in range(10 * number + 1, 10 * number + 11) if child < self.pages]
        return page(*links, "/logout", text=f"member page {number}")

    def _form(self) -> Reply:
        self.made += 1
        token = f"token-{self.made}"
        self.tokens.add(token)
        hidden = f"<input type=hidden name=csrf value='{token}'><input type=checkbox name=stay checked>"
        other = "<form action=/search><input name=q></form>"
        fields = "<input name=user><input name=password type=password><button name=go value=1>in</button>"
        return Reply(body=f"{other}<form method=post action=/login?from=form>{hidden}{fields}</form>")

    def _login(self, asked: Asked) -> Reply:
        given = {name: values[0] for name, values in parse_qs(asked.body).items()}
        token = given.pop("csrf", "")
        if token not in self.tokens or given != {"stay": "on", "user": "ann", "password": PASSWORD, "go": "1"}:
            self.refused += 1
            return self._form()
        self.tokens.discard(token)
        self.logins += 1
        self.session = f"session{self.logins}"
        return redirect("/")._replace(fields=(("Location", "/"), ("Set-Cookie", f"sid={self.session}; HttpOnly")))


def rule(origin: str, **more: str) -> dict[str, object]:
    url = origin if origin.count("/") > 2 else f"{origin}/login"
    return {"url": url, "fields": {"user": "ann", "password": PASSWORD}, **more}


@pytest.mark.slow
def test_a_thousand_pages_behind_a_login_are_complete_though_the_session_is_lost_twice(tmp_path: Path) -> None:
    site = MemberSite(1_000, ends_after=(333, 777))
    with running(site) as server:
        stats = crawl(tmp_path / "c", server.origin, logins=[rule(server.origin)], per_host=3)

    assert (stats.pages, stats.queued) == (1_000, 0)
    assert not stats.failed
    assert (site.logins, site.refused) == (3, 0)
    assert "/logout" not in server.paths()


@pytest.mark.parametrize(
    ("lost", "declared"),
    [
        (None, {}),
        (page("/login", text="Please sign in"), {"lost_text": "Please sign in"}),
        (Reply(403, "members only"), {"lost_status": "401 403"}),
        (redirect("/welcome?from=/"), {"lost_url": "/welcome*"}),
    ],
    ids=["redirect", "text", "status", "url"],
)
def test_login_again_when_the_session_is_lost_and_lost_pages_are_no_content(
    tmp_path: Path, lost: Reply | None, declared: dict[str, str]
) -> None:
    site = MemberSite(30, ends_after=(7, 20), lost=lost)
    with running(site) as server:
        stats = crawl(tmp_path / "c", server.origin, logins=[rule(server.origin, **declared)], exclude=["*/login*"])

    assert (stats.pages, stats.queued, dict(stats.failed)) == (30, 0, {})
    assert site.logins == 3
    events = [json.loads(line) for line in (tmp_path / "c" / "log.jsonl").read_text().splitlines()]
    assert [event["event"] for event in events if "session" in event] == ["logged-in", "session-lost"] * 2 + [
        "logged-in"
    ]


def test_nothing_that_was_filled_in_is_in_a_file_but_the_credentials_file(tmp_path: Path) -> None:
    site, folder = MemberSite(3), tmp_path / "c"
    with running(site) as server:
        crawl(folder, server.origin, logins=[rule(server.origin)])

    everything = written_bytes(folder, but=("credentials.toml",))
    assert b"s3cr3t" not in everything
    assert (folder / "credentials.toml").stat().st_mode & 0o777 == 0o600
    (posted,) = [record for record in request_records(folder) if record.startswith("POST")]
    assert "POST /login?from=form HTTP/1.1" in posted
    assert posted.endswith("\r\n\r\n")
    kept = merge(read_file(folder / "lycosa.toml"))
    assert "fields.password=${127.0.0.1-password}" in kept.logins[0]


def test_password_is_sent_once_or_twice_if_it_is_refused_and_the_pages_wait_for_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(login_module, "AGAIN_S", 0.1)
    site = MemberSite(3)
    with running(site) as server:
        wrong = {"url": f"{server.origin}/login", "fields": {"user": "ann", "password": "wrong"}}
        stats = crawl(tmp_path / "c", server.origin, logins=[wrong])
        assert dict(stats.failed) == {"login-failed": 1}
        assert site.refused == 2
        with open_to_read(tmp_path / "c") as collection:
            assert "login" in str(explain_url(collection, f"{server.origin}/"))
        again = crawl(tmp_path / "c", logins=[rule(server.origin)])

    assert again.pages == 3


def test_site_that_forgets_every_session_is_given_up(tmp_path: Path) -> None:
    site = MemberSite(50, ends_after=tuple(range(1, 1_000)))

    def forgetful(asked: Asked) -> Reply:
        reply = site(asked)
        site.session = ""
        return reply

    with running(forgetful) as server:
        stats = crawl(tmp_path / "c", server.origin, logins=[rule(server.origin)])

    assert stats.pages == 0
    assert site.logins <= login_module.USELESS_MOST + 1
    assert sum(stats.failed.values()) == 1


def test_login_page_that_fails_is_tried_again_by_the_retry_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(login_module, "retry_wait", lambda rule, tried, **_: 0.05 if tried < rule.tries else None)
    site, failures = MemberSite(3), [503, 500, 503]

    def answer(asked: Asked) -> Reply:
        return Reply(failures.pop()) if asked.path == "/login" and failures else site(asked)

    with running(answer) as server:
        stats = crawl(tmp_path / "c", server.origin, logins=[rule(server.origin + "/login#form")])

    assert (stats.pages, site.logins) == (3, 1)
    assert server.paths().count("/login") == 4


@pytest.mark.parametrize(
    ("form", "problem"),
    [
        ("<form method=get><input type=password name=password></form>", "would stand in a URL"),
        ("<form method=post action='http://127.0.0.9/'><input type=password name=password></form>", "another origin"),
        ("<p>no form</p>", "has no form"),
    ],
)
def test_form_that_would_give_the_password_away_is_not_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, problem: str
) -> None:
    monkeypatch.setattr(login_module, "AGAIN_S", 0.0)

    def answer(asked: Asked) -> Reply:
        return Reply(body=form) if asked.path == "/login" else redirect("/login")

    with running(answer) as server:
        crawl(tmp_path / "c", server.origin, logins=[rule(server.origin)])

    assert server.got("s3cr3t") == []
    assert problem in (tmp_path / "c" / "log.jsonl").read_text()


def test_success_is_known_by_a_text_of_the_page_behind(tmp_path: Path) -> None:
    site = MemberSite(2)
    with running(site) as server:
        stats = crawl(tmp_path / "c", server.origin, logins=[rule(server.origin, success="member page 0")])

    assert stats.pages == 2
    assert server.paths()[:5] == ["/robots.txt", "/login", "/login?from=form", "/", "/"]


def test_login_on_another_host_of_the_domain_reads_its_robots_txt_first(tmp_path: Path) -> None:
    def members(asked: Asked) -> Reply:
        return page(*([f"/{n}" for n in range(3)] if asked.path == "/" else []))

    with running(MemberSite(4)) as own, running(members) as other:
        logins = [rule(own.origin, origins=other.origin)]
        stats = crawl(tmp_path / "c", other.origin, logins=logins, scope="host")

    assert stats.pages == 4
    assert own.paths() == ["/robots.txt", "/login", "/login?from=form"]


def test_logins_of_settings_are_written_and_read_back_and_wrong_ones_are_one_sentence(tmp_path: Path) -> None:
    settings = CrawlSettings(logins=[rule("https://a.example", lost_status="403", form="#login")])
    (tmp_path / "s.toml").write_text(to_toml(settings))
    assert merge(read_file(tmp_path / "s.toml")) == settings
    for wrong in (
        "x",
        [{}],
        [{"url": "https://a.example/"}],
        [{"url": "a", "fields": {"a": "b"}}],
        [rule("https://a", x="y")],
    ):
        with pytest.raises(SettingsError) as raised:
            CrawlSettings(logins=wrong)
        assert "s3cr3t" not in str(raised.value)


def test_steps_of_a_login_keep_the_delay_of_their_host(tmp_path: Path) -> None:
    site = MemberSite(4, ends_after=(2,))
    with running(site) as server:
        stats = crawl(tmp_path / "c", server.origin, logins=[rule(server.origin)], delay_s=0.05)

    assert (stats.pages, site.logins) == (4, 2)
    came = [asked.came_s for asked in server.asked]
    assert min(later - earlier for earlier, later in pairwise(came)) >= 0.05


def test_late_answer_of_an_earlier_session_does_not_end_the_present_one(tmp_path: Path) -> None:
    events = SimpleNamespace(write=lambda *_, **__: None)
    shard = SimpleNamespace(link_filter=SimpleNamespace(filters=[]), events=events, now=lambda: 0.0)
    rules = [LoginRule("http://a.example/login", (("user", "ann"),), origins=("http://a.example",))]
    logins = Logins(SimpleNamespace(shard=shard, frontier=None, pages=None), rules, Secrets(tmp_path))
    login = logins._by_origin["http://a.example"]
    login.state, login.number = LoginState.IN, 2

    def lost(session: int) -> bool:
        lease = SimpleNamespace(host=SimpleNamespace(origin="http://a.example"), kind=RequestKind.PAGE)
        request = Request("http://a.example/x", "a.example", 80, "", private=PrivateParts(session=session))
        response = Response(request.url, status=302, headers={"location": "/login?next=/x"})
        return logins.is_lost(SimpleNamespace(lease=lease, request=request, response=response, prepared=None))

    assert lost(1)
    assert login.state is LoginState.IN
    assert lost(2)
    assert login.state is LoginState.OUT


def test_example_of_the_documentation_is_a_login() -> None:
    text = (Path(__file__).parents[2] / "docs" / "sessions.md").read_text()
    (example,) = re.findall(r"```toml\n(.*?)```", text, re.S)
    (table,) = CrawlSettings(**tomllib.loads(example)).logins

    assert read_login(table).fields == (("user", "ann"), ("password", "${SHOP_PASSWORD}"))


def test_links_out_of_scope_are_checked_by_a_crawl_that_logs_in(tmp_path: Path) -> None:
    with running(lambda asked: page(text="outside")) as other:
        site = MemberSite(2)
        with running(lambda asked: site(asked) if asked.path != "/p1" else page(f"{other.origin}/x")) as server:
            stats = crawl(
                tmp_path / "c", server.origin, logins=[rule(server.origin)], scope="host", external=True, pages=50
            )

    assert (stats.pages, stats.external, site.logins) == (2, 1, 1)
    assert other.paths()[-1] == "/x"
    assert not other.got("s3cr3t")
