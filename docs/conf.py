"""How Sphinx builds the book: `make docs`. Links within the book are checked, those to the web are not fetched."""

import re
from pathlib import Path
from typing import Any

from lycosa.version import __version__

project = "Lycosa"
release = __version__
copyright = "The authors of Lycosa"

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["site", "style"]
html_theme = "furo"
html_static_path = ["style"]
html_css_files = ["book.css"]
html_title = f"Lycosa {__version__}"
html_copy_source = False
html_show_sphinx = False

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
suppress_warnings = ["myst.header"]  # results begin at any level
nitpicky = True
nitpick_ignore_regex = [("py:.*", ".*")]  # types in signatures are named, not linked
autodoc_typehints = "none"
autodoc_member_order = "bysource"


def unlink_source_files(app: Any, page: str, source: list[str]) -> None:
    """Leaves the words alone of links that lead out of docs/ to files of the source, which the book does not have."""
    folder = Path(app.srcdir, page).parent

    def words(link: re.Match[str]) -> str:
        target = (folder / link[2]).resolve()
        if target.is_relative_to(app.srcdir):
            return link[0]
        if not target.exists():
            raise FileNotFoundError(f"{page}: {link[2]} is linked and not there")
        return link[1]

    source[0] = re.sub(r"\[([^\]]+)\]\((\.\./[^)#\s]+)(?:#[^)]*)?\)", words, source[0])


def setup(app: Any) -> None:
    app.connect("source-read", unlink_source_files)
