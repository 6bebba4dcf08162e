"""Versions of real documents, edited by a script: what the papers' codes see of each edit, and what the digest sees.

The documents are those of Debian packages. Every document gets every edit that its main content has room for.
"Code" is the compare_parameters of structure strings and text codes, "digest" that of the normalised
main content, which the verdict rests on. Also what image values miss (pixels flipped in icons, line art and logos on
white), and what it all costs, in microseconds of CPU a page: the change parameters (structure strings, text codes and
digest) on every page of a first crawl, a verdict only where a page is looked at again and its bytes are others.
"""

import random
import re
from collections import defaultdict
from collections.abc import Callable

import numpy as np
from selectolax.lexbor import LexborHTMLParser

from lycosa.recrawl.change.image import TwoTone, blocks_of, determinant, pixel_digest
from lycosa.recrawl.change.verdict import ChangeKind, Version, compare, compare_parameters, parameters_of
from lycosa.web import analyse_page, text
from lycosa.web import document as digests
from lycosa.web import html as structure
from proof import Experiment, Run
from proof.ground.commands import best_us
from proof.ground.peers import package

PACKAGES = ("postgresql-doc-15", "python3.11-doc", "git-doc")
SEED = 12
DOCUMENTS, QUICK_DOCUMENTS = 300, 30
FLIPS, QUICK_FLIPS = 500, 50
_TEXT = re.compile(r">([^<>]*[A-Za-z]{3,} [^<>]*?[A-Za-z]{3,}[^<>]*)<")
Edit = Callable[[str, random.Random], str | None]


def _in_text(change: Callable[[str, random.Random], str]) -> Edit:
    """An edit of one stretch of text between two tags."""

    def edit(html: str, draw: random.Random) -> str | None:
        places = list(_TEXT.finditer(html))
        if not places:
            return None
        place = draw.choice(places)
        new = change(place[1], draw)
        return None if new.split() == place[1].split() else html[: place.start(1)] + new + html[place.end(1) :]

    return edit


def _swap_words(text: str, draw: random.Random) -> str:
    words = text.split(" ")
    a, b = draw.sample(range(len(words)), 2)
    words[a], words[b] = words[b], words[a]
    return " ".join(words)


def _swap_letters(text: str, draw: random.Random) -> str:
    at = draw.randrange(len(text) - 1)
    return text[:at] + text[at + 1] + text[at] + text[at + 2 :]


def _replace(pattern: str, replacement: str) -> Edit:
    found = re.compile(pattern)

    def edit(html: str, draw: random.Random) -> str | None:
        places = list(found.finditer(html))
        if not places:
            return None
        place = draw.choice(places)
        new = place.expand(replacement)
        return None if new == place[0] else html[: place.start()] + new + html[place.end() :]

    return edit


# name → (edit, whether it is a change of content)
EDITS: dict[str, tuple[Edit, bool]] = {
    "two words change places": (_in_text(_swap_words), True),
    "two letters change places": (_in_text(_swap_letters), True),
    "a word is added": (_in_text(lambda text, draw: text + " zebra"), True),
    "a word is taken out": (_in_text(lambda text, draw: " ".join(text.split()[1:])), True),
    "a number grows by one": (_replace(r">([^<>]*?)\b([1-8])\b", r">\g<1>9"), True),
    "a link leads elsewhere": (_replace(r'(<a [^>]*href=")([^"#]+)', r"\g<1>x\g<2>"), True),
    "an image is another file": (_replace(r'(<img [^>]*src=")([^"]+)', r"\g<1>x\g<2>"), True),
    "an image's words change": (_replace(r'(<img [^>]*alt=")([^"]+)', r"\g<1>x\g<2>"), True),
    "an element is added": (_replace(r"</p>", "</p><hr>"), True),
    "an element becomes another": (_replace(r"<em\b([^>]*)>(.*?)</em>", r"<strong\1>\2</strong>"), True),
    "elements with the same letters": (_replace(r"<code\b([^>]*)>([^<]*)</code>", r"<cite\1>\2</cite>"), True),
    "a class is added": (_replace(r"<p>", "<p class=x>"), False),
    "white space": (_replace(r" ([A-Za-z]+) ", "\n   \\1 "), False),
    "a comment": (_replace(r"</p>", "</p><!-- built today -->"), False),
    "a script": (_replace(r"</p>", "</p><script>let n = 1</script>"), False),
}


def version(html: str) -> Version:
    body = html.encode()
    return Version(analyse_page(body, url="http://host.example/", content_type="text/html; charset=utf-8"), body)


def halves(html: str) -> tuple[str, str, str]:
    """A document as it is written out by the parser: before its main content, that, and after it."""
    tree = LexborHTMLParser(html)
    whole = tree.html or ""
    mains = tree.css("main, [role=main]")
    main = (mains[0] if len(mains) == 1 else tree.body or tree.root).html or ""  # type: ignore[union-attr]
    start = whole.find(main)
    return whole[:start], main, whole[start + len(main) :]


