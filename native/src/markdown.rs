//! Markdown of an outline. The twin, which says what is written how, is `lycosa.web.markdown`.

use crate::outline::{code_lines, Item, Outline, Span};
use crate::tags::*;
use crate::text::{collapsed, is_space};
use std::collections::HashMap;

/// Around the target of a link, for the caller to put its URL there.
const TARGET: char = '\x01';
/// Begins and ends code in a line, until it is known how many backticks that takes.
const CODE_MARK: char = '\x02';
const CODE_PLACE: usize = 3;
const LINK_PLACE: usize = 4;
/// How each mark is written, by its place.
const MARKS: [&str; 5] = ["**", "*", "~~", "\x02", "["];
/// The code and the blocks around it whose class may name its language.
const LANGUAGE_UP: usize = 3;
const LANGUAGES: [&str; 6] = ["language-", "lang-", "highlight-source-", "highlight-", "brush: ", "brush:"];
const NO_LANGUAGES: [&str; 6] = ["default", "none", "text", "plain", "plaintext", "notranslate"];
/// Cells in a row, however many columns one spans; rows that one spans.
const MOST_CELLS: usize = 100;
const MOST_ROWS: usize = 1_000;
/// Parts of a link that other blocks, line breaks or marks interrupt.
const MOST_PARTS: usize = 20;
/// Of what stands before the lines in lists and quotes, and so many more for each block and each character in it.
const PREFIX_CHARS: usize = 65_536;
const PREFIX_CHARS_OF_BLOCK: usize = 16;
const PREFIX_CHARS_OF_CHAR: usize = 4;

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Nothing,
    Text,
    Item,
    List,
    Other,
}

/// What stands before the first line of a list item or quote, and before the others.
struct Prefix {
    first: String,
    others: String,
    is_item: bool,
    is_used: bool,
}

#[derive(Default)]
struct Table {
    rows: Vec<Vec<String>>,
    has_head: bool,
    row: Vec<String>,
    spans: Vec<usize>, // how many rows a cell above still takes, by column
}

#[derive(Default)]
struct Writer {
    out: String,
    last: Kind, // of the last block
    nodes: Vec<usize>,
    prefixes: Vec<Prefix>,
    width: usize, // of them all
    spare_chars: usize,
    numbers: Vec<usize>, // of each open list: that of its next item, 0 without numbers
    line: String,
    has_space: bool,
    counts: [usize; 4],   // open elements of each mark
    marks: Vec<usize>,    // that are open, in their order
    waiting: Vec<usize>,  // those of them that are written before the next word
    target: String,       // of the open link
    parts: usize,         // of it, up to here
    flat: usize,          // where an open heading or pre is in the nodes: blocks in it are none
    code: Option<String>, // of an open pre
    language: String,
    languages: HashMap<usize, String>, // that the classes of blocks around code name
    table: Option<Table>,
    cell: Option<Vec<String>>, // the blocks of an open cell
}

/// The Markdown of the items for reading.
pub fn markdown_of(outline: &Outline, runs: &[Span]) -> String {
    let mut writer = Writer { spare_chars: PREFIX_CHARS, ..Writer::default() };
    for item in runs.iter().flat_map(|&(start, end)| &outline.items[start..end]) {
        match *item {
            Item::Text(start, end) => writer.add_text(std::str::from_utf8(outline.text_at(start, end)).unwrap_or("")),
            Item::Start(number) => writer.open(outline, number),
            Item::End => writer.close(outline),
            Item::Break => writer.add_break(false),
            Item::Rule => writer.add_break(true),
            Item::Inline(A, attributes) => writer.link(outline.attribute(attributes, b"href").trim_matches(is_space)),
            Item::InlineEnd(A) => writer.link(""),
            Item::Inline(CODE, attributes) if writer.code.is_some() => {
                if writer.language.is_empty() {
                    writer.language = language(&outline.attribute(attributes, b"class"));
                }
            }
            Item::Inline(tag, _) => writer.begin_mark(tag),
            Item::InlineEnd(tag) => writer.end_mark(tag),
        }
    }
    while !writer.nodes.is_empty() {
        writer.close(outline);
    }
    writer.flush(0);
    writer.out
}

