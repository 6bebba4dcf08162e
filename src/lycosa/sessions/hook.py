"""What a session does to a crawl: it adds credentials to requests, and looks at answers that ask for them.

`Sessions` is the hook of requests. It computes the credentials of each request from the origin of its URL alone, be it
a page, a redirect's target, robots.txt or a sitemap; the archive gets the request with names in place of secrets.
`AnswerCheck` stands before the handler of a kind of request: an answer that is meant for somebody who is not logged in
becomes a failure `not-logged-in`, which is asked for again by the retry table like any other, and is never a page.
"""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from lycosa.crawl import Engine, LeaseAnswer, ReadPage, RequestHandler
from lycosa.frontier import Lease, RequestKind
from lycosa.records import Failure, PrivateParts, Request, Response
from lycosa.sessions.credentials import OriginCredentials, Secrets, SentField, credentials_by_origin, origin_of
from lycosa.settings import CrawlSettings

UNAUTHORIZED = 401
AUTHORIZATION = "Authorization"


class Sessions:
    """The credentials of a crawl."""

    def __init__(self, by_origin: dict[str, OriginCredentials]) -> None:
        self._by_origin = by_origin

    def __repr__(self) -> str:
        return f"<Sessions at {len(self._by_origin)} origins>"

    def prepare(self, request: Request, kind: RequestKind) -> Request:
        """The request with what its origin gets."""
        credentials = self._by_origin.get(origin_of(request.url))
        if credentials is None:
            return request
        fields = list(credentials.fields)
        if credentials.password is not None:
            target = request.url[len(origin_of(request.url)) :]
            if answer := credentials.password.answer(request.method, target):
                fields.append(SentField(AUTHORIZATION, answer, credentials.password_name))
        return _with_private(request, fields, credentials)

    def is_refused(self, request: Request | None, response: Response) -> bool:
        """Does the answer ask for credentials that can be given?"""
        if request is None or response.failure is not None or response.status != UNAUTHORIZED:
            return False
        credentials = self._by_origin.get(origin_of(request.url))
        if credentials is None or credentials.password is None:
            return False
        was_answered = any(name == AUTHORIZATION for name, _ in request.headers)
        return credentials.password.learn(response.headers.get("www-authenticate", ""), was_answered=was_answered)


def _with_private(request: Request, fields: list[SentField], credentials: OriginCredentials) -> Request:
    """The request with these fields in place of those of the same names; secrets are in its private parts alone."""
    names = {field.name.lower() for field in fields}
    kept = [field for field in request.headers if field[0].lower() not in names]
    headers = (*kept, *((field.name, field.recorded) for field in fields))
    secret = tuple((field.name, field.value) for field in fields if not field.is_open)
    private = None
    if secret or credentials.certificate:
        private = PrivateParts(secret, certificate=credentials.certificate, key_password=credentials.key_password)
    return msgspec.structs.replace(request, headers=headers, private=private)


class AnswerCheck:
    """Handles a kind of request as `handler` does, but for answers that are not meant for who is logged in."""

    def __init__(self, handler: RequestHandler, sessions: Sessions) -> None:
        self._handler, self._sessions = handler, sessions

    def request(self, lease: Lease) -> Request:
        return self._handler.request(lease)

    def handle(self, answer: LeaseAnswer) -> ReadPage | None:
        if self._sessions.is_refused(answer.request, answer.response):
            answer.response = msgspec.structs.replace(answer.response, failure=Failure.NOT_LOGGED_IN)
        return self._handler.handle(answer)


def add_sessions(engine: Engine, settings: CrawlSettings) -> None:
    """Gives a crawl the sessions of its settings. Raises SettingsError where a secret is missing."""
    secrets = Secrets(engine.collection.path, settings.credentials)
    sessions = Sessions(credentials_by_origin(settings, secrets))
    engine.prepare_requests(sessions)
    engine.wrap_handlers(lambda handler: AnswerCheck(handler, sessions))


def require_secrets(settings: CrawlSettings, collection: Path, given: Mapping[str, str]) -> None:
    """Raises SettingsError where a secret that the settings name is missing; those `given` are not saved yet."""
    credentials_by_origin(settings, Secrets(collection, settings.credentials, given))
