"""The character encodings of the web: labels to encodings, bytes to text and back, by the WHATWG Encoding standard.

Python's codecs bear the same names and mean other things: its `gbk` is not the web's, its `latin-1` is the web's
windows-1252. So every encoding here is Python's nearest codec plus the code points in which it differs.
What cannot be read becomes U+FFFD where and as often as the standard says, up to `_MAX_OPINIONS` times a document.
Invariant: `decode_text` never raises, and an ASCII byte is never swallowed by a broken sequence before it.
The native kernel has the same encodings from a library; this is its twin. Called by `charset` (what does it say?) and
by `links` (how is a query sent?).
"""

import codecs
import re
from collections.abc import Container
from functools import cache
from typing import Any

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

_LABELS = {
    "UTF-8": "unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf-8 utf8 x-unicode20utf8",
    "IBM866": "866 cp866 csibm866 ibm866",
    "ISO-8859-2": "csisolatin2 iso-8859-2 iso-ir-101 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 l2 latin2",
    "ISO-8859-3": "csisolatin3 iso-8859-3 iso-ir-109 iso8859-3 iso88593 iso_8859-3 iso_8859-3:1988 l3 latin3",
    "ISO-8859-4": "csisolatin4 iso-8859-4 iso-ir-110 iso8859-4 iso88594 iso_8859-4 iso_8859-4:1988 l4 latin4",
    "ISO-8859-5": ("csisolatincyrillic cyrillic iso-8859-5 iso-ir-144 iso8859-5 iso88595 iso_8859-5 iso_8859-5:1988"),
    "ISO-8859-6": (
        "arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso-8859-6 iso-8859-6-e "
        "iso-8859-6-i iso-ir-127 iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987"
    ),
    "ISO-8859-7": (
        "csisolatingreek ecma-118 elot_928 greek greek8 iso-8859-7 iso-ir-126 iso8859-7 iso88597 iso_8859-7 "
        "iso_8859-7:1987 sun_eu_greek"
    ),
    "ISO-8859-8": (
        "csiso88598e csisolatinhebrew hebrew iso-8859-8 iso-8859-8-e iso-ir-138 iso8859-8 iso88598 iso_8859-8 "
        "iso_8859-8:1988 visual"
    ),
    "ISO-8859-8-I": "csiso88598i iso-8859-8-i logical",
    "ISO-8859-10": "csisolatin6 iso-8859-10 iso-ir-157 iso8859-10 iso885910 l6 latin6",
    "ISO-8859-13": "iso-8859-13 iso8859-13 iso885913",
    "ISO-8859-14": "iso-8859-14 iso8859-14 iso885914",
    "ISO-8859-15": "csisolatin9 iso-8859-15 iso8859-15 iso885915 iso_8859-15 l9",
    "ISO-8859-16": "iso-8859-16",
    "KOI8-R": "cskoi8r koi koi8 koi8-r koi8_r",
    "KOI8-U": "koi8-ru koi8-u",
    "macintosh": "csmacintosh mac macintosh x-mac-roman",
    "windows-874": "dos-874 iso-8859-11 iso8859-11 iso885911 tis-620 windows-874",
    "windows-1250": "cp1250 windows-1250 x-cp1250",
    "windows-1251": "cp1251 windows-1251 x-cp1251",
    "windows-1252": (
        "ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso8859-1 iso88591 "
        "iso_8859-1 iso_8859-1:1987 l1 latin1 us-ascii windows-1252 x-cp1252"
    ),
    "windows-1253": "cp1253 windows-1253 x-cp1253",
    "windows-1254": (
        "cp1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9 iso_8859-9:1989 l5 latin5 "
        "windows-1254 x-cp1254"
    ),
    "windows-1255": "cp1255 windows-1255 x-cp1255",
    "windows-1256": "cp1256 windows-1256 x-cp1256",
    "windows-1257": "cp1257 windows-1257 x-cp1257",
    "windows-1258": "cp1258 windows-1258 x-cp1258",
    "x-mac-cyrillic": "x-mac-cyrillic x-mac-ukrainian",
    "GBK": "chinese csgb2312 csiso58gb231280 gb2312 gb_2312 gb_2312-80 gbk iso-ir-58 x-gbk",
    "gb18030": "gb18030",
    "Big5": "big5 big5-hkscs cn-big5 csbig5 x-x-big5",
    "EUC-JP": "cseucpkdfmtjapanese euc-jp x-euc-jp",
    "ISO-2022-JP": "csiso2022jp iso-2022-jp",
    "Shift_JIS": "csshiftjis ms932 ms_kanji shift-jis shift_jis sjis windows-31j x-sjis",
    "EUC-KR": (
        "cseuckr csksc56011987 euc-kr iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 windows-949"
    ),
    "replacement": "csiso2022kr hz-gb-2312 iso-2022-cn iso-2022-cn-ext iso-2022-kr replacement",
    "UTF-16BE": "unicodefffe utf-16be",
    "UTF-16LE": "csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16 utf-16le",
    "x-user-defined": "x-user-defined",
}
_ENCODING_OF = {label: name for name, labels in _LABELS.items() for label in labels.split()}

