//! The main text of a page: what is for reading in it, without navigation, one line for each block.
//!
//! `Outline` watches the elements pass and notes where blocks, navigation and headings lie in the page's pieces of text;
//! the text is made when all is known. The twin is `lycosa.web.readable`.

use crate::scan::{value_of, values, StartTag};
use crate::tags::*;
use crate::text::Lines;
use memchr::{memchr3_iter, memmem};
use pyo3::prelude::*;
use std::sync::LazyLock;
use xxhash_rust::xxh3::xxh3_64;

/// Counts up, here and in `lycosa.web.document`, with every change of what the main text of a document is.
pub const VERSION: u32 = 1;
/// A body of which no more than that many characters are left may be all navigation, and is read as a whole.
const LITTLE_CHARS: usize = 200;
/// Words in a row that count as one feature of a text.
const SHINGLE_WORDS: usize = 3;
/// The control character that stands for a break in the twin.
const BREAK: u8 = 3;

struct Open {
    depth: usize,
    left_out: Option<usize>,
}

#[derive(Default)]
pub struct Outline {
    open: Vec<Open>,
    breaks: Vec<usize>,            // places in the pieces where a line ends; ascending
    left_out: Vec<(usize, usize)>, // from where to where navigation goes, in the order of its beginnings
    headings: Vec<Heading>,
    main: (Mark, Mark), // the beginning and the end of the first main element
}

#[derive(Clone, Copy)]
struct Heading {
    number: usize,
    place: usize,
    left_out: usize, // elements that began before it
}

/// A place in the pieces, and how much was noted before it: elements without text lie at one place.
#[derive(Clone, Copy, Default)]
struct Mark {
    place: usize,
    left_out: usize,
    headings: usize,
}

/// The part of a page that counts.
struct Chosen<'a> {
    from: usize,
    to: usize,
    left_out: &'a [(usize, usize)],
    first_left_out: usize,
    headings: &'a [Heading],
}

impl Outline {
    /// Is this an element that has to be noted by `open`?
    pub fn is_noted(token: &StartTag) -> bool {
        flags(token.tag) & (BLOCK | HEADING) != 0 || is_navigation(token)
    }

    /// An element opens at this place, with `headings` before it.
    pub fn open(&mut self, token: &StartTag, depth: usize, place: usize, headings: usize) {
        let is_left_out = is_navigation(token);
        if is_left_out {
            self.left_out.push((place, usize::MAX));
        }
        if flags(token.tag) & HEADING != 0 {
            self.headings.push(Heading { number: headings, place, left_out: self.left_out.len() });
        }
        self.note_break(place);
        self.open.push(Open { depth, left_out: is_left_out.then(|| self.left_out.len() - 1) });
    }

    /// Is an element that was noted the next to close at this depth?
    pub fn closes(&self, depth: usize) -> bool {
        self.open.last().is_some_and(|open| open.depth >= depth)
    }

    /// The elements from this depth on end at this place.
    pub fn close(&mut self, depth: usize, place: usize) {
        while self.closes(depth) {
            if let Some(Open { left_out: Some(index), .. }) = self.open.pop() {
                self.left_out[index].1 = place;
            }
        }
        self.note_break(place);
    }

    fn note_break(&mut self, place: usize) {
        if self.breaks.last() != Some(&place) {
            self.breaks.push(place);
        }
    }

    /// The main element begins or ends at this place.
    pub fn mark_main(&mut self, place: usize, is_end: bool) {
        let mark = Mark { place, left_out: self.left_out.len(), headings: self.headings.len() };
        *(if is_end { &mut self.main.1 } else { &mut self.main.0 }) = mark;
    }

    /// The main text, and the numbers of the headings in it; `has_main`: there is one main element, and no other.
    pub fn read(&self, pieces: &[u8], has_main: bool) -> (String, Vec<usize>) {
        let everything = Mark { place: pieces.len(), left_out: self.left_out.len(), headings: self.headings.len() };
        let (start, end) = if has_main { self.main } else { (Mark::default(), everything) };
        let chosen = Chosen {
            from: start.place,
            to: end.place,
            left_out: &self.left_out[start.left_out..end.left_out],
            first_left_out: start.left_out,
            headings: &self.headings[start.headings..end.headings],
        };
        let text = self.lines(pieces, &chosen);
        let is_little = if has_main { text.is_empty() } else { text.chars().nth(LITTLE_CHARS).is_none() };
        if !is_little {
            return (text, chosen.headings());
        }
        let whole = Chosen { from: 0, to: pieces.len(), left_out: &[], first_left_out: 0, headings: &self.headings };
        (self.lines(pieces, &whole), whole.headings())
    }

