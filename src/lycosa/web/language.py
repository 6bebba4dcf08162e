"""Languages: that of a text, by py3langid, a detector that knows 140 of them (`detect_language`), and their codes.

Detection looks at some hundred characters from the middle of a text, which takes 0.1 ms; what is asked first waits for
the model, half a second and 100 MB. So it runs when somebody asks for it: the search index tells the languages that it
has stemmers for by their small words, which is quicker. English, which most pages are in, is plain from its small
words, and `language_of_text` asks the detector of other texts only: no other language has many of those. Web archives
and Common Crawl name languages by three letters (ISO 639-3); search engines take x-default in `hreflang`, or ISO 639-1
with or without a script and an ISO 3166-1 country. Pure; any text gives a result.
"""

import re
from functools import cache
from typing import Any, NamedTuple

_CODES = dict(
    pair.split(":")
    for pair in """
    aa:aar ab:abk ae:ave af:afr ak:aka am:amh an:arg ar:ara as:asm av:ava ay:aym az:aze ba:bak be:bel bg:bul bi:bis
    bm:bam bn:ben bo:bod br:bre bs:bos ca:cat ce:che ch:cha co:cos cr:cre cs:ces cu:chu cv:chv cy:cym da:dan de:deu
    dv:div dz:dzo ee:ewe el:ell en:eng eo:epo es:spa et:est eu:eus fa:fas ff:ful fi:fin fj:fij fo:fao fr:fra fy:fry
    ga:gle gd:gla gl:glg gn:grn gu:guj gv:glv ha:hau he:heb hi:hin ho:hmo hr:hrv ht:hat hu:hun hy:hye hz:her ia:ina
    id:ind ie:ile ig:ibo ii:iii ik:ipk io:ido is:isl it:ita iu:iku ja:jpn jv:jav ka:kat kg:kon ki:kik kj:kua kk:kaz
    kl:kal km:khm kn:kan ko:kor kr:kau ks:kas ku:kur kv:kom kw:cor ky:kir la:lat lb:ltz lg:lug li:lim ln:lin lo:lao
    lt:lit lu:lub lv:lav mg:mlg mh:mah mi:mri mk:mkd ml:mal mn:mon mr:mar ms:msa mt:mlt my:mya na:nau nb:nob nd:nde
    ne:nep ng:ndo nl:nld nn:nno no:nor nr:nbl nv:nav ny:nya oc:oci oj:oji om:orm or:ori os:oss pa:pan pi:pli pl:pol
    ps:pus pt:por qu:que rm:roh rn:run ro:ron ru:rus rw:kin sa:san sc:srd sd:snd se:sme sg:sag sh:hbs si:sin sk:slk
    sl:slv sm:smo sn:sna so:som sq:sqi sr:srp ss:ssw st:sot su:sun sv:swe sw:swa ta:tam te:tel tg:tgk th:tha ti:tir
    tk:tuk tl:tgl tn:tsn to:ton tr:tur ts:tso tt:tat tw:twi ty:tah ug:uig uk:ukr ur:urd uz:uzb ve:ven vi:vie vo:vol
    wa:wln wo:wol xh:xho yi:yid yo:yor za:zha zh:zho zu:zul
    """.split()
)
_COUNTRIES = frozenset(
    "ad ae af ag ai al am ao aq ar as at au aw ax az ba bb bd be bf bg bh bi bj bl bm bn bo bq br bs bt bv bw by"
    " bz ca cc cd cf cg ch ci ck cl cm cn co cr cu cv cw cx cy cz de dj dk dm do dz ec ee eg eh er es et fi fj fk"
    " fm fo fr ga gb gd ge gf gg gh gi gl gm gn gp gq gr gs gt gu gw gy hk hm hn hr ht hu id ie il im in io iq ir"
    " is it je jm jo jp ke kg kh ki km kn kp kr kw ky kz la lb lc li lk lr ls lt lu lv ly ma mc md me mf mg mh mk"
    " ml mm mn mo mp mq mr ms mt mu mv mw mx my mz na nc ne nf ng ni nl no np nr nu nz om pa pe pf pg ph pk pl pm"
    " pn pr ps pt pw py qa re ro rs ru rw sa sb sc sd se sg sh si sj sk sl sm sn so sr ss st sv sx sy sz tc td tf"
    " tg th tj tk tl tm tn to tr tt tv tw tz ua ug um us uy uz va vc ve vg vi vn vu wf ws ye yt za zm zw".split()
)
_HREFLANG = re.compile(r"([a-z]{2})(?:-[a-z]{4})?(?:-([a-z]{2}))?")


def three_letters(language: str) -> str:
    """The code of ISO 639-3 for a language as a page names it (`en`, `de-AT`, `deu`); empty if there is none."""
    primary = language.strip().lower().replace("_", "-").partition("-")[0]
    if len(primary) == 3 and primary.isascii() and primary.isalpha():
        return primary
    return _CODES.get(primary, "")


def is_language_code(code: str) -> bool:
    """Is this a value of `hreflang` that search engines take, in lower case?"""
    found = _HREFLANG.fullmatch(code)
    if found is None:
        return code == "x-default"
    return found[1] in _CODES and (found[2] is None or found[2] in _COUNTRIES)


SAMPLE_CHARS = 300
# Below this score a text says nothing of its language; 0.9 is as good as certain. A few words seldom reach it.
LEAST_SCORE = 0.5
ENGLISH_CHARS = 1_000  # that are looked at for small words
ENGLISH_WORDS, ENGLISH_SHARE = 5, 0.15  # so many different ones, and such a share of all words, make a text English
_ENGLISH = frozenset(
    "the and of to that for with are this by it from which you not have has can will these when other been their "
    "should only where would such any into than if".split()
)
_NO_LANGUAGE = frozenset(("zxx", "und"))


class DetectedLanguage(NamedTuple):
    """A language, of two or three letters (ISO 639), and how sure the detector is, from 0 to 1. Empty: it is not."""

    language: str = ""
    score: float = 0.0


def language_of_text(text: str) -> str:
    """The language that a text is written in, without a score; empty where that cannot be told."""
    start = max(0, len(text) - ENGLISH_CHARS) // 3
    words = text[start : start + ENGLISH_CHARS].lower().split()
    small = [word for word in words if word in _ENGLISH]
    is_english = len(set(small)) >= ENGLISH_WORDS and len(small) >= ENGLISH_SHARE * len(words)
    return "en" if is_english else detect_language(text).language


def detect_language(text: str) -> DetectedLanguage:
    """The language that a text is written in."""
    sample = _sample(text)
    detector = _detector() if any(map(str.isalpha, sample)) else None
    if detector is None:
        return DetectedLanguage()
    found, score = detector.classify(sample)
    if score < LEAST_SCORE or found in _NO_LANGUAGE:
        return DetectedLanguage("", round(score, 4))
    return DetectedLanguage(found, round(score, 4))


def _sample(text: str) -> str:
    """Some of a text, whole words from behind its first third: at the beginning there are names and menus."""
    start = max(0, len(text) - SAMPLE_CHARS) // 3
    piece = text[start : start + SAMPLE_CHARS]
    cut = piece.partition(" ")[2].rpartition(" ")[0] if start else piece
    return " ".join((cut or piece).split()).encode("utf-8", "replace").decode()


@cache
def _detector() -> Any:
    """The detector; None where it is not installed, so that no language is known."""
    try:
        from py3langid.langid import MODEL_FILE, LanguageIdentifier  # lazy: half a second, when it is first asked for
    except ImportError:
        return None
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