# What may stand around a label: ASCII whitespace, nothing else.
_WHITESPACE = "\t\n\f\r "

# Single-byte encodings whose Python codec goes by another name.
_CODECS = {
    "ISO-8859-8-I": "iso8859-8",
    "macintosh": "mac-roman",
    "x-mac-cyrillic": "mac-cyrillic",
    "windows-874": "cp874",
}
# Bytes that the web maps and Python's codec does not, or maps elsewhere. A byte below 0xA0 that Python leaves out is
# the C1 control of the same number in every windows encoding.
_SINGLE_BYTE_PATCHES = {
    "KOI8-U": {0xAE: 0x45E, 0xBE: 0x40E},
    "windows-1255": {0xCA: 0x5BA},
}

# A second opinion takes a microsecond; a body of nothing but errors would ask for millions.
_MAX_OPINIONS = 100_000

_BIG5_PATCH = str.maketrans(
    dict(zip((0x2022, 0xFF64, 0x203E, 0x223C, 0x2641, 0x2609), "‧﹑¯～⊕⊙", strict=True))
    | {0xA5: 0xFFE5, 0xA2: 0xFFE0, 0xA3: 0xFFE1}
)
# Codes that the web reads and neither of Python's two codecs does: each is two bytes, then their character.
_BIG5_CODES = (
    "877a㡵 877b𡵓 877c𣚞 877d𦀡 877e㻬 87a1𥣞 87a2㫵 87a3竼 87a4龗 87a5𤅡 87a6𨤍 87a7𣇪 87a8𠪊 87a9𣉞 87aa䌊 87ab蒄 "
    "87ac龖 87ad鐯 87ae䤰 87af蘓 87b0墖 87b1靊 87b2鈘 87b3秐 87b4稲 87b5晠 87b6権 87b7袝 87b8瑌 87b9篅 87ba枂 87bb稬 "
    "87bc剏 87bd遆 87be㓦 87bf珄 87c0𥶹 87c1瓆 87c2鿇 87c3垳 87c4䤯 87c5呌 87c6䄱 87c7𣚎 87c8堘 87c9穲 87ca𧭥 87cb讏 "
    "87cc䚮 87cd𦺈 87ce䆁 87cf𥶙 87d0箮 87d1𢒼 87d2鿈 87d3𢓁 87d4𢓉 87d5𢓌 87d6鿉 87d7蔄 87d8𣖻 87d9䂴 87da鿊 87db䓡 "
    "87dc𪷿 87dd拁 87de灮 87df鿋 8e69箸 8e6f簆 8e7e糎 8eab緒 8eb4縝 8ecd者 8ed0耨 8f57菁 8f69蒨 8f6e萏 8fcb覦 8fcc覩 "
    "8ffe起 906d都 907a銹 90dc靜 90f1響 91bf鼖 9244蔃 92af兙 92b0兛 92b1兝 92b2兞 92c8鍮 92d1瑹 9447浧 94ca禛 95d9邗 "
    "9644靝 96ed瀞 96fc嬨 9b76爁 9b78矗 9b7b纇 9bc6駖 9bde釔 9bec惞 9bf6澶 9c42輶 9c53侻 9c62營 9c68鄄 9c6b鷰 9c77菏 "
    "9cbc尐 9cbd秣 9cd0婧 9d57輋 9d5a筑 9dc4拐 9ea9恢 9eef痹 9efd汊 9f60鬮 9f66鼗 9fcb僭 9fd8弌 a063蠏 a077拎 a0d5瑨 "
    "a0df煢 a0e4牐 fa5f倩 fa66偽 fabd包 fac5卄 fad5卿 fb48嘅 fbb8婷 fbf3幵 fbf9廐 fc4f彘 fc6c悤 fcb9撐 fce2晴 fcf1杞 "
    "fdb7沜 fdb8渝 fdbb港 fdf1煮 fe52猪 fe6f瑜 feaa瓩 fedd砉"
)
_BIG5_MISSING = {bytes.fromhex(code[:4]): code[4:] for code in _BIG5_CODES.split()} | {
    bytes((0xA3, 0xC0 + number)): chr(0x2400 + number) for number in range(0x20)
}
_BIG5_MISSING[b"\xa3\xe0"] = "\u2421"
# Codes that Python reads as a character which has another code, too: no translation afterwards tells the two apart.
_BIG5_OTHERWISE = {
    b"\xa2A": "∕",
    b"\xa2B": "﹨",
    b"\xc6\xcf": "廴",
    b"\xc6\xd3": "无",
    b"\xc6\xd5": "癶",
    b"\xc6\xd7": "隶",
    b"\xc6\xde": "〃",
    b"\xc6\xdf": "仝",
}
# Pieces of a Big5 text: one of those codes, or everything up to the next of them.
_BIG5_PIECES = re.compile(
    rb"\xa2[AB]|\xc6[\xcf\xd3\xd5\xd7\xde\xdf]|"
    rb"(?s:(?:(?!\xa2[AB]|\xc6[\xcf\xd3\xd5\xd7\xde\xdf])(?:[\x81-\xfe][\x40-\x7e\x80-\xff]|.))+)"
)
# Two-byte codes that GB 18030-2005 and -2022 moved out of the private use area.
_GB_PATCH = str.maketrans(
    dict(zip(range(0xE78D, 0xE797), (0xFE10, 0xFE12, 0xFE11, *range(0xFE13, 0xFE1A)), strict=True))
    | dict(
        zip(
            (0xE81E, 0xE826, 0xE82B, 0xE82C, 0xE832, 0xE843, 0xE854, 0xE864),
            range(0x9FB4, 0x9FBC),
            strict=True,
        )
    )
    | {0xE7C7: 0x1E3F, 0x1E3F: 0xE7C7, 0xE5E5: 0x3000}
)
# A code of four bytes, or as much of one as is left at the end.
_GB_FOUR_BYTES = re.compile(rb"[\x81-\xfe](?:[0-9](?:[\x81-\xfe][0-9]?)?)?")
# The web reads JIS X 0208 as Windows did: fullwidth forms where Python's codec has the narrow or mathematical ones.
_JIS_PATCH = str.maketrans({0x301C: 0xFF5E, 0x2016: 0x2225, 0x2212: 0xFF0D, 0xA2: 0xFFE0, 0xA3: 0xFFE1, 0xAC: 0xFFE2})
_JIS_ESCAPE = re.compile(rb"\x1b(\([BIJ]|\$[@B])")
_JIS_ASCII, _JIS_PAIRS = re.compile(rb"[\0-\x0d\x10-\x1a\x1c-\x7f]+"), re.compile(rb"(?:[\x21-\x7e]{2})+")
_JIS_RUNS = {
    b"(B": _JIS_ASCII,
    b"(J": _JIS_ASCII,
    b"(I": re.compile(rb"[\x21-\x5f]+"),
    b"$@": _JIS_PAIRS,
    b"$B": _JIS_PAIRS,
}
_HIGH_BITS = bytes(byte | 0x80 for byte in range(256))
# A code of EUC-JP, or as much of one as is read before it is found to mean nothing.
_EUC_JP_CODE = re.compile(rb"\x8f[\xa1-\xfe][\x80-\xff]|[\x8e\x8f\xa1-\xfe][\x80-\xff]")
_JIS_ROMAN = {0x5C: 0xA5, 0x7E: 0x203E}
_JIS_KATAKANA = {byte: 0xFF61 - 0x21 + byte for byte in range(0x21, 0x60)}
_SHIFT_JIS_PATCH = str.maketrans(dict.fromkeys(range(0xF8F0, 0xF8F4), 0xFFFD))
_KATAKANA = (
    "。「」、・ヲァィゥェォャュョッーアイウエオカキクケコサシスセ"
    "ソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワン゛゜"
)
_JIS_WIDE = {0xFF61 + number: wide for number, wide in enumerate(_KATAKANA)}
_EUC_JP_LEADS = frozenset((0x8E, 0x8F, *range(0xA1, 0xFF)))
_JIS_ALSO = {"\u00a5": b"\\", "\u203e": b"~"}
_BIG5_LAST = frozenset("\u2550\u255e\u2561\u256a\u5341\u5345")  # two codes each, of which the last is written
# Lead bytes that are read and never written: vendors' copies of what stands elsewhere, and private use.
_NOT_WRITTEN = {"Big5": range(0x81, 0xA1), "Shift_JIS": (0xED, 0xEE, *range(0xF0, 0xFA))}
_USER_DEFINED = "".join(map(chr, range(0x80))) + "".join(map(chr, range(0xF780, 0xF800)))


