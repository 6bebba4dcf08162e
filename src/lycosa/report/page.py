"""The report as one page of HTML: it loads nothing, can be read without its script, and prints.

All text from the site is escaped, addresses are links only where they are http or https, and a policy in the page lets
no script run but its own, by its digest. Long lists are shown in part: the table and the JSON have all of them. Style
and script are in the two files beside this one.

The plots are drawings in SVG without a library, in the colours of the page. Every one is an image with a title and a
text that says all its values, and shows them as text as well.
"""

from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files

from lycosa.report.compare import ReportComparison
from lycosa.report.making import Bar, FindingRow, FindingSummary, SiteReport
from lycosa.report.rules import Severity
from lycosa.version import __version__
from lycosa.web import format_date

ROWS_SHOWN, GROUPS_SHOWN, GROUP_ROWS_SHOWN = 300, 100, 20  # of one finding
CHANGES_SHOWN, PAGES_SHOWN = 50, 200  # of one finding in a comparison; of pages that came or went
TEXT_CHARS = 300
WIDTH, ROW, COLUMN_HEIGHT = 460, 22, 130  # pixels: of a plot, of a row of a bar chart, of the longest column
LABEL_CHARS, MOST_COLUMNS = 26, 14  # of a plot
NAMES = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTICE: "notice"}


@cache
def _beside(name: str) -> str:
    return (files("lycosa.report") / name).read_text(encoding="utf-8")


def html_pieces(report: SiteReport, comparison: ReportComparison | None = None) -> Iterator[str]:
    """The page, piece by piece."""
    yield from _head(report)
    yield '<main id="main">'
    yield from _overview(report)
    if comparison is not None:
        yield from _comparison(comparison)
    yield from _contents(report)
    yield from _plots(report)
    yield from _findings(report)
    yield from _nothing_found(report)
    yield "</main>"
    made = f"Made {format_date(report.made_s)} by Lycosa {__version__}"
    yield f"<footer>{made} of the collection {_text(str(report.path))}.</footer>"
    yield f"<script>{_beside('page.js')}</script></body></html>\n"


def page_policy() -> str:
    """The content security policy of the page: it loads nothing and runs its own script alone."""
    digest = b64encode(sha256(_beside("page.js").encode()).digest()).decode()
    allowed = f"style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    return f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"


def _head(report: SiteReport) -> Iterator[str]:
    survey = report.survey
    when = f"{format_date(survey.first_s)} to {format_date(survey.last_s)}" if survey.pages else "never"
    yield (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{page_policy()}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer">'
        f"<title>Site report: {_text(report.name)}</title><style>{_beside('style.css')}</style></head><body>"
        f'<header><h1>Site report: {_text(report.name)}</h1><div class="soft">fetched {when}</div></header>'
    )


def _overview(report: SiteReport) -> Iterator[str]:
    yield '<div class="cards">' + _card("pages read", report.survey.pages, "")
    for severity, word in NAMES.items():
        yield _card(_plural(report.count(severity), word), report.count(severity), severity.value)
    yield "</div>"
    if report.remarks:
        items = "".join(f"<li>{_text(remark, most=2_000)}</li>" for remark in report.remarks)
        yield f'<ul class="remarks">{items}</ul>'


def _contents(report: SiteReport) -> Iterator[str]:
    shown = [each for each in _by_severity(report) if each.rows]
    if not shown and report.survey.pages:
        yield '<p class="clean">Nothing was found that a visitor or a search engine would trip over.</p>'
    if not shown:
        return
    yield '<h2>What was found</h2><div class="panel"><table><thead><tr><th></th><th>finding</th>'
    yield '<th class="number">pages</th><th class="number">findings</th></tr></thead><tbody>'
    for each in shown:
        yield (
            f'<tr><td class="mark">{_badge(each.rule.severity)}</td><td><a href="#{each.rule.name}">'
            f'{_text(each.rule.title)}</a></td><td class="number">{each.pages:,}</td>'
            f'<td class="number">{each.rows:,}</td></tr>'
        )
    yield "</tbody></table></div>"


def _card(words: str, count: int, kind: str) -> str:
    return f'<div class="card {kind if count else "good" if kind else ""}"><b>{count:,}</b>{words}</div>'


def _badge(severity: Severity) -> str:
    return f'<span class="badge {severity}">{severity}</span>'


