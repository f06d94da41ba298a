//! Tests of the reader of ONNX: a file written by hand, field by field, and bytes that are none.

use super::{File, Port};

#[test]
fn nothing_is_a_file_of_nothing() {
    assert_eq!(File::read(&[]).unwrap(), File::default());
    assert_eq!(Port::default().lengths, []);
}
