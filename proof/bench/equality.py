"""Whether the native kernel and its twin in Python make the same page of the same bytes, field by field, and find the
same text and Markdown.

The pages are all HTML of seven documentation packages; `fuzz` does the same with random markup. Pages that the kernel
leaves to a parser with a tree are counted: for them the product runs the twin's own parser.
"""

from collections import Counter
from collections.abc import Iterable

import msgspec

from lycosa.errors import MissingExtra
from lycosa.web import Document, MediaKind, identify_media, native
from lycosa.web.html import analyse_html
from lycosa.web.page import charset_of, read_natively
from lycosa.web.readable import read_by_twin
from proof import Bar, Experiment, Run
from proof.ground.peers import package
from proof.ground.sites import POSTGRESQL

PACKAGES = (
    *("openjdk-17-doc", "postgresql-doc-15", "python3.11-doc", "git-doc", "libboost1.81-doc"),
    *("apache2-doc", "qtbase5-doc-html"),
)
LISTED = 20  # differences shown


def document_of(body: bytes, content_type: str = "text/html; charset=utf-8") -> Document:
    media = identify_media(content_type, body)
    return Document(body, "http://host.example/", media, charset_of(body, media))


def difference(document: Document) -> dict[str, tuple[object, object]] | None:
    """The fields in which the kernel's page and the twin's differ; None if the kernel leaves the document to a tree."""
    readable = _readable_difference(document)
    ours = read_natively(document)
    if ours is None or readable:
        return readable or None
    theirs = analyse_html(document)
    if ours == theirs:
        return {}
    both = msgspec.structs.asdict(ours), msgspec.structs.asdict(theirs)
    return {name: (both[0][name], both[1][name]) for name in both[0] if both[0][name] != both[1][name]}


def _readable_difference(document: Document) -> dict[str, tuple[object, object]]:
    """Whether both find the same text and Markdown."""
    kernel = native()
    assert kernel is not None
    is_xml = document.media.kind is MediaKind.XHTML
    ours = kernel.read_readable(document.body, document.charset, is_xml, False, True)
    theirs = read_by_twin(document, unshown=False, wants_markdown=True)
    return {} if ours == theirs else {"readable": (ours, theirs)}


def measure(run: Run) -> None:
    folders = [POSTGRESQL.folder()] if run.quick else [package(name) for name in PACKAGES]
    paths = [path for folder in folders for path in sorted(folder.rglob("*.html")) if path.is_file()]
    compare(run, "pages", ((str(path), document_of(path.read_bytes(), "text/html")) for path in paths))


def compare(run: Run, what: str, documents: Iterable[tuple[str, Document]]) -> None:
    """Reports how many of the named documents both kernels make the same page of, and names the others."""
    if native() is None:
        raise MissingExtra.of("native", what="the comparison of the kernels")
    total = trees = differing = 0
    fields: Counter[str] = Counter()
    for name, document in documents:
        total += 1
        found = difference(document)
        if found is None:
            trees += 1
        elif found:
            differing += 1
            fields.update(list(found))
            if differing <= LISTED:
                run.say(f"{name}: {', '.join(found)} differ")
    run.figure(what, total)
    run.figure(f"{what} that differ", differing)
    run.figure(f"{what} left to a tree", 100 * trees / total, "%")
    if fields:
        run.table([f"fields of {what} that differ", "times"], list(fields.most_common()))


EXPERIMENT = Experiment(
    name="equality",
    summary="the native kernel and its twin make the same page of each of 20,000 real pages",
    run=measure,
    bars=(
        Bar("pages enough", "pages", ">=", 20_000),
        Bar("same pages", "pages that differ", "<=", 0),
    ),
)
