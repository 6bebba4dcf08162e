"""Cookies: a jar for each site, kept in the collection, sent and taken in by libcurl's cookie engine (RFC 6265bis).

A jar belongs to a scheme, a port and a registrable domain: cookies go to the hosts of the domain that may have them by
their own rules, and never to another scheme or port, which is stricter than the standard. What servers set is written
with the commit that holds their answers, so that a run that was killed goes on with what the last commit had. Jars of
other sites are not touched: a request costs the same whatever their number. `read_cookie_file` reads cookies of
browsers; they are taken in for the sites of the seeds alone. Used by `sessions.hook`.
"""

import json
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path

import msgspec
import pycurl

from lycosa.crawl import CommitParticipant
from lycosa.errors import SettingsError
from lycosa.records import Family
from lycosa.store import Batch, State
from lycosa.web import BUCKET_BYTES, Url, bucket_of, domain_of, split_url

JAR_PREFIX = b"jar:"  # rows of the family `meta` that move with their bucket (`store.buckets`)
_READ_PREFIX = b"cookies-read:"
OPEN_JARS = 10_000  # in memory, about 7 KB each; far more than there are requests at a time
MOST_COOKIES = 300  # in a jar; browsers keep about as many
PRIVATE_MODE = 0o700
_BYTES = "latin-1"  # a cookie is bytes, of any encoding or none; rows of the state are text
_FIELDS = 7  # of a line in the format of Netscape


class CookieJar:
    """The cookies of one site. `share` is what requests are given."""

    def __init__(self, key: bytes, lines: Iterable[str] = ()) -> None:
        self.key = key
        self.share = pycurl.CurlShare()
        self.share.setopt(pycurl.SH_SHARE, pycurl.LOCK_DATA_COOKIE)
        self.has_cookies = False
        self.put(lines)

    def put(self, lines: Iterable[str]) -> None:
        """Takes in cookies, in place of those that are the same."""
        handle = self._handle()
        for line in lines:
            handle.setopt(pycurl.COOKIELIST, line.encode(_BYTES))
            self.has_cookies = True
        handle.close()

    def lines(self) -> list[str]:
        """The cookies in the format of Netscape, a character for each byte: servers send any. Where they are too many,
        the others are forgotten."""
        handle = self._handle()
        found: list[bytes] = handle.getinfo_raw(pycurl.INFO_COOKIELIST)
        if len(found) > MOST_COOKIES:
            found = found[:MOST_COOKIES]
            handle.setopt(pycurl.COOKIELIST, "ALL")
            for line in found:
                handle.setopt(pycurl.COOKIELIST, line)
        handle.close()
        return [line.decode(_BYTES) for line in found]

    def _handle(self) -> pycurl.Curl:
        handle = pycurl.Curl()
        handle.setopt(pycurl.SHARE, self.share)
        handle.setopt(pycurl.COOKIEFILE, "")
        return handle