impl Writer {
    // blocks

    fn open(&mut self, outline: &Outline, number: usize) {
        let node = &outline.nodes[number];
        self.nodes.push(number);
        if self.flat > 0 {
            return self.add_boundary();
        }
        self.flush(0);
        match node.tag {
            H1..=H6 => self.flat = self.nodes.len(),
            PRE | LISTING => {
                self.flat = self.nodes.len();
                self.code = Some(String::new());
                let known = &mut self.languages;
                let mut named = self.nodes.iter().rev().take(LANGUAGE_UP).map(|&one| {
                    let find = || language(&outline.attribute(outline.nodes[one].attributes, b"class"));
                    known.entry(one).or_insert_with(find).clone()
                });
                self.language = named.find(|name| !name.is_empty()).unwrap_or_default();
            }
            tag if self.table.is_some() => match (tag, &mut self.table) {
                (TR, Some(table)) => table.begin_row(),
                (TD | TH, _) => self.cell = Some(Vec::new()),
                _ => {}
            },
            TABLE => self.table = (!node.is_layout).then(Table::default),
            UL | MENU | DIR => self.numbers.push(0),
            OL => self.numbers.push(number_of(&outline.attribute(node.attributes, b"start"))),
            LI => {
                let number = self.numbers.last().copied().unwrap_or(0);
                let first = if number > 0 { format!("{number}. ") } else { "- ".to_string() };
                if let Some(next) = self.numbers.last_mut().filter(|next| **next > 0) {
                    *next += 1;
                }
                self.begin_prefix(Prefix { others: " ".repeat(first.len()), first, is_item: true, is_used: false });
            }
            BLOCKQUOTE => {
                let quote = "> ".to_string();
                self.begin_prefix(Prefix { first: quote.clone(), others: quote, is_item: false, is_used: false });
            }
            _ => {}
        }
    }

    fn begin_prefix(&mut self, prefix: Prefix) {
        self.width += prefix.others.len();
        self.prefixes.push(prefix);
    }

    fn close(&mut self, outline: &Outline) {
        let Some(number) = self.nodes.pop() else { return };
        let node = &outline.nodes[number];
        match node.tag {
            tag if self.flat > self.nodes.len() => {
                self.flat = 0;
                match self.code.take() {
                    Some(code) => self.end_code(&code),
                    None => self.flush(usize::from(tag - H1) + 1),
                }
            }
            _ if self.flat > 0 => self.add_boundary(),
            tag => {
                self.flush(0);
                match (tag, self.table.take()) {
                    (TABLE, Some(table)) => {
                        self.cell = None;
                        self.emit(&table.lines(), Kind::Other);
                    }
                    (_, Some(mut table)) => {
                        if matches!(tag, TD | TH) {
                            let text = self.cell.take().unwrap_or_default().join("<br>").replace('|', "\\|");
                            let span = |name| number_of(&outline.attribute(node.attributes, name)).max(1);
                            table.add_cell(text, span(b"colspan").min(MOST_CELLS), span(b"rowspan").min(MOST_ROWS));
                        } else if tag == TR {
                            let parent = self.nodes.last().map_or(0, |&one| outline.nodes[one].tag);
                            table.end_row(node.columns == node.rows || parent == THEAD);
                        }
                        self.table = Some(table);
                    }
                    (UL | OL | MENU | DIR, _) => {
                        self.numbers.pop();
                        self.last = if self.numbers.is_empty() { Kind::List } else { self.last };
                    }
                    (LI | BLOCKQUOTE, _) => {
                        self.width -= self.prefixes.pop().map_or(0, |prefix| prefix.others.len());
                    }
                    _ => {}
                }
            }
        }
    }

    // text and inline elements

