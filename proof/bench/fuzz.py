"""Random input for everything that reads what others wrote: a result or a documented error, soon, in bounded memory.

`markup` asks whether the native kernel and its twin make the same page of random markup: tags that nest badly, odd
attributes. Real pages hardly ever have such markup; `equality` compares those. The others are the targets of
`ground/fuzz_targets.py`. Each is tried for so many minutes of CPU time (`--minutes`), so that a busy machine tries no
less, on all processors. A seed is another lot: the same seed and number make the same input.

The results are what is remembered: a campaign goes on from those that `--out` has of the same seed, and one that is
interrupted (Ctrl-C, SIGTERM) reports what it has done; after a `kill -9` the next one begins with that. So short
sessions add up; one that was to be shorter than what stands there (`--minutes 1`) is only shown. A target of
which something was found begins anew, with the input that was found, so that what is mended is tried again. Minutes of
other days count although the code was another one, on purpose: of these very many inputs none is tried twice, and the
results have what was found by them. Who wants today's code alone moves the results away. Called by `make fuzz`.
"""

import base64
import multiprocessing
import os
import random
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager

import msgspec

from lycosa.errors import MissingExtra
from lycosa.web import native
from proof import Bar, Experiment, Run
from proof.bench.equality import difference, document_of
from proof.ground.commands import memory_mb
from proof.ground.fuzz_input import FuzzTarget
from proof.ground.fuzz_targets import TARGETS
from proof.ground.ledger import Ledger

MARKUP = "markup"
MINUTES, QUICK_MINUTES = 10.0, 0.02
SLICE_MINUTES = 0.5
SLOW_S = 1.0  # CPU time for one input
HANG_S = 30.0  # CPU time after which an input is given up
MOST_FOUND = 5  # of a target: they are mostly the same
FOUND, SLOW, GROWN = "undocumented errors", "inputs that took over a second", "most memory that a target came to hold"
LEAST = "least minutes of a target"
COLUMNS = ("target", "minutes", "inputs", "refused as documented", "found", "slowest ms", "MB more")

_HOLDERS = (
    "html head body div p span b i a table tbody tr td th caption colgroup ul ol li dl dt dd h1 h3 main form select "
    "option optgroup button object pre textarea title script style noscript iframe svg math mi g desc foreignObject "
    "template ruby rt rp nobr font code em strong article section address center x-y frameset noframes xmp"
).split()
_VOID = "br hr img input meta link base area col wbr source param embed frame image".split()
_ATTRIBUTES = (
    " href=a.html", ' href="/b?c=1&amp;d"', " href=' #x '", " href", ' rel="nofollow me"', " rel=NOFOLLOW",
    " src=i.png", ' alt="An  image"', " name=robots", ' content="noindex"', ' http-equiv=refresh content="0; url=/r"',
    " lang=en", " xml:lang=de", " name=description content='in short'", " xlink:href=x", " id=1", " class",
    " type=hidden",
    ' title="a>b"', " /", ' rel=canonical href=c', " name=googlebot", ' href="javascript:x"', " href=data:,x",
    " A=B", " encoding=text/html", ' color=red', "=x", ' href="&notit;&ampx=1&#x80;"', " alt='&quot;\0&eacute'",
)  # fmt: skip
_TEXTS = (
    "word", " two  words ", "\n", ".", "(", "&amp;", "&nbsp;", "&lt;x", "\0", "\r\n", "ü–", "<", "</", "<!-- c -->",
    "<!--", "-->", "<![CDATA[x]]>", "<?x?>", "</>", "<!doctype html>", "&#0;", "&notin;", "\x0c", "\u3000", "]]>",
    "<!-->", "&ngt", "\ufeff", "\u0130", "\u0131", "\u017f", "\u212a", "Σ",
)  # fmt: skip


# Letters that are i, s, k in another case to Unicode; names in HTML know those of ASCII only.
_OTHER_CASES = {"i": "\u0130\u0131", "s": "\u017f", "k": "\u212a"}


def _name(chance: random.Random, names: Sequence[str]) -> str:
    """The name of an element, sometimes in large letters, sometimes in letters that are none of it."""
    name, kind = chance.choice(names), chance.random()
    if kind < 0.95:
        return name
    if kind < 0.98:
        return name.upper()
    return name[0] + "".join(chance.choice(_OTHER_CASES.get(letter, letter)) for letter in name[1:])


