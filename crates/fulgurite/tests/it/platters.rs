//! Platter files on their own, and the demo.

use std::fs;
use std::path::{Path, PathBuf};

use expect_test::expect;
use serde_json::Value;

use crate::process::{Server, fold, fulgurite, transcript};

/// Creates a data directory with one sealed file, its server stopped; returns an information
/// platter.
fn seal_one_file(folder: &Path) -> PathBuf {
    let data = folder.join("data");
    let server = Server::start(&data, &[]);
    fs::write(folder.join("secret-name"), vec![7; 100_000]).unwrap();
    for args in [&["put", "--make-bucket", "secret-name", "s3://box"][..], &["archive", "seal"]] {
        let mut command = fulgurite(args);
        let output = command.current_dir(folder).env("FULGURITE_DATA", &data).output().unwrap();
        assert!(output.status.success(), "{args:?}");
    }
    assert_eq!(server.terminate(), Some(0));
    let platters = fs::read_dir(data.join("platters")).unwrap();
    let paths = platters.map(|entry| entry.unwrap().path());
    let is_information = |path: &PathBuf| {
        let output = fulgurite(&["inspect", &path.to_string_lossy()]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).contains(": information platter 0")
    };
    paths
        .filter(|path| path.extension().is_some_and(|e| e == "glass"))
        .find(is_information)
        .unwrap()
}

/// Returns a platter of valid sectors whose header asks for a span that no track has.
fn with_impossible_geometry(platter: &[u8]) -> Vec<u8> {
    const SECTOR: usize = 8192 + 128;
    let mut platter = platter.to_vec();
    let (old, new) = (b"\"set_span_sectors\":32", b"\"set_span_sectors\":99");
    let whole = platter.len() / SECTOR * SECTOR;
    for sector in platter[..whole].chunks_exact_mut(SECTOR) {
        if let Some(offset) = sector.windows(old.len()).position(|bytes| bytes == old) {
            sector[offset..offset + new.len()].copy_from_slice(new);
            let checksum = fulgurite_codes::sector_checksum(&sector[..SECTOR - 32]);
            sector[SECTOR - 32..].copy_from_slice(&checksum);
        }
    }
    platter
}

#[test]
fn inspect_shows_platter_contents() {
    let folder = tempfile::tempdir().unwrap();
    let platter = seal_one_file(folder.path());
    let shown = platter.to_string_lossy().into_owned();
    let output = fulgurite(&["inspect", "--map", "--json", &shown]).output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let types: Vec<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["header", "body", "map"]);
    assert_eq!(lines[0]["header"]["geometry"]["profile"], "demo");
    let good = lines[2]["tracks"].as_array().unwrap().iter().all(|track| track["failed"] == 0);
    assert!(good, "nothing was damaged: {text}");
    assert!(!text.contains("secret-name"), "names are encrypted");
}

