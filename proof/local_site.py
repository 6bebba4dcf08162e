"""A site with tables of links whose shape is one number: how near to a page its first link stands.

Pages are numbered in the order of their making. The first link to a page is on one of the `window` pages made before
it; all its other links, up to sixty, lead back to pages made earlier, or to another host. A small window is a thread, a
blog, an archive with "older" below: nobody finds page 100 before page 90. A window as wide as the site is a wiki.
Everything follows from the seed. Served through the in-memory simulated web; the tables are those that `lycosa augment`
would write. Used by experiments.
"""

from functools import lru_cache

from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.vocabulary import lognormal_table
from lycosa.simweb.web import NOT_FOUND, Answer
from lycosa.tables.publisher import AugmentOptions, tables_of

MEDIAN_BYTES, BYTES_SIGMA = 14_000, 0.5
LINKS = 60
PARENT, LINK, SIZE, ORDER = 90, 91, 92, 93  # purposes of draws
_BYTES = lognormal_table(MEDIAN_BYTES, BYTES_SIGMA)


class LocalSite(SimWeb):
    """One host of `count` pages. `window` None: as wide as the site."""

    def __init__(
        self, *, seed: int, count: int, window: int | None, rtt_ms: float = 0.0, transfer_bytes_s: float = 0.0
    ) -> None:
        robots = {"rules": 0.0, "sitemap": 0.0, "missing": 1.0}
        super().__init__(
            SimSettings(
                seed=seed,
                hosts=1,
                pages=max(count, 64),
                robots=robots,
                rtt_ms=rtt_ms,
                transfer_bytes_s=transfer_bytes_s,
            )
        )
        self.count = count
        self._children: list[list[int]] = [[] for _ in range(count)]
        for page in range(1, count):
            first = max(0, page - window) if window else 0
            self._children[first + self.draws.mix(page, 0, PARENT) % (page - first)].append(page)
        self._table_of = lru_cache(count)(self._made_table)

    def front(self) -> str:
        return f"{self.linker.origin(0)}/"

    def answer(self, host: int, target: str, time_s: float = 0.0, elapsed_s: float = 0.0) -> Answer:
        name, _, ending = target.removeprefix("/").rpartition(".")
        page = self._number(target) if ending != "tol" else self._number("/" if name == "index" else f"/{name}.html")
        if page is None:
            return NOT_FOUND
        if ending == "tol":
            return Answer(200, self._table_of(page), "text/plain; charset=utf-8")
        return Answer(200, self._body(page))

    def _number(self, path: str) -> int | None:
        if path == "/":
            return 0
        digits = path.removeprefix("/p").removesuffix(".html")
        page = int(digits) if digits.isdecimal() and len(digits) < 9 else self.count
        return page if 0 < page < self.count and path == self._path(page) else None

    def _path(self, page: int) -> str:
        return f"/p{page}.html" if page else "/"

    def _hrefs(self, page: int) -> list[str]:
        """Sixty links in any order: to the pages found here, to earlier ones, to elsewhere."""
        found = [self._path(child) for child in self._children[page]]
        known: dict[str, None] = {}
        for draw in range(4 * LINKS):
            known[self._path(self.draws.mix(page, draw, LINK) % (page + 1))] = None
        found += [path for path in known if path not in found][: LINKS - len(found)]
        found += [f"http://other.example/{page}-{i}" for i in range(LINKS - len(found))]
        return sorted(found, key=lambda href: self.draws.text_hash(f"{page} {href}", ORDER))

    def _body(self, page: int) -> bytes:
        """Links among prose, evenly, as much of it as the page's size asks for."""
        hrefs, pool = self._hrefs(page), self.vocabulary.passages[page % 16]
        wanted = _BYTES[self.draws.mix(page, 0, SIZE) & 1023]
        pieces = [f'<a href="{href}">{pool[i][:24]}</a>' for i, href in enumerate(hrefs)]
        prose: list[str] = []
        size = sum(map(len, pieces))
        while size < wanted:
            prose.append(f"<p>{pool[self.draws.mix(page, len(prose), SIZE) % len(pool)]} {len(prose)}</p>")
            size += len(prose[-1])
        share = len(prose) / len(pieces)
        lines = [f"{piece}\n{''.join(prose[int(i * share) : int((i + 1) * share)])}" for i, piece in enumerate(pieces)]
        head = f"<!DOCTYPE html><html><head><title>Page {page}</title></head><body><h1>Page {page}</h1>\n"
        return f"{head}{''.join(lines)}</body></html>\n".encode()

    def _made_table(self, page: int) -> bytes:
        name = self._path(page).removeprefix("/") or "index.html"
        made = tables_of(self._body(page), AugmentOptions(), name=name, content_type="text/html").tol
        assert made is not None
        return made
