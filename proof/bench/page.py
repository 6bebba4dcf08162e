"""What the analysis of a page costs, whole and in parts: `python -m proof.bench.page DIR [--pages N]`.

The floor is what nobody can do without: parse the page, select its anchors, read their addresses. Parts are timed in
one pass, in the order the analyser runs them, so each finds the caches as it would; they add up to a little more than
the whole. Microseconds of CPU a page, the best of several rounds.
"""

import argparse
import random
import time
from collections.abc import Callable
from pathlib import Path

from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser

from lycosa.web import charset, hazard, html, media, text
from lycosa.web import document as digests
from lycosa.web import html as anchors
from lycosa.web import html as structure
from lycosa.web.page import analyse_page

ROUNDS = 7


def floor(body: bytes) -> list[str | None]:
    tree = LexborHTMLParser(body)
    return [node.attrs["href"] for node in tree.css("a[href]")]


def whole(body: bytes) -> object:
    return analyse_page(body, url="http://host.example/", content_type="text/html")


def parts(body: bytes, spent: dict[str, float]) -> None:
    """The analyser's steps, each timed into `spent`."""
    clock = time.perf_counter
    last = clock()

    def done(name: str) -> None:
        nonlocal last
        spent[name] = spent.get(name, 0.0) + clock() - last
        last = clock()

    media.identify_media("text/html", body[: media.SNIFF_BYTES])
    encoding = charset.detect_charset(body)
    utf8 = charset.to_utf8(body, encoding)
    done("media and charset")
    hazard.is_safe_to_parse(utf8)
    done("hazard")
    tree = LexborHTMLParser(utf8, options=LexborDocumentOptions.WO_EVENTS)
    done("parse")
    nodes = tree.css("*")
    done("all elements")
    numbers = structure.tag_numbers(nodes)
    done("tag numbers")
    html._hide(nodes, numbers)
    done("hidden elements")
    reading = html._Reading()
    anchors.read_anchors(nodes, numbers, reading.links)
    done("anchors")
    reading.read(nodes, numbers)
    done("head, images, headings")
    structure.structure_of_tree(nodes, numbers)
    done("structure strings")
    visible, main = html._visible_text(tree, reading)
    done("text")
    text.codes_of(visible)
    done("text codes")
    digests.text_digest(main)
    digests.document_fingerprint(body)
    digests.document_digest(body)
    done("digests")
    reading.links.links()
    done("link columns")
    del tree, nodes, reading
    done("release")


def best(step: Callable[[bytes], object], bodies: list[bytes]) -> float:
    """Seconds of CPU for one round over all bodies: the best of `ROUNDS`."""
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        for body in bodies:
            step(body)
        times.append(time.process_time() - start)
    return min(times)


def best_parts(bodies: list[bytes]) -> dict[str, float]:
    found: dict[str, float] = {}
    for _ in range(ROUNDS):
        spent: dict[str, float] = {}
        for body in bodies:
            parts(body, spent)
        found = {name: min(seconds, found.get(name, seconds)) for name, seconds in spent.items()}
    return found


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("directory", type=Path)
    arguments.add_argument("--pages", type=int, default=300)
    options = arguments.parse_args()
    files = sorted(options.directory.rglob("*.html"))
    chosen = random.Random(1).sample(files, min(options.pages, len(files)))
    bodies = [path.read_bytes() for path in chosen]
    each = 1e6 / len(bodies)
    print(f"{len(bodies)} pages of {len(files)}, mean {sum(map(len, bodies)) / len(bodies):,.0f} bytes; µs a page")
    lowest, total = best(floor, bodies) * each, best(whole, bodies) * each
    for name, seconds in best_parts(bodies).items():
        print(f"  {name:<24}{seconds * each:8.1f}")
    print(f"{'floor':<26}{lowest:8.1f}\n{'analyse':<26}{total:8.1f}\n{'ratio':<26}{total / lowest:8.2f}")


if __name__ == "__main__":
    main()