class CookieJars(CommitParticipant):
    """The jars of a collection; without `sites` every site has one."""

    def __init__(self, state: State, sites: frozenset[str] | None) -> None:
        self._state, self._sites = state, sites
        self._jars: OrderedDict[bytes, CookieJar] = OrderedDict()  # the one that was used last is the last
        self._changed: dict[bytes, CookieJar] = {}
        self._read: list[bytes] = []
        state.path.chmod(PRIVATE_MODE)  # cookies are in it now

    def of(self, url: str) -> CookieJar | None:
        """The jar for a request to a URL; None where its site has none."""
        parts = split_url(url)
        if self._sites is not None and domain_of(parts.host) not in self._sites:
            return None
        key = jar_key(parts)
        if (jar := self._jars.get(key)) is not None:
            self._jars.move_to_end(key)
            return jar
        row = self._state.get(Family.META, key)
        jar = self._jars[key] = self._changed.get(key) or CookieJar(key, msgspec.json.decode(row) if row else ())
        if len(self._jars) > OPEN_JARS:
            self._jars.popitem(last=False)
        return jar

    def changed(self, url: str) -> None:
        """An answer to a request for this URL has set cookies."""
        if (jar := self.of(url)) is not None:
            jar.has_cookies = True
            self._changed[jar.key] = jar

    def take_in(self, file: Path, seeds: Sequence[Url]) -> None:
        """Reads the cookies of a file for the sites of these seeds, unless that is done."""
        cookies, digest = read_cookie_file(file)
        done = _READ_PREFIX + digest
        if self._state.get(Family.META, done) is not None:
            return
        by_site: dict[str, list[str]] = {}
        for domain, line in cookies:
            by_site.setdefault(domain_of(domain), []).append(line)
        for seed in seeds:
            if (lines := by_site.get(domain_of(seed.host))) and (jar := self.of(seed.href)) is not None:
                jar.put(lines[:MOST_COOKIES])
                self._changed[jar.key] = jar
        self._read.append(done)

    def before_commit(self, batch: Batch, *, is_last: bool) -> None:
        for key, jar in self._changed.items():
            batch.put(Family.META, key, msgspec.json.encode(jar.lines()))
        for key in self._read:
            batch.put(Family.META, key, b"")
        self._changed.clear()
        self._read.clear()


def jar_key(url: Url) -> bytes:
    """The key of the jar that a request to a URL uses."""
    site = f"{domain_of(url.host)}:{url.port}:{url.scheme}"
    return JAR_PREFIX + bucket_of(url.host).to_bytes(BUCKET_BYTES) + site.encode()


def read_cookie_file(path: Path) -> tuple[list[tuple[str, str]], bytes]:
    """The cookies of a file, each with its domain and as a line in the format of Netscape; and a digest of the file.
    It is a cookies.txt, or the storage state of Playwright. Raises SettingsError."""
    try:
        data = path.read_bytes()
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise SettingsError(f"the cookies in {path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise SettingsError(f"{path} is no text: give a cookies.txt or a storage state of Playwright") from None
    cookies = _of_storage_state(text) if text.lstrip()[:1] in ("{", "[") else _of_cookies_txt(text)
    if any("\0" in line for _, line in cookies or ()):
        cookies = None
    if cookies is None:
        raise SettingsError(f"{path} holds no cookies: give a cookies.txt or a storage state of Playwright")
    return cookies, sha256(data).digest()


def _of_cookies_txt(text: str) -> list[tuple[str, str]] | None:
    lines = [line.rstrip("\r") for line in text.split("\n")]
    rows = [line for line in lines if line.removeprefix("#HttpOnly_")[:1] not in ("", "#")]
    found = [(_domain(line), line.encode().decode(_BYTES)) for line in rows if line.count("\t") == _FIELDS - 1]
    return found if len(found) == len(rows) else None


def _of_storage_state(text: str) -> list[tuple[str, str]] | None:
    try:
        state = json.loads(text)
        cookies = state["cookies"] if isinstance(state, dict) else state
        return [(str(cookie["domain"]).lstrip("."), _line(cookie)) for cookie in cookies]
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def _line(cookie: dict[str, object]) -> str:
    """A cookie of a storage state in the format of Netscape."""
    domain, expires = str(cookie["domain"]), float(str(cookie.get("expires") or 0))
    fields = (
        ("#HttpOnly_" if cookie.get("httpOnly") else "") + domain,
        "TRUE" if domain.startswith(".") else "FALSE",
        str(cookie.get("path") or "/"),
        "TRUE" if cookie.get("secure") else "FALSE",
        str(max(0, int(expires))),  # -1 is a cookie of the session
        str(cookie["name"]),
        str(cookie["value"]),
    )
    if any(character < " " for field in fields for character in field):
        raise ValueError
    return "\t".join(fields).encode().decode(_BYTES)


def _domain(line: str) -> str:
    return line.removeprefix("#HttpOnly_").partition("\t")[0].lstrip(".")
