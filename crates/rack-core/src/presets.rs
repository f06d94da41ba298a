//! Racks that come with the program, in TOML as a user would write them.

use crate::{Error, Shape};

const ALL: [(&str, &str); 3] = [
    ("pelican", include_str!("../presets/pelican.toml")),
    ("laptop", include_str!("../presets/laptop.toml")),
    ("shelf", include_str!("../presets/shelf.toml")),
];

/// Returns the names of the presets.
pub fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|(name, _)| *name)
}

/// Returns the text of a preset.
#[must_use]
pub fn text(name: &str) -> Option<&'static str> {
    ALL.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// Returns the shape of a preset.
///
/// # Errors
/// When there is none of this name.
pub fn shape(name: &str) -> Result<Shape, Error> {
    let unknown = || Error::UnknownPreset {
        name: name.to_owned(),
        known: names().collect::<Vec<_>>().join(", "),
    };
    Shape::parse(text(name).ok_or_else(unknown)?)
}
