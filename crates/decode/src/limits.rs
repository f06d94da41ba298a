//! Limits of this crate.

/// Largest file of a network or of a card: some fifty times the largest from the lab. A larger one
/// is refused before it is read into memory.
pub(crate) const FILE_BYTES_MAX: usize = 64 << 20;

/// Most fields in an ONNX file, at all depths: some fifty times those of the lab's networks. It
/// bounds the cost of a file of nothing but empty nodes.
pub(crate) const ONNX_FIELDS_MAX: usize = 1 << 18;

/// Most memory kept for a field besides its own bytes, spare capacity included.
pub(crate) const ONNX_FIELD_COST_MAX: usize = 512;

// All memory kept for a file is below half a gigabyte: a byte expands to at most four (a packed
// 32-bit number), and the cost of fields is a small part.
const _: () = assert!(4 * FILE_BYTES_MAX + ONNX_FIELDS_MAX * ONNX_FIELD_COST_MAX < 512 << 20);

/// Most steps of an int8 network; those of the lab have some thirty.
pub(crate) const STEPS_MAX: usize = 1024;

/// Most weights in all convolutions of an int8 network together. Several may share a tensor of the
/// file, so its size alone does not bound them.
pub(crate) const WEIGHTS_MAX: usize = FILE_BYTES_MAX;

/// Most bytes of all feature maps of an int8 network: ten times those of the standard one at its
/// largest tile, 384 voxels square at 250 bytes a voxel.
pub(crate) const MAPS_BYTES_MAX: usize = 512 << 20;

const _: () = assert!(MAPS_BYTES_MAX >= 10 * 384 * 384 * 250);
