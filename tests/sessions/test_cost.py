"""A crawl without credentials does not load what sends them."""

import subprocess
import sys
from pathlib import Path

import pytest

CRAWL = """
import sys
from pathlib import Path
from tests.crawl.small_site import crawl_site
_, stats = crawl_site(Path(sys.argv[1]), lambda url: "<p>hello", **eval(sys.argv[2]))
print(stats.pages, *sorted(name for name in sys.modules if name.startswith("lycosa.sessions")))
"""


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"cookies": True}])
def test_sessions_are_loaded_where_the_settings_ask_for_them(tmp_path: Path, settings: dict[str, object]) -> None:
    command = [sys.executable, "-c", CRAWL, str(tmp_path / "c"), repr(settings)]
    said = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True)

    pages, *modules = said.stdout.split()
    assert pages == "1"
    assert ("lycosa.sessions.jars" in modules) is bool(modules) is bool(settings)
