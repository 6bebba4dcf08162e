"""Other crawlers for races and benchmarks: installed from the package registries, each into a cache folder of its own.

The folder is `~/.cache/lycosa-bench` or what LYCOSA_BENCH names; each crawler is fetched once. `LycosaError` says why
one cannot be had. Used by experiments and benchmarks.
"""

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

from lycosa.errors import LycosaError

CACHE = Path(os.environ.get("LYCOSA_BENCH") or Path.home() / ".cache" / "lycosa-bench")
INSTALL_S = 600.0
SCRAPY = "scrapy==2.*"
HERITRIX = "3.13.0"
# Heritrix names a release of Berkeley DB that its maker's own repository has; the general one has this later release.
_POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>lycosa</groupId><artifactId>peers</artifactId><version>1</version>
  <dependencyManagement><dependencies>
    <dependency><groupId>com.sleepycat</groupId><artifactId>je</artifactId><version>18.3.12</version></dependency>
  </dependencies></dependencyManagement>
  <dependencies>
    <dependency>
      <groupId>org.archive.heritrix</groupId><artifactId>heritrix-engine</artifactId><version>{HERITRIX}</version>
    </dependency>
  </dependencies>
</project>
"""


def say(words: str) -> None:
    """What is being done, on standard error: standard output is for results."""
    sys.stderr.write(f"· {words}\n")
    sys.stderr.flush()


def scrapy() -> Path:
    """A Python that has Scrapy."""
    return environment("scrapy", SCRAPY)


def heritrix() -> Path:
    """The folder of Heritrix's jars."""
    folder = CACHE / f"heritrix-{HERITRIX}"
    for tool in ("java",) if folder.is_dir() else ("java", "mvn"):
        if shutil.which(tool) is None:
            raise LycosaError(f"Heritrix needs java, and mvn to be installed, and there is no {tool} on the path")
    if folder.is_dir():
        return folder
    say(f"installing Heritrix {HERITRIX} into {folder}")
    unfinished = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    (unfinished / "pom.xml").write_text(_POM)
    _run(["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=."], cwd=unfinished)
    unfinished.rename(folder)
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


def _run(command: list[str], cwd: Path | None = None) -> None:
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=INSTALL_S)
    except subprocess.TimeoutExpired as error:
        raise LycosaError(f"{' '.join(command)} took more than {INSTALL_S:g} s") from error
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise LycosaError(f"{' '.join(command)} failed: {' '.join(last)}")
