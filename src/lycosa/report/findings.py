"""Judges a site: a query for each rule turns the tables of a survey into findings.

Every row of `finding` is one page (or URL) with one thing that is wrong: `page` has it, `target` is the other URL that
it is about, `words` are a link's or a title's, `detail` says more. Chains of redirects and of canonical URLs are
followed first, step by step and with a limit. Nothing is compared with everything: all joins go by hashes. Called by
`report.making`.
"""

from collections.abc import Iterator

from lycosa.report.database import ReportDatabase
from lycosa.report.rules import DEEP_CLICKS, LARGE_BYTES, LONG_DESCRIPTION_CHARS, LONG_TITLE_CHARS, SLOW_MS
from lycosa.web import LinkKind, is_language_code

MOST_HOPS = 20  # of a chain of redirects; browsers give up here
MOST_CANONICALS = 10


_LINKS = (
    "link join page as t on t.id = link.target join page as s on s.file_num = link.source"
    " left join markup as m on m.id = s.id where s.state = 'page' and s.is_internal"
    # A canonical URL or an alternate that leads nowhere is told by rules of its own.
    f" and not (link.kind = {LinkKind.LINK:d} and (m.canonical_uid is t.uid"
    " or exists (select 1 from alternate as a where a.id = s.id and a.target = t.uid)))"
)
_CANONICAL = "good as p join page as t on t.uid = p.canonical_uid where p.is_elsewhere"
_LISTED = "listed join page as p on p.uid = listed.uid where p.is_internal"
# Rows that have a value in common with others, each with how many there are and the first of them: one sort, no join.
_SAME = (
    "select url, first, value, pages from (select id, url, {column} as value,"
    " first_value(url) over same as first, min(id) over same as first_id, count(*) over same as pages,"
    " min(digest) over same as least, max(digest) over same as most from {table} where {column} {wanted}"
    " window same as (partition by {column} order by id rows between unbounded preceding and unbounded following))"
    " where pages > 1 {having} order by first_id, id"
)
_DIFFERENT = "and least <> most"  # pages that are the same altogether are told by a rule of their own

