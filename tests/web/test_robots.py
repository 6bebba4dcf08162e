"""robots.txt: Google's published rows, the RFC's own examples, and files meant to hurt."""

import base64
import json
import pickle
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lycosa.web import robots
from lycosa.web.robots import Robots, RobotsDirectives, robots_directives, run_steps
from lycosa.web.url import parse_url as parse_url
from tests.effort import bounded

# Rows that contradict the normalisation of RFC 9309 §2.2.2: they expect an escape and its character to differ.
DISPUTED = {
    "google_robots_test.jsonl": {f"ID_Encoding#{number}" for number in (3, 5, 6)},
    "robotstxt_spec_test.jsonl": {f"correctness/non-ascii-paths#{number}" for number in (3, 5, 6)},
}


def parse_robots(body: bytes, *, agent: str) -> Robots:
    return run_steps(robots.parse_robots_steps(body, agent=agent))


def rows(conformance: Path, name: str) -> list[dict[str, Any]]:
    lines = (conformance / "robots-google" / name).read_text().splitlines()
    return [row for line in lines if not (row := json.loads(line))["google_only"]]


def our_answer(row: dict[str, Any]) -> bool:
    encoded = row.get("robots_b64")
    body = base64.b64decode(encoded) if encoded else (row["robots"] or "").encode()
    found = parse_url(row["url"])
    assert found is not None
    return parse_robots(body, agent=row["agent"]).allows(found.path)


def rules(text: str, agent: str = "Lycosa/1.0") -> Robots:
    return parse_robots(text.encode(), agent=agent)


@pytest.mark.parametrize(("name", "count"), [("google_robots_test.jsonl", 69), ("robotstxt_spec_test.jsonl", 375)])
def test_allows_every_standard_row_as_expected(conformance: Path, name: str, count: int) -> None:
    counted = [row for row in rows(conformance, name) if row["id"] not in DISPUTED[name]]
    wrong = [row["id"] for row in counted if our_answer(row) != row["allowed"]]
    assert (len(counted), wrong) == (count, [])


@pytest.mark.parametrize("name", sorted(DISPUTED))
def test_allows_disputed_rows_follow_the_rfc(conformance: Path, name: str) -> None:
    disputed = [row for row in rows(conformance, name) if row["id"] in DISPUTED[name]]
    assert len(disputed) == 3
    assert [(row["allowed"], our_answer(row)) for row in disputed] == [(False, True)] * 3


@pytest.mark.parametrize(
    ("rule", "path", "is_matched"),
    [
        ("/foo/bar?baz=https://foo.bar", "/foo/bar?baz=https%3A%2F%2Ffoo.bar", True),
        ("/foo/bar?baz=https%3a%2f%2ffoo.bar", "/foo/bar?baz=https://foo.bar", True),
        ("/foo/bar/ツ", "/foo/bar/%E3%83%84", True),
        ("/foo/bar/%e3%83%84", "/foo/bar/ツ", True),
        ("/foo/bar/%62%61%7A", "/foo/bar/baz", True),
        ("/a%2Fb", "/a/b", False),
        ("/file-with-a-%2A.html", "/file-with-a-*.html", True),
        ("/file-with-a-%2A.html", "/file-with-a-x.html", False),
        ("/foo-%24", "/foo-$", True),
        ("/a$b", "/a$b", True),
        ("/a$b", "/a", False),
        ("/{id}", "/%7Bid%7D", True),
        ("/q?a='b'", "/q?a=%27b%27", True),
        ("/100%", "/100%", True),
        ("/fish*", "/fishheads", True),
        ("/*.php$", "/a.php?x", False),
        ("/*.php$", "/a.php/b.php", True),
        ("*", "/anything", True),
        ("fish", "/fish", False),
    ],
)
def test_allows_one_rule_compared_by_meaning(rule: str, path: str, is_matched: bool) -> None:
    assert rules(f"User-agent: *\nDisallow: {rule}").allows(path) is not is_matched


