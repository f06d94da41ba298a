//! What rows, entries and requests are made of: names, classes, labels, the metadata of objects.

pub(crate) mod classes;
pub(crate) mod labels;
pub(crate) mod names;
pub(crate) mod object;
