//! Parses ONNX files, as far as an archive needs them.
//!
//! ```text
//! File  metadata, Graph
//!                 inputs, outputs: ValueInfo (name, lengths)
//!                 weights: Tensor (name, type, lengths, numbers)
//!                 nodes: Node (operator, names of what it reads and makes, Attribute)
//!                                                                 number, list, text, Tensor
//! ```
//!
//! Field numbers are those of onnx.proto, which never change their meaning; unlisted fields are
//! skipped. The names are this project's. A submessage that onnx.proto has once and a file has
//! twice is refused: protobuf parsers may differ in how they merge it, and what is checked here
//! must be what an engine runs.

#[cfg(test)]
mod tests;
mod wire;

use self::wire::{Budget, Field, Fields};
use crate::limits::{FILE_BYTES_MAX, ONNX_FIELD_COST_MAX};

/// The error says which byte of the file is wrong, and why.
type Result<T> = std::result::Result<T, String>;

/// A file: ModelProto.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct File {
    /// Keys and values, as the writer set them.
    pub(crate) metadata: Vec<(String, String)>,
    pub(crate) graph: Option<Graph>,
}

/// GraphProto.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Graph {
    pub(crate) nodes: Vec<Node>,
    /// Tensors that are in the file.
    pub(crate) weights: Vec<Tensor>,
    /// Inputs of a run; older writers list weights as well.
    pub(crate) inputs: Vec<ValueInfo>,
    pub(crate) outputs: Vec<ValueInfo>,
}

/// NodeProto.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) operator: String,
    pub(crate) inputs: Vec<String>,
    pub(crate) outputs: Vec<String>,
    pub(crate) attributes: Vec<Attribute>,
}

/// AttributeProto.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Attribute {
    pub(crate) name: String,
    pub(crate) integer: i64,
    pub(crate) integers: Vec<i64>,
    pub(crate) text: Vec<u8>,
    pub(crate) tensor: Option<Tensor>,
}

/// TensorProto.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tensor {
    pub(crate) name: String,
    /// ONNX's code of the element type.
    pub(crate) kind: i32,
    pub(crate) lengths: Vec<i64>,
    /// Its elements, little-endian, unless they are in a list.
    pub(crate) raw: Vec<u8>,
    pub(crate) floats: Vec<f32>,
    pub(crate) integers: Vec<i32>,
}

/// ValueInfoProto: an input or output of a graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ValueInfo {
    pub(crate) name: String,
    /// Dimensions of its tensor; `None` where the file has only a name for one.
    pub(crate) lengths: Vec<Option<i64>>,
}

// Vectors grow to twice their length.
const _: () = assert!(2 * size_of::<Node>() <= ONNX_FIELD_COST_MAX);
const _: () = assert!(2 * size_of::<Tensor>() <= ONNX_FIELD_COST_MAX);
const _: () = assert!(2 * size_of::<Attribute>() <= ONNX_FIELD_COST_MAX);

impl File {
    /// Parses a file.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self> {
        if bytes.len() > FILE_BYTES_MAX {
            let found = bytes.len();
            return Err(format!("{found} bytes; {FILE_BYTES_MAX} are possible"));
        }
        let budget = Budget::for_file();
        let mut file = Self::default();
        for field in Fields::for_file(bytes, &budget) {
            let field = field?;
            match field.number {
                7 => once(&mut file.graph, "graph", graph(field.message(&budget)?, &budget)?)?,
                14 => file.metadata.push(entry(field.message(&budget)?)?),
                _ => {}
            }
        }
        Ok(file)
    }
}

/// StringStringEntryProto.
fn entry(fields: Fields<'_>) -> Result<(String, String)> {
    let mut entry = <(String, String)>::default();
    for field in fields {
        let field = field?;
        match field.number {
            1 => entry.0 = field.text()?,
            2 => entry.1 = field.text()?,
            _ => {}
        }
    }
    Ok(entry)
}

