"""Archives that are cut off, foreign or made to do harm: what is whole is imported, and what is not is named."""

import gzip
import zipfile
from pathlib import Path

import pytest

from lycosa.errors import StoreError
from lycosa.importing import import_archives
from tests.cli.command import lycosa
from tests.importing.foreign import answer, page, record, write
from tests.importing.test_import import into, titles

URL = "https://site.example/"
RECORDS = [record("response", f"{URL}{n}", answer(page(f"Page {n} " * 30))) for n in range(4)]
MEMBERS = [gzip.compress(each) for each in RECORDS]


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.slow
def test_every_sample_file_is_imported_or_refused_with_a_sentence(conformance: Path, tmp_path: Path) -> None:
    files = [file for file in sorted((conformance / "warc").iterdir()) if ".warc" in file.name or ".arc" in file.name]
    codes = {}
    for number, file in enumerate(files):
        said = lycosa("import", file, "--into", tmp_path / str(number))
        codes[file.name] = said.code
        assert "Traceback" not in said.err
        if said.code:
            assert said.err.startswith(f"lycosa: there is nothing to import in {file}")
            assert said.err.count("\n") == 1
            assert ("warcio recompress" in said.err) == (".arc" in file.suffixes)
    assert len(files) == 18
    assert {name for name, code in codes.items() if not code} == {
        *("jwarc-cc.warc.gz", "warcio-example-iana.org-chunked.warc", "warcio-example-resource.warc.gz"),
        *("warcio-example-space-in-target-uri.warc.gz", "warcio-example-trunc.warc", "warcio-example.warc"),
        *("warcio-example-wget-bad-target-uri.warc.gz", "warcio-example.warc.gz", "warcio-post-test.warc.gz"),
    }


@pytest.mark.parametrize("is_compressed", [True, False])
@pytest.mark.parametrize("left_out", [1, 5, 60, 200])
def test_archive_that_is_cut_off_gives_every_whole_record(tmp_path: Path, left_out: int, is_compressed: bool) -> None:
    file = write(tmp_path / ("a.warc.gz" if is_compressed else "a.warc"), *RECORDS)
    file.write_bytes(file.read_bytes()[:-left_out])

    found, path = into(tmp_path, file)

    last_is_whole = not is_compressed and left_out <= 4  # of a plain record only the empty lines behind it are lost
    assert len(titles(path)) == 3 + last_is_whole
    assert len(found.problems) == 1
    assert f"{file}, byte " in found.problems[0]


def test_wacz_that_is_cut_off_gives_every_whole_record(tmp_path: Path) -> None:
    file = tmp_path / "a.wacz"
    with zipfile.ZipFile(file, "w") as package:
        package.writestr("indexes/index.cdx.gz", gzip.compress(b"an index\n"))
        package.writestr("archive/a.warc.gz", b"".join(MEMBERS))
    data = file.read_bytes()
    file.write_bytes(data[: data.index(MEMBERS[3]) + 50])

    found, path = into(tmp_path, file)

    assert titles(path).keys() == {f"{URL}{n}" for n in range(3)}
    assert [problem.partition(", byte ")[0] for problem in found.problems] == [str(file)] * 2


def test_names_inside_a_wacz_are_never_paths(tmp_path: Path) -> None:
    file = tmp_path / "in" / "a.wacz"
    file.parent.mkdir()
    with zipfile.ZipFile(file, "w") as package:
        for name, member in zip(
            ("archive/../../../evil", f"{tmp_path}/evil", "archive\\evil", "ok"), MEMBERS, strict=True
        ):
            package.writestr(zipfile.ZipInfo(f"{name}.warc.gz"), member)

    found, path = into(tmp_path, file)

    assert len(titles(path)) == 4
    assert found.problems == []
    assert (names_in(tmp_path), names_in(file.parent)) == (["c", "in"], ["a.wacz"])


def test_wacz_with_one_file_that_is_no_archive_names_it(tmp_path: Path) -> None:
    file = tmp_path / "a.wacz"
    with zipfile.ZipFile(file, "w") as package:
        package.writestr("archive/bad.warc.gz", b"no archive at all " * 50)
        package.writestr("archive/good.warc.gz", MEMBERS[0])

    found, path = into(tmp_path, file)

    assert titles(path).keys() == {f"{URL}0"}
    assert len(found.problems) == 1
    assert "archive/bad.warc.gz" in found.problems[0]


def test_zip_without_any_archive_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.zip"
    with zipfile.ZipFile(file, "w") as package:
        package.writestr("a.txt", "words")
    file.write_bytes(file.read_bytes()[:-10])

    with pytest.raises(StoreError, match="nothing to import"):
        import_archives([file], tmp_path / "c")
    assert names_in(tmp_path) == ["a.zip"]
