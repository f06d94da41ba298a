//! Values that are longer than a message, in several messages.

use bytes::{Bytes, BytesMut};
use tonic::{Status, Streaming};

/// Splits bytes into chunks of at most this length.
pub fn chunks(bytes: Bytes, chunk_bytes_max: usize) -> impl Iterator<Item = Bytes> + Send {
    let starts = (0..bytes.len()).step_by(chunk_bytes_max);
    starts.map(move |start| bytes.slice(start..bytes.len().min(start + chunk_bytes_max)))
}

/// Joins the chunks of all further messages, up to a limit.
///
/// # Errors
/// If there are more bytes, or the status of the call.
pub async fn collect<M>(
    messages: &mut Streaming<M>,
    bytes_max: usize,
    chunk_of: impl Fn(M) -> Bytes,
) -> Result<Vec<u8>, Status> {
    let mut bytes = Vec::new();
    while let Some(message) = messages.message().await? {
        let chunk = chunk_of(message);
        if chunk.len() > bytes_max - bytes.len() {
            return Err(Status::resource_exhausted("there are more bytes than the limit"));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// Joins the chunks of all further messages, which must have this length.
///
/// # Errors
/// If there are more or fewer bytes (the sender may be gone), or the status of the call.
pub async fn collect_exactly<M>(
    messages: &mut Streaming<M>,
    length: usize,
    chunk_of: impl Fn(M) -> Bytes,
) -> Result<BytesMut, Status> {
    let mut bytes = BytesMut::with_capacity(length);
    while let Some(message) = messages.message().await? {
        let chunk = chunk_of(message);
        if chunk.len() > length - bytes.len() {
            return Err(Status::invalid_argument("there are more bytes than announced"));
        }
        bytes.extend_from_slice(&chunk);
    }
    if bytes.len() < length {
        return Err(Status::invalid_argument("there are fewer bytes than announced"));
    }
    Ok(bytes)
}
