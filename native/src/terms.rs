//! The terms of a text, as a tokeniser in Python finds them: each word is asked for once, and remembered.
//!
//! Stemming takes the greater part of indexing a text, and a site has few different words. Words are runs of letters and
//! digits, as tantivy's simple tokeniser has them.

use crate::seen::Unchanged;
use pyo3::prelude::*;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use xxhash_rust::xxh3::xxh3_64;

/// Longer words are left as they are: the index drops them, and counts their place.
const LONGEST_BYTES: usize = 50;
/// Of words and their terms; beyond it all are forgotten.
const KNOWN_BYTES: usize = 16 << 20;

/// A word in `texts` with its term behind it; small, since the table is looked at for every word of a text.
struct Known {
    start: u32,
    word_bytes: u8,
    term_bytes: u16,
}

/// The words of one tokeniser that were asked for. `tokens` is called with words, and gives a list of terms.
#[pyclass]
pub struct TermMap {
    tokens: Py<PyAny>,
    known: HashMap<u64, Known, BuildHasherDefault<Unchanged>>,
    texts: String, // of words and terms
}

#[pymethods]
impl TermMap {
    #[new]
    fn new(tokens: Py<PyAny>) -> TermMap {
        TermMap { tokens, known: HashMap::default(), texts: String::new() }
    }

    /// The terms of a text with spaces between them.
    fn terms(&mut self, py: Python<'_>, text: &str) -> PyResult<String> {
        if self.texts.len() > KNOWN_BYTES {
            self.known.clear();
            self.texts.clear();
        }
        let mut out = String::with_capacity(text.len());
        let mut unknown: Vec<(usize, &str)> = Vec::new(); // words, and where their terms belong
        for word in words(text) {
            match self.term(word) {
                Some(term) => out.push_str(term),
                None if word.len() < LONGEST_BYTES => unknown.push((out.len(), word)),
                None => out.push_str(word),
            }
            out.push(' ');
        }
        if unknown.is_empty() {
            return Ok(out);
        }
        let mut asked: Vec<&str> = unknown.iter().map(|(_, word)| *word).collect();
        asked.sort_unstable(); // a page that brings a new word has it many times
        asked.dedup();
        self.ask(py, &asked)?;
        let mut filled = String::with_capacity(text.len());
        let mut from = 0;
        for (place, word) in unknown {
            filled.push_str(&out[from..place]);
            filled.push_str(self.term(word).unwrap_or(word));
            from = place;
        }
        filled.push_str(&out[from..]);
        Ok(filled)
    }
}

impl TermMap {
    fn term(&self, word: &str) -> Option<&str> {
        let known = self.known.get(&xxh3_64(word.as_bytes()))?;
        let start = known.start as usize;
        let middle = start + usize::from(known.word_bytes);
        (self.texts[start..middle] == *word).then(|| &self.texts[middle..middle + usize::from(known.term_bytes)])
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
        self.known.insert(xxh3_64(word.as_bytes()), Known { start, word_bytes, term_bytes });
        self.texts.push_str(word);
        self.texts.push_str(term);
    }
}

/// The identifiers of a text, each once: words in which another word begins, as in getElementById. A word begins at a
/// capital letter behind a small one or a digit, and at the last capital of several that a small letter follows.
#[pyfunction]
pub fn identifiers(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let (mut found, mut last) = (Vec::new(), 0); // `last` is where the last identifier ended
    for at in 1..bytes.len() {
        let (before, here) = (bytes[at - 1], bytes[at]);
        if !here.is_ascii_uppercase() || at < last {
            continue;
        }
        let is_small = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let is_last_of_some = before.is_ascii_uppercase() && bytes.get(at + 1).is_some_and(|&next| is_small(next));
        if is_small(before) || is_last_of_some {
            let in_word = |byte: &u8| IS_WORD[usize::from(*byte)] || !byte.is_ascii();
            let start = at - bytes[..at].iter().rev().take_while(|byte| in_word(byte)).count();
            last = at + bytes[at..].iter().take_while(|byte| in_word(byte)).count();
            if last - start < LONGEST_BYTES {
                found.push(&text[start..last]);
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// The words of a text, in their order.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let start = length_while(rest, false);
        let length = length_while(&rest[start..], true);
        let word = &rest[start..start + length];
        rest = &rest[start + length..];
        (length > 0).then_some(word)
    })
}

/// The ASCII letters and digits.
const IS_WORD: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    table
};

/// How many bytes of a text's beginning belong to words, or do not.
fn length_while(text: &str, in_word: bool) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if IS_WORD[usize::from(byte)] == in_word && (in_word || byte.is_ascii()) {
            at += 1;
        } else if byte.is_ascii() {
            return at;
        } else {
            match text[at..].chars().next() {
                Some(character) if character.is_alphanumeric() == in_word => at += character.len_utf8(),
                _ => return at,
            }
        }
    }
    at
}
