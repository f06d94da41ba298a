//! The schemas of the XML documents of requests.

/// An element and its content.
#[derive(Debug)]
pub(super) struct Element {
    pub(super) name: &'static str,
    pub(super) occurrence: Occurrence,
    pub(super) content: Content,
}

/// How often an element occurs in its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Occurrence {
    AtMostOnce,
    Once,
    Repeated,
}

#[derive(Debug)]
pub(super) enum Content {
    Elements(&'static [Element]),
    Text(TextType),
    /// Asks for something that is not supported; the text names it.
    NotServed(&'static str),
}

/// The type of an element's text.
#[derive(Clone, Copy, Debug)]
pub(super) enum TextType {
    Any,
    Boolean,
    Integer {
        min: i64,
        max: i64,
    },
    /// `Wed, 21 Oct 2015 07:28:00 GMT`.
    HttpDate,
}

const TEXT: Content = Content::Text(TextType::Any);
const INT: Content =
    Content::Text(TextType::Integer { min: i32::MIN as i64, max: i32::MAX as i64 });
const LONG: Content = Content::Text(TextType::Integer { min: i64::MIN, max: i64::MAX });
const SELECT: Content = Content::NotServed("Restores of type SELECT");
const DIRECTORY: Content = Content::NotServed("Directory buckets");

/// The body of DeleteObjects.
pub(super) const DELETE: Element = once("Delete", Content::Elements(DELETE_PARTS));
const DELETE_PARTS: &[Element] = &[
    repeated("Object", Content::Elements(OBJECT)),
    optional("Quiet", Content::Text(TextType::Boolean)),
];
const OBJECT: &[Element] = &[
    once("Key", TEXT),
    optional("VersionId", TEXT),
    optional("ETag", TEXT),
    optional("LastModifiedTime", Content::Text(TextType::HttpDate)),
    optional("Size", LONG),
];

/// The body of CompleteMultipartUpload.
pub(super) const COMPLETE: Element =
    once("CompleteMultipartUpload", Content::Elements(COMPLETE_PARTS));
const COMPLETE_PARTS: &[Element] = &[repeated("Part", Content::Elements(PART))];
const PART: &[Element] = &[
    once("PartNumber", INT),
    once("ETag", TEXT),
    optional("ChecksumCRC32", TEXT),
    optional("ChecksumCRC32C", TEXT),
    optional("ChecksumCRC64NVME", TEXT),
    optional("ChecksumSHA1", TEXT),
    optional("ChecksumSHA256", TEXT),
];

/// The body of RestoreObject.
pub(super) const RESTORE: Element = once("RestoreRequest", Content::Elements(RESTORE_PARTS));
const RESTORE_PARTS: &[Element] = &[
    optional("Days", INT),
    optional("Description", TEXT),
    optional("GlacierJobParameters", Content::Elements(GLACIER_JOB)),
    optional("Tier", TEXT),
    optional("Type", SELECT),
    optional("SelectParameters", SELECT),
    optional("OutputLocation", SELECT),
];
const GLACIER_JOB: &[Element] = &[once("Tier", TEXT)];

/// The optional body of CreateBucket.
pub(super) const CREATE_BUCKET: Element =
    once("CreateBucketConfiguration", Content::Elements(CREATE_BUCKET_PARTS));
const CREATE_BUCKET_PARTS: &[Element] = &[
    optional("LocationConstraint", TEXT),
    optional("Location", DIRECTORY),
    optional("Bucket", DIRECTORY),
    optional("Tags", Content::NotServed("Tags of buckets")),
];

const fn once(name: &'static str, content: Content) -> Element {
    Element { name, occurrence: Occurrence::Once, content }
}

const fn optional(name: &'static str, content: Content) -> Element {
    Element { name, occurrence: Occurrence::AtMostOnce, content }
}

const fn repeated(name: &'static str, content: Content) -> Element {
    Element { name, occurrence: Occurrence::Repeated, content }
}
