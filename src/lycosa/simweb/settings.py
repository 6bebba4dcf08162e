"""What a simulated web is made of: one frozen record, checked when it is built.

Everything the generator needs is here, so that two processes with equal settings serve equal bytes.
The log of a server opens with this record; the audit rebuilds the same web from it.
"""

from collections.abc import Mapping

import msgspec

from lycosa.errors import SettingsError

# Trouble that hits single documents: at most one a URL, chosen by the URL's hash. The share is of documents.
DOCUMENT_TROUBLE = {
    "not-found": "404 for good",
    "error": "500 for good",
    "hang": "the request is read, nothing is ever sent",
    "drip": "one byte a second",
    "reset": "the connection is reset in the middle of the body",
    "truncated": "the connection is closed in the middle of the body",
    "wrong-length": "Content-Length says half of what is sent",
    "endless": "a body that never ends",
    "header-flood": "headers that never end",
    "bomb": "a small gzip body that grows to 100 MB",
    "redirect-loop": "a redirect that comes back to itself",
    "wrong-charset": "a body in Latin-1 that says it is UTF-8",
    "huge": "a page of 30 MB",
    "deep": "20,000 elements inside one another",
}
# Trouble that a whole host has. The share is of hosts.
HOST_TROUBLE = {
    "unavailable": "503 with Retry-After for 3 seconds out of every 20",
    "too-many": "429 with Retry-After for 3 seconds out of every 20",
    "calendar": "a calendar without end",
    "path-loop": "relative links that grow the path without end",
    "session-ids": "every link carries a new session id",
    "soft-404": "unknown paths answer 200 with links to more of them",
    "lying-table": "tables of links that have one too many and lack one, on hosts that have tables",
}
TROUBLE = DOCUMENT_TROUBLE | HOST_TROUBLE
# What robots.txt is like: shares of hosts. `rules`, `sitemap` and `missing` are ordinary, the others off by default.
ROBOTS = {
    "rules": "Disallow and Allow lines, some with wildcards",
    "sitemap": "a Sitemap line, and the sitemap",
    "missing": "404",
    "delay": "a Crawl-delay of 2 seconds",
    "error": "500",
    "slow": "an answer after 5 seconds",
}
DNS = {
    "servfail": "SERVFAIL",
    "timeout": "no answer at all",
    "slow": "an answer after a second",
    "changing": "another address every TTL",
}
# The number by which a knob draws its hosts: its place in its list, whatever else is turned.
TROUBLE_NUMBER, ROBOTS_NUMBER, DNS_NUMBER = (
    {name: number for number, name in enumerate(knobs)} for knobs in (TROUBLE, ROBOTS, DNS)
)
ROBOTS_DEFAULTS = {"rules": 0.5, "sitemap": 0.5, "missing": 0.2}
SIZES = ("heavy", "uniform")
MAX_ADDRESSES = 16_000_000  # 127.1.0.0 to 127.255.255.255


class SimSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one simulated web. `addresses` 0 means a quarter of the hosts, at least one. The hosts belong to
    so many `sites`, registrable domains such as s3.sim; 0: each is a site of its own.

    `line_bytes_s` is the client's own line, over which the answers of all hosts come, `transfer_bytes_s` what any one
    transfer gets; 0: no limit.
    """

    seed: int = 1
    hosts: int = 50
    pages: int = 20_000
    addresses: int = 0
    sites: int = 0
    sizes: str = "heavy"
    scheme: str = "http"
    port: int = 8800
    mirrors: float = 0.03
    near_duplicates: float = 0.03
    tables: float = 0.25
    trouble: dict[str, float] = {}
    robots: dict[str, float] = {}
    dns: dict[str, float] = {}
    dns_ttl_s: int = 300
    rtt_ms: float = 0.0
    rtt_spread: float = 0.0
    bandwidth_bytes_s: float = 0.0
    bandwidth_spread: float = 0.0
    line_bytes_s: float = 0.0
    transfer_bytes_s: float = 0.0

    def __post_init__(self) -> None:
        _check_count("--hosts", self.hosts, least=1, most=10_000_000)
        _check_count("--pages", self.pages, least=self.hosts, most=10**12)
        _check_count("--addresses", self.addresses, least=0, most=MAX_ADDRESSES)
        _check_count("sites", self.sites, least=0, most=self.hosts)
        _check_count("--port", self.port, least=0, most=65_535)
        _check_count("--dns-ttl", self.dns_ttl_s, least=0, most=604_800)
        if self.sizes not in SIZES:
            raise SettingsError(f"--sizes is {self.sizes!r}, it must be one of {', '.join(SIZES)}")
        if self.scheme not in ("http", "https"):
            raise SettingsError(f"the scheme is {self.scheme!r}, it must be http or https")
        for name in ("mirrors", "near_duplicates", "tables"):
            _check_share(f"--{name.replace('_', '-')}", getattr(self, name))
        _check_shares("--trouble", self.trouble, TROUBLE)
        _check_shares("--robots", self.robots, ROBOTS)
        _check_shares("--dns", self.dns, DNS)
        if sum(self.trouble.get(name, 0.0) for name in DOCUMENT_TROUBLE) > 1:
            raise SettingsError(
                "the shares of document trouble add up to more than 1: a document has one trouble at most"
            )
        for name in (
            "rtt_ms",
            "rtt_spread",
            "bandwidth_bytes_s",
            "bandwidth_spread",
            "line_bytes_s",
            "transfer_bytes_s",
        ):
            if not 0 <= getattr(self, name) < 1e12:
                raise SettingsError(f"{name} is {getattr(self, name)}, it must not be negative")

    @property
    def address_count(self) -> int:
        return self.addresses or max(1, self.hosts // 4)

    @property
    def robots_shares(self) -> dict[str, float]:
        return ROBOTS_DEFAULTS | self.robots

    def trouble_share(self, name: str) -> float:
        return self.trouble.get(name, 0.0)


def _check_count(option: str, value: int, *, least: int, most: int) -> None:
    if not least <= value <= most:
        raise SettingsError(f"{option} is {value}, it must be between {least} and {most}")


def _check_share(option: str, share: float) -> None:
    if not 0 <= share <= 1:
        raise SettingsError(f"{option} is {share:g}, a share is between 0 and 1")


def _check_shares(option: str, shares: Mapping[str, float], known: Mapping[str, str]) -> None:
    for name, share in shares.items():
        if name not in known:
            raise SettingsError(f"{option} knows no {name!r}; it knows {', '.join(known)}")
        _check_share(f"{option} {name}", share)
