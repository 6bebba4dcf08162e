"""A collection that its user may only read: every question is answered, and nothing is written."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lycosa.engine.views import open_to_read
from tests.cli.command import REPOSITORY
from tests.engine.small_site import FIRST, crawl_site, links

SITE = {FIRST: f"<title>Home</title><p>Solar heat.{links('a')}", f"{FIRST}a": "<title>A</title><p>A solar roof."}
# Root may write everywhere, whatever the permissions say, as long as it has this capability.
AS_ANYONE = ("setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override")
CHILD = """
import json, sys
from pathlib import Path
from lycosa import Collection
from lycosa.cli.main import app
try:
    (Path(sys.argv[1]) / "probe").touch()
    sys.exit("it can be written")
except PermissionError:
    pass
for words in json.loads(sys.argv[2]):
    print("=", *words, flush=True)
    app(words, standalone_mode=False)
    sys.stdout.flush()
with Collection(sys.argv[1]) as collection:
    print(sorted(page.title for page in collection))
"""


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() == 0 and not shutil.which("setpriv"), reason="root, and no setpriv to make it less")
def test_every_question_about_a_collection_that_may_only_be_read_is_answered(tmp_path: Path) -> None:
    into = tmp_path / "c"
    crawl_site(into, SITE.get)
    everything = [into, *into.rglob("*")]
    before = {path: path.stat().st_mtime_ns for path in everything}
    for path in everything:
        path.chmod(0o555 if path.is_dir() else 0o444)
    questions = [
        ["status", str(into)],
        ["why", FIRST, "--in", str(into)],
        ["hosts", str(into)],
        ["links", f"{FIRST}a", "--in", str(into)],
        ["get", FIRST, "--in", str(into), "--text"],
        ["tree", str(into)],
        ["changes", str(into)],
        ["freshness", str(into)],
        ["rank", str(into)],
        ["search", str(into), "solar"],
        ["search", str(into), "solar", "--as-of", "2100"],
    ]
    said = subprocess.run(
        [*(AS_ANYONE if os.geteuid() == 0 else ()), sys.executable, "-c", CHILD, str(into), json.dumps(questions)],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (said.returncode, said.stderr.count("Traceback")) == (0, 0), said.stderr
    assert said.stdout.endswith("['A', 'Home']\n")
    assert said.stdout.count("*solar* roof") == 2
    assert {path: path.stat().st_mtime_ns for path in [into, *into.rglob("*")]} == before
    with open_to_read(into):
        pass
    for path in everything:
        path.chmod(0o755 if path.is_dir() else 0o644)
