"""The summary of a crawl, for people and for machines."""

import json
import math
import shlex
from collections import Counter
from pathlib import Path

import pytest
from msgspec import structs

from lycosa.cli.run import NOTHING_FETCHED, _exit_code
from lycosa.cli.summary import GROUPS, MOST_VISITS_A_DAY, as_json, limit_reached, limit_used_up, summary, visits_left
from lycosa.crawl.progress import Recrawl
from lycosa.crawl.stats import CrawlStats, SlowHost
from lycosa.recrawl.plan import SHORTEST_DAYS
from lycosa.settings import CrawlSettings
from lycosa.web.scope import DropReason

DONE = CrawlStats(
    pages=1_234,
    bytes=45_600_000,
    seconds=192.0,
    run_pages=1_234,
    run_bytes=45_600_000,
    run_seconds=192.0,
    duplicates=12,
    redirects=2_460,
    sitemaps=1,
    queued=45,
    failed={"no-such-host": 3, "connect-timeout": 10},
    dropped={"robots": 400, "media-type": 20, "pages-per-host": 5},
    ignored={"out-of-scope": 3_000, "excluded": 20, "depth": 50, "too-deep": 6, "my-filter": 2},
    slowest=(SlowHost("slow.example", 3.0, 1),),
)


def test_summary_says_what_was_kept_what_failed_and_what_was_skipped() -> None:
    assert summary(DONE, Path("my crawl")) == (
        "1,234 pages kept in my crawl; received 45.6 MB in 3m 12s (6.4 pages/s)\n"
        "  12 duplicates of documents that were there already\n"
        "  2,460 redirects, 1 sitemap\n"
        "  13 failed\n"
        "    10 connect timeout\n"
        "     3 no such host\n"
        "  425 skipped\n"
        "    400 robots\n"
        "     20 out of scope (20 media type)\n"
        "      5 limit (5 pages per host)\n"
        "  3,078 links not followed\n"
        "    3,020 out of scope (3,000 out of scope, 20 excluded)\n"
        "       50 limit (50 depth)\n"
        "        6 trap (6 too deep)\n"
        "        2 my filter\n"
        "  45 still queued: the same command continues\n"
        "next:\n"
        "  lycosa search 'my crawl' WORDS  find pages by their words\n"
        "  lycosa get URL --in 'my crawl'  read a page\n"
        "  lycosa status 'my crawl'        see what there is, and what is queued\n"
        "  lycosa why URL --in 'my crawl'  see why a URL failed or was skipped\n"
    )
    assert "lycosa status" not in summary(DONE, Path("c"), is_status=True)


def test_summary_of_an_empty_crawl_has_only_what_there_is() -> None:
    lines = summary(CrawlStats(), Path("d")).splitlines()
    assert lines[:2] == ["0 pages kept in d; received 0 B in 0.0 s (0.0 pages/s)", "next:"]


def test_summary_of_a_second_run_tells_it_from_the_whole() -> None:
    stats = CrawlStats(pages=100, bytes=9_000, seconds=50, run_pages=40, run_bytes=4_000, run_seconds=20)
    assert "  this run: 40 pages, 4.0 kB in 20 s" in summary(stats, Path("d")).splitlines()


def test_summary_says_why_a_crawl_stood_still() -> None:
    assert "  robots of 1 host unreachable\n" in summary(CrawlStats(standing="robots of 1 host unreachable"), Path("d"))


def test_next_commands_name_the_folder_so_that_a_shell_understands_it() -> None:
    folder = Path("it's; mine")
    commands = summary(CrawlStats(), folder).split("next:\n")[1].splitlines()
    assert len(commands) == 2
    assert all(str(folder) in shlex.split(command.partition("  see")[0]) for command in commands)


def test_every_reason_of_the_filters_belongs_to_one_group() -> None:
    grouped = [name for names in GROUPS.values() for name in names]
    assert len(grouped) == len(set(grouped))
    assert set(DropReason) <= set(grouped)


def test_json_counts_failures_and_says_their_reasons() -> None:
    facts = json.loads(as_json(DONE, stopped_by="pages"))
    assert {name: facts[name] for name in ("pages", "bytes", "failed", "queued", "seconds", "dropped", "ignored")} == {
        "pages": 1_234,
        "bytes": 45_600_000,
        "failed": 13,
        "queued": 45,
        "seconds": 192.0,
        "dropped": 425,
        "ignored": 3_078,
    }
    assert facts["failed_by"] == {"no-such-host": 3, "connect-timeout": 10}
    assert facts["dropped_by"]["robots"] == 400
    assert facts["ignored_by"]["too-deep"] == 6
    assert facts["slowest"] == [{"host": "slow.example", "mean_s": 3.0, "queued": 1}]
    assert facts["stopped_by"] == "pages"
    assert set(CrawlStats.__struct_fields__) <= set(facts)


