"""The features of one crawl, as they are registered before it begins; the loop calls them by the protocols of
`crawl.seams`.

`api.assembly` decides from the settings which there are. A feature that is off is not registered, and costs nothing.
"""

from collections.abc import Callable

from lycosa.crawl.committer import TextTaker
from lycosa.crawl.keeper import Listener
from lycosa.crawl.pages import PageHandler
from lycosa.crawl.progress import LimitChecker
from lycosa.crawl.seams import (
    AnswerConverter,
    FetchObserver,
    RequestHandler,
    RequestHook,
    RunCompanion,
    Shard,
    UrlSource,
)
from lycosa.frontier import RequestKind


class Features:
    """Who handles which kind of request, and who else takes part in the crawl of one shard."""

    def __init__(
        self, shard: Shard, pages: PageHandler, limits: LimitChecker, handlers: dict[RequestKind, RequestHandler]
    ) -> None:
        self._shard, self._pages, self._limits = shard, pages, limits
        self.handlers = handlers
        self.observers: list[FetchObserver] = []
        self.sources: list[UrlSource] = []
        self.companions: list[RunCompanion] = []
        self.converter: AnswerConverter | None = None

    def handle(self, kind: RequestKind, handler: RequestHandler) -> None:
        """Register the handler of a kind of request, in place of the one before."""
        self.handlers[kind] = handler

    def wrap_handlers(self, wrap: Callable[[RequestHandler], RequestHandler]) -> None:
        """Put something before the handlers of all kinds of requests that are registered."""
        for kind, handler in self.handlers.items():
            self.handlers[kind] = wrap(handler)

    def observe(self, observer: FetchObserver) -> None:
        """Register an observer of every fetch from now on."""
        self.observers.append(observer)

    def convert(self, converter: AnswerConverter) -> None:
        """Register what turns answers into others before they are read."""
        self.converter = self._limits.converter = converter

    def prepare_requests(self, hook: RequestHook) -> None:
        """Register a hook that has its say in every request from now on."""
        self._pages.requests.hooks.append(hook)

    def add_source(self, source: UrlSource) -> None:
        """Register a source of URLs beside those that pages link to."""
        self.sources.append(source)

    def accompany(self, companion: RunCompanion) -> None:
        """Register who works beside the loop for as long as it runs."""
        self.companions.append(companion)

    def leftovers(self) -> tuple[str, ...]:
        """Sentences about what the companions have left to do; for when the crawl is over."""
        return tuple(left for companion in self.companions if (left := companion.leftover()))

    def listen(self, listener: Listener) -> None:
        """Register a listener, called for every page once it is committed."""
        self._pages.keeper.listeners.append(listener)
        self._shard.reader.wants_main = True

    def hand_texts(self, taker: TextTaker) -> None:
        """Register who takes the main texts of pages, as far as they cost no second parse."""
        self._pages.keeper.text_taker = taker
        self._shard.reader.wants_main = True
        self._shard.committer.join(taker)
