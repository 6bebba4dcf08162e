"""Pages that a browser renders: found, kept and polite, and nothing leaves but by the crawl's own requests."""

import asyncio
import json
import os
import signal
import ssl
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import trustme

from lycosa import Collection, Crawl
from lycosa.crawl import CrawlStats
from lycosa.errors import PartError
from lycosa.inspect import explain_url, open_to_read
from lycosa.render import browser_link, processes, require_browser
from lycosa.render.messages import RenderLimits
from lycosa.store import CollectionStore
from proof.ground.app import AppServer, served_app
from tests.crawl.consistency import problems

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]
PAGES = 12
RELAXED = {"delay_s": 0.0, "sitemaps": False, "mine": "off", "tables": "off", "allow_private": ["127.0.0.0/8"]}


@pytest.fixture(autouse=True)
def _has_browser() -> None:
    try:
        require_browser()
    except PartError as error:
        pytest.skip(str(error))


def crawl(
    app: AppServer, into: Path, *, beside: Callable[[Crawl], Any] | None = None, path: str = "/", **settings: Any
) -> CrawlStats:
    async def main() -> CrawlStats:
        async with Crawl(app.origin + path, into=into, **{**RELAXED, "render": "auto", **settings}) as running:
            other = asyncio.ensure_future(beside(running)) if beside else None
            stats = await running.finish()
            if other is not None:
                other.cancel()
        return stats

    return asyncio.run(main())


def records(into: Path) -> "Counter[str]":
    with CollectionStore.open(into, read_only=True) as collection:
        return Counter(record.type for _, record in collection.records())


def events(into: Path, name: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (into / "log.jsonl").read_text().splitlines()]
    return [line for line in lines if line["event"] == name]


def test_application_is_found_with_auto_alone_and_shared_files_are_fetched_once(tmp_path: Path) -> None:
    with served_app(PAGES) as app:
        assert crawl(app, tmp_path / "without", render="never").pages == 1
        app.asked.clear()
        stats = crawl(app, tmp_path / "c")
    assert stats.pages == PAGES
    asked = Counter(each.path for each in app.asked)
    assert max(asked.values()) == 1
    assert {"/assets/bundle.js", "/assets/style.css", "/api/item/5"} <= asked.keys()
    assert not any(each.is_browser for each in app.asked)
    assert records(tmp_path / "c")["conversion"] == PAGES
    assert problems(tmp_path / "c", sampled=1) == []
    with Collection(tmp_path / "c") as collection:
        page = collection.get(f"{app.origin}/item/5")
        assert page.title == "Item 5"
        assert "The words of page 5." in page.text
    with open_to_read(tmp_path / "c") as opened:
        said = explain_url(opened, f"{app.origin}/assets/bundle.js")
    assert f"a requisite: {app.origin}/ needs it to be shown" in said


def test_pages_with_all_they_say_are_left_as_they_were_fetched(tmp_path: Path) -> None:
    with served_app(0) as app:
        for number in range(6):
            link = f"<a href=/page/{number + 1}>next</a>"
            app.files[f"/page/{number}"] = 200, "text/html", f"<p>{'words ' * 100}</p>{link}<script>1</script>"
        stats = crawl(app, tmp_path / "c", path="/page/0")
    assert stats.pages == 6
    assert records(tmp_path / "c")["conversion"] == 0


def test_robots_delay_and_the_limit_of_pages_hold(tmp_path: Path) -> None:
    delay_s = 0.1
    with served_app(PAGES, robots="User-agent: *\nDisallow: /api/item/2\nDisallow: /assets/style.css") as app:
        stats = crawl(app, tmp_path / "c", delay_s=delay_s, pages=5)
    assert stats.pages == 5
    assert not {"/api/item/2", "/assets/style.css"} & {each.path for each in app.asked}
    in_order = sorted(app.asked, key=lambda each: each.started_s)
    assert all(after.started_s - before.ended_s >= delay_s - 0.02 for before, after in pairwise(in_order))
    assert problems(tmp_path / "c") == []


