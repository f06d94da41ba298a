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

/// Steps of a network of 8 bits; those of the lab have some thirty.
pub(crate) const STEPS_MAX: usize = 1024;

/// Weights of all convolutions of a network of 8 bits together. Several may share a tensor of the
/// file, so its size alone does not bound them.
pub(crate) const WEIGHTS_MAX: usize = FILE_BYTES_MAX;

/// Bytes of all maps of a network of 8 bits: ten times those of the standard one at its largest
/// tile, 384 voxels square at 250 bytes a voxel.
pub(crate) const MAPS_BYTES_MAX: usize = 512 << 20;

const _: () = assert!(MAPS_BYTES_MAX >= 10 * 384 * 384 * 250);
