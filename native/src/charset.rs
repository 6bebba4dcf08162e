//! Which encoding a document is in, and the document in UTF-8: `lycosa.web.charset` with the decoders of encoding_rs.
//!
//! The order is that of the HTML standard, byte order mark, HTTP, declaration; what declares nothing is UTF-8 if it is
//! valid UTF-8 beyond ASCII, else windows-1252.

use crate::scan::{Attribute, Attributes};
use crate::text::{is_html_space, skip_spaces};
use encoding_rs::{Encoding, UTF_16BE, UTF_16LE, UTF_8, WINDOWS_1252, X_USER_DEFINED};
use memchr::{memchr, memmem};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use std::borrow::Cow;

/// The HTML standard stops looking for a declaration here.
const PRESCAN_BYTES: usize = 1024;
/// How far a late declaration is looked for.
const LATE_BYTES: usize = 16 * 1024;

/// How a document may declare its encoding.
#[derive(Clone, Copy, PartialEq)]
pub enum Form {
    Html,
    Xml,
    Text,
}

pub fn detect(body: &[u8], http_charset: Option<&str>, form: Form) -> &'static Encoding {
    if let Some((encoding, _)) = Encoding::for_bom(body) {
        return encoding;
    }
    if let Some(encoding) = http_charset.and_then(|label| Encoding::for_label(label.as_bytes())) {
        return encoding;
    }
    let declared = match form {
        Form::Xml => return xml_declared(body).unwrap_or(UTF_8),
        Form::Text => None,
        Form::Html => prescan(body, PRESCAN_BYTES).or_else(|| xml_declared(body)).or_else(|| prescan(body, LATE_BYTES)),
    };
    declared.unwrap_or_else(|| by_validity(body))
}

/// The document as UTF-8 without a byte order mark; what cannot be read becomes U+FFFD. What is in UTF-8 is not checked.
pub fn to_utf8<'a>(body: &'a [u8], encoding: &'static Encoding) -> Cow<'a, [u8]> {
    let body = match Encoding::for_bom(body) {
        Some((mark, length)) if mark == encoding => &body[length..],
        _ => body,
    };
    if encoding == UTF_8 || (encoding.is_ascii_compatible() && body.is_ascii()) {
        return body.into();
    }
    match encoding.decode_without_bom_handling(body).0 {
        Cow::Borrowed(text) => text.as_bytes().into(),
        Cow::Owned(text) => text.into_bytes().into(),
    }
}

/// The encoding of this name or label.
pub fn named(name: &str) -> &'static Encoding {
    Encoding::for_label(name.as_bytes()).unwrap_or(WINDOWS_1252)
}

/// What a `<meta>` in the first bytes declares, by the standard's prescan.
fn prescan(body: &[u8], within: usize) -> Option<&'static Encoding> {
    let head = &body[..body.len().min(within)];
    find_ignoring_case(head, b"charset", 0)?;
    let mut at = memchr(b'<', head)?;
    loop {
        let rest = &head[at..];
        if rest.starts_with(b"<!--") {
            at += memmem::find(&rest[2..], b"-->")? + 5;
        } else if rest.len() > 5
            && rest[..5].eq_ignore_ascii_case(b"<meta")
            && (is_html_space(rest[5]) || rest[5] == b'/')
        {
            let mut attributes = Attributes::new(head, at + 5);
            let declared = declared_in_meta(&mut attributes);
            if declared.is_some() || !attributes.ends_well {
                return declared.filter(|_| attributes.ends_well);
            }
            at = attributes.at;
        } else if rest[1..].first().is_some_and(u8::is_ascii_alphabetic)
            || (rest.len() > 2 && rest[1] == b'/' && rest[2].is_ascii_alphabetic())
        {
            let name = rest.iter().position(|&b| is_html_space(b) || b == b'>')?;
            let mut attributes = Attributes::new(head, at + name);
            attributes.by_ref().for_each(drop);
            at = attributes.at;
        } else if matches!(rest.get(1), Some(b'!' | b'/' | b'?')) {
            at += memchr(b'>', rest)? + 1;
        } else {
            at += 1;
        }
        at += memchr(b'<', &head[at..])?;
    }
}

