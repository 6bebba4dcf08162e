"""What the settings of the order do in a crawl: windows, the order of children, the depth within a host."""

from pathlib import Path

import pytest

from lycosa.api.crawl import Crawl
from lycosa.crawl.progress import Recrawl
from lycosa.inspect import explain_url, open_to_read
from lycosa.simweb import SimSettings, SimWeb
from tests.crawl.memory_crawl import crawl, front
from tests.crawl.small_site import FIRST, crawl_site, links


def hosts_of(asked: list[str]) -> str:
    """The last number of each URL's host."""
    return "".join(url.split(":9/")[0][-1] for url in asked)


def paths_of(asked: list[str]) -> list[str]:
    return [url.partition(":9")[2] for url in asked]


def test_top_window_of_two_hosts_takes_the_first_two_then_the_next_two(tmp_path: Path) -> None:
    """The example of the paper: four hosts, a window of two."""
    seeds = [f"http://127.0.0.{host}:9/{name}" for host in range(1, 5) for name in "ab"]
    settings = {"policy": "top-window", "per_ip": 1, "transfers": 2, "delay_s": 0, "robots": False}
    asked, _ = crawl_site(tmp_path / "c", lambda _: "page", *seeds, window_hosts=2, **settings)
    assert hosts_of(asked) == "12341234"
    assert paths_of(asked) == ["/a"] * 4 + ["/b"] * 4


def test_leaf_window_holds_as_many_leaves_as_are_asked_for(tmp_path: Path) -> None:
    web, held = SimWeb(SimSettings(hosts=1, pages=60)), list[int]()

    def look(crawl: Crawl) -> None:
        (host,) = crawl.engine.frontier.hosts.values()
        held.extend(len(window.entries) for window in host.windows.values())
        assert host.available > 10

    found = crawl(web, tmp_path / "c", front(web), act=look, after=20, policy="leaf-window", window_leaves=3)
    assert 0 < max(held) <= 3
    assert found.stats.queued == 0


@pytest.mark.parametrize(
    ("order", "paths"),
    [
        ("", ["/", "/2023/a", "/2023/b", "/2024/a", "/2025/a", "/x"]),
        ("9876543210", ["/", "/2025/a", "/2024/a", "/2023/a", "/2023/b", "/x"]),
        ("x5b", ["/", "/x", "/2025/a", "/2023/b", "/2023/a", "/2024/a"]),
    ],
)
def test_children_of_a_node_come_in_the_order_that_is_set(tmp_path: Path, order: str, paths: list[str]) -> None:
    def answer(url: str) -> str:
        return links(*sorted(paths[1:])) if url == FIRST else "page"

    asked, _ = crawl_site(tmp_path / "c", answer, policy="top-window", child_order=order)
    assert paths_of(asked) == paths


def two_hosts(url: str) -> str:
    """A chain of pages on the first host, each with a link to the second, where there is one, too."""
    number = int(url.rpartition("/")[2] or 0)
    outside = "http://127.0.0.2:9/1" if url.startswith(FIRST) and number == 2 else ""
    return links(f"/{number + 1}", *filter(None, [outside])) if number < 9 else "end"


def test_depth_of_a_host_counts_from_where_it_was_entered(tmp_path: Path) -> None:
    asked, stats = crawl_site(tmp_path / "c", two_hosts, scope="any", host_depth=2)
    assert sorted(asked) == [f"{FIRST}", f"{FIRST}1", f"{FIRST}2", *(f"http://127.0.0.2:9/{n}" for n in (1, 2, 3))]
    assert stats.dropped["depth"] == 2
    with open_to_read(tmp_path / "c") as collection:
        assert any("depth" in line for line in explain_url(collection, "http://127.0.0.2:9/4"))
    more, _ = crawl_site(tmp_path / "c", two_hosts, scope="any", host_depth=3)
    assert sorted(more) == [f"{FIRST}3", "http://127.0.0.2:9/4"]


def test_internal_links_go_before_external_ones(tmp_path: Path) -> None:
    """Each page of the first host names the second host before its own pages; the second one links to itself."""

    def answer(url: str) -> str:
        number = int(url.rpartition("/")[2] or 0)
        return links("http://127.0.0.2:9/1", f"http://127.0.0.3:9/{number}", f"/{number + 1}") if number < 5 else "end"

    asked, _ = crawl_site(tmp_path / "c", answer, scope="any", policy="internal-first")
    assert hosts_of(asked[:6]) == "111111"
    assert set(hosts_of(asked[6:])) == {"2", "3"}
    assert len(set(asked)) == len(asked) == 6 + 5 + 6
    beside, _ = crawl_site(tmp_path / "b", answer, scope="any", policy="breadth")
    assert hosts_of(beside[:6]) != "111111"
    assert sorted(beside) == sorted(asked)


def test_recrawl_under_pvalue_goes_by_the_links_that_pages_had(tmp_path: Path) -> None:
    """Page n has n links. The three lists of three pages each are served 4 : 2 : 1."""

    def answer(url: str) -> str:
        number = int(url.removeprefix(FIRST) or 9)
        return links(*[f"/{n}" for n in range(1, 9)][:number]) + "x" * number

    crawl_site(tmp_path / "c", answer, policy="pvalue")
    asked, _ = crawl_site(tmp_path / "c", answer, recrawl=Recrawl(everything=True))
    assert " ".join(paths_of(asked)) == "/ /8 /7 /6 /5 /3 /4 /2 /1"


def test_broken_link_sinks_below_the_other_pages_of_its_host(tmp_path: Path) -> None:
    """It is due again after ten seconds, and has 0 links: the others go first."""

    def answer(url: str) -> str | int:
        number = int(url.removeprefix(FIRST) or 30)
        return links(*(f"/{n}" for n in range(30))) if number == 30 else "x" * number or 500

    asked, stats = crawl_site(tmp_path / "c", answer, policy="pvalue")
    tries = [at for at, url in enumerate(asked) if url.endswith("/0")]
    assert len(tries) == 3
    assert tries[1:] == [31, 32]
    assert stats.failed["500"] == 1


def test_table_of_links_tells_pvalue_how_many_links_its_page_has(tmp_path: Path) -> None:
    """Its host's mean would put /0.html where the others are; its table, read first, says that it has no links."""
    names = [f"/{n}.html" for n in range(24)]

    def answer(url: str) -> str:
        name, _, ending = url.removeprefix(FIRST).partition(".")
        linked = names if name != "0" else []
        if ending == "tol":
            return "# tol 1\n" + "".join(f"internal\t{href}\t{href}\n" for href in linked)
        return links(*linked) + name

    asked, stats = crawl_site(tmp_path / "c", answer, policy="pvalue", tables="always")
    paths = paths_of(asked)
    assert stats.tables["read"] == len(names) + 1
    assert paths[2:6] == ["/0.tol", "/1.tol", "/1.html", "/2.tol"]
    assert paths.index("/0.html") > paths.index("/2.html")
