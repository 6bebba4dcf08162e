"""Form logins: a crawl fills in a form before it asks for the pages behind it, and again when the session is lost.

    OUT ──► BUSY (form page, form, page behind it) ──► IN ──► OUT when an answer shows that the session is lost
               └──► OUT, and after some tries FAILED: the hosts behind it are given up until the next run

Every step is a request of its host like any other, in its turn, with its slots and its delay, through the guard and the
downloader, and is archived without what was filled in. The host's robots.txt is read before, but it does not apply to
the login itself: the user names that URL, as somebody does who types into the form. Meanwhile the URLs behind the login
stay queued. A login is useless when no page was answered well before its session was lost; so many in a row end it, so
that no site can keep a crawl busy with logging in. Secrets go to the login's own origin alone.
"""

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

import msgspec

from lycosa.crawl import Engine, FetchObserver, LeaseAnswer, ReadPage, decoded_body, redirect_location
from lycosa.errors import SettingsError
from lycosa.fetch import RetryRule, parse_retry_after, retry_rule, retry_wait
from lycosa.frontier import KEY_END, HostJob, Lease, RequestKind
from lycosa.records import Failure, PrivateParts, Request, Response
from lycosa.sessions.credentials import Secrets, origin_of
from lycosa.settings import LoginRule
from lycosa.store import REDIRECTS
from lycosa.web import BUCKET_BYTES, DropReason, ShapeFilter, Url, UrlLimits, parse_url, url_key

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

LOGIN_TRIES = 2  # of a form that is refused; more may lock the account
USELESS_MOST = 5
MAX_HOPS = 5
AGAIN_S = 10.0  # between two tries
HOLD_S = 0.25  # how long other requests are held back before they ask whether the login is over
PAGE_BYTES = 4 << 20
LOGIN_FAILED = "login-failed"
BEHIND = frozenset({RequestKind.PAGE, RequestKind.REVISIT, RequestKind.SITEMAP, RequestKind.REQUISITE})
FORM_TYPE = ("Content-Type", "application/x-www-form-urlencoded")
NOT_SENT = frozenset({"button", "file", "image", "reset"})  # types of controls that say nothing by themselves
LOGOUT_NAMES = frozenset(
    "logout log-out log_out logoff log-off log_off signout sign-out sign_out signoff sign-off sign_off".split()
)


class LoginState(Enum):
    OUT = "out"
    BUSY = "busy"
    IN = "in"
    FAILED = "failed"


class LoginStep(NamedTuple):
    """The request under way: the form page, or with a `body` the form, or the page behind it (`is_check`)."""

    url: str
    body: bytes | None = None
    is_check: bool = False
    hops: int = 0


class FilledForm(NamedTuple):
    """A form ready to be sent; `problem` says why it cannot be."""

    url: str = ""
    body: bytes = b""
    problem: str = ""


class FormLogin:
    """One login. `number` counts its sessions, so that a late answer of an earlier one does not end a later one."""

    def __init__(self, rule: LoginRule, fields: Mapping[str, str]) -> None:
        self.rule, self.fields = rule, fields
        if (url := parse_url(rule.url)) is None:
            raise SettingsError(f"logins: {rule.url[:60]} is no URL that can be fetched")
        self.url, self.origin = url, origin_of(url.href)
        self.state, self.step = LoginState.OUT, LoginStep(url.href)
        self.number = self.tries = self.useless = 0
        self.not_before = 0.0
        self._lost_url = ShapeFilter(UrlLimits(exclude=(rule.lost_url,))) if rule.lost_url else None

    def __repr__(self) -> str:
        return f"<FormLogin {self.rule.url} {self.state.value} number={self.number}>"

    def leads_to_login(self, url: Url) -> bool:
        """Does a redirect to this URL say that one has to log in?"""
        if url.href.partition("?")[0] == self.url.href.partition("?")[0]:
            return True
        return self._lost_url is not None and self._lost_url.reason(url) is DropReason.EXCLUDED

    def shows_loss(self, response: Response, body: bytes) -> bool:
        """Is the answer meant for somebody who is not logged in?"""
        if response.status in REDIRECTS:
            target = parse_url(redirect_location(response), response.url)
            return target is not None and self.leads_to_login(target)
        if self.rule.lost_status and str(response.status) in self.rule.lost_status.split():
            return True
        return bool(self.rule.lost_text) and self.rule.lost_text.encode() in body