def _by_severity(report: SiteReport) -> list[FindingSummary]:
    order = list(Severity)
    return sorted(report.findings, key=lambda each: order.index(each.rule.severity))


def _plots(report: SiteReport) -> Iterator[str]:
    plots = report.plots()
    if not report.survey.pages:
        return
    yield '<h2>The site in pictures</h2><div class="plots">'
    yield _figure(
        "Answers by status", bar_chart("status", "URLs by status", plots["status"], _status_classes(plots["status"]))
    )
    yield _figure("Pages by folder", bar_chart("folder", "Pages by folder", plots["folder"]))
    yield _figure("Links away from the first page", column_chart("depth", "Pages by depth", folded(plots["depth"])))
    yield _figure("Size of the HTML", column_chart("size", "Pages by size", plots["size"]))
    if plots["time"]:
        yield _figure("Response time", column_chart("time", "Pages by time", plots["time"]))
    yield "</div>"


def _figure(caption: str, drawing: str) -> str:
    return f"<figure><figcaption>{caption}</figcaption>{drawing}</figure>"


def _status_classes(bars: Iterable[Bar]) -> list[str]:
    return [f"s{bar.name[0]}" if bar.name[0] in "2345" else "s0" for bar in bars]


def _findings(report: SiteReport) -> Iterator[str]:
    shown = [each for each in _by_severity(report) if each.rows]
    if not shown:
        return
    yield '<h2>In detail</h2><div class="tools" hidden>'
    words = "Show only what has these words"
    yield f'<input type="search" placeholder="{words}" aria-label="{words}">'
    for severity, word in NAMES.items():
        yield f'<button type="button" data-level="{severity}" aria-pressed="true">{word}s</button>'
    yield '<button type="button" data-open>Open all</button></div>'
    for each in shown:
        rule = each.rule
        pages = f"{each.pages:,} {_plural(each.pages, 'page')}"
        count = pages if each.pages == each.rows else f"{each.rows:,} on {pages}"
        yield (
            f'<details id="{rule.name}" data-severity="{rule.severity}"><summary>{_badge(rule.severity)}'
            f'<h3>{_text(rule.title)}</h3><span class="count">{count}</span></summary><div class="inside">'
            f"<p>{_text(rule.means)} <b>{_text(rule.fix)}</b></p>"
        )
        yield from _grouped(report, each) if rule.group else _listed(report, each)
        yield "</div></details>"


def _listed(report: SiteReport, each: FindingSummary) -> Iterator[str]:
    rows = list(report.rows(each.rule.name, ROWS_SHOWN))
    yield from _table(rows, has_target=any(row.target for row in rows), has_words=any(row.words for row in rows))
    yield _more(each.rows - len(rows), "finding")


def _grouped(report: SiteReport, each: FindingSummary) -> Iterator[str]:
    """One block for each target, or for the words that pages share."""
    name, by = each.rule.name, each.rule.group
    shown = groups = 0
    for value, count in report.groups(name, GROUPS_SHOWN):
        rows = report.group_rows(name, value, GROUP_ROWS_SHOWN)
        groups, shown = groups + 1, shown + count
        about = {row.detail for row in rows}
        detail = about.pop() if len(about) == 1 else ""
        title = _link(value) if by == "target" else f"“{_text(value)}”"
        said = " · ".join(filter(None, (_text(detail), f"{count:,} {_plural(count, 'page')}")))
        yield f'<div class="group"><p>{title} <span class="soft">{said}</span></p>'
        yield from _table(
            rows,
            has_target=by != "target" and any(row.target for row in rows),
            has_words=by != "words" and any(row.words for row in rows),
            has_detail=not detail,
            has_head=False,
        )
        yield _more(count - len(rows), "page") + "</div>"
    yield _more(each.rows - shown, "finding")


def _table(
    rows: list[FindingRow], *, has_target: bool, has_words: bool, has_detail: bool = True, has_head: bool = True
) -> Iterator[str]:
    has_detail = has_detail and any(row.detail for row in rows)
    names = ["page"] + ["leads to"] * has_target + ["words"] * has_words + ["detail"] * has_detail
    yield "<table>"
    if has_head and len(names) > 1:
        yield f"<thead><tr>{''.join(f'<th>{name}</th>' for name in names)}</tr></thead>"
    yield "<tbody>"
    for row in rows:
        cells = f"<td>{_link(row.page)}</td>"
        cells += f"<td>{_link(row.target)}</td>" if has_target else ""
        cells += f'<td class="words">{f"“{_text(row.words)}”" if row.words else ""}</td>' if has_words else ""
        cells += f'<td class="detail">{_text(row.detail, most=2 * TEXT_CHARS)}</td>' if has_detail else ""
        yield f"<tr data-row>{cells}</tr>"
    yield "</tbody></table>"


