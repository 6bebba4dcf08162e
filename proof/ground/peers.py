"""What is not ours: other crawlers, how each is started, and documents out of Debian packages.

Everything lies in one folder outside the project, `~/.cache/lycosa-bench` or what LYCOSA_BENCH names, and is fetched
once. Packages are downloaded and unpacked there, never installed; only nginx comes from the system, and is installed if
it is missing and the system allows it. `LycosaError` says why something cannot be had.
"""

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Mapping
from pathlib import Path
from string import Template
from typing import NamedTuple
from xml.sax.saxutils import escape

from lycosa.errors import LycosaError

CACHE = Path(os.environ.get("LYCOSA_BENCH") or Path.home() / ".cache" / "lycosa-bench")
INSTALL_S = 3_600.0  # a crawler with three hundred crates, on a busy machine
SCRAPY = "scrapy==2.*"
HERITRIX = "3.13.0"
BUBING = "0.9.15"
KATANA = "github.com/projectdiscovery/katana@v1.6.1"
SPIDER = "2.53.9"
CRAWLEE = "crawlee[parsel]==1.*"
COLLY = "v2.3.0"
REPLAYWEBPAGE = "2.4.6"
WGET2 = ("wget2", "libwget0", "libgpgme11", "libassuan0", "libgpg-error0")
# Of the crate's features only what a crawl by plain requests, with or without TLS, needs: the others cost it time.
_SPIDER = f"""[package]
name = "spider-peer"
version = "1.0.0"
edition = "2021"
[[bin]]
name = "spider-peer"
path = "{Path(__file__).with_name("spider_peer.rs")}"
[dependencies]
spider = {{ version = "={SPIDER}", default-features = false, features = ["sync", "reqwest_rustls_tls"] }}
"""
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>lycosa</groupId><artifactId>peers</artifactId><version>1</version>
  <dependencyManagement><dependencies><dependency>{instead}</dependency></dependencies></dependencyManagement>
  <dependencies><dependency>{wanted}
    <exclusions><exclusion><groupId>sun.jdk</groupId><artifactId>tools</artifactId></exclusion></exclusions>
  </dependency></dependencies>
</project>
"""

HERITRIX_JOB = Path(__file__).with_name("heritrix_job.xml")
BUBING_PROPERTIES = Path(__file__).with_name("bubing.properties")
HEAP = "-Xmx1g"  # four times what Heritrix's own script gives it
_RULES = "org.archive.modules.deciderules"
_WARNINGS = """<configuration>
  <appender name="errors" class="ch.qos.logback.core.ConsoleAppender">
    <target>System.err</target><encoder><pattern>%level %logger{0}: %msg%n</pattern></encoder>
  </appender>
  <root level="ERROR"><appender-ref ref="errors"/></root>
