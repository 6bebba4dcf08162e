"""The import makes a collection of archives that others made: WARC files, and WACZ files, which hold them.

The archives are read twice. The first reading finds every capture (`plan`), the second takes them in, in the order of
their time, on the very way that answers take in a crawl (`importer`): so the links, versions and changes are those of a
crawl that had asked at these times. Nobody is asked for anything. What is not whole is named and left out.
"""

from typing import TYPE_CHECKING

from lycosa.doors import open_lazily

if TYPE_CHECKING:
    from lycosa.importing.importer import ImportProgress, ImportResult, import_archives

__getattr__ = open_lazily(__name__, {"importer": "ImportProgress ImportResult import_archives"})

__all__ = ["ImportProgress", "ImportResult", "import_archives"]
