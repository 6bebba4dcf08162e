"""What a session does to a crawl: it adds credentials to requests, and looks at answers that ask for them.

`Sessions` is the hook of requests. It computes the credentials of each request from the origin of its URL alone, be it
a page, a redirect's target, robots.txt or a sitemap; the archive gets the request with names in place of secrets.
`AnswerCheck` stands before the handler of a kind of request: an answer that is meant for somebody who is not logged in
becomes a failure `not-logged-in`, which is asked for again by the retry table like any other, and is never a page.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from lycosa.crawl import Engine, LeaseAnswer, ReadPage, RequestHandler, redirect_location
from lycosa.frontier import Lease, RequestKind
from lycosa.records import Failure, PrivateParts, Request, Response
from lycosa.sessions.credentials import OriginCredentials, Proxies, Secrets, SentField, credentials_by_origin, origin_of
from lycosa.settings import CrawlSettings, read_login
from lycosa.store import REDIRECTS
from lycosa.web import domain_of, parse_url, split_url

if TYPE_CHECKING:
    from lycosa.sessions.jars import CookieJar, CookieJars
    from lycosa.sessions.login import Logins

UNAUTHORIZED = 401
AUTHORIZATION = "Authorization"
JAR_FIELD = "Cookie", "[redacted: cookies of the site]"
NO_CREDENTIALS = OriginCredentials()
TOLD_MOST = 100


class Sessions:
    """The credentials of a crawl."""

    def __init__(
        self, by_origin: dict[str, OriginCredentials], jars: "CookieJars | None" = None, proxies: Sequence[str] = ()
    ) -> None:
        self._by_origin, self._jars, self._proxies = by_origin, jars, Proxies(proxies)
        self.logins: Logins | None = None
        self._left: set[tuple[str, str]] = set()

    def __repr__(self) -> str:
        return f"<Sessions at {len(self._by_origin)} origins>"

    def prepare(self, request: Request, kind: RequestKind) -> Request:
        """The request with what its origin gets."""
        origin = origin_of(request.url)
        credentials = self._by_origin.get(origin)
        jar = None if self._jars is None else self._jars.of(request.url)
        proxy = self._proxies.of(request.host)
        if credentials is None and jar is None and not proxy:
            return request
        credentials = credentials or NO_CREDENTIALS
        fields = list(credentials.fields)
        if credentials.password is not None:
            answer = credentials.password.answer(request.method, request.url[len(origin) :])
            if answer is not None:
                fields.append(SentField(AUTHORIZATION, answer, credentials.password_name))
        session = 0 if self.logins is None else self.logins.session_of(origin)
        prepared = _with_private(request, fields, credentials, jar, session)
        return self._proxied(prepared, proxy) if proxy else prepared

    def _proxied(self, request: Request, proxy: str) -> Request:
        """The request through a proxy, which gets its own credentials and none of the others: it only tunnels."""
        user = self._by_origin.get(proxy, NO_CREDENTIALS).proxy_user
        private = msgspec.structs.replace(request.private or PrivateParts(), proxy=proxy, proxy_user=user)
        return msgspec.structs.replace(request, private=private)

    def take(self, request: Request | None, response: Response) -> None:
        """Remembers the cookies of an answer."""
        if self._jars is not None and request is not None and "set-cookie" in response.headers:
            self._jars.changed(request.url)

    def leaves(self, request: Request | None, response: Response) -> tuple[str, str] | None:
        """From and to which origin a redirect leads that leaves credentials behind; told once."""
        if request is None or response.status not in REDIRECTS or len(self._left) >= TOLD_MOST:
            return None
        origin, target = origin_of(request.url), parse_url(redirect_location(response), request.url)
        if target is None or origin not in self._by_origin or (found := (origin, origin_of(target.href))) in self._left:
            return None
        self._left.add(found)
        return None if found[1] in self._by_origin else found

    def is_refused(self, request: Request | None, response: Response) -> bool:
        """Does the answer ask for credentials that can be given?"""
        if request is None or response.failure is not None:
            return False
        credentials = self._by_origin.get(origin_of(request.url))
        if credentials is None or credentials.password is None:
            return False
        was_answered = any(name == AUTHORIZATION for name, _ in request.headers)
        if response.status != UNAUTHORIZED:
            credentials.password.has_worked |= was_answered
            return False
        return credentials.password.learn(response.headers.get("www-authenticate", ""), was_answered=was_answered)


def _with_private(
    request: Request, fields: list[SentField], credentials: OriginCredentials, jar: "CookieJar | None", session: int
) -> Request:
    """The request with these fields in place of those of the same names; secrets are in its private parts alone."""
    names = {field.name.lower() for field in fields}
    kept = [field for field in request.headers if field[0].lower() not in names]
    headers = [*kept, *((field.name, field.recorded) for field in fields)]
    secret: list[tuple[str, str | None]] = [(field.name, field.value) for field in fields if not field.is_open]
    if jar is not None and jar.has_cookies:
        headers.append(JAR_FIELD)
        secret.append(("Cookie", None))
    private = None
    if secret or jar is not None or credentials.certificate:
        private = PrivateParts(
            tuple(secret),
            jar=None if jar is None else jar.share,
            certificate=credentials.certificate,
            key_password=credentials.key_password,
            session=session,
        )
    return msgspec.structs.replace(request, headers=tuple(headers), private=private)


class AnswerCheck:
    """Handles a kind of request as `handler` does, except answers that are meant for somebody who is not logged in."""

    def __init__(self, handler: RequestHandler, sessions: Sessions, log: Callable[..., None]) -> None:
        self._handler, self._sessions, self._log = handler, sessions, log

    def request(self, lease: Lease) -> Request:
        return self._handler.request(lease)

    def handle(self, answer: LeaseAnswer) -> ReadPage | None:
        self._sessions.take(answer.request, answer.response)
        if left := self._sessions.leaves(answer.request, answer.response):
            self._log("credentials-not-sent", redirect_from=left[0], to=left[1])
        logins = self._sessions.logins
        is_lost = logins is not None and logins.is_lost(answer)
        if is_lost or self._sessions.is_refused(answer.request, answer.response):
            answer.response = msgspec.structs.replace(answer.response, failure=Failure.NOT_LOGGED_IN)
        return self._handler.handle(answer)


def add_sessions(engine: Engine, settings: CrawlSettings) -> None:
    """Gives a crawl the sessions of its settings. Raises SettingsError where a secret is missing."""
    secrets = Secrets(engine.collection.path, settings.credentials)
    sessions = Sessions(credentials_by_origin(settings, secrets), _jars(engine, settings), settings.proxies)
    engine.features.prepare_requests(sessions)
    if settings.logins:
        from lycosa.sessions.login import Logins  # lazy: for crawls that log in by a form

        sessions.logins = Logins(engine, [read_login(table) for table in settings.logins], secrets)
        engine.features.observe(sessions.logins)
        engine.features.handle(RequestKind.LOGIN, sessions.logins)
    engine.features.wrap_handlers(lambda handler: AnswerCheck(handler, sessions, engine.events.write))


def _jars(engine: Engine, settings: CrawlSettings) -> "CookieJars | None":
    if not (settings.cookies or settings.cookie_files or settings.logins):
        return None
    from lycosa.sessions.jars import CookieJars  # lazy: for crawls with cookies

    own = [seed for seed in engine.seeds if engine.frontier.owns(seed.host)]
    known = [seed.host for seed in own] if settings.cookie_files else []
    known += [split_url(read_login(table).url).host for table in settings.logins]
    jars = CookieJars(engine.collection.state, None if settings.cookies else frozenset(map(domain_of, known)))
    for file in settings.cookie_files:
        jars.take_in(Path(file), own)
    engine.committer.join(jars)
    return jars


def require_secrets(settings: CrawlSettings, collection: Path, given: Mapping[str, str]) -> None:
    """Raises SettingsError where a secret that the settings name is missing; those `given` are not saved yet."""
    secrets = Secrets(collection, settings.credentials, given)
    credentials_by_origin(settings, secrets)
    for table in settings.logins:
        for _, value in read_login(table).fields:
            secrets.fill(value)
    if settings.cookie_files:
        from lycosa.sessions.jars import read_cookie_file  # lazy: for crawls with cookies

        for file in settings.cookie_files:
            read_cookie_file(Path(file))
