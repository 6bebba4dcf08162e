//! The outline of an HTML document: its blocks and texts in document order, and which of them are not for reading.
//!
//! It is read off the tags as they are written, without a tree. The twin, which says what is left out and why, is
//! `lycosa.web.outline`; `markdown` writes the same items in another form.

use crate::scan::{scan, value_of, values, After, Attributes, Sink, StartTag};
use crate::tags::*;
use crate::text::{collapsed, is_space, owned, push_collapsed, push_space, shortened};
use memchr::memchr;
use std::borrow::Cow;

/// Counts up, here and in `lycosa.web.document`, with every change of what the main text of a document is.
pub const VERSION: u32 = 3;
/// Open elements among which one to be ended is searched for.
const MOST_UP: usize = 100;
/// A longer block is for reading even if nearly all of it is links.
const LINKED_CHARS: usize = 400;
/// A page of which no more is left may be all navigation, and is read as a whole.
const LITTLE_CHARS: usize = 200;
/// A form around more has text of the page.
const FORM_CHARS: usize = 200;
/// A cell with more is a part of the page, its table is there for the layout, unless a row heads it.
const CELL_CHARS: usize = 1_000;
/// A longer id is a heading, in short.
const MOST_ID_WORDS: usize = 3;
const CELL_END: u8 = 5;
/// Of a document for each item in its outline, about.
const ITEM_BYTES: usize = 32;
/// Attributes of which is remembered what they say, by their lengths.
const JUDGED: usize = 32;

/// Roles of what is not for reading.
const ROLES: [&str; 13] = [
    "alert", "alertdialog", "banner", "complementary", "contentinfo", "dialog", "form", "menu", "menubar",
    "navigation", "search", "toolbar", "tooltip",
];
/// Of classes and ids, in the order of the alphabet.
const WORDS: [&str; 59] = [
    "addthis", "adsense", "advert", "advertisement", "banner", "breadcrumb", "breadcrumbs", "comments", "consent",
    "cookie", "cookies", "copyright", "disqus", "footer", "gdpr", "login", "masthead", "menu", "menus", "modal", "nav",
    "navbar", "navfooter", "navheader", "navi", "navigation", "newsletter", "outbrain", "overlay", "pagenav", "pager",
    "pagination", "popup", "promo", "promotion", "recommendations", "recommended", "related", "relatedposts",
    "respond", "share", "sharing", "sidebar", "sidenav", "signup", "sitemap", "skip", "social", "sponsor", "sponsored",
    "subscribe", "subscription", "taboola", "tags", "toc", "toolbar", "tooltip", "topbar", "widgets",
];

/// Why a node is left out.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum LeftOut {
    #[default]
    No,
    Hidden,
    Rule,
    Word,
}

/// What the attributes of a block say of it.
#[derive(Clone, Copy, Default)]
enum Said {
    #[default]
    Nothing,
    Main,
    LeftOut(LeftOut),
}

/// The same for attributes as they are written, since most are those of many blocks.
#[derive(Clone, Copy, Default)]
struct Judged {
    tag: Tag,
    attributes: Span,
    said: Said,
}

/// Where something lies: from its first byte or item to the one behind its last.
pub type Span = (usize, usize);

/// A block: its place in the items, how many characters are in it and in its links, and whether it is left out.
#[derive(Default)]
pub struct Node {
    pub tag: Tag,
    pub attributes: Span,
    place: Span,
    chars: usize,
    linked: usize,
    links: usize,
    heads: usize,
    h1s: usize,
    pub rows: usize, // of a table; of a row, its cells of headings
    pub columns: usize,
    pub is_layout: bool,
    has_code: bool,
    has_head: bool,
    is_data: bool,
    left_out: LeftOut,
}

/// The link that text stands in. Links within code are references, part of what is said.
#[derive(Default, Clone, Copy, PartialEq)]
enum Link {
    #[default]
    No,
    Navigates,
    InCode,
}

#[derive(Clone, Copy)]
pub enum Item {
    Text(usize, usize),
    Start(usize),
    End,
    Break,
    Rule,
    Inline(Tag, Span),
    InlineEnd(Tag),
}

