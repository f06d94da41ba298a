//! Words and numbers of ONNX's nodes and tensors.

use tract_onnx::pb::{NodeProto, TensorProto};

// Numbers of ONNX's types.
const FLOAT: i32 = 1;
pub(super) const UINT8: i32 = 2;
pub(super) const INT8: i32 = 3;
const INT32: i32 = 6;

/// The name of an input.
pub(super) fn input(node: &NodeProto, at: usize) -> Result<&str, String> {
    node.input.get(at).map(|name| &**name).ok_or_else(|| format!("it has no input {at}"))
}

/// A number that a node must say.
pub(super) fn integer(node: &NodeProto, name: &str) -> Result<usize, String> {
    let found = node.attribute.iter().find(|attribute| attribute.name == name);
    let found = found.and_then(|attribute| usize::try_from(attribute.i).ok());
    found.ok_or_else(|| format!("it does not say {name}"))
}

/// A number that is the same in all directions.
pub(super) fn equal(node: &NodeProto, name: &str) -> Result<usize, String> {
    let found = node.attribute.iter().find(|attribute| attribute.name == name);
    let list = found.map(|attribute| &attribute.ints[..]).unwrap_or_default();
    let first = list.first().and_then(|first| usize::try_from(*first).ok());
    match first {
        Some(first) if list.iter().all(|one| *one == list[0]) => Ok(first),
        Some(_) | None => Err(format!("{name} of {list:?}")),
    }
}

/// Lengths of a tensor, one at least.
pub(super) fn dims(tensor: &TensorProto) -> Result<Vec<usize>, String> {
    let dims: Result<Vec<usize>, _> = tensor.dims.iter().map(|dim| usize::try_from(*dim)).collect();
    match dims {
        Ok(dims) if !dims.is_empty() => Ok(dims),
        Ok(_) | Err(_) => Err(format!("the dimensions of {:?}", tensor.name)),
    }
}

/// One for all, or each its own.
pub(super) fn scale_of(list: &[f32], at: usize) -> Result<f64, String> {
    match list {
        [one] => Ok(f64::from(*one)),
        list => list.get(at).copied().map(f64::from).ok_or_else(|| "too few scales".to_owned()),
    }
}

/// Numbers of float32.
pub(super) fn floats(tensor: &TensorProto) -> Result<Vec<f32>, String> {
    if tensor.data_type != FLOAT {
        return Err(format!("{:?} is not float32", tensor.name));
    }
    let raw = tensor.raw_data.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
    Ok(raw.chain(tensor.float_data.iter().copied()).collect())
}

/// Numbers of 8 or 32 bits.
pub(super) fn integers(tensor: &TensorProto) -> Result<Vec<i32>, String> {
    let raw = &tensor.raw_data;
    let raw: Vec<i32> = match tensor.data_type {
        UINT8 => raw.iter().map(|byte| i32::from(*byte)).collect(),
        INT8 => raw.iter().map(|byte| i32::from(byte.cast_signed())).collect(),
        INT32 => raw.as_chunks::<4>().0.iter().map(|bytes| i32::from_le_bytes(*bytes)).collect(),
        _ => return Err(format!("{:?} is not of integers", tensor.name)),
    };
    Ok(raw.into_iter().chain(tensor.int32_data.iter().copied()).collect())
}
