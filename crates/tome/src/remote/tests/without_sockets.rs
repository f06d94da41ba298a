//! Tests without sockets: the file, the messages, errors and names.

use std::path::Path;

use expect_test::{Expect, expect};
use fulgurite_rpc::prost::Message as _;
use fulgurite_tome_core::{TomeError, TomeId};
use fulgurite_units::ErrorKind;

use crate::TomesError;
use crate::limits::NAME_BYTES_MAX;
use crate::remote::failure::{error, status};
use crate::remote::limits::PAGE_MAX;
use crate::remote::session::add_page;
use crate::remote::wire::Listed;
use crate::remote::{TomeAddress, TomesFile};

const HEAD: &str = r#"set = "07070707-0707-4707-8707-070707070707"
[tls]
ca = "ca.pem"
certificate = "/etc/own.pem"
key = "own.key"
[tomes]
"#;

#[test]
fn tomes_file_lists_each_tome_address() {
    let text = format!(
        "{HEAD}0 = {{ root = \"disk-0\" }}\n1 = {{ address = \"10.0.0.1:7443\" }}\n\
         10 = {{ address = \"tome.example:7443\" }}\n"
    );
    let all = (2..10).map(|tome| format!("{tome} = {{ root = \"/srv/{tome}\" }}\n"));
    let file = TomesFile::parse(&(text + &all.collect::<String>()), Path::new("/etc/f")).unwrap();
    assert_eq!(file.set.to_string(), "07070707-0707-4707-8707-070707070707");
    assert_eq!(file.tls.ca, Path::new("/etc/f/ca.pem"));
    assert_eq!(file.tls.certificate, Path::new("/etc/own.pem"));
    assert_eq!(file.tomes.len(), 11);
    assert_eq!(file.tomes[&TomeId::new(0)], TomeAddress::Here("/etc/f/disk-0".into()));
    assert_eq!(file.roots().len(), 9);
    let addresses: Vec<_> = file.addresses().into_values().collect();
    assert_eq!(addresses, ["10.0.0.1:7443", "tome.example:7443"]);
}

