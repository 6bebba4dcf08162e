//! What is read from a page while its tokens pass: links with their words, metadata, headings, text, structure.

use crate::comparable::{is_navigation, Comparable};
use crate::followed::Columns;
use crate::scan::{resolve, value_of, values, StartTag};
use crate::seen::{Seeded, Unchanged};
use crate::tags::*;
use crate::text::{
    self, is_space, owned, owned_whole, push_collapsed, push_space, shortened, strip_html, strip_html_bytes,
};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, BuildHasherDefault};
use xxhash_rust::xxh3::xxh3_128;

/// Of one page, as in src/lycosa/web/links.py: each is three Python strings, made while the interpreter waits.
const MAX_LINKS: usize = 50_000;
/// More text than this of links is rare, and may well be of links that are too many.
const LARGE_BYTES: usize = 1 << 20;
/// A directive for one robot is no longer than that.
const AIMED_CHARS: usize = 200;

pub const KIND_A: u8 = 1;
pub const KIND_AREA: u8 = 2;
pub const KIND_IFRAME: u8 = 3;
pub const KIND_FRAME: u8 = 4;
pub const KIND_IMG: u8 = 5;
pub const KIND_LINK: u8 = 6;
pub const KIND_REFRESH: u8 = 7;

enum Target {
    Anchor(Option<usize>),
    Heading(usize),
    Title(usize), // its number among the titles
    Nothing,
}

/// An open element whose words are wanted: where they begin in the buffer of its level of hidden elements, and which
/// image of that level is its first.
pub struct Capture {
    target: Target,
    start: usize,
    image: usize,
    skipped: Option<usize>, // its number among what does not count when pages are compared
}

/// Where a text lies in the store of a page.
#[derive(Clone, Copy, Default)]
pub struct Span {
    start: u32,
    end: u32,
}

impl Span {
    fn is_empty(self) -> bool {
        self.start == self.end
    }

    fn of(self, store: &[u8]) -> &[u8] {
        &store[self.start as usize..self.end as usize]
    }
}

#[derive(Clone, Copy, Default)]
struct Link {
    href: Span,
    kind: u8,
    words: Span,
    rel: Span,
    image: Span, // the alternative text of the first image in it
}

impl Link {
    fn address(self, store: &[u8]) -> &[u8] {
        strip_html_bytes(self.href.of(store))
    }

    fn hash(self, store: &[u8]) -> u64 {
        Seeded.hash_one((self.address(store), self.kind))
    }
}

/// Links in columns; the texts lie in one store, since a page has hundreds and each would be memory of its own.
#[derive(Default)]
pub struct Links {
    store: String,
    hrefs: Vec<Span>,
    pub kinds: Vec<u8>,
    anchors: Vec<Span>,
    rels: Vec<Span>,
}

impl Links {
    fn texts<'a>(&'a self, spans: &[Span]) -> Vec<&'a str> {
        spans.iter().map(|span| self.store.get(span.start as usize..span.end as usize).unwrap_or("")).collect()
    }

    /// Lets texts go that no link has: those of what was added before, or is too much.
    fn compact(&mut self) {
        let before = std::mem::take(&mut self.store);
        for span in self.hrefs.iter_mut().chain(&mut self.anchors).chain(&mut self.rels) {
            let text = before.get(span.start as usize..span.end as usize).unwrap_or("");
            let start = self.store.len() as u32;
            self.store.push_str(text);
            *span = Span { start, end: start + text.len() as u32 };
        }
        self.store.shrink_to_fit();
    }

    pub fn is_ascii(&self) -> bool {
        self.store.is_ascii() || self.texts(&self.hrefs).iter().all(|href| href.is_ascii())
    }

    pub fn len(&self) -> usize {
        self.hrefs.len()
    }

    pub fn columns(&self) -> Columns<'_> {
        let (hrefs, anchors, rels) = (self.texts(&self.hrefs), self.texts(&self.anchors), self.texts(&self.rels));
        Columns { hrefs, kinds: &self.kinds, anchors, rels }
    }
}

