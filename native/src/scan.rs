//! The tokenizer: start tags, end tags, text and comments of an HTML document, in one pass.
//!
//! It never fails and never goes back further than the tag it is in. Who takes the tokens tells it, after each
//! start tag, how the text that follows is to be read.

use crate::entities;
use crate::tags::{self, Tag};
use crate::text::is_html_space;
use memchr::{memchr, memchr2, memchr3, memchr_iter, memmem};
use std::borrow::Cow;

/// How the text after a start tag is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum After {
    Data,
    Rcdata,
    Rawtext,
    Script,
    Plaintext,
}

/// Who takes the tokens of a document.
pub trait Sink {
    fn start_tag(&mut self, token: &StartTag) -> After;
    fn end_tag(&mut self, tag: Tag, name: &[u8]);
    fn text(&mut self, text: &[u8]);
    fn raw_text(&mut self, text: &[u8], has_end: bool);
    fn comment(&mut self) {}
    fn doctype(&mut self, _rest: &[u8]) {}
    fn end(&mut self) {}

    fn is_foreign(&self) -> bool {
        false
    }

    /// Needs it no more tokens?
    fn is_over(&self) -> bool {
        false
    }
}

pub struct StartTag<'a> {
    pub tag: Tag,
    pub name: &'a [u8],            // as written; in lower case if it has a number
    pub attributes: &'a [u8],      // as written
    pub list: &'a [Attribute<'a>], // the same, taken apart
    pub closes_itself: bool,
}

/// One attribute: its name as written, and its value as written; `None` where there is no `=`.
#[derive(Clone, Copy)]
pub struct Attribute<'a> {
    pub name: &'a [u8],
    pub value: Option<&'a [u8]>,
}

/// The attributes between `at` (after the tag's name) and the tag's end.
pub struct Attributes<'a> {
    data: &'a [u8],
    pub at: usize,
    pub closes_itself: bool,
    pub ends_well: bool,
}

impl<'a> Attributes<'a> {
    pub fn new(data: &'a [u8], at: usize) -> Self {
        Attributes { data, at, closes_itself: false, ends_well: false }
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = Attribute<'a>;

    fn next(&mut self) -> Option<Attribute<'a>> {
        let data = self.data;
        loop {
            match data.get(self.at) {
                end @ (None | Some(b'>')) => {
                    self.ends_well = end.is_some();
                    return None;
                }
                Some(b'/') => {
                    self.closes_itself = data.get(self.at + 1) == Some(&b'>');
                    self.at += 1;
                }
                Some(&byte) if is_html_space(byte) => self.at += 1,
                Some(_) => break,
            }
        }
        let start = self.at;
        self.at += 1; // a name may begin with "="
        while let Some(&byte) = data.get(self.at) {
            if is_html_space(byte) || matches!(byte, b'/' | b'>' | b'=') {
                break;
            }
            self.at += 1;
        }
        let name = &data[start..self.at];
        let mut at = self.at;
        while data.get(at).is_some_and(|&b| is_html_space(b)) {
            at += 1;
        }
        if data.get(at) != Some(&b'=') {
            self.at = at;
            return Some(Attribute { name, value: None });
        }
        at += 1;
        while data.get(at).is_some_and(|&b| is_html_space(b)) {
            at += 1;
        }
        let value = match data.get(at) {
            Some(&quote @ (b'"' | b'\'')) => {
                let start = at + 1;
                let end = memchr(quote, &data[start..]).map_or(data.len(), |n| start + n);
                at = (end + 1).min(data.len());
                if end == data.len() {
                    self.at = end;
                    return None;
                }
                &data[start..end]
            }
            Some(b'>') | None => &data[at..at],
            Some(_) => {
                let start = at;
                while let Some(&byte) = data.get(at) {
                    if is_html_space(byte) || byte == b'>' {
                        break;
                    }
                    at += 1;
                }
                &data[start..at]
            }
        };
        self.at = at;
        Some(Attribute { name, value: Some(value) })
    }
}