def documents(count: int) -> list[str]:
    roots = [package(name) / "usr" / "share" for name in PACKAGES]
    files = [path for root in roots for path in sorted(root.rglob("*.html")) if path.is_file()]
    chosen = random.Random(SEED).sample(files, min(count, len(files)))
    return [path.read_text("utf-8", "replace") for path in chosen]


def judge_edits(pages: list[str]) -> dict[str, list[int]]:
    """name → [edits, seen by the codes, seen by the digest]"""
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    draw = random.Random(SEED)
    for html in pages:
        head, main, tail = halves(html)
        old = version(head + main + tail)
        for name, (edit, _) in EDITS.items():
            edited = edit(main, draw)
            if edited is None:
                continue
            new = version(head + edited + tail)
            row = counts[name]
            row[0] += 1
            row[1] += compare_parameters(parameters_of(old.page), parameters_of(new.page)) is not ChangeKind.NONE
            row[2] += compare(old, new).verdict.is_change
    return counts


def costs(pages: list[str]) -> dict[str, float]:
    """Microseconds of CPU a page, the best of several rounds."""
    bodies = [html.encode() for html in pages]
    versions = [version(html) for html in pages]
    trees = [LexborHTMLParser(body) for body in bodies]
    names = [[node.tag or "?" for node in tree.css("*")] for tree in trees]
    texts = [one.page.text.encode() for one in versions]

    def analysis() -> None:
        for body in bodies:
            analyse_page(body, url="http://host.example/", content_type="text/html; charset=utf-8")

    def parameters() -> None:
        for tags, words in zip(names, texts, strict=True):
            structure.structure_of_names(tags)
            text.codes_of(words)
            digests.text_digest(words)

    def verdicts() -> None:
        for one in versions:
            compare(one, one)

    works = {
        "analysis, with the change parameters": analysis,
        "the change parameters alone": parameters,
        "a verdict on a page whose bytes changed": verdicts,
    }
    return {name: best_us(work, len(pages)) for name, work in works.items()}


def drawings(draw: np.random.Generator) -> dict[str, TwoTone]:
    """Pictures of the kinds the web is full of, True where they are light."""
    icon = np.ones((64, 64), dtype=bool)
    icon[20:44, 20:44] = draw.random((24, 24)) < 0.5
    lines = np.ones((64, 64), dtype=bool)
    for _ in range(4):
        lines[draw.integers(0, 64), :] = False
        lines[:, draw.integers(0, 64)] = False
    logo = np.ones((64, 64), dtype=bool)
    logo[4:14, 4:14] = draw.random((10, 10)) < 0.5
    return {"icon": icon, "line art": lines, "logo on white": logo, "noise": draw.random((64, 64)) < 0.5}


def image_misses(flips: int) -> dict[str, tuple[int, int]]:
    """kind → (flips of one pixel that the value misses, that the digest misses) of `flips`."""
    draw = np.random.default_rng(SEED)
    missed = {}
    for name in ("icon", "line art", "logo on white", "noise"):
        by_value = by_digest = 0
        for _ in range(flips):
            pixels = drawings(draw)[name]
            other = pixels.copy()
            other[tuple(draw.integers(0, 64, 2))] ^= True
            by_value += determinant(blocks_of(pixels)) == determinant(blocks_of(other))
            by_digest += pixel_digest(pixels) == pixel_digest(other)
        missed[name] = by_value, by_digest
    return missed


def measure(run: Run) -> None:
    count, flips = (QUICK_DOCUMENTS, QUICK_FLIPS) if run.quick else (DOCUMENTS, FLIPS)
    pages = documents(count)
    run.setting("documents", len(pages))
    found = judge_edits(pages)
    rows = [(name, "yes" if EDITS[name][1] else "no", *row) for name, row in found.items()]
    run.table(["edit", "of content", "edits", "codes see", "digest sees"], rows)
    edits, codes, digest = _total(found, is_content=True)
    run.figure("changes", edits)
    run.figure("changes that the codes miss", edits - codes)
    run.figure("changes that the digest misses", edits - digest)
    edits, codes, digest = _total(found, is_content=False)
    run.figure("edits that change no content", edits)
    run.figure("false alarms of the codes", codes)
    run.figure("false alarms of the digest", digest)
    missed = [(name, flips, *misses) for name, misses in image_misses(flips).items()]
    run.table(["picture", "pixels flipped", "the value misses", "the digest misses"], missed)
    run.table(["CPU a page", "µs"], list(costs(pages).items()))


def _total(found: dict[str, list[int]], *, is_content: bool) -> tuple[int, int, int]:
    rows = [row for name, row in found.items() if EDITS[name][1] is is_content]
    return sum(row[0] for row in rows), sum(row[1] for row in rows), sum(row[2] for row in rows)


EXPERIMENT = Experiment(
    name="change",
    summary="real documents edited by a script: what the papers' codes see of each edit, and what the digest sees",
    run=measure,
)
