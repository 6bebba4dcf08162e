"""Writes requirements.lock: every package that Lycosa needs, with version and digest of its wheel (`make lock`).

    pip install --require-hashes --only-binary :all: -r requirements.lock

installs exactly these, or nothing. What is chosen and its digests are pip's own (`--report`); the digests are those of
the wheels for the Python and the machine on which it is made, which the first line names.
"""

import json
import platform
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[2]
LOCK = PROJECT / "requirements.lock"
EXTRAS = "tls,cluster,store,images,article,pdf,apprise,identity,tables,serve,render,plot"


def lines(report: dict[str, list[dict[str, dict[str, dict[str, dict[str, str]]]]]]) -> list[str]:
    """The lines of the lock, in the order of the alphabet; Lycosa itself is not among them."""
    found: list[str] = []
    for item in report["install"]:
        about, source = item["metadata"], item["download_info"]
        if "archive_info" in source:
            name, version = str(about["name"]).lower().replace("_", "-"), str(about["version"])
            found.append(f"{name}=={version} --hash=sha256:{source['archive_info']['hashes']['sha256']}")
    return sorted(found)


def main() -> None:
    asked = ["--dry-run", "--ignore-installed", "--only-binary", ":all:", "--quiet", "--report", "-"]
    command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", *asked, f"{PROJECT}[{EXTRAS}]"]
    report = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    made_for = (
        f"{platform.python_implementation()} {platform.python_version()}, {platform.system()} {platform.machine()}"
    )
    head = [
        f"# Made by `make lock` for {made_for}. Install with",
        "# pip install --require-hashes --only-binary :all: -r requirements.lock",
    ]
    LOCK.write_text("\n".join([*head, *lines(json.loads(report)), ""]))


if __name__ == "__main__":
    main()