/// Links in their order. Of very many only those are added that can still be among the first `MAX_LINKS`: once so many
/// different ones are here, those that repeat one of them.
struct FirstLinks {
    links: Vec<Link>,
    firsts: Option<HashSet<u64, BuildHasherDefault<Unchanged>>>,
    counted_at: usize, // so many are here when the different ones are counted next
}

impl Default for FirstLinks {
    fn default() -> FirstLinks {
        FirstLinks::with_capacity(0)
    }
}

impl FirstLinks {
    fn with_capacity(many: usize) -> FirstLinks {
        FirstLinks { links: Vec::with_capacity(many), firsts: None, counted_at: MAX_LINKS }
    }

    /// Adds a link whose texts are in the store, and returns its place; None: there are enough before it.
    fn add(&mut self, link: Link, store: &[u8]) -> Option<usize> {
        if self.links.len() == self.counted_at {
            self.count(store);
        }
        if self.firsts.as_ref().is_some_and(|firsts| !firsts.contains(&link.hash(store))) {
            return None;
        }
        self.links.push(link);
        Some(self.links.len() - 1)
    }

    fn count(&mut self, store: &[u8]) {
        let mut firsts = HashSet::with_capacity_and_hasher(MAX_LINKS, BuildHasherDefault::default());
        let hashes = self.links.iter().filter(|link| !is_content(link.address(store))).map(|link| link.hash(store));
        let _ = hashes.filter(|&hash| firsts.insert(hash)).nth(MAX_LINKS - 1);
        self.counted_at *= 2;
        self.firsts = (firsts.len() == MAX_LINKS).then_some(firsts);
    }
}

#[derive(Default)]
pub struct Page {
    pub title: Option<String>,
    pub description: Option<String>,
    pub canonical: Option<String>,
    meta_language: Option<String>,
    pub base_href: Option<String>,
    pub robots: Vec<String>,
    pub headings: Vec<(u8, String)>,
    pub first: String,
    pub last: String,
    pub comparable: Option<Comparable>, // where a SimHash is wanted
    has_base: bool,
    titles: usize,
    title_number: usize,        // of the title that was found
    title_level: Option<usize>, // the level of hidden elements of an open title
    html_lang: Option<Option<String>>,
    html_xml_lang: Option<Option<String>>,
    has_root: bool,
    other_language: Option<String>, // of an element of that name in a drawing
    store: Vec<u8>,
    anchors: FirstLinks,
    others: FirstLinks,
    pieces: Vec<u8>,
    piece: Option<usize>, // where the open piece of text begins, its separator before it
    is_in_body: bool,
    mains: usize,
    main_piece: Option<(usize, Option<usize>)>, // where the main element begins and ends in `pieces`
    main_depth: Option<usize>,
    hidden: usize,
    muted: usize,           // open templates
    buffers: Vec<Vec<u8>>,  // collapsed text for captures, one for each level of hidden elements
    captures: Vec<usize>,   // open captures on each of these levels
    images: Vec<Vec<Span>>, // alternative texts in them
}

impl Page {
    /// For a document of so many bytes, which most of its texts then have room for from the beginning.
    pub fn new(size: usize) -> Page {
        let size = size.min(256 << 10);
        Page {
            store: Vec::with_capacity(size / 4),
            pieces: Vec::with_capacity(size / 2),
            anchors: FirstLinks::with_capacity(size / 128),
            first: String::with_capacity(size / 32),
            last: String::with_capacity(size / 32),
            buffers: vec![Vec::with_capacity(256)],
            captures: vec![0],
            images: vec![Vec::new()],
            ..Page::default()
        }
    }

    // text

    pub fn begin_body(&mut self) {
        self.is_in_body = true;
    }

    pub fn hide(&mut self) {
        self.hidden += 1;
        if self.buffers.len() <= self.hidden {
            self.buffers.push(Vec::new());
            self.captures.push(0);
            self.images.push(Vec::new());
        }
    }

