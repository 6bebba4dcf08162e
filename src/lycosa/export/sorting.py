"""Sorts more lines than memory holds: in runs on disk, which are merged. Called by formats whose output is sorted."""

import heapq
from collections.abc import Iterator
from pathlib import Path

from lycosa.export.output import reported

RUN_BYTES = 32 << 20  # of lines that are sorted in memory; with what Python adds, some 100 MB


class SortedLines:
    """Takes lines in any order and gives them back sorted bytewise, each once. Each ends with a newline."""

    def __init__(self, scratch: Path) -> None:
        self._scratch, self._lines, self._size = scratch, list[bytes](), 0
        self._runs: list[Path] = []

    def add(self, line: bytes) -> None:
        self._lines.append(line)
        self._size += len(line)
        if self._size >= RUN_BYTES:
            self._write_run()

    def _write_run(self) -> None:
        path = self._scratch / f"sorted-{len(self._runs)}"
        with reported(path), path.open("wb") as file:
            file.writelines(sorted(self._lines))
        self._runs.append(path)
        self._lines, self._size = [], 0

    def __iter__(self) -> Iterator[bytes]:
        self._lines.sort()
        files = [path.open("rb", buffering=max(1 << 16, (16 << 20) // (len(self._runs) + 1))) for path in self._runs]
        try:
            last = b""
            for line in heapq.merge(*files, self._lines) if files else self._lines:
                if line != last:
                    yield line
                last = line
        finally:
            for file, path in zip(files, self._runs, strict=True):
                file.close()
                path.unlink()
