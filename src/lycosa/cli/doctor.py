"""`lycosa doctor`: checks the machine a crawl is to run on and says what to change.

Every check is local; a name is looked up in DNS only where the user gives one. A check gives one `MachineCheck`: it is
well, it needs attention (exit code 1), or something optional is not there, which is no fault. No check raises for what
it finds on the machine.
"""

import asyncio
import ctypes
import os
import platform
import re
import tempfile
import time
from collections.abc import Iterator
from enum import StrEnum
from importlib import metadata
from pathlib import Path
from typing import Annotated

import msgspec
import pycurl
import typer

from lycosa.cli.options import AsJson, CommandTable
from lycosa.cli.wording import counted, say, say_json, size
from lycosa.errors import LycosaError, PartError, SettingsError
from lycosa.fetch import raise_descriptor_limit
from lycosa.mapping import CaresResolver, is_literal_host
from lycosa.render import require_browser
from lycosa.version import __version__
from lycosa.web import kernel_name, native

app = CommandTable()

NEEDS_ATTENTION = 1
# Each connection and each file of the state takes one.
FEWEST_DESCRIPTORS = 4_096
SMALLEST_FREE_BYTES = 2_000_000_000
FEWEST_FREE_FILES = 10_000
# A commit waits for the disk, and the crawl starts nothing new while one takes longer than a second or so.
SLOWEST_SYNC_S = 0.2
SLOWEST_WRITE_BYTES_S = 20e6
SYNCS, SYNC_BYTES, WRITE_BYTES = 5, 64 * 1024, 16 * 1024 * 1024
REMOTE_SYSTEMS = ("nfs", "cifs", "smb", "9p", "fuse.sshfs", "fuse.s3fs", "fuse.gcsfuse", "ceph", "glusterfs", "afs")
EARLIEST_YEAR = 2025  # a clock that was never set shows an earlier one
UNSYNCHRONISED = 5  # TIME_ERROR of adjtimex(2)
EXTRAS = {
    "serve": "lycosa serve: the live page in a browser",
    "tables": "lycosa sql, Parquet and frames",
    "store": "collections and exports in object stores",
    "cluster": "crawls with many machines, and --workers",
    "article": "--extractor article",
    "pdf": "the text of PDF documents",
    "render": "rendering of pages in a browser",
    "images": "changes of images by their pixels",
    "apprise": "news of changes to chats, mail and phones",
    "identity": "signed requests",
    "plot": "charts of experiments and of status --plot",
    "tls": "the simulated web over TLS",
}


class CheckState(StrEnum):
    """What came of a check."""

    OK = "ok"
    ATTENTION = "attention"
    OPTIONAL = "optional"


class MachineCheck(msgspec.Struct, frozen=True):
    """One fact about the machine, and what to change where something should be."""

    name: str
    state: CheckState
    found: str
    advice: str = ""


