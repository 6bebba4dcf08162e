"""No store is at a web server: neither one that a crawl is told, nor one that a collection from elsewhere names."""

from pathlib import Path

import pytest

from lycosa.errors import SettingsError
from lycosa.store import ArchiveUnavailable, WarcLocation
from lycosa.store.central import open_central_store
from lycosa.store.released import read_record_at, remember_store
from tests.security.targets import literals, spellings


@pytest.fixture(autouse=True)
def no_adapter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever gets as far as an adapter fails the test."""
    fsspec = pytest.importorskip("fsspec", reason="stores at URLs need the extra store")

    def opened(url: str, **_: object) -> None:
        raise AssertionError(f"an adapter was asked for {url}")

    monkeypatch.setattr(fsspec.core, "url_to_fs", opened)


def test_store_at_a_special_address_is_refused_however_it_is_written(conformance: Path) -> None:
    targets = [*literals(conformance), *spellings(conformance)]
    urls = [target.url.replace("http:", scheme, 1) for target in targets for scheme in ("http:", "https:", "HTTP:")]
    chained = [f"{chain}::{target.url}" for target in targets for chain in ("zip://a", "simplecache", "filecache")]

    for url in (*urls, *chained):
        with pytest.raises(SettingsError, match="no place for a store"):
            open_central_store(url)
    assert len(targets) >= 300


def test_store_that_a_collection_names_is_not_asked(conformance: Path, tmp_path: Path) -> None:
    targets = literals(conformance)

    for target in targets:
        remember_store(tmp_path, target.url)
        with pytest.raises(ArchiveUnavailable, match="is missing"):
            read_record_at([tmp_path], WarcLocation(1, 0, 10))
    assert len(targets) >= 190
