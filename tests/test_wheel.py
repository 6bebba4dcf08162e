"""The wheel as it is released: built, unpacked and used away from the sources."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from lycosa import __version__

pytest.importorskip("hatchling", reason="comes with the extra dev")

REPOSITORY = Path(__file__).parents[1]
SOURCE = REPOSITORY / "src"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which the wheel was unpacked."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=REPOSITORY, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def test_wheel_has_every_file_of_the_package(unpacked: Path) -> None:
    def files(root: Path) -> set[str]:
        found = (path for path in (root / "lycosa").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
        return {str(path.relative_to(root)) for path in found}

    in_wheel = files(unpacked)

    assert in_wheel == files(SOURCE)
    assert {"lycosa/serve/templates/base.html", "lycosa/replay/style.css", "lycosa/py.typed"} <= in_wheel


def test_wheel_runs_without_the_sources(unpacked: Path, tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(unpacked)}

    def said(*words: str) -> str:
        command = [sys.executable, *words]
        return subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True).stdout

    assert said("-c", "import lycosa; print(lycosa.__file__)").startswith(str(unpacked))
    assert said("-m", "lycosa", "--version") == f"lycosa {__version__}\n"
    assert said("-m", "lycosa", "settings").startswith("#")