@app.command(
    epilog="""
        lycosa doctor                      checks the machine and the current folder
        lycosa doctor /srv/crawls          checks the disk of this folder
        lycosa doctor --host example.org   looks up this name as well
    """
)
def doctor(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The folder in which collections will be; it is written to and read.")
    ] = Path(),
    host: Annotated[
        str | None,
        typer.Option("--host", metavar="NAME", help="Look up this host in DNS; without it nothing is sent."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check this machine and say what to change before a crawl.

    The exit code is 1 if something needs attention, and 0 if all is well. What is optional and missing is listed with
    the command that installs it, and is no fault.
    """
    if not folder.is_dir():
        raise SettingsError(f"there is no folder {folder}: name the one in which collections will be")
    if host is not None and (not host or "/" in host or is_literal_host(host)):
        raise SettingsError(f"--host {host!r} is no name to look up: give one such as example.org")
    checks = [*machine_checks(), *disk_checks(folder), *([look_up(host)] if host else [])]
    attention = [check for check in checks if check.state is CheckState.ATTENTION]
    if as_json:
        say_json({"ok": not attention, "version": __version__, "checks": checks})
    else:
        _show(checks)
    if attention:
        raise typer.Exit(NEEDS_ATTENTION)


def _show(checks: list[MachineCheck]) -> None:
    marks = {CheckState.OK: "ok  ", CheckState.ATTENTION: "NO  ", CheckState.OPTIONAL: "-   "}
    widest = max(len(check.name) for check in checks)
    for check in checks:
        say(f"{marks[check.state]}{check.name.ljust(widest)}  {check.found}")
        if check.advice:
            say(f"    {' ' * widest}  {check.advice}")
    many = sum(check.state is CheckState.ATTENTION for check in checks)
    needs = "needs" if many == 1 else "need"
    print(f"\n{counted(many, 'check')} {needs} attention" if many else "\nall is well")


def machine_checks() -> list[MachineCheck]:
    """All that does not depend on a folder or on the network."""
    return [
        _python(),
        _packages(),
        _libcurl(),
        _kernel(),
        _descriptors(),
        _name_servers(),
        _clock(),
        *_extras(),
        _browser(),
    ]


# versions


def _python() -> MachineCheck:
    # The package cannot be installed on an older Python, but it can be put on its path.
    found = (
        f"{platform.python_implementation()} {platform.python_version()}, {counted(os.cpu_count() or 1, 'processor')}"
    )
    if platform.python_implementation() != "CPython":
        return MachineCheck("python", CheckState.ATTENTION, found, "Lycosa is made for CPython 3.11 or newer")
    return MachineCheck("python", CheckState.OK, found)


class _Requirement(msgspec.Struct, frozen=True):
    """One line of the package's metadata: a name, the versions that fit, and the extra that needs it."""

    name: str
    bounds: tuple[tuple[str, tuple[int, ...]], ...]
    extra: str

    @classmethod
    def parse(cls, line: str) -> "_Requirement":
        what, _, marker = line.partition(";")
        name = re.match(r"[\w.-]+", what.strip())
        extra = re.search(r"extra == ['\"]([\w-]+)", marker)
        bounds = tuple((sign, _release(text)) for sign, text in re.findall(r"(>=|<)\s*([\d.]+)", what))
        return cls(name.group() if name else what, bounds, extra.group(1) if extra else "")

    def fault(self) -> str:
        """What is wrong with the installed version: `absent`, or the version that does not fit; empty if nothing."""
        try:
            version = metadata.version(self.name)
        except metadata.PackageNotFoundError:
            return "absent"
        release = _release(version)
        fits = all(release >= bound if sign == ">=" else release < bound for sign, bound in self.bounds)
        return "" if fits else version


def _release(version: str) -> tuple[int, ...]:
    """`1.20.3rc1` → (1, 20, 3)."""
    start = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, start.group().split("."))) if start else ()


def _requirements() -> list[_Requirement]:
    """What the installed package needs; none where it runs from its sources."""
    try:
        return [_Requirement.parse(line) for line in metadata.requires("lycosa") or []]
    except metadata.PackageNotFoundError:
        return []


def _packages() -> MachineCheck:
    needed = [each for each in _requirements() if not each.extra]
    if not needed:
        advice = "install it, so that its libraries have the versions it needs: pip install ."
        return MachineCheck("lycosa", CheckState.ATTENTION, f"{__version__}, run from its sources", advice)
    wrong = [f"{each.name} ({fault})" for each in needed if (fault := each.fault())]
    if wrong:
        advice = "pip install --upgrade lycosa"
        return MachineCheck("lycosa", CheckState.ATTENTION, f"{__version__}; does not fit: {', '.join(wrong)}", advice)
    return MachineCheck("lycosa", CheckState.OK, f"{__version__}, with all {len(needed)} libraries it needs")


