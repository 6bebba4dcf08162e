"""The ways a URL can come into a crawl, each tried once in the closed world.

    unshare --net python -m tests.security.ways CONFORMANCE FOLDER [WAY…]

FOLDER/report.json says for each what was started, heard and refused.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path

from lycosa.tables.publisher import AugmentOptions, tables_of
from tests.security.closed_world import SITE, Way, World, close_the_world
from tests.security.targets import Target

SILENT_PORT = 8090  # nobody listens here
GOOD4, GOOD6 = "1.0.0.1", "2606:4700::1"  # addresses anyone may ask; they lead to `lo` here as well
EVERYTHING = ("0.0.0.0/0", "::/0")
AT_ONCE = 3  # ways that are tried at a time: most of them wait


async def seed_by_name(world: World) -> Way:
    return await world.crawl("seed_by_name", world.named, *(target.url for target in world.named))


async def seed_from_file(world: World) -> Way:
    targets = [*world.targets, *world.named]
    return await world.crawl("seed_from_file", targets, "-i", world.listed("seed_from_file", targets))


async def add_to_stopped_crawl(world: World) -> Way:
    """`add` refuses addresses at once; what lies in the inbox all the same is refused when it is taken in."""
    name, site = "add_to_stopped_crawl", world.site("add.test")
    into = world.folder / name
    await world.crawl(name, [], site)
    half = len(world.named) // 2
    await world.lycosa(name, "add", str(into), "-i", world.listed("add", world.named[:half]))
    await world.lycosa(name, "add", str(into), *[target.url for target in world.named[half:]])
    code, said = await world.lycosa(name, "add", str(into), "-i", world.listed("literals", world.targets))
    assert code == 2, said
    (into / "inbox").mkdir(exist_ok=True)
    (into / "inbox" / "literals.urls").write_text("".join(f"{target.url}\n" for target in world.targets))
    return await world.crawl(name, [*world.targets, *world.named], site)


async def link_on_a_page(world: World) -> Way:
    site = world.site("links.test")
    targets = [*world.targets, *world.named]
    tags = ('<a href="{}">x</a>', '<iframe src="{}"></iframe>', '<area href="{}">', '<img src="{}">')
    body = "".join(tags[n % len(tags)].format(target.url) for n, target in enumerate(targets))
    world.page("links.test", "/", f"<!doctype html><title>x</title>{body}")
    return await world.crawl("link_on_a_page", targets, site)


async def redirect_of_a_page(world: World) -> Way:
    site = world.site("redirect.test")
    targets = [*world.targets, *world.named]
    for n, target in enumerate(targets):
        world.page("redirect.test", f"/r{n}", "", header=f"Location: {target.url}")
    world.page("redirect.test", "/", "".join(f'<a href="/r{n}">x</a>' for n in range(len(targets))))
    return await world.crawl("redirect_of_a_page", targets, site)


async def redirect_of_a_seed(world: World) -> Way:
    world.site("seeds.test")
    for n, target in enumerate(world.literals):
        world.page("seeds.test", f"/r{n}", "", header=f"Location: {target.url}")
    seeds = [f"http://seeds.test/r{n}" for n in range(len(world.literals))]
    return await world.crawl("redirect_of_a_seed", world.literals, *seeds)


async def redirect_of_robots(world: World) -> Way:
    """The host whose robots.txt leads astray is given up; nothing is asked of where it leads."""
    targets = [*world.targets, *world.named]
    seeds = []
    for n, target in enumerate(targets):
        seeds.append(world.site(f"r{n}.robots.test"))
        world.page(f"r{n}.robots.test", "/robots.txt", "", header=f"Location: {target.url}robots.txt")
    givers = [Target("", url.rstrip("/"), SITE) for url in seeds]
    return await world.crawl("redirect_of_robots", givers, *seeds)


async def sitemap_named_by_robots(world: World) -> Way:
    targets = [*world.targets, *world.named]
    seeds = []
    for first in range(0, len(targets), 50):
        seeds.append(world.site(f"m{first}.robots.test"))
        lines = "".join(f"Sitemap: {target.url}map.xml\n" for target in targets[first : first + 50])
        world.page(f"m{first}.robots.test", "/robots.txt", lines)
    return await world.crawl("sitemap_named_by_robots", targets, *seeds)


async def url_in_a_sitemap(world: World) -> Way:
    return await _by_sitemap(world, "url_in_a_sitemap", "urlset", "url")


async def sitemap_in_an_index(world: World) -> Way:
    return await _by_sitemap(world, "sitemap_in_an_index", "sitemapindex", "sitemap")


async def _by_sitemap(world: World, name: str, root: str, item: str) -> Way:
    host = f"{name.replace('_', '-')}.test"
    site = world.site(host)
    targets = [*world.targets, *world.named]
    world.page(host, "/robots.txt", f"Sitemap: {site}map.xml\n")
    body = f"<{root}>" + "".join(f"<{item}><loc>{target.url}</loc></{item}>" for target in targets) + f"</{root}>"
    world.page(host, "/map.xml", body, header="Content-Type: application/xml")
    return await world.crawl(name, targets, site)


async def answer_with_one_good_address(world: World) -> Way:
    targets = []
    for n, target in enumerate(world.literals):
        good = GOOD6 if ":" in target.address else GOOD4
        targets.append(world.name(f"first{n}.mixed.test", [target.address, good]))
        targets.append(world.name(f"last{n}.mixed.test", [good, target.address]))
    return await world.crawl("answer_with_one_good_address", targets, *(target.url for target in targets))


async def answer_by_another_name(world: World) -> Way:
    targets = []
    for n, target in enumerate(world.named):
        kind = "AAAA" if ":" in target.address else "A"
        world.zone[f"c{n}.alias.test", kind] = (60, [f"cname {target.written}"])
        targets.append(Target(f"c{n}.alias.test", f"http://c{n}.alias.test", target.address))
    return await world.crawl("answer_by_another_name", targets, *(target.url for target in targets))


async def requisite_of_a_page(world: World) -> Way:
    """What a page needs to be shown, in its markup and in its stylesheet."""
    site = world.site("requisites.test")
    targets = [*world.targets, *world.named]
    tags = (
        '<script src="{}"></script>',
        '<link rel=stylesheet href="{}">',
        '<img srcset="{} 2x">',
        '<link rel=icon href="{}">',
    )
    half = len(targets) // 2
    body = "".join(tags[n % len(tags)].format(target.url) for n, target in enumerate(targets[:half]))
    sheet = "".join(f'@import "{target.url}";' for target in targets[half : half + half // 2])
    sheet += "".join(f"p {{ background: url({target.url}) }}" for target in targets[half + half // 2 :])
    world.page("requisites.test", "/", f"<!doctype html><link rel=stylesheet href=/all.css><title>x</title>{body}")
    world.page("requisites.test", "/all.css", sheet, header="Content-Type: text/css")
    return await world.crawl("requisite_of_a_page", targets, site, "--requisites")


async def link_in_a_table(world: World) -> Way:
    """A table of links, which is read before its document; the document has none of them."""
    site = world.site("tables.test")
    targets = [*world.targets, *world.named]
    rows = "".join(f"external\t{target.url}\tx\n" for target in targets)
    world.page("tables.test", "/", "<title>x</title>")
    world.page("tables.test", "/index.tol", f"# tol 1\n{rows}", header="Content-Type: text/plain")
    return await world.crawl("link_in_a_table", targets, site, "--tables", "always")


async def link_in_a_table_of_parts(world: World) -> Way:
    """A part of a page that has changed, told by its table at the next visit; and tables that redirect."""
    name, site = "link_in_a_table_of_parts", world.site("parts.test")
    targets = [*world.targets, *world.named]
    links = "".join(f"<a href='{target.url}'>x</a>" for target in targets)
    world.page("parts.test", "/", _page_with_part("none"))
    for n in range(len(world.literals)):
        world.site(f"v{n}.parts.test")
        world.page(f"v{n}.parts.test", "/", _page_with_part(f"none, page {n}"))  # copies would be asked for once
    givers = [Target(f"v{n}.parts.test", "", "") for n in range(len(world.literals))]
    heard_before = len(world.heard)
    # A page that was asked for a table of links, for want of other work, is not asked for one of parts later.
    await world.crawl(name, [], site, "-i", world.listed(name, givers), "--tables", "off")
    settings = world.folder / name / "lycosa.toml"
    settings.write_text(settings.read_text().replace('tables = "off"', 'tables = "auto"'))
    changed = _page_with_part(links).encode()
    table = tables_of(changed, AugmentOptions(), name="index.html", content_type="text/html").tvi
    assert table is not None
    world.page("parts.test", "/index.tvi", table.decode(), header="Content-Type: text/plain")
    for n, target in enumerate(world.literals):
        world.page(f"v{n}.parts.test", "/index.tvi", "", header=f"Location: {target.url}index.tvi")
    await world.lycosa(name, "recrawl", str(world.folder / name), "--all", "-q")
    way = await world.crawl(name, targets, site)
    way.heard = sorted(set(world.heard[heard_before:]))
    way.tried = sum(path.endswith(".tvi") for host, path in world.asked if host.endswith("parts.test"))
    return way


def _page_with_part(content: str) -> str:
    return f"<!doctype html><title>x</title><p>words <span data-vol='n'>{content}</span>"


async def seed_through_a_proxy(world: World) -> Way:
    """A proxy is asked for nothing that the guard refuses; the proxy itself is the user's own."""
    targets = [*world.targets, *world.named]
    listed = world.listed("seed_through_a_proxy", targets)
    return await world.crawl("seed_through_a_proxy", targets, "-i", listed, "--proxy", f"http://{SITE}:8080")


