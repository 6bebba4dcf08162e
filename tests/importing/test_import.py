"""Archives of others become collections: what is whole is there, in order of time, and what is not is named."""

import gzip
import json
import signal
import time
from pathlib import Path

import pytest

from lycosa.crawl.progress import Recrawl
from lycosa.errors import LycosaError, SettingsError, StoreError
from lycosa.importing import ImportProgress, ImportResult, import_archives
from lycosa.importing import plan as plan_module
from lycosa.inspect import ChangeFilter, StoredPages, list_changes, open_to_read, page_history, page_of, stats_of
from lycosa.removal import forget
from lycosa.simweb import SimSettings, SimWeb
from tests.cli.command import ended, lycosa, started
from tests.crawl.consistency import problems
from tests.crawl.memory_crawl import front
from tests.crawl.small_site import FIRST, crawl_site
from tests.importing.foreign import answer, digest, page, record, write, write_wacz
from tests.recrawl.recrawl_world import run

URL = "https://site.example/"


def into(folder: Path, *archives: Path) -> tuple[ImportResult, Path]:
    found = import_archives(archives, folder / "c")
    assert problems(folder / "c", sampled=1) == []
    return found, folder / "c"


def titles(path: Path) -> dict[str, str]:
    with open_to_read(path) as collection:
        return {each.url: each.title for each in StoredPages(collection).all()}


def has_committed(path: Path) -> bool:
    """Is anything in the collection that a kill cannot take away?"""
    try:
        with open_to_read(path) as collection:
            return stats_of(collection).pages > 0
    except LycosaError:  # there is none yet
        return False


def versions(path: Path, url: str) -> list[str]:
    """The headings of all versions of a page, the oldest first."""
    with open_to_read(path) as collection:
        now = StoredPages(collection).get(url)
        bodies = [each.body for each in (*now.versions, now)]
    return [body.partition(b"<h1>")[2].partition(b"</h1>")[0].decode() for body in bodies]


# a collection of ours, exported and imported again


@pytest.mark.slow
def test_import_of_a_crawl_gives_its_pages_versions_and_changes(tmp_path: Path) -> None:
    web = SimWeb(SimSettings(seed=1, hosts=2, pages=40, mirrors=0.3, tables=0.0))
    run(web, tmp_path / "crawl", front(web))
    run(web, tmp_path / "crawl", days=30, recrawl=Recrawl(everything=True))

    _, path = into(tmp_path, *(tmp_path / "crawl" / "warc").glob("*.warc.gz"))

    with open_to_read(tmp_path / "crawl") as old, open_to_read(path) as new:
        before, after = stats_of(old), stats_of(new)
        assert (after.pages - before.sitemaps, after.redirects) == (before.pages, before.redirects)
        assert after.queued == 0
        pages = {each.url: each for each in StoredPages(new).all()}
        for each in StoredPages(old).all():
            imported = pages[each.url]
            assert (imported.body, imported.fetched) == (each.body, each.fetched)
            assert imported.headers == each.headers
        changes, again = (list_changes(each, ChangeFilter(), most=1_000) for each in (old, new))
    assert changes
    was, now = ({(each.url, each.at_s, each.kind) for each in some} for some in (changes, again))
    assert {each for each in now if not each[0].endswith("/sitemap.xml")} == was


# order, versions, revisits


def test_captures_of_a_page_become_versions_in_order_of_time(tmp_path: Path) -> None:
    later = record("response", URL, answer(page("Third words here")), "2024-07-01T00:00:00Z")
    first = record("response", URL, answer(page("First words here")), "2024-05-01T00:00:00Z")
    second = record("response", URL, answer(page("Second words here")), "2024-06-01T00:00:00.5Z")
    a = write(tmp_path / "a.warc.gz", later, first)
    b = write(tmp_path / "b.warc", second)

    found, path = into(tmp_path, a, b)

    assert found.imported == 3
    assert versions(path, URL) == ["First words here", "Second words here", "Third words here"]
    assert page_of(path, URL).fetched.startswith("2024-07-01")