def encoding_of(label: str) -> str | None:
    """The encoding that a label means, by its name in the standard; `None` for an unknown label."""
    return _ENCODING_OF.get(label.strip(_WHITESPACE).lower())


def decode_text(body: bytes, encoding: str) -> str:
    """The text of `body` in `encoding` (a name from `encoding_of`). What cannot be read becomes U+FFFD."""
    match encoding:
        case "UTF-8":
            return body.decode("utf-8", "replace")
        case "UTF-16LE" | "UTF-16BE":
            return body.decode("utf-16-le" if encoding == "UTF-16LE" else "utf-16-be", "replace")
        case "GBK" | "gb18030":
            return _decode_leniently(body, "gb18030", "lycosa-gb").translate(_GB_PATCH)
        case "Big5":
            return "".join([_BIG5_OTHERWISE.get(piece) or _big5_text(piece) for piece in _big5_pieces(body)])
        case "EUC-KR":
            return _decode_leniently(body, "cp949", "lycosa-pair")
        case "Shift_JIS":
            return _decode_leniently(body, "cp932", "lycosa-pair").translate(_SHIFT_JIS_PATCH)
        case "EUC-JP":
            return _euc_jp_text(body)
        case "ISO-2022-JP":
            return _iso_2022_jp_text(body)
        case "replacement":
            return REPLACEMENT if body else ""
        case _:
            return codecs.charmap_decode(body, "replace", _table_of(encoding))[0]


