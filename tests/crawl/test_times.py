"""What a row knows of the time that its request took."""

from pathlib import Path

import msgspec

from lycosa.inspect import open_to_read
from lycosa.store import page_at, unpack_page
from lycosa.store.page_rows import PageRow, pack_row
from lycosa.web import url_key
from tests.crawl.small_site import FIRST, crawl_site, links


def test_row_of_a_page_a_copy_and_a_redirect_tells_how_long_the_request_took(tmp_path: Path) -> None:
    site = {
        FIRST: links("a", "b", "moved"),
        f"{FIRST}a": "<p>The same.</p>",
        f"{FIRST}b": "<p>The same.</p>",
    }
    crawl_site(tmp_path, lambda url: 302 if url.endswith("moved") else site.get(url))
    with open_to_read(tmp_path) as collection:
        for path in ("", "a", "b", "moved"):
            row = page_at(collection.state, url_key(FIRST + path))
            assert row is not None
            assert row.took_ms == 100, path


def test_row_of_an_earlier_version_does_not_know_the_time() -> None:
    fields = msgspec.msgpack.decode(pack_row(PageRow(200, 1.0, title="T", took_ms=5)))
    before = PageRow.__struct_fields__.index("took_ms")
    assert unpack_page(msgspec.msgpack.encode(fields[:before])) == PageRow(200, 1.0, title="T")
