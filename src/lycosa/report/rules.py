"""The findings that a site report can have: their names, how bad they are, what they mean and what to do.

One table. `report.findings` has the query for each name, docs/report.md says the same in the same order; tests check
that none is missing. Pure data.
"""

from enum import StrEnum

import msgspec

from lycosa.errors import SettingsError

LONG_TITLE_CHARS, LONG_DESCRIPTION_CHARS = 70, 160  # search engines show about so many
LARGE_BYTES = 1_000_000  # of the document, content coding undone
SLOW_MS = 2_000
DEEP_CLICKS = 5  # from where the crawl began


class Severity(StrEnum):
    """How bad a finding is: visitors meet it, search engines do, or it is worth a look."""

    ERROR = "error"
    WARNING = "warning"
    NOTICE = "notice"


class Need(StrEnum):
    """What a rule is judged by, besides the state of the collection."""

    NOTHING = ""
    BODIES = "bodies"
    TIMES = "times"
    SITEMAPS = "sitemaps"
    CLUSTERS = "clusters"
    REQUISITES = "requisites"


class Rule(msgspec.Struct, frozen=True):
    """One kind of finding. `means` says what was found, `fix` what to do about it. `group` names the column by which
    its rows belong together, if there is one."""

    name: str
    title: str
    severity: Severity
    means: str
    fix: str
    group: str = ""
    needs: Need = Need.NOTHING


_E, _W, _N = Severity.ERROR, Severity.WARNING, Severity.NOTICE
_BODIES, _TIMES, _SITEMAPS = Need.BODIES, Need.TIMES, Need.SITEMAPS