    fn add_text(&mut self, text: &str) {
        if let Some(code) = &mut self.code {
            return code.push_str(text);
        }
        let words = collapsed(text);
        if words.is_empty() {
            self.has_space = true;
            return;
        }
        if !self.line.is_empty() && !self.line.ends_with('\n') && (self.has_space || text.starts_with(is_space)) {
            self.line.push(' ');
        }
        if self.waiting.contains(&LINK_PLACE) {
            self.parts += 1;
            if self.parts > MOST_PARTS {
                self.marks.retain(|&mark| mark != LINK_PLACE);
                self.waiting.retain(|&mark| mark != LINK_PLACE);
            }
        }
        for mark in std::mem::take(&mut self.waiting) {
            self.line.push_str(MARKS[mark]);
        }
        if self.marks.contains(&CODE_PLACE) {
            self.line.push_str(&words);
        } else {
            push_escaped(&mut self.line, &words, self.marks.contains(&LINK_PLACE));
        }
        self.has_space = text.ends_with(is_space);
    }

    fn begin_mark(&mut self, tag: Tag) {
        let mark = place_of(tag);
        if self.code.is_none() {
            self.counts[mark] += 1;
            if self.counts[mark] == 1 {
                self.begin(mark);
            }
        }
    }

    fn end_mark(&mut self, tag: Tag) {
        let mark = place_of(tag);
        if self.code.is_none() && self.counts[mark] > 0 {
            self.counts[mark] -= 1;
            if self.counts[mark] == 0 {
                self.finish(mark);
            }
        }
    }

    /// Ends the open link, and begins one unless there is no target.
    fn link(&mut self, target: &str) {
        if self.code.is_some() {
            return;
        }
        if self.marks.contains(&LINK_PLACE) {
            self.finish(LINK_PLACE);
        }
        let lower = target.to_lowercase();
        if target.is_empty() || ["#", "javascript:", "data:"].iter().any(|start| lower.starts_with(start)) {
            return;
        }
        // A link cannot stand in code: code ends before it, and begins again in it and after it.
        let is_code = self.marks.contains(&CODE_PLACE);
        if is_code {
            self.finish(CODE_PLACE);
        }
        self.target = target.to_string();
        self.parts = 0;
        self.begin(LINK_PLACE);
        if is_code {
            self.begin(CODE_PLACE);
        }
    }

    fn begin(&mut self, mark: usize) {
        self.marks.push(mark);
        self.waiting.push(mark);
    }

    /// Ends a mark, and those that were opened after it, which then begin again.
    fn finish(&mut self, mark: usize) {
        if let Some(place) = self.marks.iter().position(|&one| one == mark) {
            self.pause(place);
            self.waiting.retain(|&one| one != mark);
            self.marks.remove(place);
        }
    }

    /// Ends the marks from the first on; they wait for the next word.
    fn pause(&mut self, first: usize) {
        for &mark in self.marks[first..].iter().rev().filter(|mark| !self.waiting.contains(mark)) {
            if mark == LINK_PLACE {
                self.line.push_str(&format!("]({TARGET}{}{TARGET})", self.target));
            } else {
                self.line.push_str(MARKS[mark]);
            }
        }
        let waits = |&(place, mark): &(usize, &usize)| place >= first || self.waiting.contains(mark);
        self.waiting = self.marks.iter().enumerate().filter(waits).map(|(_, &mark)| mark).collect();
    }

    fn add_break(&mut self, is_rule: bool) {
        if let Some(code) = &mut self.code {
            code.push('\n');
        } else if is_rule && self.flat == 0 && self.cell.is_none() {
            self.flush(0);
            self.emit(&["---".to_string()], Kind::Other);
        } else if self.flat > 0 || self.line.is_empty() {
            self.has_space = true;
        } else if !self.line.ends_with('\n') {
            self.pause(0);
            self.line.push('\n');
        }
    }

    // what is written

    /// Ends the open block, a heading of this level, or a text.
    fn flush(&mut self, level: usize) {
        self.has_space = false;
        if self.line.is_empty() {
            return;
        }
        self.pause(0);
        let text = with_code_spans(std::mem::take(&mut self.line).trim_end_matches('\n'));
        if level > 0 {
            let words = text.replace('\n', " ");
            return self.emit(&[format!("{} {words}", "#".repeat(level))], Kind::Other);
        }
        let lines: Vec<String> = text.split('\n').map(escaped_start).collect();
        self.emit(&lines, Kind::Text);
    }