#[test]
fn inspect_explains_invalid_platters() {
    let folder = tempfile::tempdir().unwrap();
    let platter = seal_one_file(folder.path());
    let bytes = fs::read(&platter).unwrap();
    let inspect = |bytes: &[u8]| {
        let path = folder.path().join("x.glass");
        fs::write(&path, bytes).unwrap();
        let output = transcript(&mut fulgurite(&["inspect", &path.to_string_lossy()]));
        let id = platter.file_stem().unwrap().to_string_lossy();
        fold(&output.replace(&*path.to_string_lossy(), "x.glass").replace(&*id, "ID"))
    };
    expect![[r#"
        err: fulgurite: x.glass: this is not a platter: no header sector can be read at
            its front or back
        exit: 8
    "#]]
    .assert_eq(&inspect(b"no platter at all"));
    expect![[r#"
        err: fulgurite: x.glass: platter ID is truncated: 1798143 of 1798144 bytes
        exit: 8
    "#]]
    .assert_eq(&inspect(&bytes[..bytes.len() - 1]));
    expect![[r#"
        err: fulgurite: x.glass: platter ID has 1798145 bytes instead of 1798144
        exit: 8
    "#]]
    .assert_eq(&inspect(&[&bytes[..], b"x"].concat()));
    let mut unsealed = bytes.clone();
    let end = unsealed.len();
    unsealed[end - 1024..].fill(0);
    expect![[r#"
        err: fulgurite: x.glass: platter ID is not sealed: no copy of its final record
            is valid
        exit: 8
    "#]]
    .assert_eq(&inspect(&unsealed));
    expect![[r#"
        err: fulgurite: x.glass: the header of platter ID is invalid: geometry "demo"
            is invalid: a span of 99 sectors is not within a track
        exit: 8
    "#]]
    .assert_eq(&inspect(&with_impossible_geometry(&bytes)));
    let missing = transcript(&mut fulgurite(&["inspect", "/nowhere/x.glass"]));
    expect![[r#"
        err: fulgurite: cannot open "/nowhere/x.glass": No such file or directory (os error 2)
        exit: 4
    "#]]
    .assert_eq(&missing);
}

#[test]
fn lost_catalog_is_rebuilt() {
    let folder = tempfile::tempdir().unwrap();
    seal_one_file(folder.path());
    let data = folder.path().join("data");
    let shown = data.to_string_lossy().into_owned();
    let recover = || fulgurite(&["recover", "--data", &shown]).output().unwrap();
    assert_eq!(recover().status.code(), Some(3), "a catalog is there");
    fs::remove_dir_all(data.join("catalog")).unwrap();
    let output = recover();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.starts_with("1 object in 1 bucket, 97.7 KiB, from 4 platters of 1 set"), "{text}");
    let _server = Server::start(&data, &[]);
    for args in [
        &["restore", "--wait", "s3://box/secret-name"][..],
        &["get", "s3://box/secret-name", "out/"],
    ] {
        let mut command = fulgurite(args);
        let output = command.current_dir(folder.path()).env("FULGURITE_DATA", &data).output();
        assert!(output.unwrap().status.success(), "{args:?}");
    }
    assert_eq!(fs::read(folder.path().join("out/secret-name")).unwrap(), vec![7; 100_000]);
}

#[test]
fn demo_restores_every_byte() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..20u8 {
        let bytes = [number, number + 1, 7, 0].repeat(usize::from(number) * 7_500);
        fs::write(folder.path().join(format!("file {number}")), bytes).unwrap();
    }
    let shown = folder.path().to_string_lossy().into_owned();
    let output = fulgurite(&["demo", "--json", "--seed", "3", &shown]).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["objects"], 20);
    assert_eq!(report["differing"].as_array().unwrap().len(), 0);
    assert_eq!(report["damage"]["platters_lost"].as_array().unwrap().len(), 1);
    assert!(report["damage"]["tracks"].as_u64().unwrap() > 0, "{report}");
    assert!(report["repaired_by_set"].as_u64().unwrap() > 0, "{report}");
    assert_eq!(report["places"].as_array().unwrap().len(), 3);
}

/// The same through voxels, images and both decoders; and a picture of one of the sectors.
#[test]
fn demo_restores_every_byte_in_analog_fidelity() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), [7; 9_000]).unwrap();
    let shown = folder.path().to_string_lossy().into_owned();
    let demo = ["demo", "--json", "--fidelity", "analog", "--keep", &shown];
    let output = fulgurite(&demo).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let kept = errors.lines().find_map(|line| line.strip_prefix("kept: ")).unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["differing"].as_array().unwrap().len(), 0);
    assert!(report["repaired_by_set"].as_u64().unwrap() > 0, "{report}");
    let read = |decoder: usize| report["decode"]["sectors"][decoder][1].as_u64().unwrap();
    assert!(read(0) > 100, "the linear decoder read {} sectors", read(0));
    let lost = report["decode"]["lost"].as_u64().unwrap();
    assert!(lost * 20 < read(0) + read(1), "{report}");

    let platters = Path::new(kept).join("archive/platters");
    let platter = fs::read_dir(platters).unwrap().next().unwrap().unwrap().path();
    let pictures = folder.path().join("pictures");
    let (platter, out) = (platter.to_string_lossy(), pictures.to_string_lossy());
    let render = ["lab", "render", &platter, "--layer", "2", "--seed", "1", "--out", &out];
    let output = fulgurite(&render).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for name in ["state-0", "state-3", "symbols", "decoded", "errors"] {
        let picture = fs::read(pictures.join(format!("{name}.png"))).unwrap();
        assert_eq!(&picture[1..4], b"PNG", "{name}");
    }
    let missing = ["lab", "render", &platter, "--layer", "99", "--out", &out];
    let output = fulgurite(&missing).output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&output.stderr).contains("has no layer 99; there are 0 to 14"));
    fs::remove_dir_all(kept).unwrap();
}
