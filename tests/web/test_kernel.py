"""The choice of the kernel, and that the native one and its twin in Python make the same page of everything."""

import asyncio
import base64
import json
import random
import subprocess
import sys
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_data import conformance

from lycosa.errors import MissingExtra, SettingsError
from lycosa.web import html, kernel
from lycosa.web.links import MAX_LINKS
from lycosa.web.page import read_natively
from proof.bench.equality import difference, document_of
from proof.bench.fuzz import mutation

# The standard's examples are about markup that needs a tree; of real pages fewer than one in a hundred does.
MOST_TREES = 0.25
HOSTILE_BITS = (
    *(
        b"<a href=x>",
        b"</a>",
        b"<p>",
        b"<script>",
        b"</script",
        b"<!--",
        b"--",
        b">",
        b"<",
        b"/",
        b"=",
        b'"',
        b"'",
        b"&",
    ),
    *(
        b"#x",
        b";",
        b"\0",
        b"\xff",
        b"\xe2\x82",
        b"\xc3\xbc",
        b"<svg>",
        b"<title>",
        b"<![CDATA[",
        b"]]",
        b"\r",
        b"\n",
        b" ",
    ),
)


@pytest.fixture(autouse=True)
def fresh_choice(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The choice is made once a process; here anew in every test."""
    kernel.native.cache_clear()
    yield
    monkeypatch.undo()
    kernel.native.cache_clear()


def test_variable_chooses_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("lycosa_native")
    names = []
    for value in ("python", "native", ""):
        monkeypatch.setenv(kernel.VARIABLE, value)
        kernel.native.cache_clear()
        names.append(kernel.kernel_name().partition(" ")[0])

    assert names == ["python", "native", "native"]


def test_variable_with_another_value_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kernel.VARIABLE, "rust")

    with pytest.raises(SettingsError, match="it can be native or python"):
        kernel.native()


def test_kernel_that_is_demanded_and_not_installed_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kernel.VARIABLE, "native")
    monkeypatch.setitem(sys.modules, "lycosa_native", None)

    with pytest.raises(MissingExtra, match=r"lycosa\[native\]"):
        kernel.native()


def test_kernel_with_another_interface_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    module = pytest.importorskip("lycosa_native")
    monkeypatch.setattr(module, "CONTRACT", kernel.CONTRACT + 1)
    monkeypatch.delenv(kernel.VARIABLE, raising=False)

    with pytest.raises(SettingsError, match="run make"):
        kernel.native()


needs_kernel = pytest.mark.skipif(kernel.native() is None, reason="the native kernel is not installed")


@needs_kernel
def test_kernel_makes_the_page_of_its_twin_of_the_standards_examples() -> None:
    differing, trees, total = [], 0, 0
    for line in conformance("html5lib/tree.jsonl").read_text().splitlines():
        example = json.loads(line)
        if example["fragment"] or example["script"] == "on":
            continue
        found = difference(document_of(base64.b64decode(example["data_b64"])))
        total += 1
        trees += found is None
        if found:
            differing.append(example["id"])

    assert differing == []
    assert trees < total * MOST_TREES


@needs_kernel
@pytest.mark.parametrize(
    "content_type", ["text/html; charset=utf-8", "application/xhtml+xml", "text/html; charset=latin1"]
)
def test_kernel_makes_the_page_of_its_twin_of_random_markup(content_type: str) -> None:
    bodies = [mutation(random.Random(seed)) for seed in range(300)]
    assert [body for body in bodies if difference(document_of(body, content_type))] == []


@needs_kernel
def test_words_that_are_read_together_are_those_that_are_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    nested = (
        b"<a href=1>a<object><a href=2><img alt=i><noscript>n<a href=3>h</a></noscript></a><h1>b<b><h2>c</h2>",
        b"<h2>a <svg><a href=1>b<desc><a href=2> c<style><b>d</style></a></desc></a></svg><p>e</h2><a href=3><img>",
        b"<a href=x><object><a href=x><object><a href=y>z</a></object><img alt=' '><img alt=k></a></object></a>",
    )
    monkeypatch.setattr(html, "LITTLE_WORK", -1)
    for body in (*nested, *(mutation(random.Random(seed)) for seed in range(300))):
        assert not difference(document_of(body))


@needs_kernel
@pytest.mark.parametrize(
    "html", ["<meta name=x content='\u0131ndex'>", "<meta name=x content='no\u212a'>", "<p><bΣ>x", "<tΣ><t\u0130>"]
)
def test_kernel_and_twin_know_the_cases_of_the_same_letters(html: str) -> None:
    assert difference(document_of(html.encode())) == {}


@needs_kernel
@pytest.mark.parametrize("name", ["rt", "rp", "rb", "rtc", "option", "optgroup"])
def test_end_of_a_form_ends_foreign_elements_in_it_that_have_the_names_of_elements_that_it_ends(name: str) -> None:
    for page in (f"<form><math><{name}>t</form>u", f"<form><svg><x><{name}><{name}>t<b></form>u"):
        assert difference(document_of(page.encode())) == {}


@needs_kernel
def test_title_that_begins_first_is_the_title_though_a_hidden_one_in_it_ends_before_it() -> None:
    page = b"<math><title>outer<script><title>inner"
    assert html.analyse_html(document_of(page)).title == "outer"
    assert difference(document_of(page)) == {}
    assert difference(document_of(page.replace(b"outer", b" "))) == {}


@needs_kernel
def test_main_element_in_a_title_leaves_no_mark_there() -> None:
    assert difference(document_of(b"<svg><form><title><main>")) == {}


@needs_kernel
@given(st.binary(max_size=60) | st.lists(st.sampled_from(HOSTILE_BITS), max_size=12).map(b"".join))
def test_kernel_makes_the_page_of_its_twin_of_any_bytes(body: bytes) -> None:
    assert not difference(document_of(body))


@needs_kernel
@pytest.mark.parametrize(
    "start", ["<p>", "<svg>", "<table><tr><td>", "<main>", "<pre>", "<h1>a</h1><main>b</main><nav>"]
)
def test_kernel_makes_the_page_of_its_twin_of_long_texts_with_nuls(start: str) -> None:
    long = "word " * 20_000
    for text in ("a\0b " * 30_000, f"{long}\0{long}", f"\0{long}\0", "\0" * 70_000, f"\0 \0&amp;{long}\r\n\0"):
        assert not difference(document_of(f"{start}{text}</main> ({text[:90]})".encode()))


@needs_kernel
def test_text_with_a_nul_behind_each_character_takes_no_multiple_of_its_size() -> None:
    script = """
from lycosa.web import analyse_page

def peak_mb():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))

