"""Answers the requests of a replay: its own pages, and archived documents made ready for a browser.

    PREFIX                     the start page; ?q= finds URLs
    PREFIX view/TIME/URL       a page as it was, in a frame below a banner
    PREFIX captures/URL        the captures of a URL
    PREFIX page/TIME/URL       the document in that frame; `frame` for one in a frame of it, `file` for anything else
    PREFIX save/TIME/URL       a document that a browser does not show, to be saved

TIME is 4 to 14 digits or `latest`; the capture nearest to it is taken, for links and images as for the page itself.

What holds for everything that was archived: it is sent with a policy that puts it into a sandbox, an origin of its own
without scripts, forms and plug-ins, and lets it load from the replay alone. Header fields of the archived answer are
not sent on, but for its type. A document is shown inside our frame only, whose policy keeps it from going anywhere
else: a browser that asks for one as a page of its own is sent to the frame. Nothing is ever fetched.
"""

import re
from hmac import compare_digest
from importlib.resources import files
from pathlib import Path
from urllib.parse import parse_qs, quote

from lycosa.errors import LycosaError, SettingsError
from lycosa.inspect import StoredPage
from lycosa.replay.captures import LATEST, Captures, nearest
from lycosa.replay.http import ReplayAnswer, ReplayRequest
from lycosa.replay.pages import (
    SANDBOX,
    absent_page,
    captures_page,
    message_page,
    start_page,
    view_page,
)
from lycosa.replay.rewrite import HtmlRewriter, ReplayAddresses, rewrite_css
from lycosa.web import SNIFF_BYTES, Media, MediaKind, charset_of, identify_media, media_kind, parse_url, to_utf8