async def name_that_changes_its_address(world: World) -> Way:
    """The first answer of each name may be asked and refuses connections; the next is a special address."""
    targets = []
    for n, target in enumerate(world.literals):
        host = f"f{n}.flip.test"
        world.name(host, [SITE])
        world.flips[host] = target.address
        targets.append(Target(f"{host}:{SILENT_PORT}", f"http://{host}:{SILENT_PORT}", target.address))
    return await world.crawl("name_that_changes_its_address", targets, "-i", world.listed("flip", targets))


async def form_of_a_login(world: World) -> Way:
    """Forms that send what is filled in elsewhere, and login pages that redirect there: the hosts are given up."""
    logins, seeds = [], []
    for n, target in enumerate([*world.literals, *world.named]):
        host = f"l{n}.login.test"
        seeds.append(world.site(host))
        form = f"<form method=post action='{target.url}'><input name=user><input type=password name=password></form>"
        header = "Content-Type: text/html" if n % 2 else f"Location: {target.url}"
        world.page(host, "/login", form if n % 2 else "", header=header)
        logins.append(f"[[logins]]\nurl = 'http://{host}/login'\nfields = {{user = 'ann', password = 'secret'}}\n")
    config = world.folder / "logins.toml"
    config.write_text("\n".join(logins))
    listed = world.listed("form_of_a_login", [Target(f"l{n}.login.test", "", "") for n in range(len(seeds))])

    def asked() -> set[str]:
        return {host for host, path in world.asked if host.endswith(".login.test") and path == "/login"}

    words = ["-i", listed, "--config", str(config)]
    way = await world.crawl("form_of_a_login", [], *words, until=lambda: len(asked()) == len(seeds))
    way.tried = len(asked())
    return way


