//! The bytes of an object as a stream, with read-ahead of one piece.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt as _};

use crate::objects::pieces::{Piece, Pieces};
use crate::objects::pins::Pin;
use crate::objects::store::Inner;
use crate::objects::{Result, StoreError};

/// Pieces that are read concurrently.
const READ_AHEAD: usize = 2;

/// Streams the bytes `range` of an object, which is pinned until they are read; `is_own` marks a
/// read-back by the writer.
pub(crate) fn body(
    inner: Arc<Inner>,
    (pieces, pin): (&Pieces, Pin),
    range: &Range<u64>,
    is_own: bool,
) -> BoxStream<'static, Result<Bytes>> {
    let pin = Arc::new(pin);
    let fetch = move |piece: Piece| {
        let (inner, pin) = (Arc::clone(&inner), Arc::clone(&pin));
        async move {
            let fetched = fetch(&inner, piece, is_own).await;
            drop(pin);
            fetched
        }
    };
    stream::iter(pieces.in_range(range)).map(fetch).buffered(READ_AHEAD).boxed()
}

async fn fetch(inner: &Inner, piece: Piece, is_own: bool) -> Result<Bytes> {
    let Piece { name, bytes, skip } = piece;
    let whole = inner.read_piece(&name, is_own).await?;
    let index = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    let wanted = index(skip)..index(skip + (bytes.end - bytes.start));
    if wanted.end > whole.len() {
        let what = format!(
            "piece {name} has {} bytes, fewer than the {} expected",
            whole.len(),
            wanted.end
        );
        return Err(StoreError::Corrupt { what });
    }
    Ok(whole.slice(wanted))
}