_MOMENT = re.compile(r"(latest|[0-9]{4,14})/(.+)", re.DOTALL)
MAX_REDIRECTS = 16  # browsers give up after 20
_CONTENTS = ("page", "frame", "file", "save")
_HTML = "text/html; charset=utf-8"
_STATIC = {"style.css": "text/css; charset=utf-8", "replay.js": "text/javascript; charset=utf-8"}
_SHOWN = frozenset(
    (
        *(MediaKind.HTML, MediaKind.XHTML, MediaKind.XML, MediaKind.FEED),
        *(MediaKind.TEXT, MediaKind.IMAGE, MediaKind.AUDIO_VIDEO),
    )
)
_SHOWN_TYPES = frozenset(("application/json", "application/javascript", "application/ld+json"))
_NEVER_SENT = ("multipart/", "message/")  # a browser would look for documents in them, with headers of their own
_EVERYWHERE = (
    ("Cache-Control", "no-store"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-DNS-Prefetch-Control", "off"),
    ("Cross-Origin-Resource-Policy", "cross-origin"),  # a sandbox is another origin; whoever asks knows the path
)


class Replay:
    """The archive of the collection at `path`, below the path `prefix` of a server, which begins and ends with `/` and
    is known to the reader alone. Asked from one thread; close it."""

    def __init__(self, path: Path, *, prefix: str) -> None:
        self.path, self.prefix = path, prefix
        self._captures = Captures(path)

    def __repr__(self) -> str:
        return f"<Replay of {self.path}>"

    def close(self) -> None:
        self._captures.close()

    def answer(self, request: ReplayRequest) -> ReplayAnswer:
        """The answer to a request; it never raises for what a reader or a collection can cause."""
        if not compare_digest(request.target[: len(self.prefix)].encode(), self.prefix.encode()):
            words = "The address lacks the token, or has that of another run: take the link that was printed."
            headers = (("Content-Type", _HTML), ("Content-Security-Policy", "default-src 'none'"), *_EVERYWHERE)
            return ReplayAnswer(403, message_page("", "No access", words).encode(), headers)
        rest = request.target[len(self.prefix) :]
        try:
            self._captures.refresh()
            return self._route(rest, request)
        except SettingsError as error:
            return self._own(404, message_page(self.prefix, "This cannot be shown", str(error)), request)
        except LycosaError as error:
            return self._own(503, message_page(self.prefix, "The archive cannot be read", str(error)), request)

    def _route(self, rest: str, request: ReplayRequest) -> ReplayAnswer:
        if rest in _STATIC:
            body = (files("lycosa.replay") / rest).read_bytes()
            return ReplayAnswer(200, body, (("Content-Type", _STATIC[rest]), *_EVERYWHERE))
        path, _, query = rest.partition("?")
        if not path:
            return self._start(query, request)
        kind, _, behind = rest.partition("/")
        if kind == "captures":
            return self._list(behind, request)
        found = _MOMENT.fullmatch(behind)
        if found is None or kind not in ("view", *_CONTENTS):
            return self._own(404, message_page(self.prefix, "No such page", "This address leads nowhere."), request)
        moment, url = found[1], self._captures.meant(found[2])
        dest = request.headers.get("sec-fetch-dest", "")
        if kind in ("page", "frame", "file") and dest == "document":
            return self._moved("view", moment, url)
        if kind == "view" and dest in ("iframe", "frame"):
            return self._moved("frame", moment, url)
        return self._capture(kind, moment, url, request)

    def _start(self, query: str, request: ReplayRequest) -> ReplayAnswer:
        asked = {name: values[-1] for name, values in parse_qs(query).items()}
        words = asked.get("q", "").strip()
        if words and "after" not in asked and "/" in words and (url := parse_url(words)) and self._captures.of(words):
            return self._moved("view", LATEST, url.href)
        found = self._captures.find(words, asked.get("after", ""))
        page = start_page(self.prefix, self.path.resolve().name, self._captures.stats(), words, found)
        return self._own(200, page, request)

    def _list(self, text: str, request: ReplayRequest) -> ReplayAnswer:
        url = self._captures.meant(text)
        captures = self._captures.of(url)
        if not captures:
            return self._absent(url, request)
        return self._own(200, captures_page(self.prefix, url, captures), request)

    def _capture(self, kind: str, moment: str, url: str, request: ReplayRequest) -> ReplayAnswer:
        captures = self._captures.of(url)
        if not captures:
            return self._absent(url, request, is_own=kind in ("view", "page", "frame"))
        number = nearest(captures, moment)
        page = captures[number]
        if page.is_redirect and (target := parse_url(page.leads_to)) and target.href != url:
            if kind == "view" and self._leads_in_a_circle(moment, target.href):
                words = f"{url} leads in a circle, or through more than {MAX_REDIRECTS} redirects, and never to a page."
                return self._own(404, message_page(self.prefix, "No page behind this redirect", words), request)
            return self._moved(kind, moment, target.href)
        if kind == "view":
            is_shown = _is_shown(page)
            return self._own(200, view_page(self.prefix, captures, number, moment, is_shown=is_shown), request)
        return self._document(kind, moment, page, request)

    def _leads_in_a_circle(self, moment: str, url: str) -> bool:
        """Whether archived redirects lead on from a URL for ever, or for longer than a browser follows them."""
        for _ in range(MAX_REDIRECTS):
            captures = self._captures.of(url)
            page = captures[nearest(captures, moment)] if captures else None
            target = parse_url(page.leads_to) if page is not None and page.is_redirect else None
            if target is None or target.href == url:
                return False
            url = target.href
        return True

    def _document(self, kind: str, moment: str, page: StoredPage, request: ReplayRequest) -> ReplayAnswer:
        """An archived document, with the policy under which it is shown."""
        body = page.body
        media = identify_media(page.headers.get("content-type"), body[:SNIFF_BYTES])
        headers = [("Content-Security-Policy", self._policy(kind, request.host)), *_EVERYWHERE]
        headers.append(("Access-Control-Allow-Origin", "null"))  # of a sandbox, which may so load its own fonts
        status = page.status if 400 <= page.status < 600 else 200
        if kind == "save":
            return ReplayAnswer(200, body, (("Content-Type", "application/octet-stream"), _saved_as(page), *headers))
        body, content_type = self._made_ready(kind, moment, page.url, body, media)
        return ReplayAnswer(status, body, (("Content-Type", content_type), *headers))

    def _made_ready(self, kind: str, moment: str, url: str, body: bytes, media: Media) -> tuple[bytes, str]:
        """The body with its addresses rewritten, and its type. What is rewritten is sent in UTF-8."""
        is_xml = media.kind is MediaKind.XHTML or media.essence == "image/svg+xml"
        start = f"{self.prefix}%s/{moment}/"
        if media.kind is MediaKind.HTML or is_xml:
            charset = charset_of(body, media)
            to = ReplayAddresses(start % "view", start % "frame", start % "file", is_inner=kind != "page")
            text = to_utf8(body, charset).decode("utf-8", "replace")
            made = HtmlRewriter(url, charset, to, is_xml=is_xml).rewrite(text).encode("utf-8", "replace")
            return made, f"{media.essence}; charset=utf-8"
        if media.essence == "text/css":
            text = to_utf8(body, charset_of(body, media)).decode("utf-8", "replace")
            return rewrite_css(
                text, lambda href: _joined(href, url, start % "file")
            ).encode(), "text/css; charset=utf-8"
        if media.kind in (MediaKind.TEXT, MediaKind.FEED, MediaKind.XML) or media.essence.startswith("text/"):
            return body, f"{media.essence}; charset={charset_of(body, media)}"
        return body, "application/octet-stream" if media.essence.startswith(_NEVER_SENT) else media.essence

    def _absent(self, url: str, request: ReplayRequest, *, is_own: bool = True) -> ReplayAnswer:
        if not is_own:
            headers = (("Content-Type", "text/plain"), ("Access-Control-Allow-Origin", "null"), *_EVERYWHERE)
            return ReplayAnswer(404, b"not in this collection\n", headers)
        page = absent_page(self.prefix, url, self._captures.says(url), self._captures.neighbours(url))
        return self._own(404, page, request)

    def _moved(self, kind: str, moment: str, url: str) -> ReplayAnswer:
        where = quote(f"{self.prefix}{kind}/{moment}/{url}", safe="%/:?#[]@!$&'()*+,;=-._~|")
        return ReplayAnswer(302, b"", (("Location", where), ("Access-Control-Allow-Origin", "null"), *_EVERYWHERE))

    def _own(self, status: int, page: str, request: ReplayRequest) -> ReplayAnswer:
        """A page of our own: no frame of another site shows it, and it shows nothing but replayed pages."""
        own = self._source(request.host)
        policy = (
            f"default-src 'none'; style-src {own}; script-src {own}; frame-src {own}; form-action {own}; "
            "base-uri 'none'; frame-ancestors 'self'"
        )
        return ReplayAnswer(
            status, page.encode(), (("Content-Type", _HTML), ("Content-Security-Policy", policy), *_EVERYWHERE)
        )

    def _policy(self, kind: str, host: str) -> str:
        own = self._source(host)
        shown_by = "; frame-ancestors 'self'" if kind == "page" else ""
        return (
            f"sandbox {SANDBOX}; default-src 'none'; img-src {own} data:; media-src {own} data:; font-src {own} data:; "
            f"style-src {own} 'unsafe-inline'; frame-src {own}; object-src {own}; base-uri 'none'; form-action 'none'"
            + shown_by
        )

    def _source(self, host: str) -> str:
        """What a policy calls the replay. A policy cannot name an IPv6 address."""
        return "'self'" if host.startswith("[") else f"{host}{self.prefix}"


def _is_shown(page: StoredPage) -> bool:
    essence = page.content_type or page.headers.get("content-type", "")
    is_text = essence.startswith("text/") or essence in _SHOWN_TYPES or not essence
    return is_text or media_kind(essence) in _SHOWN


def _joined(href: str, base: str, start: str) -> str | None:
    """An address in a style sheet as it is replayed."""
    if href.lstrip().startswith(("#", "data:")) or not href.strip():
        return href
    url = parse_url(href, base)
    return start + url.href + ("#" + href.partition("#")[2] if "#" in href else "") if url else None


def _saved_as(page: StoredPage) -> tuple[str, str]:
    """The name that a browser proposes: letters, digits and a few signs of the last part of the path."""
    last = page.url.partition("?")[0].rstrip("/").rpartition("/")[2]
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", last).strip("._-")[-100:] or "document"
    return "Content-Disposition", f'attachment; filename="{name}"'