class Logins(FetchObserver):
    """The logins of a crawl: an observer of its fetches, and the handler of their requests."""

    def __init__(self, engine: Engine, rules: list[LoginRule], secrets: Secrets) -> None:
        self._shard, self._frontier, self._pages = engine.shard, engine.frontier, engine.pages
        self._by_origin: dict[str, FormLogin] = {}
        self._by_own_origin: dict[str, FormLogin] = {}
        for rule in rules:
            login = FormLogin(rule, {name: secrets.fill(value) for name, value in rule.fields})
            self._by_origin |= dict.fromkeys(rule.origins, login)
            self._by_own_origin[login.origin] = login
        engine.shard.link_filter.filters.append(LogoutFilter(self._by_origin))

    def session_of(self, origin: str) -> int:
        """The number of the session that requests to an origin are under."""
        return login.number if (login := self._by_origin.get(origin)) is not None else 0

    # before a request

    def started(self, lease: Lease) -> Lease:
        """Holds URLs back while nobody is logged in: their lease comes back as cancelled, and they are still queued."""
        login = self._by_origin.get(lease.host.origin)
        if login is None or login.state is LoginState.IN or lease.kind not in BEHIND or lease.failure is not None:
            return lease
        now = self._shard.now()
        if login.state is LoginState.FAILED:
            self._frontier.host_control.give_up(lease.host, LOGIN_FAILED, now)
        elif login.state is LoginState.OUT and login.not_before <= now:
            self._begin(login, now)
        else:
            wait_s = max(HOLD_S, login.not_before - now)
            self._frontier.host_control.make_wait(
                lease.host, now, wait_s=wait_s, reason="login", now_unix=self._shard.now_unix()
            )
        return msgspec.structs.replace(lease, failure=Failure.CANCELLED, detail="waits for a login")

    def ended(self, lease: Lease, response: Response, page: ReadPage | None) -> None:
        if lease.kind is RequestKind.LOGIN and response.failure is Failure.CANCELLED:
            self._by_own_origin[lease.host.origin].state = LoginState.OUT

    def _begin(self, login: FormLogin, now: float) -> None:
        if not self._frontier.owns(login.url.host):
            self._fail(login, "its host belongs to another shard: use --assignment rendezvous", is_final=True)
            return
        key = url_key(login.url.href)
        key = key[: key.index(KEY_END, BUCKET_BYTES)]
        host, robots = self._frontier.hosts.get(key), parse_url("/robots.txt", login.url.href)
        if self._shard.settings.robots and (host is None or host.row.robots is None) and robots is not None:
            self._frontier.host_control.want(HostJob(robots.href, key), now)
        login.state = LoginState.BUSY
        self._ask(login, LoginStep(login.url.href))

    def _ask(self, login: FormLogin, step: LoginStep) -> None:
        login.step = step
        self._frontier.host_control.want(HostJob(step.url, kind=RequestKind.LOGIN), self._shard.now())

    # the steps

    def request(self, lease: Lease) -> Request:
        step = self._by_own_origin[lease.host.origin].step
        request = self._pages.requests.build(lease, more=() if step.body is None else (FORM_TYPE,), takes_any_type=True)
        if step.body is None:
            return request
        private = msgspec.structs.replace(request.private or PrivateParts(), body=step.body)
        return msgspec.structs.replace(request, method="POST", private=private)

    def handle(self, answer: LeaseAnswer) -> None:
        lease, response = answer.lease, answer.response
        self._pages.keeper.archive.keep_answer(lease, answer.request, response)
        login, host_s = self._by_own_origin[lease.host.origin], 0.0
        if (rule := retry_rule(response.failure, response.status)) is None:
            self._take_step(login, response)
        else:
            host_s = self._retry(login, response, rule)
        self._shard.release(lease, response, wait_s=host_s, reason=str(response.failure or response.status))

    def _retry(self, login: FormLogin, response: Response, rule: RetryRule) -> float:
        """A step has failed: the login is tried again as the retry table says. Returns how long its host waits."""
        shard = self._shard
        asked_for = parse_retry_after(response.headers.get("retry-after", ""), now_unix_s=shard.now_unix())
        wait_s = retry_wait(rule, login.tries + 1, random=shard.roll(), retry_after_s=asked_for)
        why = f"{login.step.url} answered {response.failure or response.status}"
        self._fail(login, why, wait_s=wait_s, is_final=wait_s is None)
        return wait_s if rule.host_after and wait_s else 0.0

    def _take_step(self, login: FormLogin, response: Response) -> None:
        step = login.step
        if response.status in REDIRECTS:
            self._redirected(login, step, parse_url(redirect_location(response), response.url))
        elif step.body is None and not step.is_check:
            form = fill_form(decoded_body(response, PAGE_BYTES), response.url, login)
            if form.problem:
                self._fail(login, form.problem)
            else:
                self._ask(login, LoginStep(form.url, form.body))
        else:
            self._judge(login, decoded_body(response, PAGE_BYTES))

    def _redirected(self, login: FormLogin, step: LoginStep, target: Url | None) -> None:
        is_behind = step.body is not None or step.is_check
        if target is None or step.hops >= MAX_HOPS:
            self._fail(login, f"{step.url} redirects without end, or nowhere")
        elif is_behind and login.leads_to_login(target):
            self._fail(login, "it was refused: the form leads back to the login")
        elif is_behind and not login.rule.success:
            self._succeed(login)
        elif origin_of(target.href) != login.origin:
            self._fail(login, f"{step.url} redirects to another origin, {origin_of(target.href)}")
        else:
            self._ask(login, LoginStep(target.href, is_check=is_behind, hops=step.hops + 1))

    def _judge(self, login: FormLogin, body: bytes) -> None:
        """The page behind the form has come: was the login a success?"""
        success = login.rule.success
        if success.encode() in body if success else not has_password_field(body):
            self._succeed(login)
        else:
            self._fail(login, "it was refused: the page behind the form does not show success")

    def _succeed(self, login: FormLogin) -> None:
        login.state, login.number = LoginState.IN, login.number + 1
        self._shard.events.write("logged-in", url=login.rule.url, session=login.number)

    def _fail(self, login: FormLogin, why: str, *, wait_s: float | None = None, is_final: bool = False) -> None:
        """The login did not work; `wait_s` is how long to wait for another try, where the retry table says so."""
        login.tries += 1
        is_final |= wait_s is None and login.tries >= LOGIN_TRIES
        login.state = LoginState.FAILED if is_final else LoginState.OUT
        login.not_before = self._shard.now() + (AGAIN_S if wait_s is None else wait_s)
        self._shard.events.write(LOGIN_FAILED, url=login.rule.url, detail=why, tries=login.tries)
        if login.state is LoginState.FAILED:
            self._give_up(login)

    def _give_up(self, login: FormLogin) -> None:
        now = self._shard.now()
        for host in [host for host in self._frontier.hosts.values() if host.origin in login.rule.origins]:
            self._shard.events.write("host-given-up", host=host.origin, reason=LOGIN_FAILED, queued=host.row.queued)
            self._frontier.host_control.give_up(host, LOGIN_FAILED, now)

    # answers behind a login

    def is_lost(self, answer: LeaseAnswer) -> bool:
        """Does the answer show that the session is lost? Then the next request begins with a login."""
        lease, request, response = answer.lease, answer.request, answer.response
        login = self._by_origin.get(lease.host.origin)
        if login is None or request is None or response.failure is not None or lease.kind not in BEHIND:
            return False
        is_document = 200 <= response.status < 300
        body = b""
        if is_document and login.rule.lost_text:
            body = answer.prepared.body if answer.prepared else decoded_body(response, PAGE_BYTES)
        session = request.private.session if request.private else 0
        if not login.shows_loss(response, body):
            if is_document and session == login.number:
                login.tries = login.useless = 0
            return False
        if login.state is LoginState.IN and session == login.number:
            login.state, login.not_before = LoginState.OUT, 0.0
            login.useless += 1
            self._shard.events.write("session-lost", url=response.url, session=session)
            if login.useless > USELESS_MOST:
                self._fail(login, f"{USELESS_MOST} sessions in a row were lost before a page came", is_final=True)
        return True


