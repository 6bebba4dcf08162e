"""Is a change noticed, and only a change? Pages of the simulated web visited again and again; it knows what changed.

Each page is visited eight times, half of its own time of change apart, so that its volatile part is another one nearly
every time and its content now and then. A pair is a page at two visits in a row. Lycosa's verdict and the papers' codes
judge the same pairs. Images are fetched with their page; half of the volatile parts have no mark that gives them away.
"""

from collections import Counter
from collections.abc import Iterator

from lycosa.change.cascade import Parameters, cascade, parameters_of
from lycosa.change.image import image_value
from lycosa.change.kinds import UNCHANGED, Kind, Presence, Verdict
from lycosa.change.masks import Masks
from lycosa.change.verdict import Version, change_of_state, judge
from lycosa.errors import SettingsError
from lycosa.lab import Axis, Bar, Column, Columns, Experiment, Run
from lycosa.simweb.change import State
from lycosa.simweb.draws import mix, unit
from lycosa.simweb.layout import Place
from lycosa.simweb.settings import SimSettings
from lycosa.simweb.web import SimWeb
from lycosa.web.page import analyse

VISITS = 8
BETWEEN = (0.35, 0.65)  # in expected events of the page's own rate
LEARNED_AFTER = 3  # visits
VISIT_PURPOSE = 90
KINDS = (Kind.NONE, Kind.VOLATILE, Kind.TEXT, Kind.STRUCTURE, Kind.IMAGE, Kind.GONE, Kind.BACK)
CONTENT = (Kind.TEXT, Kind.STRUCTURE, Kind.IMAGE)


class Tally:
    """What was counted over all pairs."""

    def __init__(self) -> None:
        self.pairs = 0
        self.verdicts: Counter[tuple[Kind, Kind]] = Counter()  # (truth, verdict)
        self.codes: Counter[tuple[Kind, Kind]] = Counter()
        self.learned: Counter[tuple[bool, bool]] = Counter()  # volatile only, after three visits: (marked, recognised)
        self.first_sights = 0  # volatile parts taken for news before they could be learned

    def missed(self, judged: "Counter[tuple[Kind, Kind]]") -> int:
        return sum(n for (truth, said), n in judged.items() if truth in CONTENT and said in UNCHANGED)

    def false_alarms(self) -> int:
        """Pairs without a change of content that were called changed, volatile parts only once they were known."""
        return self.verdicts[Kind.NONE, Kind.TEXT] + self.verdicts[Kind.NONE, Kind.STRUCTURE] + self.unrecognised()

    def unrecognised(self) -> int:
        return sum(n for (_, is_recognised), n in self.learned.items() if not is_recognised)

    def without_change(self) -> int:
        return sum(n for (truth, _), n in self.verdicts.items() if truth in UNCHANGED)

    def recognised_share(self, *, marked: bool) -> float:
        good, bad = self.learned[marked, True], self.learned[marked, False]
        return 100 * good / (good + bad) if good + bad else 0.0


def measure(run: Run) -> None:
    pairs = 1_000 if run.quick else 11_000
    web = SimWeb(SimSettings(seed=run.seed, hosts=50, pages=20_000))
    tally = Tally()
    run.setting("visits a page", VISITS)
    with run.progress(pairs, "pairs") as step:
        for place in _places(web):
            before = tally.pairs
            follow(web, place, tally)
            step.advance(min(tally.pairs, pairs) - min(before, pairs))
            if tally.pairs >= pairs:
                break
    _report(run, tally)


