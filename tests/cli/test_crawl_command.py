"""`lycosa crawl` and the commands on a collection given what cannot be: one sentence, the documented code, no harm."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lycosa.web import kernel_name
from tests.cli.command import REPOSITORY, Said, Web, ended, lycosa, simulated_web, started

DONE, NOTHING, USAGE, STORAGE = 0, 1, 2, 4
NOWHERE = "http://127.0.0.1:9/"  # typed as a literal, so it is asked; nobody listens on the port of `discard`

pytestmark = pytest.mark.slow


def is_one_sentence(said: Said, code: int, *parts: str) -> bool:
    """Ended with the code, and said one thing that holds all the parts."""
    assert said.code == code, said
    assert len(said.complaints) == 1, said
    sentence = said.complaints[0]
    assert sentence.startswith("lycosa: "), said
    return all(part in sentence for part in parts)


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with simulated_web(tmp_path_factory.mktemp("web"), "--hosts", "3", "--pages", "1500") as running:
        yield running


@pytest.fixture(scope="module")
def garbage() -> Iterator[int]:
    """A server that greets like one for mail; its port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def greet() -> None:
        while True:
            try:
                caller, _ = listener.accept()
            except OSError:
                return
            with caller, contextlib.suppress(OSError):  # who hangs up first
                caller.recv(1000)
                caller.sendall(b"220 mail.example ready\r\n500 what?\r\n")

    thread = threading.Thread(target=greet, daemon=True)
    thread.start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()


@pytest.fixture
def collection(web: Web, tmp_path: Path) -> Path:
    """A finished crawl of one page."""
    assert lycosa(*web.crawl(tmp_path / "c", "--pages", "1")).code == DONE
    return tmp_path / "c"


# hosts that cannot be had


def test_crawl_no_such_host_ends_with_1_and_says_so(web: Web, tmp_path: Path) -> None:
    words = web.crawl(tmp_path / "c")
    words[1] = f"http://nobody.sim:{web.port}/"
    assert is_one_sentence(lycosa(*words), NOTHING, "nothing could be fetched", "no such host")


def test_crawl_name_with_a_private_address_ends_with_1_and_names_the_option(web: Web, tmp_path: Path) -> None:
    words = ["crawl", web.url(), "--into", tmp_path / "c", "--dns", f"127.0.0.1:{web.dns_port}"]
    assert is_one_sentence(lycosa(*words), NOTHING, "address refused", "--allow-private")


def test_crawl_that_reaches_nobody_ends_with_1_and_says_why(garbage: int, tmp_path: Path) -> None:
    refused = started("crawl", NOWHERE, "--into", tmp_path / "refused", "--json")
    not_http = started("crawl", f"http://127.0.0.1:{garbage}/", "--into", tmp_path / "garbage", "--json")

    ends = [ended(refused), ended(not_http)]

    assert is_one_sentence(ends[0], NOTHING, "nothing could be fetched", "connect")
    assert is_one_sentence(ends[1], NOTHING, "nothing could be fetched", "protocol")
    assert [said.facts["pages"] for said in ends] == [0, 0]
    assert max(said.facts["seconds"] for said in ends) < 20  # the usual table would wait 25 s
    assert "http://127.0.0.1:9 takes no connections; trying again in 1 s (Ctrl-C to stop)" in ends[0].err
    assert "does not speak HTTP; trying again in 1 s" in ends[1].err


# what the user wrote


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--policy", "nonsense"], "there is internal-first, pvalue, rank, topic"),
        (["--policy", "breadth+rank"], "does not rank"),
        (["--policy", "rank+nonsense"], "there is no walk"),
        (["--policy", "topic"], "--topic WORDS"),
        (["--topic", "!!!"], "lycosa: a topic needs at least one word, '!!!' has none"),
        (["--topic-page", "/dev/null"], "lycosa: a topic needs at least one word, the example pages have none"),
        (["--topic-page", "nowhere.html"], "nowhere.html"),
        (["--group", "x"], "such as *.example.org=2/1s"),
        (["--topic", ""], "--topic is empty"),
        (["--store", ""], "--store is empty: give a folder or a URL"),
        (["--store", "", "--workers", "2"], "--store is empty"),
        (["--store", "memory://x", "--workers", "2"], "memory://x is in the memory of one process"),
        (["--store", "nonsense://x", "--workers", "2"], "nonsense://x is no place for a store"),
        (["--store", "x"], "--store is for crawls with several processes"),
        (["--checkpoint", "1m"], "--checkpoint copies shards to a central store"),
        (["--assignment", "ip"], "--assignment is for crawls with several processes"),
        (["--config", "letters.toml", "--workers", "2"], "letters are for --assignment letter-sum, not rendezvous"),
        (["--places", "/dev/null"], "/dev/null has no places"),
        (["--mine", "sometimes"], "off, ancestors, all"),
    ],
)
def test_crawl_order_that_is_none_is_refused_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], part: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("letters.toml").write_text('letters = ["-=37"]')
    assert is_one_sentence(lycosa("crawl", NOWHERE, "--into", tmp_path / "c", *words), USAGE, part)
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("url", ["http://[bad", "http://", "ftp://example.org/", "http://user:secret@127.0.0.1:9/"])
def test_crawl_bad_url_is_refused_before_anything_is_made(tmp_path: Path, url: str) -> None:
    shown = url.replace("user:secret", "…")
    assert is_one_sentence(lycosa("crawl", url, "--into", tmp_path / "c"), USAGE, shown)
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("command", ["crawl", "add"])
def test_command_url_of_another_kind_says_which_can_be_seeds(collection: Path, command: str) -> None:
    words = on(command, collection)
    words[words.index(NOWHERE)] = "mailto:me@example.org"
    assert is_one_sentence(lycosa(*words), USAGE, "mailto:me@example.org", "only http and https URLs can be seeds")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"delay_s = [", "line 1"),
        (b"\xff\xfe", "UTF-8"),
        (b'delay_s = "soon"', "delay_s"),
        (b"speed = 3", "speed"),
        (None, "No such file"),
    ],
)
def test_crawl_unreadable_config_names_the_file(tmp_path: Path, content: bytes | None, words: str) -> None:
    config = tmp_path / "my.toml"
    if content is not None:
        config.write_bytes(content)
    said = lycosa("crawl", NOWHERE, "--into", tmp_path / "c", "--config", config)
    assert is_one_sentence(said, USAGE, "my.toml", words)
    assert not (tmp_path / "c").exists()


