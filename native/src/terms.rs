//! The terms of texts, as a tokeniser in Python finds them, and the words in their identifiers, in one pass: each word is
//! asked for once, and remembered.
//!
//! Stemming takes the greater part of indexing a text, and a site has few different words. Words are runs of letters and
//! digits, as tantivy's simple tokeniser has them. What identifiers are says `lycosa.search.identifiers`.

use crate::seen::{random_seed, Seeded, Unchanged};
use crate::text::{in_utf8, is_space, owned_whole, take_lowest};
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::ops::Range;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Longer words are data. They are no identifiers, and only their place counts.
const LONGEST_BYTES: usize = 50;
/// What stands in the place of a longer word; no term is so.
const FILLER: &[u8] = b". ";
/// Shorter words in identifiers say nothing.
const SHORTEST_PART: usize = 2;
/// Of terms; beyond it all are forgotten.
const KNOWN_BYTES: usize = 16 << 20;

/// Of a document beside its text, about.
const MORE_BYTES: usize = 4 << 10;

/// Of words that were asked for lately: a table that stays in the caches, where that of all words does not.
const LATELY: usize = 1 << 14;
/// Of a term there with the space behind it; longer ones are looked up among all.
const SHORT_BYTES: usize = 19;
/// The bytes of a text that are looked at in one step.
const BLOCK: usize = 64;

/// The term of a word, which stands in `texts` with a space behind it.
struct Known {
    start: u32,
    bytes: u16,
    identifier: u32, // the number of the word among them, from 1 on; 0 for a word that is none
}

/// The same for one of the words of late, all in one place; `bytes` is 0 where there is none.
#[derive(Clone, Copy, Default)]
#[repr(align(32))]
struct Lately {
    hash: u64,
    identifier: u32,
    bytes: u8,
    term: [u8; SHORT_BYTES],
}

/// The words of one tokeniser that were asked for. `tokens` is called with words, and gives a list of terms. Words are
/// known by their hashes alone, whose seed differs in every process: nobody can make two of them collide.
#[pyclass]
pub struct TermMap {
    tokens: Py<PyAny>,
    seed: u64,
    lately: Vec<Lately>,
    known: HashMap<u64, Known, BuildHasherDefault<Unchanged>>, // by hashes
    texts: Vec<u8>,
    parts: Parts,
}

/// What is made of the texts of one page: their terms, in one store, and where terms belong that are not known yet.
#[derive(Default)]
struct Terms<'a> {
    out: Vec<u8>,
    unknown: Vec<Unknown<'a>>,
}

struct Unknown<'a> {
    place: usize,
    word: &'a str,
    may_be_identifier: bool,
}

#[pymethods]
impl TermMap {
    #[new]
    fn new(tokens: Py<PyAny>) -> TermMap {
        TermMap {
            tokens,
            seed: random_seed(),
            lately: vec![Lately::default(); LATELY],
            known: HashMap::default(),
            texts: Vec::new(),
            parts: Parts::default(),
        }
    }

    /// The terms of a text with spaces between them.
    fn terms(&mut self, py: Python<'_>, text: &str) -> PyResult<String> {
        let mut out = Vec::new();
        self.write_alone(py, text, &mut out)?;
        Ok(owned_whole(out))
    }

    /// The document of a page for the index, as JSON: `head`, an object of its other values, with the terms of its title,
    /// headings and text (bytes) in fields of `language`, those of the words of its URL, which `of_url` knows, and those
    /// in its identifiers, which `of_parts` knows; each is this map where it is None. Second, words in identifiers that
    /// are not ASCII, and in no field yet. In terms there is nothing to escape.
    #[allow(clippy::too_many_arguments)]
    fn document(
        &mut self,
        py: Python<'_>,
        head: &str,
        language: &str,
        texts: (PyBackedStr, PyBackedStr, PyBackedBytes),
        url: &str,
        url_words: &str,
        of_url: Option<PyRefMut<'_, TermMap>>,
        of_parts: Option<PyRefMut<'_, TermMap>>,
    ) -> PyResult<(String, String)> {
        self.begin();
        let (title, headings, text) = (&*texts.0, &*texts.1, in_utf8(&texts.2));
        let mut out = Vec::with_capacity(head.len() + text.len() + text.len() / 8 + MORE_BYTES);
        out.extend_from_slice(head.strip_suffix('}').unwrap_or(head).as_bytes());
        identifiers(url).into_iter().for_each(|one| self.parts.add_new(one));
        for (field, text, wants_parts) in [("title", title, true), ("heads", headings, false), ("text", &*text, true)] {
            begin_field(&mut out, &[field, "_", language]);
            self.write(py, text, wants_parts, &mut out)?;
            out.push(b'"');
        }
        begin_field(&mut out, &["url"]);
        match of_url {
            Some(mut map) => map.write_alone(py, url_words, &mut out)?,
            None => self.write(py, url_words, false, &mut out)?,
        }
        let mut parts = std::mem::take(&mut self.parts.found);
        if parts.is_ascii() && !parts.is_empty() {
            out.push(b'"');
            begin_field(&mut out, &["parts"]);
            match of_parts {
                Some(mut map) => map.write_alone(py, &parts, &mut out)?,
                None => self.write(py, &parts, false, &mut out)?,
            }
            parts.clear();
        }
        out.extend_from_slice(b"\"}");
        Ok((owned_whole(out), parts))
    }
}

