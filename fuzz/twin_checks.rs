//! What must hold of traces and imports, whatever the bytes: no panic, reads in the order of time,
//! and no line that is neither a read nor counted.

use fulgurite_twin::TraceRead;
use fulgurite_twin::import::{CsvImport, Imported, Malformed, S3LogImport};
use fulgurite_twin::trace::TraceReader;

fn check_imported(imported: &Imported) {
    let reads = imported.trace.reads();
    assert!(reads.is_sorted_by_key(|read| read.at));
    let skipped: u64 = imported.skipped.values().sum();
    let counted = reads.len() as u64 + skipped;
    assert!(counted <= imported.lines && imported.lines <= counted + 1, "a header at most");
}

/// Any text: a trace, or an error that names a line.
pub(crate) fn trace(input: &[u8]) {
    let Ok(reader) = TraceReader::new(input) else { return };
    let reads: Vec<TraceRead> = reader.map_while(Result::ok).collect();
    assert!(reads.is_sorted_by_key(|read| read.at));
}

/// Any text: reads, or an error that names a line.
pub(crate) fn csv(input: &[u8]) {
    if let Ok(imported) = CsvImport::default().import(input) {
        check_imported(&imported);
    }
}

/// Any text: reads, or an error that names a line; with unsound lines skipped, fewer of those.
pub(crate) fn s3_log(input: &[u8]) {
    let strict = S3LogImport::default().import(input);
    let lax = S3LogImport { malformed: Malformed::Skip, ..S3LogImport::default() }.import(input);
    if let Ok(imported) = &strict {
        check_imported(imported);
        assert_eq!(strict.as_ref().ok(), lax.as_ref().ok());
    }
    if let Ok(imported) = &lax {
        check_imported(imported);
    }
}
