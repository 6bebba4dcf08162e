"""Random input for everything that reads what others wrote: a result or a documented error, soon, in bounded memory.

`markup` asks whether the native kernel and its twin make the same page of random markup: tags that nest badly, odd
attributes. Real pages hardly ever have such markup; `equality` compares those. The other parts are the targets of
`ground/fuzz_targets.py`, each for so many minutes of CPU time (`--minutes`), so that a busy machine tries no less. A
seed is another lot: the same seed and number make the same input. What is done is remembered: the same command goes
on where it was interrupted, or ends there with fewer `--minutes`. Called by `make fuzz`.
"""

import base64
import random
import signal
import time
import traceback

import msgspec

from proof import Bar, Experiment, Run
from proof.bench.equality import compare, document_of
from proof.ground.commands import memory_mb
from proof.ground.fuzz_input import FuzzTarget, mutated
from proof.ground.fuzz_targets import TARGETS
from proof.ground.ledger import Ledger

MARKUP = "markup"
MUTATIONS, QUICK_MUTATIONS = 300_000, 5_000
MINUTES, QUICK_MINUTES = 10.0, 0.02
SLICE_MINUTES = 0.5
SLOW_S = 1.0  # CPU time for one input
HANG_S = 30.0  # CPU time after which an input is given up
MOST_FOUND = 5  # of a target: they are mostly the same
FOUND, SLOW, GROWN = "undocumented errors", "inputs that took over a second", "most memory that a target came to hold"

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
    "<!-->", "&ngt", "\ufeff",
)  # fmt: skip


def mutation(seed: int) -> bytes:
    """A document of a few dozen tokens: tags that nest badly, attributes, references."""
    chance = random.Random(seed)
    parts = ["<!doctype html>"] if chance.random() < 0.5 else []
    names = chance.sample(_HOLDERS, chance.randint(2, 8)) if chance.random() < 0.7 else _HOLDERS
    for _ in range(chance.randint(1, 40)):
        kind = chance.random()
        if kind < 0.38:
            name = chance.choice(names) if chance.random() < 0.95 else chance.choice(names).upper()
            parts += ["<", name, *(chance.choice(_ATTRIBUTES) for _ in range(chance.choice((0, 0, 1, 1, 2)))), ">"]
        elif kind < 0.65:
            parts += ["</", chance.choice(names), ">"]
        elif kind < 0.75:
            parts += [
                "<",
                chance.choice(_VOID),
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


class FuzzSlice(msgspec.Struct, frozen=True):
    """What came of a target in some minutes of CPU time: inputs, errors that are not documented (with their input, in
    base64), and cost."""

    name: str
    cpu_minutes: float
    inputs: int
    refused: int
    found: list[str]
    slow: list[str]
    slowest_s: float
    grown_mb: float

    def plus(self, later: "FuzzSlice") -> "FuzzSlice":
        return FuzzSlice(
            self.name,
            self.cpu_minutes + later.cpu_minutes,
            self.inputs + later.inputs,
            self.refused + later.refused,
            self.found + later.found,
            self.slow + later.slow,
            max(self.slowest_s, later.slowest_s),
            self.grown_mb + later.grown_mb,
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
            data = mutated(target, random.Random(f"{seed} {name} {first + inputs}"))
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


def _place(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} {str(error)[:80]!r} at {frame.filename.rpartition('/')[2]}:{frame.lineno}"


def measure(run: Run) -> None:
    minutes = run.minutes or (QUICK_MINUTES if run.quick else MINUTES)
    names = [name for name in run.chosen if name != MARKUP]
    if names:
        run.setting("minutes of CPU time a target", minutes)
        _report(run, list(campaign(run, names, minutes).values()))
    else:
        for figure in (FOUND, SLOW, GROWN):
            run.leave_out(figure, "--only")
    if MARKUP in run.chosen:
        count = QUICK_MUTATIONS if run.quick else MUTATIONS
        numbers = range(run.seed * MUTATIONS, run.seed * MUTATIONS + count)
        compare(run, "mutations", ((f"mutation {number}", document_of(mutation(number))) for number in numbers))
    else:
        run.leave_out("mutations that differ", "--only")


def campaign(run: Run, names: list[str], minutes: float) -> dict[str, FuzzSlice]:
    """All targets by turns, a slice each, until every one had its minutes: what is interrupted has tried all alike."""
    ledger = Ledger("fuzz", FuzzSlice, run.seed, run.quick, names)
    results: dict[str, FuzzSlice] = {}
    for part in ledger.parts:
        results[part.name] = results[part.name].plus(part) if part.name in results else part
    with run.progress(len(names), "targets") as step:
        step.advance(sum(_is_done(results.get(name), minutes) for name in names))
        while left := [name for name in names if not _is_done(results.get(name), minutes)]:
            name = min(left, key=lambda name: results[name].cpu_minutes if name in results else 0.0)
            former = results.get(name)
            seconds = 60 * min(SLICE_MINUTES, minutes - (former.cpu_minutes if former else 0.0))
            part = fuzzed(name, TARGETS[name], run.seed, seconds, first=former.inputs if former else 0)
            ledger.add(part)
            results[name] = former.plus(part) if former else part
            step.advance(_is_done(results[name], minutes))
            for sentence in (*part.found, *part.slow):
                run.say(f"{name}: {sentence}")
    ledger.close()
    return results


def _is_done(result: FuzzSlice | None, minutes: float) -> bool:
    return result is not None and (result.cpu_minutes >= minutes or len(result.found) >= MOST_FOUND)


def _report(run: Run, results: list[FuzzSlice]) -> None:
    columns = ["target", "minutes", "inputs", "refused as documented", "slowest ms", "MB more"]
    run.table(
        columns,
        [
            (r.name, round(r.cpu_minutes, 2), r.inputs, r.refused, round(1000 * r.slowest_s, 1), round(r.grown_mb, 1))
            for r in sorted(results, key=lambda r: list(TARGETS).index(r.name))
        ],
    )
    run.figure(FOUND, sum(len(each.found) for each in results))
    run.figure(SLOW, sum(len(each.slow) for each in results))
    run.figure(GROWN, max(each.grown_mb for each in results), "MB")


EXPERIMENT = Experiment(
    name="fuzz",
    summary="random input for all that reads what others wrote; the native kernel and its twin make the same page",
    run=measure,
    choices=(MARKUP, *TARGETS),
    bars=(
        Bar("same pages", "mutations that differ", "<=", 0),
        Bar("a result or a documented error", FOUND, "<=", 0),
        Bar("soon", SLOW, "<=", 0),
        Bar("bounded", GROWN, "<=", 200),
    ),
)
