//! Hashes of many texts in one call: what the link index and the trap guard know URLs, anchors and pages by.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};
use std::collections::HashMap;
use xxhash_rust::xxh3::{xxh3_64, Xxh3};

fn packed<T: Copy, const N: usize>(numbers: &[T], bytes: fn(T) -> [u8; N]) -> Vec<u8> {
    numbers.iter().flat_map(|&number| bytes(number)).collect()
}

/// The hash of each text, eight bytes each, the lowest first.
#[pyfunction]
pub fn hash_texts<'py>(py: Python<'py>, texts: &Bound<'py, PyList>) -> PyResult<Bound<'py, PyBytes>> {
    let mut hashes = Vec::with_capacity(texts.len());
    for text in texts.iter() {
        hashes.push(xxh3_64(text.cast::<PyString>()?.to_str()?.as_bytes()));
    }
    Ok(PyBytes::new(py, &packed(&hashes, u64::to_le_bytes)))
}

/// The distinct texts in the order of their hashes: hashes and sizes, eight bytes each, and the texts one behind the
/// other; and for each text its number among them, eight bytes.
#[pyfunction]
pub fn intern_texts<'py>(py: Python<'py>, texts: &Bound<'py, PyList>) -> PyResult<Bound<'py, PyTuple>> {
    let mut places: HashMap<u64, usize> = HashMap::new();
    let mut distinct: Vec<(u64, Bound<'py, PyString>)> = Vec::new();
    let mut used = Vec::with_capacity(texts.len());
    for text in texts.iter() {
        let text = text.cast_into::<PyString>()?;
        let hash = xxh3_64(text.to_str()?.as_bytes());
        used.push(*places.entry(hash).or_insert_with(|| {
            distinct.push((hash, text));
            distinct.len() - 1
        }));
    }
    let mut order: Vec<usize> = (0..distinct.len()).collect();
    order.sort_unstable_by_key(|&place| distinct[place].0);
    let (mut ids, mut sizes, mut data) = (Vec::new(), Vec::new(), Vec::new());
    let mut number = vec![0_u64; distinct.len()];
    for (rank, &place) in order.iter().enumerate() {
        let (hash, text) = &distinct[place];
        let text = text.to_str()?.as_bytes();
        ids.push(*hash);
        sizes.push(text.len() as u64);
        data.extend_from_slice(text);
        number[place] = rank as u64;
    }
    let numbers: Vec<u64> = used.iter().map(|&place| number[place]).collect();
    let column = |numbers: &[u64]| PyBytes::new(py, &packed(numbers, u64::to_le_bytes));
    (column(&ids), column(&sizes), PyBytes::new(py, &data), column(&numbers)).into_pyobject(py)
}

/// The hashes of a page's text and the references of its images, with the digits of the text and without them.
#[pyfunction]
pub fn hash_page(text: &[u8], frame: &[u8]) -> (u64, u64) {
    let mut whole = Xxh3::new();
    whole.update(text);
    whole.update(frame);
    let mut bare = Vec::with_capacity(text.len() + frame.len());
    for part in text.chunks(16) {
        if part.iter().any(u8::is_ascii_digit) {
            bare.extend(part.iter().filter(|byte| !byte.is_ascii_digit()));
        } else {
            bare.extend_from_slice(part);
        }
    }
    bare.extend_from_slice(frame);
    (whole.digest(), xxh3_64(&bare))
}