class LogoutFilter:
    """Drops links that would end a session: those whose last part is a word for it."""

    def __init__(self, origins: Mapping[str, object]) -> None:
        self._origins = origins

    def reason(self, url: Url) -> DropReason | None:
        name = url.path.partition("?")[0].rstrip("/").rpartition("/")[2].partition(".")[0].lower()
        return DropReason.FILTER if name in LOGOUT_NAMES and origin_of(url.href) in self._origins else None


# forms


def fill_form(body: bytes, url: str, login: FormLogin) -> FilledForm:
    """The login's form on the page at `url`, with its hidden fields as they are and the login's own filled in."""
    from selectolax.lexbor import LexborHTMLParser, SelectolaxError  # lazy: for crawls that log in

    tree = LexborHTMLParser(body.decode("utf-8", "replace"))
    try:
        forms: list[LexborNode] = tree.css(login.rule.form or "form")
    except SelectolaxError:
        return FilledForm(problem=f"{login.rule.form!r} is no CSS selector of a form")
    by_password = [form for form in forms if form.css_first("input[type=password]") is not None]
    form = next(iter([] if login.rule.form else by_password), None) or next(iter(forms), None)
    if form is None:
        return FilledForm(problem=f"{url} has no form {login.rule.form}".rstrip())
    if (form.attributes.get("method") or "get").lower() != "post":
        return FilledForm(problem=f"the form of {url} does not send by POST, so the password would stand in a URL")
    target = parse_url(form.attributes.get("action") or url, url)
    if target is None or origin_of(target.href) != login.origin:
        return FilledForm(problem=f"the form of {url} is sent to another origin than that of the login")
    return FilledForm(target.href, urlencode({**_values(form), **login.fields}, errors="replace").encode())


