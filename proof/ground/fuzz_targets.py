"""What is fuzzed: everything that reads what others wrote, each with samples, words of its language and its errors.

A target gets bytes and must return, or raise one of its documented errors; some also check a law. Inputs are made by
`fuzz_input`.
"""

import asyncio
import gzip
import io
import json
import tempfile
import zlib
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import brotli
import zstandard
from PIL import Image

from lycosa.errors import LycosaError, SettingsError, StoreError
from lycosa.fetch import decode_body
from lycosa.records import Request, Response
from lycosa.recrawl.change.image import image_value
from lycosa.replay.rewrite import HtmlRewriter, ReplayAddresses
from lycosa.search.query import parse_query
from lycosa.serve.server import make_app
from lycosa.serve.source import CollectionSource
from lycosa.sessions.authentication import PasswordAnswers, parse_challenges
from lycosa.sessions.jars import CookieJar, read_cookie_file
from lycosa.settings import merge, read_file
from lycosa.settings.values import InvalidValue
from lycosa.settings.watching import ignore_rules, tell_rules
from lycosa.store import CollectionStore, response_exchange
from lycosa.store.warc_read import WarcReader
from lycosa.tables.formats import Tol, Tvi, parse_tol, parse_tvi, patch_document, write_tol, write_tvi
from lycosa.web import (
    RobotsDirectives,
    analyse_page,
    parse_url,
    read_sitemap,
    run_steps,
    url_from_key,
    url_key,
)
from lycosa.web.preferences import Purpose, header_statements, host_objection, objection, page_statements
from lycosa.web.requisites import document_requisites
from lycosa.web.robots import parse_robots_steps
from lycosa.web.url import MAX_INPUT_BYTES, normalise_url
from lycosa.web.usage_files import read_reservations, read_terms
from proof.ground.fuzz_input import FuzzTarget

BASE = "http://example.org/a/b.html"
AGENT = "lycosa/1"
DECODED_BYTES = 1 << 20


# the targets


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape" if data[:1] == b"\xff" else "replace")


def _url(data: bytes) -> None:
    url = parse_url(_text(data), BASE)
    if url is None or len(url.href) > MAX_INPUT_BYTES:
        return
    again = parse_url(url.href)
    assert again is not None, "an address that was made is none"
    assert again.href == url.href, "an address changes when it is read again"
    assert url_from_key(url_key(url.href)) == url.href, "a key does not lead back to its address"
    normal = normalise_url(url.href)
    assert normal is None or normalise_url(normal) == normal, "normalised twice it is another one"


def _robots(data: bytes) -> None:
    rules = run_steps(parse_robots_steps(data, agent=AGENT))
    for path in ("/", "/a/b?c=1", "/%zz*$", _text(data[:50])):
        rules.allows(path)
        host_objection(rules, path, Purpose.SEARCH)


def _sitemap(data: bytes) -> None:
    found = read_sitemap(data, BASE)
    assert all(parse_url(entry.url) for entry in found.entries), "an entry is no address"


def _html(data: bytes) -> None:
    types = ("text/html", "application/xhtml+xml", "text/html; charset=\xff", None, "application/rss+xml", "text/plain")
    kind = types[data[-1] % len(types)] if data else None
    page = analyse_page(data, url=BASE, content_type=kind, wants_main=True, wants_simhash=True)
    page_statements(page.robots, AGENT)


def _requisites(data: bytes) -> None:
    for kind in ("text/html", "text/css"):
        found = document_requisites(data, url=BASE, content_type=kind)
        assert all(map(parse_url, (*found.needed, *found.imported))), "a requisite is no address"


def _replay(data: bytes) -> None:
    for is_xml in (False, True):
        HtmlRewriter(BASE, "utf-8", ReplayAddresses("/l/", "/f/", "/r/"), is_xml=is_xml).rewrite(_text(data))


