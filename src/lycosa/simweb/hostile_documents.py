"""Documents made to hurt, each made when it is first asked for: compression bombs, explosive markup, odd URLs."""

import struct
import zlib
from functools import cache

import brotli
import zstandard

OUTSIDE = "127.77.0.1"  # answers, too, so that a request that goes astray is heard; no crawl is allowed to ask it
ZEROS = bytes(1 << 20)


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
