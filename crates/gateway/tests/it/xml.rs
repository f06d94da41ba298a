//! A strict parser of XML 1.0 documents, written from the recommendation: every parser accepts what
//! it accepts.

/// Elements without child elements: names and texts.
pub(crate) type Leaves = Vec<(String, String)>;

/// Which character references are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum References {
    /// References to characters that a document may contain.
    Strict,
    /// References to any character, as S3 writes them and lenient parsers accept them.
    All,
}

/// Parses a document.
pub(crate) fn parse(bytes: &[u8], references: References) -> Result<Leaves, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    if let Some(c) = text.chars().find(|c| !is_char(*c)) {
        return Err(format!("the character {c:?} is in no document"));
    }
    // 2.11: line ends become line feeds before any other parsing.
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let declaration = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>";
    let mut rest = text.strip_prefix(declaration).ok_or("there is no declaration")?;
    let mut open: Vec<(String, String, bool)> = Vec::new();
    let mut leaves = Vec::new();
    loop {
        let (content, tag) = rest.split_once('<').ok_or("an element is not ended")?;
        let content = unescape(content, references)?;
        match open.last_mut() {
            Some((_, text, _)) => text.push_str(&content),
            None if content.trim().is_empty() => {}
            None => return Err("there is text outside of the root".to_owned()),
        }
        let (tag, after) = tag.split_once('>').ok_or("a tag is not ended")?;
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            let (opened, text, has_children) = open.pop().ok_or("an end tag has no start")?;
            if opened != name {
                return Err(format!("{opened} is ended by {name}"));
            }
            if !has_children {
                leaves.push((opened, text));
            }
            if open.is_empty() {
                let is_over = rest.trim().is_empty();
                return is_over.then_some(leaves).ok_or_else(|| "more follows the root".to_owned());
            }
            continue;
        }
        let (tag, is_empty) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let name = start_tag(tag, references)?;
        if let Some((_, _, has_children)) = open.last_mut() {
            *has_children = true;
        }
        if is_empty {
            leaves.push((name, String::new()));
        } else {
            open.push((name, String::new(), false));
        }
    }
}

/// Returns the texts of all leaves of that name.
pub(crate) fn texts<'a>(leaves: &'a Leaves, name: &str) -> Vec<&'a str> {
    leaves.iter().filter(|(found, _)| found == name).map(|(_, text)| text.as_str()).collect()
}

/// 2.2: the characters of a document.
fn is_char(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..)
}

fn is_name(name: &str) -> bool {
    let is_rest = |c: char| c.is_ascii_alphanumeric() || ":_-.".contains(c);
    name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(is_rest)
}

/// Returns the name of a start tag whose attributes are well-formed.
fn start_tag(tag: &str, references: References) -> Result<String, String> {
    let (name, mut attributes) = tag.split_once(' ').unwrap_or((tag, ""));
    if !is_name(name) {
        return Err(format!("{name:?} is no name"));
    }
    while !attributes.is_empty() {
        let (attribute, value) = attributes.split_once("=\"").ok_or("an attribute has no value")?;
        let (value, after) = value.split_once('"').ok_or("a value is not ended")?;
        if !is_name(attribute.trim_start()) {
            return Err(format!("{attribute:?} is no name"));
        }
        unescape(value, references)?;
        attributes = after;
    }
    Ok(name.to_owned())
}

fn unescape(text: &str, references: References) -> Result<String, String> {
    if text.contains("]]>") {
        return Err("]]> is in text".to_owned());
    }
    let mut pieces = text.split('&');
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (name, after) = piece.split_once(';').ok_or("a reference is not ended")?;
        let number = |digits: &str, radix| {
            let c = u32::from_str_radix(digits, radix).ok().and_then(char::from_u32);
            c.filter(|c| references == References::All || is_char(*c))
        };
        let c = match name {
            "amp" => Some('&'),
            "lt" => Some('<'),
            "gt" => Some('>'),
            "quot" => Some('"'),
            "apos" => Some('\''),
            name => match (name.strip_prefix("#x"), name.strip_prefix('#')) {
                (Some(digits), _) => number(digits, 16),
                (None, Some(digits)) => number(digits, 10),
                (None, None) => None,
            },
        };
        plain.push(c.ok_or_else(|| format!("&{name}; is no character of a document"))?);
        plain.push_str(after);
    }
    Ok(plain)
}

#[test]
fn test_xml_parser_is_strict() {
    let document = |content: &str| {
        format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?><a xmlns=\"b\"><c>{content}</c></a>")
    };
    let read = |content: &str, references| {
        let leaves = parse(document(content).as_bytes(), references).ok()?;
        Some(texts(&leaves, "c").concat())
    };
    for (content, expected) in [
        ("d&#13;&#xd;&lt;&gt;&amp;&quot;&apos;", Some("d\r\r<>&\"'")),
        ("a\rb\r\nc", Some("a\nb\nc")),
        ("\u{1}", None),
        ("\u{ffff}", None),
        ("&#1;", None),
        ("&#65535;", None),
        ("&", None),
        ("&nbsp;", None),
        ("]]>", None),
        ("<d>", None),
    ] {
        assert_eq!(read(content, References::Strict).as_deref(), expected, "{content:?}");
    }
    assert_eq!(read("&#1;", References::All).as_deref(), Some("\u{1}"));
    assert_eq!(read("\u{1}", References::All), None);
}
