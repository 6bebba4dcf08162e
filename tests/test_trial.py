"""The tests that docs/results/trial.md names are there."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def test_every_test_that_the_trial_names_exists() -> None:
    lines = (ROOT / "docs" / "results" / "trial.md").read_text().splitlines()
    rows = [line for line in lines if line.startswith("| ") and not line.startswith("| point")]
    named = [NAMED.search(row) for row in rows]
    missing = [
        row
        for row, found in zip(rows, named, strict=True)
        if found is None or f"def {found[2]}(" not in (ROOT / found[1]).read_text()
    ]

    assert len(rows) > 60
    assert missing == []
