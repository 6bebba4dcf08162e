//! The digests of documents: the twin is `lycosa.web.document`.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sha1::{Digest, Sha1};
use xxhash_rust::xxh3::xxh3_64;

/// Of the payload of an answer and the document in it: the fingerprint of the document, the SHA-1 of the payload, and the
/// 128 bits of the document's SHA-1. Payload and document are most often the same bytes.
#[pyfunction]
pub fn document_digests<'py>(py: Python<'py>, payload: &[u8], body: &[u8]) -> InPython<'py> {
    in_python(py, &py.detach(|| digests((payload, body))))
}

const DIGEST_BYTES: usize = 16;

pub type Digests = (u64, [u8; 20], [u8; 20]);
type InPython<'py> = (u64, Bound<'py, PyBytes>, Bound<'py, PyBytes>);

pub fn in_python<'py>(py: Python<'py>, (number, payload, body): &Digests) -> InPython<'py> {
    (*number, PyBytes::new(py, payload), PyBytes::new(py, &body[..DIGEST_BYTES]))
}

pub fn digests((payload, body): (&[u8], &[u8])) -> Digests {
    let sha1 = Sha1::digest(payload).into();
    (xxh3_64(body), sha1, if std::ptr::eq(payload, body) { sha1 } else { Sha1::digest(body).into() })
}
