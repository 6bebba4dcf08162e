"""Near texts that come one after the other, and the groups that they make."""

from random import Random

import pytest

from lycosa.duplicates import clusters as grouping
from lycosa.duplicates.clusters import NearGroups
from lycosa.duplicates.index import unpacked
from lycosa.web.similarity import simhash
from tests.web.nearness import are_near

WORDS = Random(7).choices([f"word{n}" for n in range(500)], k=300)


def group(groups: NearGroups, words: list[str], name: int) -> int:
    return groups.join([name], unpacked(simhash(" ".join(words)))).get(name, name)


def changed(words: list[str], places: range) -> list[str]:
    return [f"other{place}" if place in places else word for place, word in enumerate(words)]


def test_near_text_joins_the_group_of_the_one_before() -> None:
    groups = NearGroups()

    found = [
        group(groups, words, name) for name, words in ((1, WORDS), (2, WORDS[::-1]), (3, changed(WORDS, range(2))))
    ]

    assert found == [1, 2, 1]


def test_every_near_pair_is_found_whatever_bits_are_unsure() -> None:
    chance, asked = Random(3), 0
    for _ in range(200):
        text, at = chance.choices(WORDS, k=120), chance.randrange(110)
        other = changed(text, range(at, at + 2))
        if are_near(simhash(" ".join(text)), simhash(" ".join(other))):
            groups, asked = NearGroups(), asked + 1
            assert [group(groups, text, 1), group(groups, other, 2)] == [1, 1]
    assert asked > 100


def test_chain_of_small_changes_is_not_one_group() -> None:
    groups = NearGroups()

    found = {group(groups, changed(WORDS, range(3 * step)), step) for step in range(60)}

    assert len(found) > 1


def test_groups_are_the_same_however_many_texts_come_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [changed(WORDS[::step], range(n)) for step in (1, -1) for n in (0, 2, 1)]
    packed = b"".join(simhash(" ".join(words)) for words in texts)
    names = list(range(len(texts)))
    whole = NearGroups().join(names, unpacked(packed))

    monkeypatch.setattr(grouping, "GROUPED_AT_ONCE", 2)

    assert whole == {1: 0, 2: 0, 4: 3, 5: 3}
    assert NearGroups().join(names, unpacked(packed)) == whole


def test_texts_beyond_those_that_are_compared_join_their_groups_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouping, "MOST_GROUPED", 1)
    groups = NearGroups()

    found = [group(groups, words, name) for name, words in enumerate((WORDS, WORDS[::-1], WORDS, WORDS[::-1]), 1)]

    assert found == [1, 2, 1, 4]
