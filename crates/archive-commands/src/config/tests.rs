//! Configuration is read strictly, overridden in order, and shown as an equivalent file.

use std::path::Path;

use expect_test::{Expect, expect};
use fulgurite_tier::TierKind;
use fulgurite_units::{ByteCount, Duration};

use super::{Config, ConfigError, Overrides, Tier, TierFlag, TlsChoice};

fn load(text: &str, environment: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fulgurite.toml");
    std::fs::write(&path, text).unwrap();
    let environment = environment.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
    Config::load(Some(&path), environment, Overrides::default())
}

fn chain(error: &ConfigError) -> String {
    // The path of the configuration file differs in each run.
    let is_of_file = matches!(error, ConfigError::Syntax { .. });
    let mut text = if is_of_file { "configuration is wrong".to_owned() } else { error.to_string() };
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(error.to_string().trim_end());
        cause = error.source();
    }
    text
}

#[track_caller]
fn check_refused(text: &str, environment: &[(&str, &str)], expect: Expect) {
    let error = load(text, environment).expect_err("the configuration is refused");
    expect.assert_eq(&fold(&chain(&error)));
}

/// Breaks long lines at a space, to keep the expectations readable.
fn fold(text: &str) -> String {
    text.replace("; write ", ";\nwrite ")
        .replace(": No such", ":\nNo such")
        .replace("no library, ", "no library,\n")
        .replace("; use ", ";\nuse ")
        .replace("cannot keep ", "cannot keep\n")
        .replace("one of `staged", "one of\n`staged")
}

