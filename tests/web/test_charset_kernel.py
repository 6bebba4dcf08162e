"""The kernel finds the encoding of a document as its twin does."""

from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lycosa.web import kernel
from lycosa.web.charset import detect_charset

native: Any = pytest.importorskip("lycosa_native")

SOUP = (
    b"<meta|<META | charset=|charset|utf-8|koi8-r|\"utf-16\"|'gbk'|x-user-defined|>|/>| |\n|/|=|\"|'|<|<!--|-->|<p|</p|"
    b"<?xml| encoding=|encoding|?>|<!|<?| http-equiv=|content-type| content=|text/html; charset=big5|charset = |;|a|"
    b"\xc3\xa9|\xe9|\0|\xef\xbb\xbf|\xff\xfe|<\0?\0x\0|\x0c"
).split(b"|")
SOUP += [b" " * 1000, b"x" * 990]
STARTS = st.sampled_from([b"", b"<meta ", b"<?xml ", b"<meta http-equiv=content-type content="])
FORMS = st.sampled_from(["html", "xml", "text"])


@pytest.fixture(autouse=True, scope="module")
def twin() -> Any:
    """What is asked for through the doors is the twin here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(kernel.VARIABLE, "python")
        kernel.native.cache_clear()
        yield
    kernel.native.cache_clear()


@given(
    STARTS,
    st.lists(st.sampled_from(SOUP), max_size=14).map(b"".join),
    st.sampled_from([None, None, "utf-8", " LATIN1 ", "nonsense", "\ud800"]),
    FORMS,
)
def test_kernel_detects_the_encoding_of_any_soup_as_its_twin_does(
    start: bytes, soup: bytes, http_charset: str | None, form: Literal["html", "xml", "text"]
) -> None:
    body = start + soup
    assert native.detect_charset(body, http_charset, form) == detect_charset(body, http_charset=http_charset, form=form)