def _libcurl() -> MachineCheck:
    info = pycurl.version_info()
    found = f"{info[1]}, {info[5] or 'no TLS'}, HTTP/2 {'yes' if info[4] & pycurl.VERSION_HTTP2 else 'no'}"
    if "https" not in info[8]:
        return MachineCheck("libcurl", CheckState.ATTENTION, found, "pip install --force-reinstall pycurl")
    return MachineCheck("libcurl", CheckState.OK, found)


def _kernel() -> MachineCheck:
    try:
        module = native()
    except LycosaError as error:  # another interface, or LYCOSA_KERNEL asks for what is not there
        return MachineCheck("page kernel", CheckState.ATTENTION, "does not fit", str(error))
    if module is None:
        found = "none: pages are read in Python"
        return MachineCheck("page kernel", CheckState.OPTIONAL, found, _install("native"))
    return MachineCheck("page kernel", CheckState.OK, f"{kernel_name()}, interface {module.CONTRACT}")


def _extras() -> Iterator[MachineCheck]:
    requirements = _requirements()
    for extra, use in EXTRAS.items():
        own = [each for each in requirements if each.extra == extra]
        faults = {each.name: fault for each in own if (fault := each.fault())}
        name = f"extra {extra}"
        if not own:
            continue  # run from its sources: nobody knows
        if not faults:
            versions = ", ".join(f"{each.name} {metadata.version(each.name)}" for each in own)
            yield MachineCheck(name, CheckState.OK, versions)
        elif too_old := {package: fault for package, fault in faults.items() if fault != "absent"}:
            found = ", ".join(f"{package} {version} does not fit" for package, version in too_old.items())
            yield MachineCheck(name, CheckState.ATTENTION, found, f"pip install --upgrade 'lycosa[{extra}]'")
        else:
            yield MachineCheck(name, CheckState.OPTIONAL, f"missing; for {use}", _install(extra))


def _install(extra: str) -> str:
    return f"pip install 'lycosa[{extra}]'"


def _browser() -> MachineCheck:
    try:
        return MachineCheck("chromium", CheckState.OK, require_browser())
    except PartError as error:
        return MachineCheck("chromium", CheckState.OPTIONAL, "pages cannot be rendered", str(error))


# the system


def _descriptors() -> MachineCheck:
    limit = raise_descriptor_limit()  # as a crawl does
    found = f"{limit:,} open files"
    if limit < FEWEST_DESCRIPTORS:
        advice = "raise it to 65,536: `ulimit -Hn 65536` as root, nofile in /etc/security/limits.conf, or LimitNOFILE="
        return MachineCheck("descriptors", CheckState.ATTENTION, found, advice)
    return MachineCheck("descriptors", CheckState.OK, found)


def _name_servers(file: Path = Path("/etc/resolv.conf")) -> MachineCheck:
    try:
        lines = file.read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    servers = [words[1] for line in lines if len(words := line.split()) > 1 and words[0] == "nameserver"]
    if not servers:
        advice = "name one there, or crawl with --dns ADDRESS; hosts that are addresses need none"
        return MachineCheck("dns", CheckState.ATTENTION, f"no name server in {file}", advice)
    return MachineCheck("dns", CheckState.OK, ", ".join(servers))


def _clock() -> MachineCheck:
    now = time.gmtime()
    found = time.strftime("%Y-%m-%dT%H:%M:%SZ", now)
    if now.tm_year < EARLIEST_YEAR:
        advice = "set the clock: archives, Retry-After and certificates depend on it"
        return MachineCheck("clock", CheckState.ATTENTION, found, advice)
    if not _is_synchronised():
        advice = "let chrony or systemd-timesyncd keep it right, if nothing outside this system does"
        return MachineCheck("clock", CheckState.OPTIONAL, f"{found}, not synchronised", advice)
    return MachineCheck("clock", CheckState.OK, f"{found}, synchronised")


