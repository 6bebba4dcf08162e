# ruff: noqa: E501 -- markup is easier to read in long lines
"""Pages of seven kinds with the text that is for reading in them, to measure extractors of text.

Two sources: pages written here after the layouts of common systems (`written_pages`), and the pages that Mozilla tests
its reader view with, 130 real ones with the text that its maintainers expect (`mozilla_pages`), from a crate that ships
them, into the cache. The words of written pages are drawn; what surrounds them is what the systems put there: menus,
cookie notices, related posts, forms, footers, hidden dialogs. What is for reading stands between GOLD and END.
"""

import html
import re
from collections.abc import Callable, Iterator
from random import Random
from typing import NamedTuple

from proof.ground.peers import crate

CRATE, VERSION = "readability-rust", "0.1.0"
GOLD, END = "<!--gold-->", "<!--end-->"
VARIANTS = 3  # of each layout, with other words and other lengths
LEAST_WORDS = 30  # of an expected text: shorter ones test something else

_WORDS = (
    "the a of and to in is was for that with on as it by from this which are were had has been after before when while "
    "river city council bridge engineer market price water report season valley garden history museum student teacher "
    "science method result sample winter summer harvest village railway station library record archive machine signal "
    "network device battery display keyboard printer camera lens travel island harbour ship captain weather storm cloud "
    "forest animal bird species research paper theory number figure house window kitchen recipe flour butter oven fire "
    "opened closed built found measured described announced planned reached carried changed improved showed explained "
    "new old large small early late common rare public private simple careful useful modern regional northern southern"
).split()
_TAGS = re.compile(r"<!--.*?-->|<(script|style)\b.*?</\1>|<[^>]*>", re.DOTALL)


class GoldPage(NamedTuple):
    """A page, its kind, and the text that is for reading in it."""

    kind: str
    name: str
    body: bytes
    text: str


def plain_text(markup: str) -> str:
    """The text of markup, words apart."""
    return " ".join(html.unescape(_TAGS.sub(" ", markup)).split())


class _Writer:
    """Draws words, and writes the parts that pages of one system have in common."""

    def __init__(self, seed: str) -> None:
        self._chance = Random(seed)

    def words(self, count: int) -> str:
        return " ".join(self._chance.choice(_WORDS) for _ in range(count))

    def title(self) -> str:
        return self.words(self._chance.randint(3, 7)).capitalize()

    def sentence(self) -> str:
        return self.words(self._chance.randint(8, 22)).capitalize() + "."

    def prose(self, sentences: int) -> str:
        return " ".join(self.sentence() for _ in range(self._chance.randint(2, sentences)))

    def paragraphs(self, most: int, tag: str = "p") -> str:
        return "\n".join(f"<{tag}>{self.prose(6)}</{tag}>" for _ in range(self._chance.randint(2, most)))

    def links(self, count: int, tag: str = "li", *, words: int = 2) -> str:
        made = (f'<{tag}><a href="/{n}">{self.words(words).capitalize()}</a></{tag}>' for n in range(count))
        return "".join(made)

    def listing(self, most: int) -> str:
        return "".join(f"<li>{self.sentence()}</li>" for _ in range(self._chance.randint(3, most)))

    def table(self, rows: int, columns: int) -> str:
        head = "".join(f"<th>{self.words(1)}</th>" for _ in range(columns))
        cells = ("".join(f"<td>{self.words(2)}</td>" for _ in range(columns)) for _ in range(rows))
        body = "".join(f"<tr>{row}</tr>" for row in cells)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def code(self) -> str:
        lines = (f"{self.words(1)} = {self.words(1)}({self._chance.randint(1, 99)})" for _ in range(4))
        return "<pre><code class='language-python'>" + "\n".join(lines) + "</code></pre>"

    def some(self, least: int, most: int) -> range:
        return range(self._chance.randint(least, most))

    # what surrounds the page proper

    def head(self, title: str) -> str:
        return (
            f"<!doctype html><html lang=en><head><meta charset=utf-8><title>{title} | Example</title>"
            "<style>.a{color:red}</style><script>window.dataLayer=[];</script></head>"
        )

    def cookies(self) -> str:
        return (
            f'<div id="cookie-law-info-bar" class="cookie-banner"><span>We use cookies. {self.sentence()}</span>'
            '<a href="#" class="button">Accept all</a> <a href="/privacy">Settings</a></div>'
        )

    def share(self) -> str:
        return (
            '<div class="social-share"><span>Share this</span><ul><li><a href="#">Facebook</a></li>'
            '<li><a href="#">Twitter</a></li><li><a href="#">E-mail</a></li></ul></div>'
        )

    def newsletter(self) -> str:
        return (
            f'<form class="newsletter-signup" action="/sub"><h4>Stay informed</h4><p>{self.sentence()}</p>'
            '<input type=email placeholder="Your e-mail"><button>Subscribe</button></form>'
        )

    def footer(self, *, is_element: bool = True) -> str:
        inner = (
            f'<div class="widgets"><h4>About us</h4><p>{self.sentence()}</p><ul>{self.links(6)}</ul></div>'
            "<p>© 2026 Example Ltd. All rights reserved.</p>"
        )
        return f"<footer>{inner}</footer>" if is_element else f'<div id="footer" class="site-footer">{inner}</div>'

    def related(self, tag: str = "div") -> str:
        items = "".join(
            f'<div class="card"><a href="/r{n}"><h3>{self.title()}</h3></a><p>{self.sentence()}</p></div>'
            for n in self.some(2, 4)
        )
        return f'<{tag} class="related-posts"><h2>You may also like</h2>{items}</{tag}>'


