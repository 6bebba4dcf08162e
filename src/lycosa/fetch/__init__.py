"""Getting bytes: one request to one checked address, with hard limits on time and size.

    the port           Downloader: start a Request, hear of its Response exactly once; CurlDownloader speaks HTTP
    header fields      user_agent, request_fields for what is sent; parse_fields, response_media_type for what came
    the body           decode_body undoes the content coding, under a cap; decode_pieces bit by bit
    the retry table    retry_rule, retry_wait: what a failed request means, for the URL and for its host

Nothing that the world does raises an exception here: every outcome is a `Response`.
"""

from lycosa.fetch.curl import CurlDownloader, raise_descriptor_limit
from lycosa.fetch.decode import decode_body, decode_pieces
from lycosa.fetch.downloader import (
    AcceptsResponse,
    DoneCallback,
    Downloader,
    DownloaderStats,
    SchemeDownloader,
    TransferLimits,
    Watchable,
    hsts_age,
    is_field_value,
    parse_fields,
    refused_response,
    request_fields,
    response_media_type,
    user_agent,
)
from lycosa.fetch.retry import (
    AT_ONCE,
    RESET_WHILE_HELD,
    RETRY_SHARE,
    RetryRule,
    describe_next_try,
    failed_name,
    parse_retry_after,
    retry_rule,
    retry_wait,
)

__all__ = [
    "AT_ONCE", "RESET_WHILE_HELD", "RETRY_SHARE", "AcceptsResponse", "CurlDownloader", "DoneCallback", "Downloader",
    "DownloaderStats", "RetryRule", "SchemeDownloader", "TransferLimits", "Watchable", "decode_body",
    "decode_pieces", "describe_next_try", "failed_name", "hsts_age", "is_field_value", "parse_fields",
    "parse_retry_after", "raise_descriptor_limit", "refused_response", "request_fields", "response_media_type",
    "retry_rule", "retry_wait", "user_agent",
]  # fmt: skip
