"""The rows of the hostile web: what each host does to a crawler, and what a crawler should make of it.

Each row is a host `NAME.hostile`. The table is the one source: `hostile_server` serves it, docs/hostile.md is printed
from it, and the tests hold a crawl against it. `front` is the outcome of the request for the front page as the request
log has it (a status, or the name of a failure; `-`: it is never asked for), `|` between outcomes that are all right.
`most` bounds the requests that the host gets in a crawl. Large documents are made when they are first asked for.
"""

import asyncio
from collections.abc import Callable, Mapping
from functools import cache

import msgspec

from lycosa.simweb.hostile_documents import (
    NAMES,
    OUTSIDE,
    TRICKS,
    WARC,
    XXE,
    billion_laughs,
    brotli_bomb,
    chained_bomb,
    gzip_bomb,
    gzip_words,
    many_links,
    png_bomb,
    unclosed_formatting,
    zstd_bomb,
)  # fmt: skip
from lycosa.simweb.raw import Act, RawConnection, drips, page, page_bytes, says

DOMAIN = "hostile"
HTML = "Content-Type: text/html\r\n"
XML = "Content-Type: application/xml\r\n"
TEXT = "Content-Type: text/plain\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
MISSING = page(b"", status="404 Not Found")


class HostileRow(msgspec.Struct, frozen=True, kw_only=True):
    """One host. `acts` by path, with "*" for all other paths; robots.txt is missing unless it has an act.

    `names` are further hosts of the row, `tls` the trouble of its certificate, `dns` that of its name.
    """

    name: str
    group: str
    does: str
    right: str
    front: str = "200"
    most: int = 8
    acts: Mapping[str, Act] = {}
    tls: str = ""
    dns: str = ""

    @property
    def host(self) -> str:
        return f"{self.name}.{DOMAIN}"

    def act(self, path: str) -> Act:
        plain = path.partition("?")[0]
        default = MISSING if plain == "/robots.txt" else self.acts.get("*", MISSING)
        return self.acts.get(path) or self.acts.get(plain) or default


# documents


def made(make: Callable[[], bytes], fields: str = HTML, *, status: str = "200 OK") -> Act:
    """A page whose body is made when it is first asked for."""
    once = cache(make)

    async def act(line: RawConnection) -> None:
        await line.say(page_bytes(once(), fields=fields, status=status))

    return act


def written(make: Callable[[RawConnection], bytes], fields: str = HTML) -> Act:
    """A page that depends on the request."""

    async def act(line: RawConnection) -> None:
        await line.say(page_bytes(make(line), fields=fields))

    return act


def at_port(text: str, line: RawConnection) -> str:
    """`text` with the port of the connection in URLs of hosts of this web."""
    for host in (f".{DOMAIN}", OUTSIDE):
        text = text.replace(f"{host}/", f"{host}:{line.port}/")
    return text


def links(*urls: str) -> Act:
    text = "".join(f'<a href="{url}">x</a>\n' for url in urls)
    return written(lambda line: at_port(text, line).encode("utf-8", "surrogatepass"))


def redirect(to: str) -> Act:
    async def act(line: RawConnection) -> None:
        await line.say(page_bytes(b"", status="302 Found", fields=f"Location: {at_port(to, line)}\r\n"))

    return act


WORDS = page(b"<p>words", fields=HTML)


def _sitemap_index(line: RawConnection) -> bytes:
    base = f"http://{line.host}{line.path.partition('.')[0]}"
    listed = "".join(f"<sitemap><loc>{base}{number}.xml</loc></sitemap>" for number in (1, 2))
    return f"<sitemapindex>{listed}</sitemapindex>".encode()


def _sitemap_row(name: str, does: str, right: str, sitemap: Act, *, most: int = 8) -> HostileRow:
    robots = written(lambda line: f"Sitemap: http://{line.host}/map.xml\n".encode(), TEXT)
    acts = {"/robots.txt": robots, "/map.xml": sitemap, "/": WORDS}
    return HostileRow(name=name, group="Sitemaps", does=does, right=right, most=most, acts=acts)


async def _hop(line: RawConnection) -> None:
    number = int(line.path.strip("/") or 0)
    await redirect(f"/{number + 1}" if number < 1_000 else "/end")(line)


