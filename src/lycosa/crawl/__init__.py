"""The crawl of one shard: lease, resolve, fetch, read, admit, commit. `loop` shows the life of a URL on one screen.

The room decides what becomes of an answer: which pages are kept and how, which links are admitted, what is retried,
when the crawl ends. `Engine` is its face. Whatever a crawl can do without (tables, revisits, rankings, links taken
early) hangs on it by the protocols of `seams`; `api.assembly` puts a crawl together. Nobody outside changes its
counters or its batch: `Counters` has methods, and a `CommitParticipant` writes into commits.

Guarantees: what is committed is on disk with everything that it counts; a crash loses only what was in flight; a failed
request is an outcome, never an exception.
"""

from typing import TYPE_CHECKING

from lycosa.doors import open_lazily

if TYPE_CHECKING:
    from lycosa.crawl.admission import MAX_MISLED, Admission, EarlyLinks, is_nofollow
    from lycosa.crawl.assembly import loop_parts
    from lycosa.crawl.committer import CommitParticipant
    from lycosa.crawl.documents import DocumentStore
    from lycosa.crawl.events import log_added, log_order
    from lycosa.crawl.externals import ExternalLinks
    from lycosa.crawl.host_rules import ROBOTS_BYTES, ROBOTS_FOR_S, HostRules
    from lycosa.crawl.intake import (
        EVERY,
        INBOX_FOLDER,
        AddedUrl,
        Inbox,
        interval_of,
        literal_hosts,
        refuse_forgotten,
        refuse_private,
    )
    from lycosa.crawl.keeper import Archive, CommittedPage, PatchedDocument
    from lycosa.crawl.link_filter import filters_of
    from lycosa.crawl.loop import Engine
    from lycosa.crawl.pages import PageHandler
    from lycosa.crawl.pipeline import Pipeline, PipelinePage, drop_reason, unpack_fields
    from lycosa.crawl.progress import WAITING, LimitUse, Recrawl, effective_limits
    from lycosa.crawl.reading import (
        LeaseAnswer,
        PreparedPage,
        analysers_of,
        decoded_body,
        extractor_of,
        followed_links,
        header_hrefs,
        joined_links,
        page_directives,
        record_metadata,
        redirect_location,
    )
    from lycosa.crawl.request_log import RequestWriter
    from lycosa.crawl.requeue import (
        JUDGED_BY_KEY,
        JUDGED_BY_NOTHING,
        page_of_requisite,
    )
    from lycosa.crawl.requisites import Requisites
    from lycosa.crawl.seams import (
        AnswerConverter,
        CopyClaim,
        FetchObserver,
        OtherShards,
        Parts,
        ReadPage,
        RequestHandler,
        RequestHook,
        RunCompanion,
        Shard,
        Statistics,
        UrlSource,
    )
    from lycosa.crawl.stats import (
        Counters,
        CrawlStats,
        Retry,
        Totals,
        counts_row,
        crawl_state,
        load_counts,
        load_live_stats,
        sum_of_shards,
    )
    from lycosa.crawl.steering import NEW_SETTINGS, Action, Order, Steering, is_crawled, steer
    from lycosa.crawl.timeline import Sample, Timeline, load_timeline, sum_of_timelines

# Module → names. Each is imported when it is first used: `lycosa status` does not wait for the loop and its libraries.
__getattr__ = open_lazily(
    __name__,
    {
        "admission": "MAX_MISLED Admission EarlyLinks is_nofollow",
        "assembly": "loop_parts",
        "committer": "CommitParticipant",
        "documents": "DocumentStore",
        "events": "log_added log_order",
        "externals": "ExternalLinks",
        "host_rules": "ROBOTS_BYTES ROBOTS_FOR_S HostRules",
        "intake": "EVERY INBOX_FOLDER AddedUrl Inbox interval_of literal_hosts refuse_forgotten refuse_private",
        "keeper": "Archive CommittedPage PatchedDocument",
        "link_filter": "filters_of",
        "loop": "Engine",
        "pages": "PageHandler",
        "pipeline": "Pipeline PipelinePage drop_reason unpack_fields",
        "progress": "WAITING LimitUse Recrawl effective_limits",
        "reading": "LeaseAnswer PreparedPage analysers_of decoded_body extractor_of followed_links "
        "header_hrefs joined_links page_directives record_metadata redirect_location",
        "request_log": "RequestWriter",
        "requeue": "JUDGED_BY_KEY JUDGED_BY_NOTHING page_of_requisite",
        "requisites": "Requisites",
        "seams": "AnswerConverter CopyClaim FetchObserver OtherShards Parts ReadPage RequestHandler RequestHook "
        "RunCompanion Shard Statistics UrlSource",
        "steering": "NEW_SETTINGS Action Order Steering is_crawled steer",
        "stats": "Counters CrawlStats Retry Totals counts_row crawl_state load_counts load_live_stats sum_of_shards",
        "timeline": "Sample Timeline load_timeline sum_of_timelines",
    },
)


__all__ = [
    "EVERY",
    "INBOX_FOLDER", "JUDGED_BY_KEY", "JUDGED_BY_NOTHING", "MAX_MISLED", "NEW_SETTINGS", "ROBOTS_BYTES", "ROBOTS_FOR_S",
    "WAITING", "Action", "AddedUrl",
    "Admission", "AnswerConverter", "Archive", "CommitParticipant", "CommittedPage", "CopyClaim",
    "Counters", "CrawlStats", "DocumentStore", "EarlyLinks", "Engine", "ExternalLinks", "FetchObserver",
    "HostRules", "Inbox",
    "LeaseAnswer", "LimitUse", "Order", "OtherShards", "PageHandler", "Parts", "PatchedDocument", "Pipeline",
    "PipelinePage",
    "PreparedPage", "ReadPage", "Recrawl", "RequestHandler", "RequestHook", "RequestWriter", "Requisites", "Retry",
    "RunCompanion", "Sample", "Shard", "Statistics", "Steering", "Timeline", "Totals", "UrlSource", "analysers_of",
    "counts_row", "crawl_state", "decoded_body", "drop_reason", "effective_limits", "extractor_of", "filters_of",
    "followed_links", "header_hrefs", "interval_of", "is_crawled", "is_nofollow", "joined_links", "literal_hosts",
    "load_counts", "load_live_stats", "load_timeline", "log_added", "log_order", "loop_parts", "page_directives",
    "page_of_requisite",
    "record_metadata", "redirect_location", "refuse_forgotten", "refuse_private", "steer", "sum_of_shards",
    "sum_of_timelines",
    "unpack_fields",
]  # fmt: skip
