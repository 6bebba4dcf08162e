//! From the links of a page to the URLs that a crawl asks for: which of them are followed, and where they lead.
//!
//! What nearly every href is made of is joined here, byte by byte, by the WHATWG URL standard and normalised as
//! `lycosa.web.url` says. Whatever could need more of the standard (hosts beyond plain lower-case names, tabs and line
//! breaks, backslashes, escaped dots) is left to the caller, who asks a whole parser: one truth for what is odd.

use crate::followed::texts_of;
use crate::page::{KIND_A, KIND_AREA, KIND_FRAME, KIND_IFRAME, KIND_IMG, KIND_LINK, KIND_REFRESH};
use crate::text::is_space;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

/// Longer text is no link.
const MAX_INPUT_BYTES: usize = 16_384;
/// From so many links on other threads may run meanwhile.
pub const MANY_LINKS: usize = 1_000;
/// Of `<link>`; the other relations are for rendering.
const FOLLOWED_RELS: [&str; 4] = ["canonical", "alternate", "next", "prev"];

const KEEP: u8 = 0;
const ESCAPE: u8 = 1; // written as %XX
const CHECK: u8 = 2; // a percent sign
const REFUSE: u8 = 3; // changes more than itself

const IN_PATH: [u8; 256] = bytes_in(b" \"<>`{}^", b"\\#?");
const IN_QUERY: [u8; 256] = bytes_in(b" \"<>'", b"#");

/// What becomes of each byte: these are escaped, and so are controls and what is beyond ASCII; those refused.
const fn bytes_in(escaped: &[u8], refused: &[u8]) -> [u8; 256] {
    let mut table = [KEEP; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'\t' | b'\n' | b'\r' => REFUSE, // the parser drops these three
            b'%' => CHECK,
            known if has(refused, known) => REFUSE,
            known if known < 0x20 || known >= 0x7f || has(escaped, known) => ESCAPE,
            _ => KEEP,
        };
        byte += 1;
    }
    table
}

const fn has(bytes: &[u8], byte: u8) -> bool {
    match bytes {
        [first, rest @ ..] => *first == byte || has(rest, byte),
        [] => false,
    }
}

/// Where a reference leads.
#[derive(Clone, Copy, PartialEq)]
pub enum Joined {
    /// To the URL that was written.
    Url,
    /// To nothing that can be fetched over http and kept.
    Nowhere,
    /// Only a whole parser can tell.
    Odd,
}

/// What the hrefs of a page are joined with: a normalised URL.
pub struct Base<'a> {
    text: &'a [u8],
    scheme: usize, // where it ends, before the colon
    origin: usize, // where it ends and the path begins
    path: usize,
    folder: usize,
}

struct Refused;

