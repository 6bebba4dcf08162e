"""Fields by CSS selectors: how they are written, and what they give on a page."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lycosa.errors import SettingsError
from lycosa.records import FieldRule
from lycosa.settings import CrawlSettings, from_environment, merge, read_field, read_fields_file
from lycosa.web import FieldExtractor, FieldValue

URL = "https://shop.example/kettle"
SHOP = """<base href="/de/"><title>Kettle</title><meta name=sku content=" K-9 ">
<h1>Kettle <small>9</small></h1><p class=price>19,<b>90</b> €<script>track(1)</script></p><p class=price>24,90 €</p>
<a class=tag href=kitchen>kitchen</a> <a class="tag hot" href="/sale#now">sale</a><a class=tag> </a>
<img id=photo src=k.png><script id=data type=application/json>{"stock": 3}</script>"""


def fields(*entries: str, html: str = SHOP, url: str = URL) -> dict[str, FieldValue]:
    extractor = FieldExtractor([read_field(entry) for entry in entries])
    return extractor.extract(html.encode(), url=url, content_type="text/html")


@pytest.mark.parametrize(
    ("selector", "value"),
    [
        (".price", "19,90 €"),
        (".price*", ["19,90 €", "24,90 €"]),
        (".tag@href", "https://shop.example/de/kitchen"),
        (".tag@href*", ["https://shop.example/de/kitchen", "https://shop.example/sale#now"]),
        (".tag*", ["kitchen", "sale"]),
        (".tag, .hot*", ["kitchen", "sale"]),  # what matches twice is there once
        ("h1 > *", "9"),
        ("h1 > **", ["9"]),
        ("meta[name=sku]", "K-9"),
        ("#photo", "https://shop.example/de/k.png"),
        ("#data", '{"stock": 3}'),
        (".none", None),
        (".none*", []),
        ('a[href="/sale#now"]', "sale"),
        ("p:nth-of-type(2)", "24,90 €"),
    ],
)
def test_selector_gives_text_attribute_or_list(selector: str, value: FieldValue) -> None:
    assert fields(f"x={selector}") == {"x": value}


def test_at_sign_in_a_quoted_value_is_no_attribute() -> None:
    rule = read_field('mail=a[href="mailto:a@b.example"]')
    assert (rule.selector, rule.attribute) == ('a[href="mailto:a@b.example"]', "")


def test_rule_of_the_narrowest_host_counts_and_all_pages_have_all_names() -> None:
    entries = "price=.price", "shop.example/price=h1", "b.shop.example/price=.tag", "other.example/stock=#data*"
    assert fields(*entries, url="https://a.example/") == {"price": "19,90 €", "stock": []}
    assert fields(*entries)["price"] == "Kettle 9"
    assert fields(*entries, url="https://a.shop.example:8080/")["price"] == "Kettle 9"
    assert fields(*entries, url="https://a.b.shop.example/")["price"] == "kitchen"
    assert fields(*entries, url="https://another-shop.example/")["price"] == "19,90 €"


def test_document_that_is_not_html_has_empty_fields() -> None:
    extractor = FieldExtractor([FieldRule("a", "p"), FieldRule("b", "p", is_list=True)])
    assert extractor.extract(b"%PDF-1.4", url=URL, content_type="application/pdf") == {"a": None, "b": []}


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("price", "it must be a name and a CSS selector, such as price=.price"),
        ("price=", "it must have a CSS selector behind the ="),
        ("=.price", "the name of a field is letters, digits"),
        ("a b=.price", "the name of a field is letters, digits, _, - and ., not 'a b'"),
        ("price=.price::text", "cannot be read from '::text' on: .name is its text, .name@href an attribute"),
        ("price=div >", "cannot be read from '>' on"),
        ("price=a:visible b", "cannot be read from ':visible b' on"),
        ("price=//p[@class]", "that is XPath"),
        ("ho st/price=p", "'ho st' is no host"),
    ],
)
def test_bad_field_is_one_sentence_that_says_what_is_wrong(entry: str, says: str) -> None:
    with pytest.raises(SettingsError) as refused:
        CrawlSettings(fields=[entry])
    assert says in str(refused.value)
    assert repr(entry)[:60] in str(refused.value)


def test_fields_are_read_from_tables_lists_files_and_the_environment_alike(tmp_path: Path) -> None:
    (tmp_path / "fields.toml").write_text('price = ".price"\n[fields2]\n', encoding="utf-8")
    table: dict[str, Any] = {"price": ".price", "shop.example": {"tags": ".tag*"}}
    wanted = ("price=.price", "shop.example/tags=.tag*")
    assert CrawlSettings(fields=table).fields == wanted
    assert CrawlSettings(fields=list(wanted)).fields == wanted
    assert merge(from_environment({"LYCOSA_FIELDS": " ; ".join(wanted)})).fields == wanted
    file = tmp_path / "f.toml"
    for text in (
        'price = ".price"\n["shop.example"]\ntags = ".tag*"',
        '[fields]\nprice=".price"\n"shop.example/tags"=".tag*"',
    ):
        file.write_text(text, encoding="utf-8")
        assert read_fields_file(file) == wanted


def test_file_of_fields_with_a_mistake_is_named(tmp_path: Path) -> None:
    file = tmp_path / "f.toml"
    file.write_text("price = 'div >'", encoding="utf-8")
    with pytest.raises(
        SettingsError, match=r"f\.toml holds 'price=div >': the CSS selector cannot be read from '>' on"
    ):
        read_fields_file(file)


@given(st.text(max_size=20))
def test_any_entry_gives_a_rule_that_can_be_used_or_a_settings_error(selector: str) -> None:
    try:
        settings = CrawlSettings(fields={"x": selector})
    except SettingsError:
        return
    fields(*settings.fields)


def test_hostile_pages_give_bounded_fields() -> None:
    deep = "<div class=price>" * 4_000 + "x" * 100_000
    assert sum(map(len, fields("x=.price*", html=deep)["x"] or [])) <= 4_100_000
    assert fields("x=div div div p", html="<div>" * 4_000 + "<p>y")["x"] == "y"
    assert len(fields("x=p*", html="<p>z" * 50_000)["x"] or []) == 1_000
