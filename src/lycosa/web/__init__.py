"""What a site says: its addresses, its rules, its pages.

The room is pure: no I/O, no clock (`now` is an argument), nothing raises on any bytes or text from outside. Five
questions are answered here and nowhere else:

    is this a URL, and which?        parse_url, join_map, follow_links; the keys of the store: url_key, bucket_of
    is it wanted, is it allowed?     Scope, ShapeFilter, filter_urls; Robots, robots_directives; for which use: usage
    what does a document say?        analyse_page: body, headers and address in, a `Page` out; read_sitemap
    what of it is for reading?       extract_readable, extract_text; relevant to a topic: Topic
    what does it say of itself?      page_metadata; and what do users read from it: FieldExtractor

The parser's libraries are imported with the first document: names that need them are looked up on first use.
"""

from typing import TYPE_CHECKING

from lycosa.doors import open_lazily
from lycosa.web.charset import detect_charset, to_utf8
from lycosa.web.date import format_capture_time, format_date, format_timestamp, parse_date
from lycosa.web.document import (
    DIGEST_BYTES,
    MAIN_TEXT_VERSION,
    Analyser,
    Analysers,
    Document,
    Page,
    Readable,
    TextCodes,
    document_digest,
    document_digests,
    document_fingerprint,
    payload_sha1,
)
from lycosa.web.kernel import kernel_name, native
from lycosa.web.language import DetectedLanguage, detect_language, is_language_code, language_of_text, three_letters
from lycosa.web.links import LinkKind, Links, escape_query, parse_link_header
from lycosa.web.media import SNIFF_BYTES, Media, MediaKind, identify_media, media_kind
from lycosa.web.page import (
    UnknownPart,
    analyse_html,
    analyse_page,
    beginning_read,
    charset_of,
    html_document,
    is_built_in,
    kernel_arguments,
    named_analysers,
    named_part,
    page_from_kernel,
    reads_links_as_usual,
)
from lycosa.web.preferences import (
    TDM_RESERVATION,
    Purpose,
    StatementPlace,
    header_statements,
    host_objection,
    host_statements,
    objection,
    pack_statements,
    page_statements,
    usage,
)
from lycosa.web.relevance import DOUBTFUL_RELEVANCE, RELEVANCE_BANDS, TOPIC_HEAD_BYTES, Topic, head_pays
from lycosa.web.robots import Robots, RobotsDirectives, Steps, robots_directives, robots_from_response_steps, run_steps
from lycosa.web.scope import (
    DropReason,
    Scope,
    ScopeKind,
    ShapeFilter,
    UrlFilter,
    UrlLimits,
    UrlPatterns,
    filter_urls,
    matches_pattern,
    pattern_pieces,
)
from lycosa.web.sitemap import SitemapEntry, read_sitemap, read_sitemap_steps
from lycosa.web.url import (
    BUCKET_BYTES,
    CACHED_HOSTS,
    FOLLOWED_KINDS,
    FOLLOWED_RELS,
    MAX_URL_BYTES,
    FollowedLinks,
    LinkRules,
    Url,
    base_url,
    bucket_of,
    domain_of,
    follow_links,
    host_key_of,
    is_ip_host,
    join_map,
    key_prefix_end,
    parse_url,
    registrable_domain,
    split_url,
    url_from_key,
    url_key,
)
from lycosa.web.volatile import (
    MAX_VOLATILE_PARTS,
    cut_parts,
    fill_parts,
    is_part_id,
    marked_parts,
    parts_by_id,
    selected_and_marked_parts,
    selected_parts,
)
from lycosa.web.words import split_words

if TYPE_CHECKING:
    from lycosa.web.article import extract_article, require_article
    from lycosa.web.audit import PageAudit, audit_page
    from lycosa.web.fields import FieldExtractor, FieldValue
    from lycosa.web.hazard import cut_if_unsafe
    from lycosa.web.metadata import PageMetadata, page_metadata
    from lycosa.web.pdf import PdfText, can_read_pdf, read_pdf
    from lycosa.web.readable import extract_readable, extract_text
    from lycosa.web.requisites import document_requisites
    from lycosa.web.similarity import BLOCK_BITS, NEAR_BITS, simhash, simhash_distance, text_sketch
    from lycosa.web.surt import surt_key
    from lycosa.web.text import page_of_text
    from lycosa.web.usage_files import MAX_USAGE_FILE_BYTES, TDMREP_PATH, read_reservations, read_terms

