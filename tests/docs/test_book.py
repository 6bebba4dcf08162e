"""The book: it builds without a warning, its search finds what is in it, and its reference pages are current."""

import html
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import REPOSITORY


def test_reference_of_commands_is_what_the_commands_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERMINAL_WIDTH", "80")
    made = runpy.run_path(str(REPOSITORY / "docs" / "commands.py"))["reference"]()
    page = (REPOSITORY / "docs" / "commands.md").read_text()
    assert made == page, "run: .venv/bin/python docs/commands.py > docs/commands.md"


@pytest.mark.slow
def test_book_builds_without_a_warning(tmp_path: Path) -> None:
    words = ["-q", "-W", "--keep-going", "-b", "html", "-d", tmp_path / "trees", REPOSITORY / "docs", tmp_path / "html"]
    built = subprocess.run([sys.executable, "-m", "sphinx", *words], capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    assert "heat" in (tmp_path / "html" / "searchindex.js").read_text()
    for page in (REPOSITORY / "docs").rglob("*.md"):
        place = page.relative_to(REPOSITORY / "docs").with_suffix(".html")
        heading = next(line[2:] for line in page.read_text().splitlines() if line.startswith("# "))
        words = re.sub(r"[`*]|\[|\]\([^)]*\)", "", heading)
        title = html.unescape((tmp_path / "html" / place).read_text().partition("<title>")[2].partition("</title>")[0])
        assert title.startswith(words.replace("'", "’")), f"{place} is not the page that {page} is: {title}"