    fn emit(&mut self, lines: &[String], kind: Kind) {
        if let Some(cell) = &mut self.cell {
            return cell.extend_from_slice(lines);
        }
        if lines.is_empty() {
            return;
        }
        if self.prefixes.is_empty() || !self.affords_prefixes(lines) {
            self.out.push_str(if self.out.is_empty() { "" } else { "\n\n" });
            self.out.push_str(&lines.join(if kind == Kind::Text { "  \n" } else { "\n" }));
            self.last = kind;
            return;
        }
        if !self.out.is_empty() {
            let is_new_item = self.prefixes.iter().any(|prefix| !prefix.is_used && prefix.is_item);
            if !(is_new_item && self.last == Kind::Item) {
                let used = self.prefixes.iter().filter(|prefix| prefix.is_used);
                let empty: String = used.map(|prefix| prefix.others.as_str()).collect();
                self.out.push('\n');
                self.out.push_str(empty.trim_end_matches(' '));
            }
            self.out.push('\n');
        }
        let others: String = self.prefixes.iter().map(|prefix| prefix.others.as_str()).collect();
        for prefix in &mut self.prefixes {
            self.out.push_str(if prefix.is_used { &prefix.others } else { &prefix.first });
            prefix.is_used = true;
        }
        let between = format!("{}\n{others}", if kind == Kind::Text { "  " } else { "" });
        self.out.push_str(&lines.join(&between));
        let is_item = kind == Kind::Text && self.prefixes.iter().any(|prefix| prefix.is_item);
        self.last = if is_item { Kind::Item } else { kind };
    }

    fn affords_prefixes(&mut self, lines: &[String]) -> bool {
        let chars: usize = lines.iter().map(|line| line.chars().count()).sum();
        self.spare_chars += PREFIX_CHARS_OF_BLOCK + PREFIX_CHARS_OF_CHAR * chars;
        let left = self.spare_chars.checked_sub(self.width * lines.len());
        self.spare_chars = left.unwrap_or(self.spare_chars);
        left.is_some()
    }

    /// A block begins or ends in a heading or in code.
    fn add_boundary(&mut self) {
        self.has_space = true;
        if let Some(code) = self.code.as_mut().filter(|code| !code.is_empty() && !code.ends_with('\n')) {
            code.push('\n');
        }
    }

    fn end_code(&mut self, code: &str) {
        let lines = code_lines(code.as_bytes());
        if let Some(cell) = &mut self.cell {
            let whole = lines.iter().map(|line| line.trim_matches(is_space)).filter(|line| !line.is_empty());
            cell.extend(whole.map(code_span));
        } else if !lines.is_empty() {
            let starts = lines.iter().map(|line| line.trim_start_matches(is_space));
            let longest = starts.map(|start| start.len() - start.trim_start_matches('`').len()).max().unwrap_or(0);
            let fence = "`".repeat(longest.max(2) + 1);
            let first = format!("{fence}{}", self.language);
            let lines: Vec<String> = [&*first].into_iter().chain(lines).chain([&*fence]).map(str::to_string).collect();
            self.emit(&lines, Kind::Other);
        }
    }
}

impl Table {
    fn begin_row(&mut self) {
        self.row.clear();
        self.skip_taken();
    }

    fn skip_taken(&mut self) {
        while let Some(left) = self.spans.get_mut(self.row.len()).filter(|left| **left > 0) {
            *left -= 1;
            self.row.push(String::new());
        }
    }

    fn add_cell(&mut self, mut text: String, columns: usize, rows: usize) {
        for _ in 0..columns.min(MOST_CELLS.saturating_sub(self.row.len())) {
            let place = self.row.len();
            self.spans.resize(self.spans.len().max(place + 1), 0);
            self.spans[place] = rows - 1;
            self.row.push(std::mem::take(&mut text));
        }
        self.skip_taken();
    }

    fn end_row(&mut self, is_head: bool) {
        let row = std::mem::take(&mut self.row);
        if row.iter().any(|cell| !cell.is_empty()) {
            self.has_head |= is_head && self.rows.is_empty();
            self.rows.push(row);
        }
    }