def encode_text(text: str, encoding: str) -> bytes:
    """`text` in `encoding`, as the query of a URL has it: what the encoding lacks is `&#N;`, escaped."""
    match encoding:
        case "UTF-8" | "UTF-16LE" | "UTF-16BE" | "replacement":
            return text.encode("utf-8", "lycosa-reference")
        case "ISO-2022-JP":
            return _iso_2022_jp_bytes(text.translate(_JIS_WIDE))
        case "GBK" | "gb18030" | "Big5" | "EUC-KR" | "Shift_JIS" | "EUC-JP":
            codes = _codes(encoding)
            return b"".join([codes.get(character) or _lacking(character, encoding) for character in text])
        case _:
            return codecs.charmap_encode(text, "lycosa-reference", _map_of(encoding))[0]


def _lacking(character: str, encoding: str) -> bytes:
    """A character without a code of one or two bytes: gb18030 has four for every other, and what it moved out of the
    private use area is still written as before."""
    is_moved = encoding == "GBK" and ord(character) in _GB_PATCH and character not in "\u1e3f\ue7c7"
    if (encoding == "gb18030" or is_moved) and character != "\ue5e5":
        return character.replace("\ue7c7", "\u1e3f").encode("gb18030", "lycosa-reference")
    return _reference(character).encode()


