"""Runs a command and writes what it alone took: python -I -S launch.py FILE SECONDS COMMAND…

A process that is started by a large one counts the other's memory as its own largest: this one is small. CPU seconds
and megabytes go to FILE; the exit code is the command's, which is ended after so many seconds.
"""

import os
import signal
import sys
from pathlib import Path


def main() -> None:
    file, seconds, *command = sys.argv[1:]
    child = os.fork()
    if child == 0:
        os.execvp(command[0], command)
    for number in (signal.SIGALRM, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os.kill(child, signal.SIGTERM))
    signal.alarm(int(seconds))
    _, status, usage = os.wait4(child, 0)
    Path(file).write_text(f"{usage.ru_utime + usage.ru_stime} {usage.ru_maxrss / 1024}")
    sys.exit(max(os.waitstatus_to_exitcode(status), -1) % 256)


if __name__ == "__main__":
    main()
