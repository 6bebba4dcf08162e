"""The settings by name, for type checkers: the keyword arguments of `Crawl` and `lycosa.crawl`.

Made from the schema by `python -m proof.ground.named_settings`; do not edit it by hand. Where the schema keeps a tuple
any sequence may be given. What has a parameter of its own is left out.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict


class NamedSettings(TypedDict, total=False):
    """What can be set; docs/settings.md says what each one means."""

    scope: Literal["host", "domain", "prefix", "any"]
    include: Sequence[str]
    exclude: Sequence[str]
    skip_extensions: Sequence[str]
    types: Sequence[str]
    external: bool
    images: bool
    requisites: bool
    render: Literal["never", "auto", "always"]
    render_steps: Sequence[str]
    sitemaps: bool
    mine: Literal["off", "ancestors", "all"]
    tables: Literal["off", "auto", "always"]
    eager: bool
    policy: str
    topic: str
    topic_pages: Sequence[str]
    window_hosts: int
    window_leaves: int
    child_order: str
    pages: int | None
    depth: int | None
    time_s: float | None
    bytes: int | None
    pages_per_host: int | None
    host_pages: Sequence[str]
    host_depth: int | None
    wait: bool
    fail_on_limit: bool
    keep_fresh: bool
    visits_per_day: int | None
    ignore: Sequence[str]
    tell: Sequence[str]
    webhook: Sequence[str]
    atom: str
    apprise: str
    delay_s: float
    per_host: int
    ip_delay_s: float
    per_ip: int
    groups: Sequence[str]
    agent: str
    contact: str | None
    bot_key: str
    bot_agent: str
    bot_form: Literal["draft", "cloudflare"]
    robots: bool
    purpose: Literal["archive", "search", "ai-train", "ai-input"]
    nofollow: bool
    keep: Sequence[str]
    keep_types: Sequence[str]
    archive: Literal["full", "none"]
    index: bool
    fields: Mapping[str, object] | Sequence[str]
    durability: Literal["process", "power"]
    patch: Literal["store", "read"]
    keep_versions: int | None
    keep_days: int | None
    request_log: str
    warc_bytes: int
    store_interval_s: float
    store_batch: int
    headers: Sequence[str]
    users: Sequence[str]
    certificates: Sequence[str]
    cookies: bool
    cookie_files: Sequence[str]
    logins: Sequence[Mapping[str, object] | Sequence[str]]
    credentials: str
    transfers: int
    bandwidth_bytes_s: int | None
    total_s: float
    body_bytes: int
    proxies: Sequence[str]
    http2: bool
    verify_tls: bool
    ca_file: str
    dns: Sequence[str]
    allow_private: Sequence[str]
    crawl_batch: int
    threads: int | None
    mapping_workers: int
    mapping_batch: int
    workers: int
    assignment: Literal["rendezvous", "ip", "letter-sum", "two-level"]
    letters: Sequence[str]
    places: Sequence[str]
    exchange: Literal["direct", "coordinator"]
    store: str
    store_types: Sequence[str]
    store_relevance: float
    checkpoint_s: float | None