def _coding(data: bytes) -> None:
    """Every body has a decoding, and none is longer than it may be."""
    codings = ("gzip", "deflate", "br", "zstd", "gzip, br", "zstd, gzip", "x-odd")
    found = decode_body(data, codings[len(data) % len(codings)], cap_bytes=DECODED_BYTES)
    assert len(found.body) <= DECODED_BYTES, "a body is longer than it may be"


def _images(data: bytes) -> None:
    value = image_value(data)
    assert value is None or value == image_value(data), "an image has two values"


def _tables(data: bytes) -> None:
    tol, tvi = parse_tol(data), parse_tvi(data)
    if isinstance(tol, Tol):
        written = write_tol(tol)
        assert not isinstance(written, bytes) or parse_tol(written) == tol, "what is written is not read back"
    if isinstance(tvi, Tvi):
        written = write_tvi(tvi)
        assert not isinstance(written, bytes) or parse_tvi(written) == tvi, "what is written is not read back"
        patch_document(data, tvi, is_xml=False)


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="lycosa-fuzz-"))


def _file(name: str, data: bytes) -> Path:
    path = _folder() / name
    path.write_bytes(data)
    return path


def _warc(data: bytes) -> None:
    with WarcReader(_file("input.warc.gz", data)) as reader:
        for record in reader:
            _ = record.url, record.type
            if record.type == "response":
                record.http()


def _settings(data: bytes) -> None:
    merge(read_file(_file("input.toml", data)))


def _query(data: bytes) -> None:
    parse_query(_text(data))


def _cookies(data: bytes) -> None:
    cookies, _ = read_cookie_file(_file("cookies.txt", data))
    jar = CookieJar(b"k", [line for _, line in cookies])
    jar.lines()


def _challenges(data: bytes) -> None:
    value = data.decode("latin-1")
    parse_challenges(value)
    answers = PasswordAnswers("user", "pass")
    if answers.learn(value, was_answered=False):
        answers.answer("GET", "/a")


def _preferences(data: bytes) -> None:
    value = data.decode("latin-1").replace("\r", " ").replace("\n", " ")
    names = ("content-usage", "content-signal", "tdm-reservation", "tdm-policy", "link", "x-robots-tag")
    lines = header_statements(dict.fromkeys(names, value), AGENT)
    for purpose in Purpose:
        objection("\n".join(lines), RobotsDirectives(), purpose)
    read_reservations(data)
    read_terms(data, BASE)


def _rules(data: bytes) -> None:
    for read in (ignore_rules, tell_rules):
        with suppress(InvalidValue):  # of which the settings make a sentence
            read(_text(data))


@cache
def _app() -> Any:
    folder = _folder() / "collection"
    CollectionStore.create(folder).close()
    return make_app(CollectionSource(folder), token="token", replay_at="http://127.0.0.1:1/x/")


API_GET = ("/api/v1/status", "/api/v1/hosts", "/api/v1/urls", "/api/v1/search", "/api/v1/changes", "/api/v1/why")
API_POST = ("/api/v1/steer", "/api/v1/seeds", "/api/v1/hosts/steer")


def _api(data: bytes) -> None:
    """Bodies and questions: no answer is a fault of the server's (500)."""
    name = data[-1] if data else 0
    posted = API_POST[name % len(API_POST)]
    words = quote(data[:200])
    asked = API_GET[name % len(API_GET)]
    question = f"q={words}&url={words}&host={words}&limit={words[:20]}&state={words[:9]}".encode()
    for method, path, query, body in (("POST", posted, b"", data), ("GET", asked, question, b"")):
        status = asyncio.run(_status(method, path, query, body))
        assert status != 500, f"{method} {path} ended with 500"


async def _status(method: str, path: str, query: bytes, body: bytes) -> int:
    fields = {"host": "127.0.0.1:8480", "authorization": "Bearer token", "content-type": "application/json"}
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query,
        "root_path": "",
        "scheme": "http",
        "headers": [(key.encode(), value.encode()) for key, value in fields.items()],
        "client": ("127.0.0.1", 50_000),
        "server": ("127.0.0.1", 8480),
    }
    said: list[int] = []

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            said.append(message["status"])

    await _app()(scope, receive, send)
    return said[0] if said else 500


