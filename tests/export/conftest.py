"""A small collection that all tests of exports read: two hosts, a redirect, an error, a copy and hostile strings."""

from pathlib import Path

import pytest

from tests.crawl.small_site import FIRST, Sent, crawl_site, links

OTHER = "http://127.0.0.2:9/"
FORMULA = '=cmd|" /C calc"!A0'
PAGES: dict[str, str | Sent | int] = {
    FIRST: "<html lang=en><title>Home</title><main><p>Solar heat.</p>"
    + links("a", "b", "docs/x", "old", "gone", OTHER),
    f"{FIRST}a": "<html lang=de-AT><title>Ä &amp; \U0001f577</title><main><p>Sonne und Wärme.</p></main>",
    f"{FIRST}b": "<html lang=de-AT><title>Ä &amp; \U0001f577</title><main><p>Sonne und Wärme.</p></main>",
    f"{FIRST}docs/x": f"<html lang=en><title>{FORMULA}</title><main><p>Words, &quot;quoted&quot;\nand\0more.</p>",
    f"{FIRST}docs/y.txt": Sent("plain text", {"content-type": "text/plain"}),
    f"{FIRST}gone": 410,
    OTHER: f"<html lang=en><title>Other</title><main><p>Elsewhere.</p>{links(FIRST + 'docs/y.txt')}</main>",
}


def make_collection(into: Path, pages: dict[str, str | Sent | int] = PAGES) -> Path:
    crawl_site(into, pages.get, FIRST, scope="any")
    return into


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_collection(tmp_path_factory.mktemp("export") / "c")
