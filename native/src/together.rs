//! A page and its outline from one scan of a document, as long as both have it read in the same way.

use crate::outline::Outline;
use crate::scan::{scan, After, Sink, StartTag};
use crate::tags::Tag;
use crate::tree::Tree;
use memchr::memmem;
use std::cell::Cell;

struct Together<'a> {
    tree: Tree,
    outline: Outline<'a>,
    is_script: bool,     // the raw text that follows
    differs: Cell<bool>, // one of them would have had the document read in another way
}

/// Reads a document into a page, and into its outline, unless that needs a scan of its own.
pub fn scan_together<'a>(data: &'a [u8], tree: Tree, outline: Outline<'a>) -> (Tree, Option<Outline<'a>>) {
    let mut both = Together { tree, outline, is_script: false, differs: Cell::new(false) };
    scan(data, &mut both);
    let differs = both.differs.get();
    (both.tree, (!differs).then(|| both.outline.ended()))
}

impl Sink for Together<'_> {
    fn start_tag(&mut self, token: &StartTag) -> After {
        let after = self.tree.start_tag(token);
        if !self.differs.get() {
            let other = self.outline.start_tag(token);
            self.is_script = (after, other) == (After::Script, After::Rawtext);
            self.differs.set(after != other && !self.is_script);
        }
        after
    }

    fn end_tag(&mut self, tag: Tag, name: &[u8]) {
        self.tree.end_tag(tag, name);
        if !self.differs.get() {
            self.outline.end_tag(tag, name);
        }
    }

    fn text(&mut self, text: &[u8]) {
        self.tree.text(text);
        if !self.differs.get() {
            self.outline.text(text);
        }
    }

    fn raw_text(&mut self, text: &[u8], has_end: bool) {
        self.tree.raw_text(text, has_end);
        if self.is_script && memmem::find(text, b"<!--").is_some() {
            self.differs.set(true); // the end of a script with a comment in it is not that of other raw text
        }
        if !self.differs.get() {
            self.outline.raw_text(text, has_end);
        }
    }

    fn comment(&mut self) {
        self.tree.comment();
    }

    fn doctype(&mut self, rest: &[u8]) {
        self.tree.doctype(rest);
    }

    fn end(&mut self) {
        self.tree.end();
    }

    /// Asked where a piece of character data begins, which the outline takes for a comment.
    fn is_foreign(&self) -> bool {
        let is_foreign = self.tree.is_foreign();
        self.differs.set(self.differs.get() || is_foreign);
        is_foreign
    }

    fn is_over(&self) -> bool {
        self.tree.is_over()
    }
}
