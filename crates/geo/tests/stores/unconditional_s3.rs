//! An S3 server that accepts conditions and does not enforce them.

use std::path::Path;

use crate::servers::{ACCESS_KEY, SECRET_KEY};

/// Starts s3s-fs in this process, with a bucket called `bucket`: it checks conditions and then
/// writes, whatever happened in between. Returns its port.
pub(crate) async fn s3s_fs(folder: &Path) -> u16 {
    use hyper_util::rt::TokioIo;
    std::fs::create_dir_all(folder.join("bucket")).unwrap();
    let mut builder = s3s::service::S3ServiceBuilder::new(s3s_fs::FileSystem::new(folder).unwrap());
    builder.set_auth(s3s::auth::SimpleAuth::from_single(ACCESS_KEY, SECRET_KEY));
    let service = builder.build();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let server = hyper::server::conn::http1::Builder::new();
            let connection = server.serve_connection(TokioIo::new(stream), service.clone());
            tokio::spawn(async move {
                let _ = connection.await;
            });
        }
    });
    port
}
