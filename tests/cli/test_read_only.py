"""A collection that its user may only read: every question is answered, and nothing is written."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from lycosa.inspect import open_to_read
from lycosa.search import SearchView, make_index
from tests.cli.command import REPOSITORY
from tests.crawl.small_site import FIRST, crawl_site, links

SITE = {FIRST: f"<title>Home</title><p>Solar heat.{links('a')}", f"{FIRST}a": "<title>A</title><p>A solar roof."}
# Root may write everywhere, whatever the permissions say, as long as it has this capability.
AS_ANYONE = ("setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override")
SEARCH = """
import json, sys
from lycosa import Collection
from lycosa.cli.commands import app
with Collection(sys.argv[1]) as collection:
    answers = [collection.search("solar", update=update) for update in (True, False, True)]
    print(json.dumps([[[found.url, found.score] for found in answer.results] for answer in answers]))
app(["search", sys.argv[1], "solar"], standalone_mode=False)
"""
CHILD = """
import json, sys
from pathlib import Path
from lycosa import Collection
from lycosa.cli.commands import app
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
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() == 0 and not shutil.which("setpriv"), reason="root, and no setpriv to be less"),
]


def as_anyone(code: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs `code` in a process that has to keep to permissions."""
    return subprocess.run(
        [*(AS_ANYONE if os.geteuid() == 0 else ()), sys.executable, "-c", code, *words],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "src")},
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_question_about_a_collection_that_may_only_be_read_is_answered(tmp_path: Path) -> None:
    into = tmp_path / "c"
    crawl_site(into, SITE.get, delay_s=60)  # one page is younger than the clock of the one who asks
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
    said = as_anyone(CHILD, str(into), json.dumps(questions))
    assert (said.returncode, said.stderr.count("Traceback")) == (0, 0), said.stderr
    assert said.stdout.endswith("['A', 'Home']\n")
    assert said.stdout.count("*solar* roof") == 2
    assert {path: path.stat().st_mtime_ns for path in [into, *into.rglob("*")]} == before
    with open_to_read(into):
        pass
    for path in everything:
        path.chmod(0o755 if path.is_dir() else 0o644)


@pytest.mark.parametrize("is_sharded", [False, True])
def test_an_index_that_may_only_be_read_answers_as_it_is(tmp_path: Path, is_sharded: bool) -> None:
    into = tmp_path / "c"
    crawl_site(into / "shards" / "0" if is_sharded else into, SITE.get)
    if is_sharded:
        (into / "cluster.json").touch()
    make_index(into)
    with SearchView(into) as view:
        expected = [(found.url, found.score) for found in view.search("solar").results]
    everything = [into, *into.rglob("*")]
    for path in everything:
        path.chmod(0o555 if path.is_dir() else 0o444)
    said = as_anyone(SEARCH, str(into))
    for path in everything:
        path.chmod(0o755 if path.is_dir() else 0o644)
    assert (said.returncode, "damaged" in said.stderr) == (0, False), said.stderr
    answers = msgspec.json.decode(said.stdout.splitlines()[0], type=list[list[tuple[str, float]]])
    assert answers == [expected] * 3
    assert "*solar* roof" in said.stdout
