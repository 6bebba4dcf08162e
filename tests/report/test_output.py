"""The forms of a report: page, table, JSON, summary, exit codes; what a hostile site writes stays text."""

import csv
import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path

import pytest

from lycosa.report import ReportComparison, make_report, write_report
from lycosa.report import page as html_page
from tests.cli.command import lycosa
from tests.report.planted_site import PAGES, SITE, crawl_planted, expected, link, page

SCRIPT = "<script>document.title='taken over'</script><img src=x onerror=\"document.title='taken over'\">"


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("planted") / "c"
    crawl_planted(into)
    return into


@pytest.fixture(scope="module")
def mended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A later crawl: one fault mended, one new, one page gone, one new."""
    into = tmp_path_factory.mktemp("mended") / "c"
    site = {**PAGES, "/wide": page("wide"), "/new": page("new", link("/oops", "a new fault"))}
    site["/"] = str(site["/"]) + link("/new")
    del site["/untitled"]
    crawl_planted(into, site)
    return into


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_all_forms_hold_the_same_findings(planted: Path, tmp_path: Path) -> None:
    said = lycosa("report", planted, "--out", tmp_path / "report")
    assert said.code == 0
    table = {(row["finding"], row["page"], row["target"]) for row in rows_of(tmp_path / "report" / "findings.csv")}
    whole = json.loads((tmp_path / "report" / "report.json").read_text())
    assert table == {(each["name"], row["page"], row["target"]) for each in whole["findings"] for row in each["rows"]}
    assert {name for name, *_ in table} == {name for name, found in expected().items() if found} - unchecked(whole)
    text = unescape((tmp_path / "report" / "report.html").read_text())
    assert [row for row in table if row[1] not in text or row[2] not in text] == []
    assert sorted(path.name for path in (tmp_path / "report").iterdir()) == [
        "findings.csv",
        "report.html",
        "report.json",
    ]


def unchecked(whole: dict[str, list[dict[str, str]]]) -> set[str]:
    return {each["name"] for each in whole["findings"] if each["unchecked"]}


def test_hint_at_other_forms_is_for_those_who_asked_for_none(planted: Path, tmp_path: Path) -> None:
    hint = "--out FOLDER writes all of it"
    assert hint in lycosa("report", planted).err
    assert hint not in lycosa("report", planted, "--out", tmp_path / "r").err


def test_json_on_standard_output_is_the_file(planted: Path, tmp_path: Path) -> None:
    said = lycosa("report", planted, "--json", "--out", tmp_path / "r.json")
    written = json.loads((tmp_path / "r.json").read_text())
    assert said.facts == written
    assert written["plots"]["status"][0] == {"name": "200", "count": written["pages"]}


def test_summary_names_findings_and_examples(planted: Path) -> None:
    said = lycosa("report", planted)
    assert f'{SITE}/links -> {SITE}/missing   ("our offers", 404)' in said.out
    assert "[broken-links]" in said.out


@pytest.mark.parametrize(
    ("words", "code"),
    [("error", 1), ("broken-links", 1), ("broken-start", 0), ("broken-start, deep-pages", 1), ("notice", 1)],
)
def test_exit_code_says_whether_something_was_found(planted: Path, words: str, code: int) -> None:
    assert lycosa("report", planted, "--fail-on", words).code == code


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--fail-on", "bad"), "there is no finding 'bad'"),
        (("--out", "report.pdf"), "not to 'report.pdf'"),
        (("--out", "missing/report.html"), "there is no folder missing"),
        (("--compare", "missing"), "there is no collection at missing"),
    ],
)
def test_wrong_use_is_told_in_a_sentence(planted: Path, words: tuple[str, ...], sentence: str) -> None:
    said = lycosa("report", planted, *words)
    assert said.code == 2
    assert sentence in said.err
    assert len(said.complaints) == 1


def test_folder_without_a_collection_is_told(tmp_path: Path) -> None:
    said = lycosa("report", tmp_path)
    assert said.code == 2
    assert said.complaints == [
        f"lycosa: {tmp_path} is not a collection: name the folder that a crawl was given with --into"
    ]


def test_output_that_fails_leaves_the_old_one(planted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "report.html").write_text("the old one")

    def fail(_: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(html_page, "_plots", fail)
    said = lycosa("report", planted, "--out", tmp_path / "report.html")
    assert said.code == 4
    assert [path.read_text() for path in tmp_path.iterdir()] == ["the old one"]


def test_comparison_tells_what_is_new_fixed_and_gone(planted: Path, mended: Path, tmp_path: Path) -> None:
    with make_report(mended) as newer, make_report(planted) as older:
        comparison = ReportComparison(newer, older)
        changes = {change.rule.name: change for change in comparison.changes if change.has_changed}
        assert set(changes) == {"large-pages", "broken-links", "missing-titles"}
        assert [(row.page, row.target) for row in comparison.new("broken-links")] == [
            (f"{SITE}/new", f"{SITE}/oops"),
            (f"{SITE}/", f"{SITE}/untitled"),
        ]
        assert [row.page for row in comparison.fixed("large-pages")] == [f"{SITE}/wide"]
        assert (changes["missing-titles"].fixed, changes["missing-titles"].gone) == (0, 1)
        assert [changes[name].verdict for name in ("large-pages", "broken-links")] == ["better", "worse"]
        assert list(comparison.pages_came()) == [f"{SITE}/new"]
        assert list(comparison.pages_went()) == [f"{SITE}/untitled"]
        write_report(newer, tmp_path / "report", comparison)
    said = lycosa("report", mended, "--compare", planted)
    assert re.search(r"worse +broken-links +2 -> 4   2 new, 0 fixed", said.out)
    whole = json.loads((tmp_path / "report" / "report.json").read_text())
    assert whole["comparison"]["came"] == [f"{SITE}/new"]
    assert "a new fault" in (tmp_path / "report" / "report.html").read_text()


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory, conformance: Path) -> tuple[Path, list[str]]:
    """A site whose titles, descriptions, links and addresses are hostile strings."""
    into = tmp_path_factory.mktemp("hostile") / "c"
    strings = [text for text in json.loads((conformance / "hostile-strings" / "blns.json").read_text()) if text.strip()]
    strings += [SCRIPT, "=cmd|' /C calc'!A0", "</style><script>alert(1)</script>", "--><script>alert(1)</script>"]
    site: dict[str, object] = {"/": page("home", *(link(f"/{number}") for number in range(len(strings))))}
    for number, text in enumerate(strings):
        quoted = text.replace("&", "&amp;").replace("<", "&lt;").replace("'", "&#39;")
        site[f"/{number}"] = page(
            f"n{number}",
            f"<a href='/lost?{quoted}'>{quoted}</a>",
            title=f"<title>{quoted * (1 + 71 // len(text))}</title>",
            about=f"<meta name=description content='{quoted}'>",
        )
    crawl_planted(into, site)
    return into, strings


def test_hostile_strings_stay_text_in_the_page(hostile: tuple[Path, list[str]], tmp_path: Path) -> None:
    into, _ = hostile
    assert lycosa("report", into, "--out", tmp_path / "r.html").code == 0
    text = (tmp_path / "r.html").read_text()
    assert text.count("<script") == 1
    assert not re.search(r"<(?:img|iframe|object|embed|link|base|form|svg/|a href=\"(?!https?://|#))", text)
    assert not re.search(r"<[^<>]*\son\w+\s*=", text)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    assert not re.search(r"<[a-z][^<>]*\s(?:src|srcset|action|data|style|background|ping)\s*=", text), (
        "it loads nothing"
    )
    assert not re.search(r"url\(|@import", text.partition("</style>")[0])


def test_hostile_strings_do_not_become_formulas(hostile: tuple[Path, list[str]], tmp_path: Path) -> None:
    into, _ = hostile
    assert lycosa("report", into, "--out", tmp_path / "r.csv").code == 0
    cells = [cell for row in rows_of(tmp_path / "r.csv") for cell in row.values()]
    assert [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r"))] == []
    assert any(cell.startswith("'=cmd") for cell in cells)


@pytest.mark.slow
def test_page_runs_no_script_of_the_site_in_a_browser(hostile: tuple[Path, list[str]], tmp_path: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium is installed")
    into, _ = hostile
    assert lycosa("report", into, "--out", tmp_path / "r.html").code == 0
    words = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom"]
    found = subprocess.run(
        [browser, *words, (tmp_path / "r.html").as_uri()], capture_output=True, text=True, timeout=300, check=False
    )
    assert "<title>Site report: shop.example</title>" in found.stdout, found.stderr[-500:]
    assert '<div class="tools">' in found.stdout, "its own script has run"
    assert "taken over" not in re.sub(r"&lt;.*?&gt;", "", found.stdout).partition("</title>")[0]


def test_page_of_an_empty_collection_can_be_written(tmp_path: Path) -> None:
    crawl_planted(tmp_path / "c", {"/": 404}, sitemaps=False)
    assert lycosa("report", tmp_path / "c", "--out", tmp_path / "report").code == 0
    assert "has no page of this site yet" in (tmp_path / "report" / "report.html").read_text()


def test_help_names_every_form_and_the_exit_code() -> None:
    said = lycosa("report", "--help")
    assert said.code == 0
    for word in ("--out", "--json", "--compare", "--fail-on", "Examples:"):
        assert word in said.out
