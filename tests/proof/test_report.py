"""ExperimentResult files: whole or not there, and quick numbers never in the place of real ones."""

import io
import json
from pathlib import Path

import pytest

from lycosa.errors import SettingsError, StoreError
from proof import draw, report
from proof.experiment import DEFAULT_SEED, Experiment, ExperimentResult, Extent, perform
from proof.progress import ProgressSteps
from tests.proof.samples.too_slow import EXPERIMENT as TOO_SLOW


@pytest.fixture(autouse=True)
def no_drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests are about files; what is drawn has tests of its own."""
    monkeypatch.setattr(draw, "picture", lambda charts, *, name: (b"<svg/>", b"png"))


def result_of(*, seed: int = DEFAULT_SEED, quick: bool = False) -> ExperimentResult:
    return perform(TOO_SLOW, seed=seed, quick=quick, view=ProgressSteps(io.StringIO()))


def test_publish_into_a_new_folder_writes_the_four_files_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    written = report.publish(result_of(), folder)
    assert sorted(folder.iterdir()) == sorted(written)
    assert sorted(path.name for path in written) == ["too-slow.json", "too-slow.md", "too-slow.png", "too-slow.svg"]
    told = json.loads((folder / "too-slow.json").read_text())
    assert (told["seed"], told["figures"]["speed"]["value"], told["held"]) == (DEFAULT_SEED, 3.5, False)
    assert told["environment"]["cores"] >= 1


def test_publish_of_a_quick_run_leaves_the_real_one_alone(tmp_path: Path) -> None:
    real = {path: path.read_bytes() for path in report.publish(result_of(), tmp_path)}
    quick = report.publish(result_of(quick=True), tmp_path)
    assert {path: path.read_bytes() for path in real} == real
    assert (tmp_path / "too-slow.quick.md") in quick
    assert "A quick run" in (tmp_path / "too-slow.quick.md").read_text()


def test_publish_of_another_seed_leaves_the_usual_one_alone(tmp_path: Path) -> None:
    usual = {path: path.read_bytes() for path in report.publish(result_of(), tmp_path)}
    other = report.publish(result_of(seed=3), tmp_path)
    assert {path: path.read_bytes() for path in usual} == usual
    assert (tmp_path / "too-slow.seed-3.json") in other


def test_benchmark_does_not_write_over_the_results_of_an_experiment_of_its_name(tmp_path: Path) -> None:
    assert report.published(tmp_path, "too-slow", kind="bench", seed=DEFAULT_SEED, quick=False) is None
    report.publish(result_of(), tmp_path)
    assert report.published(tmp_path, "too-slow", kind="lab", seed=DEFAULT_SEED, quick=False)
    with pytest.raises(
        SettingsError, match=r"too-slow\.json has what make lab NAME=too-slow found: name another folder"
    ):
        report.published(tmp_path, "too-slow", kind="bench", seed=DEFAULT_SEED, quick=False)


def test_extent_of_published_results_is_read_from_their_command() -> None:
    campaign = Experiment(name="some", summary="s", run=print, runs=5, minutes=60.0, choices=("a", "b c", "d"))

    def extent(words: str) -> Extent:
        return report.PublishedResult(f"make bench NAME=some{words}").extent(campaign)

    assert extent("") == Extent(5, 60.0, ("a", "b c", "d"))
    assert extent(""" ARGS='--seed 2 --runs 9 --only "a,b c,gone" --minutes 5'""") == Extent(9, 5.0, ("a", "b c"))


@pytest.mark.parametrize(
    ("now", "is_less"),
    [
        (Extent(5, 60.0, ("a", "b")), False),
        (Extent(9, 90.0, ("a", "b", "c")), False),
        (Extent(4, 60.0, ("a", "b")), True),
        (Extent(5, 5.0, ("a", "b")), True),
        (Extent(5, 60.0, ("a", "c")), True),
    ],
)
def test_run_measures_less_where_any_of_it_is_less(now: Extent, is_less: bool) -> None:
    assert now.is_less_than(Extent(5, 60.0, ("a", "b"))) == is_less


@pytest.mark.parametrize("fault", [KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_publish_stopped_half_way_leaves_the_old_files_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: BaseException
) -> None:
    old = {path: path.read_bytes() for path in report.publish(result_of(), tmp_path)}
    write = Path.write_bytes

    def fail_on_json(path: Path, data: bytes) -> int:
        if path.suffix == ".json":
            raise fault
        return write(path, data)

    monkeypatch.setattr(Path, "write_bytes", fail_on_json)
    with pytest.raises((KeyboardInterrupt, StoreError)):
        report.publish(result_of(), tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == old


def test_publish_on_a_full_disk_says_so_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(StoreError, match="No space left on device"):
        report.publish(result_of(), tmp_path)


def test_markdown_has_claim_command_table_and_bars() -> None:
    text = report.markdown(result_of(seed=7), picture="too-slow.svg")
    for part in (
        "# too-slow: misses one of its limits",
        "Claim T8: Faster than 4 pages/s.",
        "make lab NAME=too-slow ARGS='--seed 7'\n",
        "![Speed](too-slow.svg)",
        "| a \\| b | 3.5 |",
        "| fast | speed | 3.5 pages/s | ≥ 4 pages/s | ✗ not held |",
        "| finite | speed | 3.5 pages/s | ≤ 100 pages/s | ✓ held |",
        "| forgotten | no such figure | not measured | ≤ 1 | ✗ not held |",
    ):
        assert part in text


def test_markdown_of_two_runs_with_the_same_numbers_is_the_same() -> None:
    first, second = result_of(), result_of()
    assert first.seconds != second.seconds
    assert report.markdown(first, picture="p") == report.markdown(second, picture="p")


def test_usual_folder_is_docs_results_of_the_project_else_results_here(tmp_path: Path) -> None:
    deep = tmp_path / "src" / "deep"
    deep.mkdir(parents=True)
    assert report.usual_folder(deep) == deep / "results"
    (tmp_path / "pyproject.toml").touch()
    assert report.usual_folder(deep) == deep / "results"
    (tmp_path / "docs").mkdir()
    assert report.usual_folder(deep) == tmp_path / "docs" / "results"


def test_usual_folder_outside_any_project_uses_docs_right_here(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    assert report.usual_folder(tmp_path) == tmp_path / "docs" / "results"


def test_check_can_publish_below_a_file_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SettingsError, match="file is not a folder"):
        report.check_can_publish(tmp_path / "file" / "results")


def test_check_can_publish_makes_no_folder(tmp_path: Path) -> None:
    report.check_can_publish(tmp_path / "results")
    assert list(tmp_path.iterdir()) == []