def _iso_2022_jp_bytes(text: str) -> bytes:
    """Each character after the escape that chooses its set; at the end ASCII is chosen again."""
    codes, written, chosen = _codes("EUC-JP"), bytearray(), b"(B"
    for character in text:
        code = codes.get(character, b"")
        if len(code) == 2:
            wanted, code = b"$B", bytes(byte & 0x7F for byte in code)
        elif code:
            wanted = b"(J"
        else:
            wanted, code = b"(B" if chosen == b"$B" else chosen, _reference(character).encode()
        if wanted != chosen:
            written += b"\x1b" + wanted
        written += code
        chosen = wanted
    return bytes(written) + (b"" if chosen == b"(B" else b"\x1b(B")


def _reference(characters: str) -> str:
    return "".join([f"%26%23{ord(character)}%3B" for character in characters])


@cache
def _codes(encoding: str) -> dict[str, bytes]:
    """The bytes of each character in an encoding of one and two: what `decode` reads, turned round."""
    leads = [lead for lead in range(0x80, 0xFF) if lead not in _NOT_WRITTEN.get(encoding, ())]
    written = [] if encoding == "gb18030" else [bytes((byte,)) for byte in range(0x80, 0x100)]
    written += [bytes((lead, trail)) for lead in leads for trail in range(0x40, 0xFF)]
    codes: dict[str, bytes] = {}
    for character, code in zip(decode_text(b"\n".join(written), encoding).split("\n"), written, strict=True):
        is_written = character not in codes or (encoding == "Big5" and character in _BIG5_LAST)
        if is_written and len(character) == 1 and character != REPLACEMENT:
            codes[character] = code
    if encoding in ("Shift_JIS", "EUC-JP"):
        codes |= _JIS_ALSO | {"\u2212": codes["\uff0d"]}
    return codes


@cache
def _map_of(encoding: str) -> Any:
    return codecs.charmap_build(_table_of(encoding))


def _decode_leniently(body: bytes, codec: str, handler: str) -> str:
    """Decodes with a second opinion on what the codec cannot read, unless that is so much that it is no text at all."""
    text = body.decode(codec, "replace")
    return body.decode(codec, handler) if 0 < text.count(REPLACEMENT) <= _MAX_OPINIONS else text


def _big5_pieces(body: bytes) -> list[bytes]:
    """A text with a code that Python reads otherwise is cut at these; nearly all others stay in one piece."""
    return _BIG5_PIECES.findall(body) if any(code in body for code in _BIG5_OTHERWISE) else [body]


def _big5_text(body: bytes) -> str:
    return _decode_leniently(body, "big5hkscs", "lycosa-big5").translate(_BIG5_PATCH)


def _euc_jp_text(body: bytes) -> str:
    if b"\x8f\xa2\xb7" in body:  # Python reads the tilde of JIS X 0212 as the ASCII one; it is that of JIS X 0208
        body = _EUC_JP_CODE.sub(lambda code: b"\xa1\xc1" if code[0] == b"\x8f\xa2\xb7" else code[0], body)
    return _decode_leniently(body, "euc_jp", "lycosa-euc-jp").translate(_JIS_PATCH)


def _iso_2022_jp_text(body: bytes) -> str:
    """The text between the escapes, each part in the set that its escape has chosen; at first that is ASCII."""
    text: list[str] = []
    at, chosen, was_escape = 0, b"(B", False
    while at < len(body):
        if escape := _JIS_ESCAPE.match(body, at):
            text.append(REPLACEMENT if was_escape else "")  # an escape after which nothing comes is an error
            at, chosen, was_escape = escape.end(), escape[1], True
            continue
        was_escape = False
        if run := _JIS_RUNS[chosen].match(body, at):
            text.append(_jis_text(run[0], chosen))
            at = run.end()
        else:
            text.append(REPLACEMENT)
            is_half = (
                chosen.startswith(b"$") and 0x21 <= body[at] <= 0x7E and body[at + 1 : at + 2] not in (b"", b"\x1b")
            )
            at += 2 if is_half else 1
    return "".join(text)