# Name → module of what needs selectolax (30 ms to import) or NumPy (110 ms): no first request or --help waits for them.
__getattr__ = open_lazily(
    __name__,
    {
        "article": "extract_article require_article",
        "fields": "FieldExtractor FieldValue",
        "audit": "PageAudit audit_page",
        "hazard": "cut_if_unsafe",
        "metadata": "PageMetadata page_metadata",
        "pdf": "PdfText can_read_pdf read_pdf",
        "readable": "extract_readable extract_text",
        "requisites": "document_requisites",
        "similarity": "BLOCK_BITS NEAR_BITS simhash simhash_distance text_sketch",
        "surt": "surt_key",
        "text": "page_of_text",
        "usage_files": "MAX_USAGE_FILE_BYTES TDMREP_PATH read_reservations read_terms",
    },
)


__all__ = [
    "BLOCK_BITS",
    "BUCKET_BYTES",
    "CACHED_HOSTS",
    "DIGEST_BYTES",
    "DOUBTFUL_RELEVANCE",
    "FOLLOWED_KINDS",
    "FOLLOWED_RELS",
    "MAIN_TEXT_VERSION",
    "MAX_URL_BYTES",
    "MAX_USAGE_FILE_BYTES",
    "MAX_VOLATILE_PARTS",
    "NEAR_BITS",
    "RELEVANCE_BANDS",
    "SNIFF_BYTES",
    "TDMREP_PATH",
    "TDM_RESERVATION",
    "TOPIC_HEAD_BYTES",
    "Analyser",
    "Analysers",
    "DetectedLanguage",
    "Document",
    "DropReason",
    "FieldExtractor",
    "FieldValue",
    "FollowedLinks",
    "LinkKind",
    "LinkRules",
    "Links",
    "Media",
    "MediaKind",
    "Page",
    "PageAudit",
    "PageMetadata",
    "PdfText",
    "Purpose",
    "Readable",
    "Robots",
    "RobotsDirectives",
    "Scope",
    "ScopeKind",
    "ShapeFilter",
    "SitemapEntry",
    "StatementPlace",
    "Steps",
    "TextCodes",
    "Topic",
    "UnknownPart",
    "Url",
    "UrlFilter",
    "UrlLimits",
    "UrlPatterns",
    "analyse_html",
    "analyse_page",
    "audit_page",
    "base_url",
    "beginning_read",
    "bucket_of",
    "can_read_pdf",
    "charset_of",
    "cut_if_unsafe",
    "cut_parts",
    "detect_charset",
    "detect_language",
    "document_digest",
    "document_digests",
    "document_fingerprint",
    "document_requisites",
    "domain_of",
    "escape_query",
    "extract_article",
    "extract_readable",
    "extract_text",
    "fill_parts",
    "filter_urls",
    "follow_links",
    "format_capture_time",
    "format_date",
    "format_timestamp",
    "head_pays",
    "header_statements",
    "host_key_of",
    "host_objection",
    "host_statements",
    "html_document",
    "identify_media",
    "is_built_in",
    "is_ip_host",
    "is_language_code",
    "is_part_id",
    "join_map",
    "kernel_arguments",
    "kernel_name",
    "key_prefix_end",
    "language_of_text",
    "marked_parts",
    "matches_pattern",
    "media_kind",
    "named_analysers",
    "named_part",
    "native",
    "objection",
    "pack_statements",
    "page_from_kernel",
    "page_metadata",
    "page_of_text",
    "page_statements",
    "parse_date",
    "parse_link_header",
    "parse_url",
    "parts_by_id",
    "pattern_pieces",
    "payload_sha1",
    "read_pdf",
    "read_reservations",
    "read_sitemap",
    "read_sitemap_steps",
    "read_terms",
    "reads_links_as_usual",
    "registrable_domain",
    "require_article",
    "robots_directives",
    "robots_from_response_steps",
    "run_steps",
    "selected_and_marked_parts",
    "selected_parts",
    "simhash",
    "simhash_distance",
    "split_url",
    "split_words",
    "surt_key",
    "text_sketch",
    "three_letters",
    "to_utf8",
    "url_from_key",
    "url_key",
    "usage",
]  # fmt: skip
