//! The tree construction of the HTML standard, without a tree: a stack of open elements, and what is read on the way.
//!
//! Elements come in document order as long as nothing is moved. Markup for which the standard moves nodes (the adoption
//! agency with a furthest block, foster parenting), and frames, set `needs_tree`: the caller then takes a parser that builds
//! one. What is in a template is followed to its end and else left out, as it is no part of the page.
//! Invariant: every step takes constant time, amortised, whatever the nesting. The positions of open elements are kept
//! by tag, so that no search walks the stack.

use crate::page::{Capture, Page};
use crate::scan::{value_of, After, Attribute, Attributes, Sink, StartTag};
use crate::tags::*;
use crate::text::{is_html_space, skip_spaces};
use std::collections::HashMap;

/// Beyond so many formatting elements that are open or to be opened again a real tree is used.
const FORMATTING_MOST: usize = 256;
/// So much text without its NULs is gathered before it is handed on.
const CLEAN_BYTES: usize = 64 << 10;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Space {
    Html,
    Svg,
    Math,
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Mode {
    #[default]
    Initial,
    BeforeHtml,
    BeforeHead,
    InHead,
    InHeadNoscript,
    AfterHead,
    InBody,
    InTable,
    InCaption,
    InColumnGroup,
    InTableBody,
    InRow,
    InCell,
    InTemplate,
    AfterBody,
    AfterAfterBody,
}

/// Where the search for an open element ends: the last of the open elements that bound it, by the kind of search.
const SCOPES: usize = 0;
const BUTTONS: usize = 1;
const LISTS: usize = 2;
const TABLES: usize = 3;
const SPECIALS: usize = 4;
const BARRIERS: usize = 5; // specials other than address, div and p

/// The key of an element that was taken out of the stack, while what was open in it still is.
const REMOVED: u32 = u32::MAX;

struct Open {
    key: u32, // tag number, or that of an unknown name
    tag: Tag, // 0 for unknown names and foreign elements
    space: Space,
    serial: u32,
    is_html_point: bool, // HTML integration point
    is_text_point: bool, // MathML text integration point
    is_hidden: bool,
    capture: Option<Capture>,
}

impl Open {
    fn is_plain_foreign(&self) -> bool {
        self.space != Space::Html && !self.is_html_point && !self.is_text_point
    }
}

/// An active formatting element; a marker has the tag 0.
#[derive(Default)]
struct Format {
    tag: Tag,
    attributes: Vec<u8>,
    serial: u32,
    position: usize,
}

#[derive(Default)]
pub struct Tree {
    pub page: Page,
    pub needs_tree: bool,
    stack: Vec<Open>,
    positions: Vec<Vec<u32>>, // by key: where elements of that name stand in the stack (HTML only)
    bounds: [Vec<u32>; 6],
    foreign: usize, // open elements that are not HTML
    formats: Vec<Format>,
    names: HashMap<Vec<u8>, u32>,
    mode: Mode,
    template_modes: Vec<Mode>,
    is_quirky: Option<bool>,
    has_form: Option<u32>,
    skips_newline: bool,
    serial: u32,
}

impl Tree {
    pub fn new(page: Page) -> Tree {
        let positions = vec![Vec::new(); KNOWN];
        Tree { page, stack: Vec::with_capacity(64), positions, is_quirky: Some(true), ..Tree::default() }
    }

    // the stack

    fn top(&self) -> Option<&Open> {
        self.stack.last()
    }

    /// The tag of the current node; 0 if it is of an unknown name or foreign.
    fn top_tag(&self) -> Tag {
        self.top().map_or(0, |open| open.tag)
    }

    /// The same by its name, foreign or not.
    fn top_name(&self) -> Tag {
        self.top().filter(|open| (open.key as usize) < KNOWN).map_or(0, |open| open.key as Tag)
    }

    fn key_of(&mut self, tag: Tag, name: &[u8]) -> u32 {
        self.known_key(tag, name).unwrap_or_else(|| {
            let key = self.positions.len() as u32;
            self.positions.push(Vec::new());
            self.names.insert(name.to_vec(), key);
            key
        })
    }

    fn known_key(&self, tag: Tag, name: &[u8]) -> Option<u32> {
        if tag != 0 {
            Some(u32::from(tag))
        } else {
            self.names.get(name).copied()
        }
    }

    fn last(&self, tag: Tag) -> Option<u32> {
        self.positions[tag as usize].last().copied()
    }

    /// Is a search that has this bound not over before it comes to this position?
    fn reaches(&self, at: u32, bound: usize) -> bool {
        self.bounds[bound].last().is_none_or(|&mark| at >= mark)
    }

    /// The last open element of this name, if a search finds it.
    fn find(&self, tag: Tag, bound: usize) -> Option<u32> {
        self.last(tag).filter(|&at| self.reaches(at, bound))
    }

    fn in_scope(&self, tag: Tag) -> bool {
        self.find(tag, SCOPES).is_some()
    }

    fn in_button_scope(&self, tag: Tag) -> bool {
        self.in_scope(tag) && self.find(tag, BUTTONS).is_some()
    }

    fn in_table_scope(&self, tag: Tag) -> bool {
        self.find(tag, TABLES).is_some()
    }

    fn push(&mut self, key: u32, space: Space, is_hidden: bool, capture: Option<Capture>) {
        let at = self.stack.len() as u32;
        self.serial += 1;
        let known = if (key as usize) < KNOWN { key as Tag } else { 0 };
        let tag = if space == Space::Html { known } else { 0 };
        let is_html_point = space == Space::Svg && matches!(known, FOREIGN_OBJECT | DESC | TITLE);
        let is_text_point = space == Space::Math && matches!(known, MI | MN | MO | MS | MTEXT);
        let bounds = if space == Space::Html {
            self.positions[key as usize].push(at);
            let (is_scope, is_special) = (flags(tag) & SCOPE != 0, flags(tag) & SPECIAL != 0);
            let is_table = matches!(tag, HTML | TABLE | TEMPLATE);
            let is_barrier = is_special && !matches!(tag, ADDRESS | DIV | P);
            [is_scope, tag == BUTTON, matches!(tag, OL | UL), is_table, is_special, is_barrier]
        } else {
            let is_one = is_html_point || is_text_point || (space == Space::Math && known == ANNOTATION_XML);
            [is_one, false, false, false, is_one, is_one]
        };
        for (marks, _) in self.bounds.iter_mut().zip(bounds).filter(|(_, is_bound)| *is_bound) {
            marks.push(at);
        }
        self.foreign += usize::from(space != Space::Html);
        self.page.boundary();
        if is_hidden {
            self.page.hide();
        }
        let serial = self.serial;
        self.stack.push(Open { key, tag, space, serial, is_html_point, is_text_point, is_hidden, capture });
    }

    fn pop(&mut self) {
        self.pop_one();
        // An element that was taken out of the stack ends with what was open in it.
        while self.top().is_some_and(|open| open.key == REMOVED) {
            self.pop_one();
        }
    }

    fn pop_one(&mut self) {
        let Some(open) = self.stack.pop() else { return };
        let at = self.stack.len() as u32;
        if open.space == Space::Html && open.key != REMOVED {
            self.positions[open.key as usize].pop();
        }
        for marks in &mut self.bounds {
            if marks.last() == Some(&at) {
                marks.pop();
            }
        }
        self.foreign -= usize::from(open.space != Space::Html);
        self.page.boundary();
        self.page.main_ends(self.stack.len());
        if let Some(capture) = open.capture {
            self.page.finish(capture);
        }
        if open.is_hidden {
            self.page.unhide();
        }
        if open.tag == TEMPLATE {
            self.page.unmute();
        }
    }

    /// Pops what was opened from this position on. End tags that are implied on the way need no step of their own.
    fn pop_to(&mut self, position: u32) {
        while self.stack.len() as u32 > position {
            self.pop();
        }
    }

    /// Pops until an element of this name is popped.
    fn pop_through(&mut self, tag: Tag) {
        if let Some(at) = self.last(tag) {
            self.pop_to(at);
        }
    }

    /// Closes the last element of this name, if it is in scope; says whether it was.
    fn close(&mut self, tag: Tag) -> bool {
        let found = self.find(tag, SCOPES);
        if let Some(at) = found {
            self.pop_to(at);
        }
        found.is_some()
    }

    fn close_p(&mut self) {
        if self.in_button_scope(P) {
            self.pop_through(P);
        }
    }

    /// Takes an element out of the middle of the stack; its children stay open.
    fn remove(&mut self, at: u32) {
        if at as usize + 1 == self.stack.len() {
            self.pop();
            return;
        }
        let open = &mut self.stack[at as usize];
        let key = open.key;
        (open.key, open.tag, open.serial) = (REMOVED, 0, 0);
        for marks in self.bounds.iter_mut().chain([&mut self.positions[key as usize]]) {
            if let Ok(index) = marks.binary_search(&at) {
                marks.remove(index);
            }
        }
    }

    /// Also of foreign elements of these names, where the standard means those of HTML only: lexbor does.
    fn implied_end_tags(&mut self, except: Tag) {
        while self.top_name() != except && flags(self.top_name()) & IMPLIED_END != 0 {
            self.pop();
        }
    }

    // elements

    fn insert(&mut self, token: &StartTag) {
        self.insert_in(token, Space::Html);
    }

    fn insert_in(&mut self, token: &StartTag, space: Space) {
        let key = self.key_of(token.tag, token.name);
        let parent_draws = flags(self.top_name()) & DRAWING != 0;
        let capture = self.page.element(token, parent_draws);
        if token.tag == MAIN {
            self.page.main_starts(self.stack.len());
        }
        self.push(key, space, flags(token.tag) & HIDDEN != 0, capture);
    }

    fn insert_void(&mut self, token: &StartTag) -> After {
        self.insert(token);
        self.pop();
        After::Data
    }

    /// Inserts an element that decides how tags are read.
    fn enter(&mut self, token: &StartTag, mode: Mode) -> After {
        self.insert(token);
        self.mode = mode;
        After::Data
    }

    /// Enters an element that nobody wrote.
    fn imply(&mut self, tag: Tag, mode: Mode) {
        let name = NAMES[tag as usize];
        self.enter(&StartTag { tag, name, attributes: b">", list: &[], closes_itself: false }, mode);
    }

    /// Ends the current node, which decided how tags are read.
    fn leave(&mut self, mode: Mode) {
        self.pop();
        self.mode = mode;
    }

    fn insert_foreign(&mut self, token: &StartTag, space: Space) -> After {
        self.insert_in(token, space);
        if space == Space::Math && token.tag == ANNOTATION_XML {
            let is_html = attribute(token, b"encoding").is_some_and(|value| {
                value.eq_ignore_ascii_case("text/html") || value.eq_ignore_ascii_case("application/xhtml+xml")
            });
            if let Some(open) = self.stack.last_mut() {
                open.is_html_point = is_html;
            }
        }
        if token.closes_itself {
            self.pop();
        }
        After::Data
    }

    // active formatting elements

    fn push_marker(&mut self) {
        self.formats.push(Format::default());
    }

    fn clear_to_marker(&mut self) {
        self.formats.truncate(self.formats.iter().rposition(|format| format.tag == 0).unwrap_or(0));
    }

    /// Those behind the last marker with their places, the last one first.
    fn recent_formats(&self) -> impl Iterator<Item = (usize, &Format)> {
        self.formats.iter().enumerate().rev().take_while(|(_, format)| format.tag != 0)
    }

    fn insert_formatting(&mut self, token: &StartTag) {
        let is_same =
            |format: &Format| format.tag == token.tag && same_attributes(&format.attributes, token.attributes);
        let third = self.recent_formats().filter(|(_, format)| is_same(format)).nth(2);
        if let Some((index, _)) = third {
            self.formats.remove(index);
        }
        let (tag, attributes, position) = (token.tag, token.attributes.to_vec(), self.stack.len());
        self.insert(token);
        self.formats.push(Format { tag, attributes, serial: self.serial, position });
        self.needs_tree |= self.formats.len() > FORMATTING_MOST;
    }

    fn is_standing(&self, format: &Format) -> bool {
        self.stack.get(format.position).is_some_and(|open| open.serial == format.serial)
    }

    /// Opens again the formatting elements that were closed by something around them.
    fn reconstruct(&mut self) {
        let standing = self.formats.iter().rposition(|format| format.tag == 0 || self.is_standing(format));
        for index in standing.map_or(0, |n| n + 1)..self.formats.len() {
            let mut format = std::mem::take(&mut self.formats[index]);
            let (tag, attributes) = (format.tag, &format.attributes);
            let list: Vec<Attribute> = Attributes::new(attributes, 0).collect();
            format.position = self.stack.len();
            self.insert(&StartTag { tag, name: NAMES[tag as usize], attributes, list: &list, closes_itself: false });
            format.serial = self.serial;
            self.formats[index] = format;
        }
    }

    /// The adoption agency, as far as it moves nothing.
    fn close_formatting(&mut self, tag: Tag, name: &[u8]) {
        if let Some(open) = self.top().filter(|open| open.tag == tag) {
            if self.formats.iter().all(|format| format.serial != open.serial) {
                return self.pop();
            }
        }
        let Some((index, format)) = self.recent_formats().find(|(_, format)| format.tag == tag) else {
            return self.any_other_end(tag, name);
        };
        if self.is_standing(format) {
            let at = format.position as u32;
            if !self.reaches(at, SCOPES) {
                return;
            }
            if !self.reaches(at, SPECIALS) {
                self.needs_tree = true;
                return;
            }
            self.pop_to(at);
        }
        self.formats.remove(index);
    }

    fn any_other_end(&mut self, tag: Tag, name: &[u8]) {
        let last = self.known_key(tag, name).and_then(|key| self.positions[key as usize].last().copied());
        if let Some(at) = last.filter(|&at| self.reaches(at, SPECIALS)) {
            self.pop_to(at);
        }
    }

    // tokens by mode

    fn is_in_foreign_content(&self, token: Option<&StartTag>) -> bool {
        let Some(open) = self.top().filter(|_| self.is_foreign()) else { return false };
        let Some(token) = token else { return open.is_plain_foreign() };
        let is_text = open.is_text_point && !matches!(token.tag, MGLYPH | MALIGNMARK);
        let is_svg = open.space == Space::Math && open.key == u32::from(ANNOTATION_XML) && token.tag == SVG;
        !(is_text || open.is_html_point || is_svg)
    }

    /// The text without a line break that directly follows certain start tags.
    fn without_newline<'a>(&mut self, text: &'a [u8]) -> &'a [u8] {
        let skips = std::mem::take(&mut self.skips_newline);
        text.strip_prefix(b"\n").filter(|_| skips).unwrap_or(text)
    }

    /// Goes on from the head to the body, or from a column group to the table, for what belongs there.
    fn leave_for_content(&mut self) -> bool {
        if self.mode != Mode::InColumnGroup {
            self.leave_head();
        } else if self.top_tag() == COLGROUP {
            self.leave(Mode::InTable);
        } else {
            return false;
        }
        true
    }

    /// Something in a table belongs before it; in a template that makes no difference.
    fn foster(&mut self) {
        self.needs_tree |= self.template_modes.is_empty();
    }

    fn body_text(&mut self, text: &[u8]) {
        if text.iter().any(|&byte| byte != 0) {
            self.reconstruct();
            self.add_text(text, false);
        }
    }

    fn add_text(&mut self, text: &[u8], replaces_nul: bool) {
        if memchr::memchr(0, text).is_none() {
            self.page.text(text);
            return;
        }
        // Little by little: there may be a NUL behind each byte of a long document.
        let replacement = if replaces_nul { "\u{FFFD}" } else { "" };
        let mut clean = Vec::with_capacity(text.len().min(CLEAN_BYTES));
        for part in text.split_inclusive(|&byte| byte == 0) {
            let kept = part.strip_suffix(b"\0").unwrap_or(part);
            if clean.len() + kept.len() > CLEAN_BYTES {
                self.page.text(&clean);
                self.page.text(kept);
                clean.clear();
            } else {
                clean.extend_from_slice(kept);
            }
            if kept.len() < part.len() {
                clean.extend_from_slice(replacement.as_bytes());
            }
        }
        if !clean.is_empty() {
            self.page.text(&clean);
        }
    }

    /// `<html>` and `<head>` are there, whether written or not.
    fn begin_head(&mut self) {
        if matches!(self.mode, Mode::Initial | Mode::BeforeHtml) {
            self.imply(HTML, Mode::BeforeHead);
        }
        if self.mode == Mode::BeforeHead {
            self.imply(HEAD, Mode::InHead);
        }
    }

    /// Goes on from the head to the body for whatever does not belong into the head.
    fn leave_head(&mut self) {
        if self.mode == Mode::InHeadNoscript {
            self.leave(Mode::InHead);
        }
        if self.mode == Mode::InHead {
            self.leave(Mode::AfterHead);
        }
        if self.mode == Mode::AfterHead {
            self.imply(BODY, Mode::InBody);
            self.page.begin_body();
        }
    }

    /// A start tag by the rules of the mode.
    fn html_start(&mut self, token: &StartTag) -> After {
        loop {
            match self.mode {
                Mode::Initial => self.mode = Mode::BeforeHtml,
                Mode::BeforeHtml if token.tag == HTML => return self.enter(token, Mode::BeforeHead),
                Mode::BeforeHtml => self.imply(HTML, Mode::BeforeHead),
                Mode::BeforeHead => match token.tag {
                    HTML => return self.again_html(token),
                    HEAD => return self.enter(token, Mode::InHead),
                    _ => self.begin_head(),
                },
                Mode::InHead => match token.tag {
                    HTML => return self.again_html(token),
                    HEAD => return After::Data,
                    NOSCRIPT => return self.enter(token, Mode::InHeadNoscript),
                    tag if flags(tag) & IN_HEAD != 0 => return self.head_start(token),
                    _ => self.leave(Mode::AfterHead),
                },
                Mode::InHeadNoscript => match token.tag {
                    HTML => return self.again_html(token),
                    BASEFONT | BGSOUND | LINK | META | NOFRAMES | STYLE => return self.head_start(token),
                    HEAD | NOSCRIPT => return After::Data,
                    _ => self.leave(Mode::InHead),
                },
                Mode::AfterHead => match token.tag {
                    HTML => return self.again_html(token),
                    BODY => {
                        self.enter(token, Mode::InBody);
                        self.page.begin_body();
                        return After::Data;
                    }
                    FRAMESET => {
                        self.needs_tree = true;
                        return After::Data;
                    }
                    HEAD => return After::Data,
                    // It goes into the head, which is over: before the body, so the order is the same.
                    tag if flags(tag) & IN_HEAD != 0 => return self.head_start(token),
                    _ => self.leave_head(),
                },
                Mode::AfterBody | Mode::AfterAfterBody if token.tag == HTML => return self.again_html(token),
                Mode::AfterBody | Mode::AfterAfterBody => self.mode = Mode::InBody,
                Mode::InBody => return self.body_start(token),
                Mode::InTable => match token.tag {
                    tag if is_table_part(tag) => {
                        self.clear_to(&[TABLE, TEMPLATE, HTML]);
                        match tag {
                            CAPTION => {
                                self.push_marker();
                                return self.enter(token, Mode::InCaption);
                            }
                            COLGROUP => return self.enter(token, Mode::InColumnGroup),
                            COL => self.imply(COLGROUP, Mode::InColumnGroup),
                            TD | TH | TR => self.imply(TBODY, Mode::InTableBody),
                            _ => return self.enter(token, Mode::InTableBody),
                        }
                    }
                    TABLE => {
                        if !self.end_table() {
                            return After::Data;
                        }
                    }
                    STYLE | SCRIPT | TEMPLATE => return self.head_start(token),
                    INPUT if attribute(token, b"type").is_some_and(|v| v.eq_ignore_ascii_case("hidden")) => {
                        return self.insert_void(token);
                    }
                    FORM if self.has_form.is_none() && self.template_modes.is_empty() => {
                        self.insert(token);
                        self.has_form = Some(self.serial);
                        self.pop();
                        return After::Data;
                    }
                    FORM => return After::Data,
                    _ => {
                        self.foster();
                        return self.body_start(token);
                    }
                },
                Mode::InColumnGroup => match token.tag {
                    HTML => return self.again_html(token),
                    COL => return self.insert_void(token),
                    TEMPLATE => return self.head_start(token),
                    _ if self.leave_for_content() => {}
                    _ => return After::Data,
                },
                Mode::InTemplate => {
                    self.mode = match token.tag {
                        CAPTION | COLGROUP | TBODY | TFOOT | THEAD => Mode::InTable,
                        COL => Mode::InColumnGroup,
                        TR => Mode::InTableBody,
                        TD | TH => Mode::InRow,
                        tag if flags(tag) & IN_HEAD != 0 => return self.head_start(token),
                        _ => Mode::InBody,
                    };
                    self.template_modes.pop();
                    self.template_modes.push(self.mode);
                }
                Mode::InCaption | Mode::InTableBody | Mode::InRow | Mode::InCell => match (self.mode, token.tag) {
                    (Mode::InTableBody, TR | TH | TD) => {
                        self.clear_to(&[TBODY, TFOOT, THEAD, TEMPLATE, HTML]);
                        if token.tag == TR {
                            return self.enter(token, Mode::InRow);
                        }
                        self.imply(TR, Mode::InRow);
                    }
                    (Mode::InRow, TH | TD) => {
                        self.clear_to(&[TR, TEMPLATE, HTML]);
                        self.push_marker();
                        return self.enter(token, Mode::InCell);
                    }
                    (_, tag) if is_table_part(tag) => {
                        if !self.close_part() {
                            return After::Data;
                        }
                    }
                    (Mode::InCaption | Mode::InCell, _) => return self.body_start(token),
                    _ => return self.table_start(token),
                },
            }
        }
    }

    /// A start tag that the rules of "in table" handle while a row or a section is open.
    fn table_start(&mut self, token: &StartTag) -> After {
        let before = self.mode;
        self.mode = Mode::InTable;
        let after = self.html_start(token);
        if self.mode == Mode::InTable && token.tag != TABLE {
            self.mode = before;
        }
        after
    }

    fn clear_to(&mut self, tags: &[Tag]) {
        while !self.stack.is_empty() && !tags.contains(&self.top_tag()) {
            self.pop();
        }
    }

    fn end_table(&mut self) -> bool {
        let is_open = self.in_table_scope(TABLE);
        if is_open {
            self.pop_through(TABLE);
            self.reset_mode();
        }
        is_open
    }

    /// Closes the caption, section, row or cell that the mode is of, if it is in table scope; says whether it was.
    fn close_part(&mut self) -> bool {
        let (parts, outer): (&[Tag], Mode) = match self.mode {
            Mode::InCaption => (&[CAPTION], Mode::InTable),
            Mode::InTableBody => (&[TBODY, TFOOT, THEAD], Mode::InTable),
            Mode::InRow => (&[TR], Mode::InTableBody),
            _ => (&[TD, TH], Mode::InRow),
        };
        let Some(at) = parts.iter().filter_map(|&tag| self.find(tag, TABLES)).max() else { return false };
        self.pop_to(at);
        if matches!(self.mode, Mode::InCaption | Mode::InCell) {
            self.clear_to_marker();
        }
        self.mode = outer;
        true
    }

    fn reset_mode(&mut self) {
        let mode_of = |open: &Open| match open.tag {
            TD | TH => Some(Mode::InCell),
            TR => Some(Mode::InRow),
            TBODY | THEAD | TFOOT => Some(Mode::InTableBody),
            CAPTION => Some(Mode::InCaption),
            COLGROUP => Some(Mode::InColumnGroup),
            TABLE => Some(Mode::InTable),
            TEMPLATE => self.template_modes.last().copied(),
            HEAD => Some(Mode::InHead),
            BODY => Some(Mode::InBody),
            HTML => Some(Mode::AfterHead),
            _ => None,
        };
        self.mode = self.stack.iter().rev().find_map(mode_of).unwrap_or(Mode::InBody);
    }

    fn again_html(&mut self, token: &StartTag) -> After {
        if self.template_modes.is_empty() {
            self.page.html_attributes(token);
        }
        After::Data
    }

    fn end_template(&mut self) {
        if self.last(TEMPLATE).is_some() {
            self.pop_through(TEMPLATE);
            self.clear_to_marker();
            self.template_modes.pop();
            self.reset_mode();
        }
    }

    fn head_start(&mut self, token: &StartTag) -> After {
        self.insert(token);
        match token.tag {
            TEMPLATE => {
                self.page.mute();
                self.push_marker();
                self.mode = Mode::InTemplate;
                self.template_modes.push(Mode::InTemplate);
            }
            TITLE => return After::Rcdata,
            SCRIPT => return After::Script,
            STYLE | NOFRAMES => return After::Rawtext,
            _ => self.pop(),
        }
        After::Data
    }

    fn body_start(&mut self, token: &StartTag) -> After {
        let tag = token.tag;
        let what = flags(tag);
        if what & FORMATTING != 0 {
            return self.formatting_start(token);
        }
        if what & IN_HEAD != 0 {
            return self.head_start(token);
        }
        if what & (CLOSES_P | HEADING) != 0 {
            self.close_p();
            if what & flags(self.top_tag()) & HEADING != 0 {
                self.pop();
            }
            self.insert(token);
            return After::Data;
        }
        match tag {
            HTML => return self.again_html(token),
            BODY | HEAD | FRAME => return After::Data,
            tag if is_table_part(tag) => return After::Data,
            FRAMESET => {
                self.needs_tree = true;
                return After::Data;
            }
            PRE | LISTING | PLAINTEXT => {
                self.close_p();
                self.insert(token);
                self.skips_newline = tag != PLAINTEXT;
                return if tag == PLAINTEXT { After::Plaintext } else { After::Data };
            }
            FORM => {
                let is_in_template = !self.template_modes.is_empty();
                if is_in_template || self.has_form.is_none() {
                    self.close_p();
                    self.insert(token);
                    if !is_in_template {
                        self.has_form = Some(self.serial);
                    }
                }
                return After::Data;
            }
            LI | DD | DT => {
                let last = if tag == LI { self.last(LI) } else { self.last(DD).max(self.last(DT)) };
                if let Some(at) = last.filter(|&at| self.reaches(at, BARRIERS)) {
                    self.pop_to(at);
                }
                self.close_p();
                self.insert(token);
                return After::Data;
            }
            TABLE => {
                self.needs_tree |= self.is_quirky.is_none() && self.in_button_scope(P);
                if self.is_quirky == Some(false) {
                    self.close_p();
                }
                return self.enter(token, Mode::InTable);
            }
            PARAM | SOURCE | TRACK => return self.insert_void(token),
            HR => {
                self.close_p();
                if self.in_scope(SELECT) {
                    self.implied_end_tags(0);
                }
                return self.insert_void(token);
            }
            TEXTAREA => {
                // lexbor opens them again inside, where the standard does not
                self.needs_tree |= self.formats.last().is_some_and(|last| last.tag != 0 && !self.is_standing(last));
                self.insert(token);
                self.skips_newline = true;
                return After::Rcdata;
            }
            IFRAME | NOEMBED => {
                self.insert(token);
                return After::Rawtext;
            }
            RB | RTC | RP | RT => {
                if self.in_scope(RUBY) {
                    self.implied_end_tags(if matches!(tag, RP | RT) { RTC } else { 0 });
                }
                self.insert(token);
                return After::Data;
            }
            SELECT if self.close(SELECT) => return After::Data,
            BUTTON => {
                self.close(BUTTON);
            }
            INPUT => {
                self.close(SELECT);
            }
            XMP => self.close_p(),
            OPTION | OPTGROUP if self.in_scope(SELECT) => {
                self.implied_end_tags(if tag == OPTION { OPTGROUP } else { 0 });
            }
            OPTION | OPTGROUP if self.top_tag() == OPTION => self.pop(),
            _ => {}
        }
        self.reconstruct();
        match tag {
            AREA | BR | EMBED | IMG | INPUT | KEYGEN | WBR => return self.insert_void(token),
            IMAGE => {
                return self.insert_void(&StartTag { tag: IMG, name: b"img", closes_itself: false, ..*token });
            }
            MATH => return self.insert_foreign(token, Space::Math),
            SVG => return self.insert_foreign(token, Space::Svg),
            _ => self.insert(token),
        }
        match tag {
            APPLET | MARQUEE | OBJECT => self.push_marker(),
            XMP => return After::Rawtext,
            _ => {}
        }
        After::Data
    }

    fn formatting_start(&mut self, token: &StartTag) -> After {
        if token.tag == A && self.recent_formats().any(|(_, format)| format.tag == A) {
            self.close_formatting(A, b"a");
            if self.needs_tree {
                return After::Data;
            }
            let left = self.recent_formats().find(|(_, format)| format.tag == A).map(|(index, _)| index);
            if let Some(format) = left.map(|index| self.formats.remove(index)) {
                if self.is_standing(&format) {
                    self.remove(format.position as u32);
                }
            }
        }
        self.reconstruct();
        if token.tag == NOBR && self.in_scope(NOBR) {
            self.close_formatting(NOBR, b"nobr");
            self.reconstruct();
        }
        self.insert_formatting(token);
        After::Data
    }

    /// Ends foreign content for a tag of HTML.
    fn break_out(&mut self) {
        while self.top().is_some_and(Open::is_plain_foreign) {
            self.pop();
        }
    }

    fn foreign_start(&mut self, token: &StartTag) -> After {
        let is_styled = || [&b"color"[..], b"face", b"size"].iter().any(|name| attribute(token, name).is_some());
        if flags(token.tag) & BREAKS_OUT != 0 || (token.tag == FONT && is_styled()) {
            self.break_out();
            return self.html_start(token);
        }
        let space = self.top().map_or(Space::Svg, |o| o.space);
        self.insert_foreign(token, space)
    }

    fn html_end(&mut self, tag: Tag, name: &[u8]) {
        // The end of an element whose text was raw.
        if self.top_tag() == tag && matches!(tag, TITLE | TEXTAREA | SCRIPT | STYLE | XMP | IFRAME | NOEMBED | NOFRAMES)
        {
            return self.pop();
        }
        if tag == TEMPLATE
            && !matches!(self.mode, Mode::Initial | Mode::BeforeHtml | Mode::BeforeHead | Mode::InHeadNoscript)
        {
            if matches!(self.mode, Mode::AfterBody | Mode::AfterAfterBody) {
                self.mode = Mode::InBody;
            }
            return self.end_template();
        }
        loop {
            match self.mode {
                Mode::Initial | Mode::BeforeHtml | Mode::BeforeHead if matches!(tag, HEAD | BODY | HTML | BR) => {
                    self.begin_head();
                }
                Mode::InHead if matches!(tag, BODY | HTML | BR) => self.leave(Mode::AfterHead),
                Mode::InHead if tag == HEAD => return self.leave(Mode::AfterHead),
                Mode::InHeadNoscript if tag == BR => self.leave(Mode::InHead),
                Mode::InHeadNoscript if tag == NOSCRIPT => return self.leave(Mode::InHead),
                Mode::AfterHead if matches!(tag, BODY | HTML | BR) => self.leave_head(),
                Mode::AfterBody if tag == HTML => {
                    self.mode = Mode::AfterAfterBody;
                    return;
                }
                Mode::AfterBody | Mode::AfterAfterBody => self.mode = Mode::InBody,
                Mode::InBody => return self.body_end(tag, name),
                Mode::InTable => {
                    match tag {
                        TABLE => {
                            self.end_table();
                        }
                        BODY | HTML => {}
                        tag if is_table_part(tag) => {}
                        _ => self.foster_end(tag, name),
                    }
                    return;
                }
                Mode::InColumnGroup if tag == COL => return,
                Mode::InColumnGroup => {
                    if !self.leave_for_content() || tag == COLGROUP {
                        return;
                    }
                }
                Mode::InCaption | Mode::InTableBody | Mode::InRow | Mode::InCell => match (self.mode, tag) {
                    (Mode::InCaption, CAPTION)
                    | (Mode::InTableBody, TBODY | TFOOT | THEAD)
                    | (Mode::InRow, TR)
                    | (Mode::InCell, TD | TH) => {
                        if self.in_table_scope(tag) {
                            self.close_part();
                        }
                        return;
                    }
                    // What is around the part ends, and the part with it.
                    (_, TABLE) | (Mode::InRow | Mode::InCell, TBODY | TFOOT | THEAD) | (Mode::InCell, TR) => {
                        let is_open = (tag == TABLE && self.mode != Mode::InCell) || self.in_table_scope(tag);
                        if !is_open || !self.close_part() {
                            return;
                        }
                    }
                    (_, BODY | HTML) => return,
                    (_, tag) if is_table_part(tag) => return,
                    (Mode::InCaption | Mode::InCell, _) => return self.body_end(tag, name),
                    _ => return self.foster_end(tag, name),
                },
                _ => return,
            }
        }
    }

    /// An end tag between the cells of a table: by the rules of the body, with foster parenting for what that inserts.
    fn foster_end(&mut self, tag: Tag, name: &[u8]) {
        if matches!(tag, P | BR) {
            self.foster();
        }
        self.body_end(tag, name);
    }

    fn body_end(&mut self, tag: Tag, name: &[u8]) {
        let what = flags(tag);
        if what & FORMATTING != 0 {
            return self.close_formatting(tag, name);
        }
        if what & HEADING != 0 {
            let last = (H1..=H6).filter_map(|level| self.last(level)).max();
            if let Some(at) = last.filter(|&at| self.reaches(at, SCOPES)) {
                self.pop_to(at);
            }
            return;
        }
        match tag {
            BODY | HTML => {
                if self.in_scope(BODY) {
                    self.mode = if tag == BODY { Mode::AfterBody } else { Mode::AfterAfterBody };
                }
            }
            FORM if self.template_modes.is_empty() => {
                let serial = self.has_form.take();
                if let Some(at) = self.find(FORM, SCOPES).filter(|&at| serial == Some(self.stack[at as usize].serial)) {
                    self.implied_end_tags(0);
                    self.remove(at);
                }
            }
            P => {
                if !self.in_button_scope(P) {
                    self.imply(P, self.mode);
                }
                self.pop_through(P);
            }
            LI if self.find(LI, LISTS).is_none() => {}
            APPLET | MARQUEE | OBJECT => {
                if self.close(tag) {
                    self.clear_to_marker();
                }
            }
            BR => {
                self.reconstruct();
                self.imply(BR, self.mode);
                self.pop();
            }
            _ if what & BLOCK_END != 0 || matches!(tag, LI | DD | DT | FORM) => {
                self.close(tag);
            }
            _ => self.any_other_end(tag, name),
        }
    }

    fn foreign_end(&mut self, tag: Tag, name: &[u8]) {
        if matches!(tag, BR | P) {
            self.break_out();
            return self.html_end(tag, name);
        }
        let key = self.known_key(tag, name);
        let floor = self.stack.len().saturating_sub(512); // deeper than that nobody closes by one tag
        for index in (floor..self.stack.len()).rev() {
            let open = &self.stack[index];
            if open.space == Space::Html {
                return self.html_end(tag, name);
            }
            if Some(open.key) == key {
                return self.pop_to(index as u32);
            }
        }
    }
}

