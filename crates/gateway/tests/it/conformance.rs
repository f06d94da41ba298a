//! The conformance suite of the crate `object_store`, whose client archives use for their tiers,
//! over a real connection.

use std::sync::Arc;

use futures::future::BoxFuture;
use object_store::aws::{AmazonS3, AmazonS3Builder, S3CopyIfNotExists};
use object_store::integration as suite;

use crate::harness::TestServer;
use crate::signer::{ACCESS_KEY, SECRET_KEY};

type Test = fn(Arc<AmazonS3>) -> BoxFuture<'static, ()>;

/// A test of the suite, by its name.
macro_rules! test {
    ($name:ident, $($argument:expr),*) => {
        (stringify!($name), |_store| Box::pin(async move {
            suite::$name(&*_store, $($argument),*).await;
        }))
    };
    (twice $name:ident) => {
        (stringify!($name), |store| Box::pin(async move {
            suite::$name(&*store, &*store).await;
        }))
    };
}

/// All tests but `tagging` (tags are not supported), `signing`, `s3_encryption` and
/// `response_extensions`.
const TESTS: [(&str, Test); 18] = [
    test!(put_get_delete_list,),
    test!(list_with_offset_exclusivity,),
    test!(get_opts,),
    test!(put_opts, true),
    test!(list_uses_directories_correctly,),
    test!(list_with_delimiter,),
    test!(rename_and_copy,),
    test!(copy_rename_nonexistent_object,),
    test!(copy_if_not_exists,),
    test!(stream_get,),
    test!(multipart_race_condition, true),
    test!(multipart_out_of_order,),
    test!(put_get_attributes,),
    test!(twice multipart),
    test!(twice multipart_with_opts),
    test!(twice multipart_put_part_out_of_order),
    test!(twice list_paginated),
    ("get_nonexistent_object", |store| {
        Box::pin(async move {
            let missing = suite::get_nonexistent_object(&*store, None).await.unwrap_err();
            assert!(matches!(missing, object_store::Error::NotFound { .. }), "{missing}");
        })
    }),
];

#[tokio::test]
async fn object_store_conformance_suite_passes() {
    // The client needs a default crypto provider, although no TLS is used here.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let server = TestServer::start().await;
    let mut failed = Vec::new();
    for (number, (name, test)) in TESTS.into_iter().enumerate() {
        // Each test starts with an empty bucket, and cleans up nothing.
        let bucket = format!("suite-{number}");
        assert_eq!(server.request("PUT", &format!("/{bucket}")).send().await.status, 200);
        let store = AmazonS3Builder::new()
            .with_endpoint(format!("http://{}", server.address))
            .with_allow_http(true)
            .with_region("us-east-1")
            .with_access_key_id(ACCESS_KEY)
            .with_secret_access_key(SECRET_KEY)
            .with_bucket_name(bucket)
            // S3 has a condition on the target only for copies made as a multipart upload.
            .with_copy_if_not_exists(S3CopyIfNotExists::Multipart)
            .build()
            .unwrap();
        if tokio::spawn(test(Arc::new(store))).await.is_err() {
            failed.push(name);
        }
    }
    assert_eq!(failed, Vec::<&str>::new());
}
