//! Reads a stack: first its identity, then its fragments, each verified by its checksum.

use super::ReadAt;
use crate::Fault;
use crate::format::{
    HEADER_ALIGN, Header, SUM_BYTES, Stripes, TRAILER_BYTES, Trailer, bytes, fragment_sum,
};

/// Reads one stack whose header, trailer and length are consistent.
#[derive(Debug)]
pub struct StackReader<R> {
    source: R,
    header: Header,
    header_bytes: u64,
    trailer: Trailer,
    stripes: Stripes,
}

impl<R: ReadAt> StackReader<R> {
    /// Prefetches the ends of a stack. Calling this for all stacks of a blob before the first is
    /// opened lets their disks seek in parallel.
    pub fn prefetch_ends(source: &R) {
        // An unknown length is an error when the stack is opened.
        let Ok(have) = source.bytes() else { return };
        let end = bytes(TRAILER_BYTES).min(have);
        source.will_need(have - end, end);
        source.will_need(0, have.min(bytes(HEADER_ALIGN)));
    }

    /// Prefetches the fragment of a stripe.
    pub fn will_need(&self, stripe: u64) {
        let (at, bytes) = self.fragment_range(stripe);
        self.source.will_need(at, bytes);
    }

    /// Whether the prefetch would block until the disk has read it.
    #[must_use]
    pub fn waits_for(&self, stripe: u64) -> bool {
        let (at, bytes) = self.fragment_range(stripe);
        self.source.waits_for(at, bytes)
    }

    /// Returns where the fragment of a stripe begins, and its length including the checksum.
    fn fragment_range(&self, stripe: u64) -> (u64, u64) {
        let length = self.stripes.fragment_bytes(stripe) + SUM_BYTES;
        (self.header_bytes + self.stripes.offset(stripe), bytes(length))
    }

    /// Opens a stack by its header and trailer.
    ///
    /// # Errors
    /// The fault.
    pub fn open(source: R) -> Result<Self, Fault> {
        let have = source.bytes()?;
        let mut header = vec![0; HEADER_ALIGN];
        if have < bytes(HEADER_ALIGN) {
            // An empty file was begun; any other short file is no stack.
            return Err(if have == 0 { Fault::Unfinished } else { Fault::NoStack });
        }
        source.read_exact_at(&mut header, 0)?;
        let length = Header::length(&header)?;
        header.resize(length, 0);
        if have < bytes(length + TRAILER_BYTES) {
            return Err(Fault::Unfinished);
        }
        source.read_exact_at(&mut header, 0)?;
        let header = Header::parse(&header)?;
        let mut trailer = [0; TRAILER_BYTES];
        source.read_exact_at(&mut trailer, have - bytes(TRAILER_BYTES))?;
        let trailer = Trailer::parse(&trailer)?;
        if (trailer.blob, trailer.index) != (header.blob, header.index) {
            return Err(Fault::Damaged {
                detail: "header and trailer belong to different stacks".to_owned(),
            });
        }
        let stripes = Stripes::new(header.coding, trailer.length);
        let need = stripes.stack_bytes(bytes(length));
        if need != have {
            return Err(Fault::Cut { have, need });
        }
        Ok(Self { source, header, header_bytes: bytes(length), trailer, stripes })
    }

    /// Its header.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// Its trailer.
    #[must_use]
    pub const fn trailer(&self) -> &Trailer {
        &self.trailer
    }

    /// How its blob is divided into stripes.
    #[must_use]
    pub const fn stripes(&self) -> Stripes {
        self.stripes
    }

    /// Reads the fragment of stripe `stripe` into `fragment`, which has its length.
    ///
    /// # Errors
    /// The fault; then the content of `fragment` is undefined.
    pub fn fragment(&self, stripe: u64, fragment: &mut [u8]) -> Result<(), Fault> {
        assert_eq!(
            fragment.len(),
            self.stripes.fragment_bytes(stripe),
            "the buffer has the length of the fragment"
        );
        let (at, _) = self.fragment_range(stripe);
        let mut sum = [0; SUM_BYTES];
        self.source.read_exact_at(fragment, at)?;
        self.source.read_exact_at(&mut sum, at + bytes(fragment.len()))?;
        let found = fragment_sum(self.header.blob, self.header.index, stripe, fragment);
        if found != u64::from_le_bytes(sum) {
            return Err(Fault::Damaged { detail: format!("the fragment of stripe {stripe}") });
        }
        Ok(())
    }
}
