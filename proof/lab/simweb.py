"""Does the simulated web look like a web? Sizes, links, topics, hubs and series, counted over a sample of its pages."""

import re
from collections import Counter
from statistics import mean, median
from urllib.parse import urljoin, urlsplit

from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.layout import PagePlace
from lycosa.simweb.vocabulary import mix
from proof import Axis, Bar, Distribution, Experiment, Mark, Run, Sample

_LINK = re.compile(rb'<a href="([^"]*)"')


def measure(run: Run) -> None:
    hosts, pages, sampled = (50, 20_000, 500) if run.quick else (200, 200_000, 5_000)
    for setting, count in (("hosts", hosts), ("pages", pages), ("pages sampled", sampled)):
        run.setting(setting, count)
    web = SimWeb(SimSettings(seed=run.seed, hosts=hosts, pages=pages))
    places = [_place(web, i) for i in range(sampled)]
    sizes, links, targets = [], [], Counter[int]()
    own_topic = with_topic = 0
    with run.progress(sampled, "pages") as step:
        for place in places:
            body = web.answer(place.host, web.layout.path_of(place)).body
            hrefs = [href.decode() for href in _LINK.findall(body)]
            sizes.append(len(body))
            links.append(len(hrefs))
            same, known = _topics(web, place, targets)
            own_topic, with_topic = own_topic + same, with_topic + known
            step.advance()
    folders = [web.layout.folder(h, i) for h in range(hosts) for i in range(web.layout.folder_count(h))]
    series = [folder.series for folder in folders if folder.series]
    topics = Counter[int]()
    for folder in folders:
        topics[folder.topic] += 1 + folder.articles + folder.series
    figures: dict[str, tuple[float, str]] = {
        "median size": (median(sizes) / 1000, "KB"),
        "median links": (median(links), ""),
        "largest host": (100 * max(web.layout.sizes) / pages, "%"),
        "largest topic": (100 * max(topics.values()) / pages, "%"),
        "topics": (len(topics), ""),
        "links on the page's own topic": (100 * own_topic / with_topic, "%"),
        "mean length of a series": (mean(series), ""),
        "in-links of the ten best-known hosts": (
            100 * sum(n for _, n in targets.most_common(10)) / targets.total(),
            "%",
        ),
    }
    for name, (value, unit) in figures.items():
        run.figure(name, value, unit)
    names = [words[0] for words in web.vocabulary.topics]
    run.table(["topic", "share of pages %"], [(names[t], f"{100 * n / pages:.2f}") for t, n in topics.most_common()])
    run.plot(_chart("Page sizes are log-normal", "size", "bytes", sizes, Mark(14_000, "14 KB")))
    run.plot(_chart("So are link counts", "links on a page", "", links, Mark(60, "60")))
    run.plot(_chart("A few hosts are large", "pages on a host", "", web.layout.sizes, Mark(pages / 10, "a tenth")))
    run.plot(_chart("A few hosts are hubs", "links from other hosts", "", list(targets.values())))


def _place(web: SimWeb, i: int) -> PagePlace:
    """A page drawn evenly over all pages."""
    number = mix(i, 0, web.settings.seed) % web.settings.pages
    for host, size in enumerate(web.layout.sizes):
        if number < size:
            return PagePlace(host, number // 32, number % 32)
        number -= size
    raise AssertionError("the sizes of the hosts add up to all pages")


def _topics(web: SimWeb, place: PagePlace, targets: Counter[int]) -> tuple[int, int]:
    """(links to the page's own topic, links to any topic); counts the hosts linked from outside in `targets`."""
    same = known = 0
    topic = web.layout.folder(place.host, place.folder).topic
    for href, _ in web.pages.main_links(place):
        parts = urlsplit(urljoin(web.url(place), href))
        host = web.layout.host_number(parts.hostname or "")
        target = web.layout.locate(host or 0, parts.path)
        if target is not None and target.page:
            known += 1
            same += web.layout.folder(target.host, target.folder).topic == topic
        if host is not None and host != place.host:
            targets[host] += 1
    return same, known


def _chart(title: str, what: str, unit: str, values: list[int], *marks: Mark) -> Distribution:
    return Distribution(title, Axis(what, unit, log=True), (Sample(what, values),), marks)


EXPERIMENT = Experiment(
    name="simweb",
    summary="whether the simulated web looks like a web",
    claim_id="own",
    claim="Pages near 14 KB and 60 links; no host or topic over a tenth; 0.6 of the links on topic; long series.",
    bars=(
        Bar("size as on the web", "median size", "within", (11.0, 17.0)),
        Bar("links as on the web", "median links", "within", (50, 70)),
        Bar("no host dominates", "largest host", "<=", 10.0),
        Bar("no topic dominates", "largest topic", "<=", 10.0),
        Bar("enough topics", "topics", ">=", 12),
        Bar("links keep to their topic", "links on the page's own topic", "within", (56, 64)),
        Bar("series worth mining", "mean length of a series", ">=", 10),
        Bar("hubs", "in-links of the ten best-known hosts", ">=", 25),
    ),
    run=measure,
)
