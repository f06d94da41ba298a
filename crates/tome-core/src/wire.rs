//! How signatures are serialized: as their eight bytes.
//!
//! Not here: messages.

use fulgurite_codes::{SIGNATURE_BYTES, Signature};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// One signature.
pub(crate) mod signature {
    use super::{Deserialize, Deserializer, SIGNATURE_BYTES, Serialize, Serializer, Signature};

    pub(crate) fn serialize<S: Serializer>(
        signature: &Signature,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        signature.0.serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Signature, D::Error> {
        <[u8; SIGNATURE_BYTES]>::deserialize(from).map(Signature)
    }
}

/// A list of them.
pub(crate) mod signatures {
    use super::{Deserialize, Deserializer, SIGNATURE_BYTES, Serializer, Signature};

    pub(crate) fn serialize<S: Serializer>(list: &[Signature], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(list.iter().map(|signature| signature.0))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<Signature>, D::Error> {
        let list = Vec::<[u8; SIGNATURE_BYTES]>::deserialize(from)?;
        Ok(list.into_iter().map(Signature).collect())
    }
}
