//! The digests of documents: the twin is `lycosa.web.document`.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sha1::{Digest, Sha1};
use xxhash_rust::xxh3::xxh3_64;

/// Words in a row that count as one feature of a text.
const SHINGLE_WORDS: usize = 3;

/// For each answer, of its payload and its document: the fingerprint of the document, the SHA-1 of the payload, and the
/// 128 bits of the document's SHA-1. Payload and document are most often the same bytes.
#[pyfunction]
pub fn document_digests<'py>(
    py: Python<'py>,
    answers: Vec<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)>,
) -> Vec<InPython<'py>> {
    let bytes: Vec<(&[u8], &[u8])> =
        answers.iter().map(|(payload, body)| (payload.as_bytes(), body.as_bytes())).collect();
    let made: Vec<_> = py.detach(|| bytes.into_iter().map(digests).collect());
    made.iter().map(|digests| in_python(py, digests)).collect()
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

/// Near for near texts: of each bit, what most of the hashes of the text's shingles have. 0 for no text.
#[pyfunction]
pub fn simhash(text: &str) -> u64 {
    let words: Vec<&str> = text.split([' ', '\n']).filter(|word| !word.is_empty()).collect();
    let mut votes = [0i32; 64];
    for shingle in words.windows(SHINGLE_WORDS.min(words.len()).max(1)) {
        let hash = xxh3_64(shingle.join(" ").as_bytes());
        for (bit, vote) in votes.iter_mut().enumerate() {
            *vote += if hash >> bit & 1 == 1 { 1 } else { -1 };
        }
    }
    votes.iter().enumerate().fold(0, |all, (bit, &vote)| all | u64::from(vote > 0) << bit)
}
