"""SURT keys as pywb and Common Crawl make them; the expected ones were made by the package `surt` 0.3.1."""

import pytest

from lycosa.web import parse_url, surt_key

ID = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://example.org/", "org,example)/"),
        ("https://www.example.org/", "org,example)/"),
        ("https://www2.example.co.uk/A/B/", "uk,co,example)/a/b"),
        ("https://wwwx.org/", "org,wwwx)/"),
        ("http://example.org:8080/?b=2&a=1", "org,example:8080)/?a=1&b=2"),
        ("https://example.org:443/x?", "org,example)/x"),
        ("http://127.0.0.1/x", "1,0,0,127)/x"),
        ("http://[::1]/x", "::1)/x"),
        ("http://a.b.c.d/x//y/%2E%2E/z", "d,c,b,a)/x/z"),
        ("http://example.org/%2541%20%C3%A9", "org,example)/a%20%c3%a9"),
        (f"http://example.org/a?x=1&PHPSESSID={ID}&b=2", "org,example)/a?b=2&x=1"),
        (f"http://example.org/a?jsessionid={ID}", "org,example)/a"),
        (f"http://example.org/a;jsessionid={ID}?b", f"org,example)/a;jsessionid={ID}?b"),
        ("http://example.org/(0123456789abcdefghijklmn)/x.aspx", "org,example)/x.aspx"),
        ("http://example.org/a?cfid=12&cftoken=34&z", "org,example)/a?z"),
        ("http://example.org/?a&a=&a=1", "org,example)/?a&a=&a=1"),
    ],
)
def test_key_is_that_of_web_archives(url: str, key: str) -> None:
    parsed = parse_url(url)
    assert parsed is not None
    assert surt_key(parsed.href) == key