async def request_of_a_rendered_page(world: World) -> Way:
    """Scripts, images, frames and sockets of a page that a browser runs."""
    site = world.site("render.test")
    named = [world.name(f"a{n}.render.test", [target.address]) for n, target in enumerate(world.literals)]
    urls = json.dumps([target.url for target in (*named, *world.literals)])
    script = f"""for (const url of {urls}) {{
        fetch(url).catch(() => 0); new Image().src = url + "image"; navigator.sendBeacon(url + "beacon");
        try {{ new WebSocket(url.replace("http", "ws")) }} catch {{}} }}"""
    world.page("render.test", "/", f"<!doctype html><title>x</title><p>words<script>{script}</script>")

    def has_looked_up_all() -> bool:  # a page may ask for some hundred things, not for more
        return len({name for name, _ in world.names.asked if name.endswith(".render.test")}) == len(named)

    words = [site, "--render", "always", "--time", "40"]
    way = await world.crawl("request_of_a_rendered_page", [], *words, until=has_looked_up_all)
    way.tried = len(way.refused)
    return way


# what may be asked


async def typed_literal(world: World) -> Way:
    """Four literals typed as seeds are open, each on its port; what they lead to is not."""
    typed = ["http://10.1.2.3/", "http://[fc00::5]/", "http://localhost:8081/", "http://2130706439:8080/"]
    world.name("alias.typed.test", ["10.1.2.3"])
    refused = ["http://10.1.2.3:8081", "http://10.1.2.4", "http://127.0.0.1:8081", "http://localhost"]
    refused.append("http://alias.typed.test")  # a name is not the address that was typed
    links = "".join(f'<a href="{url}/">x</a>' for url in refused)
    world.page("10.1.2.3", "/", links)
    world.page("localhost:8081", "/", "", header="Location: http://localhost:8080/")
    expected = [Target("", url, "") for url in (*refused, "http://localhost:8080")]
    return await world.crawl("typed_literal", expected, *typed, private=())