# One function for each layout: it returns a page with GOLD and END around what is for reading.


def _wordpress(w: _Writer) -> str:
    title = w.title()
    comments = "".join(f"<li id=comment-{n}><p>{w.prose(3)}</p></li>" for n in w.some(1, 4))
    return (
        f"{w.head(title)}<body class='post single'><a class='skip-link' href='#c'>Skip to content</a>{w.cookies()}"
        f"<header class='site-header'><div class=brand>Example Blog</div><nav><ul>{w.links(8)}</ul></nav></header>"
        f"<div id=primary><article class='post type-post'>{GOLD}<header class='entry-header'><h1>{title}</h1></header>"
        f"<div class='entry-content'>{w.paragraphs(6)}<h2>{w.title()}</h2>{w.paragraphs(4)}<ul>{w.listing(5)}</ul>"
        f"<blockquote><p>{w.prose(3)}</p></blockquote></div>{END}{w.share()}</article>{w.related()}"
        f"<div id=comments class='comments-area'><h2>Comments</h2><ol>{comments}</ol></div></div>"
        f"<aside class='sidebar'><h3>Recent posts</h3><ul>{w.links(5, words=5)}</ul></aside>{w.newsletter()}{w.footer()}"
    )


def _newspaper(w: _Writer) -> str:
    title = w.title()
    return (
        f"{w.head(title)}<body><div id='top-banner-ad' class='advertisement'>Advertisement {w.sentence()}</div>"
        f"<div class='header-wrap'><ul class='main-menu'>{w.links(12)}</ul></div><div class='breadcrumbs'><a href=/>Home</a>"
        f" » <a href=/n>News</a></div><main>{GOLD}<h1>{title}</h1><p class='lead'>{w.prose(3)}</p>{END}{w.share()}{GOLD}"
        f"<div class='story-body'>{w.paragraphs(5)}<figure><img src=a.jpg><figcaption>{w.sentence()}</figcaption></figure>"
        f"{w.paragraphs(5)}</div>{END}<div class='tags'>Tags: {w.links(5, 'span', words=1)}</div>{w.newsletter()}"
        f"{w.related('section')}</main><div id='gdpr-modal' class='modal' style='display:none'><p>{w.prose(5)}</p></div>"
        f"{w.footer()}"
    )


def _old_tables(w: _Writer) -> str:
    title = w.title()
    return (
        f"<html><head><title>{title}</title></head><body bgcolor=white><table width=100%><tr><td width=150 valign=top>"
        f"<font size=2>{w.links(14, 'p')}</font></td><td valign=top>{GOLD}<h1>{title}</h1>{w.paragraphs(7)}"
        f"<h2>{w.title()}</h2>{w.paragraphs(3)}{END}<p><a href=/>Home</a> | <a href=/up>Up</a> | <a href=/n>Next</a></p>"
        f"</td></tr></table><div id=footer><center>Copyright 2001, last update in May</center></div>"
    )


