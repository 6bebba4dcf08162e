"""What a comparison leaves out by rule: elements, texts, numbers; on some URLs or on all."""

from pathlib import Path

import pytest

from lycosa.errors import SettingsError
from lycosa.recrawl.change.ignored import IgnoreRules
from lycosa.recrawl.change.verdict import ChangeKind, Version, compare
from lycosa.settings import CrawlSettings, read_rule
from lycosa.web import analyse_page
from tests.cli.command import lycosa
from tests.notify.receivers import page, site

URL = "https://shop.example/news/today"


def kind(old: str, new: str, *rules: str, url: str = URL) -> str:
    """The verdict on two versions under rules."""
    ignored = IgnoreRules(CrawlSettings(ignore=rules).ignore).of(url)
    versions = [
        Version(analyse_page(body.encode(), url=url, content_type="text/html"), body.encode(), ignored)
        for body in (old, new)
    ]
    return compare(*versions).verdict.kind


OLD = page("T", "stays", "<span class=ad>buy <b class=ad>this</b></span>", "read by Ann")
AD = page("T", "stays", "<span class=ad>buy <b class=ad>that</b> <i>now</i></span>", "read by Ann")
READER = page("T", "stays", "<span class=ad>buy <b class=ad>this</b></span>", "READ BY Bob and Cleo")
NONE = page("T", "stays", "", "read by Ann")


@pytest.mark.parametrize(
    ("new", "rules", "found"),
    [
        (AD, (), ChangeKind.STRUCTURE),
        (AD, ("css=.ad",), ChangeKind.VOLATILE),
        (NONE, ("css=.ad",), ChangeKind.VOLATILE),  # there or not
        (AD, ("css=.other, .ad",), ChangeKind.VOLATILE),
        (AD, ("/news/* css=.ad",), ChangeKind.VOLATILE),
        (AD, ("shop.example css=.ad",), ChangeKind.VOLATILE),
        (AD, ("shop.example/news/* css=.ad",), ChangeKind.VOLATILE),
        (AD, ("https://shop.example/* css=.ad",), ChangeKind.VOLATILE),
        (AD, ("/blog/* css=.ad",), ChangeKind.STRUCTURE),
        (AD, ("example css=.ad",), ChangeKind.STRUCTURE),
        (READER, (), ChangeKind.TEXT),
        (READER, ("text=read by",), ChangeKind.VOLATILE),
        (READER, ("text=read * ann",), ChangeKind.TEXT),
        (READER, ("numbers",), ChangeKind.TEXT),
        (
            page("T", "stays", "<span class=ad>buy <b class=ad>this</b></span>", ""),
            ("text=read by",),
            ChangeKind.VOLATILE,
        ),
    ],
)
def test_ignored_parts_are_no_change(new: str, rules: tuple[str, ...], found: ChangeKind) -> None:
    assert kind(OLD, new, *rules) == found


def test_numbers_alone_are_no_change_anywhere() -> None:
    old = page("5 offers", "It costs 1,299.00", "<a href='/p?v=3'>x</a>", "<img src='/i7.png' width=10>")
    new = page("12 offers", "It costs 7", "<a href='/p?v=44'>x</a>", "<img src='/i81.png' width=99>")
    assert kind(old, new) == ChangeKind.TEXT
    assert kind(old, new, "numbers") == ChangeKind.VOLATILE
    assert kind(old, new.replace("costs", "cost"), "numbers") == ChangeKind.TEXT


def test_hostile_patterns_and_texts_end() -> None:
    pattern, text = "text=" + "a*" * 400 + "b", "a" * 300_000
    assert kind(page("T", text), page("T", f"{text}c"), pattern) == ChangeKind.TEXT
    assert kind(page("T", text), page("T", "9." * 200_000), "numbers", "text=zz") == ChangeKind.TEXT


@pytest.mark.parametrize(
    "wrong", ["", ".ad", "css=", "css=p[", "css=//div", "text=", "text=***", "numbers=1", "/a/*", "words", "/x css=p["]
)
def test_rule_that_cannot_be_is_refused(wrong: str) -> None:
    with pytest.raises(SettingsError, match="ignore"):
        CrawlSettings(ignore=[wrong])


@pytest.mark.parametrize("wrong", ["", "appears=", "disappears=*", "css=.ad", "seems=x", "/a css=b"])
def test_tell_rule_that_cannot_be_is_refused(wrong: str) -> None:
    with pytest.raises(SettingsError, match="tell"):
        CrawlSettings(tell=[wrong])


def test_rules_read_back_and_texts_need_versions() -> None:
    rules = CrawlSettings(ignore="css=.a b;  /x/*   numbers ; text=c=d").ignore
    assert rules == ("css=.a b", "/x/* numbers", "text=c=d")
    assert read_rule(rules[2]).value == "c=d"
    assert CrawlSettings(ignore=rules).ignore == rules
    assert CrawlSettings(tell=["shop.example", "/x?a=b appears=c"], archive="full").tell[0] == "shop.example"
    with pytest.raises(SettingsError, match="archive is none"):
        CrawlSettings(tell=["appears=c"], archive="none")


@pytest.mark.slow
@pytest.mark.parametrize("archive", ["full", "none"])
def test_recrawl_with_rules_keeps_the_version_that_is_there(tmp_path: Path, archive: str) -> None:
    into = tmp_path / "c"
    with site() as web:
        web.pages["/"] = page("T", "stays", "<span class=clock>noon</span>")
        options = ("--delay", "0", "-q", "--archive", archive)
        lycosa("crawl", f"{web.url}/", "--into", into, "--ignore", "css=.clock", *options)
        for clock in ("one", "two"):
            web.pages["/"] = page("T", "stays", f"<span class=clock>{clock}</span>")
            assert lycosa("recrawl", into, "--all", "--json").facts["run_changed"] == 0
        web.pages["/"] = page("T", "goes", "<span class=clock>three</span>")
        assert lycosa("recrawl", into, "--all", "--json").facts["run_changed"] == 1


@pytest.mark.slow
def test_only_wanted_changes_are_told(tmp_path: Path) -> None:
    into = tmp_path / "c"
    with site() as web, site() as hook:
        web.pages |= {
            "/": page("Shop", "<a href=/a>a</a><a href=/b>b</a>", "sold out"),
            "/a": page("A", "sold out"),
            "/b": page("B", "b"),
        }
        lycosa(
            "crawl", f"{web.url}/", "--into", into, "--delay", "0", "-q", "--allow-private", "127.0.0.0/8", "--webhook",
            hook.url, "--tell", "appears=In * stock", "--tell", "/b", "--tell", "/a disappears=sold out",
        )  # fmt: skip

        def told(**pages: str) -> list[str]:
            hook.received.clear()
            web.pages |= {f"/{name}".replace("home", ""): text for name, text in pages.items()}
            lycosa("recrawl", into, "--all", "-q")
            return sorted(change["url"].removeprefix(web.url) for change in hook.changes)

        links = "<a href=/a>a</a><a href=/b>b</a>"
        assert told(home=page("Shop", links, "still sold out"), a=page("A", "Sold out, sorry"), b=page("B", "c")) == [
            "/b"
        ]
        assert told(home=page("Shop", links, "now in the STOCK"), a=page("A", "something")) == ["/", "/a"]
        assert told(home=page("Shop", links, "still in stock")) == []
