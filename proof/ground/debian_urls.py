"""Real URLs by the million: the file names of every Debian documentation package, each under a host of its own kind.

The list is Debian's own index of files (`Contents-all`), fetched by apt into a folder of its own, nothing installed.
A package becomes a host, named as the projects in question name theirs: Python's on readthedocs.io, Java's all on one
host as on javadoc.io, the others on github.io, sourceforge.net or a domain of their own. What lies in the way from the
system's root to the package's documents is cut off; nothing else of a path is changed.
"""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from lycosa.errors import LycosaError
from lycosa.web import parse_url, url_key
from proof.ground.peers import CACHE, say

_APT = "/usr/lib/apt/apt-helper"
_TARGET = "Acquire::IndexTargets::deb::Contents-all"
_SECTION = "doc/"
_SYSTEM_FOLDERS = re.compile(r"usr/(?:share/|lib/)?(?:doc/[^/]+/)?")
_NAME_ENDS = re.compile(r"^(?:lib|python3?-|ruby-)(?=.)|(?:-java|-perl|-dev|-common|-?[0-9.]+)$")
_NOT_IN_HOSTS = re.compile(r"[^a-z0-9-]+")
_KEPT_IN_PATHS = "/~!$&'()*+,;=:@"
# Hosts of packages that have no kind of their own, and where their documents start.
_SITES = ("{}.github.io/", "{}.github.io/", "docs.{}.org/", "www.{}.org/doc/", "{}.sourceforge.net/docs/")


def documentation_urls() -> list[str]:
    """About two million normalised URLs, in the order of their keys."""
    urls = {}
    for package, path in _files():
        url = parse_url(f"https://{_site(package)}{quote(_SYSTEM_FOLDERS.sub('', path, count=1), safe=_KEPT_IN_PATHS)}")
        if url is not None:
            urls[url_key(url.href)] = url.href
    return [urls[key] for key in sorted(urls)]


def _site(package: str) -> str:
    name = package.removesuffix("-doc")
    name = _NOT_IN_HOSTS.sub("-", _NAME_ENDS.sub("", name)).strip("-") or "x"
    if package.startswith("python"):
        return f"{name}.readthedocs.io/en/latest/"
    if package.endswith("-java-doc"):
        return f"www.javadoc.io/doc/{name}/"
    return _SITES[sum(package.encode()) % len(_SITES)].format(name)


def _files() -> Iterator[tuple[str, str]]:
    """(package, path) of every file of the documentation section."""
    for line in _index().open(encoding="utf-8", errors="replace"):
        path, _, places = line.rstrip().rpartition(" ")
        place = places.split(",")[0]
        if place.startswith(_SECTION):
            yield place.removeprefix(_SECTION), path.rstrip()


def _index() -> Path:
    """Debian's index of the files of packages for every architecture; fetched once, 34 MB."""
    file = CACHE / "contents-all"
    if file.is_file():
        return file
    lists = CACHE / "apt-lists"
    (lists / "partial").mkdir(parents=True, exist_ok=True)
    say(f"fetching the index of Debian's files into {CACHE}")
    options = [
        f"Dir::State::Lists={lists}",
        f"{_TARGET}::MetaKey=$(COMPONENT)/Contents-all",
        f"{_TARGET}::ShortDescription=Contents-all",
        f"{_TARGET}::Description=$(RELEASE)/$(COMPONENT) files of all architectures",
    ]
    _run(["apt-get", "update", "-qq", *(word for option in options for word in ("-o", option))])
    found = max(lists.glob("*_Contents-all*"), key=lambda path: path.stat().st_size, default=None)
    if found is None:
        raise LycosaError(f"apt fetched no index of files into {lists}: its sources must include Debian's main section")
    unfinished = file.with_suffix(".new")
    unfinished.write_bytes(_run([_APT, "cat-file", str(found)]))
    unfinished.rename(file)
    return file


def _run(command: list[str]) -> bytes:
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        raise LycosaError(f"{' '.join(command)} failed:\n{done.stderr.decode(errors='replace')}")
    return done.stdout