/// What one `<meta>` declares.
fn declared_in_meta(attributes: &mut Attributes) -> Option<&'static Encoding> {
    let (mut charset, mut header, mut content) = (None, None, None);
    for Attribute { name, value } in attributes {
        let slot = match name.to_ascii_lowercase().as_slice() {
            b"charset" => &mut charset,
            b"http-equiv" => &mut header,
            b"content" => &mut content,
            _ => continue,
        };
        slot.get_or_insert(value.unwrap_or_default()); // the first of a name counts
    }
    let declared = match (charset, header) {
        (Some(label), _) => Encoding::for_label(label),
        (None, Some(header)) if header.eq_ignore_ascii_case(b"content-type") => {
            content_charset(content.unwrap_or_default())
        }
        _ => None,
    };
    declared.map(as_declared)
}

/// A document that can be read as ASCII is not in UTF-16, whatever it says; and x-user-defined means the default.
fn as_declared(encoding: &'static Encoding) -> &'static Encoding {
    if encoding == UTF_16LE || encoding == UTF_16BE {
        UTF_8
    } else if encoding == X_USER_DEFINED {
        WINDOWS_1252
    } else {
        encoding
    }
}

fn content_charset(content: &[u8]) -> Option<&'static Encoding> {
    let mut from = 0;
    loop {
        let after = find_ignoring_case(content, b"charset", from)? + 7;
        from = after;
        let Some(value) = skip_spaces(&content[after..]).strip_prefix(b"=").map(skip_spaces) else { continue };
        let label = match value {
            [quote @ (b'"' | b'\''), rest @ ..] => match memchr(*quote, rest) {
                Some(end) => &rest[..end],
                None => continue,
            },
            [] | [b';', ..] => continue,
            _ => &value[..value.iter().position(|&b| is_html_space(b) || b == b';').unwrap_or(value.len())],
        };
        return Encoding::for_label(label);
    }
}

/// The encoding in `<?xml … encoding="…"?>`.
fn xml_declared(body: &[u8]) -> Option<&'static Encoding> {
    if body.starts_with(b"<\0?\0x\0") {
        return Some(UTF_16LE);
    }
    if body.starts_with(b"\0<\0?\0x") {
        return Some(UTF_16BE);
    }
    let mut rest = body[..body.len().min(PRESCAN_BYTES)].strip_prefix(b"<?xml")?;
    rest = &rest[..memchr(b'>', rest).unwrap_or(rest.len())];
    loop {
        rest = &rest[memmem::find(rest, b"encoding")? + 8..];
        let spaces =
            |text: &[u8]| text.iter().position(|b| !matches!(b, b'\t' | b'\n' | b'\r' | b' ')).unwrap_or(text.len());
        let Some(value) = rest[spaces(rest)..].strip_prefix(b"=") else { continue };
        if let [quote @ (b'"' | b'\''), label @ ..] = &value[spaces(value)..] {
            if let Some(end) = memchr(*quote, label) {
                return Encoding::for_label(&label[..end]).map(as_declared);
            }
        }
    }
}

fn by_validity(body: &[u8]) -> &'static Encoding {
    if body.is_ascii() {
        return WINDOWS_1252;
    }
    match simdutf8::compat::from_utf8(body) {
        Err(error) if error.error_len().is_some() => WINDOWS_1252,
        _ => UTF_8, // a last character cut off by a size limit is no objection
    }
}

fn find_ignoring_case(text: &[u8], word: &[u8], from: usize) -> Option<usize> {
    text[from..].windows(word.len()).position(|window| window.eq_ignore_ascii_case(word)).map(|n| from + n)
}

/// The name of the encoding of a document, see `lycosa.web.charset.detect_charset`.
#[pyfunction]
#[pyo3(signature = (body, http_charset, form))]
pub fn detect_charset(body: &[u8], http_charset: Option<&Bound<'_, PyString>>, form: &str) -> &'static str {
    let form = match form {
        "xml" => Form::Xml,
        "text" => Form::Text,
        _ => Form::Html,
    };
    detect(body, http_charset.and_then(|label| label.to_str().ok()), form).name()
}

/// A document as UTF-8, see `lycosa.web.charset.to_utf8`; other threads run meanwhile.
#[pyfunction(name = "to_utf8")]
pub fn to_utf8_bytes<'py>(py: Python<'py>, body: &Bound<'py, PyBytes>, encoding: &str) -> Bound<'py, PyBytes> {
    let (bytes, encoding) = (body.as_bytes(), named(encoding));
    let text = py.detach(|| to_utf8(bytes, encoding));
    match text {
        Cow::Borrowed(text) if text.len() == bytes.len() => body.clone(),
        text => PyBytes::new(py, &text),
    }
}
