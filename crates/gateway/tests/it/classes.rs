//! Storage classes that the configuration assigns to a tier: an object shows its class in every
//! response.

use fulgurite_archive::StorageClass;
use fulgurite_archive::config::Home;

use crate::harness::TestServer;

const CLASSES: [StorageClass; 3] =
    [StorageClass::StandardIa, StorageClass::OnezoneIa, StorageClass::IntelligentTiering];

#[tokio::test]
async fn infrequent_access_classes_need_a_configured_tier() {
    let server = TestServer::start_with_classes(|classes| {
        for class in CLASSES {
            classes.assign(class, Home::Online, None).unwrap();
        }
    })
    .await;
    for name in CLASSES.map(StorageClass::name) {
        let class = |method: &str, path: &str| {
            server.request(method, path).header("x-amz-storage-class", name)
        };
        assert_eq!(class("PUT", "/vault/put").body(b"rare").send().await.status, 200, "{name}");
        let copy = class("PUT", "/vault/copy").header("x-amz-copy-source", "/vault/put");
        assert_eq!(copy.send().await.status, 200, "{name}");
        let upload = class("POST", "/vault/parts?uploads").send().await;
        let upload = upload.element("UploadId").unwrap();
        let part = format!("/vault/parts?partNumber=1&uploadId={upload}");
        let part = server.request("PUT", &part).body(b"rare").send().await;
        let complete = format!(
            "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{}</ETag></Part>\
             </CompleteMultipartUpload>",
            part.header("etag").unwrap().trim_matches('"')
        );
        let path = format!("/vault/parts?uploadId={upload}");
        let done = server.request("POST", &path).body(complete.as_bytes()).send().await;
        assert_eq!(done.status, 200, "{done:?}");
        for path in ["/vault/put", "/vault/copy", "/vault/parts"] {
            let head = server.request("HEAD", path).send().await;
            assert_eq!(head.header("x-amz-storage-class"), Some(name), "{path}");
            let got = server.request("GET", path).send().await;
            assert_eq!((got.status, got.body.as_slice()), (200, b"rare".as_slice()), "{path}");
        }
        let listed = server.request("GET", "/vault").query("list-type", "2").send().await.text();
        let shown = format!("<StorageClass>{name}</StorageClass>");
        assert_eq!(listed.matches(&shown).count(), 3, "{listed}");
        // The object is online: there is nothing to restore.
        let days = b"<RestoreRequest><Days>1</Days></RestoreRequest>";
        let restore = server.request("POST", "/vault/put?restore").body(days).send().await;
        assert_eq!(restore.error(), (403, "InvalidObjectState".to_owned()));
    }
}
