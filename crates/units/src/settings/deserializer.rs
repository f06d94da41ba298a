//! The only deserializer. Generic code here is compiled once per deserialized type, so it only
//! calls the visitor; what is the same for all types is in plain functions.

use std::slice;

use serde::Deserializer;
use serde::de::{DeserializeSeed, EnumAccess, MapAccess, SeqAccess, Unexpected};
use serde::de::{Error as _, VariantAccess, Visitor};

use super::value::{Content, Entry, Value};
use super::{Error, spanned};

/// Adds the location of the value to the error of a result, if it is one.
macro_rules! located {
    ($value:expr, $result:expr) => {{
        let mut result = $result;
        if let Err(error) = &mut result {
            error.locate($value);
        }
        result
    }};
}

/// Keys are text; where a number is expected they are parsed.
macro_rules! deserialize_numbers {
    ($($method:ident: $type:ty as $content:ident,)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            if let Content::Key(text) = &self.content {
                let number = text.parse::<$type>().map_err(Error::custom)?;
                return Value::new(Content::$content(number.into())).deserialize_any(visitor);
            }
            self.deserialize_any(visitor)
        }
    )*};
}

impl<'de> Deserializer<'de> for &Value {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let result = match &self.content {
            Content::Null => visitor.visit_unit(),
            Content::Boolean(flag) => visitor.visit_bool(*flag),
            Content::Integer(number) => visitor.visit_i64(*number),
            Content::Unsigned(number) => visitor.visit_u64(*number),
            Content::BigInteger(_) | Content::Overflow(_) => Err(Error::mismatch(self, &visitor)),
            Content::Float(number) => visitor.visit_f64(*number),
            Content::String(text) | Content::Key(text) => visitor.visit_str(text),
            Content::Datetime(entry) => visitor.visit_map(Entries::new(slice::from_ref(entry))),
            Content::Array(values) => visitor.visit_seq(Elements { rest: &mut values.iter() }),
            Content::Table(entries) => visitor.visit_map(Entries::new(entries)),
        };
        located!(self, result)
    }

    deserialize_numbers! {
        deserialize_bool: bool as Boolean,
        deserialize_i8: i8 as Integer,
        deserialize_i16: i16 as Integer,
        deserialize_i32: i32 as Integer,
        deserialize_i64: i64 as Integer,
        deserialize_u8: u8 as Unsigned,
        deserialize_u16: u16 as Unsigned,
        deserialize_u32: u32 as Unsigned,
        deserialize_u64: u64 as Unsigned,
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.as_text() {
            Some(text) => visitor.visit_str(text),
            None => Err(Error::mismatch(self, &visitor)),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if matches!(self.content, Content::Null) {
            return visitor.visit_none();
        }
        located!(self, visitor.visit_some(self))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        located!(self, visitor.visit_newtype_struct(self))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.as_elements() {
            Some(mut rest) => located!(self, visitor.visit_seq(Elements { rest: &mut rest })),
            None => Err(Error::mismatch(self, &visitor)),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        _len: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.as_elements() {
            Some(mut rest) => {
                let result = visitor.visit_seq(Elements { rest: &mut rest });
                let result = result.and_then(|tuple| self.check_all_read(&rest).map(|()| tuple));
                located!(self, result)
            }
            None => Err(Error::mismatch(self, &visitor)),
        }
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        if name == spanned::NAME {
            let [start, end] = self.span_values()?;
            let mut rest = [&start, &end, self].into_iter();
            return visitor.visit_seq(Elements { rest: &mut rest });
        }
        self.deserialize_tuple(len, visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.as_entries() {
            Some(entries) => located!(self, visitor.visit_map(entries)),
            None => Err(Error::mismatch(self, &visitor)),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        located!(self, visitor.visit_enum(self.variant()?))
    }

    serde::forward_to_deserialize_any! {
        f32 f64 char str string bytes byte_buf unit unit_struct
    }
}

impl Value {
    fn as_text(&self) -> Option<&str> {
        if let Content::String(text) | Content::Key(text) = &self.content {
            Some(text)
        } else {
            None
        }
    }

    fn as_elements(&self) -> Option<slice::Iter<'_, Self>> {
        if let Content::Array(values) = &self.content { Some(values.iter()) } else { None }
    }

    fn as_entries(&self) -> Option<Entries<'_>> {
        if let Content::Table(entries) = &self.content {
            Some(Entries::new(entries))
        } else if let Content::Datetime(entry) = &self.content {
            Some(Entries::new(slice::from_ref(entry)))
        } else {
            None
        }
    }

    /// Returns an error if elements of this array are left over.
    fn check_all_read(&self, rest: &slice::Iter<'_, Self>) -> Result<(), Error> {
        match self.as_elements() {
            Some(all) if rest.len() > 0 => {
                Err(Error::invalid_length(all.len(), &"fewer elements in array"))
            }
            _ => Ok(()),
        }
    }

    /// Returns start and end of the value's span.
    fn span_values(&self) -> Result<[Self; 2], Error> {
        let Some(span) = &self.span else {
            return Err(Error::custom("value is missing a span"));
        };
        Ok([span.start, span.end].map(|at| Self::new(Content::Unsigned(at as u64))))
    }

    /// Returns the enum variant: a string for one without data, a table of one entry for others.
    fn variant(&self) -> Result<Variant<'_>, Error> {
        let message = match &self.content {
            Content::String(_) | Content::Key(_) => {
                return Ok(Variant { name: self, value: None });
            }
            Content::Table(entries) => match entries.as_slice() {
                [Entry { key, value }] => return Ok(Variant { name: key, value: Some(value) }),
                [] => "wanted exactly 1 element, found 0 elements",
                _ => "wanted exactly 1 element, more than 1 element",
            },
            Content::Null
            | Content::Boolean(_)
            | Content::Integer(_)
            | Content::Unsigned(_)
            | Content::BigInteger(_)
            | Content::Overflow(_)
            | Content::Float(_)
            | Content::Datetime(_)
            | Content::Array(_) => "wanted string or table",
        };
        Err(Error::new(message.to_owned(), self.span.clone()))
    }
}

