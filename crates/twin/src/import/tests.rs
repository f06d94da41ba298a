//! Imports from text: what is read, counted and rejected.

use std::fmt::Write as _;

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

fn show(imported: &Result<Imported, Error>) -> String {
    let imported = match imported {
        Ok(imported) => imported,
        Err(error) => return format!("error: {error}\n"),
    };
    let mut text = format!("begin {}, {} lines\n", imported.begin.as_millis(), imported.lines);
    for read in imported.trace.reads() {
        let (at, size) = (read.at.as_nanos(), read.size);
        writeln!(text, "{at} {size} {:x}", read.key).unwrap();
    }
    for (reason, count) in &imported.skipped {
        writeln!(text, "skipped {reason:?}: {count}").unwrap();
    }
    text
}

fn csv(format: TimeFormat, text: &str, expected: &Expect) {
    let import = CsvImport { time_format: format, ..CsvImport::default() };
    expected.assert_eq(&show(&import.import(text.as_bytes())));
}

fn s3(import: S3LogImport, text: &str, expected: &Expect) {
    expected.assert_eq(&show(&import.import(text.as_bytes())));
}

/// Returns a line of a log: time of day, operation, key, status, bytes sent and object size.
fn log(time: &str, operation: &str, key: &str, numbers: &str) -> String {
    format!(
        "79a59df9 mybucket [06/Feb/2026:{time} +0000] 192.0.2.3 79a59df9 3E57427F3 {operation} \
         {key} \"GET /mybucket/{key}?x=a b HTTP/1.1\" {numbers} 70 10 \"-\" \"S3Console/0.4\" - \
         hostid SigV4 TLS AuthHeader mybucket.s3.us-west-1.amazonaws.com TLSV1.2 - Yes\n"
    )
}

