//! Text: white space collapsed as Python and as the analyser do it, and the text codes.

use std::borrow::Cow;

/// `str.isspace` of Python, which `str.split` splits by.
pub fn is_space(character: char) -> bool {
    matches!(character, '\t'..='\r' | '\x1c'..=' ' | '\u{85}' | '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}'
        | '\u{2028}' | '\u{2029}' | '\u{202f}' | '\u{205f}' | '\u{3000}')
}

/// White space of HTML: what attributes are stripped of.
pub fn is_html_space(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\x0c' | b'\r' | b' ')
}

pub fn strip_html(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_ascii() && is_html_space(c as u8))
}

/// Text without the white space that it begins with.
pub fn skip_spaces(text: &[u8]) -> &[u8] {
    &text[text.iter().position(|&byte| !is_html_space(byte)).unwrap_or(text.len())..]
}

pub fn strip_html_bytes(text: &[u8]) -> &[u8] {
    let text = skip_spaces(text);
    &text[..text.iter().rposition(|&byte| !is_html_space(byte)).map_or(0, |n| n + 1)]
}

/// Words joined by single spaces.
pub fn collapsed(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    push_collapsed(&mut out, text.as_bytes());
    let text = String::from_utf8(out).unwrap_or_default();
    text.trim_end_matches(' ').to_string()
}

