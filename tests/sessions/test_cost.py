"""A crawl loads only what its settings ask for: one that uses no feature has none of its modules."""

import subprocess
import sys
from pathlib import Path

import pytest

CRAWL = """
import sys
from pathlib import Path
from tests.crawl.small_site import crawl_site
_, stats = crawl_site(Path(sys.argv[1]), lambda url: "<p>hello", **eval(sys.argv[2]))
print(stats.pages, *sys.modules)
"""
FEATURES = (
    *("lycosa.sessions", "lycosa.render", "lycosa.identity", "lycosa.notify", "lycosa.crawl.requisites"),
    *("lycosa.crawl.externals", "lycosa.web.requisites", "lycosa.recrawl", "lycosa.serve", "lycosa.api.shell"),
    *("playwright", "apprise", "cryptography", "http_sf"),
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({}, set()),
        ({"cookies": True}, {"lycosa.sessions"}),
        ({"requisites": True}, {"lycosa.crawl.requisites", "lycosa.web.requisites"}),
        ({"external": True}, {"lycosa.crawl.externals"}),
    ],
)
def test_features_are_loaded_where_the_settings_ask_for_them(
    tmp_path: Path, settings: dict[str, object], wanted: set[str]
) -> None:
    command = [sys.executable, "-c", CRAWL, str(tmp_path / "c"), repr(settings)]
    said = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True)

    pages, *modules = said.stdout.split()
    assert pages == "1"
    assert set(FEATURES) & set(modules) == wanted
