//! The tree construction of the HTML standard, without a tree: a stack of open elements, and what is read on the way.
//!
//! Elements come in document order as long as nothing is moved. Markup for which the standard moves nodes (the adoption
//! agency with a furthest block, foster parenting), and frames, set `needs_tree`: the caller then takes a parser that builds
//! one. What is in a template is followed to its end and else left out, as it is no part of the page.
//! Invariant: every step takes constant time, amortised, whatever the nesting. The positions of open elements are kept
//! by tag, so that no search walks the stack.

use crate::page::{Capture, Page};
use crate::scan::{value_of, After, Attribute, Attributes, StartTag};
use crate::tags::*;
use std::collections::HashMap;

/// Beyond so many formatting elements that are open or to be opened again a real tree is used.
const FORMATTING_MOST: usize = 256;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Space {
    Html,
    Svg,
    Math,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
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

struct Open {
    key: u32, // tag number, or that of an unknown name
    space: Space,
    serial: u32,
    is_html_point: bool, // HTML integration point
    is_text_point: bool, // MathML text integration point
    is_hidden: bool,
    capture: Option<Capture>,
}

enum Format {
    Marker,
    Element { tag: Tag, attributes: Vec<u8>, serial: u32, position: usize },
}

pub struct Tree {
    pub page: Page,
    pub needs_tree: bool,
    stack: Vec<Open>,
    positions: Vec<Vec<u32>>, // by key: where elements of that name stand in the stack (HTML only)
    scopes: Vec<u32>,
    buttons: Vec<u32>,
    lists: Vec<u32>,
    tables: Vec<u32>,
    specials: Vec<u32>,
    barriers: Vec<u32>, // specials other than address, div and p
    foreign: usize,     // open elements that are not HTML
    formats: Vec<Format>,
    names: HashMap<Vec<u8>, u32>,
    mode: Mode,
    template_modes: Vec<Mode>,
    is_quirky: bool,
    has_form: Option<u32>,
    has_head: bool,
    skips_newline: bool,
    serial: u32,
}

impl Tree {
    pub fn new(page: Page) -> Tree {
        Tree {
            page,
            needs_tree: false,
            stack: Vec::with_capacity(64),
            positions: (0..KNOWN).map(|_| Vec::new()).collect(),
            scopes: Vec::new(),
            buttons: Vec::new(),
            lists: Vec::new(),
            tables: Vec::new(),
            specials: Vec::new(),
            barriers: Vec::new(),
            foreign: 0,
            formats: Vec::new(),
            names: HashMap::new(),
            mode: Mode::Initial,
            template_modes: Vec::new(),
            is_quirky: true,
            has_form: None,
            has_head: false,
            skips_newline: false,
            serial: 0,
        }
    }

    // the stack

    fn top(&self) -> Option<&Open> {
        self.stack.last()
    }

    fn top_is(&self, tag: Tag) -> bool {
        self.top().is_some_and(|open| open.space == Space::Html && open.key == u32::from(tag))
    }

    fn key_of(&mut self, tag: Tag, name: &[u8]) -> u32 {
        if tag != 0 {
            return u32::from(tag);
        }
        if let Some(&key) = self.names.get(name) {
            return key;
        }
        let key = self.positions.len() as u32;
        self.positions.push(Vec::new());
        self.names.insert(name.to_vec(), key);
        key
    }

    fn known_key(&self, tag: Tag, name: &[u8]) -> Option<u32> {
        if tag != 0 { Some(u32::from(tag)) } else { self.names.get(name).copied() }
    }

    fn last(&self, key: u32) -> Option<u32> {
        self.positions[key as usize].last().copied()
    }

    fn is_open(&self, tag: Tag) -> bool {
        !self.positions[tag as usize].is_empty()
    }

    fn after(&self, key: u32, marks: &[u32]) -> bool {
        self.last(key).is_some_and(|at| marks.last().map_or(true, |&mark| at >= mark))
    }

    fn in_scope(&self, tag: Tag) -> bool {
        self.after(u32::from(tag), &self.scopes)
    }

    fn in_button_scope(&self, tag: Tag) -> bool {
        self.in_scope(tag) && self.after(u32::from(tag), &self.buttons)
    }

    fn in_list_scope(&self, tag: Tag) -> bool {
        self.in_scope(tag) && self.after(u32::from(tag), &self.lists)
    }

    fn in_table_scope(&self, tag: Tag) -> bool {
        self.after(u32::from(tag), &self.tables)
    }

    fn push(&mut self, key: u32, space: Space, hidden: bool, capture: Option<Capture>) {
        let at = self.stack.len() as u32;
        self.serial += 1;
        let (mut is_html_point, mut is_text_point) = (false, false);
        let tag = if (key as usize) < KNOWN { key as Tag } else { 0 };
        match space {
            Space::Html => {
                let what = flags(tag);
                self.positions[key as usize].push(at);
                if what & SCOPE != 0 {
                    self.scopes.push(at);
                }
                if tag == BUTTON {
                    self.buttons.push(at);
                }
                if matches!(tag, OL | UL) {
                    self.lists.push(at);
                }
                if matches!(tag, HTML | TABLE | TEMPLATE) {
                    self.tables.push(at);
                }
                if what & SPECIAL != 0 {
                    self.specials.push(at);
                    if !matches!(tag, ADDRESS | DIV | P) {
                        self.barriers.push(at);
                    }
                }
            }
            Space::Svg => {
                is_html_point = matches!(tag, FOREIGN_OBJECT | DESC | TITLE);
            }
            Space::Math => {
                is_text_point = matches!(tag, MI | MN | MO | MS | MTEXT);
            }
        }
        if is_html_point || is_text_point || (space == Space::Math && tag == ANNOTATION_XML) {
            self.scopes.push(at);
            self.specials.push(at);
            self.barriers.push(at);
        }
        self.foreign += usize::from(space != Space::Html);
        self.page.boundary();
        if hidden {
            self.page.hide();
        }
        self.stack.push(Open { key, space, serial: self.serial, is_html_point, is_text_point, is_hidden: hidden, capture });
    }

    fn pop(&mut self) {
        self.pop_one();
        // An element that was taken out of the stack ends with what was open in it.
        while self.top().is_some_and(|open| open.key == u32::MAX) {
            self.pop_one();
        }
    }

    fn pop_one(&mut self) {
        let Some(open) = self.stack.pop() else { return };
        let at = self.stack.len() as u32;
        if open.space == Space::Html && open.key != u32::MAX {
            self.positions[open.key as usize].pop();
        }
        for marks in [&mut self.scopes, &mut self.buttons, &mut self.lists, &mut self.tables, &mut self.specials, &mut self.barriers] {
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
        if open.space == Space::Html && open.key == u32::from(TEMPLATE) {
            self.page.unmute();
        }
    }

    fn pop_to(&mut self, position: u32) {
        while self.stack.len() as u32 > position {
            self.pop();
        }
    }

    /// Pops until an element of this name is popped.
    fn pop_through(&mut self, tag: Tag) {
        if let Some(at) = self.last(u32::from(tag)) {
            self.pop_to(at);
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
        open.key = u32::MAX;
        open.serial = 0;
        if let Ok(index) = self.positions[key as usize].binary_search(&at) {
            self.positions[key as usize].remove(index);
        }
        for marks in [&mut self.scopes, &mut self.buttons, &mut self.lists, &mut self.tables, &mut self.specials, &mut self.barriers] {
            if let Ok(index) = marks.binary_search(&at) {
                marks.remove(index);
            }
        }
    }

    fn implied_end_tags(&mut self, except: Tag) {
        while let Some(open) = self.top() {
            let is_implied = open.space == Space::Html && (open.key as usize) < KNOWN && flags(open.key as Tag) & IMPLIED_END != 0;
            if !is_implied || open.key == u32::from(except) {
                return;
            }
            self.pop();
        }
    }

    fn close_p(&mut self) {
        if self.in_button_scope(P) {
            self.implied_end_tags(P);
            self.pop_through(P);
        }
    }

    // elements

    fn insert(&mut self, token: &StartTag) {
        let key = self.key_of(token.tag, token.name);
        let parent_draws = self.top().is_some_and(|o| (o.key as usize) < KNOWN && flags(o.key as Tag) & DRAWING != 0);
        let capture = self.page.element(token, self.stack.len(), parent_draws);
        let hidden = flags(token.tag) & HIDDEN != 0;
        if token.tag == MAIN {
            self.page.main_starts(self.stack.len());
        }
        self.push(key, Space::Html, hidden, capture);
    }

    fn insert_void(&mut self, token: &StartTag) {
        self.insert(token);
        self.pop();
    }

    /// An element that nobody wrote.
    fn imply(&mut self, tag: Tag) {
        self.insert(&StartTag { tag, name: NAMES[tag as usize], attributes: b">", list: &[], closes_itself: false });
    }

    fn insert_foreign(&mut self, token: &StartTag, space: Space) {
        let key = self.key_of(token.tag, token.name);
        let parent_draws = self.top().is_some_and(|o| (o.key as usize) < KNOWN && flags(o.key as Tag) & DRAWING != 0);
        let capture = self.page.element(token, self.stack.len(), parent_draws);
        let hidden = flags(token.tag) & HIDDEN != 0;
        if token.tag == MAIN {
            self.page.main_starts(self.stack.len());
        }
        self.push(key, space, hidden, capture);
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
    }

    // active formatting elements

    fn insert_formatting(&mut self, token: &StartTag) {
        let mut same = 0;
        let mut earliest = None;
        for (index, format) in self.formats.iter().enumerate().rev() {
            match format {
                Format::Marker => break,
                Format::Element { tag, attributes, .. } => {
                    if *tag == token.tag && same_attributes(attributes, token.attributes) {
                        same += 1;
                        earliest = Some(index);
                    }
                }
            }
        }
        if same >= 3 {
            if let Some(index) = earliest {
                self.formats.remove(index);
            }
        }
        let position = self.stack.len();
        self.insert(token);
        let attributes = token.attributes.to_vec();
        self.formats.push(Format::Element { tag: token.tag, attributes, serial: self.serial, position });
        if self.formats.len() > FORMATTING_MOST {
            self.needs_tree = true;
        }
    }

    fn is_standing(&self, serial: u32, position: usize) -> bool {
        self.stack.get(position).is_some_and(|open| open.serial == serial)
    }

    /// Opens again the formatting elements that were closed by something around them.
    fn reconstruct(&mut self) {
        let mut from = self.formats.len();
        while from > 0 {
            match &self.formats[from - 1] {
                Format::Element { serial, position, .. } if !self.is_standing(*serial, *position) => from -= 1,
                _ => break,
            }
        }
        for index in from..self.formats.len() {
            let (tag, attributes) = match &self.formats[index] {
                Format::Element { tag, attributes, .. } => (*tag, attributes.clone()),
                Format::Marker => continue,
            };
            let place = self.stack.len();
            let list: Vec<Attribute> = Attributes::new(&attributes, 0).collect();
            self.insert(&StartTag { tag, name: NAMES[tag as usize], attributes: &attributes, list: &list, closes_itself: false });
            let number = self.serial;
            if let Format::Element { serial, position, .. } = &mut self.formats[index] {
                *serial = number;
                *position = place;
            }
        }
    }

    fn clear_to_marker(&mut self) {
        while let Some(format) = self.formats.pop() {
            if matches!(format, Format::Marker) {
                break;
            }
        }
    }

    /// The adoption agency, as far as it moves nothing.
    fn close_formatting(&mut self, tag: Tag, name: &[u8]) {
        if self.top_is(tag) && !self.formats.iter().any(|f| matches!(f, Format::Element { serial, .. } if Some(*serial) == self.top().map(|o| o.serial))) {
            self.pop();
            return;
        }
        for _ in 0..8 {
            let found = self.formats.iter().enumerate().rev().take_while(|(_, f)| !matches!(f, Format::Marker)).find_map(|(i, f)| match f {
                Format::Element { tag: t, serial, position, .. } if *t == tag => Some((i, *serial, *position)),
                _ => None,
            });
            let Some((index, serial, position)) = found else {
                self.any_other_end(tag, name);
                return;
            };
            if !self.is_standing(serial, position) {
                self.formats.remove(index);
                return;
            }
            if self.scopes.last().is_some_and(|&mark| mark as usize > position) {
                return;
            }
            if self.specials.last().is_some_and(|&mark| mark as usize > position) {
                self.needs_tree = true;
                return;
            }
            self.pop_to(position as u32);
            self.formats.remove(index);
            return;
        }
    }

    fn any_other_end(&mut self, tag: Tag, name: &[u8]) {
        let Some(key) = self.known_key(tag, name) else { return };
        let Some(at) = self.last(key) else { return };
        if self.specials.last().is_some_and(|&mark| mark > at) {
            return;
        }
        self.implied_end_tags(tag);
        if self.last(key) == Some(at) {
            self.pop_to(at);
        }
    }

    // what the tokenizer tells

    pub fn is_foreign(&self) -> bool {
        self.top().is_some_and(|open| open.space != Space::Html)
    }

    fn is_in_foreign_content(&self, token: Option<&StartTag>) -> bool {
        if self.foreign == 0 {
            return false;
        }
        let Some(open) = self.top() else { return false };
        if open.space == Space::Html {
            return false;
        }
        match token {
            Some(token) => {
                let is_text = open.is_text_point && !matches!(token.tag, MGLYPH | MALIGNMARK);
                let is_svg = open.space == Space::Math && open.key == u32::from(ANNOTATION_XML) && token.tag == SVG;
                !(is_text || open.is_html_point || is_svg)
            }
            None => !(open.is_text_point || open.is_html_point),
        }
    }

    pub fn doctype(&mut self, rest: &[u8]) {
        self.skips_newline = false;
        if self.mode == Mode::Initial {
            self.is_quirky = is_quirky(rest);
            self.mode = Mode::BeforeHtml;
        }
    }

    pub fn comment(&mut self) {
        self.skips_newline = false;
        let is_elsewhere = matches!(self.mode, Mode::Initial | Mode::BeforeHtml | Mode::AfterBody | Mode::AfterAfterBody);
        if !is_elsewhere || self.is_foreign() {
            self.page.boundary();
        }
    }

    /// The text of a raw text element, which then ends; or the document does, which lexbor reads in a way of its own.
    pub fn raw_text(&mut self, text: &[u8], is_closed: bool) {
        self.needs_tree |= !is_closed && !self.formats.is_empty();
        let mut text = text;
        if self.skips_newline {
            self.skips_newline = false;
            text = text.strip_prefix(b"\n").unwrap_or(text);
        }
        if !text.is_empty() {
            self.page.text(text);
        }
    }

    pub fn text(&mut self, text: &[u8]) {
        let mut text = text;
        if self.skips_newline {
            self.skips_newline = false;
            text = text.strip_prefix(b"\n").unwrap_or(text);
        }
        if text.is_empty() {
            return;
        }
        if self.is_in_foreign_content(None) {
            self.add_text(text, true);
            return;
        }
        while !text.is_empty() {
            match self.mode {
                Mode::Initial | Mode::BeforeHtml | Mode::BeforeHead => {
                    text = skip_spaces(text);
                    if text.is_empty() {
                        return;
                    }
                    self.begin_head();
                    self.mode = Mode::InHead;
                }
                Mode::InHead | Mode::AfterHead | Mode::InHeadNoscript => {
                    let rest = skip_spaces(text);
                    let spaces = text.len() - rest.len();
                    if spaces > 0 {
                        self.page.text(&text[..spaces]);
                    }
                    text = rest;
                    if text.is_empty() {
                        return;
                    }
                    self.leave_head();
                }
                Mode::AfterBody | Mode::AfterAfterBody => {
                    if skip_spaces(text).is_empty() {
                        self.body_text(text);
                        return;
                    }
                    self.mode = Mode::InBody;
                }
                Mode::InBody | Mode::InCell | Mode::InCaption | Mode::InTemplate => {
                    self.body_text(text);
                    return;
                }
                Mode::InTable | Mode::InTableBody | Mode::InRow => {
                    if !self.in_table_context() {
                        self.body_text(text);
                        return;
                    }
                    if skip_spaces_and_nul(text).is_empty() {
                        self.add_text(text, false);
                    } else {
                        self.foster();
                    }
                    return;
                }
                Mode::InColumnGroup => {
                    let rest = skip_spaces(text);
                    let spaces = text.len() - rest.len();
                    if spaces > 0 {
                        self.page.text(&text[..spaces]);
                    }
                    text = rest;
                    if text.is_empty() {
                        return;
                    }
                    if !self.top_is(COLGROUP) {
                        return;
                    }
                    self.pop();
                    self.mode = Mode::InTable;
                }
            }
        }
    }

    /// Something in a table belongs before it; in a template that makes no difference.
    fn foster(&mut self) {
        self.needs_tree |= self.template_modes.is_empty();
    }

    fn in_table_context(&self) -> bool {
        self.top_is(TABLE) || self.top_is(TBODY) || self.top_is(TFOOT) || self.top_is(THEAD) || self.top_is(TR) || self.top_is(TEMPLATE)
    }

    fn body_text(&mut self, text: &[u8]) {
        if memchr::memchr(0, text).is_some() && text.iter().all(|&b| b == 0) {
            return;
        }
        self.reconstruct();
        self.add_text(text, false);
    }

    fn add_text(&mut self, text: &[u8], replaces_nul: bool) {
        if memchr::memchr(0, text).is_none() {
            self.page.text(text);
            return;
        }
        let mut clean = Vec::with_capacity(text.len());
        for &byte in text {
            if byte != 0 {
                clean.push(byte);
            } else if replaces_nul {
                clean.extend_from_slice("\u{FFFD}".as_bytes());
            }
        }
        if !clean.is_empty() {
            self.page.text(&clean);
        }
    }

    /// `<html>` and `<head>` are there, whether written or not.
    fn begin_head(&mut self) {
        if matches!(self.mode, Mode::Initial | Mode::BeforeHtml) {
            self.imply(HTML);
            self.mode = Mode::BeforeHead;
        }
        if self.mode == Mode::BeforeHead {
            self.imply(HEAD);
            self.has_head = true;
            self.mode = Mode::InHead;
        }
    }

    /// Goes on from the head to the body for whatever does not belong into the head.
    fn leave_head(&mut self) {
        if self.mode == Mode::InHeadNoscript {
            self.pop();
            self.mode = Mode::InHead;
        }
        if self.mode == Mode::InHead {
            self.pop();
            self.mode = Mode::AfterHead;
        }
        if self.mode == Mode::AfterHead {
            self.imply(BODY);
            self.page.begin_body();
            self.mode = Mode::InBody;
        }
    }

    pub fn end(&mut self) {
        for _ in 0..self.template_modes.len() {
            self.end_template();
        }
        self.begin_head();
        self.leave_head();
        while !self.stack.is_empty() {
            self.pop();
        }
    }

    pub fn start_tag(&mut self, token: &StartTag) -> After {
        self.skips_newline = false;
        if self.is_in_foreign_content(Some(token)) {
            return self.foreign_start(token);
        }
        self.html_start(token)
    }

    /// A start tag by the rules of the mode.
    fn html_start(&mut self, token: &StartTag) -> After {
        loop {
            match self.mode {
                Mode::Initial => self.mode = Mode::BeforeHtml,
                Mode::BeforeHtml => {
                    if token.tag == HTML {
                        self.insert(token);
                        self.mode = Mode::BeforeHead;
                        return After::Data;
                    }
                    self.imply(HTML);
                    self.mode = Mode::BeforeHead;
                }
                Mode::BeforeHead => match token.tag {
                    HTML => return self.again_html(token),
                    HEAD => {
                        self.insert(token);
                        self.has_head = true;
                        self.mode = Mode::InHead;
                        return After::Data;
                    }
                    _ => self.begin_head(),
                },
                Mode::InHead => match token.tag {
                    HTML => return self.again_html(token),
                    HEAD => return After::Data,
                    NOSCRIPT => {
                        self.insert(token);
                        self.mode = Mode::InHeadNoscript;
                        return After::Data;
                    }
                    tag if flags(tag) & IN_HEAD != 0 => return self.head_start(token),
                    _ => {
                        self.pop();
                        self.mode = Mode::AfterHead;
                    }
                },
                Mode::InHeadNoscript => match token.tag {
                    HTML => return self.again_html(token),
                    BASEFONT | BGSOUND | LINK | META | NOFRAMES | STYLE => return self.head_start(token),
                    HEAD | NOSCRIPT => return After::Data,
                    _ => {
                        self.pop();
                        self.mode = Mode::InHead;
                    }
                },
                Mode::AfterHead => match token.tag {
                    HTML => return self.again_html(token),
                    BODY => {
                        self.insert(token);
                        self.page.begin_body();
                        self.mode = Mode::InBody;
                        return After::Data;
                    }
                    FRAMESET => {
                        self.needs_tree = true;
                        return After::Data;
                    }
                    HEAD => return After::Data,
                    tag if flags(tag) & IN_HEAD != 0 => {
                        // It goes into the head, which is over: before the body, so the order is the same.
                        return self.head_start(token);
                    }
                    _ => self.leave_head(),
                },
                Mode::AfterBody | Mode::AfterAfterBody => {
                    if token.tag == HTML {
                        return self.again_html(token);
                    }
                    self.mode = Mode::InBody;
                }
                Mode::InBody => return self.body_start(token),
                Mode::InTable => match token.tag {
                    CAPTION => {
                        self.clear_to(&[TABLE, TEMPLATE, HTML]);
                        self.formats.push(Format::Marker);
                        self.insert(token);
                        self.mode = Mode::InCaption;
                        return After::Data;
                    }
                    COLGROUP => {
                        self.clear_to(&[TABLE, TEMPLATE, HTML]);
                        self.insert(token);
                        self.mode = Mode::InColumnGroup;
                        return After::Data;
                    }
                    COL => {
                        self.clear_to(&[TABLE, TEMPLATE, HTML]);
                        self.imply(COLGROUP);
                        self.mode = Mode::InColumnGroup;
                    }
                    TBODY | TFOOT | THEAD => {
                        self.clear_to(&[TABLE, TEMPLATE, HTML]);
                        self.insert(token);
                        self.mode = Mode::InTableBody;
                        return After::Data;
                    }
                    TD | TH | TR => {
                        self.clear_to(&[TABLE, TEMPLATE, HTML]);
                        self.imply(TBODY);
                        self.mode = Mode::InTableBody;
                    }
                    TABLE => {
                        if !self.in_table_scope(TABLE) {
                            return After::Data;
                        }
                        self.pop_through(TABLE);
                        self.reset_mode();
                    }
                    STYLE | SCRIPT => return self.head_start(token),
                    INPUT if attribute(token, b"type").is_some_and(|v| v.eq_ignore_ascii_case("hidden")) => {
                        self.insert_void(token);
                        return After::Data;
                    }
                    TEMPLATE => return self.head_start(token),
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
                Mode::InCaption => match token.tag {
                    CAPTION | COL | COLGROUP | TBODY | TD | TFOOT | TH | THEAD | TR => {
                        if !self.in_table_scope(CAPTION) {
                            return After::Data;
                        }
                        self.close_caption();
                    }
                    _ => return self.body_start(token),
                },
                Mode::InColumnGroup => match token.tag {
                    HTML => return self.again_html(token),
                    COL => {
                        self.insert_void(token);
                        return After::Data;
                    }
                    TEMPLATE => return self.head_start(token),
                    _ => {
                        if !self.top_is(COLGROUP) {
                            return After::Data;
                        }
                        self.pop();
                        self.mode = Mode::InTable;
                    }
                },
                Mode::InTemplate => {
                    let mode = match token.tag {
                        CAPTION | COLGROUP | TBODY | TFOOT | THEAD => Mode::InTable,
                        COL => Mode::InColumnGroup,
                        TR => Mode::InTableBody,
                        TD | TH => Mode::InRow,
                        tag if flags(tag) & IN_HEAD != 0 => return self.head_start(token),
                        _ => Mode::InBody,
                    };
                    self.template_modes.pop();
                    self.template_modes.push(mode);
                    self.mode = mode;
                }
                Mode::InTableBody => match token.tag {
                    TR => {
                        self.clear_to(&[TBODY, TFOOT, THEAD, TEMPLATE, HTML]);
                        self.insert(token);
                        self.mode = Mode::InRow;
                        return After::Data;
                    }
                    TH | TD => {
                        self.clear_to(&[TBODY, TFOOT, THEAD, TEMPLATE, HTML]);
                        self.imply(TR);
                        self.mode = Mode::InRow;
                    }
                    CAPTION | COL | COLGROUP | TBODY | TFOOT | THEAD => {
                        if !self.close_section() {
                            return After::Data;
                        }
                    }
                    _ => return self.table_start(token),
                },
                Mode::InRow => match token.tag {
                    TH | TD => {
                        self.clear_to(&[TR, TEMPLATE, HTML]);
                        self.insert(token);
                        self.mode = Mode::InCell;
                        self.formats.push(Format::Marker);
                        return After::Data;
                    }
                    CAPTION | COL | COLGROUP | TBODY | TFOOT | THEAD | TR => {
                        if !self.close_row() {
                            return After::Data;
                        }
                    }
                    _ => return self.table_start(token),
                },
                Mode::InCell => match token.tag {
                    CAPTION | COL | COLGROUP | TBODY | TD | TFOOT | TH | THEAD | TR => {
                        if !self.in_table_scope(TD) && !self.in_table_scope(TH) {
                            return After::Data;
                        }
                        self.close_cell();
                    }
                    _ => return self.body_start(token),
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
        while let Some(open) = self.top() {
            if open.space == Space::Html && tags.iter().any(|&tag| open.key == u32::from(tag)) {
                return;
            }
            self.pop();
        }
    }

    fn close_caption(&mut self) {
        self.implied_end_tags(0);
        self.pop_through(CAPTION);
        self.clear_to_marker();
        self.mode = Mode::InTable;
    }

    fn close_section(&mut self) -> bool {
        if !self.in_table_scope(TBODY) && !self.in_table_scope(THEAD) && !self.in_table_scope(TFOOT) {
            return false;
        }
        self.clear_to(&[TBODY, TFOOT, THEAD, TEMPLATE, HTML]);
        self.pop();
        self.mode = Mode::InTable;
        true
    }

    fn close_row(&mut self) -> bool {
        if !self.in_table_scope(TR) {
            return false;
        }
        self.clear_to(&[TR, TEMPLATE, HTML]);
        self.pop();
        self.mode = Mode::InTableBody;
        true
    }

    fn close_cell(&mut self) {
        self.implied_end_tags(0);
        let (td, th) = (self.last(u32::from(TD)), self.last(u32::from(TH)));
        if let Some(at) = td.max(th) {
            self.pop_to(at);
        }
        self.clear_to_marker();
        self.mode = Mode::InRow;
    }

    fn reset_mode(&mut self) {
        self.mode = Mode::InBody;
        for open in self.stack.iter().rev() {
            if open.space != Space::Html || open.key as usize >= KNOWN {
                continue;
            }
            self.mode = match open.key as Tag {
                TD | TH => Mode::InCell,
                TR => Mode::InRow,
                TBODY | THEAD | TFOOT => Mode::InTableBody,
                CAPTION => Mode::InCaption,
                COLGROUP => Mode::InColumnGroup,
                TABLE => Mode::InTable,
                TEMPLATE => self.template_modes.last().copied().unwrap_or(Mode::InBody),
                HEAD => Mode::InHead,
                BODY => Mode::InBody,
                HTML => Mode::AfterHead,
                _ => continue,
            };
            return;
        }
    }

    fn again_html(&mut self, token: &StartTag) -> After {
        if self.template_modes.is_empty() {
            self.page.html_attributes(token);
        }
        After::Data
    }

    fn begin_template(&mut self, token: &StartTag) {
        self.insert(token);
        self.page.mute();
        self.formats.push(Format::Marker);
        self.mode = Mode::InTemplate;
        self.template_modes.push(Mode::InTemplate);
    }

    fn end_template(&mut self) {
        if self.is_open(TEMPLATE) {
            self.pop_through(TEMPLATE);
            self.clear_to_marker();
            self.template_modes.pop();
            self.reset_mode();
        }
    }

    fn head_start(&mut self, token: &StartTag) -> After {
        match token.tag {
            TEMPLATE => {
                self.begin_template(token);
                After::Data
            }
            TITLE => {
                self.insert(token);
                After::Rcdata
            }
            SCRIPT => {
                self.insert(token);
                After::Script
            }
            STYLE | NOFRAMES => {
                self.insert(token);
                After::Rawtext
            }
            _ => {
                self.insert_void(token);
                After::Data
            }
        }
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
        if what & CLOSES_P != 0 {
            self.close_p();
            self.insert(token);
            return After::Data;
        }
        if what & HEADING != 0 {
            self.close_p();
            if self.top().is_some_and(|o| o.space == Space::Html && (o.key as usize) < KNOWN && flags(o.key as Tag) & HEADING != 0) {
                self.pop();
            }
            self.insert(token);
            return After::Data;
        }
        match tag {
            HTML => return self.again_html(token),
            BODY | HEAD | CAPTION | COL | COLGROUP | FRAME | TBODY | TD | TFOOT | TH | THEAD | TR => {}
            FRAMESET => self.needs_tree = true,
            PRE | LISTING => {
                self.close_p();
                self.insert(token);
                self.skips_newline = true;
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
            }
            LI => {
                if self.after(u32::from(LI), &self.barriers) && self.last(u32::from(LI)).is_some() {
                    self.implied_end_tags(LI);
                    self.pop_through(LI);
                }
                self.close_p();
                self.insert(token);
            }
            DD | DT => {
                let last = self.last(u32::from(DD)).max(self.last(u32::from(DT)));
                if let Some(at) = last {
                    if self.barriers.last().map_or(true, |&mark| at >= mark) {
                        let which = self.stack[at as usize].key as Tag;
                        self.implied_end_tags(which);
                        self.pop_to(at);
                    }
                }
                self.close_p();
                self.insert(token);
            }
            PLAINTEXT => {
                self.close_p();
                self.insert(token);
                return After::Plaintext;
            }
            BUTTON => {
                if self.in_scope(BUTTON) {
                    self.implied_end_tags(0);
                    self.pop_through(BUTTON);
                }
                self.reconstruct();
                self.insert(token);
            }
            APPLET | MARQUEE | OBJECT => {
                self.reconstruct();
                self.insert(token);
                self.formats.push(Format::Marker);
            }
            TABLE => {
                if !self.is_quirky {
                    self.close_p();
                }
                self.insert(token);
                self.mode = Mode::InTable;
            }
            AREA | BR | EMBED | IMG | KEYGEN | WBR => {
                self.reconstruct();
                self.insert_void(token);
            }
            IMAGE => {
                self.reconstruct();
                self.insert_void(&StartTag { tag: IMG, name: b"img", attributes: token.attributes, list: token.list, closes_itself: false });
            }
            INPUT => {
                if self.in_scope(SELECT) {
                    self.pop_through(SELECT);
                }
                self.reconstruct();
                self.insert_void(token);
            }
            PARAM | SOURCE | TRACK => self.insert_void(token),
            HR => {
                self.close_p();
                if self.in_scope(SELECT) {
                    self.implied_end_tags(0);
                }
                self.insert_void(token);
            }
            TEXTAREA => {
                // lexbor opens them again inside, where the standard does not
                self.needs_tree |= matches!(self.formats.last(), Some(Format::Element { serial, position, .. }) if !self.is_standing(*serial, *position));
                self.insert(token);
                self.skips_newline = true;
                return After::Rcdata;
            }
            XMP => {
                self.close_p();
                self.reconstruct();
                self.insert(token);
                return After::Rawtext;
            }
            IFRAME | NOEMBED => {
                self.insert(token);
                return After::Rawtext;
            }
            SELECT => {
                if self.in_scope(SELECT) {
                    self.pop_through(SELECT);
                    return After::Data;
                }
                self.reconstruct();
                self.insert(token);
            }
            OPTION => {
                if self.in_scope(SELECT) {
                    self.implied_end_tags(OPTGROUP);
                } else if self.top_is(OPTION) {
                    self.pop();
                }
                self.reconstruct();
                self.insert(token);
            }
            OPTGROUP => {
                if self.in_scope(SELECT) {
                    self.implied_end_tags(0);
                } else if self.top_is(OPTION) {
                    self.pop();
                }
                self.reconstruct();
                self.insert(token);
            }
            RB | RTC => {
                if self.in_scope(RUBY) {
                    self.implied_end_tags(0);
                }
                self.insert(token);
            }
            RP | RT => {
                if self.in_scope(RUBY) {
                    self.implied_end_tags(RTC);
                }
                self.insert(token);
            }
            MATH => {
                self.reconstruct();
                self.insert_foreign(token, Space::Math);
            }
            SVG => {
                self.reconstruct();
                self.insert_foreign(token, Space::Svg);
            }
            _ => {
                self.reconstruct();
                self.insert(token);
            }
        }
        After::Data
    }

    fn formatting_start(&mut self, token: &StartTag) -> After {
        if token.tag == A {
            let open = self.formats.iter().rev().take_while(|f| !matches!(f, Format::Marker)).any(|f| matches!(f, Format::Element { tag: A, .. }));
            if open {
                self.close_formatting(A, b"a");
                if self.needs_tree {
                    return After::Data;
                }
                let left = self.formats.iter().enumerate().rev().take_while(|(_, f)| !matches!(f, Format::Marker)).find_map(|(i, f)| match f {
                    Format::Element { tag: A, serial, position, .. } => Some((i, *serial, *position)),
                    _ => None,
                });
                if let Some((index, serial, position)) = left {
                    self.formats.remove(index);
                    if self.is_standing(serial, position) {
                        self.remove(position as u32);
                    }
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

    fn foreign_start(&mut self, token: &StartTag) -> After {
        let breaks_out = flags(token.tag) & BREAKS_OUT != 0
            || (token.tag == FONT && [b"color".as_slice(), b"face", b"size"].iter().any(|name| has_attribute(token, name)));
        if breaks_out {
            while self.top().is_some_and(|o| o.space != Space::Html && !o.is_html_point && !o.is_text_point) {
                self.pop();
            }
            return self.html_start(token);
        }
        let space = self.top().map_or(Space::Svg, |o| o.space);
        self.insert_foreign(token, space);
        After::Data
    }

    pub fn end_tag(&mut self, tag: Tag, name: &[u8]) {
        self.skips_newline = false;
        if self.foreign > 0 && self.is_foreign() {
            return self.foreign_end(tag, name);
        }
        self.html_end(tag, name);
    }

    fn html_end(&mut self, tag: Tag, name: &[u8]) {
        // The end of an element whose text was raw.
        if self.top_is(tag) && matches!(tag, TITLE | TEXTAREA | SCRIPT | STYLE | XMP | IFRAME | NOEMBED | NOFRAMES) {
            self.pop();
            return;
        }
        if tag == TEMPLATE && !matches!(self.mode, Mode::Initial | Mode::BeforeHtml | Mode::BeforeHead | Mode::InHeadNoscript) {
            if matches!(self.mode, Mode::AfterBody | Mode::AfterAfterBody) {
                self.mode = Mode::InBody;
            }
            return self.end_template();
        }
        loop {
            match self.mode {
                Mode::Initial | Mode::BeforeHtml | Mode::BeforeHead => {
                    if !matches!(tag, HEAD | BODY | HTML | BR) {
                        return;
                    }
                    self.begin_head();
                }
                Mode::InHead => match tag {
                    HEAD => {
                        self.pop();
                        self.mode = Mode::AfterHead;
                        return;
                    }
                    BODY | HTML | BR => {
                        self.pop();
                        self.mode = Mode::AfterHead;
                    }
                    _ => return,
                },
                Mode::InHeadNoscript => match tag {
                    NOSCRIPT => {
                        self.pop();
                        self.mode = Mode::InHead;
                        return;
                    }
                    BR => {
                        self.pop();
                        self.mode = Mode::InHead;
                    }
                    _ => return,
                },
                Mode::AfterHead => {
                    if !matches!(tag, BODY | HTML | BR) {
                        return;
                    }
                    self.leave_head();
                }
                Mode::AfterBody => {
                    if tag == HTML {
                        self.mode = Mode::AfterAfterBody;
                        return;
                    }
                    self.mode = Mode::InBody;
                }
                Mode::AfterAfterBody => self.mode = Mode::InBody,
                Mode::InBody => return self.body_end(tag, name),
                Mode::InTemplate => return,
                Mode::InTable => {
                    match tag {
                        TABLE => {
                            if self.in_table_scope(TABLE) {
                                self.pop_through(TABLE);
                                self.reset_mode();
                            }
                        }
                        BODY | CAPTION | COL | COLGROUP | HTML | TBODY | TD | TFOOT | TH | THEAD | TR => {}
                        _ => self.foster_end(tag, name),
                    }
                    return;
                }
                Mode::InCaption => match tag {
                    CAPTION => {
                        if self.in_table_scope(CAPTION) {
                            self.close_caption();
                        }
                        return;
                    }
                    TABLE => {
                        if !self.in_table_scope(CAPTION) {
                            return;
                        }
                        self.close_caption();
                    }
                    BODY | COL | COLGROUP | HTML | TBODY | TD | TFOOT | TH | THEAD | TR => return,
                    _ => return self.body_end(tag, name),
                },
                Mode::InColumnGroup => match tag {
                    COLGROUP => {
                        if self.top_is(COLGROUP) {
                            self.pop();
                            self.mode = Mode::InTable;
                        }
                        return;
                    }
                    COL => return,
                    _ => {
                        if !self.top_is(COLGROUP) {
                            return;
                        }
                        self.pop();
                        self.mode = Mode::InTable;
                    }
                },
                Mode::InTableBody => match tag {
                    TBODY | TFOOT | THEAD => {
                        if self.in_table_scope(tag) {
                            self.clear_to(&[TBODY, TFOOT, THEAD, TEMPLATE, HTML]);
                            self.pop();
                            self.mode = Mode::InTable;
                        }
                        return;
                    }
                    TABLE => {
                        if !self.close_section() {
                            return;
                        }
                    }
                    BODY | CAPTION | COL | COLGROUP | HTML | TD | TH | TR => return,
                    _ => return self.foster_end(tag, name),
                },
                Mode::InRow => match tag {
                    TR => {
                        self.close_row();
                        return;
                    }
                    TABLE => {
                        if !self.close_row() {
                            return;
                        }
                    }
                    TBODY | TFOOT | THEAD => {
                        if !self.in_table_scope(tag) || !self.close_row() {
                            return;
                        }
                    }
                    BODY | CAPTION | COL | COLGROUP | HTML | TD | TH => return,
                    _ => return self.foster_end(tag, name),
                },
                Mode::InCell => match tag {
                    TD | TH => {
                        if self.in_table_scope(tag) {
                            self.implied_end_tags(0);
                            self.pop_through(tag);
                            self.clear_to_marker();
                            self.mode = Mode::InRow;
                        }
                        return;
                    }
                    BODY | CAPTION | COL | COLGROUP | HTML => return,
                    TABLE | TBODY | TFOOT | THEAD | TR => {
                        if !self.in_table_scope(tag) {
                            return;
                        }
                        self.close_cell();
                    }
                    _ => return self.body_end(tag, name),
                },
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
        if what & BLOCK_END != 0 {
            if self.in_scope(tag) {
                self.implied_end_tags(0);
                self.pop_through(tag);
            }
            return;
        }
        if what & HEADING != 0 {
            let last = (H1..=H6).filter_map(|level| self.last(u32::from(level))).max();
            if let Some(at) = last {
                if self.scopes.last().map_or(true, |&mark| at >= mark) {
                    self.implied_end_tags(0);
                    self.pop_to(at);
                }
            }
            return;
        }
        match tag {
            BODY | HTML => {
                if self.in_scope(BODY) {
                    self.mode = if tag == BODY { Mode::AfterBody } else { Mode::AfterAfterBody };
                }
            }
            FORM if !self.template_modes.is_empty() => {
                if self.in_scope(FORM) {
                    self.implied_end_tags(0);
                    self.pop_through(FORM);
                }
            }
            FORM => {
                let serial = self.has_form.take();
                let Some(at) = self.last(u32::from(FORM)) else { return };
                if serial != Some(self.stack[at as usize].serial) || !self.in_scope(FORM) {
                    return;
                }
                self.implied_end_tags(0);
                self.remove(at);
            }
            P => {
                if !self.in_button_scope(P) {
                    self.imply(P);
                }
                self.implied_end_tags(P);
                self.pop_through(P);
            }
            LI => {
                if self.in_list_scope(LI) {
                    self.implied_end_tags(LI);
                    self.pop_through(LI);
                }
            }
            DD | DT => {
                if self.in_scope(tag) {
                    self.implied_end_tags(tag);
                    self.pop_through(tag);
                }
            }
            APPLET | MARQUEE | OBJECT => {
                if self.in_scope(tag) {
                    self.implied_end_tags(0);
                    self.pop_through(tag);
                    self.clear_to_marker();
                }
            }
            BR => {
                self.reconstruct();
                self.imply(BR);
                self.pop();
            }
            _ => self.any_other_end(tag, name),
        }
    }

    fn foreign_end(&mut self, tag: Tag, name: &[u8]) {
        if matches!(tag, BR | P) {
            while self.top().is_some_and(|o| o.space != Space::Html && !o.is_html_point && !o.is_text_point) {
                self.pop();
            }
            return self.html_end(tag, name);
        }
        let key = self.known_key(tag, name);
        let mut index = self.stack.len();
        let floor = index.saturating_sub(512); // deeper than that nobody closes by one tag
        while index > floor {
            let open = &self.stack[index - 1];
            if open.space == Space::Html {
                return self.html_end(tag, name);
            }
            if Some(open.key) == key {
                self.pop_to(index as u32 - 1);
                return;
            }
            index -= 1;
        }
    }

    pub fn into_page(self) -> Page {
        self.page
    }
}

pub fn attribute(token: &StartTag, name: &[u8]) -> Option<String> {
    token.list.iter().find(|a| a.name.eq_ignore_ascii_case(name)).map(|a| value_of(a.value.unwrap_or(b"")))
}

fn has_attribute(token: &StartTag, name: &[u8]) -> bool {
    token.list.iter().any(|a| a.name.eq_ignore_ascii_case(name))
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

fn skip_spaces(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|&b| !crate::text::is_html_space(b)).unwrap_or(text.len());
    &text[start..]
}

fn skip_spaces_and_nul(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|&b| b != 0 && !crate::text::is_html_space(b)).unwrap_or(text.len());
    &text[start..]
}

/// Does a doctype (what stands after `<!doctype`) switch to quirks mode?
fn is_quirky(rest: &[u8]) -> bool {
    let text = String::from_utf8_lossy(rest).to_ascii_lowercase();
    let text = text.trim();
    let Some(after) = text.strip_prefix("html") else { return true };
    let after = after.trim_start();
    if after.is_empty() {
        return false;
    }
    let (public, system) = identifiers(after);
    let Some(public) = public else {
        return system.as_deref() == Some("http://www.ibm.com/data/dtd/v11/ibmxhtml1-transitional.dtd");
    };
    if matches!(public.as_str(), "-//w3o//dtd w3 html strict 3.0//en//" | "-/w3c/dtd html 4.0 transitional/en" | "html") {
        return true;
    }
    if system.is_none()
        && (public.starts_with("-//w3c//dtd html 4.01 frameset//") || public.starts_with("-//w3c//dtd html 4.01 transitional//"))
    {
        return true;
    }
    QUIRKY.iter().any(|prefix| public.starts_with(prefix))
}

fn identifiers(after: &str) -> (Option<String>, Option<String>) {
    let (is_public, rest) = match (after.strip_prefix("public"), after.strip_prefix("system")) {
        (Some(rest), _) => (true, rest),
        (_, Some(rest)) => (false, rest),
        _ => return (None, None),
    };
    let mut found: Vec<String> = Vec::new();
    let mut rest = rest.trim_start();
    while let Some(quote) = rest.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        let Some(end) = rest[1..].find(quote) else { break };
        found.push(rest[1..=end].to_string());
        rest = rest[end + 2..].trim_start();
    }
    let mut found = found.into_iter();
    if is_public { (found.next(), found.next()) } else { (None, found.next()) }
}

const QUIRKY: &[&str] = &[
    "+//silmaril//dtd html pro v0r11 19970101//", "-//as//dtd html 3.0 aswedit + extensions//",
    "-//advasoft ltd//dtd html 3.0 aswedit + extensions//", "-//ietf//dtd html 2.0 level 1//", "-//ietf//dtd html 2.0 level 2//",
    "-//ietf//dtd html 2.0 strict level 1//", "-//ietf//dtd html 2.0 strict level 2//", "-//ietf//dtd html 2.0 strict//",
    "-//ietf//dtd html 2.0//", "-//ietf//dtd html 2.1e//", "-//ietf//dtd html 3.0//", "-//ietf//dtd html 3.2 final//",
    "-//ietf//dtd html 3.2//", "-//ietf//dtd html 3//", "-//ietf//dtd html level 0//", "-//ietf//dtd html level 1//",
    "-//ietf//dtd html level 2//", "-//ietf//dtd html level 3//", "-//ietf//dtd html strict level 0//",
    "-//ietf//dtd html strict level 1//", "-//ietf//dtd html strict level 2//", "-//ietf//dtd html strict level 3//",
    "-//ietf//dtd html strict//", "-//ietf//dtd html//", "-//metrius//dtd metrius presentational//",
    "-//microsoft//dtd internet explorer 2.0 html strict//", "-//microsoft//dtd internet explorer 2.0 html//",
    "-//microsoft//dtd internet explorer 2.0 tables//", "-//microsoft//dtd internet explorer 3.0 html strict//",
    "-//microsoft//dtd internet explorer 3.0 html//", "-//microsoft//dtd internet explorer 3.0 tables//",
    "-//netscape comm. corp.//dtd html//", "-//netscape comm. corp.//dtd strict html//", "-//o'reilly and associates//dtd html 2.0//",
    "-//o'reilly and associates//dtd html extended 1.0//", "-//o'reilly and associates//dtd html extended relaxed 1.0//",
    "-//sq//dtd html 2.0 hotmetal + extensions//", "-//softquad software//dtd hotmetal pro 6.0::19990601::extensions to html 4.0//",
    "-//softquad//dtd hotmetal pro 4.0::19971010::extensions to html 4.0//", "-//spyglass//dtd html 2.0 extended//",
    "-//sun microsystems corp.//dtd hotjava html//", "-//sun microsystems corp.//dtd hotjava strict html//",
    "-//w3c//dtd html 3 1995-03-24//", "-//w3c//dtd html 3.2 draft//", "-//w3c//dtd html 3.2 final//", "-//w3c//dtd html 3.2//",
    "-//w3c//dtd html 3.2s draft//", "-//w3c//dtd html 4.0 frameset//", "-//w3c//dtd html 4.0 transitional//",
    "-//w3c//dtd html experimental 19960712//", "-//w3c//dtd html experimental 970421//", "-//w3c//dtd w3 html//",
    "-//w3o//dtd w3 html 3.0//", "-//webtechs//dtd mozilla html 2.0//", "-//webtechs//dtd mozilla html//",
];
