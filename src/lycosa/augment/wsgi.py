"""WSGI middleware: serves tables of links and of volatile information for an application that knows nothing of them.

    application = Tables(application, volatile=".visitors")

A request for `/page.tol` that the application does not answer itself asks it for the document and answers with that
document's table (`augment.serving`); documents get a `Link` header that tells of it. Everything else passes untouched.
"""

from collections.abc import Callable, Iterable
from typing import Any

from lycosa.augment import serving
from lycosa.augment.document import Wanted

Environ = dict[str, Any]
StartResponse = Callable[..., Any]
Application = Callable[[Environ, StartResponse], Iterable[bytes]]
# Of the request for a table these do not concern its document.
_CONDITIONS = ("HTTP_IF_NONE_MATCH", "HTTP_IF_MODIFIED_SINCE", "HTTP_RANGE", "HTTP_ACCEPT_ENCODING", "HTTP_IF_RANGE")


class Tables:
    """See the module. `site` is the origin at which the application is published, `volatile` a CSS selector."""

    def __init__(self, application: Application, *, site: str = "", volatile: str = "") -> None:
        self._application, self._wanted = application, Wanted(site, volatile)

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if not serving.word_of(path) or environ.get("REQUEST_METHOD") not in ("GET", "HEAD"):
            return self._application(environ, _telling(start_response, path))
        asking = serving.Asking(path, self._wanted, environ.get("HTTP_IF_NONE_MATCH", ""))
        while asking.path is not None:
            asking.heard(self._ask(environ, asking.path))
        start_response(asking.reply.status, asking.reply.headers)
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [asking.reply.body]

    def _ask(self, environ: Environ, path: str) -> serving.Reply | None:
        """What the application answers to a GET of `path`; None for a body that is too long."""
        asked = {name: value for name, value in environ.items() if name not in _CONDITIONS}
        asked |= {"PATH_INFO": path, "REQUEST_METHOD": "GET"}
        began: list[tuple[str, list[tuple[str, str]]]] = []
        pieces: list[bytes] = []

        def start(status: str, headers: list[tuple[str, str]], exc_info: object = None) -> Callable[[bytes], object]:
            began[:] = [(status, headers)]
            return pieces.append

        answer = self._application(asked, start)
        try:
            size = 0
            for piece in answer:
                pieces.append(piece)
                size += len(piece)
                if size > serving.MAX_DOCUMENT_BYTES:
                    return None
        finally:
            if (close := getattr(answer, "close", None)) is not None:
                close()
        return serving.Reply(*began[0], b"".join(pieces)) if began else None


def _telling(start_response: StartResponse, path: str) -> StartResponse:
    """`start_response` that adds the Link header to documents."""

    def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
        content_type = next((value for name, value in headers if name.lower() == "content-type"), "")
        if (field := serving.link_field(path, status, content_type)) is not None:
            headers = [*headers, ("Link", field)]
        try:
            return start_response(status, headers, exc_info) if exc_info else start_response(status, headers)
        finally:
            exc_info = None  # a traceback that refers to this frame

    return start
