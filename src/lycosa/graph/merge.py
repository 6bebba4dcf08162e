"""Joins neighbouring segments into one, as a process of its own: `python -m lycosa.graph.merge [--whole] OUT PART…`.

A busy second thread beside the engine would cost it more than the work itself, and a process gives back the memory it
took. Started by `lycosa.graph.index`; killed at any moment it leaves nothing that counts.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from lycosa.graph.columns import join_columns
from lycosa.graph.segment import Segment, write_segment


def merge(out: Path, parts: Sequence[Path], *, is_whole: bool) -> None:
    """One segment for many, oldest first. `is_whole`: there are no older ones."""
    write_segment(out, join_columns([Segment.open(part).columns() for part in parts], is_whole=is_whole))


if __name__ == "__main__":
    os.nice(10)
    words = [word for word in sys.argv[1:] if word != "--whole"]
    merge(Path(words[0]), [Path(word) for word in words[1:]], is_whole="--whole" in sys.argv)