/// What the tokenizer tells.
impl Sink for Tree {
    fn start_tag(&mut self, token: &StartTag) -> After {
        self.skips_newline = false;
        if self.is_in_foreign_content(Some(token)) {
            return self.foreign_start(token);
        }
        self.html_start(token)
    }

    fn end_tag(&mut self, tag: Tag, name: &[u8]) {
        self.skips_newline = false;
        if self.is_foreign() {
            return self.foreign_end(tag, name);
        }
        self.html_end(tag, name);
    }

    fn text(&mut self, text: &[u8]) {
        let mut text = self.without_newline(text);
        if text.is_empty() {
            return;
        }
        if self.is_in_foreign_content(None) {
            return self.add_text(text, true);
        }
        loop {
            match self.mode {
                Mode::Initial | Mode::BeforeHtml | Mode::BeforeHead => {
                    text = skip_spaces(text);
                    if text.is_empty() {
                        return;
                    }
                    self.begin_head();
                }
                Mode::InHead | Mode::AfterHead | Mode::InHeadNoscript | Mode::InColumnGroup => {
                    let rest = skip_spaces(text);
                    if rest.len() < text.len() {
                        self.page.text(&text[..text.len() - rest.len()]);
                    }
                    text = rest;
                    if text.is_empty() || !self.leave_for_content() {
                        return;
                    }
                }
                Mode::AfterBody | Mode::AfterAfterBody if !skip_spaces(text).is_empty() => self.mode = Mode::InBody,
                Mode::InTable | Mode::InTableBody | Mode::InRow
                    if matches!(self.top_tag(), TABLE | TBODY | TFOOT | THEAD | TR | TEMPLATE) =>
                {
                    if text.iter().all(|&byte| byte == 0 || is_html_space(byte)) {
                        self.add_text(text, false);
                    } else {
                        self.foster();
                    }
                    return;
                }
                _ => return self.body_text(text),
            }
        }
    }

