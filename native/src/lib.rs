//! The page kernel of Lycosa: one pass over a page, everything that a crawl keeps of it.

mod charset;
mod columns;
mod digest;
mod entities;
mod gzip;
mod hazard;
mod page;
mod readable;
mod scan;
mod seen;
mod tags;
mod terms;
mod text;
mod tree;
mod url;
mod warc;

use page::Page;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use std::borrow::Cow;
use std::panic::{catch_unwind, AssertUnwindSafe};
use tree::Tree;
use xxhash_rust::xxh3::xxh3_128;

/// Counts up, here and in src/lycosa/web/kernel.py, with every change of what a function takes or gives.
const CONTRACT: u32 = 13;

struct Read {
    page: Page,
    links: page::Links,
    visible: Vec<u8>,
    codes: (u64, u64, u64, u64),
    digest: [u8; 16],
    readable: Option<(String, Vec<String>)>,
    following: Option<url::Following>,
    is_cut: bool,
}

/// Reads a document in UTF-8; `follow` is its URL, and which of its links are wanted.
fn read(body: &[u8], is_xml: bool, wants_main: bool, follow: Option<(String, url::Rules)>) -> Option<Read> {
    let body = if is_xml { scan::without_self_closed(body) } else { body.into() };
    let length = hazard::safe_length(&body);
    let is_cut = length < body.len();
    let body = match std::str::from_utf8(&body[..length]) {
        Ok(text) => Cow::Borrowed(text), // from_utf8_lossy takes ten times as long to find that out
        Err(_) => String::from_utf8_lossy(&body[..length]),
    };
    let mut page = Page::new();
    page.outline = wants_main.then(readable::Outline::default);
    let mut tree = Tree::new(page);
    scan::scan(body.as_bytes(), &mut tree);
    if tree.needs_tree {
        return None;
    }
    let mut page = tree.page;
    let (visible, main) = page.texts();
    let links = page.links();
    let following = follow.and_then(|(url, rules)| {
        let base = url::base_of(&url, page.base_href.as_deref())?;
        Some(url::Following::of(&links.columns(), &url::Base::new(&base)?, rules))
    });
    let codes = text::codes(std::str::from_utf8(&visible).unwrap_or(""));
    let digest = xxh3_128(&main).to_be_bytes();
    let readable = page.readable();
    Some(Read { page, links, visible, codes, digest, readable, following, is_cut })
}

/// A panic is a fault of ours, which Rust shows on standard error; its page is read by the parser that builds a tree.
fn guarded<T>(work: impl FnOnce() -> Option<T>) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(None)
}

/// Whether a panic is caught, for tests.
#[pyfunction]
fn catches_panic(py: Python<'_>) -> bool {
    py.detach(|| guarded::<()>(|| panic!("a test asked for this")).is_none())
}

/// Reads an HTML document; None if it needs a parser that builds a tree.
#[pyfunction]
#[pyo3(signature = (body, encoding, is_xml = false, wants_main = false, follow = None))]
fn analyse_html<'py>(
    py: Python<'py>,
    body: &Bound<'py, PyBytes>,
    encoding: &str,
    is_xml: bool,
    wants_main: bool,
    follow: Option<(String, url::Rules)>,
) -> PyResult<Option<Bound<'py, PyTuple>>> {
    let (bytes, encoding) = (body.as_bytes(), charset::named(encoding));
    let work = || guarded(|| read(&charset::to_utf8(bytes, encoding), is_xml, wants_main, follow));
    let Some(read) = py.detach(work) else { return Ok(None) };
    let page = read.page;
    let language = page.language();
    let robots = PyTuple::new(py, page.robots)?;
    let head = (page.title, page.description, page.canonical, language, page.base_href, robots);
    let (hrefs, anchors) = (PyTuple::new(py, read.links.hrefs())?, PyTuple::new(py, read.links.anchors())?);
    let following = read.following.map(|found| found.to_python(&hrefs, &read.links.kinds, &anchors)).transpose()?;
    let links = (hrefs, PyBytes::new(py, &read.links.kinds), anchors, PyTuple::new(py, read.links.rels())?);
    let headings = PyTuple::new(py, page.headings)?;
    let text =
        (PyBytes::new(py, &read.visible), headings, page.first, page.last, read.codes, PyBytes::new(py, &read.digest));
    let readable = match read.readable {
        Some((main, headings)) => Some((main, PyTuple::new(py, headings)?)),
        None => None,
    };
    Ok(Some((head, links, text, readable, following, read.is_cut).into_pyobject(py)?))
}

/// How many of a body's bytes can be parsed safely, see `lycosa.web.hazard`.
#[pyfunction]
fn safe_length(py: Python<'_>, body: &[u8]) -> usize {
    py.detach(|| hazard::safe_length(body))
}

/// `part in body`, ten times as fast as that of Python.
#[pyfunction]
fn contains(body: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(body, part).is_some()
}

#[pymodule]
fn lycosa_native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("CONTRACT", CONTRACT)?;
    module.add("ISAL_MAJOR_VERSION", gzip::MAJOR_VERSION)?;
    module.add_class::<seen::RecentUrls>()?;
    module.add_function(wrap_pyfunction!(columns::link_columns, module)?)?;
    module.add_function(wrap_pyfunction!(columns::hash_page, module)?)?;
    module.add_class::<terms::TermMap>()?;
    module.add_function(wrap_pyfunction!(readable::simhash, module)?)?;
    module.add("MAIN_TEXT_VERSION", readable::VERSION)?;
    module.add_function(wrap_pyfunction!(safe_length, module)?)?;
    module.add_function(wrap_pyfunction!(contains, module)?)?;
    module.add_function(wrap_pyfunction!(analyse_html, module)?)?;
    module.add_function(wrap_pyfunction!(catches_panic, module)?)?;
    module.add_function(wrap_pyfunction!(charset::detect_charset, module)?)?;
    module.add_function(wrap_pyfunction!(charset::to_utf8_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(charset::escaped_query, module)?)?;
    module.add_function(wrap_pyfunction!(url::join_hrefs, module)?)?;
    module.add_function(wrap_pyfunction!(url::follow_links, module)?)?;
    module.add_function(wrap_pyfunction!(digest::document_digests, module)?)?;
    module.add_class::<warc::MemberWriter>()
}
