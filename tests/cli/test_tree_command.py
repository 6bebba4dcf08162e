"""`lycosa tree`: what it prints of a collection, finished or growing, and what it says when there is nothing."""

import json
from pathlib import Path

import pytest

from lycosa.store import CollectionStore
from tests.cli.command import Web, ended, lycosa, simulated_web, started

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Web, Path]:
    """A simulated web and a crawl of it that was stopped at 60 pages."""
    folder = tmp_path_factory.mktemp("tree")
    with simulated_web(folder, "--hosts", "3", "--pages", "600") as web:
        assert lycosa(*web.crawl(folder / "c", "--scope", "any", "--pages", "60", "--quiet")).code == 0
    return web, folder / "c"


def test_tree_adds_up_to_what_status_says(crawled: tuple[Web, Path]) -> None:
    status = lycosa("status", crawled[1], "--json").facts

    said = lycosa("tree", crawled[1], "--depth", "1", "--json")

    root, *hosts = [json.loads(line) for line in said.out.splitlines()]
    assert said.code == 0
    assert root["known"] == status["known"] == sum(host["known"] for host in hosts)
    assert root["queued"] == status["queued"]
    assert [host["known"] for host in hosts] == sorted((host["known"] for host in hosts), reverse=True)


def test_tree_for_the_eye_is_bounded_and_in_columns(crawled: tuple[Web, Path]) -> None:
    web, into = crawled

    lines = lycosa("tree", into, f"h0.sim:{web.port}", "--rows", "5").out.splitlines()

    assert len(lines) == 1 + 1 + 5
    assert lines[0].split() == ["known", "queued", "done", "failed", "dropped"]
    assert web.url() in lines[1]
    assert "more below)" in "".join(lines)
    known = [int(line[:10].replace(",", "")) for line in lines[1:]]
    assert known[0] == max(known)


def test_tree_beside_a_running_crawl_reads_what_is_committed(tmp_path: Path) -> None:
    with simulated_web(tmp_path, "--hosts", "3", "--pages", "600") as web:
        crawl = started(*web.crawl(tmp_path / "c", "--time", "20", "--quiet", delay="0.05"))
        try:
            while not (known := _known(tmp_path / "c")):
                assert crawl.poll() is None
            assert known > 0
        finally:
            crawl.terminate()
            assert ended(crawl).code in (0, 130)


def _known(into: Path) -> int:
    said = lycosa("tree", into, "--json")
    return int(json.loads(said.out.splitlines()[0])["known"]) if said.code == 0 else 0


def test_tree_of_an_empty_collection_says_so(tmp_path: Path) -> None:
    CollectionStore.create(tmp_path / "c").close()

    said, as_json = lycosa("tree", tmp_path / "c"), lycosa("tree", tmp_path / "c", "--json")

    assert (said.code, said.out) == (0, "")
    assert said.complaints == [f"{tmp_path / 'c'} knows no URL yet"]
    assert as_json.facts["known"] == 0


def test_tree_of_an_unknown_prefix_says_so(crawled: tuple[Web, Path]) -> None:
    said = lycosa("tree", crawled[1], "https://example.org/x")
    of_domain = lycosa("tree", crawled[1], "example.org")

    assert (said.code, said.out) == (0, "")
    assert said.complaints == [f"{crawled[1]} knows no URL that starts with https://example.org/x"]
    assert of_domain.complaints == [f"{crawled[1]} knows no URL of example.org"]


@pytest.mark.parametrize(
    ("words", "part"),
    [(["http://"], "neither the beginning"), (["--depth", "0"], "--depth"), (["--rows", "x"], "--rows")],
)
def test_tree_bad_usage_ends_with_2_and_a_sentence(crawled: tuple[Web, Path], words: list[str], part: str) -> None:
    said = lycosa("tree", crawled[1], *words)

    assert said.code == 2
    assert len(said.complaints) == 1
    assert part in said.complaints[0]


def test_tree_of_no_collection_ends_as_the_other_commands_do(tmp_path: Path) -> None:
    said, status = lycosa("tree", tmp_path), lycosa("status", tmp_path)

    assert (said.code, said.complaints) == (status.code, status.complaints)
    assert said.code == 2