@pytest.mark.parametrize(
    ("settings", "ended_by", "sentence"),
    [
        ({"time_s": 4}, "time", "its time of 4 s is used up: a larger --time continues"),
        ({"time_s": 7200}, "time", "its time of 2h 00m is used up: a larger --time continues"),
        ({"pages": 1234}, "pages", "its limit of 1,234 pages is used up: a larger --pages continues"),
        ({"bytes": 5_000_000}, "bytes", "its limit of 5.0 MB is used up: a larger --bytes continues"),
        ({"time_s": 4, "keep_fresh": True}, "time", ""),
        ({"time_s": 4}, "interrupted", ""),
    ],
)
def test_summary_after_a_limit_does_not_say_that_the_same_command_goes_on(
    settings: dict[str, object], ended_by: str, sentence: str
) -> None:
    used_up = limit_used_up(CrawlSettings(**settings), ended_by)
    text = summary(DONE, Path("d"), used_up=used_up)
    assert used_up == sentence
    assert ("  45 still queued; " in text) == (f"; {sentence}\n" in text) == bool(sentence)
    assert ("the same command" in text) == (not sentence)


def test_recrawl_that_nobody_answered_is_no_success(capsys: pytest.CaptureFixture[str]) -> None:
    stats = CrawlStats(pages=9, run_visits=2, run_statuses=Counter({"connect": 6}))
    assert _exit_code(stats, "", fail_on_limit=False, is_recrawl=True) == NOTHING_FETCHED
    assert "no host answered: connect (6); nobody takes connections there" in capsys.readouterr().err
    assert "revisited 2 URLs: no host answered" in summary(stats, Path("d"))
    answered = CrawlStats(pages=9, run_visits=2, run_statuses=Counter({"connect": 6, "404": 1}))
    assert _exit_code(answered, "", fail_on_limit=False, is_recrawl=True) == 0


def test_recrawl_with_nothing_due_is_a_success_although_hosts_are_still_down() -> None:
    stats = CrawlStats(pages=9, run_statuses=Counter({"connect": 6}))
    assert _exit_code(stats, "", fail_on_limit=False, is_recrawl=True) == 0
    waiting = CrawlStats(pages=9, revisiting=2, run_statuses=Counter({"connect": 6}))
    assert _exit_code(waiting, "", fail_on_limit=False, is_recrawl=True) == NOTHING_FETCHED


def test_recrawl_of_pages_by_order_says_why_none_could_be_visited(
    capsys: pytest.CaptureFixture[str],
) -> None:
    down = CrawlStats(pages=9, run_statuses=Counter({"connect": 1}))
    refused = CrawlStats(pages=9, run_statuses=Counter({"address-refused": 1}))
    assert _exit_code(down, "", fail_on_limit=False, is_recrawl=True, has_order=True) == NOTHING_FETCHED
    assert _exit_code(refused, "", fail_on_limit=False, is_recrawl=True) == NOTHING_FETCHED
    said = capsys.readouterr().err
    assert "no host answered: connect (1)" in said
    assert "no host answered: address refused (1); --allow-private opens private networks" in said


def test_crawl_of_a_url_without_a_scheme_says_that_it_was_taken_as_https(capsys: pytest.CaptureFixture[str]) -> None:
    stats = CrawlStats(failed=Counter({"tls": 1}), run_statuses=Counter({"tls": 2}))
    _exit_code(stats, "", fail_on_limit=False, bare_seeds=("localhost:8000",))
    _exit_code(stats, "", fail_on_limit=False)
    first, second = capsys.readouterr().err.splitlines()
    assert first.endswith("tls (1); localhost:8000 was taken as https: try http://localhost:8000")
    assert second.endswith("tls (1)")


def test_crawl_with_a_wrong_password_says_that_it_was_not_accepted(capsys: pytest.CaptureFixture[str]) -> None:
    stats = CrawlStats(failed=Counter({"401": 1}), run_statuses=Counter({"401": 2}))
    _exit_code(stats, "", fail_on_limit=False, has_users=True)
    _exit_code(stats, "", fail_on_limit=False)
    with_one, without = capsys.readouterr().err.splitlines()
    assert with_one.endswith("401 (1); the name and password of --user were not accepted")
    assert "want to know who asks" in without


def test_status_of_a_paused_crawl_says_how_it_continues_and_not_that_it_waits() -> None:
    paused = CrawlStats(pages=3, queued=4, is_running=True, is_paused=True, standing="waiting: 1 host to answer")
    text = summary(paused, Path("my crawl"), is_status=True)
    assert "  paused: `lycosa steer 'my crawl' resume` continues\n" in text
    assert "waiting: " not in text


def test_hints_about_a_folder_that_begins_with_a_dash_can_be_typed() -> None:
    assert "lycosa search ./-d WORDS" in summary(DONE, Path("-d"))


def test_run_in_which_nobody_answered_fails_although_there_are_pages(capsys: pytest.CaptureFixture[str]) -> None:
    silent = CrawlStats(pages=5, run_statuses=Counter({"dns": 3, "connect": 1}))
    assert _exit_code(silent, "", fail_on_limit=False) == NOTHING_FETCHED
    assert "no host answered in this run: " in capsys.readouterr().err
    answered = CrawlStats(pages=5, run_statuses=Counter({"dns": 3, "200": 1}))
    assert _exit_code(answered, "", fail_on_limit=False) == 0


