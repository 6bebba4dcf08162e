//! The page kernel of Lycosa: one pass over a page, everything that a crawl keeps of it.

mod beside;
mod charset;
mod columns;
mod comparable;
mod digest;
mod entities;
mod followed;
mod gzip;
mod hazard;
mod markdown;
mod near;
mod outline;
mod page;
mod scan;
mod seen;
mod tags;
mod terms;
mod text;
mod together;
mod tree;
mod url;
mod warc;

use memchr::memmem;
use outline::Outline;
use page::Page;
use pyo3::exceptions::PyException;
use pyo3::panic::PanicException;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBytes, PyTuple};
use std::panic::{catch_unwind, AssertUnwindSafe};
use together::scan_together;
use tree::Tree;

/// Counts up, here and in src/lycosa/web/kernel.py, with every change of what a function takes or gives.
const CONTRACT: u32 = 24;
/// What marks of volatile parts begin with.
const VOLATILE: &[u8] = b"data-vol";
/// Of a longer document the page and the outline are made one after the other: together they take more memory.
const TOGETHER_BYTES: usize = 1 << 20;

/// What was read. What it was read with is let go by the thread that made it.
struct Read {
    head: (Option<String>, Option<String>, Option<String>, Option<String>, Option<String>),
    robots: Vec<String>,
    headings: Vec<(u8, String)>,
    first: String,
    last: String,
    links: page::Links,
    visible: Vec<u8>,
    codes: (u64, u64, u64, u64),
    digest: [u8; 16],
    readable: Option<Readable>,
    simhash: Vec<u8>,
    followed: Option<followed::Followed>,
    is_cut: bool,
    is_volatile: bool,
}

/// Encoding, whether it is XML, whether the main text and a SimHash are wanted; its URL and which of its links are.
type Html = (PyBackedStr, bool, bool, bool, Option<(PyBackedStr, url::Rules)>);

/// Reads a document. A panic is a fault of ours, which Rust shows on standard error; the page then needs a tree.
fn read(bytes: &[u8], html: &Html) -> Option<Read> {
    guarded(|| {
        read_utf8(&charset::to_utf8(bytes, charset::named(&html.0)), html, memmem::find(bytes, VOLATILE).is_some())
    })
}

fn read_utf8(body: &[u8], (_, is_xml, wants_main, wants_simhash, follow): &Html, is_volatile: bool) -> Option<Read> {
    let body = if *is_xml { scan::without_self_closed(body) } else { body.into() };
    let length = hazard::safe_length(&body);
    let is_cut = length < body.len();
    let text = text::in_utf8(&body[..length]);
    let mut page = Page::new(text.len());
    page.comparable = wants_simhash.then(comparable::Comparable::default);
    let (mut tree, mut outline) = (Tree::new(page), None);
    if *wants_main && !is_cut && text.len() < TOGETHER_BYTES && outline::is_clean(text.as_bytes()) {
        (tree, outline) = scan_together(text.as_bytes(), tree, Outline::begun(text.as_bytes(), *is_xml, false));
    } else {
        scan::scan(text.as_bytes(), &mut tree);
    }
    if tree.needs_tree {
        return None;
    }
    let readable = match outline {
        Some(outline) => Some(readable_in(outline, false)),
        None => wants_main.then(|| readable_of(&body, *is_xml, false, false)),
    };
    let mut page = tree.page;
    let simhash = page.simhash();
    let (visible, digest) = page.texts();
    let links = page.links();
    let followed = follow.as_ref().and_then(|(url, rules)| {
        let (base_href, columns) = (page.base_href.as_deref(), links.columns());
        let base = url::base_of(url, base_href)?;
        Some(followed::Followed::of(&columns, &url::Base::new(&base)?, base_href.unwrap_or(""), *rules))
    });
    let codes = text::codes(simdutf8::basic::from_utf8(&visible).unwrap_or(""));
    let language = page.language();
    let Page { title, description, canonical, base_href, robots, headings, first, last, .. } = page;
    let head = (title, description, canonical, language, base_href);
    Some(Read {
        head,
        robots,
        headings,
        first,
        last,
        links,
        visible,
        codes,
        digest,
        readable,
        simhash,
        followed,
        is_cut,
        is_volatile,
    })
}

impl Read {
    fn into_python(self, py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
        let (title, description, canonical, language, base_href) = self.head;
        let head = (title, description, canonical, language, base_href, PyTuple::new(py, self.robots)?);
        let links = PageLinks { links: self.links };
        let headings = PyTuple::new(py, self.headings)?;
        let text = (
            PyBytes::new(py, &self.visible),
            headings,
            self.first,
            self.last,
            self.codes,
            PyBytes::new(py, &self.digest),
        );
        let (readable, simhash) = (self.readable, PyBytes::new(py, &self.simhash));
        (head, links, text, readable, simhash, self.followed, self.is_cut, self.is_volatile).into_pyobject(py)
    }
}

/// The links of a page as it has them. Python gets strings of them only where it asks for some.
#[pyclass(frozen, module = "lycosa_native")]
struct PageLinks {
    links: page::Links,
}

type LinkColumns<'py> = (Bound<'py, PyTuple>, Bound<'py, PyBytes>, Bound<'py, PyTuple>, Bound<'py, PyTuple>);

