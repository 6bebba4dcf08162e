"""A collection whose pages are settled by hand, with bodies in its archive, and a recount of what must be found."""

from collections import Counter, defaultdict
from pathlib import Path

from tantivy import Query

from lycosa.graph.feed import last_sequence
from lycosa.graph.indexer import LinkIndexer, redirect_link
from lycosa.records import Family, Request, Response
from lycosa.search.documents import is_searchable
from lycosa.search.index import IndexReader
from lycosa.search.indexer import BUILD_PAGES, Indexer
from lycosa.store import (
    Batch,
    CollectionStore,
    HttpExchange,
    OriginalRecord,
    RevisitProfile,
    response_exchange,
    revisit_exchange,
)
from lycosa.store.page_rows import PageRow, pack_row, unpack_page
from lycosa.web import FollowedLinks
from lycosa.web.document import document_digest, document_fingerprint
from lycosa.web.page import analyse_page
from lycosa.web.url import join_map, url_from_key, url_key


class Shop:
    """Settles pages as the engine does."""

    def __init__(self, path: Path, *, warc_first: int = 0) -> None:
        self.path = path
        self.collection = CollectionStore.create(path, warc_first=warc_first)
        self.linker = LinkIndexer(self.collection)
        self.linker.catch_up()
        self.clock_s = 1_700_000_000.0

    def page(self, url: str, html: str, *, modified: str = "", language: str = "", noindex: bool = False) -> int:
        """A page is there, new or changed; one that says what another said before is a copy of it."""
        body, key = html.encode(), url_key(url)
        self.clock_s += 60
        first = self._first_with(body)
        page = analyse_page(body, url=url, content_type="text/html", wants_simhash=True)
        headers = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"
        request, response = Request(url, "h", 80, "127.0.0.1"), Response(url, 200, headers, body=body)
        row = PageRow(200, self.clock_s, essence="text/html", size_bytes=len(body), last_modified=modified)
        row.digest, row.fingerprint = document_digest(body), document_fingerprint(body)
        row.title, row.language, row.noindex = page.title or "", language, noindex
        row.text_digest, row.codes = page.text_digest, (0, 0, 0, page.codes.length)
        row.simhash = page.simhash
        if first is not None and first[0] != url:
            row.original = first[0]
            original = OriginalRecord(first[0], first[1].fetched_s, first[1].payload_sha1)
            profile = RevisitProfile.SAME_PAYLOAD
            made = revisit_exchange(request, response, fetched_s=self.clock_s, original=original, profile=profile)
        else:
            made = response_exchange(request, response, fetched_s=self.clock_s)
        row.payload_sha1 = made.payload_sha1
        hrefs = page.links.hrefs
        links = FollowedLinks(hrefs, page.links.kinds, page.links.anchors, join_map(url, hrefs))
        self.linker.page(url, key, row, links)
        return self._commit(key, row, made, is_new_document=first is None)

    def redirect(self, url: str, target: str) -> int:
        row = PageRow(301, self.clock_s, location=target)
        self.linker.page(url, url_key(url), row, redirect_link(target))
        return self._commit(url_key(url), row, None)

    def gone(self, url: str) -> int:
        row = PageRow(404, self.clock_s)
        self.linker.gone(url, url_key(url), row)
        return self._commit(url_key(url), row, None)

    def _first_with(self, body: bytes) -> tuple[str, PageRow] | None:
        packed = self.collection.state.get(Family.DOC, document_fingerprint(body).to_bytes(8))
        if not packed or packed[:16] != document_digest(body):
            return None
        row = self.collection.state.get(Family.PAGE, packed[16:])
        return (url_from_key(packed[16:]), unpack_page(row)) if row else None

    def _commit(self, key: bytes, row: PageRow, made: HttpExchange | None, *, is_new_document: bool = False) -> int:
        batch = Batch()
        if made is not None:
            row.place = self.collection.warc.append(made.members)[HttpExchange.RESPONSE].pack()
        if is_new_document:
            batch.put(Family.DOC, row.fingerprint.to_bytes(8), row.digest + key)
        self.linker.before_commit(batch, is_last=False)
        batch.put(Family.PAGE, key, pack_row(row))
        self.collection.commit(batch)
        self.linker.on_committed()
        return row.file_num

    def index(self, *, anew: bool = False, settle: bool = True, build_pages: int = BUILD_PAGES) -> None:
        self.linker.flush()
        with CollectionStore.open(self.path, read_only=True) as collection:
            indexer = Indexer(collection, anew=anew, build_pages=build_pages)
            try:
                indexer.catch_up()
                if settle:
                    indexer.update_anchors_and_ranks()
            finally:
                indexer.close()

    def close(self) -> None:
        self.linker.close()
        self.collection.close()


def index_problems(path: Path) -> list[str]:
    """Sentences about what the index holds otherwise than a recount of the state."""
    with CollectionStore.open(path, read_only=True) as collection:
        rows = {row.file_num: row for _, packed in collection.state.walk(Family.PAGE) if (row := unpack_page(packed))}
        told = last_sequence(collection.state)
    clusters: dict[bytes, set[int]] = defaultdict(set)
    for number, row in rows.items():
        if number and is_searchable(row, 0.0):
            clusters[row.digest if row.size_bytes else number.to_bytes(8)].add(number)
    reader = IndexReader.open(path)
    addresses = [at for _, at in reader.searcher.search(Query.all_query(), 10_000_000).hits]
    pages, names, copies = (
        Counter(number for number in reader.numbers(key, addresses) if number) for key in ("page", "name", "copy")
    )
    problems = [] if reader.covered == told else [f"covers {reader.covered} of {told}"]
    problems += [
        f"{n} is there {times} times" for each in (pages, names, copies) for n, times in each.items() if times > 1
    ]
    problems += [f"names of {sorted(names)}, pages {sorted(pages)}"] if names - pages else []
    for members in clusters.values():
        if len(members & pages.keys()) != 1:
            problems.append(f"of {sorted(members)} there are pages {sorted(members & pages.keys())}")
        if members - pages.keys() != members & copies.keys():
            problems.append(f"of {sorted(members)} there are copies {sorted(members & copies.keys())}")
    known = set().union(*clusters.values())
    problems += [f"{n} is in the index, but no page" for n in {*pages, *copies} - known]
    return problems
