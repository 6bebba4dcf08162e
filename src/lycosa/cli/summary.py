"""What a crawl came to: a summary for people, and the same as one JSON object.

Pure. The summary ends with commands to try next; all of them exist. Used by `crawl` at its end, and by `status`.
"""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from lycosa.cli.wording import count, counted, duration, folder_word, most_first, rate, reason, size
from lycosa.crawl import CrawlStats, Recrawl
from lycosa.settings import CrawlSettings

# The five reasons people ask for, and what the filters and the frontier call them; others are shown as they are.
GROUPS = {
    "out of scope": ("out-of-scope", "not-included", "excluded", "extension", "media-type", "filter"),
    "robots": ("robots",),
    "limit": ("limit", "depth", "pages-per-host"),
    "duplicate": ("duplicate", "parameter-without-effect"),
    "trap": ("trap", "path-pattern", "too-long", "too-deep", "repeated-segments", "too-many-redirects"),
}
_GROUP_OF = {name: group for group, names in GROUPS.items() for name in names}
NO_CONTACT = "no contact was given: --contact URL|EMAIL lets site owners reach you"
READERS = {"python": "Python analyser, not by the native page kernel"}
MOST_VISITS_A_DAY = 24  # of a page; see recrawl.plan


def summary(
    stats: CrawlStats,
    into: Path,
    *,
    used_up: str = "",
    left: str = "",
    budget: float | None = None,
    is_status: bool = False,
    recrawl: Recrawl | None = None,
    settings: CrawlSettings | None = None,
) -> str:
    """Several lines: what there is now, what failed and was skipped and why, what to look at next.

    `used_up` says which limit ended it, see `limit_used_up`; `left` which visits are left; `budget` is that of visits a
    day. With `is_status` it is what `lycosa status` prints, and does not advise to run that.
    """
    lines = [_headline(stats, into), *_running(stats), *_run(stats)]
    if stats.run_lost:
        lines.append(f"  {counted(stats.run_lost, 'record')} lost from the archive: fetched again")
    if stats.run_visits:
        lines.append(_visits(stats))
    if left_over := budget_left_over(budget, stats.pages):
        lines.append(f"  {left_over}")
    if stats.duplicates:
        lines.append(f"  {counted(stats.duplicates, 'duplicate')} of documents that were there already")
    if stats.followed_only:
        more = counted(stats.followed_only, "more page")
        lines.append(f"  {more} read for links alone (--keep, --keep-type)")
    if stats.left_out:
        lines.append(f"  not moved to the store: {left_out(stats)}")
    if stats.redirects or stats.sitemaps or stats.requisites or stats.external:
        lines.append(f"  {_no_pages(stats)}")
    if stats.failed:
        lines += _reasons("failed", {reason(name): many for name, many in stats.failed.items()})
    if stats.dropped:
        lines += _reasons("skipped", _grouped(stats.dropped), _details(stats.dropped))
    if stats.ignored:
        links = "link" if sum(stats.ignored.values()) == 1 else "links"
        lines += _reasons(f"{links} not followed", _grouped(stats.ignored), _details(stats.ignored))
    if used_up and (stats.queued or not stats.run_pages):
        queued = f"{count(stats.queued)} still queued; " if stats.queued else ""
        lines.append(f"  {queued}{used_up}")
    elif stats.queued and not stats.is_running:
        how = f"`lycosa crawl --into {folder_word(into)}`" if stats.run_visits or recrawl else "the same command"
        lines.append(f"  {count(stats.queued)} still queued: {how} continues")
    if left:
        lines.append(f"  {left}")
    if stats.kernel:
        lines.append(f"  pages read by the {READERS.get(stats.kernel, f'page kernel ({stats.kernel})')}")
    if is_status and stats.is_running and stats.is_paused:
        lines.append(f"  paused: `lycosa steer {folder_word(into)} resume` continues")
    elif stats.standing:
        lines.append(f"  {stats.standing}")
    if settings is not None and settings.contact is None and stats.run_requests and not is_status:
        lines.append(f"  {NO_CONTACT}")
    commands = _next_commands(stats, into, settings, recrawl=recrawl, is_status=is_status)
    width = max(len(command) for command, _ in commands)
    return "\n".join([*lines, "next:", *(f"  {command:<{width}}  {what}" for command, what in commands)]) + "\n"


