"""The rows of the hostile web: what each host does to a crawler, and what a crawler should make of it.

Each row is a host `NAME.hostile`. The table is the one source: `hostile_server` serves it, docs/hostile.md is printed
from it, and the tests hold a crawl against it. `front` is the outcome of the request for the front page as the request
log has it (a status, or the name of a failure; `-`: it is never asked for), `|` between outcomes that are all right.
`most` bounds the requests that the host gets in a crawl. Large documents are made when they are first asked for.
"""

from collections.abc import Callable, Mapping

import msgspec

from lycosa.simweb.hostile_acts import (
    CHUNKED,
    DOMAIN,
    GZIP,
    HTML,
    MISSING,
    NAMES,
    OK,
    OUTSIDE,
    TEXT,
    TRICKS,
    WARC,
    WORDS,
    XML,
    XXE,
    alternating,
    at_port,
    billion_laughs,
    brotli_bomb,
    chained_bomb,
    drips_body,
    few_tags,
    gzip_bomb,
    gzip_words,
    hop,
    links,
    made,
    many_cookies,
    many_links,
    million_links,
    png_bomb,
    redirect,
    reset,
    sitemap_index,
    ten_hosts,
    unclosed_formatting,
    with_sitemap,
    written,
    zstd_bomb,
)
from lycosa.simweb.raw import Act, RawConnection, drips, page, says


class HostileRow(msgspec.Struct, frozen=True):
    """One host. `acts` by path, with "*" for all other paths; robots.txt is missing unless it has an act.

    `tls` is the trouble of its certificate, `dns` that of its name.
    """

    name: str
    does: str
    right: str
    front: str
    acts: Mapping[str, Act] = {}
    most: int = 8
    tls: str = ""
    dns: str = ""

    def __reduce__(self) -> tuple[object, ...]:
        return hostile_row, (self.host,)  # other processes have the table, too

    @property
    def host(self) -> str:
        return f"{self.name}.{DOMAIN}"

    def act(self, path: str) -> Act:
        plain = path.partition("?")[0]
        default = MISSING if plain == "/robots.txt" else self.acts.get("*", MISSING)
        return self.acts.get(path) or self.acts.get(plain) or default


Row = HostileRow
CUT_DECODED = (
    "decoded up to 4 MB, or 200 times what was sent of it so far (2,000 times for br and zstd), and what was decoded "
    "is read; the bytes as sent are archived"
)
TOO_LONG = "given up at 256 KiB of header"
hang_up = RawConnection.hang_up


def bomb(name: str, does: str, right: str, coding: str, make: Callable[[], bytes]) -> Row:
    return Row(name, does, right, "200", {"/": made(make, f"{HTML}Content-Encoding: {coding}\r\n"), "*": WORDS}, 12)


def rule_of_stars() -> bytes:
    return b"User-agent: *\n" + (b"Disallow: /" + b"*a" * 900 + b"*b\n") * 200


def stray_cookies() -> str:
    names = ("hostile", ".hostile", "co.uk", "good-0.hostile", "com")
    return "".join(f"Set-Cookie: stray=1; Domain={name}; Path=/\r\n" for name in names)


