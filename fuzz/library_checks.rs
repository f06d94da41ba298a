//! What must hold of library logs, whatever the bytes: no panic, lines in the order of time, and a
//! log that is played again ends or says why it cannot.

use fulgurite_glass_core::control::log::{LogReader, replay};

/// Steps of a log that are played again; a line may ask for much.
const LINES_MAX: usize = 2000;

/// Any log: entries in order, or an error that names a line.
pub(crate) fn library_log(input: &[u8]) {
    let Ok(mut reader) = LogReader::new(input) else { return };
    let (mut line, mut at) = (1, None);
    while let Ok(Some(entry)) = reader.next_entry() {
        assert_eq!(entry.line, line + 1);
        assert!(at.is_none_or(|at| at <= entry.at), "line {line}");
        (line, at) = (entry.line, Some(entry.at));
    }
    if input.split(|byte| *byte == b'\n').count() <= LINES_MAX {
        // What it says of the log is not looked at: that it says anything is.
        let _ = replay(input);
    }
}
