//! Parses a document against its schema, and writes it in the plainest form that XML has: elements
//! without whitespace between them, text without CDATA sections, comments or needless references.
//!
//! ```text
//!   bytes -> UTF-8, characters, line ends -> tokens (quick-xml) -> schema -> plain document
//! ```
//!
//! The plain form has one reading for every parser. s3s alone would skip CDATA sections, and
//! whatever follows the first digits of an integer.
//!
//! XML features that no S3 document uses are refused rather than interpreted: document types and
//! their entities, processing instructions, attributes and prefixes except for the usual
//! declarations.

use std::borrow::Cow;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use s3s::dto::{Timestamp, TimestampFormat};

use super::DocumentError;
use super::schema::{Content, Element, Occurrence, TextType};
use crate::limits::XML_BYTES_MAX;
use crate::s3::parameters::parse_integer;

/// XML whitespace.
const WHITESPACE: [char; 4] = [' ', '\t', '\n', '\r'];
/// Attributes that elements may have. Each declares a namespace and does not affect the document;
/// the three after the first are from old documentation, and clients still send them.
const DECLARATIONS: [(&str, &str); 7] = [
    ("xmlns", "http://s3.amazonaws.com/doc/2006-03-01/"),
    ("xmlns", "http://s3.amazonaws.com/doc/2006-03-01"),
    ("xmlns", "http://s3.amazonaws.com/doc/2006-3-01"),
    ("xmlns", "http://s3.amazonaws.com/doc/2006-3-01/"),
    ("xmlns", ""),
    ("xmlns:xsi", "http://www.w3.org/2001/XMLSchema-instance"),
    ("xmlns:xsd", "http://www.w3.org/2001/XMLSchema"),
];

type Result<T, E = DocumentError> = std::result::Result<T, E>;

/// Rewrites `body`, a document of `root`, to its plain form.
pub(super) fn rewrite(body: &[u8], root: &'static Element) -> Result<String> {
    let text = std::str::from_utf8(body).map_err(|_| malformed("it is not UTF-8"))?;
    if !text.chars().all(is_character) {
        return Err(malformed("it has characters that XML 1.0 does not have"));
    }
    let text = with_line_feeds(text);
    let mut reader = Reader::from_str(&text);
    let mut writer = Writer::new(root);
    let mut is_first = true;
    loop {
        let event = reader.read_event().map_err(|error| malformed(error.to_string()))?;
        match event {
            Event::Start(tag) => writer.open(&tag)?,
            Event::Empty(tag) => {
                writer.open(&tag)?;
                writer.close()?;
            }
            Event::End(_) => writer.close()?,
            Event::Text(text) => writer.push_between_tags(utf8(&text)?)?,
            Event::CData(text) => writer.push(utf8(&text)?)?,
            Event::GeneralRef(name) => {
                let character = resolve(utf8(&name)?);
                let character =
                    character.ok_or_else(|| malformed("it has an unknown reference"))?;
                writer.push(character.encode_utf8(&mut [0; 4]))?;
            }
            Event::Comment(text) => check_comment(utf8(&text)?)?,
            Event::Decl(declaration) if is_first => check_declaration(utf8(&declaration)?)?,
            Event::Decl(_) => return Err(malformed("its declaration is not at its beginning")),
            Event::PI(_) => return Err(malformed("it has a processing instruction")),
            Event::DocType(_) => return Err(malformed("it has a document type")),
            Event::Eof => return writer.finish(),
        }
        is_first = false;
    }
}

/// An open element, and which of its children were seen.
struct OpenElement {
    element: &'static Element,
    seen: u32,
}

impl OpenElement {
    /// Returns the child of that name, if another one may come.
    fn admit(&mut self, name: &str) -> Result<&'static Element> {
        let element = self.element;
        let parent = element.name;
        let Content::Elements(children) = &element.content else {
            return Err(malformed(format!("{parent} may only hold text")));
        };
        let found = children.iter().enumerate().find(|(_, child)| child.name == name);
        let Some((index, child)) = found else {
            let name: String = name.chars().take(64).collect();
            return Err(malformed(format!("{parent} has no element {name}")));
        };
        let bit = 1 << index;
        if self.seen & bit != 0 && child.occurrence != Occurrence::Repeated {
            return Err(malformed(format!("{parent} has {name} twice")));
        }
        self.seen |= bit;
        Ok(child)
    }

    fn check_complete(&self, children: &[Element]) -> Result<()> {
        let is_missing = |(index, child): &(usize, &Element)| {
            child.occurrence == Occurrence::Once && self.seen & (1 << index) == 0
        };
        match children.iter().enumerate().find(is_missing) {
            Some((_, child)) => {
                Err(malformed(format!("{} has no {}", self.element.name, child.name)))
            }
            None => Ok(()),
        }
    }
}

