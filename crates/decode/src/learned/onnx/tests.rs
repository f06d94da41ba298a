//! Tests of the ONNX parser: files from a writer of our own, files of the lab, and invalid bytes.

use std::fmt::Write as _;

use fulgurite_units::{RandomStream, Seed};

use super::{Attribute, File, Graph, Node, Tensor, ValueInfo};
use crate::limits::{FILE_BYTES_MAX, ONNX_FIELDS_MAX};

const TINY: &[u8] = include_bytes!("../../../tests/models/tiny.onnx");
const SMALL: &[u8] = include_bytes!("../../../../../models/nominal-md-int8.onnx");
const LARGE: &[u8] = include_bytes!("../../../../../models/nominal-md.onnx");

/// Writes a message, field by field. With `unknown_fields`, adds fields that the parser has to
/// skip.
struct Writer {
    bytes: Vec<u8>,
    unknown_fields: Option<RandomStream>,
}

impl Writer {
    const fn new(unknown_fields: Option<RandomStream>) -> Self {
        Self { bytes: Vec::new(), unknown_fields }
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.bytes.push(value.to_le_bytes()[0]);
    }

    /// Adds fields with numbers that onnx.proto uses for something else, or not at all.
    fn add_unknown_fields(&mut self) {
        let Some(random) = &mut self.unknown_fields else { return };
        let (what, value) = (random.below(8), random.next_u64());
        match what {
            0 => self.key(1000, 0).varint(value),
            1 => self.key(1001, 1).bytes.extend(value.to_le_bytes()),
            2 => self.key(1002, 5).bytes.extend([7; 4]),
            3 => self.bytes_field(1003, &[0xff; 300]),
            _ => {}
        }
    }

    fn key(&mut self, number: u64, kind: u64) -> &mut Self {
        self.varint(number << 3 | kind);
        self
    }

    fn bytes_field(&mut self, number: u64, bytes: &[u8]) {
        self.key(number, 2).varint(bytes.len() as u64);
        self.bytes.extend(bytes);
    }

    fn bytes(&mut self, number: u64, bytes: &[u8]) -> &mut Self {
        self.add_unknown_fields();
        self.bytes_field(number, bytes);
        self
    }

    fn integer(&mut self, number: u64, value: i64) -> &mut Self {
        self.add_unknown_fields();
        self.key(number, 0).varint(value.cast_unsigned());
        self
    }

    /// Writes a list, packed or not, at random.
    fn integers(&mut self, number: u64, values: &[i64]) -> &mut Self {
        let is_packed = self.unknown_fields.as_mut().is_some_and(|random| random.below(2) == 0);
        if is_packed {
            let mut packed = Self::new(None);
            values.iter().for_each(|value| packed.varint(value.cast_unsigned()));
            return self.bytes(number, &packed.bytes);
        }
        for value in values {
            self.integer(number, *value);
        }
        self
    }

    fn message(&mut self, number: u64, write: impl FnOnce(&mut Self)) -> &mut Self {
        let unknown_fields = self.unknown_fields.as_mut();
        let unknown_fields = unknown_fields.map(|random| Seed::new(random.next_u64()).stream());
        let mut inner = Self::new(unknown_fields);
        write(&mut inner);
        self.bytes(number, &inner.bytes)
    }
}

fn write(file: &File, unknown_fields: Option<RandomStream>) -> Vec<u8> {
    let mut writer = Writer::new(unknown_fields);
    for (key, value) in &file.metadata {
        writer.message(14, |entry| {
            entry.bytes(1, key.as_bytes()).bytes(2, value.as_bytes());
        });
    }
    if let Some(graph) = &file.graph {
        writer.message(7, |writer| {
            for node in &graph.nodes {
                writer.message(1, |to| write_node(node, to));
            }
            for tensor in &graph.weights {
                writer.message(5, |to| write_tensor(tensor, to));
            }
            for (number, ports) in [(11, &graph.inputs), (12, &graph.outputs)] {
                for value_info in ports {
                    writer.message(number, |to| write_value_info(value_info, to));
                }
            }
        });
    }
    writer.add_unknown_fields();
    writer.bytes
}

