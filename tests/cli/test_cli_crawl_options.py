"""The options of `lycosa crawl`: what the user types becomes settings, or one sentence and exit code 2."""

import importlib
import io
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import typer

from lycosa.cli.crawl import crawl_command
from lycosa.cli.options import CrawlCommand, CrawlJob, expand_allow_private, read_urls, resolve_settings
from lycosa.errors import SettingsError
from lycosa.settings import SETTINGS, CrawlSettings, to_toml
from lycosa.settings.values import PRIVATE_NETWORKS
from tests.cli.command import lycosa

Crawl = Callable[..., CrawlJob]
Refused = Callable[..., str]


@pytest.fixture(autouse=True)
def _no_settings_around(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in SETTINGS:
        monkeypatch.delenv(f"LYCOSA_{name.upper()}", raising=False)
    monkeypatch.chdir(tmp_path)


def _run(monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]) -> tuple[int, list[CrawlJob]]:
    """The whole command line with a `crawl` that only takes down its orders."""
    main = importlib.import_module("lycosa.cli.commands")
    orders: list[CrawlJob] = []
    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    app.command(name="crawl", cls=CrawlCommand)(crawl_command(orders.append))
    app.callback()(lambda: None)
    monkeypatch.setattr(main, "app", app)
    monkeypatch.setattr(sys, "argv", ["lycosa", "crawl", *words])
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert isinstance(ended.value.code, int)
    return ended.value.code, orders


@pytest.fixture
def crawl(monkeypatch: pytest.MonkeyPatch) -> Crawl:
    def run(*words: str) -> CrawlJob:
        code, orders = _run(monkeypatch, words)
        assert code == 0
        return orders[0]

    return run


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refused:
    def run(*words: str) -> str:
        code, orders = _run(monkeypatch, words)
        out, err = capsys.readouterr()
        assert (code, orders, out, err.count("\n")) == (2, [], "", 1)
        return err

    return run


def test_crawl_with_every_option_sets_what_it_names(crawl: Crawl) -> None:
    typed = (
        "example.org http://b.org/ --into d --scope domain --include /a* --include /b* --exclude *.pdf --images "
        "--no-sitemaps --pages 5 --depth 0 --time 10m --bytes 2GiB --pages-per-host 3 --wait --fail-on-limit "
        "--delay 0.5 --per-host 2 --ip-delay 0.1 --per-ip 6 --agent Spider --contact a@b.org --no-robots "
        "--bandwidth 2MB --dns 127.0.0.1:5300 --allow-private 127.0.0.0/8 --durability power --json --quiet"
    )
    order = crawl(*typed.split())
    assert order == CrawlJob(
        CrawlSettings(
            seeds=["https://example.org/", "http://b.org/"],
            scope="domain",
            include=["/a*", "/b*"],
            exclude=["*.pdf"],
            images=True,
            sitemaps=False,
            pages=5,
            depth=0,
            time_s=600,
            bytes=2**31,
            pages_per_host=3,
            wait=True,
            fail_on_limit=True,
            delay_s=0.5,
            per_host=2,
            ip_delay_s=0.1,
            per_ip=6,
            agent="Spider",
            contact="a@b.org",
            robots=False,
            bandwidth_bytes_s=2_000_000,
            dns=["127.0.0.1:5300"],
            allow_private=["127.0.0.0/8"],
            durability="power",
        ),
        Path("d"),
        json=True,
        quiet=True,
        bare_seeds=("example.org",),
    )


def test_crawl_without_options_has_the_defaults(crawl: Crawl) -> None:
    wanted = CrawlJob(CrawlSettings(seeds=["example.org"]), Path("d"), bare_seeds=("example.org",))
    assert crawl("example.org", "--into", "d") == wanted


@pytest.mark.parametrize(
    ("words", "networks"),
    [
        ("--allow-private http://localhost:8080/", PRIVATE_NETWORKS),
        ("http://localhost:8080/ --allow-private", PRIVATE_NETWORKS),
        ("http://localhost:8080/ --allow-private --json", PRIVATE_NETWORKS),
        ("--allow-private 10.1.0.0/16 http://localhost:8080/", ("10.1.0.0/16",)),
        ("--allow-private=10.1.0.0/16 --allow-private ::1 http://localhost:8080/", ("10.1.0.0/16", "::1/128")),
    ],
)
def test_allow_private_stands_alone_or_before_a_network(crawl: Crawl, words: str, networks: tuple[str, ...]) -> None:
    settings = crawl("--into", "d", *words.split()).settings
    assert settings.seeds == ("http://localhost:8080/",)
    assert settings.allow_private == networks


def test_expand_allow_private_leaves_what_follows_two_dashes_alone() -> None:
    assert expand_allow_private(["--json", "--", "--allow-private"]) == ["--json", "--", "--allow-private"]


def test_config_file_environment_and_options_win_in_this_order(
    crawl: Crawl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "c.toml").write_text("seeds = ['file.org']\npages = 1\ndepth = 1\ndelay_s = 9\n")
    monkeypatch.setenv("LYCOSA_PAGES", "2")
    monkeypatch.setenv("LYCOSA_DEPTH", "2")
    settings = crawl("--into", "d", "--config", "c.toml", "--pages", "3").settings
    assert (settings.pages, settings.depth, settings.delay_s) == (3, 2, 9.0)
    assert settings.seeds == ("https://file.org/",)
    assert crawl("typed.org", "--into", "d", "--config", "c.toml").settings.seeds == ("https://typed.org/",)


def _collection(folder: Path, **values: object) -> CrawlSettings:
    folder.mkdir()
    settings = CrawlSettings(**values)
    (folder / "lycosa.toml").write_text(to_toml(settings), encoding="utf-8")
    return settings


