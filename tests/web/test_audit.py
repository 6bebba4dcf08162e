"""What a site owner is told of a page's markup."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lycosa.web import PageAudit, audit_page
from tests.effort import bounded

URL = "https://example.org/folder/page"


def audit(markup: str, **named: str) -> PageAudit:
    return audit_page(markup.encode(), url=URL, content_type="text/html", **named)


@pytest.mark.parametrize(
    ("markup", "problem"),
    [
        ("<title>A</title>", ""),
        ("<p>no title", "missing"),
        ("<head><title> </title></head><body>", "empty"),
        ("<head><title>A</title><title>B</title></head><body>", "several"),
        ("<head><!-- <title>old</title> --><title>A</title></head><body>", ""),
        ("<head><script>'<title>'</script><title>A</title></head><body><svg><title>drawing</title></svg>", ""),
    ],
)
def test_title_is_there_once_or_what_is_wrong_is_told(markup: str, problem: str) -> None:
    assert audit(markup).title_problem == problem


@pytest.mark.parametrize(
    ("markup", "problem"),
    [
        ("<meta name=description content='It is.'>", ""),
        ("<meta property='og:description' content='Not it.'>", "missing"),
        ("<meta name='description' content=' '>", "empty"),
        ("<meta name=description content=A><meta name=Description content=B>", "several"),
    ],
)
def test_description_is_there_once_or_what_is_wrong_is_told(markup: str, problem: str) -> None:
    assert audit(f"<head>{markup}</head><body>").description_problem == problem


def test_canonical_urls_of_page_and_header_are_joined_and_each_told_once() -> None:
    markup = "<base href=/other/><link rel=canonical href=a><link rel=canonical href=a#x><link rel=canonical href=/b>"
    found = audit(f"<head>{markup}</head>", link_header='<c>; rel="canonical", </other/a>; rel=canonical')
    assert found.canonicals == tuple(f"https://example.org/{path}" for path in ("other/a", "b", "folder/c"))


def test_alternates_are_read_from_links_of_the_head() -> None:
    links = "".join(
        f"<link rel=alternate hreflang={code} href={href}>"
        for code, href in (("de", "/de"), ("EN-gb", "/gb"), ("fr", "//["), ("de", "/de"))
    )
    found = audit(f"<head>{links}<link rel=alternate href=/feed></head><body><a hreflang=it href=/it>it</a>")
    assert found.alternates == (("de", "https://example.org/de"), ("en-gb", "https://example.org/gb"))


def test_images_without_alternative_text_are_counted_decoration_is_not() -> None:
    images = "<img src=a><img src=b alt><img src=c alt=''><img src=d aria-hidden=true><img src=e role=presentation>"
    found = audit(f"{images}<!-- <img src=f> --><script>'<img src=g>'</script><IMG\nsrc=h>")
    assert (found.without_alt, found.images) == (2, ("a", "h"))


def test_resources_over_http_are_told_on_pages_over_https_only() -> None:
    markup = (
        "<link rel=stylesheet href=http://a.example/s.css><link rel=canonical href=http://a.example/>"
        "<a href=http://a.example/x>link</a><img alt='' src=//a.example/i srcset='/1 1x, http://a.example/2 2x'>"
        "<video poster=http://a.example/p></video>"
    )
    insecure = ("http://a.example/s.css", "http://a.example/2", "http://a.example/p")
    assert audit(markup).insecure == insecure
    assert audit("<base href=http://a.example/><img src=i alt=''>").insecure == ("http://a.example/i",)
    assert not audit_page(markup.encode(), url="http://example.org/", content_type="text/html").insecure_count


def test_document_that_is_no_page_has_only_the_canonical_url_of_its_header() -> None:
    found = audit_page(b"%PDF-1.7", url=URL, content_type="application/pdf", link_header="</a>; rel=canonical")
    assert found == PageAudit(canonicals=("https://example.org/a",))


def test_page_in_utf16_is_read_like_others() -> None:
    markup = "<head><title>A</title><title>B</title><link rel=alternate hreflang=de href=/de></head><img src=a>"
    found = audit_page(markup.encode("utf-16"), url=URL, content_type="text/html")
    assert (found.title_problem, len(found.alternates), found.without_alt) == ("several", 1, 1)


@given(st.binary(max_size=300))
def test_any_bytes_give_a_record(body: bytes) -> None:
    assert audit_page(b"<html><img " + body, url=URL, content_type="text/html").is_html


@pytest.mark.parametrize("piece", ["<img ", "<img alt ", "<link hreflang ", "<title>", "<script http:/", "a" * 50])
def test_markup_made_to_keep_a_search_busy_takes_work_in_proportion(piece: str) -> None:
    markup = piece * (400_000 // len(piece))
    bounded(lambda: audit(markup), units=150)
