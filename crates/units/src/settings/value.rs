//! The tree that TOML and JSON are parsed into.

use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use toml::Table;
use toml::de::{DeFloat, DeInteger, DeTable, DeValue};
use toml::value::Datetime;

use super::Error;

/// The key that marks a toml date in serde's data model, which has no dates.
const DATETIME_KEY: &str = "$__toml_private_datetime";

/// A parsed TOML or JSON value, from which types are deserialized.
#[derive(Clone, Debug)]
pub struct Value {
    pub(super) content: Content,
    /// Byte range in the text; none for a value that comes from no text.
    pub(super) span: Option<Range<usize>>,
}

#[derive(Clone, Debug)]
pub(super) enum Content {
    Null,
    Boolean(bool),
    Integer(i64),
    /// An integer beyond `i64` that fits `u64`.
    Unsigned(u64),
    /// An integer beyond 64 bits, as error messages show it.
    BigInteger(String),
    /// A number too large for any type, with the error message.
    Overflow(&'static str),
    Float(f64),
    String(String),
    /// The key of an entry: text, parsed as a number where numeric keys are expected.
    Key(String),
    /// A date in the form that toml's types expect: a table with one entry.
    Datetime(Box<Entry>),
    Array(Vec<Value>),
    Table(Vec<Entry>),
}

/// A key of a table with its value.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: Value,
    pub(super) value: Value,
}

impl Value {
    /// Parses a TOML document.
    pub(super) fn parse_toml(text: &str) -> Result<Self, Error> {
        let document = DeTable::parse(text).map_err(|error| Error::syntax(&error, text))?;
        let span = Some(document.span());
        Ok(Self { content: table(document.get_ref()), span })
    }

    pub(super) const fn new(content: Content) -> Self {
        Self { content, span: None }
    }

    /// Returns the type name that error messages use.
    pub(super) const fn type_name(&self) -> &'static str {
        match &self.content {
            Content::Null => "null",
            Content::Boolean(_) => "boolean",
            Content::Integer(_)
            | Content::Unsigned(_)
            | Content::BigInteger(_)
            | Content::Overflow(_) => "integer",
            Content::Float(_) => "float",
            Content::String(_) | Content::Key(_) => "string",
            Content::Datetime(_) => "datetime",
            Content::Array(_) => "array",
            Content::Table(_) => "table",
        }
    }
}

impl Entry {
    pub(super) fn key_text(&self) -> &str {
        match &self.key.content {
            Content::Key(text) => text,
            Content::Null
            | Content::Boolean(_)
            | Content::Integer(_)
            | Content::Unsigned(_)
            | Content::BigInteger(_)
            | Content::Overflow(_)
            | Content::Float(_)
            | Content::String(_)
            | Content::Datetime(_)
            | Content::Array(_)
            | Content::Table(_) => unreachable!("the key of an entry cannot be of this type"),
        }
    }

    fn new(key: &str, value: Value) -> Self {
        Self { key: Value::new(Content::Key(key.to_owned())), value }
    }
}

fn table(table: &DeTable<'_>) -> Content {
    let entries = table.iter().map(|(key, value)| {
        let text = Content::Key(key.get_ref().to_string());
        Entry { key: Value { content: text, span: Some(key.span()) }, value: spanned(value) }
    });
    Content::Table(entries.collect())
}

fn spanned(value: &toml::Spanned<DeValue<'_>>) -> Value {
    let content = match value.get_ref() {
        DeValue::String(text) => Content::String(text.to_string()),
        DeValue::Integer(number) => integer(number),
        DeValue::Float(number) => float(number),
        DeValue::Boolean(flag) => Content::Boolean(*flag),
        DeValue::Datetime(date) => datetime(date),
        DeValue::Array(values) => Content::Array(values.iter().map(spanned).collect()),
        DeValue::Table(entries) => table(entries),
    };
    Value { content, span: Some(value.span()) }
}

fn integer(number: &DeInteger<'_>) -> Content {
    let (digits, radix) = (number.as_str(), number.radix());
    if let Ok(number) = i64::from_str_radix(digits, radix) {
        Content::Integer(number)
    } else if let Ok(number) = u64::from_str_radix(digits, radix) {
        Content::Unsigned(number)
    } else if let Ok(number) = i128::from_str_radix(digits, radix) {
        Content::BigInteger(format!("integer `{number}` as i128"))
    } else if let Ok(number) = u128::from_str_radix(digits, radix) {
        Content::BigInteger(format!("integer `{number}` as u128"))
    } else {
        Content::Overflow("integer number overflowed")
    }
}

fn float(number: &DeFloat<'_>) -> Content {
    match number.as_str().parse::<f64>() {
        // Only a literal infinity may become infinite.
        Ok(value) if !value.is_infinite() || number.as_str().contains("inf") => {
            Content::Float(value)
        }
        Ok(_) | Err(_) => Content::Overflow("floating-point number overflowed"),
    }
}

fn datetime(date: &Datetime) -> Content {
    let text = Value::new(Content::String(date.to_string()));
    Content::Datetime(Box::new(Entry::new(DATETIME_KEY, text)))
}

impl From<&Table> for Value {
    fn from(table: &Table) -> Self {
        let entries = table.iter().map(|(key, value)| Entry::new(key, value.into()));
        Self::new(Content::Table(entries.collect()))
    }
}

impl From<&toml::Value> for Value {
    fn from(value: &toml::Value) -> Self {
        match value {
            toml::Value::String(text) => Self::new(Content::String(text.clone())),
            toml::Value::Integer(number) => Self::new(Content::Integer(*number)),
            toml::Value::Float(number) => Self::new(Content::Float(*number)),
            toml::Value::Boolean(flag) => Self::new(Content::Boolean(*flag)),
            toml::Value::Datetime(date) => Self::new(datetime(date)),
            toml::Value::Array(values) => {
                Self::new(Content::Array(values.iter().map(Self::from).collect()))
            }
            toml::Value::Table(table) => table.into(),
        }
    }
}

/// Reads JSON, or any other self-describing serde format.
impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::new(Content::Null))
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::new(Content::Boolean(flag)))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::new(Content::Integer(number)))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        let content = i64::try_from(number).map_or(Content::Unsigned(number), Content::Integer);
        Ok(Value::new(content))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(Value::new(Content::Float(number)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::new(Content::String(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = elements.next_element()? {
            values.push(value);
        }
        Ok(Value::new(Content::Array(values)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut table = Vec::new();
        while let Some((key, value)) = entries.next_entry::<String, Value>()? {
            table.push(Entry::new(&key, value));
        }
        Ok(Value::new(Content::Table(table)))
    }
}
