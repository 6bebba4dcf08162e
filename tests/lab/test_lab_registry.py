"""Experiments are found by name, from Lycosa and from other packages, and a bad one harms no other."""

from collections.abc import Callable

import pytest

from lycosa.errors import LycosaError, SettingsError
from lycosa.lab import Experiment
from lycosa.lab.experiments import BUILT_IN
from lycosa.lab.registry import catalogue, find

Register = Callable[[str, dict[str, str]], None]


def test_find_registered_by_another_package_gives_the_experiment(register: Register) -> None:
    register("evenness", {"hash-share": "hash_share:EXPERIMENT"})
    assert find("hash-share").claim_id == "H1"


def test_find_unknown_name_says_the_known_ones(register: Register) -> None:
    register("evenness", {"hash-share": "hash_share:EXPERIMENT"})
    with pytest.raises(SettingsError, match=r"'hash-shore'; known: .*hash-share"):
        find("hash-shore")


def test_find_name_registered_twice_names_both_places(register: Register) -> None:
    register("evenness", {"hash-share": "hash_share:EXPERIMENT"})
    register("another", {"hash-share": "odd_experiments:TOO_SLOW"})
    with pytest.raises(SettingsError, match="hash_share:EXPERIMENT and odd_experiments:TOO_SLOW"):
        find("hash-share")


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("no_such_module:X", "ModuleNotFoundError"),
        ("odd_experiments:NO_SUCH_NAME", "AttributeError"),
        ("odd_experiments:NOT_ONE", "is a str, not an Experiment"),
        ("odd_experiments:TOO_SLOW", "calls itself 'too-slow'"),
    ],
)
def test_find_bad_registration_says_what_is_wrong(register: Register, place: str, reason: str) -> None:
    register("bad", {"mine": place})
    with pytest.raises(SettingsError, match=reason):
        find("mine")


def test_catalogue_with_a_bad_package_still_has_the_good_one(register: Register) -> None:
    register("good", {"hash-share": "hash_share:EXPERIMENT"})
    register("bad", {"mine": "no_such_module:X"})
    found = dict(catalogue())
    assert isinstance(found["hash-share"], Experiment)
    assert isinstance(found["mine"], LycosaError)


@pytest.mark.parametrize("name", BUILT_IN)
def test_find_built_in_gives_an_experiment(name: str) -> None:
    assert find(name).name == name
