//! The digests of a document: the twin is `lycosa.web.document`.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sha1::{Digest, Sha1};
use xxhash_rust::xxh3::xxh3_64;

pub fn sha1(body: &[u8]) -> [u8; 20] {
    Sha1::digest(body).into()
}

/// The 64-bit fingerprint by which an equal document is looked up, and the SHA-1 by which archives name a body.
#[pyfunction]
pub fn document_digests<'py>(py: Python<'py>, body: &Bound<'py, PyBytes>) -> (u64, Bound<'py, PyBytes>) {
    let bytes = body.as_bytes();
    let (fingerprint, digest) = py.detach(|| (xxh3_64(bytes), sha1(bytes)));
    (fingerprint, PyBytes::new(py, &digest))
}
