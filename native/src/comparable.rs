//! The text by which pages are compared, and its SimHash: that of the main element, else of the body, without
//! navigation and without the text of links. The twin is `lycosa.web.similarity`.

use crate::scan::{value_of, values, Attribute, StartTag};
use crate::tags::*;
use crate::text::{is_html_space, take_lowest};
use memchr::{memchr, memchr3_iter};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use xxhash_rust::xxh3::xxh3_64;

/// A text with fewer words has no SimHash.
const LEAST_WORDS: u32 = 60;
/// The bits of a SimHash in a block, and how many of each are marked as unsure.
const BLOCK_BITS: usize = 16;
const UNSURE: usize = 2;
/// The bytes of a text that are looked at in one step, and how many hashes vote in one.
const BLOCK: usize = 64;
const VOTES: usize = 8;
/// So many words are gathered before they vote, which is faster than by turns.
const WAITING: usize = 1024;
/// No character of a script that is written without spaces begins with a lower byte.
const WIDE_LEAD: u8 = 0xe0;

/// What does not count in the pieces of a page, in the order of its beginnings; and how much of that begins before the
/// main element does, and before it ends.
#[derive(Default)]
pub struct Comparable {
    skipped: Vec<(u32, u32)>,
    main: (usize, usize),
}

impl Comparable {
    /// An element begins at this place that does not count; returns its number.
    pub fn open(&mut self, place: usize) -> usize {
        self.skipped.push((place as u32, u32::MAX));
        self.skipped.len() - 1
    }

    pub fn close(&mut self, number: usize, place: usize) {
        self.skipped[number].1 = place as u32;
    }

    pub fn mark_main(&mut self, is_end: bool) {
        *(if is_end { &mut self.main.1 } else { &mut self.main.0 }) = self.skipped.len();
    }

    /// The SimHash of what counts, in the main element where its place is given; empty where that is too little.
    pub fn simhash(&self, pieces: &[u8], main: Option<(usize, usize)>) -> Vec<u8> {
        let (mut at, end) = main.unwrap_or((0, pieces.len()));
        let skipped = if main.is_some() { &self.skipped[self.main.0..self.main.1] } else { &self.skipped };
        let places = skipped.iter().map(|&(from, to)| (from as usize, to as usize));
        let parts = places.chain(std::iter::once((end, end))).map(|(from, to)| {
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
    if flags(token.tag) & NAMED == 0 || !token.list.iter().any(may_name_navigation) {
        return false;
    }
    let [role, id, class] = values(token, [b"role", b"id", b"class"]).map(|value| value.flatten().map(value_of));
    matches!(role.as_deref(), Some("navigation" | "contentinfo"))
        || id.is_some_and(|id| id.starts_with("nav"))
        || class.is_some_and(|class| names_navigation(class.as_bytes(), false))
}

/// A quick look at an attribute as written, where a reference may stand for any letter: nearly all elements end here.
fn may_name_navigation(attribute: &Attribute) -> bool {
    let value = attribute.value.unwrap_or(b"");
    match attribute.name.len() {
        2 => value.starts_with(b"nav") || memchr(b'&', value).is_some(),
        4 => matches!(value, b"navigation" | b"contentinfo") || memchr(b'&', value).is_some(),
        5 => names_navigation(value, true),
        _ => false,
    }
}

/// Whether a class is one of navigation, or may be with its references resolved, where it `has_references`.
fn names_navigation(class: &[u8], has_references: bool) -> bool {
    let begins = |at: usize| at == 0 || class[at - 1] == b'-' || is_html_space(class[at - 1]);
    memchr3_iter(b'v', b'b', b'&', class).any(|at| match class[at] {
        b'&' => has_references,
        b'v' => class[..at].ends_with(b"na") && begins(at - 2),
        _ => {
            class[at..].starts_with(b"breadcrumb")
                || (class[..at].ends_with(b"side") && class[at..].starts_with(b"bar"))
        }
    })
}

/// Near for near texts, see `lycosa.web.similarity`: the bits, and which of them are unsure; empty for short texts.
#[pyfunction]
pub fn simhash<'py>(py: Python<'py>, text: &str, least_words: u32) -> Bound<'py, PyBytes> {
    PyBytes::new(py, &py.detach(|| simhash_of(std::iter::once(text.as_bytes()), least_words)))
}

fn simhash_of<'a>(parts: impl Iterator<Item = &'a [u8]>, least_words: u32) -> Vec<u8> {
    let mut shingles = Shingles::default();
    parts.for_each(|part| shingles.add_words(part));
    shingles.vote();
    if shingles.votes.hashes + 2 < least_words.max(3) {
        Vec::new()
    } else {
        shingles.votes.verdict()
    }
}

/// Every three words in a row vote by their hash. Words end at a space or a control; a character of a script that is
/// written without spaces is a word of its own.
#[derive(Default)]
struct Shingles {
    hashes: Vec<u64>, // of the words that have not voted yet, and of the two before them
    votes: Votes,
}

