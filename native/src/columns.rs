//! The links of many pages in columns, and the hashes of a page: what the link index and the trap guard keep.

use crate::followed::Followed;
use crate::seen::Unchanged;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasherDefault;
use xxhash_rust::xxh3::xxh3_64;

const KIND_BITS: u32 = 3;
const URL_BITS: u32 = 42; // of a hash, the number of a URL
const PLACE_BITS: u32 = 64 - URL_BITS; // of a page among those of one call

/// A link: which URL it leads to and from which page, in one number; its words and its kind.
struct Link {
    pair: u64,
    is_minus: bool,
    text: u32,
    kind: u8,
}

/// Distinct texts, found by their hashes, and the number of links that use each.
#[derive(Default)]
struct Texts {
    places: HashMap<u64, u32, BuildHasherDefault<Unchanged>>,
    hashes: Vec<u64>,
    ends: Vec<usize>, // in `store`
    store: Vec<u8>,
    used: Vec<u32>,
}

impl Texts {
    fn place_of(&mut self, hash: u64, text: &str) -> u32 {
        *self.places.entry(hash).or_insert_with(|| {
            self.hashes.push(hash);
            self.store.extend_from_slice(text.as_bytes());
            self.ends.push(self.store.len());
            self.used.push(0);
            self.used.len() as u32 - 1
        })
    }

    fn text(&self, place: usize) -> &[u8] {
        let start = if place == 0 { 0 } else { self.ends[place - 1] };
        &self.store[start..self.ends[place]]
    }

    /// The places of the texts that are used, those used most first.
    fn by_use(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.hashes.len()).filter(|&place| self.used[place] > 0).collect();
        order.sort_unstable_by_key(|&place| (Reverse(self.used[place]), self.hashes[place]));
        order
    }
}

pub fn url_number(url: &str) -> u64 {
    xxh3_64(url.as_bytes()) >> PLACE_BITS
}

fn number_of(url: &Bound<'_, PyAny>) -> PyResult<u64> {
    Ok(url_number(url.cast::<PyString>()?.to_str()?))
}

/// The links that still count, sorted by pair: of a pair the first if it is minus, the last if it is plus.
fn effective(links: &[Link]) -> Vec<&Link> {
    let mut order: Vec<(u64, u32)> = links.iter().zip(0..).map(|(link, place)| (link.pair, place)).collect();
    order.sort_unstable();
    let mut kept = Vec::with_capacity(links.len());
    for (at, &(pair, place)) in order.iter().enumerate() {
        let is_first = at == 0 || order[at - 1].0 != pair;
        let is_last = order.get(at + 1).is_none_or(|next| next.0 != pair);
        let link = &links[place as usize];
        if if link.is_minus { is_first } else { is_last } {
            kept.push(link);
        }
    }
    kept
}

fn numbers<'py>(py: Python<'py>, numbers: impl ExactSizeIterator<Item = u64>) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, 8 * numbers.len(), |bytes| {
        bytes.chunks_exact_mut(8).zip(numbers).for_each(|(part, number)| part.copy_from_slice(&number.to_le_bytes()));
        Ok(())
    })
}

fn flags<'py>(py: Python<'py>, flags: impl Iterator<Item = bool>) -> Bound<'py, PyBytes> {
    PyBytes::new(py, &flags.map(u8::from).collect::<Vec<u8>>())
}

