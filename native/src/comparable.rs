//! The text by which pages are compared, and its SimHash: that of the main element, else of the body, without
//! navigation and without the text of links. The twins are `lycosa.web.comparable` and `lycosa.web.similarity`.

use crate::scan::{value_of, values, StartTag};
use crate::tags::*;
use memchr::{memchr3_iter, memmem};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::LazyLock;
use xxhash_rust::xxh3::xxh3_64;

/// A text with fewer words has no SimHash.
const LEAST_WORDS: u32 = 60;
/// The bits of a SimHash in a block, and how many of each are marked as unsure.
const BLOCK_BITS: usize = 16;
const UNSURE: usize = 2;

/// What does not count in the pieces of a page, in the order of its beginnings; and how much of that begins before the
/// main element does, and before it ends.
#[derive(Default)]
pub struct Comparable {
    skipped: Vec<(usize, usize)>,
    main: (usize, usize),
}

impl Comparable {
    /// An element begins at this place that does not count; returns its number.
    pub fn open(&mut self, place: usize) -> usize {
        self.skipped.push((place, usize::MAX));
        self.skipped.len() - 1
    }

    pub fn close(&mut self, number: usize, place: usize) {
        self.skipped[number].1 = place;
    }

    pub fn mark_main(&mut self, is_end: bool) {
        *(if is_end { &mut self.main.1 } else { &mut self.main.0 }) = self.skipped.len();
    }

    /// The SimHash of what counts, in the main element where its place is given; empty where that is too little.
    pub fn simhash(&self, pieces: &[u8], main: Option<(usize, usize)>) -> Vec<u8> {
        let (mut at, end) = main.unwrap_or((0, pieces.len()));
        let skipped = if main.is_some() { &self.skipped[self.main.0..self.main.1] } else { &self.skipped };
        let parts = skipped.iter().copied().chain(std::iter::once((end, end))).map(|(from, to)| {
            let part = &pieces[at.min(from)..from];
            at = at.max(to.min(end));
            part
        });
        simhash_of(parts, LEAST_WORDS)
    }
}

/// Is an element navigation, or what stands on every page?
pub fn is_navigation(token: &StartTag) -> bool {
    if matches!(token.tag, NAV | FOOTER) {
        return true;
    }
    if flags(token.tag) & NAMED == 0 || token.attributes.len() < 8 || !may_name_navigation(token.attributes) {
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

/// Near for near texts, see `lycosa.web.similarity`: the bits, and which of them are unsure; empty for short texts.
#[pyfunction]
pub fn simhash<'py>(py: Python<'py>, text: &str, least_words: u32) -> Bound<'py, PyBytes> {
    PyBytes::new(py, &py.detach(|| simhash_of(std::iter::once(text.as_bytes()), least_words)))
}

fn simhash_of<'a>(parts: impl Iterator<Item = &'a [u8]>, least_words: u32) -> Vec<u8> {
    let (mut votes, mut words, mut before) = (Votes::default(), 0u32, [0u64; 2]);
    for part in parts {
        for_each_word(part, |word| {
            let hash = xxh3_64(word);
            words += 1;
            if words > 2 {
                votes.add(shingle(before[0], before[1], hash));
            }
            before = [before[1], hash];
        });
    }
    if words < least_words.max(3) {
        Vec::new()
    } else {
        votes.verdict(words - 2)
    }
}

/// Words end at a space or a control; a character of a script that is written without spaces is a word of its own.
fn for_each_word(text: &[u8], mut each: impl FnMut(&[u8])) {
    let (mut start, mut at) = (0, 0);
    loop {
        while at < text.len() && text[at] > b' ' && text[at] < 0xe0 {
            at += 1;
        }
        let is_end = at == text.len();
        let wide = if is_end || text[at] <= b' ' { 0 } else { wide_length(&text[at..]) };
        if !is_end && text[at] > b' ' && wide == 0 {
            at += 1; // a character like others
            continue;
        }
        if start < at {
            each(&text[start..at]);
        }
        if is_end {
            return;
        }
        if wide > 0 {
            each(&text[at..at + wide]);
        }
        at += wide.max(1);
        start = at;
    }
}

/// The bytes of the first character, if its script is written without spaces; else 0.
fn wide_length(text: &[u8]) -> usize {
    let (lead, second) = (text[0], text.get(1).copied().unwrap_or(0));
    let length = if lead >= 0xf0 { 4 } else { 3 };
    // Thai and Lao are E0 B8 to E0 BB, what comes from U+2E80 on begins with E2 BA or more.
    let is_wide = (lead == 0xe0 && (0xb8..=0xbb).contains(&second)) || lead > 0xe2 || (lead == 0xe2 && second >= 0xba);
    if is_wide && text.len() >= length {
        length
    } else {
        0
    }
}

/// The hash of three words in a row.
fn shingle(first: u64, second: u64, third: u64) -> u64 {
    let sum = first.wrapping_add(second.rotate_left(21)).wrapping_add(third.rotate_left(42));
    let mixed = sum.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 29
}

/// Counts the ones of each bit, in planes: bit 5 of plane 2 says whether the count of bit 5 has a four in it. Hashes are
/// added two at a time, which takes half as many steps.
struct Votes {
    planes: [u64; 8],
    waiting: Option<u64>,
    added: u32,
    ones: [u32; 64],
}

impl Default for Votes {
    fn default() -> Self {
        Votes { planes: [0; 8], waiting: None, added: 0, ones: [0; 64] }
    }
}

impl Votes {
    fn add(&mut self, hash: u64) {
        match self.waiting.take() {
            None => self.waiting = Some(hash),
            Some(other) => self.add_two(hash, other),
        }
    }

    fn add_two(&mut self, one: u64, other: u64) {
        let (lowest, both) = (self.planes[0], one ^ other);
        self.planes[0] = lowest ^ both;
        let mut carry = (one & other) | (lowest & both);
        for plane in &mut self.planes[1..] {
            (*plane, carry) = (*plane ^ carry, *plane & carry);
        }
        self.added += 2;
        if self.added == 254 {
            self.empty();
        }
    }

    fn empty(&mut self) {
        for (bit, ones) in self.ones.iter_mut().enumerate() {
            let count = self.planes.iter().enumerate().map(|(place, plane)| (plane >> bit & 1) << place).sum::<u64>();
            *ones += count as u32;
        }
        (self.planes, self.added) = ([0; 8], 0);
    }

    /// What most hashes have, of each bit; then which bits of each block had the closest votes.
    fn verdict(mut self, hashes: u32) -> Vec<u8> {
        if let Some(hash) = self.waiting.take() {
            self.add_two(hash, 0);
        }
        self.empty();
        let lead = |bit: usize| 2 * i64::from(self.ones[bit]) - i64::from(hashes);
        let bits = (0..64).fold(0u64, |all, bit| all | u64::from(lead(bit) > 0) << bit);
        let mut unsure = 0u64;
        for block in (0..64).step_by(BLOCK_BITS) {
            let mut places: Vec<usize> = (block..block + BLOCK_BITS).collect();
            places.sort_by_key(|&bit| lead(bit).abs());
            unsure |= places[..UNSURE].iter().fold(0, |all, &bit| all | 1u64 << bit);
        }
        [bits.to_be_bytes(), unsure.to_be_bytes()].concat()
    }
}