def _sphinx(w: _Writer) -> str:
    title = w.title()
    parts = "".join(
        f'<div class="section" id="{w.words(5).replace(" ", "-")}"><h2>{w.title()}<a class="headerlink" href="#x">¶</a></h2>'
        f"{w.paragraphs(3)}{w.code()}<p>{w.prose(3)}</p><ul>{w.listing(4)}</ul></div>"
        for _ in w.some(2, 4)
    )
    return (
        f'{w.head(title)}<body><div class="related" role="navigation"><h3>Navigation</h3><ul>{w.links(5)}</ul></div>'
        f'<div class="document"><div class="documentwrapper"><div class="bodywrapper"><div class="body" role="main">{GOLD}'
        f"<h1>{title}</h1>{w.paragraphs(2)}{parts}{w.table(4, 3)}{END}</div></div></div><div class='sphinxsidebar'>"
        f"<h3>Table of contents</h3><ul>{w.links(9, words=3)}</ul><div id=searchbox><h3>Quick search</h3></div></div></div>"
        f"<div class='footer'>© Copyright 2026. Created using Sphinx.</div>"
    )


def _docusaurus(w: _Writer) -> str:
    title = w.title()
    parts = "".join(f"<h2 id=s{n}>{w.title()}</h2>{w.paragraphs(3)}{w.code()}" for n in w.some(2, 4))
    return (
        f"{w.head(title)}<body><div role=region aria-label=skip><a href='#m'>Skip to main content</a></div>"
        f"<nav class='navbar'>{w.links(6, 'div')}</nav><div class='docPage'><aside class='sidebar'><ul class=menu>"
        f"{w.links(25, words=3)}</ul></aside><main><article><nav class='breadcrumbs'><ul>{w.links(3)}</ul></nav>"
        f"<div class='theme-doc-markdown markdown'>{GOLD}<header><h1>{title}</h1></header>{w.paragraphs(3)}{parts}"
        f"{w.table(5, 4)}{END}</div><footer><a href=/edit>Edit this page</a> Last updated on 3 May</footer></article>"
        f"<nav class='pagination-nav'><a href=/p>Previous: {w.title()}</a><a href=/n>Next: {w.title()}</a></nav></main>"
        f"<div class='tableOfContents'><ul>{w.links(6, words=3)}</ul></div></div>{w.footer()}"
    )


def _javadoc(w: _Writer) -> str:
    title = f"Class {w.words(1).capitalize()}"
    methods = "".join(
        f"<section class='detail' id='m{n}'><h3>{w.words(1)}</h3><div class='member-signature'>public int {w.words(1)}(int a)"
        f"</div><div class=block>{w.prose(4)}</div><dl class=notes><dt>Returns:</dt><dd>{w.sentence()}</dd></dl></section>"
        for n in w.some(3, 6)
    )
    return (
        f"{w.head(title)}<body><header role=banner><nav role=navigation><ul class=navList>{w.links(8)}</ul></nav></header>"
        f"<main role=main>{GOLD}<h1>{title}</h1><div class=block>{w.paragraphs(3)}</div><section class='method-summary'>"
        f"<h2>Method Summary</h2>{w.table(6, 3)}</section><h2>Method Details</h2>{methods}{END}</main>"
        f"<footer role=contentinfo><p>Report a bug. Copyright 1993.</p></footer>"
    )


def _shopify(w: _Writer) -> str:
    title = w.title()
    facts = "".join(f"<li>{w.words(5)}</li>" for _ in range(6))
    return (
        f"{w.head(title)}<body><div id=shopify-section-announcement-bar class='announcement'>Free delivery over 50</div>"
        f"<header class='site-header'><nav>{w.links(9, 'div')}</nav></header>{w.cookies()}<main id=MainContent>"
        f"<nav class='breadcrumb'>{w.links(3, 'span')}</nav><div class='product'>{GOLD}<h1>{title}</h1><div class=price>"
        f"<span>€ 49.90</span></div>{END}<form action=/cart><select><option>Small<option>Large</select><button>Add to cart"
        f"</button></form>{GOLD}<div class='product__description'>{w.paragraphs(3)}<ul>{facts}</ul></div>"
        f"<h2>Details</h2>{w.table(6, 2)}{END}</div>{w.related('section')}</main><div id=CartDrawer hidden>Your cart is empty"
        f"</div>{w.newsletter()}{w.footer()}"
    )


