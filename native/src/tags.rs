//! Tag names as numbers, and what the HTML standard's tree construction says of each.

pub type Tag = u16;

macro_rules! tags {
    ($($id:ident $name:literal = $number:literal),* $(,)?) => {
        $(#[allow(dead_code)] // most names have a number for speed only
        pub const $id: Tag = $number;)*
        pub static NAMES: &[&[u8]] = &[b"?", $($name),*];
    };
}

tags! {
    A b"a" = 1, ADDRESS b"address" = 2, ANNOTATION_XML b"annotation-xml" = 3, APPLET b"applet" = 4, AREA b"area" = 5,
    ARTICLE b"article" = 6, ASIDE b"aside" = 7, B b"b" = 8, BASE b"base" = 9, BASEFONT b"basefont" = 10,
    BGSOUND b"bgsound" = 11, BIG b"big" = 12, BLOCKQUOTE b"blockquote" = 13, BODY b"body" = 14, BR b"br" = 15,
    BUTTON b"button" = 16, CAPTION b"caption" = 17, CENTER b"center" = 18, CODE b"code" = 19, COL b"col" = 20,
    COLGROUP b"colgroup" = 21, DD b"dd" = 22, DESC b"desc" = 23, DETAILS b"details" = 24, DIALOG b"dialog" = 25,
    DIR b"dir" = 26, DIV b"div" = 27, DL b"dl" = 28, DT b"dt" = 29, EM b"em" = 30, EMBED b"embed" = 31,
    FIELDSET b"fieldset" = 32, FIGCAPTION b"figcaption" = 33, FIGURE b"figure" = 34, FONT b"font" = 35,
    FOOTER b"footer" = 36, FOREIGN_OBJECT b"foreignobject" = 37, FORM b"form" = 38, FRAME b"frame" = 39,
    FRAMESET b"frameset" = 40, H1 b"h1" = 41, H2 b"h2" = 42, H3 b"h3" = 43, H4 b"h4" = 44, H5 b"h5" = 45,
    H6 b"h6" = 46, HEAD b"head" = 47, HEADER b"header" = 48, HGROUP b"hgroup" = 49, HR b"hr" = 50, HTML b"html" = 51,
    I b"i" = 52, IFRAME b"iframe" = 53, IMAGE b"image" = 54, IMG b"img" = 55, INPUT b"input" = 56, KEYGEN b"keygen" = 57,
    LI b"li" = 58, LINK b"link" = 59, LISTING b"listing" = 60, MAIN b"main" = 61, MALIGNMARK b"malignmark" = 62,
    MARQUEE b"marquee" = 63, MATH b"math" = 64, MENU b"menu" = 65, META b"meta" = 66, MGLYPH b"mglyph" = 67,
    MI b"mi" = 68, MN b"mn" = 69, MO b"mo" = 70, MS b"ms" = 71, MTEXT b"mtext" = 72, NAV b"nav" = 73, NOBR b"nobr" = 74,
    NOEMBED b"noembed" = 75, NOFRAMES b"noframes" = 76, NOSCRIPT b"noscript" = 77, OBJECT b"object" = 78, OL b"ol" = 79,
    OPTGROUP b"optgroup" = 80, OPTION b"option" = 81, P b"p" = 82, PARAM b"param" = 83, PLAINTEXT b"plaintext" = 84,
    PRE b"pre" = 85, RB b"rb" = 86, RP b"rp" = 87, RT b"rt" = 88, RTC b"rtc" = 89, RUBY b"ruby" = 90, S b"s" = 91,
    SCRIPT b"script" = 92, SEARCH b"search" = 93, SECTION b"section" = 94, SELECT b"select" = 95, SMALL b"small" = 96,
    SOURCE b"source" = 97, SPAN b"span" = 98, STRIKE b"strike" = 99, STRONG b"strong" = 100, STYLE b"style" = 101,
    SUB b"sub" = 102, SUMMARY b"summary" = 103, SUP b"sup" = 104, SVG b"svg" = 105, TABLE b"table" = 106,
    TBODY b"tbody" = 107, TD b"td" = 108, TEMPLATE b"template" = 109, TEXTAREA b"textarea" = 110, TFOOT b"tfoot" = 111,
    TH b"th" = 112, THEAD b"thead" = 113, TITLE b"title" = 114, TR b"tr" = 115, TRACK b"track" = 116, TT b"tt" = 117,
    U b"u" = 118, UL b"ul" = 119, VAR b"var" = 120, WBR b"wbr" = 121, XMP b"xmp" = 122, LABEL b"label" = 123,
    PATH b"path" = 124, G b"g" = 125, USE b"use" = 126, CITE b"cite" = 127, DEL b"del" = 128, INS b"ins" = 129,
    KBD b"kbd" = 130, SAMP b"samp" = 131, TIME b"time" = 132, ABBR b"abbr" = 133, DFN b"dfn" = 134, Q b"q" = 135,
    VIDEO b"video" = 136, AUDIO b"audio" = 137, PICTURE b"picture" = 138, CANVAS b"canvas" = 139, SYMBOL b"symbol" = 140,
    DEFS b"defs" = 141, TEXT b"text" = 142, CIRCLE b"circle" = 143, RECT b"rect" = 144, LINE b"line" = 145,
    POLYGON b"polygon" = 146,
}

