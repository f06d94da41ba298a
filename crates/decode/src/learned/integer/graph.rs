//! Reads attributes of ONNX nodes, and tensors.

use crate::learned::onnx::{Node, Tensor};

// ONNX's type codes.
const FLOAT: i32 = 1;
pub(super) const UINT8: i32 = 2;
pub(super) const INT8: i32 = 3;
const INT32: i32 = 6;

/// Returns the name of an input.
pub(super) fn input(node: &Node, at: usize) -> Result<&str, String> {
    node.inputs.get(at).map(|name| &**name).ok_or_else(|| format!("it has no input {at}"))
}

/// Returns an integer attribute that a node must have.
pub(super) fn integer(node: &Node, name: &str) -> Result<usize, String> {
    let found = node.attributes.iter().find(|attribute| attribute.name == name);
    let found = found.and_then(|attribute| usize::try_from(attribute.integer).ok());
    found.ok_or_else(|| format!("it has no attribute {name}"))
}

/// Returns an attribute that must be the same in all directions.
pub(super) fn uniform_attribute(node: &Node, name: &str) -> Result<usize, String> {
    let found = node.attributes.iter().find(|attribute| attribute.name == name);
    let list = found.map(|attribute| &attribute.integers[..]).unwrap_or_default();
    let first = list.first().and_then(|first| usize::try_from(*first).ok());
    match first {
        Some(first) if list.iter().all(|one| *one == list[0]) => Ok(first),
        Some(_) | None => Err(format!("{name} of {list:?}")),
    }
}

/// Returns the dimensions of a tensor, which has at least one.
pub(super) fn dims(tensor: &Tensor) -> Result<Vec<usize>, String> {
    let dims: Result<Vec<usize>, _> =
        tensor.lengths.iter().map(|dim| usize::try_from(*dim)).collect();
    match dims {
        Ok(dims) if !dims.is_empty() => Ok(dims),
        Ok(_) | Err(_) => Err(format!("the dimensions of {:?}", tensor.name)),
    }
}

/// Returns a scale, which is per tensor or per channel.
pub(super) fn channel_scale(list: &[f32], at: usize) -> Result<f64, String> {
    match list {
        [one] => Ok(f64::from(*one)),
        list => list.get(at).copied().map(f64::from).ok_or_else(|| "too few scales".to_owned()),
    }
}

/// Returns float32 values.
pub(super) fn floats(tensor: &Tensor) -> Result<Vec<f32>, String> {
    if tensor.kind != FLOAT {
        return Err(format!("{:?} is not float32", tensor.name));
    }
    let raw = tensor.raw.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
    Ok(raw.chain(tensor.floats.iter().copied()).collect())
}

/// Returns integers of 8 or 32 bits.
pub(super) fn integers(tensor: &Tensor) -> Result<Vec<i32>, String> {
    let raw = &tensor.raw;
    let raw: Vec<i32> = match tensor.kind {
        UINT8 => raw.iter().map(|byte| i32::from(*byte)).collect(),
        INT8 => raw.iter().map(|byte| i32::from(byte.cast_signed())).collect(),
        INT32 => raw.as_chunks::<4>().0.iter().map(|bytes| i32::from_le_bytes(*bytes)).collect(),
        _ => return Err(format!("{:?} is not of integers", tensor.name)),
    };
    Ok(raw.into_iter().chain(tensor.integers.iter().copied()).collect())
}