/// Writes the plain form as the tokens of a document arrive.
struct Writer {
    root: &'static Element,
    /// The open elements. The depth is bounded by the schema: an unknown element is refused.
    open: Vec<OpenElement>,
    /// Text of the innermost element.
    text: String,
    written: String,
}

impl Writer {
    const fn new(root: &'static Element) -> Self {
        Self { root, open: Vec::new(), text: String::new(), written: String::new() }
    }

    fn open(&mut self, tag: &BytesStart<'_>) -> Result<()> {
        check_attributes(utf8(tag.attributes_raw())?)?;
        let name = tag.name();
        let name = utf8(name.as_ref())?;
        let element = match self.open.last_mut() {
            Some(parent) => parent.admit(name)?,
            None if self.written.is_empty() && name == self.root.name => self.root,
            None => {
                return Err(malformed(format!("it must be a single element {}", self.root.name)));
            }
        };
        if let Content::NotServed(what) = element.content {
            return Err(DocumentError::NotServed(what));
        }
        self.written.push('<');
        self.written.push_str(element.name);
        self.written.push('>');
        self.text.clear();
        self.open.push(OpenElement { element, seen: 0 });
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        let open = self.open.pop().ok_or_else(|| malformed("an end tag has no start tag"))?;
        let name = open.element.name;
        match &open.element.content {
            Content::Elements(children) => open.check_complete(children)?,
            Content::Text(text_type) => {
                let text = check_text(&self.text, *text_type)
                    .ok_or_else(|| malformed(format!("{name} is not {}", describe(*text_type))))?;
                push_escaped(&mut self.written, text)?;
            }
            Content::NotServed(what) => return Err(DocumentError::NotServed(what)),
        }
        self.written.push_str("</");
        self.written.push_str(name);
        self.written.push('>');
        Ok(())
    }

    fn push_between_tags(&mut self, text: &str) -> Result<()> {
        if text.contains("]]>") {
            return Err(malformed("its text contains ]]>"));
        }
        if self.open.is_empty() && text.chars().all(|c| WHITESPACE.contains(&c)) {
            return Ok(());
        }
        self.push(text)
    }

    fn push(&mut self, text: &str) -> Result<()> {
        let Some(open) = self.open.last() else {
            return Err(malformed("there is text outside of the root element"));
        };
        match &open.element.content {
            Content::Text(_) => self.text.push_str(text),
            Content::Elements(_) | Content::NotServed(_) => {
                if !text.chars().all(|c| WHITESPACE.contains(&c)) {
                    return Err(malformed(format!("{} must not hold text", open.element.name)));
                }
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<String> {
        if self.open.is_empty() && !self.written.is_empty() {
            Ok(self.written)
        } else {
            Err(malformed("it is truncated"))
        }
    }
}

/// Returns the normalized text, if it is of the type.
fn check_text(text: &str, text_type: TextType) -> Option<&str> {
    match text_type {
        TextType::Any => Some(text),
        TextType::Boolean if text.eq_ignore_ascii_case("true") => Some("true"),
        TextType::Boolean if text.eq_ignore_ascii_case("false") => Some("false"),
        TextType::Boolean => None,
        TextType::Integer { min, max } => {
            parse_integer(text).filter(|number| (min..=max).contains(number)).map(|_| text)
        }
        TextType::HttpDate => {
            let time = Timestamp::parse(TimestampFormat::HttpDate, text).ok()?;
            let mut again = Vec::new();
            time.format(TimestampFormat::HttpDate, &mut again).ok()?;
            (again == text.as_bytes()).then_some(text)
        }
    }
}

fn describe(text_type: TextType) -> Cow<'static, str> {
    match text_type {
        TextType::Any => "text".into(),
        TextType::Boolean => "true or false".into(),
        TextType::Integer { min, max } => format!("an integer from {min} to {max}").into(),
        TextType::HttpDate => "an HTTP date".into(),
    }
}

/// Text in a CDATA section takes fewer bytes than outside, so the limit on the body does not bound
/// the rewritten text; this checks it.
fn push_escaped(written: &mut String, text: &str) -> Result<()> {
    for c in text.chars() {
        match c {
            '&' => written.push_str("&amp;"),
            '<' => written.push_str("&lt;"),
            '>' => written.push_str("&gt;"),
            // A bare carriage return would be read as a line feed.
            '\r' => written.push_str("&#13;"),
            c => written.push(c),
        }
        if written.len() > XML_BYTES_MAX {
            return Err(malformed(format!("it is longer than {XML_BYTES_MAX} bytes")));
        }
    }
    Ok(())
}

fn malformed(reason: impl Into<Cow<'static, str>>) -> DocumentError {
    DocumentError::Malformed(reason.into())
}

fn utf8(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| malformed("it is not UTF-8"))
}

/// Returns whether XML 1.0 allows the character.
const fn is_character(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | '\u{20}'..='\u{fffd}' | '\u{10000}'..)
}

