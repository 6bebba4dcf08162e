//! The WARC records of one fetch, each a gzip member: the twin is `lycosa.store.warc_record`, which says what they hold.

use crate::guarded;
use crate::gzip::{Isal, SMALL_BYTES};
use memchr::memchr_iter;
use pyo3::exceptions::{PyOSError, PyUnicodeEncodeError};
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use sha1::{Digest, Sha1};
use std::borrow::Cow;
use std::cell::RefCell;

const ASIDE: &[u8] = b"X-Archive-Orig-";
const HTTP_RESPONSE: &[u8] = b"application/http; msgtype=response";
const HTTP_REQUEST: &[u8] = b"application/http; msgtype=request";
const FIELDS: &[u8] = b"application/warc-fields";
/// Each thread that makes records keeps room for one of this size; a larger one is rare.
const KEPT_BYTES: usize = 512 << 10;
/// What a record has beside its block and the lines of its own is shorter.
const HEAD_BYTES: usize = 512;

thread_local! {
    static RECORD: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// URL, method, header lines, whether these name the host, address.
type RequestParts = (PyBackedStr, PyBackedStr, PyBackedBytes, bool, PyBackedStr);
/// Header block, status, the length of the body that the block must name (None: whatever it says), the body to keep.
type AnswerParts = (PyBackedBytes, u32, Option<usize>, PyBackedBytes);
/// Type, lines before the payload digest, the digest, lines behind it, date, 16 random bytes, fields of the metadata.
type RecordParts = (PyBackedBytes, PyBackedBytes, PyBackedBytes, PyBackedBytes, PyBackedBytes, [u8; 16], PyBackedBytes);
pub type Parts = (RequestParts, AnswerParts, RecordParts);

/// Makes the records of fetches, with the compressor of a library that contains ISA-L.
#[pyclass(frozen)]
pub struct MemberWriter {
    isal: Isal,
}

#[pymethods]
impl MemberWriter {
    #[new]
    fn new(library: &str) -> PyResult<Self> {
        let isal = Isal::open(library).map_err(|error| PyOSError::new_err(error.to_string()))?;
        Ok(MemberWriter { isal })
    }

    /// Request, then response or revisit, then metadata if there is any; None for a fetch with other than ASCII
    /// characters, which only Python knows to be printable or not.
    fn exchange(&self, py: Python<'_>, fetch: &Bound<'_, PyAny>) -> PyResult<Option<Vec<Vec<u8>>>> {
        let Some(parts) = extracted(fetch)? else { return Ok(None) };
        Ok(py.detach(|| guarded(|| self.members(&parts, &parts.2 .2))))
    }
}

/// None if a string has a lone surrogate.
pub fn extracted(fetch: &Bound<'_, PyAny>) -> PyResult<Option<Parts>> {
    match fetch.extract() {
        Ok(parts) => Ok(Some(parts)),
        Err(error) if error.is_instance_of::<PyUnicodeEncodeError>(fetch.py()) => Ok(None),
        Err(error) => Err(error),
    }
}

impl MemberWriter {
    pub fn members(&self, (request, answer, record): &Parts, digest: &[u8]) -> Option<Vec<Vec<u8>>> {
        let (url, method, lines, names_host, address) = request;
        let (block, status, body_bytes, body) = answer;
        let (kind, before, _, after, date, random, fields) = record;
        if ![url, method, address].iter().all(|value| value.is_ascii()) {
            return None;
        }
        let id = record_id(*random);
        let mut about = b"WARC-Target-URI: ".to_vec();
        push_uri(&mut about, url);
        about.extend_from_slice(b"\r\n");
        if let Some(version) = binary_version(block) {
            about.extend_from_slice(&[b"WARC-Protocol: h", &[version][..], b"\r\n"].concat());
        }
        if !address.is_empty() {
            about.extend_from_slice(b"WARC-IP-Address: ");
            push_clean(&mut about, address);
            about.extend_from_slice(b"\r\n");
        }
        let head = header_block(block, *status, *body_bytes);
        let mut own = [&about[..], before, b"WARC-Payload-Digest: sha1:", &base32(digest), b"\r\n", after].concat();
        if head.len() + body.len() <= SMALL_BYTES {
            let sum = Sha1::new_with_prefix(&head).chain_update(&body[..]).finalize();
            own.extend_from_slice(&[b"WARC-Block-Digest: sha1:", &base32(&sum)[..], b"\r\n"].concat());
        }
        let concurrent = [&about[..], b"WARC-Concurrent-To: <urn:uuid:", &id, b"1>\r\n"].concat();
        let asked = request_block(url, method, lines, *names_host);
        let mut members = vec![
            self.member(b"request", (&id, b'0'), date, &concurrent, HTTP_REQUEST, (&asked, b""))?,
            self.member(kind, (&id, b'1'), date, &own, HTTP_RESPONSE, (&head, body))?,
        ];
        if !fields.is_empty() {
            members.push(self.member(b"metadata", (&id, b'2'), date, &concurrent, FIELDS, (fields, b""))?);
        }
        Some(members)
    }

    fn member(
        &self,
        kind: &[u8],
        id: (&[u8], u8),
        date: &[u8],
        extra: &[u8],
        content_type: &[u8],
        block: (&[u8], &[u8]),
    ) -> Option<Vec<u8>> {
        let size = block.0.len() + block.1.len();
        RECORD.with_borrow_mut(|record| {
            record.clear();
            record.reserve(size + extra.len() + HEAD_BYTES); // large ones would grow to twice their size
            for part in [
                b"WARC/1.1\r\nWARC-Type: ",
                kind,
                b"\r\nWARC-Record-ID: <urn:uuid:",
                id.0,
                &[id.1],
                b">\r\nWARC-Date: ",
                date,
                b"\r\n",
                extra,
                b"Content-Type: ",
                content_type,
                b"\r\nContent-Length: ",
                size.to_string().as_bytes(),
                b"\r\n\r\n",
                block.0,
                block.1,
                b"\r\n\r\n",
            ] {
                record.extend_from_slice(part);
            }
            let made = self.isal.member(record, size);
            if record.capacity() > KEPT_BYTES {
                *record = Vec::new();
            }
            made
        })
    }
}

/// A random (version 4) UUID but for its last digit, which tells the records of a fetch apart.
fn record_id(random: [u8; 16]) -> Vec<u8> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut digits: Vec<u8> = random.iter().flat_map(|byte| [byte >> 4, byte & 15]).collect();
    (digits[12], digits[16]) = (4, 8 | digits[16] & 3);
    let mut id = Vec::with_capacity(36);
    for (at, digit) in digits[..31].iter().enumerate() {
        if matches!(at, 8 | 12 | 16 | 20) {
            id.push(b'-');
        }
        id.push(DIGITS[usize::from(*digit)]);
    }
    id
}

