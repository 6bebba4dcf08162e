"""What a replay answers: its own pages and archived documents, with the policy that goes with each."""

import gzip
import re
import shutil
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from lycosa.importing import import_archives
from lycosa.replay import Replay, ReplayAnswer, ReplayRequest
from lycosa.store import CollectionStore, open_central_store, remember_store, upload_warc, warc_path
from lycosa.store.joined import SHARDED_FILE, SHARDS_FOLDER
from tests.importing.foreign import answer, page, record, write

SITE = "https://site.example/"
PREFIX = "/token/"


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("replayed")
    html = b"<title>&lt;b&gt;Old</title><link rel=stylesheet href=s.css><img src=i.png><a href=b#x>b</a>"
    latin = "<meta charset=windows-1252><title>Lat\xedn</title><a href='?q=\xe4'>\xe4</a>".encode("windows-1252")
    file = write(
        folder / "a.warc.gz",
        record("response", SITE, answer(html), "2024-05-01T00:00:00Z"),
        record("response", SITE, answer(html.replace(b"Old", b"New")), "2024-06-01T00:00:00Z"),
        record("response", f"{SITE}b", answer(gzip.compress(page("Packed")), Content_Encoding="gzip")),
        record("response", f"{SITE}copy", answer(page("Packed")), "2024-05-02T00:00:00Z"),
        record("response", f"{SITE}s.css", answer(b"p { background: url(i.png) }", Content_Type="text/css")),
        record("response", f"{SITE}i.png", answer(b"\x89PNG\r\n\x1a\nx", Content_Type="image/png")),
        record("response", f"{SITE}old", answer(b"", "301 Moved", Location="/b"), "2024-05-02T00:00:00Z"),
        record("response", f"{SITE}latin", answer(latin, Content_Type="text/html")),
        record("response", f"{SITE}a/..%2F..%2Fetc%2Fpasswd.zip", answer(b"PK\3\4", Content_Type="application/zip")),
        record("response", f"{SITE}live", answer(b"<p>x", Link="<https://live.example/x.css>; rel=preload",
               Set_Cookie="a=b", Refresh="0; url=https://live.example/", Access_Control_Allow_Origin="*")),
        record("response", f"{SITE}many", answer(b"--x\r\n", Content_Type="multipart/x-mixed-replace; boundary=x")),
    )  # fmt: skip
    import_archives([file], folder / "c")
    return folder / "c"


@pytest.fixture
def replay(collection: Path) -> Iterator[Replay]:
    made = Replay(collection, prefix=PREFIX)
    yield made
    made.close()


def ask(replay: Replay, rest: str, **headers: str) -> ReplayAnswer:
    fields = {"host": "127.0.0.1:8470", **{name.replace("_", "-"): value for name, value in headers.items()}}
    return replay.answer(ReplayRequest("GET", PREFIX + rest, fields))


def field(found: ReplayAnswer, name: str) -> str:
    return dict(found.headers)[name]


def test_start_page_lists_documents_and_finds_urls_by_host_and_by_words(replay: Replay) -> None:
    text = ask(replay, "").body.decode()
    assert f"{PREFIX}view/latest/{SITE}b" in text
    assert "s.css" not in text, "a first look is for documents"
    assert f"{SITE}s.css" in ask(replay, "?q=S.CSS").body.decode()
    assert f"{SITE}i.png" in ask(replay, "?q=site.example").body.decode()
    assert "No archived URL has" in ask(replay, "?q=nowhere%3Cb%3E").body.decode()
    assert "<b>" not in ask(replay, "?q=nowhere%3Cb%3E").body.decode()


