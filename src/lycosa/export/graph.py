"""The link graph: an edge for every link between pages, or between hosts with the number of pages that have it.

    csv       source, target, kind, anchor (pages) or source, target, weight (hosts), with a header: pandas, Gephi
    tsv       source and target alone, without a header: networkx.read_edgelist, igraph's Read_Ncol
    graphml   nodes with their titles, and edges: networkx, igraph, Gephi
    gexf      the same for Gephi

Redirects are nodes with one edge, to where they lead. Tables are streamed and resumed. GraphML and GEXF want every node
named: those are collected in a file (SQLite), and nodes and edges are joined at the end. Links of a host to itself are
left out of the graph of hosts.
"""

import contextlib
import re
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from xml.sax.saxutils import escape, quoteattr

from lycosa.export.csv import csv_line, csv_lines, text_cell
from lycosa.export.format import ExportFormat, ExportSource
from lycosa.export.jsonl import clean_text
from lycosa.export.output import Output, OutputFailed
from lycosa.inspect import StoredPage
from lycosa.web import split_url

HOSTS_MOST = 500_000  # targets of one host that are counted at a time; beyond that an edge may be written twice
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
Edge = tuple[str, ...]  # source, target, and kind and anchor, or weight


class LinkGraphExport(ExportFormat):
    """Edges of pages or hosts. With `edges` in a form that names its nodes, they are written at the end."""

    suffix = ".csv"
    takes_answers = True  # redirects are edges

    def __init__(self, level: str = "page", edges: str = "csv") -> None:
        self._is_hosts, self._form = level == "host", edges
        self.resumes = not self._is_hosts and edges in ("csv", "tsv")  # else there is more to remember than a place
        self._source_host, self._weights = "", Counter[str]()

    def begin(self, out: Output, source: ExportSource) -> None:
        super().begin(out, source)
        self._writer: _EdgeTable | _NodeGraph
        if self._form in ("csv", "tsv"):
            self._writer = _EdgeTable(out, is_hosts=self._is_hosts, has_header=self._form == "csv")
        else:
            self._writer = _NodeGraph(out, is_hosts=self._is_hosts, is_gexf=self._form == "gexf")

    def add(self, page: StoredPage) -> None:
        if self._is_hosts:
            self._add_to_hosts(page)
            return
        links = page.links
        with _reported():
            self._writer.node(page.url, page.title)
            self._writer.edges([(page.url, to.url, to.kind, to.anchor) for to in links if to.url != page.url])

    def _add_to_hosts(self, page: StoredPage) -> None:
        host, links = _host(page.url), page.links
        if host != self._source_host or len(self._weights) >= HOSTS_MOST:
            with _reported():
                self._end_host()
                self._source_host = host
                self._writer.node(host, "")
        self._weights.update({target for link in links if (target := _host(link.url)) != host})

    def _end_host(self) -> None:
        self._writer.edges([(self._source_host, target, str(many)) for target, many in self._weights.items()])
        self._weights = Counter()

    def finish(self) -> None:
        with _reported():
            self._end_host()
            self._writer.finish()


@contextlib.contextmanager
def _reported() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise OutputFailed(f"the nodes of the graph cannot be kept in a temporary file: {error}") from error


def _host(url: str) -> str:
    """The host with its port, where that is unusual: pages by http and https are of one host."""
    parts = split_url(url)
    return parts.host if parts.port in (80, 443) else f"{parts.host}:{parts.port}"


class _EdgeTable:
    """Edges as lines."""

    def __init__(self, out: Output, *, is_hosts: bool, has_header: bool) -> None:
        self._out, self._is_csv = out, has_header
        if has_header and not out.is_resumed:
            out.write(csv_line(("source", "target", "weight") if is_hosts else ("source", "target", "kind", "anchor")))

    def node(self, name: str, title: str) -> None:
        """Nodes are what edges name."""

    def edges(self, edges: Iterable[Edge]) -> None:
        if self._is_csv:
            # URLs are safe in any table; the last cell is an anchor, or a number.
            self._out.write(csv_lines([(*edge[:-1], text_cell(edge[-1])) for edge in edges]))
        else:
            self._out.write("".join(f"{edge[0]}\t{edge[1]}\n" for edge in edges).encode())

    def finish(self) -> None: ...


