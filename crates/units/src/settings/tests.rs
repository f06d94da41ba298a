//! Compares the deserializer with toml's own: the same values, and the same errors to the byte.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use toml::Table;

use super::{Spanned, Value, from_table, from_toml, from_value};
use crate::{ByteCount, Duration, Ratio};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Settings {
    name: String,
    count: u32,
    signed: i8,
    big: u64,
    share: f64,
    on: bool,
    letter: char,
    maybe: Option<u16>,
    list: Vec<u32>,
    pair: (u8, String),
    bounds: [f64; 2],
    part: Part,
    parts: Vec<Part>,
    kind: Kind,
    choice: Choice,
    choices: Vec<Choice>,
    named: BTreeMap<String, Part>,
    numbered: BTreeMap<u32, String>,
    kinds: BTreeMap<Kind, bool>,
    size: ByteCount,
    time: Duration,
    ratio: Ratio,
    even: Even,
    evens: Vec<Option<Even>>,
    wrapped: Wrapped,
    either: Either,
    tagged: Option<Tagged>,
    rest: Table,
    boxed: Option<Box<Part>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    id: u32,
    #[serde(default)]
    label: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    #[default]
    FirstKind,
    Second,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Choice {
    #[default]
    Nothing,
    One(u32),
    Two(u32, String),
    Named {
        id: u32,
        #[serde(default)]
        share: f64,
    },
    Whole(Part),
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
struct Even(u32);

impl TryFrom<u32> for Even {
    type Error = String;

    fn try_from(number: u32) -> Result<Self, String> {
        if number.is_multiple_of(2) { Ok(Self(number)) } else { Err(format!("{number} is odd")) }
    }
}

impl From<Even> for u32 {
    fn from(even: Even) -> Self {
        even.0
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Wrapped(i64);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Either {
    Number(u32),
    Part(Part),
    Text(String),
}

impl Default for Either {
    fn default() -> Self {
        Self::Number(0)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
enum Tagged {
    Plain {
        id: u32,
    },
    Flat {
        #[serde(flatten)]
        part: Flat,
        end: bool,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Flat {
    id: u32,
    #[serde(flatten)]
    others: BTreeMap<String, f64>,
}

/// What this module refuses and toml accepts: an array for a struct and a tuple that is too long.
const STRICTER: [&str; 2] =
    ["invalid type: sequence, expected struct ", "expected fewer elements in array"];

/// Asserts that toml reads the same value or reports the same error, except where this module is
/// stricter.
fn same<T: DeserializeOwned + std::fmt::Debug + PartialEq>(text: &str) -> Result<T, String> {
    let actual = from_toml::<T>(text);
    if let Err(error) = &actual
        && STRICTER.iter().any(|stricter| error.message().contains(stricter))
    {
        return Err(error.to_string());
    }
    match (&actual, toml::from_str::<T>(text)) {
        (Ok(actual), Ok(expected)) => {
            assert_eq!(format!("{actual:?}"), format!("{expected:?}"), "{text}")
        }
        (Err(actual), Err(expected)) => {
            assert_eq!(actual.to_string(), expected.to_string(), "{text}");
            assert_eq!(actual.message(), expected.message(), "{text}");
            assert_eq!(actual.span(), expected.span(), "{text}");
        }
        (actual, expected) => panic!("{text}\nours: {actual:?}\ntheirs: {expected:?}"),
    }
    actual.map_err(|error| error.to_string())
}

const WRONG: &[&str] = &[
    // Not TOML.
    "name",
    "name =",
    "= 5",
    "name = \"open",
    "name = 'a'\nname = 'b'",
    "[part\nid = 1",
    "[part]\nid = 1\n[part]\nid = 2",
    "name = \"\\q\"",
    "count = 1__0",
    "count = 99999999999999999999999999999999999999999999999",
    "share = 1e999",
    "list = [1, 2",
    "part = { id = 1",
    "name = \"\u{e4}\" \u{20ac}",
    "\u{7}",
    "name = \"a\"\r\ncount =\r\n",
    "count = 5 # \u{1}",
    "a.b = 1\na = 2",
    // Unknown and missing fields.
    "unknown = 1",
    "count = 1\n\n# a comment\nunknwon = 2\nname = \"x\"",
    "[part]\nid = 1\nother = 2",
    "[part]\nlabel = \"x\"",
    "part = {}",
    "part = { label = \"x\", id = 1, more = true }",
    "[[parts]]\nid = 1\n[[parts]]\n[[parts]]\nid = 3",
    "[[parts]]\nid = 1\n[[parts]]\nid = 2\nextra = [\n  1,\n  2,\n]",
    "[named.a]\nid = 1\n[named.b]\nid = \"x\"",
    "[named]\na = 5",
    "boxed = { id = -1 }",
    // Types.
    "name = 5",
    "name = true",
    "name = 1979-05-27",
    "name = [\"x\"]",
    "name = { a = 1 }",
    "count = \"5\"",
    "count = -1",
    "count = 5.0",
    "count = 4294967296",
    "count = 0xfffffffff",
    "count = 9223372036854775808",
    "count = 18446744073709551616",
    "count = 170141183460469231731687303715884105728",
    "signed = 200",
    "big = -1",
    "share = \"half\"",
    "share = true",
    "on = 1",
    "letter = \"ab\"",
    "letter = 5",
    "maybe = \"x\"",
    "maybe = 70000",
    "list = 5",
    "list = { a = 1 }",
    "list = [1, \"two\", 3]",
    "list = [\n  1,\n  \"two\",\n]",
    "list = [1, [2], 3]",
    "pair = [1]",
    "pair = [1, 2]",
    "pair = 5",
    "bounds = [1.0]",
    "bounds = [1.0, \"x\"]",
    "part = 5",
    "part = \"x\"",
    "part = 1979-05-27T07:32:00Z",
    "parts = [1]",
    "parts = { id = 1 }",
    "named = 5",
    "named = [1]",
    // Enums.
    "kind = \"third\"",
    "kind = 5",
    "kind = []",
    "kind = {}",
    "kind = { second = 1 }",
    "kind = { second = {a = 1} }",
    "kind = { second = [1] }",
    "kind = { first-kind = {}, second = {} }",
    "kind = { third = {} }",
    "choice = \"one\"",
    "choice = \"two\"",
    "choice = \"named\"",
    "choice = \"none\"",
    "choice = { none = 1 }",
    "choice = { one = \"x\" }",
    "choice = { one = 1, two = [1, \"a\"] }",
    "choice = { two = [1] }",
    "choice = { two = [1, 2] }",
    "choice = { two = 5 }",
    "choice = { two = { 0 = 1, 2 = \"x\" } }",
    "choice = { two = { 0 = 1 } }",
    "choice = { named = 5 }",
    "choice = { named = {} }",
    "choice = { named = { id = 1, shre = 2.0 } }",
    "choice = { named = { a = 0, id = 1, z = 2.0 } }",
    "choice = { named = { id = \"x\" } }",
    "choice = { whole = { id = 1, no = 2 } }",
    "[choice.whole]\nid = 1\nlabel = 5",
    "choices = [\"nothing\", \"everything\"]",
    "[[choices]]\none = 5\n[[choices]]\none = []",
    "either = true",
    "either = { id = \"x\" }",
    "either = [true]",
    "tagged = 5",
    "tagged = {}",
    "tagged = { what = \"other\" }",
    "tagged = { what = \"plain\" }",
    "tagged = { what = \"plain\", id = \"x\" }",
    "[tagged]\nwhat = \"flat\"\nid = 5\nx = \"y\"\nend = true",
    "[tagged]\nwhat = \"flat\"\nid = 5\nx = 1.0",
    // Types built from other types.
    "size = \"5 parsecs\"",
    "size = 1.5",
    "time = \"soon\"",
    "time = -5",
    "ratio = 1.5",
    "even = 3",
    "evens = [2, 3]",
    "evens = [2, \"x\"]",
    "wrapped = \"x\"",
    // Keys.
    "[numbered]\n5 = \"x\"\nsix = \"y\"",
    "[numbered]\n-5 = \"x\"",
    "[numbered]\n4294967296 = \"x\"",
    "[kinds]\nthird = true",
    "[kinds]\nsecond = 5",
    // Locations.
    "name = \"\u{e4}\u{f6}\u{fc}\"\ncount = \"\u{e4}\" # \u{20ac}",
    "\"\u{e4}\u{20ac}\u{1f600}\" = 5",
    "name = \"\u{1f600}\"\npart = { label = \"\u{1f600}\u{e4}\", id = \"\u{1f600}\" }",
    "name = \"a\"\r\ncount = \"x\"\r\n",
    "\r\n\r\ncount = \"x\"",
    "list = [\r\n  1,\r\n  \"two\"]\r\n",
    "part = '''\nlines\nlines\n'''",
    "count = \"\"\"\n  x\n  y\"\"\"\n",
    "\n\n\n\n\n\n\n\n\n\n\ncount = 'eleven'",
    "\tcount\t=\t'x'",
    "count = 'x'",
    "rest = 5",
];

#[test]
fn errors_equal_those_of_toml() {
    for text in WRONG {
        assert!(same::<Settings>(text).is_err(), "{text} is not wrong");
    }
}

#[test]
fn errors_at_the_root_equal_those_of_toml() {
    for text in ["", "\n", "# nothing", "\r\n", "id = 1", "\u{20ac}", "other = 1\nid = 2\n"] {
        let _ = same::<Part>(text);
        let _ = same::<Flat>(text);
        let _ = same::<Kind>(text);
        let _ = same::<Choice>(text);
        let _ = same::<Option<Part>>(text);
        let _ = same::<BTreeMap<String, u32>>(text);
        let _ = same::<Vec<u32>>(text);
        let _ = same::<String>(text);
        let _ = same::<Tagged>(text);
        let _ = same::<Either>(text);
        let _ = same::<Even>(text);
    }
    assert_eq!(same::<Choice>("one = 5"), Ok(Choice::One(5)));
    assert!(same::<Choice>("one = 'x'").is_err());
}

#[test]
fn error_shows_its_line() {
    let error = same::<Settings>("name = \"x\"\n[part]\nid = \"six\" # panels\n").unwrap_err();
    expect_test::expect![[r#"
        TOML parse error at line 3, column 6
          |
        3 | id = "six" # panels
          |      ^^^^^
        invalid type: string "six", expected u32
    "#]]
    .assert_eq(&error);
}

const RIGHT: &[&str] = &[
    "",
    "# nothing but a comment",
    "count = 0x1f\nsigned = -5\nbig = 18446744073709551615\nshare = 5\non = true\n\
     letter = '\u{20ac}'",
    "count = +1_000\nshare = -0.0",
    "share = inf",
    "share = -inf",
    "share = +nan",
    "maybe = 5\nlist = [1, 2, 3]\npair = [1, 'x']\nbounds = [1, 2.5]",
    "part.id = 5\npart.label = \"x\"",
    "parts = [{ id = 1 }, { id = 2, label = 'b' }]",
    "[[parts]]\nid = 1\n[[parts]]\nid = 2\n[named.x]\nid = 3\n[boxed]\nid = 4",
    "kind = 'second'",
    "kind = { second = {} }",
    "kind = { second = [] }",
    "choice = 'nothing'",
    "choice = { one = 5 }",
    "choice = { two = [5, 'x'] }",
    "choice = { two = { 0 = 5, 1 = 'x' } }",
    "choice.named.id = 5",
    "[choice.whole]\nid = 5",
    "choices = ['nothing', { one = 1 }, { named = { id = 1, share = 5 } }]",
    "[numbered]\n5 = 'x'\n6 = 'y'",
    "[kinds]\nsecond = true\nfirst-kind = false",
    "size = '4MiB'\ntime = '30s'\nratio = 0.5\neven = 2\nevens = [2, 4]\nwrapped = 5",
    "ratio = 1",
    "either = 5",
    "either = 'x'",
    "either = { id = 5 }",
    "tagged = { what = 'plain', id = 5 }",
    "[tagged]\nwhat = 'flat'\nid = 5\nend = false\nx = 1.5\ny = 2.5",
    "[rest]\na = 1979-05-27T07:32:00Z\nb = 07:32:00\nc = [1, 'x', { d = 1.5 }]\nf = -1",
];

#[test]
fn values_equal_those_of_toml() {
    for text in RIGHT {
        assert!(same::<Settings>(text).is_ok(), "{text} is wrong");
    }
}

#[test]
fn table_deserializes_like_its_text() {
    for text in RIGHT {
        // Toml's tables have no integers beyond i64.
        let Ok(table) = toml::from_str(text) else { continue };
        let (of_text, of_table) = (from_toml::<Settings>(text), from_table::<Settings>(&table));
        let shown = [of_text, of_table].map(|settings| format!("{:?}", settings.unwrap()));
        assert_eq!(shown[0], shown[1], "{text}");
    }
}

#[test]
fn table_errors_name_the_field_like_toml() {
    for text in WRONG {
        let Ok(table) = toml::from_str::<Table>(text) else { continue };
        let expected = Settings::deserialize(table.clone()).map_err(|error| error.to_string());
        let actual = from_table::<Settings>(&table).map_err(|error| error.to_string());
        // From tables, toml reads no numbers as keys, accepts dates as text and words the error for
        // an enum of another type differently.
        let other = "invalid type: unit variant, expected string only";
        let expected = expected.map_err(|error| error.replace(other, "wanted string or table"));
        if !text.contains("1979") && !text.contains("[numbered]") {
            assert_eq!(actual, expected, "{text}");
        }
    }
    let table: Table = toml::from_str("[named.b]\nid = 'x'").unwrap();
    let error = from_table::<Settings>(&table).unwrap_err().to_string();
    assert_eq!(error, "invalid type: string \"x\", expected u32\nin `named.b.id`\n");
}

#[test]
fn array_for_struct_and_too_long_tuple_are_errors() {
    let message = |text| from_toml::<Settings>(text).unwrap_err().message().to_owned();
    assert_eq!(message("part = [1, 'x']"), "invalid type: sequence, expected struct Part");
    let length = "invalid length 3, expected fewer elements in array";
    assert_eq!(message("bounds = [1, 2, 3]"), length);
    assert_eq!(message("pair = [1, 'x', 3]"), length);
}

#[test]
fn spanned_value_has_its_byte_range_and_needs_text() {
    #[derive(Debug, Deserialize)]
    struct WithSettings {
        parts: Vec<Spanned<Part>>,
        name: Spanned<String>,
        #[serde(default)]
        kind: Option<Spanned<Kind>>,
    }
    #[derive(Debug, Deserialize)]
    struct WithToml {
        parts: Vec<toml::Spanned<Part>>,
        name: toml::Spanned<String>,
        #[serde(default)]
        kind: Option<toml::Spanned<Kind>>,
    }
    let text = "name = '\u{e4}'\r\nkind = 'second'\n[[parts]]\nid = 1\n[[parts]]\nid = 2 # \n";
    let (actual, expected) =
        (from_toml::<WithSettings>(text).unwrap(), toml::from_str::<WithToml>(text).unwrap());
    assert_eq!(actual.name.span(), expected.name.span());
    assert_eq!(actual.name.get_ref(), expected.name.get_ref());
    let spans: Vec<_> = actual.parts.iter().map(Spanned::span).collect();
    let expected_spans: Vec<_> = expected.parts.iter().map(toml::Spanned::span).collect();
    assert_eq!(spans, expected_spans);
    assert_eq!(actual.kind.unwrap().span(), expected.kind.unwrap().span());
    for text in ["name = 5\nparts = []", "name = 'x'\n[[parts]]\nid = 1\n[[parts]]\nid = 'x'", ""] {
        let (actual, expected) =
            (from_toml::<WithSettings>(text), toml::from_str::<WithToml>(text));
        assert_eq!(actual.unwrap_err().to_string(), expected.unwrap_err().to_string());
    }
    let table = toml::from_str("name = 'x'\nparts = []").unwrap();
    let error = from_table::<WithSettings>(&table).unwrap_err();
    assert_eq!(error.to_string(), "value is missing a span\nin `name`\n");
}

#[test]
fn json_deserializes_like_tables() {
    let text = r#"{"part": {"id": 5, "label": null}, "maybe": null, "share": 5, "big":
        18446744073709551615, "choice": {"two": [5, "x"]}, "kind": {"second": null},
        "numbered": {"5": "x"}, "tagged": {"what": "plain", "id": 5}}"#;
    let value: Value = serde_json::from_str(text).unwrap();
    let direct: Settings = serde_json::from_str(text).unwrap();
    assert_eq!(from_value::<Settings>(&value).unwrap(), direct);
    assert_eq!(from_value::<()>(&Value::deserialize(serde_json::json!(null)).unwrap()), Ok(()));
    let wrong: Value = serde_json::from_str(r#"{"part": {"id": null}}"#).unwrap();
    let error = from_value::<Settings>(&wrong).unwrap_err();
    assert_eq!(error.to_string(), "invalid type: unit value, expected u32\nin `part.id`\n");
}

fn part() -> impl Strategy<Value = Part> {
    (any::<u32>(), any::<Option<String>>()).prop_map(|(id, label)| Part { id, label })
}

fn choice() -> impl Strategy<Value = Choice> {
    prop_oneof![
        Just(Choice::Nothing),
        any::<u32>().prop_map(Choice::One),
        (any::<u32>(), any::<String>()).prop_map(|(one, two)| Choice::Two(one, two)),
        (any::<u32>(), -1e9..1e9).prop_map(|(id, share)| Choice::Named { id, share }),
        part().prop_map(Choice::Whole),
    ]
}

fn numbers() -> impl Strategy<Value = Settings> {
    let fields = (
        any::<String>(),
        any::<(u32, i8, bool, char)>(),
        0..=u64::try_from(i64::MAX).unwrap(),
        -1e18..1e18,
        any::<Option<u16>>(),
        any::<Vec<u32>>(),
        any::<(u8, String)>(),
        any::<[f32; 2]>(),
        0..1_000_000_u32,
    );
    fields.prop_map(
        |(name, (count, signed, on, letter), big, share, maybe, list, pair, of, half)| {
            let bounds = of.map(f64::from);
            let even = Even(2 * half);
            let evens = vec![Some(Even(4 * half)); 3];
            let wrapped = Wrapped(i64::from(half) - 5);
            let more =
                Settings { maybe, list, pair, bounds, even, evens, wrapped, ..Settings::default() };
            Settings { name, count, signed, on, letter, big, share, ..more }
        },
    )
}

fn settings() -> impl Strategy<Value = Settings> {
    let parts = (
        part(),
        prop::collection::vec(part(), 0..3),
        choice(),
        prop::collection::vec(choice(), 0..4),
        prop::collection::btree_map(any::<String>(), part(), 0..3),
        prop::collection::btree_map(any::<u32>(), any::<String>(), 0..3),
        prop::option::of(part().prop_map(Box::new)),
        part().prop_map(Either::Part),
    );
    (numbers(), parts).prop_map(|(numbers, parts)| {
        let (part, parts, choice, choices, named, numbered, boxed, either) = parts;
        let tables = (part, parts, choice, choices);
        let (part, parts, choice, choices) = tables;
        Settings { part, parts, choice, choices, named, numbered, boxed, either, ..numbers }
    })
}

/// A character that may break a document.
const LETTER: &str = "\\PC|[\r\n\t\"'=.,#{}0-9a-z-]";
/// Text built from the parts of documents.
const TEXT: &str = "([a-z]{1,3}|[ =.,\\[\\]{}#0-9\"'\r\n\t\u{e4}\u{20ac}-]){0,60}";

proptest! {
    #[test]
    fn valid_documents_round_trip(written in settings()) {
        let text = toml::to_string(&written).unwrap();
        let read = same::<Settings>(&text).unwrap();
        prop_assert_eq!(&read, &written);
        let table: Table = toml::from_str(&text).unwrap();
        prop_assert_eq!(from_table::<Settings>(&table).unwrap(), written);
    }

    #[test]
    fn damaged_documents_match_toml(
        written in settings(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), LETTER), 1..4),
        is_inserted in any::<bool>(),
    ) {
        let mut text: Vec<char> = toml::to_string(&written).unwrap().chars().collect();
        for (at, with) in damage {
            let at = at.index(text.len());
            text.splice(at..at + usize::from(!is_inserted), with.chars());
        }
        let _ = same::<Settings>(&text.into_iter().collect::<String>());
    }

    #[test]
    fn arbitrary_text_matches_toml(text in TEXT) {
        let _ = same::<Table>(&text);
        let _ = same::<BTreeMap<String, u32>>(&text);
    }
}