fn graph<'a>(fields: Fields<'a>, budget: &'a Budget) -> Result<Graph> {
    let mut graph = Graph::default();
    for field in fields {
        let field = field?;
        let message = || field.message(budget);
        match field.number {
            1 => graph.nodes.push(node(message()?, budget)?),
            5 => graph.weights.push(tensor(message()?)?),
            11 => graph.inputs.push(value_info(message()?, budget)?),
            12 => graph.outputs.push(value_info(message()?, budget)?),
            _ => {}
        }
    }
    Ok(graph)
}

fn node<'a>(fields: Fields<'a>, budget: &'a Budget) -> Result<Node> {
    let mut node = Node::default();
    for field in fields {
        let field = field?;
        match field.number {
            1 => node.inputs.push(field.text()?),
            2 => node.outputs.push(field.text()?),
            3 => node.name = field.text()?,
            4 => node.operator = field.text()?,
            5 => node.attributes.push(attribute(field.message(budget)?, budget)?),
            _ => {}
        }
    }
    Ok(node)
}

fn attribute<'a>(fields: Fields<'a>, budget: &'a Budget) -> Result<Attribute> {
    let mut attribute = Attribute::default();
    for field in fields {
        let field = field?;
        match field.number {
            1 => attribute.name = field.text()?,
            3 => attribute.integer = field.int64()?,
            4 => attribute.text = field.bytes()?.to_vec(),
            5 => once(&mut attribute.tensor, "tensor", tensor(field.message(budget)?)?)?,
            8 => field.int64s(&mut attribute.integers)?,
            _ => {}
        }
    }
    Ok(attribute)
}

fn tensor(fields: Fields<'_>) -> Result<Tensor> {
    let mut tensor = Tensor::default();
    for field in fields {
        let field = field?;
        match field.number {
            1 => field.int64s(&mut tensor.lengths)?,
            2 => tensor.kind = field.int32()?,
            4 => field.floats(&mut tensor.floats)?,
            5 => field.int32s(&mut tensor.integers)?,
            8 => tensor.name = field.text()?,
            9 => tensor.raw = field.bytes()?.to_vec(),
            _ => {}
        }
    }
    Ok(tensor)
}

fn value_info<'a>(fields: Fields<'a>, budget: &'a Budget) -> Result<ValueInfo> {
    let mut value_info = ValueInfo::default();
    let mut kind = None;
    for field in fields {
        let field = field?;
        match field.number {
            1 => value_info.name = field.text()?,
            2 => once(&mut kind, "type", field)?,
            _ => {}
        }
    }
    // TypeProto, its tensor type, and the shape of that.
    let tensor = inner(kind, 1, "type of a tensor", budget)?;
    let shape = inner(tensor, 2, "shape", budget)?;
    if let Some(shape) = shape {
        for field in shape.message(budget)? {
            let field = field?;
            if field.number == 1 {
                value_info.lengths.push(length(field.message(budget)?)?);
            }
        }
    }
    Ok(value_info)
}

/// Returns the field `number` of a submessage, which may be there once.
fn inner<'a>(
    parent: Option<Field<'a>>,
    number: u32,
    label: &str,
    budget: &'a Budget,
) -> Result<Option<Field<'a>>> {
    let mut found = None;
    if let Some(parent) = parent {
        for field in parent.message(budget)? {
            let field = field?;
            if field.number == number {
                once(&mut found, label, field)?;
            }
        }
    }
    Ok(found)
}

/// Parses a dimension of TensorShapeProto: a number, or a name. The last one wins.
fn length(fields: Fields<'_>) -> Result<Option<i64>> {
    let mut length = None;
    for field in fields {
        let field = field?;
        match field.number {
            1 => length = Some(field.int64()?),
            2 => length = None,
            _ => {}
        }
    }
    Ok(length)
}

/// Sets a value that must not be set yet.
fn once<T>(place: &mut Option<T>, label: &str, value: T) -> Result<()> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(format!("it has more than one {label}")),
    }
}
