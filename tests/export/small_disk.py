"""Exports to disks that are too small, enlarges them, and exports again.

    unshare --mount python -m tests.export.small_disk FOLDER COLLECTION FORMAT…

Each disk has a file in the place of the export, "the old one". Prints, as JSON, for each format how the export to the
full disk ended, the names on it and what is left of the old file, and how it ended on the larger disk.
"""

import json
import subprocess
import sys
from pathlib import Path

from tests.cli.command import lycosa


def main() -> None:
    folder, collection, formats = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
    full, again = {}, {}
    for format in formats:
        disk = folder / format
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], check=True)
        out = disk / "out"
        out.write_text("the old one")
        said = lycosa("export", collection, format, "--out", out)
        full[format] = (said, sorted(path.name for path in disk.iterdir()), out.read_bytes() == b"the old one")
        subprocess.run(["mount", "-o", "remount,size=100m", disk], check=True)
        again[format] = lycosa("export", collection, format, "--out", out)
    sys.stdout.write(json.dumps([full, again]))


if __name__ == "__main__":
    main()