    /// The text of a raw text element, which then ends; or the document does, which lexbor reads in a way of its own.
    fn raw_text(&mut self, text: &[u8], is_closed: bool) {
        self.needs_tree |= !is_closed && !self.formats.is_empty();
        let text = self.without_newline(text);
        if !text.is_empty() {
            self.page.text(text);
        }
    }

    fn comment(&mut self) {
        self.skips_newline = false;
        let is_elsewhere =
            matches!(self.mode, Mode::Initial | Mode::BeforeHtml | Mode::AfterBody | Mode::AfterAfterBody);
        if !is_elsewhere || self.is_foreign() {
            self.page.boundary();
        }
    }

    fn doctype(&mut self, rest: &[u8]) {
        self.skips_newline = false;
        if self.mode == Mode::Initial {
            self.is_quirky = is_quirky(rest);
            self.mode = Mode::BeforeHtml;
        }
    }

    fn end(&mut self) {
        for _ in 0..self.template_modes.len() {
            self.end_template();
        }
        self.begin_head();
        self.leave_head();
        self.pop_to(0);
    }

    fn is_foreign(&self) -> bool {
        self.foreign > 0 && self.top().is_some_and(|open| open.space != Space::Html)
    }

    fn is_over(&self) -> bool {
        self.needs_tree
    }
}

