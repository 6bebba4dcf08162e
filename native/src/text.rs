//! Text: white space collapsed as Python and as the analyser do it, and the text codes.

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

/// Words joined by single spaces.
pub fn collapsed(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    push_collapsed(&mut out, text);
    out.truncate(out.trim_end_matches(' ').len());
    out
}

/// Appends text, each run of white space as one space; none at the start of `out` and none after another.
pub fn push_collapsed(out: &mut String, text: &str) {
    if text.is_ascii() {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            let word = rest.iter().position(|&b| is_space(b as char)).unwrap_or(rest.len());
            // Only ASCII is looked at here.
            out.push_str(std::str::from_utf8(&rest[..word]).unwrap_or(""));
            rest = &rest[word..];
            let spaces = rest.iter().position(|&b| !is_space(b as char)).unwrap_or(rest.len());
            if spaces > 0 {
                push_space(out);
            }
            rest = &rest[spaces..];
        }
        return;
    }
    for character in text.chars() {
        if is_space(character) {
            push_space(out);
        } else {
            out.push(character);
        }
    }
}

pub fn push_space(out: &mut String) {
    if !out.is_empty() && !out.ends_with(' ') {
        out.push(' ');
    }
}

pub const ANCHOR_LENGTH: usize = 256;

/// The first `ANCHOR_LENGTH` characters of collapsed text, without white space at the end.
pub fn shortened(collapsed: &str) -> &str {
    let collapsed = collapsed.trim_matches(' ');
    match collapsed.char_indices().nth(ANCHOR_LENGTH) {
        Some((end, _)) => collapsed[..end].trim_end_matches(' '),
        None => collapsed,
    }
}

/// Pieces of text joined by NUL: white space and controls as one space each run, and none where punctuation clings.
/// Returns the text, and the range of it between `\x01` and `\x02`, or all.
pub fn collapse(pieces: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let mut out: Vec<u8> = Vec::with_capacity(pieces.len());
    let mut main: (Option<usize>, Option<usize>) = (None, None);
    let mut before = b' ';
    let mut at = 0;
    while at < pieces.len() {
        let byte = pieces[at];
        if byte > b' ' {
            let end = pieces[at..].iter().position(|&b| b <= b' ').map_or(pieces.len(), |n| at + n);
            out.extend_from_slice(&pieces[at..end]);
            before = pieces[end - 1];
            at = end;
            continue;
        }
        if byte == 1 && main.0.is_none() {
            main.0 = Some(out.len());
        } else if byte == 2 {
            main.1 = Some(out.len());
        }
        let clings = byte == 0
            && (clings_to_left(pieces.get(at + 1).copied().unwrap_or(b' ')) || matches!(before, b'(' | b'[' | b'{'));
        if before > b' ' && !clings {
            out.push(b' ');
        }
        before = byte;
        at += 1;
    }
    let whole = strip_spaces(&out).to_vec();
    match main {
        (Some(start), Some(end)) if start < end || (start == end) => {
            let part = strip_spaces(&out[start..end]).to_vec();
            (whole, part)
        }
        _ => {
            let copy = whole.clone();
            (whole, copy)
        }
    }
}

pub fn clings_to_left(byte: u8) -> bool {
    matches!(byte, b'.' | b',' | b';' | b':' | b'!' | b'?' | b')' | b']' | b'}' | b'%' | b'\'')
}

fn strip_spaces(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|&b| b != b' ').unwrap_or(text.len());
    let end = text.iter().rposition(|&b| b != b' ').map_or(start, |n| n + 1);
    &text[start..end]
}

/// Sum of the codes, sum of their squares, number of distinct characters, number of characters.
pub fn codes(text: &str) -> (u64, u64, u64, u64) {
    let mut counts = [0u64; 128];
    let (mut total, mut squares, mut length) = (0u64, 0u64, 0u64);
    let mut beyond: Vec<u32> = Vec::new();
    if text.is_ascii() {
        for &byte in text.as_bytes() {
            counts[byte as usize] += 1;
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