#[derive(Default)]
pub struct Outline<'a> {
    data: &'a [u8],
    pub title: String,
    pub base_href: String, // as it is written, as is the canonical URL
    pub canonical: String,
    texts: Vec<u8>,
    pub items: Vec<Item>,
    pub nodes: Vec<Node>, // the first is around all
    open: Vec<usize>,
    tables: Vec<usize>,
    mains: Vec<usize>,
    articles: Vec<usize>,
    words: Vec<usize>, // nodes that are left out for a word
    lists: Vec<usize>, // long ones, nearly all links
    judged: [Judged; JUDGED],
    drawings: usize,
    verbatim: usize,
    link: Link,
    touches: bool,
    has_gap: bool,
    last: Option<u8>, // the last byte of text
    is_title: bool,
    leaves_unshown: bool, // what asks not to be shown in results
    is_xml: bool,
}

/// A document in UTF-8 with controls as spaces, and line ends as line feeds.
pub fn clean(body: &[u8]) -> Cow<'_, [u8]> {
    if memchr(b'\r', body).is_none() {
        return spaced(body.into());
    }
    let mut out = Vec::with_capacity(body.len());
    for (at, &byte) in body.iter().enumerate() {
        match byte {
            b'\r' if body.get(at + 1) == Some(&b'\n') => {}
            b'\r' => out.push(b'\n'),
            byte => out.push(byte),
        }
    }
    spaced(out.into())
}

/// Has a document no controls, and no line ends but line feeds?
pub fn is_clean(body: &[u8]) -> bool {
    !body.iter().fold(false, |found, &byte| found | is_control(byte))
}

fn is_control(byte: u8) -> bool {
    byte < b' ' && byte != b'\t' && byte != b'\n'
}

fn spaced(mut text: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    if !is_clean(&text) {
        text.to_mut().iter_mut().filter(|byte| is_control(**byte)).for_each(|byte| *byte = b' ');
    }
    text
}

impl Sink for Outline<'_> {
    fn start_tag(&mut self, token: &StartTag) -> After {
        let tag = token.tag;
        let what = flags(tag);
        let start = token.attributes.as_ptr() as usize - self.data.as_ptr() as usize;
        let attributes = (start, start + token.attributes.len());
        self.is_title = tag == TITLE;
        match tag {
            BR => self.items.push(Item::Break),
            HR => self.items.push(Item::Rule),
            _ if what & BLOCK != 0 => self.start(token, attributes),
            BASE if self.base_href.is_empty() => self.base_href = self.attribute(attributes, b"href"),
            LINK if self.canonical.is_empty() => {
                let rel = self.attribute(attributes, b"rel").to_lowercase();
                if rel.split(is_space).any(|word| word == "canonical") {
                    self.canonical = self.attribute(attributes, b"href").trim_matches(is_space).to_string();
                }
            }
            _ if what & NO_TEXT != 0 || self.hides_inline(token) => {}
            _ => {
                if tag == A {
                    self.link = if self.verbatim > 0 { Link::InCode } else { Link::Navigates };
                    self.top().links += usize::from(self.link == Link::Navigates);
                }
                self.verbatim += usize::from(tag == CODE);
                if !matches!(tag, SUB | SUP) {
                    self.has_gap |= self.touches && self.verbatim == 0;
                    self.touches = false;
                }
                if what & MARKED != 0 {
                    self.items.push(Item::Inline(tag, attributes));
                }
            }
        }
        match tag {
            TITLE | TEXTAREA => After::Rcdata,
            SCRIPT | STYLE | IFRAME | NOEMBED | NOFRAMES | XMP => After::Rawtext,
            _ => After::Data,
        }
    }

    fn end_tag(&mut self, tag: Tag, _: &[u8]) {
        let what = flags(tag);
        if tag == BR {
            self.items.push(Item::Break);
        } else if what & BLOCK != 0 {
            let bound = if what & TABLE_PART != 0 { 0 } else { CELL };
            self.close_last(|tag_of| tag_of == tag, bound, &[]);
        } else if self.is_open_inline(tag) {
            self.close_last(|one| one == tag, 0, &[]);
        } else if what & NO_TEXT == 0 {
            if tag == A {
                self.link = Link::No;
            }
            self.verbatim = self.verbatim.saturating_sub(usize::from(tag == CODE));
            self.touches = true;
            if what & MARKED != 0 {
                self.items.push(Item::InlineEnd(tag));
            }
        }
    }

    fn text(&mut self, text: &[u8]) {
        self.touches = false;
        let has_gap = std::mem::take(&mut self.has_gap);
        let is_written = self.data.as_ptr_range().contains(&text.as_ptr());
        let text = if is_written { text.into() } else { spaced(text.into()) }; // a reference may stand for a control
        let is_letter = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte >= 0x80);
        if has_gap && is_letter(text.first()) && is_letter(self.last.as_ref()) {
            self.push_text(b" "); // the words of two elements are two words
        }
        let words = stripped(&text);
        let chars = chars_of(words);
        if self.link != Link::No && [&b"#"[..], "¶".as_bytes(), "§".as_bytes()].contains(&words) {
            return;
        }
        if self.link == Link::Navigates {
            self.top().linked += chars;
        }
        self.top().chars += chars;
        self.last = text.last().copied();
        self.push_text(&text);
    }

    fn raw_text(&mut self, text: &[u8], _: bool) {
        if self.is_title && self.title.is_empty() && self.drawings == 0 {
            self.title = collapsed(&String::from_utf8_lossy(&spaced(text.into())));
        }
    }
}

