"""The ground the crawl scenarios stand on: where they keep what they install, and documents out of Debian packages.

Everything lies in one folder outside the project, `~/.cache/lycosa-bench` or what LYCOSA_BENCH names, and is fetched
once. Packages are downloaded and unpacked there, never installed; only nginx comes from the system, and is installed
if it is missing and the system allows it. Nothing runs as another user than the one who started it.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from lycosa.errors import LycosaError
from proof import peers
from proof.peers import CACHE, say

__all__ = ["CACHE", "environment", "nginx", "package", "say"]


def package(name: str) -> Path:
    """The folder into which a Debian package is unpacked; downloads it the first time."""
    folder = CACHE / "packages" / name
    if folder.is_dir():
        return folder
    downloads = CACHE / "downloads"
    downloads.mkdir(parents=True, exist_ok=True)
    say(f"downloading {name} into {downloads}")
    _run(["apt-get", "download", "-qq", name], cwd=downloads)
    file = max(downloads.glob(f"{name}_*.deb"), key=lambda path: path.stat().st_mtime)
    unfinished = folder.with_name(f"{name}.new")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    _run(["dpkg", "-x", str(file), str(unfinished)])
    unfinished.rename(folder)
    return folder


def nginx() -> str:
    """The path of nginx; installs nginx-light if there is none."""
    for _ in range(2):
        if found := shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"):
            return found
        say("installing nginx-light from the system's packages")
        _run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", "nginx-light"])
    sys.exit("nginx was installed but cannot be found")


def environment(name: str, *requirements: str) -> Path:
    """The Python of a virtual environment of its own that has `requirements`."""
    try:
        return peers.environment(name, *requirements)
    except LycosaError as error:
        sys.exit(str(error))


def _run(command: list[str], cwd: Path | None = None) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr or done.stdout}")
