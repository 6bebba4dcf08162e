"""A collection with two versions of its pages, served by the whole application with its guard."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lycosa.serve.server import make_app
from lycosa.serve.source import CollectionSource
from lycosa.simweb import SimSettings, SimWeb
from tests.crawl.memory_crawl import crawl, front
from tests.serve.client import Client

WEB = SimWeb(SimSettings(hosts=3, pages=40, rtt_ms=20, mirrors=0.5, near_duplicates=0.2))
TOKEN = "a-token-for-tests"


@pytest.fixture(scope="session")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("serve") / "c"
    crawl(WEB, into, front(WEB), pages=30)
    return into


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slow answers are waited for, however busy the machine is."""
    monkeypatch.setattr("lycosa.serve.source.PATIENCE_S", 60.0)


@pytest.fixture
def client(collection: Path) -> Iterator[Client]:
    source = CollectionSource(collection)
    yield Client(make_app(source, token=TOKEN, replay_at="http://127.0.0.1:1/secret/"), TOKEN)
    source.close()


@pytest.fixture(scope="session")
def front_page() -> str:
    return front(WEB)