def mutation(chance: random.Random) -> bytes:
    """A document of a few dozen tokens: tags that nest badly, attributes, references."""
    parts = ["<!doctype html>"] if chance.random() < 0.5 else []
    names = chance.sample(_HOLDERS, chance.randint(2, 8)) if chance.random() < 0.7 else _HOLDERS
    for _ in range(chance.randint(1, 40)):
        kind = chance.random()
        if kind < 0.38:
            parts += [
                "<",
                _name(chance, names),
                *(chance.choice(_ATTRIBUTES) for _ in range(chance.choice((0, 0, 1, 1, 2)))),
                ">",
            ]
        elif kind < 0.65:
            parts += ["</", _name(chance, names), ">"]
        elif kind < 0.75:
            parts += [
                "<",
                _name(chance, _VOID),
                *(chance.choice(_ATTRIBUTES) for _ in range(chance.randint(0, 3))),
                ">",
            ]
        else:
            parts.append(chance.choice(_TEXTS))
    body = "".join(parts).encode()
    if chance.random() < 0.1:
        at = chance.randrange(len(body) + 1)
        body = (
            body[:at]
            + bytes(chance.randrange(256) for _ in range(chance.randint(0, 3)))
            + body[at + chance.randint(0, 3) :]
        )
    return body


def _same_pages(data: bytes) -> None:
    assert not (found := difference(document_of(data))), f"kernel and twin differ in {', '.join(found)}"


ALL = {MARKUP: FuzzTarget(_same_pages, (b"<p>x",), (), make=mutation), **TARGETS}


class FuzzSlice(msgspec.Struct, frozen=True):
    """What came of a target in some minutes of CPU time: inputs, errors that are not documented (with their input, in
    base64), and cost."""

    name: str
    cpu_minutes: float = 0.0
    inputs: int = 0
    refused: int = 0
    found: list[str] = []
    slow: list[str] = []
    slowest_s: float = 0.0
    grown_mb: float = 0.0

    def plus(self, later: "FuzzSlice") -> "FuzzSlice":
        return FuzzSlice(
            self.name,
            self.cpu_minutes + later.cpu_minutes,
            self.inputs + later.inputs,
            self.refused + later.refused,
            self.found + later.found,
            self.slow + later.slow,
            max(self.slowest_s, later.slowest_s),
            max(self.grown_mb, later.grown_mb),
        )


class InputHangs(Exception):
    """An input takes for ever."""


def _hangs(*_: object) -> None:
    raise InputHangs


def fuzzed(name: str, target: FuzzTarget, seed: int, seconds: float, *, first: int = 0) -> FuzzSlice:
    """Gives a target random input for so many seconds of CPU time, beginning with the input of this number."""
    inputs = refused = 0
    slowest_s, found, slow = 0.0, list[str](), list[str]()
    target.check(target.samples[0])  # imports and caches are not what is measured
    before_mb, began = memory_mb(), time.process_time()
    former = signal.signal(signal.SIGVTALRM, _hangs)
    try:
        while (time.process_time() - began < seconds or not inputs) and len(found) < MOST_FOUND:
            data = target.input(random.Random(f"{seed} {name} {first + inputs}"))
            inputs += 1
            signal.setitimer(signal.ITIMER_VIRTUAL, HANG_S)
            started = time.thread_time()
            try:
                target.check(data)
            except target.errors:
                refused += 1
            except Exception as error:  # exactly what is looked for
                found.append(f"{_place(error)}: {base64.b64encode(data[:2_000]).decode()}")
            finally:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            took_s = time.thread_time() - started
            slowest_s = max(slowest_s, took_s)
            if took_s > SLOW_S:
                slow.append(f"{took_s:.1f} s: {base64.b64encode(data[:2_000]).decode()}")
    finally:
        signal.signal(signal.SIGVTALRM, former)
    minutes = (time.process_time() - began) / 60
    return FuzzSlice(name, minutes, inputs, refused, found, slow, slowest_s, memory_mb() - before_mb)


def _slice(name: str, seed: int, seconds: float, first: int) -> FuzzSlice:
    return fuzzed(name, ALL[name], seed, seconds, first=first)


@contextmanager
def workers() -> Iterator[tuple[Executor, int]]:
    """A process for each processor, and how many these are. They end at once when the campaign does, even if it is
    killed: what was not reported is tried again."""
    count = os.cpu_count() or 1
    pool = ProcessPoolExecutor(count, multiprocessing.get_context("forkserver"), _end_with_campaign)
    try:
        yield pool, count
    finally:
        running = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in running:
            process.terminate()
        for process in running:
            process.join()