/// The first attribute of each name: `None` if it is not there, `Some(None)` if it has no value.
pub fn values<'a, const N: usize>(token: &StartTag<'a>, names: [&[u8]; N]) -> [Option<Option<&'a [u8]>>; N] {
    let mut found = [None; N];
    for attribute in token.list {
        for (slot, name) in found.iter_mut().zip(names) {
            if slot.is_none() && attribute.name.eq_ignore_ascii_case(name) {
                *slot = Some(attribute.value);
            }
        }
    }
    found
}

/// An attribute's value with its references resolved.
pub fn value_of(raw: &[u8]) -> String {
    let mut out = Vec::with_capacity(raw.len());
    resolve(raw, true, &mut out);
    String::from_utf8(out).unwrap_or_default()
}

/// Text with references resolved and line ends made LF; NUL becomes U+FFFD in attributes and is left in text.
pub fn resolve(raw: &[u8], in_attribute: bool, out: &mut Vec<u8>) {
    let mut rest = raw;
    loop {
        let Some(at) = memchr3(b'&', b'\r', 0, rest) else {
            out.extend_from_slice(rest);
            return;
        };
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        match rest[0] {
            b'&' => {
                let length = entities::read(rest, in_attribute, out);
                if length == 0 {
                    out.push(b'&');
                }
                rest = &rest[length.max(1)..];
            }
            b'\r' => {
                out.push(b'\n');
                rest = &rest[if rest.get(1) == Some(&b'\n') { 2 } else { 1 }..];
            }
            _ => {
                if in_attribute {
                    out.extend_from_slice("\u{FFFD}".as_bytes());
                } else {
                    out.push(0);
                }
                rest = &rest[1..];
            }
        }
    }
}

/// Raw text: no references; NUL becomes U+FFFD.
fn raw_text(raw: &[u8], out: &mut Vec<u8>) {
    let mut rest = raw;
    while let Some(at) = memchr2(b'\r', 0, rest) {
        out.extend_from_slice(&rest[..at]);
        if rest[at] == 0 {
            out.extend_from_slice("\u{FFFD}".as_bytes());
            rest = &rest[at + 1..];
        } else {
            out.push(b'\n');
            rest = &rest[at + if rest.get(at + 1) == Some(&b'\n') { 2 } else { 1 }..];
        }
    }
    out.extend_from_slice(rest);
}

const RAW_TEXT: [&[u8]; 9] =
    [b"script", b"style", b"title", b"textarea", b"iframe", b"noscript", b"xmp", b"noembed", b"noframes"];

/// In XML these may be closed by "/>"; an HTML parser would take the rest of the document for their text.
pub fn without_self_closed(data: &[u8]) -> Cow<'_, [u8]> {
    let mut out: Vec<u8> = Vec::new();
    let mut copied = 0;
    for open in memchr_iter(b'<', data) {
        let rest = &data[open + 1..];
        let Some(name) = RAW_TEXT.iter().find(|name| rest.starts_with(name)) else { continue };
        let after = &rest[name.len()..];
        if after.first().is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_') {
            continue;
        }
        let Some(end) = memchr2(b'<', b'>', after) else { continue };
        if after[end] == b'>' && end > 0 && after[end - 1] == b'/' {
            let slash = open + 1 + name.len() + end - 1;
            out.extend_from_slice(&data[copied..slash]);
            out.extend_from_slice(b"></");
            out.extend_from_slice(name);
            copied = slash + 1;
        }
    }
    if copied == 0 {
        return data.into();
    }
    out.extend_from_slice(&data[copied..]);
    out.into()
}

