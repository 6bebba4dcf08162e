"""The pages of a replay that are its own: the start page, the frame around a replayed page, the list of captures, and
what is said where there is nothing to show. All text from a collection is escaped. Pure."""

from collections.abc import Iterable, Sequence
from html import escape
from urllib.parse import quote

from lycosa.crawl import CrawlStats
from lycosa.inspect import StoredPage
from lycosa.replay.captures import LATEST, ListedUrl, UrlList, moment_of
from lycosa.web import format_date

CAPTURES_SHOWN = 1_000
ASK = "URL, host or words in a URL"
SANDBOX = "allow-popups allow-popups-to-escape-sandbox allow-top-navigation-by-user-activation"


def start_page(prefix: str, name: str, stats: CrawlStats, query: str, found: UrlList) -> str:
    """The way in: what the collection holds, a search, and URLs."""
    hosts = f"{stats.hosts:,} host" + ("" if stats.hosts == 1 else "s")
    pages = f"{stats.pages:,} page" + ("" if stats.pages == 1 else "s")
    lines = [f'<h1>{escape(name)}</h1><p class="soft">{pages} of {hosts}, as they were archived</p>']
    lines.append(
        f'<form action="{prefix}" role="search"><input name="q" value="{escape(query)}" autofocus spellcheck="false" '
        f'aria-label="{ASK}" placeholder="{ASK}"><button>Find</button></form>'
    )
    if found.urls:
        lines.append(_table(prefix, found.urls))
    elif not found.after:
        nothing = f"No archived URL has {escape(query)!r} in it." if query else "Nothing is archived yet."
        lines.append(f'<p class="note">{nothing}</p>')
    if found.after:
        more = f"{prefix}?q={quote(query)}&after={quote(found.after, safe='')}"
        lines.append(f'<p><a href="{escape(more)}">More</a></p>')
    return _page(prefix, f"{name} – archive", "".join(lines))


def view_page(prefix: str, captures: Sequence[StoredPage], number: int, moment: str, *, is_shown: bool) -> str:
    """The frame around a page: which URL, when it was captured, and its other versions."""
    page = captures[number]
    own = moment_of(page)
    parts = [
        f'<a href="{prefix}">Archive</a><span class="address" title="{escape(page.url)}">{escape(page.url)}</span>'
    ]
    if number:
        parts.append(f'<a href="{_address(prefix, "view", captures[number - 1])}" rel="prev">← earlier</a>')
    parts.append(f'<span class="when">{format_date(page.row.fetched_s)}</span>')
    if number + 1 < len(captures):
        parts.append(f'<a href="{_address(prefix, "view", captures[number + 1])}" rel="next">later →</a>')
    versions = f"version {number + 1} of {len(captures)}" if len(captures) > 1 else "one version"
    parts.append(f'<a href="{escape(f"{prefix}captures/{page.url}")}">{versions}</a>')
    parts += [f'<span class="remark">{remark}</span>' for remark in _remarks(prefix, page, moment)]
    banner = f'<header class="banner">{"".join(parts)}</header>'
    if is_shown:
        place = escape(f"{prefix}page/{moment if moment != LATEST else own}/{page.url}")
        rest = f'<iframe data-page="{place}" sandbox="{SANDBOX}" title="the archived page"></iframe>'
        rest += f'<script src="{prefix}replay.js"></script>'
    else:
        what = escape(page.content_type or "of an unknown type")
        save = _address(prefix, "save", page)
        rest = (
            f'<main><p class="note">This document ({what}, {page.sent_bytes:,} bytes) is not shown here. '
            f'<a href="{save}">Save it</a></p></main>'
        )
    title = page.title or page.url
    return _page(prefix, f"{title} – {own[:4]}-{own[4:6]}-{own[6:8]}", banner + rest, body_class="view")


