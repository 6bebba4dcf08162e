"""What cannot be answered is said in a sentence: as `{"detail": …}` to whoever asked the API, on a page to others."""

from typing import Any, Protocol

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError

from lycosa.errors import LycosaError, NoPage, SettingsError


class MessagePage(Protocol):
    """Renders a page that says one thing."""

    def __call__(self, template: str, *, code: int, **values: Any) -> Response: ...


def add_problems(app: FastAPI, render: MessagePage) -> None:
    """Adds the answers to whatever goes wrong."""

    def tell(request: Request, status: int, title: str, says: str, detail: object = None) -> Response:
        if request.url.path.startswith("/api/"):
            answer = msgspec.json.encode({"detail": detail or plain_text(says)})
            return Response(answer, status, media_type="application/json")
        return render("message.html", code=status, title=title, says=plain_text(says))

    @app.exception_handler(404)
    def missing(request: Request, _: Exception) -> Response:
        return tell(request, 404, "There is no such page", f"{request.url.path} is not a page of this server.")

    @app.exception_handler(RequestValidationError)
    def refuse(request: Request, error: RequestValidationError) -> Response:
        """Says what is wrong, without the input, which may hold anything."""
        found = [{"loc": [plain_text(str(name)) for name in e["loc"]], "msg": e["msg"]} for e in error.errors()]
        says = "; ".join(f"{each['loc'][-1]}: {each['msg']}" for each in found)
        return tell(request, 422, "This cannot be asked", says, found)

    @app.exception_handler(LycosaError)
    def explain(request: Request, error: LycosaError) -> Response:
        status = 404 if isinstance(error, NoPage) else 400 if isinstance(error, SettingsError) else 503
        return tell(request, status, "This cannot be shown", str(error))


def plain_text(text: str) -> str:
    """The text with its halves of characters, which UTF-8 cannot have, as escapes."""
    return text.encode("utf-8", "backslashreplace").decode()
