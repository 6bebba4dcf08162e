"""What is suggested for a query that finds little: a query that finds more, or nothing."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lycosa.search.query import QueryError
from lycosa.search.suggestion import _distance, _edits
from lycosa.search.view import SearchView
from tests.search.shop import Shop

PAGES = {
    "vacuum": "Vacuuming a table: VACUUM FULL frees space. A vacuum takes time.",
    "levels": "Transactions have isolation levels. The isolation of a transaction is a promise.",
    "database": "Databases and their tables. A database is stored on disks.",
    "ru": "Транзакция имеет уровень изоляции. Это уровень базы данных.",
}


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> SearchView:
    path = tmp_path_factory.mktemp("suggestion") / "c"
    shop = Shop(path)
    for name, text in PAGES.items():
        shop.page(
            f"https://a.example/{name}", f"<title>{name}</title><p>{text}", language="ru" if name == "ru" else "en"
        )
    shop.index()
    shop.close()
    return SearchView(path)


@pytest.mark.parametrize(
    ("query", "suggestion"),
    [
        ("vacum", "vacuum"),
        ("vacum ful", "vacuum full"),
        ("avcuum", "vacuum"),
        ("databse", "database"),
        ("transacton isolaton", "transaction isolation"),
        ("trasnsaction levle", "transaction levels"),
        ('"isolation leevls"', '"isolation levels"'),
        ("title:vacum", "title:vacuum"),
        ("databse -disks", ""),  # it would find nothing
        ("уровнь", "уровень"),
        ("vacuum", ""),
        ("vacu*", ""),
        ("xyzzyq", ""),
        ("https://a.example/vacum", ""),
        ("太陽", ""),
        ("site:b.example vacum", ""),
    ],
)
def test_suggestion_finds_more_than_what_was_asked(view: SearchView, query: str, suggestion: str) -> None:
    found = view.search(query)

    assert found.suggestion == suggestion
    if suggestion:
        assert view.search(suggestion).total > (0 if found.is_loose else found.total)


@given(st.text(alphabet='vacumdtbse "-', max_size=20))
@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
def test_what_is_suggested_always_finds_something(view: SearchView, query: str) -> None:
    try:
        found = view.search(query)
    except QueryError:
        return
    if found.suggestion:
        assert view.search(found.suggestion).total > 0


@given(st.text(alphabet="abc", min_size=1, max_size=6), st.text(alphabet="abc", max_size=7))
def test_words_one_edit_away_are_those_at_distance_one(word: str, other: str) -> None:
    assert (other in _edits(word, "abc")) == (_distance(word, other) == 1 and other != "")


def test_distance_beyond_the_bound_is_not_worked_out() -> None:
    assert _distance("vacuum", "database") == 3
    assert _distance("transaction", "trasnacton") == 2
    assert _distance("a", "a" * 10_000) == 3


def test_empty_index_suggests_nothing(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "c")
    shop.index()
    shop.close()
    with SearchView(tmp_path / "c") as view:
        assert view.search("vacum").suggestion == ""
