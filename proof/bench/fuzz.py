"""Whether the native kernel and its twin make the same page of random markup: tags that nest badly, odd attributes.

Real pages hardly ever have such markup; `equality` compares those. A seed is another lot. Called by `make fuzz`.
"""

import random

from proof import Bar, Experiment, Run
from proof.bench.equality import compare, document_of

MUTATIONS, QUICK_MUTATIONS = 300_000, 5_000

_HOLDERS = (
    "html head body div p span b i a table tbody tr td th caption colgroup ul ol li dl dt dd h1 h3 main form select "
    "option optgroup button object pre textarea title script style noscript iframe svg math mi g desc foreignObject "
    "template ruby rt rp nobr font code em strong article section address center x-y frameset noframes xmp"
).split()
_VOID = "br hr img input meta link base area col wbr source param embed frame image".split()
_ATTRIBUTES = (
    " href=a.html", ' href="/b?c=1&amp;d"', " href=' #x '", " href", ' rel="nofollow me"', " rel=NOFOLLOW",
    " src=i.png", ' alt="An  image"', " name=robots", ' content="noindex"', ' http-equiv=refresh content="0; url=/r"',
    " lang=en", " xml:lang=de", " name=description content='in short'", " xlink:href=x", " id=1", " class",
    " type=hidden",
    ' title="a>b"', " /", ' rel=canonical href=c', " name=googlebot", ' href="javascript:x"', " href=data:,x",
    " A=B", " encoding=text/html", ' color=red', "=x", ' href="&notit;&ampx=1&#x80;"', " alt='&quot;\0&eacute'",
)  # fmt: skip
_TEXTS = (
    "word", " two  words ", "\n", ".", "(", "&amp;", "&nbsp;", "&lt;x", "\0", "\r\n", "ü–", "<", "</", "<!-- c -->",
    "<!--", "-->", "<![CDATA[x]]>", "<?x?>", "</>", "<!doctype html>", "&#0;", "&notin;", "\x0c", "\u3000", "]]>",
    "<!-->", "&ngt", "\ufeff",
)  # fmt: skip


def mutation(seed: int) -> bytes:
    """A document of a few dozen tokens: tags that nest badly, attributes, references."""
    chance = random.Random(seed)
    parts = ["<!doctype html>"] if chance.random() < 0.5 else []
    names = chance.sample(_HOLDERS, chance.randint(2, 8)) if chance.random() < 0.7 else _HOLDERS
    for _ in range(chance.randint(1, 40)):
        kind = chance.random()
        if kind < 0.38:
            name = chance.choice(names) if chance.random() < 0.95 else chance.choice(names).upper()
            parts += ["<", name, *(chance.choice(_ATTRIBUTES) for _ in range(chance.choice((0, 0, 1, 1, 2)))), ">"]
        elif kind < 0.65:
            parts += ["</", chance.choice(names), ">"]
        elif kind < 0.75:
            parts += [
                "<",
                chance.choice(_VOID),
                *(chance.choice(_ATTRIBUTES) for _ in range(chance.randint(0, 3))),
                ">",
            ]
        else:
            parts.append(chance.choice(_TEXTS))
    body = "".join(parts).encode()
    if chance.random() < 0.1:
        at = chance.randrange(len(body) + 1)
        body = (
            body[:at]
            + bytes(chance.randrange(256) for _ in range(chance.randint(0, 3)))
            + body[at + chance.randint(0, 3) :]
        )
    return body


def measure(run: Run) -> None:
    count = QUICK_MUTATIONS if run.quick else MUTATIONS
    numbers = range(run.seed * MUTATIONS, run.seed * MUTATIONS + count)
    compare(run, "mutations", ((f"mutation {number}", document_of(mutation(number))) for number in numbers))


EXPERIMENT = Experiment(
    name="fuzz",
    summary="the native kernel and its twin make the same page of random markup",
    run=measure,
    bars=(Bar("same pages", "mutations that differ", "<=", 0),),
)
