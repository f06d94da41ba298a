//! The checks of the fuzz targets with seeded bytes: well-formed examples with some bytes changed,
//! inserted or removed, because random bytes hardly get past the first character.

#[path = "../../../../fuzz/gateway_checks.rs"]
mod gateway_checks;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

const SIGNATURES: [&str; 6] = [
    "AWS4-HMAC-SHA256 Credential=KEY/20130524/us-east-1/s3/aws4_request, \
     SignedHeaders=host;range;x-amz-date, \
     Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
    "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=KEY%2F20130524%2FUS%2Fs3%2Faws4_request\
     &X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host\
     &X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404",
    "20130524T000000Z",
    "Fri, 24 May 2013 00:00:00 GMT",
    "Fri, 24 May 2013 00:00:00 -0000",
    "Fulgurite-HMAC-SHA256 Time=1790000000000, Nonce=abababababababababababababababab, \
     Signature=c301401eb0c1a88a2f04e327a08f27e8c3afa86f18b4f0ae7f52faa288af3c8a",
];
const CHUNKS: [&str; 3] = [
    "\u{3}5\r\nhello\r\n0\r\nx-amz-checksum-crc32:y/Q5Jg==\r\n\r\n",
    "\u{7}5;chunk-signature=ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648\r\n\
     hello\r\n0;chunk-signature=ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648\
     \r\nx-amz-trailer-signature:00\r\n\r\n",
    "\u{0}1\r\na\r\n1\r\nb\r\n0\r\n\r\n",
];
const DOCUMENTS: [&str; 9] = [
    "<?xml version=\"1.0\"?><Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Object>\
     <Key>a&amp;b&#10;</Key></Object><Quiet>true</Quiet></Delete>",
    "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>\"x\"</ETag></Part>\
     </CompleteMultipartUpload>",
    "<RestoreRequest><Days>1</Days><GlacierJobParameters><Tier>Bulk</Tier></GlacierJobParameters>\
     </RestoreRequest>",
    "<CreateBucketConfiguration><LocationConstraint>EU</LocationConstraint>\
     </CreateBucketConfiguration>",
    "<!DOCTYPE l [<!ENTITY a \"aaaaaaaaaa\">]><Delete><Object><Key>&a;</Key></Object></Delete>",
    "<Delete>\r\n <Object><Key>a<![CDATA[b]]>c<!-- d -->e&lt;&#x66;\r</Key><Size>7</Size>\
     <LastModifiedTime>Wed, 21 Oct 2015 07:28:00 GMT</LastModifiedTime></Object>\r\n</Delete>",
    "<Delete><Object><Key>a</Key><VersionId>null</VersionId></Object><Object><Key>b</Key></Object>\
     <Quiet>False</Quiet></Delete>",
    "<CompleteMultipartUpload><Part><ETag>x</ETag><PartNumber>10000</PartNumber><ChecksumCRC32>\
     AAAAAA==</ChecksumCRC32></Part><Part><PartNumber>-1</PartNumber><ETag/></Part>\
     </CompleteMultipartUpload>",
    "<RestoreRequest ><Tier>Standard</Tier ><Days>2147483647</Days><Description/></RestoreRequest>",
];
/// Fragments that are inserted into documents: markup, and text that some parsers take for numbers.
const MARKUP: [&str; 24] = [
    "<![CDATA[",
    "]]>",
    "<!--",
    "-->",
    "<?a b?>",
    "&#x2b;",
    "&#+1;",
    "&amp;",
    "&apos",
    "<Key>",
    "</Key>",
    "<Key/>",
    "<Object><Key>k</Key></Object>",
    "<Days>1</Days>",
    " xmlns=\"\"",
    "\u{feff}",
    "\r\n",
    "\u{1}",
    "\u{ffff}",
    ".5",
    "e1",
    "+",
    "x",
    " ",
];

const WORDS: [&str; 11] = ["%", "/", ";", ",", "=", "&", "<", ">", "\r\n", "0", "ffffffffffffffff"];

/// Generates one change: where, which text it inserts, and how many bytes it removes.
fn mutation(words: &'static [&'static str]) -> impl Strategy<Value = (Index, Vec<u8>, usize)> {
    let put = prop_oneof![
        3 => vec(any::<u8>(), 0..3),
        2 => select(words).prop_map(|word| word.as_bytes().to_vec()),
    ];
    (any::<Index>(), put, 0..3usize)
}

/// Generates an example with up to six changes.
fn mutated(
    examples: &'static [&'static str],
    words: &'static [&'static str],
) -> impl Strategy<Value = Vec<u8>> {
    (select(examples), vec(mutation(words), 0..6)).prop_map(|(example, changes)| {
        let mut bytes = example.as_bytes().to_vec();
        for (position, inserted, removed) in changes {
            let start = position.index(bytes.len() + 1);
            let end = (start + removed).min(bytes.len());
            bytes.splice(start..end, inserted);
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn signatures_parse_unambiguously(input in mutated(&SIGNATURES, &WORDS)) {
        gateway_checks::signatures(&input);
    }

    #[test]
    fn chunks_parse_unambiguously(input in mutated(&CHUNKS, &WORDS)) {
        gateway_checks::chunks(&input);
    }

    #[test]
    fn random_chunks_parse_unambiguously(input in vec(any::<u8>(), 0..600)) {
        gateway_checks::chunks(&input);
    }

    #[test]
    fn documents_parse_unambiguously(input in mutated(&DOCUMENTS, &MARKUP)) {
        gateway_checks::documents(&input);
    }
}

/// The examples are accepted: a check that refuses everything would find nothing.
#[test]
fn examples_are_accepted() {
    use fulgurite_gateway::fuzz_api;
    assert!(fuzz_api::signature_header(SIGNATURES[0]).is_some());
    assert!(fuzz_api::signature_query(SIGNATURES[1]).is_some());
    assert!(SIGNATURES[2..5].iter().all(|text| fuzz_api::date(text) == Some(1_369_353_600)));
    assert!(fuzz_api::operator_header(SIGNATURES[5]));
    let trailer = Some("x-amz-checksum-crc32");
    let body = fuzz_api::chunked(&CHUNKS[0].as_bytes()[1..], 4, None, trailer);
    assert_eq!(body, Ok(b"hello".to_vec()));
    let places = [0, 1, 2, 3, 9, 0, 0, 1, 2].map(|place| (place < 9).then_some(place));
    for (document, place) in DOCUMENTS.iter().zip(places) {
        let read = fuzz_api::documents(document.as_bytes());
        assert_eq!(read.iter().position(Option::is_some), place, "{document}");
        gateway_checks::documents(document.as_bytes());
    }
}

/// Measures documents of many keys. The time is printed, not asserted, because it depends on the
/// machine.
#[test]
#[expect(clippy::print_stdout, reason = "a time is for people to read")]
fn thousand_key_document_is_parsed() {
    use std::fmt::Write as _;
    let mut document = "<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">".to_owned();
    for index in 0..1000 {
        let name = "a folder/with &amp; a longer name/".repeat(4);
        let _ = write!(document, "<Object><Key>{name}{index}</Key></Object>");
    }
    document.push_str("<Quiet>true</Quiet></Delete>");
    let mut times: Vec<_> = (0..20)
        .map(|_| {
            let began = std::time::Instant::now();
            let read = fulgurite_gateway::fuzz_api::document(0, document.as_bytes());
            let taken = began.elapsed();
            assert_eq!(read.map(|plain| plain.len() > 100_000), Some(true));
            taken
        })
        .collect();
    times.sort_unstable();
    println!("{} bytes of 1,000 keys in {:?} (median of 20)", document.len(), times[10]);
}