#[pymethods]
impl PageLinks {
    fn __len__(&self) -> usize {
        self.links.len()
    }

    /// Are all addresses?
    fn is_ascii(&self) -> bool {
        self.links.is_ascii()
    }

    fn kinds<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.links.kinds)
    }

    fn columns<'py>(&self, py: Python<'py>) -> PyResult<LinkColumns<'py>> {
        let found = self.links.columns();
        let (hrefs, anchors) = (PyTuple::new(py, found.hrefs)?, PyTuple::new(py, found.anchors)?);
        Ok((hrefs, PyBytes::new(py, found.kinds), anchors, PyTuple::new(py, found.rels)?))
    }
}

fn guarded<T>(work: impl FnOnce() -> Option<T>) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(None)
}

/// Panics, for tests; while a page is read, which then needs a tree, or at the border to Python.
#[pyfunction]
fn panic(py: Python<'_>, is_reading: bool) -> Option<()> {
    let fails = || panic!("a test asked for this");
    py.detach(|| if is_reading { guarded(fails) } else { fails() })
}

/// Reads an HTML document; None if it needs a parser that builds a tree.
#[pyfunction]
#[pyo3(signature = (body, encoding, is_xml = false, wants_main = false, wants_simhash = false, follow = None))]
fn analyse_html<'py>(
    py: Python<'py>,
    body: &Bound<'py, PyBytes>,
    encoding: PyBackedStr,
    is_xml: bool,
    wants_main: bool,
    wants_simhash: bool,
    follow: Option<(PyBackedStr, url::Rules)>,
) -> PyResult<Option<Bound<'py, PyTuple>>> {
    let (bytes, html) = (body.as_bytes(), (encoding, is_xml, wants_main, wants_simhash, follow));
    py.detach(|| read(bytes, &html)).map(|read| read.into_python(py)).transpose()
}

/// Title, main text (bytes for Python, which seldom needs its characters), headings, the canonical URL and the base as they are written, and Markdown if it is wanted.
type Readable = (String, Vec<u8>, Vec<String>, String, String, String);

fn readable_of(body: &[u8], is_xml: bool, leaves_unshown: bool, wants_markdown: bool) -> Readable {
    let body = outline::clean(body);
    readable_in(Outline::new(text::in_utf8(&body).as_bytes(), is_xml, leaves_unshown), wants_markdown)
}

fn readable_in(mut outline: Outline, wants_markdown: bool) -> Readable {
    let runs = outline.selection();
    let (text, headings) = outline.text_of(&runs);
    let markdown = if wants_markdown { markdown::markdown_of(&outline, &runs) } else { String::new() };
    (outline.title, text, headings, outline.canonical, outline.base_href, markdown)
}

/// What of an HTML document is for reading, see `lycosa.web.readable`.
#[pyfunction]
fn read_readable(
    py: Python<'_>,
    body: &[u8],
    encoding: &str,
    is_xml: bool,
    leaves_unshown: bool,
    wants_markdown: bool,
) -> Option<Readable> {
    py.detach(|| {
        guarded(|| {
            let body = charset::to_utf8(body, charset::named(encoding));
            let body = if is_xml { scan::without_self_closed(&body) } else { body };
            Some(readable_of(&body, is_xml, leaves_unshown, wants_markdown))
        })
    })
}

/// How many of a body's bytes can be parsed safely, see `lycosa.web.hazard`.
#[pyfunction]
fn safe_length(py: Python<'_>, body: &[u8]) -> usize {
    py.detach(|| hazard::safe_length(body))
}

#[pymodule]
fn lycosa_native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // A panic is an error like others: event loops only log what is no Exception.
    let (fault, exception) = (module.py().get_type::<PanicException>(), module.py().get_type::<PyException>());
    fault.setattr("__bases__", (exception,))?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("CONTRACT", CONTRACT)?;
    module.add("ISAL_MAJOR_VERSION", gzip::MAJOR_VERSION)?;
    module.add_class::<seen::RecentUrls>()?;
    module.add_function(wrap_pyfunction!(near::near_hashes, module)?)?;
    module.add_function(wrap_pyfunction!(columns::link_columns, module)?)?;
    module.add_function(wrap_pyfunction!(columns::hash_page, module)?)?;
    module.add_class::<terms::TermMap>()?;
    module.add_class::<terms::TellingWords>()?;
    module.add_function(wrap_pyfunction!(terms::identifiers, module)?)?;
    module.add_function(wrap_pyfunction!(comparable::simhash, module)?)?;
    module.add("MAIN_TEXT_VERSION", outline::VERSION)?;
    module.add_function(wrap_pyfunction!(read_readable, module)?)?;
    module.add_function(wrap_pyfunction!(safe_length, module)?)?;
    module.add_function(wrap_pyfunction!(analyse_html, module)?)?;
    module.add_function(wrap_pyfunction!(panic, module)?)?;
    module.add_function(wrap_pyfunction!(charset::detect_charset, module)?)?;
    module.add_function(wrap_pyfunction!(charset::to_utf8_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(url::join_hrefs, module)?)?;
    module.add_function(wrap_pyfunction!(followed::follow_links, module)?)?;
    module.add_function(wrap_pyfunction!(digest::document_digests, module)?)?;
    module.add_class::<warc::MemberWriter>()?;
    module.add_class::<beside::Readers>()
}