impl<'a> Outline<'a> {
    /// The outline of a clean document; with `leaves_unshown` without elements that ask not to be shown.
    pub fn new(data: &'a [u8], is_xml: bool, leaves_unshown: bool) -> Outline<'a> {
        let mut outline = Outline::begun(data, is_xml, leaves_unshown);
        scan(data, &mut outline);
        outline.ended()
    }

    /// The outline of a clean document of which nothing is read yet.
    pub fn begun(data: &'a [u8], is_xml: bool, leaves_unshown: bool) -> Outline<'a> {
        let (nodes, open) = (vec![Node::default()], vec![0]);
        let (texts, items) = (Vec::with_capacity(data.len() / 2), Vec::with_capacity(data.len() / ITEM_BYTES));
        Outline { data, nodes, open, texts, items, is_xml, leaves_unshown, ..Outline::default() }
    }

    /// The same when all of the document is read.
    pub fn ended(mut self) -> Outline<'a> {
        self.close_to(1);
        self.nodes[0].place.1 = self.items.len();
        self
    }

    fn top(&mut self) -> &mut Node {
        let last = self.open[self.open.len() - 1];
        &mut self.nodes[last]
    }

    fn push_text(&mut self, text: &[u8]) {
        let start = self.texts.len();
        self.texts.extend_from_slice(text);
        self.items.push(Item::Text(start, self.texts.len()));
    }

    pub fn text_at(&self, start: usize, end: usize) -> &[u8] {
        &self.texts[start..end]
    }

    /// The value of an attribute; empty where there is none.
    pub fn attribute(&self, attributes: Span, name: &[u8]) -> String {
        let mut found = Attributes::new(&self.data[..attributes.1], attributes.0);
        let value = found.find(|one| one.name.eq_ignore_ascii_case(name)).and_then(|one| one.value);
        value.map_or_else(String::new, |value| resolved(value).into_owned())
    }

    fn start(&mut self, token: &StartTag, attributes: Span) {
        let (tag, what) = (token.tag, flags(token.tag));
        if self.top().tag == P && what & UNREAD == 0 {
            self.close_to(self.open.len() - 1);
        }
        match tag {
            LI => self.close_last(|tag| tag == LI, 0, &[UL, OL, MENU, DIR]),
            DT | DD => self.close_last(|tag| matches!(tag, DT | DD), 0, &[DL]),
            TD | TH => self.close_last(|tag| matches!(tag, TD | TH), 0, &[TABLE, TR]),
            TR => self.close_last(|tag| tag == TR, 0, &[TABLE]),
            TBODY | TFOOT => self.close_last(|tag| matches!(tag, THEAD | TBODY | TFOOT), 0, &[TABLE]),
            _ => {}
        }
        let number = self.nodes.len();
        let left_out = self.judge_start(token, number);
        self.nodes.push(Node { tag, attributes, place: (self.items.len(), 0), left_out, ..Node::default() });
        self.items.push(Item::Start(number));
        self.open.push(number);
        if token.attributes.ends_with(b"/>") && (self.is_xml || tag == SVG) {
            self.close_to(self.open.len() - 1);
        }
    }

    /// Is an inline element of this name open that is not to be shown?
    fn is_open_inline(&self, tag: Tag) -> bool {
        let mut around = self.open.iter().rev().take(MOST_UP);
        self.leaves_unshown && flags(tag) & INLINE != 0 && around.any(|&open| self.nodes[open].tag == tag)
    }

    /// Begins an inline tag an element that is not to be shown, or one of that name in it?
    fn hides_inline(&mut self, token: &StartTag) -> bool {
        let tag = token.tag;
        let is_unshown = self.leaves_unshown && flags(tag) & INLINE != 0;
        let hides = is_unshown && (self.is_open_inline(tag) || values(token, [b"data-nosnippet"])[0].is_some());
        if hides {
            let (number, start) = (self.nodes.len(), self.items.len());
            self.nodes.push(Node { tag, place: (start, 0), left_out: LeftOut::Hidden, ..Node::default() });
            self.items.push(Item::Start(number));
            self.open.push(number);
        }
        hides
    }

    fn judge_start(&mut self, token: &StartTag, number: usize) -> LeftOut {
        let (tag, what) = (token.tag, flags(token.tag));
        match tag {
            TABLE => {
                if let Some(&around) = self.tables.last() {
                    self.nodes[around].is_layout = true;
                }
                self.tables.push(number);
            }
            PRE => {
                self.verbatim += 1;
                if let Some(&around) = self.tables.last() {
                    self.nodes[around].has_code = true;
                }
            }
            SVG => self.drawings += 1,
            MAIN => self.mains.push(number),
            ARTICLE => self.articles.push(number),
            _ => {}
        }
        let parent = self.top().tag;
        let opens = tag == BUTTON && (matches!(parent, DT | SUMMARY) || flags(parent) & HEADING != 0);
        let is_unshown = self.leaves_unshown && values(token, [b"data-nosnippet"])[0].is_some();
        if is_unshown || (what & UNREAD != 0 && !opens) {
            return LeftOut::Hidden;
        }
        if matches!(tag, NAV | FOOTER | ASIDE | DIALOG) {
            return LeftOut::Rule;
        }
        if what & NAMED == 0 || token.list.is_empty() {
            return LeftOut::No;
        }
        let written = token.attributes;
        let memo = &mut self.judged[written.len() % JUDGED];
        if (memo.tag, &self.data[memo.attributes.0..memo.attributes.1]) != (tag, written) {
            let start = written.as_ptr() as usize - self.data.as_ptr() as usize;
            *memo = Judged { tag, attributes: (start, start + written.len()), said: said_by(token) };
        }
        match memo.said {
            Said::Main => self.mains.push(number),
            Said::LeftOut(LeftOut::Word) => self.words.push(number),
            _ => {}
        }
        match memo.said {
            Said::LeftOut(why) => why,
            _ => LeftOut::No,
        }
    }

    /// Ends the last open block with such a tag, and what is in it, unless one of the bounds is nearer.
    fn close_last(&mut self, is_one: impl Fn(Tag) -> bool, bound: u32, bounds: &[Tag]) {
        for place in (1..self.open.len()).rev().take(MOST_UP) {
            let tag = self.nodes[self.open[place]].tag;
            if is_one(tag) {
                return self.close_to(place);
            }
            if flags(tag) & bound != 0 || bounds.contains(&tag) {
                return;
            }
        }
    }

    fn close_to(&mut self, place: usize) {
        while self.open.len() > place {
            let Some(number) = self.open.pop() else { return };
            let node = &mut self.nodes[number];
            match node.tag {
                PRE => self.verbatim = self.verbatim.saturating_sub(1),
                SVG => self.drawings -= 1,
                TABLE => {
                    self.tables.pop();
                    let has_few = node.rows < 2 || node.columns < 2;
                    node.is_layout |= has_few || (node.has_code && !node.has_head);
                }
                tag @ H1..=H6 => {
                    node.heads += 1;
                    node.h1s += usize::from(tag == H1);
                }
                _ => {}
            }
            if node.left_out == LeftOut::Hidden {
                self.items.truncate(node.place.0);
                for nodes in [&mut self.mains, &mut self.articles] {
                    nodes.truncate(nodes.partition_point(|&each| each < number));
                    // they are in order
                }
                continue;
            }
            node.place.1 = self.items.len();
            self.items.push(Item::End);
            if self.nodes[number].left_out == LeftOut::No && self.is_left_out(number) {
                self.nodes[number].left_out = LeftOut::Rule;
            } else if let Some(&table) = self.tables.last() {
                self.judge_cell(number, table);
            }
            let node = &self.nodes[number];
            let (chars, linked, links, heads, h1s) = (node.chars, node.linked, node.links, node.heads, node.h1s);
            let parent = self.top();
            parent.chars += chars;
            parent.linked += linked;
            parent.links += links;
            parent.heads += heads;
            parent.h1s += h1s;
        }
    }

    /// What a block in a table says of the table.
    fn judge_cell(&mut self, number: usize, table: usize) {
        let Node { tag, chars, rows, columns, .. } = self.nodes[number];
        match tag {
            TD | TH => {
                self.nodes[table].has_head |= tag == TH;
                self.nodes[table].is_layout |= chars > CELL_CHARS && !self.nodes[table].is_data;
                self.top().columns += 1;
                self.top().rows += usize::from(tag == TH);
            }
            TR => {
                self.nodes[table].rows += 1;
                self.nodes[table].columns = self.nodes[table].columns.max(columns);
                self.nodes[table].is_data |= rows == columns && columns > 1;
            }
            H1..=H6 => self.nodes[table].is_layout = true,
            _ => {}
        }
    }

    /// Is a block that has ended nothing for reading, by what is in it?
    fn is_left_out(&mut self, number: usize) -> bool {
        let node = &self.nodes[number];
        if node.heads > 0 {
            return false;
        }
        match node.tag {
            HEADER => {
                let around = self.open.iter().rev().take(MOST_UP);
                !around.into_iter().any(|&open| matches!(self.nodes[open].tag, ARTICLE | MAIN))
            }
            FORM => node.chars < FORM_CHARS,
            DIV | DL | OL | P | SECTION | TABLE | TD | UL if node.chars < LINKED_CHARS => {
                node.links > 1 && node.linked * 10 > node.chars * 6
            }
            DIV | SECTION | UL if node.linked * 10 > node.chars * 9 => {
                self.lists.push(number);
                false
            }
            _ => false,
        }
    }

    /// The items for reading, in runs.
    pub fn selection(&mut self) -> Vec<Span> {
        let text_chars = self.nodes[0].chars - self.nodes[0].linked;
        for &word in &self.words {
            let node = &mut self.nodes[word];
            if node.h1s > 0 || (node.chars - node.linked) * 10 > text_chars * 4 {
                node.left_out = LeftOut::No; // what a word speaks against holds the page, sometimes
            }
        }
        if let [main] = self.mains[..] {
            let runs = self.runs(main);
            if self.has_text(&runs, 0) {
                return runs;
            }
        }
        if let (true, [article]) = (self.mains.is_empty(), &self.articles[..]) {
            let runs = self.runs(*article);
            if self.nodes[*article].chars * 5 > self.nodes[0].chars && self.has_text(&runs, LITTLE_CHARS) {
                return runs;
            }
        }
        for &list in &self.lists {
            if self.nodes[list].chars * 4 < text_chars {
                self.nodes[list].left_out = LeftOut::Rule; // the page is about something else
            }
        }
        let runs = self.runs(0);
        if self.has_text(&runs, LITTLE_CHARS) {
            return runs;
        }
        vec![(0, self.items.len())]
    }

    fn runs(&self, root: usize) -> Vec<Span> {
        let (mut start, end) = self.nodes[root].place;
        let mut runs = Vec::new();
        for item in &self.items[start..end] {
            let Item::Start(number) = *item else { continue };
            let Node { left_out, place, .. } = self.nodes[number];
            if left_out != LeftOut::No && place.0 >= start && number != root {
                runs.push((start, place.0));
                start = place.1 + 1;
            }
        }
        runs.push((start, end));
        runs
    }

    /// Are there more characters of text than these?
    fn has_text(&self, runs: &[Span], mut chars: usize) -> bool {
        for item in runs.iter().flat_map(|&(start, end)| &self.items[start..end]) {
            if let Item::Text(start, end) = *item {
                let count = chars_of(stripped(&self.texts[start..end]));
                if count > chars {
                    return true;
                }
                chars -= count;
            }
        }
        false
    }

    /// The text of the items for reading, a line for each block and for each row of a table, and the headings.
    pub fn text_of(&self, runs: &[Span]) -> (Vec<u8>, Vec<String>) {
        let (mut out, mut headings) = (Vec::with_capacity(self.texts.len()), Vec::new());
        let (mut line, mut nodes) = (Vec::new(), Vec::new());
        let mut code: Option<Vec<u8>> = None; // of an open pre
        let (mut flat, mut has_cells) = (0, false); // where a heading, cell or pre began: blocks in it are none
        for item in runs.iter().flat_map(|&(start, end)| &self.items[start..end]) {
            let tag = match *item {
                Item::Text(start, end) => {
                    match &mut code {
                        Some(code) => code.extend_from_slice(&self.texts[start..end]),
                        None => push_collapsed(&mut line, &self.texts[start..end]),
                    }
                    continue;
                }
                Item::Start(number) => {
                    nodes.push(number);
                    self.nodes[number].tag
                }
                Item::End => nodes.last().map_or(0, |&number| self.nodes[number].tag),
                Item::Break | Item::Rule => BR,
                _ => continue,
            };
            let (is_start, is_end) = (matches!(item, Item::Start(_)), matches!(item, Item::End));
            let depth = nodes.len();
            if is_end {
                nodes.pop();
            }
            if is_end && flat == depth {
                flat = 0;
                if let Some(code) = code.take() {
                    code_lines(&code).iter().for_each(|line| out.extend([line.as_bytes(), b"\n"].concat()));
                } else if flags(tag) & HEADING != 0 {
                    headings.push(owned(shortened(&line)));
                    end_line(&mut line, &mut out);
                } else {
                    line.push(CELL_END);
                }
            } else if let Some(code) = &mut code {
                if tag == BR || !(code.is_empty() || code.ends_with(b"\n")) {
                    code.push(b'\n');
                }
            } else if flat > 0 {
                push_space(&mut line);
            } else if is_start && has_cells && matches!(tag, TD | TH) {
                flat = depth;
            } else {
                end_line(&mut line, &mut out);
                match tag {
                    H1..=H6 if is_start => flat = depth,
                    PRE | LISTING if is_start => (flat, code) = (depth, Some(Vec::new())),
                    TABLE => has_cells = is_start && nodes.last().is_some_and(|&table| !self.nodes[table].is_layout),
                    _ => {}
                }
            }
        }
        end_line(&mut line, &mut out);
        out.pop();
        headings.retain(|words| !words.is_empty());
        (out, headings)
    }
}

/// The lines of code, without white space behind them and without empty ones around.
pub fn code_lines(code: &[u8]) -> Vec<&str> {
    let code = std::str::from_utf8(code).unwrap_or("");
    let lines: Vec<&str> = code.split('\n').map(|line| line.trim_end_matches([' ', '\t'])).collect();
    let Some(first) = lines.iter().position(|line| !line.is_empty()) else { return Vec::new() };
    let last = lines.iter().rposition(|line| !line.is_empty()).unwrap_or(first);
    lines[first..=last].to_vec()
}

/// Appends a line to the text, unless it is empty, with a tab between the cells of a row.
fn end_line(line: &mut Vec<u8>, out: &mut Vec<u8>) {
    let start = out.len();
    if line.contains(&CELL_END) {
        for cell in line.split(|&byte| byte == CELL_END) {
            out.extend_from_slice(stripped(cell));
            out.push(b'\t');
        }
        out.truncate(out.iter().rposition(|&byte| byte != b'\t').map_or(0, |last| last + 1).max(start));
    } else {
        out.extend_from_slice(stripped(line));
    }
    line.clear();
    if out.len() > start {
        out.push(b'\n');
    }
}

/// What the attributes of a block say of it.
fn said_by(token: &StartTag) -> Said {
    let [role, class, id, style, hidden] = values(token, [b"role", b"class", b"id", b"style", b"hidden"]);
    let [role, class, id, style] = [role, class, id, style].map(|value| resolved(value.flatten().unwrap_or(b"")));
    let role = role.to_lowercase();
    if ROLES.contains(&role.as_str()) {
        return Said::LeftOut(LeftOut::Rule);
    }
    // The id of a section is its heading, in short.
    let (mut is_section, mut speaks_against) = (token.tag == SECTION, hidden.is_some());
    for word in words_of(&class) {
        is_section |= word == "section";
        speaks_against |= is_word(word);
    }
    if !is_section && words_of(&id).count() <= MOST_ID_WORDS {
        speaks_against |= words_of(&id).any(is_word);
    }
    if speaks_against || is_unseen(&style.to_lowercase()) {
        Said::LeftOut(LeftOut::Word)
    } else if role == "main" {
        Said::Main
    } else {
        Said::Nothing
    }
}

/// An attribute's value with its references resolved.
fn resolved(raw: &[u8]) -> Cow<'_, str> {
    if raw.is_empty() {
        return "".into();
    }
    match std::str::from_utf8(raw) {
        Ok(text) if memchr(b'&', raw).is_none() => text.into(), // as nearly all are
        _ => owned(&spaced(value_of(raw).into_bytes().into())).into(),
    }
}

