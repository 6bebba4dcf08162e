//! Which SimHashes are near which: what `lycosa.duplicates.index` looks up, where the layout of a segment is told.
//!
//! Segments are files that Python has mapped into memory, up to 43 MB each: they are read where they are, which takes
//! unsafe code. By NumPy the same took 15 µs a page, a twentieth of what the event loop does for one.
#![allow(unsafe_code)]

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

const BLOCKS: usize = 4;
const BLOCK_BITS: u32 = 16;
const HEADER_BYTES: usize = 16;

/// The bits, and which of them are unsure.
type Hash = (u64, u64);

fn number_at(bytes: &[u8], at: usize) -> usize {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |&number| u32::from_le_bytes(number) as usize)
}

fn hash_at(bytes: &[u8], at: usize) -> Hash {
    let hash = bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |&hash| u128::from_le_bytes(hash));
    (hash as u64, (hash >> 64) as u64)
}

fn hashes_of(packed: &[u8]) -> Vec<Hash> {
    packed.chunks_exact(16).map(|hash| hash_at(hash, 0)).collect()
}

/// How many of the bits that are sure in both differ.
fn distance(one: Hash, other: Hash) -> u32 {
    ((one.0 ^ other.0) & !(one.1 | other.1)).count_ones()
}

struct Segment<'a> {
    bytes: &'a [u8],
    first: usize, // the number of its first entry
    count: usize,
    part_bits: u32,
}

impl Segment<'_> {
    /// Calls `found` with the entries that may be near a hash: of each part of the tables so many, the newest.
    fn candidates(&self, (bits, unsure): Hash, most: usize, mut found: impl FnMut(usize, Hash)) {
        let starts = HEADER_BYTES + 16 * self.count;
        let entries = starts + 4 * (BLOCKS << self.part_bits) + 4;
        for block in 0..BLOCKS {
            let shift = block as u32 * BLOCK_BITS;
            let (value, mask) = ((bits >> shift) as u16, (unsure >> shift) as u16);
            let (value, low) = (value & !mask, mask & mask.wrapping_neg());
            for form in [value, value | low, value | (mask ^ low), value | mask] {
                let part = (usize::from(form) >> (BLOCK_BITS - self.part_bits)) + (block << self.part_bits);
                let start = number_at(self.bytes, starts + 4 * part);
                let end = number_at(self.bytes, starts + 4 * part + 4);
                for place in end.saturating_sub(most).max(start)..end {
                    let entry = number_at(self.bytes, entries + 4 * place);
                    found(self.first + entry, hash_at(self.bytes, HEADER_BYTES + 16 * entry));
                }
            }
        }
    }
}

/// Near pairs in columns of eight bytes, the lowest first: place of the hash, number of the entry, distance; in the order
/// of places and numbers. `segments` are mapped files with the number of their first entry and the bits of their parts;
/// the entries of `newest` have the numbers from `first` on.
#[pyfunction]
pub fn near_hashes<'py>(
    py: Python<'py>,
    asked: &[u8],
    segments: Vec<(PyBuffer<u8>, usize, u32)>,
    newest: &[u8],
    first: usize,
    bounds: (u32, usize),
) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
    let (most_bits, most_in_part) = bounds;
    let mut parts = Vec::with_capacity(segments.len());
    for (buffer, first, part_bits) in &segments {
        if !buffer.is_c_contiguous() || *part_bits > BLOCK_BITS {
            return Err(PyValueError::new_err("that is no segment"));
        }
        // SAFETY: the buffer is one piece of so many bytes, and is held to the end of this call. Nobody writes into a
        // segment: its file is made whole under another name, and mapped for reading only.
        let bytes = unsafe { std::slice::from_raw_parts(buffer.buf_ptr().cast::<u8>(), buffer.len_bytes()) };
        parts.push(Segment { bytes, first: *first, count: number_at(bytes, 8), part_bits: *part_bits });
    }
    let (mut places, mut entries, mut distances) = (Vec::new(), Vec::new(), Vec::new());
    let (newest, mut pairs) = (hashes_of(newest), Vec::new());
    for (place, hash) in hashes_of(asked).into_iter().enumerate() {
        let mut compare = |entry: usize, other| {
            let differ = distance(hash, other);
            if differ <= most_bits {
                pairs.push((entry, differ));
            }
        };
        parts.iter().for_each(|segment| segment.candidates(hash, most_in_part, &mut compare));
        newest.iter().zip(first..).for_each(|(&other, entry)| compare(entry, other));
        pairs.sort_unstable();
        pairs.dedup();
        for (entry, differ) in pairs.drain(..) {
            places.extend_from_slice(&(place as u64).to_le_bytes());
            entries.extend_from_slice(&(entry as u64).to_le_bytes());
            distances.extend_from_slice(&u64::from(differ).to_le_bytes());
        }
    }
    Ok((PyBytes::new(py, &places), PyBytes::new(py, &entries), PyBytes::new(py, &distances)))
}
