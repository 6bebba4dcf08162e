"""The examples of docs/export.md: every command and every piece of Python is run, in their order."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from lycosa.export import FORMATS, OPTIONS
from tests.cli.command import REPOSITORY, lycosa

PAGE = (REPOSITORY / "docs" / "export.md").read_text()


@pytest.mark.slow
def test_examples_of_the_page_on_exports_work(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(small, tmp_path / "my-crawl")
    monkeypatch.chdir(tmp_path)
    for language, text in re.findall(r"```(sh|python)\n(.*?)```", PAGE, re.DOTALL):
        if language == "python":
            exec(text, {})
            continue
        for line in text.splitlines():
            said = lycosa(*shlex.split(line)[1:])
            assert said.code == 0, (line, said.err)


def test_page_on_exports_names_every_option_of_its_formats() -> None:
    formats = {"jsonl", "csv", "markdown", "graph", "sitemap"}
    assert all(f"## {name}\n" in PAGE for name in formats & FORMATS.keys())
    for name, option in OPTIONS.items():
        if formats.issuperset(option.formats):
            assert f"--{name.replace('_', '-')}" in PAGE
