//! TLS keys: the operator's PEM files, or a self-signed pair that is made once and kept.

use std::fs;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use super::TlsConfig;
use crate::{GatewayError, Result};

const CERT_FILE: &str = "cert.pem";
const KEY_FILE: &str = "key.pem";
/// Only the owner may read a private key.
const KEY_MODE: u32 = 0o600;

/// An acceptor, and the certificate file it shows.
pub(super) fn acceptor(tls: &TlsConfig, listen: SocketAddr) -> Result<(TlsAcceptor, PathBuf)> {
    let (cert, key) = match tls {
        TlsConfig::Files { cert, key } => (cert.clone(), key.clone()),
        TlsConfig::Auto { directory, names } => {
            let pair = (directory.join(CERT_FILE), directory.join(KEY_FILE));
            if !(pair.0.exists() && pair.1.exists()) {
                make_pair(directory, names, listen)?;
            }
            pair
        }
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let pair = |source| GatewayError::TlsPair { path: cert.clone(), source };
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(pair)?
        .with_no_client_auth()
        .with_single_cert(read_chain(&cert)?, read_key(&key)?)
        .map_err(pair)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok((TlsAcceptor::from(Arc::new(config)), cert))
}

fn make_pair(directory: &Path, names: &[String], listen: SocketAddr) -> Result<()> {
    let mut subjects = vec!["localhost".to_owned()];
    subjects.extend(["127.0.0.1".to_owned(), "::1".to_owned()]);
    if !listen.ip().is_unspecified() {
        subjects.push(listen.ip().to_string());
    }
    subjects.extend(host_name());
    subjects.extend(names.iter().cloned());
    subjects.sort();
    subjects.dedup();
    let made = rcgen::generate_simple_self_signed(subjects)
        .map_err(|source| GatewayError::TlsMake { source })?;
    fs::create_dir_all(directory).map_err(file_error("create", directory))?;
    // The key first: a certificate without its key would look like a finished pair.
    write_new(&directory.join(KEY_FILE), &made.signing_key.serialize_pem(), KEY_MODE)?;
    write_new(&directory.join(CERT_FILE), &made.cert.pem(), 0o644)
}

/// The machine's own name, when it has one that a certificate can carry.
fn host_name() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    let name = name.trim();
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'.';
    (!name.is_empty() && name.bytes().all(plain)).then(|| name.to_owned())
}

/// Writes a file whole or not at all, with `mode` from its first byte on.
fn write_new(path: &Path, text: &str, mode: u32) -> Result<()> {
    let part = path.with_extension("part");
    let write = || -> io::Result<()> {
        // A leftover of a killed process would keep its own mode, so it goes first.
        match fs::remove_file(&part) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let mut file =
            fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&part)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&part, path)
    };
    write().map_err(file_error("write", path))
}

fn read_chain(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let text = fs::read(path).map_err(file_error("read", path))?;
    let chain: Vec<_> = rustls_pemfile::certs(&mut text.as_slice())
        .collect::<Result<_, _>>()
        .map_err(file_error("read", path))?;
    if chain.is_empty() {
        return Err(GatewayError::TlsContent { path: path.to_owned(), what: "certificate" });
    }
    Ok(chain)
}

fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>> {
    let text = fs::read(path).map_err(file_error("read", path))?;
    rustls_pemfile::private_key(&mut text.as_slice())
        .map_err(file_error("read", path))?
        .ok_or_else(|| GatewayError::TlsContent { path: path.to_owned(), what: "private key" })
}

fn file_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> GatewayError {
    let path = path.to_owned();
    move |source| GatewayError::TlsFile { action, path, source }
}