fn write_node(node: &Node, to: &mut Writer) {
    for (number, names) in [(1, &node.inputs), (2, &node.outputs)] {
        for name in names {
            to.bytes(number, name.as_bytes());
        }
    }
    to.bytes(3, node.name.as_bytes()).bytes(4, node.operator.as_bytes());
    for attribute in &node.attributes {
        to.message(5, |to| {
            to.bytes(1, attribute.name.as_bytes()).integer(3, attribute.integer);
            to.bytes(4, &attribute.text).integers(8, &attribute.integers);
            if let Some(tensor) = &attribute.tensor {
                to.message(5, |to| write_tensor(tensor, to));
            }
        });
    }
}

fn write_tensor(tensor: &Tensor, to: &mut Writer) {
    to.integers(1, &tensor.lengths).integer(2, i64::from(tensor.kind));
    let floats: Vec<u8> = tensor.floats.iter().flat_map(|value| value.to_le_bytes()).collect();
    to.bytes(4, &floats);
    let integers: Vec<i64> = tensor.integers.iter().copied().map(i64::from).collect();
    to.integers(5, &integers).bytes(8, tensor.name.as_bytes()).bytes(9, &tensor.raw);
}

fn write_value_info(value_info: &ValueInfo, to: &mut Writer) {
    to.bytes(1, value_info.name.as_bytes()).message(2, |kind| {
        kind.message(1, |tensor| {
            tensor.integer(1, 1).message(2, |shape| {
                for length in &value_info.lengths {
                    shape.message(1, |to| {
                        match length {
                            Some(length) => to.integer(1, *length),
                            None => to.bytes(2, b"rows"),
                        };
                    });
                }
            });
        });
    });
}

/// Generates random files with every kind of field.
struct Any(RandomStream);

impl Any {
    fn list<T>(&mut self, bound: u64, mut one: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.0.below(bound)).map(|_| one(self)).collect()
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.0.below(bound as u64)).unwrap()
    }

    /// Generates signed integers of all lengths.
    fn integer(&mut self) -> i64 {
        self.0.next_u64().cast_signed() >> self.0.below(64)
    }

    fn short(&mut self) -> i32 {
        i32::try_from(self.integer() >> 32).unwrap()
    }

    fn text(&mut self) -> String {
        const LETTERS: [char; 6] = ['a', '/', '_', '0', '\u{e4}', '\u{2028}'];
        let letter = |any: &mut Self| LETTERS[any.below(LETTERS.len())];
        self.list(12, letter).into_iter().collect()
    }

    fn tensor(&mut self) -> Tensor {
        Tensor {
            name: self.text(),
            kind: self.short(),
            lengths: self.list(4, Self::integer),
            raw: self.list(40, |any| any.0.next_u64().to_le_bytes()[0]),
            floats: self.list(4, |any| f32::from(any.0.next_u64().to_le_bytes()[0]) / 7.0),
            integers: self.list(4, Self::short),
        }
    }

    fn attribute(&mut self) -> Attribute {
        let tensor = (self.0.below(2) == 0).then(|| self.tensor());
        let text = self.text().into_bytes();
        let (name, integer) = (self.text(), self.integer());
        Attribute { name, integer, integers: self.list(4, Self::integer), text, tensor }
    }

    fn node(&mut self) -> Node {
        Node {
            name: self.text(),
            operator: self.text(),
            inputs: self.list(3, Self::text),
            outputs: self.list(3, Self::text),
            attributes: self.list(3, Self::attribute),
        }
    }

    fn value_info(&mut self) -> ValueInfo {
        let length = |any: &mut Self| (any.0.below(3) > 0).then(|| any.integer());
        ValueInfo { name: self.text(), lengths: self.list(5, length) }
    }

    fn file(&mut self) -> File {
        let metadata = self.list(3, |any| (any.text(), any.text()));
        let graph = (self.0.below(8) > 0).then(|| Graph {
            nodes: self.list(4, Self::node),
            weights: self.list(4, Self::tensor),
            inputs: self.list(3, Self::value_info),
            outputs: self.list(3, Self::value_info),
        });
        File { metadata, graph }
    }
}