/// Text of a page, which is valid, without the spaces around it.
fn stripped(text: &[u8]) -> &[u8] {
    let is_word = |byte: &u8| !is_space(*byte as char) || !byte.is_ascii();
    let Some(first) = text.iter().position(is_word) else { return b"" };
    let text = &text[first..=text.iter().rposition(is_word).unwrap_or(first)];
    if text[0].is_ascii() && text[text.len() - 1].is_ascii() {
        return text;
    }
    std::str::from_utf8(text).unwrap_or("").trim_matches(is_space).as_bytes()
}

fn chars_of(text: &[u8]) -> usize {
    text.iter().filter(|&&byte| byte & 0xc0 != 0x80).count()
}

/// The words of a class or id: `sideBar_NAV` has three.
fn words_of(name: &str) -> impl Iterator<Item = &str> {
    let bytes = name.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        at += bytes[at..].iter().take_while(|byte| !byte.is_ascii_alphabetic()).count();
        let start = at;
        at += usize::from(bytes.get(at)?.is_ascii_uppercase());
        let small = bytes[at..].iter().take_while(|byte| byte.is_ascii_lowercase()).count();
        let large = bytes[at..].iter().take_while(|byte| byte.is_ascii_uppercase()).count();
        at += if small > 0 { small } else { large };
        name.get(start..at)
    })
}

