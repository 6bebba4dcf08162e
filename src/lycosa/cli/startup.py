"""The first moments of a command, before anything is imported that takes time.

Until a command says otherwise Ctrl-C ends the process on the spot: an exception that strikes in the middle of an import
can become any other, or be printed and forgotten. Nothing is lost by it that `kill -9` would not lose. The garbage
collector looks less often from here on: what is imported stays.
"""

import gc
import os
import signal

INTERRUPTED = 130

# At the usual pace looking for cycles costs about a tenth of a page's time, and of the imports.
COLLECTOR_PACE = (100_000, 50, 1000)


def prepare() -> None:
    """Called first of all. Where Ctrl-C is ignored, as for a shell script's jobs in the background, it stays so."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)
    gc.set_threshold(*COLLECTOR_PACE)
    # NumPy's library of linear algebra, which nothing here calls, would start a thread for each processor.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def raise_on_interrupt() -> None:
    """From now on Ctrl-C is a KeyboardInterrupt: for commands that have something to tidy up."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave(_signum: int, _frame: object) -> None:
    try:
        os.write(2, b"interrupted\n")
    finally:
        os._exit(INTERRUPTED)