analyse_page(b"<p>a", url="http://h/", content_type="text/html")
body = b"<p>" + b"a\\0" * 4_000_000
before = peak_mb()
analyse_page(body, url="http://h/", content_type="text/html", fingerprint=0, digest=b"")
print(peak_mb() - before)
"""
    told = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, timeout=120).stdout
    assert float(told) < 32  # the text has 4 MB; a list of its parts would have 64


@needs_kernel
def test_kernel_and_twin_cut_a_page_with_too_many_links_alike() -> None:
    document = document_of(b"<img src=i>" + b"".join(b"<a href=%d>" % number for number in range(MAX_LINKS + 1)))
    page = read_natively(document)

    assert difference(document) == {}
    assert page is not None
    assert page.is_cut
    assert len(page.links) == MAX_LINKS


@needs_kernel
def test_kernel_and_twin_keep_the_same_links_of_a_page_with_too_many() -> None:
    many = range(MAX_LINKS + 2_000)
    links = b"".join(b"<a href=' %d' rel='nofollow next'></a><a href=data:%d>" % (number, number) for number in many)
    again = b"".join(b"<a href=%d rel=nofollow><img src=%d alt=i>w%d</a>" % (n, n, n) for n in many[::7])
    others = b"".join(b"<link href=%d><area href=%d alt=r>" % (number // 2, number) for number in many)

    for body in (links + again + others, others + again):
        assert difference(document_of(body)) == {}


@needs_kernel
def test_fault_while_a_page_is_read_is_shown_and_caught(capfd: pytest.CaptureFixture[str]) -> None:
    module = kernel.native()

    assert module is not None
    assert module.panic(is_reading=True) is None
    assert "a test asked for this" in capfd.readouterr().err


@needs_kernel
def test_fault_anywhere_else_in_the_kernel_is_an_exception_that_a_task_ends_with() -> None:
    module = kernel.native()
    assert module is not None

    async def work() -> None:
        module.panic(is_reading=False)

    async def outcome() -> BaseException | None:
        task = asyncio.create_task(work())
        await asyncio.wait([task])
        return task.exception()

    error = asyncio.run(outcome())
    assert isinstance(error, Exception)
    assert "a test asked for this" in str(error)


@needs_kernel
def test_templates_need_no_tree() -> None:
    body = (
        b"<p>a<template><tr><td>hidden<a href=x>y</a></td></tr><b><template>z</template></template>b"
        b"<table><template><p>q</template><tr><td>c</table>"
    )
    page = read_natively(document_of(body))

    assert page is not None
    assert (page.text, page.links.hrefs) == ("a b c", ())
