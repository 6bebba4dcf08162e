"""`lycosa sql`: ask the tables of a collection in SQL, beside a running crawl or without one."""

import csv
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from io import StringIO
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from lycosa.cli.options import STANDARD_INPUT, CommandTable, Folder
from lycosa.cli.wording import counted, note, printable
from lycosa.errors import SettingsError
from lycosa.inspect import open_to_read, tables_of
from lycosa.store import CollectionStore
from lycosa.wording import safe_cell

if TYPE_CHECKING:
    from lycosa.inspect import SqlQuery

WIDEST_CELL = 60  # of the table for people; --csv and --json have everything
MEASURED_ROWS = 500  # by which the widths of the columns are chosen

app = CommandTable()


@app.command(
    epilog="""
        lycosa sql my-crawl        tables and columns
        lycosa sql my-crawl 'select host, count(*) from pages group by host'
        lycosa sql my-crawl "select url from urls where state = 'failed'" --csv
        lycosa sql my-crawl "select url, text from pages where language='en'" --json
    """
)
def sql(
    into: Folder,
    query: Annotated[
        str | None, typer.Argument(metavar="QUERY", help="A query in SQL; - reads it from standard input.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV with a header.")] = False,
) -> None:
    """Ask the tables of a collection in SQL.

    The tables are pages, links, hosts, changes and urls, and fields where the crawl has them; without a query they are
    listed with their columns. The language is that of DuckDB. A query reads these tables alone and writes nothing.
    """
    if json and as_csv:
        raise SettingsError("--json and --csv exclude each other")
    text = sys.stdin.read() if query == STANDARD_INPUT else query
    with open_to_read(into) as collection:
        if text is None:
            _list_tables(collection)
        else:
            _answer(collection, text, json=json, as_csv=as_csv)


def _list_tables(collection: CollectionStore) -> None:
    for table in tables_of(collection).values():
        print(f"{table.name}: {table.about}")
        for column in table.columns:
            content = ", from the archive" if column.is_content else ""
            print(f"    {column.name:<16}{column.type:<15}{column.about}{content}")


def _answer(collection: CollectionStore, text: str, *, json: bool, as_csv: bool) -> None:
    from lycosa.inspect import SqlQuery  # lazy: the tables can be listed without DuckDB, which is an extra

    with SqlQuery(collection, text) as asked:
        if json:
            _json_lines(asked)
        elif as_csv:
            _csv(asked)
        else:
            _table(asked)


def _rows(asked: "SqlQuery") -> Iterator[tuple[Any, ...]]:
    for batch in asked.batches():
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _names(asked: "SqlQuery") -> list[str]:
    """The names of the columns, each once: a query may name two alike."""
    names = list[str]()
    for name in asked.names:
        same = sum(other == name or other.startswith(f"{name}_") for other in names)
        names.append(f"{name}_{same}" if same and name in names else name)
    return names


def _json_lines(asked: "SqlQuery") -> None:
    names, encode = _names(asked), msgspec.json.Encoder(enc_hook=str).encode_lines
    for rows in _in_lists(_rows(asked)):
        sys.stdout.buffer.write(encode([dict(zip(names, map(_plain, row), strict=True)) for row in rows]))


def _in_lists(rows: Iterable[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    rest = iter(rows)
    while some := list(islice(rest, MEASURED_ROWS)):
        yield some


def _plain(value: Any) -> Any:
    """A value as JSON has it: times in UTC, maps as objects."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=value.tzinfo or UTC)
    if isinstance(value, list) and value and all(isinstance(one, tuple) and len(one) == 2 for one in value):
        return {str(key): _plain(one) for key, one in value}
    return value


def _csv(asked: "SqlQuery") -> None:
    sys.stdout.write(_csv_lines([_names(asked)]))
    for rows in _in_lists(_rows(asked)):
        sys.stdout.write(_csv_lines([[_cell(value) for value in row] for row in rows]))


def _csv_lines(rows: Iterable[Sequence[Any]]) -> str:
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _cell(value: Any) -> Any:
    """A value as text that is no formula; numbers stay numbers."""
    if value is None or isinstance(value, int | float):
        return value
    return safe_cell(_text(value))


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="seconds")
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, list | dict):
        return msgspec.json.encode(_plain(value), enc_hook=str).decode()
    return str(value)


def _table(asked: "SqlQuery") -> None:
    names, rows = _names(asked), _rows(asked)
    first = list(islice(rows, MEASURED_ROWS))
    columns = list(zip(*first, strict=True)) or [()] * len(names)
    right = [bool(column) and all(isinstance(v, int | float) for v in column if v is not None) for column in columns]
    widths = [
        max([len(name), *(len(_shown(value)) for value in column)]) for name, column in zip(names, columns, strict=True)
    ]
    print(_line(names, widths, right))
    listed = 0
    for some in (first, *_in_lists(rows)):
        listed += len(some)
        for row in some:
            print(_line([_shown(value) for value in row], widths, right))
    note(counted(listed, "row"))


def _shown(value: Any) -> str:
    text = "-" if value is None else f"{value:.6g}" if isinstance(value, float) else _text(value)[: 4 * WIDEST_CELL]
    text = printable(text, sys.stdout.encoding)
    return text if len(text) <= WIDEST_CELL else text[: WIDEST_CELL - 3] + "..."


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    shown = (
        cell.rjust(width) if is_right else cell.ljust(width)
        for cell, width, is_right in zip(cells, widths, right, strict=True)
    )
    return "  ".join(shown).rstrip()
