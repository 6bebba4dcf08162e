"""What a campaign remembers: it goes on where it was interrupted, and begins anew where anything is different."""

from pathlib import Path

import msgspec
import pytest

from lycosa.errors import StoreError
from proof.ground import ledger
from proof.ground.ledger import Ledger, code_digest


class Part(msgspec.Struct, frozen=True):
    number: int


def test_ledger_goes_on_where_its_campaign_was_interrupted(tmp_path: Path) -> None:
    first = Ledger("some", Part, 1, folder=tmp_path)
    first.add(Part(3))
    assert Ledger("some", Part, 1, folder=tmp_path).parts == [Part(3)]
    assert Ledger("some", Part, 2, folder=tmp_path).parts == []
    first.close()
    assert Ledger("some", Part, 1, folder=tmp_path).parts == []


def test_kill_between_the_file_and_its_folder_leaves_nothing_to_the_next_campaign(tmp_path: Path) -> None:
    killed = Ledger("some", Part, folder=tmp_path)
    killed.add(Part(3))
    killed.folder.mkdir()
    (killed.folder / "crawl").touch()
    killed._path.unlink()
    assert Ledger("some", Part, folder=tmp_path).parts == []
    assert list(tmp_path.iterdir()) == []


def test_folder_of_a_campaign_that_goes_on_stays(tmp_path: Path) -> None:
    first = Ledger("some", Part, folder=tmp_path)
    first.add(Part(3))
    first.folder.mkdir()
    assert Ledger("some", Part, folder=tmp_path).folder.is_dir()


def test_full_disk_is_told_in_a_sentence_and_what_was_kept_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    first = Ledger("some", Part, folder=tmp_path)
    first.add(Part(3))
    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(StoreError, match="writing what the campaign has done failed: no space left"):
        first.add(Part(4))
    assert Ledger("some", Part, folder=tmp_path).parts == [Part(3)]


def test_ledger_of_other_code_is_not_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for of_any_code in (False, True):
        Ledger("some", Part, folder=tmp_path, of_any_code=of_any_code).add(Part(3))
    monkeypatch.setattr(ledger, "code_digest", lambda: "of another day")
    assert Ledger("some", Part, folder=tmp_path).parts == []
    assert Ledger("some", Part, folder=tmp_path, of_any_code=True).parts == [Part(3)]


@pytest.mark.parametrize("changed", ["src/lycosa/a.py", "native/src/lib.rs", "proof/bench/b.py"])
def test_code_is_another_one_when_a_file_of_it_changes_or_comes(tmp_path: Path, changed: str) -> None:
    def write(name: str, text: str) -> str:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
        return code_digest(tmp_path)

    seen = [code_digest(tmp_path), write(changed, "1"), write(changed, "2"), write(f"{changed}x", "")]
    assert len(set(seen)) == len(seen)
    assert write("docs/page.md", "") == write("src/lycosa/__pycache__/a.pyc", "") == seen[-1]
