"""Parquet: Common Crawl's index of captures, and tables of texts, links and fields beside it.

    index/crawl=NAME/subset=warc/part-….parquet    one row an answer, the columns of Common Crawl (`common_crawl`)
    text/crawl=NAME/part-….parquet                 one row a page: url, title, language, preferences and its text
    links/crawl=NAME/part-….parquet                with --links: one row a link
    fields/crawl=NAME/part-….parquet               where the crawl has fields: one row a page

A part is named after the number of the export's first page in it. Parts end at checkpoints and nowhere else, so a
resumed export keeps those that begin before its checkpoint and writes the others again. Row groups are bounded by rows
and bytes, and so is the memory that an export takes.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from lycosa.errors import MissingExtra, SettingsError
from lycosa.export.format import ExportFormat, ExportSource, Shape
from lycosa.export.jsonl import clean_text, content_of
from lycosa.export.output import Output
from lycosa.inspect import StoredPage
from lycosa.store import STORE_WARC_FOLDER, WarcLocation, warc_path
from lycosa.web import three_letters

try:
    import pyarrow as pa
    from pyarrow import parquet
except ImportError as error:
    raise MissingExtra.of("tables", what="a Parquet export") from error

from lycosa.export.common_crawl import PAGES, SCHEMA, RecordPlace, index_row, subset_of

GROUP_ROWS, GROUP_BYTES = 20_000, 8 << 20  # of a row group, before it is packed
INDEX_ROW_BYTES = 600  # of a row of the index, about: its many columns are short
PART_ROWS, PART_BYTES = 1_000_000, 512 << 20  # a part ends at the next checkpoint
LEAST_ROWS = 10_000  # of a part that a checkpoint ends
_LEVEL = 3
_NAME = re.compile(r"[^A-Za-z0-9._-]+")
_PART, _OPEN = re.compile(r"part-(\d+)\.parquet"), ".open"
_URL = pa.field("url", pa.string(), nullable=False)


class ParquetFolder(ExportFormat):
    """A folder of Parquet files."""

    shape = Shape.FOLDER
    takes_answers = True

    def __init__(self, content: str = "text", links: str = "", crawl: str = "") -> None:
        self._content, self._has_links, self._crawl = content, bool(links), crawl
        if crawl and _NAME.search(crawl):
            raise SettingsError(f"--crawl is {crawl!r}: a name has letters, digits, dots, dashes and underscores")

    def begin(self, out: Output, source: ExportSource) -> None:
        super().begin(out, source)
        name = _NAME.sub("-", source.collection.path.absolute().name).strip("-.") or "crawl"
        self._partition = f"crawl={self._crawl or name}"
        self._pages = out.resumed_from.pages if out.resumed_from else 0
        self._files: dict[int, tuple[str, str]] = {}
        self._parts: dict[str, _Part] = {}
        self._rows = 0
        self._is_between = True  # two pages: no page is in some tables only
        self._remove_unfinished()
        self._texts = pa.schema(
            [
                _URL,
                pa.field("fetch_time", pa.timestamp("ms"), nullable=False),
                ("title", pa.string()),
                ("content_languages", pa.string()),
                ("preferences", pa.string()),
                (self._content, pa.string()),
            ]
        )
        self._links = pa.schema([_URL, *((name, pa.string()) for name in ("target", "kind", "anchor"))])
        lists = {name: is_list for name, is_list in source.field_lists.items() if name != "url"}
        types = {True: pa.list_(pa.string()), False: pa.string()}
        self._fields = pa.schema([_URL, *((name, types[is_list]) for name, is_list in lists.items())])

    def _remove_unfinished(self) -> None:
        """Deletes the parts that were written after the checkpoint."""
        for path in self.out.folder.rglob("part-*"):
            found = _PART.fullmatch(path.name)
            if found is None or int(found[1]) >= self._pages:
                path.unlink()

    def add(self, page: StoredPage) -> None:
        subset = subset_of(page)
        # All is read before anything is written: a page that cannot be read is left out as a whole.
        sent_type = page.headers.get("content-type") if page.has_body else None
        # As Common Crawl has it, the language is that of the text, where the page says none and the text is read.
        language = page.language if subset == PAGES and self._content != "none" else page.row.language
        capture = index_row(page, sent_type, self._record(page), language)
        rows: dict[str, tuple[pa.Schema, list[Sequence[object]]]] = {
            f"index/{self._partition}/subset={subset}": (SCHEMA, [capture])
        }
        if subset == PAGES:
            if self._content != "none":
                rows[f"text/{self._partition}"] = self._texts, [self._text_row(page)]
            if len(self._fields) > 1:
                rows[f"fields/{self._partition}"] = self._fields, [self._fields_row(page)]
        if self._has_links and (links := page.links):
            found: list[Sequence[object]] = [(page.url, to.url, to.kind, to.anchor) for to in links]
            rows[f"links/{self._partition}"] = self._links, found
        self._is_between = False
        for folder, (schema, values) in rows.items():
            self._part(folder, schema).add(values)
        self._pages += 1
        self._rows += 1
        self._is_between = True
        self.wants_checkpoint = self._is_full

    def _record(self, page: StoredPage) -> RecordPlace | None:
        if not page.row.place:
            return None
        place = WarcLocation.unpack(page.row.place)
        collection = self.source.collection
        if place.file_number not in self._files:
            self._files[place.file_number] = _file_name(collection.path, collection.warc_folders, place.file_number)
        return RecordPlace(page.record_id, *self._files[place.file_number], place)

    def _text_row(self, page: StoredPage) -> Sequence[object]:
        text = content_of(page, self._content, self.extractor) if page.has_body else None
        fetched_ms, said = int(page.row.fetched_s * 1000), page.row.preferences
        return page.url, fetched_ms, page.title or None, three_letters(page.language) or None, said or None, text

    def _fields_row(self, page: StoredPage) -> Sequence[object]:
        return page.url, *(_field_value(page.fields.get(field.name), field.type) for field in list(self._fields)[1:])

    def _part(self, folder: str, schema: pa.Schema) -> "_Part":
        if folder not in self._parts:
            path = self.out.folder / folder / f"part-{self._pages:09d}.parquet"
            self._parts[folder] = _Part(path, schema)
        return self._parts[folder]

    @property
    def _is_full(self) -> bool:
        return self._rows >= PART_ROWS or any(part.written >= PART_BYTES for part in self._parts.values())

    def checkpoint(self) -> bool:
        if not self._is_between or (self._rows < LEAST_ROWS and not self._is_full):
            return False
        self._close_parts()
        return True

    def finish(self) -> None:
        if not self._pages:  # readers want at least the columns
            self._part(f"index/{self._partition}/subset={PAGES}", SCHEMA)
        self._close_parts()

    def _close_parts(self) -> None:
        for part in self._parts.values():
            self.out.written += part.close()
        self._parts, self._rows, self.wants_checkpoint = {}, 0, False


def _field_value(value: str | list[str] | None, type: pa.DataType) -> str | list[str] | None:
    """A field as its column has it: rules for one host may ask for a list, where others ask for one text."""
    if pa.types.is_list(type):
        return [value] if isinstance(value, str) else value
    return "\n".join(value) if isinstance(value, list) else value


def _file_name(collection: Path, folders: Iterable[Path], number: int) -> tuple[str, str]:
    """The name of an archive file relative to the collection, and the name of its shard. What is in a central store
    has its name there, but for the ending, and no shard."""
    paths = (warc_path(folder, number) for folder in folders)
    path = next(filter(Path.exists, paths), warc_path(collection / STORE_WARC_FOLDER, number))
    try:
        name = path.relative_to(collection)
    except ValueError:  # a shard on another disk
        name = Path(*path.parts[-2:])
    return str(name), name.parts[-3] if len(name.parts) > 2 else "0"


class _Part:
    """A file that is being written, under another name until it is whole."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._path, self._schema = path, schema
        self._rows: list[Sequence[Any]] = []
        self._bytes = self.written = 0
        path.parent.mkdir(parents=True, exist_ok=True)
        # Texts are all different: a dictionary of them would only take memory.
        names = [name for name in schema.names if name not in ("text", "markdown", "html", "url", "url_surtkey")]
        self._open = path.with_name(path.name + _OPEN)
        self._writer = parquet.ParquetWriter(
            self._open, schema, compression="zstd", compression_level=_LEVEL, use_dictionary=names
        )

    def add(self, rows: Iterable[Sequence[Any]]) -> None:
        is_index = self._schema is SCHEMA
        for row in rows:
            self._rows.append(row)
            self._bytes += INDEX_ROW_BYTES if is_index else sum(len(value) for value in row if isinstance(value, str))
        if len(self._rows) >= GROUP_ROWS or self._bytes >= GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        columns = zip(*self._rows, strict=True)
        arrays = [_array(values, field.type) for values, field in zip(columns, self._schema, strict=True)]
        self._writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=self._schema))
        self.written += self._bytes
        self._rows, self._bytes = [], 0

    def close(self) -> int:
        """Gives the file its name; returns its bytes."""
        if self._rows:
            self._flush()
        self._writer.close()
        self._open.rename(self._path)
        return self._path.stat().st_size


def _array(values: Sequence[Any], type: pa.DataType) -> pa.Array:
    """The values as an array: those of a scalar, since `pa.array` imports pandas where it is installed, for 0.3 s."""
    try:
        return pa.scalar(values, type=pa.list_(type)).values
    except UnicodeEncodeError:  # half a character
        cleaned = [clean_text(value) if isinstance(value, str) else value for value in values]
        return pa.scalar(cleaned, type=pa.list_(type)).values
