//! Settings and scenarios: text is parsed once into one tree, and every type is deserialized from
//! that tree by one deserializer.
//!
//! ```text
//!   TOML text ----parse, with spans----+
//!   toml::Table ----------copied-------+--> Value --deserialize--> any type
//!   JSON text, by serde_json ----------+
//! ```
//!
//! Why not `toml::from_str`: serde compiles the code that reads a type once for each deserializer,
//! and toml has one for documents, one for tables and several for what is inside them. This one
//! accepts the same input and its errors look the same, with line, column and carets, but each type
//! is compiled once. Two things that toml accepts are errors here: an array in place of a struct,
//! and more elements than a tuple has.
//!
//! Not here: TOML itself, whose parser is the toml crate's, and serialization, which is serde's.

mod deserializer;
mod error;
mod spanned;
mod value;

pub use error::Error;
pub use spanned::Spanned;
pub use value::Value;

use serde::de::DeserializeOwned;
use toml::Table;

/// Deserializes a TOML text.
///
/// # Errors
/// What is wrong with the text, and where.
pub fn from_toml<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    let document = Value::parse_toml(text)?;
    T::deserialize(&document).map_err(|error| error.with_text(text))
}

/// Deserializes a table. Errors name the field but no line, because a table has none.
///
/// # Errors
/// What is wrong with the table.
pub fn from_table<T: DeserializeOwned>(table: &Table) -> Result<T, Error> {
    from_value(&Value::from(table))
}

/// Deserializes a value that was parsed before.
///
/// # Errors
/// What is wrong with the value.
pub fn from_value<T: DeserializeOwned>(value: &Value) -> Result<T, Error> {
    T::deserialize(value)
}

#[cfg(test)]
mod tests;