# Name → the query that gives (page, target, words, detail). Rows keep the order of hosts and paths.
QUERIES = {
    "broken-start": "select url, '', '', reason from page where state = 'broken' and is_seed order by id",
    "broken-links": f"select s.url, t.url, words, t.reason from {_LINKS} and t.state = 'broken' and t.is_internal"
    " order by t.id, s.id",
    "broken-external-links": f"select s.url, t.url, words, t.reason from {_LINKS} and t.state = 'broken'"
    " and not t.is_internal order by t.id, s.id",
    "broken-requisites": "select s.url, t.url, '', t.reason from needs join page as t on t.uid = needs.target"
    " join page as s on s.id = needs.source where t.state = 'broken' and not exists"
    " (select 1 from link where link.target = t.id and link.source = s.file_num) order by t.id, s.id",
    "redirect-loops": "select url, '', '', path from redirect join page using (id) where is_loop and is_internal"
    " order by id",
    "redirects-to-broken": "select p.url, e.url, '', e.reason from redirect join page as p on p.id = redirect.id"
    " join page as e on e.id = end_id where p.is_internal and e.state = 'broken' order by p.id",
    "redirect-chains": "select p.url, '', '', path from redirect join page as p on p.id = redirect.id"
    " where hops > 1 and not is_loop and p.is_internal and not exists"
    " (select 1 from page as q where q.leads = p.uid and q.state = 'redirect') order by p.id",
    "redirected-links": "select s.url, t.url, words, t.status ||"
    " (select case when is_loop then ', never arrives' else ', ends at ' || coalesce(e.url, l.location) end"
    " from redirect as r join page as l on l.id = r.last_id left join page as e on e.id = r.end_id"
    " where r.id = t.id)"
    f" from {_LINKS} and t.state = 'redirect' and t.is_internal and link.kind <> {LinkKind.LINK:d} order by t.id, s.id",
    "orphans": "select url, '', '', case when exists (select 1 from listed where listed.uid = good.uid)"
    " then 'in a sitemap' when origin = 'redirect' then 'where a redirect leads'"
    " when origin in ('ancestor', 'series') then 'found by a guess' else 'known, not linked' end"
    " from good where links = 0 and not is_seed and is_document order by id",
    "deep-pages": "select url, '', '', depth || ' links' from good"
    f" where is_html and depth > {DEEP_CLICKS} order by id",
    "blocked-links": f"select s.url, t.url, words, '' from {_LINKS} and t.state = 'blocked' and t.is_internal"
    " order by t.id, s.id",
    "sitemap-blocked": f"select p.url, '', '', '' from {_LISTED} and p.state = 'blocked' order by p.id",
    "sitemap-broken": f"select p.url, '', '', p.reason from {_LISTED} and p.state = 'broken' order by p.id",
    "sitemap-redirects": f"select p.url, p.location, '', p.status from {_LISTED} and p.state = 'redirect'"
    " order by p.id",
    "sitemap-noindex": f"select p.url, '', '', '' from {_LISTED} and p.state = 'page' and p.noindex order by p.id",
    "sitemap-not-canonical": "select good.url, canonical, '', '' from listed join good on good.uid = listed.uid"
    " where is_elsewhere order by good.id",
    "canonical-broken": f"select p.url, t.url, '', t.reason from {_CANONICAL} and t.state = 'broken' order by p.id",
    "canonical-redirect": f"select p.url, t.url, '', t.status || ' to ' || t.location from {_CANONICAL}"
    " and t.state = 'redirect' order by p.id",
    "canonical-blocked": f"select p.url, t.url, '', '' from {_CANONICAL} and t.state = 'blocked' order by p.id",
    "canonical-noindex": f"select p.url, t.url, '', '' from {_CANONICAL} and t.state = 'page' and t.noindex"
    " order by p.id",
    "several-canonicals": "select url, '', '', replace(canonicals, char(10), ', ') from page join markup using (id)"
    " where canonicals is not null order by id",
    "noindex-canonical": "select url, canonical, '', '' from good where noindex and is_elsewhere order by id",
    "duplicate-pages": "select url, first, '', pages || ' URLs' from ("
    + _SAME.format(
        column="digest",
        table="good",
        wanted="is not null and status = 200 and not noindex and not is_elsewhere",
        having="",
    )
    + ")",
    "near-duplicates": "select p.url, f.url, '', '' from near join indexable as p on p.id = near.id"
    " join indexable as f on f.id = near.first order by near.first, p.id",
    "missing-titles": "select url, '', '', title_problem from indexable where title_problem in ('missing', 'empty')"
    " order by id",
    "duplicate-titles": "select url, '', value, pages || ' pages' from ("
    + _SAME.format(column="title", table="indexable", wanted="<> ''", having=_DIFFERENT)
    + ")",
    "long-titles": "select url, '', title, length(title) || ' characters' from indexable"
    f" where length(title) > {LONG_TITLE_CHARS} order by id",
    "missing-descriptions": "select url, '', '', description_problem from indexable"
    " where description_problem in ('missing', 'empty') order by id",
    "duplicate-descriptions": "select url, '', value, pages || ' pages' from ("
    + _SAME.format(column="description", table="indexable", wanted="<> ''", having=_DIFFERENT)
    + ")",
    "long-descriptions": "select url, '', description, length(description) || ' characters' from indexable"
    f" where length(description) > {LONG_DESCRIPTION_CHARS} order by id",
    "several-titles": "select url, '', '', case when title_problem <> 'several' then 'descriptions'"
    " when description_problem <> 'several' then 'titles' else 'titles and descriptions' end from good"
    " where is_read and (title_problem = 'several' or description_problem = 'several') order by id",
    "missing-h1": "select url, '', '', '' from indexable where is_read and h1 = 0 order by id",
    "several-h1": "select url, '', '', h1 || ' headings' from indexable where h1 > 1 order by id",
    "large-pages": "select url, '', '', printf('%.1f MB', size / 1000000.0) from good"
    f" where is_html and size > {LARGE_BYTES} order by size desc, id",
    "slow-pages": f"select url, '', '', printf('%.1f s', took / 1000.0) from good where took > {SLOW_MS}"
    " order by took desc, id",
    "images-without-alt": "select url, '', '', without_alt || case without_alt when 1 then ' image: ' else ' images: '"
    " end || replace(images, char(10), ', ') from page join markup using (id) where without_alt order by id",
    "hreflang-invalid": "select p.url, a.url, code, '' from alternate as a join good as p on p.id = a.id"
    " where not is_language(code) order by p.id, a.rowid",
    "hreflang-broken": "select p.url, t.url, code, case t.state when 'page' then 'noindex' when 'blocked'"
    " then 'blocked by robots.txt' when 'redirect' then 'redirects' else t.reason end from alternate as a"
    " join good as p on p.id = a.id join page as t on t.uid = a.target"
    " where t.id <> p.id and (t.state in ('broken', 'redirect', 'blocked') or (t.state = 'page' and t.noindex))"
    " order by p.id, a.rowid",
    "hreflang-no-return": "select p.url, t.url, code, '' from alternate as a join good as p on p.id = a.id"
    " join page as t on t.uid = a.target join markup as m on m.id = t.id where t.id <> p.id and t.state = 'page'"
    " and not exists (select 1 from alternate as b where b.id = t.id and b.target = p.uid) order by p.id, a.rowid",
    "hreflang-no-self": "select url, '', '', '' from good where id in (select id from alternate)"
    " and not exists (select 1 from alternate as a where a.id = good.id and a.target = good.uid) order by id",
}