fn base32(digest: &[u8]) -> Vec<u8> {
    const DIGITS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let digits = |five: &[u8]| {
        let bits = five.iter().fold(0u64, |bits, &byte| bits << 8 | u64::from(byte));
        (0..8).map(move |digit| DIGITS[(bits >> (35 - 5 * digit) & 31) as usize])
    };
    digest.chunks_exact(5).flat_map(digits).collect() // a SHA-1 is four times five bytes
}

/// What a URI may show as it is; anything else is percent-encoded, angle brackets too because readers strip them.
fn push_uri(out: &mut Vec<u8>, url: &str) {
    for byte in url.bytes() {
        match byte {
            b'!'..=b';' | b'=' | b'?'..=b'~' => out.push(byte),
            _ => out.extend_from_slice(format!("%{byte:02X}").as_bytes()),
        }
    }
}

/// A value in ASCII as one line of text: control characters and line ends become spaces.
fn push_clean(out: &mut Vec<u8>, value: &str) {
    out.extend(value.bytes().map(|byte| if byte < b' ' || byte == 127 { b' ' } else { byte }));
}

fn binary_version(block: &[u8]) -> Option<u8> {
    let (&version, rest) = block.strip_prefix(b"HTTP/")?.split_first()?;
    let is_binary = matches!(version, b'2' | b'3') && (rest.starts_with(b" ") || rest.starts_with(b".0 "));
    is_binary.then_some(version)
}

/// The request as it was sent, rebuilt from what was set; a normalised URL always has a path.
fn request_block(url: &str, method: &str, lines: &[u8], names_host: bool) -> Vec<u8> {
    let url = url.split_once('#').map_or(url, |(before, _)| before);
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut block = Vec::with_capacity(url.len() + lines.len() + 64);
    push_clean(&mut block, method);
    block.extend_from_slice(b" /");
    push_uri(&mut block, path);
    block.extend_from_slice(b" HTTP/1.1\r\n");
    if !names_host {
        block.extend_from_slice(b"Host: ");
        push_clean(&mut block, authority.rsplit_once('@').map_or(authority, |(_, host)| host));
        block.extend_from_slice(b"\r\n");
    }
    block.extend_from_slice(lines);
    block.extend_from_slice(b"\r\n");
    block
}

