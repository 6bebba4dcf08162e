"""Keep is not follow: pages that are only read for their links, and what is kept beside them."""

import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from warcio.archiveiterator import ArchiveIterator

from lycosa import Collection
from lycosa.api.assembly import accepts
from lycosa.crawl import Recrawl
from lycosa.errors import SettingsError
from lycosa.inspect import explain_url, open_to_read
from lycosa.inspect.changes import ChangeFilter, all_changes
from lycosa.records import Request, Response, Truncation
from lycosa.store import page_at
from lycosa.web import url_key
from tests.cli.command import lycosa
from tests.crawl.small_site import FIRST, Sent, SmallSite, crawl_site, links
from tests.inspect.listing import list_urls

PDF = Sent("%PDF-1.4 words", {"content-type": "application/pdf"})
SITE: dict[str, Any] = {
    FIRST: f"<title>Home</title>{links('a', 'docs/b.html', 'one.pdf')}",
    f"{FIRST}a": f"<title>A</title><p>Some words.</p>{links('docs/two.pdf', 'docs/copy')}",
    f"{FIRST}docs/b.html": "<title>B</title><p>Words of b.</p>",
    f"{FIRST}docs/copy": f"<title>A</title><p>Some words.</p>{links('docs/two.pdf', 'docs/copy')}",
    f"{FIRST}one.pdf": PDF,
    f"{FIRST}docs/two.pdf": Sent("%PDF-1.4 other words", {"content-type": "application/pdf"}),
    f"{FIRST}docs/docs/two.pdf": 404,
    f"{FIRST}docs/docs/copy": 404,
}


def kept(into: Path) -> set[str]:
    with Collection(into) as collection:
        for page in collection:
            assert page.body
        return {page.url.removeprefix(FIRST) for page in collection}


@pytest.mark.parametrize("threads", [0, 1])
def test_all_pdfs_of_a_site_is_one_command(tmp_path: Path, threads: int) -> None:
    _, stats = crawl_site(tmp_path / "c", SITE.get, keep_types=["application/pdf"], threads=threads)

    assert kept(tmp_path / "c") == {"one.pdf", "docs/two.pdf"}
    assert (stats.pages, stats.followed_only) == (6, 4)
    with open_to_read(tmp_path / "c") as collection:
        states = {known.url.removeprefix(FIRST): known.state for known in list_urls(collection)}
        said = explain_url(collection, f"{FIRST}a")
    assert states["a"] == "done" and len(states) == len(SITE)
    assert "read for its links, and not kept: --keep or --keep-type leaves it out" in said
    assert ("response", f"{FIRST}one.pdf") in records(tmp_path / "c")
    assert ("response", f"{FIRST}a") not in records(tmp_path / "c")
    with Collection(tmp_path / "c") as collection, pytest.raises(SettingsError, match="read for its links"):
        collection.get(f"{FIRST}a")


def test_patterns_and_types_narrow_down(tmp_path: Path) -> None:
    crawl_site(tmp_path / "c", SITE.get, keep=["/docs/*"], keep_types=["application/pdf", "text/*"])
    assert kept(tmp_path / "c") == {"docs/b.html", "docs/two.pdf", "docs/copy"}
    crawl_site(tmp_path / "d", SITE.get, keep=["/docs/*"], keep_types=["application/pdf"])
    assert kept(tmp_path / "d") == {"docs/two.pdf"}


def test_page_with_the_document_of_one_that_was_not_kept_has_its_own_record(tmp_path: Path) -> None:
    crawl_site(tmp_path / "c", SITE.get, keep=["*/docs/copy"])
    with Collection(tmp_path / "c") as collection:
        page = collection.get(f"{FIRST}docs/copy")
    assert page.duplicate_of == "" and b"Some words." in page.body