pub const KNOWN: usize = 147;

const SLOTS: usize = 1024;

/// Tag numbers by `slot_of` their names, which is another one for each: the build fails where it is not.
static NUMBERS: [u8; SLOTS] = make_numbers();

const fn make_numbers() -> [u8; SLOTS] {
    let mut numbers = [0u8; SLOTS];
    let mut tag = 1;
    while tag < KNOWN {
        let slot = slot_of(NAMES[tag]);
        assert!(numbers[slot] == 0, "two tag names have one slot: other factors are needed");
        numbers[slot] = tag as u8;
        tag += 1;
    }
    numbers
}

const fn slot_of(name: &[u8]) -> usize {
    let size = name.len();
    let second = if size > 1 { name[1] as usize } else { 0 };
    let (first, last, middle) = (name[0] as usize, name[size - 1] as usize, name[size / 2] as usize);
    (first * 102 + second * 153 + last * 187 + middle * 162 + size * 232) % SLOTS
}

/// The number of a tag name in lower case, which is not empty; 0 if it has none.
pub fn number_of(name: &[u8]) -> Tag {
    let tag = Tag::from(NUMBERS[slot_of(name)]);
    let known = NAMES[tag as usize];
    // Byte by byte: names are short, and a call to compare them takes longer.
    if known.len() == name.len() && known.iter().zip(name).all(|(one, other)| one == other) {
        tag
    } else {
        0
    }
}

macro_rules! flags {
    ($($flag:ident = $bit:literal: $($tag:ident)*;)*) => {
        $(pub const $flag: u32 = 1 << $bit;)*
        const GROUPS: &[(u32, &[Tag])] = &[$(($flag, &[$($tag),*])),*];
    };
}