/// Written files are read back, even with unknown fields in between.
#[test]
fn parsed_files_match_what_was_written() {
    let mut any = Any(Seed::new(14).stream());
    for number in 0..400 {
        let file = any.file();
        assert_eq!(File::read(&write(&file, None)).unwrap(), file, "{number}");
        let unknown_fields = Some(Seed::new(number).stream());
        assert_eq!(File::read(&write(&file, unknown_fields)).unwrap(), file, "{number}");
    }
}

/// Dumps a file in the format of `tests/models/onnx_text.py`.
fn text(file: &File) -> String {
    let mut text = String::new();
    for (key, value) in &file.metadata {
        writeln!(text, "metadata {key} {value}").unwrap();
    }
    let graph = file.graph.as_ref().unwrap();
    for node in &graph.nodes {
        let (inputs, outputs) = (node.inputs.join(" "), node.outputs.join(" "));
        writeln!(text, "node {} {} {inputs} -> {outputs}", node.name, node.operator).unwrap();
        for found in &node.attributes {
            let (numbers, bytes) = (&found.integers, hex(found.text.iter().copied()));
            let (name, number) = (&found.name, found.integer);
            writeln!(text, "attribute {name} {number} {numbers:?} {bytes}").unwrap();
            found.tensor.iter().for_each(|tensor| text_of_tensor(tensor, &mut text));
        }
    }
    graph.weights.iter().for_each(|tensor| text_of_tensor(tensor, &mut text));
    for value_info in graph.inputs.iter().chain(&graph.outputs) {
        let length = |length: &Option<i64>| length.map_or("?".to_owned(), |one| one.to_string());
        let lengths: Vec<String> = value_info.lengths.iter().map(length).collect();
        writeln!(text, "port {} {}", value_info.name, lengths.join(" ")).unwrap();
    }
    text
}

fn text_of_tensor(tensor: &Tensor, text: &mut String) {
    let (raw, floats) = (tensor.raw.iter().copied(), tensor.floats.iter());
    let (raw, floats) = (hex(raw), hex(floats.flat_map(|value| value.to_le_bytes())));
    let (name, kind, lengths) = (&tensor.name, tensor.kind, &tensor.lengths);
    let numbers = &tensor.integers;
    writeln!(text, "tensor {name} {kind} {lengths:?} {raw} {floats} {numbers:?}").unwrap();
}

fn hex(bytes: impl Iterator<Item = u8>) -> String {
    bytes.map(|byte| format!("{byte:02x}")).collect()
}

/// Files from other writers, float32 and int8: our parser reads the same as the official package
/// `onnx`.
#[test]
fn lab_files_parse_as_in_the_onnx_package() {
    for (file, expected) in [
        (TINY, "7a0b2ac581ddd063d118f8b46dc7b34cd38cb1e3f12ba273bee5f98bc3d45bf6"),
        (SMALL, "c38e48b1b5d67c03bd9e9c25021ea0fc7790335ef41a156a551c77d3dd0352c8"),
        (LARGE, "d371afdd208f05ed95cf26abc74df3284087c055f3a5383eaed5cbdc478da3ee"),
    ] {
        let text = text(&File::read(file).unwrap());
        assert_eq!(blake3::hash(text.as_bytes()).to_hex().as_str(), expected, "{text:.2000}");
    }
}

/// A truncated file is read up to a field's end, or refused; no changed byte does any harm.
#[test]
fn truncated_or_altered_files_parse_or_are_refused() {
    let whole = File::read(TINY).unwrap();
    for length in 0..TINY.len() {
        // Skip most of the weights, where all positions are alike.
        if length % 64 < 3 || !(6_000..40_000).contains(&length) {
            let found = File::read(&TINY[..length]);
            assert!(found.is_err() || found.unwrap() != whole, "{length}");
        }
    }
    let mut file = TINY.to_vec();
    let mut random = Any(Seed::new(15).stream());
    let (mut read, mut refused) = (0, 0);
    for _ in 0..3000 {
        let at = random.below(TINY.len());
        let bit = 1 << random.below(8);
        file[at] ^= bit;
        match File::read(&file) {
            Ok(_) => read += 1,
            Err(_) => refused += 1,
        }
        file[at] ^= bit;
    }
    assert!(read > 100 && refused > 100, "{read} and {refused}");
}