/// The header block as readers need it to find the body, which has `body_bytes` bytes and no transfer coding.
fn header_block(block: &[u8], status: u32, body_bytes: Option<usize>) -> Cow<'_, [u8]> {
    let block = well_formed(block, status);
    let Some(body_bytes) = body_bytes else { return block };
    let length = body_bytes.to_string().into_bytes();
    let (mut wrong, mut has_right, mut start) = (Vec::new(), false, 0);
    for end in memchr_iter(b'\n', &block) {
        // Also where a line begins with a space: some readers take it for a header all the same.
        while matches!(block[start], b' ' | b'\t') {
            start += 1;
        }
        match framing(&block[start..end]) {
            Some(Some(value)) if value == length => has_right = true,
            Some(_) => wrong.push(start),
            None => {}
        }
        start = end + 1;
    }
    if wrong.is_empty() {
        return block;
    }
    let mut out = Vec::with_capacity(block.len() + wrong.len() * ASIDE.len() + 32);
    let mut done = 0;
    for at in wrong {
        out.extend_from_slice(&block[done..at]);
        out.extend_from_slice(ASIDE);
        done = at;
    }
    out.extend_from_slice(&block[done..block.len() - 2]);
    if !has_right {
        out.extend_from_slice(&[b"Content-Length: ", &length[..], b"\r\n"].concat());
    }
    out.extend_from_slice(b"\r\n");
    Cow::Owned(out)
}

/// For a line that says where the body ends: its length as written, or Some(None) for a transfer coding.
fn framing(line: &[u8]) -> Option<Option<&[u8]>> {
    if !matches!(line.first(), Some(b'c' | b'C' | b't' | b'T')) {
        return None;
    }
    let colon = line.iter().position(|&byte| byte == b':')?;
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    let name = &name[..name.iter().rposition(|byte| !matches!(byte, b' ' | b'\t'))? + 1];
    if name.eq_ignore_ascii_case(b"transfer-encoding") {
        return Some(None);
    }
    name.eq_ignore_ascii_case(b"content-length").then_some(Some(trimmed(value)))
}

/// HTTP/1 status line, CRLF line ends, one empty line at the end.
fn well_formed(block: &[u8], status: u32) -> Cow<'_, [u8]> {
    if is_well_formed(block) {
        return Cow::Borrowed(block);
    }
    let all = block.split(|byte| matches!(byte, b'\r' | b'\n'));
    let mut lines: Vec<Vec<u8>> = all.filter(|line| !trimmed(line).is_empty()).map(<[u8]>::to_vec).collect();
    let first = lines.first().cloned().unwrap_or_default();
    let is_textual = first.starts_with(b"HTTP/1.1 ") || first.starts_with(b"HTTP/1.0 ");
    match after_version(&first) {
        _ if is_textual => {}
        // Binary versions have no status line of their own; readers know the two textual ones.
        Some(rest) => lines[0] = [b"HTTP/1.1 ", rest].concat(),
        None => {
            let status_line = format!("HTTP/1.1 {status} ").into_bytes();
            let aside = (!first.is_empty()).then(|| [ASIDE, b"Status: ", &first].concat());
            lines.splice(..lines.len().min(1), std::iter::once(status_line).chain(aside));
        }
    }
    let end = [Vec::new(), Vec::new()];
    Cow::Owned(lines.into_iter().chain(end).collect::<Vec<_>>().join(&b"\r\n"[..]))
}

fn is_well_formed(block: &[u8]) -> bool {
    let is_status_line = block.starts_with(b"HTTP/1.1 ") || block.starts_with(b"HTTP/1.0 ");
    if !is_status_line || block[9..].starts_with(b"\r") || !block.ends_with(b"\r\n\r\n") {
        return false;
    }
    let (mut start, mut lines) = (0, 0);
    for end in memchr_iter(b'\n', &block[..block.len() - 2]) {
        if block[end - 1] != b'\r' || end - 1 == start {
            return false;
        }
        (start, lines) = (end + 1, lines + 1);
    }
    memchr_iter(b'\r', block).count() == lines + 1
}

/// What follows a version of HTTP at the beginning of a line.
fn after_version(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(b"HTTP/")?;
    let version = rest.iter().take_while(|byte| matches!(byte, b'0'..=b'9' | b'.')).count();
    let blanks = rest[version..].iter().take_while(|&&byte| byte == b' ').count();
    (version > 0 && blanks > 0).then(|| &rest[version + blanks..])
}

fn trimmed(value: &[u8]) -> &[u8] {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let start = value.iter().position(|byte| !is_space(byte)).unwrap_or(value.len());
    let end = value.iter().rposition(|byte| !is_space(byte)).map_or(start, |last| last + 1);
    &value[start..end]
}