#[test]
fn invalid_tomes_file_is_rejected_with_a_reason() {
    let check = |tomes: &str, expected: Expect| {
        let text = format!("{HEAD}{tomes}");
        expected.assert_eq(&TomesFile::parse(&text, Path::new("")).unwrap_err());
    };
    check("", expect!["there are 0 tomes: 1 to 1024 are allowed"]);
    check(
        "0 = { address = \"a:1\" }\n2 = { address = \"a:2\" }",
        expect!["tome 1 is missing: tomes are numbered from zero without gaps"],
    );
    check(
        "0 = { address = \"a:1\" }\n1 = { address = \"a:1\" }",
        expect![[r#"tome 1: another tome is at "a:1" too"#]],
    );
    check("00 = { address = \"a:1\" }", expect![[r#""00" is not the number of a tome"#]]);
    check("0 = { address = \"a\" }", expect![[r#"tome 0: "a" is not a host with a port"#]]);
    check("0 = {}", expect!["tome 0 has neither an address nor a root"]);
    check(
        "0 = { address = \"a:1\", root = \"b\" }",
        expect!["tome 0 has both an address and a root: give one of them"],
    );
    check(
        "0 = { address = \"a:1\" }\n0 = { address = \"a:2\" }",
        expect![[r#"
            TOML parse error at line 8, column 1
              |
            8 | 0 = { address = "a:2" }
              | ^
            duplicate key
        "#]],
    );
    check(
        "0 = { adress = \"a:1\" }",
        expect![[r#"
            TOML parse error at line 7, column 7
              |
            7 | 0 = { adress = "a:1" }
              |       ^^^^^^
            unknown field `adress`, expected `address` or `root`
        "#]],
    );
    let no_set = TomesFile::parse(&HEAD.replace("0707", "x"), Path::new("")).unwrap_err();
    expect![[r#"set = "xx-x-4707-8707-xxx" is not an id"#]].assert_eq(&no_set);
    let none = TomesFile::read(Path::new("/nowhere/tomes.toml")).unwrap_err();
    assert_eq!(none.kind(), ErrorKind::NotFound);
}

#[test]
fn errors_round_trip_over_the_wire() {
    let tome = TomeId::new(4);
    let same = [
        TomesError::from(TomeError::NoObject { name: "a".to_owned() }),
        TomeError::ObjectExists { name: "b".to_owned() }.into(),
        TomesError::GivenUp { tome, why: "it is on fire".to_owned() },
        TomesError::Away { tome, why: "the cable is unplugged".to_owned() },
        TomesError::Unanswered { tome, why: "it is too slow".to_owned() },
        TomesError::Busy { tome },
        TomeError::Backlog { what: "objects" }.into(),
        TomeError::Full { what: "objects" }.into(),
    ];
    for expected in same {
        let found = error(tome, &status(&expected));
        assert_eq!(format!("{found:?}"), format!("{expected:?}"));
    }
    let others = [
        TomeError::SegmentLost { bad: 3, parity: 2 }.into(),
        TomesError::Invalid { what: "no".to_owned() },
    ];
    for expected in others {
        let found = error(tome, &status(&expected));
        assert_eq!(found.kind(), expected.kind());
        assert!(found.to_string().ends_with(&expected.to_string()), "{found}");
    }
    // A set acts on these: it waits, or tries another tome.
    let backlog = error(tome, &status(&TomeError::Backlog { what: "rewritten blocks" }.into()));
    assert!(backlog.is_backlog() && !backlog.is_region_full(), "{backlog}");
    let full = error(tome, &status(&TomeError::Full { what: "versions of a region" }.into()));
    assert!(!full.is_backlog() && !full.is_region_full(), "{full}");
    // Without an answer of a tome the outcome is unknown.
    let unknown = error(tome, &tonic::Status::unavailable("the connection broke"));
    assert!(matches!(unknown, TomesError::Unanswered { .. }));
    assert!(matches!(error(tome, &status(&TomesError::Stopped)), TomesError::Unanswered { .. }));
}

#[test]
fn page_of_names_is_in_order_and_bounded() {
    let object = fulgurite_tome_core::metadata::Object {
        bytes: 1,
        digest: fulgurite_codes::sector_checksum(b""),
        blocks: Vec::new(),
    };
    let placed = crate::ObjectLocation { object, signatures: Vec::new() };
    let placed = crate::remote::encoding::encode("an object location", &placed).unwrap();
    let add = |names: &[String]| {
        let listed =
            |name: &String| Listed { name: name.clone(), blocks: 0, placed: placed.clone() };
        let mut objects = Vec::new();
        add_page(&mut objects, vec![listed(&"b".to_owned())]).unwrap();
        add_page(&mut objects, names.iter().map(listed).collect())
    };
    let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert!(add(&names(&["c", "d"])).is_ok());
    assert!(add(&names(&["c", "c"])).is_err());
    assert!(add(&names(&["c", "e", "d"])).is_err());
    assert!(add(&names(&["b"])).is_err(), "the last name of the page before");
    assert!(add(&["c".repeat(NAME_BYTES_MAX)]).is_ok());
    assert!(add(&["c".repeat(NAME_BYTES_MAX + 1)]).is_err());
    let many = |count: usize| (0..count).map(|number| format!("c{number:04}")).collect::<Vec<_>>();
    assert!(add(&many(PAGE_MAX)).is_ok());
    assert!(add(&many(PAGE_MAX + 1)).is_err());
    let damaged = Listed { name: "a".to_owned(), ..Listed::default() };
    assert!(add_page(&mut Vec::new(), vec![damaged]).is_err(), "it has no location");
}

#[test]
fn message_format_v1_is_stable() {
    use fulgurite_tome_core::message::Message;
    use fulgurite_tome_core::{GroupId, Member, Version};
    let (set, from, to) =
        (fulgurite_units::TomeSetId::from_bytes([7; 16]), TomeId::new(3), TomeId::new(4));
    let (group, member) = (GroupId::new(5), Member::new(1));
    let query =
        Message::Query { group, member, version: Version::new(300), floor: Version::new(9) };
    let message = crate::remote::peer_network::encode_message(set, from, to, &query).unwrap();
    let text: String = message.encode_to_vec().iter().map(|byte| format!("{byte:02x}")).collect();
    expect!["0a100707070707070707070707070707070710031804220701010501ac0209"].assert_eq(&text);
    assert_eq!(crate::remote::encoding::message(&message.body).unwrap(), query);
}
