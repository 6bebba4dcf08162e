"""Is a change noticed, and only a change? A crawl with its images is looked at again; the web knows what changed.

All pages change at one rate, and the collection is looked at again (`recrawl --all`) seven times, half of that time
apart, so that a volatile part is another one nearly every time and content now and then. A pair is a page at two visits
in a row; what the product says of it is read from the history it keeps. Pictures, of which robots.txt forbids none, are
looked at where structure and text have not changed, so one that changed together with them may be told of a visit
later. The papers' codes judge the same pairs beside it. Half of the volatile parts have no mark that gives them away.
"""

from collections import Counter
from collections.abc import Iterator

from lycosa.crawl import Recrawl
from lycosa.errors import SettingsError
from lycosa.records import Family
from lycosa.recrawl.change.image import can_decode, image_value
from lycosa.recrawl.change.verdict import UNCHANGED, ChangeKind, PageParameters, compare_parameters, parameters_of
from lycosa.recrawl.versions import ChangeRow, history
from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.layout import PagePlace
from lycosa.simweb.pages import DAY_S, PageState
from lycosa.simweb.vocabulary import mix, unit
from lycosa.store import CollectionStore
from lycosa.web import analyse_page, url_key
from proof import Axis, Bar, Column, ColumnChart, Experiment, PaperFigure, Run
from proof.ground.commands import scratch
from proof.ground.memory_crawl import look, wall_s

VISITS = 8
CHANGE_DAYS = 30.0  # between two events of a page's own process
BETWEEN = (0.35, 0.65)  # in expected events of the page
LEARNED_AFTER = 3  # visits
VISIT_PURPOSE = 90
KINDS = (
    ChangeKind.NONE,
    ChangeKind.VOLATILE,
    ChangeKind.TEXT,
    ChangeKind.STRUCTURE,
    ChangeKind.IMAGE,
    ChangeKind.GONE,
    ChangeKind.BACK,
)
SAID = (ChangeKind.NONE, *KINDS[2:])
CONTENT = (ChangeKind.TEXT, ChangeKind.STRUCTURE, ChangeKind.IMAGE)


class Tally:
    """What was counted over all pairs."""

    def __init__(self) -> None:
        self.pairs = 0
        self.verdicts: Counter[tuple[ChangeKind, ChangeKind]] = Counter()  # (truth, verdict)
        self.codes: Counter[tuple[ChangeKind, ChangeKind]] = Counter()
        self.learned: Counter[tuple[bool, bool]] = Counter()  # volatile only, after three visits: (marked, recognised)
        self.first_sights = 0  # volatile parts taken for news before they could be learned

    def missed(self, judged: "Counter[tuple[ChangeKind, ChangeKind]]") -> int:
        return sum(n for (truth, said), n in judged.items() if truth in CONTENT and said in UNCHANGED)

    def false_alarms(self) -> int:
        """Pairs without a change of content that were called changed, volatile parts only once they were known."""
        return sum(self.verdicts[ChangeKind.NONE, said] for said in CONTENT) + self.unrecognised()

    def unrecognised(self) -> int:
        return sum(n for (_, is_recognised), n in self.learned.items() if not is_recognised)

    def without_change(self) -> int:
        return sum(n for (truth, _), n in self.verdicts.items() if truth in UNCHANGED)

    def recognised_share(self, *, marked: bool) -> float:
        good, bad = self.learned[marked, True], self.learned[marked, False]
        return 100 * good / (good + bad) if good + bad else 0.0


def measure(run: Run) -> None:
    if not can_decode():
        raise SettingsError("images cannot be read: install Pillow with `pip install lycosa[images]`")
    hosts, pages = (3, 110) if run.quick else (20, 1_800)
    web = SimWeb(SimSettings(seed=run.seed, hosts=hosts, pages=pages, mirrors=0.0, robots={"rules": 0.0}))
    web.changes.rate = lambda key: 1 / (CHANGE_DAYS * DAY_S)  # type: ignore[method-assign]
    tally, days = Tally(), _days(run.seed)
    for name, value in (("visits a page", VISITS), ("hosts", hosts), ("pages", pages)):
        run.setting(name, value)
    with scratch() as folder, run.progress(VISITS, "visits") as step:
        into = folder / "crawl"
        for number, day in enumerate(days):
            order = Recrawl(everything=True) if number else None
            look(web, into, days=day, recrawl=order, moves=False, images=True, delay_s=0.05)
            step.advance()
        with CollectionStore.open(into) as collection:
            for place in _places(web):
                key = url_key(web.url(place))
                if collection.state.get(Family.VISIT, key) is not None:
                    follow(web, place, days, _by_visit(history(collection.state, key), days), tally)
    _report(run, tally)


def _days(seed: int) -> list[float]:
    """When the collection is looked at, in days since the web began."""
    days, (low, high) = [0.0], BETWEEN
    for visit in range(1, VISITS):
        days.append(days[-1] + CHANGE_DAYS * (low + (high - low) * unit(mix(seed, visit, VISIT_PURPOSE))))
    return days