def _values(form: "LexborNode") -> dict[str, str]:
    """What a browser would send of a form that nobody has filled in, with the first of its buttons pressed."""
    values: dict[str, str] = {}
    has_button = False
    for control in form.css("input, select, textarea, button"):
        named, tag = control.attributes, control.tag
        name = named.get("name")
        kind = (named.get("type") or ("submit" if tag == "button" else "text")).lower()
        is_button = kind == "submit" and tag in ("input", "button")
        if not name or kind in NOT_SENT or "disabled" in named or (is_button and has_button):
            continue
        has_button |= is_button
        if kind in ("checkbox", "radio"):
            if "checked" in named:
                values[name] = named.get("value") or "on"
        elif tag == "select":
            options = control.css("option")
            chosen = next((option for option in options if "selected" in option.attributes), next(iter(options), None))
            values[name] = "" if chosen is None else (chosen.attributes.get("value") or chosen.text(strip=True))
        else:
            values[name] = control.text() if tag == "textarea" else named.get("value") or ""
    return values


def has_password_field(body: bytes) -> bool:
    """Does a page ask for a password?"""
    from selectolax.lexbor import LexborHTMLParser  # lazy: for crawls that log in

    return LexborHTMLParser(body.decode("utf-8", "replace")).css_first("input[type=password]") is not None
