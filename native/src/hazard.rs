//! Where a document must end for a parser's work to stay in proportion to its size: `lycosa.web.hazard` in Rust.
//!
//! The kernel's own work is linear in any case; it ends documents where its twin must, and hands none to a parser that
//! builds a tree without this. Every constant and every step is as there, where the reasons are.

use crate::scan::Attributes;
use memchr::{memchr, memchr_iter};
use std::collections::HashMap;

const MAX_BYTES: usize = 16 << 20;
const MAX_TAGS: usize = 400_000;
const MAX_ATTRIBUTES: usize = 500;
const MAX_OPEN: usize = 5_000;
const MAX_REOPENED: usize = 500_000;
const SAME: usize = 3;
const SMALL_BYTES: usize = 64 * 1024;
const TOLD_APART_BYTES: usize = 4 * 1024;
const MAX_DRAWN: usize = 50_000;

const FORMATTING: [&[u8]; 13] =
    [b"b", b"big", b"code", b"em", b"font", b"i", b"nobr", b"s", b"small", b"strike", b"strong", b"tt", b"u"];
const FLAT: [&[u8]; 26] = [
    b"area", b"base", b"br", b"col", b"embed", b"hr", b"img", b"input", b"link", b"meta", b"param", b"source", b"track",
    b"wbr", b"a", b"p", b"li", b"dt", b"dd", b"td", b"th", b"tr", b"tbody", b"thead", b"tfoot", b"option",
];
const DRAWN: [&[u8]; 9] =
    [b"path", b"polygon", b"polyline", b"circle", b"ellipse", b"rect", b"line", b"use", b"stop"];

/// How many of the body's bytes can be parsed safely.
pub fn safe_length(body: &[u8]) -> usize {
    let mut body = &body[..body.len().min(MAX_BYTES)];
    let mut tags = memchr_iter(b'<', body).count();
    if tags > MAX_TAGS {
        tags = MAX_TAGS;
        body = &body[..memchr_iter(b'<', body).nth(MAX_TAGS).unwrap_or(body.len())];
    }
    if body.len() > SMALL_BYTES {
        if let Some(open) = memchr_iter(b'<', body).find(|&open| is_crowded(&body[open + 1..])) {
            body = &body[..open];
        }
    }
    let most_plain = SAME * FORMATTING.len();
    if tags <= MAX_OPEN {
        if tags * (most_plain + tags) <= MAX_REOPENED {
            return body.len();
        }
        let formatting = memchr_iter(b'<', body).filter(|&open| is_formatting_with_attributes(&body[open + 1..])).count();
        if tags * (most_plain + formatting) <= MAX_REOPENED {
            return body.len();
        }
    }
    end_of_sane_nesting(body)
}

fn ends_name(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\x0c' | b'\r' | b' ' | b'/' | b'>')
}

fn name_of(data: &[u8]) -> &[u8] {
    if !data.first().is_some_and(u8::is_ascii_alphabetic) {
        return b"";
    }
    &data[..data.iter().position(|&byte| ends_name(byte)).unwrap_or(data.len())]
}

fn is_crowded(data: &[u8]) -> bool {
    let name = name_of(data);
    !name.is_empty() && Attributes::new(data, name.len()).nth(MAX_ATTRIBUTES).is_some()
}

fn is_formatting_with_attributes(data: &[u8]) -> bool {
    if !matches!(data.first(), Some(b'b' | b'c' | b'e' | b'f' | b'i' | b'n' | b's' | b't' | b'u' | b'B' | b'C' | b'E' | b'F' | b'I' | b'N' | b'S' | b'T' | b'U')) {
        return false;
    }
    let longest = &data[..data.len().min(7)];
    let Some(end) = longest.iter().position(|&byte| ends_name(byte)) else { return false };
    longest[end] != b'>' && FORMATTING.iter().any(|name| name.eq_ignore_ascii_case(&longest[..end]))
}

fn is_closed_at_once(after: &[u8]) -> bool {
    let after = &after[..after.len().min(TOLD_APART_BYTES)];
    after[..memchr(b'>', after).unwrap_or(after.len())].ends_with(b"/")
}

/// The attributes at the beginning of `after`, as they are written.
fn attributes_of(after: &[u8]) -> &[u8] {
    let after = &after[..after.len().min(TOLD_APART_BYTES)];
    let mut attributes = Attributes::new(after, 0);
    let mut end = 0;
    while attributes.next().is_some() {
        end = attributes.at;
    }
    &after[..end]
}

fn end_of_sane_nesting(body: &[u8]) -> usize {
    let mut still_open: HashMap<Vec<u8>, usize> = HashMap::new();
    let mut formatting: [Vec<(&[u8], usize)>; 13] = std::array::from_fn(|_| Vec::new());
    let mut same: HashMap<(usize, &[u8]), usize> = HashMap::new();
    let (mut depth, mut drawn, mut opened_again, mut reopened) = (0usize, 0, 0, 0);
    let mut svgs = 0usize;
    let mut lower: Vec<u8> = Vec::new();
    let mut next = 0; // a tag's name may hold a "<", which begins no other
    for open in memchr_iter(b'<', body) {
        if open < next {
            continue;
        }
        let is_end = body.get(open + 1) == Some(&b'/');
        let start = open + 1 + usize::from(is_end);
        let written = name_of(&body[start..]);
        if written.is_empty() {
            continue;
        }
        let after = &body[start + written.len()..];
        next = start + written.len();
        lower.clear();
        lower.extend(written.iter().map(u8::to_ascii_lowercase));
        let name = lower.as_slice();
        let format = FORMATTING.iter().position(|each| *each == name);
        if is_end {
            if let Some(count) = still_open.get_mut(name).filter(|count| **count > 0) {
                *count -= 1;
                depth -= 1;
                svgs -= usize::from(name == b"svg");
                if let Some(format) = format {
                    // One that was opened at another depth may still be opened again.
                    if let Some(&(attributes, _)) = formatting[format].last().filter(|(_, at)| *at == depth) {
                        formatting[format].pop();
                        let count = same.entry((format, attributes)).or_default();
                        *count -= 1;
                        opened_again -= usize::from(*count < SAME);
                    }
                }
            }
        } else if drawn < MAX_DRAWN && svgs > 0 && DRAWN.contains(&name) && is_closed_at_once(after) {
            drawn += 1;
        } else if !FLAT.contains(&name) {
            if let Some(format) = format {
                let attributes = attributes_of(after);
                formatting[format].push((attributes, depth));
                let count = same.entry((format, attributes)).or_default();
                opened_again += usize::from(*count < SAME);
                *count += 1;
            }
            match still_open.get_mut(name) {
                Some(count) => *count += 1,
                None => {
                    still_open.insert(name.to_vec(), 1);
                }
            }
            svgs += usize::from(name == b"svg");
            depth += 1;
        }
        reopened += opened_again;
        if depth > MAX_OPEN || reopened > MAX_REOPENED {
            return open;
        }
    }
    body.len()
}
