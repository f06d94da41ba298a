//! Uploads input of unknown length, such as a pipe, in one call or in parts.
//!
//! ```text
//! read 64 MiB -> it ended: PutObject
//!             -> more:     parts of 16 MiB, larger ones the longer it lasts (10,000 at most)
//! ```
//!
//! A part cannot be read again, so it stays in memory until the server has it; the budget bounds
//! how much that is.

use std::io::Read;

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};

use super::client::Client;
use super::error::S3Error;
use super::transfer::{Budget, ObjectProperties, file_error};
use super::xml::UploadedPart;
use crate::limits;

/// The result of a streamed upload.
#[derive(Clone, Debug)]
pub struct StreamedUpload {
    /// Entity tag.
    pub etag: String,
    /// Number of bytes of the input.
    pub bytes: u64,
}

impl Client {
    /// Puts everything that `input` gives as `key`; calls `on_sent` with the number of bytes that
    /// arrived.
    pub async fn put_stream(
        &self,
        bucket: &str,
        key: &str,
        input: impl Read + Send + 'static,
        properties: ObjectProperties<'_>,
        on_sent: &(dyn Fn(u64) + Sync),
    ) -> Result<StreamedUpload, S3Error> {
        let (input, first) = read(input, limits::MULTIPART_THRESHOLD_BYTES).await?;
        let bytes = first.len() as u64;
        if bytes < limits::MULTIPART_THRESHOLD_BYTES {
            let etag = self.put_bytes(bucket, key, first, properties).await?;
            on_sent(bytes);
            return Ok(StreamedUpload { etag, bytes });
        }
        let upload = self.create_upload(bucket, key, properties.headers()).await?;
        let done = self.stream_parts((bucket, key, &upload), input, first, on_sent).await;
        let bytes = done.iter().flatten().map(|part| part.bytes).sum();
        let etag = self.complete_or_abort(bucket, key, &upload, done).await?;
        Ok(StreamedUpload { etag, bytes })
    }

    /// Sends parts while the next ones are read.
    async fn stream_parts(
        &self,
        (bucket, key, upload): (&str, &str, &str),
        input: impl Read + Send + 'static,
        first: Bytes,
        on_sent: &(dyn Fn(u64) + Sync),
    ) -> Result<Vec<UploadedPart>, S3Error> {
        let budget = Budget::default();
        let pieces =
            futures::stream::try_unfold(PartReader { input, first, number: 0 }, |pieces| {
                let budget = budget.clone();
                async move {
                    // Taken before the read, because parts that wait to be sent fill the memory.
                    let memory = budget.take(pieces.next_bytes()).await;
                    let piece = pieces.next().await?;
                    Ok(piece.map(|(number, body, rest)| ((number, body, memory), rest)))
                }
            });
        let send = |piece: Result<_, S3Error>| async move {
            let (number, body, _memory) = piece?;
            let part = self.put_part(bucket, key, upload, number, body).await?;
            on_sent(part.bytes);
            Ok::<_, S3Error>(part)
        };
        pieces.map(send).buffered(limits::PARTS_IN_FLIGHT_MAX).try_collect().await
    }
}

/// An input that is split into parts.
struct PartReader<R> {
    input: R,
    /// Bytes that were read to see whether parts are needed: they go first.
    first: Bytes,
    /// The number of the last part.
    number: u64,
}

impl<R: Read + Send + 'static> PartReader<R> {
    const fn next_bytes(&self) -> u64 {
        streamed_part_bytes(self.number + 1)
    }

    /// Returns the next part and its number, if the input has more; an error if it is too long.
    async fn next(mut self) -> Result<Option<(u64, Bytes, Self)>, S3Error> {
        let bytes = self.next_bytes();
        self.number += 1;
        let body = if self.first.is_empty() {
            let (input, body) = read(self.input, bytes).await?;
            self.input = input;
            body
        } else {
            self.first.split_to(self.first.len().min(usize::try_from(bytes).unwrap_or(usize::MAX)))
        };
        if body.is_empty() {
            return Ok(None);
        }
        if self.number > limits::PARTS_MAX {
            let bytes = (1..=limits::PARTS_MAX).map(streamed_part_bytes).sum();
            return Err(S3Error::InputTooLong { bytes });
        }
        Ok(Some((self.number, body, self)))
    }
}

/// Returns the length of part `number`: it doubles every thousand parts, because their count is
/// unknown.
pub(super) const fn streamed_part_bytes(number: u64) -> u64 {
    assert!(number >= 1, "parts are counted from 1");
    let doublings = (number - 1) / 1000;
    if doublings >= 32 {
        return limits::STREAMED_PART_BYTES_MAX;
    }
    let bytes = limits::PART_BYTES_MIN << doublings;
    if bytes < limits::STREAMED_PART_BYTES_MAX { bytes } else { limits::STREAMED_PART_BYTES_MAX }
}

/// Reads until `bytes` bytes are there or the input ends, and returns the input as well.
async fn read<R: Read + Send + 'static>(mut input: R, bytes: u64) -> Result<(R, Bytes), S3Error> {
    let read = tokio::task::spawn_blocking(move || {
        let mut buffer = Vec::new();
        let result = (&mut input).take(bytes).read_to_end(&mut buffer);
        result.map(|_| (input, Bytes::from(buffer)))
    });
    match read.await {
        Ok(read) => read.map_err(file_error("read", std::path::Path::new("standard input"))),
        Err(error) => Err(S3Error::Protocol { operation: "read", reason: error.to_string() }),
    }
}
