"""Archive formats that are killed or run out of disk: they go on or begin anew, and the old file stays until then."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from lycosa.export import ExportJob
from lycosa.export.run import export_pages
from lycosa.importing import import_archives
from lycosa.store import WarcReader
from tests.cli.command import REPOSITORY, Said
from tests.export.test_archives import is_valid
from tests.export.test_output import killed
from tests.importing.foreign import answer, page, record, write

SITE = "https://site.example/"
PAGES = 300
FORMATS = ("warc", "wet", "cdxj", "wacz")
RESUMED = ("warc", "wet")
LARGE = ("warc", "wet", "wacz")  # more than a megabyte


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("many")
    urls = [f"{SITE}{n}/..%2F..%2Fetc%2F{n}" for n in range(PAGES)]
    records = [
        record("response", url, answer(page(f"Page {n} {os.urandom(5_000).hex()}"))) for n, url in enumerate(urls)
    ]
    import_archives([write(folder / "a.warc.gz", *records)], folder / "c")
    return folder / "c"


def content(format: str, out: Path) -> object:
    """What an export holds, but for names and times that are its own."""
    if format == "cdxj":
        return out.read_bytes()
    if format == "wacz":
        with zipfile.ZipFile(out) as package:
            assert package.testzip() is None
            return [package.read(name) for name in package.namelist() if not name.startswith("datapackage")]
    assert is_valid(out)
    with WarcReader(out) as reader:
        return [(each.type, each.url, each.block) for each in reader]


@pytest.mark.parametrize("format", FORMATS)
def test_killed_archive_leaves_the_old_one_and_comes_out_whole(collection: Path, tmp_path: Path, format: str) -> None:
    out, whole = tmp_path / "out" / "site", tmp_path / "whole"
    out.parent.mkdir()
    out.write_text("the old one")
    export_pages(collection, ExportJob(format, str(whole)))
    job = ExportJob(format, str(out))

    killed(collection, job, after=128)
    assert out.read_text() == "the old one"
    report = export_pages(collection, job)

    assert (report.resumed >= 64) == (format in RESUMED)
    assert content(format, out) == content(format, whole)
    assert [path.name for path in out.parent.iterdir()] == ["site"], "nothing else is left, whatever URLs say"


@pytest.mark.slow
def test_full_disk_leaves_the_old_archive_and_the_same_command_goes_on(collection: Path, tmp_path: Path) -> None:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("needs to mount a small disk")
    disk = tmp_path / "disk"
    disk.mkdir()
    probe = ["unshare", "--mount", "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    if subprocess.run(probe, check=False, capture_output=True).returncode:
        pytest.skip("mounting is not permitted here")
    script = [sys.executable, "-m", "tests.export.small_disk", str(disk), str(collection), *LARGE]

    done = subprocess.run(
        ["unshare", "--mount", *script], cwd=REPOSITORY, capture_output=True, text=True, timeout=300, check=False
    )

    assert done.returncode == 0, done.stderr
    full, again = json.loads(done.stdout)
    for format in LARGE:
        said, names, old = full[format]
        assert Said(*said).code == 4, said
        assert Said(*said).err.count("\n") == 1
        assert "no space left" in Said(*said).err
        assert old
        assert set(names) <= {"out", ".out.partial", ".out.partial.json"}
        assert Said(*again[format]).code == 0, again[format]
