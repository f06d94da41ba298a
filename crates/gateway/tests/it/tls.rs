//! TLS with a self-signed certificate.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use fulgurite_gateway::TlsConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::harness::{credentials, read_response};

pub(crate) fn connector(certificate: &std::path::Path) -> TlsConnector {
    let pem = std::fs::read(certificate).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        roots.add(certificate.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

#[tokio::test]
async fn self_signed_certificate_is_generated_once() {
    let data = TempDir::new().unwrap();
    let directory = data.path().join("tls");
    let archive = crate::harness::open_archive(&data).await;
    let mut config =
        fulgurite_gateway::ServerConfig::new(([127, 0, 0, 1], 0).into(), credentials());
    let names = vec!["archive.example".to_owned()];
    config.tls = Some(TlsConfig::Auto { directory: directory.clone(), names });
    let first = fulgurite_gateway::bind(config.clone(), archive.clone()).await.unwrap();
    let certificate = std::fs::read(first.certificate().unwrap()).unwrap();
    let mode = std::fs::metadata(directory.join("key.pem")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    drop(first);

    let server = fulgurite_gateway::bind(config, archive).await.unwrap();
    assert!(server.is_tls());
    let path = server.certificate().unwrap().to_owned();
    assert_eq!(
        std::fs::read(&path).unwrap(),
        certificate,
        "the certificate is kept across restarts"
    );
    let address = server.local_addr();
    let serving = tokio::spawn(server.serve(Box::pin(std::future::pending())));
    for name in ["localhost", "127.0.0.1", "archive.example"] {
        let socket = TcpStream::connect(address).await.unwrap();
        let name = ServerName::try_from(name).unwrap();
        let mut stream = connector(&path).connect(name, socket).await.unwrap();
        let request = b"GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        stream.write_all(request).await.unwrap();
        assert_eq!(read_response(&mut stream).await.text(), "live\n");
    }
    serving.abort();
}

#[tokio::test]
async fn invalid_pem_files_are_reported() {
    let data = TempDir::new().unwrap();
    let archive = crate::harness::open_archive(&data).await;
    let cert = data.path().join("cert.pem");
    std::fs::write(&cert, "not a certificate").unwrap();
    let mut config =
        fulgurite_gateway::ServerConfig::new(([127, 0, 0, 1], 0).into(), credentials());
    config.tls = Some(TlsConfig::Files { cert: cert.clone(), key: cert.clone() });
    let error = fulgurite_gateway::bind(config, archive).await.unwrap_err();
    assert!(error.to_string().contains("cert.pem"), "{error}");
    assert_eq!(error.kind(), fulgurite_gateway::ErrorKind::Invalid);
}