def test_collection_gone_on_with_keeps_its_settings(crawl: Crawl, tmp_path: Path) -> None:
    kept = _collection(tmp_path / "d", seeds=["a.org"], pages=10, robots=False, delay_s=3)
    assert crawl("--into", "d").settings == kept
    assert crawl("a.org", "--into", "d").settings == kept


def test_collection_gone_on_with_takes_new_settings_and_adds_new_seeds(crawl: Crawl, tmp_path: Path) -> None:
    _collection(tmp_path / "d", seeds=["a.org"], pages=10, robots=False, delay_s=3)
    settings = crawl("b.org", "--into", "d", "--pages", "none", "--robots").settings
    assert settings == CrawlSettings(seeds=["a.org", "b.org"], delay_s=3)


def test_urls_from_a_file_follow_the_typed_ones(crawl: Crawl, tmp_path: Path) -> None:
    (tmp_path / "urls").write_bytes(b"\xef\xbb\xbf# mine\r\n\r\nb.org\r\n  http://c.org/x \n#d.org")
    assert crawl("a.org", "-i", "urls", "--into", "d").settings.seeds == (
        "https://a.org/",
        "https://b.org/",
        "http://c.org/x",
    )


def test_urls_from_standard_input_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a.org\n\nb.org")))
    assert read_urls("-") == ["https://a.org/", "https://b.org/"]


@pytest.mark.parametrize("line", ["ftp://c.org/", "http://", "a\tb.org", "http://" + "x" * 20_000])
def test_url_that_is_none_says_file_and_line(tmp_path: Path, line: str) -> None:
    (tmp_path / "urls").write_text(f"# mine\na.org\n\n{line}\nb.org\n")
    with pytest.raises(SettingsError, match=r"urls, line 4, is ") as raised:
        read_urls(str(tmp_path / "urls"))
    assert len(str(raised.value)) < 200 + len(str(tmp_path))


def test_urls_that_are_not_text_say_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "urls").write_bytes(b"a.org\nb\xff.org\n")
    with pytest.raises(SettingsError, match=r"urls, line 2, is not UTF-8 text"):
        read_urls(str(tmp_path / "urls"))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--into d", "nothing to start from"),
        ("a.org", "say where to keep the pages: --into DIR"),
        ("a.org --into d --pages x", "--pages is 'x', it must be a whole number"),
        ("a.org --into d --delay x", "--delay is 'x', it must be a time"),
        ("a.org --into d --time x", "--time is 'x', it must be a time"),
        ("a.org --into d --scope x", "--scope is 'x', it must be one of host, domain, prefix, any"),
        ("a.org --into d --bandwidth x", "--bandwidth is 'x', it must be a size"),
        ("a.org ftp://b.org --into d", "holds 'ftp://b.org', only http and https URLs can be seeds"),
        ("/srv/site --into d", "holds '/srv/site', this is a path, not a URL"),
        ("./site --into d", "this is a path, not a URL"),
        ("~/site --into d", "this is a path, not a URL"),
        ("a.org --into d --config missing.toml", "cannot read the settings missing.toml: No such file"),
        ("-i missing --into d", "-i: cannot read missing: No such file"),
        ("-i . --into d", "-i: cannot read .: Is a directory"),
        ("a.org --into d --allow-private=10.0.0.0/99", "--allow-private holds '10.0.0.0/99', it must be a network"),
        ("a.org --into d --pages", "requires an argument"),
        ("a.org --into d --render-step scroll", "--render-step is done in rendered pages: add --render auto"),
        ("a.org --into d --keep-type pdf", "--keep-type holds 'pdf', it must be a media type such as application/pdf"),
    ],
)
def test_bad_usage_is_one_sentence_and_exit_code_2(refused: Refused, words: str, says: str) -> None:
    assert says in refused(*words.split())


def test_collection_with_broken_settings_is_one_sentence_with_its_file(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "lycosa.toml").write_text("pages =\n")
    assert "d/lycosa.toml, line 1, is not TOML" in refused("a.org", "--into", "d")


def test_into_that_is_a_file_is_left_for_the_store_to_refuse(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert resolve_settings({"seeds": ["a.org"]}, into=tmp_path / "file", environ={}) == CrawlSettings(seeds=["a.org"])


def _pages_of_help() -> list[str]:
    main = importlib.import_module("lycosa.cli.commands")
    groups = {
        name: typer.main.get_group(importlib.import_module(f"lycosa.cli.{name}").app) for name in ("cluster", "simweb")
    }
    return ["", *main.MODULES, *(f"{name} {command}" for name, group in groups.items() for command in group.commands)]


@pytest.mark.parametrize("words", _pages_of_help())
def test_help_fits_into_80_columns_and_speaks_plainly(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    said = lycosa(*words.split(), "--help")
    assert (said.code, said.err) == (0, "")
    assert max(map(len, said.out.splitlines())) <= 80
    assert "..." not in said.out.replace("COMMAND [ARGS]...", ""), "nothing is cut off"
    assert not re.search(r"<\w+>|list\[", said.out.replace("<Vol1>", "").replace("<Vol2>", "")), (
        "metavars are for people"
    )


def test_summaries_of_commands_fit_into_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    main = importlib.import_module("lycosa.cli.commands")
    lines = lycosa("--help").out.splitlines()
    for commands in main.COMMANDS.values():
        for name, (_, summary) in commands.items():
            assert any(line.split() == [name, *summary.split()] for line in lines)


def test_every_option_of_the_schema_is_an_option_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = lycosa("crawl", "--help").out
    assert all(setting.option in shown for setting in SETTINGS.values() if setting.option)
