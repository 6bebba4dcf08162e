"""Tables beside documents: TOL, the table of links, and TVI, the table of volatile information (docs/formats.md).

`formats` reads and writes them (pure), `links` uses tables of links in a crawl, `publisher` writes tables beside the
files of a static site, and `serving` has the middleware for a dynamic one: `WsgiTables` and `AsgiTables` are for site
owners. Tables are hints: a crawl without them finds the same pages. Revisits by TVI are in `recrawl.table_revisits`.
"""

from typing import TYPE_CHECKING

from lycosa.doors import open_lazily

if TYPE_CHECKING:
    from lycosa.tables.formats import (
        TABLE_MAX_BYTES,
        TVI,
        TableRefusal,
        Tol,
        Tvi,
        has_xml_parts,
        is_table_of,
        parse_tol,
        parse_tvi,
        patch_document,
        table_url,
    )
    from lycosa.tables.links import IN_VAIN, LinkTables, TableSupport
    from lycosa.tables.publisher import AugmentOptions, augment_site, tables_of
    from lycosa.tables.serving import AsgiTables, WsgiTables

# Module → names. Each is imported when it is first used: whoever reads one row does not wait for the libraries of all.
__getattr__ = open_lazily(
    __name__,
    {
        "formats": "TABLE_MAX_BYTES TVI TableRefusal Tol Tvi has_xml_parts is_table_of parse_tol parse_tvi "
        "patch_document table_url",
        "links": "IN_VAIN LinkTables TableSupport",
        "publisher": "AugmentOptions augment_site tables_of",
        "serving": "AsgiTables WsgiTables",
    },
)


__all__ = [
    "IN_VAIN", "TABLE_MAX_BYTES", "TVI", "AsgiTables", "AugmentOptions", "LinkTables", "TableRefusal",
    "TableSupport", "Tol", "Tvi", "WsgiTables", "augment_site", "has_xml_parts", "is_table_of", "parse_tol",
    "parse_tvi", "patch_document", "table_url", "tables_of",
]  # fmt: skip