# fmt: off
COMPRESSION = (
    bomb("gzip-bomb", "2 MB of gzip are 2 GB of NUL", CUT_DECODED, "gzip", gzip_bomb),
    bomb("gzip-words", "390 KB of gzip are 100 MB of paragraphs with links", CUT_DECODED, "gzip", gzip_words),
    bomb("br-bomb", "12 KB of br are 60 MB", CUT_DECODED, "br", brotli_bomb),
    bomb("zstd-bomb", "7 KB of zstd are 200 MB", CUT_DECODED, "zstd", zstd_bomb),
    bomb("chained-bomb", "gzip in gzip, 2 GB", "each layer is decoded as far as that", "gzip, gzip", chained_bomb),
    bomb("many-codings", "fifty content codings", "not decoded at all", ", ".join(["gzip"] * 50), gzip_bomb),
    Row("bomb-in-redirect", "a redirect whose body is the gzip bomb",
        "the redirect counts, its body is archived and not decoded", "302",
        {"/": made(gzip_bomb, GZIP + "Location: /end\r\n", status="302 Found"), "/end": WORDS}),
    Row("bomb-in-error", "an error whose body is the gzip bomb", "the page is missing; links are not looked for", "404",
        {"/": made(gzip_bomb, HTML + GZIP, status="404 Not Found")}),
    Row("bomb-in-robots", "robots.txt is the gzip bomb", "decoded up to 500 KiB, which hold no rule: all is allowed",
        "200", {"/robots.txt": made(gzip_bomb, TEXT + GZIP), "/": WORDS}),
)
BODIES = (
    Row("endless-body", "a body without end", "cut at `body_bytes`, kept as truncated", "200",
        {"/": drips(OK + b"\r\n", b"x" * 1_000_000, every_s=0)}),
    Row("lying-long", "announces a gigabyte, sends 4 bytes and hangs up", "a failure, tried again by the retry table",
        "reset", {"/": says(OK + b"Content-Length: 1000000000\r\n\r\npart", then=hang_up)}),
    Row("lying-short", "announces 4 bytes, sends a megabyte", "four bytes are read, the rest is no answer", "200",
        {"/": says(OK + b"Content-Length: 4\r\n\r\nbody" + b"HTTP/1.1 200 OK\r\n" * 60_000, then=hang_up)}),
    Row("one-byte-a-second", "a byte each second", "ended by `total_s`", "total-timeout", {"/": drips_body}),
    Row("silent", "accepts, and never answers", "ended by the clock of the first byte, or by `total_s`",
        "first-byte-timeout|total-timeout", {"/": says(b"", hangs=True)}),
    Row("one-byte-chunks", "millions of chunks of one byte", "cut after 100,000 chunks, kept as truncated", "200",
        {"/": drips(CHUNKED, b"1\r\nx\r\n" * 10_000, every_s=0.001)}),
    Row("drops-connections", "300 links to URLs that reset the connection",
        "after three in a row the host waits, longer each time", "200",
        {"/": links(*(f"/{n}" for n in range(300))), "*": reset}, 30),
)
HEADERS = (
    Row("endless-headers", "header fields without end", TOO_LONG, "headers-too-large",
        {"/": drips(OK, b"X-Flood: " + b"y" * 1_000 + b"\r\n", every_s=0.001)}),
    Row("slow-headers", "a header field a second", "ended by `total_s`", "total-timeout",
        {"/": drips(OK, b"X: y\r\n", every_s=1)}),
    Row("100000-headers", "100,000 header fields", TOO_LONG, "headers-too-large|protocol",
        {"/": says(OK + b"".join(b"X-%d: y\r\n" % n for n in range(100_000)) + b"\r\n", then=hang_up)}),
    Row("long-header", "a header line of 10 MB", TOO_LONG, "headers-too-large",
        {"/": drips(OK + b"X-Long: ", b"y" * 65_536, every_s=0.001)}),
    Row("endless-hints", "103 Early Hints without end", TOO_LONG, "headers-too-large",
        {"/": drips(b"", b"HTTP/1.1 103 Early Hints\r\nLink: </" + b"y" * 1_000 + b">\r\n\r\n", every_s=0.001)}),
    Row("nul-in-header", "a NUL in a header field", "refused: this is not HTTP", "protocol",
        {"/": says(OK + b"X-Nul: a\0b\r\nContent-Length: 2\r\n\r\nno")}),
    Row("cr-in-header", "a lone CR in a header field, with a second answer behind it",
        "one answer with one body; nothing after the CR becomes a header field", "200|protocol",
        {"/": says(OK + b"X-Cr: a\rLocation: http://" + OUTSIDE.encode() + b"/\rSet-Cookie: a=b\r\n"
                   b"Content-Length: 2\r\n\r\nok")}),
    Row("lf-in-header", "a lone LF in a header field, with a redirect behind it",
        "the line ends there, as RFC 9112 allows; what is behind it leads nowhere, since this is no redirect", "200",
        {"/": says(OK + b"X-Lf: a\nLocation: http://" + OUTSIDE.encode() + b"/\nContent-Length: 2\r\n\r\nok")}),
    Row("crlf-in-location", "a redirect whose Location has an escaped CR and LF", "they stay escaped", "302",
        {"/": page(b"", status="302 Found", fields="Location: /a%0d%0aX-Injected:%20yes\r\n"), "*": WORDS}),
)
FRAMING = (
    Row("two-lengths", "two Content-Length fields that differ", "refused", "protocol",
        {"/": says(OK + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", hangs=True)}),
    Row("length-and-chunked", "Content-Length and chunked together", "chunked counts, as RFC 9112 has it", "200",
        {"/": says(OK + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
                   then=hang_up)}),
    Row("broken-chunks", "a chunk without a size", "a failure; what came before is archived", "protocol",
        {"/": says(CHUNKED + b"4\r\npart\r\nZZ\r\n", hangs=True)}),
    Row("huge-chunk", "a chunk of 2^76 bytes", "refused", "protocol",
        {"/": says(CHUNKED + b"fffffffffffffffffff\r\n", hangs=True)}),
    Row("not-http", "the banner of an SSH server", "refused", "protocol",
        {"/": says(b"SSH-2.0-OpenSSH_9.0\r\n", hangs=True)}),
)
REDIRECTS = (
    Row("redirect-loop", "redirects to itself", "asked for once: a known URL is not queued again", "302",
        {"/": redirect("/")}),
    Row("thousand-hops", "a thousand redirects in a row", "followed a bounded number of hops", "302", {"*": hop}, 60),
    Row("redirect-to-file", "redirects to file:///etc/passwd", "the redirect is kept, its target is no URL to crawl",
        "302", {"/": redirect("file:///etc/passwd")}),
    Row("redirect-to-private", "redirects to a private address", "the target is refused by the address guard", "302",
        {"/": redirect(f"http://{OUTSIDE}/secret")}),
    Row("redirect-to-schemes", "redirects to gopher:, ftp:, data:, javascript:, dict:, and to nothing",
        "kept as redirects, and followed nowhere", "200",
        {"/": links(*(f"/{n}" for n in range(6))), "/0": redirect(f"gopher://{OUTSIDE}/"),
         "/1": redirect(f"ftp://{OUTSIDE}/"), "/2": redirect("data:text/html,<a href=/x>x</a>"),
         "/3": redirect("javascript:alert(1)"), "/4": redirect(f"dict://{OUTSIDE}:2628/"), "/5": redirect("")}, 12),
)
NAMING = (
    Row("rebinding", "the name has a private address from the second lookup on",
        "requests go to the address that was checked; the new one is refused when it is looked up", "200",
        {"/": links(*(f"/{n}" for n in range(5))), "*": WORDS}, dns="rebinding"),
    Row("mixed-addresses", "a good and a private address in one answer", "one bad address refuses them all",
        "address-refused", most=0, dns="mixed"),
    Row("thousand-addresses", "four thousand addresses in one answer", "one of them is chosen", "200", {"/": WORDS},
        dns="thousands"),
    Row("cname-loop", "two names that are aliases of each other", "there is no address to ask",
        "no-such-host|dns", most=0, dns="loop"),
    Row("wildcard", "every name below it exists and links to ten more",
        "hosts that bring nothing new are slowed with their domain; the crawl's own limits hold", "200",
        {"*": written(ten_hosts)}, 100_000),
)
ROBOTS = (
    Row("huge-robots", "a robots.txt without end", "read up to 500 KiB; the rules in there hold", "200",
        {"/robots.txt": drips(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nUser-agent: *\nDisallow: /no\n",
                              b"# words\n" * 8_000, every_s=0.001), "/": links("/no", "/yes"), "*": WORDS}, 4),
    Row("robots-wildcards", "rules such as /*a*a*a…*b, and URLs of many a",
        "matched in time that grows with rule and URL, not with their combinations", "200",
        {"/robots.txt": made(rule_of_stars, TEXT),
         "/": links("/" + "a" * 1_800, "/" + "a" * 1_000 + "c", "/" + "ab" * 900), "*": WORDS}, 12),
    Row("robots-alternate", "a robots.txt that forbids all, and allows all when asked again",
        "one answer holds for a day: nothing is fetched", "-", {"/robots.txt": alternating, "*": WORDS}, 1),
    Row("robots-loop", "a robots.txt that redirects to itself for ever",
        "after five hops it counts as missing, as RFC 9309 has it", "200|-",
        {"/robots.txt": redirect("/robots.txt?again"), "/": WORDS}, 12),
)
SITEMAPS = (
    Row("xxe", "entities that name a file and a URL", "entities are not expanded; what is listed plainly is read",
        "200", with_sitemap(written(lambda line: at_port(XXE, line).encode(), XML))),
    Row("billion-laughs", "entities in entities, 2 × 10^11 bytes", "entities are not expanded", "200",
        with_sitemap(made(billion_laughs, XML))),
    Row("sitemaps-in-sitemaps", "an index that lists two more, without end", "read to a bounded depth", "200",
        with_sitemap(written(sitemap_index, XML)) | {"*": written(sitemap_index, XML)}, 40),
    Row("sitemap-bomb", "a sitemap that is the gzip bomb",
        "decoded piece by piece, and given up at a line of 1 MB: it holds no URL", "200",
        with_sitemap(made(gzip_bomb, XML + GZIP))),
    Row("packed-sitemap-bomb", "a sitemap in a gzip file that is the gzip bomb", "as the one before", "200",
        with_sitemap(made(gzip_bomb, "Content-Type: application/gzip\r\n"))),
    Row("deep-sitemap", "100,000 elements in each other", "an empty sitemap", "200",
        with_sitemap(made(lambda: b"<urlset>" + b"<url>" * 100_000, XML))),
)
DOCUMENTS = (
    Row("deep-html", "100,000 elements in each other", "read up to a depth of 5,000", "200",
        {"/": made(lambda: b"<div>" * 100_000)}),
    Row("long-attribute", "an attribute of 5 MB", "read as it is", "200",
        {"/": made(lambda: b'<a href="/a" title="' + b"a" * 5_000_000 + b'">a</a>'), "*": WORDS}, 12),
    Row("many-links", "a page of 400,000 links", "the first 50,000 are queued, in steps; no other host waits for it",
        "200", {"/": made(many_links), "*": WORDS}, 200),
    Row("million-links", "a page of a million links, in gzip",
        "the first 50,000 are queued, in steps; no other host waits for it", "200",
        {"/": made(million_links, HTML + GZIP), "*": WORDS}, 200),
    Row("unclosed-formatting", "3,000 formatting elements that wrong end tags do not close",
        "read up to where the tree would explode", "200", {"/": made(unclosed_formatting)}),
    Row("few-tags", "700 formatting elements and 700 paragraphs, each of which opens all of them again",
        "read up to where the tree would explode", "200", {"/": made(few_tags)}),
    Row("open-brackets", "10 MB of `<`", "read up to `body_bytes`", "200", {"/": made(lambda: b"<" * 10_000_000)}),
    Row("nul-document", "10 MB of NUL", "a page without text", "200", {"/": made(lambda: bytes(10_000_000))}),
    Row("wrong-charset", "UTF-16 that is declared as ASCII, EBCDIC and nonsense",
        "read in some charset, with replacement characters", "200",
        {"/": page("<title>x</title><a href=/ü>ü</a>".encode("utf-16"),
                   fields="Content-Type: text/html; charset=ebcdic-\x01-no\r\n")}),
    Row("switching-charset", "the header, the mark and three meta elements name five charsets",
        "one is chosen: the mark of the bytes, then the header", "200",
        {"/": page(b"\xef\xbb\xbf<meta charset=utf-7><meta charset=shift_jis>"
                   b"<meta http-equiv=content-type content='text/html;charset=utf-32'>\xe4\xf6\x1b$B",
                   fields="Content-Type: text/html; charset=iso-2022-jp\r\n")}),
    Row("image-bomb", "a picture of 50,000 by 50,000 pixels in a kilobyte", "archived as it is, and never unpacked",
        "200", {"/": page(b"<img src=/bomb.png>", fields=HTML), "*": made(png_bomb, "Content-Type: image/png\r\n")}),
)
URLS = (
    Row("control-characters", "links with control characters",
        "removed or escaped as the URL standard has it; none in a request line", "200",
        {"/": links("/a\tb\nc", "/a\x01b", "/a%0d%0aHost:%20x", "/\x7f", "ht\ntp://control-characters.hostile/y"),
         "*": WORDS}, 12),
    Row("long-urls", "links of 3 KB and 100 KB", "dropped: too long", "200",
        {"/": links("/" + "x" * 3_000, "/" + "x" * 100_000)}),
    Row("idna-tricks", "hosts that look like others, hide addresses, or are no names",
        "each is a name of its own, an address under the guard, or no URL", "200", {"/": links(*TRICKS)}),
    Row("userinfo", "links with user:password@", "user and password are never sent", "200",
        {"/": links("http://user:secret@userinfo.hostile/in", f"http://good-0.hostile@{OUTSIDE}/"), "*": WORDS}, 12),
    Row("odd-names", "links such as ../../x, CON, a NUL and 300 letters",
        "URLs like others; exports write inside their folder", "200", {"/": links(*NAMES), "*": WORDS}, 40),
)
COOKIES = (
    Row("suffix-cookies", "cookies for public suffixes and for other sites", "refused; no other host is sent them",
        "200", {"/": page(b"<p>words", fields=HTML + stray_cookies())}),
    Row("many-cookies", "100,000 cookies on 25 pages", "a jar keeps some hundred a site; requests stay small", "200",
        {"*": many_cookies}, 40),
)
TLS = (
    Row("expired", "a certificate that has expired", "refused", "tls", most=0, tls="expired"),
    Row("wrong-host", "a certificate for another name", "refused", "tls", most=0, tls="wrong-host"),
    Row("self-signed", "a certificate of an unknown authority", "refused", "tls", most=0, tls="self-signed"),
)
STORAGE = (
    Row("warc-in-body", "a body that is a WARC record, and header fields that look like one",
        "stored as a body: the archive has one record for it", "200",
        {"/": page(WARC * 3, fields=HTML + "WARC-Type: request\r\nWARC-Target-URI: http://good-0.hostile/\r\n")}),
)
# fmt: on

GROUPS = {
    "Compression": COMPRESSION,
    "Bodies": BODIES,
    "Header fields": HEADERS,
    "Framing": FRAMING,
    "Redirects": REDIRECTS,
    "Names": NAMING,
    "Robots": ROBOTS,
    "Sitemaps": SITEMAPS,
    "Documents": DOCUMENTS,
    "URLs": URLS,
    "Cookies": COOKIES,
    "TLS": TLS,
    "Storage": STORAGE,
}
ROWS: tuple[HostileRow, ...] = tuple(row for group in GROUPS.values() for row in group)
_BY_NAME = {row.name: row for row in ROWS}


def hostile_row(host: str) -> HostileRow | None:
    """The row that a host belongs to."""
    return _BY_NAME.get(host.removesuffix(f".{DOMAIN}").rpartition(".")[2])


PAGE = """\
# The hostile web

A crawler reads input from everyone. `lycosa simweb hostile` serves a web of hosts that mean harm, on loopback, each
with one way to do it, so that a crawler can be held against all of them:

<!-- not run: serves until it is stopped; tests/simweb does it -->
```sh
lycosa simweb hostile --port 8800 --dns-port 8853 &
lycosa crawl http://gzip-bomb.hostile:8800/ --into out --dns 127.0.0.1:8853 --allow-private 127.66.0.0/16
```

What is right is stated beside each row: how the request for the front page ends, and how many requests the host gets in
a crawl at most. Every request ends within `total_s` (120 s by default). No request goes to an address that was not
allowed, whatever a redirect, a link, an entity or a name server says. `tests/simweb/test_hostile.py` crawls all rows
beside good hosts and holds the outcome against this table. `make bench NAME=hostile-web` measures each row, and all of
them at once: memory, the longest request, and the rate of the good hosts; [what it found](results/hostile-web.md) is
its own output. This page is made by `lycosa simweb hostile --markdown`.
"""


def hostile_page() -> str:
    """docs/hostile.md."""
    lines = [PAGE]
    for group, rows in GROUPS.items():
        lines.append(f"## {group}\n")
        lines.append("| host | what it does | right answer | front page | requests |\n|---|---|---|---|---|")
        for row in rows:
            front = " or ".join("never asked for" if end == "-" else end for end in row.front.split("|"))
            lines.append(f"| `{row.host}` | {row.does} | {row.right} | {front} | ≤ {row.most:,} |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"
