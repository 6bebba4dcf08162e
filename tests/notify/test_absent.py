"""A crawl that tells nobody of anything imports none of it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import REPOSITORY
from tests.notify.receivers import page, site

PROGRAM = """
import atexit, sys
absent = ("lycosa.notify", "lycosa.recrawl.plan", "lycosa.api.shell", "xml.etree", "apprise")
atexit.register(lambda: print("found:", *[name for name in absent if name in sys.modules]))
from lycosa.cli import main
main()
"""


@pytest.mark.slow
def test_plain_crawl_imports_neither_notify_nor_watching(tmp_path: Path) -> None:
    with site() as web:
        web.pages["/"] = page("T", "text")
        words = ["crawl", f"{web.url}/", "--into", str(tmp_path / "c"), "--delay", "0", "-q"]
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src")}
        run = subprocess.run(
            [sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, env=environment, check=True
        )
    assert run.stdout == "found:\n"
    assert not (tmp_path / "c" / "webhook.secret").exists()