#[test]
fn invalid_fields_are_refused_by_name() {
    let refused = |bytes: &[u8], expected: &str| {
        assert_eq!(File::read(bytes).unwrap_err(), expected, "{bytes:x?}");
    };
    refused(&[0x80], "byte 0: it ends within a varint");
    refused(&[0x08], "byte 1: it ends within a varint");
    refused(&[0x08, 0x80], "byte 1: it ends within a varint");
    let eleven = [&[0x08][..], &[0x80; 10], &[1]].concat();
    refused(&eleven, "byte 1: a varint of over 10 bytes");
    let beyond = [&[0x08][..], &[0xff; 9], &[2]].concat();
    refused(&beyond, "byte 1: a varint of over 64 bits");
    refused(&[0x00, 0], "byte 0: a field of the number 0");
    refused(&[0x80, 0x80, 0x80, 0x80, 0x10, 0], "byte 0: a field of the number 536870912");
    refused(&[0x0b], "byte 0: a field of the kind 3");
    refused(&[0x0c], "byte 0: a field of the kind 4");
    refused(&[0x0f], "byte 0: a field of the kind 7");
    refused(&[0x09, 0, 0], "byte 1: it ends within 8 bytes");
    refused(&[0x0d, 0, 0], "byte 1: it ends within 4 bytes");
    refused(&[0x12, 3, 1, 2], "byte 2: it ends within 3 bytes");
    let longest = [&[0x12][..], &[0xff; 9], &[1]].concat();
    refused(&longest, "byte 11: it ends within 18446744073709551615 bytes");
    // The graph: a number; twice; a node that extends beyond it; a name that is not text.
    refused(&[0x38, 1], "byte 2: the field 7 is not bytes");
    refused(&[0x3a, 0, 0x3a, 0], "it has more than one graph");
    refused(&[0x3a, 2, 0x0a, 9], "byte 4: it ends within 9 bytes");
    refused(&[0x3a, 5, 0x0a, 3, 0x1a, 1, 0xff], "byte 6: the field 3 is not text in UTF-8");
    // Weights: a type code beyond 32 bits, lists of other numbers, and a truncated one.
    let weights = |bytes: &[u8], expected: &str| {
        let length = u8::try_from(bytes.len()).unwrap();
        refused(&[&[0x3a, length + 2, 0x2a, length], bytes].concat(), expected);
    };
    let large = [0x10, 0xff, 0xff, 0xff, 0xff, 0x0f];
    weights(&large, "byte 10: the field 2 is not a number of 32 bits");
    weights(&[0x22, 3, 0, 0, 0], "byte 6: the field 4 is not numbers of four bytes");
    weights(&[0x20, 3], "byte 6: the field 4 is not real numbers");
    weights(&[0x0a, 2, 1, 0x80], "byte 6: it ends within a varint");
    weights(&[0x0d, 0, 0, 0, 0], "byte 5: the field 1 is not a number");
    // An input with two types.
    let value_info = [0x3a, 6, 0x5a, 4, 0x12, 0, 0x12, 0];
    refused(&value_info, "it has more than one type");
}

/// The cost of a file is checked before it is incurred.
#[test]
fn files_beyond_the_limits_are_refused() {
    // Only fields of two bytes: empty nodes.
    let count = ONNX_FIELDS_MAX - 1;
    let graph = |count: usize| {
        let mut writer = Writer::new(None);
        writer.bytes_field(7, &[0x0a, 0].repeat(count));
        writer.bytes
    };
    let file = File::read(&graph(count)).unwrap();
    assert_eq!(file.graph.unwrap().nodes.len(), count);
    let found = File::read(&graph(count + 1)).unwrap_err();
    assert!(found.ends_with(": over 262144 fields"), "{found}");
    let found = File::read(&vec![0; FILE_BYTES_MAX + 1]).unwrap_err();
    assert_eq!(found, "67108865 bytes; 67108864 are possible");
}
