//! Writes XML: the elements of error documents, and character references for control characters.
//!
//! s3s writes the characters of a name unescaped. XML parsers turn a carriage return into a line
//! feed, so that a client would request another key than the listed one, and reject other control
//! characters. S3 writes each of them as a character reference. XML 1.0 permits references to tab,
//! line feed and carriage return only: strict parsers reject the others, and need
//! `encoding-type=url`.

use std::fmt::Write as _;

/// Bytes scanned at a time: few instructions compare this many.
const SCAN_BYTES: usize = 64;

/// Appends an element; its content is escaped, except for control characters.
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

/// Replaces control characters in a document by references; `None` when it has none.
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
            // Writing to a string cannot fail.
            let _ = write!(escaped, "&#{};", u32::from(c));
        } else {
            escaped.push(c);
        }
    }
    Some(escaped)
}

/// Returns whether a parser would change or reject the character.
fn needs_reference(c: char) -> bool {
    matches!(c, '\0'..='\u{1f}' if c != '\t' && c != '\n') || matches!(c, '\u{fffe}' | '\u{ffff}')
}

/// Returns whether some byte could belong to such a character.
fn may_need_references(document: &[u8]) -> bool {
    let may = |byte: u8| {
        let is_control = (byte < b' ') & (byte != b'\n') & (byte != b'\t');
        is_control | (byte == 0xef)
    };
    let mut blocks = document.chunks(SCAN_BYTES);
    blocks.any(|block| block.iter().fold(false, |found, &byte| found | may(byte)))
}

#[cfg(test)]
mod tests;