def _is_synchronised() -> bool:
    """What the kernel says; True where it cannot be asked."""
    question = ctypes.create_string_buffer(512)  # struct timex, all zero: nothing is set
    try:
        return int(ctypes.CDLL(None).adjtimex(question)) != UNSYNCHRONISED
    except (OSError, AttributeError):
        return True


def disk_checks(folder: Path) -> list[MachineCheck]:
    """The file system of `folder`: its kind, what is free, and how long it takes to write."""
    whole = folder.resolve()
    kind = _file_system(whole)
    space = os.statvfs(whole)
    free_bytes = space.f_bavail * space.f_frsize
    found = f"{size(free_bytes)} free on {kind or 'an unknown file system'}, {whole}"
    if free_bytes < SMALLEST_FREE_BYTES or (space.f_files > 0 and space.f_favail < FEWEST_FREE_FILES):
        advice = "free some space, or name another folder: a million pages of 14 kB take about 3 GB"
        free = MachineCheck("disk space", CheckState.ATTENTION, found, advice)
    elif kind.startswith(REMOTE_SYSTEMS):
        advice = "keep collections on a local disk, and copy them to a remote one by --store"
        free = MachineCheck("disk space", CheckState.ATTENTION, found, advice)
    else:
        free = MachineCheck("disk space", CheckState.OK, found)
    return [free, _disk_speed(whole)]


def _file_system(folder: Path, mounts: Path = Path("/proc/self/mounts")) -> str:
    """The type of the file system that `folder` is on; empty where the system does not say."""
    best = ("", "")
    try:
        lines = mounts.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    for line in lines:
        _, point, kind, *_ = line.split()
        point = point.replace("\\040", " ")
        if folder.is_relative_to(point) and len(point) >= len(best[0]):
            best = (point, kind)
    return best[1]


def _disk_speed(folder: Path) -> MachineCheck:
    name = "disk speed"
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".lycosa-doctor-") as file:
            began_s = time.perf_counter()
            file.write(os.urandom(SYNC_BYTES) * (WRITE_BYTES // SYNC_BYTES))
            file.flush()
            os.fsync(file.fileno())
            rate = WRITE_BYTES / (time.perf_counter() - began_s)
            syncs_s = []
            for _ in range(SYNCS):
                began_s = time.perf_counter()
                file.write(os.urandom(SYNC_BYTES))
                file.flush()
                os.fsync(file.fileno())
                syncs_s.append(time.perf_counter() - began_s)
    except OSError as error:
        advice = "give this user the right to write there, or name another folder"
        return MachineCheck(name, CheckState.ATTENTION, f"cannot write to {folder}: {error.strerror}", advice)
    sync_s = sorted(syncs_s)[SYNCS // 2]
    found = f"{size(rate)}/s written, {1000 * sync_s:.1f} ms until a small write is on disk"
    if sync_s > SLOWEST_SYNC_S or rate < SLOWEST_WRITE_BYTES_S:
        advice = "commits will wait for this disk: name a folder on a faster one, or try again when it is less busy"
        return MachineCheck(name, CheckState.ATTENTION, found, advice)
    return MachineCheck(name, CheckState.OK, found)


# the network, when asked for


def look_up(host: str) -> MachineCheck:
    """Asks the system's name servers for the addresses of `host`, as a crawl does."""
    return asyncio.run(_look_up(host))


async def _look_up(host: str) -> MachineCheck:
    resolver = CaresResolver()
    try:
        began_s = time.perf_counter()
        answer = await resolver.resolve(host)
        took_ms = 1000 * (time.perf_counter() - began_s)
    finally:
        await resolver.close()
    if answer.failure:
        advice = (
            "check the spelling, the name servers in /etc/resolv.conf and the firewall, or crawl with --dns ADDRESS"
        )
        return MachineCheck("lookup", CheckState.ATTENTION, f"{host}: {answer.detail}", advice)
    return MachineCheck("lookup", CheckState.OK, f"{host}: {', '.join(answer.addresses)} in {took_ms:.0f} ms")