def test_revisits_resolve_to_their_originals(tmp_path: Path) -> None:
    body, other = page("A page of words"), "https://mirror.example/"
    head = answer(b"", X_From="revisit")
    file = write(
        tmp_path / "a.warc.gz",
        record("response", URL, answer(body), "2024-05-01T00:00:00Z"),
        record(
            "revisit",
            other,
            head,
            "2024-05-02T00:00:00Z",
            WARC_Refers_To_Target_URI=URL,
            WARC_Refers_To_Date="2024-05-01T00:00:00Z",
            WARC_Payload_Digest=digest(body),
        ),
        record("revisit", f"{other}by-digest", head, "2024-05-03T00:00:00Z", WARC_Payload_Digest=digest(body)),
        record("revisit", URL, answer(b"", "304 Not Modified"), "2024-05-04T00:00:00Z"),
        record("revisit", f"{other}nowhere", head, "2024-05-05T00:00:00Z", WARC_Payload_Digest=digest(b"none")),
    )

    found, path = into(tmp_path, file)

    assert found.left_out == {"revisits of what is not in the archives": 1}
    for url in (other, f"{other}by-digest"):
        copy = page_of(path, url)
        assert (copy.body, copy.duplicate_of) == (body, URL)
    assert versions(path, URL) == ["A page of words"]
    with open_to_read(path) as collection:
        assert stats_of(collection).not_modified == 1


def test_a_page_that_goes_and_comes_back_has_that_in_its_history(tmp_path: Path) -> None:
    file = write(
        tmp_path / "a.warc.gz",
        record("response", URL, answer(page("Words of a page")), "2024-05-01T00:00:00Z"),
        record("response", URL, answer(b"", "404 Not Found"), "2024-05-02T00:00:00Z"),
        record("response", URL, answer(page("Words of a page again")), "2024-05-03T00:00:00Z"),
        record("response", f"{URL}moved", answer(b"", "301 Moved", Location="/there"), "2024-05-03T00:00:00Z"),
        record("response", f"{URL}error", answer(b"", "503 No"), "2024-05-03T00:00:00Z"),
    )

    found, path = into(tmp_path, file)

    assert found.imported == 5
    with open_to_read(path) as collection:
        kinds = [each.kind for each in page_history(collection, URL).versions]
        assert stats_of(collection).failed == {"503": 1}
        assert stats_of(collection).queued == 0
    assert len(kinds) == 3
    assert page_of(path, URL).title == "Words of a page again"
    assert page_of(path, f"{URL}moved").leads_to == f"{URL}there"


# foreign habits