impl<'a> Base<'a> {
    pub fn new(text: &'a str) -> Option<Base<'a>> {
        let text = text.as_bytes();
        let scheme = if text.starts_with(b"https://") { 5 } else { 4 };
        if scheme == 4 && !text.starts_with(b"http://") {
            return None;
        }
        let origin = scheme + 3 + text[scheme + 3..].iter().position(|&b| b == b'/')?;
        let path = text.iter().position(|&b| b == b'?').unwrap_or(text.len());
        let folder = text[..path].iter().rposition(|&b| b == b'/')? + 1;
        (folder > origin && text.is_ascii()).then_some(Base { text, scheme, origin, path, folder })
    }

    /// Writes the URL of a reference without fragment to the end of `out`, if that is `Joined::Url`.
    pub fn join(&self, stem: &str, max_bytes: usize, out: &mut Vec<u8>) -> Joined {
        let start = out.len();
        let joined = match self.write(stem.as_bytes(), out) {
            Ok(true) if out.len() - start <= max_bytes => return Joined::Url,
            Ok(_) => Joined::Nowhere,
            Err(Refused) => Joined::Odd,
        };
        out.truncate(start);
        joined
    }

    /// Whether there is a URL at all; what was written is of no use where there is none.
    fn write(&self, stem: &[u8], out: &mut Vec<u8>) -> Result<bool, Refused> {
        if stem.len() > MAX_INPUT_BYTES {
            return Ok(false);
        }
        let [first, ..] = stem else {
            out.extend_from_slice(self.text);
            return Ok(true);
        };
        if *first <= b' ' || stem[stem.len() - 1] <= b' ' {
            return Err(Refused);
        }
        if first.is_ascii_alphabetic() {
            let end = stem.iter().position(|&b| !is_in_scheme(b)).unwrap_or(0);
            if stem[end] == b':' {
                let scheme = &stem[..end];
                return match stem[end + 1..].strip_prefix(b"//") {
                    Some(rest) if scheme == b"http" || scheme == b"https" => self.write_absolute(scheme, rest, out),
                    _ if scheme.eq_ignore_ascii_case(b"http") || scheme.eq_ignore_ascii_case(b"https") => Err(Refused),
                    _ => Ok(false),
                };
            }
        }
        if let Some(rest) = stem.strip_prefix(b"//") {
            return self.write_absolute(&self.text[..self.scheme], rest, out);
        }
        let root = out.len() + self.origin;
        match first {
            b'?' => {
                out.extend_from_slice(&self.text[..self.path]);
                push_bytes(stem, &IN_QUERY, out)?;
            }
            b'/' => {
                out.extend_from_slice(&self.text[..=self.origin]);
                push_path(&stem[1..], root, out)?;
            }
            _ => {
                out.extend_from_slice(&self.text[..self.folder]);
                push_path(stem, root, out)?;
            }
        }
        Ok(true)
    }

    /// A URL with a host; `rest` is what follows the slashes.
    fn write_absolute(&self, scheme: &[u8], rest: &[u8], out: &mut Vec<u8>) -> Result<bool, Refused> {
        let end = rest.iter().position(|b| matches!(b, b'/' | b'?')).unwrap_or(rest.len());
        let own = self.scheme + 3..self.origin;
        let is_own = rest[..end] == self.text[own] && scheme == &self.text[..self.scheme];
        out.extend_from_slice(scheme);
        out.extend_from_slice(b"://");
        if is_own {
            out.extend_from_slice(&rest[..end]);
        } else {
            push_authority(scheme, &rest[..end], out)?;
        }
        let root = out.len();
        out.push(b'/');
        match rest.get(end) {
            Some(b'/') => push_path(&rest[end + 1..], root, out)?,
            Some(_) => push_bytes(&rest[end..], &IN_QUERY, out)?,
            None => {}
        }
        Ok(true)
    }
}

fn is_in_scheme(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')
}

/// Appends host and port: plain names in lower case only, and a port that is written as the standard writes it.
fn push_authority(scheme: &[u8], authority: &[u8], out: &mut Vec<u8>) -> Result<(), Refused> {
    let end = memchr::memchr(b':', authority).unwrap_or(authority.len());
    let (host, port) = authority.split_at(end);
    if !is_plain_host(host) {
        return Err(Refused);
    }
    out.extend_from_slice(host);
    let default: &[u8] = if scheme == b"http" { b":80" } else { b":443" };
    match port {
        [] => Ok(()),
        _ if port == default => Ok(()),
        [_, b'1'..=b'9', more @ ..] if more.len() < 4 && more.iter().all(u8::is_ascii_digit) => {
            out.extend_from_slice(port);
            Ok(())
        }
        _ => Err(Refused), // empty, with zeros in front, or with five digits and perhaps too many
    }
}

/// Names that no rule for hosts changes or refuses: no number at the end, as addresses have, and no punycode.
fn is_plain_host(host: &[u8]) -> bool {
    let mut is_plain = true;
    let mut last: &[u8] = b"";
    for label in host.split(|&b| b == b'.') {
        is_plain &= !label.is_empty() && !label.starts_with(b"xn--");
        is_plain &= label.iter().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_'));
        last = label;
    }
    is_plain && !last[0].is_ascii_digit()
}

/// Appends a path and its query to a folder, which `out` ends with; the path begins at `root` with its first slash.
fn push_path(path: &[u8], root: usize, out: &mut Vec<u8>) -> Result<(), Refused> {
    let mut rest = path;
    let mut is_after_dots = true; // a look ahead goes to the next dots at most: all of them together are linear
    loop {
        if is_after_dots && is_plain(rest) {
            out.extend_from_slice(rest);
            return Ok(());
        }
        let end = rest.iter().position(|b| matches!(b, b'/' | b'?')).unwrap_or(rest.len());
        is_after_dots = matches!(&rest[..end], b"." | b"..");
        match &rest[..end] {
            b"." => {}
            b".." => {
                let folder = out.len() - 1;
                let above = out[root..folder].iter().rposition(|&b| b == b'/').map_or(0, |n| n + 1);
                out.truncate(root + above.max(1));
            }
            segment => {
                push_bytes(segment, &IN_PATH, out)?;
                if rest.get(end) == Some(&b'/') {
                    out.push(b'/');
                }
            }
        }
        match rest.get(end) {
            Some(b'/') => rest = &rest[end + 1..],
            Some(_) => return push_bytes(&rest[end..], &IN_QUERY, out),
            None => return Ok(()),
        }
    }
}

/// Whether a path stays as it is: no segment begins with a dot, and no byte is changed. Most are such, at the latest
/// after their first dots.
fn is_plain(path: &[u8]) -> bool {
    let mut before = b'/';
    for &byte in path {
        if IN_PATH[byte as usize] != KEEP || (byte == b'.' && before == b'/') {
            return false;
        }
        before = byte;
    }
    true
}

/// Appends a path's segment, or a query with its question mark.
fn push_bytes(bytes: &[u8], table: &[u8; 256], out: &mut Vec<u8>) -> Result<(), Refused> {
    let mut rest = bytes;
    loop {
        let kept = rest.iter().position(|&b| table[b as usize] != KEEP).unwrap_or(rest.len());
        out.extend_from_slice(&rest[..kept]);
        rest = &rest[kept..];
        let Some(&byte) = rest.first() else { return Ok(()) };
        let mut length = 1;
        match table[byte as usize] {
            REFUSE => return Err(Refused),
            ESCAPE => out.extend_from_slice(&[b'%', hex_digit(byte >> 4), hex_digit(byte & 15)]),
            _ => match rest {
                [_, b'2', b'e' | b'E', ..] if table[b'?' as usize] == REFUSE => return Err(Refused), // perhaps a dot segment
                [_, high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                    out.extend_from_slice(&[b'%', high.to_ascii_uppercase(), low.to_ascii_uppercase()]);
                    length = 3;
                }
                _ => out.push(b'%'),
            },
        }
        rest = &rest[length..];
    }
}

fn hex_digit(number: u8) -> u8 {
    b"0123456789ABCDEF"[number as usize]
}

/// A href without its fragment; unchanged where the parser would strip something from what is left.
pub fn stem_of(href: &str) -> &str {
    match memchr::memchr(b'#', href.as_bytes()) {
        Some(at) if at == 0 || href.as_bytes()[at - 1] > b' ' => &href[..at],
        _ => href,
    }
}

/// Which links are followed: images, too; not those marked nofollow; how many; and URLs of how many bytes.
#[derive(Clone, Copy, FromPyObject)]
pub struct Rules(bool, bool, usize, usize);

impl Rules {
    pub fn most(self) -> usize {
        self.2
    }