def _remarks(prefix: str, page: StoredPage, moment: str) -> Iterable[str]:
    if not 200 <= page.status < 300:
        yield f"The server answered with status {page.status}."
    if page.noarchive:
        yield "The page asks not to be offered to others as a copy (noarchive)."
    for link in page.links if page.is_current and page.content_type.endswith("html") else ():
        if link.kind == "refresh" and link.url != page.url:
            yield f'It leads on to <a href="{escape(f"{prefix}view/{moment}/{link.url}")}">{escape(link.url)}</a>.'


def captures_page(prefix: str, url: str, captures: Sequence[StoredPage]) -> str:
    """Every capture of a URL, the newest first."""
    rows = "".join(
        f'<tr><td><a href="{_address(prefix, "view", page)}">{format_date(page.row.fetched_s)}</a></td>'
        f'<td class="fact">{page.status}</td><td class="fact">{escape(page.content_type)}</td>'
        f'<td class="fact">{page.sent_bytes:,} bytes</td><td class="fact">{escape(page.digest[5:13])}</td></tr>'
        for page in captures[: -CAPTURES_SHOWN - 1 : -1]
    )
    head = "<tr><th>captured</th><th>status</th><th>type</th><th>size</th><th>digest</th></tr>"
    left = len(captures) - CAPTURES_SHOWN
    more = f'<p class="soft">and {left:,} older ones</p>' if left > 0 else ""
    many = f"{len(captures):,} capture" + ("" if len(captures) == 1 else "s")
    return _page(
        prefix,
        f"Captures of {url}",
        f'<a href="{prefix}">Archive</a><h1>{escape(url)}</h1><p class="soft">{many}</p>'
        f'<div class="panel"><table>{head}{rows}</table></div>{more}',
    )


def absent_page(prefix: str, url: str, says: Sequence[str], near: Sequence[ListedUrl]) -> str:
    """What is said where there is no capture of a URL."""
    lines = [f'<a href="{prefix}">Archive</a><h1>Not in this collection</h1><p>{escape(url)}</p>']
    if says:
        lines.append(f'<p class="note">{"<br>".join(map(escape, says))}</p>')
    if near:
        lines.append(f"<h2>Archived near it</h2>{_table(prefix, near)}")
    return _page(prefix, "Not in this collection", "".join(lines))


def message_page(prefix: str, title: str, words: str) -> str:
    """A sentence, for what went wrong."""
    link = f'<a href="{prefix}">Archive</a>' if prefix else ""
    return _page(prefix, title, f'{link}<h1>{escape(title)}</h1><p class="note">{escape(words)}</p>')


def _table(prefix: str, urls: Sequence[ListedUrl]) -> str:
    rows = "".join(
        f'<tr><td><a href="{escape(f"{prefix}view/{LATEST}/{each.url}")}">{escape(each.url)}</a>'
        f"{_title(each)}</td>"
        f'<td class="fact">{each.row.status} {escape(each.row.essence)}</td>'
        f'<td class="fact"><a href="{escape(f"{prefix}captures/{each.url}")}">'
        f"{format_date(each.row.fetched_s)}</a></td></tr>"
        for each in urls
    )
    return f'<div class="panel"><table><tr><th>URL</th><th>answer</th><th>captured</th></tr>{rows}</table></div>'


def _title(each: ListedUrl) -> str:
    words = f"leads to {each.row.location}" if each.row.location else each.row.title
    return f'<span class="soft">{escape(words[:200])}</span>' if words else ""


def _address(prefix: str, kind: str, page: StoredPage) -> str:
    return escape(f"{prefix}{kind}/{moment_of(page)}/{page.url}")


def _page(prefix: str, title: str, body: str, *, body_class: str = "") -> str:
    style = f'<link rel="stylesheet" href="{prefix}style.css">' if prefix else ""
    inside = body if body_class else f"<main>{body}</main>"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{escape(title)}</title>{style}</head><body class="{body_class}">{inside}</body></html>\n'
    )
