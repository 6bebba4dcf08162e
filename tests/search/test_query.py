"""The query language: what is understood, and what is said where nothing can be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lycosa.errors import SettingsError
from lycosa.search.compile import Weights
from lycosa.search.query import AllOf, AnyOf, Excluded, Filter, QueryError, Term, parse_query


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("solar", (Term("solar"),)),
        ("solar power", (Term("solar"), Term("power"))),
        ('solar "heat pump"', (Term("solar"), Term("heat pump", is_phrase=True))),
        ("“heat pump”", (Term("heat pump", is_phrase=True),)),
        ("solar -wind", (Term("solar"), Excluded(Term("wind")))),
        ("solar NOT wind", (Term("solar"), Excluded(Term("wind")))),
        ('solar -"heat pump"', (Term("solar"), Excluded(Term("heat pump", is_phrase=True)))),
        ("roof OR garden", (AnyOf((Term("roof"), Term("garden"))),)),
        ("solar (roof OR garden)", (Term("solar"), AnyOf((Term("roof"), Term("garden"))))),
        ("a b OR c", (AnyOf((AllOf((Term("a"), Term("b"))), Term("c"))),)),
        ("solar AND power", (Term("solar"), Term("power"))),
        ("title:solar", (Term("solar", "title"),)),
        ('anchor:"heat pump"', (Term("heat pump", "anchor", is_phrase=True),)),
        ("title:(solar OR wind)", (AnyOf((Term("solar", "title"), Term("wind", "title"))),)),
        ("x site:Example.ORG/docs/", (Term("x"), Filter("site", "example.org/docs"))),
        ("x site:https://example.org/", (Term("x"), Filter("site", "example.org"))),
        ("x -site:example.org", (Term("x"), Excluded(Filter("site", "example.org")))),
        ("lang:de-AT filetype:.PDF", (Filter("lang", "de"), Filter("filetype", "pdf"))),
        ("x after:2026-01", (Term("x"), Filter("after", 1_767_225_600.0))),
        ("x before:2026", (Term("x"), Filter("before", 1_767_225_600.0))),
        ("std::vector https://x.org/y 10:30", (Term("std::vector"), Term("https://x.org/y"), Term("10:30"))),
        ("printf() x", (Term("printf"), Term("x"))),
        ("a.example/Sun_(star)", (Term("a.example/Sun_(star)"),)),
        ("x -a.example/b", (Term("x"), Excluded(Term("a.example/b")))),
        ("a.example/b site:a.example", (Term("a.example/b"), Filter("site", "a.example"))),
        ("e-mail - mail", (Term("e-mail"), Term("-"), Term("mail"))),
        ("vacu*", (Term("vacu", is_prefix=True),)),
        ("title:vacu* -anal*", (Term("vacu", "title", is_prefix=True), Excluded(Term("anal", is_prefix=True)))),
        ('"heat pu*"', (Term("heat pu", is_phrase=True, is_prefix=True),)),
        ("pg_stat*", (Term("pg_stat", is_prefix=True),)),
        ("太*", (Term("太", is_prefix=True),)),
        ("* va*um char* **", (Term("*"), Term("va*um"), Term("char", is_prefix=True), Term("**"))),
    ],
)
def test_query_is_read_as_it_is_meant(text: str, parts: tuple[object, ...]) -> None:
    assert parse_query(text) == AllOf(parts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ('solar "heat pump', 'write "heat pump"'),
        ('"', "nothing behind it"),
        ('solar " ', "nothing behind it"),
        ("word " * 10_000, "10,000 words"),
        ("x" * 20_000, "20,000 characters"),
        ("titel:solar", "did you mean title:"),
        ("colour:red", 'in quotes: "colour:red"'),
        ("-wind", "only says what not"),
        ("a*", "two letters or more"),
        ("pg_s*", "two letters or more"),
        ("-a.example/b", "only says what not"),
        ("localhost:red", "no field"),
        ("(solar", "not closed"),
        ("solar)", "not opened"),
        ("()", "no words"),
        ("!!! *", "no letter"),
        ("OR", "no words"),
        ("site: x", "site:example.org"),
        ("title:", "title:solar"),
        ("lang:english", "two letters"),
        ("after:yesterday", "no date"),
        ("site:x.org/a/b/c/d/e", "4 folders"),
        ("(" * 50 + "x" + ")" * 50, "flatter"),
        ("-" * 900 + "chess", "flatter"),
        ("+-" * 4_000 + "chess", "flatter"),
        (" ".join(["NOT"] * 90) + " chess", "flatter"),
        (("-" * 15 + "(") * 15 + "x" + ")" * 15, "flatter"),
    ],
)
def test_query_that_cannot_be_understood_says_what_would_be(text: str, says: str) -> None:
    with pytest.raises(QueryError, match=r".*") as error:
        parse_query(text)
    assert says in str(error.value)
    assert len(str(error.value)) < 400


@given(st.text(st.sampled_from(list('ab "()-+:|&ORAND title:site:x.y/\0“')), max_size=60))
def test_any_text_is_a_query_or_a_sentence(text: str) -> None:
    try:
        tree = parse_query(text)
    except QueryError as error:
        assert str(error)
    else:
        assert tree.parts


def test_weights_are_read_and_wrong_ones_told() -> None:
    assert Weights.read("title=2, rank=0") == Weights(title=2.0, rank=0.0)
    for wrong in ("size=1", "title", "title=x", "rank=-1", "rank=nan"):
        with pytest.raises(SettingsError, match="names are title"):
            Weights.read(wrong)
