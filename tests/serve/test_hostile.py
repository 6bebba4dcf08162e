"""What a hostile site writes stays text on every page: nothing of it is markup, nothing runs, and the layout holds."""

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest

from lycosa.api import Collection
from lycosa.serve.server import make_app
from lycosa.serve.source import CollectionSource
from proof.ground.browser import browser
from proof.ground.servers import live_page
from tests.serve.client import Client
from tests.serve.hostile_site import INJECTIONS, WORD, address, crawl_hostile, hostile_strings
from tests.serve.running import require_chromium

COPIES = "http://127.0.0.1:1/secret/"
FIXED = ["/", "/hosts", "/urls", "/changes", f"/search?q={WORD}", "/graph", "/settings", "/log"]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory, conformance: Path) -> Path:
    into = tmp_path_factory.mktemp("hostile") / "c"
    crawl_hostile(into, hostile_strings(conformance))
    return into


@pytest.fixture(scope="module")
def hostile_client(hostile: Path) -> Iterator[Client]:
    source = CollectionSource(hostile)
    yield Client(make_app(source, token="t", replay_at=COPIES), "t")
    source.close()


def pages_of(hostile: Path, most: int) -> list[str]:
    """The pages that do not show one URL, and those about some that do."""
    with Collection(hostile) as collection:
        known = [collection.why(address(at, text)).url for at, text in enumerate(INJECTIONS)]
        known += [each.url for each in collection.changes(most=most)]
        host = next(iter(collection.hosts())).host
    about = [f"{page}?{urlencode({'url': url})}" for url in known for page in ("/url", "/change", "/graph")]
    asked = [
        f"{page}={urlencode({'': text})[1:]}" for text in INJECTIONS[:3] for page in ("/search?q", "/hosts?q", "/go?q")
    ]
    return [*FIXED, f"/host?{urlencode({'host': host})}", *about, *asked]


class Markup(HTMLParser):
    """Collects what a page could be taken over by."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            is_foreign = name in ("href", "src", "action", "srcdoc") and not str(value).startswith(("/", "#", "data:,"))
            if name.startswith("on") or name == "style" or is_foreign:
                self.found.append(f"{tag} {name}={value}")
        if tag in ("object", "embed", "img", "base", "style") or (tag == "script" and dict(attrs).get("src") is None):
            self.found.append(tag)


@pytest.mark.slow
def test_what_a_site_writes_is_text_on_every_page(hostile: Path, hostile_client: Client) -> None:
    shown = ""
    for path in pages_of(hostile, most=10):
        answer = hostile_client.get(path)
        assert answer.status in (200, 303, 400, 404), (path, answer.text)
        markup = Markup()
        markup.feed(answer.text)
        assert markup.found == [], path
        shown += answer.text
    assert "&lt;script&gt;document.title" in shown, "the pages have shown such a text"


@pytest.mark.slow
def test_nothing_of_a_site_runs_in_a_browser_and_the_layout_holds(hostile: Path) -> None:
    require_chromium()
    with live_page(hostile) as served, browser() as page:
        page.resize(400)
        page.open(served.link)
        at = urlsplit(served.link)
        for path in pages_of(hostile, most=4):
            page.open(f"{at.scheme}://{at.netloc}{path}", settle_s=0.02)
            assert page.evaluate("document.title") != "taken over", path
            assert page.evaluate("document.documentElement.scrollWidth") <= 400, path
        page.open(f"{at.scheme}://{at.netloc}/report")
        page.wait(
            lambda: any("<h1" in text for url, text in page.texts().items() if url.endswith("/report/page")), 60.0
        )
        assert "<h1" in "".join(text for url, text in page.texts().items() if url.endswith("/report/page"))
    assert page.dialogs == []
    assert [each for each in page.problems if "status of 40" not in each] == []
    assert [url for url in page.requests if at.netloc not in url and not url.startswith("data:")] == []
