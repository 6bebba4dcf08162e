"""Publishers' preferences: a table of cases over all notations, each with the text that it goes by."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lycosa.web import analyse_page, robots_directives, run_steps
from lycosa.web.html import analyse_html
from lycosa.web.page import html_document
from lycosa.web.preferences import (
    Purpose,
    header_statements,
    host_statements,
    objection,
    pack_statements,
    page_statements,
    parse_dictionary,
    usage,
)
from lycosa.web.robots import Robots, parse_robots_steps
from lycosa.web.usage_files import read_reservations, read_terms

AGENT, SITE, NOW = "lycosa", "https://example.org/", 1_800_000_000.0
CASES = [json.loads(line) for line in (Path(__file__).parent / "preference_cases.jsonl").read_text().splitlines()]


def host_rules(case: dict[str, Any]) -> Robots:
    rules = run_steps(parse_robots_steps(case.get("robots", "").encode(), agent=AGENT))
    return msgspec.structs.replace(
        rules,
        reservations=read_reservations(case.get("tdmrep", "").encode()),
        terms=read_terms(case.get("rsl", "").encode(), SITE),
    )


def statements_of(case: dict[str, Any]) -> tuple[str, Any]:
    html = f"<title>x</title>{case.get('html', '')}<p>text".encode()
    page = analyse_page(html, url=SITE, content_type="text/html")
    headers = case.get("headers", {})
    lines = host_statements(host_rules(case), case.get("path", "/"))
    lines += header_statements(headers, AGENT) + page_statements(page.robots, AGENT)
    values = [*page.robots, *([headers["x-robots-tag"]] if "x-robots-tag" in headers else ())]
    return pack_statements(lines), robots_directives(values, AGENT)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["source"])
def test_case_says_what_its_source_says(case: dict[str, Any]) -> None:
    statements, directives = statements_of(case)
    is_image = case.get("type", "").startswith("image/")

    says = usage(statements, directives, is_image=is_image, now=NOW)

    expected = {purpose: word for purpose, word in case["says"].items() if word}
    assert {str(purpose): "y" if may else "n" for purpose, may in says.items()} == expected
    for purpose in Purpose:
        found = objection(statements, directives, purpose, is_image=is_image, now=NOW)
        assert bool(found) == (expected.get(purpose) == "n")
    if "holds" in case:
        assert case["holds"] in statements.split("\n")
    if "allows" in case:
        assert host_rules(case).allows("/") is case["allows"]


def test_cases_are_many_and_cover_every_notation() -> None:
    kinds = ["Content-Usage", "Content-Signal", "tdm", "rsl", "noai", "noarchive"]
    texts = [json.dumps(case).lower() for case in CASES]
    assert len(CASES) >= 80
    assert all(sum(kind.lower() in text for text in texts) >= 1 for kind in kinds)
    assert all(case["source"] for case in CASES)


def test_kernel_and_twin_hand_on_the_same_metas() -> None:
    html = (
        b'<meta name=tdm-reservation content="1"><meta name="TDM-POLICY" content=" https://e.org/p ">'
        b'<link rel=license type="Application/RSL+xml" href=" /l.xml "><link rel=license href=/cc>'
        b'<link type="application/rsl&#43;xml" href=a&amp;b><meta name=robots content="noai">'
    )
    page = analyse_page(html, url=SITE, content_type="text/html")
    document = html_document(html, url=SITE, content_type="text/html")
    assert document is not None
    assert page.robots == analyse_html(document).robots
    assert page.robots == (
        "tdm-reservation: 1",
        "tdm-policy:  https://e.org/p ",
        "rsl:license: /l.xml",
        "rsl:license: a&b",
        "noai",
    )


def test_robots_record_of_before_is_read_and_a_plain_one_takes_no_more_room() -> None:
    old = {"agent": "lycosa", "allow": [], "disallow": ["/x"], "crawl_delay_s": None, "sitemaps": []}
    rules = msgspec.msgpack.decode(msgspec.msgpack.encode({**old, "is_unreachable": False}), type=Robots)
    assert not rules.speaks_of_use and not rules.allows("/x")
    assert msgspec.to_builtins(rules) == {"agent": "lycosa", "disallow": ("/x",)}


def test_statement_on_the_use_of_content_can_be_stored_whatever_its_bytes() -> None:
    body = b"User-agent: *\nContent-Usage: /\xff\x00 train-ai=\xff\nContent-Signal: \xed\xa0\x80\nLicense: \xff"
    rules = run_steps(parse_robots_steps(body, agent=AGENT))
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(rules), type=Robots) == rules
    assert all(line.isprintable() for line in host_statements(rules, "/"))


@given(st.text(), st.text(), st.binary())
def test_anything_gives_an_answer(value: str, path: str, body: bytes) -> None:
    fields = dict.fromkeys(("content-usage", "content-signal", "tdm-reservation", "link", "x-robots-tag"), value)
    rules = run_steps(parse_robots_steps(b"User-agent: *\nContent-Usage: " + body, agent=AGENT))
    terms = msgspec.structs.replace(rules, reservations=read_reservations(body), terms=read_terms(body, SITE))
    lines = host_statements(terms, f"/{path}") + header_statements(fields, AGENT) + page_statements([value], AGENT)
    says = usage(pack_statements(lines), robots_directives([value], AGENT))
    assert set(says) <= set(Purpose)
    assert parse_dictionary(value) is None or isinstance(parse_dictionary(value), dict)