    pub fn max_bytes(self) -> usize {
        self.3
    }

    pub fn follow(self, kind: u8, rel: &str) -> bool {
        let Rules(images, obeys_nofollow, ..) = self;
        let has = |word: &str| rel.split(is_space).any(|each| each.eq_ignore_ascii_case(word));
        match kind {
            KIND_A | KIND_AREA | KIND_IFRAME | KIND_FRAME | KIND_REFRESH => {
                !(obeys_nofollow && !rel.is_empty() && has("nofollow"))
            }
            KIND_IMG => images,
            KIND_LINK => !rel.is_empty() && FOLLOWED_RELS.into_iter().any(has),
            _ => false,
        }
    }
}

/// The URL that the hrefs of a page are joined with; None if only a whole parser can tell.
pub fn base_of(url: &str, base_href: Option<&str>) -> Option<String> {
    if base_href.is_some_and(|href| href.len() > MAX_INPUT_BYTES) {
        return None;
    }
    let mut found = Vec::new();
    match Base::new(url)?.join(stem_of(base_href.unwrap_or("")), usize::MAX, &mut found) {
        Joined::Url => String::from_utf8(found).ok(),
        Joined::Nowhere => Some(url.to_string()),
        Joined::Odd => None,
    }
}

/// The URLs of many references: their texts one after another, and of each what it is and where its text ends.
pub struct Urls {
    text: String,
    ends: Vec<(Joined, u32)>,
}

impl Urls {
    pub fn join<'a>(base: &Base, stems: impl Iterator<Item = &'a str>, max_bytes: usize) -> Urls {
        let (mut text, mut ends) = (Vec::new(), Vec::new());
        for stem in stems {
            let joined = base.join(stem, max_bytes, &mut text);
            ends.push((joined, text.len() as u32));
        }
        text.shrink_to_fit();
        ends.shrink_to_fit();
        Urls { text: String::from_utf8(text).unwrap_or_default(), ends } // it is ASCII
    }

