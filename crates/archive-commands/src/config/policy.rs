//! A policy in a file: its name, or all its fields as a table.

use std::fmt;

use fulgurite_glass_core::control::{POLICY_NAMES, Policy};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

/// Serializes the name, if it has one.
pub(super) fn serialize<S: Serializer>(policy: &Policy, to: S) -> Result<S::Ok, S::Error> {
    let is_named = |name: &&&str| Policy::named(name).is_ok_and(|named| named == *policy);
    match POLICY_NAMES.iter().find(is_named) {
        Some(name) => to.serialize_str(name),
        None => policy.serialize(to),
    }
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Policy, D::Error> {
    from.deserialize_any(NameOrTable)
}

struct NameOrTable;

impl<'de> Visitor<'de> for NameOrTable {
    type Value = Policy;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a policy, or a table of its fields")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Policy, E> {
        Policy::named(name).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Policy, A::Error> {
        let policy = Policy::deserialize(MapAccessDeserializer::new(map))?;
        policy.validate().map_err(A::Error::custom)?;
        Ok(policy)
    }
}
