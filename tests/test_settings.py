"""Settings: every spelling people use, every slip a sentence, and what is written reads back equal."""

import pickle
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lycosa.errors import SettingsError
from lycosa.fetch.downloader import TransferLimits
from lycosa.mapping.mapper import parse_server
from lycosa.settings import CrawlSettings, SettingsSource, from_environment, merge, read_file, to_toml
from lycosa.settings.schema import DEFAULTS, RETIRED, SETTINGS
from lycosa.settings.sources import reference, settings_of_folder
from lycosa.settings.values import PRIVATE_NETWORKS
from lycosa.web.scope import ScopeKind, UrlLimits
from lycosa.web.url import parse_url
from proof.ground.named_settings import named_settings


def written(folder: Path, text: str, name: str = "lycosa.toml") -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("typed", "read"),
    [("90", 90), (90, 90), ("10m", 600), ("2h", 7200), ("1h30m", 5400), ("500ms", 0.5), (" 2H ", 7200)],
)
def test_seconds_as_people_write_them_are_read(typed: object, read: float) -> None:
    assert CrawlSettings(time_s=typed).time_s == read


@pytest.mark.parametrize(
    ("typed", "read"),
    [("500MB", 500_000_000), ("2GiB", 2**31), ("1.5 kB", 1500), (7, 7), ("7", 7), ("3k", 3000), ("64KiB", 65_536)],
)
def test_sizes_as_people_write_them_are_read(typed: object, read: int) -> None:
    assert CrawlSettings(bytes=typed).bytes == read


@pytest.mark.parametrize("typed", [20_000, "20000", "20_000", "20,000", 2e4])
def test_counts_as_people_write_them_are_read(typed: object) -> None:
    assert CrawlSettings(pages=typed).pages == 20_000


@pytest.mark.parametrize("name", [name for name, default in DEFAULTS.items() if default is None])
def test_setting_without_default_takes_none(name: str) -> None:
    assert getattr(CrawlSettings(**{name: "none"}), name) is None


@pytest.mark.parametrize(
    ("typed", "seed"),
    [
        ("example.org", "https://example.org/"),
        ("localhost:8080/a", "https://localhost:8080/a"),
        ("http://Example.org", "http://example.org/"),
        (" https://bücher.example/ü ", "https://xn--bcher-kva.example/%C3%BC"),
    ],
)
def test_seed_without_scheme_is_https_and_every_seed_a_url(typed: str, seed: str) -> None:
    seeds = CrawlSettings(seeds=[typed]).seeds
    assert seeds == (seed,)
    assert parse_url(seeds[0]) is not None


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("pages", 0, "pages is 0, it must be a whole number of at least 1, or none"),
        ("pages", True, "pages is True, it must be a whole number"),
        ("pages", 1.5, "pages is 1.5, it must be a whole number"),
        pytest.param("pages", 10**5000, "pages is a very long number", id="pages-huge"),
        ("depth", -1, "of at least 0"),
        ("time_s", "9 apples", "time_s is '9 apples', it must be a time"),
        ("time_s", "1e999", "it must be a time"),
        ("delay_s", float("nan"), "delay_s is nan"),
        ("delay_s", -1, "of at least 0 s"),
        ("bytes", "5iB", "it must be a size"),
        ("bytes", "٣", "it must be a size"),
        ("scope", "hots", "scope is 'hots', it must be one of host, domain, prefix, any"),
        ("robots", 3, "robots is 3, it must be true or false"),
        ("seeds", ["a.org", "ftp://b.org"], "seeds holds 'ftp://b.org', only http and https URLs can be seeds"),
        ("seeds", ["mailto:me@example.org"], "only http and https URLs can be seeds"),
        ("seeds", ["javascript:void(0)"], "only http and https URLs can be seeds"),
        ("seeds", ["http://[::1"], "it must be a URL"),
        ("seeds", ["https://me:secret@example.org/"], "must not hold a user name or password"),
        ("seeds", [""], "it must be a URL"),
        ("include", 5, "include is 5, it must be a list"),
        ("include", [5], "include holds 5, it must be text"),
        ("agent", "my bot/1", "it must be a name of letters, - and _"),
        ("contact", "me", "it must be a URL or an e-mail address"),
        ("contact", "https://a:pw@e.org/", "contact is 'https://…@e.org/', it must not hold a user name or password"),
        ("contact", "https://token@e.org", "it must not hold a user name or password, since every host is sent it"),
        ("contact", "https://e.org/\r\nHost: x", "it must be a URL or an e-mail address"),
        ("dns", ["ns.example:53"], "dns holds 'ns.example:53', it must be an address and a port"),
        ("dns", ["127.0.0.1:99999"], "it must be an address and a port"),
        ("dns", ["fe80::1%eth0"], "it must be an address and a port"),
        ("allow_private", ["10.0.0.0/99"], "allow_private holds '10.0.0.0/99', it must be a network"),
        ("proxies", ["ftp://p"], "proxies holds a value that cannot be used, it must be a URL"),
        ("proxies", ["http://u:pw@p"], "name the user of a proxy by --user"),
        ("types", ["pdf"], "types holds 'pdf', it must be a media type such as application/pdf"),
        ("transfers", 0, "between 1 and 100,000"),
        ("ca_file", "a\nb", "it must be text without control characters"),
        ("delay", 1, "there is no setting delay; did you mean delay_s?"),
        ("max-pages", 1, "there is no setting max-pages; did you mean pages?"),
        ("qqqqqq", 1, "there is no setting qqqqqq"),
    ],
)
def test_bad_value_is_one_sentence_with_setting_value_and_what_is_allowed(name: str, value: object, says: str) -> None:
    with pytest.raises(SettingsError) as refused:
        CrawlSettings(**{name: value})
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 300


Anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12) | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@pytest.mark.slow
@given(st.sampled_from(sorted(SETTINGS)), Anything)
def test_any_value_gives_settings_or_a_settings_error(name: str, value: object) -> None:
    try:
        settings = CrawlSettings(**{name: value})
    except SettingsError as refused:
        assert "\n" not in str(refused)
    else:
        assert CrawlSettings(**tomllib.loads(to_toml(settings))) == settings


SEEDS = st.lists(st.from_regex(r"[a-z]{1,9}\.org(/[a-z0-9?&=é'\"\\]{0,9})?", fullmatch=True), max_size=4)
PATTERNS = st.lists(st.text(min_size=1, max_size=9).filter(lambda t: t.isprintable() and bool(t.strip())), max_size=3)
DRAWN: dict[str, st.SearchStrategy[Any]] = {
    "seeds": SEEDS,
    "scope": st.sampled_from(list(ScopeKind)).map(str),
    "include": PATTERNS,
    "exclude": PATTERNS,
    "skip_extensions": st.lists(st.from_regex(r"\.?[a-zA-Z0-9]{1,5}", fullmatch=True)),
    "pages": st.none() | st.integers(1, 2**63 - 1),
    "depth": st.none() | st.integers(0, 10**9),
    "time_s": st.none() | st.floats(0.001, 1e8),
    "bytes": st.none() | st.integers(1, 2**63 - 1),
    "delay_s": st.floats(0, 1e8),
    "store_interval_s": st.floats(0, 60),
    "contact": st.sampled_from([None, "https://e.org/@me?a=b", "a@b.org"]),
    "robots": st.booleans(),
    "fields": st.dictionaries(
        st.from_regex(r"([a-z]{1,5}\.org/)?[a-z_][a-z0-9_.-]{0,5}", fullmatch=True),
        st.sampled_from([".a", "h1 > a@href", "a[title='x \"y\" \\\\ z']*", "ul > *", "ul>**", "a, b"]),
    ),
    "ca_file": st.text(max_size=9).filter(str.isprintable),
    "dns": st.lists(st.ip_addresses().map(str)),
    "allow_private": st.booleans() | st.lists(st.ip_addresses().map(str)),
}


@given(st.fixed_dictionaries({}, optional=DRAWN))
def test_toml_of_any_settings_reads_back_equal(values: dict[str, object]) -> None:
    settings = CrawlSettings(**values)
    assert CrawlSettings(**tomllib.loads(to_toml(settings))) == settings
    assert CrawlSettings(**settings.as_dict()) == settings