def _woocommerce(w: _Writer) -> str:
    title = w.title()
    reviews = "".join(f"<li class=review><strong>{w.words(1)}</strong><p>{w.prose(3)}</p></li>" for _ in w.some(2, 4))
    return (
        f"{w.head(title)}<body class='single-product woocommerce'><div id=page><header id=masthead><ul class='menu'>"
        f"{w.links(9)}</ul></header><div id=content><nav class='woocommerce-breadcrumb'><a href=/>Home</a> / <a href=/c>Tools"
        f"</a></nav><div id='product-9' class='product type-product'>{GOLD}<div class='summary'><h1>{title}</h1><p class=price>"
        f"$ 12.00</p><div class='short-description'><p>{w.prose(3)}</p></div></div><div class='panel' id='tab-description'>"
        f"<h2>Description</h2>{w.paragraphs(4)}</div><div class=panel id='tab-reviews'><h2>Reviews</h2><ol>{reviews}</ol>"
        f"</div>{END}</div><section class='related products'><h2>Related products</h2><ul>{w.links(4, words=3)}</ul></section>"
        f"</div><div id=secondary class='sidebar widget-area'><h3>Categories</h3><ul>{w.links(12)}</ul></div></div>"
        f"{w.footer(is_element=False)}"
    )


def _magento(w: _Writer) -> str:
    title = w.title()
    return (
        f"{w.head(title)}<body><div class='page-wrapper'><div class='nav-sections'><ul>{w.links(15)}</ul></div><main "
        f"id='maincontent'><div class='product-info-main'>{GOLD}<div class='page-title-wrapper'><h1>{title}</h1></div>"
        f"<div class='product attribute sku'><strong>SKU</strong> 24-MB01</div><div class='product attribute overview'>"
        f"<p>{w.prose(4)}</p></div></div><div class='product data items'><div class='data item content'><div class=value>"
        f"{w.paragraphs(4)}<ul>{w.listing(5)}</ul></div></div><div class='additional-attributes-wrapper'>{w.table(7, 2)}</div>"
        f"{END}</div><div class='block upsell related'><h3>We found other products you might like!</h3>{w.links(4, words=4)}"
        f"</div></main><div class='modal-popup cookie-notice'><p>{w.prose(3)}</p></div>{w.footer()}</div>"
    )


def _posts(w: _Writer, form: str) -> str:
    return "".join(
        form.format(user=w.words(1), date=f"{n + 1} May 2026", text=w.paragraphs(3), number=n + 1) for n in w.some(3, 7)
    )


def _phpbb(w: _Writer) -> str:
    title = w.title()
    post = (
        f"{END}<div class=postprofile><a href=/u>{{user}}</a> Posts: 12 Joined: 2019</div>{GOLD}<div class='postbody'>"
        f"<div class=content>{{text}}</div></div>{END}<div class=signature>My signature</div>{GOLD}"
    )
    return (
        f"{w.head(title)}<body id=phpbb><div id=wrap><div id='page-header'><div class=navbar><ul>{w.links(6)}</ul></div></div>"
        f"<div id='page-body'>{GOLD}<h2 class='topic-title'>{title}</h2>{END}<div class='action-bar'><a href=/r>Post reply</a>"
        f" <a href=/p>Print view</a></div>{GOLD}{_posts(w, post)}{END}<div class='pagination'>{w.links(4, 'span', words=1)}"
        f"</div><div class='stat-block'><h3>Who is online</h3><p>Users browsing this forum: 2 guests</p></div></div>"
        f"<div id='page-footer'><div class=copyright>Powered by phpBB</div></div></div>"
    )


def _discourse(w: _Writer) -> str:
    title = w.title()
    post = "<div class='topic-body crawler-post'><div class='post' itemprop='text'>{text}</div></div>"
    return (
        f"{w.head(title)}<body class=crawler><header><a href=/>Example Community</a></header><div id='main-outlet' "
        f"class='wrap' role='main'>{GOLD}<div id='topic-title'><h1>{title}</h1></div>{_posts(w, post)}{END}<div "
        f"id='related-topics' class='more-topics__list'><h3>Related topics</h3>{w.table(4, 3)}</div></div><footer "
        f"class='container'><nav>{w.links(5, 'span')}</nav></footer>"
    )


