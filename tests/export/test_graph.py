"""`lycosa export DIR graph`: the same links, read by networkx and pandas in each form."""

from pathlib import Path

import networkx as nx
import pandas as pd
import pytest

from lycosa import Collection
from tests.cli.command import lycosa
from tests.crawl.small_site import FIRST, crawl_site, links
from tests.export.conftest import OTHER


@pytest.fixture(scope="module")
def expected(small: Path) -> set[tuple[str, str]]:
    with Collection(small) as collection:
        return {(page.url, link.url) for page in collection for link in page.links if link.url != page.url}


def exported(collection: Path, out: Path, *words: str) -> Path:
    said = lycosa("export", collection, "graph", "--out", out, *words)
    assert said.code == 0, said.err
    return out


def test_graph_as_csv_has_every_link_with_kind_and_anchor(
    small: Path, tmp_path: Path, expected: set[tuple[str, str]]
) -> None:
    table = pd.read_csv(exported(small, tmp_path / "e.csv"), keep_default_na=False)
    assert list(table.columns) == ["source", "target", "kind", "anchor"]
    assert set(zip(table.source, table.target, strict=True)) == expected
    assert len(expected) == 7
    assert set(nx.from_pandas_edgelist(table, create_using=nx.DiGraph).edges) == expected


def test_graph_as_tsv_is_an_edge_list(small: Path, tmp_path: Path, expected: set[tuple[str, str]]) -> None:
    out = exported(small, tmp_path / "e.tsv", "--edges", "tsv")
    assert set(nx.read_edgelist(out, delimiter="\t", create_using=nx.DiGraph).edges) == expected


@pytest.mark.parametrize(("form", "read"), [("graphml", nx.read_graphml), ("gexf", nx.read_gexf)])
def test_graph_in_xml_has_nodes_with_titles(
    small: Path, tmp_path: Path, expected: set[tuple[str, str]], form: str, read: object
) -> None:
    out = exported(small, tmp_path / f"e.{form}", "--edges", form)
    graph = read(str(out))  # type: ignore[operator]
    assert set(graph.edges) == expected
    title = "title" if form == "graphml" else "label"
    assert graph.nodes[FIRST][title] == "Home"
    assert f"{FIRST}gone" in graph


@pytest.mark.parametrize("form", ["csv", "graphml", "gexf"])
def test_graph_of_hosts_counts_pages(small: Path, tmp_path: Path, form: str) -> None:
    out = exported(small, tmp_path / "h", "--level", "host", "--edges", form)
    readers = {
        "csv": lambda: nx.from_pandas_edgelist(pd.read_csv(out), edge_attr=True, create_using=nx.DiGraph),
        "graphml": lambda: nx.read_graphml(str(out)),
        "gexf": lambda: nx.read_gexf(str(out)),
    }
    graph = readers[form]()
    assert {(a, b): int(edge["weight"]) for a, b, edge in graph.edges(data=True)} == {
        ("127.0.0.1:9", "127.0.0.2:9"): 1,
        ("127.0.0.2:9", "127.0.0.1:9"): 1,
    }


def test_redirect_is_an_edge_and_odd_words_are_xml(tmp_path: Path) -> None:
    odd = "<a href=/x>\x01 &lt;\"'&#xB; =1</a><title>\x02&amp;\x1f</title>"
    crawl_site(tmp_path / "c", {FIRST: odd + links("y"), f"{FIRST}x": "x", f"{FIRST}y": "y"}.get)
    for form, read in (("graphml", nx.read_graphml), ("gexf", nx.read_gexf)):
        graph = read(str(exported(tmp_path / "c", tmp_path / form, "--edges", form)))
        assert set(graph.edges) == {(FIRST, f"{FIRST}x"), (FIRST, f"{FIRST}y")}


def test_graph_of_one_host_names_its_targets_elsewhere(small: Path, tmp_path: Path) -> None:
    table = pd.read_csv(exported(small, tmp_path / "e.csv", "--host", "127.0.0.2"))
    assert list(zip(table.source, table.target, strict=True)) == [(OTHER, f"{FIRST}docs/y.txt")]