def test_start_page_goes_on_behind_its_last_url(replay: Replay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lycosa.replay.captures.LISTED", 2)
    seen, rest = [], "?q=site.example"
    while rest:
        text = ask(replay, rest).body.decode()
        seen += re.findall(rf"view/latest/({SITE}[^\"]*)\"", text)
        more = re.search(rf'href="{PREFIX}([^"]*after=[^"]*)"', text)
        rest = unescape(more[1]) if more else ""
    assert len(seen) == len(set(seen)) == 10


def test_start_page_leads_to_a_url_that_is_archived(replay: Replay) -> None:
    found = ask(replay, f"?q={SITE}b")

    assert (found.status, field(found, "Location")) == (302, f"{PREFIX}view/latest/{SITE}b")


def test_view_names_the_time_and_leads_to_other_versions(replay: Replay) -> None:
    text = ask(replay, f"view/20240515/{SITE}").body.decode()

    assert "2024-05-01 00:00:00Z" in text
    assert f'href="{PREFIX}view/20240601000000/{SITE}"' in text
    assert "version 1 of 2" in text
    assert f'data-page="{PREFIX}page/20240515/{SITE}"' in text
    assert "version 2 of 2" in ask(replay, f"view/latest/{SITE}").body.decode()


@pytest.mark.parametrize(("moment", "word"), [("2024", b"Old"), ("20240517", b"New"), ("latest", b"New")])
def test_capture_nearest_to_the_time_is_shown(replay: Replay, moment: str, word: bytes) -> None:
    assert word in ask(replay, f"page/{moment}/{SITE}").body


def test_titles_are_escaped_in_pages_of_our_own(replay: Replay) -> None:
    for rest in ("", f"view/latest/{SITE}"):
        text = ask(replay, rest).body.decode()
        assert "&lt;b&gt;New" in text
        assert "<b>" not in text


def test_captures_are_listed_the_newest_first(replay: Replay) -> None:
    text = ask(replay, f"captures/{SITE}").body.decode()

    assert re.findall(r"view/(\d{14})/", text) == ["20240601000000", "20240501000000"]


def test_archived_page_is_rewritten_and_sandboxed(replay: Replay) -> None:
    found = ask(replay, f"page/2024/{SITE}")

    assert f'href="{PREFIX}view/2024/{SITE}b#x"'.encode() in found.body
    policy = field(found, "Content-Security-Policy")
    sandbox = policy.partition(";")[0].split()
    assert sandbox[0] == "sandbox"
    assert not {"allow-scripts", "allow-same-origin", "allow-forms", "allow-top-navigation"} & set(sandbox)
    assert "default-src 'none'" in policy
    assert "script-src" not in policy
    assert "127.0.0.1:8470/token/" in policy


def test_copies_and_packed_bodies_are_whole(replay: Replay) -> None:
    for name in ("b", "copy"):
        assert b"<h1>Packed</h1>" in ask(replay, f"page/latest/{SITE}{name}").body


def test_style_sheet_leads_into_the_archive_and_image_is_as_it_was(replay: Replay) -> None:
    found = ask(replay, f"file/latest/{SITE}s.css")
    assert found.body == f'p {{ background: url("{PREFIX}file/latest/{SITE}i.png") }}'.encode()
    assert ask(replay, f"file/latest/{SITE}i.png").body == b"\x89PNG\r\n\x1a\nx"


def test_redirect_leads_on_at_the_same_time(replay: Replay) -> None:
    for kind in ("view", "page", "file"):
        found = ask(replay, f"{kind}/2024/{SITE}old")
        assert (found.status, field(found, "Location")) == (302, f"{PREFIX}{kind}/2024/{SITE}b")


def test_redirects_in_a_circle_are_a_page_that_says_so(tmp_path: Path) -> None:
    there = record("response", f"{SITE}there", answer(b"", "302 Found", Location="/back"))
    back = record("response", f"{SITE}back", answer(b"", "302 Found", Location="/there"))
    import_archives([write(tmp_path / "a.warc.gz", there, back)], tmp_path / "c")
    circle = Replay(tmp_path / "c", prefix=PREFIX)
    found = ask(circle, f"view/2024/{SITE}there")
    circle.close()
    assert found.status == 404 and b"leads in a circle" in found.body


def test_other_encodings_become_utf8(replay: Replay) -> None:
    found = ask(replay, f"page/latest/{SITE}latin")

    assert field(found, "Content-Type") == "text/html; charset=utf-8"
    assert ">ä</a>".encode() in found.body
    assert b"?q=%E4" in found.body


def test_header_fields_of_the_archive_are_not_sent_on(replay: Replay) -> None:
    found = ask(replay, f"page/latest/{SITE}live")

    assert not {"link", "set-cookie", "refresh"} & {name.lower() for name, _ in found.headers}
    assert "live.example" not in str(found.headers)
    assert field(found, "Access-Control-Allow-Origin") == "null"
    assert field(ask(replay, f"file/latest/{SITE}many"), "Content-Type") == "application/octet-stream"


def test_what_is_not_archived_says_so_and_names_neighbours(replay: Replay) -> None:
    found = ask(replay, f"view/latest/{SITE}c<b>")
    text = found.body.decode()

    assert found.status == 404
    assert "Not in this collection" in text
    assert f"{PREFIX}view/latest/{SITE}copy" in text
    assert "<b>" not in text
    assert ask(replay, f"file/latest/{SITE}none.png").status == 404


def test_document_is_shown_inside_the_frame_only(replay: Replay) -> None:
    found = ask(replay, f"page/2024/{SITE}b", sec_fetch_dest="document")
    assert (found.status, field(found, "Location")) == (302, f"{PREFIX}view/2024/{SITE}b")
    assert ask(replay, f"page/2024/{SITE}b", sec_fetch_dest="iframe").status == 200
    found = ask(replay, f"view/2024/{SITE}b", sec_fetch_dest="iframe")
    assert field(found, "Location") == f"{PREFIX}frame/2024/{SITE}b"


def test_document_that_a_browser_cannot_show_is_saved_under_a_harmless_name(replay: Replay) -> None:
    url = f"{SITE}a/..%2F..%2Fetc%2Fpasswd.zip"
    text = ask(replay, f"view/latest/{url}").body.decode()
    assert "is not shown here" in text
    assert "<iframe" not in text
    found = ask(replay, f"save/latest/{url}")
    assert found.body == b"PK\3\4"
    assert field(found, "Content-Disposition") == 'attachment; filename="2F.._2Fetc_2Fpasswd.zip"'


@pytest.mark.parametrize("target", ["/", "/tokem/", "/token", f"/other/view/latest/{SITE}", "/token\xe9/"])
def test_without_the_token_nothing_is_told(replay: Replay, target: str) -> None:
    found = replay.answer(ReplayRequest("GET", target, {"host": "127.0.0.1"}))

    assert found.status == 403
    assert b"site.example" not in found.body
    assert PREFIX not in str(found)


@pytest.mark.parametrize(
    "rest",
    [
        *("x", "view/", "view/latest/", "view/1/x", "page/20249999/x.example", "save/", "captures/"),
        *("view/latest/ftp://x/", "?q=%", "?after=%00", "captures/%20", "view/latest/::"),
    ],
)
def test_nonsense_is_answered_with_a_sentence(replay: Replay, rest: str) -> None:
    found = ask(replay, rest)

    assert found.status in (200, 404)
    assert b"Traceback" not in found.body


def test_lost_archive_file_is_named(collection: Path, tmp_path: Path) -> None:
    shutil.copytree(collection, tmp_path / "c")
    [file] = (tmp_path / "c" / "warc").glob("*.warc.gz")
    file.unlink()
    made = Replay(tmp_path / "c", prefix=PREFIX)

    found = ask(made, f"page/latest/{SITE}b")

    assert found.status == 503
    assert file.name in found.body.decode()
    made.close()


def test_collection_in_a_central_store_is_replayed(collection: Path, tmp_path: Path) -> None:
    stored = tmp_path / "c"
    shutil.copytree(collection, stored)
    store = open_central_store(str(tmp_path / "store"))
    with CollectionStore.open(stored) as opened:
        opened.warc.finish_file()
        remember_store(opened.warc_folder, store.url)
        for number, length in opened.finished_files().items():
            source = warc_path(opened.warc_folder, number)
            opened.release(number, upload_warc(source, length, store, stored / "packing"))
    assert not list((stored / "warc").glob("*.warc.gz"))
    made = Replay(stored, prefix=PREFIX)

    assert b"<h1>Packed</h1>" in ask(made, f"page/latest/{SITE}copy").body
    assert b"Old" in ask(made, f"page/2024/{SITE}").body
    made.close()


def test_page_that_is_gone_is_replayed_as_it_was(tmp_path: Path) -> None:
    """A recrawl that finds a page gone keeps its versions."""
    file = write(
        tmp_path / "a.warc.gz",
        record("response", SITE, answer(page("Here")), "2024-05-01T00:00:00Z"),
        record("response", SITE, answer(b"<p>no more", "410 Gone"), "2024-06-01T00:00:00Z"),
        record("response", f"{SITE}never", answer(b"<p>none", "404 Not Found"), "2024-06-01T00:00:00Z"),
    )
    import_archives([file], tmp_path / "c")
    made = Replay(tmp_path / "c", prefix=PREFIX)

    assert b"<h1>Here</h1>" in ask(made, f"page/2024/{SITE}").body
    found = ask(made, f"page/2024/{SITE}never")
    assert (found.status, b"none" in found.body) == (404, True)
    assert "The server answered with status 404" in ask(made, f"view/2024/{SITE}never").body.decode()
    made.close()


def test_collection_of_shards_is_replayed(collection: Path, tmp_path: Path) -> None:
    shutil.copytree(collection, tmp_path / "c" / SHARDS_FOLDER / "0")
    (tmp_path / "c" / SHARDED_FILE).write_text("{}")
    made = Replay(tmp_path / "c", prefix=PREFIX)

    assert b"<h1>Packed</h1>" in ask(made, f"page/latest/{SITE}copy").body
    assert f"{SITE}b" in ask(made, "?q=site").body.decode()
    assert "version 1 of 2" in ask(made, f"view/2024/{SITE}").body.decode()
    made.close()