#[test]
fn csv_times_have_three_formats() {
    let rfc = "key,size,time,other\n\
               7,4096,2026-02-06T00:00:38.5Z,x\n\
               8,64MiB,2026-02-06T01:00:39+01:00,x\n";
    csv(
        TimeFormat::Rfc3339,
        rfc,
        &expect![[r#"
        begin 1770336038500, 3 lines
        0 4KiB 7
        500000000 64MiB 8
    "#]],
    );
    let seconds = "time,size,key\n1770336038.5,4 kB,\"a,\"\"b\"\"\"\n1770336039,1B,b\n\n";
    csv(
        TimeFormat::UnixSeconds,
        seconds,
        &expect![[r#"
        begin 1770336038500, 4 lines
        0 3.9KiB e2aa6a06185557a2
        500000000 1B 575a0b1c44d8843f
        skipped Blank: 1
    "#]],
    );
    let nanos = "\u{feff}time,size,key\r\n12,1,b\r\n10,0,b\r\n10,2,b\r\n";
    csv(
        TimeFormat::UnixNanos,
        nanos,
        &expect![[r#"
        begin 0, 4 lines
        0 2B 575a0b1c44d8843f
        2 1B 575a0b1c44d8843f
        skipped NoBytes: 1
    "#]],
    );
}

#[test]
fn invalid_csv_is_rejected_by_line_and_field() {
    let import = |time_format, text: &str| {
        let import = CsvImport { time_format, ..CsvImport::default() };
        show(&import.import(text.as_bytes()))
    };
    let rows = [
        "1,1,a\n1,-5,a",
        "1,5 parsecs,a",
        "1,5KB,a",
        "1,99999PiB,a",
        "-1,5,a",
        "1e9,5,a",
        "1.0000000001,5,a",
        "99999999999,5,a",
        "1,5,",
        "1,5",
        "1,5,\"a",
        "1,5,\"a\"b",
        "",
    ];
    let rows = rows.map(|rows| format!("time,size,key\n{rows}\n"));
    let errors = rows.map(|text| import(TimeFormat::UnixSeconds, &text)).concat();
    expect![[r#"
        error: line 3, field size: "-5" is negative
        error: line 2, field size: "5 parsecs" has an unknown unit
        error: line 2, field size: "5KB" has an unknown unit
        error: line 2, field size: "99999PiB" is too large
        error: line 2, field time: "-1" is negative
        error: line 2, field time: "1e9" is not a number in the expected format
        error: line 2, field time: "1.0000000001" is not a number in the expected format
        error: line 2, field time: "99999999999" is too large
        error: line 2, field key: "" is empty
        error: line 2: 2 fields, expected 3
        error: line 2, field 3: ""a" has bad delimiters
        error: line 2, field 3: ""a"b" has bad delimiters
        error: the trace has no reads
    "#]]
    .assert_eq(&errors);
    let texts = [
        "time,size,key\nyesterday,1,a\n",
        "time,size,key\n1969-01-01T00:00:00Z,1,a\n",
        "when,size,key\n",
        "",
    ];
    let errors = texts.map(|text| import(TimeFormat::Rfc3339, text)).concat();
    expect![[r#"
        error: line 2, field time: "yesterday" is not a time in the expected format
        error: line 2, field time: "1969-01-01T00:00:00Z" is negative
        error: line 1, field time: "when,size,key" is not among the columns
        error: the trace has no reads
    "#]]
    .assert_eq(&errors);
}

#[test]
fn lines_are_sorted_within_the_reorder_limit() {
    let text = "time,size,key\n5,1,1\n3,1,2\n4,1,3\n1,1,4\n9,1,5\n";
    let import = |reorder_reads| {
        let import =
            CsvImport { time_format: TimeFormat::UnixNanos, reorder_reads, ..CsvImport::default() };
        show(&import.import(text.as_bytes()))
    };
    expect![[r#"
        begin 0, 6 lines
        0 1B 4
        2 1B 2
        3 1B 3
        4 1B 1
        8 1B 5
    "#]]
    .assert_eq(&import(3));
    expect![[r#"
        error: line 5, field time: 1 ns is before 3 ns, the time of an earlier line
    "#]]
    .assert_eq(&import(2));
}

#[test]
fn access_logs_yield_their_reads() {
    let text = [
        log("00:00:38", "REST.GET.OBJECT", "a%20b", "200 - 2662992 3462992"),
        log("00:00:30", "REST.GET.OBJECT", "c", "206 - 10 3462992"),
        log("00:00:31", "REST.GET.VERSIONING", "-", "200 - 113 -"),
        log("00:00:31", "REST.PUT.OBJECT", "d", "200 - - 4406583"),
        log("00:00:32", "REST.GET.OBJECT", "e", "404 NoSuchKey 297 -"),
        log("00:00:33", "WEBSITE.GET.OBJECT", "f", "200 - - -"),
        "\n".to_owned(),
    ]
    .concat();
    s3(
        S3LogImport::default(),
        &text,
        &expect![[r#"
        begin 1770336030000, 7 lines
        0 10B 7975c8912c29858a
        8000000000 2.5MiB 6a028d845a9584d8
        skipped Blank: 1
        skipped OtherOperation: 2
        skipped Failed: 1
        skipped NoBytes: 1
    "#]],
    );
    let whole = S3LogImport { size: S3Size::ObjectSize, ..S3LogImport::default() };
    s3(
        whole,
        &text,
        &expect![[r#"
        begin 1770336030000, 7 lines
        0 3.3MiB 7975c8912c29858a
        8000000000 3.3MiB 6a028d845a9584d8
        skipped Blank: 1
        skipped OtherOperation: 2
        skipped Failed: 1
        skipped NoBytes: 1
    "#]],
    );
}

#[test]
fn invalid_log_lines_are_rejected_or_counted() {
    let good = log("00:00:38", "REST.GET.OBJECT", "a", "200 - 1 1");
    let bad = [
        log("00:00:61", "REST.GET.OBJECT", "a", "200 - 1 1"),
        log("00:00:38", "REST.GET.OBJECT", "a", "ok - 1 1"),
        log("00:00:38", "REST.GET.OBJECT", "a", "200 - -5 1"),
        log("00:00:38", "REST.GET.OBJECT", "-", "200 - 5 1"),
        "owner bucket [06/Feb/2026:00:00:38 +0000 ip\n".to_owned(),
        "owner bucket\n".to_owned(),
        good.replace("\"GET", "\"GET\"x"),
    ];
    let errors: String = bad
        .iter()
        .map(|bad| show(&S3LogImport::default().import(format!("{good}{bad}").as_bytes())))
        .collect();
    expect![[r#"
        error: line 2, field time: "06/Feb/2026:00:00:61 +0000" is not a time in the expected format
        error: line 2, field http-status: "ok" is not a number in the expected format
        error: line 2, field bytes-sent: "-5" is negative
        error: line 2, field key: "-" is empty
        error: line 2, field time: "[06/Feb/2026:00:00:38 +0000 ip" has bad delimiters
        error: line 2: 2 fields, expected 13
        error: line 2, field request-uri: ""GET"x /mybucket/a?x=a b HTTP/1." has bad delimiters
    "#]]
    .assert_eq(&errors);
    let skip = S3LogImport { malformed: Malformed::Skip, ..S3LogImport::default() };
    s3(
        skip,
        &format!("{good}{}", bad.concat()),
        &expect![[r#"
        begin 1770336038000, 8 lines
        0 1B f259348a1c81d20e
        skipped Malformed: 7
    "#]],
    );
}

proptest! {
    #[test]
    fn any_text_parses_or_fails_without_panic(text in "\\PC*", rows in "([0-9a.,\"-]{0,20}\n)*") {
        let _ = CsvImport::default().import(text.as_bytes());
        let _ = CsvImport::default().import(format!("time,size,key\n{rows}").as_bytes());
        let _ = S3LogImport::default().import(text.as_bytes());
        let _ = S3LogImport::default().import(format!("a b [{rows} \"{text}").as_bytes());
    }
}
