"""Pages whose pictures were fetched are compared by them; others by what they say of them."""

import asyncio
import io
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from typer.testing import CliRunner

from lycosa.cli.commands import app
from lycosa.crawl.progress import Recrawl
from lycosa.inspect import PageHistory, page_history
from lycosa.records import Family
from lycosa.recrawl.change.verdict import ChangeKind
from lycosa.recrawl.plan import DAY_S
from lycosa.recrawl.versions import due_key, version_at, visit_of
from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.log import AuditRules, audit
from lycosa.simweb.web import NOT_FOUND, Answer
from lycosa.store import Batch, CollectionStore
from lycosa.web.url import url_key
from tests.crawl.consistency import problems
from tests.crawl.memory_crawl import Result, front
from tests.recrawl.recrawl_world import BEGIN_S, run

ALL = Recrawl(everything=True)
ROOT = "http://h0.sim:8800"
WEB = SimWeb(SimSettings(seed=1, hosts=1, pages=1))


def drawn(colour: str, **options: Any) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (40, 20), colour).save(out, "PNG", **options)
    return out.getvalue()


def page(*pictures: str, text: str = "Some words", more: str = "") -> bytes:
    shown = "".join(f"<img {more} src='{picture}' alt='A' width=40>" for picture in pictures)
    return f"<title>T</title><header><img src=/logo.png></header><main><p>{text}</p>{shown}</main>".encode()


class Site:
    """A site of one host that a test makes up and changes."""

    def __init__(self, into: Path) -> None:
        self.into = into
        self.web = WEB
        self.files = {
            "/": b"<title>R</title><main><a href=/a>a</a> <a href=/b>b</a> <a href=/c>c</a></main>",
            "/a": page("/one.png", "/both.png"),
            "/b": page("/both.png"),
            "/c": page(),
            "/one.png": drawn("red"),
            "/both.png": drawn("green"),
            "/logo.png": drawn("blue"),
        }
        self.asked: list[str] = []

    def run(self, days: float = 0.0, recrawl: Recrawl | None = None, **options: Any) -> Result:
        self.asked = []
        seeds = [] if recrawl else [f"{ROOT}/"]
        return run(self.web, self.into, *seeds, days=days, recrawl=recrawl, answer=self._answer, **options)

    def _answer(self, original: Any, host: int, target: str, *times: float) -> Answer:
        if target == "/robots.txt":
            return Answer(200, b"", "text/plain")
        self.asked.append(target)
        body = self.files.get(target)
        if body is None:
            return NOT_FOUND
        kind = "image/png" if target.endswith(".png") else "text/html"
        return Answer(200, body, kind, etag=f'"{hash(body)}"')

    def make_due(self, path: str, days: float) -> None:
        """The page is due, and nothing else is."""
        with CollectionStore.open(self.into) as collection:
            batch, state = Batch(), collection.state
            for key, _ in state.walk(Family.VISIT):
                visit = visit_of(state, key)
                assert visit is not None
                batch.delete(Family.DUE, due_key(key, visit))
                visit.due_s = BEGIN_S + (days + (-0.1 if key == url_key(ROOT + path) else 0.1)) * DAY_S
                batch.put(Family.DUE, due_key(key, visit), b"")
                batch.put(Family.VISIT, key, visit.pack())
            state.write(batch)

    def history(self, path: str) -> PageHistory:
        with CollectionStore.open(self.into) as collection:
            return page_history(collection, ROOT + path)

    def kinds(self, path: str) -> list[ChangeKind]:
        return [view.kind for view in self.history(path).versions]


@pytest.fixture(scope="module")
def looked_at(tmp_path_factory: pytest.TempPathFactory) -> Path:
    site = Site(tmp_path_factory.mktemp("pictures") / "crawl")
    site.run(images=True)
    site.run(days=1, recrawl=ALL, images=True)
    return site.into


@pytest.fixture
def site(looked_at: Path, tmp_path: Path) -> Site:
    return Site(shutil.copytree(looked_at, tmp_path / "crawl"))