    pub fn iter(&self) -> impl Iterator<Item = (Joined, &str)> {
        let mut start = 0;
        self.ends.iter().map(move |&(joined, end)| {
            let text = &self.text[start..end as usize];
            start = end as usize;
            (joined, text)
        })
    }

    /// Those of the references from `start` to `end` that lead somewhere.
    pub fn part(&self, start: usize, end: usize) -> impl Iterator<Item = &str> {
        let end = end.min(self.ends.len());
        let start = start.min(end);
        let mut at = if start == 0 { 0 } else { self.ends[start - 1].1 as usize };
        self.ends[start..end].iter().filter_map(move |&(joined, end)| {
            let text = &self.text[at..end as usize];
            at = end as usize;
            (joined == Joined::Url).then_some(text)
        })
    }

    /// By href in their order, without those that lead nowhere; None marks the odd ones, which are listed, too.
    pub fn by_href<'py>(&self, hrefs: &Bound<'py, PyTuple>) -> PyResult<ByHref<'py>> {
        let (found, odd) = (PyDict::new(hrefs.py()), PyList::empty(hrefs.py()));
        for (href, (joined, url)) in hrefs.iter_borrowed().zip(self.iter()) {
            match joined {
                Joined::Url => found.set_item(href, url)?,
                Joined::Nowhere => {}
                Joined::Odd => {
                    found.set_item(href, hrefs.py().None())?;
                    odd.append(href)?;
                }
            }
        }
        Ok((found, odd))
    }
}

pub type ByHref<'py> = (Bound<'py, PyDict>, Bound<'py, PyList>);

/// Where hrefs lead, see `lycosa.web.url.join_map`; None where the twin has to tell.
#[pyfunction]
pub fn join_hrefs<'py>(base: &str, hrefs: Bound<'py, PyTuple>, max_bytes: usize) -> PyResult<Option<ByHref<'py>>> {
    let (Some(base), Some(texts)) = (Base::new(base), texts_of(&hrefs)) else { return Ok(None) };
    let urls = Urls::join(&base, texts.iter().map(|href| stem_of(href)), max_bytes);
    urls.by_href(&hrefs).map(Some)
}