/// Appends valid text, each run of white space as one space; none at the start of `out` and none after another.
pub fn push_collapsed(out: &mut Vec<u8>, text: &[u8]) {
    let mut at = 0;
    while at < text.len() {
        let plain = plain_length::<true>(&text[at..], out.last().is_none_or(|&byte| byte == b' '));
        out.extend_from_slice(&text[at..at + plain]);
        at += plain;
        let spaces = text[at..].iter().take_while(|&&byte| byte.is_ascii() && is_space(byte as char)).count();
        if spaces > 0 {
            push_space(out);
            at += spaces;
            continue;
        }
        let odd = text[at..].iter().take_while(|&&byte| byte < b' ' || byte >= 0x80).count();
        for character in std::str::from_utf8(&text[at..at + odd]).unwrap_or("").chars() {
            if is_space(character) {
                push_space(out);
            } else {
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
        at += odd;
    }
}

/// How many bytes from the beginning are words with one space between them, and one behind; with `ASCII` of ASCII
/// alone. Eight are looked at in one step.
fn plain_length<const ASCII: bool>(text: &[u8], mut is_after_space: bool) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x80 * ONES;
    const REST: u64 = 0x7f * ONES;
    let eights = text.chunks_exact(8);
    let rest = eights.remainder();
    for (place, eight) in eights.enumerate() {
        let bytes = u64::from_le_bytes(eight.try_into().unwrap_or_default());
        let spaces = !(((bytes ^ 0x20 * ONES) & REST) + REST | bytes) & HIGH;
        let below = !((bytes & REST) + 0x5f * ONES | bytes) & HIGH;
        let twice = spaces & (spaces << 8 | u64::from(is_after_space) << 7);
        let odd = below & !spaces | twice | if ASCII { bytes & HIGH } else { 0 };
        if odd != 0 {
            return place * 8 + odd.trailing_zeros() as usize / 8;
        }
        is_after_space = spaces >> 63 != 0;
    }
    for (place, &byte) in rest.iter().enumerate() {
        let is_space = byte == b' ';
        if byte < b' ' || (is_space && is_after_space) || (ASCII && byte >= 0x80) {
            return text.len() - rest.len() + place;
        }
        is_after_space = is_space;
    }
    text.len()
}

pub fn push_space(out: &mut Vec<u8>) {
    if out.last().is_some_and(|&byte| byte != b' ') {
        out.push(b' ');
    }
}

pub const ANCHOR_LENGTH: usize = 256;

/// The first `ANCHOR_LENGTH` characters of collapsed text, without spaces around them.
pub fn shortened(collapsed: &[u8]) -> &[u8] {
    let start = usize::from(collapsed.first() == Some(&b' '));
    let mut text = &collapsed[start..];
    if text.len() > ANCHOR_LENGTH {
        // Where the character after the last begins.
        let beginnings = text.iter().enumerate().filter(|(_, &byte)| byte & 0xC0 != 0x80);
        text = &text[..beginnings.map(|(at, _)| at).nth(ANCHOR_LENGTH).unwrap_or(text.len())];
    }
    text.strip_suffix(b" ").unwrap_or(text)
}

/// Pieces of text joined by NUL, those between two places: white space and controls as one space each run, and none where
/// punctuation clings. They are written to `start`, which is no place behind the first: a long text is not there twice.
/// Returns where they end then.
pub fn collapse(text: &mut [u8], (from, to): (usize, usize), start: usize) -> usize {
    let (mut at, mut end, mut before) = (from, start, b' ');
    while at < to {
        let byte = text[at];
        let plain = plain_length::<false>(&text[at..to], before <= b' ');
        if plain > 0 {
            if end < at {
                text.copy_within(at..at + plain, end);
            }
            (at, end) = (at + plain, end + plain);
            before = text[end - 1];
            continue;
        }
        at += 1;
        let clings = byte == 0
            && (text[at..to].first().is_some_and(|&next| clings_to_left(next)) || matches!(before, b'(' | b'[' | b'{'));
        if before > b' ' && !clings {
            text[end] = b' ';
            end += 1;
        }
        before = byte;
    }
    end - usize::from(end > start && text[end - 1] == b' ')
}

/// Takes the lowest bit; its place.
pub fn take_lowest(bits: &mut u64) -> usize {
    let place = bits.trailing_zeros() as usize;
    *bits &= bits.wrapping_sub(1);
    place
}

/// Bytes as text, replacement characters where they are no UTF-8.
pub fn in_utf8(bytes: &[u8]) -> Cow<'_, str> {
    match simdutf8::basic::from_utf8(bytes) {
        Ok(text) => text.into(), // from_utf8_lossy takes ten times as long to find that out
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

/// Text of a page, which is valid.
pub fn owned(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

/// The same without a copy.
pub fn owned_whole(text: Vec<u8>) -> String {
    String::from_utf8(text).unwrap_or_else(|error| owned(error.as_bytes()))
}

fn clings_to_left(byte: u8) -> bool {
    matches!(byte, b'.' | b',' | b';' | b':' | b'!' | b'?' | b')' | b']' | b'}' | b'%' | b'\'')
}

/// Sum of the codes, sum of their squares, number of distinct characters, number of characters.
pub fn codes(text: &str) -> (u64, u64, u64, u64) {
    let mut counts = [0u64; 128];
    let (mut total, mut squares, mut length) = (0u64, 0u64, 0u64);
    let mut beyond: Vec<u32> = Vec::new();
    if text.is_ascii() {
        // By turns into four tables: to count a letter again right after it was counted takes several cycles.
        let mut tables = [[0u32; 128]; 4];
        for four in text.as_bytes().chunks(4) {
            for (table, byte) in tables.iter_mut().zip(four) {
                table[(byte & 127) as usize] += 1;
            }
        }
        for (code, count) in counts.iter_mut().enumerate() {
            *count = tables.iter().map(|table| u64::from(table[code])).sum();
        }
    } else {
        for character in text.chars() {
            let code = character as u32;
            if code < 128 {
                counts[code as usize] += 1;
            } else {
                beyond.push(code);
            }
        }
    }
    let mut distinct = 0;
    for (code, &count) in counts.iter().enumerate() {
        let code = code as u64;
        distinct += u64::from(count > 0);
        total += code * count;
        squares += code * code * count;
        length += count;
    }
    length += beyond.len() as u64;
    for &code in &beyond {
        total += u64::from(code);
        squares += u64::from(code) * u64::from(code);
    }
    beyond.sort_unstable();
    beyond.dedup();
    (total, squares, distinct + beyond.len() as u64, length)
}