def test_replaced_picture_is_a_change_of_every_page_that_shows_it_and_both_versions_are_shown(site: Site) -> None:
    site.files["/both.png"] = drawn("black")
    stats = site.run(days=2, recrawl=ALL, images=True).stats
    assert site.asked.count("/both.png") == 1
    assert stats.run_visits == 7
    for path in ("/a", "/b"):
        found = site.history(path)
        assert [view.kind for view in found.versions] == [ChangeKind.NEW, ChangeKind.IMAGE]
        assert found.versions[-1].where == f"picture {ROOT}/both.png"
        assert found.versions[-1].pictures == (f"{ROOT}/both.png",)
        (changed,) = found.pictures
        assert changed.before is not None
        assert changed.after is not None
        assert changed.before.digest != changed.after.digest
        assert (changed.before.width, changed.after.height) == (40, 20)
        assert (changed.before.size_bytes, changed.after.size_bytes) == (len(drawn("green")), len(drawn("black")))
    assert site.kinds("/c") == [ChangeKind.NEW]
    shown = CliRunner().invoke(app, ["changes", str(site.into), f"{ROOT}/a"]).stdout
    assert re.search(rf"\nimage {ROOT}/both.png\n  from 2026-01-01 .* image/png  40×20  value .* pixels", shown)
    assert re.search(r"\n  to   2026-01-03 .* image/png  40×20  value .* pixels", shown)
    assert problems(site.into) == []
    site.run(days=3, recrawl=ALL, images=True)
    assert site.kinds("/a") == [ChangeKind.NEW, ChangeKind.IMAGE]  # told once


def test_picture_that_is_looked_at_before_its_pages_is_told_of_in_the_same_run(site: Site) -> None:
    site.files["/both.png"], site.files["/b"] = drawn("black"), page("/both.png", text="Other words")
    site.make_due("/both.png", 2)
    site.run(days=2, recrawl=ALL, images=True)
    assert site.asked[0] == "/both.png"
    assert site.kinds("/a") == [ChangeKind.NEW, ChangeKind.IMAGE]
    assert [view.also for view in site.history("/b").versions] == [(), (ChangeKind.IMAGE,)]


def test_visit_of_a_page_whose_text_did_not_change_asks_for_its_pictures_alone(site: Site) -> None:
    site.files["/one.png"] = drawn("black")
    site.make_due("/a", 2)
    site.run(days=2, recrawl=Recrawl(), images=True)
    assert sorted(site.asked) == ["/a", "/both.png", "/logo.png", "/one.png"]
    assert site.kinds("/a") == [ChangeKind.NEW, ChangeKind.IMAGE]
    assert site.kinds("/b") == [ChangeKind.NEW]


def test_visit_of_a_page_whose_text_changed_stops_there_and_the_next_one_sees_the_picture(site: Site) -> None:
    site.files["/a"], site.files["/one.png"] = page("/one.png", "/both.png", text="Other words"), drawn("black")
    site.make_due("/a", 2)
    site.run(days=2, recrawl=Recrawl(), images=True)
    assert site.asked == ["/a"]
    assert site.kinds("/a") == [ChangeKind.NEW, ChangeKind.TEXT]
    site.make_due("/a", 3)
    site.run(days=3, recrawl=Recrawl(), images=True)
    assert site.kinds("/a") == [ChangeKind.NEW, ChangeKind.TEXT, ChangeKind.IMAGE]


def test_picture_that_was_found_changed_without_its_page_is_told_at_the_next_visit_of_the_page(site: Site) -> None:
    site.files["/both.png"] = drawn("black")
    site.make_due("/both.png", 2)
    site.run(days=2, recrawl=Recrawl(), images=True)
    assert site.asked == ["/both.png"]
    assert site.kinds("/a") == [ChangeKind.NEW]
    site.files["/b"] = page("/both.png", text="Other words")
    site.make_due("/both.png", 3)  # looked at before its pages, and found as it was
    site.run(days=3, recrawl=ALL, images=True)
    assert site.kinds("/a") == [ChangeKind.NEW, ChangeKind.IMAGE]
    (_, text) = site.history("/b").versions
    assert (text.kind, text.also, text.pictures) == (ChangeKind.TEXT, (ChangeKind.IMAGE,), (f"{ROOT}/both.png",))


def test_picture_of_the_frame_or_encoded_anew_is_no_change_of_its_pages(site: Site) -> None:
    site.files["/logo.png"], site.files["/one.png"] = drawn("black"), drawn("red", compress_level=0)
    site.run(days=2, recrawl=ALL, images=True)
    assert site.kinds("/logo.png") == [ChangeKind.NEW, ChangeKind.IMAGE]
    assert [site.kinds(path) for path in ("/one.png", "/a", "/c")] == [[ChangeKind.NEW]] * 3


