"""Other crawlers beside Lycosa, as far as no Java and no network is needed: Heritrix's job, and a race without some."""

import io
import stat
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from lycosa.errors import LycosaError
from lycosa.simweb import SimWeb
from lycosa.simweb.log import LoggedRequest
from proof.experiment import perform
from proof.ground import peers
from proof.lab import tarantula
from proof.lab.tarantula import Arguments, Race, RaceResult, judged
from proof.progress import ProgressSteps

SPRING = "{http://www.springframework.org/schema/beans}"


def properties(job: peers.HeritrixJob, bean: str) -> dict[str, str | None]:
    root = ET.fromstring(job.beans())
    (found,) = [each for each in root.iter(f"{SPRING}bean") if each.get("id") == bean]
    return {str(each.get("name")): each.get("value") for each in found.iter(f"{SPRING}property")}


def test_heritrix_job_keeps_the_manners_it_is_given() -> None:
    job = peers.HeritrixJob('http://h0.sim/?a=1&b="2"', 10, per_host=4, delay_s=1.5, seconds=75)
    assert properties(job, "seeds")["value"] == 'http://h0.sim/?a=1&b="2"'
    assert properties(job, "metadata")["robotsPolicyName"] == "obey"
    assert properties(job, "crawlController")["maxToeThreads"] == "10"
    assert properties(job, "queueAssignmentPolicy")["parallelQueues"] == "4"
    delays = properties(job, "disposition")
    assert (delays["delayFactor"], delays["minDelayMs"], delays["maxDelayMs"]) == ("0", "1500", "1500")
    assert properties(job, "crawlLimiter")["maxTimeSeconds"] == "75"


def test_heritrix_job_stays_on_the_host_of_its_start_unless_told() -> None:
    here, anywhere = (peers.HeritrixJob("http://h0.sim/", 1, any_host=any_host).beans() for any_host in (False, True))
    assert "SurtPrefixedDecideRule" in here and "AcceptDecideRule" not in here.replace("PrerequisiteAccept", "")
    assert "SurtPrefixedDecideRule" not in anywhere


def test_heritrix_job_of_many_seeds_names_each_on_a_line_of_its_own() -> None:
    job = peers.HeritrixJob("http://h0.sim/", 1, more_seeds=("http://h1.sim/", "http://h2.sim/"))
    assert properties(job, "seeds")["value"] == "http://h0.sim/\nhttp://h1.sim/\nhttp://h2.sim/"


def test_bubing_command_has_its_pause_and_seeds_and_no_connection_that_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "bubing", lambda: Path("/jars"))
    job = peers.BubingJob(tmp_path / "seeds", 300, 1.5, management_port=4711)
    command = peers.bubing_command(job, tmp_path, {"h0.sim": "127.1.0.1"})
    written = dict(
        line.split("=", 1) for line in (tmp_path / "properties").read_text().splitlines() if not line.startswith("#")
    )
    assert {written["schemeAuthorityDelay"], written["ipDelay"]} == {"1500ms"}
    assert (written["seed"], written["fetchingThreads"]) == (f"file:{tmp_path / 'seeds'}", "300")
    assert written["keepAliveTime"] == "0"
    assert f"-Djdk.net.hosts.file={tmp_path / 'hosts'}" in command and str(tmp_path / "properties") in command


def test_heritrix_command_has_its_job_names_and_a_password_nobody_else_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "heritrix", lambda: Path("/jars"))
    job = peers.HeritrixJob("http://h0.sim/", 10)
    command = peers.heritrix_command(job, tmp_path, {"h0.sim": "127.1.0.1"})
    assert (tmp_path / "jobs" / "race" / "crawler-beans.cxml").read_text() == job.beans()
    assert "127.1.0.1 h0.sim h0.sim.\n" in (tmp_path / "hosts").read_text()
    assert stat.S_IMODE((tmp_path / "login").stat().st_mode) == 0o600
    assert (tmp_path / "login").read_text().strip() not in " ".join(command)


def test_heritrix_without_java_says_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LycosaError, match="no java on the path"):
        peers.heritrix()


def made_up(race: Race, documents: int) -> RaceResult:
    """A crawler that got the front pages of so many hosts, one after the other."""
    layout, each_s = SimWeb(race.web).layout, race.seconds / documents
    entries = [
        LoggedRequest(i * each_s, (i + 1) * each_s, layout.host_name(i), layout.address_of(i), "/", 200, 20_000, "any")
        for i in range(documents)
    ]
    return judged(race, race.web, entries)


def test_tarantula_in_short_reports_everything_and_names_who_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(_: Race) -> Arguments:
        raise LycosaError("nobody sells it")

    monkeypatch.setattr(tarantula, "PEERS", {tarantula.SCRAPY: absent, tarantula.HERITRIX: lambda _: lambda _: ["h"]})
    monkeypatch.setattr(tarantula, "lycosa_command", lambda _, *settings: lambda _: [*settings])
    monkeypatch.setattr(
        tarantula, "race_of", lambda race, crawler, _: made_up(race, 8 if crawler(None) == ["h"] else 9)
    )
    result = perform(tarantula.EXPERIMENT, seed=1, quick=True, view=ProgressSteps(io.StringIO()))
    findings = result.findings
    assert findings.tables[-1].rows == (("Scrapy", "nobody sells it"),)
    assert [row[0] for row in findings.tables[0].rows] == [*tarantula.OURS, tarantula.HERITRIX]
    assert findings.figures["documents beside Heritrix"].value == pytest.approx(9 / 8)
    assert "1.33 × Heritrix's documents does not hold here: 1.12 ×" in findings.remarks[0]
    assert [chart.title for chart in findings.charts[:3]] == [
        "Average download rate",
        "URLs discovered",
        "Bandwidth in use",
    ]