pub fn scan(data: &[u8], sink: &mut impl Sink) {
    let mut at = 0;
    let mut buffer: Vec<u8> = Vec::new();
    let mut name_buffer: Vec<u8> = Vec::new();
    let mut list: Vec<Attribute> = Vec::new();
    let mut text_start = 0;
    while !sink.is_over() {
        let (n, is_plain) = plain_length(&data[at..]);
        let open = at + n;
        // Nearly all texts are short and have nothing to resolve.
        let raw_is_plain = is_plain && at == text_start;
        if open == data.len() {
            flush(&data[text_start..], raw_is_plain, &mut buffer, sink);
            break;
        }
        let next = data.get(open + 1).copied().unwrap_or(0);
        let is_end = next == b'/';
        let name_at = if is_end { open + 2 } else { open + 1 };
        let first = data.get(name_at).copied().unwrap_or(0);
        if first.is_ascii_alphabetic() {
            flush(&data[text_start..open], raw_is_plain, &mut buffer, sink);
            let mut end = name_at;
            let mut is_lower = true;
            while let Some(&byte) = data.get(end) {
                if is_html_space(byte) || matches!(byte, b'/' | b'>') {
                    break;
                }
                is_lower &= !byte.is_ascii_uppercase() && byte != 0;
                end += 1;
            }
            let name: &[u8] = if is_lower {
                &data[name_at..end]
            } else {
                name_buffer.clear();
                for &byte in &data[name_at..end] {
                    if byte == 0 {
                        name_buffer.extend_from_slice("\u{FFFD}".as_bytes());
                    } else {
                        name_buffer.push(byte.to_ascii_lowercase());
                    }
                }
                &name_buffer
            };
            let tag = tags::number_of(name);
            let mut attributes = Attributes::new(data, end);
            list.clear();
            if data.get(end) == Some(&b'>') {
                attributes.ends_well = true;
            } else {
                list.extend(&mut attributes);
            }
            if !attributes.ends_well {
                break; // the document ends in a tag, which is dropped
            }
            let close = attributes.at;
            at = close + 1;
            text_start = at;
            if is_end {
                sink.end_tag(tag, name);
                continue;
            }
            let after = sink.start_tag(&StartTag {
                tag,
                name,
                attributes: &data[end..close + 1],
                list: &list,
                closes_itself: attributes.closes_itself,
            });
            if after != After::Data {
                let end = match after {
                    After::Plaintext => data.len(),
                    After::Script => script_end(data, at),
                    _ => raw_end(data, at, name),
                };
                buffer.clear();
                if after == After::Rcdata {
                    resolve(&data[at..end], false, &mut buffer);
                    if memchr(0, &buffer).is_some() {
                        let copy = std::mem::take(&mut buffer);
                        raw_text(&copy, &mut buffer);
                    }
                } else {
                    raw_text(&data[at..end], &mut buffer);
                }
                if after == After::Plaintext {
                    sink.text(&buffer);
                } else {
                    sink.raw_text(&buffer, end < data.len());
                }
                at = end;
                text_start = end;
            }
            continue;
        }
        if next == b'!' || next == b'?' || (is_end && name_at < data.len()) {
            flush(&data[text_start..open], raw_is_plain, &mut buffer, sink);
            // "</>" is nothing at all, and the text around it is one.
            at = if is_end && first == b'>' { name_at + 1 } else { declaration(data, open, sink) };
            text_start = at;
            continue;
        }
        at = open + 1; // a "<" that is text
        if at >= data.len() {
            flush(&data[text_start..], raw_is_plain, &mut buffer, sink);
            break;
        }
    }
    if !sink.is_over() {
        sink.end();
    }
}

/// How many bytes stand before the first "<", and whether none of them is to be resolved; by eight at first.
fn plain_length(data: &[u8]) -> (usize, bool) {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    const SHORT: usize = 64;
    let is_zero = |bytes: u64| bytes.wrapping_sub(ONES) & !bytes & HIGH; // marks the first that is zero, and none before
    let mut length = 0;
    let mut special = 0;
    for chunk in data.chunks_exact(8).take(SHORT / 8) {
        let bytes = u64::from_le_bytes(chunk.try_into().unwrap_or_default());
        let open = is_zero(bytes ^ (ONES * b'<' as u64));
        let found = is_zero(bytes ^ (ONES * b'&' as u64)) | is_zero(bytes ^ (ONES * b'\r' as u64)) | is_zero(bytes);
        if open != 0 {
            let before = (open & open.wrapping_neg()) - 1;
            return (length + open.trailing_zeros() as usize / 8, (special | (found & before)) == 0);
        }
        special |= found;
        length += 8;
    }
    let rest = &data[length..];
    let open = memchr(b'<', rest).unwrap_or(rest.len());
    let is_plain = special == 0 && memchr3(b'&', b'\r', 0, &rest[..open]).is_none();
    (length + open, is_plain)
}