def _questions(w: _Writer) -> str:
    title = w.title()
    answer = f"<div class='answer' id='a{{number}}'><div class='s-prose'>{{text}}</div></div>{END}<div>share edit follow</div>{GOLD}"
    return (
        f"{w.head(title)}<body><header class='s-topbar'><nav>{w.links(4, 'span')}</nav></header><div class=container>"
        f"<div id='left-sidebar'><nav><ol>{w.links(7)}</ol></nav></div><div id=content><div id=mainbar>{GOLD}<h1>{title}</h1>"
        f"<div class='question'><div class='s-prose'>{w.paragraphs(3)}{w.code()}</div></div>{END}<div class='post-taglist'>"
        f"{w.links(3, 'span', words=1)}</div>{GOLD}<h2>Answers</h2>{_posts(w, answer)}{END}<form><h2>Your answer</h2><textarea>"
        f"</textarea></form></div><div id=sidebar><h4>Hot network questions</h4><ul>{w.links(10, words=7)}</ul></div></div>"
        f"</div>{w.footer()}"
    )


def _items(w: _Writer, form: str, least: int = 6, most: int = 14) -> str:
    return "".join(
        form.format(number=n, title=w.title(), text=w.sentence(), more=w.words(3)) for n in w.some(least, most)
    )


def _news_list(w: _Writer) -> str:
    item = "<article class=teaser><h2><a href=/n{number}>{title}</a></h2><p>{text}</p><time>3 May</time></article>"
    return (
        f"{w.head('News')}<body>{w.cookies()}<header><nav><ul>{w.links(9)}</ul></nav></header><main>{GOLD}<h1>News</h1>"
        f"{_items(w, item)}{END}<nav class='pagination'>{w.links(5, 'span', words=1)}</nav></main><aside>"
        f"<h3>Most read</h3><ol>{w.links(5, words=6)}</ol></aside>{w.footer()}"
    )


def _results(w: _Writer) -> str:
    item = "<li class='result'><a href=/n{number}>{title}</a><div class='snippet'>{text}</div><span>{more}</span></li>"
    return (
        f"{w.head('Jobs')}<body><div class='topbar'>{w.links(7, 'span')}</div><div class='facets filter-menu'><h4>Filter</h4>"
        f"<ul>{w.links(12)}</ul></div><div class='results-wrap'>{GOLD}<h1>Jobs in your region</h1><p>{w.sentence()}</p>"
        f"<ul class='results'>{_items(w, item)}</ul>{END}</div>{w.newsletter()}{w.footer(is_element=False)}"
    )


def _events(w: _Writer) -> str:
    item = "<tr><td>{number} May</td><td><a href=/e{number}>{title}</a></td><td>{more}</td></tr>"
    return (
        f"{w.head('Events')}<body><div id=header><ul id=nav>{w.links(8)}</ul></div><div id=content>{GOLD}<h1>Events</h1>"
        f"<p>{w.prose(3)}</p><table><tr><th>Date</th><th>What</th><th>Where</th></tr>{_items(w, item)}</table>{END}</div>"
        f"<div id=sidebar><h3>Archive</h3><ul>{w.links(12, words=2)}</ul></div>{w.footer(is_element=False)}"
    )


def _category(w: _Writer) -> str:
    item = "<li class='grid__item'><a href=/p{number}><h3>{title}</h3></a><span class=price>€ {number}9</span></li>"
    return (
        f"{w.head('Tools')}<body>{w.cookies()}<header><nav>{w.links(10, 'div')}</nav></header><main>{GOLD}<h1>Tools</h1>"
        f"<div class='rte collection-description'><p>{w.prose(4)}</p></div>{END}<div class='facets'><form><h4>Price</h4>"
        f"<label>From <input></label></form></div>{GOLD}<ul class='grid product-grid'>{_items(w, item, 8, 16)}</ul>{END}</main>"
        f"{w.newsletter()}{w.footer()}"
    )


def _mediawiki_category(w: _Writer) -> str:
    return (
        f'{w.head("Category")}<body><div id="content" class="mw-body" role="main">{GOLD}<h1>Category: {w.title()}</h1>'
        f"<p>{w.prose(3)}</p><h2>Pages in category</h2><div class='mw-category'><ul>{w.links(30, words=2)}</ul></div>{END}</div>"
        f"<div id='mw-navigation'><h2>Navigation menu</h2><div id='p-personal'><ul>{w.links(5)}</ul></div><div id='mw-panel'>"
        f"<ul>{w.links(14)}</ul></div></div><div id='footer' role='contentinfo'><ul><li>This page was last edited in May.</ul></div>"
    )


