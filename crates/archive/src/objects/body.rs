//! Writers and readers of objects, in the archive's own or shared buckets.

use bytes::Bytes;

use crate::Result;
use crate::bodies::digest::Checksum;
use crate::model::object::{ObjectInfo, ObjectPart};
use crate::objects::put::LocalWriter;
use crate::objects::read::{LocalReader, OpenObject};
use crate::shared::{SharedReader, SharedWriter};

/// An object being written. Dropped before `finish`, it leaves nothing behind.
#[derive(Debug)]
pub struct ObjectWriter(WriterKind);

#[derive(Debug)]
enum WriterKind {
    Local(Box<LocalWriter>),
    Shared(Box<SharedWriter>),
}

impl ObjectWriter {
    /// Adds the next bytes of the body.
    ///
    /// # Errors
    /// When the body exceeds its declared length, or cannot be stored.
    pub async fn write(&mut self, bytes: Bytes) -> Result<()> {
        match &mut self.0 {
            WriterKind::Local(writer) => writer.write(bytes).await,
            WriterKind::Shared(writer) => writer.write(bytes).await,
        }
    }

    /// Ends the body. `trailer` is a checksum sent after it. Returns when bytes, key and row are
    /// durable.
    ///
    /// # Errors
    /// When a claim or a condition does not hold (nothing is stored), or it cannot be stored.
    pub async fn finish(self, trailer: Option<Checksum>) -> Result<ObjectInfo> {
        match self.0 {
            WriterKind::Local(writer) => writer.finish(trailer).await,
            WriterKind::Shared(writer) => writer.finish(trailer).await,
        }
    }
}

impl From<LocalWriter> for ObjectWriter {
    fn from(writer: LocalWriter) -> Self {
        Self(WriterKind::Local(Box::new(writer)))
    }
}

impl From<SharedWriter> for ObjectWriter {
    fn from(writer: SharedWriter) -> Self {
        Self(WriterKind::Shared(Box::new(writer)))
    }
}

/// An object being read.
#[derive(Debug)]
pub struct ObjectReader {
    /// The object.
    pub info: ObjectInfo,
    /// Offset of the first byte to read.
    pub first: u64,
    /// Bytes to read.
    pub bytes: u64,
    /// The part to read, if one was requested.
    pub part: Option<ObjectPart>,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Local(Box<LocalReader>),
    Shared(Box<SharedReader>),
}

impl ObjectReader {
    /// Returns the next bytes, verified; `None` at the end. An error ends the body.
    pub async fn next(&mut self) -> Option<Result<Bytes>> {
        match &mut self.source {
            Source::Local(reader) => reader.next().await,
            Source::Shared(reader) => reader.next().await,
        }
    }
}

impl From<OpenObject> for ObjectReader {
    fn from(object: OpenObject) -> Self {
        let OpenObject { info, first, bytes, part, reader } = object;
        Self { info, first, bytes, part, source: Source::Local(Box::new(reader)) }
    }
}

impl From<SharedReader> for ObjectReader {
    fn from(reader: SharedReader) -> Self {
        let (info, first, bytes) = (reader.info.clone(), reader.first, reader.bytes);
        let part = reader.part.clone();
        Self { info, first, bytes, part, source: Source::Shared(Box::new(reader)) }
    }
}
