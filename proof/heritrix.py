"""Heritrix as a process beside Lycosa: one job, written into a folder, run to its end or its time, then it exits.

The job (`heritrix_job.xml`) is Heritrix's default profile at its fastest: connections kept open, as many threads as
transfers are allowed, no delay beyond the one asked for. Robots.txt is obeyed. Heritrix insists on its web interface:
it gets a port of the kernel's choice on loopback and a password made for the run. Used by experiments and benchmarks.
"""

import secrets
import socket
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import NamedTuple
from xml.sax.saxutils import escape

TEMPLATE = Path(__file__).with_name("heritrix_job.xml")
HEAP = "-Xmx1g"  # four times what Heritrix's own script gives it
_RULES = "org.archive.modules.deciderules"
_QUIET = "handlers=java.util.logging.ConsoleHandler\njava.util.logging.ConsoleHandler.level=WARNING\n"


class Job(NamedTuple):
    """What Heritrix is to crawl, and the manners it keeps."""

    start: str
    transfers: int
    per_host: int = 1
    delay_s: float = 0.0
    seconds: int = 0  # 0: to the end
    any_host: bool = False

    def beans(self) -> str:
        """The job as Heritrix reads it."""
        values = {
            "start": self.start,
            "scope": f"{_RULES}.AcceptDecideRule" if self.any_host else f"{_RULES}.surt.SurtPrefixedDecideRule",
            "threads": self.transfers,
            "queues": self.per_host,
            "delay_ms": round(1000 * self.delay_s),
            "seconds": self.seconds,
        }
        texts = {name: escape(str(value), {'"': "&quot;"}) for name, value in values.items()}
        return Template(TEMPLATE.read_text()).substitute(texts)


def command(jars: Path, job: Job, folder: Path, names: Mapping[str, str] | None = None) -> list[str]:
    """Writes the job into `folder`; the command, to be started there, that runs it. `names`: the addresses of hosts."""
    jobs = folder / "jobs"
    (jobs / "race").mkdir(parents=True)
    (jobs / "race" / "crawler-beans.cxml").write_text(job.beans())
    (folder / "logging.properties").write_text(_QUIET)
    login = folder / "login"
    login.touch(mode=0o600)
    login.write_text(f"race:{secrets.token_urlsafe(24)}\n")
    java = ["java", HEAP, "-cp", f"{jars}/*", f"-Dheritrix.home={folder}"]
    if names is not None:
        known = {"localhost": "127.0.0.1", socket.gethostname(): "127.0.0.1", **names}
        (folder / "hosts").write_text("".join(f"{address} {name}\n" for name, address in known.items()))
        java.append(f"-Djdk.net.hosts.file={folder / 'hosts'}")
    web = ["--web-admin", f"@{login}", "--web-bind-hosts", "127.0.0.1", "--web-port", "0"]
    quiet = ["--logging-properties", str(folder / "logging.properties")]
    return [*java, "org.archive.crawler.Heritrix", "--jobs-dir", str(jobs), "--run-job", "race", *web, *quiet]