RULES = (
    # links
    Rule(
        "broken-start", "URLs you asked for that failed", _E,
        "The crawl was told to begin here, and got an error or no answer.",
        "Check the address, and that the server answers it.",
    ),
    Rule(
        "broken-links", "Broken links", _E,
        "Pages link to a URL of this site that answers with an error, or not at all.",
        "Correct the link or remove it, or bring the target back.",
        "target",
    ),
    Rule(
        "broken-external-links", "Broken links to other sites", _W,
        "Pages link to a URL of another site that answered with an error, or not at all; crawl --external checks them.",
        "Link to where the content is now, or remove the link.",
        "target",
    ),
    Rule(
        "broken-requisites", "Broken images, style sheets and scripts", _E,
        "Pages or style sheets name an image, style sheet, script or font that answers with an error, or not at all.",
        "Correct the address or remove it, or bring the file back.",
        "target", Need.REQUISITES,
    ),
    Rule(
        "redirect-loops", "Redirects that never arrive", _E,
        "The redirect leads in a circle, or through more steps than anybody follows.",
        "Let it lead straight to a page.",
    ),
    Rule(
        "redirects-to-broken", "Redirects to broken URLs", _E,
        "The redirect ends at a URL that answers with an error, or not at all.",
        "Let it lead to a page that exists, or answer with 410 where there is none.",
        "target",
    ),
    Rule(
        "redirect-chains", "Redirect chains", _W,
        "Several redirects follow each other before a page comes.",
        "Let the first one lead straight to the last URL.",
    ),
    Rule(
        "redirected-links", "Links to redirects", _N,
        "Pages link to a URL of this site that redirects, which costs every visitor a request.",
        "Link to where the redirect ends.",
        "target",
    ),
    Rule(
        "orphans", "Orphans", _W,
        "The page is known, by a sitemap or otherwise, but no page that was read links to it.",
        "Link to it from a page that belongs with it, or remove it.",
    ),
    Rule(
        "deep-pages", "Deep pages", _N,
        f"The page is more than {DEEP_CLICKS} links away from where the crawl began.",
        "Link to it from pages nearer to the front.",
    ),
    # robots
    Rule(
        "blocked-links", "Links to URLs that robots.txt blocks", _N,
        "Pages link to a URL that robots.txt forbids to crawl, so nobody knows what is there.",
        "Allow it if it should be found; otherwise mark the links nofollow or leave them out.",
        "target",
    ),
    Rule(
        "sitemap-blocked", "In the sitemap, blocked by robots.txt", _W,
        "The sitemap asks for the URL to be crawled and robots.txt forbids it.",
        "Take it out of the sitemap, or allow it in robots.txt.",
        needs=_SITEMAPS,
    ),
    Rule(
        "sitemap-broken", "In the sitemap, broken", _E,
        "The sitemap names a URL that answers with an error, or not at all.",
        "Take it out of the sitemap, or bring the page back.",
        needs=_SITEMAPS,
    ),
    Rule(
        "sitemap-redirects", "In the sitemap, redirected", _W,
        "The sitemap names a URL that redirects.",
        "Name the URL where the redirect ends.",
        needs=_SITEMAPS,
    ),
    Rule(
        "sitemap-noindex", "In the sitemap, noindex", _W,
        "The sitemap asks for the page to be found and the page asks not to be (noindex).",
        "Take it out of the sitemap, or remove the noindex.",
        needs=_SITEMAPS,
    ),
    Rule(
        "sitemap-not-canonical", "In the sitemap, not canonical", _W,
        "The sitemap names a page whose canonical URL is another one.",
        "Name the canonical URL in the sitemap.",
        needs=_BODIES,
    ),
    # canonical URLs
    Rule(
        "canonical-broken", "Canonical URL broken", _E,
        "The canonical URL of the page answers with an error, or not at all.",
        "Name a URL that exists, mostly the page's own.",
        "target", _BODIES,
    ),
    Rule(
        "canonical-redirect", "Canonical URL redirects", _W,
        "The canonical URL of the page redirects.",
        "Name the URL where the redirect ends.",
        "target", _BODIES,
    ),
    Rule(
        "canonical-blocked", "Canonical URL blocked by robots.txt", _W,
        "robots.txt forbids to crawl the canonical URL of the page.",
        "Allow it, or name another one.",
        "target", _BODIES,
    ),
    Rule(
        "canonical-noindex", "Canonical URL noindex", _W,
        "The canonical URL of the page asks not to be found (noindex), so neither of the two is.",
        "Remove the noindex there, or the canonical URL here.",
        "target", _BODIES,
    ),
    Rule(
        "canonical-loop", "Canonical URLs in a circle", _E,
        "The page names another one as canonical, which in the end names the page itself.",
        "Decide for one of them and name it on all.",
        "", _BODIES,
    ),
    Rule(
        "canonical-chain", "Canonical URL of a canonical URL", _W,
        "The page names another one as canonical, which names a third.",
        "Name the last one on all of them.",
        "target", _BODIES,
    ),
    Rule(
        "several-canonicals", "Several canonical URLs", _W,
        "The page or its headers name more than one canonical URL, so none of them counts.",
        "Leave one.",
        "", _BODIES,
    ),
    Rule(
        "noindex-canonical", "Both noindex and another canonical URL", _W,
        "The page asks not to be found (noindex) and names another page as canonical; these contradict each other.",
        "Keep the canonical URL for copies, noindex for what nobody should find.",
        "target", _BODIES,
    ),
    # copies
    Rule(
        "duplicate-pages", "Identical pages", _W,
        "The very same document is at several URLs, and no canonical URL says which one counts.",
        "Redirect to one of them, or name it as canonical on all.",
        "target",
    ),
    Rule(
        "near-duplicates", "Nearly identical pages", _N,
        "The main texts of these pages are nearly the same, and no canonical URL says which one counts.",
        "Join them, tell them apart, or name one as canonical.",
        "target", Need.CLUSTERS,
    ),
    # titles, descriptions, headings
    Rule(
        "missing-titles", "Missing titles", _W,
        "The page has no title, or an empty one.",
        "Give it a title that says what is on it.",
        needs=_BODIES,
    ),
    Rule(
        "duplicate-titles", "The same title on different pages", _W,
        "Different pages have the same title, so that they cannot be told apart in results and tabs.",
        "Let each title say what is on its page only.",
        "words",
    ),
    Rule(
        "long-titles", "Long titles", _N,
        f"The title has more than {LONG_TITLE_CHARS} characters; results show about so many.",
        "Say the most important first, and shorten the rest.",
    ),
    Rule(
        "missing-descriptions", "Missing descriptions", _N,
        "The page has no description, or an empty one, so results show whatever they find.",
        "Describe the page in a sentence or two.",
        needs=_BODIES,
    ),
    Rule(
        "duplicate-descriptions", "The same description on different pages", _N,
        "Different pages have the same description.",
        "Describe each page by itself.",
        "words", _BODIES,
    ),
    Rule(
        "long-descriptions", "Long descriptions", _N,
        f"The description has more than {LONG_DESCRIPTION_CHARS} characters; results show about so many.",
        "Shorten it.",
        needs=_BODIES,
    ),
    Rule(
        "several-titles", "Several titles or descriptions in one page", _N,
        "The head of the page has more than one title, or more than one description.",
        "Leave one of each.",
        needs=_BODIES,
    ),
    Rule(
        "missing-h1", "No main heading", _N,
        "The page has no h1.",
        "Give it one heading that says what it is about.",
        needs=_BODIES,
    ),
    Rule(
        "several-h1", "Several main headings", _N,
        "The page has more than one h1.",
        "Keep one, and make the others h2.",
        needs=_BODIES,
    ),
    # weight, speed, safety, access
    Rule(
        "large-pages", "Large pages", _W,
        f"The HTML of the page has more than {LARGE_BYTES // 1_000_000} MB.",
        "Split it, or load what is not seen at first later.",
    ),
    Rule(
        "slow-pages", "Slow pages", _W,
        f"The page took longer than {SLOW_MS // 1_000} seconds to come.",
        "Look at what the server does for it; a cache often helps.",
        needs=_TIMES,
    ),
    Rule(
        "mixed-content", "Mixed content", _E,
        "A page over https loads resources over http, which browsers block or warn of.",
        "Load them over https.",
        "target", _BODIES,
    ),
    Rule(
        "images-without-alt", "Images without an alternative text", _N,
        "Images have no alt attribute, so that whoever cannot see them does not know what they show.",
        "Describe them in alt; write alt=\"\" for decoration.",
        needs=_BODIES,
    ),
    # languages
    Rule(
        "hreflang-invalid", "Invalid language codes", _W,
        "A hreflang is neither x-default nor a language, with or without a script and a country.",
        "Write codes such as en, en-GB or zh-Hant.",
        "words", _BODIES,
    ),
    Rule(
        "hreflang-broken", "Alternates that are not there", _W,
        "A hreflang leads to a URL that is broken, redirects, is blocked by robots.txt or is noindex.",
        "Name the URL of the page itself, or take the alternate out.",
        "target", _BODIES,
    ),
    Rule(
        "hreflang-no-return", "Alternates that do not link back", _W,
        "The page names another one as its alternate, which does not name it in return, so neither counts.",
        "Name all alternates on all of them.",
        "target", _BODIES,
    ),
    Rule(
        "hreflang-no-self", "Alternates without the page itself", _N,
        "The page names alternates in other languages and not itself.",
        "Add the page with its own language.",
        needs=_BODIES,
    ),
)  # fmt: skip
BY_NAME = {rule.name: rule for rule in RULES}
_ORDER = (_E, _W, _N)


def at_or_above(level: Severity) -> frozenset[str]:
    """The names of the rules that are as bad as this, or worse."""
    return frozenset(rule.name for rule in RULES if _ORDER.index(rule.severity) <= _ORDER.index(level))


def read_names(text: str) -> frozenset[str]:
    """The rules that a list of names and levels means, such as `error,orphans`; raises SettingsError for others."""
    found: set[str] = set()
    for word in filter(None, (part.strip().lower() for part in text.split(","))):
        if word in set(Severity):
            found |= at_or_above(Severity(word))
        elif word in BY_NAME:
            found.add(word)
        else:
            raise SettingsError(
                f"there is no finding {word!r}: give {', '.join(Severity)}, or names such as broken-links,orphans"
                " (docs/report.md has all)"
            )
    return frozenset(found)