</configuration>
"""
_QUIET = "handlers=java.util.logging.ConsoleHandler\njava.util.logging.ConsoleHandler.level=WARNING\n"

SCRAPY_SPIDER = Path(__file__).with_name("scrapy_spider.py")
CRAWLEE_SPIDER = Path(__file__).with_name("crawlee_spider.py")
COLLY_PEER = Path(__file__).with_name("colly_peer.go")


def say(words: str) -> None:
    """What is being done, on standard error: standard output is for results."""
    sys.stderr.write(f"· {words}\n")
    sys.stderr.flush()


def package(name: str) -> Path:
    """The folder into which a Debian package is unpacked; downloads it the first time."""
    downloads = CACHE / "downloads"
    downloads.mkdir(parents=True, exist_ok=True)

    def install(folder: Path) -> None:
        _run(["apt-get", "download", "-qq", name], cwd=downloads)
        file = max(downloads.glob(f"{name}_*.deb"), key=lambda path: path.stat().st_mtime)
        _run(["dpkg", "-x", str(file), str(folder)])

    return _installed(f"packages/{name}", "apt-get", install)


def crate(name: str, version: str) -> Path:
    """The folder of a crate as it is published, without what it depends on being built."""

    def install(folder: Path) -> None:
        (folder / "src").mkdir()
        (folder / "src" / "lib.rs").touch()
        about = '[package]\nname = "crates"\nversion = "1.0.0"\nedition = "2021"\n'
        (folder / "Cargo.toml").write_text(f'{about}[dependencies]\n{name} = "={version}"\n')
        _run(["cargo", "vendor", "--quiet"], cwd=folder)

    return _installed(f"crates/{name}-{version}", "cargo", install) / "vendor" / name


def nginx() -> str:
    """The path of nginx; installs nginx-light if there is none."""
    return _system_program("nginx", "nginx-light")


def valgrind() -> str:
    """The path of valgrind; installs it if there is none."""
    return _system_program("valgrind", "valgrind")


def _system_program(name: str, package: str) -> str:
    for _ in range(2):
        if found := shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"):
            return found
        say(f"installing {package} from the system's packages")
        _run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", package])
    raise LycosaError(f"{package} was installed but {name} cannot be found")


def scrapy() -> Path:
    """A Python that has Scrapy."""
    return environment("scrapy", SCRAPY)


def heritrix() -> Path:
    """The folder of Heritrix's jars. It names a release of Berkeley DB that only its maker has: a later one serves."""
    return _jars("heritrix", f"org.archive.heritrix:heritrix-engine:{HERITRIX}", "com.sleepycat:je:18.3.12")


def bubing() -> Path:
    """The folder of BUbiNG's jars. It names a release of sux4j that the registry lacks: the one before it serves."""
    return _jars("bubing", f"it.unimi.di.law:bubing:{BUBING}", "it.unimi.dsi:sux4j:4.2.0")


def _jars(name: str, wanted: str, instead: str) -> Path:
    """The folder of the jars of a package (GROUP:ARTIFACT:VERSION), one of them in another version than it names."""
    if shutil.which("java") is None:
        raise LycosaError(f"{name} needs java, and there is no java on the path")

    def install(folder: Path) -> None:
        (folder / "pom.xml").write_text(_POM.format(wanted=coordinates(wanted), instead=coordinates(instead)))
        _run(["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=."], cwd=folder)

    def coordinates(words: str) -> str:
        group, artifact, version = words.split(":")
        return f"<groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"

    return _installed(f"{name}-{wanted.rpartition(':')[2]}", "mvn", install)


def katana() -> Path:
    """The program, built by go in the folder of its own module: there its dependencies have their checksums."""

    def install(folder: Path) -> None:
        module = json.loads(_run(["go", "mod", "download", "-json", KATANA], cwd=folder))["Dir"]
        _run(["go", "build", "-C", module, "-o", str(folder / "katana"), "./cmd/katana"])

    return _installed(f"katana-{KATANA.partition('@')[2]}", "go", install) / "katana"


def spider() -> Path:
    """A small program around the crate (`spider_peer.rs`), built by cargo."""

    def install(folder: Path) -> None:
        (folder / "Cargo.toml").write_text(_SPIDER)
        built = CACHE / "built" / f"spider-{SPIDER}"  # stays if it fails: the next time goes on from there
        _run(["cargo", "build", "--quiet", "--release", "--target-dir", str(built)], cwd=folder)
        shutil.copy(built / "release" / "spider-peer", folder)

    return _installed(f"spider-{SPIDER}", "cargo", install) / "spider-peer"


def crawlee() -> Path:
    """A Python that has Crawlee with its parser of lxml."""
    return environment("crawlee", CRAWLEE)


def colly() -> Path:
    """A small program around the module (`colly_peer.go`), built by go."""

    def install(folder: Path) -> None:
        shutil.copy(COLLY_PEER, folder / "main.go")
        _run(["go", "mod", "init", "colly-peer"], cwd=folder)
        _run(["go", "get", f"github.com/gocolly/colly/v2@{COLLY}"], cwd=folder)
        _run(["go", "build", "-o", "colly-peer", "."], cwd=folder)

    return _installed(f"colly-{COLLY}", "go", install) / "colly-peer"