impl TermMap {
    /// Begins a page.
    fn begin(&mut self) {
        if self.texts.len() + self.parts.known_bytes > KNOWN_BYTES {
            self.lately.fill(Lately::default());
            self.known.clear();
            self.texts.clear();
            self.parts = Parts::default();
        }
        self.parts.page += 1;
    }

    /// Writes the terms of a text that is no part of an open page.
    fn write_alone(&mut self, py: Python<'_>, text: &str, out: &mut Vec<u8>) -> PyResult<()> {
        self.begin();
        self.write(py, text, false, out)
    }

    /// Writes the terms of a text behind others.
    fn write(&mut self, py: Python<'_>, text: &str, wants_parts: bool, out: &mut Vec<u8>) -> PyResult<()> {
        out.reserve(text.len() + 2 * SHORT_BYTES);
        let mut terms = Terms { out: std::mem::take(out), unknown: Vec::new() };
        let is_ascii = text.is_ascii();
        for_each_run(text, |run| {
            if is_ascii || run.is_ascii() {
                return self.add(run, wants_parts, &mut terms);
            }
            words(run).for_each(|word| self.add(word, false, &mut terms));
            if wants_parts && run.len() < LONGEST_BYTES && has_parts(run) {
                self.parts.add_new(run);
            }
        });
        *out = if terms.unknown.is_empty() { terms.out } else { self.filled(py, &terms)? };
        Ok(())
    }

    /// Adds the term of a word, and the words in it where it may be an identifier.
    fn add<'a>(&mut self, word: &'a str, may_be_identifier: bool, terms: &mut Terms<'a>) {
        let hash = self.hash(word);
        let Lately { hash: found, identifier, bytes, ref term } = self.lately[hash as usize % LATELY];
        if found == hash && bytes > 0 {
            let end = terms.out.len() + usize::from(bytes);
            terms.out.extend_from_slice(term); // a fixed size is copied without a call
            terms.out.truncate(end);
            if may_be_identifier && identifier > 0 {
                self.parts.add(identifier);
            }
        } else if word.len() >= LONGEST_BYTES {
            terms.out.extend_from_slice(FILLER);
        } else if !self.add_known(hash, may_be_identifier, &mut terms.out) {
            terms.unknown.push(Unknown { place: terms.out.len(), word, may_be_identifier });
        }
    }

    /// Adds the term of the word with this hash, if it is known.
    fn add_known(&mut self, hash: u64, may_be_identifier: bool, out: &mut Vec<u8>) -> bool {
        let Some(&Known { start, bytes, identifier }) = self.known.get(&hash) else { return false };
        let term = &self.texts[start as usize..start as usize + usize::from(bytes)];
        out.extend_from_slice(term);
        if term.len() <= SHORT_BYTES {
            let slot = &mut self.lately[hash as usize % LATELY];
            *slot = Lately { hash, identifier, bytes: term.len() as u8, term: [0; SHORT_BYTES] };
            slot.term[..term.len()].copy_from_slice(term);
        }
        self.parts.add(if may_be_identifier { identifier } else { 0 });
        true
    }

    fn hash(&self, word: &str) -> u64 {
        xxh3_64_with_seed(word.as_bytes(), self.seed)
    }

    /// The terms with those that were not known.
    fn filled(&mut self, py: Python<'_>, terms: &Terms<'_>) -> PyResult<Vec<u8>> {
        let mut asked: Vec<&str> = terms.unknown.iter().map(|one| one.word).collect();
        asked.sort_unstable(); // a page that brings a new word has it many times
        asked.dedup();
        self.ask(py, &asked)?;
        let mut filled = Vec::with_capacity(terms.out.len() * 2);
        let mut from = 0;
        for &Unknown { place, word, may_be_identifier } in &terms.unknown {
            filled.extend_from_slice(&terms.out[from..place]);
            self.add_known(self.hash(word), may_be_identifier, &mut filled);
            from = place;
        }
        filled.extend_from_slice(&terms.out[from..]);
        Ok(filled)
    }

    fn ask(&mut self, py: Python<'_>, words: &[&str]) -> PyResult<()> {
        let terms: Vec<String> = self.tokens.call1(py, (words.join(" "),))?.extract(py)?;
        if terms.len() == words.len() {
            for (word, term) in words.iter().zip(&terms) {
                self.learn(word, term);
            }
            return Ok(());
        }
        for word in words {
            let terms: Vec<String> = self.tokens.call1(py, (*word,))?.extract(py)?;
            self.learn(word, &terms.join(" "));
        }
        Ok(())
    }

    fn learn(&mut self, word: &str, term: &str) {
        let start = self.texts.len() as u32; // bounded by `KNOWN_BYTES` and one text
        let bytes = term.len() as u16 + 1; // a word has less than `LONGEST_BYTES`
        let identifier = if word.is_ascii() && has_parts(word) { self.parts.learn(word) } else { 0 };
        self.known.insert(self.hash(word), Known { start, bytes, identifier });
        self.texts.extend_from_slice(term.as_bytes());
        self.texts.push(b' ');
    }
}