WAYS_OUT = """
<link rel=preconnect href="OTHER"><link rel=dns-prefetch href="OTHER"><link rel=prefetch href="OTHER/prefetch">
<link rel=preconnect href="http://10.9.9.2:81"><link rel=dns-prefetch href="http://name.test">
<script type=speculationrules>{"prefetch": [{"urls": ["/ahead"]}], "prerender": [{"urls": ["/ahead-too"]}]}</script>
<img src="OTHER/image.png"><iframe src="OTHER/frame.html"></iframe><video src="OTHER/video.mp4" autoplay></video>
<script>
const tries = [
  () => fetch("/redirected"), () => fetch("OTHER/fetched", {mode: "no-cors"}),
  () => fetch("OTHER/kept-alive", {mode: "no-cors", keepalive: true}),
  () => fetch("OTHER/posted", {method: "POST", mode: "no-cors", body: "x"}),
  () => navigator.sendBeacon("OTHER/beacon", "x"), () => new WebSocket("OTHER/socket".replace("http", "ws")),
  () => new EventSource("OTHER/events"), () => window.open("OTHER/popup"),
  () => navigator.serviceWorker.register("/worker.js"), () => new Worker("/worker.js"),
  () => new SharedWorker("/worker.js"),
  () => new WebTransport("OTHER/transport".replace("http:", "https:")), () => new WebTransport("https://10.9.9.2:443/"),
  () => new WebSocket("ws://10.9.9.2:82/"),
  () => { const peer = new RTCPeerConnection(
            {iceServers: [{urls: "stun:127.0.0.1:STUN"}, {urls: "stun:10.9.9.2:3478"},
                          {urls: "turn:10.9.9.2:3478?transport=tcp", username: "x", credential: "x"}]});
          peer.createDataChannel("x"); peer.createOffer().then(offer => peer.setLocalDescription(offer)); },
  () => { const form = document.createElement("form"); form.method = "post"; form.action = "OTHER/form";
          form.target = "_blank"; document.body.append(form); form.submit(); },
  () => { location.href = "/led/to"; },
];
for (const one of tries) { try { Promise.resolve(one()).catch(() => 0); } catch (error) { } }
</script>
"""
WORKER = 'fetch("OTHER/by-worker", {mode: "no-cors"}).catch(() => 0); self.onfetch = () => 0;'
# Runs the crawl in a network namespace and sees every packet there. Beside loopback it has an interface that leads
# nowhere, where the system has such: with loopback alone WebRTC, for one, does not even try.
INSIDE = """
import json, pathlib, socket, subprocess, sys, threading
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
pathlib.Path("/proc/sys/net/ipv6/conf/default/disable_ipv6").write_text("1")  # it would speak by itself
for words in ("link add out type veth peer name beyond", "addr add 10.9.9.1/24 dev out", "link set out up",
              "link set beyond up", "route add default via 10.9.9.2 dev out",
              "neigh add 10.9.9.2 lladdr 02:00:00:00:00:02 dev out"):
    subprocess.run(["ip", *words.split()], check=False, stderr=subprocess.DEVNULL)
seen = set()
packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(0x0003))
def look():
    while True:
        data = packets.recv(65536)[14:]
        if data[0] >> 4 == 4 and data[9] in (6, 17):
            head = (data[0] & 15) * 4
            if data[9] == 17 or data[head + 13] & 18 == 2:
                seen.add((data[9], socket.inet_ntoa(data[16:20]), int.from_bytes(data[head + 2:head + 4], "big")))
        elif data[0] >> 4 == 6:
            seen.add((data[6], "ipv6", 0))
threading.Thread(target=look, daemon=True).start()
import tests.render.test_rendering as here
print(json.dumps({**here.try_ways_out(sys.argv[1]), "packets": sorted(seen)}))
"""


def try_ways_out(into: str) -> dict[str, Any]:
    """A crawl of a page that tries them all; what both servers were asked for, and where they are."""
    with served_app(0) as other, served_app(1) as app:
        fill = {"OTHER": other.origin, "STUN": str(other.server_address[1])}
        markup, worker = WAYS_OUT, WORKER
        for name, value in fill.items():
            markup, worker = markup.replace(name, value), worker.replace(name, value)
        app.extra = markup
        app.files["/worker.js"] = 200, "text/javascript", worker
        app.files["/redirected"] = 302, "text/plain", f"{other.origin}/target"
        app.files["/led/to"] = 200, "text/html", "<p>Led to</p>"
        for path in ("/target", "/fetched", "/kept-alive", "/by-worker", "/prefetch", "/beacon", "/popup"):
            other.files[path] = 200, "text/plain", "here"
        other.files["/frame.html"] = 200, "text/html", "<script>fetch('/by-frame')</script>"
        stats = crawl(app, Path(into), render="always")
        asked = [*app.asked, *other.asked]
        ports = [server.server_address[1] for server in (app, other)]
    return {"pages": stats.pages, "requests": stats.requests, "asked": asked, "ports": ports, "other": other.origin}