def test_crawl_config_that_is_a_folder_is_named(tmp_path: Path) -> None:
    said = lycosa("crawl", NOWHERE, "--into", tmp_path / "c", "--config", tmp_path)
    assert is_one_sentence(said, USAGE, str(tmp_path), "directory")


def test_crawl_empty_list_of_urls_says_what_to_give(tmp_path: Path) -> None:
    (tmp_path / "urls.txt").write_text("# none yet\n\n")
    said = lycosa("crawl", "-i", tmp_path / "urls.txt", "--into", tmp_path / "c")
    assert is_one_sentence(said, USAGE, "-i FILE")
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["crawl", NOWHERE, "--into", "c", "--sped", "3"], "--sped"),
        (["crawl", NOWHERE, "--into", "c", "--pages", "many"], "--pages"),
        (["crawl", NOWHERE, "--into", "c", "-i", "missing.txt"], "missing.txt"),
        (["crawl", NOWHERE], "--into DIR"),
        (["crawl", NOWHERE, "--into"], "--into"),
        (["crwal", NOWHERE], "crwal"),
        (["why", NOWHERE], "--in"),
        (["status"], "DIR"),
    ],
)
def test_command_wrong_words_end_with_2(words: list[str], part: str) -> None:
    assert is_one_sentence(lycosa(*words), USAGE, part)


@pytest.mark.parametrize("words", [["--seconds", "-1"], ["--seconds", "nan"], ["--hosts", "0"], ["--hosts", "-3"]])
def test_demo_that_cannot_be_is_refused_before_anything_is_started(tmp_path: Path, words: list[str]) -> None:
    said = lycosa("demo", "--into", tmp_path / "d", *words)
    assert is_one_sentence(said, USAGE, words[0], words[1])
    assert not (tmp_path / "d").exists()


def test_demo_that_is_over_does_not_say_that_a_command_goes_on_with_it(tmp_path: Path) -> None:
    said = lycosa("demo", "--into", tmp_path / "d", "--seconds", "1", "--hosts", "20")
    assert said.code == DONE
    assert "still queued; the demo is over" in said.out
    assert "--time" not in said.out
    assert "the same command" not in said.out


def test_status_names_what_has_read_the_pages(collection: Path) -> None:
    assert lycosa("status", collection, "--json").facts["kernel"] == kernel_name()
    assert ("native page kernel" in lycosa("status", collection).out) == (kernel_name() == "python")


def test_status_after_a_limit_does_not_say_that_the_same_command_goes_on(collection: Path) -> None:
    told = lycosa("status", collection).out
    assert "still queued; its limit of 1 page is used up: a larger --pages continues" in told
    assert "the same command" not in told
    (collection / "lycosa.toml").write_text("pages = [")
    assert lycosa("status", collection).code == DONE


# folders that are no collection, or not ours to use


@pytest.mark.parametrize("command", ["crawl", "status", "hosts", "why", "add"])
def test_command_on_a_file_says_that_it_is_one(tmp_path: Path, command: str) -> None:
    (tmp_path / "c").write_text("dear diary")
    assert is_one_sentence(lycosa(*on(command, tmp_path / "c")), USAGE, "is a file")
    assert (tmp_path / "c").read_text() == "dear diary"


def test_crawl_into_a_folder_below_a_file_says_which_file(tmp_path: Path) -> None:
    (tmp_path / "diary").write_text("dear diary")
    assert is_one_sentence(lycosa(*on("crawl", tmp_path / "diary" / "x" / "y")), USAGE, "diary is a file")
    assert (tmp_path / "diary").read_text() == "dear diary"


@pytest.mark.parametrize("command", ["crawl", "status"])
def test_command_on_a_name_too_long_for_a_folder_says_so(tmp_path: Path, command: str) -> None:
    assert is_one_sentence(lycosa(*on(command, tmp_path / ("x" * 300))), USAGE, "no name for a folder")


