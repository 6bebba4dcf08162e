"""What a format of an export is, and the table of all formats.

A format is made once for each export, with its options as keyword arguments, and is called in this order:

    begin(out, source)    writes a header, unless `out.is_resumed`: then what was written up to the last checkpoint
                          is there already
    takes(page)           whether a page is for this format: the others are left out, and not counted
    add(page)             writes one page; a `StoreError` of the page's content may pass, then the page is left out, so
                          read what you need before you write the first byte of it
    finish()              writes what comes last; the frame then gives the output its name

`out` is an `Output`: `write(data)` for formats that are one stream of bytes (LINES and FILE), `folder` for those that
are many files (FOLDER), and `scratch`, a folder for temporary files that is deleted at the end, however that is.

`resumes`: a format is resumed after a kill by cutting its stream at the last checkpoint and going on with the page
behind it, without anything else remembered. A format for which that is not enough (a sorted list, a footer with
offsets) says False, and begins anew. The files of a folder are not cut: pages since the checkpoint are added once more.
A format that cannot end its files at any page says in `checkpoint` when it can, and asks for one (`wants_checkpoint`).
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import ClassVar, NamedTuple

from lycosa.errors import SettingsError
from lycosa.export.output import Output
from lycosa.export.selection import PageSelection
from lycosa.inspect import StoredPage
from lycosa.store import CollectionStore


class Shape(StrEnum):
    """What an export is made of."""

    LINES = "lines"  # text, which goes to standard output unless a place is named
    FILE = "file"  # one file of bytes
    FOLDER = "folder"


class ExportSource(NamedTuple):
    """Where the pages come from, for formats that want more than pages. `began_s` is when the export was begun first
    (Unix time), also where it is resumed; `field_names` are the names in `page.fields` that selectors give, and
    `field_lists` says of each whether it is a list."""

    collection: CollectionStore
    selection: PageSelection
    began_s: float
    field_names: tuple[str, ...] = ()
    field_lists: Mapping[str, bool] = {}


class ExportFormat(ABC):
    """One export in one format; see the module."""

    shape: ClassVar[Shape] = Shape.LINES
    suffix: ClassVar[str] = ""  # of the usual file name
    resumes: bool = True
    extractor: str = ""  # who finds the text of pages: `article`, or the usual one
    # Whether it takes every answer, also redirects and errors; otherwise pages alone, unless statuses are asked for.
    takes_answers: ClassVar[bool] = False
    needs_records: ClassVar[bool] = False  # it takes captures alone: not answers that no record is kept for
    compresses_itself: ClassVar[bool] = False  # .gz and .zst at the end of a name are its own business

    @property
    def endings(self) -> tuple[str, ...]:
        """How names of files of this format end, where the end says how they are packed."""
        if self.shape is Shape.LINES:
            return ".gz", ".zst"
        return tuple(Path(f"pages{self.suffix}").suffixes[-1:])

    def begin(self, out: Output, source: ExportSource) -> None:
        """Called first."""
        self.out, self.source = out, source

    def takes(self, page: StoredPage) -> bool:
        """Whether a page is for this format; the others are not counted."""
        return True

    @abstractmethod
    def add(self, page: StoredPage) -> None:
        """Called with every page that it takes."""

    wants_checkpoint: bool = False  # whether one is due before its time

    def checkpoint(self) -> bool:
        """Called before a checkpoint: brings all that was added into the output. False: it is too early for one."""
        return True

    def finish(self) -> None:  # noqa: B027 -- most have nothing to write at the end
        """Called last."""


class FormatEntry(NamedTuple):
    """A line of the table: the module in this room, the class, and what the help says."""

    module: str
    class_name: str
    summary: str

    def load(self) -> type[ExportFormat]:
        found: type[ExportFormat] = getattr(import_module(f"lycosa.export.{self.module}"), self.class_name)
        return found


class FormatOption(NamedTuple):
    """An option that only some formats have. It reaches them as a string, a switch as "yes"."""

    formats: tuple[str, ...]
    help: str
    choices: tuple[str, ...] = ()
    metavar: str = ""
    is_switch: bool = False


FORMATS = {
    "jsonl": FormatEntry("jsonl", "JsonLines", "One JSON object a line for each page, or for Dolma, FineWeb, C4."),
    "csv": FormatEntry("csv", "CsvTable", "A table with a line for each page, safe to open in a spreadsheet."),
    "markdown": FormatEntry("markdown", "MarkdownFolder", "A folder with a Markdown file for each page."),
    "parquet": FormatEntry("parquet", "ParquetFolder", "A folder of tables with the columns of Common Crawl's index."),
    "graph": FormatEntry("graph", "LinkGraphExport", "The links, for networkx, igraph and Gephi."),
    "warc": FormatEntry("warc", "WarcCopy", "A WARC file with the records of the pages, copied as they are."),
    "wet": FormatEntry("warc", "WetTexts", "A WARC file with the texts of the pages, as Common Crawl's WET files."),
    "cdxj": FormatEntry("cdxj", "CdxIndex", "The sorted index of all captures, for pywb and others."),
    "wacz": FormatEntry("wacz", "WaczArchive", "One file that replays by itself: archive, index, pages, texts."),
    "sitemap": FormatEntry("sitemap", "SitemapFolder", "A folder with sitemap.xml of each host."),
}

OPTIONS = {
    "content": FormatOption(
        ("jsonl", "csv", "parquet", "wacz"),
        "What of the body is exported [default: text; none for csv]; wacz has text or none.",
        ("text", "markdown", "html", "none"),
    ),
    "extractor": FormatOption(
        ("jsonl", "csv", "parquet", "markdown", "wet"),
        "Who finds the text of pages [default: main]; article is slower, and for news and blogs.",
        ("main", "article"),
    ),
    "links": FormatOption(("jsonl", "parquet"), "Add the links of each page.", is_switch=True),
    "metadata": FormatOption(
        ("jsonl",), "Add what each page says of itself: author, dates, description, image, JSON-LD.", is_switch=True
    ),
    "crawl": FormatOption(
        ("parquet",), "The name in the column crawl [default: that of the collection's folder].", metavar="NAME"
    ),
    "like": FormatOption(("jsonl",), "Write the fields of a known corpus.", ("dolma", "fineweb", "c4")),
    "level": FormatOption(("graph",), "Links between pages, or between hosts [default: page].", ("page", "host")),
    "edges": FormatOption(("graph",), "The form of the graph [default: csv].", ("csv", "tsv", "graphml", "gexf")),
}


def make_format(name: str, options: dict[str, str]) -> ExportFormat:
    """A new instance of the format of this name; raises SettingsError for an unknown name or option."""
    if name not in FORMATS:
        raise SettingsError(f"there is no format {name!r}: choose from {', '.join(FORMATS)}")
    for option, value in options.items():
        about = OPTIONS.get(option)
        shown = f"--{option.replace('_', '-')}"
        if about is None or name not in about.formats:
            fits = f" it is for {', '.join(about.formats)}" if about else ""
            raise SettingsError(f"the format {name} has no option {shown}:{fits}".rstrip(":"))
        if about.choices and value not in about.choices:
            raise SettingsError(f"{shown} is {value!r}: choose from {', '.join(about.choices)}")
    others = {option: value for option, value in options.items() if option != "extractor"}
    made = FORMATS[name].load()(**others)
    if options.get("extractor") == "article":
        from lycosa.web import require_article  # lazy: few exports need it

        require_article()
        made.extractor = "article"
    return made