class _NodeGraph:
    """GraphML or GEXF: edges go to a temporary file, nodes to a table without repetitions."""

    def __init__(self, out: Output, *, is_hosts: bool, is_gexf: bool) -> None:
        self._out, self._is_hosts, self._is_gexf = out, is_hosts, is_gexf
        self._edges = (out.scratch / "edges").open("w+b")
        self._nodes = sqlite3.connect(out.scratch / "nodes", isolation_level=None)
        self._nodes.executescript(
            "pragma journal_mode = off; pragma synchronous = off; begin;"
            "create table nodes (name text primary key, title text) without rowid"
        )
        self._count = 0

    def node(self, name: str, title: str) -> None:
        self._nodes.execute(
            "insert into nodes values (?, ?) on conflict (name) do update set title = excluded.title",
            (name, clean_text(title)),
        )

    def edges(self, edges: Iterable[Edge]) -> None:
        found = list(edges)
        self._nodes.executemany("insert or ignore into nodes values (?, '')", [(edge[1],) for edge in found])
        write = self._gexf_edge if self._is_gexf else self._graphml_edge
        self._edges.write("".join(map(write, found)).encode())

    def _graphml_edge(self, edge: Edge) -> str:
        ends = f"<edge source={quoteattr(edge[0])} target={quoteattr(edge[1])}>"
        names = ("weight",) if self._is_hosts else ("kind", "anchor")
        data = "".join(f'<data key="{name}">{_text(value)}</data>' for name, value in zip(names, edge[2:], strict=True))
        return f"{ends}{data}</edge>\n"

    def _gexf_edge(self, edge: Edge) -> str:
        self._count += 1
        more = f'weight="{edge[2]}"' if self._is_hosts else f'label="{_text(edge[3], is_attribute=True)}"'
        return f'<edge id="{self._count}" source={quoteattr(edge[0])} target={quoteattr(edge[1])} {more}/>\n'

    def finish(self) -> None:
        before, between, after = self._gexf_frame() if self._is_gexf else self._graphml_frame()
        self._out.write(before.encode())
        for name, title in self._nodes.execute("select name, title from nodes order by name"):
            self._out.write(self._node(name, title).encode())
        self._out.write(between.encode())
        self._edges.seek(0)
        shutil.copyfileobj(self._edges, self._out, 1 << 20)
        self._out.write(after.encode())
        self._edges.close()
        self._nodes.close()

    def _node(self, name: str, title: str) -> str:
        if self._is_gexf:
            return f'<node id={quoteattr(name)} label="{_text(title or name, is_attribute=True)}"/>\n'
        data = f'<data key="title">{_text(title)}</data>' if title else ""
        return f"<node id={quoteattr(name)}>{data}</node>\n"

    def _graphml_frame(self) -> tuple[str, str, str]:
        of_edges = {"weight": "long"} if self._is_hosts else {"kind": "string", "anchor": "string"}
        keys = [
            '<key id="title" for="node" attr.name="title" attr.type="string"/>',
            *(f'<key id="{n}" for="edge" attr.name="{n}" attr.type="{t}"/>' for n, t in of_edges.items()),
        ]
        head = '<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
        return f'{head}{"".join(keys)}\n<graph edgedefault="directed">\n', "", "</graph></graphml>\n"

    def _gexf_frame(self) -> tuple[str, str, str]:
        head = '<?xml version="1.0" encoding="UTF-8"?>\n<gexf xmlns="http://gexf.net/1.3" version="1.3">\n'
        before = f'{head}<graph mode="static" defaultedgetype="directed">\n<nodes>\n'
        return before, "</nodes>\n<edges>\n", "</edges>\n</graph>\n</gexf>\n"


def _text(text: str, *, is_attribute: bool = False) -> str:
    """Text for XML, without the characters that XML cannot say."""
    found = _NO_XML.sub("\ufffd", clean_text(text))
    return escape(found, {'"': "&quot;", "\n": "&#10;", "\t": "&#9;", "\r": "&#13;"}) if is_attribute else escape(found)
