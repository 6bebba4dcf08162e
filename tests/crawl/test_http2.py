"""HTTP/2 as an option of a crawl, and what a host says of https, by a server that offers both."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from lycosa.inspect import hosts, open_to_read
from lycosa.store.warc_read import WarcReader
from tests.nginx import nginx
from tests.sessions.recording_server import crawl


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "site.pem"))
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text("<title>hello</title>")
    with nginx(tmp_path, tmp_path / "site") as port:
        yield f"https://127.0.0.1:{port}/"


@pytest.mark.parametrize(("http2", "protocol"), [(False, None), (True, "h2")])
def test_http2_is_spoken_if_asked_for_and_named_in_the_archive(
    tmp_path: Path, site: str, http2: bool, protocol: str | None
) -> None:
    stats = crawl(tmp_path / "c", site, http2=http2, ca_file=str(tmp_path / "ca.pem"))

    assert stats.pages == 1
    (archive,) = (tmp_path / "c" / "warc").iterdir()
    records = [record for record in WarcReader(archive) if record.type in ("request", "response")]
    assert {record.header("WARC-Protocol") for record in records} == {protocol}
    assert {record.block.split(b" ")[0] for record in records if record.type == "response"} == {b"HTTP/1.1"}
    with open_to_read(tmp_path / "c") as collection:
        (host,) = hosts(collection)
    assert 3_500 < host.hsts_until - time.time() <= 3_600