    pub fn unhide(&mut self) {
        self.buffers[self.hidden].clear();
        self.hidden -= 1;
    }

    /// What follows is in a template, and no part of the page.
    pub fn mute(&mut self) {
        self.muted += 1;
    }

    pub fn unmute(&mut self) {
        self.muted -= 1;
    }

    pub fn text(&mut self, text: &[u8]) {
        if self.muted > 0 {
            return;
        }
        if self.is_in_body && self.hidden == 0 {
            if self.piece.is_none() {
                self.piece = Some(self.pieces.len());
                if !self.pieces.is_empty() {
                    self.pieces.push(0);
                }
            }
            self.pieces.extend_from_slice(text);
        }
        if self.captures[self.hidden] > 0 {
            push_collapsed(&mut self.buffers[self.hidden], text);
        }
    }

    /// Text before and after this is not one piece.
    pub fn boundary(&mut self) {
        if let Some(start) = self.piece.take() {
            let content = if start == 0 { 0 } else { start + 1 };
            if self.pieces[content..].iter().all(|&b| text::is_html_space(b)) {
                self.pieces.truncate(start);
            }
        }
        if self.captures[self.hidden] > 0 {
            push_space(&mut self.buffers[self.hidden]);
        }
    }

    fn capture(&mut self, target: Target) -> Option<Capture> {
        let level = self.hidden;
        self.boundary();
        self.captures[level] += 1;
        Some(Capture { target, start: self.buffers[level].len(), image: self.images[level].len(), skipped: None })
    }

    pub fn finish(&mut self, capture: Capture) {
        let level = self.hidden;
        if let Some((comparable, number)) = self.comparable.as_mut().zip(capture.skipped) {
            comparable.close(number, self.pieces.len());
        }
        let buffer = &self.buffers[level];
        let words = &buffer[capture.start.min(buffer.len())..];
        match capture.target {
            Target::Anchor(Some(index)) => {
                let anchor = &mut self.anchors.links[index];
                anchor.words = push_span(&mut self.store, shortened(words));
                anchor.image = self.images[level].get(capture.image).copied().unwrap_or_default();
            }
            Target::Anchor(None) => {}
            Target::Heading(index) => self.headings[index].1 = owned(shortened(words)),
            Target::Nothing => return,
            Target::Title(number) => {
                self.title_level = None;
                let words = words.trim_ascii();
                // A hidden title in another one ends first, but says less than the outer one.
                if !words.is_empty() && (self.title.is_none() || number < self.title_number) {
                    self.title = Some(owned(words));
                    self.title_number = number;
                }
            }
        }
        self.captures[level] -= 1;
        if self.captures[level] == 0 {
            self.buffers[level].clear();
            self.images[level].clear();
        }
    }

    // elements

    pub fn element(&mut self, token: &StartTag, parent_draws: bool) -> Option<Capture> {
        if self.muted > 0 {
            return None;
        }
        self.note_structure(token);
        let capture = self.captured(token, parent_draws);
        let is_link = matches!(capture, Some(Capture { target: Target::Anchor(_), .. }));
        if self.comparable.is_none() || self.hidden > 0 || !(is_link || is_navigation(token)) {
            return capture;
        }
        self.boundary();
        let skipped = self.comparable.as_mut().map(|comparable| comparable.open(self.pieces.len()));
        let (target, start, image) =
            capture.map_or((Target::Nothing, 0, 0), |capture| (capture.target, capture.start, capture.image));
        Some(Capture { target, start, image, skipped })
    }

