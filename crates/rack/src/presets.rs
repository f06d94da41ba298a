//! Racks that come with the program, as the TOML files a user would write.

use crate::{Error, Shape};

const ALL: [(&str, &str); 3] = [
    ("pelican", include_str!("../presets/pelican.toml")),
    ("laptop", include_str!("../presets/laptop.toml")),
    ("shelf", include_str!("../presets/shelf.toml")),
];

/// Their names.
pub fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|(name, _)| *name)
}

/// The text of the one with this name.
#[must_use]
pub fn text(name: &str) -> Option<&'static str> {
    ALL.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// The one with this name.
///
/// # Errors
/// When there is none.
pub fn shape(name: &str) -> Result<Shape, Error> {
    let unknown = || Error::UnknownPreset {
        name: name.to_owned(),
        known: names().collect::<Vec<_>>().join(", "),
    };
    Shape::parse(text(name).ok_or_else(unknown)?)
}