async def odd_form_of_an_open_address(world: World) -> Way:
    """An odd spelling is no crime: where it leads decides."""
    return await world.crawl("odd_form_of_an_open_address", [], *(f"http://{form}/" for form in world.open_forms))


async def everything_allowed(world: World) -> Way:
    """The control: with the guard wide open the same seeds do lead to connections, and those are heard."""
    seeds = [target.url for target in world.named if target.address not in ("127.255.255.255", "255.255.255.255")]
    heard_before = len(world.heard)

    def has_heard_most() -> bool:
        return len(set(world.heard[heard_before:])) > 150

    words = [*seeds, "--time", "5"]
    return await world.crawl("everything_allowed", [], *words, private=EVERYTHING, until=has_heard_most)


WAYS: tuple[Callable[[World], Awaitable[Way]], ...] = (
    seed_by_name,
    seed_from_file,
    add_to_stopped_crawl,
    link_on_a_page,
    redirect_of_a_page,
    redirect_of_a_seed,
    redirect_of_robots,
    sitemap_named_by_robots,
    url_in_a_sitemap,
    sitemap_in_an_index,
    answer_with_one_good_address,
    answer_by_another_name,
    requisite_of_a_page,
    link_in_a_table,
    link_in_a_table_of_parts,
    seed_through_a_proxy,
    name_that_changes_its_address,
)
# Ways after which the hosts of the targets are not listed, or not all of them: nothing but the sites is asked.
QUIET_WAYS: tuple[Callable[[World], Awaitable[Way]], ...] = (form_of_a_login, request_of_a_rendered_page)
OPEN_WAYS: tuple[Callable[[World], Awaitable[Way]], ...] = (
    typed_literal,
    odd_form_of_an_open_address,
    everything_allowed,
)


async def main() -> None:
    conformance, folder, wanted = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
    close_the_world()
    report = {}
    world = World(conformance, folder)
    await world.begin()
    at_once = asyncio.Semaphore(AT_ONCE)

    async def go(way: Callable[[World], Awaitable[Way]]) -> None:
        async with at_once:
            if not wanted or way.__name__ in wanted:
                report[way.__name__] = asdict(await way(world))

    # What is heard counts for all ways that are under way: none of these may be heard anywhere but at their sites.
    await asyncio.gather(*map(go, (*QUIET_WAYS, *WAYS)))
    for way in OPEN_WAYS:
        await go(way)
    (folder / "report.json").write_text(json.dumps(report))


if __name__ == "__main__":
    asyncio.run(main())
