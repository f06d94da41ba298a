//! A value with its byte range in the text.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

/// The type name by which the settings deserializer recognizes a request for the span.
pub(super) const NAME: &str = "$fulgurite_settings_spanned";

/// A value with its byte range in the TOML text. Only [`super::from_toml`] can deserialize it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spanned<T> {
    span: Range<usize>,
    value: T,
}

impl<T> Spanned<T> {
    /// Returns the byte range in the text.
    #[must_use]
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// Returns the value.
    #[must_use]
    pub const fn get_ref(&self) -> &T {
        &self.value
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Spanned<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_tuple_struct(NAME, 3, Parts(PhantomData))
    }
}

/// Start, end, value.
struct Parts<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Parts<T> {
    type Value = Spanned<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value with its byte range in a text")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
        let (start, end, value) =
            (parts.next_element()?, parts.next_element()?, parts.next_element()?);
        match (start, end, value) {
            (Some(start), Some(end), Some(value)) => Ok(Spanned { span: start..end, value }),
            _ => Err(A::Error::custom("the value has no byte range in a text")),
        }
    }
}