fn flush(raw: &[u8], is_plain: bool, buffer: &mut Vec<u8>, sink: &mut impl Sink) {
    if raw.is_empty() {
        return;
    }
    // A copy of what stays as it is, such as a document of NULs, would take its size once more.
    if is_plain || memchr2(b'&', b'\r', raw).is_none() {
        sink.text(raw);
        return;
    }
    buffer.clear();
    resolve(raw, false, buffer);
    sink.text(buffer);
}

/// A comment, a doctype, CDATA or a bogus comment at `open`; returns where it ends.
fn declaration(data: &[u8], open: usize, sink: &mut impl Sink) -> usize {
    let rest = &data[open..];
    if rest.starts_with(b"<!--") {
        sink.comment();
        return comment_end(data, open + 4);
    }
    if rest.len() >= 9 && rest[..9].eq_ignore_ascii_case(b"<!doctype") {
        let end = memchr(b'>', rest).map_or(data.len(), |n| open + n);
        sink.doctype(&data[open + 9..end]);
        return (end + 1).min(data.len());
    }
    if rest.starts_with(b"<![CDATA[") && sink.is_foreign() {
        let start = open + 9;
        let end = memmem::find(&data[start..], b"]]>").map_or(data.len(), |n| start + n);
        let mut buffer = Vec::new();
        raw_text(&data[start..end], &mut buffer);
        if !buffer.is_empty() {
            sink.text(&buffer);
        }
        return (end + 3).min(data.len());
    }
    sink.comment();
    memchr(b'>', rest).map_or(data.len(), |n| open + n + 1)
}

fn comment_end(data: &[u8], start: usize) -> usize {
    let rest = &data[start..];
    if rest.starts_with(b">") {
        return start + 1;
    }
    if rest.starts_with(b"->") {
        return start + 2;
    }
    let mut at = start;
    while let Some(n) = memchr(b'>', &data[at..]) {
        let close = at + n;
        let body = &data[start..close];
        if body.ends_with(b"--") || body.ends_with(b"--!") {
            return close + 1;
        }
        at = close + 1;
    }
    data.len()
}

/// Where raw text ends: at the end tag of the same name, or with the document.
fn raw_end(data: &[u8], start: usize, name: &[u8]) -> usize {
    let mut at = start;
    while let Some(n) = memmem::find(&data[at..], b"</") {
        let open = at + n;
        if ends_name(data, open + 2, name) {
            return open;
        }
        at = open + 2;
    }
    data.len()
}

fn ends_name(data: &[u8], at: usize, name: &[u8]) -> bool {
    let end = at + name.len();
    end < data.len()
        && data[at..end].eq_ignore_ascii_case(name)
        && (is_html_space(data[end]) || matches!(data[end], b'/' | b'>'))
}

/// Where a script ends: its end tag, except inside `<!-- <script> … </script> -->`.
fn script_end(data: &[u8], start: usize) -> usize {
    const SCRIPT: &[u8] = b"script";
    let mut at = start;
    let mut is_escaped = false;
    let mut is_double = false;
    let mut dashes_from = start;
    while let Some(n) = memchr2(b'<', b'>', &data[at..]) {
        let here = at + n;
        at = here + 1;
        if data[here] == b'>' {
            if (is_escaped || is_double) && here >= dashes_from + 2 && data[here - 2..here] == *b"--" {
                is_escaped = false;
                is_double = false;
            }
            continue;
        }
        if !is_escaped && !is_double && data[here..].starts_with(b"<!--") {
            dashes_from = here + 2; // "<!-->" and "<!--->" end it
            at = here + 4;
            is_escaped = !data[at..].starts_with(b">") && !data[at..].starts_with(b"->");
            continue;
        }
        if is_double {
            if data[here..].starts_with(b"</") && ends_name(data, here + 2, SCRIPT) {
                is_double = false;
                is_escaped = true;
            }
        } else if data[here..].starts_with(b"</") && ends_name(data, here + 2, SCRIPT) {
            return here;
        } else if is_escaped && ends_name(data, here + 1, SCRIPT) {
            is_double = true;
            is_escaped = false;
        }
    }
    data.len()
}