    fn captured(&mut self, token: &StartTag, parent_draws: bool) -> Option<Capture> {
        match token.tag {
            A => return self.anchor(token),
            IMG => self.source(token, b"src", KIND_IMG),
            IFRAME => self.source(token, b"src", KIND_IFRAME),
            FRAME => self.source(token, b"src", KIND_FRAME),
            AREA => self.source(token, b"href", KIND_AREA),
            LINK => self.link(token),
            META => self.meta(token),
            BASE => self.base(token),
            HTML => {
                if self.has_root {
                    let [lang, xml_lang] = values(token, [b"lang", b"xml:lang"]);
                    let found = lang.and_then(stripped).or_else(|| xml_lang.and_then(stripped));
                    self.other_language = self.other_language.take().or(found);
                } else {
                    self.has_root = true;
                    self.html_attributes(token);
                }
            }
            // A title in another one says nothing that the outer does not say.
            TITLE if self.title.is_none() && !parent_draws && self.title_level != Some(self.hidden) => {
                self.title_level = Some(self.hidden);
                self.titles += 1;
                return self.capture(Target::Title(self.titles));
            }
            tag @ H1..=H6 => {
                self.headings.push(((tag - H1 + 1) as u8, String::new()));
                return self.capture(Target::Heading(self.headings.len() - 1));
            }
            _ => {}
        }
        None
    }

    fn note_structure(&mut self, token: &StartTag) {
        if token.tag != 0 {
            let name = token.name;
            self.first.push(name[0] as char);
            self.last.push(name[name.len() - 1] as char);
            return;
        }
        let name = String::from_utf8_lossy(token.name);
        self.first.extend(name.chars().next().into_iter().flat_map(char::to_lowercase));
        self.last.extend(name.chars().next_back().into_iter().flat_map(char::to_lowercase));
    }

    /// Puts an attribute's value into the store.
    fn keep(&mut self, value: Option<&[u8]>) -> Span {
        let start = self.store.len() as u32;
        resolve(value.unwrap_or(b""), true, &mut self.store);
        Span { start, end: self.store.len() as u32 }
    }

    /// Puts the words of an attribute's value into the store, as many as an anchor has.
    fn keep_words(&mut self, value: Option<&[u8]>) -> Span {
        let Some(value) = value.filter(|value| !value.is_empty()) else { return Span::default() };
        let mut words = Vec::new();
        push_collapsed(&mut words, value_of(value).as_bytes());
        push_span(&mut self.store, shortened(&words))
    }

    fn anchor(&mut self, token: &StartTag) -> Option<Capture> {
        let [href, rel, xlink] = values(token, [b"href", b"rel", b"xlink:href"]);
        let href = match href {
            Some(value) => self.keep(value),
            None => self.keep(Some(xlink??)),
        };
        let rel = self.keep(rel.flatten());
        let place = self.anchors.add(Link { href, kind: KIND_A, rel, ..Link::default() }, &self.store);
        if place.is_none() {
            self.store.truncate(href.start as usize);
        }
        self.capture(Target::Anchor(place))
    }

    fn source(&mut self, token: &StartTag, name: &[u8], kind: u8) {
        let [href, alt, rel] = values(token, [name, b"alt", b"rel"]);
        let words = self.keep_words(alt.flatten());
        if kind == KIND_IMG && !words.is_empty() && self.captures[self.hidden] > 0 {
            self.images[self.hidden].push(words);
        }
        if let Some(href) = href.flatten() {
            let (href, rel) = (self.keep(Some(href)), self.keep(rel.flatten()));
            self.add_other(Link { href, kind, words, rel, ..Link::default() });
        }
    }

    fn link(&mut self, token: &StartTag) {
        let [href, rel, title, kind] = values(token, [b"href", b"rel", b"title", b"type"]);
        let Some(href) = href.flatten() else { return };
        if kind.flatten().is_some_and(|kind| value_of(kind).eq_ignore_ascii_case("application/rsl+xml")) {
            self.robots.push(format!("rsl:license: {}", strip_html(&value_of(href))));
        }
        let link = Link {
            href: self.keep(Some(href)),
            kind: KIND_LINK,
            words: self.keep_words(title.flatten()),
            rel: self.keep(rel.flatten()),
            ..Link::default()
        };
        if self.canonical.is_none() && !link.rel.is_empty() {
            let rel = String::from_utf8_lossy(link.rel.of(&self.store)).to_lowercase();
            if rel.split(is_space).any(|word| word == "canonical") {
                let target = value_of(href);
                let target = strip_html(&target);
                self.canonical = (!target.is_empty()).then(|| target.to_string());
            }
        }
        self.add_other(link);
    }

