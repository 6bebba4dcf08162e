"""Ranks against networkx, on made-up graphs and on a crawl of the simulated web; `proof.bench.rank` on a real site."""

from collections import Counter
from pathlib import Path

import networkx
import numpy as np
import pytest

from lycosa.graph.links import host_links, rank_hosts, rank_pages, ranked_pages
from lycosa.graph.ranks import DAMPING, LinkGraph, harmonic, load_ranks, pagerank
from lycosa.inspect import open_to_read
from lycosa.records import Family
from lycosa.simweb import SimSettings, SimWeb
from lycosa.store.page_rows import unpack_page
from lycosa.web.url import url_from_key
from tests.crawl.memory_crawl import crawl, front
from tests.graph.recount import sources_by_target
from tests.graph.test_indexer import A, B, C, Shop


def reference(graph: "networkx.DiGraph") -> dict[object, float]:
    return networkx.pagerank(graph, alpha=DAMPING, tol=1e-14, max_iter=1_000)


def random_graph(size: int, links: int, seed: int) -> tuple[LinkGraph, "networkx.DiGraph"]:
    choose = np.random.default_rng(seed)
    sources, targets = choose.integers(0, size, links), (size * choose.random(links) ** 3).astype(np.int64)
    other = networkx.DiGraph()
    other.add_nodes_from(range(size))
    other.add_edges_from((s, t) for s, t in zip(sources.tolist(), targets.tolist(), strict=True) if s != t)
    return LinkGraph.of(sources, targets, size), other


@pytest.mark.parametrize(("size", "links", "seed"), [(1, 0, 0), (5, 0, 0), (50, 60, 1), (2_000, 20_000, 2)])
def test_pagerank_is_that_of_networkx(size: int, links: int, seed: int) -> None:
    graph, other = random_graph(size, links, seed)
    ranks, _ = pagerank(graph)
    expected = reference(other)
    assert np.abs(ranks - [expected[i] for i in range(size)]).sum() < 1e-6


def test_pagerank_in_small_chunks_is_the_same() -> None:
    graph, _ = random_graph(500, 9_000, 3)
    whole, _ = pagerank(graph)
    assert np.abs(pagerank(graph, chunk_links=16)[0] - whole).max() < 1e-12


def test_restart_from_the_last_vector_needs_fewer_steps() -> None:
    graph, _ = random_graph(2_000, 20_000, 4)
    ranks, cold = pagerank(graph)
    again, warm = pagerank(graph, ranks)
    assert warm <= 2 < cold
    assert np.abs(ranks - again).sum() < 1e-7


def test_nothing_has_no_ranks() -> None:
    ranks, steps = pagerank(LinkGraph.of(np.empty(0, np.int64), np.empty(0, np.int64), 0))
    assert (len(ranks), steps) == (0, 0)


@pytest.mark.parametrize("seed", range(3))
def test_harmonic_centrality_is_that_of_networkx(seed: int) -> None:
    graph, other = random_graph(150, 400, seed)
    expected = networkx.harmonic_centrality(other)
    assert harmonic(graph) == pytest.approx([expected[i] for i in range(150)])


def test_harmonic_centrality_of_many_hosts_is_estimated() -> None:
    graph, _ = random_graph(1_000, 10_000, 5)
    exact = harmonic(graph)
    estimated = harmonic(graph, exact=256)
    assert np.abs(estimated - exact).mean() < 0.1 * exact.mean()
    assert np.corrcoef(estimated, exact)[0, 1] > 0.95


def test_ranks_of_a_crawl_are_those_of_networkx(tmp_path: Path) -> None:
    web = SimWeb(SimSettings(hosts=8, pages=700, seed=9))
    stats = crawl(web, tmp_path / "c", front(web), delay_s=0.0).stats
    with open_to_read(tmp_path / "c") as collection:
        ranks, cold = rank_pages(collection)
        rows = {row.url: row.rank for row in ranked_pages(collection, ranks)}
        graph = networkx.DiGraph()
        graph.add_nodes_from(rows)
        pages = ((url_from_key(key), unpack_page(packed)) for key, packed in collection.state.walk(Family.PAGE))
        leads = {url: row.location for url, row in pages if row.location}
        for target, sources in sources_by_target(collection.state).items():
            page = target
            while page in leads:  # a link to a redirect is one to the page that it leads to
                page = leads[page]
            graph.add_edges_from((source, page) for source in sources - {page} if source in rows and page in rows)
        _, warm = rank_pages(collection)
        hosts = rank_hosts(collection)
        between = host_links(collection)
    expected = reference(graph)
    assert stats.redirects
    assert len(rows) == stats.pages
    assert sum(abs(rows[url] - expected[url]) for url in rows) < 1e-6
    assert warm < cold / 10
    by_host = networkx.DiGraph({(s.split("/")[2], t.split("/")[2]) for s, t in graph.edges})
    pairs = Counter((s.split("/")[2], t.split("/")[2]) for s, t in graph.edges)
    for name in between.names:
        linking, linked = between.around(name)
        host = name.split("/")[2]
        assert {(s.split("/")[2], n) for s, n in linking} == {(s, n) for (s, t), n in pairs.items() if t == host != s}
        assert {(t.split("/")[2], n) for t, n in linked} == {(t, n) for (s, t), n in pairs.items() if s == host != t}
    by_host.remove_edges_from(list(networkx.selfloop_edges(by_host)))
    expected_hosts = networkx.harmonic_centrality(by_host)
    assert {h.url.split("/")[2]: h.rank for h in hosts} == pytest.approx(expected_hosts)
    kept = load_ranks(tmp_path / "c")
    assert kept is not None
    assert sorted(kept.ranks) == pytest.approx(sorted(rows.values()), abs=1e-7)
    assert kept.mean_ranks([int(kept.file_nums[0]), 1]) == pytest.approx([kept.ranks[0] * len(rows), -1.0])


def test_ranks_follow_changes_and_removals(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.settle(A, B, C)
    shop.settle(B, C)
    shop.settle(C)
    shop.linker.flush()
    shop.settle(A, B)
    shop.linker.flush()
    shop.settle(C, status=404)
    with open_to_read(tmp_path) as collection:
        ranks, _ = rank_pages(collection)
        rows = {row.url: row.rank for row in ranked_pages(collection, ranks)}
    shop.close()
    assert rows == pytest.approx(reference(networkx.DiGraph([(A, B)])), abs=1e-7)