/// Begins a field of a JSON object that has some before it; the name comes in pieces.
fn begin_field(out: &mut Vec<u8>, name: &[&str]) {
    out.extend_from_slice(b",\"");
    name.iter().for_each(|piece| out.extend_from_slice(piece.as_bytes()));
    out.extend_from_slice(b"\":\"");
}

/// Calls `act` with each run of letters and digits, and of all characters beyond ASCII.
fn for_each_run<'a>(text: &'a str, mut act: impl FnMut(&'a str)) {
    let (mut start, mut is_open) = (0, false);
    for (place, block) in text.as_bytes().chunks(BLOCK).enumerate() {
        let inside = bytes_in_words(block);
        let before = inside << 1 | u64::from(is_open);
        let (mut starts, mut ends) = (inside & !before, before & !inside);
        if !is_open {
            start = place * BLOCK + take_lowest(&mut starts);
        }
        while ends != 0 {
            act(&text[start..place * BLOCK + take_lowest(&mut ends)]);
            start = place * BLOCK + take_lowest(&mut starts);
        }
        is_open = inside >> (BLOCK - 1) != 0;
    }
    if start < text.len() {
        act(&text[start..]);
    }
}

/// Which bytes of a block are in words, a bit each.
fn bytes_in_words(block: &[u8]) -> u64 {
    let mut padded = [0; BLOCK];
    let block: &[u8; BLOCK] = block.first_chunk().unwrap_or_else(|| {
        padded[..block.len()].copy_from_slice(block);
        &padded
    });
    let marks = block.map(|byte| u8::from(byte.is_ascii_alphanumeric() | (byte >= 0x80))); // by vectors: the size is fixed
    marks.chunks_exact(8).enumerate().fold(0, |words, (place, eight)| {
        let eight = u64::from_le_bytes(eight.try_into().unwrap_or_default());
        words | eight.wrapping_mul(0x0102_0408_1020_4080) >> 56 << (8 * place)
    })
}

/// The words in identifiers, by numbers, and which of them the open page has.
#[derive(Default)]
struct Parts {
    numbers: HashMap<Box<str>, usize>,
    words: Vec<(Box<str>, u32)>,           // each with the last page that had it
    lists: Vec<usize>,                     // of words, by identifiers
    identifiers: Vec<(Range<usize>, u32)>, // where the words of each lie in `lists`, and the last page that had it
    known_bytes: usize,
    page: u32,
    found: String, // in the open page
}

impl Parts {
    /// A new number for an identifier.
    fn learn(&mut self, identifier: &str) -> u32 {
        let start = self.lists.len();
        for part in parts_of(identifier) {
            let number = match self.numbers.get(&*part) {
                Some(&number) => number,
                None => {
                    let part: Box<str> = part.into();
                    self.known_bytes += 2 * part.len();
                    self.numbers.insert(part.clone(), self.words.len());
                    self.words.push((part, 0));
                    self.words.len() - 1
                }
            };
            self.lists.push(number);
        }
        self.known_bytes += 40 + 8 * (self.lists.len() - start); // what it takes here
        self.identifiers.push((start..self.lists.len(), 0));
        self.identifiers.len() as u32
    }

