//! Runs the checks of the fuzz targets of traces and imports on seeded mutations of valid ones.

#[path = "../../../fuzz/changes.rs"]
mod changes;
#[path = "../../../fuzz/twin_checks.rs"]
mod twin_checks;

#[test]
fn traces() {
    let trace = b"fulgurite-trace 1\ntime_ns,size,key\n0,10345,17639195504877107389\n\
                  12728366603,3108820,18061197555470439528\n12728366604,1,2\n";
    changes::each(&[trace], twin_checks::trace);
}

#[test]
fn csv_imports() {
    let csv = b"key,time,size,note\na,2026-02-06T00:00:38.25Z,4096,\"x, y\"\n\
                17,2026-02-06T00:00:37Z,64MiB,\n\nb,2026-02-06T01:00:37+01:00,1kB,z\n";
    changes::each(&[csv], twin_checks::csv);
}

#[test]
fn s3_log_imports() {
    let line = |time: &str, operation: &str, key: &str| {
        format!(
            "79a59df9 mybucket [06/Feb/2026:{time} +0000] 192.0.2.3 79a59df9 3E57427F3 {operation} \
             {key} \"GET /mybucket/{key}?x=a b HTTP/1.1\" 200 - 2662992 3462992 70 10 \"-\" \
             \"S3Console/0.4\" - hostid SigV4 TLS AuthHeader mybucket.s3.us-west-1.amazonaws.com \
             TLSV1.2 - Yes\n"
        )
    };
    let log = [
        line("00:00:38", "REST.GET.OBJECT", "photos/a%2520b"),
        line("00:00:37", "REST.HEAD.OBJECT", "c"),
        line("00:00:36", "REST.GET.OBJECT", "d"),
    ];
    changes::each(&[log.concat().as_bytes()], twin_checks::s3_log);
}