def _more(count: int, thing: str) -> str:
    if count <= 0:
        return ""
    return f'<p class="soft">… and {count:,} more {_plural(count, thing)}: the CSV and the JSON have all of them.</p>'


def _nothing_found(report: SiteReport) -> Iterator[str]:
    clean = [each.rule.title for each in report.findings if not each.rows and not each.unchecked]
    if clean and report.survey.pages:
        yield f'<details><summary><h3>Checked, and nothing found</h3><span class="count">{len(clean)}</span></summary>'
        titles = "".join(f"<li>{_text(title)}</li>" for title in clean)
        yield f'<div class="inside"><ul class="none">{titles}</ul></div></details>'


# comparison


def _comparison(comparison: ReportComparison) -> Iterator[str]:
    older = comparison.older
    yield (
        f'<h2>Compared with {format_date(older.survey.last_s)}</h2><p class="soft">{_text(str(older.path))}: '
        f"{older.survey.pages:,} {_plural(older.survey.pages, 'page')} then, {comparison.newer.survey.pages:,} now; "
        f"{comparison.came:,} came, {comparison.went:,} went.</p>"
    )
    moved = [change for change in comparison.changes if change.has_changed]
    if moved:
        yield '<div class="panel"><table><thead><tr><th></th><th>finding</th>'
        yield "".join(f'<th class="number">{name}</th>' for name in ("before", "now", "new", "fixed", "page gone"))
        yield "<th></th></tr></thead><tbody>"
        for change in sorted(moved, key=lambda change: list(Severity).index(change.rule.severity)):
            numbers = (change.before, change.now, change.new, change.fixed, change.gone)
            cells = "".join(f'<td class="number">{number:,}</td>' for number in numbers)
            yield (
                f'<tr><td class="mark">{_badge(change.rule.severity)}</td><td>{_text(change.rule.title)}</td>{cells}'
                f'<td class="verdict {change.verdict.split()[0]}">{change.verdict}</td></tr>'
            )
        yield "</tbody></table></div>"
    same = len(comparison.changes) - len(moved)
    if same:
        yield f'<p class="soft">{same} {"other" if moved else ""} {_plural(same, "finding")} as before.</p>'
    elif not moved:
        yield '<p class="clean">Nothing was found, then or now.</p>'
    yield from _changed(comparison)
    for title, urls, count in (
        ("Pages that came", comparison.pages_came(PAGES_SHOWN), comparison.came),
        ("Pages that went", comparison.pages_went(PAGES_SHOWN), comparison.went),
    ):
        if count:
            yield f'<details><summary><h3>{title}</h3><span class="count">{count:,}</span></summary>'
            yield f'<div class="inside"><ul class="plain">{"".join(f"<li>{_link(url)}</li>" for url in urls)}</ul>'
            yield f"{_more(count - PAGES_SHOWN, 'page')}</div></details>"


def _changed(comparison: ReportComparison) -> Iterator[str]:
    """What is new and what is fixed, by finding."""
    for title, attribute in (("New findings", "new"), ("Fixed findings", "fixed")):
        changes = [change for change in comparison.changes if getattr(change, attribute)]
        if not changes:
            continue
        total = sum(getattr(change, attribute) for change in changes)
        yield f'<details><summary><h3>{title}</h3><span class="count">{total:,}</span></summary><div class="inside">'
        for change in changes:
            rows = list(getattr(comparison, attribute)(change.rule.name, CHANGES_SHOWN))
            yield f'<div class="group"><p>{_text(change.rule.title)}</p>'
            yield from _table(
                rows,
                has_target=any(row.target for row in rows),
                has_words=any(row.words for row in rows),
                has_head=False,
            )
            yield _more(getattr(change, attribute) - len(rows), "finding") + "</div>"
        yield "</div></details>"


# text


def _text(text: str, most: int = TEXT_CHARS) -> str:
    """Text as text: escaped, without control characters, and apart from its neighbours where it runs from the right."""
    shown = "".join(character if character.isprintable() else "\ufffd" for character in text[:most])
    marked = escape(shown) + ("…" if len(text) > most else "")
    return marked if shown.isascii() else f"<bdi>{marked}</bdi>"


