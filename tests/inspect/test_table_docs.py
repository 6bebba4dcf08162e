"""docs/tables.md: its queries run, and it lists the columns that there are."""

import re
from pathlib import Path

import pytest

from lycosa.inspect import SqlQuery, open_to_read, tables_of
from tests.crawl.memory_crawl import crawl, front
from tests.inspect.test_table_reader import WEB

TEXT = (Path(__file__).parents[2] / "docs" / "tables.md").read_text()


@pytest.fixture(scope="module")
def into(tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("docs") / "c"
    crawl(WEB, into, front(WEB), pages=40)
    return into


@pytest.mark.parametrize("query", re.findall(r"```sql\n(.*?)```", TEXT, re.DOTALL))
def test_query_of_the_docs_is_answered(into: Path, query: str) -> None:
    with open_to_read(into) as collection, SqlQuery(collection, query) as asked:
        rows = sum(batch.num_rows for batch in asked.batches())
    assert rows or any(word in query for word in ("changes", "is null", "having"))  # which this site has none of


def test_docs_list_the_columns_that_there_are(into: Path) -> None:
    with open_to_read(into) as collection:
        for table in tables_of(collection).values():
            part = TEXT.partition(f"**{table.name}**: {table.about}\n")[2].partition("\n\n**")[0]
            listed = re.findall(r"^\| `(\w+)` \| (\S+) \|", part, re.MULTILINE)
            assert listed == [(column.name, column.type) for column in table.columns]


def test_query_for_all_columns_has_those_of_content_too(into: Path) -> None:
    with open_to_read(into) as collection:
        for name, table in tables_of(collection).items():
            with SqlQuery(collection, f"select * from {name} limit 3") as asked:
                rows = asked.table()
            assert rows.column_names == [column.name for column in table.columns]
