"""Searching a collection: what is found, in which order, what is shown of it, and how languages are read."""

import unicodedata
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lycosa
from lycosa.errors import StoreError
from lycosa.search.compile import BM25_ALONE
from lycosa.search.documents import HostLanguages, language_of, spaced
from lycosa.search.index import current
from lycosa.search.making import make_index, update_index
from lycosa.search.query import QueryError
from lycosa.search.snippet import Highlighter, Snippet, highlighted
from lycosa.search.view import SearchResults, SearchView
from tests.search.shop import Shop

WORDS = '"heat pump" "..." ( ) OR NOT -power +sun title: title:wind anchor:warmth site:a.example lang:de * ? ~2 ^ \0 {'
PIECES = [*WORDS.split(" "), "filetype:html", "after:2023", "before:1", "光", "太陽光", "\udcff", "[a TO b]", "\\"]
SUN, WIND, PUMP = "https://a.example/sun", "https://a.example/wind.html", "https://b.other.example:8443/docs/pump"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("search") / "c"
    shop = Shop(folder)
    shop.page(
        SUN,
        "<html lang=en><title>Solar houses</title><h1>Roofs</h1><p>The panels on houses make power for the heating of "
        "water.",
        modified="Tue, 14 Nov 2023 10:00:00 GMT",
        language="en",
    )
    shop.page(WIND, "<html lang=en><title>Wind</title><p>Wind makes power, not heat. A pump needs it.", language="en")
    shop.page(
        PUMP,
        "<html lang=de><title>Wärmepumpen</title><p>Die Häuser werden mit der Wärmepumpe geheizt, und das ist nicht "
        "von der Sonne abhängig. Eine heat pump.",
        modified="Mon, 13 Nov 2023 10:00:00 GMT",
        language="de",
    )
    shop.page("https://jp.example/", "<title>太陽光発電</title><p>太陽光で電気を作る。", language="ja")
    shop.page("https://fr.example/", "<title>L'énergie</title><p>Les maisons sont chauffées au bois.", language="fr")
    shop.page("https://es.example/", "<title>Energía</title><p>Las casas usan energía del sol.", language="es")
    shop.page("https://a.example/copy", "<title>Twice</title>the same words twice", language="en")
    shop.page("https://b.example/copy", "<title>Twice</title>the same words twice", language="en")
    shop.page("https://c.example/", f"<a href='{PUMP}'>machine for warmth</a>", noindex=True)
    shop.index()
    shop.close()
    return folder


@pytest.fixture
def view(path: Path) -> SearchView:
    return SearchView(path)


def urls(found: SearchResults) -> list[str]:
    return [result.url for result in found.results]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("house", [SUN]),
        ("HOUSES panel", [SUN]),
        ("haus", [PUMP]),
        ("Häuser", [PUMP]),
        ("maison", ["https://fr.example/"]),
        ("casa energia", ["https://es.example/"]),
        ("太陽光", ["https://jp.example/"]),
        ("電気", ["https://jp.example/"]),
        ("光", ["https://jp.example/"]),
        ("太光", []),
        ('"heat pump"', [PUMP]),
        ('"pump heat"', []),
        ("power -panels", [WIND]),
        ("power -panels OR maison", [WIND, "https://fr.example/"]),
        ("title:power", []),
        ("text:power title:solar", [SUN]),
        ("heading:roof", [SUN]),
        ("url:docs", [PUMP]),
        ("machine warmth", [PUMP]),
        ("anchor:warmth", [PUMP]),
        ("anchor:warmth text:geheizt", [PUMP]),
        ("machine -geheizt", []),
        ("site:a.example power wind", [WIND]),
        ("site:other.example", [PUMP]),
        ("site:b.other.example:8443/docs", [PUMP]),
        ("site:example filetype:html lang:de", [PUMP]),
        ("lang:en -site:a.example", []),
        ("power after:2023-11-14 before:2023-11-15 site:a.example", [SUN, WIND]),
        ("lang:de before:2023-11-14", [PUMP]),
        ("lang:de after:2023-11-14", []),
        ("hous*", [SUN]),
        ("hou* pan*", [SUN]),
        ("wärm*", [PUMP]),
        ("warmepu*", [PUMP]),
        ("machines*", [PUMP]),
        ("ma*", [SUN, WIND, PUMP, "https://fr.example/"]),
        ('"heat pu*"', [PUMP]),
        ('"pump he*"', []),
        ("pow* -pan*", [WIND]),
        ("title:sol* text:pow*", [SUN]),
        ("heading:ro*", [SUN]),
        ("url:do*", [PUMP]),
        ("anchor:war*", [PUMP]),
        ("太陽*", ["https://jp.example/"]),
        ("zebr*", []),
    ],
)
def test_query_finds_what_it_asks_for(view: SearchView, query: str, expected: list[str]) -> None:
    found = view.search(query)
    assert sorted(urls(found)) == sorted(expected)
    assert found.total == len(expected)
    assert not found.is_loose
    view.close()


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=8))
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
def test_any_query_gives_results_or_a_sentence(view: SearchView, pieces: list[str]) -> None:
    try:
        found = view.search(" ".join(pieces))
    except QueryError as error:
        assert str(error)
    else:
        assert found.total >= len(found.results)