def test_records_of_many_tools_are_read(tmp_path: Path) -> None:
    chunked = b"5\r\n<p>ch\r\n6\r\nunked!\r\n0\r\n\r\n"
    asked = b"GET /wget HTTP/1.1\r\nUser-Agent: Wget/1.21\r\nHost: site.example\r\n\r\n"
    http2 = b"HTTP/2 200 \r\n:status: 200\r\ncontent-type: text/html\r\nbroken line\r\n\r\n" + page("By HTTP 2")
    packed = gzip.compress(page("Packed"))
    file = write(
        tmp_path / "a.warc.gz",
        record("warcinfo", "", b"software: x\r\n"),
        record("request", f"<{URL}wget>", asked),
        record("response", f"<{URL}wget>", answer(page("By wget"), Content_Length="999")),
        record("response", f"{URL}heritrix", answer(chunked, Transfer_Encoding="chunked"), WARC_IP_Address="192.0.2.9"),
        record("request", f"{URL}heritrix", b"GET /heritrix HTTP/1.0\r\nX-Asked: yes\r\n\r\n"),
        record("metadata", f"{URL}heritrix", b"fetchTimeMs: 1\r\n"),
        record("response", f"{URL}h2", http2),
        record("resource", f"{URL}resource", page("A resource"), Content_Type="text/html"),
        record("conversion", f"{URL}resource", b"text", Content_Type="text/plain"),
        record("response", f"{URL}gzip", answer(packed, Content_Encoding="gzip")),
        record("response", "dns:site.example", b"20240501 A 192.0.2.9", Content_Type="text/dns"),
        record("request", f"{URL}form", b"POST /form HTTP/1.1\r\n\r\na=b"),
        record("response", f"{URL}form", answer(page("Posted"))),
        record("response", f"{URL}robots.txt", answer(b"User-agent: *", Content_Type="text/plain")),
        record("response", f"{URL}cut", answer(page("Cut off")), WARC_Truncated="length"),
    )

    found, path = into(tmp_path, file)

    assert found.problems == []
    assert found.left_out == {"POST requests": 1, "not of a page on the web": 1}
    assert titles(path) == {
        f"{URL}wget": "By wget",
        f"{URL}heritrix": "",
        f"{URL}h2": "By HTTP 2",
        f"{URL}resource": "A resource",
        f"{URL}gzip": "Packed",
        f"{URL}cut": "Cut off",
    }
    assert page_of(path, f"{URL}heritrix").body == b"<p>chunked!"
    with open_to_read(path) as collection:
        records = [each for _, each in collection.records()]
    requests = {each.url: each.block for each in records if each.type == "request"}
    assert b"Wget/1.21" in requests[f"{URL}wget"]
    assert b"X-Asked: yes" in requests[f"{URL}heritrix"]
    assert f"{URL}h2" not in requests, "a request that is not known is not made up"
    assert any(each.url == f"{URL}robots.txt" for each in records)
    [cut] = [each for each in records if each.url == f"{URL}cut" and each.type == "response"]
    assert cut.header("WARC-Truncated") == "length"
    [from_address] = [each for each in records if each.url == f"{URL}heritrix" and each.type == "response"]
    assert from_address.header("WARC-IP-Address") == "192.0.2.9"


@pytest.mark.parametrize(
    ("name", "pages"),
    [
        ("warcio-example.warc.gz", 1),
        ("warcio-example.warc", 1),
        ("warcio-example-iana.org-chunked.warc", 1),
        ("warcio-example-resource.warc.gz", 0),
        ("warcio-example-wget-bad-target-uri.warc.gz", 1),
        ("warcio-example-space-in-target-uri.warc.gz", 0),
        ("warcio-example-trunc.warc", 1),
        ("jwarc-cc.warc.gz", 1),
    ],
)
def test_sample_files_are_imported(conformance: Path, tmp_path: Path, name: str, pages: int) -> None:
    _, path = into(tmp_path, conformance / "warc" / name)

    with open_to_read(path) as collection:
        assert stats_of(collection).pages >= pages


# damage and hostility


def test_damage_is_named_and_the_rest_is_imported(tmp_path: Path) -> None:
    records = [record("response", f"{URL}{n}", answer(page(f"Page {n}"))) for n in range(4)]
    file = write(tmp_path / "a.warc.gz", *records)
    size = len(gzip.compress(records[0]))
    data = bytearray(file.read_bytes())
    data[size + 40] ^= 0x40
    file.write_bytes(data[:-30])

    found, path = into(tmp_path, file)

    assert titles(path).keys() == {f"{URL}0", f"{URL}2"}
    assert [problem.split(": ")[0] for problem in found.problems] == [
        f"{file}, byte {size}",
        f"{file}, byte {sum(len(gzip.compress(each)) for each in records[:3])}",
    ]


