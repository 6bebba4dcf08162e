"""A replay in Chromium: pages with their frames and styles, and pages that try to get out."""

import contextlib
import socketserver
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lycosa.errors import LycosaError
from lycosa.importing import import_archives
from proof.ground.browser import Browser, browser, chromium
from tests.cli.command import started
from tests.importing.foreign import answer, record, write

SITE = "https://site.example/"
STYLE = b"a { font: 50px f; position: fixed; top: 0; left: 0 }"


class LiveWeb(socketserver.ThreadingTCPServer):
    """What a replayed page must not reach: it counts whoever connects."""

    allow_reuse_address, daemon_threads = True, True

    def __init__(self) -> None:
        self.visits = 0
        super().__init__(("127.0.0.2", 0), LiveVisit)

    @property
    def url(self) -> str:
        return f"http://127.0.0.2:{self.server_address[1]}/"


class LiveVisit(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        assert isinstance(self.server, LiveWeb)
        self.server.visits += 1
        self.request.recv(4096)
        self.request.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nlive")


HOSTILE = """<html><head><title>before</title>
<link rel=prefetch href=LIVE1><link rel=dns-prefetch href=LIVE2><link rel=preconnect href=LIVE3>
<link rel=stylesheet href=LIVE4><style>@\\69mport "LIVE5"; p { background: u\\72l(LIVE6) }</style>
<script>document.title = "taken over"; document.body.innerHTML = "taken over"; new Image().src = "LIVE7"</script>
<meta http-equiv=refresh content="0; url=LIVE8"></head>
<body onload="document.title = 'taken over'; location = 'LIVE9'" background=LIVE10>
<img src=x onerror="fetch('LIVE11')"><img src="LIVE12"><svg><script>top.location = 'LIVE13'</script></svg>
<p style="background: url(LIVE14)">words</p><iframe src=LIVE15></iframe><iframe srcdoc="<img src=LIVE16>"></iframe>
<object data=LIVE17></object><embed src=LIVE18><video poster=LIVE19 src=LIVE20 autoplay></video>
<div><template shadowrootmode=open>
<style>@import "LIVE22";</style><img src="LIVE23"></template></div>
<form action=LIVE24 id=f><input autofocus name=x onfocus="document.forms[0].submit()"></form>
<iframe src="START"></iframe><iframe src="javascript:top.document.title='taken over'"></iframe>
<math><mtext><table><mglyph><style><img src="LIVE25"></style></mglyph></table></mtext></math>
<noscript><p title="</noscript><img src=LIVE26>"></noscript><img src='x"><img src=LIVE27>'>
</body></html>"""


def hostile(live: str, start: str) -> bytes:
    return HOSTILE.replace("LIVE", live).replace("START", start).encode()


@contextlib.contextmanager
def replayed(folder: Path, *records: bytes) -> Iterator[str]:
    """A collection of these records, served by the command: its link."""
    import_archives([write(folder / "a.warc.gz", *records)], folder / "c")
    process = started("replay", folder / "c", "--port", "0", "--token", "the-token")
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.communicate(timeout=120)


def text_of(page: Browser, part: str) -> str:
    return "".join(text for url, text in page.texts().items() if part in url)


@pytest.mark.slow
def test_list_of_pages_is_stacked_on_a_narrow_screen(tmp_path: Path) -> None:
    try:
        chromium()
    except LycosaError as error:
        pytest.skip(str(error))
    wide = "document.querySelector('td').getBoundingClientRect().width"
    cut = "document.querySelector('.panel').scrollWidth - document.querySelector('.panel').clientWidth"
    with replayed(tmp_path, record("response", f"{SITE}{'long/' * 12}", answer(b"a"))) as link, browser() as page:
        page.resize(400)
        page.open(link)
        assert page.evaluate(wide) > 300
        assert page.evaluate(cut) <= 0


@pytest.mark.slow
def test_pages_are_shown_with_their_styles_and_frames_and_none_gets_out(tmp_path: Path) -> None:
    try:
        chromium()
    except LycosaError as error:
        pytest.skip(str(error))
    with LiveWeb() as live:
        threading.Thread(target=live.serve_forever, daemon=True).start()
        records = (
            record("response", SITE, answer(b"<link rel=stylesheet href=s.css><a href='b#low'>to b</a>")),
            record("response", f"{SITE}s.css", answer(STYLE, Content_Type="text/css")),
            record("response", f"{SITE}b", answer(b"<iframe src=inner></iframe><p style='height: 5000px'><p id=low>")),
            record("response", f"{SITE}inner", answer(b"<p>the inner page</p>")),
            record("response", f"{SITE}evil", answer(hostile(live.url, "/the-token/"))),
        )  # fmt: skip
        with replayed(tmp_path, *records) as link, browser() as page:
            page.open(f"{link}view/latest/{SITE}")
            page.click(60, 70)  # the style sheet puts the link there
            assert page.url.endswith(f"{SITE}b#low"), "a link leads to the view of its page"
            assert "the inner page" in text_of(page, "/inner")
            assert any(url.endswith("b#low") for url in page.texts() if "/page/" in url), "the frame is at its part"

            page.open(f"{link}view/latest/{SITE}evil", settle_s=1.0)

            assert page.url == f"{link}view/latest/{SITE}evil"
            texts = page.texts()
            assert "words" in text_of(page, "/page/")
            assert not any("<title>taken over" in text or "<body>taken over" in text for text in texts.values())
            assert page.evaluate("document.title").startswith("before")
            assert not any(f"{link}page" in text and "URL, host" in text for text in texts.values())
            page.open(f"{link}page/latest/{SITE}evil")
            assert "/view/" in page.url, "asked for as a page of its own it goes back into the frame"
            assert live.visits == 0
            page.open(live.url)
            assert live.visits > 0, "the browser could have reached it"