    /// Adds a link whose href is the last text of the store, but for those that are behind it.
    fn add_other(&mut self, link: Link) {
        if self.others.add(link, &self.store).is_none() {
            self.store.truncate(link.href.start as usize);
        }
    }

    fn base(&mut self, token: &StartTag) {
        if self.has_base {
            return;
        }
        let [href] = values(token, [b"href"]);
        if let Some(value) = href {
            self.has_base = true;
            self.base_href = stripped(value);
        }
    }

    pub fn html_attributes(&mut self, token: &StartTag) {
        let [lang, xml_lang] = values(token, [b"lang", b"xml:lang"]);
        if let (None, Some(value)) = (&self.html_lang, lang) {
            self.html_lang = Some(stripped(value));
        }
        if let (None, Some(value)) = (&self.html_xml_lang, xml_lang) {
            self.html_xml_lang = Some(stripped(value));
        }
    }

    fn meta(&mut self, token: &StartTag) {
        let [content, header, name] = values(token, [b"content", b"http-equiv", b"name"]);
        let read = |value: Option<Option<&[u8]>>| value.flatten().map(value_of).unwrap_or_default();
        let (content, header, name) = (read(content), read(header), read(name));
        let name = if name.is_empty() { header.clone() } else { name };
        if content.is_empty() || name.is_empty() {
            return;
        }
        if strip_html(&header).eq_ignore_ascii_case("refresh") {
            if let Some(target) = refresh_target(&content) {
                let href = push_span(&mut self.store, target.as_bytes());
                self.add_other(Link { href, kind: KIND_REFRESH, ..Link::default() });
            }
        }
        let name = strip_html(&name).to_lowercase();
        match name.as_str() {
            "description" => {
                let words = text::collapsed(&content);
                if self.description.is_none() && !words.is_empty() {
                    self.description = Some(words);
                }
            }
            "robots" => self.robots.push(content),
            "tdm-reservation" | "tdm-policy" => self.robots.push(format!("{name}: {content}")),
            "content-language" => {
                let word = strip_html(content.split(',').next().unwrap_or(""));
                if self.meta_language.is_none() && !word.is_empty() {
                    self.meta_language = Some(word.to_string());
                }
            }
            _ => {
                if header.is_empty()
                    && !name.contains(':')
                    && content.chars().count() < AIMED_CHARS
                    && is_aimed(&content)
                {
                    self.robots.push(format!("{name}: {content}"));
                }
            }
        }
    }

    fn mark_main(&mut self, is_end: bool) {
        if let Some(comparable) = &mut self.comparable {
            comparable.mark_main(is_end);
        }
    }

    /// The SimHash of the text by which pages are compared; empty where it is short or was not asked for. It is made
    /// before `texts`, which takes what it is made of.
    pub fn simhash(&mut self) -> Vec<u8> {
        self.boundary();
        let main = self.only_main();
        self.comparable.take().map_or_else(Vec::new, |comparable| comparable.simhash(&self.pieces, main))
    }

    /// Where the main element stands in the pieces, if there is one and no more.
    fn only_main(&self) -> Option<(usize, usize)> {
        match self.main_piece {
            Some((start, Some(end))) if self.mains == 1 => Some((start, end)),
            _ => None,
        }
    }

    pub fn main_starts(&mut self, depth: usize) {
        if self.muted > 0 {
            return;
        }
        self.mains += 1;
        if self.mains == 1 && self.hidden == 0 {
            self.boundary();
            self.main_piece = Some((self.pieces.len(), None));
            self.mark_main(false);
            self.main_depth = Some(depth);
        }
    }