def _places(web: SimWeb) -> Iterator[Place]:
    number = 0
    while True:
        host = mix(number, 0, VISIT_PURPOSE) % web.settings.hosts
        page = mix(number, 1, VISIT_PURPOSE) % web.layout.sizes[host]
        yield Place(host, page // 32, page % 32)
        number += 1


def follow(web: SimWeb, place: Place, tally: Tally) -> None:
    """Visits one page over and over, and judges what is found against what the web says happened."""
    place = web.pages.source(place)
    key = web.pages.key(place)
    masks, digest, presence = Masks(), b"", Presence.PAGE
    time_s, times = 0.0, 0
    state = web.state(place, time_s)
    stored, numbers = _seen(web, place, state)
    last = stored
    for visit in range(1, VISITS):
        low, high = BETWEEN
        time_s += (low + (high - low) * unit(mix(key, visit, VISIT_PURPOSE))) / web.changes.rate(key)
        before, state = state, web.state(place, time_s)
        truth = _truth(before, state)
        is_there = Presence.GONE if state.gone else Presence.PAGE
        changed = change_of_state(presence, is_there)
        presence = is_there
        times += 1
        tally.pairs += 1
        if changed is not None or state.gone:
            verdict = changed or Verdict(Kind.NONE)
            tally.verdicts[truth, verdict.kind] += 1
            tally.codes[truth, truth] += 1  # not a matter of codes
            if not state.gone:
                stored, numbers = _seen(web, place, state)
                last, digest = stored, b""
            continue
        new, codes = _seen(web, place, state)
        if new.body == last.body and new.images == last.images:
            verdict, masks = Verdict(Kind.NONE), masks.unchanged()
        else:
            compared = judge(new, masks, digest, lambda stored=stored: stored)  # type: ignore[misc]
            verdict, masks, digest = compared.verdict, compared.masks, compared.digest
        stored = new if verdict.is_change else stored
        last = new
        _count(tally, truth, verdict, cascade(numbers, codes), times, marked=web.pages.has_marked_volatile(place))
        numbers = codes


def _count(tally: Tally, truth: Kind, verdict: Verdict, codes: Kind, visits: int, *, marked: bool) -> None:
    tally.verdicts[truth, verdict.kind] += 1
    tally.codes[truth, codes] += 1
    if truth is Kind.VOLATILE:
        if visits >= LEARNED_AFTER:
            tally.learned[marked, not verdict.is_change] += 1
        else:
            tally.first_sights += verdict.is_change


def _truth(before: State, after: State) -> Kind:
    if before.gone or after.gone:
        return Kind.NONE if before.gone == after.gone else Kind.GONE if after.gone else Kind.BACK
    for kind in (Kind.STRUCTURE, Kind.TEXT, Kind.IMAGE, Kind.VOLATILE):
        if getattr(before, kind) != getattr(after, kind):
            return kind
    return Kind.NONE


def _seen(web: SimWeb, place: Place, state: State) -> tuple[Version, Parameters]:
    """A page with its image as it is now, and its parameters."""
    body = web.pages.html(place, state)
    value = image_value(web.documents.image(place, state))
    if value is None:
        raise SettingsError("images cannot be read: install Pillow with `pip install lycosa[images]`")
    page = analyse(body, url=web.url(place), content_type="text/html; charset=utf-8")
    return Version(page, body, (value.digest,)), parameters_of(page, (value.value,))


def _report(run: Run, tally: Tally) -> None:
    run.setting("pairs", tally.pairs)
    quiet = tally.without_change()
    run.figure("page pairs", tally.pairs)
    run.figure("changes missed", tally.missed(tally.verdicts))
    run.figure("false alarms", 100 * tally.false_alarms() / quiet, "%")
    run.figure("volatile parts recognised, marked", tally.recognised_share(marked=True), "%")
    run.figure("volatile parts recognised, not marked", tally.recognised_share(marked=False), "%")
    run.figure("volatile parts taken for news before the third visit", tally.first_sights)
    run.figure("changes missed by the codes", tally.missed(tally.codes))
    alarms = sum(n for (truth, said), n in tally.codes.items() if truth in UNCHANGED and said not in UNCHANGED)
    run.figure("false alarms of the codes", 100 * alarms / quiet, "%")
    rows: list[tuple[str | int, ...]] = []
    for truth in KINDS:
        row = [tally.verdicts[truth, said] for said in KINDS]
        codes = sum(n for (kind, said), n in tally.codes.items() if kind is truth and said not in UNCHANGED)
        rows.append((f"what happened: {truth}", *row, codes))
    run.table(["", *(f"said {kind}" for kind in KINDS), "codes saw a change"], rows)
    columns = [
        Column(f"{name}, {who}", 100 * seen / total if total else 0.0)
        for name, kind in (("text", Kind.TEXT), ("structure", Kind.STRUCTURE), ("image", Kind.IMAGE))
        for who, judged in (("verdict", tally.verdicts), ("codes", tally.codes))
        for total in (sum(n for (truth, _), n in judged.items() if truth is kind),)
        for seen in (sum(n for (truth, said), n in judged.items() if truth is kind and said not in UNCHANGED),)
    ]
    run.plot(Columns("Changes that are seen", Axis("seen", "%"), tuple(columns)))
    alarm_columns = (
        Column("verdict", 100 * tally.false_alarms() / quiet),
        Column("codes", 100 * alarms / quiet),
    )
    run.plot(Columns("False alarms", Axis("of the pairs without a change", "%"), alarm_columns))


EXPERIMENT = Experiment(
    name="change",
    summary="whether changes are noticed, and nothing else",
    claim_id="Y7–Y12",
    claim="Structure strings, text codes and image values tell every change of a page.",
    bars=(
        Bar("enough pairs", "page pairs", ">=", 10_000),
        Bar("none missed", "changes missed", "<=", 0),
        Bar("few false alarms", "false alarms", "<=", 0.5),
        Bar("marked parts are recognised", "volatile parts recognised, marked", ">=", 95.0),
        Bar("unmarked parts are recognised", "volatile parts recognised, not marked", ">=", 95.0),
    ),
    run=measure,
)
