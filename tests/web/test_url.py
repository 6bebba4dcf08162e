"""URLs: the standard's own cases, the laws of normalising and joining, and keys that can be undone."""

import json
import re
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lycosa.web import url
from lycosa.web.url import domain_of, registrable_domain

pytestmark = pytest.mark.usefixtures("each_kernel")

ODD = st.text(st.sampled_from("abZ09.:/?#@%[]\\ \t\n-_~é字\ud800\udc00*$&=2eF3"), max_size=30)
HOSTS = st.one_of(
    st.from_regex(r"([a-z0-9_-]{1,5}\.){0,3}[a-z]{2,4}\.?", fullmatch=True),
    st.ip_addresses(v=4).map(str),
    st.ip_addresses(v=6).map(lambda address: f"[{address}]"),
    st.sampled_from(["a..b", ".a.b", "a.b..", ".", "example.co.uk", "münchen.de", "a.github.io"]),
)
URLS = st.builds(
    lambda scheme, credentials, host, port, path: f"{scheme}://{credentials}{host}{port}/{path}",
    st.sampled_from(["http", "https", "HTTP"]),
    st.sampled_from(["", "", "u@", "u:p@"]),
    HOSTS,
    st.sampled_from(["", "", ":80", ":443", ":8080"]),
    ODD,
)


def cases(conformance: Path) -> list[dict[str, Any]]:
    rows = json.loads((conformance / "url-whatwg" / "urltestdata.json").read_text())
    return [row for row in rows if isinstance(row, dict)]


def normalised(base: str) -> str:
    found = url.parse_url(base)
    return found.href if found else base


def is_httpish(text: str) -> bool:
    return text.lower().startswith(("http:", "https:"))


def expected_form(href: str) -> str:
    """Our normalisation written another way, from the standard's href: the only differences there may be."""
    href = re.sub(r"#.*", "", href, flags=re.DOTALL)
    href = re.sub(r"^(https?://)[^/]*@", r"\1", href)
    return re.sub(r"%[0-9A-Fa-f]{2}", lambda escape: escape[0].upper(), href)


def test_serialise_every_http_case_of_the_standard_exact_href(conformance: Path) -> None:
    good = [row for row in cases(conformance) if row.get("href", "").startswith(("http:", "https:"))]
    wrong = [row["input"] for row in good if url.serialise_url(row["input"], row["base"]) != row["href"]]
    assert (len(good), wrong) == (247, [])


def test_parse_every_http_case_of_the_standard_differs_by_normalising_only(conformance: Path) -> None:
    good = [row for row in cases(conformance) if row.get("href", "").startswith(("http:", "https:"))]
    parsed = [(url.parse_url(row["input"], row["base"]), expected_form(row["href"])) for row in good]
    assert [found for found, wanted in parsed if found is None or found.href != wanted] == []


def test_parse_every_failure_of_the_standard_rejected(conformance: Path) -> None:
    bad = [row for row in cases(conformance) if row.get("failure")]
    httpish = [row for row in bad if any(is_httpish(text) for text in (row["input"], row["base"] or ""))]
    accepted = [row["input"] for row in bad if url.parse_url(row["input"], row["base"]) is not None]
    assert (len(httpish), accepted) == (199, [])


def test_join_map_every_case_with_a_base_same_as_parse(conformance: Path) -> None:
    for row in cases(conformance):
        if row["base"] is not None:
            found = url.parse_url(row["input"], row["base"])
            assert list(url.join_map(normalised(row["base"]), [row["input"]]).values()) == (
                [found.href] if found else []
            )


def test_parse_naughty_strings_never_raise(conformance: Path) -> None:
    for text in json.loads((conformance / "hostile-strings" / "blns.json").read_text()):
        url.parse_url(text)
        url.parse_url(text, "https://example.org/")