    /// Adds the words of the identifier with this number to those of the page; 0 is none.
    fn add(&mut self, identifier: u32) {
        let Some(place) = (identifier as usize).checked_sub(1) else { return };
        let (list, page) = &mut self.identifiers[place];
        if std::mem::replace(page, self.page) == self.page {
            return;
        }
        for &number in &self.lists[list.clone()] {
            let (word, page) = &mut self.words[number];
            if std::mem::replace(page, self.page) != self.page {
                self.found.push_str(word);
                self.found.push(' ');
            }
        }
    }

    /// The same for one without a number.
    fn add_new(&mut self, identifier: &str) {
        let number = self.learn(identifier);
        self.add(number);
    }
}

/// The words in an identifier in lower case.
fn parts_of(identifier: &str) -> impl Iterator<Item = String> + '_ {
    let bytes = identifier.as_bytes();
    let begins = move |&at: &usize| {
        let (before, here) = (bytes[at - 1], bytes[at]);
        let ends_capitals = before.is_ascii_uppercase() && bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase);
        here.is_ascii_uppercase() && (is_small(before) || ends_capitals)
    };
    let mut start = 0;
    (1..bytes.len()).filter(begins).chain(std::iter::once(bytes.len())).filter_map(move |end| {
        let part = &identifier[std::mem::replace(&mut start, end)..end];
        (part.chars().nth(SHORTEST_PART - 1).is_some()).then(|| part.to_lowercase())
    })
}

fn is_small(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

/// Does another word begin in a text at this place, as the B in aB and in ABc?
fn begins_at(bytes: &[u8], at: usize) -> bool {
    let before = bytes[at - 1];
    let is_last_of_some = before.is_ascii_uppercase() && bytes.get(at + 1).is_some_and(|&next| is_small(next));
    bytes[at].is_ascii_uppercase() && (is_small(before) || is_last_of_some)
}

fn has_parts(word: &str) -> bool {
    (1..word.len()).any(|at| begins_at(word.as_bytes(), at))
}

/// The identifiers of a text, each once: words in which another word begins, as in getElementById. A word begins at a
/// capital letter behind a small one or a digit, and at the last capital of several that a small letter follows.
#[pyfunction]
pub fn identifiers(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let (mut found, mut last) = (Vec::new(), 0); // `last` is where the last identifier ended
    for at in 1..bytes.len() {
        if at < last || !begins_at(bytes, at) {
            continue;
        }
        let in_word = |byte: &u8| byte.is_ascii_alphanumeric() || !byte.is_ascii();
        let start = at - bytes[..at].iter().rev().take_while(|byte| in_word(byte)).count();
        last = at + bytes[at..].iter().take_while(|byte| in_word(byte)).count();
        if last - start < LONGEST_BYTES {
            found.push(&text[start..last]);
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// The words of a text, in their order.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// Frequent small words, each of one language, which tell in which one a text is written.
#[pyclass(frozen)]
pub struct TellingWords {
    words: HashMap<String, (usize, usize), Seeded>, // each with its number, and that of its language
    longest: usize,
    languages: usize,
}

#[pymethods]
impl TellingWords {
    #[new]
    fn new(words: Vec<(String, usize)>) -> TellingWords {
        let longest = words.iter().map(|(word, _)| word.len()).max().unwrap_or(0);
        let languages = words.iter().map(|&(_, language)| language + 1).max().unwrap_or(0);
        let words = words.into_iter().enumerate().map(|(number, (word, language))| (word, (number, language)));
        TellingWords { words: words.collect(), longest, languages }
    }

    /// How many different ones of each language are among the first characters of a text.
    fn counts(&self, text: &[u8], characters: usize) -> Vec<usize> {
        let text = in_utf8(text);
        let end = if text.is_ascii() { characters.min(text.len()) } else { end_of(&text, characters) };
        let sample = text[..end].to_lowercase();
        let (mut counts, mut is_counted) = (vec![0; self.languages], vec![false; self.words.len()]);
        for word in sample.split(is_space).filter(|word| (1..=self.longest).contains(&word.len())) {
            if let Some(&(number, language)) = self.words.get(word) {
                counts[language] += usize::from(!std::mem::replace(&mut is_counted[number], true));
            }
        }
        counts
    }
}

/// Where the character after the first ones begins.
fn end_of(text: &str, characters: usize) -> usize {
    text.char_indices().nth(characters).map_or(text.len(), |(at, _)| at)
}