def test_picture_that_is_gone_is_a_change_of_its_page(site: Site) -> None:
    del site.files["/one.png"]
    site.run(days=2, recrawl=ALL, images=True)
    assert site.kinds("/one.png") == [ChangeKind.NEW, ChangeKind.GONE]
    found = site.history("/a")
    assert [view.kind for view in found.versions] == [ChangeKind.NEW, ChangeKind.IMAGE]
    assert found.pictures[0].after is not None
    assert found.pictures[0].after.kind is ChangeKind.GONE


def test_picture_that_changed_makes_its_page_due_sooner(site: Site) -> None:
    site.files["/one.png"] = drawn("black")
    site.run(days=9, recrawl=ALL, images=True)
    a, c = site.history("/a"), site.history("/c")
    assert (a.visits, a.changes, c.changes) == (2, 1, 0)
    assert a.changes_per_day > c.changes_per_day
    with CollectionStore.open(site.into) as collection:
        dues = [key[8:] for key, _ in collection.state.walk(Family.DUE)]
    assert len(dues) == len(set(dues))


def test_without_pictures_what_a_page_says_of_them_counts(tmp_path: Path) -> None:
    site = Site(tmp_path / "crawl")
    site.files["/c"] = page("/one.png")
    site.run()
    assert "/one.png" not in site.asked
    site.files["/a"] = page("/one.png", "/both.png", more="height=20")
    site.files["/b"] = page("/both.png", more="alt='B'")
    site.files["/c"] = page("/two.png")
    site.run(days=1, recrawl=ALL)
    assert [site.kinds(path)[-1] for path in ("/a", "/b", "/c")] == [ChangeKind.IMAGE] * 3


def test_replaced_picture_is_told_of_where_nothing_is_archived(tmp_path: Path) -> None:
    site = Site(tmp_path / "crawl")
    site.run(images=True, archive="none")
    site.files["/one.png"] = drawn("black")
    site.run(days=1, recrawl=ALL)
    found = site.history("/a")
    assert found.versions[-1].kind is ChangeKind.IMAGE
    (changed,) = found.pictures
    assert changed.before is not None
    assert changed.after is not None
    assert (changed.before.size_bytes, changed.after.archived) == (len(drawn("red")), False)


def test_pages_hear_of_a_picture_a_few_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(tmp_path / "crawl")
    paths = [f"/p{number}" for number in range(12)]
    site.files["/"] = "".join(f"<a href={path}>p</a>" for path in paths).encode()
    site.files |= {path: page("/both.png", text=f"Words of {path}") for path in paths}
    site.run(images=True)
    turns = [0]

    def counted(*where: Any) -> Any:
        if not turns[-1]:
            asyncio.get_running_loop().call_soon(turns.append, 0)
        turns[-1] += 1
        return version_at(*where)

    monkeypatch.setattr("lycosa.recrawl.recorder.version_at", counted)
    site.files["/both.png"] = drawn("black")
    site.run(days=1, recrawl=ALL, images=True)
    assert [site.kinds(path) for path in paths] == [[ChangeKind.NEW, ChangeKind.IMAGE]] * len(paths)
    assert max(turns) <= 5
    assert problems(site.into) == []


@pytest.mark.slow
def test_recrawl_with_pictures_tells_what_the_web_says_has_changed_and_asks_politely(tmp_path: Path) -> None:
    web, into, later = SimWeb(SimSettings(seed=1, hosts=2, pages=60, tables=0.0, mirrors=0.0)), tmp_path / "c", 40
    run(web, into, front(web), images=True)
    result = run(web, into, days=later, recrawl=ALL, images=True)
    truth, told = set(), set()
    with CollectionStore.open(into) as collection:
        for host, path in {(entry.host, entry.path) for entry in result.entries if entry.status in (200, 304)}:
            place = web.layout.locate(int(host[1:-4]), path)
            if place is None:
                continue
            old, new = web.state(place, 0), web.state(place, later * DAY_S)
            is_news = old.volatile != new.volatile and not web.pages.has_marked_volatile(place)  # not learned yet
            if old.image != new.image and (old.text, old.structure) == (new.text, new.structure) and not is_news:
                truth.add(path)
            if page_history(collection, f"http://{host}:8800{path}").versions[-1].kind is ChangeKind.IMAGE:
                told.add(path)
    assert told == truth
    assert told
    assert audit(web.settings, result.entries, AuditRules(delay_s=0.05)).is_clean