def judge(database: ReportDatabase) -> None:
    """Fills the table of findings, rule by rule."""
    database.define("is_language", is_language_code)
    database.add("redirect", _redirects(database), 6)
    for name, query in QUERIES.items():
        database.execute(f"insert into finding select '{name}', * from ({query})")
    database.add("finding", _insecure(database), 5)
    database.add("finding", _canonical_chains(database), 5)
    database.index_findings()


def _insecure(database: ReportDatabase) -> Iterator[tuple[str, ...]]:
    query = "select url, insecure from page join markup using (id) where insecure_count order by id"
    for url, insecure in database.rows(query):
        yield from (("mixed-content", url, resource, "", "") for resource in insecure.split("\n"))


def _redirects(database: ReportDatabase) -> Iterator[tuple[object, ...]]:
    """Where each redirect ends: its hops, whether it never does, the page at its end and the last redirect before it,
    and the way."""
    step = "select id, uid, url, state, leads, location from page where uid = ?"
    starts = database.rows("select id, uid, url, leads, location from page where state = 'redirect'")
    for number, own, url, first, location in starts:
        path, seen, last, leads, written = [url], {own}, number, first, location
        end, is_loop = None, False
        while not is_loop:
            found = database.rows(step, (leads,)).fetchone()
            path.append(found[2] if found else written)
            if found is None or found[3] != "redirect":
                end = found[0] if found else None
                break
            is_loop = found[1] in seen or len(path) > MOST_HOPS
            seen.add(found[1])
            last, leads, written = found[0], found[4], found[5]
        yield number, len(path) - 1, is_loop, end, last, " → ".join(path)


def _canonical_chains(database: ReportDatabase) -> Iterator[tuple[str, ...]]:
    """Pages whose canonical URL names another one: in a circle that comes back to the page, or further on."""
    step = "select url, uid, canonical, canonical_uid from good where uid = ? and is_elsewhere"
    starts = database.rows(
        "select p.url, p.uid, p.canonical, p.canonical_uid from good as p join good as t on t.uid = p.canonical_uid"
        " where p.is_elsewhere and t.is_elsewhere order by p.id"
    )
    for url, own, first, first_uid in starts:
        path, seen, leads, written = [url], {own}, first_uid, first
        while len(path) <= MOST_CANONICALS:
            path.append(written)
            found = database.rows(step, (leads,)).fetchone()
            if found is None or leads in seen:
                break
            seen.add(leads)
            written, leads = found[2], found[3]
        if path[-1] == url:
            yield "canonical-loop", url, "", "", " → ".join(path)
        else:
            yield "canonical-chain", url, first, "", " → ".join(path)