def test_summary_of_a_recrawl_tells_what_changed_and_what_was_saved() -> None:
    stats = CrawlStats(
        pages=250, queued=3, run_visits=120, run_changed=7, run_not_modified=90, run_saved_bytes=1_500_000
    )
    text = summary(stats, Path("my crawl"))
    assert "revisited 120 URLs: 7 changed, 113 did not (90 said so, 1.5 MB saved)" in text
    one = CrawlStats(pages=250, redirects=1, sitemaps=2, run_visits=1)
    assert "revisited 1 URL (pages, redirects, sitemaps): 0 changed, 1 did not" in summary(one, Path("d"))
    assert "revisited 1 URL (pages, sitemaps): 0" in summary(structs.replace(one, redirects=0), Path("d"))
    assert "3 still queued: `lycosa crawl --into 'my crawl'` continues" in text


def test_summary_of_one_page_is_in_the_singular() -> None:
    one = CrawlStats(pages=1, duplicates=1, seconds=1.0, ignored=Counter({"excluded": 1}))
    lines = summary(one, Path("d")).splitlines()
    assert lines[:3] == [
        "1 page kept in d; received 0 B in 1.0 s (1.0 pages/s)",
        "  1 duplicate of documents that were there already",
        "  1 link not followed",
    ]


def test_limit_that_the_collection_has_reached_is_known() -> None:
    stats = CrawlStats(pages=5, bytes=100, seconds=9.0)
    for settings, limit in (({"pages": 5}, "pages"), ({"bytes": 99}, "bytes"), ({"time_s": 9}, "time")):
        assert limit_reached(CrawlSettings(**settings), stats) == limit
    assert limit_reached(CrawlSettings(pages=6, bytes=101, time_s=9.5), stats) == ""


def test_summary_tells_of_a_run_only_where_there_is_one() -> None:
    assert "this run" not in summary(CrawlStats(pages=5, bytes=9, seconds=2.0), Path("d"))
    resumed = CrawlStats(pages=5, bytes=9, seconds=2.0, run_seconds=0.1)
    assert "this run: 0 pages" in summary(resumed, Path("d"))


def test_summary_tells_of_records_that_were_lost() -> None:
    lines = summary(CrawlStats(pages=5, seconds=2.0, run_lost=655), Path("d")).splitlines()
    assert "  655 records lost from the archive: fetched again" in lines


@pytest.mark.parametrize(("budget", "is_told"), [(None, False), (240, False), (241, True), (1e6, True)])
def test_summary_says_when_a_budget_of_visits_cannot_be_spent(budget: float | None, is_told: bool) -> None:
    lines = summary(CrawlStats(pages=10, seconds=2.0), Path("d"), budget=budget)
    assert ("at most once an hour, 240 visits a day here" in lines) is is_told
    assert math.isclose(MOST_VISITS_A_DAY, 1 / SHORTEST_DAYS)


def test_summary_after_an_interrupt_says_who_does_the_rest_of_the_visits() -> None:
    waiting, done = CrawlStats(revisiting=1), CrawlStats()
    assert visits_left(waiting, "interrupted", keeps_fresh=False) == (
        "interrupted: 1 URL still to be visited, the same command continues"
    )
    assert visits_left(done, "interrupted", keeps_fresh=True).endswith("continues to keep it fresh")
    assert visits_left(done, "interrupted", keeps_fresh=False) == ""
    assert visits_left(waiting, "time", keeps_fresh=True) == ""
    assert visits_left(done, "stopped", keeps_fresh=False).startswith(
        "stopped by `lycosa steer stop` or the live page: "
    )
    in_cluster = visits_left(done, "stopped", keeps_fresh=False, in_cluster=True)
    assert in_cluster.startswith("stopped by `lycosa cluster stop`: ")
    assert "  interrupted: x\n" in summary(DONE, Path("d"), left="interrupted: x")


def test_next_leads_to_what_suits_the_end_of_a_recrawl() -> None:
    nothing_due, folder = CrawlStats(pages=9), Path("d")
    assert "lycosa recrawl d --all" in summary(nothing_due, folder, recrawl=Recrawl())
    assert "lycosa recrawl" not in summary(nothing_due, folder, recrawl=Recrawl(everything=True))
    visited = summary(CrawlStats(pages=9, run_visits=3), folder, recrawl=Recrawl())
    assert "next:\n  lycosa changes d" in visited


def test_summary_asks_for_a_contact_where_none_is_set() -> None:
    asked = CrawlStats(pages=1, run_requests=2)
    assert "--contact" in summary(asked, Path("d"), settings=CrawlSettings())
    assert "--contact" not in summary(asked, Path("d"), settings=CrawlSettings(contact="a@b.org"))


def test_next_does_not_lead_to_pages_that_were_not_archived() -> None:
    assert "lycosa search" not in summary(CrawlStats(pages=1), Path("d"), settings=CrawlSettings(archive="none"))