/// The elements of an array that are not read yet.
struct Elements<'r, 'a> {
    rest: &'r mut (dyn ExactSizeIterator<Item = &'a Value> + 'a),
}

impl<'de> SeqAccess<'de> for Elements<'_, '_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        match self.rest.next() {
            Some(value) => seed.deserialize(value).map(Some),
            None => Ok(None),
        }
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

/// The entries of a table that are not read yet.
struct Entries<'a> {
    rest: slice::Iter<'a, Entry>,
    /// The entry whose key was read and whose value was not.
    current: Option<&'a Entry>,
}

impl<'a> Entries<'a> {
    fn new(entries: &'a [Entry]) -> Self {
        Self { rest: entries.iter(), current: None }
    }

    fn next_key(&mut self) -> Option<&'a Value> {
        self.current = self.rest.next();
        self.current.map(|entry| &entry.key)
    }

    fn current(&self) -> Result<&'a Entry, Error> {
        self.current.ok_or_else(|| Error::custom("a value was requested before its key"))
    }
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        match self.next_key() {
            Some(key) => located!(key, seed.deserialize(key).map(Some)),
            None => Ok(None),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let entry = self.current()?;
        let mut result = seed.deserialize(&entry.value);
        if let Err(error) = &mut result {
            error.add_key(entry);
        }
        result
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

/// An enum variant with its data.
#[derive(Clone, Copy)]
struct Variant<'a> {
    name: &'a Value,
    value: Option<&'a Value>,
}

impl<'a> Variant<'a> {
    /// Returns the variant's data, or an error if it has none.
    fn data(self, expected: &str) -> Result<&'a Value, Error> {
        self.value.ok_or_else(|| Error::invalid_type(Unexpected::UnitVariant, &expected))
    }

    /// Returns an error unless the variant has no data.
    fn check_empty(self) -> Result<(), Error> {
        let Some(value) = self.value else { return Ok(()) };
        let message = match &value.content {
            Content::Null => return Ok(()),
            Content::Array(values) if values.is_empty() => return Ok(()),
            Content::Table(entries) if entries.is_empty() => return Ok(()),
            Content::Array(_) => "expected empty array".to_owned(),
            Content::Table(_) => "expected empty table".to_owned(),
            Content::Boolean(_)
            | Content::Integer(_)
            | Content::Unsigned(_)
            | Content::BigInteger(_)
            | Content::Overflow(_)
            | Content::Float(_)
            | Content::String(_)
            | Content::Key(_)
            | Content::Datetime(_) => format!("expected table, found {}", value.type_name()),
        };
        Err(Error::new(message, value.span.clone()))
    }

    /// Returns the elements of a tuple of this length: an array, or a table whose keys count from
    /// 0.
    fn tuple(self, len: usize) -> Result<Vec<&'a Value>, Error> {
        let value = self.data("tuple variant")?;
        let wrong = |message| Err(Error::new(message, value.span.clone()));
        let values: Vec<&Value> = if let Content::Array(values) = &value.content {
            values.iter().collect()
        } else if let Content::Table(entries) = &value.content {
            for (index, entry) in entries.iter().enumerate() {
                if entry.key_text().parse() != Ok(index) {
                    let key = entry.key_text();
                    let message = format!("expected table key `{index}`, but was `{key}`");
                    return Err(Error::new(message, entry.key.span.clone()));
                }
            }
            entries.iter().map(|entry| &entry.value).collect()
        } else {
            return wrong(format!("expected table, found {}", value.type_name()));
        };
        if values.len() == len {
            Ok(values)
        } else {
            wrong(format!("expected tuple with length {len}"))
        }
    }

    /// Returns the variant's data as a table. If it was parsed from text, any key outside `fields`
    /// is an error.
    fn table(self, fields: &[&str]) -> Result<&'a Value, Error> {
        let value = self.data("struct variant")?;
        let Content::Table(entries) = &value.content else { return Ok(value) };
        let is_extra = |entry: &&Entry| !fields.contains(&entry.key_text());
        let extra: Vec<&Entry> = entries.iter().filter(is_extra).collect();
        match extra.first() {
            Some(first) if value.span.is_some() => {
                let keys: Vec<&str> = extra.iter().map(|entry| entry.key_text()).collect();
                let (keys, known) = (keys.join(", "), fields.join(", "));
                let message = format!("unexpected keys in table: {keys}, available keys: {known}");
                Err(Error::new(message, first.key.span.clone()))
            }
            _ => Ok(value),
        }
    }
}

impl<'de> EnumAccess<'de> for Variant<'_> {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Error> {
        let mut result = seed.deserialize(self.name);
        if let Err(error) = &mut result {
            error.locate(self.name);
        }
        Ok((result?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'_> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        self.check_empty()
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        seed.deserialize(self.data("newtype variant")?)
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_seq(Elements { rest: &mut self.tuple(len)?.into_iter() })
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.table(fields)?.deserialize_map(visitor)
    }
}
