//! Help, configuration and refusals: no server needed.

use std::process::Stdio;

use expect_test::{Expect, expect};

use crate::process::{fold, fulgurite, transcript};

#[track_caller]
fn check(args: &[&str], expect: Expect) {
    expect.assert_eq(&fold(&transcript(&mut fulgurite(args))));
}

#[test]
fn help_is_complete() {
    check(
        &["--help"],
        expect![[r#"
            An open archive for data that must outlive its hardware

            Usage: fulgurite [OPTIONS] <COMMAND>

            Archive:
              serve          Serve an archive over S3
              config         Show the configuration
              archive        Seal, verify and watch a running archive
              tier           List, create, watch and repair the tiers: racks, tomes, sites
              recover        Rebuild the catalog from platters, logs and keys
              inspect        Show what a platter file holds
              durability     Show how likely tracks, groups and sets are to be lost
              demo           Archive a folder, damage the platters, bring every byte back

            Objects:
              put            Store files, folders or standard input as objects
              get            Fetch an object, or a folder of them
              cat            Print objects
              cp             Copy objects on the server
              mv             Move objects on the server
              sync           Mirror a folder to a bucket prefix, or a prefix to a folder
              ls             List buckets or objects
              rm             Delete objects
              mb             Make a bucket
              rb             Delete an empty bucket
              restore        Request readable copies of archived objects
              status         Show class and restore state of objects

            On other machines:
              tome           Serve a tome of a set in a process of its own
              geo            Check stores for several sites, and serve those of one
              decode-worker  Decode for archives on other machines

            Simulate and measure:
              twin           Simulate libraries, replay their logs, generate traces
              lab            Measure, compare and draw the simulated voxels
              bench          Measure the codes

            This program:
              completions    Print completions for a shell
              man            Write the manual pages

            Options:
                  --json               Print one JSON object per line instead of text
                  --log-format <FORM>  Format of log lines on standard error: text or json
                                       [default: text]
                  --color <WHEN>       When to color: auto (on a terminal, unless NO_COLOR
                                       is set), always or never [default: auto]
              -h, --help               Print help
              -V, --version            Print version

            Exit codes:
               0  success (also when the reader of a pipe went away)
               1  failure that no other code names
               2  wrong command line
               3  wrong configuration or missing credentials
               4  bucket, object, platter or file not found
               5  object is archived: run `fulgurite restore` first
               6  access denied
               7  server unreachable or overloaded
               8  damaged bytes: a checksum or a comparison failed
               9  data directory is in use by another process
              10  some objects failed, the others were done
              11  `serve` ended itself: the key table could not be synced
              12  `recover` found no body for some keys: was a tier left out?
            exit: 0
        "#]],
    );
}

#[test]
fn help_of_serve_is_complete() {
    check(
        &["serve", "--help"],
        expect![[r#"
            Serve an archive over S3

            Usage: fulgurite serve [OPTIONS] --data <DIR>

            Options:
                  --data <DIR>              Data directory; made if it does not exist [env:
                                            FULGURITE_DATA=]
                  --json                    Print one JSON object per line instead of text
                  --config <FILE>           Configuration file (TOML) [env:
                                            FULGURITE_CONFIG=]
                  --log-format <FORM>       Format of log lines on standard error: text or
                                            json [default: text]
                  --color <WHEN>            When to color: auto (on a terminal, unless
                                            NO_COLOR is set), always or never [default:
                                            auto]
                  --listen <ADDR>           Address and port to listen on; port 0 takes a
                                            free one
                  --tls <CHOICE>            TLS: off, auto (self-signed) or CERT,KEY (PEM
                                            files)
                  --profile <NAME>          Platter profile: sliver, demo, desk or silica
                  --tier <NAME=KIND:VALUE>  Tier: NAME=rack:SHAPE or NAME=tome:COUNT
                                            (simulated disks in DATA/tiers/NAME, made at the
                                            first start), NAME=geo:MAP or NAME=objects:URL;
                                            can be repeated
                  --access-key <KEY>        Access key; without one, a pair is made once and
                                            kept in DATA/credentials.toml [env:
                                            FULGURITE_ACCESS_KEY=]
                  --secret-key <KEY>        Secret key; prefer the variable, a flag is seen
                                            by others [env: FULGURITE_SECRET_KEY]
              -h, --help                    Print help
            exit: 0
        "#]],
    );
}

#[test]
fn config_show_prints_a_config_file() {
    check(
        &["config", "show", "--profile", "demo"],
        expect![[r#"
            listen = "127.0.0.1:9000"
            tls = "off"

            [storage]
            log_capacity = "256GiB"
            forget_within = "1h"

            [restore]
            expedited = "refuse"
            day = "1d"

            [keys]

            [tiers.glass]
            kind = "glass"
            profile = "demo"
            shard_size = "4000000000B"

            [tiers.glass.moves]
            age = "1d"
            bytes = "256MiB"

            [tiers.glass.medium]
            fidelity = "sector"
            seed = 0
            sector_failure_rate = 0.0
            track_failure_rate = 0.0
            channel = "nominal"
            engine = "builtin"
            reads_max = 3
            decode_workers = 0
            decode_within = "0s"
            decode_prices = [1.0]
            decode_watts = 10.0

            [tiers.glass.library]
            time_scale = 0.0
            seed = 0
            policy = "fulgurite"

            [tiers.glass.library.shape]
            panels = 1
            write_racks = 1
            read_racks = 2
            drives_per_read_rack = 2
            storage_racks = 7
            shelves_per_panel = 10
            slots_per_shelf = 100
            shuttles_per_panel = 4
            rack_width_mm = 1200
            shuttle_width_mm = 400
            spare_slots_per_shelf = 1
            exit: 0
        "#]],
    );
}

#[test]
fn config_show_includes_environment_overrides() {
    let mut command = fulgurite(&["config", "show", "--json"]);
    command.env("FULGURITE_GLASS_MOVES_AGE", "90m").env("FULGURITE_GLASS_MOVES_AEG", "1h");
    let output = command.output().unwrap();
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(shown["tiers"]["glass"]["moves"]["age"], "90m");
    assert_eq!(shown["tiers"]["glass"]["profile"], "desk");
    let warned = String::from_utf8(output.stderr).unwrap();
    assert!(
        warned.contains("not a setting") && warned.contains("FULGURITE_GLASS_MOVES_AEG"),
        "{warned}"
    );
}

#[test]
fn config_error_names_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f.toml");
    std::fs::write(&path, "[restore]\ndays = \"1h\"\n").unwrap();
    let path = path.to_string_lossy();
    let output = transcript(&mut fulgurite(&["serve", "--data", "x", "--config", &path]));
    expect![[r#"
        err: fulgurite: configuration "f.toml" is wrong: TOML parse error at line 2,
            column 1
        err:   |
        err: 2 | days = "1h"
        err:   | ^^^^
        err: unknown field `days`, expected one of `expedited`, `day`, `log`
        exit: 3
    "#]]
    .assert_eq(&fold(&output.replace(&*path, "f.toml")));
}

#[test]
fn impossible_isa_and_cache_size_are_rejected() {
    let mut command = fulgurite(&["durability"]);
    command.env("FULGURITE_ISA", "mmx");
    expect![[r#"
        err: fulgurite: FULGURITE_ISA names "mmx", which this processor or this program
            does not support
        exit: 3
    "#]]
    .assert_eq(&fold(&transcript(&mut command)));
    let mut command = fulgurite(&["durability"]);
    command.env("FULGURITE_SECOND_CACHE_KIB", "1M");
    expect![[r#"
        err: fulgurite: FULGURITE_SECOND_CACHE_KIB is "1M"; use 128 to 65536 KiB
        exit: 3
    "#]]
    .assert_eq(&fold(&transcript(&mut command)));
}

#[test]
fn commands_require_endpoint_and_credentials() {
    check(
        &["ls"],
        expect![[r#"
        err: fulgurite: no server: pass --endpoint URL or --data DIR
        exit: 2
    "#]],
    );
    check(
        &["ls", "--endpoint", "http://127.0.0.1:1"],
        expect![[r#"
            err: fulgurite: no credentials: pass --access-key and --secret-key, set
                AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or pass --data DIR
            exit: 3
        "#]],
    );
    check(
        &["ls", "--endpoint", "ftp://x", "--access-key", "a", "--secret-key", "b"],
        expect![[r#"
            err: fulgurite: endpoint "ftp://x" is not usable: it must begin with http:// or
                https://
            exit: 2
        "#]],
    );
    check(
        &["archive", "status", "--data", "nowhere"],
        expect![[r#"
            err: fulgurite: no server runs on "nowhere": start one with fulgurite serve
                --data nowhere
            exit: 7
        "#]],
    );
}

#[test]
fn usage_errors_are_explained() {
    check(
        &["put", "file"],
        expect![[r#"
            err: error: invalid value 'file' for '<S3-URL>': "file" is not an S3 URL; write
                s3://bucket/key
            err: 
            err: For more information, try '--help'.
            exit: 2
        "#]],
    );
    check(
        &["get", "bucket/key", "out"],
        expect![[r#"
            err: error: invalid value 'bucket/key' for '<S3-URL>': "bucket/key" is not an
                S3 URL; write s3://bucket/key
            err: 
            err: For more information, try '--help'.
            exit: 2
        "#]],
    );
    check(
        &["put", "Cargo.toml", "bucket", "--endpoint", "http://x"],
        expect![[r#"
            err: error: invalid value 'bucket' for '<S3-URL>': "bucket" is not an S3 URL;
                write s3://bucket/key
            err: 
            err: For more information, try '--help'.
            exit: 2
        "#]],
    );
}

#[test]
fn broken_pipe_exits_with_success() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = fulgurite(&["config", "show"]);
    let output = command.stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
    let output = output.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