@pytest.mark.parametrize("words", [("crawl",), ("crawl", "--workers", "2"), ("status",)])
def test_command_on_a_name_that_is_no_utf8_refuses_it_and_makes_nothing(tmp_path: Path, words: tuple[str, ...]) -> None:
    folder = tmp_path / os.fsdecode(b"lat\xe91")
    said = lycosa(*on(words[0], folder), *words[1:])
    assert is_one_sentence(said, USAGE, "the path must be UTF-8")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", ["status", "hosts", "why", "add"])
@pytest.mark.parametrize("is_folder", [True, False])
def test_command_on_no_collection_says_so_and_makes_nothing(tmp_path: Path, command: str, is_folder: bool) -> None:
    folder = tmp_path / "c"
    if is_folder:
        folder.mkdir()
    assert is_one_sentence(lycosa(*on(command, folder)), USAGE, str(folder), "collection")
    assert folder.exists() is is_folder
    assert not is_folder or list(folder.iterdir()) == []


def test_crawl_into_a_folder_of_something_else_leaves_it_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("chapter one")
    assert is_one_sentence(lycosa("crawl", NOWHERE, "--into", tmp_path), USAGE, "not a collection")
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("command", ["crawl", "status", "hosts", "why", "add"])
def test_command_on_a_collection_of_another_version_says_so(collection: Path, command: str) -> None:
    (collection / "lycosa.format").write_text("lycosa collection, format 99\n")
    before = snapshot(collection)
    assert is_one_sentence(lycosa(*on(command, collection)), USAGE, "another version", "99")
    assert snapshot(collection) == before


@pytest.mark.parametrize("lost", ["state", "state/CURRENT"])
def test_command_on_a_collection_without_its_state_says_so_and_touches_nothing(collection: Path, lost: str) -> None:
    (collection / lost).rename(collection.parent / "lost")
    before = everything(collection)
    for command in ("crawl", "status", "add", "recrawl"):
        assert is_one_sentence(lycosa(*on(command, collection)), STORAGE, "holds no state"), command
        assert everything(collection) == before, command


def test_crawl_collection_in_use_names_the_process_and_leaves_it_alone(web: Web, tmp_path: Path) -> None:
    before = len(web.requests())
    running = started(*web.crawl(tmp_path / "c", "--json", delay="0.05"))
    try:
        wait_until_locked(tmp_path / "c", running)
        while len(web.requests()) < before + 3:  # robots.txt and a page have come
            time.sleep(0.05)
        second = lycosa(*web.crawl(tmp_path / "c"))
        assert is_one_sentence(second, USAGE, f"process {running.pid}")
    finally:
        running.send_signal(signal.SIGINT)
        first = ended(running)
    assert first.code == 130
    assert first.facts["pages"] > 0


def on(command: str, folder: Path) -> list[str | Path]:
    """A command about a folder."""
    return {
        "crawl": ["crawl", NOWHERE, "--into", folder],
        "why": ["why", NOWHERE, "--in", folder],
        "add": ["add", folder, NOWHERE],
    }.get(command, [command, folder])


def snapshot(folder: Path) -> dict[str, bytes]:
    """The files of a collection, without what RocksDB notes for itself when it opens."""
    files = (path for path in folder.rglob("*") if path.is_file() and "state" not in path.parts)
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def everything(folder: Path) -> dict[str, bytes]:
    """All files of a collection, but for the lock, which names whoever had it last."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != "lycosa.lock")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def wait_until_locked(folder: Path, process: subprocess.Popen[str]) -> None:
    lock = folder / "lycosa.lock"
    while process.poll() is None:
        if lock.exists() and lock.read_text().strip() == str(process.pid):
            return
        time.sleep(0.01)
    raise AssertionError(ended(process))


# no space


def test_crawl_without_space_ends_with_4_and_goes_on_when_there_is_some(web: Web, tmp_path: Path) -> None:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("needs to mount a small disk")
    probe = ["unshare", "--mount", "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(tmp_path)]
    if subprocess.run(probe, check=False, capture_output=True).returncode:
        pytest.skip("mounting is not permitted here")
    words = json.dumps([str(word) for word in web.crawl(tmp_path / "c", "--scope", "any", "--json", "-q")])
    script = [sys.executable, "-m", "tests.cli.small_disk", str(tmp_path), words]
    done = subprocess.run(
        ["unshare", "--mount", *script], cwd=REPOSITORY, capture_output=True, text=True, timeout=300, check=True
    )
    full, status, archive, again, archive_again = (Said(*each) for each in json.loads(done.stdout))

    assert is_one_sentence(full, STORAGE, "no space left", "; make room: the same command continues")
    assert "opening the state" not in full.err
    assert archive.code == archive_again.code == 0, (archive, archive_again)
    assert again.code == DONE, again
    assert 0 < status.facts["pages"] < again.facts["pages"]
    assert again.facts["pages"] == status.facts["pages"] + again.facts["run_pages"]
    assert again.facts["queued"] == 0