@pytest.mark.parametrize(
    ("text", "href"),
    [
        ("HTTP://Example.ORG:80", "http://example.org/"),
        ("https://example.org:443/a/./b/../c?q#f", "https://example.org/a/c?q"),
        ("https://user:secret@example.org/@x", "https://example.org/@x"),
        ("https://example.org/a%3ab?c=%e3%83%84%zz", "https://example.org/a%3Ab?c=%E3%83%84%zz"),
        ("https://www.example.org/a/?", "https://www.example.org/a/?"),
        ("https://example.org//a//", "https://example.org//a//"),
        ("https://bücher.example/ü?ü", "https://xn--bcher-kva.example/%C3%BC?%C3%BC"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("http://a/%2e%2E/b\ud800", "http://a/b%EF%BF%BD"),
    ],
)
def test_parse_spelling_normalised(text: str, href: str) -> None:
    found = url.parse_url(text)
    assert found is not None
    assert found.href == href


@pytest.mark.parametrize(
    "text", ["", "example.org", "mailto:a@b", "javascript:0", "ftp://a/", "httpsx://a/", "http://"]
)
def test_parse_not_fetchable_none(text: str) -> None:
    assert url.parse_url(text) is None
    assert url.join_map("data:,x", [text]) == {}


def test_parse_text_beyond_bound_none() -> None:
    assert url.parse_url("http://a/" + "b" * url.MAX_INPUT_BYTES) is None


@pytest.mark.parametrize(
    ("href", "parts"),
    [
        ("https://example.org/a?b", ("https", "example.org", 443, "/a?b")),
        ("http://example.org:8080/", ("http", "example.org", 8080, "/")),
        ("http://[2001:db8::1]/x", ("http", "[2001:db8::1]", 80, "/x")),
        ("https://[::1]:8443/", ("https", "[::1]", 8443, "/")),
    ],
)
def test_split_normalised_parts(href: str, parts: tuple[str, str, int, str]) -> None:
    found = url.split_url(href)
    assert (found.scheme, found.host, found.port, found.path) == parts
    assert url.parse_url(href) == found


@given(URLS | ODD, st.none() | URLS)
def test_parse_its_own_result_unchanged(text: str, base: str | None) -> None:
    found = url.parse_url(text, base)
    if found is not None:
        assert url.parse_url(found.href) == found
        assert found.href.isascii()
        assert "#" not in found.href


@given(URLS, st.lists(ODD | URLS, max_size=8))
def test_join_map_any_hrefs_same_as_parse_one_by_one(base: str, hrefs: list[str]) -> None:
    singly = [found.href for href in hrefs if (found := url.parse_url(href, base))]
    assert list(dict.fromkeys(url.join_map(normalised(base), hrefs).values())) == list(dict.fromkeys(singly))


def test_join_map_says_which_href_led_where() -> None:
    found = url.join_map("https://a.example/d/p", ["#top", "q#1", "mailto:x", "q #1", "q"])
    assert found == {
        "#top": "https://a.example/d/p",
        "q#1": "https://a.example/d/q",
        "q #1": "https://a.example/d/q%20",
        "q": "https://a.example/d/q",
    }


def test_join_map_longer_than_allowed_dropped() -> None:
    fits = "https://a.example/" + "b" * (url.MAX_URL_BYTES - len("https://a.example/"))
    assert list(url.join_map("https://a.example/", [fits, fits + "b", "data:," + "x" * 1_000_000])) == [fits]
    assert url.join_map("https://a.example/", ["b" * 30], max_bytes=20) == {}


@given(URLS)
def test_from_key_of_url_key_gives_the_url_back(text: str) -> None:
    found = url.parse_url(text)
    if found is not None:
        key = url.url_key(found.href)
        assert url.url_from_key(key) == found.href
        assert int.from_bytes(key[: url.BUCKET_BYTES]) == url.bucket_of(found.host)


@given(st.lists(URLS, max_size=30))
def test_url_key_sorted_hosts_and_domains_are_ranges(texts: list[str]) -> None:
    found = {parsed.href: parsed for text in texts if (parsed := url.parse_url(text))}
    in_order = [found[url.url_from_key(key)] for key in sorted(map(url.url_key, found))]
    for name in ("host", "domain"):
        names = [parsed.host if name == "host" else domain_of(parsed.host) for parsed in in_order]
        runs = [run for run, _ in groupby(names)]
        assert len(runs) == len(set(runs)), f"a {name} is in two places"


def test_host_key_neighbours_in_name_do_not_split_a_domain() -> None:
    hosts = ["example.org", "example-a.org", "example0.org", "www.example.org", "example.org.", "a.www.example.org"]
    keys = sorted(url.url_key(f"https://{host}/")[url.BUCKET_BYTES :] for host in hosts)
    inside = [key.startswith(b"org.example.") for key in keys]
    assert b"org.example.www.:443:https\0/" in keys
    assert [run for run, _ in groupby(inside)].count(True) == 1
    assert inside.count(True) == 4


def test_bucket_of_hosts_of_one_domain_equal_and_fixed_for_ever() -> None:
    assert {url.bucket_of(host) for host in ("example.org", "www.example.org", "www.example.org.")} == {60366}
    assert url.bucket_of("a.github.io") != url.bucket_of("b.github.io")


def test_registrable_domain_every_case_of_the_list(conformance: Path) -> None:
    lines = (conformance / "psl" / "psl_tests.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    wrong = [row for row in rows if registrable_domain(row["domain"] or "") != row["registrable"]]
    assert (len(rows), wrong) == (78, [])


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("www.example.co.uk", "example.co.uk"),
        ("co.uk", "co.uk"),
        ("localhost", "localhost"),
        ("192.0.2.1", "192.0.2.1"),
        ("[2001:db8::1]", "[2001:db8::1]"),
        ("a.b.example.org.", "example.org"),
        ("shop.xn--bcher-kva.de", "xn--bcher-kva.de"),
    ],
)
def test_domain_of_host_domain_or_itself(host: str, domain: str) -> None:
    assert domain_of(host) == domain