def _next_commands(
    stats: CrawlStats, into: Path, settings: CrawlSettings | None, *, recrawl: Recrawl | None, is_status: bool
) -> list[tuple[str, str]]:
    """Commands to try, all of which exist, and what each of them does: reading what was kept comes first."""
    folder = folder_word(into)
    commands = []
    if stats.run_changed or (recrawl and stats.run_visits):
        commands.append((f"lycosa changes {folder}", "see what has changed"))
    elif recrawl and not (recrawl.everything or stats.run_visits):
        commands.append((f"lycosa recrawl {folder} --all", "nothing is due yet; this revisits every page now"))
    if stats.pages and (settings is None or settings.archive == "full"):
        commands.append((f"lycosa search {folder} WORDS", "find pages by their words"))
        commands.append((f"lycosa get URL --in {folder}", "read a page"))
    if not is_status:
        commands.append((f"lycosa status {folder}", "see what there is, and what is queued"))
    if stats.failed or stats.dropped or stats.ignored or not stats.pages:
        commands.append((f"lycosa why URL --in {folder}", "see why a URL failed or was skipped"))
    return commands or [(f"lycosa hosts {folder}", "see what each host has")]


def as_json(stats: CrawlStats, **more: object) -> bytes:
    """One JSON object, with `more` in it."""
    return msgspec.json.encode({**stats.as_facts(), **more})


def limit_reached(settings: CrawlSettings, stats: CrawlStats) -> str:
    """The limit at which the next run would end at once, by what the collection holds; empty if there is none."""
    limits = (("pages", settings.pages, stats.pages), ("bytes", settings.bytes, stats.bytes))
    for name, most, had in (*limits, ("time", settings.time_s, stats.seconds)):
        if most is not None and had >= most:
            return name
    return ""


def limit_used_up(settings: CrawlSettings, ended_by: str) -> str:
    """What to do after a limit that counts over all runs: the same command would end at once. Empty for other ends."""
    if ended_by == "time" and settings.time_s is not None and not settings.keep_fresh:
        time_s = settings.time_s
        spent = f"time of {f'{time_s:g} s' if time_s < 60 else duration(time_s)} is"
    elif ended_by == "pages" and settings.pages is not None:
        spent = f"limit of {counted(settings.pages, 'page')} is"
    elif ended_by == "bytes" and settings.bytes is not None:
        spent = f"limit of {size(settings.bytes)} is"
    else:
        return ""
    return f"its {spent} used up: a larger --{ended_by} continues"


def budget_left_over(budget: float | None, pages: int) -> str:
    """Why a budget of visits a day is not spent; empty for one that can be."""
    most = MOST_VISITS_A_DAY * pages
    if budget is None or not pages or budget <= most:
        return ""
    return (
        f"its budget of {count(int(budget))} visits a day is more than can be spent: a page is visited"
        f" at most once an hour, {count(most)} visits a day here"
    )


def visits_left(
    stats: CrawlStats, ended_by: str, *, keeps_fresh: bool, in_cluster: bool = False, command: str = "the same command"
) -> str:
    """What is left of the visits after Ctrl-C or --visits, and which `command` makes them, or what else ended it; empty
    for other ends."""
    if ended_by == "stopped":
        by = "`lycosa cluster stop`" if in_cluster else "`lycosa steer stop` or the live page"
        return f"stopped by {by}: the same command continues"
    if ended_by == "waiting":
        return "what is left must wait for more than 15 minutes, so the crawl has ended: with --wait it waits"
    if ended_by not in ("interrupted", "visits"):
        return ""
    if stats.revisiting:
        said = "interrupted: " if ended_by == "interrupted" else ""
        return f"{said}{counted(stats.revisiting, 'URL')} still to be visited, {command} continues"
    return "interrupted: the same command continues to keep it fresh" if keeps_fresh else ""


LEFT_OUT = {
    "media-type": "of other media types",
    "relevance": "not relevant enough",
    "copy": "the same as others",
}


