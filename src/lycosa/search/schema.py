"""The fields of the index, their tokenisers, and the two kinds of documents that a page becomes.

    page   page, cluster, alike, speaks, date · title_L, heads_L, text_L, url · site, lang, type     what it says itself
    name   name, words, date · given_L (the title), calls_L · site, lang, type                       what others call it
    copy   copy, cluster                                                                             its document again
    mark   mark, covered                                                                   how far the feed is covered

`L` is the language that the page is tokenised in. As in the papers' short and full barrels, anchor texts stand in a
document of their own: when a page gets new ones it is a few words that are indexed again, not the page. Nothing is
stored: URL, title and date are in the state, the text is in the archive. Numbers are FileNums; `cluster` is the same
for pages whose documents are equal, and only one of those is a page here, the others are copies; `alike` is the same
for pages whose main text is, in whatever markup. `speaks` is L as a number.
"""

from functools import cache

import tantivy

from lycosa.search.language import LANGUAGES, STEMMED

VERSION = 2  # raised when an index of before could no longer be read

LONGEST_TOKEN = 50  # longer ones are data, not words
NUMBERS = ("page", "name", "copy", "cluster", "alike", "speaks", "words", "mark", "covered")
KEYS = ("page", "name", "copy", "cluster", "mark")
TERMS = ("site", "lang", "type")
# Field → how it is indexed; headings stand in the text too, where phrases are found.
BY_LANGUAGE = {"title": "position", "heads": "freq", "text": "position", "calls": "position", "given": "position"}
WITH_POSITIONS = frozenset({"title", "text", "calls", "given", "url"})


@cache
def schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    for name in NUMBERS:
        builder.add_unsigned_field(name, indexed=name in KEYS, fast=True)
    builder.add_integer_field("date", fast=True)
    for name in TERMS:
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("url", tokenizer_name=LANGUAGES[-1], index_option="position")
    for field, option in BY_LANGUAGE.items():
        for language in LANGUAGES:
            builder.add_text_field(f"{field}_{language}", tokenizer_name=language, index_option=option)
    return builder.build()


@cache
def analyser(language: str) -> tantivy.TextAnalyzer:
    """Words in lower case, without accents, since many are typed without, then stemmed where there is a stemmer."""
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    for step in (tantivy.Filter.remove_long(LONGEST_TOKEN), tantivy.Filter.lowercase(), tantivy.Filter.ascii_fold()):
        builder = builder.filter(step)
    if stemmer := STEMMED.get(language):
        builder = builder.filter(tantivy.Filter.stemmer(stemmer))
    return builder.build()


def register(index: tantivy.Index) -> None:
    """Gives an open index its tokenisers: they are not kept with it."""
    for language in LANGUAGES:
        index.register_tokenizer(language, analyser(language))
