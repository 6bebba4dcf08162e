"""The tables of a collection as Arrow: typed schemas, and batches that are read as they are asked for.

Only the columns that somebody wants are made, and the content of a page is read after the filters that do without it,
so a count reads no body. Memory is bounded: a batch is some thousand records, or some megabytes where it has content.
pyarrow is imported here and nowhere below. Used by `Collection.arrow` and `.frame`, and through `TableDataset` by SQL.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from lycosa.errors import MissingExtra
from lycosa.inspect.tables import CollectionTable, TableColumn
from lycosa.store import CollectionStore

try:
    import pyarrow as pa
    import pyarrow.dataset
except ImportError as error:
    raise MissingExtra.of("tables", what="a table of a collection") from error

BATCH_BYTES = 8 << 20  # of content, at most, unless one page is larger
_NESTED = {"list<string>": pa.list_(pa.string()), "map<string>": pa.map_(pa.string(), pa.string())}
_ROW = "row number"  # of a record in its list, while filters choose


def arrow_type(name: str) -> pa.DataType:
    return _NESTED.get(name) or pa.type_for_alias(name)


def arrow_schema(columns: Iterable[TableColumn]) -> pa.Schema:
    return pa.schema([(column.name, arrow_type(column.type)) for column in columns])


def arrow_reader(
    collection: CollectionStore, table: CollectionTable, columns: Sequence[str] | None = None
) -> pa.RecordBatchReader:
    """A stream of a table's rows; without names of columns all but those of content. The collection stays open
    meanwhile."""
    chosen = table.chosen(table.usual if columns is None else columns)
    return pa.RecordBatchReader.from_batches(arrow_schema(chosen), _Scan(collection, table, chosen, None).batches())


class TableDataset(pyarrow.dataset.Dataset):  # type: ignore[misc]
    """A table for whoever asks an Arrow data set for columns and filters, as DuckDB does, as often as a query names it.

    `error` is what went wrong while it was read, since the query knows its text only."""

    def __init__(self, collection: CollectionStore, table: CollectionTable) -> None:
        self._collection, self._table = collection, table
        self.error: Exception | None = None

    @property
    def schema(self) -> pa.Schema:
        return arrow_schema(self._table.columns)

    def scanner(self, columns: Sequence[str] | None = None, filter: Any = None, **_: object) -> "_TableScanner":
        names = self.schema.names if columns is None else columns  # DuckDB names none when it wants all of the schema
        return _TableScanner(self, _Scan(self._collection, self._table, self._table.chosen(names), filter))


class _TableScanner:
    """One way through a table, as a data set hands it out."""

    def __init__(self, dataset: TableDataset, scan: "_Scan") -> None:
        self._dataset, self._scan = dataset, scan
        self.projected_schema = arrow_schema(scan.columns)

    def to_reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self.projected_schema, self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._scan.batches()
        except Exception as error:
            self._dataset.error = error
            raise


class _Scan:
    """The batches of some columns of a table, of the rows that pass a filter."""

    def __init__(
        self, collection: CollectionStore, table: CollectionTable, columns: Sequence[TableColumn], filter: Any
    ) -> None:
        self._collection, self._table, self.columns, self._filter = collection, table, columns, filter
        self._names = [column.name for column in columns]
        # An expression tells its columns in its text only; one that names too many costs time, no more.
        said = set(re.findall(r"\w+", str(filter))) if filter is not None else set()
        self._judged = [column for column in table.columns if column.name in said]
        self._judges_content = any(column.is_content for column in self._judged)
        self._has_content = self._judges_content or any(column.is_content for column in columns)
        others = [column for column in self._judged if column not in columns] if self._judges_content else []
        self._made = [*columns, *others]

    def batches(self) -> Iterator[pa.RecordBatch]:
        wanted = frozenset(column.name for column in (*self.columns, *self._judged))
        for records in self._table.read(self._collection, wanted):
            chosen = records if self._filter is None or self._judges_content else self._passing(records)
            for batch in self._in_batches(chosen):
                yield batch.filter(self._filter).select(self._names) if self._judges_content else batch

    def _passing(self, records: list[Any]) -> list[Any]:
        """The records that pass a filter which needs no content."""
        arrays = {column.name: _array(column, map(column.value, records)) for column in self._judged}
        batch = pa.record_batch({_ROW: pa.array(range(len(records))), **arrays})
        return [records[at] for at in batch.filter(self._filter).column(_ROW).to_pylist()]

    def _in_batches(self, records: list[Any]) -> Iterator[pa.RecordBatch]:
        if not self._has_content:
            if records:
                yield self._batch([map(column.value, records) for column in self._made], len(records))
            return
        rows, size = list[list[Any]](), 0
        for record in records:
            rows.append([column.value(record) for column in self._made])
            size += sum(len(value) for value in rows[-1] if isinstance(value, str | bytes))
            if size >= BATCH_BYTES:
                yield self._batch(zip(*rows, strict=True), len(rows))
                rows, size = [], 0
        if rows:
            yield self._batch(zip(*rows, strict=True), len(rows))

    def _batch(self, values: Iterable[Iterable[Any]], rows: int) -> pa.RecordBatch:
        arrays = [_array(column, column_values) for column, column_values in zip(self._made, values, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(self._made))


def _array(column: TableColumn, values: Iterable[Any]) -> pa.Array:
    try:
        return pa.array(listed := list(values), type=arrow_type(column.type))
    except UnicodeEncodeError:  # half a character, from an analyser of someone's own
        return pa.array([_whole(value) for value in listed], type=arrow_type(column.type))


def _whole(value: Any) -> Any:
    if isinstance(value, list):
        return [_whole(one) for one in value]
    if isinstance(value, tuple):
        return tuple(_whole(one) for one in value)
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
