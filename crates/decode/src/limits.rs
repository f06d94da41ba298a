//! Limits of this crate.

/// Bytes of a file of a network or of a card: some fifty times the largest that the lab makes. A
/// larger one is refused before it is read into memory.
pub(crate) const FILE_BYTES_MAX: usize = 64 << 20;

/// Fields of a file of ONNX, at all depths, that are looked at: some fifty times those of the
/// lab's networks. It bounds what a file of nothing but empty nodes costs.
pub(crate) const ONNX_FIELDS_MAX: usize = 1 << 18;

/// Bytes that are kept of a field beside its own, room to grow included.
pub(crate) const ONNX_FIELD_COST_MAX: usize = 512;

// All that is kept of a file is below half a gigabyte: of a byte at most four are made (a number
// of 32 bits that is packed into one), and those of fields are a small part.
const _: () = assert!(4 * FILE_BYTES_MAX + ONNX_FIELDS_MAX * ONNX_FIELD_COST_MAX < 512 << 20);
