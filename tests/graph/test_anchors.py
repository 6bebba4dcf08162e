"""Anchor texts of many pages at once are those that the link index tells of each."""

import random
from collections import Counter
from pathlib import Path

import pytest

from lycosa.graph import segments
from lycosa.graph.columns import LinkChanges
from lycosa.graph.index import LinkWriter
from lycosa.graph.links import AnchorTexts

URLS = [f"https://h{n % 4}.example/{n}" for n in range(40)]


@pytest.mark.parametrize("many", [0.0, 2.0])
@pytest.mark.parametrize("seed", range(3))
def test_texts_of_many_pages_equal_those_of_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, many: float
) -> None:
    monkeypatch.setattr(segments, "_MANY", many)  # in whole columns, or by groups
    monkeypatch.setattr(segments, "GROUP", 4)
    choose, index, now = random.Random(seed), LinkWriter.open(tmp_path), dict[int, dict[str, str]]()
    for number in range(1, 9):
        pages = []
        for page in choose.sample(range(1, 30), 12):
            old, new = now.get(page, {}), {url: f"text {choose.randrange(6)}" for url in choose.sample(URLS, 5)}
            changed = {url: text for url, text in new.items() if old.get(url) != text}
            lost = [url for url in old if new.get(url) != old[url]]
            pages.append(
                LinkChanges(
                    page, f"https://x/{page}", list(changed), b"\1" * len(changed), list(changed.values()), lost
                )
            )
            now[page] = new
        index.add([pages], number)
    found = AnchorTexts(index, most=10**6, few_pages=10**6).of([*URLS, "https://nobody.example/"])
    expected = [Counter(link.anchor for link in index.inlinks(url)) for url in URLS]
    recounted = [Counter(links[url] for links in now.values() if url in links) for url in URLS]
    assert [Counter(dict(each)) for each in found] == [*expected, Counter()]
    assert expected == recounted
    index.close()