def test_other_rules_ask_again_for_what_is_kept_now(tmp_path: Path) -> None:
    crawl_site(tmp_path / "c", SITE.get, keep_types=["application/pdf"])
    asked, stats = crawl_site(tmp_path / "c", SITE.get, keep=[], keep_types=[])
    assert len(asked) == 4 and (stats.pages, stats.followed_only) == (6, 0)
    assert stats.sizes.total() == stats.types.total() == 6 - stats.duplicates
    assert len(kept(tmp_path / "c")) == 6


def test_other_types_ask_again_for_bodies_that_were_not_received(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = {FIRST: links("a.png"), f"{FIRST}a.png": Sent("png", {"content-type": "image/png"})}
    start = SmallSite.start

    def refusing(site: SmallSite, request: Request, done: Any) -> None:
        def answered(response: Response) -> None:
            cut = Truncation.UNWANTED if request.url.endswith(".png") else None
            done(msgspec.structs.replace(response, truncated=cut))

        start(site, request, answered)

    with monkeypatch.context() as patch:
        patch.setattr(SmallSite, "start", refusing)
        _, stats = crawl_site(tmp_path / "c", site.get, keep_types=["application/pdf"])
    assert stats.dropped == {"media-type": 1}
    _, stats = crawl_site(tmp_path / "c", site.get, keep_types=["image/*"])
    assert not stats.dropped and kept(tmp_path / "c") == {"a.png"}


def test_export_search_and_summary_leave_out_what_was_not_kept(tmp_path: Path) -> None:
    _, stats = crawl_site(tmp_path / "c", SITE.get, keep=["*/docs/b.html"], index=True)
    assert stats.followed_only == 5
    exported = lycosa("export", tmp_path / "c", "jsonl")
    assert exported.code == 0 and exported.out.count("\n") == 1
    said = lycosa("status", tmp_path / "c").out.splitlines()
    assert said[0].startswith("1 page kept in ")
    assert said[1] == "  5 more pages read for links alone (--keep, --keep-type)"
    found = lycosa("search", tmp_path / "c", "words")
    assert "docs/b.html" in found.out and f"{FIRST}a" not in found.out
    shown = lycosa("get", f"{FIRST}a", "--in", tmp_path / "c")
    assert shown.code == 2 and "read for its links" in shown.err


def test_body_that_is_neither_kept_nor_has_links_is_not_received() -> None:
    wants = accepts((), ["application/pdf"])
    assert wants is not None and accepts((), ()) is None
    types = ("application/pdf", "text/html", "application/rss+xml", "image/png", "application/zip")
    assert [wants(200, {"content-type": name}) for name in types] == [True, True, True, False, False]
    assert wants(404, {"content-type": "image/png"}) and wants(200, {})


def records(into: Path) -> list[tuple[str, str]]:
    found = []
    for path in sorted((into / "warc").glob("*.warc.gz")):
        with path.open("rb") as file:
            found += [(record.rec_type, record.rec_headers["WARC-Target-URI"]) for record in ArchiveIterator(file)]
    return found


def test_recrawl_goes_by_the_same_rules(tmp_path: Path) -> None:
    crawl_site(tmp_path / "c", SITE.get, keep_types=["application/pdf"])
    changed = {**SITE, f"{FIRST}a": f"<title>A</title><main><p>Quite other words now.</p>{links('new.pdf')}</main>"}
    changed[f"{FIRST}new.pdf"] = Sent("%PDF-1.4 new words", {"content-type": "application/pdf"})

    wall = time.time() + 86_400
    crawl_site(tmp_path / "c", changed.get, recrawl=Recrawl(everything=True), wall=lambda: wall)

    assert "new.pdf" in kept(tmp_path / "c")
    with open_to_read(tmp_path / "c") as collection:
        row = page_at(collection.state, url_key(f"{FIRST}a"))
        assert [change.url for change in all_changes(collection, ChangeFilter())].count(f"{FIRST}a")
    assert row is not None and row.is_followed_only and row.title == "A" and not row.place
    assert not [url for kind, url in records(tmp_path / "c") if kind != "metadata" and url in (FIRST, f"{FIRST}a")]
