"""The first moments of a command, before anything is imported that takes time.

Until a command says otherwise Ctrl-C ends the process on the spot: an exception that strikes in the middle of an import
can become any other, or be printed and forgotten. Nothing is lost by it that `kill -9` would not lose. SIGTERM and the
end of the terminal (SIGHUP) do what Ctrl-C does. The garbage collector looks less often from here on: what is imported
stays.
"""

import gc
import os
import signal
import stat
import sys

INTERRUPTED = 130
ENDING = (signal.SIGTERM, signal.SIGHUP)  # beside SIGINT

# At the usual pace looking for cycles costs about a tenth of a page's time, and of the imports.
COLLECTOR_PACE = (100_000, 50, 1000)


def prepare() -> None:
    """Called first of all. Where Ctrl-C is ignored, as for a shell script's jobs in the background, or the end of the
    terminal (`nohup`), it stays so."""
    _open_closed_streams()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)
    for signum in ENDING:
        if signal.getsignal(signum) is signal.SIG_DFL:
            signal.signal(signum, _leave)
    gc.set_threshold(*COLLECTOR_PACE)
    # NumPy's library of linear algebra, which nothing here calls, would start a thread for each processor.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _open_closed_streams() -> None:
    """A standard stream that is closed (`2>&-`) leads nowhere from here on: else the next file that is opened, one of a
    collection maybe, would have its number, and get what is said on it."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            stream = open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115 - for all of the command
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)


def raise_on_interrupt() -> None:
    """From now on Ctrl-C is a KeyboardInterrupt, and so are SIGTERM and SIGHUP: for commands that have something to
    tidy up, and after an event loop that had handlers of its own."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for signum in ENDING:
        if signal.getsignal(signum) in (_leave, signal.SIG_DFL):
            signal.signal(signum, _raise)


def _raise(signum: int, _frame: object) -> None:
    if signum == signal.SIGHUP:
        _leave_terminal()
    raise KeyboardInterrupt


def _leave_terminal() -> None:
    """Whatever is written to a terminal that is gone would fail from now on."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for number in (1, 2):
        if stat.S_ISCHR(os.fstat(number).st_mode):
            os.dup2(nowhere, number)
    os.close(nowhere)


def _leave(_signum: int, _frame: object) -> None:
    try:
        os.write(2, b"interrupted\n")
    finally:
        os._exit(INTERRUPTED)
