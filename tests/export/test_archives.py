"""The formats of archives: WARC, WET, CDXJ and WACZ, read back by the tools that others read them with."""

import gzip
import hashlib
import io
import json
import random
import shutil
import subprocess
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from surt import surt  # type: ignore[import-untyped]
from warcio.archiveiterator import ArchiveIterator  # type: ignore[import-untyped]
from warcio.checker import Checker  # type: ignore[import-untyped]

from lycosa.errors import LycosaError
from lycosa.importing import import_archives
from lycosa.inspect import StoredPages, open_to_read, stats_of
from lycosa.store import CollectionStore, WarcReader, open_central_store, remember_store, upload_warc, warc_path
from lycosa.store.joined import SHARDED_FILE, SHARDS_FOLDER
from lycosa.web import parse_url, surt_key, three_letters
from proof.bench.archives import shows
from proof.ground.browser import browser, chromium
from proof.ground.peers import nginx, py_wacz, pywb, replaywebpage
from proof.ground.replays import body_of, embed, replayed_by_pywb, wacz_in_a_page
from tests.cli.command import lycosa
from tests.crawl.small_site import FIRST, crawl_site, links
from tests.importing.foreign import answer, digest, page, record, write

SITE = "https://site.example/"
T = TypeVar("T")


def exported(collection: Path, format: str, out: Path, *words: str) -> Path:
    said = lycosa("export", collection, format, "--out", out, *words)
    assert said.code == 0, said.err
    return out


