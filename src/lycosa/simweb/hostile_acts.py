"""What hosts of the hostile web do: the kinds of acts that rows are made of, and those that only one row has; and the
documents made to hurt, each made when it is first asked for: compression bombs, explosive markup, odd URLs.
"""

import asyncio
import struct
import zlib
from collections.abc import Callable
from functools import cache

import brotli
import zstandard

from lycosa.simweb.raw import Act, RawConnection, page, page_bytes

DOMAIN = "hostile"
OUTSIDE = "127.77.0.1"  # answers, too, so that a request that goes astray is heard; no crawl is allowed to ask it
HTML = "Content-Type: text/html\r\n"
XML = "Content-Type: application/xml\r\n"
TEXT = "Content-Type: text/plain\r\n"
GZIP = "Content-Encoding: gzip\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
MISSING = page(b"", status="404 Not Found")
WORDS = page(b"<p>words", fields=HTML)
ZEROS = bytes(1 << 20)


def made(make: Callable[[], bytes], fields: str = HTML, *, status: str = "200 OK") -> Act:
    """A page whose body is made when it is first asked for, while other hosts answer."""
    once = cache(make)

    async def act(line: RawConnection) -> None:
        await line.say(page_bytes(await asyncio.to_thread(once), fields=fields, status=status))

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


def with_sitemap(sitemap: Act) -> dict[str, Act]:
    """The acts of a host whose robots.txt names a sitemap."""
    robots = written(lambda line: f"Sitemap: http://{line.host}/map.xml\n".encode(), TEXT)
    return {"/robots.txt": robots, "/map.xml": sitemap, "/": WORDS}


# acts of single rows


def sitemap_index(line: RawConnection) -> bytes:
    base = f"http://{line.host}{line.path.partition('.')[0]}"
    listed = "".join(f"<sitemap><loc>{base}{number}.xml</loc></sitemap>" for number in (1, 2))
    return f"<sitemapindex>{listed}</sitemapindex>".encode()


async def hop(line: RawConnection) -> None:
    number = int(line.path.strip("/") or 0)
    await redirect(f"/{number + 1}" if number < 1_000 else "/end")(line)


async def alternating(line: RawConnection) -> None:
    body = b"User-agent: *\nDisallow: /\n" if line.turn % 2 else b"User-agent: *\nAllow: /\n"
    await line.say(page_bytes(body, fields=TEXT))


async def drips_body(line: RawConnection) -> None:
    await line.say(OK + b"Content-Length: 100000\r\n\r\n")
    while True:
        await line.say(b"x")
        await asyncio.sleep(1)


def ten_hosts(line: RawConnection) -> bytes:
    number = int(digits) if (digits := line.host.partition(".")[0].lstrip("w")).isdigit() else 0
    return "".join(f'<a href="http://w{10 * number + n}.wildcard.hostile/">x</a>' for n in range(1, 11)).encode()


async def many_cookies(line: RawConnection) -> None:
    fields = "".join(f"Set-Cookie: c{line.path[1:]}_{n}=x\r\n" for n in range(4_000))
    pages = "".join(f"<a href=/{n}>x</a>" for n in range(25)).encode()
    await line.say(page_bytes(pages, fields=HTML + fields))


async def reset(line: RawConnection) -> None:
    line.reset()


# documents


@cache
def gzip_bomb() -> bytes:
    """Two gigabytes of NUL in two megabytes."""
    packer = zlib.compressobj(9, wbits=-15)
    block = packer.compress(ZEROS) + packer.flush(zlib.Z_FULL_FLUSH)
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + block * 2_000


@cache
def gzip_words() -> bytes:
    """A hundred megabytes of small links in half a megabyte: their beginning is decoded, and read."""
    text = b"".join(b"<p>some <a href=/%d>words</a>" % (number % 7) for number in range(35_000))
    packer = zlib.compressobj(9, wbits=-15)
    block = packer.compress(text) + packer.flush(zlib.Z_FULL_FLUSH)
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + block * 100


def brotli_bomb() -> bytes:
    packed: bytes = brotli.compress(bytes(60 << 20), quality=1)
    return packed


def zstd_bomb() -> bytes:
    return zstandard.ZstdCompressor().compress(bytes(200 << 20))


def chained_bomb() -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    return packer.compress(gzip_bomb()) + packer.flush()


def many_links() -> bytes:
    return b"".join(b"<a href=/%d/page-%d.html>page %d</a>\n" % (n % 40, n, n) for n in range(400_000))


def million_links() -> bytes:
    packer = zlib.compressobj(1, wbits=31)
    parts = (packer.compress(b"<a href=/%d/m-%d.html>m %d</a>\n" % (n % 40, n, n)) for n in range(1_000_000))
    return b"".join(parts) + packer.flush()


def few_tags() -> bytes:
    """Fewer tags than pages have, and half a million elements: each paragraph opens all formatting elements again."""
    return b"".join(b"<b id=%d>" % number for number in range(700)) + b"<p>words" * 700


def unclosed_formatting() -> bytes:
    """Wrong end tags close nothing: each paragraph opens all of these again."""
    return b"".join(b"<b id=%d></i ><p>words</P x>" % number for number in range(3_000))


def png_bomb() -> bytes:
    """A picture of 50,000 by 50,000 pixels in a few kilobytes."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 50_000, 50_000, 8, 6, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(ZEROS)) + chunk(b"IEND", b"")


def billion_laughs() -> bytes:
    entities = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))
    return f'<!DOCTYPE x [<!ENTITY l0 "ha">{entities}]><urlset><url><loc>/&l11;</loc></url></urlset>'.encode()


XXE = (
    f'<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd"><!ENTITY n SYSTEM "http://{OUTSIDE}/xxe">]>'
    "<urlset><url><loc>/&f;</loc></url><url><loc>/&n;</loc></url>"
    "<url><loc>http://xxe.hostile/listed</loc></url></urlset>"
)
WARC = (
    b"WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: http://good-0.hostile/\r\nContent-Length: 9\r\n"
    b"WARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-000000000000>\r\n\r\nimitation\r\n\r\n"
)
TRICKS = (
    "http://g\u043e\u043ed.hostile/", "http://xn--.hostile/", "http://xn--a.hostile/", "http://x\u200by.hostile/", "http://\u2025/",
    "http://a\u3002b\uff0ehostile/", "http://" + "x" * 64 + ".hostile/", "http://127.77.0.1%2f.hostile/", "http://%00/",
    "http://\u2460\u2461\u2466.77.0.1/", "http://[::ffff:127.77.0.1]/", "http://[fe80::1%25eth0]/", "http://a..b.hostile/",
    "//\udce9/",
)  # fmt: skip
NAMES = (
    "/../../x", "/..%2f..%2fx", "/%2e%2e/%2e%2e/x", "/..\\..\\x", "/CON", "/aux.txt", "/nul", "/a%00b", "/-rf", "/~",
    "/ x ", "/.htaccess", "/" + "n" * 300, "/a:b", "/a|b", "/x/../../../../etc/passwd",
)  # fmt: skip
