//! The terms of texts, as a tokeniser in Python finds them, and the words in their identifiers, in one pass: each word is
//! asked for once, and remembered.
//!
//! Stemming takes the greater part of indexing a text, and a site has few different words. Words are runs of letters and
//! digits, as tantivy's simple tokeniser has them. What identifiers are says `lycosa.search.identifiers`.

use crate::seen::Unchanged;
use pyo3::prelude::*;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::ops::Range;
use xxhash_rust::xxh3::xxh3_64;

/// Longer words are left as they are: the index drops them, and counts their place. They are no identifiers.
const LONGEST_BYTES: usize = 50;
/// Shorter words in identifiers say nothing.
const SHORTEST_PART: usize = 2;
/// Of words and their terms; beyond it all are forgotten.
const KNOWN_BYTES: usize = 16 << 20;

/// Of words that were asked for lately: a table that stays in the caches, where that of all words does not.
const LATELY: usize = 1 << 13;

/// A word in `texts` with its term behind it. Frequent words come first, and stand together.
struct Known {
    start: u32,
    identifier: u32, // its number, from 1 on; 0 for a word that is none
    word_bytes: u8,
    term_bytes: u16,
}

/// The words of one tokeniser that were asked for. `tokens` is called with words, and gives a list of terms.
#[pyclass]
pub struct TermMap {
    tokens: Py<PyAny>,
    numbers: HashMap<u64, u32, BuildHasherDefault<Unchanged>>, // by hashes
    lately: Vec<(u32, u32)>,                                   // half a hash, and the number
    known: Vec<Known>,
    texts: String, // of words and terms
    parts: Parts,
}

/// What is made of the texts of one page: their terms, in one store, and where terms belong that are not known yet.
#[derive(Default)]
struct Terms<'a> {
    out: String,
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
        let (numbers, lately, parts) = (HashMap::default(), vec![(0, u32::MAX); LATELY], Parts::default());
        TermMap { tokens, numbers, lately, known: Vec::new(), texts: String::new(), parts }
    }

    /// The terms of a text with spaces between them.
    fn terms(&mut self, py: Python<'_>, text: &str) -> PyResult<String> {
        self.begin();
        self.terms_of(py, text, false)
    }

    /// The terms of the title, of headings and of the text of a page, and the words in the identifiers of its title, URL
    /// and text, each once.
    fn page(
        &mut self,
        py: Python<'_>,
        title: &str,
        headings: &str,
        text: &str,
        url: &str,
    ) -> PyResult<(String, String, String, String)> {
        self.begin();
        identifiers(url).into_iter().for_each(|one| self.parts.add_new(one));
        let title = self.terms_of(py, title, true)?;
        let headings = self.terms_of(py, headings, false)?;
        let text = self.terms_of(py, text, true)?;
        Ok((title, headings, text, std::mem::take(&mut self.parts.found)))
    }
}

impl TermMap {
    /// Begins a page.
    fn begin(&mut self) {
        if self.texts.len() + self.parts.known_bytes > KNOWN_BYTES {
            self.numbers.clear();
            self.lately.fill((0, u32::MAX));
            self.known.clear();
            self.texts.clear();
            self.parts = Parts::default();
        }
        self.parts.page += 1;
    }

    fn terms_of(&mut self, py: Python<'_>, text: &str, wants_parts: bool) -> PyResult<String> {
        let mut terms = Terms { out: String::with_capacity(text.len() + 16), unknown: Vec::new() };
        let bytes = text.as_bytes();
        let mut at = 0;
        while let Some(&first) = bytes.get(at) {
            if !IN_WORD[usize::from(first)] {
                at += 1;
                continue;
            }
            let (start, mut all) = (at, 0);
            while let Some(&byte) = bytes.get(at).filter(|&&byte| IN_WORD[usize::from(byte)]) {
                all |= byte;
                at += 1;
            }
            let run = &text[start..at];
            if all.is_ascii() {
                self.add(run, wants_parts, &mut terms);
                continue;
            }
            words(run).for_each(|word| self.add(word, false, &mut terms));
            if wants_parts && run.len() < LONGEST_BYTES && has_parts(run) {
                self.parts.add_new(run);
            }
        }
        if terms.unknown.is_empty() {
            return Ok(terms.out);
        }
        self.filled(py, &terms)
    }

    /// Adds the term of a word, and the words in it where it may be an identifier.
    fn add<'a>(&mut self, word: &'a str, may_be_identifier: bool, terms: &mut Terms<'a>) {
        match self.known(word) {
            Some((term, identifier)) => {
                terms.out.push_str(term);
                self.parts.add(if may_be_identifier { identifier } else { 0 });
            }
            None if word.len() < LONGEST_BYTES => {
                terms.unknown.push(Unknown { place: terms.out.len(), word, may_be_identifier });
            }
            None => terms.out.push_str(word),
        }
        terms.out.push(' ');
    }

    /// The terms with those that were not known.
    fn filled(&mut self, py: Python<'_>, terms: &Terms<'_>) -> PyResult<String> {
        let mut asked: Vec<&str> = terms.unknown.iter().map(|one| one.word).collect();
        asked.sort_unstable(); // a page that brings a new word has it many times
        asked.dedup();
        self.ask(py, &asked)?;
        let mut filled = String::with_capacity(terms.out.len() * 2);
        let mut from = 0;
        for &Unknown { place, word, may_be_identifier } in &terms.unknown {
            filled.push_str(&terms.out[from..place]);
            let (term, identifier) = self.known(word).unwrap_or((word, 0));
            filled.push_str(term);
            self.parts.add(if may_be_identifier { identifier } else { 0 });
            from = place;
        }
        filled.push_str(&terms.out[from..]);
        Ok(filled)
    }

    /// The term of a word, and its number among the identifiers.
    fn known(&mut self, word: &str) -> Option<(&str, u32)> {
        let hash = xxh3_64(word.as_bytes());
        let (slot, half) = (hash as usize % LATELY, (hash >> 32) as u32);
        let (seen, mut number) = self.lately[slot];
        if seen != half || number == u32::MAX {
            number = *self.numbers.get(&hash)?;
            self.lately[slot] = (half, number);
        }
        let known = &self.known[number as usize];
        let start = known.start as usize;
        let middle = start + usize::from(known.word_bytes);
        let term = || &self.texts[middle..middle + usize::from(known.term_bytes)];
        (self.texts[start..middle] == *word).then(|| (term(), known.identifier))
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
        let (word_bytes, term_bytes) = (word.len() as u8, term.len() as u16); // a word has less than `LONGEST_BYTES`
        let identifier = if word.is_ascii() && has_parts(word) { self.parts.learn(word) } else { 0 };
        self.numbers.insert(xxh3_64(word.as_bytes()), self.known.len() as u32);
        self.known.push(Known { start, identifier, word_bytes, term_bytes });
        self.texts.push_str(word);
        self.texts.push_str(term);
    }
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
        let in_word = |byte: &u8| IN_WORD[usize::from(*byte)];
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

/// The ASCII letters and digits, and all bytes of other characters.
const IN_WORD: [bool; 256] = {
    let mut table = [true; 256];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    table
};
