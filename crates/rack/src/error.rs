//! Why a rack cannot be as it is described.
//!
//! Not here: what becomes of an operation that cannot be done, which is no error of the controller
//! but a command ([`crate::Refusal`]).

use fulgurite_units::{ErrorKind, settings};
use thiserror::Error;

use crate::GroupId;

/// A shape that no rack can have, or an assignment that breaks its own rules.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is no shape.
    #[error("the shape of a rack cannot be read")]
    Syntax(#[source] settings::Error),
    /// No rack of this name comes with the program.
    #[error("no rack is named \"{name}\"; there are {known}")]
    UnknownPreset {
        /// The name.
        name: String,
        /// Names of those that there are.
        known: String,
    },
    /// A key names no axis, or divides by nothing.
    #[error(
        "\"{key}\" of {of} is no key; write the name of an axis, if need be with \"/ n\" or \
         \"% n\", such as \"d/2\""
    )]
    Key {
        /// Whose key.
        of: String,
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
    /// Two things have one name, or a place is there twice.
    #[error("{what} is there twice")]
    Twice {
        /// What.
        what: String,
    },
    /// A field names a failure unit that there is not.
    #[error("{field} names the failure unit \"{unit}\", which the shape does not have")]
    UnknownUnit {
        /// The field.
        field: &'static str,
        /// The name.
        unit: String,
    },
    /// Places do not divide into groups.
    #[error(
        "{places} places{within} do not divide into groups of {size}; change the size of groups \
         or leave places out"
    )]
    Indivisible {
        /// How many places.
        places: usize,
        /// Of which part of the rack.
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
        /// In which part of the rack.
        within: String,
        /// Places of a group.
        size: u32,
    },
    /// No assignment was found.
    #[error(
        "no groups of {size} were found for{within} {places} places with up to {classes} \
         spinning at once; what stands in the way most is {domain}"
    )]
    Unsolved {
        /// Places of a group.
        size: u32,
        /// In which part of the rack.
        within: String,
        /// How many places.
        places: usize,
        /// How many groups were tried to spin together at most.
        classes: u32,
        /// The resource that the last try took too much of.
        domain: String,
    },
    /// An assignment that leaves places out, or has them twice, or is of another rack.
    #[error("the assignment does not fit the shape: {what}")]
    Misfit {
        /// How.
        what: String,
    },
    /// Too many disks of a resource's domain could spin at once.
    #[error(
        "{most} disks of {domain} {index} could spin at once, which is made for {capacity}; the \
         assignment must not be used"
    )]
    Exceeded {
        /// The resource.
        domain: String,
        /// Which of its domains.
        index: u32,
        /// Disks that could spin at once.
        most: u32,
        /// What it is made for.
        capacity: u32,
    },
    /// A group does not lie as the shape asks for.
    #[error("group {group} lies in {count} of {unit}, but must lie in one")]
    Straddles {
        /// The group.
        group: GroupId,
        /// The failure unit.
        unit: String,
        /// How many of them it lies in.
        count: usize,
    },
}

impl Error {
    /// What the caller should do.
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