# samples

_PAGE = (
    b"<!doctype html><html lang=en><head><title>T</title><meta charset=utf-8><base href=/x/><l"
    b"ink rel=canonical href=/c>"
    b"<meta name=robots content='noindex, max-snippet:5'><meta http-equiv=refresh content='0; url=/r'></head><body>"
    b"<nav><a href=/n>n</a></nav><main><h1>H</h1><p>Some words and <a href='p?q=1&amp;r=2' rel=nofollow>a link</a>.</p>"
    b"<table><tr><td>1<td>2</table><ul><li>x<li>y</ul><img src=i.png srcset='a 1x, b 2x' alt=A"
    b"><pre>code</pre></main></body></html>"
)
_FEED = (
    b"<?xml version='1.0' encoding='utf-8'?><rss version='2.0'><channel><title>F</title><item><title>I</title>"
    b"<link>http://example.org/i</link><description>&lt;p&gt;x</description></item></channel></rss>"
)
_SITEMAP = (
    b"<?xml version='1.0' encoding='UTF-8'?><urlset xmlns='http://www.sitemaps.org/schemas/sit"
    b"emap/0.9'><url><loc>http://example.org/a</loc>"
    b"<lastmod>2026-01-02</lastmod></url><url><loc>/b</loc></url></urlset>"
)
_ROBOTS = (
    b"User-agent: lycosa\nDisallow: /a*b$\nAllow: /a\nCrawl-delay: 2\n\nUser-agent: *\nDisallo"
    b"w: /\nContent-Usage: ai=n\n"
    b"Content-Signal: search=yes, ai-train=no\nSitemap: http://example.org/s.xml\n"
)
_TOL = b"# tol 1\n# of: page.html\n# document: sha-256=abc\ninternal\t/a.html\tA\nexternal\thttp://x.org/\tX\tnofollow\ta\n"
_TVI = b"# tvi 1\n# of: page.html\n# document: sha-256=abc\n# frame: sha-256=def\nprice\t10 &euro;\nnews\ta\\tb\n"
_TOML = (
    b'seeds = ["http://example.org/"]\nscope = "host"\ndelay_s = 1.5\npages = 100\nheaders = ["X: y"]\n'
    b'ignore = ["css=.ad"]\nlogins = [{url = "http://example.org/login", fields = {user = "a"}'
    b'}]\n[fields]\ntitle = "h1"\n'
)
_COOKIES = (
    b"# Netscape HTTP Cookie File\n"
    b".example.org\tTRUE\t/\tFALSE\t0\tname\tvalue\n#HttpOnly_example.org\tFALSE\t/a\tTRUE\t1999999999\tb\tc\n"
)
_STATE = json.dumps(
    {"cookies": [{"name": "a", "value": "b", "domain": ".example.org", "path": "/", "expires": 1.5, "httpOnly": True}]}
).encode()
_RSL = (
    b"<rsl xmlns='https://rslstandard.org/rsl'><content url='/a/*'><license><permits type='usage'>search</permits>"
    b"<prohibits type='usage'>ai-train</prohibits><payment type='free'/></license></content></rsl>"
)

_SHOWN = (
    b"<base href=/x/><link rel=stylesheet href='s.css'><style>p { background: url('i.png') }</style>"
    b"<img srcset='a.png 1x, b.png 2x' src=c.png><table background=d.png><meta http-equiv=refresh content='0; url=/r'>"
    b"<svg><image xlink:href=e.svg /></svg><p style='background: url(f.png)'><a href='../g?h=1&amp;i=2' ping=/p>j</a>"
)
_STYLE = (
    b"@charset 'utf-8'; @import 'a.css'; @import url(b.css); /* c */ p { background: url(\"d.png\") url(e\\29 .png) }"
)