    pub fn main_ends(&mut self, depth: usize) {
        if self.main_depth == Some(depth) {
            self.main_depth = None;
            self.boundary();
            if let Some((_, end)) = &mut self.main_piece {
                *end = Some(self.pieces.len());
            }
            self.mark_main(true);
        }
    }

    // the result

    pub fn language(&self) -> Option<String> {
        let named = self.html_lang.clone().flatten().or_else(|| self.html_xml_lang.clone().flatten());
        named.or_else(|| self.other_language.clone()).or_else(|| self.meta_language.clone())
    }

    /// The visible text, and the digest of the main element's part of it, or of all where there is no such part. It is
    /// made where its pieces are.
    pub fn texts(&mut self) -> (Vec<u8>, [u8; 16]) {
        self.boundary();
        let main = self.only_main();
        let (mut text, mut length, mut digest) = (std::mem::take(&mut self.pieces), 0, [0; 16]);
        let (start, end) = main.unwrap_or((0, text.len()));
        for (place, (from, to)) in [(0, start), (start, end), (end, text.len())].into_iter().enumerate() {
            // A space stands between two parts, in place of the NUL that the second begins with.
            let space = usize::from(length > 0 && from < to);
            let begin = length + space;
            let part_end = text::collapse(&mut text, (from + space, to), begin);
            if place == 1 {
                digest = xxh3_128(&text[begin..part_end]).to_be_bytes();
            }
            if part_end > begin {
                if space > 0 {
                    text[length] = b' ';
                }
                length = part_end;
            }
        }
        text.truncate(length);
        (text, digest)
    }

    pub fn links(&mut self) -> Links {
        let mut store = std::mem::take(&mut self.store);
        let (anchors, others) = (std::mem::take(&mut self.anchors.links), std::mem::take(&mut self.others.links));
        let mut found = Collector::new(&store, anchors.len() + others.len());
        anchors.iter().for_each(|anchor| found.add(anchor));
        // The words of any anchor with the same address go before those of an image.
        for anchor in anchors.iter().filter(|anchor| !anchor.image.is_empty()) {
            found.add(&Link { words: anchor.image, ..*anchor });
        }
        others.iter().for_each(|other| found.add(other));
        let Collector { mut links, more, .. } = found;
        store.extend_from_slice(&more);
        links.store = owned_whole(store);
        if links.store.len() > LARGE_BYTES {
            links.compact();
        }
        links
    }
}

/// Gathers links, each pair of address and kind once.
struct Collector<'a> {
    store: &'a [u8],
    more: Vec<u8>, // what is to stand behind the store
    places: HashMap<(&'a [u8], u8), usize, Seeded>,
    links: Links,
}