def test_hostile_records_are_named_and_the_rest_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_module, "RECORD_BYTES", 50_000)
    file = write(
        tmp_path / "a.warc.gz",
        record("response", f"{URL}bomb", answer(b"\0" * 5_000_000)),
        record("response", f"{URL}undated", answer(page("No date")), ""),
        record("response", f"{URL}future", answer(page("The future")), "9999-12-31T23:59:59Z"),
        record("response", f"{URL}1066", answer(page("Before the web")), "1066-10-14T00:00:00Z"),
        record("response", f"{URL}no-http", b"\0\1\2"),
        record("response", f"{URL}status", answer(b"", "999 x")),
        record("response", "javascript:alert(1)", answer(page("Script"))),
        record("response", f"{URL}../../etc/passwd%00", answer(page("Path"))),
        record("response", f"{URL}field", answer(page("Field"), X_Odd="a\nSet-Cookie: b", Content_Length="-1")),
        record("revisit", f"{URL}loop", b"", WARC_Refers_To_Target_URI=f"{URL}loop", WARC_Payload_Digest="sha1:!"),
        record("request", f"{URL}asked", b"\xff\xfe not http"),
        record("response", f"{URL}good", answer(page("Good"))),
        record("../../evil", f"{URL}type", b"x"),
    )

    found, path = into(tmp_path, file)

    assert titles(path).keys() == {f"{URL}good", f"{URL}etc/passwd%00", f"{URL}field"}
    named = " ".join(found.problems)
    for words in ("more than 50000 bytes", "no date that can be read", "dated in the future", "no HTTP message"):
        assert words in named
    assert sorted(each.name for each in path.parent.iterdir()) == ["a.warc.gz", "c"]


def test_wacz_is_read_where_it_is(tmp_path: Path) -> None:
    data = gzip.compress(record("response", URL, answer(page("In a WACZ"))))
    other = gzip.compress(record("response", f"{URL}b", answer(page("In another"))))
    _, path = into(tmp_path, write_wacz(tmp_path / "a.wacz", one=data, two=other))

    assert titles(path) == {URL: "In a WACZ", f"{URL}b": "In another"}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "cannot be read"),
        (b"", "nothing to import"),
        (b"<html>", "not a WARC file"),
        (b"PK\3\4 and so on", "not a WARC file"),
        (gzip.compress(record("response", URL, answer(b"a")) * 2), "compressed as a whole"),
        (record("warcinfo", "", b"x"), "nothing to import"),
    ],
)
def test_what_is_no_archive_says_so_and_leaves_nothing(tmp_path: Path, content: bytes | None, says: str) -> None:
    if content is not None:
        (tmp_path / "a.warc.gz").write_bytes(content)

    with pytest.raises(LycosaError, match=says):
        import_archives([tmp_path / "a.warc.gz"], tmp_path / "c")

    assert not (tmp_path / "c").exists()


def test_folders_and_shards_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="is a folder"):
        import_archives([tmp_path], tmp_path / "c")
    (tmp_path / "cluster.json").write_text("{}")
    with pytest.raises(SettingsError, match="several shards"):
        import_archives([write(tmp_path / "a.warc")], tmp_path)


# going on


def many(folder: Path, count: int) -> Path:
    hosts = [f"https://h{n // 2 % 7}.example/{n // 2}" for n in range(count)]
    dates = [f"2024-05-{1 + n % 28:02}T{n % 24:02}:00:{n % 60:02}Z" for n in range(count)]
    pairs = enumerate(zip(hosts, dates, strict=True))
    return write(
        folder / "many.warc.gz",
        *(record("response", url, answer(page(f"Words {n}", "/0", "/1")), date) for n, (url, date) in pairs),
    )


def rows_of(path: Path) -> dict[str, tuple[str, str]]:
    with open_to_read(path) as collection:
        return {each.url: (each.title, each.fetched) for each in StoredPages(collection).all()}


def test_import_broken_off_goes_on_and_gives_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lycosa.importing.importer.COMMIT_BYTES", 20_000)
    file = many(tmp_path, 500)
    whole = import_archives([file], tmp_path / "whole")

    def stop(now: ImportProgress) -> None:
        if now.done > 300:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_archives([file], tmp_path / "c", progress=stop)
    found, path = into(tmp_path, file)

    assert 0 < found.imported < whole.imported
    assert rows_of(path) == rows_of(tmp_path / "whole")
    again, _ = into(tmp_path, file)
    assert again.imported == 0


