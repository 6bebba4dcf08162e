"""SQL over the tables of a collection, by DuckDB: nothing is exported first, and nothing but the tables can be reached.

A query sees the tables as views that are read while it runs. DuckDB may not open files, load extensions or change its
settings, so a query can neither read nor write anything else; what it sorts and groups beyond its memory is spilled
into a folder that goes away with it.
"""

import re
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack

from lycosa.errors import LycosaError, MissingExtra, SettingsError
from lycosa.inspect.arrow import TableDataset
from lycosa.inspect.tables import tables_of
from lycosa.store import CollectionStore

try:
    import duckdb
    import pyarrow as pa
except ImportError as error:
    raise MissingExtra.of("tables", what="SQL") from error

MEMORY = "256MB"
THREADS = 2  # tables are read by one at a time; more threads only take more memory
BATCH_ROWS = 2_048
_CLOSED = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",  # else a query could read the variables of this program
    "memory_limit": MEMORY,
    "threads": str(THREADS),
}
_HINT = re.compile(r"(Did you mean .*|Candidate (?:bindings|functions):.*)")


class SqlQuery:
    """One query over an open collection: `batches` gives its rows, `names` are its columns. Close it, or use it as a
    context manager."""

    def __init__(self, collection: CollectionStore, text: str) -> None:
        self._text = text
        self._tables = {name: TableDataset(collection, table) for name, table in tables_of(collection).items()}
        with ExitStack() as undo:
            spill = undo.enter_context(tempfile.TemporaryDirectory(prefix="lycosa-sql-", ignore_cleanup_errors=True))
            self._database = duckdb.connect(":memory:", config={**_CLOSED, "temp_directory": spill})
            undo.callback(self._database.close)
            for name, table in self._tables.items():
                self._database.register(name, table)
            self._database.execute("SET lock_configuration = true")
            self._result = self._run()
            undo.callback(self._result.close)  # before the database: it prints what a reader left open has leaked
            self.names: list[str] = self._result.schema.names
            self._undo = undo.pop_all()

    def __enter__(self) -> "SqlQuery":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._undo.close()

    def _run(self) -> pa.RecordBatchReader:
        if not self._text.strip().strip(";"):
            raise SettingsError("the query is empty: write one such as 'select count(*) from pages'")
        try:
            relation = self._database.sql(self._text)
            result = relation.to_arrow_reader(BATCH_ROWS) if relation is not None else pa.table({}).to_reader()
        except duckdb.Error as error:
            raise self._told(error) from error
        return result

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as they are found."""
        try:
            yield from self._result
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            raise self._told(error) from error

    def table(self) -> pa.Table:
        """All rows as one table."""
        return pa.Table.from_batches(self.batches(), schema=self._result.schema)

    def _told(self, error: Exception) -> LycosaError:
        """What went wrong in one sentence: of the collection, or of the query with DuckDB's hint."""
        for table in self._tables.values():
            if isinstance(table.error, LycosaError):
                return table.error
        text = str(error)
        if "Table with name" in text:
            missing = re.search(r"Table with name (\S+) does not exist", text)
            return SettingsError(f"there is no table {missing[1] if missing else ''}: {', '.join(self._tables)}")
        if "file system operations are disabled" in text:
            return SettingsError("a query reads the tables of the collection alone: no files, no extensions")
        if isinstance(error, duckdb.OutOfMemoryException):
            return LycosaError(f"the query needs more than {MEMORY} of memory, or more than the disk has for spilling")
        hint = _HINT.search(text)
        first = re.sub(r"^(\w+ )*Error: ", "", text.partition("\n")[0]).rstrip(".!")
        return SettingsError(f"the query is wrong: {first}" + (f"; {hint[1].strip()}" if hint else ""))
