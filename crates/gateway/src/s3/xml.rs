//! XML on its way out: the elements of error documents, and references for control characters.
//!
//! s3s writes the characters of a name as they are. A parser of XML turns a carriage return into a
//! line feed, so that a client would ask for another key than the one that was listed, and knows no
//! other control characters at all. S3 writes each of them as a character reference. XML 1.0 admits
//! references to tab, line feed and carriage return only: strict parsers refuse the others, and
//! `encoding-type=url` is the form that they read.

use std::fmt::Write as _;

/// Bytes looked at in one go: so many are compared by few instructions.
const STRETCH: usize = 64;

/// Appends an element; what it contains is escaped, but for control characters.
pub(crate) fn push_element(text: &mut String, name: &str, content: &str) {
    text.push('<');
    text.push_str(name);
    text.push('>');
    for c in content.chars() {
        match c {
            '<' => text.push_str("&lt;"),
            '>' => text.push_str("&gt;"),
            '&' => text.push_str("&amp;"),
            '"' => text.push_str("&quot;"),
            c => text.push(c),
        }
    }
    text.push_str("</");
    text.push_str(name);
    text.push('>');
}

/// The document with its control characters as references; `None` when it has none of them.
pub(crate) fn escape_controls(document: &[u8]) -> Option<String> {
    if !may_need_references(document) {
        return None;
    }
    let text = std::str::from_utf8(document).ok()?;
    if !text.contains(needs_reference) {
        return None;
    }
    let mut escaped = String::with_capacity(text.len() + text.len() / 4);
    for c in text.chars() {
        if needs_reference(c) {
            // Writing to a string does not fail.
            let _ = write!(escaped, "&#{};", u32::from(c));
        } else {
            escaped.push(c);
        }
    }
    Some(escaped)
}

/// Whether a parser would read another character, or refuse it.
fn needs_reference(c: char) -> bool {
    matches!(c, '\0'..='\u{1f}' if c != '\t' && c != '\n') || matches!(c, '\u{fffe}' | '\u{ffff}')
}

/// Whether some byte could be one of such a character.
fn may_need_references(document: &[u8]) -> bool {
    let may = |byte: u8| {
        let is_control = (byte < b' ') & (byte != b'\n') & (byte != b'\t');
        is_control | (byte == 0xef)
    };
    let mut stretches = document.chunks(STRETCH);
    stretches.any(|stretch| stretch.iter().fold(false, |found, &byte| found | may(byte)))
}

#[cfg(test)]
mod tests;
