"""docs/export.md names every option of the formats; tests/docs runs its examples."""

from lycosa.export import FORMATS, OPTIONS
from tests.cli.command import REPOSITORY

PAGE = (REPOSITORY / "docs" / "export.md").read_text()


def test_page_on_exports_names_every_option_of_its_formats() -> None:
    formats = {"jsonl", "csv", "markdown", "graph", "sitemap"}
    assert all(f"## {name}\n" in PAGE for name in formats & FORMATS.keys())
    for name, option in OPTIONS.items():
        if formats.issuperset(option.formats):
            assert f"--{name.replace('_', '-')}" in PAGE
