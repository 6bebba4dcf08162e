//! The URLs that were seen a moment ago, as hashes: the test that most links of a page end with.

use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};
use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Passes a number on that is a hash already.
#[derive(Default)]
pub struct Unchanged(u64);

impl Hasher for Unchanged {
    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A seed that nobody else knows.
pub fn random_seed() -> u64 {
    RandomState::new().hash_one(0)
}

type Hashes = HashSet<u64, BuildHasherDefault<Unchanged>>;

/// Two generations of hashes: when the young one is full it becomes the old one. The seed differs in every process, so
/// that nobody can make two URLs collide; by chance it happens once in 10^14 URLs.
#[pyclass(module = "lycosa_native")]
pub struct RecentUrls {
    generation: usize,
    seed: u64,
    young: Hashes,
    old: Hashes,
}

#[pymethods]
impl RecentUrls {
    #[new]
    fn new(generation: usize) -> Self {
        Self { generation, seed: random_seed(), young: Hashes::default(), old: Hashes::default() }
    }

    /// Notes URLs; those that were not among the recent ones are returned, each once.
    fn unseen<'py>(&mut self, urls: &Bound<'py, PyList>) -> PyResult<Bound<'py, PyList>> {
        let found = PyList::empty(urls.py());
        for url in urls.iter() {
            let text = url.cast::<PyString>()?.to_string_lossy();
            let hash = xxh3_64_with_seed(text.as_bytes(), self.seed);
            if self.young.insert(hash) && !self.old.contains(&hash) {
                found.append(url)?;
            }
        }
        if self.young.len() >= self.generation {
            self.old = std::mem::take(&mut self.young);
        }
        Ok(found)
    }
}
