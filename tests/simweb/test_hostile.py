"""The hostile web: a crawl of every row beside good hosts, held against the table that docs/hostile.md is made of."""

import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from lycosa.simweb import HOSTILE_ROWS, HostileRow, hostile_page
from lycosa.store.warc_read import WarcReader
from proof.ground.hostile_web import HostileCrawl, crawl_hostile

REPOSITORY = Path(__file__).parents[2]
TOTAL_S = 20.0  # a page of a million links has to arrive in it, however busy the machine is
LATE_S = 60.0  # a busy machine ends a transfer so much after its deadline; that this ended it, the outcome says

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("hostile")]  # one crawl for all


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile")


@pytest.fixture(scope="module")
def crawl(folder: Path) -> HostileCrawl:
    return crawl_hostile(HOSTILE_ROWS, folder, good=5, good_pages=20, total_s=TOTAL_S, most_s=180)


def lycosa(*words: str | Path) -> str:
    command = [sys.executable, "-m", "lycosa", *map(str, words)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("row", HOSTILE_ROWS, ids=lambda row: row.name)
def test_hostile_row_gets_its_right_answer(crawl: HostileCrawl, row: HostileRow) -> None:
    (result,) = (result for result in crawl.results if result.row is row)

    assert result.wrong(TOTAL_S + LATE_S) == ""


def test_hostile_web_beside_good_hosts_costs_these_nothing(crawl: HostileCrawl) -> None:
    assert crawl.good_done
    assert crawl.code in (0, 130)
    assert "Traceback" not in crawl.said


def test_hostile_web_leads_nobody_to_addresses_that_are_not_allowed(crawl: HostileCrawl) -> None:
    assert crawl.trespasses == []


def test_hostile_cookies_and_passwords_are_sent_to_nobody(crawl: HostileCrawl) -> None:
    others = {host: head for host, head in crawl.heads.items() if host != "many-cookies.hostile"}

    assert [host for host, head in others.items() if "cookie:" in head.lower()] == []
    assert [host for host, head in others.items() if "authorization:" in head.lower()] == []
    assert len(crawl.heads["many-cookies.hostile"]) < 20_000


def test_hostile_header_fields_bring_no_line_into_a_request(crawl: HostileCrawl) -> None:
    assert "/a%0D%0AX-Injected:%20yes" in crawl.heads["crlf-in-location.hostile"]
    assert [host for host, head in crawl.heads.items() if "\nx-injected" in head.lower()] == []


def test_hostile_body_that_imitates_records_is_one_record(crawl: HostileCrawl, folder: Path) -> None:
    files = sorted((folder / "crawl" / "warc").iterdir())
    responses = [
        record for file in files for record in WarcReader(file) if record.header("WARC-Type") in ("response", "revisit")
    ]
    imitating = [record for record in responses if b"imitation" in record.block]

    assert [str(record.url).split("/")[2].partition(":")[0] for record in imitating] == ["warc-in-body.hostile"]
    assert "good-0.hostile/" not in {str(record.url).removeprefix("http://") for record in responses}


def test_hostile_row_is_itself_in_other_processes() -> None:
    assert all(pickle.loads(pickle.dumps(row)) is row for row in HOSTILE_ROWS)


def test_hostile_collection_is_sound_and_its_exports_stay_in_their_folder(
    crawl: HostileCrawl, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "inside").mkdir()
    odd = ("--host", "odd-names.hostile")  # of the others Markdown takes long
    lycosa("export", folder / "crawl", "markdown", *odd, "--out", tmp_path / "inside" / "pages")
    lycosa("export", folder / "crawl", "warc", "--out", tmp_path / "inside" / "all.warc.gz")
    rows = [json.loads(line) for line in lycosa("urls", folder / "crawl", "--json").splitlines()]

    assert [path.name for path in tmp_path.iterdir()] == ["inside"]
    assert {path.name for path in (tmp_path / "inside").iterdir()} == {"pages", "all.warc.gz"}
    assert any("odd-names" in row["url"] and row["state"] == "done" for row in rows)
    assert not any(row["url"].startswith(("file:", "ftp:", "gopher:", "data:", "javascript:")) for row in rows)


def test_hostile_page_of_the_docs_is_made_of_the_table() -> None:
    assert (REPOSITORY / "docs" / "hostile.md").read_text() == hostile_page()
