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
@pytest.mark.parametrize(
    ("settings", "loaded"),
    [({}, ""), ({"headers": ["X-Key: k"]}, "authentication credentials hook"), ({"cookies": True}, "jars")],
)
def test_sessions_are_loaded_where_the_settings_name_credentials(
    tmp_path: Path, settings: dict[str, object], loaded: str
) -> None:
    command = [sys.executable, "-c", CRAWL, str(tmp_path / "c"), repr(settings)]
    said = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True)

    pages, *modules = said.stdout.split()
    assert pages == "1"
    assert bool(modules) is bool(settings)
    assert {f"lycosa.sessions.{name}" for name in loaded.split()} <= set(modules)
    assert ("lycosa.sessions.jars" in modules) is ("cookies" in settings)