async def _alternating(line: RawConnection) -> None:
    body = b"User-agent: *\nDisallow: /\n" if line.turn % 2 else b"User-agent: *\nAllow: /\n"
    await line.say(page_bytes(body, fields=TEXT))


async def _drips_body(line: RawConnection) -> None:
    await line.say(OK + b"Content-Length: 100000\r\n\r\n")
    while True:
        await line.say(b"x")
        await asyncio.sleep(1)


def _wildcard(line: RawConnection) -> bytes:
    number = int(digits) if (digits := line.host.partition(".")[0].lstrip("w")).isdigit() else 0
    return "".join(f'<a href="http://w{10 * number + n}.wildcard.hostile/">x</a>' for n in range(1, 11)).encode()


def _cookies(line: RawConnection) -> bytes:
    return "".join(f"<a href=/{n}>x</a>" for n in range(25)).encode()


async def _many_cookies(line: RawConnection) -> None:
    fields = "".join(f"Set-Cookie: c{line.path[1:]}_{n}=x\r\n" for n in range(4_000))
    await line.say(page_bytes(_cookies(line), fields=HTML + fields))


async def _reset(line: RawConnection) -> None:
    line.reset()


def _bomb(name: str, does: str, right: str, coding: str, make: Callable[[], bytes]) -> HostileRow:
    acts = {"/": made(make, f"{HTML}Content-Encoding: {coding}\r\n")}
    return HostileRow(name=name, group="Compression", does=does, right=right, acts=acts, most=12)


def _raw(
    name: str, group: str, does: str, right: str, front: str, act: Act, most: int = 8, others: Act = MISSING
) -> HostileRow:
    return HostileRow(
        name=name, group=group, does=does, right=right, front=front, acts={"/": act, "*": others}, most=most
    )


CUT_DECODED = "decoded up to the cap (20 MB), and what was decoded is read; the bytes as sent are archived"
PROTOCOL = "protocol"
GZIP = "Content-Encoding: gzip\r\n"