def test_parse_group_that_names_us_replaces_the_general_one() -> None:
    found = rules("User-agent: *\nDisallow: /\nCrawl-delay: 9\n\nUser-agent: LYCOSA\nCrawl-delay: 2\nCrawl-delay: 3\n")
    assert found.allows("/x")
    assert found.crawl_delay_s == 3


def test_parse_name_that_is_no_token_gets_the_general_rules() -> None:
    text = "User-agent: r2d2\nDisallow: /\nUser-agent: *\nDisallow: /private"
    assert rules(text, agent="r2d2").disallow == ("/private",)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("1.5", 1.5), ("99999999", 3600.0), ("0", None), ("-3", None), ("nan", None), ("inf", None), ("soon", None)],
)
def test_parse_crawl_delay_bounded(value: str, seconds: float | None) -> None:
    assert rules(f"User-agent: *\nCrawl-delay: {value}").crawl_delay_s == seconds


def test_parse_sitemaps_of_any_group_kept_once_in_order() -> None:
    found = rules("Sitemap: https://a/2\nUser-agent: x\nSITEMAP: https://a/1 # new\nDisallow: /\nsitemap: https://a/2")
    assert found.sitemaps == ("https://a/2", "https://a/1")


def test_parse_beyond_500_kib_cut_at_a_line() -> None:
    head = "User-agent: *\nDisallow: /kept\n"
    filler = "#" * (robots.MAX_ROBOTS_BYTES - len(head) - len("\nDisallow: /")) + "\n"
    found = rules(head + filler + "Disallow: /cut-in-the-middle\nDisallow: /never-read\n")
    assert found.disallow == ("/kept",)


@pytest.mark.parametrize(("status", "is_allowed", "is_unreachable"), [
    (200, False, False),
    (301, True, False),
    (404, True, False),
    (429, True, False),
    (500, False, True),
    (503, False, True),
    (0, False, True),
])  # fmt: skip
def test_from_response_status_decides(status: int, is_allowed: bool, is_unreachable: bool) -> None:
    found = run_steps(
        robots.robots_from_response_steps(status, b"User-agent: *\nDisallow: /private", agent="Lycosa/1.0")
    )
    assert found.allows("/private") is is_allowed
    assert found.is_unreachable is is_unreachable
    assert found.allows("/public") is not is_unreachable


def test_robots_record_survives_storing_and_pickling() -> None:
    found = rules("User-agent: *\nDisallow: /a*b$\nAllow: /ü\nCrawl-delay: 2\nSitemap: https://a/s.xml")
    assert not found.allows("/a-b")
    stored = msgspec.msgpack.decode(msgspec.msgpack.encode(found), type=Robots)
    assert stored == found == pickle.loads(pickle.dumps(found))
    assert not stored.allows("/a-b")


@given(st.binary(max_size=300), st.text(max_size=30))
def test_parse_any_bytes_give_a_record(body: bytes, path: str) -> None:
    found = parse_robots(b"User-agent: *\nDisallow:" + body, agent="Lycosa")
    assert found.allows("/" + path) in (True, False)


RULE = st.text("/ab*$", min_size=1, max_size=6)


@given(st.lists(RULE, max_size=6), st.lists(RULE, max_size=6), st.text("/ab", max_size=8))
def test_allows_any_rules_longest_wins_and_ties_allow(allow: list[str], disallow: list[str], path: str) -> None:
    text = "".join(f"Allow: {rule}\n" for rule in allow) + "".join(f"Disallow: {rule}\n" for rule in disallow)
    best_allow = max((len(rule) for rule in allow if is_match(rule, "/" + path)), default=-1)
    best_disallow = max((len(rule) for rule in disallow if is_match(rule, "/" + path)), default=-1)
    assert rules("User-agent: *\n" + text).allows("/" + path) is (best_allow >= best_disallow)


def is_match(rule: str, path: str) -> bool:
    """RFC 9309 matching by a regular expression, for rules without characters that need escaping but `$`."""
    expression = re.escape(rule.removesuffix("$")).replace(r"\*", ".*") + (r"\Z" if rule.endswith("$") else "")
    return bool(re.match(expression, path))


