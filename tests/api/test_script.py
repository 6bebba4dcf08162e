"""`lycosa.crawl` as scripts and notebooks use it, over real sockets; and what a type checker makes of its settings."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import lycosa
from lycosa.errors import SettingsError
from lycosa.store import CollectionStore, is_written
from tests.crawl.test_probe import FAST, PAGES, counting


def test_pages_come_in_a_plain_loop_with_headers_and_body(tmp_path: Path) -> None:
    with counting() as (front, _):
        pages = {page.url: page for page in lycosa.crawl(front, into=tmp_path / "c", **FAST)}
    assert len(pages) == PAGES + 1
    assert pages[front].headers["content-type"] == "text/html"
    assert pages[front].body.startswith(b"<p>/</p><a href=")
    with lycosa.open(tmp_path / "c") as collection:
        assert {page.url: page.body for page in collection} == {url: page.body for url, page in pages.items()}


def test_crawl_works_inside_a_running_event_loop(tmp_path: Path) -> None:
    async def main(front: str) -> int:
        return sum(1 for _ in lycosa.crawl(front, into=tmp_path / "c", **FAST))

    with counting() as (front, _):
        assert asyncio.run(main(front)) == PAGES + 1


def leave(how: str, pages: Any) -> None:
    for _ in pages:
        if how == "break":
            break
        raise {"error": ValueError("mine"), "interrupt": KeyboardInterrupt()}[how]


@pytest.mark.parametrize("how", ["break", "error", "interrupt"])
def test_crawl_stops_when_its_loop_is_left(tmp_path: Path, how: str) -> None:
    with counting() as (front, asked):
        pages = lycosa.crawl(front, into=tmp_path / "c", **{**FAST, "delay_s": 0.2, "per_host": 1})
        if how == "break":
            leave(how, pages)
        else:
            with pytest.raises((ValueError, KeyboardInterrupt)):
                leave(how, pages)
        assert not is_written(tmp_path / "c")
        assert sum(path.endswith(".html") for path in asked) < PAGES
    CollectionStore.open(tmp_path / "c").close()


def test_run_crawls_to_the_end_and_counts(tmp_path: Path) -> None:
    with counting() as (front, _):
        pages = lycosa.crawl(front, into=tmp_path / "c", **FAST)
        assert "run()" in repr(pages)
        assert pages.run().pages == PAGES + 1


def test_what_keeps_a_crawl_from_running_is_raised_in_the_caller(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="did you mean pages"):
        lycosa.crawl("https://example.org", into=tmp_path, pagess=1)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(SettingsError, match="not a collection and not empty"):
        list(lycosa.crawl("https://example.org", into=tmp_path))


def test_room_of_the_loop_keeps_its_name() -> None:
    from lycosa.crawl import Engine

    assert callable(lycosa.crawl)
    assert lycosa.crawl.Engine is Engine  # type: ignore[attr-defined]


SNIPPET = """
import lycosa

lycosa.Crawl("https://example.org", into="c", pagess=1)
lycosa.crawl("https://example.org", into="c", pages="many")
for page in lycosa.crawl("https://example.org", into="c", pages=1, include=["/blog/*"], delay_s=1, scope="any"):
    size: int = len(page.body)
with lycosa.open("c") as collection:
    links: list[str] = [link.url for stored in collection for link in stored.links]
"""


@pytest.mark.slow
def test_type_checker_refuses_a_setting_that_there_is_not_and_a_value_of_another_type(tmp_path: Path) -> None:
    (tmp_path / "snippet.py").write_text(SNIPPET)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(Path(__file__).parents[2] / ".mypy_cache")]
    found = subprocess.run([*command, "snippet.py"], cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    errors = [line for line in found.splitlines() if ": error:" in line]
    assert len(errors) == 2, found
    assert 'Unexpected keyword argument "pagess"' in errors[0]
    assert 'Argument "pages" to "crawl_pages" has incompatible type "str"' in errors[1]