fn is_table_part(tag: Tag) -> bool {
    matches!(tag, CAPTION | COL | COLGROUP | TBODY | TD | TFOOT | TH | THEAD | TR)
}

pub fn attribute(token: &StartTag, name: &[u8]) -> Option<String> {
    token.list.iter().find(|a| a.name.eq_ignore_ascii_case(name)).map(|a| value_of(a.value.unwrap_or(b"")))
}

fn same_attributes(one: &[u8], other: &[u8]) -> bool {
    if one == other {
        return true;
    }
    let listed = |raw: &[u8]| {
        let mut all: Vec<(Vec<u8>, String)> =
            Attributes::new(raw, 0).map(|a| (a.name.to_ascii_lowercase(), value_of(a.value.unwrap_or(b"")))).collect();
        all.sort();
        all.dedup_by(|a, b| a.0 == b.0);
        all
    };
    listed(one) == listed(other)
}

/// Whether a doctype (what stands after `<!doctype`) switches to quirks mode; where it is neither of the usual ones that
/// do not, nobody knows here.
fn is_quirky(rest: &[u8]) -> Option<bool> {
    let text = String::from_utf8_lossy(rest).to_ascii_lowercase();
    let words = text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
    (words == "html" || words.starts_with("html public \"-//w3c//dtd xhtml 1.")).then_some(false)
}
