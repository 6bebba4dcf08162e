//! The links of a page that are followed: where they lead, as the state keeps them, and as they are looked up. Python gets
//! strings of them only where it asks for some.

use crate::columns::url_number;
use crate::seen::{recent_hash, Seeded};
use crate::url::{stem_of, Base, ByHref, Joined, Rules, Urls, MANY_LINKS};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};
use std::collections::hash_map::{Entry, HashMap};
use xxhash_rust::xxh3::xxh3_64;

/// Columns of links; see `lycosa.web.links.Links`.
pub struct Columns<'a> {
    pub hrefs: Vec<&'a str>,
    pub kinds: &'a [u8],
    pub anchors: Vec<&'a str>,
    pub rels: Vec<&'a str>,
}

/// Where in the columns a link stands first and has words first, and how long its href is without fragment.
struct Place {
    first: usize,
    words: usize,
    length: usize,
}

/// The links that are followed, each href once, in the order in which they stand first.
fn places_of(links: &Columns, rules: Rules) -> Vec<Place> {
    let most = rules.most();
    let many = links.hrefs.len().min(most);
    let mut found: Vec<Place> = Vec::with_capacity(many);
    let mut known: HashMap<&str, usize, Seeded> = HashMap::with_capacity_and_hasher(many, Seeded);
    let rest = links.anchors.iter().zip(&links.rels);
    for (place, ((href, &kind), (words, rel))) in links.hrefs.iter().zip(links.kinds).zip(rest).enumerate() {
        if !rules.follow(kind, rel) {
            continue;
        }
        let stem = stem_of(href);
        match known.entry(stem) {
            Entry::Vacant(_) if found.len() == most => break,
            Entry::Vacant(entry) => {
                entry.insert(found.len());
                found.push(Place { first: place, words: place, length: stem.len() });
            }
            Entry::Occupied(entry) => {
                let before = &mut found[*entry.get()];
                if links.anchors[before.words].is_empty() && !words.is_empty() {
                    before.words = place;
                }
            }
        }
    }
    found
}

/// Where a text lies in the packed row.
type Part = (u32, u32);

/// What is looked up of a link: among the recent URLs, and in the link index its number and that of its words.
#[derive(Clone, Copy)]
pub struct Keys {
    pub recent: u64,
    pub number: u64,
    pub words: u64,
}

#[pyclass(frozen, module = "lycosa_native")]
pub struct Followed {
    row: Vec<u8>, // see `lycosa.store.page_rows.LinkRow`
    hrefs: Vec<Part>,
    anchors: Vec<Part>,
    kinds: Vec<u8>,
    urls: Urls,
    keys: Vec<Keys>,
}

impl Followed {
    pub fn of(links: &Columns, base: &Base, base_href: &str, rules: Rules) -> Followed {
        let places = places_of(links, rules);
        let stems = || places.iter().map(|place| &links.hrefs[place.first][..place.length]);
        let kinds: Vec<u8> = places.iter().map(|place| links.kinds[place.first]).collect();
        let (mut row, mut hrefs, mut anchors) = (vec![0x94], Vec::new(), Vec::new());
        push_size(&mut row, places.len(), [0x90, 0xdc, 0xdd], 15);
        hrefs.extend(stems().map(|stem| push_text(&mut row, stem)));
        push_text(&mut row, base_href);
        push_long(&mut row, kinds.len(), [0xc4, 0xc5, 0xc6]);
        row.extend_from_slice(&kinds);
        push_size(&mut row, places.len(), [0x90, 0xdc, 0xdd], 15);
        anchors.extend(places.iter().map(|place| push_text(&mut row, links.anchors[place.words])));
        let urls = Urls::join(base, stems(), rules.max_bytes());
        let words = places.iter().map(|place| xxh3_64(links.anchors[place.words].as_bytes()));
        let keys = urls.iter().zip(words).map(|((_, url), words)| Keys {
            recent: recent_hash(url),
            number: url_number(url),
            words,
        });
        let keys = keys.collect();
        row.shrink_to_fit();
        Followed { row, hrefs, anchors, kinds, urls, keys }
    }

    fn text(&self, part: Part) -> &str {
        std::str::from_utf8(&self.row[part.0 as usize..part.1 as usize]).unwrap_or("")
    }