def _end_with_campaign() -> None:
    """Ctrl-C is for the campaign, which then ends its workers. One that is killed cannot; as each worker holds the pipe
    that another one reads, they would wait for ever."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_when_campaign_is_gone, daemon=True).start()


def _end_when_campaign_is_gone() -> None:
    campaign = multiprocessing.parent_process()  # not the fork server, which ends after its last worker
    assert campaign is not None
    campaign.join()
    os._exit(1)


def _place(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} {str(error)[:80]!r} at {frame.filename.rpartition('/')[2]}:{frame.lineno}"


def measure(run: Run) -> None:
    if MARKUP in run.chosen and native() is None:
        raise MissingExtra.of("native", what="the comparison of the kernels")
    minutes = run.minutes or QUICK_MINUTES
    run.setting("minutes of CPU time a target", minutes)
    results = former_results(run)
    ledger = Ledger("fuzz", FuzzSlice, run.seed, run.quick, run.former, of_any_code=True)  # slices since those results
    run.after_publishing(ledger.close)
    for part in ledger.parts:
        results[part.name] = results.get(part.name, FuzzSlice(part.name)).plus(part)
    try:
        with workers() as (pool, count):
            campaign(run, results, minutes, ledger.add, pool, count)
    except (KeyboardInterrupt, SystemExit):
        run.say("interrupted: the results have what was done, and the same command goes on from there")
    _report(run, results)


def former_results(run: Run) -> dict[str, FuzzSlice]:
    """What a campaign goes on from, by target; what something was found of begins anew."""
    results: dict[str, FuzzSlice] = {}
    for table in run.former:
        for row in (dict(zip(table.columns, row, strict=True)) for row in table.rows):
            name, minutes, inputs, refused, found, slowest_ms, grown_mb = (row.get(column, 0) for column in COLUMNS)
            if name in ALL and not found:
                results[str(name)] = FuzzSlice(
                    str(name),
                    float(minutes),
                    int(inputs),
                    int(refused),
                    slowest_s=float(slowest_ms) / 1000,
                    grown_mb=float(grown_mb),
                )
    return results


def campaign(
    run: Run,
    results: dict[str, FuzzSlice],
    minutes: float,
    keep: Callable[[FuzzSlice], None],
    pool: Executor,
    most: int,
) -> None:
    """All targets by turns, a slice each, until every one had its minutes: what is interrupted has tried all alike. The
    results have each slice as soon as it is over, and it is kept. At most so many slices are under way, each of another
    target."""
    grown_mb = dict.fromkeys(run.chosen, 0.0)
    going: dict[Future[FuzzSlice], str] = {}

    def done(name: str) -> float:
        return results[name].cpu_minutes if name in results else 0.0

    def is_done(name: str) -> bool:
        return done(name) >= minutes or (name in results and len(results[name].found) >= MOST_FOUND)

    def begin(name: str) -> None:
        former = results.get(name, FuzzSlice(name))
        seconds = 60 * min(SLICE_MINUTES, minutes - former.cpu_minutes)
        going[pool.submit(_slice, name, run.seed, seconds, former.inputs)] = name

    def begin_most() -> bool:
        left = [name for name in run.chosen if not is_done(name) and name not in going.values()]
        for name in sorted(left, key=done)[: most - len(going)]:
            begin(name)
        return bool(going)

    with run.progress(len(run.chosen), "targets") as step:
        step.advance(sum(map(is_done, run.chosen)))
        while begin_most():
            for future in wait(going, return_when=FIRST_COMPLETED).done:
                name, part = going.pop(future), future.result()
                grown_mb[name] += part.grown_mb
                part = msgspec.structs.replace(part, grown_mb=grown_mb[name])
                results[name] = results.get(name, FuzzSlice(name)).plus(part)
                keep(part)
                step.advance(is_done(name))
                for sentence in (*part.found, *part.slow):
                    run.say(f"{name}: {sentence}")


def _report(run: Run, results: dict[str, FuzzSlice]) -> None:
    tried = [results[name] for name in ALL if name in results]
    rows = [
        (
            each.name,
            round(each.cpu_minutes, 2),
            each.inputs,
            each.refused,
            len(each.found) + len(each.slow),
            round(1000 * each.slowest_s, 1),
            round(each.grown_mb, 1),
        )
        for each in tried
    ]
    run.table(COLUMNS, rows)
    run.figure(FOUND, sum(len(each.found) for each in tried))
    run.figure(SLOW, sum(len(each.slow) for each in tried))
    run.figure(GROWN, max((each.grown_mb for each in tried), default=0.0), "MB")
    if run.quick or len(tried) < len(ALL):
        run.leave_out(LEAST, "a quick run" if run.quick else "--only")
    else:
        run.figure(LEAST, min(each.cpu_minutes for each in tried))


EXPERIMENT = Experiment(
    name="fuzz",
    summary="random input for all that reads what others wrote; the native kernel and its twin make the same page",
    run=measure,
    minutes=MINUTES,
    choices=tuple(ALL),
    bars=(
        Bar("long enough", LEAST, ">=", MINUTES),
        Bar("a result or a documented error", FOUND, "<=", 0),
        Bar("soon", SLOW, "<=", 0),
        Bar("bounded", GROWN, "<=", 200),
    ),
)