/// Normalizes line ends as XML 1.0 (2.11) does, before any parsing.
fn with_line_feeds(text: &str) -> Cow<'_, str> {
    if text.contains('\r') {
        text.replace("\r\n", "\n").replace('\r', "\n").into()
    } else {
        text.into()
    }
}

/// Returns the character that a reference stands for: one of the five names, or a number.
fn resolve(name: &str) -> Option<char> {
    let number = match name {
        "lt" => return Some('<'),
        "gt" => return Some('>'),
        "amp" => return Some('&'),
        "apos" => return Some('\''),
        "quot" => return Some('"'),
        _ => name.strip_prefix('#')?,
    };
    let (digits, radix) = number.strip_prefix('x').map_or((number, 10), |digits| (digits, 16));
    // `from_str_radix` accepts a sign.
    let is_plain = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
    let number = is_plain.then(|| u32::from_str_radix(digits, radix).ok())?;
    number.and_then(char::from_u32).filter(|c| is_character(*c))
}

fn check_comment(text: &str) -> Result<()> {
    if text.contains("--") || text.ends_with('-') {
        return Err(malformed("a comment contains two hyphens"));
    }
    Ok(())
}

/// Checks `xml version="1.0" encoding="UTF-8" standalone="yes"`; the last two are optional.
fn check_declaration(text: &str) -> Result<()> {
    let attributes = attributes(text.strip_prefix("xml").unwrap_or_default())?;
    let rest = match attributes.as_slice() {
        [("version", "1.0"), rest @ ..] => match rest {
            [("encoding", encoding), rest @ ..] if encoding.eq_ignore_ascii_case("UTF-8") => rest,
            rest => rest,
        },
        _ => return Err(malformed("its declaration is not for XML 1.0")),
    };
    match rest {
        [] | [("standalone", "yes" | "no")] => Ok(()),
        _ => Err(malformed("its declaration is not for XML 1.0 in UTF-8")),
    }
}

fn check_attributes(text: &str) -> Result<()> {
    match attributes(text)?.into_iter().find(|attribute| !DECLARATIONS.contains(attribute)) {
        Some((name, _)) => Err(malformed(format!("an element has an attribute {name}"))),
        None => Ok(()),
    }
}

/// Parses the attributes of a tag. References in their values are not resolved: no accepted value
/// has any.
fn attributes(text: &str) -> Result<Vec<(&str, &str)>> {
    let mut found: Vec<(&str, &str)> = Vec::new();
    let mut rest = text;
    loop {
        let next = rest.trim_start_matches(WHITESPACE);
        if next.is_empty() {
            return Ok(found);
        }
        let attribute = (next.len() < rest.len()).then(|| split_attribute(next)).flatten();
        let Some((name, value, after)) = attribute else {
            return Err(malformed("an attribute is not well-formed"));
        };
        if found.iter().any(|(earlier, _)| *earlier == name) {
            return Err(malformed("an attribute is repeated"));
        }
        found.push((name, value));
        rest = after;
    }
}

/// Splits off the first attribute: its name, its value, and the remaining text.
fn split_attribute(text: &str) -> Option<(&str, &str, &str)> {
    let (name, after) = text.split_once('=')?;
    let after = after.trim_start_matches(WHITESPACE);
    let quote = after.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let (value, after) = after.get(1..)?.split_once(quote)?;
    Some((name.trim_end_matches(WHITESPACE), value, after))
}