def wget2() -> list[str]:
    """The command, with the libraries that it needs beside those of every system."""
    folders = [package(name) / "usr" / "lib" for name in WGET2]
    libraries = ":".join(str(folder) for each in folders for folder in (each, *each.glob("*-linux-gnu*")))
    return ["env", f"LD_LIBRARY_PATH={libraries}", str(package("wget2") / "usr" / "bin" / "wget2")]


def _installed(name: str, tool: str, install: Callable[[Path], None]) -> Path:
    """The folder of this name in the cache; made by `install`, which needs `tool`, the first time."""
    folder = CACHE / name
    if folder.is_dir():
        return folder
    if shutil.which(tool) is None:
        raise LycosaError(f"{name} needs {tool} to be installed, and there is no {tool} on the path")
    say(f"installing {name} into {folder}; this can take minutes")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{folder.name}.new-", dir=folder.parent) as unfinished:
        # In a folder of its own: two benchmarks may install the same thing at the same time.
        made = Path(unfinished) / folder.name
        made.mkdir()
        install(made)
        try:
            made.rename(folder)
        except OSError:  # somebody else was faster
            if not folder.is_dir():
                raise
    return folder


def environment(name: str, *requirements: str) -> Path:
    """The Python of a virtual environment of its own that has `requirements`."""
    folder = CACHE / name
    python = folder / "bin" / "python"
    stamp = folder / "ready"
    if stamp.is_file() and stamp.read_text() == " ".join(requirements):
        return python
    say(f"installing {', '.join(requirements)} into {folder}")
    venv.create(folder, clear=True, with_pip=True)
    _run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements])
    stamp.write_text(" ".join(requirements))
    return python


def _run(command: list[str], cwd: Path | None = None) -> str:
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=INSTALL_S)
    except subprocess.TimeoutExpired as error:
        raise LycosaError(f"{' '.join(command)} took more than {INSTALL_S:g} s") from error
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise LycosaError(f"{' '.join(command)} failed: {' '.join(last)}")
    return done.stdout


# how they are started


class HeritrixJob(NamedTuple):
    """What Heritrix is to crawl, and the manners it keeps.

    The job is Heritrix's default profile at its fastest: connections kept open, as many threads as transfers are
    allowed, no delay beyond the one asked for. Robots.txt is obeyed. Heritrix insists on its web interface: it gets a
    port of the kernel's choice on loopback and a password made for the run.
    """

    start: str
    transfers: int
    per_host: int = 1
    delay_s: float = 0.0
    seconds: int = 0  # 0: to the end
    any_host: bool = False
    more_seeds: tuple[str, ...] = ()

    def beans(self) -> str:
        """The job as Heritrix reads it."""
        values = {
            "start": self.start,
            "seeds": "\n".join([self.start, *self.more_seeds]),
            "scope": f"{_RULES}.AcceptDecideRule" if self.any_host else f"{_RULES}.surt.SurtPrefixedDecideRule",
            "threads": self.transfers,
            "queues": self.per_host,
            "delay_ms": round(1000 * self.delay_s),
            "seconds": self.seconds,
        }
        texts = {name: escape(str(value), {'"': "&quot;", "\n": "&#10;"}) for name, value in values.items()}
        return Template(HERITRIX_JOB.read_text()).substitute(texts)


def heritrix_command(job: HeritrixJob, folder: Path, names: Mapping[str, str] | None = None) -> list[str]:
    """Writes the job into `folder`; the command, to be started there, that runs it. `names`: the addresses of hosts."""
    jobs = folder / "jobs"
    (jobs / "race").mkdir(parents=True)
    (jobs / "race" / "crawler-beans.cxml").write_text(job.beans())
    (folder / "logging.properties").write_text(_QUIET)
    login = folder / "login"
    login.touch(mode=0o600)
    login.write_text(f"race:{secrets.token_urlsafe(24)}\n")
    java = ["java", HEAP, "-cp", f"{heritrix()}/*", f"-Dheritrix.home={folder}"]
    if names is not None:
        java.append(f"-Djdk.net.hosts.file={hosts_file(folder, names)}")
    web = ["--web-admin", f"@{login}", "--web-bind-hosts", "127.0.0.1", "--web-port", "0"]
    quiet = ["--logging-properties", str(folder / "logging.properties")]
    return [*java, "org.archive.crawler.Heritrix", "--jobs-dir", str(jobs), "--run-job", "race", *web, *quiet]


