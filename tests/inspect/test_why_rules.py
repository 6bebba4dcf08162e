"""What `lycosa why` names: the pattern, the scope or the line of robots.txt that kept a URL out."""

from pathlib import Path

import pytest

from lycosa.inspect import explain_url, open_to_read
from tests.crawl.small_site import FIRST, crawl_site, links

SITE = {FIRST: links("docs/a", "shop/b", "private/c/d", "http://other.example/")}
ROBOTS = "User-agent: *\nDisallow: /private/\nDisallow: /private/c/*.html\nAllow: /private/open\n"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("shop/b", "dropped: excluded by /shop/*, *b"),
        ("news/1", "dropped: not-included: it matches none of *:9/, /docs/*, /shop/*, /private/*"),
    ],
)
def test_pattern_that_kept_a_url_out_is_named(tmp_path: Path, asked: str, said: str) -> None:
    include = ["*:9/", "/docs/*", "/shop/*", "/private/*"]
    crawl_site(tmp_path, SITE.get, exclude=["/nothing/*", "/shop/*", "*b"], include=include)
    with open_to_read(tmp_path) as collection:
        assert explain_url(collection, FIRST + asked)[1] == said


def test_scope_and_line_of_robots_that_kept_a_url_out_are_named(tmp_path: Path) -> None:
    crawl_site(tmp_path, SITE.get, robots_txt=ROBOTS)
    with open_to_read(tmp_path) as collection:
        assert explain_url(collection, "http://other.example/")[1] == f"dropped: out-of-scope (scope host of {FIRST})"
        assert "robots.txt of its host says Disallow: /private/" in explain_url(collection, f"{FIRST}private/c/d")


def test_path_without_a_host_is_no_url(tmp_path: Path) -> None:
    crawl_site(tmp_path, SITE.get)
    with open_to_read(tmp_path) as collection:
        [said] = explain_url(collection, "/docs/a")
    assert said.endswith("give the whole URL, such as https://example.org/docs/a")
