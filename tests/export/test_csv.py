"""`lycosa export DIR csv`: read back by the csv module and pandas; no cell is ever a formula."""

import csv
import io
import json
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lycosa.export.csv import COLUMNS, csv_line, text_cell
from tests.cli.command import lycosa
from tests.crawl.small_site import FIRST
from tests.export.conftest import FORMULA

FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n")


def test_csv_has_the_columns_that_are_documented_and_every_page(small: Path, tmp_path: Path) -> None:
    out = tmp_path / "pages.csv"
    assert lycosa("export", small, "csv", "--content", "text", "--out", out).code == 0
    table = pd.read_csv(out, keep_default_na=False)
    assert tuple(table.columns) == (*COLUMNS, "text")
    assert len(table) == lycosa("status", small, "--json").facts["pages"]
    rows = table.set_index("url")
    assert rows.loc[f"{FIRST}docs/x", "title"] == f"'{FORMULA}"
    assert rows.loc[f"{FIRST}b", "duplicate_of"] == f"{FIRST}a"
    assert "Sonne und Wärme." in rows.loc[f"{FIRST}a", "text"]


def test_fields_are_columns(small: Path, tmp_path: Path) -> None:
    out = tmp_path / "f.csv"
    assert lycosa("export", small, "csv", "--field", "words=p", "--field", "all=p *", "--out", out).code == 0
    table = pd.read_csv(out, keep_default_na=False).set_index("url")
    assert list(table.columns[-2:]) == ["words", "all"]
    assert table.loc[FIRST, "words"] == "Solar heat."


def read_back(line: bytes) -> list[str]:
    [row] = csv.reader(io.StringIO(line.decode(), newline=""))
    return row


@given(st.lists(st.text(), min_size=1))
def test_csv_line_reads_back_and_has_no_formula(cells: list[str]) -> None:
    found = read_back(csv_line(cells))
    assert found == [text_cell(cell) for cell in cells] or cells == [""]
    assert not any(cell.startswith(FORMULAS) for cell in found)


def test_csv_line_takes_every_hostile_string(conformance: Path) -> None:
    for text in json.loads((conformance / "hostile-strings" / "blns.json").read_text()):
        found = read_back(csv_line(["x", text]))[1]
        assert not found.startswith(FORMULAS)
        assert found.removeprefix("'") == text.removeprefix("'") or "\0" in text


@pytest.mark.parametrize("text", ["\ud800=1", "a\0b", "＝1+1"])
def test_cell_is_utf_8_and_plain(text: str) -> None:
    found = text_cell(text)
    assert found.encode()
    assert "\0" not in found
    assert found[0] != "＝"