def test_import_into_a_collection_adds_what_is_new_and_leaves_out_what_is_older(tmp_path: Path) -> None:
    a = write(tmp_path / "a.warc.gz", record("response", URL, answer(page("Now")), "2024-05-02T00:00:00Z"))
    b = write(
        tmp_path / "b.warc.gz",
        record("response", URL, answer(page("Before")), "2024-05-01T00:00:00Z"),
        record("response", f"{URL}b", answer(page("Another")), "2024-05-01T00:00:00Z"),
    )
    into(tmp_path, a)

    found, path = into(tmp_path, a, b)

    assert (found.imported, found.left_out) == (1, {"there already, or older than what is there": 2})
    assert titles(path) == {URL: "Now", f"{URL}b": "Another"}


@pytest.mark.slow
def test_import_of_the_own_export_of_a_collection_visits_no_page(tmp_path: Path) -> None:
    finer_than_a_warc_date = 1795053431.1796997
    crawl_site(tmp_path / "c", {FIRST: "<title>Home</title>"}.get, wall=lambda: finer_than_a_warc_date)
    assert lycosa("export", tmp_path / "c", "wacz", "--out", tmp_path / "c.wacz").code == 0
    result, _ = into(tmp_path, tmp_path / "c.wacz")
    assert (result.captures, result.imported) == (2, 1)  # robots.txt, which is no page
    assert lycosa("status", tmp_path / "c", "--json").facts["visits"] == 0


def test_import_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    file = many(tmp_path, 6_000)
    command = started("import", file, "--into", tmp_path / "c")
    deadline = time.monotonic() + 120
    while not has_committed(tmp_path / "c") and time.monotonic() < deadline:
        time.sleep(0.02)
    command.send_signal(signal.SIGKILL)
    assert ended(command).code == -signal.SIGKILL

    said = lycosa("import", file, "--into", tmp_path / "c", "--json")

    assert 0 < said.facts["imported"] < 6_000
    assert problems(tmp_path / "c", sampled=50) == []
    assert len(rows_of(tmp_path / "c")) == 3_000


def test_a_full_disk_ends_the_import_with_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise StoreError("writing the archive failed: no space left")

    monkeypatch.setattr("lycosa.store.warc_file.WarcWriter.append", full)
    monkeypatch.setattr("lycosa.crawl.committer.COMMIT_AGAIN_S", 0.0)
    with pytest.raises(StoreError, match="no space left"):
        import_archives([many(tmp_path, 20)], tmp_path / "c")
    monkeypatch.undo()

    found, path = into(tmp_path, tmp_path / "many.warc.gz")
    assert found.imported == 20
    assert len(titles(path)) == 10


# what it is good for


def test_command_imports_searches_links_and_goes_on_crawling_only_when_asked(tmp_path: Path) -> None:
    file = write(
        tmp_path / "a.warc.gz",
        record("response", URL, answer(page("Spiders and silk", "/b", "https://elsewhere.example/"))),
        record("response", f"{URL}b", answer(page("Silk alone", "/"))),
    )
    path = tmp_path / "c"

    said = lycosa("import", file, "--into", path, "--index")

    assert said.code == 0
    assert "2 captures of 2 imported" in said.out
    assert [each["url"] for each in lycosa("search", path, "spiders", "--json").facts["results"]] == [URL]
    assert f"{URL}b" in lycosa("links", URL, "--in", path).out
    assert lycosa("rank", path).code == 0
    assert "imported from an archive" in lycosa("why", URL, "--in", path).out
    facts = lycosa("status", path, "--json").facts
    assert (facts["pages"], facts["queued"], facts["known"]) == (2, 0, 2)
    gone_on = lycosa("crawl", "--into", path, "--quiet", "--json")
    assert json.loads(gone_on.out)["requests"] == facts["requests"], "nobody is asked"


def test_rules_of_a_forgotten_host_do_not_come_back(tmp_path: Path) -> None:
    robots = record("response", "https://gone.test/robots.txt", answer(b"User-agent: zither"))
    other = record("response", URL, answer(page("here")))
    import_archives([write(tmp_path / "a.warc", other)], tmp_path / "c")
    forget(tmp_path / "c", ["gone.test"])
    found = import_archives([write(tmp_path / "b.warc", robots)], tmp_path / "c")
    assert (found.imported, found.left_out) == (0, {"forgotten in this collection": 1})