def _portfolio(w: _Writer) -> str:
    item = "<div class='card'><img src=i{number}.jpg><div class='card-body'><h5>{title}</h5><p>{text}</p></div></div>"
    return (
        f"{w.head('Projects')}<body><nav class='navbar navbar-expand'>{w.links(6, 'span')}</nav><section class='hero'>{GOLD}"
        f"<h1>Our projects</h1><p>{w.sentence()}</p></section><div class='container'><div class=row>{_items(w, item)}</div>"
        f"{END}</div><div class='modal' id=contact><p>{w.prose(2)}</p></div>{w.footer()}"
    )


def _service(w: _Writer) -> str:
    part = "<section class='block'><h2>{title}</h2><p>{text}</p><p>{more}</p></section>"
    return (
        f"{w.head('Service')}<body>{w.cookies()}<header class='header'><a href=/>Logo</a><nav>{w.links(7, 'span')}</nav></header>"
        f"<section class='hero'>{GOLD}<h1>{w.title()}</h1><p>{w.prose(2)}</p>{END}<a class=btn href=/go>Get a quote</a></section>"
        f"{GOLD}{_items(w, part, 3, 6)}<section class='faq'><h2>Questions</h2><dl><dt>{w.sentence()}</dt><dd>{w.prose(3)}</dd>"
        f"<dt>{w.sentence()}</dt><dd>{w.prose(3)}</dd></dl></section>{END}{w.newsletter()}{w.footer()}"
    )


def _government(w: _Writer) -> str:
    return (
        f"{w.head('Permit')}<body><div class='gem-c-cookie-banner' role='region'>{w.prose(2)}</div><header role=banner>"
        f"<a href=/>GOV</a></header><div class='breadcrumbs'><ol>{w.links(3)}</ol></div><main id=content role=main>{GOLD}<h1>"
        f"{w.title()}</h1><p class=lead>{w.prose(3)}</p><h2>Before you start</h2><ol>{w.listing(5)}</ol><h2>Fees</h2>"
        f"{w.table(3, 2)}{w.paragraphs(3)}{END}</main><div class='related-navigation' role=complementary><h2>Related content"
        f"</h2><ul>{w.links(5, words=4)}</ul></div><div class='feedback'><form><h2>Is this page useful?</h2><button>Yes</button>"
        f"</form></div>{w.footer()}"
    )


def _practice(w: _Writer) -> str:
    return (
        f"<html><head><title>Practice</title></head><body><div id=wrapper><div id=navigation><ul>{w.links(6)}</ul></div>"
        f"<div id=main>{GOLD}<h1>{w.title()}</h1>{w.paragraphs(3)}<h3>Opening hours</h3>{w.table(5, 2)}<h3>How to find us</h3>"
        f"<p>{w.prose(3)}</p><address>1 High Street, Example Town</address>{END}</div><div id=right><div class='sidebar-box'>"
        f"<h4>News</h4><p>{w.prose(2)}</p></div></div>{w.footer(is_element=False)}</div>"
    )


LAYOUTS: dict[str, tuple[Callable[[_Writer], str], ...]] = {
    "article": (_wordpress, _newspaper, _old_tables),
    "documentation": (_sphinx, _docusaurus, _javadoc),
    "shop": (_shopify, _woocommerce, _magento),
    "forum": (_phpbb, _discourse, _questions),
    "listing": (_news_list, _results, _events),
    "collection": (_category, _mediawiki_category, _portfolio),
    "service": (_service, _government, _practice),
}


def written_pages(variants: int = VARIANTS) -> Iterator[GoldPage]:
    """Pages of each kind, the same at each call."""
    for kind, layouts in LAYOUTS.items():
        for layout in layouts:
            for number in range(variants):
                name = f"{layout.__name__[1:]}-{number}"
                written = layout(_Writer(name))
                gold = " ".join(part.partition(END)[0] for part in written.split(GOLD)[1:])
                yield GoldPage(kind, name, written.replace(GOLD, "").replace(END, "").encode(), plain_text(gold))


def mozilla_pages() -> Iterator[GoldPage]:
    """The pages of Mozilla's reader view, with the text that is expected of it."""
    folders = (crate(CRATE, VERSION) / "mozzilla-readability" / "test" / "test-pages").iterdir()
    for folder in sorted(folders):
        text = plain_text((folder / "expected.html").read_text("utf-8", "replace"))
        if len(text.split()) >= LEAST_WORDS:
            yield GoldPage("Mozilla's articles", folder.name, (folder / "source.html").read_bytes(), text)