impl<'a> Collector<'a> {
    fn new(store: &'a [u8], most: usize) -> Collector<'a> {
        Collector {
            store,
            more: Vec::new(),
            places: HashMap::with_capacity_and_hasher(most.min(1024), Seeded),
            links: Links::default(),
        }
    }

    fn text(&self, span: Span) -> &[u8] {
        if span.start as usize >= self.store.len() && !span.is_empty() {
            let before = self.store.len() as u32;
            return Span { start: span.start - before, end: span.end - before }.of(&self.more);
        }
        span.of(self.store)
    }

    /// Adds a link, unless it is there, is no address, or there are too many.
    fn add(&mut self, link: &Link) {
        let (written, href) = (link.href.of(self.store), link.address(self.store));
        let links = &mut self.links;
        match self.places.entry((href, link.kind)) {
            Entry::Occupied(entry) => {
                let place = *entry.get();
                if links.anchors[place].is_empty() {
                    links.anchors[place] = link.words;
                }
                let rel = links.rels[place];
                if !rel.is_empty() && self.text(rel) != link.rel.of(self.store) {
                    let common = common_rel(
                        &String::from_utf8_lossy(self.text(rel)),
                        &String::from_utf8_lossy(link.rel.of(self.store)),
                    );
                    let start = (self.store.len() + self.more.len()) as u32;
                    self.more.extend_from_slice(common.as_bytes());
                    self.links.rels[place] = Span { start, end: start + common.len() as u32 };
                }
            }
            Entry::Vacant(_) if is_content(href) || links.hrefs.len() >= MAX_LINKS => {}
            Entry::Vacant(entry) => {
                entry.insert(links.hrefs.len());
                let start = link.href.start + (href.as_ptr() as usize - written.as_ptr() as usize) as u32;
                links.hrefs.push(Span { start, end: start + href.len() as u32 });
                links.kinds.push(link.kind);
                links.anchors.push(link.words);
                links.rels.push(link.rel);
            }
        }
    }
}

/// Appends a text to the store.
fn push_span(store: &mut Vec<u8>, text: &[u8]) -> Span {
    let start = store.len() as u32;
    store.extend_from_slice(text);
    Span { start, end: store.len() as u32 }
}

/// `data:` and `javascript:` stand in an address's place and are content.
fn is_content(bytes: &[u8]) -> bool {
    (bytes.len() >= 5 && bytes[..5].eq_ignore_ascii_case(b"data:"))
        || (bytes.len() >= 11 && bytes[..11].eq_ignore_ascii_case(b"javascript:"))
}

fn common_rel(rel: &str, other: &str) -> String {
    let lower = other.to_lowercase();
    let others: HashSet<&str> = lower.split(is_space).collect();
    let words: Vec<&str> =
        rel.split(is_space).filter(|w| !w.is_empty() && others.contains(w.to_lowercase().as_str())).collect();
    words.join(" ")
}

fn stripped(value: Option<&[u8]>) -> Option<String> {
    value.map(|v| strip_html(&value_of(v)).to_string()).filter(|v| !v.is_empty())
}

/// Is this a directive for robots, such as `noindex`?
fn is_aimed(content: &str) -> bool {
    let lower = content.trim_start_matches(is_space).to_ascii_lowercase();
    let ends_there = |after: &str| {
        let after = after.trim_start_matches(is_space);
        after.is_empty() || after.starts_with([',', ':'])
    };
    // Words that may go on with letters, or also with hyphens.
    let goes_on = |start: &str, others: &str| {
        lower.strip_prefix(start).is_some_and(|more| {
            let after = more.trim_start_matches(|c: char| c.is_ascii_lowercase() || others.contains(c));
            after.len() < more.len() && ends_there(after)
        })
    };
    ["all", "index", "follow", "unavailable_after"].iter().any(|word| lower.strip_prefix(word).is_some_and(ends_there))
        || goes_on("no", "")
        || goes_on("max-", "-")
}

/// Where a refresh leads, as the HTML standard reads it.
fn refresh_target(content: &str) -> Option<String> {
    let space = |c: char| c.is_ascii() && text::is_html_space(c as u8);
    let rest = content.trim_start_matches(space);
    let digits = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    if digits.len() == rest.len() && !rest.starts_with('.') {
        return None;
    }
    let rest = digits.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let spaced = rest.trim_start_matches(space);
    let rest = if let Some(after) = spaced.strip_prefix([';', ',']) {
        after
    } else if spaced.len() < rest.len() {
        spaced
    } else {
        return None;
    };
    let mut rest = rest.trim_start_matches(space);
    if rest.len() >= 3 && rest.as_bytes()[..3].eq_ignore_ascii_case(b"url") {
        if let Some(after) = rest[3..].trim_start_matches(space).strip_prefix('=') {
            rest = after.trim_start_matches(space);
        }
    }
    let target = match rest.chars().next()? {
        quote @ ('"' | '\'') => rest[1..].split(quote).next().unwrap_or(""),
        _ => rest,
    };
    let target = strip_html(target);
    (!target.is_empty()).then(|| target.to_string())
}
