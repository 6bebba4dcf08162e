"""The working tables of a report: a database in a temporary folder, so that memory does not grow with the site.

    page       every URL that was fetched, is blocked or has failed, in the order of hosts and paths
    markup     what the body of an HTML page says (`web.audit`)
    alternate  its alternates by language        named   the URLs that <link> elements of other pages name
    listed     the URLs that sitemaps name
    link       the links to pages that are broken, redirect or are blocked
    needs      the pages and style sheets that name a broken requisite
    redirect   where each redirect ends          finding what is wrong, a row for each page concerned

URLs are joined by 64-bit hashes (`uid`). The folder is deleted when the database is closed. Filled by `report.survey`
and `report.findings`, read by whoever writes the report.
"""

import sqlite3
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import xxhash

from lycosa.errors import StoreError

CACHE_KIB = 48 * 1024
_SIGN, _RANGE = 1 << 63, 1 << 64

_TABLES = """
    create table page (
        id integer primary key, uid integer, url text, folder text, file_num integer, state text, status integer,
        reason text, is_html integer, is_internal integer, is_seed integer, origin text, location text, leads integer,
        depth integer, size integer, took integer, noindex integer, title text, digest blob, place blob,
        original integer, is_style integer, is_document integer, links integer default 0
    );
    create table markup (
        id integer primary key, title_problem text, description text, description_problem text, h1 integer,
        canonical text, canonical_uid integer, canonicals text, without_alt integer, images text,
        insecure_count integer, insecure text
    );
    create table alternate (id integer, code text, url text, target integer);
    create table named (target integer);
    create table listed (uid integer primary key);
    create table link (target integer, source integer, kind integer, words text);
    create table needs (source integer, target integer);
    create table redirect (
        id integer primary key, hops integer, is_loop integer, end_id integer, last_id integer, path text
    );
    create table near (id integer primary key, first integer);
    create table finding (kind text, page text, target text, words text, detail text);
    create view good as
        select page.*, markup.title_problem, markup.description, markup.description_problem, markup.h1,
            markup.canonical, markup.canonical_uid, markup.id is not null as is_read,
            markup.canonical_uid is not null and markup.canonical_uid <> page.uid as is_elsewhere
        from page left join markup on markup.id = page.id where page.state = 'page' and page.is_internal;
    create view indexable as select * from good where is_html and status = 200 and not noindex and not is_elsewhere;
"""
# Made when their tables are full, which is cheaper.
_INDEXES = """
    create index page_uid on page (uid);
    create index page_file on page (file_num);
    create index page_leads on page (leads) where state = 'redirect';
    create index alternate_id on alternate (id, target);
    create index named_target on named (target);
"""


def signed(number: int) -> int:
    """A number of 64 bits as the database keeps it."""
    return number - _RANGE if number >= _SIGN else number


def uid(url: str) -> int:
    """The number of a URL."""
    return signed(xxhash.xxh3_64_intdigest(url.encode("utf-8", "replace")))


class ReportDatabase:
    """The open database. Close it, or use it as a context manager."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="lycosa-report-")
        self.path = Path(self._folder.name) / "report.db"
        self._connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        for words in ("journal_mode = off", "synchronous = off", f"cache_size = -{CACHE_KIB}", "temp_store = file"):
            self._connection.execute(f"pragma {words}")
        self._connection.executescript(_TABLES)
        self._connection.execute("begin")

    def __repr__(self) -> str:
        return f"<ReportDatabase {self.path}>"

    def __enter__(self) -> "ReportDatabase":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()
        self._folder.cleanup()

    def index_pages(self) -> None:
        """Makes the pages ready to be looked up: all of them are in."""
        self._connection.executescript(_INDEXES)
        self._connection.execute("begin")

    def index_findings(self) -> None:
        """Makes the findings ready to be looked up and compared: all of them are in."""
        self._connection.executescript(
            "create index finding_key on finding (kind, page, target);"
            "create index finding_target on finding (kind, target);"
            "create index finding_words on finding (kind, words);"
            "create index finding_kind on finding (kind);"
        )

    def add(self, table: str, rows: Iterable[Sequence[Any]], columns: int) -> None:
        """Inserts rows that have so many columns, which are the first ones of the table in their order."""
        names = [name for _, name, *_ in self.rows(f"pragma table_info({table})")][:columns]
        marks = ", ".join("?" * columns)
        self._run(
            self._connection.executemany, f"insert or ignore into {table} ({', '.join(names)}) values ({marks})", rows
        )

    def execute(self, statement: str, values: Sequence[Any] = ()) -> None:
        self._run(self._connection.execute, statement, values)

    def update(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        self._run(self._connection.executemany, statement, rows)

    def rows(self, statement: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        """The rows of a query, read as they are asked for."""
        found: sqlite3.Cursor = self._run(self._connection.execute, statement, values)
        return found

    def value(self, statement: str, values: Sequence[Any] = ()) -> Any:
        """The first column of the first row; None if there is none."""
        row = self.rows(statement, values).fetchone()
        return row[0] if row else None

    def attach(self, other: "ReportDatabase", name: str) -> None:
        """Lets queries use the tables of another database as `name.table`."""
        if self._connection.in_transaction:
            self._connection.execute("commit")
        self.execute(f"attach ? as {name}", (str(other.path),))

    def define(self, name: str, function: Any) -> None:
        """Lets queries call a function of one argument."""
        self._connection.create_function(name, 1, function, deterministic=True)

    @staticmethod
    def _run(call: Any, *arguments: Any) -> Any:
        try:
            return call(*arguments)
        except sqlite3.OperationalError as error:
            if "full" in str(error) or "disk I/O" in str(error):
                where = tempfile.gettempdir()
                raise StoreError(
                    f"making the report failed: no space left in {where}; TMPDIR names another folder"
                ) from error
            raise