def test_toml_through_a_file_reads_back_equal_and_says_what_each_setting_means(tmp_path: Path) -> None:
    settings = CrawlSettings(seeds=["example.org"], ca_file=str(tmp_path / "ca.pem"), include=['/é"\\*'])
    text = to_toml(settings)
    assert merge(read_file(written(tmp_path, text))) == settings
    assert list(tomllib.loads(text)) == list(SETTINGS)
    words = " ".join(text.replace("\n# ", " ").split())
    assert all(setting.meaning in words for setting in SETTINGS.values())
    assert max(map(len, text.splitlines())) <= 120


def test_settings_are_frozen_hashable_and_survive_pickling() -> None:
    settings = CrawlSettings(seeds=["example.org"], pages=3)
    assert pickle.loads(pickle.dumps(settings)) == settings
    assert hash(settings) == hash(CrawlSettings(seeds=["example.org"], pages=3))
    with pytest.raises(AttributeError, match="cannot assign"):
        settings.pages = 4


def test_merge_last_source_wins_and_defaults_fill_the_rest() -> None:
    settings = merge(
        SettingsSource({"pages": 1, "depth": 1, "delay_s": 2}),
        SettingsSource({"pages": 2, "depth": 2}),
        SettingsSource({"pages": 3}),
    )
    assert (settings.pages, settings.depth, settings.delay_s, settings.per_host) == (3, 2, 2.0, 1)


def test_merge_bad_value_names_where_it_came_from(tmp_path: Path) -> None:
    file = read_file(written(tmp_path, "pages = 'many'\n"))
    environment = from_environment({"LYCOSA_DELAY_S": "long"})
    with pytest.raises(SettingsError, match=r"^pages in .*lycosa\.toml is 'many', it must"):
        merge(file)
    with pytest.raises(SettingsError, match=r"^LYCOSA_DELAY_S is 'long', it must"):
        merge(SettingsSource({"delay_s": 1}), environment)
    with pytest.raises(SettingsError, match=r"^--pages is '0', it must"):
        merge(file, SettingsSource({"pages": "0"}, lambda name: f"--{name}"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("pages = 1\ndelay_s = \n", ", line 2, is not TOML: invalid value"),
        ("pages = 1\nseeds = [", ", line 2, is not TOML: "),
        ("pages = 1\npages = 2\n", ", line 2, is not TOML: "),
        ("pages = " + "[" * 100_000, " cannot be read as TOML"),
        ("pages = " + "9" * 5000, " cannot be read as TOML"),
    ],
    ids=["value", "end", "twice", "deep", "long"],
)
def test_file_that_is_not_toml_is_one_sentence_with_file_and_line(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(SettingsError) as refused:
        read_file(written(tmp_path, text))
    assert str(refused.value).startswith(f"{tmp_path / 'lycosa.toml'}{says}")
    assert "\n" not in str(refused.value)


def test_file_with_unknown_names_says_which_and_the_nearest(tmp_path: Path) -> None:
    for text, says in [
        ("per-host = 2", "there is no setting 'per-host' in {file}; did you mean per_host?"),
        ("[limits]\npages = 2", "there is no setting limits in {file}"),
    ]:
        file = written(tmp_path, text)
        with pytest.raises(SettingsError) as refused:
            merge(read_file(file))
        assert str(refused.value).startswith(says.format(file=file))


def test_file_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"cannot read the settings .*missing\.toml: No such file"):
        read_file(tmp_path / "missing.toml")
    with pytest.raises(SettingsError, match="Is a directory"):
        read_file(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b"agent = '\xe9'")
    with pytest.raises(SettingsError, match="not UTF-8"):
        read_file(tmp_path / "latin.toml")


def test_environment_sets_numbers_switches_and_lists_and_leaves_strangers_alone() -> None:
    environ = {
        "LYCOSA_TIME_S": "10m",
        "LYCOSA_ROBOTS": "off",
        "LYCOSA_SEEDS": "a.org  b.org",
        "LYCOSA_CONTACT": "",
        "LYCOSA_CONFORMANCE": "/somewhere",
        "PAGES": "7",
    }
    settings = merge(from_environment(environ))
    assert settings == CrawlSettings(time_s=600, robots=False, seeds=["a.org", "b.org"])