def test_empty_collection_has_nothing_to_find(tmp_path: Path) -> None:
    Shop(tmp_path).close()
    with lycosa.Collection(tmp_path) as collection:
        assert collection.search("anything").total == 0


def test_words_that_no_page_has_together_find_pages_with_most_of_them(view: SearchView) -> None:
    found = view.search("solar panels houses zebra")
    assert found.is_loose
    assert urls(found) == [SUN]


def test_result_shows_where_when_and_why(view: SearchView) -> None:
    (result,) = view.search("water heating").results
    assert (result.title, result.date, result.language) == ("Solar houses", "2023-11-14", "en")
    marked = highlighted(Snippet(result.snippet, result.highlights), "[", "]")
    assert "make power for the [heating] of [water]." in marked
    assert result.score == pytest.approx(result.text * result.anchors * result.rank, rel=1e-3)


def test_copies_are_folded_into_one_result(view: SearchView) -> None:
    found = view.search("words twice")
    assert (found.total, urls(found)) == (1, ["https://a.example/copy"])
    assert (found.results[0].copies, found.results[0].copy_urls) == (1, ("https://b.example/copy",))


def test_facets_count_all_matches_by_host_language_type_and_year(view: SearchView) -> None:
    found = view.search("site:example", most=1, facets=True)

    assert found.facets is not None
    counts = {
        name: {each.value: each.pages for each in getattr(found.facets, name)}
        for name in ("hosts", "languages", "types", "years")
    }
    assert counts["hosts"]["a.example"] == 3
    assert counts["languages"] == {"en": 3, "de": 1, "fr": 1, "es": 1, "ja": 1}
    assert counts["types"] == {"html": 7}
    assert counts["years"] == {"2023": 7}
    assert all(sum(each.values()) == found.total == 7 for each in counts.values())
    assert view.search("site:example").facets is None, "they are counted where somebody asks"


def test_facets_count_pages_that_links_alone_find(view: SearchView) -> None:
    found = view.search("machine warmth", facets=True)

    assert found.total == 1
    assert found.facets is not None
    assert [(each.value, each.pages) for each in found.facets.hosts] == [("b.other.example", 1)]


def test_facets_of_nothing_are_empty(view: SearchView) -> None:
    facets = view.search("zebra", facets=True).facets

    assert facets is not None
    assert (facets.hosts, facets.languages, facets.types, facets.years, facets.other_hosts) == ((), (), (), (), 0)


def test_pages_of_results_follow_each_other(view: SearchView) -> None:
    everything = urls(view.search("site:example"))
    assert [url for at in range(0, 8, 3) for url in urls(view.search("site:example", most=3, offset=at))] == everything
    assert len(set(everything)) == view.search("site:example", most=1).total == 7


@pytest.mark.slow
def test_every_result_is_on_one_page_of_results_and_none_is_missing(tmp_path: Path) -> None:
    shop, text = (
        Shop(tmp_path),
        "a long text about the sun and what it does to roofs and houses " * 4,
    )  # too short to be near
    for n in range(430):
        body = f"<main>{text}{n // 2 if n % 5 == 0 else n}</main>"  # some have the text of another one
        links = "".join(f"<a href='/{(n * step) % 430}'>roofs {step}</a>" for step in (1, 3, 7))
        shop.page(f"https://a.example/{n}", f"<title>{'sun ' * (n % 3)}{n}</title>{body}<nav>{n}{links}</nav>")
    shop.index()
    shop.close()
    with SearchView(tmp_path) as view:
        asked = ("site:example", "sun", "roofs -title:3", "anchor:roofs", "https://a.example/429", "roofs sun zebra")
        for query in asked:
            everything = view.search(query, most=1_000)
            assert everything.is_exact
            assert everything.total == len(everything.results) == len(set(urls(everything)))
            assert everything.total > 200 or query.startswith("https")
            for most in (100, 37):
                parts = [view.search(query, most=most, offset=at) for at in range(0, everything.total + most, most)]
                assert [url for part in parts for url in urls(part)] == urls(everything)
                assert (parts[-1].total, parts[-1].results) == (everything.total, ())
            assert len(view.search(query, most=1_000, offset=20_000).results) == 0


