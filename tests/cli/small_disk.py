"""Crawls into a disk that is too small, enlarges it, and crawls again.

    unshare --mount python -m tests.cli.small_disk FOLDER WORDS

WORDS are those of a crawl into FOLDER/c, as JSON. Prints how five commands ended, as JSON: the crawl, `status` and
`warcio check` on the full disk, the same crawl and `warcio check` on the larger one.
"""

import json
import subprocess
import sys
from pathlib import Path

from tests.cli.command import Said, lycosa

SMALL, LARGE = "size=5m", "remount,size=200m"


def check(warcs: Path) -> Said:
    files = map(str, sorted(warcs.glob("*.warc.gz")))
    checker = "import sys; from warcio.cli import main; sys.exit(main(['check', *sys.argv[1:]]))"
    done = subprocess.run([sys.executable, "-c", checker, *files], check=False, capture_output=True, text=True)
    return Said(done.returncode, done.stdout, done.stderr)


def main() -> None:
    folder, words = Path(sys.argv[1]), json.loads(sys.argv[2])
    subprocess.run(["mount", "-t", "tmpfs", "-o", SMALL, "tmpfs", folder], check=True)
    ends = [lycosa(*words), lycosa("status", folder / "c", "--json"), check(folder / "c" / "warc")]
    subprocess.run(["mount", "-o", LARGE, folder], check=True)
    ends += [lycosa(*words), check(folder / "c" / "warc")]
    sys.stdout.write(json.dumps(ends))


if __name__ == "__main__":
    main()