def test_environment_with_a_slip_of_a_name_is_refused() -> None:
    with pytest.raises(SettingsError, match="no setting LYCOSA_DELAY; did you mean LYCOSA_DELAY_S"):
        from_environment({"LYCOSA_DELAY": "3"})


def test_ca_file_is_meant_from_where_it_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    here, there = tmp_path / "ca.pem", tmp_path / "there" / "ca.pem"
    there.parent.mkdir()
    assert merge(from_environment({"LYCOSA_CA_FILE": "ca.pem"})).ca_file == str(here)
    assert merge(read_file(written(there.parent, "ca_file = 'ca.pem'"))).ca_file == str(there)


def test_parallelism_per_address_is_at_least_that_per_host() -> None:
    assert CrawlSettings().parallel_per_ip == 4
    assert CrawlSettings(per_host=32).parallel_per_ip == 32


def test_private_networks_stand_for_true_and_for_their_word() -> None:
    assert CrawlSettings(allow_private=True).allow_private == PRIVATE_NETWORKS
    assert CrawlSettings(allow_private="private").allow_private == PRIVATE_NETWORKS
    assert CrawlSettings(allow_private=["private", "169.254.1.1"]).allow_private[-1] == "169.254.1.1/32"
    assert CrawlSettings(allow_private=False).allow_private == ()


@pytest.mark.parametrize("server", ["127.0.0.1", "127.0.0.1:5300", "::1", "[::1]", "[2001:db8::1]:5300"])
def test_name_server_is_one_that_the_resolver_takes(server: str) -> None:
    (kept,) = CrawlSettings(dns=[server]).dns
    assert kept == parse_server(server)


def test_defaults_are_those_of_the_rooms_that_use_them() -> None:
    settings, limits, shape = CrawlSettings(), TransferLimits(), UrlLimits()
    for name in ("total_s", "body_bytes", "bandwidth_bytes_s"):
        assert getattr(settings, name) == getattr(limits, name)
    for name in ("include", "exclude"):
        assert getattr(settings, name) == getattr(shape, name)
    assert set(settings.skip_extensions) == shape.skip_extensions
    for kind in ScopeKind:
        assert CrawlSettings(scope=str(kind)).scope == kind


def test_settings_of_a_version_before_are_read_without_those_that_became_constants(tmp_path: Path) -> None:
    lines = [to_toml(CrawlSettings(pages=3)), *(f"{name} = 7" for name in RETIRED)]
    assert merge(read_file(written(tmp_path, "\n".join(lines)))) == CrawlSettings(pages=3)


def test_saved_contact_that_earlier_versions_took_with_a_password_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "lycosa.toml").write_text('pages = 3\ncontact = "https://a:pw@example.org/"\n')
    saved = settings_of_folder(tmp_path)
    assert saved is not None
    assert merge(saved) == CrawlSettings(pages=3)
    (tmp_path / "lycosa.toml").write_text('contact = "https://example.org/bot"\n')
    assert (saved := settings_of_folder(tmp_path)) and merge(saved).contact == "https://example.org/bot"


def test_reference_page_is_current() -> None:
    page = Path(__file__).parent.parent / "docs" / "settings.md"
    assert page.read_text(encoding="utf-8") == reference(), "write it: lycosa settings --markdown > docs/settings.md"


def test_settings_for_type_checkers_are_those_of_the_schema() -> None:
    named = (Path(__file__).parent.parent / "src" / "lycosa" / "settings" / "named.py").read_text()
    assert named == named_settings(), "run python -m proof.ground.named_settings"


def test_every_setting_says_in_a_sentence_what_it_does_and_options_are_spelled_once() -> None:
    options = [setting.option for setting in SETTINGS.values() if setting.option]
    assert len(options) == len(set(options))
    for setting in SETTINGS.values():
        assert setting.help[0].isupper()
        assert setting.help.endswith(".")