ROWS: tuple[HostileRow, ...] = (
    # compression
    _bomb("gzip-bomb", "2 MB of gzip are 2 GB of NUL", CUT_DECODED, "gzip", gzip_bomb),
    _bomb("gzip-words", "770 KB of gzip are 100 MB of paragraphs with links", CUT_DECODED, "gzip", gzip_words),
    _bomb("br-bomb", "12 KB of br are 60 MB", CUT_DECODED, "br", brotli_bomb),
    _bomb("zstd-bomb", "7 KB of zstd are 200 MB", CUT_DECODED, "zstd", zstd_bomb),
    _bomb("chained-bomb", "gzip in gzip, 2 GB", "each layer is decoded up to the cap", "gzip, gzip", chained_bomb),
    _bomb("many-codings", "fifty content codings", "not decoded at all", ", ".join(["gzip"] * 50), gzip_bomb),
    HostileRow(
        name="bomb-in-redirect",
        group="Compression",
        does="a redirect whose body is the gzip bomb",
        front="302",
        right="the redirect counts, its body is archived and not decoded",
        most=8,
        acts={
            "/": made(gzip_bomb, GZIP + "Location: /end\r\n", status="302 Found"),
            "/end": page(b"<p>end", fields=HTML),
        },
    ),
    HostileRow(
        name="bomb-in-error",
        group="Compression",
        does="an error whose body is the gzip bomb",
        front="404",
        right="the page is missing; links are not looked for",
        acts={"/": made(gzip_bomb, HTML + GZIP, status="404 Not Found")},
    ),
    HostileRow(
        name="bomb-in-robots",
        group="Compression",
        does="robots.txt is the gzip bomb",
        right="decoded up to 500 KiB, which hold no rule: all is allowed",
        acts={"/robots.txt": made(gzip_bomb, TEXT + GZIP), "/": WORDS},
    ),
    # bodies
    _raw(
        "endless-body",
        "Bodies",
        "a body without end",
        "cut at `body_bytes`, kept as truncated",
        "200",
        drips(OK + b"\r\n", b"x" * 1_000_000, every_s=0),
    ),
    _raw(
        "lying-long",
        "Bodies",
        "announces a gigabyte, sends 4 bytes and hangs up",
        "a failure, tried again by the retry table",
        "reset",
        says(OK + b"Content-Length: 1000000000\r\n\r\npart", then=RawConnection.hang_up),
    ),
    _raw(
        "lying-short",
        "Bodies",
        "announces 4 bytes, sends a megabyte",
        "four bytes are read, the rest is no answer",
        "200",
        says(OK + b"Content-Length: 4\r\n\r\nbody" + b"HTTP/1.1 200 OK\r\n" * 60_000, then=RawConnection.hang_up),
    ),
    _raw("one-byte-a-second", "Bodies", "a byte each second", "ended by `total_s`", "total-timeout", _drips_body),
    _raw(
        "silent",
        "Bodies",
        "accepts, and never answers",
        "ended by the clock of the first byte, or by `total_s`",
        "first-byte-timeout|total-timeout",
        says(b"", hangs=True),
    ),
    _raw(
        "one-byte-chunks",
        "Bodies",
        "millions of chunks of one byte",
        "cut after 100,000 chunks, kept as truncated",
        "200",
        drips(CHUNKED, b"1\r\nx\r\n" * 10_000, every_s=0.001),
    ),
    _raw(
        "drops-connections",
        "Bodies",
        "300 links to URLs that reset the connection",
        "after three in a row the host waits, longer each time",
        "200",
        links(*(f"/{n}" for n in range(300))),
        most=30,
        others=_reset,
    ),
    # header fields and framing
    _raw(
        "endless-headers",
        "Header fields",
        "header fields without end",
        "given up at 256 KiB of header",
        "headers-too-large",
        drips(OK, b"X-Flood: " + b"y" * 1_000 + b"\r\n", every_s=0.001),
    ),
    _raw(
        "slow-headers",
        "Header fields",
        "a header field a second",
        "ended by `total_s`",
        "total-timeout",
        drips(OK, b"X: y\r\n", every_s=1),
    ),
    _raw(
        "100000-headers",
        "Header fields",
        "100,000 header fields",
        "given up at 256 KiB of header",
        "headers-too-large|protocol",
        says(OK + b"".join(b"X-%d: y\r\n" % n for n in range(100_000)) + b"\r\n", then=RawConnection.hang_up),
    ),
    _raw(
        "long-header",
        "Header fields",
        "a header line of 10 MB",
        "given up at 256 KiB of header",
        "headers-too-large",
        drips(OK + b"X-Long: ", b"y" * 65_536, every_s=0.001),
    ),
    _raw(
        "endless-hints",
        "Header fields",
        "103 Early Hints without end",
        "given up at 256 KiB of header",
        "headers-too-large",
        drips(b"", b"HTTP/1.1 103 Early Hints\r\nLink: </" + b"y" * 1_000 + b">\r\n\r\n", every_s=0.001),
    ),
    _raw(
        "nul-in-header",
        "Header fields",
        "a NUL in a header field",
        "refused: this is not HTTP",
        PROTOCOL,
        says(OK + b"X-Nul: a\0b\r\nContent-Length: 2\r\n\r\nno"),
    ),
    _raw(
        "cr-in-header",
        "Header fields",
        "a lone CR in a header field, with a second answer behind it",
        "one answer with one body; nothing after the CR becomes a header field",
        "200|protocol",
        says(
            OK + b"X-Cr: a\rLocation: http://" + OUTSIDE.encode() + b"/\rSet-Cookie: a=b\r\nContent-Length: 2\r\n\r\nok"
        ),
    ),
    _raw(
        "lf-in-location",
        "Header fields",
        "a redirect whose Location has CR and LF, escaped and real",
        "the escaped ones stay escaped",
        "302",
        page(b"", status="302 Found", fields="Location: /a%0d%0aX-Injected:%20yes\r\n"),
    ),
    _raw(
        "two-lengths",
        "Framing",
        "two Content-Length fields that differ",
        "refused",
        PROTOCOL,
        says(OK + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", hangs=True),
    ),
    _raw(
        "length-and-chunked",
        "Framing",
        "Content-Length and chunked together",
        "chunked counts, as RFC 9112 has it",
        "200",
        says(
            OK + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            then=RawConnection.hang_up,
        ),
    ),
    _raw(
        "broken-chunks",
        "Framing",
        "a chunk without a size",
        "a failure; what came before is archived",
        PROTOCOL,
        says(CHUNKED + b"4\r\npart\r\nZZ\r\n", hangs=True),
    ),
    _raw(
        "huge-chunk",
        "Framing",
        "a chunk of 2^76 bytes",
        "refused",
        PROTOCOL,
        says(CHUNKED + b"fffffffffffffffffff\r\n", hangs=True),
    ),
    _raw(
        "not-http",
        "Framing",
        "the banner of an SSH server",
        "refused",
        PROTOCOL,
        says(b"SSH-2.0-OpenSSH_9.0\r\n", hangs=True),
    ),
    # redirects
    _raw(
        "redirect-loop",
        "Redirects",
        "redirects to itself",
        "asked for once: a known URL is not queued again",
        "302",
        redirect("/"),
    ),
    HostileRow(
        name="thousand-hops",
        group="Redirects",
        does="a thousand redirects in a row",
        front="302",
        most=60,
        right="followed a bounded number of hops",
        acts={"*": _hop},
    ),
    _raw(
        "redirect-to-file",
        "Redirects",
        "redirects to file:///etc/passwd",
        "the redirect is kept, its target is no URL to crawl",
        "302",
        redirect("file:///etc/passwd"),
    ),
    _raw(
        "redirect-to-private",
        "Redirects",
        "redirects to a private address",
        "the target is refused by the address guard",
        "302",
        redirect(f"http://{OUTSIDE}/secret"),
    ),
    HostileRow(
        name="redirect-to-schemes",
        group="Redirects",
        does="redirects to gopher:, ftp:, data:, javascript:, dict:, and to nothing",
        right="kept as redirects, and followed nowhere",
        most=12,
        acts={
            "/": links(*(f"/{n}" for n in range(6))),
            "/0": redirect(f"gopher://{OUTSIDE}/"),
            "/1": redirect(f"ftp://{OUTSIDE}/"),
            "/2": redirect("data:text/html,<a href=/x>x</a>"),
            "/3": redirect("javascript:alert(1)"),
            "/4": redirect(f"dict://{OUTSIDE}:2628/"),
            "/5": redirect(""),
        },
    ),
    # names
    HostileRow(
        name="rebinding",
        group="Names",
        does="the name has a private address from the second lookup on",
        dns="rebinding",
        right="requests go to the address that was checked; the new one is refused when it is looked up",
        acts={"/": links(*(f"/{n}" for n in range(5))), "*": WORDS},
    ),
    HostileRow(
        name="mixed-addresses",
        group="Names",
        does="a good and a private address in one answer",
        dns="mixed",
        front="address-refused",
        right="one bad address refuses them all",
        most=0,
    ),
    HostileRow(
        name="thousand-addresses",
        group="Names",
        does="four thousand addresses in one answer",
        dns="thousands",
        front="200",
        right="one of them is chosen",
        acts={"/": WORDS},
    ),
    HostileRow(
        name="cname-loop",
        group="Names",
        does="two names that are aliases of each other",
        dns="loop",
        front="no-such-host",
        right="there is no such host",
        most=0,
    ),
    HostileRow(
        name="wildcard",
        group="Names",
        does="every name below it exists and links to ten more",
        right="hosts that bring nothing new are slowed with their domain; the crawl's own limits hold",
        most=100_000,
        acts={"*": written(_wildcard)},
    ),
    # robots.txt
    HostileRow(
        name="huge-robots",
        group="Robots",
        does="a robots.txt without end",
        right="read up to 500 KiB; the rules in there hold",
        front="200",
        most=4,
        acts={
            "/robots.txt": drips(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nUser-agent: *\nDisallow: /no\n",
                b"# words\n" * 8_000,
                every_s=0.001,
            ),
            "/": links("/no", "/yes"),
            "*": WORDS,
        },
    ),
    HostileRow(
        name="robots-wildcards",
        group="Robots",
        does="rules such as /*a*a*a…*b, and URLs of many a",
        right="matched in time that grows with rule and URL, not with their combinations",
        most=12,
        acts={
            "/robots.txt": made(lambda: b"User-agent: *\n" + (b"Disallow: /" + b"*a" * 900 + b"*b\n") * 200, TEXT),
            "/": links("/" + "a" * 1_800, "/" + "a" * 1_000 + "c", "/" + "ab" * 900),
            "*": WORDS,
        },
    ),
    HostileRow(
        name="robots-alternate",
        group="Robots",
        does="a robots.txt that forbids all, and allows all when asked again",
        front="-",
        most=1,
        right="one answer holds for a day: nothing is fetched",
        acts={"/robots.txt": _alternating, "*": WORDS},
    ),
    HostileRow(
        name="robots-loop",
        group="Robots",
        does="a robots.txt that redirects to itself for ever",
        most=12,
        front="200|-",
        right="after five hops it counts as missing, as RFC 9309 has it",
        acts={"/robots.txt": redirect("/robots.txt?again"), "/": WORDS},
    ),
    # sitemaps
    _sitemap_row(
        "xxe",
        "entities that name a file and a URL",
        "entities are not expanded; what is listed plainly is read",
        written(lambda line: at_port(XXE, line).encode(), XML),
    ),
    _sitemap_row(
        "billion-laughs",
        "entities in entities, 2 × 10^11 bytes",
        "entities are not expanded",
        made(billion_laughs, XML),
    ),
    _sitemap_row(
        "sitemaps-in-sitemaps",
        "an index that lists two more, without end",
        "read to a bounded depth",
        written(_sitemap_index, XML),
        most=40,
    ),
    _sitemap_row(
        "sitemap-bomb",
        "a sitemap that is the gzip bomb",
        "decoded up to 50 MB, which hold no URL",
        made(gzip_bomb, XML + GZIP),
    ),
    _sitemap_row(
        "deep-sitemap",
        "100,000 elements in each other",
        "an empty sitemap",
        made(lambda: b"<urlset>" + b"<url>" * 100_000, XML),
    ),
    # documents
    _raw(
        "deep-html",
        "Documents",
        "100,000 elements in each other",
        "read up to a depth of 5,000",
        "200",
        made(lambda: b"<div>" * 100_000),
    ),
    _raw(
        "long-attribute",
        "Documents",
        "an attribute of 5 MB",
        "read as it is",
        "200",
        made(lambda: b'<a href="/a" title="' + b"a" * 5_000_000 + b'">a</a>'),
        most=12,
        others=WORDS,
    ),
    _raw(
        "many-links",
        "Documents",
        "a page of 400,000 links",
        "all are queued, in steps; no other host waits for it",
        "200",
        made(many_links),
        most=200,
        others=WORDS,
    ),
    _raw(
        "unclosed-formatting",
        "Documents",
        "3,000 formatting elements that wrong end tags do not close",
        "read up to where the tree would explode",
        "200",
        made(unclosed_formatting),
    ),
    _raw(
        "open-brackets", "Documents", "10 MB of `<`", "read up to `body_bytes`", "200", made(lambda: b"<" * 10_000_000)
    ),
    _raw("nul-document", "Documents", "10 MB of NUL", "a page without text", "200", made(lambda: bytes(10_000_000))),
    _raw(
        "wrong-charset",
        "Documents",
        "UTF-16 that is declared as ASCII, EBCDIC and nonsense",
        "read in some charset, with replacement characters",
        "200",
        page(
            "<title>x</title><a href=/ü>ü</a>".encode("utf-16"),
            fields="Content-Type: text/html; charset=ebcdic-\x01-no\r\n",
        ),
    ),
    _raw(
        "switching-charset",
        "Documents",
        "the header, the mark and three meta elements name five charsets",
        "one is chosen: the mark of the bytes, then the header",
        "200",
        page(
            b"\xef\xbb\xbf<meta charset=utf-7><meta charset=shift_jis>"
            b"<meta http-equiv=content-type content='text/html;charset=utf-32'>\xe4\xf6\x1b$B",
            fields="Content-Type: text/html; charset=iso-2022-jp\r\n",
        ),
    ),
    _raw(
        "image-bomb",
        "Documents",
        "a picture of 50,000 by 50,000 pixels in a kilobyte",
        "archived as it is, and never unpacked",
        "200",
        page(b"<img src=/bomb.png>", fields=HTML),
        others=made(png_bomb, "Content-Type: image/png\r\n"),
    ),
    # URLs
    _raw(
        "control-characters",
        "URLs",
        "links with control characters",
        "removed or escaped as the URL standard has it; none in a request line",
        "200",
        links("/a\tb\nc", "/a\x01b", "/a%0d%0aHost:%20x", "/\x7f", "ht\ntp://control-characters.hostile/y"),
        most=12,
        others=WORDS,
    ),
    _raw(
        "long-urls",
        "URLs",
        "links of 3 KB and 100 KB",
        "dropped: too long",
        "200",
        links("/" + "x" * 3_000, "/" + "x" * 100_000),
    ),
    _raw(
        "idna-tricks",
        "URLs",
        "hosts that look like others, hide addresses, or are no names",
        "each is a name of its own, an address under the guard, or no URL",
        "200",
        links(*TRICKS),
    ),
    _raw(
        "userinfo",
        "URLs",
        "links with user:password@",
        "user and password are never sent",
        "200",
        links("http://user:secret@userinfo.hostile/in", f"http://good-0.hostile@{OUTSIDE}/"),
        most=12,
        others=WORDS,
    ),
    _raw(
        "odd-names",
        "URLs",
        "links such as ../../x, CON, a NUL and 300 letters",
        "URLs like others; exports write inside their folder",
        "200",
        links(*NAMES),
        most=40,
        others=WORDS,
    ),
    # cookies
    _raw(
        "suffix-cookies",
        "Cookies",
        "cookies for public suffixes and for other sites",
        "refused; no other host is sent them",
        "200",
        page(
            b"<p>words",
            fields=HTML
            + "".join(
                f"Set-Cookie: stray=1; Domain={name}; Path=/\r\n"
                for name in ("hostile", ".hostile", "co.uk", "good-0.hostile", "com")
            ),
        ),
    ),
    HostileRow(
        name="many-cookies",
        group="Cookies",
        does="100,000 cookies on 25 pages",
        right="a jar keeps some hundred a site; requests stay small",
        most=40,
        acts={"*": _many_cookies},
    ),
    # TLS
    HostileRow(
        name="expired",
        group="TLS",
        does="a certificate that has expired",
        right="refused",
        front="tls",
        most=0,
        tls="expired",
    ),
    HostileRow(
        name="wrong-host",
        group="TLS",
        does="a certificate for another name",
        right="refused",
        front="tls",
        most=0,
        tls="wrong-host",
    ),
    HostileRow(
        name="self-signed",
        group="TLS",
        does="a certificate of an unknown authority",
        right="refused",
        front="tls",
        most=0,
        tls="self-signed",
    ),
    # storage
    _raw(
        "warc-in-body",
        "Storage",
        "a body that is a WARC record, and header fields that look like one",
        "stored as a body: the archive has one record for it",
        "200",
        page(WARC * 3, fields=HTML + "WARC-Type: request\r\nWARC-Target-URI: http://good-0.hostile/\r\n"),
    ),
)


def hostile_row(host: str) -> HostileRow | None:
    """The row that a host belongs to."""
    return _BY_NAME.get(host.removesuffix(f".{DOMAIN}").rpartition(".")[2])


_BY_NAME = {row.name: row for row in ROWS}


PAGE = """\
# The hostile web

A crawler reads input from everyone. `lycosa simweb hostile` serves a web of hosts that mean harm, on loopback, each
with one way to do it, so that a crawler can be held against all of them:

```
lycosa simweb hostile --port 8800 --dns-port 8853
lycosa crawl http://gzip-bomb.hostile:8800/ --into out --dns 127.0.0.1:8853 --allow-private 127.66.0.0/16
```

What is right is stated beside each row: how the request for the front page ends, and how many requests the host gets in
a crawl at most. Every request ends within `total_s` (120 s by default). No request goes to an address that was not
allowed, whatever a redirect, a link, an entity or a name server says. `tests/simweb/test_hostile.py` crawls all rows
beside good hosts and holds the outcome against this table; `make bench NAME=hostile-web` measures memory, and the rate
of the good hosts. This page is made by `lycosa simweb hostile --markdown`.
"""


def hostile_page() -> str:
    """docs/hostile.md."""
    lines = [PAGE]
    for group in dict.fromkeys(row.group for row in ROWS):
        lines.append(f"## {group}\n")
        lines.append("| host | what it does | right answer | front page | requests |\n|---|---|---|---|---|")
        for row in (row for row in ROWS if row.group == group):
            front = " or ".join("never asked for" if end == "-" else end for end in row.front.split("|"))
            lines.append(f"| `{row.host}` | {row.does} | {row.right} | {front} | ≤ {row.most:,} |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"