def _warc_sample() -> bytes:
    request = Request(url=BASE, host="example.org", port=80, address="192.0.2.1")
    block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(_PAGE)
    response = Response(url=BASE, status=200, header_block=block, body=_PAGE, address="192.0.2.1")
    return b"".join(response_exchange(request, response, fetched_s=1.0, metadata={"n": "1"}).members)


def _warc_plain() -> bytes:
    return (
        b"WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: http://example.org/\r\nWARC-Date: 20"
        b"26-01-01T00:00:00Z\r\n"
        b"WARC-Record-ID: <urn:uuid:1>\r\nContent-Type: application/http;msgtype=response\r\nContent-Length: 38\r\n\r\n"
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n\r\n\r\n"
    )


def _coded() -> tuple[bytes, ...]:
    body = _PAGE * 20
    return (gzip.compress(body, mtime=0), zlib.compress(body), brotli.compress(body), zstandard.compress(body), body)


def _pictures() -> tuple[bytes, ...]:
    """A picture of 40 × 30 pixels in every format."""
    picture = Image.linear_gradient("L").resize((40, 30)).convert("RGB")
    found: list[bytes] = []
    for name in ("PNG", "JPEG", "GIF", "WEBP"):
        into = io.BytesIO()
        picture.save(into, name)
        found.append(into.getvalue())
    return tuple(found)