flags! {
    // as HTML elements
    SPECIAL = 0: ADDRESS APPLET AREA ARTICLE ASIDE BASE BASEFONT BGSOUND BLOCKQUOTE BODY BR BUTTON CAPTION CENTER COL
        COLGROUP DD DETAILS DIR DIV DL DT EMBED FIELDSET FIGCAPTION FIGURE FOOTER FORM FRAME FRAMESET H1 H2 H3 H4 H5 H6
        HEAD HEADER HGROUP HR HTML IFRAME IMG INPUT KEYGEN LI LINK LISTING MAIN MARQUEE MENU META NAV NOEMBED NOFRAMES
        NOSCRIPT OBJECT OL P PARAM PLAINTEXT PRE SCRIPT SEARCH SECTION SELECT SOURCE STYLE SUMMARY TABLE TBODY TD
        TEMPLATE TEXTAREA TFOOT TH THEAD TITLE TR TRACK UL WBR XMP;
    FORMATTING = 1: A B BIG CODE EM FONT I NOBR S SMALL STRIKE STRONG TT U;
    // ends the search for an element in scope
    SCOPE = 2: APPLET CAPTION HTML MARQUEE OBJECT SELECT TABLE TD TEMPLATE TH;
    IMPLIED_END = 3: DD DT LI OPTGROUP OPTION P RB RP RT RTC;
    // a start tag that closes an open p and is then inserted
    CLOSES_P = 4: ADDRESS ARTICLE ASIDE BLOCKQUOTE CENTER DETAILS DIALOG DIR DIV DL FIELDSET FIGCAPTION FIGURE FOOTER
        HEADER HGROUP MAIN MENU NAV OL P SEARCH SECTION SUMMARY UL;
    // an end tag that closes its element if it is in scope
    BLOCK_END = 5: ADDRESS ARTICLE ASIDE BLOCKQUOTE BUTTON CENTER DETAILS DIALOG DIR DIV DL FIELDSET FIGCAPTION FIGURE
        FOOTER HEADER HGROUP LISTING MAIN MENU NAV OL PRE SEARCH SECTION SELECT SUMMARY UL;
    HEADING = 6: H1 H2 H3 H4 H5 H6;
    // an HTML start tag that ends foreign content
    BREAKS_OUT = 7: B BIG BLOCKQUOTE BODY BR CENTER CODE DD DIV DL DT EM EMBED H1 H2 H3 H4 H5 H6 HEAD HR I IMG LI
        LISTING MENU META NOBR OL P PRE RUBY S SMALL SPAN STRONG STRIKE SUB SUP TABLE TT U UL VAR;
    // its text is not for reading
    HIDDEN = 8: SCRIPT STYLE NOSCRIPT IFRAME NOEMBED NOFRAMES;
    // a title in it names a drawing
    DRAWING = 9: SVG G SYMBOL DEFS PATH USE TEXT CIRCLE RECT LINE POLYGON;
    // start tags that "in body" leaves to the rules of "in head"
    IN_HEAD = 10: BASE BASEFONT BGSOUND LINK META NOFRAMES SCRIPT STYLE TEMPLATE TITLE;
    // what an outline says of a page: blocks
    BLOCK = 11: ADDRESS ARTICLE ASIDE BLOCKQUOTE BODY BR BUTTON CAPTION CENTER DD DETAILS DIALOG DIR DIV DL DT FIELDSET
        FIGCAPTION FIGURE FOOTER FORM H1 H2 H3 H4 H5 H6 HEADER HGROUP HR LI LISTING MAIN MENU NAV NOSCRIPT OL P PRE
        SEARCH SECTION SELECT SUMMARY SVG TABLE TBODY TD TEMPLATE TFOOT TH THEAD TR UL;
    UNREAD = 12: BUTTON NOSCRIPT SELECT SVG TEMPLATE;
    // neither a block nor part of a line
    NO_TEXT = 13: AREA BASE COL EMBED HEAD HTML IFRAME IMG INPUT LINK META NOEMBED NOFRAMES PARAM SCRIPT SOURCE STYLE
        TEXTAREA TITLE TRACK WBR XMP;
    // written as marks in Markdown
    MARKED = 14: A B CODE DEL EM I KBD S SAMP STRIKE STRONG TT;
    // may be left out for a word of its class or id
    NAMED = 15: CENTER DIR DIV DL FIELDSET FIGURE FORM HEADER MENU OL SECTION TABLE UL;
    TABLE_PART = 16: CAPTION TABLE TBODY TD TFOOT TH THEAD TR;
    CELL = 17: TD TH;
    // never nested in each other by a parser that builds a tree, see `hazard`
    FLAT = 19: A AREA BASE BR COL DD DT EMBED HR IMG INPUT LI LINK META OPTION P PARAM SOURCE TBODY TD TFOOT TH THEAD TR
        TRACK WBR;
    INLINE = 18: A ABBR B BIG CITE CODE DEL EM FONT I INS KBD LABEL Q S SAMP SMALL SPAN STRIKE STRONG SUB SUP TIME TT U;
}

pub fn flags(tag: Tag) -> u32 {
    FLAGS[tag as usize]
}

static FLAGS: [u32; KNOWN] = make_flags();

const fn make_flags() -> [u32; KNOWN] {
    let mut all = [0u32; KNOWN];
    let mut g = 0;
    while g < GROUPS.len() {
        let (flag, tags) = GROUPS[g];
        let mut t = 0;
        while t < tags.len() {
            all[tags[t] as usize] |= flag;
            t += 1;
        }
        g += 1;
    }
    all
}
