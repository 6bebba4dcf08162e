//! The page kernel of Lycosa: one pass over a page, everything that a crawl keeps of it.

mod entities;
mod page;
mod scan;
mod tags;
mod text;
mod tree;

use page::Page;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use tree::Tree;
use xxhash_rust::xxh3::xxh3_128;

struct Read {
    page: Page,
    links: page::Links,
    visible: Vec<u8>,
    codes: (u64, u64, u64, u64),
    digest: [u8; 16],
}

fn read(body: &[u8]) -> Option<Read> {
    let mut tree = Tree::new(Page::new());
    scan::scan(body, &mut tree);
    if tree.needs_tree {
        return None;
    }
    let mut page = tree.into_page();
    let (visible, main) = page.texts();
    let links = page.links();
    let codes = text::codes(std::str::from_utf8(&visible).unwrap_or(""));
    let digest = xxh3_128(&main).to_be_bytes();
    Some(Read { page, links, visible, codes, digest })
}

/// Reads an HTML document in UTF-8; None if it needs a parser that builds a tree.
#[pyfunction]
fn analyse_html<'py>(py: Python<'py>, body: &Bound<'py, PyBytes>) -> PyResult<Option<Bound<'py, PyTuple>>> {
    let bytes = body.as_bytes();
    let Some(read) = py.detach(|| read(bytes)) else { return Ok(None) };
    let page = read.page;
    let language = page.language();
    let head = (page.title, page.description, page.canonical, language, page.meta_language, page.base_href, page.robots);
    let links = (
        PyTuple::new(py, read.links.hrefs)?,
        PyBytes::new(py, &read.links.kinds),
        PyTuple::new(py, read.links.anchors)?,
        PyTuple::new(py, read.links.rels)?,
    );
    let body = (PyBytes::new(py, &read.visible), page.headings, page.first, page.last, read.codes, PyBytes::new(py, &read.digest));
    Ok(Some((head, links, body).into_pyobject(py)?))
}

#[pymodule]
fn lycosa_native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(analyse_html, module)?)
}