    fn lines(mut self) -> Vec<String> {
        let Some(width) = self.rows.iter().map(Vec::len).max() else { return Vec::new() };
        if !self.has_head {
            self.rows.insert(0, Vec::new());
        }
        let line = |mut row: Vec<String>| {
            row.resize(width, String::new());
            format!("| {} |", row.join(" | "))
        };
        let mut lines: Vec<String> = self.rows.into_iter().map(line).collect();
        lines.insert(1, format!("|{}", " --- |".repeat(width)));
        lines
    }
}

fn place_of(tag: Tag) -> usize {
    match tag {
        B | STRONG => 0,
        I | EM => 1,
        DEL | S | STRIKE => 2,
        _ => CODE_PLACE,
    }
}

/// A number in an attribute, 1 if there is none.
fn number_of(text: &str) -> usize {
    let is_number = text.len() < 9 && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|&number| is_number && number > 0).unwrap_or(1)
}

/// The language of code that a class names; empty if none.
fn language(classes: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "+#.-".contains(c);
    let starts = [0].into_iter().chain(classes.match_indices(' ').map(|(at, _)| at + 1));
    let named = starts.flat_map(|at| LANGUAGES.iter().filter_map(move |start| classes[at..].strip_prefix(start)));
    let names = named.map(|rest| &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())]);
    let found = names.into_iter().find(|name| !name.is_empty()).unwrap_or("").to_ascii_lowercase();
    if NO_LANGUAGES.contains(&found.as_str()) {
        String::new()
    } else {
        found
    }
}

/// Appends words, with what would be Markdown escaped.
fn push_escaped(out: &mut String, words: &str, is_in_link: bool) {
    let bytes = words.as_bytes();
    let is_letter = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte >= 0x80);
    let mut copied = 0;
    for (at, byte) in bytes.iter().enumerate() {
        let next = bytes.get(at + 1);
        let is_escaped = match byte {
            b'\\' | b'`' | b'*' => true,
            b'_' => !is_letter(at.checked_sub(1).and_then(|before| bytes.get(before))) || !is_letter(next),
            b'[' => is_in_link,
            b']' => is_in_link || matches!(next, Some(b'(' | b':' | b'[')),
            b'<' => next.is_some_and(|next| next.is_ascii_alphabetic() || matches!(next, b'/' | b'!' | b'?')),
            b'&' => is_reference(&bytes[at + 1..]),
            _ => false,
        };
        if is_escaped {
            out.push_str(&words[copied..at]);
            out.push('\\');
            copied = at;
        }
    }
    out.push_str(&words[copied..]);
}

/// Does what stands after an ampersand look like a reference?
fn is_reference(after: &[u8]) -> bool {
    let name = after.strip_prefix(b"#").unwrap_or(after);
    let length = name.iter().take(33).take_while(|byte| byte.is_ascii_alphanumeric()).count();
    (1..=32).contains(&length) && name.get(length) == Some(&b';')
}

/// A line that does not begin another block.
fn escaped_start(line: &str) -> String {
    let ends = |rest: &str| rest.is_empty() || rest.starts_with(' ');
    let hashes = line.len() - line.trim_start_matches('#').len();
    let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    if ((1..=6).contains(&hashes) && ends(&line[hashes..]))
        || line.strip_prefix(['-', '+', '=']).is_some_and(ends)
        || [">", "---", "===", "~~~"].iter().any(|start| line.starts_with(start))
    {
        format!("\\{line}")
    } else if (1..=9).contains(&digits) && line[digits..].strip_prefix(['.', ')']).is_some_and(ends) {
        format!("{}\\{}", &line[..digits], &line[digits..])
    } else {
        line.to_string()
    }
}

fn with_code_spans(text: &str) -> String {
    if !text.contains(CODE_MARK) {
        return text.to_string();
    }
    let parts = text.split(CODE_MARK).enumerate();
    parts.map(|(place, part)| if place % 2 == 1 { code_span(part) } else { part.to_string() }).collect()
}

fn code_span(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    if longest == 0 {
        return format!("`{text}`");
    }
    let fence = "`".repeat(longest + 1);
    format!("{fence} {text} {fence}")
}
