"""The crawl to which the benchmark `features` compares: the tree without the lines that serve features that are off."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from proof.ground.without_features import TAKEN_OUT, without


@pytest.mark.parametrize("name", TAKEN_OUT)
def test_lines_that_are_taken_out_stand_in_the_tree_as_they_are_named(name: str) -> None:
    spec = find_spec(name)
    assert spec is not None and spec.origin is not None
    source = Path(spec.origin).read_text()
    compile(without(source, TAKEN_OUT[name], name), name, "exec")
    with pytest.raises(LookupError, match="0 times"):
        without(source, [("this stands nowhere\n", "")], name)


@pytest.mark.slow
def test_crawls_with_and_without_the_seams_keep_the_same_pages(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    for number in range(12):
        links = "".join(f"<a href={(number * 3 + more) % 12}.html>x</a>" for more in range(3))
        (site / f"{number}.html").write_text(f"<p>page {number}{links}")
    (site / "index.html").write_text("<a href=0.html>x</a>")
    said = [
        subprocess.run(
            [
                sys.executable,
                "-m",
                "proof.ground.without_features",
                "--calls",
                *words,
                site,
                tmp_path / f"c{len(words)}",
                "10",
            ],
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for words in (["--whole"], [])
    ]
    whole, bare = map(json.loads, said)
    assert whole["pages"] == bare["pages"] == 10
    assert 0 < whole["calls"] - bare["calls"] < whole["calls"] / 10
    assert whole["in_rooms"] == 0