def _link(url: str) -> str:
    """An address, as a link where it is one of the web."""
    if not url.startswith(("http://", "https://")):
        return _text(url)
    return f'<a href="{escape(url)}" rel="noopener noreferrer nofollow">{_text(url)}</a>'


def _plural(count: int, thing: str) -> str:
    return thing if count == 1 else f"{thing}s"


def bar_chart(name: str, title: str, bars: Sequence[Bar], classes: Sequence[str] = ()) -> str:
    """Rows: for names. `classes` are those of the bars, which give them their colours."""
    largest = max((bar.count for bar in bars), default=0) or 1
    label = min(LABEL_CHARS, max((len(bar.name) for bar in bars), default=0)) * 7 + 12
    room = WIDTH - label - 78
    parts = []
    for place, bar in enumerate(bars):
        y, width = place * ROW, max(1.5, room * bar.count / largest)
        kind = classes[place] if classes else "bar"
        parts.append(
            f'<text class="label" x="{label - 8}" y="{y + 15}" text-anchor="end">{escape(shorten(bar.name))}</text>'
            f'<rect class="{kind}" x="{label}" y="{y + 3}" width="{width:.1f}" height="{ROW - 7}" rx="2"/>'
            f'<text class="value" x="{label + width + 6:.1f}" y="{y + 15}">{bar.count:,}</text>'
        )
    return _drawing(name, title, bars, len(bars) * ROW + 4, parts)


def column_chart(name: str, title: str, bars: Sequence[Bar]) -> str:
    """Columns: for what has an order."""
    largest = max((bar.count for bar in bars), default=0) or 1
    step = min(64.0, WIDTH / max(1, len(bars)))
    left = (WIDTH - step * len(bars)) / 2
    parts = [f'<line class="axis" x1="0" x2="{WIDTH}" y1="{COLUMN_HEIGHT + 18}" y2="{COLUMN_HEIGHT + 18}"/>']
    for place, bar in enumerate(bars):
        height = max(1.5, COLUMN_HEIGHT * bar.count / largest) if bar.count else 0.0
        x, middle = left + place * step, left + (place + 0.5) * step
        parts.append(
            f'<rect class="bar" x="{x + 4:.1f}" y="{18 + COLUMN_HEIGHT - height:.1f}" width="{step - 8:.1f}"'
            f' height="{height:.1f}" rx="2"/>'
            f'<text class="value" x="{middle:.1f}" y="{12 + COLUMN_HEIGHT - height:.1f}" text-anchor="middle">'
            f"{compact(bar.count)}</text>"
            f'<text class="label small" x="{middle:.1f}" y="{COLUMN_HEIGHT + 33}" text-anchor="middle">'
            f"{escape(bar.name)}</text>"
        )
    return _drawing(name, title, bars, COLUMN_HEIGHT + 42, parts)


def folded(bars: Sequence[Bar]) -> list[Bar]:
    """No more columns than can be read: what is beyond goes into the last one."""
    if len(bars) <= MOST_COLUMNS:
        return list(bars)
    kept = list(bars[: MOST_COLUMNS - 1])
    return [*kept, Bar(f"{bars[MOST_COLUMNS - 1].name}+", sum(bar.count for bar in bars[MOST_COLUMNS - 1 :]))]


def compact(count: int) -> str:
    """`12`, `3.4k`, `1.2M`: short enough for a column."""
    if count < 10_000:
        return f"{count:,}"
    return f"{count / 1_000:.3g}k" if count < 1_000_000 else f"{count / 1_000_000:.3g}M"


def shorten(text: str) -> str:
    return text if len(text) <= LABEL_CHARS else text[: LABEL_CHARS - 1] + "…"


def _drawing(name: str, title: str, bars: Sequence[Bar], height: int, parts: Sequence[str]) -> str:
    values = "; ".join(f"{bar.name}: {bar.count:,}" for bar in bars) or "nothing"
    return (
        f'<svg role="img" viewBox="0 0 {WIDTH} {height}" aria-labelledby="{name}-title {name}-values">'
        f'<title id="{name}-title">{escape(title)}</title><desc id="{name}-values">{escape(values)}</desc>'
        f"{''.join(parts)}</svg>"
    )