_HTML_WORDS = tuple(
    b"<div> <p> </p> <a href=x> <script> </script> <!-- --> <![CDATA[ ]]> <svg> <math> <templa"
    b"te> <table> <tr> <td> <select> &amp; "
    b"&#x110000; &notin <b> <i> <style> <title> <textarea> <frameset> <meta charset=utf-16> <m"
    b"eta charset=x> <base href=//> <plaintext> \xc4\xb0 \xc4\xb1 \xc5\xbf \xe2\x84\xaa".split()
)
_CSS_WORDS = tuple(
    b"url( @import \" ' ) /* */ \\ \\41 ; @namespace style= srcset= 2x, ( <style> </style> <svg> href= http://[ "
    b"data:,".split()
)
_XML_WORDS = tuple(
    b"<!DOCTYPE <!ENTITY ]> <?xml encoding='utf-16' encoding='x' <url> </url> <loc> </loc> <si"
    b"temapindex> <sitemap> <rss> <feed> <![CDATA[ &x; &#0; xmlns:x='y'".split()
)
TARGETS: dict[str, FuzzTarget] = {
    "url": FuzzTarget(
        _url,
        tuple(
            b"http://user:p@example.org:8080/a/../b?c=1#d //x/y ../a%20b?\xc3\xbc http://[::1]/ "
            b"http://xn--mnchen-3ya.de/ http://0x7f.1/".split()
        ),
        tuple(b"http:// https: file: javascript: @ :80 :99999 [:: xn-- %2e ..; \xe3\x80\x82 \xc2\xad".split()),
    ),
    "robots": FuzzTarget(
        _robots,
        (_ROBOTS, b"User-agent: *\nDisallow: /*/*/*$\n"),
        (*b"User-agent: Content-Usage: $ %2A".split(), b"Disallow: /", b"Allow: *", b"Crawl-delay: 1e9", b"*" * 30),
    ),
    "sitemap": FuzzTarget(_sitemap, (_SITEMAP, b"http://example.org/a\nhttp://example.org/b\n", _FEED), _XML_WORDS),
    "html": FuzzTarget(_html, (_PAGE, _FEED, b"plain text"), _HTML_WORDS + _XML_WORDS),
    "requisites": FuzzTarget(_requisites, (_SHOWN, _STYLE), _HTML_WORDS + _CSS_WORDS),
    "replay": FuzzTarget(_replay, (_SHOWN, _PAGE, b"<style>" + _STYLE), _HTML_WORDS + _CSS_WORDS),
    "coding": FuzzTarget(_coding, _coded(), (b"\x1f\x8b\x08\0", b"\x28\xb5\x2f\xfd", b"\x78\x9c", b"\x50\x2a\x4d\x18")),
    "images": FuzzTarget(
        _images, _pictures(), (b"IHDR", b"IDAT", b"\xff\xd8\xff\xe0", b"Exif\0\0", b"GIF89a", b"\x7f" * 4)
    ),
    "tables": FuzzTarget(
        _tables, (_TOL, _TVI), (b"# ", b"\t", b"\\t", b"\\", b"internal", b"encoding: latin-1", b"# frame: x")
    ),
    "warc": FuzzTarget(
        _warc,
        (_warc_sample(), _warc_plain()),
        (
            b"WARC/1.1\r\n",
            b"WARC-Type: ",
            b"Content-Length: -1",
            b"Content-Length: 99999999999999999999",
            b"\x1f\x8b\x08\0",
            b"\r\n\r\n",
        ),
        (StoreError,),
    ),
    "settings": FuzzTarget(
        _settings,
        (_TOML, b"pages = 1\n"),
        (b"seeds =", b"[fields]", b"= true", b"= [[]]", b"= {}", b"'''", b"1979-05-27", b"0x", b"inf", b"nan"),
        (SettingsError,),
    ),
    "query": FuzzTarget(
        _query,
        (b'solar "heat pump" -wind (roof OR garden)', b"title:x site:a.org after:2026-01", b"vacu* pg_stat*"),
        (b"OR", b"NOT", b"AND", b"(", b")", b'"', b"site:", b"after:", b"before:9999", b"*", b"-", b"url:("),
        (SettingsError,),
    ),
    "api": FuzzTarget(
        _api,
        (
            b'{"action": "pause"}',
            b'{"action": "set", "settings": {"delay_s": 1}}',
            b'{"urls": ["http://example.org/"]}',
            b'{"host": "a.org", "action": "pause"}',
        ),
        (b"null", b"true", b"[]", b"{}", b"1e999", b'"action"', b'"urls":', b'"settings":', b"[[[[", b'"\\ud800"'),
        (LycosaError,),
    ),
    "cookies": FuzzTarget(
        _cookies,
        (_COOKIES, _STATE),
        (b"\t", b"#HttpOnly_", b'"expires": 1e999', b'"expires": "NaN"', b'"domain": null', b"TRUE", b'"\\ud800"'),
        (SettingsError,),
    ),
    "challenges": FuzzTarget(
        _challenges,
        (
            b'Digest realm="a", nonce="b", qop="auth,auth-int", algorithm=SHA-256',
            b'Basic realm="x", Digest nonce=1',
            b"Negotiate YWJj==",
        ),
        (b"Digest ", b"Basic ", b"nonce=", b"algorithm=MD5-sess", b"qop=", b'\\"', b",,", b"userhash=true"),
    ),
    "preferences": FuzzTarget(
        _preferences,
        (
            b"train-ai=n, search=y",
            b"ai-train=no, search=yes",
            b'<http://x/l.xml>; rel="license"; type="application/rsl+xml"',
            _RSL,
            b'[{"location": "/", "tdm-reservation": 1}]',
        ),
        (
            b"ai=n",
            b";exp=",
            b"=?0",
            b'"',
            b"unavailable_after: 1 Jan 2030",
            b"noai",
            b"max-snippet:-1",
            b"<content url=",
            b"</license>",
            b'"location":',
        ),
    ),
    "rules": FuzzTarget(
        _rules,
        (
            b"css=.ad; text=Read * times",
            b"numbers",
            b"/news/* css=.date:not(b)",
            b"/shop/* appears=sold out",
            b"a.org/x",
        ),
        (b"css=", b"text=", b"(", b"[", b"*", b"+", b"numbers", b":", b"::not(", b"{99999999}"),
    ),
}
