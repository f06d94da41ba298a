//! What the file of a network says of itself, read before any engine sees it. It does not judge
//! whether the graph can be run: engines do.

use std::collections::BTreeSet;

use super::onnx::{self, Port, Tensor};

/// ONNX's number of the type float32.
const FLOAT: i32 = 1;

/// What is in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Graph {
    /// What its metadata says it is.
    pub(crate) format: Option<String>,
    /// Images that it reads, if it says.
    pub(crate) states: Option<usize>,
    /// Symbols that it tells apart, if it says.
    pub(crate) symbols: Option<usize>,
    /// Weights that are not finite.
    pub(crate) not_a_number: Option<String>,
}

/// Reads a file; what is wrong with it is the error.
pub(crate) fn read(file: &[u8]) -> Result<Graph, String> {
    let network = onnx::File::read(file)?;
    let format = network.metadata.iter().find(|(key, _)| key == "format");
    let format = format.map(|(_, value)| value.clone());
    let graph = network.graph.ok_or("it has no graph")?;
    let inputs = inputs(&graph);
    let ([input], [output]) = (&inputs[..], &graph.outputs[..]) else {
        let (ins, outs) = (inputs.len(), graph.outputs.len());
        return Err(format!("it has {ins} inputs and {outs} outputs; one of each is meant"));
    };
    let not_a_number = weights(&graph)
        .find(|tensor| !is_finite(tensor))
        .map(|tensor| format!("the weights {:?}", tensor.name));
    Ok(Graph { format, states: channels(input), symbols: channels(output), not_a_number })
}

/// Inputs that are not weights; older writers list both.
fn inputs(graph: &onnx::Graph) -> Vec<&Port> {
    let weights: BTreeSet<&str> = graph.weights.iter().map(|tensor| &*tensor.name).collect();
    graph.inputs.iter().filter(|input| !weights.contains(&*input.name)).collect()
}

/// The second length of `[n, channels, rows, columns]`.
fn channels(of: &Port) -> Option<usize> {
    of.lengths.get(1).copied().flatten().and_then(|count| usize::try_from(count).ok())
}

fn weights(graph: &onnx::Graph) -> impl Iterator<Item = &Tensor> {
    let attributes = graph.nodes.iter().flat_map(|node| &node.attributes);
    graph.weights.iter().chain(attributes.filter_map(|attribute| attribute.tensor.as_ref()))
}

fn is_finite(tensor: &Tensor) -> bool {
    if tensor.kind != FLOAT {
        return true;
    }
    let raw = tensor.raw.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
    raw.chain(tensor.floats.iter().copied()).all(f32::is_finite)
}
