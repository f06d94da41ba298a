//! The life of a server: started, found, exclusive on its directory, stopped, restarted.

use std::fs;

use expect_test::expect;

use crate::process::{Server, fold, fulgurite, transcript};

#[test]
fn server_is_found_by_data_dir_and_stops_cleanly() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let shown = data.to_string_lossy().into_owned();
    let server = Server::start(&data, &[]);
    assert!(server.listening["secret_key"].is_string(), "a new secret is shown once");
    let access_key = server.listening["access_key"].clone();
    let found = transcript(&mut fulgurite(&["mb", "s3://first", "--data", &shown]));
    expect![[r#"
        created s3://first
        exit: 0
    "#]]
    .assert_eq(&found);

    assert_eq!(server.terminate(), Some(0));
    assert!(!data.join("server.json").exists(), "the file is gone with the server");
    let gone = transcript(&mut fulgurite(&["ls", "--data", &shown]));
    expect![[r#"
        err: fulgurite: no server runs on "DATA": start one with fulgurite serve --data
            DATA
        exit: 7
    "#]]
    .assert_eq(&fold(&gone.replace(&shown, "DATA")));

    let server = Server::start(&data, &[]);
    assert!(server.listening["secret_key"].is_null(), "a stored secret is not shown");
    assert_eq!(server.listening["access_key"], access_key);
    let listed = fulgurite(&["ls", "--data", &shown]).output().unwrap();
    assert!(String::from_utf8_lossy(&listed.stdout).contains("s3://first"));
}

#[test]
fn lost_credentials_are_replaced_with_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let shown = data.to_string_lossy().into_owned();
    let args = ["serve", "--data", &shown, "--listen", "127.0.0.1:0", "--profile", "demo"];
    let mut logs = Vec::new();
    for start in 0..3 {
        if start == 2 {
            fs::remove_file(data.join("credentials.toml")).unwrap();
        }
        let mut command = fulgurite(&args);
        command.stderr(fs::File::create(folder.path().join("log")).unwrap());
        let mut process = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
        // It prints everything about its keys before its address.
        let mut first = [0];
        std::io::Read::read_exact(process.stdout.as_mut().unwrap(), &mut first).unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
        logs.push(fs::read_to_string(folder.path().join("log")).unwrap());
    }
    let warning = "a new pair was made, and keys that clients have no longer work";
    let warned: Vec<bool> = logs.iter().map(|log| log.contains(warning)).collect();
    assert_eq!(warned, [false, false, true], "{logs:?}");
    assert!(logs[2].contains("credentials.toml"), "{}", logs[2]);
}

#[test]
fn second_process_on_data_dir_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let shown = folder.path().to_string_lossy().into_owned();
    let server = Server::start(folder.path(), &[]);
    let before = fs::read(folder.path().join("server.json")).unwrap();
    let args = ["serve", "--data", &shown, "--listen", "127.0.0.1:0", "--profile", "demo"];
    let refused = transcript(fulgurite(&args).env("FULGURITE_LOG", "off"));
    expect![[r#"
        err: fulgurite: data directory "DATA" is in use by another process
        exit: 9
    "#]]
    .assert_eq(&fold(&refused.replace(&shown, "DATA")));
    assert_eq!(fs::read(folder.path().join("server.json")).unwrap(), before);
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn external_keys_are_not_stored() {
    let folder = tempfile::tempdir().unwrap();
    let shown = folder.path().to_string_lossy().into_owned();
    let keys = ["--access-key", "AKTEST", "--secret-key", "a-long-secret"];
    let server = Server::start(folder.path(), &keys);
    assert!(!folder.path().join("credentials.toml").exists());
    let endpoint = server.listening["endpoint"].as_str().unwrap().to_owned();
    let mut args = vec!["ls", "--endpoint", &endpoint];
    args.extend(keys);
    assert!(fulgurite(&args).output().unwrap().status.success());
    args[6] = "another-secret";
    assert_eq!(fulgurite(&args).output().unwrap().status.code(), Some(6));
    let admin = |more: &[&str]| {
        let mut command = fulgurite(&["archive", "status", "--data", &shown]);
        command.args(more).output().unwrap()
    };
    let wrong = admin(&["--access-key", "AKTEST", "--secret-key", "wrong-secret"]);
    assert_eq!(wrong.status.code(), Some(6), "{}", String::from_utf8_lossy(&wrong.stderr));

    // The directory still opens the admin API, with other keys than those of the archive.
    assert!(admin(&[]).status.success());
    let file = folder.path().join("operator.toml");
    let text = fs::read_to_string(&file).unwrap();
    assert!(!text.contains("AKTEST") && !text.contains("a-long-secret"), "{text}");
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    expect![[r#"
        err: fulgurite: the server was started with external keys and does not store
            them: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (admin commands need
            none)
        exit: 3
    "#]]
    .assert_eq(&fold(&transcript(&mut fulgurite(&["ls", "--data", &shown]))));
    // They open nothing else, and nothing once the server has stopped.
    let value = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        line.split('"').nth(1).unwrap().to_owned()
    };
    let operator_keys = (value("access_key"), value("secret_key"));
    let pair = ["--access-key", &operator_keys.0, "--secret-key", &operator_keys.1];
    let listed = fulgurite(&["ls", "--endpoint", &endpoint]).args(pair).output().unwrap();
    assert_eq!(listed.status.code(), Some(6));
    assert_eq!(server.terminate(), Some(0));
    assert!(!file.exists());
    let next = Server::start(folder.path(), &keys);
    assert_eq!(admin(&pair).status.code(), Some(6), "each start generates its own keys");
    assert!(admin(&[]).status.success());
    assert_eq!(next.terminate(), Some(0));
}

#[test]
fn self_signed_server_is_trusted_via_data_dir() {
    let folder = tempfile::tempdir().unwrap();
    let shown = folder.path().to_string_lossy().into_owned();
    let server = Server::start(folder.path(), &["--tls", "auto"]);
    let endpoint = server.listening["endpoint"].as_str().unwrap().to_owned();
    assert!(endpoint.starts_with("https://"), "{endpoint}");
    for args in [&["mb", "s3://safe"][..], &["archive", "status"]] {
        let done = fulgurite(args).args(["--data", &shown]).output().unwrap();
        assert!(done.status.success(), "{args:?}");
    }
    let credentials = fs::read_to_string(folder.path().join("credentials.toml")).unwrap();
    let value = |name: &str| {
        let line = credentials.lines().find(|line| line.starts_with(name)).unwrap();
        line.split('"').nth(1).unwrap().to_owned()
    };
    let mut client = fulgurite(&["ls", "--endpoint", &endpoint]);
    client
        .env("FULGURITE_ACCESS_KEY", value("access_key"))
        .env("FULGURITE_SECRET_KEY", value("secret_key"));
    assert_eq!(client.output().unwrap().status.code(), Some(7), "an unknown certificate");
}