@pytest.mark.skipif(os.geteuid() != 0, reason="a network namespace and its packets need root")
def test_nothing_leaves_but_by_the_requests_of_the_crawl(tmp_path: Path) -> None:
    command = ["unshare", "--net", sys.executable, "-c", INSIDE, str(tmp_path / "c")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if "unshare failed" in done.stderr:
        pytest.skip("no network namespaces here")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    paths = {path for _, path, *_ in found["asked"]}
    assert not any(is_browser for *_, is_browser in found["asked"])
    assert {method for method, *_ in found["asked"]} == {"GET"}
    assert len(found["asked"]) == found["requests"]
    assert {"/fetched", "/target", "/by-frame", "/led/to"} <= paths, "the crawl fetches what a page asks for"
    assert not paths & {"/beacon", "/popup", "/posted", "/form", "/socket", "/events", "/transport", "/image.png"}
    tcp, proxy = {port for protocol, _, port in found["packets"] if protocol == 6}, 9
    assert tcp <= {*found["ports"], proxy}
    assert {address for _, address, _ in found["packets"]} == {"127.0.0.1"}
    assert all(protocol == 6 for protocol, *_ in found["packets"]), "no UDP"


def test_browser_that_is_killed_again_and_again_loses_nothing(tmp_path: Path) -> None:
    kills = 0

    async def kill(running: Crawl) -> None:
        nonlocal kills
        asked = 6
        while kills < 2:
            await asyncio.sleep(0.02)
            if len(app.asked) > asked and (now := browsers()):
                for pid in now:
                    os.kill(pid, signal.SIGKILL)
                kills, asked = kills + 1, len(app.asked) + 4

    with served_app(20, bundle_bytes=2_000) as app:
        stats = crawl(app, tmp_path / "c", beside=kill)
    assert kills == 2
    assert stats.pages == 20
    assert records(tmp_path / "c")["conversion"] == 20
    assert problems(tmp_path / "c") == []
    assert browsers() == []


def browsers() -> list[int]:
    """The browsers that this process has started."""
    return [pid for pid in processes.descendants(os.getpid()) if is_main(pid)]


def is_main(pid: int) -> bool:
    words, status = processes.read_process(pid, "cmdline"), processes.read_process(pid, "status")
    return b"--lycosa-browser=" in words and b"--type=" not in words and b"State:\tZ" not in status


def test_page_whose_scripts_never_end_is_kept_as_it_was_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browser_link, "LIMITS", RenderLimits(page_s=1.0, read_s=1.0))
    with served_app(2) as app:
        app.files["/"] = 200, "text/html", "<div id=root></div><a href=/item/1>x</a><script>while (true) {}</script>"
        stats = crawl(app, tmp_path / "c")
    assert stats.pages == 2
    assert [event["url"] for event in events(tmp_path / "c", "render-failed")] == [f"{app.origin}/"]
    assert records(tmp_path / "c")["conversion"] == 1


def test_page_that_needs_a_refused_host_does_not_wait_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser_link, "LIMITS", RenderLimits(waits_s=20.0))  # after which the page is given up
    refused = "".join(f"<script src=http://10.9.8.7/{number}.js></script>" for number in range(5))
    words = "<script>document.getElementById('root').innerHTML = '<p>' + 'many words '.repeat(50)</script>"
    with served_app(1) as app:
        app.files["/"] = 200, "text/html", f"<div id=root></div>{refused}{words}"
        crawl(app, tmp_path / "c")
    assert events(tmp_path / "c", "render-failed") == []
    assert records(tmp_path / "c")["conversion"] == 1


def test_steps_are_done_and_tls_is_the_crawls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser_link, "LIMITS", RenderLimits(step_s=2.0))  # what a page without the link waits for it
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    page = """<button class=more>more</button><div id=root></div><script>
        document.querySelector(".more").onclick = () => fetch("/more.json").then(a => a.json()).then(urls => {
          root.innerHTML = urls.map(url => `<a href="${url}">${url}</a>`).join(""); });
        addEventListener("scroll", () => { root.innerHTML += "<a href=/scrolled>x</a>"; }, {once: true});
        document.body.style.height = "3000px";</script>"""
    with served_app(0, tls=context) as app:
        app.files["/"] = 200, "text/html", page
        app.files["/more.json"] = 200, "application/json", '["/clicked"]'
        for name in ("/clicked", "/scrolled"):
            app.files[name] = 200, "text/html", f"<p>{name} {'words ' * 100}</p>"
        steps = ["click .more", "wait a", "scroll 1"]
        stats = crawl(app, tmp_path / "c", ca_file=str(tmp_path / "ca.pem"), render_steps=steps)
    assert {each.path for each in app.asked} >= {"/clicked", "/scrolled", "/more.json"}
    assert stats.pages == 3


OF_FEATURES = (
    *("playwright", "apprise", "cryptography", "lycosa.render", "lycosa.sessions", "lycosa.identity", "lycosa.notify"),
    *("lycosa.crawl.requisites", "lycosa.web.requisites", "lycosa.crawl.externals", "lycosa.web.usage_files"),
    *("lycosa.recrawl", "lycosa.api.shell"),
)


def test_crawl_that_uses_no_feature_imports_none_and_a_missing_browser_is_a_sentence(tmp_path: Path) -> None:
    script = (
        "import sys, lycosa.cli\n"
        "try: lycosa.cli.main()\n"
        "except SystemExit as end: print('code', end.code)\n"
        f"print([name for name in sys.modules if name.startswith({OF_FEATURES})])"
    )
    with served_app(1) as app:
        words = [
            sys.executable,
            "-c",
            script,
            "crawl",
            app.origin,
            "--into",
            str(tmp_path / "c"),
            "--delay",
            "0",
            "--quiet",
        ]
        plain = subprocess.run(words, capture_output=True, text=True, check=True)
        environment = {**os.environ, "LYCOSA_CHROMIUM": "/no/such/browser"}
        missing = subprocess.run(
            [*words, "--render", "auto"], capture_output=True, text=True, env=environment, check=False
        )
    assert plain.stdout.splitlines()[-1] == "[]"
    assert "rendering needs Chromium" in missing.stderr
    assert "apt-get install chromium" in missing.stderr
    assert "Traceback" not in missing.stderr
