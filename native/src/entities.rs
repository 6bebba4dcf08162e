//! Character references: `&amp;`, `&#38;`, and all other names of the HTML standard.

use encoding_rs::WINDOWS_1252;
use std::collections::HashMap;
use std::sync::OnceLock;

const LONGEST: usize = 33; // the longest name, with its semicolon

fn table() -> &'static HashMap<&'static [u8], &'static str> {
    static TABLE: OnceLock<HashMap<&'static [u8], &'static str>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let meaning = |written: &'static str| match written {
            "\\n" => "\n",
            "\\t" => "\t",
            other => other,
        };
        let lines = include_str!("entities.txt").lines().filter_map(|line| line.split_once('\t'));
        lines.map(|(name, written)| (name.as_bytes(), meaning(written))).collect()
    })
}

/// Reads the reference at `data[0] == b'&'`; writes what it means and returns its length, 0 if it is none.
pub fn read(data: &[u8], in_attribute: bool, out: &mut Vec<u8>) -> usize {
    match data.get(1) {
        Some(b'#') => numeric(data, out),
        Some(byte) if byte.is_ascii_alphanumeric() => named(data, in_attribute, out),
        _ => 0,
    }
}

fn numeric(data: &[u8], out: &mut Vec<u8>) -> usize {
    let (base, start) = if matches!(data.get(2), Some(b'x' | b'X')) { (16, 3) } else { (10, 2) };
    let mut at = start;
    let mut code: u32 = 0;
    while let Some(&byte) = data.get(at) {
        let Some(digit) = char::from(byte).to_digit(base) else { break };
        code = (code * base + digit).min(0x11_0000);
        at += 1;
    }
    if at == start {
        return 0;
    }
    if data.get(at) == Some(&b';') {
        at += 1;
    }
    if let 0x80..=0x9F = code {
        out.extend_from_slice(WINDOWS_1252.decode_without_bom_handling(&[code as u8]).0.as_bytes());
    } else {
        let character = char::from_u32(code).filter(|_| code > 0).unwrap_or('\u{FFFD}');
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    }
    at
}

/// Nearly all references in pages are these.
const COMMON: [(&[u8], &str); 5] =
    [(b"nbsp;", "\u{a0}"), (b"lt;", "<"), (b"gt;", ">"), (b"amp;", "&"), (b"quot;", "\"")];

fn named(data: &[u8], in_attribute: bool, out: &mut Vec<u8>) -> usize {
    if let Some((name, text)) = COMMON.iter().find(|(name, _)| data[1..].starts_with(name)) {
        out.extend_from_slice(text.as_bytes());
        return 1 + name.len();
    }
    let mut length = 1;
    while length < data.len().min(LONGEST) && data[length].is_ascii_alphanumeric() {
        length += 1;
    }
    if data.get(length) == Some(&b';') {
        length += 1;
    }
    let names = table();
    for end in (2..=length).rev() {
        if let Some(text) = names.get(&data[1..end]) {
            let is_closed = data[end - 1] == b';';
            let goes_on = matches!(data.get(end), Some(next) if *next == b'=' || next.is_ascii_alphanumeric());
            if in_attribute && !is_closed && goes_on {
                return 0;
            }
            out.extend_from_slice(text.as_bytes());
            return end;
        }
    }
    0
}
