"""What hosts of the hostile web do: the kinds of acts that rows are made of, and those that only one row has."""

import asyncio
from collections.abc import Callable
from functools import cache

from lycosa.simweb.hostile_documents import OUTSIDE
from lycosa.simweb.raw import Act, RawConnection, page, page_bytes

DOMAIN = "hostile"
HTML = "Content-Type: text/html\r\n"
XML = "Content-Type: application/xml\r\n"
TEXT = "Content-Type: text/plain\r\n"
GZIP = "Content-Encoding: gzip\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
MISSING = page(b"", status="404 Not Found")
WORDS = page(b"<p>words", fields=HTML)


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