class BubingJob(NamedTuple):
    """What BUbiNG is to crawl: a file of seeds, by so many threads, and the pause of a host.

    It does not end by itself, and insists on a port for its management, which is on loopback.
    """

    seeds: Path
    transfers: int
    delay_s: float
    management_port: int


def bubing_command(job: BubingJob, folder: Path, names: Mapping[str, str]) -> list[str]:
    """Writes the properties into `folder`; the command, to be started there. `names`: the addresses of hosts."""
    values = {
        "folder": folder,
        "seeds": job.seeds,
        "threads": job.transfers,
        "delay_ms": round(1000 * job.delay_s),
    }
    (folder / "properties").write_text(Template(BUBING_PROPERTIES.read_text()).substitute(values))
    (folder / "logback.xml").write_text(_WARNINGS)
    opened = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in ("java.lang", "java.util", "java.net")]
    management = {"port": job.management_port, "host": "127.0.0.1", "ssl": "false", "authenticate": "false"}
    options = {
        "logback.configurationFile": folder / "logback.xml",
        "jdk.net.hosts.file": hosts_file(folder, names),
        "java.net.preferIPv4Stack": "true",
        "jgroups.bind_addr": "127.0.0.1",
        "java.rmi.server.hostname": "127.0.0.1",
        **{f"com.sun.management.jmxremote.{name}": value for name, value in management.items()},
    }
    java = ["java", HEAP, *opened, *(f"-D{name}={value}" for name, value in options.items()), "-cp", f"{bubing()}/*"]
    agent = ["it.unimi.di.law.bubing.Agent", "-g", "race", "-n", "-P", str(folder / "properties"), "agent"]
    quiet = ["sh", "-c", 'exec "$@" 2>messages', "sh"]  # it prints the header of every answer
    return [*quiet, *java, *agent]


def hosts_file(folder: Path, names: Mapping[str, str]) -> Path:
    """Writes the addresses of hosts as Java reads them, also with the dot behind that BUbiNG asks with."""
    known = {"localhost": "127.0.0.1", socket.gethostname(): "127.0.0.1", **names}
    file = folder / "hosts"
    file.write_text("".join(f"{address} {name} {name}.\n" for name, address in known.items()))
    return file


def scrapy_command(start: str, settings: Mapping[str, object], names: Path | None = None) -> list[str]:
    """Scrapy's spider; without `names`, a JSON file with the addresses of hosts, it stays on the host of `start`."""
    words = [str(scrapy()), str(SCRAPY_SPIDER), start, json.dumps(settings)]
    return [*words, str(names)] if names else words


# what reads archives


def pywb() -> Path:
    """A Python that has pywb, which replays archives. It is GPL: it is run, never imported."""
    return environment("pywb", "pywb==2.*")


def py_wacz() -> Path:
    """A Python that has py-wacz, which validates WACZ files."""
    return environment("wacz", "wacz==0.6.*")


def replaywebpage() -> Path:
    """The folder of ReplayWeb.page, which replays WACZ files in a browser; of it `ui.js` and `sw.js` are needed."""

    def install(folder: Path) -> None:
        _run(["npm", "pack", "--silent", f"replaywebpage@{REPLAYWEBPAGE}"], cwd=folder)
        _run(["tar", "-xzf", f"replaywebpage-{REPLAYWEBPAGE}.tgz"], cwd=folder)

    return _installed(f"replaywebpage-{REPLAYWEBPAGE}", "npm", install) / "package"