def left_out(stats: CrawlStats) -> str:
    """`12 pages of other media types (3.4 MB), 2 pages the same as others (10 kB)`: what did not travel."""
    return ", ".join(
        f"{counted(many, 'page')} {LEFT_OUT.get(name, name)} ({size(stats.left_out_bytes[name])})"
        for name, many in most_first(stats.left_out)
    )


def _headline(stats: CrawlStats, into: Path) -> str:
    pages_per_s = stats.pages / stats.seconds if stats.seconds > 0 else 0.0
    spent = f"{duration(stats.seconds)} ({rate(pages_per_s)} pages/s)"
    kept = counted(stats.pages - stats.followed_only, "page")
    return f"{kept} kept in {into}; received {size(stats.bytes)} in {spent}"


def _running(stats: CrawlStats) -> list[str]:
    """How a crawl does that runs now."""
    if not stats.is_running:
        return []
    hosts = f"hosts {count(stats.hosts_active)} active {count(stats.hosts_waiting)} waiting"
    parts = [
        f"{rate(stats.pages_per_s)} pages/s",
        f"{count(stats.queued)} queued",
        f"{count(stats.in_flight)} in flight",
        f"{hosts} {count(stats.hosts_parked)} parked",
    ]
    if stats.retrying:
        parts.append(f"{count(stats.retrying)} to be retried")
    return [f"  running for {duration(stats.run_seconds)}: {', '.join(parts)}"]


def _run(stats: CrawlStats) -> list[str]:
    """Apart from the whole only if there were earlier runs; nothing where no run is known of."""
    is_all = stats.run_pages == stats.pages and stats.run_bytes == stats.bytes
    if is_all or not stats.run_seconds:
        return []
    of_run = f"{counted(stats.run_pages, 'page')}, {size(stats.run_bytes)} in {duration(stats.run_seconds)}"
    return [f"  this run: {of_run}"]


def _no_pages(stats: CrawlStats) -> str:
    """`246 redirects, 8 sitemaps, 90 requisites`: what was fetched and is no page."""
    found = (
        (stats.redirects, "redirect"),
        (stats.sitemaps, "sitemap"),
        (stats.requisites, "requisite"),
        (stats.external, "external link"),
    )
    return ", ".join(counted(many, thing) for many, thing in found if many)


def _visits(stats: CrawlStats) -> str:
    others = [name for name in ("redirects", "sitemaps") if getattr(stats, name)]
    what = counted(stats.run_visits, "URL") + (f" ({', '.join(['pages', *others])})" if others else "")
    if stats.has_only_silence:
        return f"  revisited {what}: no host answered"
    saved = f", {size(stats.run_saved_bytes)} saved" if stats.run_saved_bytes else ""
    told = f" ({count(stats.run_not_modified)} said so{saved})" if stats.run_not_modified else ""
    same = count(stats.run_visits - stats.run_changed)
    return f"  revisited {what}: {count(stats.run_changed)} changed, {same} did not{told}"


def _reasons(title: str, counts: Mapping[str, int], details: Mapping[str, str] | None = None) -> list[str]:
    """A line for the sum, and one for each reason, the most frequent first."""
    rows = most_first(counts)
    width = max((len(count(many)) for _, many in rows), default=0)
    lines = [f"  {count(sum(counts.values()))} {title}"]
    return lines + [f"    {count(many):>{width}} {name}{(details or {}).get(name, '')}" for name, many in rows]


def _grouped(dropped: Mapping[str, int]) -> dict[str, int]:
    groups: dict[str, int] = {}
    for name, many in dropped.items():
        group = _GROUP_OF.get(name, reason(name))
        groups[group] = groups.get(group, 0) + many
    return groups


def _details(dropped: Mapping[str, int]) -> dict[str, str]:
    """` (3 too deep, 1 too long)` for the groups in which there is more to say than their name."""
    details = {}
    for group, names in GROUPS.items():
        found = most_first({name: dropped.get(name, 0) for name in names})
        if [reason(name) for name, _ in found] != [group] and found:
            details[group] = " (" + ", ".join(f"{count(many)} {reason(name)}" for name, many in found) + ")"
    return details