def _places(web: SimWeb) -> Iterator[PagePlace]:
    for host, size in enumerate(web.layout.sizes):
        yield from (PagePlace(host, page // 32, page % 32) for page in range(size))


def _by_visit(rows: Iterator[tuple[float, ChangeRow]], days: list[float]) -> list[list[ChangeRow]]:
    """What each visit wrote into a page's history; the first wrote nothing."""
    found: list[list[ChangeRow]] = [[] for _ in days]
    for at_s, row in rows:
        if row.kind is not ChangeKind.NEW:
            found[_visit_at(at_s, days)].append(row)
    return found


def _visit_at(at_s: float, days: list[float]) -> int:
    return sum(wall_s(day) <= at_s for day in days) - 1


def follow(web: SimWeb, place: PagePlace, days: list[float], told: list[list[ChangeRow]], tally: Tally) -> None:
    """Goes through the visits of one page, and holds what the product said against what the web says happened."""
    state = web.state(place, 0.0)
    untold, excused = set[int](), set[int]()  # visits at which the picture was another one; of a page that was gone
    numbers = _parameters(web, place, state)
    for visit in range(1, len(days)):
        before, state = state, web.state(place, days[visit] * DAY_S)
        rows = told[visit]
        said = next((row.kind for row in rows if row.kind is not ChangeKind.VOLATILE), ChangeKind.NONE)
        truth, is_there = _truth(before, state), not (before.gone or state.gone)
        untold |= {visit} if before.image != state.image else set()
        if not is_there:  # it comes back with whatever it shows then
            untold, excused = set(), untold | excused
        pictures = {_visit_at(picture.at_s, days) for row in rows for picture in row.pictures}
        if truth in UNCHANGED and (untold or pictures & excused):
            truth = ChangeKind.IMAGE
        untold = {each for each in untold if each > max(pictures, default=0)}  # one look tells all that came before it
        tally.pairs += 1
        codes = _parameters(web, place, state)
        seen = compare_parameters(numbers, codes) if is_there else truth  # a page that is gone is not a matter of codes
        _count(tally, truth, said, seen, visit, marked=web.pages.has_marked_volatile(place))
        numbers = codes


def _count(tally: Tally, truth: ChangeKind, said: ChangeKind, codes: ChangeKind, visits: int, *, marked: bool) -> None:
    is_change = said not in UNCHANGED
    tally.verdicts[truth, said] += 1
    tally.codes[truth, codes] += 1
    if truth is ChangeKind.VOLATILE:
        if visits >= LEARNED_AFTER:
            tally.learned[marked, not is_change] += 1
        else:
            tally.first_sights += is_change


def _truth(before: PageState, after: PageState) -> ChangeKind:
    if before.gone or after.gone:
        return ChangeKind.NONE if before.gone == after.gone else ChangeKind.GONE if after.gone else ChangeKind.BACK
    for kind in (ChangeKind.STRUCTURE, ChangeKind.TEXT, ChangeKind.VOLATILE):
        if getattr(before, kind) != getattr(after, kind):
            return kind
    return ChangeKind.NONE


def _parameters(web: SimWeb, place: PagePlace, state: PageState) -> PageParameters:
    """The papers' parameters of a page with its image as it is now."""
    page = analyse_page(web.pages.html(place, state), url=web.url(place), content_type="text/html; charset=utf-8")
    value = image_value(web.documents.image(place, state))
    return parameters_of(page, (value.value,) if value else ())


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
    missed, changes = tally.missed(tally.codes), sum(n for (truth, _), n in tally.codes.items() if truth in CONTENT)
    run.remark(
        f"Of the codes alone the claim does not hold: they miss {missed:,} of {changes:,} changes and take "
        f"{100 * alarms / quiet:.0f} % of the pairs without a change of content for one. What recrawl says rests on "
        "digests of the content and of the pixels."
    )
    rows: list[tuple[str | int, ...]] = []
    for truth in KINDS:
        row = [tally.verdicts[truth, said] for said in SAID]
        codes = sum(n for (kind, said), n in tally.codes.items() if kind is truth and said not in UNCHANGED)
        rows.append((f"what happened: {truth}", *row, codes))
    run.table(["", *(f"said {kind}" for kind in SAID), "codes saw a change"], rows)
    columns = [
        Column(f"{name}, {who}", 100 * seen / total if total else 0.0)
        for name, kind in (("text", ChangeKind.TEXT), ("structure", ChangeKind.STRUCTURE), ("image", ChangeKind.IMAGE))
        for who, judged in (("verdict", tally.verdicts), ("codes", tally.codes))
        for total in (sum(n for (truth, _), n in judged.items() if truth is kind),)
        for seen in (sum(n for (truth, said), n in judged.items() if truth is kind and said not in UNCHANGED),)
    ]
    run.plot(ColumnChart("Changes that are seen", Axis("seen", "%"), tuple(columns)))
    alarm_columns = (
        Column("verdict", 100 * tally.false_alarms() / quiet),
        Column("codes", 100 * alarms / quiet),
    )
    run.plot(ColumnChart("False alarms", Axis("of the pairs without a change", "%"), alarm_columns))


EXPERIMENT = Experiment(
    name="change",
    summary="whether changes are noticed, and nothing else",
    claim_id="Y7–Y12",
    claim="Structure strings, text codes and image values tell every change of a page.",
    bars=(
        Bar("enough pairs", "page pairs", ">=", 500),
        Bar("none missed", "changes missed", "<=", 0),
        Bar("few false alarms", "false alarms", "<=", 0.5),
        Bar("marked parts are recognised", "volatile parts recognised, marked", ">=", 95.0),
        Bar("unmarked parts are recognised", "volatile parts recognised, not marked", ">=", 95.0),
    ),
    papers=(
        PaperFigure(
            "Y12",
            "structure, text and pictures show every change: changes missed by the papers' codes",
            "0",
            "changes missed by the codes",
        ),
        PaperFigure("Y12", "the same, by what decides here: changes missed", "0", "changes missed"),
        PaperFigure(
            "Y12", "a change is told where there is none, by the papers' codes", "", "false alarms of the codes"
        ),
        PaperFigure("Y12", "the same, by what decides here", "", "false alarms"),
    ),
    run=measure,
)
