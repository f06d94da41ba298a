//! Object attributes as name-value pairs, sorted by name.

use object_store::{Attribute, Attributes};

/// The prefix of user-defined metadata attributes.
const METADATA: &str = "metadata-";

/// Converts attributes to the pairs that are stored, sorted by name.
#[must_use]
pub(crate) fn attribute_pairs(attributes: &Attributes) -> Vec<(String, String)> {
    let named = attributes.iter().filter_map(|(attribute, value)| {
        let name = match attribute {
            Attribute::ContentDisposition => "content-disposition".to_owned(),
            Attribute::ContentEncoding => "content-encoding".to_owned(),
            Attribute::ContentLanguage => "content-language".to_owned(),
            Attribute::ContentType => "content-type".to_owned(),
            Attribute::CacheControl => "cache-control".to_owned(),
            Attribute::StorageClass => "storage-class".to_owned(),
            Attribute::Metadata(name) => format!("{METADATA}{name}"),
            // The enum is foreign and may grow.
            _ => return None,
        };
        Some((name, value.as_ref().to_owned()))
    });
    let mut named: Vec<_> = named.collect();
    named.sort();
    named
}

/// Converts stored pairs back to attributes.
#[must_use]
pub(crate) fn attributes(attribute_pairs: &[(String, String)]) -> Attributes {
    let attribute = |name: &str| match name {
        "content-disposition" => Some(Attribute::ContentDisposition),
        "content-encoding" => Some(Attribute::ContentEncoding),
        "content-language" => Some(Attribute::ContentLanguage),
        "content-type" => Some(Attribute::ContentType),
        "cache-control" => Some(Attribute::CacheControl),
        "storage-class" => Some(Attribute::StorageClass),
        _ => name.strip_prefix(METADATA).map(|name| Attribute::Metadata(name.to_owned().into())),
    };
    let all =
        attribute_pairs.iter().filter_map(|(name, value)| Some((attribute(name)?, value.clone())));
    all.collect()
}