@pytest.mark.parametrize(
    "body",
    [
        "User-agent: *\nDisallow: " + "*" * 10_000 + "x",
        "User-agent: *\nDisallow: /" + "*a" * 5_000 + "b$",
        "User-agent: *\n" + "".join(f"Disallow: /*x{number}y\n" for number in range(5_000)),
        "User-agent: nobody\n" * 12_000 + "User-agent: *\n" + "Disallow: /x\n" * 12_000,
        "%" * 500_000,
    ],
    ids=["stars", "pieces", "many", "agents", "junk"],
)
def test_allows_hostile_file_bounded_time(body: str) -> None:
    assert bounded(lambda: rules(body).allows("/" + "a" * 2_000), units=100)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], RobotsDirectives()),
        (["index, follow"], RobotsDirectives()),
        (["NOINDEX, NoFollow"], RobotsDirectives(noindex=True, nofollow=True)),
        (["none"], RobotsDirectives(noindex=True, nofollow=True)),
        (["noarchive", "nofollow"], RobotsDirectives(nofollow=True, noarchive=True)),
        (["otherbot: noindex, nofollow"], RobotsDirectives()),
        (["lycosa: noindex"], RobotsDirectives(noindex=True)),
        (["noindex, otherbot: nofollow, noarchive"], RobotsDirectives(noindex=True)),
        (["otherbot: noindex, lycosa: nofollow"], RobotsDirectives(nofollow=True)),
        (
            ["unavailable_after: 25 Jun 2010 15:00:00 PST, noindex"],
            RobotsDirectives(noindex=True, unavailable_s=1277506800),
        ),
        (
            ["unavailable_after: Fri, 25 Jun 2010 15:00:00 GMT, nosnippet"],
            RobotsDirectives(nosnippet=True, unavailable_s=1277478000),
        ),
        (["lycosa: unavailable_after: 2010-06-25, noarchive"], RobotsDirectives(False, False, True, False, 1277424000)),
        (
            ["unavailable_after: 2010-06-26", "unavailable_after: 2010-06-25"],
            RobotsDirectives(unavailable_s=1277424000),
        ),
        (["otherbot: unavailable_after: 2010-06-25"], RobotsDirectives()),
        (["unavailable_after: some day, noindex"], RobotsDirectives(noindex=True)),
        (["nosnippet"], RobotsDirectives(nosnippet=True)),
        (["max-snippet:0"], RobotsDirectives(nosnippet=True)),
        (["max-snippet:-1, noarchive"], RobotsDirectives(noarchive=True)),
        (["noindexed, no index,,:"], RobotsDirectives()),
    ],
)
def test_directives_values_that_concern_us_add_up(values: list[str], expected: RobotsDirectives) -> None:
    assert robots_directives(values, "Lycosa/1.0") == expected


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_parse_utf16_with_a_byte_order_mark_is_obeyed(encoding: str) -> None:
    body = "\ufeffUser-agent: *\r\nDisallow: /secret\r\n".encode(encoding)

    rules = parse_robots(body, agent="Lycosa/1.0")

    assert not rules.allows("/secret/x")
    assert rules.allows("/open")


@pytest.mark.parametrize("agent_key", ["User Agent", "Useragent", "USER-AGENTS"])
@pytest.mark.parametrize("key", ["Disalow", "Dissallow", "Dissalow", "Diasllow", "Disallaw", "Desallow"])
def test_parse_misspelt_keys_are_obeyed(agent_key: str, key: str) -> None:
    rules = parse_robots(
        f"{agent_key}: lycosa\n{key}: /secret\nSite-map: https://e.org/s.xml\n".encode(), agent="Lycosa/1.0"
    )

    assert not rules.allows("/secret/x")
    assert rules.sitemaps == ("https://e.org/s.xml",)


def test_parse_misspelt_allow_allows_nothing() -> None:
    assert not parse_robots(b"User-agent: *\nDisallow: /\nAlow: /x\n", agent="Lycosa").allows("/x")
