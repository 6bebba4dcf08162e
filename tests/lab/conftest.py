"""Registers experiments for a test the way a package of one's own would: by an entry point on the path."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SOURCE = HERE.parent.parent / "src"

Register = Callable[[str, dict[str, str]], None]


@pytest.fixture
def register(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Register:
    """`register("package", {"name": "module:attribute"})`, seen by this process and by those it starts."""

    def put(package: str, experiments: dict[str, str]) -> None:
        site = tmp_path / "site"
        info = site / f"{package}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = [f"{name} = {place}\n" for name, place in experiments.items()]
        (info / "entry_points.txt").write_text("[lycosa.experiments]\n" + "".join(lines))
        monkeypatch.syspath_prepend(str(HERE))
        monkeypatch.syspath_prepend(str(site))
        path = [str(SOURCE), str(site), str(HERE), os.environ.get("PYTHONPATH", "")]
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, path)))

    return put