    /// The links that lead somewhere: what is looked up, and the URLs.
    pub fn leading(&self) -> impl Iterator<Item = (Keys, &str)> {
        self.urls
            .iter()
            .zip(&self.keys)
            .filter(|((joined, _), _)| *joined == Joined::Url)
            .map(|((_, url), &keys)| (keys, url))
    }

    /// The same with their kinds and words.
    pub fn indexed(&self) -> impl Iterator<Item = (Keys, u8, &str)> {
        let words = self.anchors.iter().map(|&part| self.text(part));
        let rest = self.kinds.iter().zip(words).zip(self.urls.iter());
        rest.zip(&self.keys)
            .filter(|((_, (joined, _)), _)| *joined == Joined::Url)
            .map(|(((&kind, words), _), &keys)| (keys, kind, words))
    }
}

#[pymethods]
impl Followed {
    fn __len__(&self) -> usize {
        self.hrefs.len()
    }

    /// How many lead somewhere, and how many are left to the parser of URLs.
    fn counts(&self) -> (usize, usize) {
        let count = |wanted| self.urls.iter().filter(|(joined, _)| *joined == wanted).count();
        (count(Joined::Url), count(Joined::Odd))
    }

    fn row<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.row)
    }

    fn columns<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyBytes>, Bound<'py, PyTuple>)> {
        let texts = |parts: &[Part]| PyTuple::new(py, parts.iter().map(|&part| self.text(part)));
        Ok((texts(&self.hrefs)?, PyBytes::new(py, &self.kinds), texts(&self.anchors)?))
    }

    /// Where those links lead that stand from `start` to `end`.
    fn urls<'py>(&self, py: Python<'py>, start: usize, end: usize) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.urls.part(start, end).collect::<Vec<_>>())
    }

    /// Where the hrefs lead, see `join_hrefs`.
    fn joined<'py>(&self, hrefs: &Bound<'py, PyTuple>) -> PyResult<ByHref<'py>> {
        self.urls.by_href(hrefs)
    }
}

fn push_size(row: &mut Vec<u8>, size: usize, [short, two, four]: [u8; 3], most: usize) {
    if size <= most {
        row.push(short | size as u8);
    } else if let Ok(size) = u16::try_from(size) {
        row.push(two);
        row.extend_from_slice(&size.to_be_bytes());
    } else {
        row.push(four);
        row.extend_from_slice(&(size as u32).to_be_bytes());
    }
}

/// The size of what has a form for sizes of one byte, too.
fn push_long(row: &mut Vec<u8>, size: usize, [one, two, four]: [u8; 3]) {
    match u8::try_from(size) {
        Ok(size) => row.extend_from_slice(&[one, size]),
        Err(_) => push_size(row, size, [0, two, four], 0),
    }
}

fn push_text(row: &mut Vec<u8>, text: &str) -> Part {
    match text.len() {
        size @ ..32 => row.push(0xa0 | size as u8),
        size => push_long(row, size, [0xd9, 0xda, 0xdb]),
    }
    let start = row.len() as u32;
    row.extend_from_slice(text.as_bytes());
    (start, row.len() as u32)
}

/// The columns of a page's links: those that are followed, and where they lead. See `lycosa.web.url.follow_links`.
#[pyfunction]
pub fn follow_links<'py>(
    py: Python<'py>,
    base: &str,
    base_href: &str,
    columns: (Bound<'py, PyTuple>, Bound<'py, PyBytes>, Bound<'py, PyTuple>, Bound<'py, PyTuple>),
    rules: Rules,
) -> Option<Followed> {
    let (hrefs, kinds, anchors, rels) = columns;
    let base = Base::new(base)?;
    let (texts, words, relations) = (texts_of(&hrefs)?, texts_of(&anchors)?, texts_of(&rels)?);
    let links = Columns { hrefs: texts, kinds: kinds.as_bytes(), anchors: words, rels: relations };
    let work = || Followed::of(&links, &base, base_href, rules);
    Some(if links.hrefs.len() < MANY_LINKS { work() } else { py.detach(work) })
}

/// The texts of strings; None where one of them has half of a surrogate pair.
pub fn texts_of<'a>(strings: &'a Bound<'_, PyTuple>) -> Option<Vec<&'a str>> {
    strings.iter_borrowed().map(|text| FromPyObject::extract(text).ok()).collect()
}
