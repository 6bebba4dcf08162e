"""The way out: `lycosa export DIR FORMAT` writes what a collection holds in the forms that others read.

    run.py        one export from beginning to end: `export_pages`
    selection.py  which pages: filters by host, path, time, type, status, language, query; ranges of keys where possible
    place.py      where to: standard output, a file, a folder or an fsspec URL; and what was exported there last
    output.py     files and folders of this machine: whole or not at all, and resumed
    format.py     what a format is, and the table of all formats with their options
    jsonl.py …    one module a format; warc.py has WET, too

A format is a class that derives from `ExportFormat` (format.py says what it has to do: `begin`, `add`, `finish`) and a
line in `FORMATS`, which names its module: that is imported only when the format is asked for, so that the help can list
all formats without what they need. The frame gives a format the selected pages (`inspect.StoredPage`) one after the
other, in the order of hosts and paths, and an `Output` to write to. It never has to care for names of files, half
written files, compression, resumption or progress.

Guarantees: under its final name an export is whole, or the one from before is still there. Memory is bounded whatever
the size of the collection. Nothing is written to the collection.
"""

from typing import TYPE_CHECKING

from lycosa.doors import open_lazily

if TYPE_CHECKING:
    from lycosa.export.format import FORMATS, OPTIONS, ExportFormat, FormatOption
    from lycosa.export.run import ExportJob, ExportProgress, ExportReport, export_pages
    from lycosa.export.selection import PageSelection

# Name → module. Each is imported when it is first used: the help needs the table of formats alone.
__getattr__ = open_lazily(
    __name__,
    {
        "format": "FORMATS OPTIONS ExportFormat FormatOption",
        "run": "ExportJob ExportProgress ExportReport export_pages",
        "selection": "PageSelection",
    },
)

__all__ = [
    "FORMATS",
    "OPTIONS",
    "ExportFormat",
    "ExportJob",
    "ExportProgress",
    "ExportReport",
    "FormatOption",
    "PageSelection",
    "export_pages",
]
