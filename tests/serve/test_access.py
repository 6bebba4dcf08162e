"""Who may ask: the token, the Host, the Origin, the method; and the policy that every answer carries."""

import pytest

from tests.serve.client import Client

STEER = {"action": "pause"}
CHANGING = ("/api/v1/steer", "/api/v1/seeds", "/api/v1/hosts/steer", "/api/v1/recrawl")


@pytest.mark.parametrize("path", ["/", "/api/v1/status", "/metrics", "/static/live.js", "/nothing"])
def test_without_the_token_nothing_is_answered(path: str, client: Client) -> None:
    for word in ("", "Bearer wrong", "Basic YTpi"):
        assert client.get(path, authorization=word).status == 401


def test_health_needs_no_token(client: Client) -> None:
    assert client.get("/healthz", authorization="").status == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8480", "127.0.0.1.evil.example", "", "localhost.evil"])
def test_foreign_host_is_refused_whatever_it_sends(host: str, client: Client) -> None:
    assert client.get("/", host=host or " ").status == 421


@pytest.mark.parametrize("host", ["localhost:8480", "127.0.0.1", "[::1]:8480"])
def test_own_host_is_answered(host: str, client: Client) -> None:
    assert client.get("/", host=host).status == 200


def test_link_with_the_token_sets_a_cookie_and_leads_on_without_it(client: Client) -> None:
    entered = client.get(f"/hosts?q=a&token={client.token}", authorization="")
    assert entered.status == 303
    assert entered.headers["location"] == "/hosts?q=a"
    cookie = entered.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert client.get("/hosts", authorization="", cookie=cookie.partition(";")[0]).status == 200


@pytest.mark.parametrize("path", ["//evil.example/", "/%2f/evil.example"])
def test_link_with_the_token_leads_nowhere_else(path: str, client: Client) -> None:
    entered = client.ask("GET", "/", {"authorization": ""})
    assert entered.status == 401
    scope_path = client.get(f"{path}?token={client.token}", authorization="").headers.get("location", "/")
    assert scope_path.startswith("/")
    assert not scope_path.startswith("//")


def test_cookie_alone_does_not_steer_from_elsewhere(client: Client) -> None:
    cookie = client.get(f"/?token={client.token}", authorization="").headers["set-cookie"].partition(";")[0]
    with_cookie = {"authorization": "", "cookie": cookie}
    assert client.post("/api/v1/steer", STEER, **with_cookie).status == 403
    assert client.post("/api/v1/steer", STEER, origin="http://evil.example", **with_cookie).status == 403
    other_port = {**with_cookie, "origin": "http://127.0.0.1:9999"}
    assert client.post("/api/v1/steer", STEER, **other_port).status == 403
    cross = {**with_cookie, "origin": "http://127.0.0.1:8480", "sec_fetch_site": "cross-site"}
    assert client.post("/api/v1/steer", STEER, **cross).status == 403
    own = {**with_cookie, "origin": "http://127.0.0.1:8480", "sec_fetch_site": "same-origin"}
    assert client.post("/api/v1/steer", STEER, **own).status == 400  # it came through: no crawl is running


@pytest.mark.parametrize("path", CHANGING)
def test_nothing_is_changed_without_a_token_from_elsewhere_or_by_get(path: str, client: Client) -> None:
    cookie = client.get(f"/?token={client.token}", authorization="").headers["set-cookie"].partition(";")[0]
    assert client.post(path, {}, authorization="").status == 401
    assert client.post(path, {}, authorization="", cookie="lycosa=x").status == 401
    assert client.post(path, {}, host="evil.example").status == 421
    assert client.post(path, {}, authorization="", cookie=cookie, origin="http://evil.example").status == 403
    for method in ("GET", "HEAD", "PUT", "DELETE"):
        assert client.ask(method, path, {}).status == 405


def test_all_that_changes_something_is_refused_so(client: Client) -> None:
    paths = client.get("/api/v1/openapi.json").facts["paths"]
    assert {path for path, methods in paths.items() if set(methods) - {"get"}} == set(CHANGING)


@pytest.mark.parametrize("path", ["/", "/hosts", "/report", "/api/v1/status", "/nothing"])
def test_answers_load_nothing_from_elsewhere_and_are_framed_by_nobody(path: str, client: Client) -> None:
    headers = client.get(path).headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"


def test_report_runs_its_own_script_only_on_an_origin_of_its_own(client: Client) -> None:
    policy = client.get("/report/page").headers["content-security-policy"]
    parts = dict(part.strip().partition(" ")[::2] for part in policy.split(";"))
    assert parts["sandbox"].split() == ["allow-popups", "allow-scripts"], "it has no origin, so no cookie"
    assert parts["script-src"].startswith("'sha256-")
    assert parts["default-src"] == "'none'"
