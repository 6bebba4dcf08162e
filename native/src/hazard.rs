//! Where a document must end for a parser's work to stay in proportion to its size: `lycosa.web.hazard` in Rust.
//!
//! The kernel's own work is linear in any case; it ends documents where its twin must, and hands none to a parser that
//! builds a tree without this. Every constant and every step is as there, where the reasons are.

use crate::scan::Attributes;
use crate::seen::Seeded;
use crate::tags::*;
use memchr::{memchr, memchr3, memchr_iter};
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

/// How many elements of formatting there are, without `a`, which its next of kind closes.
const FORMATS: usize = 13;
const DRAWN: [&[u8]; 9] = [b"path", b"polygon", b"polyline", b"circle", b"ellipse", b"rect", b"line", b"use", b"stop"];
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
    let most_plain = SAME * FORMATS;
    if tags <= MAX_OPEN && tags * (most_plain + tags) <= MAX_REOPENED {
        return body.len();
    }
    // No more than that may have attributes; nearly always the count ends long before it.
    let most = if tags > MAX_OPEN { None } else { (MAX_REOPENED / tags).checked_sub(most_plain) };
    let mut formatting = memchr_iter(b'<', body).filter(|&open| is_formatting_with_attributes(&body[open + 1..]));
    if most.is_some_and(|most| formatting.nth(most).is_none()) {
        return body.len();
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
    !name.is_empty()
        && !ends_soon(&data[name.len()..])
        && Attributes::new(data, name.len()).nth(MAX_ATTRIBUTES).is_some()
}

/// Whether a tag surely ends before it can hold too many attributes, found without taking them apart: values in quotes
/// are skipped, and what looks like one and is none only ends the tag earlier.
fn ends_soon(after: &[u8]) -> bool {
    let near = &after[..after.len().min(2 * MAX_ATTRIBUTES)];
    let mut at = 0;
    while let Some(found) = memchr3(b'>', b'"', b'\'', &near[at..]).map(|n| at + n) {
        if near[found] == b'>' {
            return true;
        }
        // An equals sign after a space may be the beginning of a name.
        if found < 2 || near[found - 1] != b'=' || ends_name(near[found - 2]) {
            return false;
        }
        let Some(end) = memchr(near[found], &near[found + 1..]) else { return false };
        at = found + 1 + end + 1;
    }
    false
}

fn is_formatting(tag: Tag) -> bool {
    flags(tag) & FORMATTING != 0 && tag != A
}

fn is_formatting_with_attributes(data: &[u8]) -> bool {
    const LONGEST: usize = 6;
    // Nearly all tags begin with another letter, or with a slash.
    if !matches!(data.first(), Some(b'b' | b'c' | b'e' | b'f' | b'i' | b'n' | b's' | b't' | b'u' | b'A'..=b'Z')) {
        return false;
    }
    let mut lower = [0; LONGEST];
    for (end, &byte) in data.iter().take(LONGEST + 1).enumerate() {
        if ends_name(byte) {
            return byte != b'>' && is_formatting(number_of(&lower[..end]));
        }
        if let Some(letter) = lower.get_mut(end) {
            *letter = byte.to_ascii_lowercase();
        }
    }
    false
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
    let mut known = [0usize; KNOWN]; // open elements by tag
    let mut others: HashMap<Vec<u8>, usize, Seeded> = HashMap::default();
    let mut formatting: Vec<Vec<(&[u8], usize)>> = vec![Vec::new(); KNOWN]; // attributes, depth
    let mut same: HashMap<(Tag, &[u8]), usize, Seeded> = HashMap::default();
    let (mut depth, mut drawn, mut opened_again, mut reopened) = (0usize, 0, 0, 0);
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
        let name = if written.iter().any(u8::is_ascii_uppercase) {
            lower.clear();
            lower.extend(written.iter().map(u8::to_ascii_lowercase));
            lower.as_slice()
        } else {
            written
        };
        let tag = number_of(name);
        if is_end {
            let count = if tag == 0 { others.get_mut(name) } else { Some(&mut known[tag as usize]) };
            if let Some(count) = count.filter(|count| **count > 0) {
                *count -= 1;
                depth -= 1;
                // One that was opened at another depth may still be opened again.
                if let Some(&(attributes, _)) = formatting[tag as usize].last().filter(|(_, at)| *at == depth) {
                    formatting[tag as usize].pop();
                    let count = same.entry((tag, attributes)).or_default();
                    *count -= 1;
                    opened_again -= usize::from(*count < SAME);
                }
            }
        } else if drawn < MAX_DRAWN && known[SVG as usize] > 0 && DRAWN.contains(&name) && is_closed_at_once(after) {
            drawn += 1;
        } else if flags(tag) & FLAT == 0 {
            if is_formatting(tag) {
                let attributes = attributes_of(after);
                formatting[tag as usize].push((attributes, depth));
                let count = same.entry((tag, attributes)).or_default();
                opened_again += usize::from(*count < SAME);
                *count += 1;
            }
            if tag != 0 {
                known[tag as usize] += 1;
            } else if let Some(count) = others.get_mut(name) {
                *count += 1;
            } else {
                others.insert(name.to_vec(), 1);
            }
            depth += 1;
        }
        reopened += opened_again;
        if depth > MAX_OPEN || reopened > MAX_REOPENED {
            return open;
        }
    }
    body.len()
}