#[test]
fn unknown_keys_are_refused_with_their_position() {
    check_refused(
        "listen = \"127.0.0.1:9000\"\n[restore]\nday = \"1h\"\nsize = \"1GiB\"\n",
        &[],
        expect![[r#"
            configuration is wrong: TOML parse error at line 4, column 1
              |
            4 | size = "1GiB"
              | ^^^^
            unknown field `size`, expected one of `expedited`, `day`, `log`"#]],
    );
}

#[test]
fn far_libraries_are_tiers_and_get_most_redundancy() {
    const TIER: &str = "[tiers.oslo]\nkind = \"objects\"\nurl = \"file:///oslo\"\n";
    let seal =
        |seal: &str| format!("[tiers.glass]\nkind = \"glass\"\nprofile = \"demo\"\n{seal}\n{TIER}");
    let taken = |text: &str| load(&seal(text), &[]).unwrap().far_libraries().unwrap();
    assert_eq!(taken(""), (Vec::new(), 0));
    let (names, away) = taken("far_libraries = [\"oslo\"]");
    let has = Config::default().glass.effective_geometry().unwrap().set_redundancy_platters;
    assert_eq!((names.len(), away), (1, has - 1), "all but one");
    assert_eq!(taken("far_libraries = [\"oslo\"]\nfar_redundancy = 1").1, 1);
    let refused = |text: &str, why: &str| {
        let error = chain(&load(&seal(text), &[]).unwrap_err());
        assert!(error.contains(why), "{error}");
    };
    refused("far_libraries = [\"turin\"]", "\"turin\" is none of [tiers]");
    refused("far_libraries = [\"oslo\", \"oslo\"]", "named twice");
    refused("far_redundancy = 1", "no far library is named");
    refused("far_libraries = [\"oslo\"]\nfar_redundancy = 0", "0 is not between 1 and");
    refused("far_libraries = [\"oslo\"]\nfar_redundancy = 99", "99 is not between 1 and");
}

#[test]
fn values_need_their_units() {
    check_refused(
        "[restore]\nday = 30\n",
        &[],
        expect![[r#"
            configuration is wrong: TOML parse error at line 2, column 7
              |
            2 | day = 30
              |       ^^
            invalid type: integer `30`, expected a string"#]],
    );
    check_refused(
        "[storage]\nlog_capacity = \"12 MB\"\n",
        &[],
        expect![[r#"
            configuration is wrong: TOML parse error at line 2, column 16
              |
            2 | log_capacity = "12 MB"
              |                ^^^^^^^
            "12 MB" is not a byte count;
            write a whole number and a unit, like 64MiB"#]],
    );
}

#[test]
fn impossible_settings_are_refused_by_name() {
    check_refused(
        "[tiers.glass]\nkind = \"glass\"\nprofile = \"x\"\n",
        &[],
        expect![[r#"
            setting tiers.glass.profile: there is no geometry profile "x";
            use sliver, demo, desk or silica"#]],
    );
    let geometry = fulgurite_platter::Geometry::profile("demo").unwrap();
    let no_room = fulgurite_platter::Geometry { sector_payload_bytes: 384, ..geometry };
    let mut config = Config::default();
    config.glass.geometry = Some(no_room);
    let error = load(&config.show().unwrap(), &[]).unwrap_err().to_string();
    for words in ["setting tiers.glass.geometry: ", "sector_payload_bytes is 384 and has to be "] {
        assert!(error.contains(words), "{error}");
    }
    check_refused(
        "[storage]\nlog_capacity = \"1GiB\"\n\
         [tiers.glass]\nkind = \"glass\"\nmoves.bytes = \"2GiB\"\n",
        &[],
        expect![
            "setting tiers.glass.moves.bytes: 2GiB is not between 1B and storage.log_capacity, 1GiB"
        ],
    );
    check_refused(
        "[tiers.glass]\nkind = \"glass\"\nshard_size = \"0B\"\n",
        &[],
        expect!["setting tiers.glass.shard_size: a shard has at least one byte"],
    );
    check_refused(
        "[tiers.glass]\nkind = \"glass\"\nlibrary.time_scale = -1.0\n",
        &[],
        expect!["setting tiers.glass.library.time_scale: it is not a number from 0 up"],
    );
    check_refused(
        "[tiers.glass]\nkind = \"glass\"\nlibrary.shape.storage_racks = 1\n",
        &[],
        expect![[r#"
            setting tiers.glass.library.shape: 10 blast zones cannot keep
            the 19 platters of a set apart"#]],
    );
    check_refused(
        "tls = \"yes\"\n",
        &[],
        expect![[r#"
            configuration is wrong: TOML parse error at line 1, column 7
              |
            1 | tls = "yes"
              |       ^^^^^
            "yes" is not a TLS choice;
            write off, auto or CERT,KEY"#]],
    );
}

#[test]
fn environment_overrides_the_file_and_is_validated() {
    let config = load(
        "[tiers.glass]\nkind = \"glass\"\nmoves.age = \"1h\"\nmedium.seed = 5\n",
        &[
            ("FULGURITE_GLASS_MOVES_AGE", "30s"),
            ("FULGURITE_STORAGE_LOG_CAPACITY", "8GiB"),
            ("FULGURITE_GLASS_MEDIUM_SECTOR_FAILURE_RATE", "0.25"),
            ("FULGURITE_TLS", "c.pem,k.pem"),
            ("FULGURITE_NOT_A_SETTING", "1"),
            ("PATH", "/bin"),
        ],
    )
    .unwrap();
    assert_eq!(config.glass.moves.age, Duration::from_secs(30));
    assert_eq!(config.storage.log_capacity, ByteCount::gib(8));
    assert_eq!(config.glass.moves.bytes, Some(ByteCount::gib(2)), "a quarter of the logs");
    assert!((config.glass.medium.sector_failure_rate.get() - 0.25).abs() < 1e-12);
    assert_eq!(config.glass.medium.seed, 5);
    assert_eq!(config.glass.shard_size, ByteCount::new(4_000_000_000), "the default");
    let files = TlsChoice::Files { certificate: "c.pem".into(), key: "k.pem".into() };
    assert_eq!(config.tls, files);
    check_refused(
        "",
        &[("FULGURITE_GLASS_MOVES_AGE", "30")],
        expect![[r#"
            environment variable FULGURITE_GLASS_MOVES_AGE: "30" is not a duration;
            write a whole number and a unit, like 30s"#]],
    );
    check_refused(
        "",
        &[("FULGURITE_GLASS_MEDIUM_TRACK_FAILURE_RATE", "2")],
        expect![[r#"
            environment variable FULGURITE_GLASS_MEDIUM_TRACK_FAILURE_RATE: 2 is not a ratio;
            write a number from 0 to 1"#]],
    );
}

/// Every setting of the file outside of nested tables has its variable, as the manual says.
#[test]
fn every_setting_has_a_variable() {
    let mut config = Config { domain: Some("s3.example.org".to_owned()), ..Config::default() };
    config.keys.master_key = Some("master.key".into());
    config.keys.tables = vec!["table".into(), "copy".into()];
    config.glass.library.log = Some("library.log".into());
    config.restore.log = Some("restore.log".into());
    config.glass.moves.bytes = Some(ByteCount::mib(1));
    config.storage.free_min = Some(ByteCount::mib(1));
    config.storage.reserve = Some(ByteCount::mib(1));
    config.glass.medium.damage = Some("damage.toml".into());
    config.glass.medium.decode_queue = Some("nats://queue.example.org".parse().unwrap());
    config.glass.medium.model = Some("model.onnx".into());
    config.glass.medium.statistics = Some("nominal.soft".into());
    let mut shown: toml::Table = config.show().unwrap().parse().unwrap();
    let mut tables = vec![("FULGURITE_GLASS".to_owned(), shown["tiers"]["glass"].clone())];
    shown.remove("tiers");
    tables.push(("FULGURITE".to_owned(), shown.into()));
    let mut settings = Vec::new();
    while let Some((path, table)) = tables.pop() {
        for (name, value) in table.as_table().unwrap() {
            let variable = format!("{path}_{name}").to_uppercase();
            if !value.is_table() && name != "kind" {
                settings.push((variable, value.clone()));
            } else if value.is_table() && !["shape", "policy"].contains(&name.as_str()) {
                tables.push((variable, value.clone()));
            }
        }
    }
    assert_eq!(settings.len(), 35);
    for (name, value) in settings {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let environment = [(name.clone(), text), (name.clone(), "\u{7f}".to_owned())];
        // The second value is valid for plain text settings only, so an error shows that a setting
        // read it.
        let plain = [
            "FULGURITE_DOMAIN",
            "FULGURITE_GLASS_PROFILE",
            "FULGURITE_KEYS_MASTER_KEY",
            "FULGURITE_KEYS_TABLES",
            "FULGURITE_GLASS_LIBRARY_LOG",
            "FULGURITE_GLASS_MEDIUM_CHANNEL",
            "FULGURITE_GLASS_MEDIUM_DAMAGE",
            "FULGURITE_GLASS_MEDIUM_MODEL",
            "FULGURITE_GLASS_MEDIUM_STATISTICS",
            "FULGURITE_RESTORE_LOG",
        ];
        let take = if plain.contains(&name.as_str()) { 1 } else { 2 };
        let loaded = Config::load(None, environment.into_iter().take(take), Overrides::default());
        assert_eq!(loaded.is_err(), take == 2, "{name}");
    }
}

#[test]
fn flags_override_everything() {
    let overrides = Overrides {
        listen: Some("127.0.0.1:0".parse().unwrap()),
        tls: Some(TlsChoice::Auto),
        profile: Some("demo".to_owned()),
        tiers: Vec::new(),
    };
    let environment = [("FULGURITE_GLASS_PROFILE".to_owned(), "silica".to_owned())];
    let config = Config::load(None, environment.into_iter(), overrides).unwrap();
    assert_eq!((config.glass.profile.as_str(), config.tls.clone()), ("demo", TlsChoice::Auto));
    assert_eq!(config.glass.moves.bytes, Some(ByteCount::mib(256)), "a full set of 16 platters");
}

#[test]
fn shown_configuration_is_equivalent() {
    let geometry = fulgurite_platter::Geometry::profile("demo").unwrap();
    let mut custom = Config { domain: Some("s3.example.org".to_owned()), ..Config::default() };
    custom.glass.geometry =
        Some(fulgurite_platter::Geometry { profile: "mine".to_owned(), ..geometry });
    for config in [Config::default(), custom] {
        let shown = config.show().unwrap();
        assert_eq!(Config::parse(&shown, "shown").unwrap(), config, "{shown}");
        let loaded = load(&shown, &[]).unwrap();
        assert_eq!(load(&loaded.show().unwrap(), &[]).unwrap(), loaded);
    }
}

#[test]
fn a_missing_file_is_named() {
    let path = Path::new("/nowhere/fulgurite.toml");
    let error = Config::load(Some(path), std::iter::empty(), Overrides::default()).unwrap_err();
    expect![[r#"
        cannot read configuration "/nowhere/fulgurite.toml":
        No such file or directory (os error 2)"#]]
    .assert_eq(&fold(&chain(&error)));
}

#[test]
fn a_policy_is_a_name_or_a_table() {
    let text =
        "[tiers.glass]\nkind = \"glass\"\nlibrary = { policy = \"silica\", log = \"x.log\" }\n";
    let config = load(text, &[]).unwrap();
    assert_eq!(config.glass.library.policy, fulgurite_glass_core::control::Policy::silica());
    assert!(config.show().unwrap().contains("policy = \"silica\"\n"), "{config:?}");
    let named = load("", &[("FULGURITE_GLASS_LIBRARY_POLICY", "thrifty")]).unwrap();
    assert_eq!(named.glass.library.policy, fulgurite_glass_core::control::Policy::thrifty());
    let mut mixed = config;
    mixed.glass.library.policy.candidates = 3;
    let again = load(&mixed.show().unwrap(), &[]).unwrap();
    assert_eq!(again.glass.library.policy, mixed.glass.library.policy);
    check_names(
        "[tiers.glass]\nkind = \"glass\"\nlibrary.policy = \"best\"\n",
        "no policy \"best\"; use one of fulgurite, thrifty, silica, shortest-paths, no-shuttles",
    );
    check_refused(
        "[tiers.glass]\nkind = \"glass\"\nlibrary.policy = \"no-shuttles\"\n",
        &[],
        expect![[r#"
            setting tiers.glass.library.policy: without shuttles there is no library,
            only a bound to compare with"#]],
    );
    check_names(
        "[tiers.glass]\nkind = \"glass\"\nlibrary.policy = { movement = \"partitions\" }\n",
        "missing field `customer_slots`",
    );
}

const GEO: &str = "[tiers.geo]\nkind = \"geo\"\nmap = \"/etc/sites.toml\"\nnear = \"lisbon\"\n";

/// Returns the classes and their homes.
fn homes(text: &str) -> Vec<String> {
    let classes = load(text, &[]).unwrap().effective_classes().unwrap();
    classes.iter().map(|(class, home, _)| format!("{} {home}", class.name())).collect()
}

#[test]
fn class_on_sites_needs_a_map_of_sites() {
    let classes_config = |classes: &str| format!("{GEO}[classes]\n{classes}\n");
    let mut rows = homes(&classes_config("STANDARD = \"geo\"\nGLACIER_IR = \"geo\""));
    rows.retain(|row| row.ends_with(" geo"));
    assert_eq!(rows, ["STANDARD geo", "GLACIER_IR geo"]);
    let others = "STANDARD_IA = \"online\"\nONEZONE_IA = \"online\"\nINTELLIGENT_TIERING = \"geo\"";
    let mut rows = homes(&classes_config(others));
    rows.retain(|row| !row.contains("GLACIER"));
    let expected = [
        "STANDARD online",
        "DEEP_ARCHIVE glass",
        "STANDARD_IA online",
        "ONEZONE_IA online",
        "INTELLIGENT_TIERING geo",
    ];
    assert_eq!(rows, expected);
    // No class goes there by default.
    assert!(homes(GEO).iter().all(|row| !row.ends_with(" geo")));
    check_names("[classes]\nSTANDARD = \"geo\"\n", "STANDARD goes to \"geo\", which is none of");
}

#[track_caller]
fn check_names(text: &str, words: &str) {
    let error = chain(&load(text, &[]).expect_err("the configuration is refused"));
    assert!(error.contains(words), "{error}");
}

#[test]
fn classes_go_to_the_only_rack_and_the_only_tomes() {
    let rack = |name: &str| format!("[tiers.{name}]\nkind = \"rack\"\n");
    let tome = |name: &str| format!("[tiers.{name}]\nkind = \"tome\"\n");
    let one = rack("cold") + &tome("shelf");
    let rows = homes(&one);
    assert!(rows.contains(&"GLACIER cold".to_owned()), "{rows:?}");
    assert!(rows.contains(&"GLACIER_IR shelf".to_owned()), "{rows:?}");
    let two = one.clone() + &rack("colder");
    check_names(&two, "GLACIER could go to \"cold\" or to \"colder\"");
    check_names(&(one.clone() + &tome("other")), "GLACIER_IR could go to \"other\" or to");
    let rows = homes(&(two + "[classes]\nGLACIER = \"colder\"\n"));
    assert!(rows.contains(&"GLACIER colder".to_owned()), "{rows:?}");
    let config = load(&one, &[]).unwrap();
    assert_eq!(load(&config.show().unwrap(), &[]).unwrap(), config, "shown as an equivalent file");
}

/// Two spellings of one location are one, and so is one inside another.
#[test]
fn tiers_in_one_location_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().canonicalize().unwrap().join(name).display().to_string();
    std::fs::create_dir(path("real")).unwrap();
    std::os::unix::fs::symlink(path("real"), path("link")).unwrap();
    let tiers = |first: &str, second: &str| {
        format!("[classes]\nGLACIER = \"a\"\n[tiers.a]\n{first}\n[tiers.b]\n{second}\n")
    };
    let rack = |at: &str| format!("kind = \"rack\"\ndirectory = \"{at}\"");
    let objects = |url: &str| format!("kind = \"objects\"\nurl = \"{url}\"");
    let tome = |at: &str, more: &str| format!("kind = \"tome\"\ndirectory = \"{at}\"\n{more}");
    let (real, link) = (path("real"), path("link"));
    let is_used = "is in use by tier \"a\"";
    check_names(&tiers(&rack(&real), &rack(&link)), is_used);
    check_names(&tiers(&rack(&path("real/x")), &rack(&path("link/y/../x"))), is_used);
    check_names(&tiers(&objects("s3://b/p"), &objects("S3://b/p/")), is_used);
    check_names(
        &tiers(&objects(&format!("file://{real}")), &objects(&format!("FILE://{link}"))),
        is_used,
    );
    let in_a = |outer: &str, inner: &str| {
        let (both, text) = (tiers(outer, inner), "lies in");
        check_names(&both, text);
        check_names(&both, "which tier \"a\" has");
    };
    in_a(&objects("s3://b/p"), &objects("s3://b/p/q"));
    in_a(&rack(&path("r")), &tome(&path("r/disks/0/b"), "disks = \"/d/{tome}\""));
    in_a(&objects(&format!("file://{}", path("vault"))), &rack(&path("vault/rack")));
    let linux = |number: &str| {
        let disks = format!("disks = \"/{number}/{{{number}}}\"");
        format!("backend = \"linux\"\n{disks}\ndevice = \"/dev/disk/x-{{{number}}}\"")
    };
    let first = format!("{}\n{}", rack("/r"), linux("place"));
    let both = tiers(&first, &tome("/t", &linux("tome")));
    check_names(&both, "setting tiers.b.device: \"/dev/disk/x-0\" is in use");
    for url in ["s3://user:secret@host/b", "az://container/x?sig=secret"] {
        let error = load(&format!("[tiers.a]\n{}\n", objects(url)), &[]).unwrap_err();
        let error = chain(&error);
        assert!(error.contains("setting tiers.a.url") && !error.contains("secret"), "{error}");
    }
    load(&tiers(&objects("s3://b/p"), &objects("s3://b/pq")), &[]).unwrap();
    load(&tiers(&rack("/r"), &tome("/r2", "")), &[]).unwrap();
}

/// The archive's own files are not mixed with those of a tier.
#[test]
fn tiers_among_the_files_of_the_archive_are_refused() {
    let check = |directory: &str| {
        let text = format!("[tiers.a]\nkind = \"rack\"\ndirectory = \"{directory}\"\n");
        load(&text, &[]).unwrap().check_tiers(Path::new("/archive/data"))
    };
    for directory in ["/archive/data", "/archive", "/archive/data/keys", "/archive/data/tiers"] {
        let error = chain(&check(directory).unwrap_err());
        assert!(error.contains("setting tiers.a.directory: "), "{error}");
    }
    for directory in ["/archive/data/tiers/b", "/archive/other", "/archive/data2"] {
        check(directory).unwrap();
    }
}

#[test]
fn racks_are_read_after_a_restore_only() {
    let classes = |rows: &str| format!("[classes]\n{rows}\n[tiers.cold]\nkind = \"rack\"\n");
    check_names(&classes("STANDARD = \"cold\""), "are spun down");
    let at_once = "GLACIER = { tier = \"cold\", access = \"at-once\" }";
    check_names(&classes(at_once), "class GLACIER cannot have this access");
    load(&classes("STANDARD = { tier = \"cold\", access = \"after-restore\" }"), &[]).unwrap();
}

#[test]
fn invalid_tiers_are_refused_by_name() {
    check_names("[tiers.cold]\nurl = \"file:///x\"\n", "a tier has a kind");
    check_names(
        "[tiers.cold]\nkind = \"tape\"\n",
        "\"tape\" is none of glass, rack, tome, geo, objects",
    );
    check_names("[tiers.cold]\nkind = \"rack\"\nidle = \"soon\"\n", "in `idle`");
    check_names("[tiers.cold]\nkind = \"rack\"\nshape = \"barn\"\n", "setting tiers.cold.shape");
    check_names("[tiers.glass]\nkind = \"rack\"\n", "setting tiers.glass.kind: ");
    check_names("[tiers.vault]\nkind = \"glass\"\n", "write [tiers.glass]");
    check_names("[tiers.glass]\nkind = \"glass\"\nseal = \"1h\"\n", "`seal`");
    for name in ["online", "Cold"] {
        let text = format!("[tiers.{name}]\nkind = \"objects\"\nurl = \"file:///x\"\n");
        check_names(&text, "is not a valid name of a tier");
    }
    let tiers = |first: &str, second: &str| format!("[tiers.a]\n{first}\n[tiers.b]\n{second}\n");
    let objects = "kind = \"objects\"\nurl = \"file:///x\"";
    check_names(&tiers(objects, objects), "setting tiers.b.url: \"/x\" is in use by tier \"a\"");
    let rack = "kind = \"rack\"\ndirectory = \"/x\"";
    let tome = "kind = \"tome\"\ndirectory = \"/x\"";
    check_names(&tiers(rack, tome), "setting tiers.b.directory: \"/x\" is in use by tier \"a\"");
    let disks = |directory: &str| {
        format!("kind = \"tome\"\ndirectory = \"{directory}\"\ndisks = \"/disks/{{tome}}\"")
    };
    let classes = "[classes]\nGLACIER_IR = \"a\"\n";
    let both = tiers(&disks("/x"), &disks("/y"));
    check_names(&format!("{classes}{both}"), "setting tiers.b.disks: \"/disks/0\" is in use");
    let geo = "kind = \"geo\"\nmap = \"/m\"\nshared = [\"films\"]\nshared_key = \"key\"";
    check_names(&tiers(geo, geo), "setting tiers.b.folder");
    let other = format!("{geo}\nfolder = \"other\"");
    check_names(&tiers(geo, &other), "setting tiers.b.shared: buckets are shared at tier \"a\"");
}

/// Two files that are maps of one namespace do not make it two tiers.
#[test]
fn folder_of_a_namespace_belongs_to_one_tier() {
    let folder = tempfile::tempdir().unwrap();
    let site = |name: &str| {
        let address = format!("dir:///srv/{name}");
        format!("[[sites]]\nname = \"{name}\"\ntable = \"{address}/t\"\nblobs = \"{address}/b\"\n")
    };
    let map = |file: &str, namespace: &str, epoch: u32| {
        let path = folder.path().join(file);
        let head = format!("name = \"{namespace}\"\nepoch = {epoch}\ndata = 2\nparity = 1\n");
        let text = head + &["oslo", "rome", "bern"].map(site).concat();
        fulgurite_geo::objects::SiteMap::parse(&text).unwrap();
        std::fs::write(&path, text).unwrap();
        format!("kind = \"geo\"\nmap = \"{}\"", path.display())
    };
    let (one, same) = (map("one.toml", "world", 0), map("same.toml", "world", 1));
    let tiers = |a: &str, b: &str| format!("[tiers.a]\n{a}\n[tiers.b]\n{b}\n");
    let error = chain(&load(&tiers(&one, &same), &[]).unwrap_err());
    assert!(error.contains("setting tiers.b.folder: "), "{error}");
    assert!(error.contains("world") && error.contains("in use by tier \"a\""), "{error}");
    load(&tiers(&one, &format!("{same}\nfolder = \"other\"")), &[]).unwrap();
    load(&tiers(&one, &map("other.toml", "other", 0)), &[]).unwrap();
}

#[test]
fn flags_add_tiers_and_replace_none() {
    let with = |flags: &[&str]| {
        let tiers = flags.iter().map(|flag| flag.parse::<TierFlag>().unwrap()).collect();
        let overrides = Overrides { tiers, ..Overrides::default() };
        Config::load(None, std::iter::empty(), overrides)
    };
    let flags = ["cold=rack:laptop", "shelf=tome:8", "sites=geo:/m", "far=objects:file:///x"];
    let config = with(&flags).unwrap();
    let kinds: Vec<_> = config.tiers.values().map(Tier::kind).collect();
    assert_eq!(kinds, [TierKind::Rack, TierKind::Objects, TierKind::Tome, TierKind::Geo]);
    let error = chain(&with(&["cold=rack:laptop", "cold=rack:shelf"]).unwrap_err());
    assert!(error.contains("gives \"cold\" twice"), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("fulgurite.toml");
    std::fs::write(&file, "[tiers.cold]\nkind = \"rack\"\nshape = \"laptop\"\n").unwrap();
    let over_file = |flag: &str| {
        let overrides = Overrides { tiers: vec![flag.parse().unwrap()], ..Overrides::default() };
        Config::load(Some(&file), std::iter::empty(), overrides)
    };
    for flag in ["cold=objects:file:///x", "cold=rack:shelf"] {
        let error = chain(&over_file(flag).unwrap_err());
        assert!(
            error.contains("--tier gives \"cold\" other settings than [tiers.cold]"),
            "{error}"
        );
    }
    assert_eq!(over_file("warm=tome:8").unwrap().tiers.len(), 2);
    let shown = over_file("warm=tome:8").unwrap().show().unwrap();
    std::fs::write(&file, shown).unwrap();
    assert_eq!(over_file("warm=tome:8").unwrap().tiers.len(), 2, "the same settings");
    for wrong in ["cold", "cold=rack", "cold=tape:1", "cold=tome:many", "glass=rack:laptop"] {
        assert!(wrong.parse::<TierFlag>().is_err(), "{wrong}");
    }
}

#[test]
fn tables_of_kinds_are_refused_with_the_form_to_write() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fulgurite.toml");
    for (table, kind) in [("rack", "rack"), ("tomes", "tome"), ("geo", "geo")] {
        std::fs::write(&path, format!("[{table}]\n")).unwrap();
        let error = chain(&Config::read(&path).unwrap_err());
        let expected = format!("[tiers.NAME] with kind = \"{kind}\" in place of [{table}]");
        assert!(error.contains(&expected), "{error}");
    }
    for (text, place) in [
        ("profile = \"demo\"\n", "profile = ... below [tiers.glass]"),
        ("[seal]\nage = \"1h\"\n", "[tiers.glass.moves]"),
        ("[medium]\nseed = 1\n", "[tiers.glass.medium]"),
        ("[library.shape]\npanels = 1\n", "[tiers.glass.library]"),
        ("[geometry]\n", "[tiers.glass.geometry]"),
    ] {
        std::fs::write(&path, text).unwrap();
        let error = chain(&Config::read(&path).unwrap_err());
        assert!(error.contains(place), "{error}");
    }
}

#[test]
fn invalid_site_settings_are_refused() {
    check_names("[tiers.geo]\nkind = \"geo\"\n", "setting tiers.geo.map: name the file");
    let check = |settings: &str, words: &str| check_names(&format!("{GEO}{settings}\n"), words);
    check("folder = \"a//b\"", "setting tiers.geo.folder: ");
    check("heal_every = \"0s\"", "setting tiers.geo.heal_every: ");
    check("heal_every = \"2h\"", "setting tiers.geo.collect_every: ");
    check("cache = \"\"", "setting tiers.geo.cache: name a folder");
    check("cache_size = \"1MiB\"", "setting tiers.geo.cache_size: ");
    check("folder = \"shared/x\"", "setting tiers.geo.folder: \"shared\"");
    check("shared = [\"films\"]", "setting tiers.geo.shared_key: ");
    check("shared_key = \"key\"", "setting tiers.geo.shared_key: ");
    check("shared = [\"A\"]", "bucket name \"A\" is not valid");
    let many: Vec<String> = (100..201).map(|number| format!("\"b{number}\"")).collect();
    let many = format!("shared_key = \"key\"\nshared = [{}]", many.join(", "));
    check(&many, "setting tiers.geo.shared: at most 100 buckets");
    check("nearest = \"x\"", "unknown field `nearest`");
}
