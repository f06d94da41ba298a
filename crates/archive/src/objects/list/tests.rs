//! Concatenated pages equal the whole listing, whatever characters the keys contain.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::bodies::log::LogKind;
use crate::model::object::StorageClass;
use crate::objects::commit::insert_object;
use crate::testing;

/// Letters, the delimiter, the byte that row keys escape, and the last character of each UTF-8
/// length.
fn text(max: usize) -> impl Strategy<Value = String> {
    let letters =
        vec!['a', 'b', '/', '\0', '\u{7f}', '\u{ff}', '\u{7ff}', '\u{ffff}', '\u{10ffff}'];
    prop::collection::vec(prop::sample::select(letters), 0..=max)
        .prop_map(|letters| letters.into_iter().collect())
}

fn fill(state: &Arc<ArchiveState>, bucket: &BucketName, keys: &BTreeSet<String>) {
    let (bucket, keys) = (bucket.clone(), keys.clone());
    let commit = move |tx: &mut Transaction<'_>| -> Result<()> {
        let created = BucketRow { created: testing::NOW };
        rows::put(tx, BUCKETS, rows::bucket_key(bucket.as_str()), &created)?;
        keys.iter().try_for_each(|key| {
            let body = testing::body_row(LogKind::Online);
            let row = testing::object_row(StorageClass::Standard);
            insert_object(tx, &bucket, &testing::key(key), row, vec![body]).map(drop)
        })
    };
    state.committer.commit_blocking(commit).unwrap();
}

/// Returns the expected listing in order, each common prefix once.
fn expected(keys: &BTreeSet<String>, query: &ListQuery) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for key in keys.iter().filter(|key| key.starts_with(&query.prefix)) {
        let rest = &key[query.prefix.len()..];
        let cut = query.delimiter.as_ref().and_then(|d| rest.find(d.as_str()).map(|i| i + d.len()));
        let shown = cut.map_or(key.as_str(), |cut| &key[..query.prefix.len() + cut]);
        if found.last().is_none_or(|last| last != shown) {
            found.push(shown.to_owned());
        }
    }
    found
}

fn all_pages(state: &ArchiveState, bucket: &BucketName, mut query: ListQuery) -> Vec<String> {
    let mut found = Vec::new();
    loop {
        let page = list(state, bucket, &query).unwrap();
        let mut shown: Vec<String> = page.objects.iter().map(|info| info.key.clone()).collect();
        shown.extend(page.prefixes.clone());
        shown.sort();
        assert!(shown.len() <= query.limit && (page.next.is_none() || shown.len() == query.limit));
        assert!(page.next.is_none() || page.next.as_ref() == shown.last(), "next is the last");
        found.extend(shown);
        let Some(next) = page.next else { return found };
        query.after = Some(next);
    }
}

#[test]
fn pages_concatenate_to_the_full_listing() {
    let dir = testing::dir();
    let state = testing::state(&dir);
    let number = std::cell::Cell::new(0);
    let keys = prop::collection::btree_set(text(4).prop_filter("a key", |k| !k.is_empty()), 0..30);
    let delimiter = prop::option::of(text(2));
    let config = ProptestConfig::with_cases(96);
    proptest!(config, |(keys in keys, prefix in text(2), delimiter in delimiter)| {
        number.set(number.get() + 1);
        let bucket = testing::bucket(&format!("bucket-{}", number.get()));
        fill(&state, &bucket, &keys);
        let empty_is_none = delimiter.clone().filter(|d| !d.is_empty());
        let query = ListQuery { prefix, delimiter: empty_is_none, after: None, limit: 1000 };
        let whole = expected(&keys, &query);
        for limit in [1, 2, 3, 1000] {
            let query = ListQuery { limit, delimiter: delimiter.clone(), ..query.clone() };
            prop_assert_eq!(&all_pages(&state, &bucket, query), &whole);
        }
    });
}

#[test]
fn listing_resumes_after_key_or_common_prefix() {
    let dir = testing::dir();
    let state = testing::state(&dir);
    let bucket = testing::bucket("bucket");
    let keys = ["a", "a/b", "a/c", "a0", "b"].map(str::to_owned).into();
    fill(&state, &bucket, &keys);
    let after = |after: &str, delimiter: Option<&str>| {
        let delimiter = delimiter.map(str::to_owned);
        let after = Some(after.to_owned());
        all_pages(
            &state,
            &bucket,
            ListQuery { delimiter, after, limit: 10, ..ListQuery::default() },
        )
    };
    assert_eq!(after("a", Some("/")), ["a/", "a0", "b"]);
    assert_eq!(after("a/", Some("/")), ["a0", "b"]);
    // A key within the prefix is no page end: the keys after it are still rolled up.
    assert_eq!(after("a/b", Some("/")), ["a/", "a0", "b"]);
    assert_eq!(after("a/", None), ["a/b", "a/c", "a0", "b"]);
    assert_eq!(after("zzz", None), [""; 0]);
    let none = ListQuery { limit: 0, ..ListQuery::default() };
    assert!(list(&state, &bucket, &none).unwrap().next.is_none());
}