def test_accents_written_apart_are_found_by_those_written_in_one(tmp_path: Path) -> None:
    shop, text = Shop(tmp_path), "Les cafés d'été, 한국어 и Чайковский"
    shop.page("https://a.example/nfd", f"<title>Apart</title><p>{unicodedata.normalize('NFD', text)}")
    shop.page("https://a.example/nfc", f"<title>One</title><p>{unicodedata.normalize('NFC', text)} .")
    shop.index()
    shop.close()
    with SearchView(tmp_path) as view:
        for word in ("cafes", "été", "한국어", "Чайковский"):
            for form in ("NFC", "NFD"):
                found = view.search(unicodedata.normalize(form, word))
                assert len(found.results) == 2, (word, form)
        apart = next(result for result in view.search("été").results if result.title == "Apart")
    assert [apart.snippet[a:b] for a, b in apart.highlights] == ["été"]


@pytest.mark.parametrize(
    ("pasted", "first"),
    [
        ("https://a.example/wiki/Sun_(star)?x=1&y=%C3%A9#top", "https://a.example/wiki/Sun_(star)?x=1&y=%C3%A9"),
        ("  HTTPS://A.example/wiki/ ", "https://a.example/wiki/"),
        ("https://a.example/old", "https://a.example/wiki/"),
        ("https://a.example/twin", "https://a.example/wiki/"),
        ("https://a.example/nothing", None),
        ("a.example/wiki/", "https://a.example/wiki/"),
        ("A.example:443/wiki/Sun_(star)?x=1&y=%C3%A9", "https://a.example/wiki/Sun_(star)?x=1&y=%C3%A9"),
        ("a.example/old", "https://a.example/wiki/"),
        ("plain.example:8080/about/", "http://plain.example:8080/about/"),
        ("plain.example:8080", "http://plain.example:8080/"),
        ("localhost:9870/about/", "http://localhost:9870/about/"),
        ("a.example/nothing", None),
    ],
)
def test_pasted_url_finds_its_page_first(tmp_path: Path, pasted: str, first: str | None) -> None:
    shop = Shop(tmp_path)
    shop.page("https://a.example/wiki/", "<title>Wiki</title>all of them")
    shop.page("https://a.example/twin", "<title>Wiki</title>all of them")
    shop.page("https://a.example/wiki/Sun_(star)?x=1&y=%C3%A9", "<title>Sun</title>a star")
    shop.page("https://a.example/names", "<title>wiki wiki</title>see https://a.example/wiki/ and example wiki")
    for url in ("http://plain.example:8080/about/", "http://plain.example:8080/", "http://localhost:9870/about/"):
        shop.page(url, f"<title>Plain</title>a page of its own, {len(url)}")
    shop.redirect("https://a.example/old", "https://a.example/wiki/")
    shop.index()
    shop.close()
    with SearchView(tmp_path) as view:
        found = view.search(pasted)
    assert [result.url for result in found.results][:1] == ([first] if first else [])


def test_pages_with_the_same_main_text_are_folded(tmp_path: Path) -> None:
    shop, text = Shop(tmp_path), "a long text about the sun and what it does to roofs and houses " * 5
    for n in range(4):
        shop.page(f"https://a.example/{n}", f"<title>Sun {n}</title><nav>{n}</nav><main>{text}</main>")
    shop.page("https://a.example/other", f"<title>Sun 3</title><main>{text} and more</main>")
    shop.index()
    shop.close()
    with SearchView(tmp_path) as view:
        found = view.search("sun")
        (head,) = found.results
        assert (found.total, found.is_exact, head.alike, head.near) == (1, True, 3, 1)
        assert {head.url, *head.alike_urls} == {f"https://a.example/{n}" for n in range(4)}
        assert view.search("title:3").results[0].url == "https://a.example/3", "it stands for itself where it is best"