    /// The chosen pieces: white space and controls as one space each run, none where punctuation clings, as `text` does
    /// it, and a line end at each break.
    fn lines(&self, pieces: &[u8], chosen: &Chosen) -> String {
        let mut lines = Lines::new(chosen.to - chosen.from, Some(BREAK));
        let first = self.breaks.partition_point(|&place| place < chosen.from);
        let mut breaks = self.breaks[first..].iter().copied().take_while(|&place| place <= chosen.to).peekable();
        let mut at = chosen.from;
        for &(start, end) in chosen.left_out.iter().chain(&[(chosen.to, chosen.to)]) {
            if start >= at {
                while let Some(place) = breaks.next_if(|&place| place <= start) {
                    lines.add(&pieces[at..place]);
                    lines.end();
                    at = place;
                }
                lines.add(&pieces[at..start]);
                at = start;
            }
            at = at.max(end.min(chosen.to));
            while breaks.next_if(|&place| place < at).is_some() {}
        }
        lines.end();
        if lines.out.last() == Some(&b'\n') {
            lines.out.pop();
        }
        String::from_utf8(lines.out).unwrap_or_default()
    }
}

impl Chosen<'_> {
    /// The numbers of the headings that are not left out.
    fn headings(&self) -> Vec<usize> {
        let mut ranges = self.left_out.iter();
        let (mut next, mut until) = (self.first_left_out, 0);
        let mut found = Vec::new();
        for heading in self.headings {
            while next < heading.left_out {
                until = ranges.next().map_or(until, |range| range.1.max(until));
                next += 1;
            }
            if heading.place >= until {
                found.push(heading.number);
            }
        }
        found
    }
}

/// Is an element navigation, or what stands on every page?
fn is_navigation(token: &StartTag) -> bool {
    match token.tag {
        NAV | FOOTER => return true,
        HTML | BODY | MAIN | TITLE => return false,
        _ => {}
    }
    if token.attributes.len() < 8 || !may_name_navigation(token.attributes) {
        return false;
    }
    let [role, id, class] = values(token, [b"role", b"id", b"class"]).map(|value| value.flatten().map(value_of));
    matches!(role.as_deref(), Some("navigation" | "contentinfo"))
        || id.is_some_and(|id| id.starts_with("nav"))
        || class.is_some_and(|class| names_navigation(&class))
}

static CONTENTINFO: LazyLock<memmem::Finder> = LazyLock::new(|| memmem::Finder::new(b"contentinfo"));

/// A quick look at the attributes as written, by the rare letters of the words: nearly all elements end here.
fn may_name_navigation(attributes: &[u8]) -> bool {
    let is_one = |at: usize| match attributes[at] {
        b'v' => attributes[..at].ends_with(b"na"),
        b'b' => attributes[..at].ends_with(b"side") || attributes[at..].starts_with(b"breadcrumb"),
        _ => true, // a reference may stand for any letter
    };
    memchr3_iter(b'v', b'b', b'&', attributes).any(is_one) || CONTENTINFO.find(attributes).is_some()
}

fn names_navigation(class: &str) -> bool {
    let begins =
        |at: usize| at == 0 || matches!(class.as_bytes()[at - 1], b'-' | b' ' | b'\t' | b'\n' | b'\x0c' | b'\r');
    class.contains("breadcrumb") || class.contains("sidebar") || class.match_indices("nav").any(|(at, _)| begins(at))
}

/// Near for near texts: of each bit, what most of the hashes of the text's shingles have. 0 for no text.
#[pyfunction]
pub fn simhash(text: &str) -> u64 {
    let words: Vec<&str> = text.split([' ', '\n']).filter(|word| !word.is_empty()).collect();
    let mut votes = [0i32; 64];
    for shingle in words.windows(SHINGLE_WORDS.min(words.len()).max(1)) {
        let hash = xxh3_64(shingle.join(" ").as_bytes());
        for (bit, vote) in votes.iter_mut().enumerate() {
            *vote += if hash >> bit & 1 == 1 { 1 } else { -1 };
        }
    }
    votes.iter().enumerate().fold(0, |all, (bit, &vote)| all | u64::from(vote > 0) << bit)
}
