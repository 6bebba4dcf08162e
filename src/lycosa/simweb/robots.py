"""What each host's robots.txt says, as text for the crawler and as rules for truth and audit.

The matcher here is written apart from the crawler's, on purpose: one proves the other.
Rules hit real folders, so a crawler that does not obey them is seen in the log.
"""

import re
from functools import lru_cache

import msgspec

from lycosa.simweb.draws import unit
from lycosa.simweb.layout import Layout
from lycosa.simweb.links import Linker
from lycosa.simweb.settings import ROBOTS_NUMBER
from lycosa.simweb.vocabulary import FOLDERS

CRAWL_DELAY_S = 2.0
SLOW_S = 5.0
ROBOTS_PURPOSE = 30
RULES_CACHE = 1024  # hosts
UNWELCOME = "badbot"  # the one agent that every host with rules shuts out


class HostRobots(msgspec.Struct, frozen=True):
    """One host's robots.txt: how it answers, and what it says."""

    status: int = 200
    slow: bool = False
    rules: tuple[tuple[bool, str], ...] = ()
    crawl_delay_s: float = 0.0
    sitemap: str = ""

    def text(self) -> str:
        lines = ["# a simulated host", "User-agent: *"]
        lines += [f"{'Allow' if allow else 'Disallow'}: {pattern}" for allow, pattern in self.rules] or ["Disallow:"]
        if self.crawl_delay_s:
            lines.append(f"Crawl-delay: {self.crawl_delay_s:g}")
        if self.rules:
            lines += ["", f"User-agent: {UNWELCOME}", "Disallow: /"]
        if self.sitemap:
            lines += ["", f"Sitemap: {self.sitemap}"]
        return "\n".join(lines) + "\n"

    def allows(self, path: str, agent: str = "") -> bool:
        """May `agent` ask for `path`? The longest pattern that matches decides, Allow on a tie."""
        if self.status >= 500:
            return path == "/robots.txt"
        if path == "/robots.txt":
            return True
        if self.rules and UNWELCOME in agent.lower():
            return False
        matching = [(len(pattern), allow) for allow, pattern in self.rules if _matcher(pattern).match(path)]
        return max(matching)[1] if matching else True


@lru_cache(4096)
def _matcher(pattern: str) -> "re.Pattern[str]":
    end = r"\Z" if pattern.endswith("$") else ""
    return re.compile(".*".join(map(re.escape, pattern.removesuffix("$").split("*"))) + end, re.DOTALL)


class Robots:
    """The robots.txt of every host of one web."""

    def __init__(self, layout: Layout, linker: Linker) -> None:
        self._layout, self._linker = layout, linker
        self._shares = layout.settings.robots_shares
        self.of = lru_cache(RULES_CACHE)(self._of)

    def _of(self, host: int) -> HostRobots:
        has = {name: self._has(host, ROBOTS_NUMBER[name], share) for name, share in self._shares.items()}
        if has.get("error"):
            return HostRobots(status=500)
        sitemap = f"{self._linker.origin(host)}/sitemap.xml" if has.get("sitemap") else ""
        if has.get("missing"):
            return HostRobots(status=404)
        return HostRobots(
            slow=bool(has.get("slow")),
            rules=self._rules(host) if has.get("rules") else (),
            crawl_delay_s=CRAWL_DELAY_S if has.get("delay") else 0.0,
            sitemap=sitemap,
        )

    def _has(self, host: int, number: int, share: float) -> bool:
        return unit(self._layout.draws.mix(host, number, ROBOTS_PURPOSE)) < share

    def _rules(self, host: int) -> tuple[tuple[bool, str], ...]:
        """Folders that are closed, an article in one of them that is open, and a folder name closed everywhere."""
        layout = self._layout
        x = layout.draws.mix(host, 99, ROBOTS_PURPOSE)
        rules = [(False, "/*.pdf$"), (False, "/search?")]
        folders = layout.folder_count(host)
        if folders > 1:
            closed = layout.folder(host, 1 + x % (folders - 1))
            rules.append((False, closed.path))
            if closed.articles:
                rules.append((True, closed.path + closed.name(1 + (x >> 20) % closed.articles)))
            rules.append((False, f"/*/{FOLDERS[(x >> 32) % len(FOLDERS)]}/"))
        return tuple(rules)