def test_pages_with_nearly_the_same_text_are_one_result_unless_all_are_asked_for(tmp_path: Path) -> None:
    shop, text = Shop(tmp_path), " ".join(f"sentence {n} about the sun and its roofs" for n in range(200))
    bodies = {"a": text, "b": f"{text} and more", "again": f"{text} and more", "c": text[::-1] + " sun"}
    for name, body in bodies.items():
        shop.page(f"https://a.example/{name}", f"<title>Sun</title><main>{body}</main>")
    shop.index()
    shop.close()

    with SearchView(tmp_path) as view:
        found, every = view.search("sun"), view.search("sun", fold=False)

    assert (found.total, found.folded, len(found.results)) == (2, 1, 2)
    (head,) = [result for result in found.results if result.near]
    assert {head.url, *head.near_urls} == {"https://a.example/a", "https://a.example/b"}
    assert (every.total, every.folded, len(every.results)) == (3, 0, 3)
    assert [result.copy_urls for result in every.results if result.copies] == [("https://a.example/again",)]


def test_anchors_and_ranks_can_be_left_out(view: SearchView) -> None:
    assert view.search("machine warmth", weights=BM25_ALONE).total == 0
    result = view.search("wind", weights=BM25_ALONE).results[0]
    assert (result.anchors, result.rank) == (1.0, 1.0)


def test_library_searches_what_was_just_crawled(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.page(SUN, "<title>One</title>solar")
    with lycosa.Collection(tmp_path) as collection:
        assert urls(collection.search("solar")) == [SUN]
        shop.page(WIND, "<title>Two</title>solar and wind")
        assert len(urls(collection.search("solar"))) == 2
        shop.gone(SUN)
        assert urls(collection.search("solar")) == [WIND]
        with pytest.raises(QueryError):
            collection.search("")
    shop.close()


def test_index_that_cannot_be_written_answers_as_it_is(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.page(SUN, "<title>One</title>solar")
    shop.index()
    shop.page(WIND, "<title>Two</title>solar and wind")
    (tmp_path / "index" / "lock").unlink()
    (tmp_path / "index" / "lock").mkdir()
    with lycosa.Collection(tmp_path) as collection:
        found = collection.search("solar")
    assert (urls(found), found.behind) == ([SUN], 1)
    shop.close()


def test_damaged_index_says_how_to_make_it_anew(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.page(SUN, "<title>One</title>solar")
    shop.index()
    for file in current(tmp_path).iterdir():
        if file.suffix in (".term", ".idx", ".fast"):
            file.write_bytes(b"\0" * 7)
    with pytest.raises(StoreError, match=r"lycosa index \S+ makes it anew"):
        update_index(tmp_path)
    make_index(tmp_path)
    with SearchView(tmp_path) as view:
        assert urls(view.search("solar")) == [SUN]
    shop.close()


def test_snippet_shows_the_place_with_most_of_the_words() -> None:
    text = "Pumps first. " + "filler " * 200 + "Here heat pumps are compared with solar heating. " + "more " * 200
    piece = Highlighter(["solar", "heat pump"], "en").snippet(text)
    assert len(piece.text) < 260
    marked = highlighted(piece, "[", "]")
    assert "Here [heat] [pumps] are compared with [solar] [heating]." in marked
    assert Highlighter(["solar"], "en").snippet("nothing of it").text == "nothing of it"
    assert (
        highlighted(Highlighter(["太陽光", "Haus"], "de").snippet("das 太陽光 hier, Häuser"), "[", "]")
        == "das [太陽光] hier, [Häuser]"
    )


def test_language_is_the_pages_own_unless_its_text_plainly_speaks_another() -> None:
    german = "Die Katze ist nicht auf dem Dach und wird von der Frau mit einer Leiter geholt"
    assert language_of("", german.encode()) == "de"
    assert language_of("en-US", german.encode()) == "de"
    assert language_of("de-AT", b"Katze") == "de"
    assert language_of("ja", "太陽光".encode()) == "xx"
    assert language_of("", b"lorem ipsum") == "xx"
    hosts = HostLanguages(lambda host: {"fr": 2} if host == "f" else {})
    assert [hosts.language_of(host, "", b"quoi") for host in ("f", "g")] == ["fr", "xx"]
    assert [hosts.language_of("g", "", text) for text in (german.encode(), b"kurz")] == ["de", "de"]
    assert spaced("a太陽光b") == "a 太陽 陽光 b"
    assert spaced("naïve “quoted”") == "naïve “quoted”"
