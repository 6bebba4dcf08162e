"""`lycosa doctor` and `lycosa completion`: what they find, what they advise, and how they end."""

import sys
from importlib import metadata
from pathlib import Path

import pytest

from lycosa.cli import doctor
from lycosa.cli.doctor import CheckState
from tests.cli.command import lycosa


def check_named(name: str, checks: list[doctor.MachineCheck]) -> doctor.MachineCheck:
    return next(check for check in checks if check.name == name)


@pytest.fixture(autouse=True)
def _well(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which all is well, whatever this one is like."""
    monkeypatch.setattr(doctor, "raise_descriptor_limit", lambda: 65_536)
    monkeypatch.setattr(doctor, "SMALLEST_FREE_BYTES", 0)
    monkeypatch.setattr(doctor, "FEWEST_FREE_FILES", 0)
    monkeypatch.setattr(doctor, "SLOWEST_SYNC_S", 1e9)
    monkeypatch.setattr(doctor, "SLOWEST_WRITE_BYTES_S", 0.0)
    monkeypatch.setattr(doctor, "_name_servers", lambda: doctor.MachineCheck("dns", CheckState.OK, "192.0.2.53"))


def test_doctor_on_a_machine_that_is_well_exits_with_0_and_leaves_nothing_behind(tmp_path: Path) -> None:
    said = lycosa("doctor", tmp_path)

    assert (said.code, said.err) == (0, ""), said.out
    assert said.out.endswith("all is well\n")
    assert list(tmp_path.iterdir()) == []


def test_doctor_that_finds_few_descriptors_exits_with_1_and_says_what_to_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "raise_descriptor_limit", lambda: 256)

    said = lycosa("doctor", tmp_path, "--json")

    assert said.code == 1
    assert said.facts["ok"] is False
    wrong = [check for check in said.facts["checks"] if check["state"] == "attention"]
    assert [check["name"] for check in wrong] == ["descriptors"]
    assert "LimitNOFILE" in wrong[0]["advice"]


def test_doctor_names_the_command_that_installs_a_missing_extra_and_is_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = metadata.version

    def without_ray(name: str) -> str:
        if name == "ray":
            raise metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(metadata, "version", without_ray)

    said = lycosa("doctor", tmp_path)

    assert said.code == 0
    assert "pip install 'lycosa[cluster]'" in said.out


def test_doctor_finds_a_library_that_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    version = metadata.version
    monkeypatch.setattr(metadata, "version", lambda name: "0.1" if name == "msgspec" else version(name))

    check = check_named("lycosa", doctor.machine_checks())

    assert check.state is CheckState.ATTENTION
    assert "msgspec (0.1)" in check.found


def test_doctor_finds_a_kernel_with_another_interface(monkeypatch: pytest.MonkeyPatch) -> None:
    doctor.native.cache_clear()
    monkeypatch.setitem(sys.modules, "lycosa_native", type(sys)("lycosa_native"))

    check = check_named("page kernel", doctor.machine_checks())

    doctor.native.cache_clear()
    assert check.state is CheckState.ATTENTION
    assert "run make" in check.advice


def test_every_extra_of_the_package_has_a_check() -> None:
    extras = set(metadata.metadata("lycosa").get_all("Provides-Extra") or [])

    for_developers = {"dev", "docs", "native"}  # the kernel has a check of its own
    assert extras - for_developers == set(doctor.EXTRAS)


def test_doctor_without_name_servers_says_how_to_name_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    empty = tmp_path / "resolv.conf"
    empty.write_text("# none\n")

    assert doctor._name_servers(empty).state is CheckState.ATTENTION
    empty.write_text("nameserver 192.0.2.53\n")
    assert doctor._name_servers(empty).found == "192.0.2.53"


def test_doctor_finds_a_remote_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"disk / ext4 rw 0 0\nserver:/x {tmp_path} nfs4 rw 0 0\n")
    kind = doctor._file_system(tmp_path / "below", mounts)
    monkeypatch.setattr(doctor, "_file_system", lambda _: kind)

    space, _ = doctor.disk_checks(tmp_path)

    assert space.state is CheckState.ATTENTION
    assert "local disk" in space.advice


@pytest.mark.parametrize("words", [("no-such-folder",), (".", "--host", "http://example.org/"), (".", "--host", "::1")])
def test_doctor_with_wrong_arguments_says_so_in_a_sentence(words: tuple[str, ...]) -> None:
    said = lycosa("doctor", *words)

    assert said.code == 2
    assert len(said.err.splitlines()) == 1


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(shell: str) -> None:
    said = lycosa("completion", shell)

    assert said.code == 0
    assert f"_LYCOSA_COMPLETE=complete_{shell}" in said.out