impl Shingles {
    fn add_words(&mut self, text: &[u8]) {
        let (mut start, mut is_open, mut wide_to) = (0, false, 0);
        for (place, block) in text.chunks(BLOCK).enumerate() {
            let (words, may_be_wide) = look_at(block);
            if may_be_wide {
                wide_to = (place + 1) * BLOCK;
            }
            let before = words << 1 | u64::from(is_open);
            let (mut starts, mut ends) = (words & !before, before & !words);
            if !is_open {
                start = place * BLOCK + take_lowest(&mut starts);
            }
            while ends != 0 {
                let end = place * BLOCK + take_lowest(&mut ends);
                if start < wide_to {
                    self.add_run(&text[start..end]);
                } else {
                    self.add_word(&text[start..end]);
                }
                start = place * BLOCK + take_lowest(&mut starts);
            }
            is_open = words >> (BLOCK - 1) != 0;
        }
        if is_open {
            self.add_run(&text[start..]);
        }
    }

    /// Adds the words of a text without spaces.
    fn add_run(&mut self, run: &[u8]) {
        let (mut start, mut at) = (0, 0);
        while at < run.len() {
            let wide = if run[at] < WIDE_LEAD { 0 } else { wide_length(&run[at..]) };
            if wide > 0 {
                if start < at {
                    self.add_word(&run[start..at]);
                }
                self.add_word(&run[at..at + wide]);
                start = at + wide;
            }
            at += wide.max(1);
        }
        if start < at {
            self.add_word(&run[start..]);
        }
    }

    fn add_word(&mut self, word: &[u8]) {
        if self.hashes.len() == self.hashes.capacity() {
            self.vote();
        }
        self.hashes.push(xxh3_64(word));
    }

    fn vote(&mut self) {
        let count = self.hashes.len().saturating_sub(2);
        for at in (0..count).step_by(VOTES) {
            let shingles = std::array::from_fn(|place| match self.hashes.get(at + place..at + place + 3) {
                Some(&[first, second, third]) => shingle(first, second, third),
                _ => 0, // which is no vote
            });
            self.votes.add(shingles);
        }
        self.votes.hashes += count as u32;
        self.hashes.drain(..count);
        self.hashes.reserve(WAITING);
    }
}

/// Which bytes of a block are in words, a bit each; and whether one may begin a wide character.
fn look_at(block: &[u8]) -> (u64, bool) {
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let mut padded = [0; BLOCK];
    let block = block.first_chunk().unwrap_or_else(|| {
        padded[..block.len()].copy_from_slice(block);
        &padded
    });
    let (mut words, mut wide) = (0, 0);
    for (place, eight) in block.chunks_exact(8).enumerate() {
        let bytes = u64::from_le_bytes(eight.try_into().unwrap_or_default());
        let above_space = ((bytes & !HIGH) + 0x5f5f_5f5f_5f5f_5f5f) | bytes;
        // The highest bits of eight bytes, gathered.
        words |= ((above_space & HIGH) >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56 << (8 * place);
        wide |= bytes & bytes << 1 & bytes << 2;
    }
    (words, wide & HIGH != 0)
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
/// added eight at a time, which takes a third of the steps.
#[derive(Default)]
struct Votes {
    planes: [u64; 32],
    hashes: u32,
}

impl Votes {
    fn add(&mut self, [a, b, c, d, e, f, g, h]: [u64; VOTES]) {
        let [ones, twos, fours, more @ ..] = &mut self.planes;
        let (ab, cd, ef, gh) = (sum(ones, a, b), sum(ones, c, d), sum(ones, e, f), sum(ones, g, h));
        let (abcd, efgh) = (sum(twos, ab, cd), sum(twos, ef, gh));
        let mut carry = sum(fours, abcd, efgh);
        for plane in more {
            if carry == 0 {
                return;
            }
            (*plane, carry) = (*plane ^ carry, *plane & carry);
        }
    }

    /// What most hashes have, of each bit; then which bits of each block had the closest votes.
    fn verdict(&self) -> Vec<u8> {
        let mut ones = [0; 64];
        for (place, plane) in self.planes.iter().enumerate().filter(|(_, plane)| **plane != 0) {
            for (bit, count) in ones.iter_mut().enumerate() {
                *count += (plane >> bit & 1) << place;
            }
        }
        let leads = ones.map(|count| 2 * count as i64 - i64::from(self.hashes));
        let bits = (0..64).fold(0u64, |all, bit| all | u64::from(leads[bit] > 0) << bit);
        let mut unsure = 0u64;
        for (block, leads) in leads.chunks_exact(BLOCK_BITS).enumerate() {
            for _ in 0..UNSURE {
                let bit_of = |place: usize| 1u64 << (block * BLOCK_BITS + place);
                let sure = (0..BLOCK_BITS).filter(|&place| unsure & bit_of(place) == 0);
                unsure |= sure.min_by_key(|&place| leads[place].abs()).map_or(0, bit_of);
            }
        }
        [bits.to_be_bytes(), unsure.to_be_bytes()].concat()
    }
}

/// Adds two votes to a plane, of each bit, and returns what is carried.
fn sum(plane: &mut u64, one: u64, other: u64) -> u64 {
    let (before, both) = (*plane, one ^ other);
    *plane = before ^ both;
    (one & other) | (before & both)
}
