//! Errors of shapes and assignments.
//!
//! An operation that cannot be done is not an error of the controller but a command
//! ([`crate::Refusal`]).

use fulgurite_units::{ErrorKind, settings};
use thiserror::Error;

use crate::GroupId;

/// An impossible shape, or an assignment that breaks its own rules.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is not a shape.
    #[error("the shape of a rack cannot be read")]
    Syntax(#[source] settings::Error),
    /// There is no preset of this name.
    #[error("no rack is named \"{name}\"; the presets are {known}")]
    UnknownPreset {
        /// The name.
        name: String,
        /// Names of the presets.
        known: String,
    },
    /// A key names no axis, or divides by zero.
    #[error(
        "\"{key}\" of {owner} is not a key; write the name of an axis, if need be with \"/ n\" or \
         \"% n\", such as \"d/2\""
    )]
    Key {
        /// What the key belongs to.
        owner: String,
        /// The key.
        key: String,
    },
    /// A value is outside its range.
    #[error("{field} is {value}, but must be from {min} to {max}")]
    Range {
        /// The field.
        field: String,
        /// Its value.
        value: u64,
        /// The smallest value allowed.
        min: u64,
        /// The largest value allowed.
        max: u64,
    },
    /// Two things have the same name, or a place is listed twice.
    #[error("{detail} is defined twice")]
    Twice {
        /// What.
        detail: String,
    },
    /// A field names an unknown failure unit.
    #[error("{field} names the failure unit \"{unit}\", which the shape does not have")]
    UnknownUnit {
        /// The field.
        field: &'static str,
        /// The name.
        unit: String,
    },
    /// The places do not divide into groups.
    #[error(
        "{places} places{within} do not divide into groups of {size}; change the size of groups \
         or leave places out"
    )]
    Indivisible {
        /// How many places.
        places: usize,
        /// The part of the rack.
        within: String,
        /// Places of a group.
        size: u32,
    },
    /// Not even one group may spin.
    #[error(
        "{domain} lets {most} disks{within} spin at once, but a group has {size}; make groups \
         smaller or the capacity larger"
    )]
    NoClass {
        /// The resource.
        domain: String,
        /// How many disks may spin.
        most: u64,
        /// The part of the rack.
        within: String,
        /// Places of a group.
        size: u32,
    },
    /// No assignment was found.
    #[error(
        "no groups of {size} were found for{within} {places} places with up to {classes} \
         spinning at once; the tightest resource is {domain}"
    )]
    Unsolved {
        /// Places of a group.
        size: u32,
        /// The part of the rack.
        within: String,
        /// How many places.
        places: usize,
        /// Maximum number of groups that were tried to spin together.
        classes: u32,
        /// The resource that the last attempt exceeded.
        domain: String,
    },
    /// An assignment that omits places, has them twice, or is of another rack.
    #[error("the assignment does not fit the shape: {detail}")]
    Misfit {
        /// Description of the mismatch.
        detail: String,
    },
    /// Too many disks of a resource's domain could spin at once.
    #[error(
        "{most} disks of {domain} {index} could spin at once, but it can supply only {capacity}; \
         the assignment must not be used"
    )]
    Exceeded {
        /// The resource.
        domain: String,
        /// Which of its domains.
        index: u32,
        /// Disks that could spin at once.
        most: u32,
        /// Its capacity.
        capacity: u32,
    },
    /// A group is not where the shape requires it.
    #[error("group {group} lies in {count} of {unit}, but must lie in one")]
    Straddles {
        /// The group.
        group: GroupId,
        /// The failure unit.
        unit: String,
        /// How many of these units it lies in.
        count: usize,
    },
}

impl Error {
    /// Returns what the caller should do.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::UnknownPreset { .. } => ErrorKind::NotFound,
            Self::Syntax(_)
            | Self::Key { .. }
            | Self::Range { .. }
            | Self::Twice { .. }
            | Self::UnknownUnit { .. }
            | Self::Indivisible { .. }
            | Self::NoClass { .. }
            | Self::Unsolved { .. }
            | Self::Misfit { .. }
            | Self::Exceeded { .. }
            | Self::Straddles { .. } => ErrorKind::Invalid,
        }
    }
}