@pytest.fixture(scope="module")
def versioned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection with versions, a copy, a redirect and a visit that found nothing new."""
    folder = tmp_path_factory.mktemp("versioned")
    body = page("The first words", "/b")
    file = write(
        folder / "a.warc.gz",
        record("request", SITE, b"GET / HTTP/1.1\r\nHost: site.example\r\n\r\n"),
        record("response", SITE, answer(body), "2024-05-01T00:00:00Z"),
        record("response", SITE, answer(page("Other words now", "/b")), "2024-06-01T00:00:00Z"),
        record("response", f"{SITE}b", answer(page("A page that stays")), "2024-05-01T00:00:00Z"),
        record("revisit", f"{SITE}b", answer(b"", "304 Not Modified"), "2024-06-01T00:00:00Z"),
        record("response", f"{SITE}copy", answer(page("A page that stays")), "2024-05-02T00:00:00Z"),
        record("response", f"{SITE}old", answer(b"", "301 Moved", Location="/"), "2024-05-02T00:00:00Z"),
        record("response", f"{SITE}gone", answer(b"", "404 Not Found"), "2024-05-02T00:00:00Z"),
        record("response", "https://other.example/", answer(page("Elsewhere")), "2024-05-02T00:00:00Z"),
        record("response", f"{SITE}packed", answer(gzip.compress(page("Packed")), Content_Encoding="gzip")),
        record("revisit", f"{SITE}later", b"", "2024-07-01T00:00:00Z", WARC_Payload_Digest=digest(body)),
    )
    import_archives([file], folder / "c")
    return folder / "c"


def is_valid(path: Path) -> bool:
    class Arguments:
        inputs, verbose = [str(path)], False

    checker = Checker(Arguments())
    checker.process_all()
    return not checker.exit_value


# WARC and WET


def test_warc_is_valid_and_has_whole_exchanges(versioned: Path, tmp_path: Path) -> None:
    out = exported(versioned, "warc", tmp_path / "o.warc.gz")

    assert is_valid(out)
    with WarcReader(out) as reader:
        records = list(reader)
    assert not reader.problems
    assert records[0].type == "warcinfo"
    answers = {each.url: each for each in records if each.type == "response"}
    assert answers.keys() == {
        *(SITE, f"{SITE}b", f"{SITE}copy", f"{SITE}old", f"{SITE}gone", f"{SITE}packed", f"{SITE}later"),
        "https://other.example/",
    }
    assert answers[f"{SITE}copy"].http()[1] == page("A page that stays"), "a copy has its body"
    assert answers[f"{SITE}later"].http()[1] == page("The first words", "/b")
    concurrent = Counter(each.header("WARC-Concurrent-To") for each in records)
    assert all(concurrent[each.header("WARC-Record-ID")] >= 1 for each in answers.values())


def test_warc_of_some_pages_has_their_records_byte_for_byte(small: Path, tmp_path: Path) -> None:
    out = exported(small, "warc", tmp_path / "o.warc.gz", "--host", "127.0.0.2")

    with WarcReader(out) as reader:
        kinds = [each.type for each in reader]
    assert kinds == ["warcinfo", "request", "response", "metadata"]
    [source] = (small / "warc").glob("*.warc.gz")
    behind_info = out.read_bytes()[gzip_member_bytes(out) :]
    assert behind_info in source.read_bytes()


def gzip_member_bytes(path: Path) -> int:
    with WarcReader(path) as reader:
        return next(iter(reader)).length


def test_wet_has_the_texts_with_language_and_the_record_they_are_of(small: Path, tmp_path: Path) -> None:
    out = exported(small, "wet", tmp_path / "o.wet.gz")

    assert is_valid(out)
    with open_to_read(small) as collection:
        names = {each.header("WARC-Record-ID"): each.url for _, each in collection.records()}
    with WarcReader(out) as reader:
        texts = {each.url: each for each in reader if each.type == "conversion"}
    assert len(texts) == 6
    for url, each in texts.items():
        assert names[each.header("WARC-Refers-To")] == url
    assert texts[FIRST].block.decode().startswith("Solar heat.")
    assert texts[FIRST].header("WARC-Identified-Content-Language") == "eng"
    assert texts[f"{FIRST}a"].header("WARC-Identified-Content-Language") == "deu"


def test_wet_counts_the_pages_that_have_text(tmp_path: Path) -> None:
    pages = {FIRST: "<p>Words.</p>" + links("none"), f"{FIRST}none": "<p> </p>"}
    crawl_site(tmp_path / "c", pages.get, FIRST)

    said = lycosa("export", tmp_path / "c", "wet", "--out", tmp_path / "o.wet.gz", "--json")

    assert said.facts["pages"] == 1


@pytest.mark.parametrize(
    ("named", "code"),
    [("en", "eng"), ("de-AT", "deu"), ("zh_TW", "zho"), ("yue", "yue"), ("EN", "eng"), ("", ""), ("x1", "")],
)
def test_languages_have_three_letters(named: str, code: str) -> None:
    assert three_letters(named) == code


# CDXJ


def lines_of(path: Path) -> list[tuple[str, str, dict[str, str]]]:
    parts = [line.split(" ", 2) for line in path.read_text().splitlines()]
    return [(key, moment, json.loads(about)) for key, moment, about in parts]


def test_cdxj_is_sorted_and_every_line_leads_to_its_record(versioned: Path, tmp_path: Path) -> None:
    out = exported(versioned, "cdxj", tmp_path / "o.cdxj")

    raw = out.read_bytes().splitlines()
    assert raw == sorted(raw)
    lines = lines_of(out)
    assert [moment for key, moment, _ in lines if key == "example,site)/"] == ["20240501000000", "20240601000000"]
    mimes = {about["url"]: about["mime"] for _, _, about in lines}
    assert (mimes[f"{SITE}copy"], mimes[SITE]) == ("warc/revisit", "text/html")
    for key, moment, about in lines:
        with (versioned / "warc" / about["filename"]).open("rb") as file:
            file.seek(int(about["offset"]))
            [found] = ArchiveIterator(io.BytesIO(file.read(int(about["length"]))))
        assert found.rec_headers["WARC-Target-URI"] == about["url"]
        assert found.rec_headers["WARC-Date"].replace("-", "").replace(":", "").replace("T", "")[:14] == moment
        assert key == surt(about["url"])
        if about["digest"] != "-":
            assert found.rec_headers["WARC-Payload-Digest"] == about["digest"]


def test_error_answers_are_in_every_index_and_copy_of_the_archive(versioned: Path, tmp_path: Path) -> None:
    wacz = exported(versioned, "wacz", tmp_path / "o.wacz", "--status", "404")
    warc = exported(versioned, "warc", tmp_path / "o.warc.gz", "--status", "4xx")

    with zipfile.ZipFile(wacz) as package:
        indexes = gzip.decompress(package.read("indexes/index.cdx.gz")), package.read("pages/pages.jsonl")
    for text in (indexes[0].decode(), exported(versioned, "cdxj", tmp_path / "o.cdxj").read_text()):
        [line] = [line for line in text.splitlines() if "/gone" in line]
        about = json.loads(line.split(" ", 2)[2])
        assert (about["url"], about["status"], about["mime"]) == (f"{SITE}gone", "404", "text/html")
    assert b"/gone" not in indexes[1], "it is no page"
    found = import_archives([warc], tmp_path / "again")
    assert (found.imported, found.problems) == (1, [])
    with open_to_read(tmp_path / "again") as collection:
        assert stats_of(collection).failed == {"404": 1}


_PIECES = st.sampled_from(
    "a B %20 %7E ~ %e4 %2F // / /./ /../ index.html . .. (S(0123456789abcdef01234567)) x.aspx ? & = && a=1 b=2 B=2 ; + "
    "phpsessid=0123456789abcdef0123456789abcdef sid=0123456789abcdef0123456789abcdef cfid=1&cftoken=2 %2520 % é #f ' ( "
    ") [ ] | { \\ ^ %00 %3f %26 %23 jsessionid=0123456789ABCDEF0123456789abcdef".split()
)
_HOSTS = st.sampled_from(
    "example.org www.example.org www2.example.org:8080 EXAMPLE.org:443 192.168.0.1 example.org. bücher.example".split()
)


@given(scheme=st.sampled_from(["http", "https"]), host=_HOSTS, pieces=st.lists(_PIECES, max_size=8))
def test_surt_key_is_that_of_the_package(scheme: str, host: str, pieces: list[str]) -> None:
    url = parse_url(f"{scheme}://{host}/{''.join(pieces)}")
    if url is not None:
        assert surt_key(url.href) == surt(url.href)


# WACZ


def test_wacz_of_everything_has_the_files_as_they_are(versioned: Path, tmp_path: Path) -> None:
    out = exported(versioned, "wacz", tmp_path / "o.wacz")

    with zipfile.ZipFile(out) as package:
        for info in package.infolist():
            is_stored = info.compress_type == zipfile.ZIP_STORED
            assert is_stored == info.filename.endswith(".gz")
        [source] = (versioned / "warc").glob("*.warc.gz")
        assert package.read(f"archive/{source.name}") == source.read_bytes()
        about = json.loads(package.read("datapackage.json"))
        for resource in about["resources"]:
            data = package.read(resource["path"])
            assert (resource["bytes"], resource["hash"]) == (len(data), f"sha256:{hashlib.sha256(data).hexdigest()}")
        index = gzip.decompress(package.read("indexes/index.cdx.gz"))
        pages = [json.loads(line) for line in package.read("pages/pages.jsonl").splitlines()]
    assert index == exported(versioned, "cdxj", tmp_path / "o.cdxj").read_bytes()
    assert pages[0] == {"format": "json-pages-1.0", "id": "pages", "title": "All Pages", "hasText": True}
    texts = {each["url"]: each["text"] for each in pages[1:]}
    assert "Other words now" in texts[SITE]
    assert f"{SITE}old" not in texts
    assert about["wacz_version"] == "1.1.1"


def test_wacz_of_some_pages_can_be_imported_again(versioned: Path, tmp_path: Path) -> None:
    out = exported(versioned, "wacz", tmp_path / "o.wacz", "--host", "site.example", "--content", "none")

    found = import_archives([out], tmp_path / "c")

    assert (found.problems, found.left_out) == ([], {})
    with open_to_read(versioned) as old, open_to_read(tmp_path / "c") as new:
        was = {each.url: each.body for each in StoredPages(old).all() if each.url.startswith(SITE)}
        assert {each.url: each.body for each in StoredPages(new).all()} == was


def test_wacz_index_of_many_pages_is_in_members(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lycosa.export.cdxj.RUN_BYTES", 5_000)
    monkeypatch.setattr("lycosa.export.wacz.LINES_PER_MEMBER", 10)
    records = [record("response", f"{SITE}{n}", answer(page(f"Page {n}"))) for n in range(95)]
    import_archives([write(tmp_path / "a.warc.gz", *records)], tmp_path / "c")

    with zipfile.ZipFile(exported(tmp_path / "c", "wacz", tmp_path / "o.wacz")) as package:
        index, entries = package.read("indexes/index.cdx.gz"), package.read("indexes/index.idx").splitlines()

    lines = gzip.decompress(index).splitlines()
    assert len(lines) == 95
    assert lines == sorted(lines)
    assert len(entries) == 11
    for number, entry in enumerate(entries[1:]):
        key, moment, about = entry.split(b" ", 2)
        place = json.loads(about)
        member = gzip.decompress(index[place["offset"] : place["offset"] + place["length"]])
        assert member.splitlines()[0].startswith(key + b" " + moment)
        assert member.splitlines() == lines[number * 10 : number * 10 + 10]


def test_wacz_directory_lists_extra_fields_for_each_file_that_has_some(versioned: Path, tmp_path: Path) -> None:
    """ReplayWeb.page counts on it: without them in the directory it does not look for them before the file."""
    out = exported(versioned, "wacz", tmp_path / "o.wacz")

    with zipfile.ZipFile(out) as package:
        for info in package.infolist():
            data = out.read_bytes()[info.header_offset :]
            local = int.from_bytes(data[28:30], "little")
            assert bool(local) == bool(info.extra)


def test_wacz_has_text_or_none(small: Path, tmp_path: Path) -> None:
    said = lycosa("export", small, "wacz", "--content", "html", "--out", tmp_path / "o.wacz")

    assert said.code == 2
    assert "text, or none" in said.err


# shards and central stores


def test_archives_of_shards_and_of_a_central_store_are_exported(versioned: Path, tmp_path: Path) -> None:
    whole = tmp_path / "sharded"
    shutil.copytree(versioned, whole / SHARDS_FOLDER / "0")
    (whole / SHARDED_FILE).write_text("{}")
    plain = exported(versioned, "warc", tmp_path / "plain.warc.gz")
    assert bodies(exported(whole, "warc", tmp_path / "sharded.warc.gz")) == bodies(plain)
    lines = exported(versioned, "cdxj", tmp_path / "plain.cdxj").read_bytes()
    assert exported(whole, "cdxj", tmp_path / "sharded.cdxj").read_bytes() == lines

    stored = tmp_path / "stored"
    shutil.copytree(versioned, stored)
    store = open_central_store(str(tmp_path / "store"))
    with CollectionStore.open(stored) as collection:
        collection.warc.finish_file()
        remember_store(collection.warc_folder, store.url)
        for number, length in collection.finished_files().items():
            source = warc_path(collection.warc_folder, number)
            collection.release(number, upload_warc(source, length, store, stored / "packing"))
    assert not list((stored / "warc").glob("*.warc.gz"))
    assert bodies(exported(stored, "warc", tmp_path / "stored.warc.gz")) == bodies(plain)
    import_archives([exported(stored, "wacz", tmp_path / "stored.wacz")], tmp_path / "again")


def bodies(path: Path) -> dict[str | None, bytes]:
    assert is_valid(path)
    with WarcReader(path) as reader:
        return {each.url: each.http()[1] for each in reader if each.type == "response"}


# the tools of others


def tool(install: Callable[[], T]) -> T:
    try:
        return install()
    except LycosaError as error:
        pytest.skip(f"it cannot be had here: {error}")


@pytest.mark.slow
def test_wacz_is_validated_by_py_wacz(versioned: Path, tmp_path: Path) -> None:
    command = tool(py_wacz).with_name("wacz")
    for name, words in (("whole", ()), ("part", ("--host", "site.example"))):
        out = exported(versioned, "wacz", tmp_path / f"{name}.wacz", *words)
        done = subprocess.run([command, "validate", "-f", out], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "is valid" in done.stdout


@pytest.mark.slow
def test_cdxj_agrees_with_that_of_the_indexer_of_others(versioned: Path, tmp_path: Path) -> None:
    command = tool(py_wacz).with_name("cdxj-indexer")
    [source] = (versioned / "warc").glob("*.warc.gz")
    theirs = tmp_path / "theirs.cdxj"
    subprocess.run([command, "--sort", "-o", theirs, source], check=True, capture_output=True)

    ours = lines_of(exported(versioned, "cdxj", tmp_path / "ours.cdxj"))
    known = {(about["offset"], about["url"]): (key, moment, about) for key, moment, about in lines_of(theirs)}

    assert ours
    for key, moment, about in ours:
        key_there, moment_there, there = known[about["offset"], about["url"]]
        assert (key, moment) == (key_there, moment_there)
        for name in ("length", "status", "filename"):
            assert about[name] == there.get(name, about[name])
        assert about["mime"] in (there["mime"], "unk")


@pytest.mark.slow
def test_pywb_replays_a_hundred_pages_byte_for_byte(tmp_path: Path) -> None:
    documents = {f"{SITE}docs/{n}.html": page(f"Page {n} of many", f"/docs/{n + 1}.html") for n in range(120)}
    records = [
        record("response", url, answer(gzip.compress(body), Content_Encoding="gzip") if n % 2 else answer(body))
        for n, (url, body) in enumerate(documents.items())
    ]
    import_archives([write(tmp_path / "a.warc.gz", *records)], tmp_path / "c")
    out = exported(tmp_path / "c", "warc", tmp_path / "o.warc.gz")

    tool(pywb)
    with replayed_by_pywb(tmp_path, out) as port:
        for url in random.Random(1).sample(sorted(documents), 100):
            assert body_of(port, f"/t/20240501120000id_/{url}") == (200, documents[url]), url


@pytest.mark.slow
def test_replaywebpage_shows_a_copy_behind_a_redirect_in_chromium(tmp_path: Path) -> None:
    for needed in (replaywebpage, nginx, chromium):
        tool(needed)
    body = page("A page that stays")
    file = write(
        tmp_path / "a.warc.gz",
        record("response", f"{SITE}b", answer(gzip.compress(body), Content_Encoding="gzip"), "2024-05-01T00:00:00Z"),
        record("response", f"{SITE}copy", answer(gzip.compress(body), Content_Encoding="gzip"), "2024-05-02T00:00:00Z"),
        record("response", f"{SITE}old", answer(b"", "301 Moved", Location="/copy"), "2024-05-02T00:00:00Z"),
    )
    import_archives([file], tmp_path / "c")
    out = exported(tmp_path / "c", "wacz", tmp_path / "o.wacz")

    with wacz_in_a_page(tmp_path / "page", out) as server, browser() as opened:
        assert shows(opened, embed(tmp_path / "page", server, 0, f"{SITE}old"), "A page that stays", "/replay/w/")


@pytest.mark.parametrize("form", ["warc", "cdxj", "wacz"])
def test_summary_counts_the_captures_that_are_written(small: Path, tmp_path: Path, form: str) -> None:
    captures = exported(small, "cdxj", tmp_path / "lines").read_text().splitlines()

    everything = lycosa("export", small, form, "--out", tmp_path / "all")
    errors = lycosa("export", small, form, "--status", "4xx", "--out", tmp_path / "errors")

    assert everything.err.startswith(f"{len(captures)} captures (redirects and errors, too), ")
    assert errors.err.startswith("2 captures (redirects and errors, too), ")


def test_summary_of_all_versions_says_that_they_are_versions(versioned: Path) -> None:
    said = lycosa("export", versioned, "jsonl", "--versions")
    assert said.err.startswith(f"{len(said.out.splitlines())} versions, ")