/// The columns of pages, see `lycosa.graph.columns.from_pages`. Numbers are of eight bytes, the lowest first.
#[pyfunction]
pub fn link_columns<'py>(py: Python<'py>, pages: &Bound<'py, PyList>) -> PyResult<Bound<'py, PyTuple>> {
    let mut present = BTreeMap::new();
    for page in pages.iter() {
        present.insert(page.getattr("file_num")?.extract::<u64>()?, !page.getattr("is_gone")?.is_truthy()?);
    }
    let sources: Vec<u64> = present.keys().copied().collect();
    if sources.len() > 1 << PLACE_BITS {
        return Err(PyValueError::new_err("too many pages for one call"));
    }
    let (mut links, mut texts) = (Vec::new(), Texts::default());
    for page in pages.iter() {
        let source = sources.binary_search(&page.getattr("file_num")?.extract()?).unwrap_or_default() as u64;
        let own = number_of(&page.getattr("url")?)?; // a page that points to itself says nothing
        let mut add = |target: u64, is_minus, text, kind: u8| {
            if target != own {
                links.push(Link { pair: target << PLACE_BITS | source, is_minus, text, kind: kind.saturating_sub(1) });
            }
        };
        for url in page.getattr("lost")?.try_iter()? {
            add(number_of(&url?)?, true, texts.place_of(xxh3_64(b""), ""), 0);
        }
        if let Ok(found) = page.getattr("kernel")?.cast::<Followed>() {
            for (keys, kind, words) in found.get().indexed() {
                add(keys.number, false, texts.place_of(keys.words, words), kind);
            }
            continue;
        }
        let (kinds, anchors) = (page.getattr("kinds")?.cast_into::<PyBytes>()?, page.getattr("anchors")?.try_iter()?);
        for ((url, anchor), kind) in page.getattr("urls")?.try_iter()?.zip(anchors).zip(kinds.as_bytes()) {
            let (target, anchor) = (number_of(&url?)?, anchor?.cast_into::<PyString>()?);
            let words = anchor.to_str()?;
            add(target, false, texts.place_of(xxh3_64(words.as_bytes()), words), *kind);
        }
    }
    let kept = effective(&links);
    let (mut targets, mut sizes): (Vec<u64>, Vec<u64>) = (Vec::new(), Vec::new());
    for link in &kept {
        texts.used[link.text as usize] += 1;
        if targets.last() != Some(&(link.pair >> PLACE_BITS)) {
            targets.push(link.pair >> PLACE_BITS);
            sizes.push(0);
        }
        sizes.last_mut().into_iter().for_each(|size| *size += 1);
    }
    let (order, mut number) = (texts.by_use(), vec![0; texts.hashes.len()]);
    let (mut data, mut lengths) = (Vec::new(), Vec::new());
    for (rank, &place) in order.iter().enumerate() {
        let text = texts.text(place);
        number[place] = (rank as u64) << KIND_BITS;
        lengths.push(text.len() as u64);
        data.extend_from_slice(text);
    }
    let columns = (
        numbers(py, sources.iter().copied())?,
        flags(py, present.values().copied()),
        numbers(py, targets.into_iter())?,
        numbers(py, sizes.into_iter())?,
        numbers(py, kept.iter().map(|link| link.pair & ((1 << PLACE_BITS) - 1)))?,
        flags(py, kept.iter().map(|link| link.is_minus)),
        numbers(py, kept.iter().map(|link| number[link.text as usize] | u64::from(link.kind)))?,
    );
    let ids = numbers(py, order.iter().map(|&place| texts.hashes[place]))?;
    (columns, (ids, numbers(py, lengths.into_iter())?, PyBytes::new(py, &data))).into_pyobject(py)
}

/// The hashes of a page's text and the references of its images, with the digits of the text and without them.
#[pyfunction]
pub fn hash_page(text: &[u8], frame: &[u8]) -> (u64, u64) {
    let mut bare = Vec::with_capacity(text.len() + frame.len());
    for part in text.chunks(32) {
        // Not `any`, which looks at one byte after the other.
        if part.iter().fold(false, |found, byte| found | byte.is_ascii_digit()) {
            bare.extend(part.iter().filter(|byte| !byte.is_ascii_digit()));
        } else {
            bare.extend_from_slice(part);
        }
    }
    bare.extend_from_slice(frame);
    let whole = if frame.is_empty() { xxh3_64(text) } else { xxh3_64(&[text, frame].concat()) };
    (whole, xxh3_64(&bare))
}