def _jis_text(run: bytes, chosen: bytes) -> str:
    if chosen.startswith(b"$"):  # JIS X 0208 with the high bits off is EUC-JP with them on
        return _euc_jp_text(run.translate(_HIGH_BITS))
    sets = {b"(I": _JIS_KATAKANA, b"(J": _JIS_ROMAN}
    return run.decode("ascii").translate(sets.get(chosen, {}))


@cache
def _table_of(encoding: str) -> str:
    """The 256 characters of a single-byte encoding; U+FFFE marks a byte that means nothing."""
    if encoding == "x-user-defined":
        return _USER_DEFINED
    codec = _CODECS.get(encoding, encoding)
    patch = _SINGLE_BYTE_PATCHES.get(encoding, {})
    return "".join(_character(byte, codec, patch) for byte in range(256))


def _character(byte: int, codec: str, patch: dict[int, int]) -> str:
    if byte in patch:
        return chr(patch[byte])
    character = bytes((byte,)).decode(codec, "replace")
    if character != REPLACEMENT:
        return character
    return chr(byte) if 0x80 <= byte < 0xA0 else "\ufffe"


def _skip(error: UnicodeError, leads: Container[int] = range(0x81, 0xFF)) -> tuple[str | bytes, int]:
    """U+FFFD for a code that means nothing, and where to go on: an ASCII byte is never part of such a code."""
    assert isinstance(error, UnicodeDecodeError)
    data, at = error.object, error.start
    return REPLACEMENT, at + (2 if data[at] in leads and data[at + 1 : at + 2] >= b"\x80" else 1)


def _gb_error(error: UnicodeError) -> tuple[str | bytes, int]:
    assert isinstance(error, UnicodeDecodeError)
    at = error.start
    code = error.object[at : at + 4]
    if code[0] == 0x80:
        return "€", at + 1
    if _GB_FOUR_BYTES.fullmatch(code):  # it has no character, or the document ends in the middle of it
        return REPLACEMENT, at + len(code)
    return _skip(error)


def _big5_error(error: UnicodeError) -> tuple[str | bytes, int]:
    assert isinstance(error, UnicodeDecodeError)
    pair = error.object[error.start : error.start + 2]
    is_complete = len(pair) == 2 and pair[1] >= 0x80  # an ASCII trail byte may be markup: never take it on a guess
    reading = _BIG5_MISSING.get(pair) or (_read_pair(pair, "cp950") if is_complete else None)
    return (reading, error.start + 2) if reading else _skip(error)


def _euc_jp_error(error: UnicodeError) -> tuple[str | bytes, int]:
    """Rows 13 and 89–92 of JIS X 0208 are vendors' own; Python knows them in Shift_JIS only."""
    assert isinstance(error, UnicodeDecodeError)
    at = error.start
    code = error.object[at : at + 3]
    if code[0] == 0x8F and b"\xa1" <= code[1:2] <= b"\xfe":  # three bytes, or as many as there are
        return REPLACEMENT, at + (3 if code[2:] >= b"\x80" else 2)
    if len(code) > 1 and 0xA1 <= code[0] <= 0xFE and 0xA1 <= code[1] <= 0xFE:
        row, cell = code[0] - 0xA1, code[1] - 0xA1
        lead = (row >> 1) + (0x81 if row < 62 else 0xC1)
        trail = cell + 0x9F if row & 1 else cell + (0x40 if cell < 63 else 0x41)
        if reading := _read_pair(bytes((lead, trail)), "cp932"):
            return reading, at + 2
    return _skip(error, _EUC_JP_LEADS)


def _read_pair(pair: bytes, codec: str) -> str | None:
    character = pair.decode(codec, "replace")
    return character if len(character) == 1 and character != REPLACEMENT else None


def _reference_error(error: UnicodeError) -> tuple[str | bytes, int]:
    assert isinstance(error, UnicodeEncodeError)
    return _reference(error.object[error.start : error.end]), error.end


codecs.register_error("lycosa-reference", _reference_error)
codecs.register_error("lycosa-pair", _skip)
codecs.register_error("lycosa-gb", _gb_error)
codecs.register_error("lycosa-big5", _big5_error)
codecs.register_error("lycosa-euc-jp", _euc_jp_error)
