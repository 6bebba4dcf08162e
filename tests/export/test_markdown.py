"""`lycosa export DIR markdown`: front matter that YAML readers take, and file names that stay in their folder."""

import json
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lycosa.export.markdown import _yaml
from lycosa.export.names import PART_BYTES, PATH_BYTES, file_name
from lycosa.web import parse_url
from tests.cli.command import lycosa
from tests.crawl.small_site import FIRST, crawl_site, links
from tests.export.conftest import FORMULA

RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?")


def read(path: Path) -> tuple[dict[str, object], str]:
    _, front, text = path.read_text().split("---\n", 2)
    return yaml.safe_load(front), text


def test_markdown_has_a_file_for_every_page(small: Path, tmp_path: Path) -> None:
    out = tmp_path / "notes"
    said = lycosa("export", small, "markdown", "--out", out)
    assert said.code == 0, said.err
    files = list(out.rglob("*.md"))
    pages = {front["url"]: (front, text) for front, text in map(read, files)}
    assert len(files) == len(pages) == lycosa("status", small, "--json").facts["pages"]
    front, text = pages[f"{FIRST}docs/x"]
    assert front["title"] == FORMULA
    assert front["language"] == "en"
    assert "Words" in text
    assert (out / "127.0.0.1~http~9" / "docs" / "x.md").is_file()
    assert (out / "127.0.0.1~http~9" / "index.md").is_file()


def test_pages_with_names_alike_get_files_of_their_own(tmp_path: Path) -> None:
    paths = [
        "a",
        "A",
        "a/",
        "a/index",
        "index",
        "a.md",
        "a.md/b",
        "a?x=1",
        "a?x=2",
        "%61/..%2f..%2fb",
        "con",
        "ä",
        "a%C3%A4",
    ]
    hrefs = [f"{FIRST}{path}" for path in paths]
    pages = {parse_url(href).href: f"<title>{number}</title>" for number, href in enumerate(hrefs)}  # type: ignore[union-attr]
    pages[FIRST] = links(*hrefs)
    crawl_site(tmp_path / "c", pages.get)
    assert lycosa("export", tmp_path / "c", "markdown", "--out", tmp_path / "out").code == 0
    found = [
        path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.md") if path.is_file()
    ]
    assert len(found) == len(pages)
    assert len({name.casefold() for name in found}) == len(found)


url_parts = st.text(
    st.sampled_from("aAzZ09._-~/%\\:*?<>|\"' \t\u00e4\u0130\u212a\u3000.") | st.characters(exclude_categories=["Cs"]),
    max_size=300,
)


@given(st.lists(st.tuples(st.sampled_from(["http", "https"]), url_parts), min_size=1, max_size=20))
def test_file_name_stays_in_its_folder_and_is_valid_everywhere(parts: list[tuple[str, str]]) -> None:
    urls = {url.href for scheme, path in parts if (url := parse_url(f"{scheme}://example.org/{path}"))}
    names = {url: file_name(url, ".md") for url in urls}
    for name in names.values():
        assert name.endswith(".md")
        assert len(name.encode()) <= PATH_BYTES + 3
        for part in name.split("/"):
            assert part not in ("", ".", "..")
            assert not part.startswith(".")
            assert not part.endswith((".", " "))
            assert len(part.encode()) <= PART_BYTES + 20
            assert not set(part) & set('<>:"/\\|?*\0')
            assert not RESERVED.fullmatch(part)
            assert part.isprintable()
    assert len({name.casefold() for name in names.values()}) == len(urls)


@given(st.text())
def test_front_matter_takes_any_string(text: str) -> None:
    assert yaml.safe_load(f"title: {_yaml(text)}")["title"] == text


def test_front_matter_takes_every_hostile_string(conformance: Path) -> None:
    for text in json.loads((conformance / "hostile-strings" / "blns.json").read_text()):
        assert yaml.safe_load(f"title: {_yaml(text)}\n")["title"] == text


@pytest.mark.parametrize("text", ["\ud800", "\x85", "\u2028", "\ufeff", "\x7f", "\U0001f577"])
def test_front_matter_of_an_odd_character_is_yaml(text: str) -> None:
    assert len(yaml.safe_load(f"title: {_yaml(text)}")["title"]) == 1
