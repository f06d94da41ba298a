//! Rebuilds lost stacks from the remaining ones, stripe by stripe.

use super::BlobReader;
use crate::Result;
use crate::error::LostStack;
use crate::format::Trailer;
use crate::stack::{ReadAt, Sink, StackWriter};

/// Writes and syncs the stacks `wanted` of a blob, each given as its index, the name of its disk
/// and its sink. Returns those that could not be written; the others are identical to the
/// originals.
///
/// # Errors
/// [`RackError::TooFewStacks`](crate::RackError::TooFewStacks) when the blob cannot be read.
pub fn rebuild<R: ReadAt + Sync, S: Sink>(
    reader: &mut BlobReader<R>,
    wanted: Vec<(u8, String, S)>,
) -> Result<Vec<LostStack>> {
    let mut lost = Vec::new();
    let mut open: Vec<(String, StackWriter<S>)> = Vec::new();
    for (index, disk, sink) in wanted {
        match StackWriter::begin(sink, reader.header(index))? {
            Ok(stack) => open.push((disk, stack)),
            Err(fault) => lost.push(LostStack { index, disk, fault }),
        }
    }
    for stripe in 0..reader.stripes().count() {
        let indices: Vec<u8> = open.iter().map(|(_, stack)| stack.index()).collect();
        let fragments = reader.fragments(stripe, &indices)?;
        let mut failed = Vec::new();
        for ((disk, stack), fragment) in open.iter_mut().zip(fragments) {
            if let Err(fault) = stack.fragment(fragment) {
                let (index, disk) = (stack.index(), disk.clone());
                failed.push(LostStack { index, disk, fault });
            }
        }
        open.retain(|(_, stack)| failed.iter().all(|lost| lost.index != stack.index()));
        lost.append(&mut failed);
    }
    let trailer = *reader.trailer();
    for (disk, stack) in open {
        let index = stack.index();
        let ended = stack.finish(&Trailer { index, ..trailer }).and_then(|mut sink| sink.sync());
        if let Err(fault) = ended {
            lost.push(LostStack { index, disk, fault });
        }
    }
    Ok(lost)
}