/// The lengths of the words that begin with each letter, and the letters that these end with, a bit each: nearly all
/// that are asked for end here.
static LENGTHS_AND_ENDS: [(u32, u32); 32] = {
    let mut found = [(0, 0); 32];
    let mut place = 0;
    while place < WORDS.len() {
        let word = WORDS[place].as_bytes();
        let of_letter = &mut found[(word[0] & 31) as usize];
        of_letter.0 |= 1 << word.len();
        of_letter.1 |= 1 << (word[word.len() - 1] & 31);
        place += 1;
    }
    found
};

/// Does a word of a class or id speak against a block?
fn is_word(word: &str) -> bool {
    let &[first, .., last] = word.as_bytes() else { return false };
    let (lengths, ends) = LENGTHS_AND_ENDS[(first & 31) as usize];
    let mut lower = [0; 24];
    let Some(lower) = lower.get_mut(..word.len()).filter(|_| lengths >> word.len() & ends >> (last & 31) & 1 > 0)
    else {
        return false;
    };
    lower.copy_from_slice(word.as_bytes());
    lower.make_ascii_lowercase();
    WORDS.binary_search_by(|one| one.as_bytes().cmp(lower)).is_ok()
}

/// Does a style say that an element is not shown?
fn is_unseen(style: &str) -> bool {
    let ends = ["display:none", "display: none", "visibility:hidden", "visibility: hidden"];
    let starts = |at: usize| at == 0 || matches!(style.as_bytes()[at - 1], b';' | b' ');
    !style.is_empty() && ends.iter().any(|end| style.match_indices(end).any(|(at, _)| starts(at)))
}
